"""The budget: what a question may cost is reserved before it is sent, then settled.

Reserved before, because a process that is killed must not let the next one spend it again.
What a provider states is charged, however large; where nothing is known the reserve stays.
Amounts are whole micro-dollars: sums are exact.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from store.disk import atomic_write, locked
from store.polls.locks import DamagedFileError
from store.polls.prices import micros

SUM = "spent.json"
SHARE_IS_USED = "its equal share of {} pays for no further question"


class Sum(Struct, frozen=True):
    """All micro-dollars that were spent or reserved on a UTC day."""

    day: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    micros: Annotated[int, Meta(ge=0, le=10**18)]


_SUMS = msgspec.json.Decoder(Sum)


def stored_sum(directory: Path, day: str) -> int:
    """Return a day's micro-dollars as they stand in the file; 0 if it has none of that day.

    Raises:
        OSError: it cannot be read, or says something else.
    """
    try:
        stored = _SUMS.decode((directory / SUM).read_bytes())
    except FileNotFoundError:
        return 0
    except (ValueError, RecursionError):
        raise DamagedFileError(
            f".locks/{SUM} is damaged. Delete it, and what history has for today counts as spent; "
            "calls that brought no answer are not in that"
        ) from None
    return stored.micros if stored.day == day else 0


class Budget:
    """The money that may still be spent: by all processes in a UTC day, and by this run.

    The day's sum stands in a file, changed under a lock, and is never taken to be less than what
    is ``recorded`` of a day: in history, and reserved by open batches. What a killed process had
    reserved stays taken that day. ``run_spent`` has the micro-dollars of what this run sent, by
    assistant; ``part`` returns which part of ``run_usd`` an assistant may take.

    Without ``daily_usd`` nothing is written; with it ``reserve``, ``available`` and ``reached``
    raise ``OSError`` where the sum cannot be used, so that nothing may be sent. ``settle`` never
    does, ``fault`` returns it as a sentence.
    """

    def __init__(
        self,
        directory: Path,
        today: Callable[[], str],
        recorded: Callable[[str], float],
        daily_usd: float | None = None,
        run_usd: float | None = None,
        part: Callable[[str], float] = lambda _: 1,
    ) -> None:
        self.daily_usd, self.run_usd = daily_usd, run_usd
        self.run_spent: Counter[str] = Counter()
        self._part = part
        self._directory = directory
        self._today = today
        self._recorded = recorded
        self._mutex = threading.Lock()

    def reserve(self, amount: int, name: str = "") -> str | None:
        """Take so many micro-dollars for the assistant of this name.

        Returns the day of it, or ``None`` if it passes a limit.
        """
        with self._mutex, self._locked():
            if self.reached(amount, name):
                return None
            self.run_spent[name] += amount
            return self._add(amount, self._today())

    def settle(self, day: str, reserved: int, cost: int, name: str = "") -> None:
        """Replace what was reserved by the cost; it stays taken where that cannot be written.

        A reserve of another day went with that day, and its cost is charged today.
        """
        with self._mutex, suppress(OSError), self._locked():
            self.run_spent[name] += cost - reserved
            today = self._today()  # read once: midnight may come between two looks
            self._add(cost - (reserved if day == today else 0), today)

    def settle_batch(self, reserved: int, cost: int) -> None:
        """Replace what an earlier run reserved for a batch; until then it weighs on every day."""
        with self._mutex, suppress(OSError), self._locked():
            self._add(cost - reserved, self._today())

    def available(self) -> float:
        """Return how many micro-dollars may still be taken; infinity without a limit."""
        day, run = self.daily_usd, self.run_usd
        of_day = math.inf if day is None else micros(day) - self._spent(self._today())
        return min(of_day, math.inf if run is None else micros(run) - self.run_spent.total())

    def share(self, name: str) -> float:
        """Return how many micro-dollars an assistant may still take of the run."""
        if self.run_usd is None or not name:
            return math.inf
        return micros(self.run_usd * self._part(name)) - self.run_spent[name]

    def reached(self, amount: int, name: str = "") -> str | None:
        """Return the limit that so many more micro-dollars would pass, as a state in words."""
        if amount <= self.available():
            is_paid = amount <= self.share(name)
            return None if is_paid else SHARE_IS_USED.format(f"--max-usd {self.run_usd:g}")
        usd, limit, end = self.daily_usd or 0, "daily_usd {:g} of site.json", " until 00:00 UTC"
        if self.run_usd is not None and self.run_spent.total() + amount > micros(self.run_usd):
            usd, limit, end = self.run_usd, "--max-usd {:g}", ""
        if amount > micros(usd):
            end = f": a question may cost {amount / 1e6:.4f} USD"
        return f"{limit.format(usd)} is {'too small' if amount > micros(usd) else 'reached'}{end}"

    def usd_today(self) -> float:
        """Return what was spent or reserved today, in US dollars."""
        return self._spent(self._today()) / 1e6

    def fault(self) -> str | None:
        """Return why the sum cannot be kept, so that nothing can be asked; changes nothing."""
        if self.daily_usd is None:
            return None
        try:
            stored_sum(self._directory, self._today())
        except OSError as error:
            return f"daily_usd {self.daily_usd:g} of site.json cannot be kept: {error.strerror}."
        return None

    def _locked(self) -> AbstractContextManager[object]:
        if self.daily_usd is None:
            return nullcontext()
        self._directory.mkdir(exist_ok=True)
        return locked(self._directory)

    def _spent(self, today: str) -> int:
        # a file that was deleted, or is of a restored backup, makes nothing unspent
        return max(stored_sum(self._directory, today), micros(self._recorded(today)))

    def _add(self, amount: int, today: str) -> str:
        """Change the day's sum by so much, but never below what is recorded; return the day."""
        if self.daily_usd is not None:
            total = max(self._spent(today) + amount, micros(self._recorded(today)))
            atomic_write(self._directory / SUM, msgspec.json.encode(Sum(today, total)))
        return today


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

    def settle(self, cost: int | None) -> None:
        """Charge the cost in micro-dollars; unknown, what was reserved stays taken."""
        day, self._day = self._day, None
        if day is not None and cost is not None:
            self.unknown -= self.amount
            self._budget.settle(day, self.amount, cost, self._name)
