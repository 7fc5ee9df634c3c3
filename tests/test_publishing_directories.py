"""No command deletes or overwrites what this service did not write, nor writes beside another."""

import os
from pathlib import Path

import pytest
from builders import answered, contents, output, write_data
from faults import needs_root

from store.publishing.directories import basis_of, owned

COMMANDS = ("export", "dataset")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data", polls=[answered(model, ["X", "Y"]) for model in "ABCD"])


@pytest.fixture(params=COMMANDS)
def writing(request: pytest.FixtureRequest) -> str:
    """A command that fills a directory."""
    name: str = request.param
    return name


@pytest.mark.parametrize(
    "names",
    [
        ["letter"],
        [".ssh/id"],
        ["trees/elm", "trees/ash"],
        ["dataset.json", "objects/a.csv"],
        ["current/letter"],
    ],
)
def test_a_directory_of_somebody_else_is_left_alone(
    data: Path, tmp_path: Path, writing: str, names: list[str]
) -> None:
    """Whatever it holds, be it hidden or named as ours are: not a byte goes, and exit is 1."""
    home, first = tmp_path / "home", min(names).partition("/")[0]
    if (
        first == "current"
    ):  # somebody's folder in the link's place stays even where all else is ours
        output(data, writing, str(home))
        (home / "current").unlink()
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("Dear")
    before = contents(home)
    refusal = output(data, writing, str(home), exit_code=1)
    assert f"holds {first}, which `flask {writing}` did not write" in refusal
    assert contents(home) == before


def test_a_data_directory_is_left_alone(data: Path, writing: str) -> None:
    """``flask dataset "$DATA_DIR"`` costs nobody their history."""
    before = contents(data)
    output(data, writing, str(data), exit_code=1)
    assert before.items() <= contents(data).items()


@pytest.mark.parametrize("name", ["labs", "labs/new", "batches", "dataset"])
def test_a_folder_of_the_data_directory_is_left_alone(
    data: Path, tmp_path: Path, writing: str, name: str
) -> None:
    """Also an empty one, by whatever way it is reached; ``flask dataset`` has a folder there."""
    (tmp_path / "way").symlink_to(data)
    if name == writing:
        output(data, writing, str(data / name))
        return
    before = contents(data)
    for home in (data / name, tmp_path / "way" / name):
        folder = name.partition("/")[0]
        refusal = output(data, writing, str(home), exit_code=1)
        assert f"{home} belongs to {folder}/ of the data directory; name another" in refusal
    assert contents(data) == before


def test_a_file_is_no_directory_to_write(data: Path, tmp_path: Path) -> None:
    """It is called what it is."""
    (tmp_path / "file").touch()
    refusal = output(data, "export", str(tmp_path / "file"), exit_code=1)
    assert f"{tmp_path / 'file'} is not a directory; name a new or an empty one" in refusal


@needs_root
def test_what_root_writes_belongs_to_whom_the_place_belongs_to(
    data: Path, tmp_path: Path, writing: str
) -> None:
    """Else the nightly timer, which is not root, could write there no more; the proof as well."""
    for path in (tmp_path, data, *data.rglob("*")):
        os.chown(path, 54_321, 54_321)
    output(data, writing, str(tmp_path / "home"), "--close-days")
    assert (data / "proof/heads.jsonl").exists()
    homes = (tmp_path / "home", data / "proof", data / "dataset")
    paths = [path for home in homes for path in (home, *home.rglob("*")) if home.exists()]
    assert [path for path in paths if path.lstat().st_uid != 54_321 and not path.is_symlink()] == []


def test_a_directory_of_the_other_command_is_left_alone(data: Path, tmp_path: Path) -> None:
    """An exported site is not replaced by a dataset, nor the other way round."""
    for name, other in (COMMANDS, COMMANDS[::-1]):
        home = tmp_path / name
        output(data, name, str(home))
        before = contents(home)
        output(data, other, str(home), exit_code=1)
        assert contents(home) == before


def test_what_somebody_put_beside_our_trees_stays(data: Path, tmp_path: Path) -> None:
    """Old trees are removed by their names; notes among them are not trees."""
    home = tmp_path / "tree"
    output(data, "export", str(home))
    (home / "trees/elm").mkdir()
    (home / "trees/elm/leaf").write_text("green")
    write_data(data, polls=[answered("A", ["P9"], "2026-11-09T06:00:00Z")])
    output(data, "export", str(home))
    assert (home / "trees/elm/leaf").read_text() == "green"


def test_a_linked_directory_keeps_its_tree(data: Path, tmp_path: Path, writing: str) -> None:
    """What stands behind the link ``current`` is never swept, whatever path leads there."""
    (tmp_path / "disk").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk")
    for _ in range(2):
        output(data, writing, str(link))
        assert any((link / "current").iterdir())


def test_code_that_is_linked_is_looked_at(data: Path, tmp_path: Path) -> None:
    """Wherever a module is, an update of it makes what was written before outdated."""
    (tmp_path / "checkout").mkdir()
    module = tmp_path / "elsewhere.py"
    (tmp_path / "checkout/app.py").symlink_to(module)
    digests = set()
    for code in ("one = 1", "two = 2"):
        module.write_text(code)
        digests.add(basis_of(tmp_path / "checkout", data))
    assert len(digests) == 2


def test_of_two_at_once_the_second_writes_nothing(data: Path, tmp_path: Path, writing: str) -> None:
    """It says so and exits 1; the mark that the first one leaves holds up nobody."""
    home = tmp_path / "home"
    with owned(home, writing, data):
        before = contents(home)
        refusal = output(data, writing, str(home), exit_code=1)
        assert f"another process is writing {home}; try again" in refusal
        assert contents(home) == before
    output(data, writing, str(home))


@pytest.mark.parametrize("name", ["letter", "site.json", "src/app.py", "schemas/site.json"])
def test_init_fills_no_directory_of_something_else(data: Path, tmp_path: Path, name: str) -> None:
    """A home directory or a project gets no thousand files; hidden ones are in nobody's way."""
    home = tmp_path / "home"
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text("Dear")
    before = contents(home)
    refusal = output(data, "init", str(home), exit_code=1)
    assert f"holds {name.partition('/')[0]}: nothing was written" in refusal
    assert contents(home) == before
    (home / name).rename(home / ".letter")
    if "/" in name:
        (home / name).parent.rename(home / "lost+found")
    output(data, "init", str(home), "--empty")
    assert (home / ".letter").read_text() == "Dear"


@pytest.mark.parametrize("arguments", [("dataset",), ("init", "--empty")], ids=" ".join)
@pytest.mark.parametrize("address", ["s3://bucket/prefix", "https://rankings.example/"])
def test_an_address_is_no_directory(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    address: str,
) -> None:
    """Only `export` writes to buckets; no folder called s3: is made."""
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    refusal = output(data, *arguments, address, exit_code=2)
    assert "it is an address; name a directory of this machine" in refusal
    assert contents(tmp_path) == before


def test_init_that_fails_takes_away_only_what_it_made(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there before, or came meanwhile from somebody else, stays."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".env").write_text("mine")

    def fail(directory: Path) -> None:
        (directory / "meanwhile").write_text("theirs")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("store.cli.schemas.write", fail)
    refusal = output(data, "init", str(home), "--empty", exit_code=1)
    assert refusal.count("No space left on device") == 1
    assert contents(home) == {".env": b"mine", "meanwhile": b"theirs"}
