"""``flask withhold``: out of sight and out of every figure, and back again."""

import json
import os
from pathlib import Path

import pytest
from builders import answered, app_over, append, close_days, write_data, write_json
from faults import UnreadableFiles, replace_os
from test_cli_naming import answers, history

POLLS = [
    answered("A", ["Good", "Fine"], "2026-11-02T06:00:00Z"),
    answered("B", ["A slur", "Fine"], "2026-11-02T06:00:01Z"),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A category whose second answer should not be seen."""
    return write_data(tmp_path / "data", polls=POLLS)


def test_a_withheld_poll_is_shown_without_its_texts_and_counts_nowhere(directory: Path) -> None:
    """Its record keeps its place; what it said is in no answer; taking it back restores all."""
    before, kept = answers(directory), history(directory)
    shell = app_over(directory).test_cli_runner()
    args = ["withhold", POLLS[1].id, "--reason", "Insults a person"]
    done = shell.invoke(args=args)
    assert done.exit_code == 0, done.output
    assert "Withheld: B on crm-software, 2026-11-02T06:00:01Z; see withheld.json." in done.stdout
    text = (directory / "withheld.json").read_text(encoding="utf-8")
    written = json.loads(text)
    assert written["withheld"][POLLS[1].id]["reason"] == "Insults a person"
    client = app_over(directory).test_client()
    newest, oldest = client.get("/api/v1/history?slug=crm-software").get_json()
    assert (newest["id"], newest["withheld"], newest["ranking"]) == (POLLS[1].id, True, [])
    assert oldest["pick"] == "Good"
    assert b"A slur" not in b"".join(answers(directory).values())
    assert client.get("/api/v1/product/a-slur.json").status_code == 404
    assert history(directory) == kept
    assert "is withheld already" in shell.invoke(args=args).output
    write_json(directory / "withheld.json", {"version": 1, "withheld": {}})
    assert answers(directory) == before


def test_a_category_with_nothing_but_withheld_polls_is_not_called_unasked(directory: Path) -> None:
    """Neither by the API nor by its page."""
    shell = app_over(directory).test_cli_runner()
    for poll in POLLS:
        assert shell.invoke(args=["withhold", poll.id, "--reason", "Insults"]).exit_code == 0
    client = app_over(directory).test_client()
    answer = client.get("/api/v1/best/crm-software.json")
    why = "has no successful poll yet that is not withheld."
    assert (answer.status_code, why in answer.get_json()["detail"]) == (404, True)
    page = client.get("/best/crm-software", headers={"Accept": "text/html"}).text
    assert "has only answers that are withheld." in page


def test_a_second_one_is_written_below_the_first(directory: Path) -> None:
    """The file keeps its order."""
    shell = app_over(directory).test_cli_runner()
    for poll in POLLS:
        assert shell.invoke(args=["withhold", poll.id, "--reason", "x"]).exit_code == 0
    withheld = json.loads((directory / "withheld.json").read_text(encoding="utf-8"))["withheld"]
    assert list(withheld) == [poll.id for poll in POLLS]


def test_mode_and_owner_of_the_file_stay(directory: Path) -> None:
    """Whoever could read it still can, also where root withholds."""
    path = directory / "withheld.json"
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 54_321, 12_345)
    before = path.stat()
    shell = app_over(directory).test_cli_runner()
    assert shell.invoke(args=["withhold", POLLS[0].id, "--reason", "x"]).exit_code == 0
    after = path.stat()
    for part in ("st_mode", "st_uid", "st_gid"):
        assert getattr(after, part) == getattr(before, part)


def test_a_file_in_need_of_repair_is_not_edited(directory: Path) -> None:
    """First it is mended by hand."""
    shell = app_over(directory).test_cli_runner()
    (directory / "withheld.json").write_text("{", encoding="utf-8")
    done = shell.invoke(args=["withhold", POLLS[0].id, "--reason", "x"])
    assert done.exit_code == 1
    assert "Mend this first: withheld.json:1:2" in done.output
    assert (directory / "withheld.json").read_text(encoding="utf-8") == "{"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["0" * 16, "--reason", "x"], f'No poll has the id "{"0" * 16}"'),
        ([POLLS[0].id], "Missing option '--reason'"),
        ([POLLS[0].id, "--reason", " x\n"], "withheld.json was left as it was"),
    ],
)
def test_what_cannot_be_withheld_is_said(directory: Path, args: list[str], sentence: str) -> None:
    """An unknown id or a reason that is no line writes nothing."""
    before = (directory / "withheld.json").read_bytes()
    done = app_over(directory).test_cli_runner().invoke(args=["withhold", *args])
    assert done.exit_code != 0
    assert sentence in done.output
    assert (directory / "withheld.json").read_bytes() == before


def test_a_data_directory_may_be_a_link(directory: Path, tmp_path: Path) -> None:
    """As DATA_DIR often is."""
    (tmp_path / "link").symlink_to(directory)
    shell = app_over(tmp_path / "link").test_cli_runner()
    assert shell.invoke(args=["withhold", POLLS[1].id, "--reason", "x"]).exit_code == 0


def test_a_history_that_is_gone_may_hold_the_poll(directory: Path) -> None:
    """As long as the ledger knows of it, nobody is told that a poll of it does not exist."""
    close_days(directory)
    write_json(directory / "categories/mail.json", {"version": 1, "title": "M", "question": "?"})
    append(directory, [answered("A", ["Good"], "2026-11-09T06:00:00Z", slug="mail")])
    (directory / "history/crm-software.jsonl").unlink()
    done = (
        app_over(directory)
        .test_cli_runner()
        .invoke(args=["withhold", POLLS[1].id, "--reason", "x"])
    )
    assert done.exit_code == 1
    assert f'No poll that can be read has the id "{POLLS[1].id}":' in done.output
    assert "history/crm-software.jsonl:1:1: the file is gone" in done.output


def test_a_history_that_cannot_be_read_may_hold_the_poll(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told that a poll does not exist while a file cannot be looked into."""
    replace_os(monkeypatch, UnreadableFiles("crm-software.jsonl"))
    done = (
        app_over(directory)
        .test_cli_runner()
        .invoke(args=["withhold", POLLS[1].id, "--reason", "x"])
    )
    assert done.exit_code == 1
    assert done.output.endswith(
        f'Error: No poll that can be read has the id "{POLLS[1].id}":\n'
        "  history/crm-software.jsonl:1:1: cannot be read: Input/output error\n"
    )
