"""``flask verify`` ends with one sentence, or with the first difference, whatever it is given."""

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import (
    BASE_URL,
    answered,
    app_over,
    append,
    close_days,
    command,
    contents,
    line_of,
    output,
    withhold,
    write_data,
)
from builders import edit as edit_json
from datasets import needs_parquet, running, small_data, written
from flask import request

from store.cli import verifying
from store.ledger import Proof
from store.line_codec import encode_line
from store.publishing import formats, manifest, verification
from store.publishing.directories import digests_in, sums
from store.records import Poll

CLOSED = "2026-11-09"
SECRET = answered("A", ["Planted"], "2026-11-10T06:00:00Z")
HELP, CRM = "history/help-desk.jsonl", "history/crm-software.jsonl"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a dataset, three closed days and one open, which no test changes."""
    directory = small_data(tmp_path_factory.mktemp("verify") / "data")
    append(directory, [SECRET, answered("B", ["Product E"], "2026-11-16T06:00:00Z")])
    close_days(directory, CLOSED)
    withhold(directory, SECRET.id)
    written(directory, BASE_URL)
    return directory


@pytest.fixture(scope="module")
def tree(data: Path) -> Path:
    home = data.with_name("tree")
    output(data, "export", str(home))
    return home


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    """The data directory, to be forged."""
    return shutil.copytree(data, tmp_path / "data", symlinks=True)


@pytest.fixture
def history(copy: Path) -> Path:
    """The same without its dataset."""
    shutil.rmtree(copy / "dataset")
    return copy


@pytest.fixture
def dataset(data: Path, tmp_path: Path) -> Path:
    """A copy of the dataset alone."""
    return shutil.copytree(data / "dataset/current", tmp_path / "dataset")


@pytest.fixture
def kept(data: Path, tmp_path: Path) -> Path:
    """The heads, as somebody kept them."""
    return Path(shutil.copy(data / "proof/heads.jsonl", tmp_path / "kept.jsonl"))


def verify(source: Path | str, *options: str, exit_code: int = 0) -> str:
    """All that the command says to a stranger who has no data of his own."""
    return output(Path("nowhere"), "verify", str(source), *options, exit_code=exit_code)


def refused(source: Path | str, *options: str) -> str:
    """Why a source is not verified."""
    refusal = verify(source, *options, exit_code=1)
    assert refusal.startswith("Error: not verified: "), refusal
    return refusal.removeprefix("Error: not verified: ").strip()


def test_what_was_published_is_verified(data: Path, tree: Path) -> None:
    """Data, dataset and tree: how many lines are open and withheld, and the root to keep."""
    root = json.loads((data / "dataset/current/dataset.json").read_bytes())["present"]["root"]
    for source, which in ((data, "dataset"), (data / "dataset", "dataset"), (tree, "tree")):
        parts = "21 lines, 3 heads, 2 of open days, 1 withheld"
        said = rf"verified in [\d.]+ s: {parts}; root {root}; every file of the {which}\n"
        assert re.fullmatch(said, verify(source))


def test_before_the_first_closed_day_there_is_nothing_to_verify(tmp_path: Path) -> None:
    """A reader of yesterday's first answers is told to wait, not that a file is missing."""
    data = write_data(tmp_path, polls=[answered("A", ["x"])])
    assert "no day is closed yet" in refused(data)
    close_days(data)
    (data / "proof/heads.jsonl").unlink()  # as a closing leaves it that was cut off
    assert "no day is closed yet" in refused(data)


def test_whoever_verifies_needs_pictures_where_there_are_any(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages name them; they need not be the same, as they depend on fonts, and nor is it silent."""
    has_cards = (tree / "current/cards").is_dir()
    monkeypatch.setattr(verifying, "rasteriser", lambda: None if has_cards else bytes)
    which = "with" if has_cards else "without"
    assert refused(tree).endswith(f"shows in its pages: verify it {which} them")


def lines_in(data: Path, name: str) -> list[bytes]:
    return (data / name).read_bytes().splitlines(keepends=True)


def put(data: Path, name: str, lines: list[bytes]) -> None:
    (data / name).write_bytes(b"".join(lines))


def edited(line: bytes, old: bytes, new: bytes) -> bytes:
    """An answer with another text, and a fitting id and checksum."""
    poll = msgspec.json.decode(line.replace(old, new), type=Poll)
    return encode_line(poll, poll.polled_at)[1]


PLANTED = encode_line(answered("A", ["Evil One"], slug="help-desk"), "2026-10-26T07:00:00Z")[1]
FORGERIES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "edit": (lambda lines: [edited(lines[0], b"Product C", b"Product Z"), *lines[1:]], ":1:"),
    "drop": (lambda lines: lines[1:], ":1:"),
    "cut": (lambda lines: lines[:-1], ":7:"),
    "swap": (lambda lines: [lines[1], lines[0], *lines[2:]], ":1:"),
    "move": (lambda lines: lines[1:], "crm-software"),
    "duplicate": (lambda lines: [lines[0], *lines], ":1:"),
    "insert": (lambda lines: [*lines[:3], PLANTED, *lines[3:]], ":4:"),
    "backdate": (lambda lines: [*lines, PLANTED], ":10:"),
}
"""What a forger makes of the lines of help-desk, all of closed days, and the place that tells."""


def forge(data: Path, forgery: str) -> None:
    lines = lines_in(data, HELP)
    put(data, HELP, FORGERIES[forgery][0](lines))
    if forgery == "move":
        put(data, CRM, [lines[0], *lines_in(data, CRM)])


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_line_is_refused_by_file_and_line(history: Path, kept: Path, forgery: str) -> None:
    """Whoever changes history and not the ledger."""
    forge(history, forgery)
    for options in ((), ("--against", str(kept))):
        reason = refused(history, *options)
        assert re.match(r"history/[a-z-]+\.jsonl:\d+: ", reason)
        assert FORGERIES[forgery][1] in reason


@pytest.mark.parametrize("forgery", FORGERIES)
def test_history_that_was_made_anew_with_its_ledger_is_refused_by_kept_heads(
    copy: Path, kept: Path, forgery: str
) -> None:
    """All ids, chains, heads, tables fit; only what somebody kept elsewhere tells.

    Lines that no ledger makes good count nowhere, which is told.
    """
    forge(copy, forgery)
    for path in (copy / "proof").glob("*.jsonl"):
        path.write_bytes(b"")
    Proof(copy).close(CLOSED)
    shutil.rmtree(copy / "dataset")
    written(copy, BASE_URL)
    head = json.loads(kept.read_text().splitlines()[-1])
    is_damaged = forgery in ("swap", "move", "duplicate", "backdate")
    for source in (copy, copy / "dataset"):
        assert ("damaged, which count nowhere" in verify(source)) == is_damaged
        for against in (str(kept), f"{head['day']}:{head['root']}"):
            assert "was rewritten or cut short" in refused(source, "--against", against)


def test_a_backdated_line_in_a_closed_day_is_told(history: Path) -> None:
    """Also once a later day was closed over it."""
    forge(history, "backdate")
    said = ":10: 1 line came after 2026-11-09 was closed, with a time of that day or before"
    assert said in refused(history)
    Proof(history).close("2026-11-20")
    assert said in refused(history)
    Proof(history).reopen("2026-10-26", "No day is closed any more")
    assert said in refused(history)


def test_a_head_that_is_left_out_is_refused(history: Path, kept: Path) -> None:
    """In the middle; at the end by whoever kept it."""
    first, second, third = lines_in(history, "proof/heads.jsonl")
    put(history, "proof/heads.jsonl", [first, third])
    assert "heads.jsonl:2: " in refused(history)
    put(history, "proof/heads.jsonl", [first, second])
    assert "of that day that you kept" in refused(history, "--against", str(kept))


@pytest.mark.parametrize("name", [HELP, "proof/ledger.jsonl", "proof/heads.jsonl"])
def test_a_torn_last_line_is_no_line(copy: Path, name: str) -> None:
    """A power cut leaves one, until the next is added; in a closed day it is a line too few."""
    lines, answers = lines_in(copy, name), lines_in(copy, HELP)
    put(copy, name, [*lines, b'{"v":1,"id":"0123'])
    file = name.removeprefix("proof/")
    assert f"withheld, 1 unfinished record ({file}); root" in verify(copy)
    put(copy, name, [*lines, b"\n"])
    assert "unfinished" not in verify(copy)
    put(copy, HELP, [*answers[:-1], answers[-1][:-2]])
    assert "help-desk.jsonl:7: lines 7 to 9 are not those" in refused(copy)


def test_a_last_line_without_its_newline_is_a_line(history: Path) -> None:
    """An editor may leave it so: it is published, closed, and followed by others."""
    path = history / CRM
    path.write_bytes(path.read_bytes()[:-1])
    written(history, BASE_URL)
    assert ": 21 lines, 3 heads, 2 of open days, 1 withheld; root" in verify(history)
    close_days(history, "2026-11-16")
    append(history, [answered("A", ["Product A"], "2026-11-23T06:00:00Z")])
    assert ": 22 lines, 5 heads, 1 of open days, 1 withheld; root" in verify(history)


def test_an_editors_copy_is_no_history(copy: Path) -> None:
    """No more lines, and no other root, than a server says there are."""
    shutil.copy(copy / CRM, copy / "history/crm-software (copy).jsonl")
    root = json.loads((copy / "dataset/current/dataset.json").read_bytes())["present"]["root"]
    assert f": 21 lines, 3 heads, 2 of open days, 1 withheld; root {root};" in verify(copy)


def test_a_day_that_closes_meanwhile_is_no_difference(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two files that are read."""
    really = verification.Folder.read

    def read(folder: verification.Folder, name: str, *most: int) -> bytes:
        body = really(folder, name, *most)
        close_days(history, "2026-11-10")
        return body

    monkeypatch.setattr(verification.Folder, "read", read)
    assert ": 21 lines, 3 heads" in verify(history)


def test_a_dataset_that_takes_the_place_of_another_meanwhile_is_no_difference(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every night, under whoever verifies the directory."""
    really, polls = verification.Folder.read, [answered("A", ["X"], "2026-11-23T06:00:00Z")]

    def read(folder: verification.Folder, name: str, *most: int) -> bytes:
        body = really(folder, name, *most)
        if name == EVIDENCE and polls:
            append(copy, [polls.pop()])
            written(copy, BASE_URL)
        return body

    monkeypatch.setattr(verification.Folder, "read", read)
    assert refused(copy / "dataset") == "another dataset took its place meanwhile: try again"
    assert ": 22 lines, 3 heads, 3 of open days, 1 withheld; root" in verify(copy / "dataset")


@pytest.mark.parametrize("name", ["evidence/help-desk.jsonl.gz", "ledger.jsonl", "heads.jsonl"])
def test_a_torn_line_is_never_published(dataset: Path, name: str) -> None:
    """Whatever stood there would be under no hash."""
    path, torn = dataset / name, b'{"v":1'
    body = path.read_bytes()
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(gzip.decompress(body) + torn))
    else:
        path.write_bytes(body + torn)
    mend(dataset)
    assert re.match(rf"{name}:\d+: the line is cut short", refused(dataset))


def test_a_history_file_that_is_gone_is_named(history: Path) -> None:
    """Not its lines: nobody edited them; also where something else bears its name."""
    said = f"{HELP}: the file is missing; the ledger lists 9 lines"
    (history / HELP).unlink()
    assert refused(history) == said
    (history / HELP).mkdir()
    assert refused(history) == said


def test_history_that_cannot_be_looked_into_is_told_first(tmp_path: Path) -> None:
    """It is not taken for empty."""
    data = write_data(tmp_path, polls=[answered("A", ["x"])])
    (data / "history").rename(tmp_path / "elsewhere")
    (data / "history").write_bytes(b"")
    assert refused(data) == "history cannot be read: Not a directory"


def rooted(data: Path, entries: bytes, ends: list[int], heads: list[bytes]) -> None:
    """Let heads, each of so many entries, have the roots of a ledger that somebody made up."""
    put(data, "proof/ledger.jsonl", [entries])
    roots = [hashlib.sha256(b"consensus-ledger-1\nproof/ledger").digest()]
    for line in entries.splitlines():
        roots.append(hashlib.sha256(roots[-1] + hashlib.sha256(line).digest()).digest())
    encoded = [
        json.dumps({**json.loads(head), "root": roots[end].hex()}, separators=(",", ":"))
        for end, head in zip(ends, heads, strict=True)
    ]
    put(data, "proof/heads.jsonl", [f"{head}\n".encode() for head in encoded])


def test_a_ledger_with_other_days_is_refused_although_its_roots_fit(history: Path) -> None:
    """A day's lines cannot be listed under the day before, whatever is computed anew."""
    old, new = b"2026-11-02", b"2026-11-01"
    entries = (history / "proof/ledger.jsonl").read_bytes().replace(old, new)
    heads = [line.replace(old, new) for line in lines_in(history, "proof/heads.jsonl")]
    rooted(history, entries, [2, 4, 6], heads)
    assert "are not those that the ledger lists under 2026-11-01" in refused(history)


def test_an_entry_that_adds_no_line_is_refused_although_its_root_fits(history: Path) -> None:
    """A file is not listed twice under a day on which it grew once."""
    entries, heads = (lines_in(history, f"proof/{name}.jsonl") for name in ("ledger", "heads"))
    rooted(history, b"".join([*entries, entries[-1]]), [2, 4, 7], heads)
    said = "history/help-desk.jsonl:10: lines 10 to 9 are not those that the ledger lists"
    assert refused(history).startswith(said)


def mend(dataset: Path) -> None:
    """Let manifest, card, package and checksums say what is there, as a forger would."""
    path = dataset / "dataset.json"
    members = json.loads(path.read_bytes())
    names = [name for name in contents(dataset) if name not in ("dataset.json", "SHA256SUMS")]
    for round_ in range(2):
        for name in names:
            body = (dataset / name).read_bytes()
            rows = members["files"].get(name, {}).get("rows")
            digest = hashlib.sha256(body).hexdigest()
            members["files"][name] = {"bytes": len(body), "sha256": digest, "rows": rows}
        described = manifest.decode(json.dumps(members).encode())
        if round_ == 0:
            files = {n: f for n, f in described.files.items() if n not in manifest.DESCRIPTIONS}
            for name, body in manifest.documents(
                msgspec.structs.replace(described, files=files)
            ).items():
                (dataset / name).write_bytes(body)
    path.write_bytes(manifest.encode(described))
    (dataset / "SHA256SUMS").write_bytes(sums(digests_in(dataset)))


EVIDENCE = "evidence/crm-software.jsonl.gz"
DEEP = b'"x":%b%b,' % (b"[" * 9999, b"]" * 9999)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (EVIDENCE, b"A on Product", b"A on Froduct", r"\.jsonl\.gz:1: the checksum"),
        (EVIDENCE, b'"withheld":true', b'"withheld":trve', r"\.jsonl\.gz:11: "),
        (EVIDENCE, b"Insults a person", b"Praises a person", "differs at byte"),
        (EVIDENCE, b'"pick":null,"ranking":[],"reason":null,"missed":[],"caveat":null,"error":"W',
         b'"pick":null,"ranking":[],"reason":"A slur","missed":[],"caveat":null,"error":"W',
         "differs"),
        ("catalogue.jsonl", b"Insults a person", b"Praises a person", "differs at byte"),
        ("rankings.csv", b",12,", b",13,", r"rankings\.csv differs at byte"),
        ("names.csv", b"product-a", b"product-b", r"names\.csv differs at byte"),
        ("catalogue.jsonl", b"Best help-desk", b"Worst help-desk", "differs at byte"),
        ("catalogue.jsonl", b'"says":{', b'"says":{' + DEEP, r"catalogue\.jsonl: line 1: "),
        ("heads.jsonl", b'"lines":12', b'"lines":13', r"heads\.jsonl:2: "),
    ],
)  # fmt: skip
def test_a_forgery_with_fitting_checksums_is_refused(
    dataset: Path, name: str, old: bytes, new: bytes, said: str
) -> None:
    """Whoever changes a text, a figure or a name and mends all sums."""
    path = dataset / name
    body = path.read_bytes()
    plain = gzip.decompress(body) if name.endswith(".gz") else body
    assert old in plain
    changed = plain.replace(old, new, 1)
    path.write_bytes(gzip.compress(changed, 6, mtime=0) if name.endswith(".gz") else changed)
    mend(dataset)
    assert re.search(said, refused(dataset))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("licence", "CC0-1.0"), ("sample", False), ("title", "Official Government Ranking"),
        ("date", "2031-01-01"), ("version", "2031.1.1"), ("withheld", {}),
        ("present", {"lines": 9, "closed": 9, "root": "0" * 64}), ("base_url", "https://evil.example"),
    ],
)  # fmt: skip
def test_a_manifest_that_says_otherwise_is_refused(
    dataset: Path, member: str, value: object
) -> None:
    """With all that describes the dataset made anew from it."""
    assert json.loads((dataset / "dataset.json").read_bytes())[member] != value
    edit_json(dataset / "dataset.json", **{member: value})
    mend(dataset)
    assert "differs at byte" in refused(dataset)


def test_another_version_is_not_called_forged(dataset: Path) -> None:
    """It is named, and what to install."""
    edit_json(dataset / "dataset.json", service="0.0.1")
    said = "it was written by version 0.0.1 of the service, this is "
    assert refused(dataset).startswith(said)


@needs_parquet
def test_parquet_is_compared_or_not_called_verified(
    data: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An extra part, other rows; where pyarrow is not there, the last line says so."""
    shutil.copy(dataset / "names.parquet", dataset / "picks-2.parquet")
    assert refused(dataset) == "picks-2.parquet is there and is not expected"
    (dataset / "picks-2.parquet").rename(dataset / "picks.parquet")
    mend(dataset)
    assert "picks.parquet differs at byte" in refused(dataset)
    monkeypatch.setattr(formats, "has_parquet", lambda: False)
    report = verify(data / "dataset")
    assert re.search(r"; NOT looked at: Parquet, which needs pyarrow [\d.]+\n$", report)


def test_an_older_dataset_that_was_put_back_is_refused_by_kept_heads(
    copy: Path, kept: Path, tmp_path: Path
) -> None:
    """It is whole in itself, and cut short."""
    older = small_data(tmp_path / "older")
    close_days(older, "2026-11-02")
    written(older, BASE_URL)
    verify(older / "dataset")
    assert "here it is missing" in refused(older / "dataset", "--against", str(kept))


def test_a_forged_tree_is_refused(tree: Path, tmp_path: Path) -> None:
    """A page, its compressed sibling, another page, redirects, manifest, with fitting sums."""
    answer = "api/v1/best/help-desk.json"
    page = "best/help-desk.html"
    forgeries: list[tuple[str, Callable[[bytes], bytes]]] = [
        (answer, lambda body: body.replace(b'"score":', b'"score":1', 1)),
        (f"{page}.gz", lambda _: gzip.compress(b"<h1>forged</h1>")),
        ("best/evil.html", lambda _: b"<h1>forged</h1>"),
        ("data/evil.html", lambda _: b"<h1>forged</h1>"),
        ("redirects.map", lambda body: body + b'"/a" "/b";\n'),
        ("manifest.json", lambda body: body.replace(b"text/html", b"text/hTml", 1)),
        ("manifest.json", lambda _: b"{"),
    ]
    for number, (name, forge) in enumerate(forgeries):
        copy = shutil.copytree(tree / "current", tmp_path / str(number))
        path = copy / name
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(forge(before))
        assert path.read_bytes() != before
        (copy / "SHA256SUMS").write_bytes(sums(digests_in(copy)))
        assert name.rpartition("/")[2] in refused(copy)


def flip(path: Path, chance: random.Random) -> bytes:
    """Change one random byte of a file; return what it held."""
    body = path.read_bytes()
    at = chance.randrange(len(body))
    path.write_bytes(body[:at] + bytes([body[at] ^ chance.randrange(1, 256)]) + body[at + 1 :])
    return body


@pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["data", "dataset", "tree"])
def test_random_bytes_are_missed_when_they_change(
    data: Path, tree: Path, tmp_path: Path, kind: str, count: int
) -> None:
    """Anywhere in history, proof, dataset and tree: each is found."""
    source = {"data": data, "dataset": data / "dataset/current", "tree": tree / "current"}[kind]
    copy = shutil.copytree(source, tmp_path / "copy")
    if kind == "data":
        shutil.rmtree(copy / "dataset")
    chance = random.Random(count)
    folders = [copy / "history", copy / "proof"] if kind == "data" else [copy]
    files = [p for f in folders for p in sorted(f.rglob("*")) if p.is_file() and p.stat().st_size]
    for _ in range(count):
        path = chance.choice(files)
        body = flip(path, chance)
        verify(copy, exit_code=1)
        path.write_bytes(body)
    verify(copy)


def test_a_line_that_is_damaged_is_refused_until_it_is_accepted(history: Path) -> None:
    """A person's acceptance is told, with its reason."""
    put(history, HELP, [b"no poll\n", *lines_in(history, HELP)])
    assert "history/help-desk.jsonl:1: " in refused(history)
    command(history, "check", "--accept-history", "help-desk", "--reason", "A disk failed")
    report = verify(history)
    assert "1 damaged, which count nowhere" in report
    assert re.search(r"help-desk cannot be checked before [\d-]+: A disk failed", report)


def test_what_is_refused_can_be_accepted_though_nothing_is_lost(history: Path) -> None:
    """A file that was found again, a line that rotted before its day was closed."""

    def accept(reason: str) -> None:
        arguments = ("check", "--accept-history", "crm-software", "--reason", reason)
        assert "crm-software.jsonl counts as it is" in output(history, *arguments)

    path = history / CRM
    body = path.read_bytes()
    path.unlink()
    accept("A disk failed")
    path.write_bytes(body)
    assert "came after 2026-11-09 was closed" in refused(history)
    accept("It was found again")
    assert re.search(r"cannot be checked before [\d-]+: It was found again;", verify(history))
    append(history, [answered("A", ["Product A"], "2027-11-16T06:00:00Z")])
    path.write_bytes(path.read_bytes().replace(b"2027-11-16T06:00:00Z", b"2027-11-16T06:00:01Z"))
    close_days(history, "2027-11-16")
    assert "crm-software.jsonl:13: the checksum does not fit" in refused(history)
    accept("A bit was flipped")
    assert "1 damaged, which count nowhere" in verify(history)


def test_no_source_steers_a_terminal(history: Path) -> None:
    """Neither a reason that stays under "verified" nor a text that is refused."""
    wipe = "\x1b[1A\x1b[2K\rverified\n  root 0"
    Proof(history).reopen("2026-11-09", wipe)
    report = verify(history)
    assert r"was reopened: \x1b[1A\x1b[2K\rverified\n  root 0; root" in report
    assert report.removesuffix("\n").isprintable()
    last = json.loads(lines_in(history, CRM)[-1])
    put(history, CRM, [*lines_in(history, CRM), line_of({**last, "polledAt": wipe})])
    assert r"polledAt is not a time such as 2026-11-02T06:00:00Z: " in refused(history)
    assert "\x1b" not in refused(history)


def test_a_dataset_of_another_history_is_refused(copy: Path) -> None:
    """Also where only a line of an open day is another, which no ledger has."""
    *others, last = lines_in(copy, CRM)
    put(copy, CRM, [*others, edited(last, b"Product E", b"Product F")])
    assert f"{CRM}:12: this is not the line that the dataset has" in refused(copy)


def test_heads_that_were_kept_must_be_heads(data: Path, kept: Path, tmp_path: Path) -> None:
    """From a file or as DAY:ROOT; what is neither is a mistake of the caller."""
    assert "; agrees with 3 kept heads\n" in verify(data, "--against", str(kept))
    kept.write_text(kept.read_text().rstrip())
    assert "; agrees with 3 kept heads\n" in verify(data, "--against", str(kept))
    head = json.loads(kept.read_text().splitlines()[0])
    one = f"{head['day']}:{head['root']}"
    assert "; agrees with 1 kept head\n" in verify(data, "--against", one)
    assert "was rewritten" in refused(data, "--against", f"{head['day']}:{'0' * 64}")
    for line in ("{}", '{"day":"2026-01-01"}', '{"file":"crm"}'):
        kept.write_text(f"{line}\n")
        mistake = verify(data, "--against", str(kept), exit_code=2)
        assert f"{kept}:1: this is not a head" in mistake
    reason = f'"{tmp_path / "none"}" cannot be read: No such file or directory'
    assert reason in verify(data, "--against", str(tmp_path / "none"), exit_code=2)
    assert '"" cannot be read' in verify(data, "--against", "", exit_code=2)
    for text in ("", "\n\n", '{"day":"2026-11-02","reopened":true,"reason":"A clock"}\n'):
        kept.write_text(text)  # what a failed download leaves would agree with anything
        assert "holds no head" in verify(data, "--against", str(kept), exit_code=2)


def test_a_file_larger_than_the_memory_is_not_read(dataset: Path) -> None:
    """Whoever verifies believes nothing, not even that a README is small."""
    os.truncate(dataset / "README.md", 3 << 30)
    assert re.search(r"README.md is larger than [\d,]+ bytes", refused(dataset))


def test_a_text_taken_out_without_a_word_is_refused(dataset: Path) -> None:
    """What evidence has redacted, withheld.json names, with date and reason."""
    path = dataset / "catalogue.jsonl"
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    [withheld] = [entry for entry in entries if entry["file"] == "withheld.json"]
    withheld["says"]["withheld"] = {}
    path.write_bytes(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))
    assert refused(dataset).endswith("is redacted and not withheld")


def test_a_ledger_begun_anew_is_not_the_datasets(copy: Path) -> None:
    """A dataset that was published is a witness of the ledger it was made by."""
    for name in ("ledger", "heads"):
        (copy / f"proof/{name}.jsonl").unlink()
    Proof(copy).accept(["crm-software", "help-desk"], "lost", "2026-11-20")
    Proof(copy).close("2026-11-20")
    assert "does not begin with the dataset's" in refused(copy)


def test_a_bomb_is_not_unpacked(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is unpacked than the ledger says that lines have, and what open days may add."""
    (dataset / EVIDENCE).write_bytes(gzip.compress(b"\n" * 1_000_000))
    monkeypatch.setattr("store.publishing.verification.MAX_OPEN_BYTES", 1000)
    assert re.match(
        rf"{EVIDENCE}: it is cut short, or holds more than [\d,]+ bytes", refused(dataset)
    )


@pytest.mark.parametrize(
    "name", ["../evil", ".", "a\0b", "evidence", "evidence/x", "a" * 5000, "evidence/../x.jsonl.gz"]
)
def test_a_hostile_manifest_is_one_sentence(dataset: Path, name: str) -> None:
    """Whatever it calls its files, nothing is read or written elsewhere."""
    members = json.loads((dataset / "dataset.json").read_bytes())
    members["files"][name] = members["files"]["names.csv"]
    (dataset / "dataset.json").write_text(json.dumps(members))
    assert re.match(r"(dataset\.json|evidence/x\.jsonl\.gz) ", refused(dataset))


def test_what_is_nothing_of_ours_is_told(tmp_path: Path) -> None:
    """An empty directory, or none."""
    for source in (tmp_path, tmp_path / "none"):
        assert "is not a data directory" in verify(source, exit_code=1)


def test_what_the_machine_refuses_is_one_sentence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that cannot be looked at, no place to make it anew."""
    assert refused("x" * 300).endswith("x/current: File name too long")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert refused(data).endswith(": No such file or directory")


def test_a_running_server_is_verified(tmp_path: Path) -> None:
    """Its dataset, and its answers as of the last closed day."""
    directory = small_data(tmp_path / "served")
    close_days(directory, "2026-11-02")
    with running(lambda base: app_over(directory, base_url=base)) as base:
        written(directory, base)
        report = verify(base)
    assert "every file of the dataset and 2 answers as of 2026-11-02" in report


def test_a_server_that_goes_on_is_not_called_a_forger(tmp_path: Path) -> None:
    """Its dataset is replaced while it is read; it withholds a poll before the next."""
    directory = small_data(tmp_path / "served")
    close_days(directory, "2026-11-02")
    first = json.loads(lines_in(directory, CRM)[0])["id"]
    polls = [answered("A", ["Product C"], "2026-11-23T06:00:00Z")]

    def make(base: str) -> Any:
        app = app_over(directory, base_url=base)

        @app.after_request
        def replace(answer: Any) -> Any:
            if request.path.endswith("crm-software.jsonl.gz") and polls:
                append(directory, [polls.pop()])
                written(directory, base)
            elif request.path.endswith("SHA256SUMS"):
                withhold(directory, first)
            app.extensions["store"].reload()
            return answer

        return app

    with running(make) as base:
        written(directory, base)
        assert refused(base) == "another dataset took its place meanwhile: try again"
        reason = refused(base)
    assert reason.startswith("api/v1/best/crm-software.json?asOf=2026-11-02 differs at byte")
    assert "\n  (names, domains and withholdings are the server's of now" in reason


def test_a_server_whose_answer_does_not_follow_is_found(tmp_path: Path) -> None:
    """One that shows another ranking than its evidence gives is told the byte."""
    directory = small_data(tmp_path / "data")
    close_days(directory, "2026-11-02")

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
        said = "api/v1/best/crm-software.json?asOf=2026-11-02 differs at byte"
        assert said in refused(base)


def test_no_redirect_is_followed_and_nothing_read_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server sends a reader neither elsewhere nor more than follows, and not for ever."""
    is_read = threading.Event()

    def odd(environ: Any, respond: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].endswith("/slow"):
            respond("200 OK", [("Content-Length", "100000")])
            return (bytes(is_read.wait(9) or 1) for _ in range(2))
        if environ["PATH_INFO"].endswith("/nowhere"):
            respond("302 Found", [("Location", "http://[bad")])
            return [b""]
        if environ["PATH_INFO"].endswith("/moved"):
            respond("302 Found", [("Location", "http://elsewhere.example/")])
            return [b""]
        respond("200 OK", [])
        return [bytes(70_000)] * 4

    with running(lambda _: odd) as base:
        server = verifying.RemoteFolder(base)
        with pytest.raises(verification.Difference, match="/moved answers 302"):
            server.read("moved", 100)
        with pytest.raises(verification.Difference, match="/nowhere cannot be read"):
            server.read("nowhere", 100)
        with pytest.raises(verification.Difference, match="larger than 100,000 bytes"):
            server.read("file", 100_000)
        assert len(server.read("file", 1 << 20)) == 280_000
        said = "/data/data/moved answers 302; name the service's own address, without /data"
        with pytest.raises(verification.Difference, match=said):
            verifying.RemoteFolder(f"{base}/data/data").read("moved")
        monkeypatch.setattr(verifying, "MAX_MINUTES", -1)
        with pytest.raises(verification.Difference, match="minutes are over"):
            verifying.RemoteFolder(base).read("file", 1 << 20)
        with pytest.raises(verification.Difference, match="minutes are over"):
            verifying.RemoteFolder(base).read("slow")
    with pytest.raises(verification.Difference, match="cannot be read"):
        server.read("file", 100)
