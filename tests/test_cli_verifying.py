"""``flask verify`` ends with one sentence, or with the first difference, whatever it is given."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import BASE_URL, app_over, command, contents
from datasets import running, small_data, written
from flask import request

from store.cli import verifying
from store.cli.downloading import Download, Refused
from store.publishing.digests import sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a dataset, which no test changes."""
    directory = small_data(tmp_path_factory.mktemp("verify") / "data")
    written(directory, BASE_URL)
    return directory


@pytest.fixture(scope="module")
def tree(data: Path) -> Path:
    home = data.with_name("tree")
    done = command(data, "export", str(home))
    assert done.exit_code == 0, done.output
    return home


def verify(source: Path | str, *options: str) -> Result:
    """The command as a stranger runs it, who has no data of his own."""
    return command(Path("nowhere"), "verify", str(source), *options)


def mend(tree: Path) -> None:
    """Let the checksums of a tree fit what is there."""
    files = [file for file in tree.rglob("*") if file.is_file()]
    found = {
        file.relative_to(tree).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file != tree / "SHA256SUMS"
    }
    (tree / "SHA256SUMS").write_bytes(sums(found))


def test_a_data_directory_is_verified(data: Path) -> None:
    """Its lines, its proof and its dataset; what the root is, to keep."""
    done = verify(data)
    assert done.exit_code == 0, done.output
    said = r"verified: 19 lines, 2 heads; dataset: 19 lines, 2 heads and every table; 19 lines have"
    assert re.match(said + r" the root [0-9a-f]{64}; [\d,]+ bytes in [\d.]+ s\n", done.stdout)


def test_a_data_directory_without_a_proof_is_verified(data: Path, tmp_path: Path) -> None:
    """The root is the one that it will have once it is listed; nothing is written."""
    bare = tmp_path / "bare"
    shutil.copytree(
        data, bare, ignore=shutil.ignore_patterns("leaves", "proof", "dataset", ".last-good")
    )
    done = verify(bare)
    assert done.exit_code == 0, done.output
    roots = [re.findall("root ([0-9a-f]{64})", each.stdout) for each in (done, verify(data))]
    assert roots[0] == roots[1]
    assert not (bare / "leaves").exists()


def test_a_dataset_and_an_exported_tree_are_verified(data: Path, tree: Path) -> None:
    """Every published answer is computed again and is the same."""
    done = verify(data / "dataset")
    assert done.stdout.startswith("verified: 19 lines, 2 heads and every table; "), done.output
    done = verify(tree)
    assert done.exit_code == 0, done.output
    assert re.match(r"verified: 19 lines, 2 heads, every table and \d+ answers; ", done.stdout)


def test_whoever_verifies_needs_pictures_where_there_are_any(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages name them; they need not be the same, as they depend on fonts, and nor is it silent."""
    has_cards = (tree / "current/cards").is_dir()
    monkeypatch.setattr(verifying, "rasteriser", lambda: None if has_cards else bytes)
    done = verify(tree)
    which = "with" if has_cards else "without"
    assert done.exit_code == 1
    assert done.stderr.endswith(f"shows in its pages: verify it {which} them.\n")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("api/v1/best/help-desk.json", b'"score":12', b'"score":13', "help-desk.json"),
        ("manifest.json", b'"size": 1', b'"size": 2', "manifest.json has the SHA-256"),
        ("redirects.map", b"product-a-", b"product-b-", "redirects.map has the SHA-256"),
    ],
)
def test_a_changed_file_of_a_tree_is_named(
    tree: Path, tmp_path: Path, name: str, old: bytes, new: bytes, said: str
) -> None:
    """Where it was only changed, its checksum tells."""
    copy = shutil.copytree(tree / "current", tmp_path / "tree")
    body = (copy / name).read_bytes()
    assert old in body
    (copy / name).write_bytes(body.replace(old, new, 1))
    done = verify(copy)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: not verified: ")
    assert said in done.stderr


def test_a_forged_answer_is_found_by_recomputing_it(tree: Path, tmp_path: Path) -> None:
    """Whoever mends all checksums of a tree is told the byte, and both texts."""
    copy = shutil.copytree(tree / "current", tmp_path / "tree")
    path = copy / "api/v1/best/help-desk.json"
    forged = path.read_bytes().replace(b'"score":12', b'"score":13', 1)
    path.write_bytes(forged)
    path.with_name(f"{path.name}.gz").unlink()
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["files"]["/api/v1/best/help-desk.json"]["gzip"] = False
    (copy / "manifest.json").write_text(json.dumps(manifest))
    mend(copy)
    done = verify(copy)
    at = forged.index(b'"score":13') + len('"score":1')
    assert f"api/v1/best/help-desk.json differs at byte {at:,}:" in done.stderr
    assert '"score":13' in done.stderr
    assert '"score":12' in done.stderr


@pytest.mark.parametrize("forged", ["{", '{"files": 5}', "[" * 100_000])
def test_a_forged_manifest_of_a_tree_is_a_difference(
    tree: Path, tmp_path: Path, forged: str
) -> None:
    """Even where its checksum was mended, it ends in a sentence that names it."""
    copy = shutil.copytree(tree / "current", tmp_path / "tree")
    (copy / "manifest.json").write_text(forged)
    mend(copy)
    done = verify(copy)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: not verified: manifest.json is no manifest of a tree: ")


def test_an_answer_that_is_missing_or_added_is_named(tree: Path, tmp_path: Path) -> None:
    """A tree holds every answer that follows, and no other."""
    copy = shutil.copytree(tree / "current", tmp_path / "tree")
    manifest = json.loads((copy / "manifest.json").read_bytes())
    gone = manifest["files"].pop("/api/v1/best/help-desk.json")
    (copy / "manifest.json").write_text(json.dumps(manifest))
    mend(copy)
    assert "/api/v1/best/help-desk.json is not published" in verify(copy).stderr
    manifest["files"] |= {"/api/v1/best/help-desk.json": gone, "/api/v1/best/more.json": gone}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    mend(copy)
    said = "/api/v1/best/more.json is published and does not follow"
    assert said in verify(copy).stderr


@pytest.mark.parametrize("break_", ["flip", "swap", "head"])
def test_a_changed_line_of_a_data_directory_is_named(
    data: Path, tmp_path: Path, break_: str
) -> None:
    """File and byte; lines that changed places are found by the proof alone."""
    copy = shutil.copytree(data, tmp_path / "data", symlinks=True)
    shutil.rmtree(copy / "dataset")
    file = copy / "history/help-desk.jsonl"
    first, second, *rest = file.read_bytes().splitlines(keepends=True)
    if break_ == "flip":
        file.write_bytes(b"".join([first, second.replace(b"Product", b"Froduct", 1), *rest]))
        said = f"history/help-desk.jsonl: byte {len(first):,}: the checksum does not fit"
    elif break_ == "swap":
        file.write_bytes(b"".join([second, first, *rest]))
        said = f"history/help-desk.jsonl: byte {len(first):,}: the line is not the one of the proof"
    else:
        heads = copy / "leaves/heads.jsonl"
        heads.write_bytes(heads.read_bytes().replace(b'"root":"', b'"root":"0', 1))
        said = "leaves/heads.jsonl: 2026-10-26 closed with 6 leaves"
    done = verify(copy)
    assert done.exit_code == 1
    assert said in done.stderr


def test_heads_that_were_kept_are_checked(data: Path, tmp_path: Path) -> None:
    """From a file or as SIZE:ROOT; what is none is a mistake of the caller."""
    kept = tmp_path / "kept.jsonl"
    shutil.copy(data / "leaves/heads.jsonl", kept)
    assert verify(data, "--against", str(kept)).exit_code == 0
    head = json.loads(kept.read_text().splitlines()[0])
    assert verify(data, "--against", f"{head['size']}:{head['root']}").exit_code == 0
    done = verify(data, "--against", f"{head['size']}:{'0' * 64}")
    assert (done.exit_code, "was rewritten" in done.stderr) == (1, True)
    kept.write_text("{}\n")
    assert verify(data, "--against", str(kept)).exit_code == 2
    assert verify(data, "--against", str(tmp_path / "none")).exit_code == 2


def test_what_is_nothing_of_ours_is_told(tmp_path: Path) -> None:
    """An empty directory, or none."""
    assert "is no data directory" in verify(tmp_path).stderr
    assert "is no data directory" in verify(tmp_path / "none").stderr


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A running server over a dataset that was written for its address."""
    directory = small_data(tmp_path / "served")
    with running(lambda base: app_over(directory, base_url=base)) as base:
        written(directory, base)
        yield base, directory


def test_a_running_server_is_verified(served: tuple[str, Path], tmp_path: Path) -> None:
    """Its dataset, and its answers as of the last closed day; downloads can be kept."""
    base, directory = served
    done = verify(base, "--keep", str(tmp_path / "kept"))
    assert done.exit_code == 0, done.output
    assert (
        "verified: 19 lines, 2 heads, every table and 2 answers as of 2026-11-02; " in done.stdout
    )
    for name in ("rankings.csv", "heads.jsonl"):
        kept = (tmp_path / "kept" / name).read_bytes()
        assert kept == (directory / "dataset/current" / name).read_bytes()


def test_a_stranger_s_dataset_overwrites_nothing(served: tuple[str, Path], tmp_path: Path) -> None:
    """Whatever its manifest calls its files, what is downloaded goes where nothing was."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/rankings.csv").write_text("mine")
    done = verify(served[0], "--keep", str(tmp_path / "mine"))
    assert (done.exit_code, "holds rankings.csv, which" in done.stderr) == (1, True)
    assert contents(tmp_path / "mine") == {"rankings.csv": b"mine"}


def test_a_server_whose_answer_does_not_follow_is_found(tmp_path: Path) -> None:
    """One that shows another ranking than its evidence gives is told the byte."""
    directory = small_data(tmp_path / "data")

    def lying(base: str) -> Any:
        app = app_over(directory, base_url=base)

        app.before_request(lambda: request.environ.pop("HTTP_ACCEPT_ENCODING", None) and None)

        @app.after_request
        def lie(answer: Any) -> Any:
            if request.path.startswith("/api/v1/best/"):
                answer.set_data(answer.data.replace(b'"score":12', b'"score":13', 1))
            return answer

        return app

    with running(lying) as base:
        written(directory, base)
        done = verify(base)
    assert done.exit_code == 1
    assert "/api/v1/best/crm-software.json?asOf=2026-11-02 differs at byte" in done.stderr


def test_no_redirect_is_followed_and_nothing_read_without_end() -> None:
    """A server sends a reader neither elsewhere nor more than was announced, and not for ever."""

    def odd(environ: Any, respond: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/moved":
            respond("302 Found", [("Location", "http://elsewhere.example/")])
            return [b""]
        respond("200 OK", [])
        return [bytes(70_000)] * 4

    with running(lambda _: odd) as base:
        with pytest.raises(Refused, match=r"leads to http://elsewhere\.example/, which is not"):
            Download(base, 1 << 20, 60).get("/moved", 100)
        with pytest.raises(Refused, match="larger than the 100,000 bytes"):
            Download(base, 1 << 20, 60).get("/", 100_000)
        with pytest.raises(Refused, match="see --max-mb"):
            Download(base, 100_000, 60).get("/", 1 << 20)
        with pytest.raises(Refused, match="see --max-minutes"):
            Download(base, 1 << 20, -1).get("/", 1 << 20)
        assert len(Download(base, 1 << 20, 60).get("/", 1 << 20)) == 280_000
    with pytest.raises(Refused, match="cannot be read"):
        Download(base, 1 << 20, 60).get("/", 100)
