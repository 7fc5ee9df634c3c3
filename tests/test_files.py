"""Hand-edited files: every mistake is named in its place, and none stops the service."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from broken import write_one_of_each
from builders import answered, app_over, write_data, write_json

from store.files import DataDirectoryError, Files
from store.records import SINGLE
from store.settings import SHIPPED_DATA


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


def said(directory: Path) -> list[str]:
    """Every problem of a data directory, as a fresh reader finds them."""
    return [str(problem) for problem in Files(directory).scan().problems]


def test_invented_answers_belong_to_a_sample_only(directory: Path) -> None:
    """A sample assistant on a real site is an error, a real one on a sample a warning."""
    assistants = [{"name": "S", "api": "sample"}, {"name": "R", "api": "chat"}]
    write_json(directory / "models.json", {"version": 1, "models": assistants})
    for sample, line, severity in ((False, 6, "error"), (True, 10, "warning")):
        write_json(directory / "site.json", {"version": 1, "name": "x", "sample": sample})
        (problem,) = Files(directory).scan().problems
        assert (problem.file, problem.line, problem.severity) == ("models.json", line, severity)


def test_a_file_that_goes_between_listing_and_reading_is_no_problem(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has just been deleted is simply not there."""
    _refuse_to_open(monkeypatch, "vpn.json", FileNotFoundError(2, "No such file"))
    catalogue = Files(directory).scan()
    assert list(catalogue.categories) == ["crm-software"]
    assert {problem.file for problem in catalogue.problems} == {"topics.json"}  # which lists it


@pytest.mark.parametrize("settled", [False, True])
def test_a_file_that_could_not_be_read_is_tried_again(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    settled: bool,  # noqa: FBT001
) -> None:
    """A passing fault leaves the last good version in use, changes nothing twice, and passes."""
    fresh, seasoned = Files(directory), Files(directory)
    good = seasoned.scan()
    for files, held in ((fresh, {"crm-software"}), (seasoned, {"crm-software", "vpn"})):
        with monkeypatch.context() as patched:
            _refuse_to_open(patched, "vpn.json", OSError(24, "Too many open files"))
            os.utime(directory / "categories/vpn.json")
            files.scan(settled=settled)
            faulty = files.scan(settled=settled)
            found = [str(problem) for problem in faulty.problems]
            assert found == ["categories/vpn.json:1:1: cannot be read: Too many open files"]
            assert faulty.categories.keys() == held
            assert files.scan(settled=settled) is faulty
        assert files.scan(settled=settled).categories == good.categories
        assert files.scan(settled=settled).problems == ()


def _refuse_to_open(patch: pytest.MonkeyPatch, name: str, error: OSError) -> None:
    really = os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(name) and os.path.lexists(path):
            raise error
        return really(path, *args, **kwargs)

    patch.setattr(os, "open", refuse)


def test_a_file_name_must_be_a_slug(directory: Path) -> None:
    """A file whose name cannot be an address is reported and left out."""
    text = (directory / "categories" / "vpn.json").read_text(encoding="utf-8")
    for name in ("Best VPN", "vpn_2", "vpn--2", "x" * 101):
        path = directory / "categories" / f"{name}.json"
        path.write_text(text, encoding="utf-8")
        assert said(directory) == [
            (
                f'categories/{name}.json:1:1: the file name "{name}" is not a slug; '
                "use a-z, 0-9 and single hyphens, at most 100"
            )
        ]
        path.unlink()


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("categories/crm.JSON", "it is not read: the name of a data file ends in .json"),
        ("categories/crm.json.txt", "it is not read: the name of a data file ends in .json"),
        ("model.json", "it is not read; did you mean models.json?"),
        ("product/", "it is not read; did you mean products?"),
    ],
)
def test_what_looks_like_a_data_file_and_is_not_read_is_mentioned(
    directory: Path, name: str, warning: str
) -> None:
    """A curator who misnames a file or folder is told; it does no harm."""
    path = directory / name
    if name.endswith("/"):
        path.mkdir()
    else:
        path.write_text("{}", encoding="utf-8")
    (problem,) = Files(directory).scan().problems
    assert str(problem) == f"{name.rstrip('/')}:1:1: {warning}"
    assert problem.severity == "warning"


@pytest.mark.parametrize(
    "name",
    [
        "categories/.vpn.json.swp", "categories/vpn.json~", "categories/4913",
        "categories/#vpn.json#", "categories/.#vpn.json", "categories/sedKq1x2",
        "categories/vpn.json.bak", "categories/.goutputstream-X1", "notes.txt", "LICENSE",
        "schemas/category.json", ".vscode/settings.json",
    ],
)  # fmt: skip
def test_what_editors_leave_behind_is_passed_over(directory: Path, name: str) -> None:
    """Swap files, backups and our own other files are no data files and no problems."""
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("half a fi", encoding="utf-8")
    assert said(directory) == []


MODELS: Any = {
    "a name borne twice": ([{"name": "A"}, {"name": "A"}], "two assistants have this name"),
    "a former name claimed twice": (
        [{"name": "A", "former_names": ["Old"]}, {"name": "B", "former_names": ["Old"]}],
        "another assistant bears or claims this former name",
    ),
    "a former name that is borne": (
        [{"name": "A", "former_names": ["B"]}, {"name": "B"}],
        "another assistant bears or claims this former name",
    ),
}


@pytest.mark.parametrize(("listed", "message"), MODELS.values(), ids=MODELS)
def test_assistants_that_share_a_name_keep_the_whole_file_from_being_used(
    directory: Path, listed: list[dict[str, Any]], message: str
) -> None:
    """Whose answers are whose is not guessed: the last good version stays, or there is none."""
    files = Files(directory)
    before = files.scan().assistants
    models = [{"api": "sample", **each} for each in listed]
    write_json(directory / "models.json", {"version": 1, "models": models})
    after = files.scan()
    assert after.assistants == before
    (error,) = after.governing_errors
    assert error.message.partition(";")[0] == message
    assert Files(directory).scan().unusable == {"models.json": error}


FORMER = pytest.mark.parametrize(
    ("folder", "title"), [("categories", "title"), ("products", "name")]
)


@FORMER
def test_a_former_slug_that_two_files_claim_is_nobodys(
    tmp_path: Path, folder: str, title: str
) -> None:
    """Both stay loaded without it and both are named, whichever claimed it first."""
    records: Any = {"mist": {title: "Mist", "former_slugs": ["old", "fog"]}, "crm": {title: "CRM"}}
    directory = write_data(tmp_path / "data", **{folder: records})
    files = Files(directory)
    files.scan()
    question = {"question": "Which?"} if folder == "categories" else {}
    claims = {"version": 1, title: "CRM", "former_slugs": ["old"], **question}
    path = write_json(directory / f"{folder}/crm.json", claims)
    for again in (files, Files(directory)):
        catalogue = again.scan()
        held = getattr(catalogue, folder)
        assert (held["mist"].former_slugs, held["crm"].former_slugs) == (("fog",), ())
        nowhere = "too, so it leads nowhere; take it out of one"
        assert [(p.file, p.message) for p in catalogue.problems] == [
            (f"{folder}/{slug}.json", f'"old" is claimed by {folder}/{other}.json, {nowhere}')
            for slug, other in (("crm", "mist"), ("mist", "crm"))
        ]
        for problem in catalogue.problems:
            assert '"old"' in (directory / problem.file).read_text().splitlines()[problem.line - 1]
        assert catalogue.fault_of(folder, "old") == catalogue.problems[0]
        assert catalogue.fault_of(folder, "crm") is None
    path.unlink()
    assert getattr(files.scan(), folder)["mist"].former_slugs == ("old", "fog")
    assert files.scan().problems == ()


@FORMER
def test_a_slug_that_a_file_bears_is_no_other_files_former_one(
    tmp_path: Path, folder: str, title: str
) -> None:
    """A slip in one file takes nothing away from another; both places are named."""
    records: Any = {"mist": {title: "Mist", "former_slugs": ["crm"]}, "crm": {title: "CRM"}}
    catalogue = Files(write_data(tmp_path / "data", **{folder: records})).scan()
    held = getattr(catalogue, folder)
    assert held["mist"].former_slugs == ()
    assert held["crm"] is not None
    assert catalogue.fault_of(folder, "crm") is None
    assert [(p.file, p.message) for p in catalogue.problems] == [
        (
            f"{folder}/{slug}.json",
            f'"crm" is claimed by {folder}/{other}.json, too; take it out of one',
        )
        for slug, other in (("crm", "mist"), ("mist", "crm"))
    ]


def test_what_files_dispute_is_neither_gone_nor_unknown(tmp_path: Path) -> None:
    """The slug whose history nobody can assign is 503 until mended; those who claim it stay."""
    records = {s: {"title": s, "former_slugs": ["old"]} for s in ("mist", "crm")}
    polls = [answered("A", ["X"], slug=slug) for slug in ("old", "mist", "crm")]
    directory = write_data(tmp_path / "data", categories=records, polls=polls)
    app = app_over(directory)
    client = app.test_client()
    answer = client.get("/api/v1/best/old.json")
    assert answer.status_code == 503
    assert "take it out of one" in answer.get_json()["detail"]
    for slug in records:
        assert client.get(f"/api/v1/best/{slug}.json").status_code == 200
    fields = {"version": 1, "title": "crm", "question": "What is the best crm?"}
    write_json(directory / "categories/crm.json", fields)
    app.extensions["store"].reload()
    assert client.get("/api/v1/best/old.json").status_code == 308


def test_a_link_within_the_directory_is_followed(directory: Path) -> None:
    """Container platforms mount files so, and change what all lead to by one rename of a link."""
    folder = directory / "categories"
    for number in (1, 2):
        (folder / f"..{number}").mkdir()
        fields = {"version": 1, "title": f"Best {number}", "question": f"Which is best, {number}?"}
        write_json(folder / f"..{number}" / "kiosk.json", fields)
    (folder / "..data").symlink_to("..1")
    (folder / "kiosk.json").symlink_to("..data/kiosk.json")
    files = Files(directory)
    assert files.scan().categories["kiosk"].title == "Best 1"
    (folder / "..new").symlink_to("..2")
    (folder / "..new").rename(folder / "..data")
    found = files.scan()
    assert found.categories["kiosk"].title == "Best 2"
    assert found.problems == ()


@pytest.mark.parametrize("target", ["x.json", "vpn.json/x.json"])
def test_a_link_that_leads_nowhere_is_one_files_mistake(directory: Path, target: str) -> None:
    """All others of its folder are read."""
    good = Files(directory).scan()
    (directory / "categories/x.json").symlink_to(target)
    bad = Files(directory).scan()
    assert bad.categories == good.categories
    assert [problem.file for problem in bad.problems] == ["categories/x.json"]


def test_a_directory_without_data_is_no_data_directory(tmp_path: Path) -> None:
    """One sentence says what is wrong with it and what to do."""
    with pytest.raises(DataDirectoryError, match=r"does not exist; `flask init .*` fills one"):
        Files(tmp_path / "nowhere").scan()
    with pytest.raises(DataDirectoryError, match=r"holds no data files; `flask init"):
        Files(tmp_path).scan()


def test_only_what_changed_is_read_again(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan after an edit opens the edited file and no other; without one, none at all."""
    files = Files(directory)
    first = files.scan()
    opened: list[str] = []
    really = os.open

    def note(path: Path, *args: Any) -> int:
        opened.append(path.name)
        return really(path, *args)

    monkeypatch.setattr(os, "open", note)
    assert files.scan() is first
    path = directory / "categories" / "vpn.json"
    path.write_text(path.read_text(encoding="utf-8").replace("VPN", "VPNs"), encoding="utf-8")
    assert files.scan().categories["vpn"].title == "Best VPNs"
    assert opened == ["vpn.json"]


def test_an_edit_that_keeps_size_and_time_is_read(directory: Path) -> None:
    """Tools that copy or restore into a file set its old time again."""
    files = Files(directory)
    files.scan()
    path = directory / "categories" / "vpn.json"
    before = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("VPN", "WAN"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert files.scan().categories["vpn"].title == "Best WAN"


class TestSettling:
    """A file is believed when it looks the same twice."""

    def test_a_file_being_written_is_taken_as_it_was(self, directory: Path) -> None:
        """What an editor has half written is neither used nor reported."""
        files, path = Files(directory), directory / "categories" / "vpn.json"
        before, text = files.scan(), path.read_text(encoding="utf-8")
        for half in ("", text[:20], text.replace("VPN", "VPNs")):
            path.write_text(half, encoding="utf-8")
            assert files.scan(settled=True) == before
        assert files.scan(settled=True).categories["vpn"].title == "Best VPNs"

    def test_a_file_that_is_away_for_a_moment_stays(self, directory: Path) -> None:
        """Editors that rename the old file and write a new one never make a category vanish."""
        files, path = Files(directory), directory / "categories" / "vpn.json"
        before, text = files.scan(), path.read_text(encoding="utf-8")
        path.rename(path.with_suffix(".json~"))
        assert files.scan(settled=True) == before
        path.write_text(text, encoding="utf-8")
        assert [files.scan(settled=True) == before for _ in range(2)] == [True, True]
        path.unlink()
        assert files.scan(settled=True) == before
        assert list(files.scan(settled=True).categories) == ["crm-software"]

    def test_a_busy_file_does_not_hold_up_another(self, directory: Path) -> None:
        """While one file is being written, an edit of another is taken in."""
        files, folder = Files(directory), directory / "categories"
        files.scan()
        text = (folder / "vpn.json").read_text(encoding="utf-8")
        (folder / "vpn.json").write_text(text.replace("VPN", "VPNs"), encoding="utf-8")
        (folder / "new.json").write_text("{", encoding="utf-8")
        files.scan(settled=True)
        (folder / "new.json").write_text(text, encoding="utf-8")
        after = files.scan(settled=True)
        assert after.categories["vpn"].title == "Best VPNs"
        assert list(after.categories) == ["crm-software", "vpn"]


def test_an_api_key_in_the_wrong_place_is_not_repeated(directory: Path) -> None:
    """Problems are public, so a key pasted into models.json never stands in one."""
    key = "sk-CANARY-1234"
    assistants = [{"name": "A", "api": "chat", "key_env": key, "extra": key}]
    path = write_json(directory / "models.json", {"version": 1, "models": assistants})
    assert len(said(directory)) == 2
    path.write_text(f'{{"version": 1, "models": [{{"key_env": {key}}}]}}', encoding="utf-8")
    assert "CANARY" not in json.dumps(said(directory))


def test_the_shipped_files_are_good() -> None:
    """Whoever serves the checkout starts without a problem."""
    assert Files(SHIPPED_DATA).scan().problems == ()
    assert set(SINGLE) >= {path.name for path in SHIPPED_DATA.glob("*.json")}
