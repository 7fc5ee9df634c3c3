"""The poll log keeps what it acknowledged, whatever the machine does."""

import datetime as dt
import errno
import fcntl
import itertools
import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import answered, failed, line_of, write_data
from faults import FAULTS, KILL, SHORT, FailingCalls, VolatileDisk, on
from processes import at_once

from store import history
from store.history import History, HistoryError
from store.ledger import Proof
from store.line_codec import encode_line, redacted
from store.records import Poll, Withholding

SLUG = "crm-software"
NOW = "2026-11-02T06:00:00Z"
LATER = "2026-11-09T06:00:00Z"


def polls(*models: str) -> list[Poll]:
    return [answered(model, ["HubSpot CRM", "Zoho — «CRM»"]) for model in models]


@pytest.fixture
def log(tmp_path: Path) -> History:
    (tmp_path / "history").mkdir()
    (tmp_path / "proof").mkdir()
    (tmp_path / "proof/ledger.jsonl").touch()
    return History(tmp_path / "history")


@pytest.mark.parametrize(
    ("owner", "look", "slug"), [(history, "opened", SLUG), (Path, "glob", "vpn")]
)
def test_a_file_that_another_thread_begins_meanwhile_is_not_lost(
    log: History, monkeypatch: pytest.MonkeyPatch, owner: object, look: str, slug: str
) -> None:
    """Who looked just before, for it or for any, finds nothing, and not that something is gone."""

    def too_early(*_: object) -> list[Path]:
        monkeypatch.undo()
        log.append(polls("A"), NOW)
        assert len(log.read(SLUG).polls) == 1
        if look == "opened":
            raise FileNotFoundError
        return []

    log.signatures()  # the ledger is known
    monkeypatch.setattr(owner, look, too_early)
    assert log.read(slug) == history.Log(slug)


def written(log: History) -> bytes:
    return log.path(SLUG).read_bytes()


def models(log: History) -> list[str]:
    return [stored.poll.model for stored in log.read(SLUG).polls]


class TestAppending:
    """What ``append`` promises when nothing fails."""

    def test_what_is_appended_is_read_back_the_same(self, log: History) -> None:
        """A poll returns from the file as it was acknowledged, failed ones too."""
        acknowledged = [
            *log.append([*polls("A", "B"), failed("C")], NOW),
            *log.append(polls("A"), LATER),
        ]
        found = log.read(SLUG)
        assert [stored.poll for stored in found.polls] == acknowledged
        assert found.problems == ()
        assert [written(log)[s.start : s.end] for s in found.polls] == written(log).splitlines()

    def test_a_batch_is_one_write_then_one_fsync(self, log: History) -> None:
        """Nothing is acknowledged before one write and one fsync of all of it."""
        log.append(polls("A"), NOW)
        with on(FailingCalls()) as calls:
            log.append(polls("A", "B", "C", "D"), LATER)
        assert (calls.calls["write"], calls.calls["fsync"]) == (1, 1)

    def test_a_new_file_is_durable_by_name(self, log: History) -> None:
        """Before the first record, the directories that hold its file's name are fsynced.

        After a failed fsync of a directory the next append does not take it for done.
        """
        with on(FailingCalls("fsync", 1, errno.EIO)), pytest.raises(HistoryError):
            log.append(polls("A"), NOW)
        with on(FailingCalls()) as calls:
            log.append(polls("A"), NOW)
            assert calls.calls["fsync"] == 3  # history/, its parent, the file
            log.append([answered("A", ["X"], slug="other")], NOW)
        assert calls.calls["fsync"] == 6  # the same

    def test_what_is_withheld_or_damaged_holds_no_time_up(self, log: History) -> None:
        """A record gets no time before that of the last line that counts, and of no other.

        That is none withheld, repeated, damaged or another file's.
        """
        log.append(polls("A"), NOW)
        first = written(log)
        far = log.append(polls("B"), "2099-01-01T00:00:00Z")[0]
        foreign = encode_line(answered("A", ["X"], slug="other"), "2098-01-01T00:00:00Z")[1]
        log.path(SLUG).write_bytes(written(log) + foreign + first + b"\ndamaged\n")
        assert log.append(polls("C"), LATER, withheld={far.id})[0].polled_at == LATER
        log.path(SLUG).write_bytes(first + encode_line(far, far.polled_at)[1])
        assert log.append(polls("C"), LATER)[0].polled_at == far.polled_at
        log.path(SLUG).write_bytes(encode_line(far, LATER)[1] + b"damaged\n")
        assert log.append(polls("C"), NOW)[0].polled_at == LATER

    def test_no_id_is_written_twice(self, log: History) -> None:
        """The same answer within one second gets the next free one, in one append or in many."""
        twin = polls("A")[0]
        log.path("former").write_bytes(encode_line(twin, NOW)[1])
        appended = [
            *log.append([twin, twin], NOW, former_files=["former"]),
            *log.append([twin], NOW, former_files=["former"]),
        ]
        assert [poll.polled_at for poll in appended] == [
            "2026-11-02T06:00:01Z",
            "2026-11-02T06:00:02Z",
            "2026-11-02T06:00:03Z",
        ]
        assert len({poll.id for poll in appended}) == 3

    def test_what_would_be_damage_is_never_written(self, log: History) -> None:
        """A clock before the first year, or more picks than there can be, is refused in words."""
        for poll, now in ((polls("A")[0], "1970-01-01T00:00:00Z"), (answered("A", "ABCDEF"), NOW)):
            with pytest.raises(HistoryError, match="cannot be recorded: "):
                log.append([poll], now)
        assert log.read(SLUG).polls == ()

    def test_history_is_for_its_owner_and_group(self, tmp_path: Path) -> None:
        """Neither a file nor its directory is readable by everyone on the machine."""
        log = History(tmp_path / "history")
        log.append(polls("A"), NOW)
        for path in (log.path(SLUG), log.path(SLUG).parent):
            assert path.stat().st_mode & 0o7 == 0

    def test_two_writers_never_mix_their_lines(self, log: History) -> None:
        """The same batch of two that append at once stands in one piece each time, its ids new."""

        def write() -> None:
            own = History(log.path(SLUG).parent)
            for _ in range(20):
                own.append(polls(*"ABC"), NOW)

        at_once(write, write)
        assert models(log) == [*"ABC"] * 40
        assert len({stored.poll.id for stored in log.read(SLUG).polls}) == 120


def test_the_proofs_lock_is_named_where_it_is_at_fault(log: History) -> None:
    """Not the category's file, which is as it should be."""
    log.append(polls("A"), NOW)
    lock = log.path(SLUG).parents[1] / "proof/.lock"
    lock.unlink()
    lock.symlink_to("elsewhere")
    with pytest.raises(history.HistoryError, match=r"^proof/\.lock cannot be written: Too many"):
        log.append(polls("B"), NOW)


class TestReading:
    """What readers make of a file that is not as it was written."""

    def test_a_file_that_is_not_there_is_empty(self, log: History) -> None:
        """A category without history has no polls and no problem."""
        assert log.read(SLUG) == history.Log(SLUG, (), (), None)
        with pytest.raises(history.HistoryError, match="cannot be read"):
            log.lines(SLUG, [(0, 10, "0" * 16)])

    def test_a_signature_tells_whether_a_file_is_as_it_was_read(self, log: History) -> None:
        """Every history file has one, links their own; nothing else in the directory has."""
        assert History(log.path(SLUG).parent / "nowhere").signatures() == {}
        log.append(polls("A"), NOW)
        log.path(SLUG).with_suffix(".jsonl.torn").touch()
        log.path("dangling").symlink_to("nowhere")
        signatures = log.signatures()
        assert signatures.keys() == {SLUG, "dangling"}
        assert signatures[SLUG] == log.read(SLUG).signature
        log.append(polls("B"), NOW)
        assert log.signatures()[SLUG] != signatures[SLUG]

    @pytest.mark.parametrize(
        ("written_over", "reason"),
        [
            (b"HubSp0t", "the checksum does not fit the record"),
            (b"HubSpo\xff", "is not UTF-8 text"),
        ],
    )
    def test_damage_in_the_middle_is_skipped_counted_and_left_alone(
        self, log: History, written_over: bytes, reason: str
    ) -> None:
        """One changed byte costs one record, is named by line, and is never rewritten."""
        log.append(polls("A", "B", "C"), NOW)
        lines = written(log).splitlines(keepends=True)
        lines[1] = lines[1].replace(b"HubSpot", written_over, 1)
        log.path(SLUG).write_bytes(b"".join(lines))
        found = log.read(SLUG)
        assert [stored.poll.model for stored in found.polls] == ["A", "C"]
        [problem] = found.problems
        assert str(problem) == (
            f"history/crm-software.jsonl:2:1: a damaged record is left out: {reason}"
        )
        log.append(polls("D"), LATER)
        assert written(log).startswith(b"".join(lines))
        assert models(log) == ["A", "C", "D"]

    def test_a_torn_last_line_is_a_warning_until_the_writer_sets_it_aside(
        self, log: History
    ) -> None:
        """A reader takes what is whole, says what is not, and repairs nothing."""
        log.append(polls("A", "B"), NOW)
        torn = written(log)[:-20]
        log.path(SLUG).write_bytes(torn)
        assert models(log) == ["A"]
        [problem] = log.read(SLUG).problems
        assert problem.severity == "warning"
        assert str(problem) == (
            "history/crm-software.jsonl:2:1: an unfinished record (the next poll sets it aside): "
            "Input data was truncated"
        )
        assert written(log) == torn
        log.append(polls("C"), LATER)
        assert (models(log), log.read(SLUG).problems) == (["A", "C"], ())
        aside = log.path(SLUG).with_suffix(".jsonl.torn")
        assert aside.read_bytes() == torn.partition(b"\n")[2] + b"\n"
        assert aside.stat().st_mode & 0o7 == 0

    @pytest.mark.parametrize("end", [b"", b"\n\n", b"\n\n\n\n"])
    def test_what_editors_make_of_the_end_is_no_damage(self, log: History, end: bytes) -> None:
        """They take the last newline away, or add some; the writer mends that between records."""
        log.append(polls("A", "B"), NOW)
        before = written(log)
        log.path(SLUG).write_bytes(before.rstrip(b"\n") + end)
        assert (models(log), log.read(SLUG).problems) == (["A", "B"], ())
        log.append(polls("C"), NOW)
        assert (models(log), log.read(SLUG).problems) == (["A", "B", "C"], ())
        assert b"\n\n" not in written(log)
        assert written(log).startswith(before)

    @pytest.mark.parametrize(
        ("number", "blank"),
        [*itertools.product([1, 2, 3], [b" ", b"\t", b"\r"]), (1, b""), (2, b"")],
    )
    def test_a_line_blanked_out_is_damage(self, log: History, number: int, blank: bytes) -> None:
        """Whoever erases a record in its place is told of, also in the last line."""
        log.append(polls("A", "B", "C"), NOW)
        lines = written(log).splitlines(keepends=True)
        lines[number - 1] = blank * (len(lines[number - 1]) - 1) + b"\n"
        log.path(SLUG).write_bytes(b"".join(lines))
        fresh = History(log.path(SLUG).parent)
        [problem] = fresh.read(SLUG).problems
        assert (problem.line, problem.severity) == (number, "error")
        assert "an empty line; a record may have been erased here" in problem.message
        fresh.append(polls("D"), LATER)
        assert fresh.read(SLUG).problems == (problem,)

    def test_what_a_line_says_makes_no_message_endless(self, log: History) -> None:
        """A kind of failure that is none is quoted by its beginning only."""
        record = json.loads(encode_line(failed("A"), NOW)[1])
        log.path(SLUG).write_bytes(line_of({**record, "failure": "x" * 5000}))
        [problem] = log.read(SLUG).problems
        assert len(problem.message) < 300

    def test_a_sealed_tail_that_is_damaged_is_not_torn(self, log: History) -> None:
        """What only lacks its newline, or has other line ends, is kept and an error."""
        log.append(polls("A", "B"), NOW)
        whole = written(log)
        forged = line_of({**json.loads(whole.splitlines()[0]), "withheld": True})
        for tail in (
            forged.rstrip(),
            whole.replace(b"\n", b"\r"),
            whole[:-1].replace(b"\n", b"\r"),
        ):
            log.path(SLUG).write_bytes(whole + tail)
            log = History(log.path(SLUG).parent)  # it has not seen what the last one appended
            [problem] = log.read(SLUG).problems
            assert (problem.line, problem.severity) == (3, "error")
            log.append(polls("C"), LATER)
            assert written(log).startswith(whole + tail + b"\n")
            assert models(log) == ["A", "B", "C"]
        assert not log.path(SLUG).with_suffix(".jsonl.torn").exists()

    @pytest.mark.parametrize(
        ("kind", "reason"),
        [
            ("link", "it is a symbolic link, which is not followed; put the file itself here"),
            ("dangling", "it is a symbolic link, which is not followed; put the file itself here"),
            ("pipe", "it is not a regular file"),
            ("directory", "it is not a regular file"),
        ],
    )
    def test_only_regular_files_are_opened(
        self, log: History, tmp_path: Path, kind: str, reason: str
    ) -> None:
        """A link is neither followed nor written through, and a pipe blocks no one."""
        path, secret = log.path(SLUG), tmp_path / "secret"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "directory":
            path.mkdir()
        else:
            if kind == "link":
                secret.write_bytes(encode_line(polls("A")[0], NOW)[1])
            path.symlink_to(secret)
        before = secret.read_bytes() if secret.exists() else None
        found = log.read(SLUG)
        assert found.polls == ()
        [problem] = found.problems
        assert str(problem) == f"history/crm-software.jsonl:1:1: cannot be read: {reason}"
        with pytest.raises(HistoryError):
            log.append(polls("B"), NOW)
        assert (secret.read_bytes() if secret.exists() else None) == before

    def test_lines_that_changed_since_are_not_served(self, log: History) -> None:
        """Any records are read, in any order; moved ones are missed, and so are exchanged ones."""
        log.append(polls("A", "B", "C"), NOW)
        stored = log.read(SLUG).polls
        places = [(each.start, each.end, each.poll.id) for each in stored]
        lines = written(log).splitlines()
        assert log.lines(SLUG, places) == lines
        assert log.lines(SLUG, places[:0:-1]) == lines[:0:-1]
        for other in (b"x" + written(log), b"\n".join([lines[1], lines[0], lines[2], b""])):
            log.path(SLUG).write_bytes(other)
            with pytest.raises(HistoryError, match="no longer holds all"):
                log.lines(SLUG, places)


def faults() -> Iterator[tuple[str, int, int]]:
    """Every call that an append to a file with a torn tail makes, failing in every way."""
    for name, errors in FAULTS.items():
        for error in errors:
            for nth in range(1, 8):
                yield name, nth, error


def outcome(log: History) -> tuple[tuple[Poll, ...], str]:
    """What an append acknowledges, and the sentence with which it refuses."""
    try:
        return log.append(polls("D", "E"), LATER), ""
    except HistoryError as refusal:
        return (), str(refusal)


def new_file(log: History) -> bytes:
    """Nothing at all."""
    log.path(SLUG).unlink(missing_ok=True)
    return b""


def torn(log: History) -> bytes:
    """Write two records and half of a third; return the whole ones."""
    log.append(polls("A", "B"), NOW)
    whole = written(log)
    log.path(SLUG).write_bytes(whole + encode_line(polls("C")[0], NOW)[1][:100])
    return whole


class TestFaults:
    """What ``append`` promises when the machine fails."""

    @pytest.mark.parametrize("start", [torn, new_file], ids=["after a torn tail", "in a new file"])
    def test_every_call_may_fail(self, log: History, start: Callable[[History], bytes]) -> None:
        """Whichever call fails and how: what was there stays, and an append is whole or refused.

        Once a full disk has room, the same writer goes on.
        """
        happened: set[str] = set()
        for name, nth, error in faults():
            new_file(log)
            log = History(log.path(SLUG).parent)  # one that did not see the file before
            whole = start(log)
            writer = History(log.path(SLUG).parent)
            with on(FailingCalls(name, nth, error)):
                acknowledged, refusal = outcome(writer)
            if refusal:
                happened.add(name)
                assert (
                    "crm-software.jsonl cannot be written: " in refusal or "proof/ledger" in refusal
                )
            assert not log.path(SLUG).exists() or written(log).startswith(whole)
            new = [s.poll for s in log.read(SLUG).polls if s.poll.model in "DE"]
            assert new == list(acknowledged), (name, nth, error)
            was_full = name == "write" and error in (errno.ENOSPC, SHORT)
            later = (writer if was_full else log).append(polls("F"), LATER)
            assert log.read(SLUG).polls[-1].poll == later[0]
            assert log.read(SLUG).problems == ()
        assert happened >= ({*FAULTS} if whole else {"open", "write", "fsync"})

    @pytest.mark.parametrize(
        ("call", "error", "also"),
        [
            ("fsync", errno.EIO, ()),
            ("fsync", errno.ENOSPC, ()),
            ("fsync", errno.EIO, ("ftruncate",)),
            ("write", SHORT, ("ftruncate",)),
        ],
    )
    def test_a_writer_that_cannot_know_what_is_on_the_disk_goes_no_further(
        self, log: History, call: str, error: int, also: tuple[str, ...]
    ) -> None:
        """The kernel reports a lost write once only; what cannot be taken back stays as it is."""
        log.append(polls("A"), NOW)
        with on(FailingCalls(call, 1, error, also)), pytest.raises(HistoryError):
            log.append(polls("B"), NOW)
        left = written(log)
        with pytest.raises(HistoryError, match="an earlier write failed; restart after a disk"):
            log.append(polls("B"), NOW)
        assert written(log) == left
        assert models(log)[0] == "A"
        assert also or models(log) == ["A"]
        assert log.append([answered("A", ["X"], slug="other")], NOW)

    def test_a_torn_tail_stays_where_there_is_no_room_to_keep_it(self, log: History) -> None:
        """Not a byte leaves the history before it, and its newline, stand elsewhere."""
        log.append(polls("A"), NOW)
        torn = written(log) + b"{"
        log.path(SLUG).write_bytes(torn)
        reason = r": No space left on device$"
        with on(FailingCalls("write", 1, SHORT)), pytest.raises(HistoryError, match=reason):
            log.append(polls("B"), NOW)
        assert written(log) == torn

    @pytest.mark.parametrize("kept", [["A"], []], ids=["replaced", "gone"])
    def test_a_file_that_was_replaced_meanwhile_is_found_again(
        self, log: History, monkeypatch: pytest.MonkeyPatch, kept: list[str]
    ) -> None:
        """An editor that moves the file away just before the lock takes no new record with it."""
        log.append(polls("A"), NOW)
        real = fcntl.flock
        path = log.path(SLUG)

        def replaced_first(handle: int, operation: int) -> None:
            monkeypatch.setattr(fcntl, "flock", real)
            path.rename(path.with_suffix(".old"))
            if kept:
                path.write_bytes(path.with_suffix(".old").read_bytes())
            real(handle, operation)

        monkeypatch.setattr(fcntl, "flock", replaced_first)
        log.append(polls("B"), NOW)
        assert models(log) == [*kept, "B"]


def crash_states(committed: bytes, batch: bytes, step: int) -> Iterator[bytes]:
    """What a crash may leave of a batch: cut, zero-filled, garbled, from every ``step``-th byte."""
    chance = random.Random(20261102)
    for cut in range(0, len(batch) + 1, step):
        rest = len(batch) - cut
        yield committed + batch[:cut]
        yield committed + batch[:cut] + bytes(rest)
        yield committed + batch[:cut] + chance.randbytes(rest)
        yield committed + bytes(cut) + batch[cut:]
        yield committed + chance.randbytes(cut) + batch[cut:]


def do_not_wait(handle: int) -> None:
    """An fsync for tests that look only at what a crash left."""


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_every_crash_state_is_survived(
    log: History, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """However a batch was cut, zero-filled or garbled: no record before it is lost or changed."""
    monkeypatch.setattr(os, "fsync", do_not_wait)
    acknowledged = log.append(polls("A", "B"), NOW)
    committed = written(log)
    batch = b"".join(encode_line(poll, NOW)[1] for poll in polls("C", "D", "E"))
    states = [*crash_states(committed, batch, step)]
    assert len(states) * step >= 9000
    for state in states:
        log.path(SLUG).write_bytes(state)
        log = History(log.path(SLUG).parent)  # after a crash every reader is a new one
        read = [stored.poll for stored in log.read(SLUG).polls]
        assert tuple(read[:2]) == acknowledged
        assert {poll.model for poll in read[2:]} <= set("CDE")
        new = log.append(polls("F"), NOW)
        assert [stored.poll for stored in log.read(SLUG).polls] == [*read, *new]
        assert written(log).startswith(committed)


def power_cuts(directory: Path, rounds: int, *, honest: bool) -> int:
    """Append, cut the power, look; return how many acknowledged records were lost."""
    lost = 0
    for number in range(rounds):
        chance = random.Random(number)
        home = directory / str(number) / "history"
        home.mkdir(parents=True)
        with on(VolatileDisk(home, honest=honest)) as disk:
            log = History(home)
            acknowledged: list[Poll] = []
            for _ in range(chance.randint(1, 4)):
                acknowledged += log.append(polls(*"ABC"[: chance.randint(1, 3)]), NOW)
            with log.path(SLUG).open("ab") as file:
                file.write(encode_line(polls("D")[0], NOW)[1])  # and never fsynced
            disk.cut_power(chance)
        after = [stored.poll for stored in History(home).read(SLUG).polls]
        lost += len(acknowledged) - sum(a == b for a, b in zip(acknowledged, after, strict=False))
    return lost


def test_no_acknowledged_record_is_lost_in_a_power_cut(tmp_path: Path) -> None:
    """What was acknowledged is there after the power is; the same disk without fsync loses some."""
    assert power_cuts(tmp_path / "fsynced", 60, honest=True) == 0
    assert power_cuts(tmp_path / "control", 60, honest=False) > 0


def append_until_killed(log: History, pipe: int, seed: int) -> None:
    """Append, saying each acknowledged id, until killed in the middle of a write; for a child."""
    chance = random.Random(seed)
    with on(FailingCalls("write", chance.randint(1, 12), KILL)):
        for number in itertools.count():
            names = [f"{seed}-{number}-{i}" for i in range(chance.choice([1, 3, 5]))]
            batch = [answered(name, ["X", "Y"]) for name in names]
            ids = " ".join(poll.id for poll in log.append(batch, NOW))
            os.write(pipe, ids.encode() + b"\n")


def kill_once(log: History, seed: int, acknowledged: list[str]) -> bool:
    """Let a process be killed while it appends; whether a torn line was left."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            append_until_killed(log, writer, seed)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        acknowledged += pipe.read().decode().split()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return not written(log).endswith(b"\n")


@pytest.mark.parametrize("rounds", [20, pytest.param(900, marks=pytest.mark.slow)])
def test_a_killed_writer_loses_nothing_it_acknowledged(log: History, rounds: int) -> None:
    """``kill -9`` in the middle of a write tears at most what nobody was promised."""
    acknowledged: list[str] = []
    tears = sum(kill_once(log, number, acknowledged) for number in range(rounds))
    found, promised = log.read(SLUG), set(acknowledged)
    order = [stored.poll.id for stored in found.polls if stored.poll.id in promised]
    assert order == acknowledged, "an acknowledged record is lost, duplicated or out of order"
    assert all(problem.severity == "warning" for problem in found.problems), "lines were glued"
    assert acknowledged
    assert tears > rounds // 20, "no line was torn: this test had no teeth"


def test_a_redacted_line_stands_for_no_line_of_the_data_directory(tmp_path: Path) -> None:
    """Evidence has it in the place of a withheld one; in history it is damage, closed or not."""
    polls = [answered(model, ["X"], "2026-01-01T10:00:00Z") for model in "AB"]
    data = write_data(tmp_path, polls=polls)
    path = data / "history/crm-software.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    withheld = Withholding(reason="r", date=dt.date(2026, 1, 3))
    forged = redacted(lines[0].rstrip(b"\n"), withheld) + b"\n" + lines[1]
    path.write_bytes(forged)
    assert [p.line for p in History(data / "history").read("crm-software").problems] == [1]
    path.write_bytes(b"".join(lines))
    Proof(data).close("2026-01-02")
    path.write_bytes(forged)
    assert History(data / "history").read("crm-software").is_lost
    assert History(data / "history", published=True).read("crm-software").polls
