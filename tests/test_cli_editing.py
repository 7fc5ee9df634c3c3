"""Edits of data files: what is meant changes, at once, and never over somebody's work."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from faults import needs_root

from store.cli.editing import Edit, EditError, canonical, carry_out, new_record, text_of

if TYPE_CHECKING:
    from pathlib import Path

NAME = "products/zoho-crm.json"


def with_alias(text: str, alias: str = "Zoho") -> str:
    """A product file that has an alias more, as a command writes it."""
    record = json.loads(text)
    return canonical({**record, "aliases": [*record.get("aliases", ()), alias]})


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_file_is_written_canonically_and_says_what_it_said(
    directory: Path, indent: int | str | None, end: str
) -> None:
    """However it was laid out: two spaces, one value a line, and its keys in their order."""
    record = {
        "name": "Zoho \u2013 \u201cCRM\u201d",
        "version": 1,
        "aliases": ["a"],
        "maker": "Zoho",
    }
    text = json.dumps(record, indent=indent).replace("\n", end or "\n") + end
    (directory / NAME).write_bytes(text.encode())
    before = text_of(directory, NAME)
    assert before == text
    edit = Edit(NAME, before, with_alias(before, "b"))
    carry_out(directory, [edit])
    written = (directory / NAME).read_text(encoding="utf-8")
    assert json.loads(written) == {**record, "aliases": ["a", "b"]}
    assert list(json.loads(written)) == list(record)
    assert written.startswith('{\n  "name": "Zoho \u2013 \u201cCRM\u201d",\n  "version": 1,\n')
    subprocess.run(["git", "apply", "-R"], cwd=directory, input=edit.diff.encode(), check=True)
    assert (directory / NAME).read_bytes() == text.encode()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with one product file."""
    (tmp_path / "products").mkdir()
    (tmp_path / NAME).write_text(canonical(new_record(NAME, name="Zoho CRM")), encoding="utf-8")
    return tmp_path


def test_a_diff_can_be_taken_back_by_git(directory: Path) -> None:
    """Changed, new and removed files all come back, byte for byte, with `git apply -R`."""
    text = text_of(directory, NAME)
    other, third = "products/pipe.json", "products/old.json"
    (directory / third).write_text('{"version": 1, "name": "No line end"}', encoding="utf-8")
    before = {p.name: p.read_bytes() for p in (directory / "products").iterdir()}
    edits = [
        Edit(NAME, text, with_alias(text)),
        Edit(other, None, canonical(new_record(other, name="Pipe"))),
        Edit(third, text_of(directory, third), None),
    ]
    carry_out(directory, edits)
    assert sorted(p.name for p in (directory / "products").iterdir()) == [
        "pipe.json",
        "zoho-crm.json",
    ]
    patch = "".join(edit.diff for edit in edits).encode()
    subprocess.run(["git", "apply", "-R"], cwd=directory, input=patch, check=True)
    assert {p.name: p.read_bytes() for p in (directory / "products").iterdir()} == before


def test_what_changed_meanwhile_is_left_alone(directory: Path) -> None:
    """A file that somebody saved, made or took away after it was read is not overwritten."""
    text = text_of(directory, NAME)
    edit = Edit(NAME, text, with_alias(text))
    (directory / NAME).write_text(text.replace("Zoho", "Zohoo"), encoding="utf-8")
    with pytest.raises(EditError, match="somebody has just changed it"):
        carry_out(directory, [edit])
    assert "Zohoo" in (directory / NAME).read_text(encoding="utf-8")
    with pytest.raises(EditError, match="somebody has just changed it"):
        carry_out(directory, [Edit(NAME, None, canonical(new_record(NAME, name="Mine")))])
    (directory / NAME).unlink()
    with pytest.raises(EditError, match="somebody has just changed it"):
        carry_out(directory, [edit])
    assert not list((directory / "products").iterdir())


def test_nothing_is_written_when_one_edit_cannot_be(directory: Path) -> None:
    """Of several edits all are looked at before the first is made."""
    text = text_of(directory, NAME)
    good = Edit(NAME, text, with_alias(text))
    bad = Edit("products/x.json", None, '{"version": 1}')
    with pytest.raises(EditError, match=r'products/x.json was left .* the file lacks "name"'):
        carry_out(directory, [good, bad])
    assert text_of(directory, NAME) == text


def test_a_file_in_need_of_repair_is_not_edited(directory: Path) -> None:
    """First a file is mended by hand, then a command may write to it."""
    (directory / NAME).write_text("{", encoding="utf-8")
    with pytest.raises(EditError, match=r"mend this first: products/zoho-crm.json:1:2"):
        text_of(directory, NAME)
    with pytest.raises(EditError, match="is not there"):
        text_of(directory, "products/none.json")


def test_the_mode_of_a_file_is_kept(directory: Path) -> None:
    """Whoever could read a file still can."""
    (directory / NAME).chmod(0o640)
    text = text_of(directory, NAME)
    carry_out(directory, [Edit(NAME, text, with_alias(text))])
    assert (directory / NAME).stat().st_mode & 0o777 == 0o640


@needs_root
def test_the_owner_of_a_file_is_kept(directory: Path) -> None:
    """What root edits stays the file of the user whom the service runs as."""
    os.chown(directory / NAME, 54_321, 12_345)
    before = (directory / NAME).read_text()
    carry_out(directory, [Edit(NAME, before, before + "\n")])
    found = (directory / NAME).stat()
    assert (found.st_uid, found.st_gid) == (54_321, 12_345)


def test_who_may_give_no_file_away_can_edit(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's file is then the editor's own, as with any editor that saves by rename."""

    def forbid(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", forbid)
    before = (directory / NAME).read_text()
    carry_out(directory, [Edit(NAME, before, before + "\n")])
    assert (directory / NAME).read_text() == before + "\n"


def test_no_edit_goes_through_a_link_laid_in_its_way(directory: Path, tmp_path: Path) -> None:
    """Else who owns the folder could have root write anywhere."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o600)
    (directory / NAME).with_name(f".{(directory / NAME).name}.draft").symlink_to(victim)
    before = (directory / NAME).read_text()
    carry_out(directory, [Edit(NAME, before, before + "\n")])
    assert (directory / NAME).read_text() == before + "\n"
    assert not (directory / NAME).is_symlink()
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("mine", 0o600)


def test_a_new_folder_can_be_read_whatever_the_umask(tmp_path: Path) -> None:
    """As a new file can."""
    usual = os.umask(0o077)
    try:
        carry_out(tmp_path, [Edit(NAME, None, '{"version": 1, "name": "Zoho CRM"}\n')])
    finally:
        os.umask(usual)
    assert (tmp_path / NAME).parent.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644
