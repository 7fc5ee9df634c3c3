"""``flask withhold``: out of sight and out of every figure, and back again."""

import json
import os
from pathlib import Path

import pytest
from builders import answered, client_over, output, write_data, write_json
from faults import UnreadableFiles, replace_os
from test_cli_naming import answers, history

from store.data_file import MAX_BYTES

POLLS = [
    answered("A", ["Good", "Fine"], "2026-11-02T06:00:00Z"),
    answered("B", ["A slur", "Fine"], "2026-11-02T06:00:01Z"),
]


def withhold(directory: Path, *arguments: str, exit_code: int = 0) -> str:
    """All that the command says which ends with this exit code."""
    return output(directory, "withhold", *arguments, exit_code=exit_code)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A category whose second answer should not be seen."""
    return write_data(tmp_path / "data", polls=POLLS)


def test_a_withheld_poll_is_shown_without_its_texts_and_counts_nowhere(directory: Path) -> None:
    """Its record keeps its place; what it said is in no answer; taking it back restores all."""
    before, kept = answers(directory), history(directory)
    arguments = (POLLS[1].id, "--reason", "Insults a person")
    sentence = "Withheld: B on crm-software, 2026-11-02T06:00:01Z; see withheld.json."
    assert sentence in withhold(directory, *arguments)
    written = json.loads((directory / "withheld.json").read_bytes())
    assert written["withheld"][POLLS[1].id]["reason"] == "Insults a person"
    client = client_over(directory)
    newest, oldest = client.get("/api/v1/history?slug=crm-software").get_json()
    assert (newest["id"], newest["withheld"], newest["ranking"]) == (POLLS[1].id, True, [])
    assert oldest["pick"] == "Good"
    assert b"A slur" not in b"".join(answers(directory).values())
    assert client.get("/api/v1/product/a-slur.json").status_code == 404
    assert history(directory) == kept
    assert "is withheld already" in withhold(directory, *arguments, exit_code=1)
    write_json(directory / "withheld.json", {"version": 1, "withheld": {}})
    assert answers(directory) == before


def test_a_category_with_nothing_but_withheld_polls_is_not_called_unasked(directory: Path) -> None:
    """Neither by the API nor by its page."""
    for poll in POLLS:
        withhold(directory, poll.id, "--reason", "Insults")
    client = client_over(directory)
    answer = client.get("/api/v1/best/crm-software.json")
    why = "has no successful poll yet that is not withheld."
    assert (answer.status_code, why in answer.get_json()["detail"]) == (404, True)
    page = client.get("/best/crm-software", headers={"Accept": "text/html"}).text
    assert "has only answers that are withheld." in page


def test_a_second_one_is_written_below_the_first(directory: Path) -> None:
    """The file keeps its order."""
    for poll in POLLS:
        withhold(directory, poll.id, "--reason", "x")
    written = json.loads((directory / "withheld.json").read_bytes())
    assert list(written["withheld"]) == [poll.id for poll in POLLS]


def test_mode_and_owner_of_the_file_stay(directory: Path) -> None:
    """Whoever could read it still can, also where root withholds."""
    path = directory / "withheld.json"
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 54_321, 12_345)
    before = path.stat()
    withhold(directory, POLLS[0].id, "--reason", "x")
    after = path.stat()
    for part in ("st_mode", "st_uid", "st_gid"):
        assert getattr(after, part) == getattr(before, part)


def test_a_file_in_need_of_repair_is_not_edited(directory: Path) -> None:
    """First it is mended by hand."""
    (directory / "withheld.json").write_text("{", encoding="utf-8")
    refusal = withhold(directory, POLLS[0].id, "--reason", "x", exit_code=1)
    assert "Mend this first: withheld.json:1:2" in refusal
    assert (directory / "withheld.json").read_text(encoding="utf-8") == "{"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["0" * 16, "--reason", "x"], 1, f'No poll has the id "{"0" * 16}"'),
        ([POLLS[0].id], 2, "Missing option '--reason'"),
        ([POLLS[0].id, "--reason", " x\n"], 1, "withheld.json was left as it was"),
        ([POLLS[0].id, "--reason", "caf\udce9"], 1, "withheld.json was left as it was: byte 0xed"),
    ],
)
def test_what_cannot_be_withheld_is_said(
    directory: Path, arguments: list[str], exit_code: int, sentence: str
) -> None:
    """An unknown id or a reason that is no line writes nothing."""
    before = (directory / "withheld.json").read_bytes()
    assert sentence in withhold(directory, *arguments, exit_code=exit_code)
    assert (directory / "withheld.json").read_bytes() == before


def test_no_more_is_written_than_is_read(directory: Path) -> None:
    """A server would keep the file before, and the next one not start."""
    path, entry = directory / "withheld.json", {"reason": "x" * 200, "date": "2026-11-15"}
    sizes = [len(put(path, n, entry).read_bytes()) for n in (1, 2)]
    put(path, (MAX_BYTES - sizes[0]) // (sizes[1] - sizes[0]) + 1, entry)
    before = path.read_bytes()
    arguments = (POLLS[0].id, "--reason", "x" * 200)
    assert "it would be larger than 1,048,576 bytes" in withhold(directory, *arguments, exit_code=1)
    assert path.read_bytes() == before
    client_over(directory)


def put(path: Path, count: int, entry: dict[str, str]) -> Path:
    """Withhold so many polls that nobody has."""
    ids = (f"{number:016x}" for number in range(count))
    return write_json(path, {"version": 1, "withheld": dict.fromkeys(ids, entry)})


def test_a_data_directory_may_be_a_link(directory: Path, tmp_path: Path) -> None:
    """As DATA_DIR often is."""
    (tmp_path / "link").symlink_to(directory)
    withhold(tmp_path / "link", POLLS[1].id, "--reason", "x")


def test_a_history_that_cannot_be_read_may_hold_the_poll(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told that a poll does not exist while a file cannot be looked into."""
    replace_os(monkeypatch, UnreadableFiles("crm-software.jsonl"))
    assert withhold(directory, POLLS[1].id, "--reason", "x", exit_code=1).endswith(
        f'Error: No poll that can be read has the id "{POLLS[1].id}":\n'
        "  history/crm-software.jsonl:1:1: cannot be read: Input/output error\n"
    )
