"""What questions cost, and the budget: reserved before a question is sent, then settled.

Reserved before, because a process that is killed must not let the next one spend it again.
What a provider states is charged, however large; where nothing is known the reserve stays.
Amounts are whole micro-dollars: sums are exact.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.structs import replace

from store.disk import atomic_write, locked, make_folder
from store.polls.locks import DamagedFileError
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import MAX_SEARCHES, Reply, Tokens
from store.records import MOST_USD, Assistant

SPENDING_FILE = "spent.json"
MAX_COST_FACTOR = 2
"""The multiple of its reserve that an answer may cost before its assistant is paused."""
OUTPUT_LIMITS = frozenset({"max_tokens"} | {one.OUTPUT_LIMIT for one in WIRE_FORMATS.values()})
"""The members by which bodies limit the output; ``extra`` may set that of another server."""
BYTES_PER_TOKEN = 2
SEARCH_TOKENS = 10_000
"""Input tokens reserved for what one web search brings in."""
PRICES = ("usd_per_million_input", "usd_per_million_output", "usd_per_thousand_searches")
UNCOUNTED = "the provider counted no input tokens; the most that it may have cost is charged"
UNCOUNTED_SEARCHES = "the provider counted no searches; the most that they may have cost is charged"


def missing_prices(assistant: Assistant) -> list[str]:
    """Return the members of models.json without which the assistant's cost is unknown.

    Sample assistants cost nothing, and one that does not search needs no price of searches.
    """
    if assistant.api == "sample":
        return []
    needed = PRICES if assistant.web_search else PRICES[:2]
    return [member for member in needed if getattr(assistant, member) is None]


def at_most(assistant: Assistant, body: Mapping[str, Any]) -> Tokens:
    """Return the most that a request with this body is taken to use."""
    searches = MAX_SEARCHES if assistant.web_search else 0
    size = len(msgspec.json.encode(body))
    sent = math.ceil(size / BYTES_PER_TOKEN) + searches * SEARCH_TOKENS
    return Tokens(sent, max(_output_limits(body), default=assistant.max_output_tokens), searches)


def _output_limits(body: Mapping[str, Any]) -> Iterator[int]:
    """Yield every limit on the output that a request names."""
    for name, value in body.items():
        if isinstance(value, dict):
            yield from _output_limits(value)
        elif name in OUTPUT_LIMITS and isinstance(value, int):
            yield value


def usd(assistant: Assistant, tokens: Tokens) -> float | None:
    """Return what these tokens and searches cost in US dollars, to the micro-dollar, if known.

    Searches that nobody counted are taken for as many as may have been made.
    """
    if assistant.usd_per_million_input is None or assistant.usd_per_million_output is None:
        return None
    uncounted = MAX_SEARCHES if assistant.web_search else 0
    searches = uncounted if tokens.searches is UNSET else tokens.searches
    amount = (
        tokens.input * assistant.usd_per_million_input / 1e6
        + tokens.output * assistant.usd_per_million_output / 1e6
        + searches * (assistant.usd_per_thousand_searches or 0) / 1e3
    )
    return round(min(amount, MOST_USD), 6)


def micros(amount: float) -> int:
    """Return US dollars as whole micro-dollars, rounded up but for a float's last digits."""
    return math.ceil(round(min(amount, MOST_USD) * 1e6, 3))


def at_reduced_price(assistant: Assistant) -> Assistant:
    """Return the assistant with what its tokens cost in a batch, or in the flex tier."""
    prices = {member: getattr(assistant, member) for member in PRICES[:2]}
    factor = assistant.batch_price_factor
    return replace(assistant, **{m: price and price * factor for m, price in prices.items()})


def price_of(assistant: Assistant, reply: Reply) -> float | None:
    """Return what a reply cost; a tier is believed to be the cheap one only if the reply says so.

    OpenAI answers ``flex`` with ``default`` where it was answered, and billed, as any other.
    """
    if reply.tokens is None:
        return None
    is_cheap = assistant.tier == "flex" and reply.tier == "flex"
    return usd(at_reduced_price(assistant) if is_cheap else assistant, reply.tokens)


def check_cost(assistant: Assistant, reserved: int, reply: Reply) -> Reply:
    """Return the reply, noted if it cost more than the micro-dollars that were ``reserved``.

    One that cost over ``MAX_COST_FACTOR`` times as much is permanent: its assistant is paused,
    since every other may cost as much. A count of 0 input tokens is taken for no count at all.
    """
    if reply.tokens is None:
        return reply
    # every request has input, so that a count of 0 is not a count
    if reply.tokens.input == 0:
        return replace(reply, tokens=None, notes=(*reply.notes, UNCOUNTED))
    has_priced_searches = assistant.web_search and assistant.usd_per_thousand_searches
    if has_priced_searches and reply.tokens.searches is UNSET:
        reply = replace(reply, notes=(*reply.notes, UNCOUNTED_SEARCHES))
    spent = micros(price_of(assistant, reply) or 0)
    if spent <= reserved:
        return reply
    note = f"it cost {spent / 1e6:g} USD; {reserved / 1e6:g} USD were reserved"
    is_dear = spent > MAX_COST_FACTOR * reserved
    if is_dear:
        note += "; are the prices and limits in models.json right?"
    return replace(reply, notes=(*reply.notes, note), is_permanent=reply.is_permanent or is_dear)


class DaySpending(Struct, frozen=True):
    """The micro-dollars that were spent or reserved on a UTC day, by assistant."""

    day: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    micros: dict[str, Annotated[int, Meta(ge=0, le=10**18)]]


_DECODER = msgspec.json.Decoder(DaySpending)


def stored_spending(directory: Path, day: str) -> Counter[str]:
    """Return a day's micro-dollars by assistant, as the file has them; none if of another day.

    Raises:
        OSError: it cannot be read, or says something else.
    """
    try:
        stored = _DECODER.decode((directory / SPENDING_FILE).read_bytes())
    except FileNotFoundError:
        return Counter()
    except (ValueError, RecursionError):
        raise DamagedFileError(
            f".locks/{SPENDING_FILE} is damaged. Delete it, and what history has for today counts "
            "as spent; calls that brought no answer are not in that"
        ) from None
    return Counter(stored.micros if stored.day == day else {})


class Budget:
    """The money that may still be spent: by all processes in a UTC day, and by this run.

    ``parts`` are the assistants' shares of each limit, by name, so that none is asked at the cost
    of another; one without a share may use the whole. The day's sums stand in a file, changed under
    a lock, and count as no less than ``recorded(day)``: by assistant, what history has of a day and
    what open batches reserved. What a killed process had reserved stays taken that day.
    ``run_spent`` has the micro-dollars of what this run sent.

    Without ``daily_usd`` nothing is written; with it ``reserve``, ``available`` and ``reached``
    raise ``OSError`` where the sums cannot be used, so that nothing may be sent. ``settle`` never
    does, ``fault`` returns it as a sentence.
    """

    def __init__(
        self,
        directory: Path,
        today: Callable[[], str],
        recorded: Callable[[str], Counter[str]],
        daily_usd: float | None = None,
        run_usd: float | None = None,
    ) -> None:
        self.daily_usd, self.run_usd = daily_usd, run_usd
        self.run_spent: Counter[str] = Counter()
        self.parts: Mapping[str, float] = {}
        self._directory = directory
        self._today = today
        self._recorded = recorded
        self._mutex = threading.Lock()

    def reserve(self, amount: int, name: str = "") -> str | None:
        """Take so many micro-dollars for the assistant of this name.

        Returns the day of it, or ``None`` if it passes a limit.
        """
        with self._mutex, self._locked():
            if amount > self.available(name):
                return None
            today = self._today()
            self._write(self._spent(today)[name] + amount, name, today)
            self.run_spent[name] += amount  # last: what cannot be written down is not sent
            return today

    def settle(self, day: str, reserved: int, cost: int, name: str = "") -> None:
        """Replace what was reserved by the cost; it stays taken where that cannot be written.

        A reserve of another day went with that day, and its cost is charged today.
        """
        with self._mutex, suppress(OSError), self._locked():
            self.run_spent[name] += cost - reserved
            today = self._today()  # read once: midnight may come between two looks
            spent = self._spent(today)[name]
            self._write(spent + cost - (reserved if day == today else 0), name, today)

    def begin_day(self, name: str) -> None:
        """Have the day's first sum of an assistant hold what is reserved, before it is settled."""
        with self._mutex, suppress(OSError), self._locked():
            today = self._today()
            if name not in stored_spending(self._directory, today):
                self._write(0, name, today)

    def settle_batch(self, reserved: int, cost: int, name: str = "") -> None:
        """Replace what a batch reserved, which counted on every day while the batch was open.

        The cost of its answers is in history already, but not in the file's sum.
        """
        with self._mutex, suppress(OSError), self._locked():
            today = self._today()
            # a sum of today has it, whatever its day: none is written below what is recorded
            others = stored_spending(self._directory, today)[name] - reserved
            self._write(max(others, 0) + cost, name, today)

    def available(self, name: str = "") -> float:
        """Return how many micro-dollars an assistant may still take; infinity without a limit."""
        return min((most - spent for _, most, spent, _ in self._limits(name)), default=math.inf)

    def reached(self, amount: int, name: str = "") -> str | None:
        """Return in words which limit so many more micro-dollars would pass, if one."""
        limits = [*self._limits(name)]
        for limit, most, _, _ in limits:  # first, for no hour ends that
            if amount > most:
                return f"{limit} is too small: a question may cost {amount / 1e6:.4f} USD"
        for limit, most, spent, end in limits:
            if spent + amount > most:
                return f"{limit} is reached{end}"
        return None

    def usd_today(self) -> float:
        """Return what was spent or reserved today, in US dollars."""
        return self._spent(self._today()).total() / 1e6

    def fault(self) -> str | None:
        """Return why the sums cannot be kept, so that nothing can be asked; changes nothing."""
        if self.daily_usd is None:
            return None
        try:
            stored_spending(self._directory, self._today())
        except OSError as error:
            return f"daily_usd {self.daily_usd:g} of site.json cannot be kept: {error.strerror}."
        return None

    def _limits(self, name: str) -> Iterator[tuple[str, int, int, str]]:
        """Yield each limit on an assistant: in words, the most, what is spent of it, when it ends.

        Amounts are in micro-dollars. Every limit in money is one of these. An assistant that has
        reached one of its own should get no share of the others': ``PollSession.can_be_asked``.
        """
        limits = []
        if self.run_usd is not None:
            limits += [(f"--max-usd {self.run_usd:g}", self.run_usd, self.run_spent, "")]
        if self.daily_usd is not None:
            limit, end = f"daily_usd {self.daily_usd:g} of site.json", " until 00:00 UTC"
            limits += [(limit, self.daily_usd, self._spent(self._today()), end)]
        for limit, usd, spent, end in limits:
            yield limit, micros(usd), spent.total(), end
            share = micros(usd * self.parts.get(name, 1))
            yield f"its equal share of {limit}", share, spent[name], end

    def _locked(self) -> AbstractContextManager[object]:
        if self.daily_usd is None:
            return nullcontext()
        make_folder(self._directory)
        return locked(self._directory)

    def _spent(self, today: str) -> Counter[str]:
        if self.daily_usd is None:  # no sum is kept
            return self._recorded(today)
        # the larger of both: a file that was deleted, or restored, makes nothing unspent
        return stored_spending(self._directory, today) | self._recorded(today)

    def _write(self, amount: int, name: str, today: str) -> None:
        """Write an assistant's sum, at least what is recorded; those of others stay as they are.

        While a batch of theirs is collected, both its reserve and its answers are recorded.
        """
        if self.daily_usd is not None:
            amount = max(amount, self._recorded(today)[name])
            sums = DaySpending(today, {**stored_spending(self._directory, today), name: amount})
            atomic_write(self._directory / SPENDING_FILE, msgspec.json.encode(sums))


class Charge:
    """The cost of one question to an assistant: a reserve for each attempt, settled after it.

    ``amount`` is the most that the next attempt may cost. ``sent_at`` is when a request may first
    have left, by its sender's clock; ``unknown`` are the micro-dollars that stay taken for attempts
    whose cost nobody knows.
    """

    def __init__(self, budget: Budget, amount: int, name: str = "") -> None:
        self.amount = amount
        self._name = name
        self.sent_at: float | None = None
        self._budget = budget
        self.unknown = 0
        self._day: str | None = None

    def reserve(self) -> bool:
        """Take an attempt's highest cost; return whether it fits, or raise ``OSError``."""
        self._day = self._budget.reserve(self.amount, self._name)
        self.unknown += self.amount if self._day else 0
        return self._day is not None

    def reserve_again(self) -> bool:
        """Take it for a further attempt; that is not made where the sums cannot be kept now."""
        with suppress(OSError):
            return self.reserve()
        return False

    def settle(self, cost: int | None) -> None:
        """Charge the cost in micro-dollars; while it is unknown the reserve stays taken."""
        day, self._day = self._day, None
        if day is not None and cost is not None:
            self.unknown -= self.amount
            self._budget.settle(day, self.amount, cost, self._name)
