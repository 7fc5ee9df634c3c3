"""The exported tree is what the service would answer, whole at every moment."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from builders import BASE_URL, answered, app_over, append, write_data, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

SLUGS = ("crm-software", "help-desk")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    names = [f"Product {letter}" for letter in "ABCDE"]
    return write_data(
        tmp_path / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in SLUGS},
        products={"product-a": {"name": "Product A", "aliases": ["The A"]}},
        polls=[
            answered(model, names, slug=slug, missed=["The A"])
            for slug in SLUGS
            for model in "ABCD"
        ]
        + [answered("A", ["The A", "Product B"], "2026-11-03T06:00:00Z", slug="help-desk")],
    )


def export(data: Path, tree: Path, **settings: Any) -> Result:
    return app_over(data, **settings).test_cli_runner().invoke(args=["export", str(tree)])


def manifest(tree: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tree / "current/manifest.json").read_text())
    return found


def test_every_file_is_the_answer_of_the_service(data: Path, tmp_path: Path) -> None:
    """Byte for byte, plain and compressed, with the time of its data."""
    result = export(data, tmp_path / "tree")
    assert result.exit_code == 0, result.output
    client, current = app_over(data).test_client(), tmp_path / "tree/current"
    files = manifest(tmp_path / "tree")["files"]
    assert {"/api/v1/categories.json", "/api/v1/openapi.json", "/api/v1/README.md"} <= files.keys()
    assert {f"/api/v1/best/{slug}.json" for slug in SLUGS} <= files.keys()
    for path, entry in files.items():
        answer = client.get(path)
        file = current / entry["file"]
        assert (file.read_bytes(), entry["type"]) == (answer.data, answer.content_type), path
        assert answer.last_modified
        assert file.stat().st_mtime == answer.last_modified.timestamp()
        packed = file.with_name(f"{file.name}.gz")
        assert packed.exists() == entry["gzip"]
        if entry["gzip"]:
            assert gzip.decompress(packed.read_bytes()) == answer.data


def test_nothing_that_needs_a_process_is_in_it(data: Path, tmp_path: Path) -> None:
    """Search, history and health would be wrong as soon as they are written."""
    export(data, tmp_path / "tree")
    paths = manifest(tmp_path / "tree")["files"]
    assert not [p for p in paths if "search" in p or "history" in p or "health" in p]


def test_old_addresses_are_in_it(data: Path, tmp_path: Path) -> None:
    """No link dies: what the service redirects stands in the manifest and in nginx's map."""
    export(data, tmp_path / "tree")
    redirects = manifest(tmp_path / "tree")["redirects"]
    old, new = "/api/v1/product/the-a.json", f"{BASE_URL}/api/v1/product/product-a.json"
    assert redirects[old] == new
    assert f'"{old}" "{new}";\n' in (tmp_path / "tree/current/redirects.map").read_text()


def test_the_same_data_is_the_same_tree_and_writes_nothing(data: Path, tmp_path: Path) -> None:
    """A second export finds every answer as it is."""
    export(data, tmp_path / "tree")
    before = (tmp_path / "tree/current").readlink()
    result = export(data, tmp_path / "tree")
    assert "0 answers changed" in result.output
    assert (tmp_path / "tree/current").readlink() == before


def test_only_what_changed_is_written(data: Path, tmp_path: Path) -> None:
    """An unchanged answer is the same file in both trees, and the old tree stays as it was."""
    tree = tmp_path / "tree"
    export(data, tree)
    old = (tree / "current").resolve()
    verdict = (old / "api/v1/best/crm-software.json").read_bytes()
    append(data, [answered("A", ["Product E"], "2026-11-09T06:00:00Z")])
    export(data, tree)
    new = (tree / "current").resolve()
    unchanged, changed = "api/v1/best/help-desk.json", "api/v1/best/crm-software.json"
    assert (new / unchanged).samefile(old / unchanged)
    assert (new / changed).read_bytes() != verdict == (old / changed).read_bytes()
    append(data, [answered("A", ["Product D"], "2026-11-16T06:00:00Z")])
    export(data, tree)
    assert not old.exists()
    assert len(list((tree / "trees").iterdir())) == 2


def test_what_is_gone_is_not_in_the_next_tree(data: Path, tmp_path: Path) -> None:
    """A category that left the catalogue leaves the tree."""
    export(data, tmp_path / "tree")
    (data / "categories/help-desk.json").unlink()
    export(data, tmp_path / "tree")
    assert not (tmp_path / "tree/current/api/v1/best/help-desk.json").exists()


def test_an_export_that_was_killed_is_no_hindrance(data: Path, tmp_path: Path) -> None:
    """Half a tree is thrown away, and readers never see it."""
    (tmp_path / "tree/trees/.new/api").mkdir(parents=True)
    (tmp_path / "tree/trees/.new/api/half").write_text("x")
    assert export(data, tmp_path / "tree").exit_code == 0
    assert not (tmp_path / "tree/current/api/half").exists()


def test_a_directory_of_somebody_else_is_left_alone(data: Path, tmp_path: Path) -> None:
    """A mistyped path costs nobody their files."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter").write_text("Dear")
    result = export(data, tmp_path / "home")
    assert result.exit_code == 1
    assert "holds other files" in result.output
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter"]


def test_it_needs_an_address(data: Path, tmp_path: Path) -> None:
    """A tree whose links lead to this machine would help nobody."""
    result = export(data, tmp_path / "tree", base_url=None)
    assert result.exit_code == 1
    assert "BASE_URL is not set" in result.output
    write_json(data / "site.json", {"version": 1, "name": "X", "base_url": BASE_URL})
    assert export(data, tmp_path / "tree", base_url=None).exit_code == 0


def test_a_directory_that_cannot_be_written_is_one_sentence(data: Path, tmp_path: Path) -> None:
    """A file in the way is named, without a stack trace."""
    (tmp_path / "file").write_text("")
    result = export(data, tmp_path / "file" / "tree")
    assert result.exit_code == 1
    assert "cannot be written" in result.output
