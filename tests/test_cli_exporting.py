"""The exported tree is what the service would answer, whole at every moment."""

import errno
import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import (
    BASE_URL,
    answered,
    app_over,
    append,
    cache_control,
    client_over,
    close_days,
    command,
    contents,
    edit,
    output,
    withhold,
    write_data,
    write_json,
)
from datasets import SLUGS, small_data
from faults import failing_names
from small_world import write_small_world

from store.history import History
from store.web.pages import pictures

LAB = {"version": 1, "title": "T", "method": "M", "finding": "F", "date": "2026-11-01", "body": "B"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with data and the tree that was exported from them, which no test changes."""
    home = tmp_path_factory.mktemp("published")
    data = small_data(home / "data")
    append(data, [answered("A", ["The A"], "2026-11-09T05:00:00Z", slug="help-desk")])
    export(data, home / "tree")
    return home


@pytest.fixture
def data(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published / "data", tmp_path / "data", symlinks=True)


@pytest.fixture
def tree(published: Path, tmp_path: Path) -> Path:
    """What was exported, as those who publish it have it."""
    return shutil.copytree(published / "tree", tmp_path / "tree", symlinks=True)


def export(
    data: Path, tree: Path, *options: str, exit_code: int = 0, base_url: str | None = BASE_URL
) -> str:
    """All that the command says which ends with this exit code."""
    arguments = ("export", str(tree), *options)
    return output(data, *arguments, exit_code=exit_code, base_url=base_url)


def manifest(tree: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tree / "current/manifest.json").read_text())
    return found


def test_every_file_is_the_answer_of_the_service(data: Path, tmp_path: Path) -> None:
    """Byte for byte, plain and compressed, and kept as long by whoever uploads or sends it."""
    export(data, tmp_path / "tree")
    client, current = app_over(data).test_client(), tmp_path / "tree/current"
    files = manifest(tmp_path / "tree")["files"]
    assert {"/api/v1/categories.json", "/api/v1/openapi.json", "/api/v1/README.md"} <= files.keys()
    assert {f"/api/v1/best/{slug}.json" for slug in SLUGS} <= files.keys()
    for path, entry in files.items():
        file = current / entry["file"]
        with client.get(path) as answer:
            assert (file.read_bytes(), entry["type"]) == (answer.data, answer.content_type), path
        assert entry["cache_control"] == cache_control(client, path)
        packed = file.with_name(f"{file.name}.gz")
        assert packed.exists() == entry["gzip"]
        if entry["gzip"]:
            assert gzip.decompress(packed.read_bytes()) == answer.data


def test_a_tree_is_published_with_a_warning_where_nothing_can_be_noted(
    data: Path, tmp_path: Path
) -> None:
    """What cannot be kept does no harm yet."""
    (data / ".exported").unlink()
    (data / ".exported").mkdir()
    assert "warning: .exported cannot be written" in export(data, tmp_path / "tree")


def test_what_every_other_rule_answers_is_in_it(tmp_path: Path) -> None:
    """A rule whose slugs the export does not know would be left out in silence.

    What was searched, history and health would be wrong as soon as they are written.
    """
    data = write_small_world(tmp_path / "data")
    export(data, tmp_path / "tree")
    urls = app_over(data).url_map
    matched = (
        urls.bind("").match(p, return_rule=True) for p in manifest(tmp_path / "tree")["files"]
    )
    published = {rule.rule for rule, _ in matched}
    rules = {rule.rule for rule in urls.iter_rules() if "GET" in (rule.methods or ())}
    assert rules - published == {
        "/api/v1/search", "/api/v1/history", "/search/suggest",
        "/api/v1/", "/healthz", "/livez", "/readyz",
    }  # fmt: skip


def test_old_addresses_are_in_it(data: Path, tree: Path) -> None:
    """No link dies: what the service redirects stands in the manifest and in nginx's map."""
    redirects = manifest(tree)["redirects"]
    old, new = "/api/v1/product/the-a.json", f"{BASE_URL}/api/v1/product/product-a.json"
    assert redirects[old] == new
    assert f'"{old}" "{new}";\n' in (tree / "current/redirects.map").read_text()


def test_the_same_data_is_the_same_tree_and_writes_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second export makes no answer, and leaves the very folder."""
    export(data, tmp_path / "tree")
    before = (tmp_path / "tree/current").readlink()
    with monkeypatch.context() as patched:
        patched.delattr("store.publishing.trees.Tree.fill")
        assert "; 0 answers changed" in export(data, tmp_path / "tree")
    assert (tmp_path / "tree/current").readlink() == before


def test_whatever_changes_is_exported(data: Path, tree: Path, tmp_path: Path) -> None:
    """A tree over changed data is the tree that a first export makes of them."""
    changes: dict[str, Callable[[], object]] = {
        "name": lambda: edit(data / "site.json", name="Other"),
        "lab": lambda: write_json(data / "labs/l.json", LAB),
        "poll": lambda: append(data, [answered("A", ["Product E"], "2026-11-09T06:00:00Z")]),
        "withholding": lambda: withhold(
            data, History(data / "history").read("help-desk").polls[-1].poll.id
        ),
        "deletion": (data / "categories/help-desk.json").unlink,
    }
    export(data, tree)
    for what, change in changes.items():
        change()
        assert "; 0 answers changed" not in export(data, tree), what
    export(data, tmp_path / "fresh")
    assert contents(tree / "current") == contents(tmp_path / "fresh/current")


def test_another_version_of_the_code_or_the_address_is_exported_anew(
    data: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made from is not data alone."""
    trees = [(tree / "current").readlink()]
    export(data, tree, base_url="https://other.example")
    trees.append((tree / "current").readlink())
    monkeypatch.setattr("store.publishing.directories.CODE", ("store",))
    export(data, tree, base_url="https://other.example")
    trees.append((tree / "current").readlink())
    assert len(set(trees)) == 3


@pytest.mark.parametrize("nth", [4, 8])
def test_a_run_after_one_that_failed_exports_what_is_new(
    data: Path, tree: Path, tmp_path: Path, nth: int
) -> None:
    """Without the dataset's or the tree's new name, what that run noted is not believed."""
    append(data, [answered("A", ["Product E"], "2026-11-09T06:00:00Z")])
    with failing_names(nth, errno.EIO, ("rename", "replace", "symlink")):
        export(data, tree, exit_code=1)
    export(data, tree)
    export(data, tmp_path / "fresh")
    assert contents(tree / "current") == contents(tmp_path / "fresh/current")


def test_a_tree_that_is_not_what_was_written_is_made_again(data: Path, tree: Path) -> None:
    """A byte that rotted, a file that was lost, one that was added; nothing of it is linked."""
    export(data, tree)
    before = contents(tree / "current")
    for name in ("best/crm-software.html", "best/crm-software.html.gz", "more"):
        (tree / "current" / name).write_bytes(b"rot")
        export(data, tree)
        assert contents(tree / "current") == before, name
    (tree / "current/best/crm-software.html").unlink()
    export(data, tree)
    assert contents(tree / "current") == before


def test_only_what_changed_is_written(data: Path, tmp_path: Path) -> None:
    """An unchanged answer is the very file of the tree before, of which nothing else is left."""
    tree = tmp_path / "tree"
    export(data, tree)
    old = (tree / "current").resolve()
    unchanged, changed = "api/v1/best/help-desk.json", "api/v1/best/crm-software.json"
    inode, verdict = (old / unchanged).stat().st_ino, (old / changed).read_bytes()
    append(data, [answered("A", ["Product E"], "2026-11-09T06:00:00Z")])
    export(data, tree)
    assert (tree / "current" / unchanged).stat().st_ino == inode
    assert (tree / "current" / changed).read_bytes() != verdict
    assert list((tree / "trees").iterdir()) == [(tree / "current").resolve()]


def test_a_picture_is_drawn_again_only_when_it_shows_something_else(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last tree's card stands, byte for byte, unless what it is drawn from has changed."""
    drawn: list[bytes] = []

    def draw(source: bytes) -> bytes:
        drawn.append(source)
        return b"%d " % len(drawn) + source

    monkeypatch.setattr(pictures, "rasteriser", lambda: draw)
    monkeypatch.setattr(pictures, "mark_of", lambda _: b"")
    tree = tmp_path / "tree"
    export(data, tree)
    first = manifest(tree)
    export(data, tree)
    assert (len(drawn), manifest(tree)) == (len(SLUGS), first)
    append(data, [answered("A", ["Product E"], "2026-11-09T06:00:00Z")])
    export(data, tree)
    assert len(drawn) == len(SLUGS) + 1
    assert (tree / "current/cards/best/crm-software.png").read_bytes() == b"3 " + drawn[2]
    card = tree / "current/cards/best/crm-software.png"
    card.unlink()
    export(data, tree)
    assert card.read_bytes() == b"4 " + drawn[2]
    card.write_bytes(b"rot")
    export(data, tree)
    assert card.read_bytes() == b"5 " + drawn[2]
    monkeypatch.setattr(pictures, "mark_of", lambda _: b"<!-- another font -->")
    export(data, tree)
    assert card.read_bytes().endswith(drawn[2] + b"<!-- another font -->")


def test_it_needs_an_address(data: Path, tmp_path: Path) -> None:
    """A tree whose links lead to this machine would help nobody."""
    tree = tmp_path / "tree"
    assert "BASE_URL is not set" in export(data, tree, exit_code=1, base_url=None)
    edit(data / "site.json", base_url=BASE_URL)
    export(data, tree, base_url=None)


def refused(data: Path, tree: Path, *options: str) -> str:
    """Export in vain: the last tree stays as it is, none is left half; the sentence."""
    before = contents(tree)
    refusal = export(data, tree, *options, exit_code=1)
    assert contents(tree) == before
    return refusal


@pytest.mark.parametrize("name", ["site.json", "models.json", "withheld.json", "topics.json"])
def test_nothing_is_published_while_a_file_that_governs_has_an_error(
    data: Path, tree: Path, name: str
) -> None:
    """What is published is what somebody meant."""
    (data / name).write_text("{", encoding="utf-8")
    assert f"{name}:1:2: " in refused(data, tree)
    assert f"{name}:1:2: " in refused(data, tree, "--even-if", "0")


def test_an_error_in_another_file_hinders_nothing(data: Path, tree: Path) -> None:
    """A curator's slip in one of a thousand files takes away its own addresses alone."""
    before = set(manifest(tree)["files"])
    (data / "products/product-a.json").write_text("{", encoding="utf-8")
    export(data, tree)
    gone = before - set(manifest(tree)["files"])
    assert gone
    assert all("product-a" in path for path in gone)


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_line_ends(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))


HIDDEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "categories/help-desk.json:1:2: ": ("categories/help-desk.json", lambda p: p.write_bytes(b"{")),
    "categories:1:1: ": ("categories", shutil.rmtree),
    "history:1:1: every file in it is gone": ("history", shutil.rmtree),
    "history/help-desk.jsonl:1:1: the file is gone": ("history/help-desk.jsonl", Path.unlink),
    "history/help-desk.jsonl:1:1: cannot be read": ("history/help-desk.jsonl", make_a_folder),
    "history/help-desk.jsonl:1:1: a damaged": ("history/help-desk.jsonl", replace_line_ends),
}
"""What hides a category: why it is not shown, what is at fault, and what happened to it."""


@pytest.mark.parametrize("why", HIDDEN)
def test_nothing_is_published_while_a_category_cannot_be_shown(
    data: Path, tree: Path, tmp_path: Path, why: str
) -> None:
    """What answers 503, whyever that is, does not leave the tree for it, be it one address."""
    name, hide = HIDDEN[why]
    if "gone" in why:
        close_days(data)
    hide(data / name)
    assert client_over(data).get("/best/help-desk").status_code == 503
    assert refused(data, tree).count(why) == 1
    assert "Nothing was published, the last tree stays" in refused(data, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.fixture(scope="module")
def ten_published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten categories and their tree, which no test changes."""
    slugs = [f"category-{number}" for number in range(10)]
    home = tmp_path_factory.mktemp("ten")
    data = write_data(
        home / "many",
        categories={slug: {"title": f"Best {slug}"} for slug in slugs},
        polls=[answered("A", [f"The {slug}"], slug=slug) for slug in slugs],
    )
    export(data, home / "tree")
    return home


@pytest.fixture
def many(ten_published: Path, tmp_path: Path) -> Path:
    """Ten categories, published; nine of them deleted."""
    for name in ("many", "tree"):
        shutil.copytree(ten_published / name, tmp_path / name, symlinks=True)
    for number in range(1, 10):
        (tmp_path / f"many/categories/category-{number}.json").unlink()
    return tmp_path / "many"


def test_many_addresses_do_not_vanish_unasked(many: Path, tmp_path: Path) -> None:
    """A folder emptied by accident is not published; the printed number, and no other, does it."""
    tree = tmp_path / "tree"
    refusal = refused(many, tree)
    assert "28 of " in refusal
    assert "published addresses would be gone: /api/v1/best/category-1.json, " in refusal
    assert "if that is meant: --even-if 28" in refusal
    assert "would be gone, not 27: " in refused(many, tree, "--even-if", "27")
    export(many, tree, "--even-if", "28")


def test_a_redirect_is_no_loss(many: Path, tmp_path: Path) -> None:
    """What was renamed with its old slugs may go, however much it is."""
    former = [f"category-{number}" for number in range(1, 10)]
    edit(many / "categories/category-0.json", former_slugs=former)
    export(many, tmp_path / "tree")


def test_what_an_operator_accepted_as_lost_may_go(many: Path, tmp_path: Path) -> None:
    """Whoever has accepted that history is gone is not asked again for its categories."""
    close_days(many)
    for number in range(1, 10):
        (many / f"history/category-{number}.jsonl").unlink()
    assert "the file is gone" in refused(many, tmp_path / "tree")
    command(many, "check", "--accept-history", "--all", "--reason", "gone")
    said = refused(many, tmp_path / "tree")
    gone = re.search(r"(\d+) of", said)
    assert gone  # only the nine products, which nothing names now, and an experiment over rankings
    assert int(gone[1]) % 9 == 1
    assert "/api/v1/product/the-category-1.json" in said
    assert "/api/v1/best" not in said


def test_a_tree_that_cannot_be_compared_is_not_replaced(data: Path, tree: Path) -> None:
    """Without its manifest nobody knows which addresses would be gone."""
    (tree / "current/manifest.json").write_text("{", encoding="utf-8")
    assert "nobody can say which addresses would be gone" in refused(data, tree)


def test_an_answer_that_cannot_be_made_is_not_left_out(
    data: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that fails is an error of the export, not a page less."""
    append(data, [answered("A", ["Product E"], "2026-11-09T06:00:00Z")])

    def fail(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr("store.web.pages.views.leader_changes", fail)
    assert "/changes cannot be made: 500" in refused(data, tree)
