"""The ledger: what a head commits to, when a day closes, and what a crash or a person leaves."""

import errno
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from builders import answered, append, output, write_data
from conftest import Report
from faults import FAULTS, KILL, FailingCalls, on
from hypothesis import given
from hypothesis import strategies as st

from store.history import History, HistoryError
from store.ledger import Head, Ledger, LedgerEntry, LedgerError, Proof, ProvisionalHead, parse
from store.line_codec import Stamp, stamp, whole_lines
from store.store import Store
from store.text import rfc3339

ROOT = Path(__file__).parent.parent

SLUG = "crm-software"
VECTOR = {
    "drone": b'{"polledAt":"2026-01-01T10:00:00Z","a":1}\n'
    b'{"polledAt":"2026-01-02T10:00:00Z","a":2}\n',
    "vpn": b'{"polledAt":"2026-01-02T11:00:00Z","b":1}\n',
}
FIRST, SECOND = VECTOR["drone"].splitlines(keepends=True)
VECTOR_LEDGER = b"""\
{"day":"2026-01-01","file":"drone","lines":1,"bytes":42,"chain":"f871be64fbe59233032db3297d6bd2055087674904c60ae530349db523fd198d"}
{"day":"2026-01-02","file":"drone","lines":2,"bytes":84,"chain":"c6545c3ef24214b62228cf80259e70ae741702f63681c431f875749ad83e3605"}
{"day":"2026-01-02","file":"vpn","lines":1,"bytes":42,"chain":"a3272e4825e142983c45ebface17ecf3bf3b1e4c707b580ac2c46f15b9f7ef23"}
"""
VECTOR_HEADS = b"""\
{"day":"2026-01-01","files":1,"lines":1,"root":"1eeaf4cb58f450ccc24332094d815cf923cc6b089de5cc7cf146b2d21a7bad3c"}
{"day":"2026-01-02","files":2,"lines":3,"root":"c5eba03f9584b4836cffcbb035b47c6f69b9947130fb870c5f249d236f140a21"}
"""


def line(day: str, text: str = "") -> bytes:
    """A line of history that bears a day."""
    return json.dumps({"polledAt": f"{day}T10:00:00Z", "text": text}).encode().replace(b" ", b"")


def directory(path: Path, files: dict[str, bytes]) -> Path:
    """A data directory with these history files and an empty ledger."""
    for folder in ("proof", "history"):
        (path / folder).mkdir(parents=True, exist_ok=True)
    (path / "proof/ledger.jsonl").touch()
    for name, data in files.items():
        (path / f"history/{name}.jsonl").write_bytes(data)
    return path


def stamps(data: bytes) -> list[Stamp]:
    return [*map(stamp, whole_lines(data))]


def written(path: Path) -> tuple[bytes, bytes]:
    """The bytes of both files of the ledger."""
    return (path / "proof/ledger.jsonl").read_bytes(), (path / "proof/heads.jsonl").read_bytes()


@pytest.mark.parametrize("position", range(len(VECTOR_LEDGER + VECTOR_HEADS) - 1))
def test_no_byte_of_a_ledger_can_be_changed(position: int) -> None:
    """Another byte anywhere is an error that names the file and the line."""
    data = bytearray(VECTOR_LEDGER + VECTOR_HEADS)
    data[position] ^= 1
    ledger, heads = bytes(data[: len(VECTOR_LEDGER)]), bytes(data[len(VECTOR_LEDGER) :])
    with pytest.raises(LedgerError, match=r"^proof/(ledger|heads)\.jsonl:\d+: "):
        parse(ledger, heads)


def test_a_day_closes_once_and_only_what_is_new_is_added(tmp_path: Path) -> None:
    """Closing again adds nothing; whenever it closes, the ledger is the published test vector."""
    proof = Proof(directory(tmp_path, VECTOR))
    assert [head.day for head in proof.close("2026-01-01")] == ["2026-01-01"]
    assert proof.close("2026-01-01") == []
    assert [head.day for head in proof.close("2026-01-02")] == ["2026-01-02"]
    assert written(tmp_path) == (VECTOR_LEDGER, VECTOR_HEADS)


@given(
    days=st.lists(st.sampled_from(["01", "02", "03", "04", "99", ""]), min_size=1, max_size=8),
    cut=st.integers(0, 8),
)
def test_no_order_of_times_leaves_a_day_open_or_a_line_unclosed(days: list[str], cut: int) -> None:
    """Whatever times lines bear, closed sizes grow by day and end in lines of those days."""
    lines = [line(f"2026-01-{day}" if day else "") + b"\n" for day in days]
    ledger = Ledger()
    for entry in ledger.open_entries("x", stamps(b"".join(lines[:cut]))):
        ledger.take_entry(entry)
        ledger.take_head(ledger.head(entry.day))
    data = b"".join(lines)
    closed, size = ledger.last_closed_day, ledger.last("x").bytes
    entries = ledger.open_entries("x", stamps(data[size:]))
    assert [e.day for e in entries] == sorted({e.day for e in entries})
    assert all(e.day > closed for e in entries)
    ends = [size, *(e.bytes for e in entries)]
    assert ends == sorted(set(ends))
    if entries:
        assert entries[-1].bytes == len(data)


def test_a_line_far_ahead_closes_nothing_and_holds_up_nobody(tmp_path: Path) -> None:
    """A line of 2031 leaves its own file open, and closes with the lines that come after it."""
    lines = [line("2026-01-01"), line("2031-01-01")]
    data = directory(
        tmp_path, {"drone": b"\n".join(lines) + b"\n", "vpn": line("2026-01-02") + b"\n"}
    )
    proof = Proof(data)
    proof.close("2026-01-02")
    ledger = proof.load()
    assert (ledger.last_closed_day, ledger.last("drone").lines) == ("2026-01-02", 1)
    with (data / "history/drone.jsonl").open("ab") as file:
        file.write(line("2026-01-03") + b"\n")
    proof.close("2026-01-03")
    assert proof.load().last("drone").lines == 3


def test_a_past_day_keeps_what_was_there_when_it_closed(tmp_path: Path) -> None:
    """A line that is backdated by hand belongs to the day on which it was found."""
    data = directory(tmp_path, VECTOR)
    proof = Proof(data)
    proof.close("2026-01-02")
    with (data / "history/vpn.jsonl").open("ab") as file:
        file.write(line("2026-01-01", "backdated") + b"\n")
    proof.close("2026-01-05")
    ledger = proof.load()
    lines = {day: ledger.lines_on("vpn", f"2026-01-{day}") for day in ("01", "02", "03")}
    assert lines == {"01": 0, "02": 1, "03": 2}
    assert ledger.last("vpn").day == "2026-01-03"


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "torn", "\ntorn"])
def test_what_is_not_a_line_is_not_closed(tmp_path: Path, text: str) -> None:
    """A torn tail and the empty lines that an editor left are no lines, and may go again."""
    data = directory(tmp_path, {"vpn": VECTOR["vpn"] + text.encode()})
    Proof(data).close("2026-01-02")
    assert Proof(data).load().holds("vpn", stamps(VECTOR["vpn"]))


CALLS = [
    (name, nth, error)
    for name in ("write", "fsync", "open")
    for nth in range(1, 9)
    for error in FAULTS[name]
]


@pytest.mark.parametrize(("name", "nth", "error"), CALLS)
def test_a_closing_that_was_cut_off_is_finished_from_the_same_lines(
    tmp_path: Path, name: str, nth: int, error: int
) -> None:
    """Whichever call fails, the next closing gives the ledger that one without a fault gives."""
    data = directory(tmp_path, VECTOR)
    with on(FailingCalls(name, nth, error)):
        try:
            Proof(data).close("2026-01-31")
        except OSError as fault:
            assert fault.errno in (error, errno.ENOSPC)  # noqa: PT017 - it may also not come so far
    Proof(data).close("2026-01-31")
    assert written(data) == (VECTOR_LEDGER, VECTOR_HEADS)


@pytest.mark.parametrize("heads", [len(VECTOR_HEADS) // 2, 170, len(VECTOR_HEADS) - 1])
@pytest.mark.parametrize("ledger", [133, 200, 300, len(VECTOR_LEDGER)])
def test_torn_last_lines_are_written_again(tmp_path: Path, heads: int, ledger: int) -> None:
    """What power loss left of a ledger or a head is no part of it, and is completed."""
    data = directory(tmp_path, VECTOR)
    (data / "proof/heads.jsonl").write_bytes(VECTOR_HEADS[:heads])
    (data / "proof/ledger.jsonl").write_bytes(VECTOR_LEDGER[:ledger])
    Proof(data).close("2026-01-31")
    assert written(data) == (VECTOR_LEDGER, VECTOR_HEADS)


def test_no_poll_comes_before_a_day_whose_closing_was_cut_off(tmp_path: Path) -> None:
    """By a clock that is a day behind then: no head could close it any more."""
    data = write_data(tmp_path, polls=[answered("A", ["X"], "2026-01-05T10:00:00Z")])
    Proof(data).close("2026-01-05")
    (data / "proof/heads.jsonl").write_bytes(b"")
    history, late = History(data / "history"), answered("A", ["X"], slug="help-desk")
    with pytest.raises(HistoryError, match=r"2026-01-05 is being closed, .* mend this"):
        history.append([late], "2026-01-04T10:00:00Z")
    history.append([late], "2026-01-05T11:00:00Z")
    assert [head.day for head in Proof(data).close("2026-01-05")] == ["2026-01-05"]
    assert Proof(data).load().lines == 2


def test_a_closing_by_a_clock_ahead_that_was_cut_off_can_be_reopened(tmp_path: Path) -> None:
    """Nothing could be polled before its day has come."""
    data = write_data(tmp_path, polls=[answered("A", ["X"], "2026-03-05T10:00:00Z")])
    Proof(data).close("2026-03-05")
    (data / "proof/heads.jsonl").write_bytes(b"")
    history, rest = History(data / "history"), answered("A", ["X"], slug="help-desk")
    with pytest.raises(HistoryError, match="--reopen 2026-01-06"):
        history.append([rest], "2026-01-06T10:00:00Z")
    Proof(data).reopen("2026-01-06", "the clock was ahead")
    history.append([rest], "2026-01-06T10:00:00Z")
    assert [head.day for head in Proof(data).close("2026-01-06")] == ["2026-01-06"]
    assert output(data, "verify", str(data)).startswith("verified")


def test_heads_that_are_gone_are_missed() -> None:
    """A ledger of two days without their heads is an error: other heads must not replace them."""
    with pytest.raises(LedgerError, match="a head of ledger"):
        parse(VECTOR_LEDGER, b"")


def close_and_die(data: Path, name: str, nth: int) -> None:
    """Close all days, killed at the nth call of a name."""
    with on(FailingCalls(name, nth, KILL)):
        Proof(data).close("2026-01-31")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["write", "fsync", "ftruncate"])
def test_a_closing_that_was_killed_closes_nothing_twice(tmp_path: Path, name: str) -> None:
    """A kill -9 wherever a closing writes: the next one ends with the ledger of one whole."""
    files = {
        f"f-{number}": b"".join(line(f"2026-01-{day:02}") + b"\n" for day in (1, 2, 2, number + 3))
        for number in range(9)
    }
    whole = directory(tmp_path / "whole", files)
    Proof(whole).close("2026-01-31")
    for nth in range(1, 23):
        data = directory(tmp_path / str(nth), files)
        process = multiprocessing.get_context("fork").Process(
            target=close_and_die, args=(data, name, nth)
        )
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        Proof(data).close("2026-01-31")
        assert written(data) == written(whole)


@pytest.mark.slow
def test_appending_at_midnight_while_the_day_closes(tmp_path: Path, report: Report) -> None:
    """1,000 times: whatever is acknowledged is closed under its own day, the rest refused."""
    data = write_data(tmp_path)
    midnight, refused = datetime(2026, 1, 2, tzinfo=UTC), 0
    for number in range(1000):
        day = midnight + timedelta(days=number)
        before = f"{day - timedelta(days=1):%Y-%m-%d}"
        closing = threading.Thread(target=Proof(data).close, args=(before,))
        closing.start()
        for moment in (day - timedelta(seconds=1), day):
            try:
                append(data, [answered("A", ["X"], rfc3339(moment))])
            except HistoryError:
                refused += 1
        closing.join()
    Proof(data).close("2030-01-01")
    ledger, first = Proof(data).load(), 0
    lines = (data / f"history/{SLUG}.jsonl").read_bytes().splitlines()
    for closed, end in ledger.ends[SLUG]:
        assert {stamp(text)[2] for text in lines[first:end]} == {closed}
        first = end
    assert first == len(lines) == 2000 - refused
    report(f"{refused} of 2,000 polls came after their day was closed and were refused")


def test_nothing_is_added_to_a_closed_day(tmp_path: Path) -> None:
    """A poll whose time lies in a closed day is refused, and the sentence says how to go on."""
    data = write_data(tmp_path, polls=[answered("A", ["X"], "2026-01-01T10:00:00Z")])
    history = History(data / "history")
    Proof(data).close("2026-01-01")
    with pytest.raises(HistoryError, match="2026-01-01 and all days before are closed"):
        history.append([answered("A", ["X"])], "2026-01-01T23:59:59Z")
    history.append([answered("A", ["X"])], "2026-01-02T00:00:00Z")
    assert len(history.read(SLUG).polls) == 2


def test_a_day_that_was_closed_too_early_can_be_opened_again(tmp_path: Path) -> None:
    """After --reopen, lines of that day can be added, and it closes with them; all can see it."""
    data = write_data(
        tmp_path, polls=[answered("A", ["X"], f"2026-01-0{d}T10:00:00Z") for d in (1, 2)]
    )
    proof, history = Proof(data), History(data / "history")
    proof.close("2026-01-03")
    proof.reopen("2026-01-02", "the clock was a day ahead")
    assert proof.load().last_closed_day == "2026-01-01"
    history.append([answered("A", ["Y"])], "2026-01-02T23:00:00Z")
    assert [head.day for head in proof.close("2026-01-02")] == ["2026-01-02"]
    ledger = proof.load()
    assert ledger.lines_on(SLUG, "2026-01-02") == 3
    assert b'"reopened":true,"reason":"the clock was a day ahead"' in written(data)[1]
    for day in ("2026-01-09", "1026-01-02", "2006-01-02"):  # slips of who types it
        with pytest.raises(LedgerError, match=f"{day} is not a closed day"):
            proof.reopen(day, "no")
    proof.reopen("2025-12-31", "nothing was polled before")
    assert proof.load().last_closed_day == ""


def test_a_loss_that_a_person_accepts_is_in_the_ledger_for_good(tmp_path: Path) -> None:
    """The entry says what was there before and why; the chain goes on from what is there now."""
    data = directory(tmp_path, VECTOR)
    proof = Proof(data)
    proof.close("2026-01-02")
    (data / "history/drone.jsonl").write_bytes(FIRST)
    assert not proof.load().holds("drone", stamps(FIRST))
    (entry,) = proof.accept(["drone"], "the disk died", "2026-01-04")
    assert entry == LedgerEntry(
        "2026-01-04",
        "drone",
        1,
        42,
        "f871be64fbe59233032db3297d6bd2055087674904c60ae530349db523fd198d",
        accepted=True,
        was="c6545c3ef24214b62228cf80259e70ae741702f63681c431f875749ad83e3605",
        reason="the disk died",
    )
    assert proof.load().holds("drone", stamps(FIRST))
    (head,) = proof.close("2026-01-04")
    assert head == Head("2026-01-04", 2, 2, head.root)
    assert proof.load().accepted["drone"] == entry


def test_acceptances_of_several_days_close_under_one_head(tmp_path: Path) -> None:
    """No head without an entry of its own is made for the later ones; the ledger stays whole."""
    data = directory(tmp_path, VECTOR)
    proof = Proof(data)
    proof.close("2026-01-02")
    for day in ("2026-01-04", "2026-01-05"):
        proof.accept(["vpn"], "the disk died", day)
    assert [head.day for head in proof.close("2026-01-09")] == ["2026-01-04"]
    assert proof.load().last_closed_day == "2026-01-04"


def test_every_ledger_that_could_not_be_read_is_kept(tmp_path: Path) -> None:
    """A second one set aside on one day does not take the first one's place."""
    data = write_data(tmp_path, polls=[answered("A", ["X"], "2026-01-01T10:00:00Z")])
    for text in (b"first\n", b"second\n"):
        (data / "proof/ledger.jsonl").write_bytes(text)
        Proof(data).accept([SLUG], "it is damaged", "2026-01-09")
    assert {path.read_bytes() for path in (data / "proof").glob("*.damaged")} == {
        b"first\n",
        b"second\n",
    }


def test_a_kept_root_over_all_lines_commits_to_those_that_are_not_closed(tmp_path: Path) -> None:
    """It is the root of the head that closing the same lines then gives; one more line moves it."""
    polls = [
        answered("A", ["X"], f"2026-01-0{day}T10:00:00Z", slug=slug)
        for slug in (SLUG, "vpn")
        for day in (1, 2, 3)
    ]
    categories = {slug: {"title": slug} for slug in (SLUG, "vpn")}
    data = write_data(tmp_path, categories=categories, polls=polls)
    Proof(data).close("2026-01-01")
    store = Store(data)
    present = store.snapshot.provisional_head
    assert (present.lines, present.closed) == (6, 2)
    store.record([answered("B", ["Y"], slug="vpn")], "2026-01-04T10:00:00Z")
    store.reload()
    assert store.snapshot.provisional_head.root != present.root
    later = store.snapshot.provisional_head
    head = Proof(data).close("2026-01-04")[-1]
    assert (head.lines, head.root) == (later.lines, later.root)
    store.reload()
    assert store.snapshot.provisional_head == ProvisionalHead(7, 7, later.root)


def checker(cwd: Path) -> subprocess.CompletedProcess[str]:
    """What the few lines of the README say in a data directory."""
    text = (ROOT / "data/README.md").read_text(encoding="utf-8")
    program = text.partition("<!-- ledger checker -->\n```python\n")[2].partition("```")[0]
    assert len(program.splitlines()) <= 20
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_the_checker_of_the_readme_finds_what_we_find(tmp_path: Path) -> None:
    """Its few lines verify the shipped data from the format's words alone, and miss no forgery."""
    shipped = checker(cwd=ROOT / "data").stdout
    root = Proof(ROOT / "data").load().root
    assert shipped == f"verified: 11034 lines, root {root}\n"
    data = directory(tmp_path, VECTOR)
    Proof(data).close("2026-01-31")
    assert checker(cwd=data).returncode == 0
    forged = directory(tmp_path / "forged", VECTOR)
    shutil.copytree(data / "proof", forged / "proof", dirs_exist_ok=True)
    path = forged / "history/drone.jsonl"
    for lines in (SECOND + FIRST, VECTOR["vpn"], b""):
        path.write_bytes(lines)
        assert "AssertionError: drone" in checker(cwd=forged).stderr
    path.unlink()
    assert "No such file or directory: 'history/drone.jsonl'" in checker(cwd=forged).stderr
    assert checker(cwd=tmp_path.parent).returncode == 1


def test_the_checker_of_the_readme_takes_what_a_person_accepted(tmp_path: Path) -> None:
    """A file that is gone and counts as no lines, and a day that is open again."""
    data, proof = directory(tmp_path, VECTOR), Proof(tmp_path)
    proof.close("2026-01-31")
    (data / "history/drone.jsonl").unlink()
    proof.accept(["drone"], "the disk died", "2026-02-01")
    proof.reopen("2026-01-02", "the clock was a day ahead")
    assert checker(cwd=data).stdout == f"verified: 1 lines, root {proof.load().root}\n"


def test_a_line_of_an_impossible_year_bears_no_day(tmp_path: Path) -> None:
    """A damaged line closes no day that a head could not name: the ledger stays readable."""
    directory = write_data(tmp_path / "data", polls=[answered("A", ["X"], "2026-11-02T06:00:00Z")])
    path = directory / "history/crm-software.jsonl"
    line = path.read_bytes()
    path.write_bytes(line.replace(b"2026-11-02T", b"1026-11-02T") + line)
    Proof(directory).close("2026-11-09")
    assert Proof(directory).load().last_closed_day == "2026-11-02"


def test_lines_of_a_day_without_a_head_are_not_closed() -> None:
    """A writer that died between ledger and head has closed nothing."""
    ends = {"crm": [("2026-11-02", 2), ("2026-11-03", 5)]}
    ledger = Ledger(last_closed_day="2026-11-02", ends=ends)
    assert ledger.days_closed("crm") == ["2026-11-02"] * 2
