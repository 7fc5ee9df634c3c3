"""A data directory whose questions are asked in batches, and a clock that a test turns."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from builders import category

from store.counting import states_of
from store.files import Catalogue
from store.history import History
from store.polls.batches.files import Batches, under_way, with_reserves
from store.polls.batches.following import Followed, follow
from store.polls.batches.submitting import Submitted, submit
from store.polls.batches.work import BatchWork, ProviderLine
from store.polls.clocks import Clock
from store.polls.due import Pair, Rounds
from store.polls.leases import Leases
from store.polls.providers.batches.queues import QUEUES
from store.polls.runner import Dependencies
from store.polls.sending import Limits
from store.polls.spending import DailyAccount
from store.records import Assistant, Pick, Poll, Site
from store.times import rfc3339

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
APIS = (*QUEUES, "xai")

ROUNDS = Rounds(7)
STEPS = range(1, 30)
"""Files are put in place less often than that from sending to collecting."""


def apis_but(without: str) -> list[str]:
    """The formats but one, whose queue knows nothing of what a test is about."""
    return [api for api in APIS if api != without]


class Desk:
    """A data directory, the provider (here or far away), and a clock that a test turns."""

    def __init__(self, directory: Path, server: Any) -> None:
        (directory / "history").mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.server = server
        self.now = NOW
        self.cap = 1000.0
        self.stop = threading.Event()
        self._catalogue: Catalogue | None = None
        self.keys = iter(f"{n:016x}" for n in range(1, 100_000))

    def assistant(self, api: str = "responses", **fields: Any) -> Assistant:
        """An assistant that is asked in batches; xAI's host is reached through a proxy."""
        base: dict[str, Any] = {
            "name": api.title(),
            "api": "chat" if api == "xai" else api,
            "base_url": "http://api.x.ai/v1" if api == "xai" else f"{self.server.url}/v1",
            "model": api,
            "key_env": "KEY",
            "rpm": 1_000_000,
            "usd_per_million_input": 2.0,
            "usd_per_million_output": 10.0,
            "batch": True,
        }
        return Assistant(**{**base, **fields})

    def calls(
        self, count: int, api: str = "responses", times: int = 1, **fields: Any
    ) -> list[Pair]:
        """So many pairs, each so often."""
        assistant = self.assistant(api, **fields)
        pairs = [Pair(f"c-{n:02}", category(f"Best c-{n:02}"), assistant) for n in range(count)]
        return pairs * times

    def due(self, calls: list[Pair], times: int = 1) -> list[Pair]:
        """Those of the pairs that are due and in no batch, each so often."""
        asked, states = self.under_way(), self.work().polling.states_of
        due_at = Rounds(7, times).due_at
        return [
            pair
            for pair in calls
            if (pair.slug, pair.assistant.name) not in asked
            and due_at(states(pair.slug).present.get(pair.assistant.name)) <= self.now
        ] * times

    def work(self, **more: Any) -> BatchWork:
        """What work on batches touches, as a process that was just started has it."""
        history, files = History(self.directory / "history"), Batches(self.directory)
        account = DailyAccount(
            self.cap,
            self.directory / ".locks",
            lambda: self.now.date().isoformat(),
            with_reserves(files, self.spent_on),
        )
        polling: dict[str, Any] = {
            "record": history.append,
            "check_appendable": history.check_appendable,
            "states_of": lambda slug: states_of(history, slug, self.catalogue(), self.now),
            "leases": Leases(self.directory / ".locks"),
            "secret": {"KEY": "sk-canary-7e0f9c"}.get,
            "stop": self.stop,
            "clock": Clock(lambda: self.now),
            "accounts": [account],
            "proxy": self.server.url,
            "limits": Limits(total=20),
        }
        deps = Dependencies(**{**polling, **more})
        return BatchWork(
            files=files,
            polling=deps,
            history=history,
            new_key=lambda: next(self.keys),
        )

    def spent_on(self, day: str) -> float:
        """What history says that a day cost."""
        on = (p for p in self.polls() if p.polled_at[:10] == day)
        return sum(p.usage.usd or 0 for p in on if p.usage)

    def submit(
        self, calls: list[Pair], most: int = 200, rounds: Rounds | None = None, **more: Any
    ) -> Submitted:
        """Send a batch."""
        work = self.work(**more)
        line = ProviderLine(calls[0].assistant, work.polling)
        return submit(calls, most, work, line, rounds or ROUNDS)

    def follow(self, api: str = "responses", **more: Any) -> Followed:
        """Look after an assistant's batches."""
        return follow(api.title(), self.work(**more))

    def later(self, **passed: float) -> None:
        """Turn the clock."""
        self.now += timedelta(**passed)

    def polls(self) -> list[Poll]:
        """Every poll in history."""
        history = History(self.directory / "history")
        logs = [history.read(slug) for slug in sorted(history.signatures())]
        return [stored.poll for log in logs for stored in log.polls]

    def under_way(self) -> frozenset[tuple[str, str]]:
        """The pairs that batches ask."""
        return under_way(Batches(self.directory).all(), self.catalogue())

    def catalogue(self) -> Catalogue:
        """The categories that are asked about, those of a full disk too."""
        if self._catalogue:
            return self._catalogue
        slugs = [f"c-{n:02}{end}" for n in range(60) for end in ("", *(f"-{x}" for x in STEPS))]
        categories = {slug: category(f"Best {slug[:4]}") for slug in slugs}
        site = Site(version=1, name="Site")
        self._catalogue = Catalogue(site, (), categories, {}, {}, (), (), {}, frozenset(), ())
        return self._catalogue

    def taken(self) -> float:
        """What the day's cap counts as spent or reserved, in US dollars."""
        (account,) = self.work().polling.accounts
        assert isinstance(account, DailyAccount)
        return account.taken()

    def states(self) -> list[str]:
        """How every batch stands."""
        return [batch.state for batch in Batches(self.directory).all()]

    def bills(self) -> Counter[tuple[str, str]]:
        """How often each model was paid for each question."""
        return Counter((model, question) for model, question, _ in self.server.book["bills"])


def poll_of(pair: Pair, at: datetime) -> Poll:
    """An answer of a pair."""
    pick = Pick(1, "Alpha", None, None, ())
    question = pair.category.question
    model, slug = pair.assistant.name, pair.slug
    time = rfc3339(at)
    return Poll(
        slug=slug, model=model, question=question, pick="Alpha", ranking=(pick,), polled_at=time
    )
