"""Edits of data files: only what is meant changes, at once, and never over somebody's work."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from faults import needs_root
from hypothesis import given
from hypothesis import strategies as st

from store.cli.editing import Edit, EditError, carry_out, new, text_of, with_item, with_member

if TYPE_CHECKING:
    from pathlib import Path

ORDER = ("name", "maker", "domain", "domain_is_product", "aliases", "not_same_as", "former_slugs")
NAME = "products/zoho-crm.json"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{"version": 1, "name": "Zoho", "aliases": ["a"], "not_same_as": ["x"]}',
            '{"version": 1, "name": "Zoho", "aliases": ["a", "b"], "not_same_as": ["x"]}',
        ),
        (
            '{\n\t"version": 1,\n\t"aliases": [\n\t\t"a"\n\t],\n\t"name": "Zoho"\n}\n',
            '{\n\t"version": 1,\n\t"aliases": [\n\t\t"a",\n\t\t"b"\n\t],\n\t"name": "Zoho"\n}\n',
        ),
        (
            '{\r\n  "version": 1,\r\n  "name": "Zoho"\r\n}\r\n',
            '{\r\n  "version": 1,\r\n  "name": "Zoho",\r\n  "aliases": ["b"]\r\n}\r\n',
        ),
        (
            '{"name":"Zoho","version":1,"aliases":[ ]}',
            '{"name":"Zoho","version":1,"aliases":["b"]}',
        ),
        (
            (
                '{\n  "$schema": "x",\n  "version": 1,\n  "name": "Z, \\"[o]\\"",\n'
                '  "not_same_as": ["c"]\n}'
            ),
            (
                '{\n  "$schema": "x",\n  "version": 1,\n  "name": "Z, \\"[o]\\"",\n'
                '  "aliases": ["b"],\n  "not_same_as": ["c"]\n}'
            ),
        ),
    ],
    ids=["on one line", "with tabs", "with CRLF", "an empty list", "a list in its place"],
)
def test_an_item_is_added_and_nothing_else_changes(before: str, after: str) -> None:
    """Key order, indentation, line ends and `$schema` stay as the curator has them."""
    assert with_item(before, "aliases", "b", ORDER) == after


LINES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(
    name=LINES,
    aliases=st.none() | st.lists(LINES, max_size=3),
    added=LINES,
    indent=st.sampled_from([None, 2, "\t"]),
    separators=st.sampled_from([None, (",", ":"), (" , ", " : ")]),
)
def test_any_text_gets_exactly_the_item(
    name: str,
    aliases: list[str] | None,
    added: str,
    indent: int | str | None,
    separators: tuple[str, str] | None,
) -> None:
    """However a file is laid out, it says the same as before and the new item at the end."""
    record = {"version": 1, "name": name} | ({} if aliases is None else {"aliases": aliases})
    text = json.dumps(record, indent=indent, separators=separators)
    expected = {**record, "aliases": [*(aliases or []), added]}
    assert json.loads(with_item(text, "aliases", added, ORDER)) == expected


@given(ids=st.lists(st.text("0123456789abcdef", min_size=1), unique=True, min_size=1))
def test_any_object_gets_exactly_the_member(ids: list[str]) -> None:
    """The first withheld poll and every further one are written alike."""
    text = new("withheld.json", withheld={})
    for id_ in ids:
        text = with_member(text, ("withheld",), id_, {"reason": "x"}, ())
    held = json.loads(text)["withheld"]
    assert list(held) == ids
    assert text.count("\n    ") == len(ids)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with one product file."""
    (tmp_path / "products").mkdir()
    (tmp_path / NAME).write_text(new(NAME, name="Zoho CRM"), encoding="utf-8")
    return tmp_path


def test_a_diff_can_be_taken_back_by_git(directory: Path) -> None:
    """Changed, new and removed files all come back, byte for byte, with `git apply -R`."""
    text = text_of(directory, NAME)
    other, third = "products/pipe.json", "products/old.json"
    (directory / third).write_text('{"version": 1, "name": "No line end"}', encoding="utf-8")
    before = {p.name: p.read_bytes() for p in (directory / "products").iterdir()}
    edits = [
        Edit(NAME, text, with_item(text, "aliases", "Zoho", ORDER)),
        Edit(other, None, new(other, name="Pipe")),
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
    edit = Edit(NAME, text, with_item(text, "aliases", "Zoho", ORDER))
    (directory / NAME).write_text(text.replace("Zoho", "Zohoo"), encoding="utf-8")
    with pytest.raises(EditError, match="somebody has just changed it"):
        carry_out(directory, [edit])
    assert "Zohoo" in (directory / NAME).read_text(encoding="utf-8")
    with pytest.raises(EditError, match="somebody has just changed it"):
        carry_out(directory, [Edit(NAME, None, new(NAME, name="Mine"))])
    (directory / NAME).unlink()
    with pytest.raises(EditError, match="somebody has just changed it"):
        carry_out(directory, [edit])
    assert not list((directory / "products").iterdir())


def test_nothing_is_written_when_one_edit_cannot_be(directory: Path) -> None:
    """Of several edits all are looked at before the first is made."""
    text = text_of(directory, NAME)
    good = Edit(NAME, text, with_item(text, "aliases", "Zoho", ORDER))
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
    carry_out(directory, [Edit(NAME, text, with_item(text, "aliases", "Zoho", ORDER))])
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
