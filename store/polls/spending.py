"""Money: what a poll may cost at most, what it did cost, and caps that are never exceeded.

What an attempt may cost is reserved before it is sent and settled when its tokens are counted; if
they are not, or not believably, it stays. Amounts are whole micro-dollars: sums are exact.
"""

from __future__ import annotations

import math
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from store.disk import atomic_write
from store.polls.batches.files import Batches, with_reserves
from store.polls.leases import leased, locks_in
from store.polls.providers import MAX_SEARCHES, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from store.files import Catalogue
    from store.polls.clocks import Clock
    from store.polls.providers import Reply
    from store.records import Assistant
    from store.settings import Settings

MOST_USD = 1e9
"""No amount is more, whatever the prices, so that sums stay finite."""

BELIEVED = 10
"""A provider's counts are believed up to so many times what was reserved for them."""

OUTPUT_LIMITS = frozenset(
    {"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"}
)
"""The members by which request bodies limit the output, whatever the API."""

BYTES_PER_TOKEN = 2
SEARCH_TOKENS = 10_000
"""Input tokens reserved for what one web search brings in."""


def is_priced(assistant: Assistant) -> bool:
    """Whether the assistant's cost is known; sample assistants cost nothing."""
    prices = (assistant.usd_per_million_input, assistant.usd_per_million_output)
    return assistant.api == "sample" or None not in prices


def at_most(assistant: Assistant, body: Mapping[str, Any]) -> Tokens:
    """The most that a request with this body is taken to use, the full output budget included."""
    searches = MAX_SEARCHES if assistant.web_search else 0
    size = len(msgspec.json.encode(body))
    given = math.ceil(size / BYTES_PER_TOKEN) + searches * SEARCH_TOKENS
    return Tokens(given, max(_output_limits(body), default=assistant.max_output_tokens), searches)


def _output_limits(body: Mapping[str, Any]) -> Iterator[int]:
    """Every limit on the output that a request names; an operator's ``extra`` may set its own."""
    for name, value in body.items():
        if isinstance(value, dict):
            yield from _output_limits(value)
        elif name in OUTPUT_LIMITS and isinstance(value, int):
            yield value


def usd(assistant: Assistant, tokens: Tokens) -> float | None:
    """What these tokens and searches cost in US dollars, to the micro-dollar, if it is known."""
    if assistant.usd_per_million_input is None or assistant.usd_per_million_output is None:
        return None
    amount = (
        tokens.input * assistant.usd_per_million_input / 1e6
        + tokens.output * assistant.usd_per_million_output / 1e6
        + tokens.searches * assistant.usd_per_thousand_searches / 1e3
    )
    return round(min(amount, MOST_USD), 6)


class RunAccount:
    """What one run may spend, in memory; its :class:`Budget` lets one thread at a time use it."""

    def __init__(self, cap_usd: float) -> None:
        self.name = f"--max-usd {cap_usd:g}"
        self.spent = 0
        self._cap = micros(cap_usd)

    def reserve(self, micros: int) -> str | None:
        """Take so much and return when it was taken, or ``None`` if that would pass the cap."""
        if self.spent + micros > self._cap:
            return None
        self.spent += micros
        return "this run"

    def settle(self, taken: str, reserved: int, spent: int) -> None:  # noqa: ARG002 - one run only
        """Replace what was reserved by what was spent."""
        self.settle_batch(reserved, spent)

    def settle_batch(self, reserved: int, spent: int) -> None:
        """Replace what a batch had reserved by what it cost."""
        self.spent += spent - reserved

    def left(self) -> int:
        """What can still be taken, in micro-dollars."""
        return self._cap - self.spent


class _Day(Struct):
    """The file's content: a UTC date, and what was spent or reserved on it."""

    day: str
    micros: Annotated[int, Meta(ge=0, le=10**18)]


_DAYS = msgspec.json.Decoder(_Day)


class DailyAccount:
    """What all processes on a data directory may spend in one UTC day.

    The sum stands in a file, changed under a lock, and is never taken to be less than what history
    has for the day (``spent_on``). What a killed process had reserved stays taken that day.
    """

    def __init__(
        self,
        cap_usd: float,
        directory: Path,
        today: Callable[[], str],
        spent_on: Callable[[str], float],
    ) -> None:
        self.name = f"daily_usd {cap_usd:g} of site.json"
        self._cap = micros(cap_usd)
        self._directory = directory
        self._today = today
        self._spent_on = spent_on

    def reserve(self, micros: int) -> str | None:
        """Take so much and return the day it was taken, or ``None`` if that would pass the cap."""
        with self._locked():
            now = self._read()
            if now.micros + micros > self._cap:
                return None
            self._write(_Day(now.day, now.micros + micros))
            return now.day

    def settle(self, taken: str, reserved: int, spent: int) -> None:
        """Replace what was reserved by what was spent; after midnight it weighs on the new day."""
        with self._locked():
            now = self._read()
            self._change(now, spent - (reserved if taken == now.day else 0))

    def settle_batch(self, reserved: int, spent: int) -> None:
        """Replace what a batch had reserved, which it holds on each day, by what it cost.

        On a day without a file nothing was reserved yet, and ``spent_on`` knows all of it.
        """
        with self._locked():
            now = self._read()
            if self._held().day == now.day:
                self._change(now, spent - reserved)

    def left(self) -> int:
        """What can still be taken today, in micro-dollars."""
        return max(self._cap - self._read().micros, 0)

    def taken(self) -> float:
        """What was spent or reserved today, in US dollars."""
        return self._read().micros / 1e6

    def fault(self) -> str | None:
        """Why the sum cannot be kept, so that nothing can be asked; looks and changes nothing."""
        for name, is_folder in ((".", True), ("spent.lock", False), ("spent.json", False)):
            path = self._directory / name
            if path.exists() and (path.is_dir() != is_folder or not os.access(path, os.W_OK)):
                return f"{self.name} cannot be kept, for {path.name} cannot be written."
        return None

    def _locked(self) -> AbstractContextManager[bool]:
        return leased(self._directory / "spent.lock", wait=True)

    def _read(self) -> _Day:
        today, found = self._today(), self._held()
        known = micros(self._spent_on(today))
        return _Day(today, max(found.micros if found.day == today else 0, known))

    def _held(self) -> _Day:
        try:
            return _DAYS.decode((self._directory / "spent.json").read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return _Day("", 0)

    def _change(self, now: _Day, by: int) -> None:
        self._write(_Day(now.day, max(now.micros + by, micros(self._spent_on(now.day)))))

    def _write(self, day: _Day) -> None:
        atomic_write(self._directory / "spent.json", msgspec.json.encode(day))


Account = RunAccount | DailyAccount
"""A sum of money with a cap."""


def daily_account(
    settings: Settings, catalogue: Catalogue, usd_on: Callable[[str], float], clock: Clock
) -> list[DailyAccount]:
    """The account of site.json's ``daily_usd``, if it sets one; ``usd_on`` is what history says."""
    cap = catalogue.site.daily_usd
    if cap is None:
        return []
    spent_on = with_reserves(Batches(settings.data_dir), usd_on)
    return [DailyAccount(cap, locks_in(settings), lambda: clock.now().date().isoformat(), spent_on)]


class Budget:
    """The accounts that polls are paid from: an attempt from all of them, or it is not made.

    Most attempts cost a fraction of what is reserved. So where too little is left for another, it
    waits for those under way to be settled. Nobody overtakes it.
    """

    def __init__(self, accounts: Sequence[Account] = ()) -> None:
        self._accounts = accounts
        self._turn = threading.Lock()
        self._settled = threading.Condition()
        self._under_way = 0

    def reserve(self, micros: int) -> list[str] | str:
        """Take so much from every account and return when, or say which of them forbids it."""
        with self._turn, self._settled:
            while isinstance(taken := self._take(micros), str) and self._under_way:
                self._settled.wait()
            if not isinstance(taken, str):
                self._under_way += 1
            return taken

    def settle(self, taken: Sequence[str], reserved: int, spent: int) -> None:
        """Replace what was reserved by the cost; it stays taken where that cannot be written."""
        with self._settled:
            self._under_way -= 1
            self._settled.notify()
            if spent != reserved:
                self._replace(taken, reserved, spent)

    def _take(self, micros: int) -> list[str] | str:
        taken: list[str] = []
        for account in self._accounts:
            try:
                when = account.reserve(micros)
                why = f"{account.name} leaves too little for another poll"
            except OSError as error:
                when, why = None, f"{account.name} cannot be kept: {error.strerror}"
            if when is None:
                self._replace(taken, micros, 0)
                return why
            taken.append(when)
        return taken

    def _replace(self, taken: Sequence[str], reserved: int, spent: int) -> None:
        for account, when in zip(self._accounts, taken, strict=False):
            with suppress(OSError):
                account.settle(when, reserved, spent)


UNBELIEVABLE = "the provider's token counts cannot be true and were left out"


def believed(assistant: Assistant, most: Tokens, reply: Reply) -> Reply:
    """The reply without counts that nobody can believe; a note says so, or if it cost more."""
    if reply.tokens is None:
        return reply
    is_believable = (
        0 < reply.tokens.input <= BELIEVED * most.input
        and reply.tokens.output <= BELIEVED * most.output
        and reply.tokens.searches <= BELIEVED * max(most.searches, MAX_SEARCHES)
    )
    if not is_believable:
        return msgspec.structs.replace(reply, tokens=None, notes=(*reply.notes, UNBELIEVABLE))
    spent, reserved = (micros(usd(assistant, each) or 0) for each in (reply.tokens, most))
    if spent <= reserved:
        return reply
    note = f"it cost {spent / 1e6:g} USD; {reserved / 1e6:g} USD were reserved"
    return msgspec.structs.replace(reply, notes=(*reply.notes, note))


def at_batch_price(assistant: Assistant) -> Assistant:
    """The assistant with what its tokens cost in a batch."""
    given, made = assistant.usd_per_million_input, assistant.usd_per_million_output
    factor = assistant.batch_price_factor
    return msgspec.structs.replace(
        assistant,
        usd_per_million_input=None if given is None else given * factor,
        usd_per_million_output=None if made is None else made * factor,
    )


class Meter:
    """Reserves before each attempt of one request; as its context, settles what is left open."""

    def __init__(self, assistant: Assistant, body: Mapping[str, Any], budget: Budget) -> None:
        self._assistant = assistant
        self._budget = budget
        self._most = at_most(assistant, body)
        self._reserved = micros(usd(assistant, self._most) or 0)
        self._taken: list[str] | None = None

    def __enter__(self) -> str | None:
        return self.reserve()

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self.settle(None, free=failed is None)

    def reserve(self) -> str | None:
        """Take an attempt's highest cost from every account, or say which of them forbids it."""
        taken = self._budget.reserve(self._reserved)
        if isinstance(taken, str):
            return taken
        self._taken = taken
        return None

    def believed(self, reply: Reply) -> Reply:
        """The reply without counts that nobody can believe; see :func:`believed`."""
        return believed(self._assistant, self._most, reply)

    def settle(self, tokens: Tokens | None, *, free: bool) -> None:
        """Replace what was reserved by the cost, nothing if ``free``; unknown, it stays taken."""
        taken, self._taken = self._taken, None
        if taken is None:
            return
        spent = 0 if free else self._reserved
        if tokens is not None:
            spent = micros(usd(self._assistant, tokens) or 0)
        self._budget.settle(taken, self._reserved, spent)


def micros(amount: float) -> int:
    """Whole micro-dollars, rounded up unless the amount is whole but for a float's last digits."""
    return math.ceil(round(min(amount, MOST_USD) * 1e6, 3))
