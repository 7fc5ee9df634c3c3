"""Polling on schedule, in real servers: one process of all, taken over, paused, ended well."""

import errno
import json
import logging
import os
import pwd
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import msgspec
import pytest
from apscheduler.schedulers import base
from apscheduler.triggers import date
from builders import answered, app_over, append, command, edit, write_json
from datasets import DAYS, small_data
from faults import FailingCalls, needs_root, replace_os
from processes import (
    CANARY,
    environment,
    flask_here,
    polls,
    served,
    started,
    until,
    write_real,
)
from replaying import Replaying
from servers import tree_of

from store.disk import locked
from store.files import Files
from store.history import History, HistoryError
from store.ledger import DayClosing, Proof
from store.polls.asking import keep_instrument
from store.polls.clocks import Clock
from store.polls.locks import is_held
from store.polls.schedule import AssistantStatus, Schedule, confirmed_time
from store.polls.session import Summary
from store.records import Poll
from store.settings import Settings, SettingsError

GUNICORN = ("gunicorn", "-c", "python:store.gunicorn", "app:create_app()", "-b", "127.0.0.1:PORT")
MODELS = ("gpt", "claude", "gemini", "grok")
FAST = {"POLL_ENABLED": "1", "POLL_TICK_SECONDS": "0.1"}


def data_of(tmp_path: Path, provider: Replaying, count: int, **fields: Any) -> Path:
    """A data directory of so many categories, asked at the provider."""
    return write_real(
        tmp_path / "data", provider.url, [f"c-{n:02}" for n in range(count)], **fields
    )


def log_of(data: Path) -> str:
    """What the servers on a data directory printed."""
    return data.with_suffix(".log").read_text()


def test_a_server_polls_what_is_due(tmp_path: Path, provider: Replaying) -> None:
    """`flask run` with POLL_ENABLED=1 asks each pair once, shows it, and ends soon."""
    data = data_of(tmp_path, provider, 3)
    with served(data, **FAST) as (_, process):
        until(lambda: len(polls(data)) == 12)
        status = flask_here(data, "poll", "--status").stdout
        idle = status.replace("being asked now, ", "")  # its lock is taken ten times a second
        assert "GPT: 0 of 3 due, spent today 0.01 USD, last success 20" in idle
        assert "A server polls on schedule." in status
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert set(Counter((poll.slug, poll.model) for poll in polls(data)).values()) == {1}
    assert "No server polls on schedule" in flask_here(data, "poll", "--status").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_ended_leaves_one_record(
    tmp_path: Path, provider: Replaying, number: signal.Signals
) -> None:
    """What was on its way when the server was told to end is one ``interrupted`` record each."""
    data = data_of(tmp_path, provider, 1)
    provider.follow({model: [{"gate": "shut"}] for model in MODELS})
    with served(data, **FAST) as (_, process):
        until(lambda: len(provider.seen) >= 4)
        process.send_signal(number)
        process.wait(60)
    assert [poll.failure for poll in polls(data)] == ["interrupted"] * 4


def test_gunicorn_polls_once_whatever_its_workers(tmp_path: Path, provider: Replaying) -> None:
    """Two workers and a `flask poll --due` beside them ask each due pair exactly once."""
    data = data_of(tmp_path, provider, 6)
    provider.follow({model: [{"delay": 0.05, "picks": ["Alpha"]}] for model in MODELS})
    with served(data, *GUNICORN, "-w", "2", **FAST) as (_, process):
        assert flask_here(data, "poll", "--due").exit_code == 0
        until(lambda: len(polls(data)) >= 24)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(provider.seen) == 24
    assert set(Counter((poll.slug, poll.model) for poll in polls(data)).values()) == {1}
    assert "this process polls on schedule" in log_of(data)
    assert "apscheduler" not in log_of(data), "thousands of lines a day that say nothing"


def scheduling_worker(master: int, data: Path) -> int | None:
    """The worker that holds the scheduler's lock, by what the kernel says of its open files."""
    lock = data / ".locks" / "schedule.lock"
    for worker in tree_of(master)[1:]:
        for descriptor in Path(f"/proc/{worker}/fd").iterdir():
            with suppress(OSError):  # it has just been closed
                state = Path(f"/proc/{worker}/fdinfo/{descriptor.name}").read_text()
                if descriptor.readlink() == lock and "lock:" in state:
                    return worker
    return None


def test_a_dead_schedulers_work_is_taken_over(tmp_path: Path, provider: Replaying) -> None:
    """When the scheduling worker is killed, another polls soon, and nothing is asked twice."""
    data = data_of(tmp_path, provider, 1)
    provider.follow({model: [{"gate": "first", "picks": ["Alpha"]}] for model in MODELS})
    with served(data, *GUNICORN, "-w", "2", **FAST) as (_, process):
        until(lambda: len(provider.seen) >= 4)
        first = until(lambda: scheduling_worker(process.pid, data))
        assert first is not None
        os.kill(first, signal.SIGKILL)
        until(lambda: len(provider.seen) >= 8)
        assert until(lambda: scheduling_worker(process.pid, data)) != first
        provider.gate("first").set()
        until(lambda: len(polls(data)) == 4)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert [poll.failure for poll in polls(data)] == [None] * 4


@contextmanager
def scheduled(data: Path) -> Iterator[None]:
    """A schedule in this process, as a server over the directory would run it."""
    app = app_over(data, poll_tick=0.1, environ=environment(data))
    schedule = Schedule(app.extensions["store"], app.extensions["settings"])
    schedule.start()
    try:
        yield
    finally:
        schedule.stop()


def test_a_paused_assistant_is_one_line_and_one_poll(
    tmp_path: Path, provider: Replaying, caplog: pytest.LogCaptureFixture
) -> None:
    """A bad key is found out once, logged once and shown by --status; the others go on."""
    data = data_of(tmp_path, provider, 4)
    provider.follow({"gpt": [{"status": 401, "body": {"error": {"message": f"bad {CANARY}"}}}]})
    with scheduled(data):
        until(lambda: len(polls(data)) == 13)
        status = flask_here(data, "poll", "--status").stdout
    assert Counter(poll.model for poll in polls(data)) == {
        "GPT": 1,
        "Claude": 4,
        "Gemini": 4,
        "Grok": 4,
    }
    paused = [line for line in caplog.messages if "GPT is paused until" in line]
    assert len(paused) == 1
    assert paused[0].endswith('The provider answered HTTP 401: "bad [redacted]"')
    assert "GPT: 3 of 4 due" in status
    assert "GPT is paused until 20" in status
    assert CANARY not in status + caplog.text


def test_a_slow_assistant_is_asked_as_much_of_a_day_as_a_fast_one(
    tmp_path: Path, provider: Replaying, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a cap that does not pay for all, each has its part: no ranking is one-sided."""
    data = data_of(tmp_path, provider, 12, names=["GPT", "Grok"], daily_usd=0.12)
    provider.follow({"grok": [{"gate": "slow", "picks": ["Alpha"]}]})
    caplog.set_level(logging.INFO, "store.polls.schedule")

    def has_used(name: str) -> bool:
        return any(f"{name} is not asked on: its equal share" in line for line in caplog.messages)

    with scheduled(data):
        until(lambda: has_used("GPT"))
        provider.gate("slow").set()
        until(lambda: has_used("Grok"))
    counts = Counter(poll.model for poll in polls(data))
    assert 0 < counts["GPT"] == counts["Grok"] < 12
    status = flask_here(data, "poll", "--status").stdout
    assert status.count("its equal share of daily_usd 0.12 of site.json is reached") == 2


def test_killed_between_repeats_nothing_is_lost_or_asked_twice(
    tmp_path: Path, provider: Replaying
) -> None:
    """After `kill -9` the same command asks only what the round lacks; a cap counts all."""
    data = data_of(tmp_path, provider, 1, names=["GPT"], daily_usd=1)
    provider.follow({"gpt": [{"picks": ["X"]}, {"picks": ["Y"]}, {"gate": "killed"}]})
    with started(data, "flask", "poll", "--due", "--samples", "4") as process:
        until(lambda: len(provider.seen) == 3)
        process.kill()
        process.wait(30)
    provider.gate("killed").set()
    provider.follow({"gpt": [{"picks": ["Z"]}]})
    status = flask_here(data, "poll", "--status").stdout
    assert "Spent today: 0.05 of 1 USD, 0.04 of it for batches on their way, calls" in status, (
        "what was on its way stays reserved"
    )
    done = flask_here(data, "poll", "--due", "--samples", "4").output
    assert "GPT: 2 answered, 0.0088 USD\n" in done
    assert [poll.pick for poll in polls(data)] == ["X", "Y", "Z", "Z"]
    assert len(provider.seen) == 5
    assert flask_here(data, "poll", "--due", "--samples", "4").stdout == "Nothing is due.\n"


def replace_assistant(data: Path) -> None:
    """A models.json with one assistant that is asked as GPT was, under another name."""
    path = data / "models.json"
    models = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**models, "models": [{**models["models"][0], "name": "New", "model": "new"}]})


def test_a_command_does_not_poll_on_schedule(tmp_path: Path, provider: Replaying) -> None:
    """Not with POLL_ENABLED=1; test_loop.py has a server without."""
    data = data_of(tmp_path, provider, 1)
    status = command(data, "poll", "--status", poll_enabled=True, environ=environment(data))
    assert status.exit_code == 0
    assert not (data / ".locks").exists()
    assert provider.seen == []


def test_the_reloader_polls_once(tmp_path: Path, provider: Replaying) -> None:
    """With --debug the application is imported twice and polls once."""
    data = data_of(tmp_path, provider, 2)
    with served(data, "flask", "run", "--debug", "--port", "PORT", **FAST) as (_, process):
        until(lambda: len(polls(data)) == 8)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert len(provider.seen) == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [("POLL_ENABLED", "yes")] + [("POLL_TICK_SECONDS", x) for x in ("0", "fast", "nan", "100000")],
)
def test_a_wrong_setting_is_refused(name: str, value: str) -> None:
    """A setting that cannot be is named; the schedule is off unless told, and looks once a minute.

    POLL_TICK_SECONDS may be a fraction.
    """
    with pytest.raises(SettingsError, match=name):
        Settings.from_env({name: value})
    usual = Settings.from_env({})
    assert (usual.poll_enabled, usual.poll_tick) == (False, 60)
    fast = Settings.from_env({"POLL_ENABLED": "1", "POLL_TICK_SECONDS": "0.5"})
    assert (fast.poll_enabled, fast.poll_tick) == (True, 0.5)


# ------------------------------------------------------------------ in this process


@pytest.fixture
def here(tmp_path: Path, provider: Replaying) -> Iterator[tuple[Schedule, Path, Replaying]]:
    """A schedule in the test's own process, over two categories and one assistant."""
    data = write_real(tmp_path / "data", provider.url, ["c-0", "c-1"], names=["GPT"])
    app = app_over(data, poll_tick=0.1, environ={"POLL_TEST_KEY": CANARY})
    schedule = Schedule(app.extensions["store"], app.extensions["settings"])
    yield schedule, data, provider
    provider.gate("shut").set()
    schedule.stop()


Here = tuple[Schedule, Path, Replaying]


def test_a_schedule_fills_rounds(here: Here) -> None:
    """It asks until each pair has the answers that its round takes, and no more."""
    schedule, data, server = here
    edit(data / "site.json", samples_at_first=3)
    schedule._store.reload()  # noqa: SLF001 - as the watcher does
    schedule.start()
    until(lambda: len(polls(data)) == 6)
    until(lambda: "GPT: 0 of 2 due" in flask_here(data, "poll", "--status").stdout)
    schedule.stop()
    assert Counter(poll.slug for poll in polls(data)) == {"c-0": 3, "c-1": 3}
    assert len(server.seen) == 6
    first_two = {one["question"] for one in server.seen[:2]}
    assert len(first_two) == 2, "every category has one answer before any has two"


@needs_root
def test_root_says_whose_data_it_adds_to(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    """A server that root runs polls all the same, for it can read what it adds itself."""
    schedule, data, _ = here
    nobody = pwd.getpwnam("nobody")
    (data / "history").mkdir(exist_ok=True)
    os.chown(data / "history", nobody.pw_uid, nobody.pw_gid)
    schedule.start()
    until(lambda: len(polls(data)) == 2)
    assert "nobody, whose data it is, cannot use what root adds" in caplog.messages


def stands(schedule: Schedule) -> tuple[bool, bool]:
    """Whether a schedule runs, and whether it is the one that polls."""
    state = schedule.status()
    return state.alive, state.polling


def test_the_second_schedule_waits_for_the_first(here: Here) -> None:
    """While one holds the lock the other stands by; it takes over until it is stopped."""
    schedule, data, server = here
    (data / ".locks").mkdir()
    with locked(data / ".locks" / "schedule.lock"):
        schedule.start()
        time.sleep(0.3)
        assert not server.seen
        assert stands(schedule) == (True, False)
    until(lambda: len(polls(data)) == 2)
    assert stands(schedule) == (True, True)
    schedule.stop()
    assert stands(schedule) == (False, False)
    assert schedule.status().reasons == ("The schedule does not run; restart the server.",)
    assert not is_held(data / ".locks" / "schedule.lock")


def test_a_locks_folder_that_cannot_be_used_is_told(
    here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is asked that another process could ask as well; log and health say why, once."""
    schedule, data, server = here
    (data / ".locks").write_text("in the way")
    schedule._job("GPT")  # noqa: SLF001 - one job by hand
    reason = "GPT is not asked: history or .locks cannot be used; see the log."
    assert (schedule.status().reasons[0], server.seen) == (reason, [])
    schedule.start()
    fault = "Polling on schedule has a fault (File exists); the log says more."
    until(lambda: schedule.status().reasons == (reason, fault))
    assert caplog.text.count("polling on schedule has a fault") == 1
    (data / ".locks").unlink()
    until(lambda: len(polls(data)) == 2)
    until(lambda: schedule.status().reasons == ())


def test_each_round_with_work_is_one_line(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    """What was asked, what came of it and why something failed; nothing when nothing was due."""
    caplog.set_level("INFO")
    schedule, data, server = here
    server.follow({"gpt": [{"text": "no"}, {"picks": ["Alpha"]}]})
    schedule.start()
    until(lambda: len(polls(data)) == 2)
    time.sleep(0.4)
    schedule.stop()
    lines = [message for message in caplog.messages if message.startswith("GPT: ")]
    said = 'The answer is text, not the JSON object asked for. It begins: "no"'
    assert lines == [
        f"GPT: 1 parse, 0.0044 USD; parse: {said}",
        "GPT: 1 answered, 0.0044 USD",
    ]
    levels = [record.levelname for record in caplog.records if record.message in lines]
    assert levels == ["WARNING", "INFO"]
    assert not [record for record in caplog.records if record.name.startswith("apscheduler")]


def test_a_pause_is_part_of_the_state(here: Here) -> None:
    """Who is paused, until when and why, while it lasts; an assistant that left is forgotten."""
    schedule, data, server = here
    server.follow({"gpt": [{"status": 401}, {"picks": ["Alpha"]}]})
    schedule.start()
    until(lambda: schedule.status().reasons)
    [reason] = schedule.status().reasons
    assert reason.startswith("GPT is paused until 20")
    assert reason.endswith(": its key is refused.")
    replace_assistant(data)
    until(lambda: not schedule.status().reasons)


def test_what_nobody_thought_of_pauses_too(
    here: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault after a question was paid for is logged once and not paid for every minute."""
    schedule, _, server = here

    def break_down(self: History, polls: Sequence[Poll], now: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(History, "append", break_down)
    schedule.start()
    until(lambda: schedule.status().reasons)
    assert caplog.text.count("polling GPT failed unexpectedly") == 1
    public = "GPT is not asked for an hour after a fault of the program; see the log."
    assert schedule.status().reasons == (public,)
    schedule._job("GPT")  # noqa: SLF001 - as at the next tick
    assert len(server.seen) == 1


def test_what_is_no_business_of_readers_is_only_in_the_log(
    here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    """The state, which anybody may read, names no variable and no file of the machine."""
    schedule, _, _ = here
    bare = msgspec.structs.replace(schedule._settings, environ={})  # noqa: SLF001 - without a key
    keyless = Schedule(schedule._store, bare)  # noqa: SLF001 - likewise
    keyless.start()
    until(lambda: "the environment variable POLL_TEST_KEY is not set" in caplog.text)
    told = "GPT lacks what it needs to be asked; see the log."
    until(lambda: told in keyless.status().reasons)
    reasons = keyless.status().reasons
    keyless.stop()
    assert "POLL_TEST_KEY" not in "".join(reasons)


def test_a_poll_that_cannot_be_recorded_is_told(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health says what was lost, and why."""
    schedule, _, _ = here

    def refuse(self: History, polls: Sequence[Poll], now: str, **_: object) -> None:
        raise HistoryError("c-0.jsonl cannot be written: No space left on device")

    monkeypatch.setattr(History, "append", refuse)
    schedule.start()
    until(lambda: schedule.status().reasons)
    assert "an answer could not be recorded: c-0.jsonl cannot" in schedule.status().reasons[0]


def test_a_file_whose_fsync_failed_is_paid_for_once(
    here: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel says it once, so nothing more is asked there; the other category goes on."""
    schedule, data, server = here
    for slug in ("c-0", "c-1"):
        append(data, [answered("GPT", ["X"], "2026-01-05T06:00:00Z", slug=slug)])
    for assistant in Files(data).scan().assistants:  # whose texts are there from earlier polls
        keep_instrument(data, assistant, None)
    replace_os(monkeypatch, FailingCalls("fsync", 1, errno.EIO))
    for _ in range(4):
        schedule._job("GPT")  # noqa: SLF001 - one job by hand
    why = "c-0.jsonl: an earlier write failed; restart after a disk check"
    assert [one["question"] for one in server.seen] == [f"What is the best c-{n}?" for n in (0, 1)]
    assert schedule.status().reasons[0] == f"Some of what is due is not asked: {why}."
    assert "cannot be written: Input/output error" in caplog.text


@pytest.mark.parametrize("name", ["site.json", "models.json"])
def test_nothing_is_polled_while_it_is_open_whom_to_ask_and_at_what_cost(
    here: Here, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """What is bad may not mean any more what it meant: one line says so, and mending it goes on."""
    schedule, data, server = here
    schedule._store.reload()  # noqa: SLF001 - what is known
    text = (data / name).read_text(encoding="utf-8")
    (data / name).write_text("{", encoding="utf-8")
    schedule.start()
    told = f"nothing is polled until this is mended: {name}:1:2: "
    until(lambda: told in caplog.text)
    schedule._job("GPT")  # noqa: SLF001 - one job by hand
    assert (server.seen, polls(data)) == ([], [])
    (data / name).write_text(text, encoding="utf-8")
    until(lambda: len(polls(data)) == 2)
    assert caplog.text.count(told) == 1


def test_a_machine_out_of_threads_is_waited_for(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is polled until one can be started, and health says so; then all goes on."""
    schedule, data, server = here
    start, used_up = threading.Thread.start, threading.Event()

    def start_if_there_are_threads(thread: threading.Thread) -> None:
        if used_up.is_set() and thread.name.startswith("ThreadPoolExecutor"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_if_there_are_threads)
    used_up.set()
    schedule.start()
    with monkeypatch.context() as patched:
        patched.setattr(schedule, "_late", 0.3)
        until(lambda: "The schedule does not run; restart the server." in schedule.status().reasons)
    assert not server.seen
    used_up.clear()
    until(lambda: len(polls(data)) == 2)
    until(lambda: schedule.status().reasons == ())


def test_a_fault_between_two_looks_ends_no_job(
    here: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody thought of is logged once; jobs go on at their pace, health says so meanwhile."""
    caplog.set_level("INFO")
    schedule, data, _ = here
    broken = threading.Event()
    broken.set()

    def look(_: object) -> None:
        if broken.is_set():
            raise ZeroDivisionError

    monkeypatch.setattr(schedule._closing, "close_past_days", look)  # noqa: SLF001 - what has a fault
    schedule.start()
    until(lambda: "ZeroDivisionError" in "".join(schedule.status().reasons))
    until(lambda: len(polls(data)) == 2)
    assert stands(schedule) == (True, True)
    broken.clear()
    until(lambda: schedule.status().reasons == ())
    assert caplog.text.count("this process polls on schedule") == 1
    assert caplog.text.count("Traceback") == 1


def test_an_assistant_that_left_is_polled_no_more(
    here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    """A job whose assistant left models.json is taken away; what was on its way is recorded."""
    caplog.set_level("INFO")
    schedule, data, server = here
    server.follow({"gpt": [{"gate": "shut", "status": 401}]})
    schedule.start()
    until(lambda: server.seen)
    replace_assistant(data)
    until(lambda: {poll.model for poll in polls(data)} == {"New"})
    server.gate("shut").set()
    until(lambda: {poll.model for poll in polls(data)} == {"GPT", "New"})
    until(lambda: not schedule.status().reasons)
    until(lambda: list(schedule.status().due) == ["New"])


def test_a_job_of_an_assistant_that_is_gone_does_nothing(here: Here) -> None:
    """A job that fires once more after its assistant left asks nobody; nor does one that stops."""
    schedule, data, server = here
    schedule._job("Gone")  # noqa: SLF001 - the race cannot be staged
    schedule._stop.set()  # noqa: SLF001 - likewise
    schedule._job("GPT")  # noqa: SLF001 - likewise
    assert not server.seen
    assert polls(data) == []


@pytest.mark.parametrize("before", ["callable", "default"])
def test_a_signal_stops_and_is_passed_on(
    here: Here, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """What the process would have done on the signal is still done, after the polls have ended."""
    schedule, _, _ = here
    told: list[int] = []
    old = signal.signal(
        signal.SIGUSR1,
        (lambda number, _: told.append(number)) if before == "callable" else signal.SIG_DFL,
    )
    try:
        schedule.stop_on(signal.SIGUSR1)
        monkeypatch.setattr(signal, "raise_signal", told.append)
        os.kill(os.getpid(), signal.SIGUSR1)
        until(lambda: told)
        assert told == [signal.SIGUSR1]
        assert schedule._stop.is_set()  # noqa: SLF001 - what was to happen
        assert before == "callable" or signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_a_round_is_spread_over_a_day(here: Here) -> None:
    """Each look polls no more than its share of a day: a few at a time, not everything at once."""
    schedule, data, server = here
    for asked in (1, 2, 2):
        schedule._job("GPT")  # noqa: SLF001 - one job by hand
        assert len(polls(data)) == len(server.seen) == asked


def test_a_clock_that_is_set_back_stops_no_job(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """By that clock all was looked after an hour from now; it goes on all the same."""
    schedule, data, _ = here
    schedule.start()
    until(lambda: schedule.status().polling)

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) - timedelta(hours=1)

    for module in (base, date):
        monkeypatch.setattr(module, "datetime", Earlier)
    category = {"version": 1, "title": "Best c-9", "question": "What is c-9?"}
    write_json(data / "categories/c-9.json", category)
    until(lambda: "c-9" in {poll.slug for poll in polls(data)})


def test_what_is_wrong_with_batches_is_told_from_the_second_turn_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line may fail once; a fault that lasts is the same with other ids in it, each logged."""
    status, faults = AssistantStatus("GPT"), []
    why = [f"A batch of GPT cannot be followed: (request {number})" for number in range(3)]
    for wrong in (why[:1], [], why[1:2], why[2:], []):
        status.take_in(Summary(wrong=wrong))
        faults.append(dict(status.faults))
    sentence = "A batch of GPT has a fault; see the log."
    assert faults == [{}, {}, {}, {why[2]: sentence}, {}]
    assert caplog.text.count("cannot be followed") == 3


def test_a_limit_is_a_state_and_not_a_fault(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is paused for it, once is told until when; a raised limit counts at the next tick."""
    schedule, data, server = here
    edit(data / "site.json", daily_usd=0.01)
    schedule.start()
    with caplog.at_level(logging.INFO, "store.polls"):
        until(lambda: "not asked on" in caplog.text)
        state = schedule.status()
        assert (state.reasons, state.pauses, server.seen) == ((), {}, [])
        edit(data / "site.json", daily_usd=5)
        until(lambda: len(polls(data)) == 2)
    told = [line for line in caplog.messages if line.startswith("GPT is ")]
    (line,) = told
    assert line.startswith("GPT is not asked on: daily_usd 0.01 of site.json is too small: ")


# ------------------------------------------------------------------ closed days

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Days that are over and not closed."""
    return small_data(tmp_path / "data")


def test_days_close_once_a_provider_confirmed_that_they_are_over(data: Path) -> None:
    """Nothing closes by this machine's clock alone, nor the day that a reply's Date is of."""
    closing, clock = DayClosing(data), Clock(lambda: NOON)
    closing.close_past_days(clock.confirmed)
    assert Proof(data).load().last_closed_day == ""
    clock.compare(NOON + timedelta(hours=13), NOON, "A")  # a reply dated tomorrow confirms nothing
    closing.close_past_days(clock.confirmed)
    assert Proof(data).load().last_closed_day == ""
    clock.compare(NOON + timedelta(minutes=9), NOON, "A")
    append(data, [answered("A", ["Product E"], "2026-11-20T06:00:00Z")])
    closing.close_past_days(clock.confirmed)
    assert Proof(data).load().last_closed_day == DAYS[-1]


def test_a_reply_that_is_minutes_ahead_closes_no_running_day() -> None:
    """Around midnight the earlier of both clocks counts."""
    midnight = datetime(2026, 11, 20, tzinfo=UTC)
    clock = Clock(lambda: midnight - timedelta(minutes=2))
    clock.compare(midnight + timedelta(minutes=3), midnight - timedelta(minutes=3), "A")
    assert clock.confirmed == midnight - timedelta(minutes=2)


def test_where_all_assistants_are_samples_this_machines_clock_is_believed(data: Path) -> None:
    """They have no clock to compare with."""
    clock = Clock(lambda: NOON)
    assert confirmed_time(clock, Files(data).scan()) == NOON


def test_a_ledger_that_is_damaged_or_in_the_way_is_told_until_it_is_mended(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log, in the schedule's reasons until then; without the directory's path."""
    closing, ledger = DayClosing(data), data / "proof/ledger.jsonl"
    ledger.write_bytes(b"{\n")
    for minutes in (0, 1, 10):
        closing.close_past_days(NOON + timedelta(minutes=minutes))
    reason = closing.reason or ""
    assert reason.startswith("No day is closed: proof/ledger.jsonl:1: ")
    assert caplog.messages.count(reason) == 1
    ledger.unlink()
    ledger.mkdir()
    closing.close_past_days(NOON)
    assert closing.reason == "No day is closed: proof/ledger.jsonl: it is not a regular file."
    ledger.rmdir()
    ledger.touch()
    closing.close_past_days(NOON)
    assert Proof(data).load().last_closed_day == DAYS[-1]
    assert not closing.reason


def test_a_closing_does_not_wait_for_a_copy(data: Path) -> None:
    """While restic holds the lock nothing closes, and polling goes on; afterwards it does."""
    closing, proof = DayClosing(data), Proof(data)
    with proof.locked(shared=True):
        closing.close_past_days(NOON)
    assert (closing.reason, proof.load().last_closed_day) == (None, "")
    closing.close_past_days(NOON)
    assert proof.load().last_closed_day == DAYS[-1]


def test_who_has_a_new_name_is_missed_only_without_the_former(
    here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    """Else all questions would be asked anew, and nobody would have said so."""
    schedule, data, _ = here
    schedule.start()
    until(lambda: len(polls(data)) == 2)
    file = json.loads((data / "models.json").read_text())
    for name, former in (("New", ["GPT"]), ("Newer", [])):
        file["models"][0] |= {"name": name, "former_names": former}
        (data / "models.json").write_text(json.dumps(file))
        until(lambda: list(schedule.status().due) == [name])  # noqa: B023 - at once
        assert ("no longer in models.json" in caplog.text) == (not former)
