"""Money: what a poll may cost at most, what it did cost, and caps that are never exceeded.

What an attempt may cost is reserved before it is sent and settled when its tokens are counted; if
they are not, it stays. What a provider states is charged, however large. Amounts are whole
micro-dollars: sums are exact.
"""

from __future__ import annotations

import errno
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
from store.records import MOST_USD

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

TOLERATED = 2
"""Times what was reserved that an answer may cost before its assistant is paused."""

OUTPUT_LIMITS = frozenset(
    {"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"}
)
"""The members by which request bodies limit the output, whatever the API."""

BYTES_PER_TOKEN = 2
SEARCH_TOKENS = 10_000
"""Input tokens reserved for what one web search brings in."""


PRICES = ("usd_per_million_input", "usd_per_million_output", "usd_per_thousand_searches")


def missing_prices(assistant: Assistant) -> list[str]:
    """Return the members of models.json without which the assistant's cost is unknown.

    Sample assistants cost nothing, and one that does not search needs no price of searches.
    """
    if assistant.api == "sample":
        return []
    needed = PRICES if assistant.web_search else PRICES[:2]
    return [member for member in needed if getattr(assistant, member) is None]


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
        + tokens.searches * (assistant.usd_per_thousand_searches or 0) / 1e3
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

    day: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    micros: Annotated[int, Meta(ge=0, le=10**18)]


_DAYS = msgspec.json.Decoder(_Day)


class DamagedSumError(OSError):
    """The file of the day's sum is damaged: nobody knows what calls on their way may have cost."""

    def __init__(self) -> None:
        sentence = (
            f".locks/{SUM} is damaged. Delete it, and what history has for today counts as spent; "
            "calls that brought no answer are not in that"
        )
        super().__init__(errno.EIO, sentence)

    def __str__(self) -> str:
        return self.strerror or ""


SUM = "spent.json"


def stored_sum(locks: Path) -> _Day | None:
    """Return the sum in its file, of whatever day; ``None`` if there is none.

    Raises:
        DamagedSumError: the file is there and says something else.
        OSError: it cannot be read.
    """
    try:
        return _DAYS.decode((locks / SUM).read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise DamagedSumError from None


class DailyAccount:
    """What all processes on a data directory may spend in one UTC day.

    The sum stands in a file, changed under a lock, and is never taken to be less than what history
    has for the day (``spent_on``). What a killed process had reserved stays taken that day. While
    the file is damaged, nothing can be taken: :class:`DamagedSumError`.
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
            held = stored_sum(self._directory)
            if held and held.day == now.day:
                self._change(now, spent - reserved)

    def left(self) -> int:
        """What can still be taken today, in micro-dollars."""
        return max(self._cap - self._read().micros, 0)

    def taken(self) -> float:
        """What was spent or reserved today, in US dollars."""
        return self._read().micros / 1e6

    def fault(self) -> str | None:
        """Why the sum cannot be kept, so that nothing can be asked; looks and changes nothing."""
        for name, is_folder in ((".", True), ("spent.lock", False), (SUM, False)):
            path = self._directory / name
            if path.exists() and (path.is_dir() != is_folder or not os.access(path, os.W_OK)):
                return f"{self.name} cannot be kept, for {path.name} cannot be written."
        try:
            stored_sum(self._directory)
        except OSError as error:
            return f"{self.name} cannot be kept: {error.strerror}."
        return None

    def _locked(self) -> AbstractContextManager[bool]:
        return leased(self._directory / "spent.lock", wait=True)

    def _read(self) -> _Day:
        today, held = self._today(), stored_sum(self._directory)
        known = micros(self._spent_on(today))
        return _Day(today, max(held.micros if held and held.day == today else 0, known))

    def _change(self, now: _Day, by: int) -> None:
        self._write(_Day(now.day, max(now.micros + by, micros(self._spent_on(now.day)))))

    def _write(self, day: _Day) -> None:
        atomic_write(self._directory / SUM, msgspec.json.encode(day))


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


UNCOUNTED = "the provider counted no input tokens; the most that it may have cost is charged"


def checked(assistant: Assistant, most: Tokens, reply: Reply) -> Reply:
    """Return the reply with a note if it cost more than ``most``, what was reserved.

    One that cost over ``TOLERATED`` times as much is ``lasting``: its assistant is paused, since
    every other may cost as much. Counts without input are left out, as if there were none.
    """
    if reply.tokens is None:
        return reply
    if reply.tokens.input == 0:
        return msgspec.structs.replace(reply, tokens=None, notes=(*reply.notes, UNCOUNTED))
    spent, reserved = (micros(usd(assistant, each) or 0) for each in (reply.tokens, most))
    if spent <= reserved:
        return reply
    note = f"it cost {spent / 1e6:g} USD; {reserved / 1e6:g} USD were reserved"
    is_dear = spent > TOLERATED * reserved
    if is_dear:
        note += "; are the prices and limits in models.json right?"
    return msgspec.structs.replace(
        reply, notes=(*reply.notes, note), lasting=reply.lasting or is_dear
    )


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

    def checked(self, reply: Reply) -> Reply:
        """Return the reply with a note if it cost more than was reserved; see :func:`checked`."""
        return checked(self._assistant, self._most, reply)

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
