"""A data directory of real assistants, and turns taken with them at a time of the test's choice."""

import threading
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from builders import category
from processes import write_real
from replaying import Replaying, Step

from store.files import Files
from store.history import History
from store.polls.asking import ask, estimate_reserve, keep_instrument, poll_of
from store.polls.batch_files import Batch, BatchFiles
from store.polls.batches import AssistantBatches, follow_batches
from store.polls.clocks import Clock
from store.polls.due import Pair, PollingReader
from store.polls.poller import Plan, take_turn
from store.polls.sending import Limits, Sender
from store.polls.session import PollSession, Summary
from store.polls.spending import Budget, Charge
from store.records import Assistant, Poll
from store.settings import Settings
from store.store import append

CANARY = "sk-canary-4f1d9a"
NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
ONCE = Limits(attempts=1)


def budget(run_usd: float | None = None) -> Budget:
    """The ledger of one run, with a limit or without."""
    return Budget(Path(), lambda: "2026-11-24", lambda _: Counter(), run_usd=run_usd)


class Outcome(NamedTuple):
    """A poll, and the seconds for which it has its assistant paused."""

    poll: Poll
    pause: float | None


def asked(
    server: Replaying,
    *steps: Step,
    account: Budget | None = None,
    limits: Limits = ONCE,
    clock: Clock | None = None,
    **fields: Any,
) -> Outcome:
    """One question to an assistant whose provider follows these steps."""
    server.follow({"m": list(steps)})
    server.seen.clear()
    priced = {"usd_per_million_input": 2.0, "usd_per_million_output": 10.0}
    base = {"name": "A", "api": "chat", "base_url": f"{server.url}/v1", "model": "m", "rpm": 10**6}
    who = Assistant(**{**base, **priced, **fields})
    sender = Sender(who, threading.Event(), secret=CANARY, limits=limits, clock=clock)
    pair = Pair("crm-software", category(), who)
    charge = Charge(account or budget(), estimate_reserve(who, pair.category.question))
    assert charge.reserve()
    reply = ask(pair, sender, charge)
    assert reply
    return Outcome(poll_of(who, pair.slug, pair.category.question, reply, CANARY), reply.pause)


class PollingWorld:
    """Where tests take turns; ``now`` is the time, moved by ``later``."""

    def __init__(self, directory: Path, url: str, count: int = 3, **fields: Any) -> None:
        self.slugs = [f"c-{n:03}" for n in range(count)]
        self.directory = directory
        write_real(directory, url, self.slugs, **fields)
        self.now = NOW
        self.limits = ONCE
        self.stop = threading.Event()
        self.files = BatchFiles(directory)

    def later(self, **passed: float) -> None:
        """Let time pass."""
        self.now += timedelta(**passed)

    def session(self, run_usd: float | None = None) -> PollSession:
        """What polling touches, afresh as in a new process."""
        catalogue = Files(self.directory).scan()
        clock = Clock(lambda: self.now)
        history = History(self.directory / "history")
        environ = {"POLL_TEST_KEY": CANARY}
        settings = Settings(data_dir=self.directory, environ=environ)
        record = partial(append, history, catalogue)
        session = PollSession(
            settings, catalogue, PollingReader(history, clock), record, self.stop, run_usd
        )
        session.limits = self.limits
        return session

    def pairs(self, session: PollSession, name: str, *slugs: str) -> deque[Pair]:
        """An assistant's pairs of these categories, or of all."""
        who = next(each for each in session.catalogue.assistants if each.name == name)
        return deque(
            Pair(slug, session.catalogue.categories[slug], who) for slug in slugs or self.slugs
        )

    def ask(self, name: str = "GPT", *slugs: str, **fields: Any) -> Summary:
        """Ask an assistant about these categories, or about all."""
        session = self.session(fields.pop("run_usd", None))
        plan = Plan(waiting=self.pairs(session, name, *slugs), **fields)
        summary = Summary()
        assert take_turn(session, name, plan, summary)
        return summary

    def due(self, name: str = "GPT", **fields: Any) -> Summary:
        """Take a turn for what is due of an assistant."""
        session = self.session(fields.pop("run_usd", None))
        state = session.polling.read(session.catalogue)
        session.share_among(session.catalogue.assistants, state, session.clock.now())
        plan = Plan(**{"most": 1000, **fields})
        summary = Summary()
        assert take_turn(session, name, plan, summary)
        return summary

    def begin(self, name: str, *slugs: str) -> Summary:
        """Send these questions, or all, in one batch, but those that are in another."""
        session = self.session()
        session.polling.read(session.catalogue)
        under_way = self.files.under_way(session.catalogue)
        free = [pair for pair in self.pairs(session, name, *slugs) if pair.key not in under_way]
        summary = Summary()
        if free:
            instrument = keep_instrument(self.directory, free[0].assistant, CANARY)
            AssistantBatches(session, free[0].assistant, summary).send(free, instrument)
        return summary

    def follow(self, name: str, *, cancel: bool = False) -> Summary:
        """Look after all batches of an assistant."""
        session = self.session()
        session.polling.read(session.catalogue)
        summary = Summary()
        follow_batches(session, name, summary, cancel=cancel)
        return summary

    def polls(self, name: str | None = None) -> list[Poll]:
        """Every record, category by category."""
        history = History(self.directory / "history")
        logs = (history.read(slug) for slug in self.slugs)
        polls = [stored.poll for log in logs for stored in log.polls]
        return [poll for poll in polls if name in (None, poll.model)]

    def batches(self) -> list[Batch]:
        """Every batch, oldest first."""
        return self.files.all()

    def spent(self) -> float:
        """What the ledger has for today, in US dollars."""
        session = self.session()
        session.polling.read(session.catalogue)
        return session.budget.usd_today()
