"""The leaf list only grows, puts every sealed line in once, and notices when it was changed."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import threading
import zlib
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from builders import answered, append
from datasets import DAYS, NOW, SLUGS, small_data

from store.history import HistoryError
from store.line_codec import decode_line, encode_line
from store.publishing.leaves import LeafList, ProofError, first_listing
from store.publishing.merkle import Tree, leaf_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return small_data(tmp_path / "data")


def lines_of(data: Path) -> set[bytes]:
    files = (data / "history").glob("*.jsonl")
    return {leaf_hash(line) for file in files for line in file.read_bytes().splitlines()}


def test_every_line_is_a_leaf_in_the_order_of_time(data: Path) -> None:
    """Sorted by time, file and offset; a head for every day but the open one."""
    listed = LeafList(data)
    heads = listed.extend(NOW)
    leaves = list(listed.leaves())
    assert [leaf.day for leaf in leaves] == sorted(leaf.day for leaf in leaves)
    assert {leaf.hash for leaf in leaves} == lines_of(data)
    assert len(leaves) == 19
    assert [head.date for head in heads] == list(DAYS[:2])
    tree = Tree()
    for leaf in leaves[: heads[0].size]:
        tree.append(leaf.hash)
    assert heads[0].root == tree.root().hex()
    written = [json.loads(s) for s in (data / "leaves/heads.jsonl").read_text().splitlines()]
    assert written == [{"date": h.date, "size": h.size, "root": h.root} for h in heads]


def test_listing_again_adds_nothing_and_later_lines_only_add(data: Path) -> None:
    """What was listed stays byte for byte, and so do the heads."""
    listed = LeafList(data)
    before = listed.extend(NOW)
    files = {path: path.read_bytes() for path in (data / "leaves").iterdir()}
    assert listed.extend(NOW) == before
    assert {path: path.read_bytes() for path in (data / "leaves").iterdir()} == files
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    after = listed.extend(NOW)
    assert after[: len(before)] == before
    assert after[-1].date == DAYS[2]
    for path, body in files.items():
        assert path.read_bytes().startswith(body)


def test_of_two_that_list_at_once_one_waits(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server and a command: what the first has not yet written, the second does not list too."""
    waits, lock = threading.Event(), fcntl.flock

    def flock(handle: int, how: int) -> None:
        if threading.current_thread() is other:
            waits.set()
        lock(handle, how)

    def list_too() -> None:
        try:
            LeafList(data).extend(NOW)
        finally:
            waits.set()

    def read() -> dict[str, int]:
        other.start()
        waits.wait()
        return dict.fromkeys(SLUGS, 10**6)

    other = threading.Thread(target=list_too)
    monkeypatch.setattr(fcntl, "flock", flock)
    LeafList(data).extend(NOW, read=read)
    other.join()
    assert len(list(LeafList(data).leaves())) == 19


def test_in_steps_and_at_once_are_the_same_list(data: Path, tmp_path: Path) -> None:
    """Whether it is listed day by day or for the first time today, the heads are the same."""
    LeafList(data).extend(NOW)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    LeafList(data).extend(NOW)
    assert list(first_listing(data)) == list(LeafList(data).leaves())


def test_a_late_line_joins_the_open_day(data: Path) -> None:
    """No closed day ever gets another line."""
    listed = LeafList(data)
    before = listed.extend(NOW)
    append(data, [answered("A", ["Late"], "2026-10-27T06:00:00Z", slug="vpn")])
    assert listed.extend(NOW) == before
    late = [leaf for leaf in listed.leaves() if leaf.slug == "vpn"]
    assert [leaf.day for leaf in late] == [DAYS[2]]


def test_a_line_that_is_yet_to_come_closes_no_day(data: Path) -> None:
    """A wrong clock would otherwise close every day until then."""
    append(data, [answered("A", ["Early"], "2027-01-01T06:00:00Z", slug="vpn")])
    assert [head.date for head in LeafList(data).extend(NOW)] == list(DAYS[:2])
    append(data, [answered("B", ["Early"], "2026-11-16T06:00:00Z", slug="help-desk")])
    assert [h.date for h in LeafList(data).extend(NOW + timedelta(hours=1))] == list(DAYS)


def test_a_line_whose_checksum_does_not_fit_is_no_leaf(data: Path) -> None:
    """Damage and unfinished lines are left out; what follows them is not."""
    file = data / "history/crm-software.jsonl"
    first, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(first[:-3] + b'0"}\n' + rest + b'{"v":1,"id":"un')
    LeafList(data).extend(NOW)
    assert len(list(LeafList(data).leaves())) == 18


def test_a_listed_line_that_was_rewritten_is_an_error(data: Path) -> None:
    """With an id and a checksum that fit, too; nothing is listed until the file is put back."""
    listed = LeafList(data)
    listed.extend(NOW)
    path = data / "history" / "crm-software.jsonl"
    was, before = path.read_bytes(), {p: p.read_bytes() for p in (data / "leaves").iterdir()}
    first, _, others = was.partition(b"\n")
    poll = msgspec.structs.replace(decode_line(first), caveat="Another caveat")
    path.write_bytes(encode_line(poll, poll.polled_at)[1] + others)
    with pytest.raises(ProofError, match=r"crm-software.jsonl: the line at byte 0 is another"):
        listed.extend(NOW)
    assert {p: p.read_bytes() for p in (data / "leaves").iterdir()} == before
    path.write_bytes(was)
    listed.extend(NOW)


def test_a_damaged_line_that_was_repaired_is_listed(data: Path) -> None:
    """It is late, no more: it stands before lines that were listed, and none of those is gone."""
    path = data / "history" / "crm-software.jsonl"
    was = path.read_bytes()
    path.write_bytes(was.replace(b'"polledAt"', b'"polledat"', 1))
    listed = LeafList(data)
    listed.extend(NOW)
    path.write_bytes(was)
    listed.extend(NOW)
    assert {leaf.hash for leaf in listed.leaves()} == lines_of(data)


@pytest.mark.parametrize("forget", [False, True])
def test_a_line_that_stands_twice_is_listed_once(data: Path, *, forget: bool) -> None:
    """Whether it was copied before the first listing or since, and whatever is kept of that."""
    listed, path = LeafList(data), data / "history/crm-software.jsonl"
    for place in (3, 3, 9):  # the last is the newest
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines, lines[place]]))
        listed.extend(NOW)
        if forget:
            (data / ".last-good/listed").unlink()
    assert len(list(listed.leaves())) == len(lines_of(data)) == 19
    first, *others = path.read_bytes().splitlines(keepends=True)
    poll = msgspec.structs.replace(decode_line(first[:-1]), caveat="Another caveat")
    path.write_bytes(b"".join([encode_line(poll, poll.polled_at)[1], *others]))
    with pytest.raises(ProofError, match=r"the line at byte 0 is another"):
        listed.extend(NOW)


@pytest.mark.parametrize("forget", [False, True])
def test_a_line_that_was_glued_to_another_is_listed_alone(data: Path, *, forget: bool) -> None:
    """What is no line of its own was not listed, even if its text was there."""
    listed, path = LeafList(data), data / "history/crm-software.jsonl"
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, b"{}", last]))
    listed.extend(NOW)
    if forget:
        (data / ".last-good/listed").unlink()
    path.write_bytes(path.read_bytes() + last)
    listed.extend(NOW)
    assert [leaf.hash for leaf in listed.leaves()].count(leaf_hash(last[:-1])) == 1


@pytest.mark.parametrize("forget", [False, True])
def test_what_is_left_for_the_next_time_is_listed_once(data: Path, *, forget: bool) -> None:
    """A dataset lists only what its snapshot has; a server had listed a damaged line after that."""
    listed, path = LeafList(data), data / "history/crm-software.jsonl"
    end = path.stat().st_size
    told = b'{"v":1,"id":"0123456789abcdef","slug":"crm-software"}'
    with path.open("ab") as file:
        file.write(b'%b,"crc":"%08x"}\n' % (told[:-1], zlib.crc32(told)))
    listed.extend(NOW)
    for day in (16, 17):
        if forget:
            (data / ".last-good/listed").unlink()
        append(data, [answered("A", ["Late"], f"2026-11-{day}T06:00:00Z")])
        listed.extend(NOW, read=lambda: {"crm-software": end, "help-desk": 10**6})
        assert len(list(listed.leaves())) == 20
    listed.extend(NOW + timedelta(days=20))
    assert len(list(listed.leaves())) == len(lines_of(data)) == 22


def test_a_file_that_looks_older_than_the_list_is_compared(data: Path) -> None:
    """A copy of a directory may have any times."""
    LeafList(data).extend(NOW)
    path = data / "history/crm-software.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    poll = msgspec.structs.replace(decode_line(first[:-1]), pick="Product Z")
    forged = encode_line(poll, poll.polled_at)[1]
    assert len(forged) == len(first)
    path.write_bytes(b"".join([forged, *others]))
    for file in (data / "leaves").iterdir():
        os.utime(file, (2**31, 2**31))
    with pytest.raises(ProofError, match=r"the line at byte 0 is another"):
        LeafList(data).extend(NOW)


def test_a_sealed_line_may_be_no_text(data: Path) -> None:
    """Then it has no time, and is listed under the day that is open."""
    told = b'{"v":1,"id":"0123456789abcdef","slug":"crm\xff"}'
    with (data / "history/crm-software.jsonl").open("ab") as file:
        file.write(b'%b,"crc":"%08x"}\n' % (told[:-1], zlib.crc32(told)))
    LeafList(data).extend(NOW)
    assert len(list(LeafList(data).leaves())) == 20


def test_a_file_that_was_cut_short_is_compared_anew(data: Path) -> None:
    """Lines appended after an accepted loss are listed, wherever they now stand."""
    listed = LeafList(data)
    listed.extend(NOW)
    file = data / "history/crm-software.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    append(data, [answered("A", ["After"], "2026-11-16T06:00:00Z")])
    listed.extend(NOW)
    hashes = [leaf.hash for leaf in listed.leaves()]
    assert len(hashes) == len(set(hashes)) == 20


def world(directory: Path, seed: int, kept: Callable[[Path], object]) -> list[bytes]:
    """The proof after ten days of polls, damage, repairs and losses; ``kept`` comes before each.

    A line may be copied, also to another file, or be of a day to come.
    """
    data, chance = small_data(directory), random.Random(seed)
    for day in range(1, 11):
        path = data / "history" / f"{chance.choice(SLUGS)}.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        match chance.randrange(9):
            case 0:
                path.write_bytes(path.read_bytes().replace(b'"polledAt"', b'"polledat"', 1))
            case 1:
                path.write_bytes(path.read_bytes().replace(b'"polledat"', b'"polledAt"'))
            case 2:
                path.write_bytes(path.read_bytes()[: -chance.randrange(1, 2000)])
            case 3:
                path.write_bytes(path.read_bytes() + b'{"v":1,"id":"un')
            case 4:
                path.write_bytes(b"".join([*lines, *chance.choices(lines, k=2)]))
            case 5:
                path.with_name("vpn.jsonl").write_bytes(b"".join(chance.choices(lines, k=3)))
            case 6:
                append(data, [answered("A", ["Early"], f"2026-12-{day:02}T06:00:00Z")])
        polls = [
            answered(chance.choice("ABCD"), ["Late"], f"2026-11-{day + 9:02}T06:00:00Z", slug=slug)
            for slug in chance.choices(SLUGS, k=chance.randrange(3))
        ]
        with suppress(HistoryError):
            append(data, polls)
        kept(data)
        with suppress(ProofError):  # a line repaired after another was lost; it stops both
            LeafList(data).extend(NOW + timedelta(days=1))
    return [path.read_bytes() for path in sorted((data / "leaves").iterdir())]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_gives_the_heads_of_the_whole_list(tmp_path: Path, seed: int) -> None:
    """Going on from ``.last-good`` or from every leaf is one proof, whatever befalls history."""

    def forget(data: Path) -> None:
        (data / ".last-good/listed").unlink(missing_ok=True)

    def forget_at_times(data: Path) -> None:
        if chance.randrange(2):
            forget(data)

    def spoil(data: Path) -> None:
        path = data / ".last-good/listed"
        if path.exists():
            body = bytearray(path.read_bytes())
            body[chance.randrange(len(body))] ^= chance.randrange(1, 256)
            path.write_bytes(body)

    chance = random.Random(seed)
    anew = world(tmp_path / "anew", seed, forget)
    assert world(tmp_path / "kept", seed, lambda _: None) == anew
    assert world(tmp_path / "spoilt", seed, spoil) == anew
    assert world(tmp_path / "at times", seed, forget_at_times) == anew


def test_a_days_listing_reads_no_leaf(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 741,000 that would take 9 s of CPU, where the limit for the whole increment is 10 s."""
    LeafList(data).extend(NOW)
    path = data / "history/crm-software.jsonl"
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    append(data, [answered(model, ["Product E"], "2026-11-15T06:00:00Z") for model in "ABC"])
    LeafList(data).extend(NOW)  # it does, as a line is gone, but not ever after
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    with monkeypatch.context() as patch:
        patch.setattr(LeafList, "leaves", lambda _: pytest.fail("the list was read"))
        assert LeafList(data).extend(NOW)[-1].date == "2026-11-15"
    assert {leaf.hash for leaf in LeafList(data).leaves()} > lines_of(data)


def test_without_a_place_for_what_is_kept_it_is_only_slower(data: Path) -> None:
    """What cannot be kept, on a full disk or another's, is made again from the list."""
    shutil.rmtree(data / ".last-good", ignore_errors=True)
    (data / ".last-good").write_text("a file")
    LeafList(data).extend(NOW)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    LeafList(data).extend(NOW)
    assert {leaf.hash for leaf in LeafList(data).leaves()} == lines_of(data)


@pytest.mark.parametrize("cut", [-1, -9])
def test_a_line_that_is_just_being_written_is_listed_when_it_is_whole(data: Path, cut: int) -> None:
    """Once, also if only its newline was missing."""
    path = data / "history/crm-software.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    for body in (whole[:cut], whole):
        path.write_bytes(body)
        LeafList(data).extend(NOW)
    assert sorted(leaf.hash for leaf in LeafList(data).leaves()) == sorted(lines_of(data))


@pytest.mark.parametrize(("at", "bit"), [(20, 1), (12, 128)])
@pytest.mark.parametrize("name", ["2026-10.leaves", "2026-11.leaves", "heads.jsonl"])
def test_a_damaged_list_is_an_error_by_name(data: Path, name: str, at: int, bit: int) -> None:
    """It is never made anew silently: the sentence says which file and what to do."""
    listed = LeafList(data)
    listed.extend(NOW)
    path = data / "leaves" / name
    body = bytearray(path.read_bytes())
    body[at] ^= bit
    path.write_bytes(body)
    with pytest.raises(ProofError, match=r"^leaves/.*put the folder proof back from a backup"):
        listed.extend(NOW)
    assert path.read_bytes() == body


def test_each_head_has_its_place(data: Path) -> None:
    """One that stands twice, or one that is missing before another, is an error."""
    listed = LeafList(data)
    listed.extend(NOW)
    path = data / "leaves/heads.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    for body in (others, [first, first, *others]):
        path.write_bytes(b"".join(body))
        with pytest.raises(ProofError, match=r"leaves/heads\.jsonl.* is not in its place"):
            listed.extend(NOW)


def test_a_closed_month_is_never_cut(data: Path) -> None:
    """Only the newest list is written to, so another without its last newline was damaged."""
    LeafList(data).extend(NOW)
    path = data / "leaves/2026-10.leaves"
    body = path.read_bytes()[:-1]
    path.write_bytes(body)
    with pytest.raises(ProofError, match=r"the line is cut short"):
        LeafList(data).extend(NOW)
    assert path.read_bytes() == body


def test_a_list_that_is_gone_is_missed(data: Path) -> None:
    """Heads say how many leaves there were."""
    listed = LeafList(data)
    listed.extend(NOW)
    (data / "leaves/2026-10.leaves").unlink()
    with pytest.raises(ProofError, match=r"leaves/heads\.jsonl: 2026-10-26 closed with 6 leaves"):
        listed.extend(NOW)


def test_whatever_a_crash_left_is_made_whole(data: Path, tmp_path: Path) -> None:
    """Files are appended one after the other: cut anywhere, the next run gives the same bytes."""
    LeafList(data).extend(NOW)
    names = ["2026-10.leaves", "2026-11.leaves", "heads.jsonl"]
    whole = [(data / "leaves" / name).read_bytes() for name in names]
    shutil.copytree(data, tmp_path / "crashed")
    home = tmp_path / "crashed/leaves"
    for cut in range(0, len(b"".join(whole)), 37):
        left = cut
        for name, body in zip(names, whole, strict=True):
            (home / name).unlink(missing_ok=True)
            if left > 0:
                (home / name).write_bytes(body[:left])
            left -= len(body)
        LeafList(tmp_path / "crashed").extend(NOW)
        assert [(home / name).read_bytes() for name in names] == whole, cut
