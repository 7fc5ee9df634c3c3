"""Money is reserved before sending and settled after it, and no cap is ever exceeded."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT, until

from store.polls.providers import Reply, Tokens
from store.polls.spending import (
    UNCOUNTED,
    Budget,
    DailyAccount,
    Meter,
    RunAccount,
    at_most,
    missing_prices,
    usd,
)
from store.records import MOST_USD, Assistant

if TYPE_CHECKING:
    from pathlib import Path


def assistant(**fields: Any) -> Assistant:
    """An assistant at 2 and 10 dollars a million tokens, 10 dollars a thousand searches."""
    prices = {
        "usd_per_million_input": 2.0,
        "usd_per_million_output": 10.0,
        "usd_per_thousand_searches": 10.0,
    }
    return Assistant(**{"name": "A", "api": "chat", **prices, **fields})


def test_the_most_a_request_may_use() -> None:
    """Body bytes over two, the whole output budget, and five searches with what they bring in."""
    body = {"text": "x" * 89}  # 100 bytes as JSON
    assert at_most(assistant(max_output_tokens=50), body) == Tokens(50, 50, 0)
    assert at_most(assistant(max_output_tokens=50), {"text": "x" * 90}).input == 51
    for extra in ({"max_tokens": 900}, {"generationConfig": {"maxOutputTokens": 900}}):
        assert at_most(assistant(max_output_tokens=50), extra).output == 900
    searching = assistant(max_output_tokens=50, web_search=True)
    assert at_most(searching, body) == Tokens(50_050, 50, 5)


def test_what_tokens_cost() -> None:
    """Input, output and searches each at their price, to the micro-dollar."""
    assert usd(assistant(), Tokens(700, 300)) == 0.0044
    assert usd(assistant(), Tokens(0, 0, 3)) == 0.03
    assert usd(assistant(), Tokens(1, 0)) == 0.000002
    assert usd(assistant(usd_per_million_input=0.1), Tokens(3, 0)) == 0.0
    for unknown in ("usd_per_million_input", "usd_per_million_output"):
        assert usd(assistant(**{unknown: None}), Tokens(1, 1)) is None


@pytest.mark.parametrize(
    ("member", "web_search"),
    [
        ("usd_per_million_input", False),
        ("usd_per_million_output", False),
        ("usd_per_thousand_searches", True),
    ],
)
def test_which_prices_are_missing(member: str, *, web_search: bool) -> None:
    """Both prices of tokens are needed, that of searches by who searches; samples cost nothing."""
    assert missing_prices(assistant(web_search=True)) == []
    assert missing_prices(assistant(**{member: None, "web_search": web_search})) == [member]
    assert missing_prices(assistant(**{member: None}, web_search=True)) == [member]
    assert missing_prices(assistant(usd_per_thousand_searches=None)) == []
    assert missing_prices(assistant(usd_per_thousand_searches=0, web_search=True)) == []
    assert missing_prices(Assistant(name="A", api="sample", web_search=True)) == []


def test_a_run_stops_before_its_cap() -> None:
    """What fits exactly is taken, a micro-dollar more is not."""
    account = RunAccount(0.000010)
    assert account.reserve(10) == "this run"
    assert account.reserve(1) is None
    account.settle("this run", 10, 4)
    assert account.spent == 4
    assert account.reserve(7) is None
    assert account.reserve(6) is not None
    assert account.name == "--max-usd 1e-05"


BODY: dict[str, Any] = {}
MOST = 1 * 2 + 100 * 10  # micro-dollars: {} is two bytes, one token


def meter(*accounts: RunAccount | DailyAccount) -> Meter:
    """A meter of a small request, which may cost ``MOST``."""
    return Meter(assistant(max_output_tokens=100), BODY, Budget(accounts))


def test_an_attempt_is_settled_by_its_tokens_or_kept_or_given_back() -> None:
    """Counted tokens replace the reservation; unknown cost keeps it; an error status frees it."""
    account = RunAccount(1)
    assert meter(account).reserve() is None
    assert account.spent == MOST
    for tokens, free, left in ((Tokens(1, 1), False, 12), (None, False, MOST), (None, True, 0)):
        account = RunAccount(1)
        one = meter(account)
        one.reserve()
        one.settle(tokens, free=free)
        assert account.spent == left


def test_all_accounts_or_none() -> None:
    """When one account is too low, the others get back what they gave, and it is named."""
    rich, poor = RunAccount(1), RunAccount(0.001)
    assert meter(rich, poor).reserve() == "--max-usd 0.001 leaves too little for another poll"
    assert (rich.spent, poor.spent) == (0, 0)
    one = meter(rich, poor)
    one.reserve()
    one.settle(None, free=False)
    assert rich.spent == 0, "an attempt that was not made is not settled"


def test_an_assistant_without_prices_reserves_nothing() -> None:
    """Without a cap nobody needs prices."""
    account = RunAccount(0)
    free = Meter(assistant(usd_per_million_input=None), BODY, Budget([account]))
    assert free.reserve() is None
    free.settle(Tokens(9, 9), free=False)
    assert account.spent == 0


def test_no_price_is_beyond_counting() -> None:
    """The highest price that can be written is a finite sum, which no usual cap covers."""
    dear = assistant(usd_per_million_input=1e308, usd_per_million_output=1e308)
    assert usd(dear, Tokens(10**9, 10**9)) == MOST_USD
    assert Meter(dear, BODY, Budget([RunAccount(1e6)])).reserve() is not None
    assert RunAccount(1e308).reserve(1) is not None


def counted(given: int, made: int, searches: int = 0) -> Reply:
    """What becomes of counts in the reply to a request that may use one token and 100."""
    reply = Reply(outcome="", tokens=Tokens(given, made, searches), notes=("as before",))
    return meter(RunAccount(1)).checked(reply)


def test_what_is_stated_is_charged_however_large() -> None:
    """More than was reserved is noted; over twice as much is the assistant's last for a while."""
    assert counted(1, 100).notes == ("as before",)
    over = "0.001002 USD were reserved"
    assert counted(2, 100).notes == ("as before", f"it cost 0.001004 USD; {over}")
    assert not counted(2, 200).lasting
    for read, made, searches, cost in (
        (3, 200, 0, "0.002006"),
        (1, 1001, 0, "0.010012"),
        (1, 1, 51, "0.510012"),
        (10**15, 10**15, 0, "1e+09"),
    ):
        reply = counted(read, made, searches)
        assert reply.tokens == Tokens(read, made, searches)
        assert reply.lasting
        why = f"it cost {cost} USD; {over}; are the prices and limits in models.json right?"
        assert reply.notes == ("as before", why)


def test_counts_without_input_are_none() -> None:
    """A request has input: what was reserved is charged, as where nothing is stated."""
    reply = counted(0, 7)
    assert (reply.tokens, reply.notes) == (None, ("as before", UNCOUNTED))
    silent = Reply(outcome="")
    assert meter(RunAccount(1)).checked(silent) is silent


class LineIndex(RunAccount):
    """An account that notes how much was asked of it."""

    def __init__(self, cap_usd: float) -> None:
        super().__init__(cap_usd)
        self.asked: list[int] = []

    def reserve(self, micros: int) -> str | None:
        """Take so much, and note it."""
        self.asked.append(micros)
        return super().reserve(micros)


def reserving(one: Meter) -> list[str | None]:
    """Where the outcome of a reservation will stand once its thread has it."""
    got: list[str | None] = []
    threading.Thread(target=lambda: got.append(one.reserve()), daemon=True).start()
    return got


def one_waits() -> tuple[LineIndex, Budget, Meter, list[str | None]]:
    """Room for one attempt, the one that has it, and what comes of another that waits."""
    account = LineIndex(1.5 * MOST / 1e6)
    budget = Budget([account])
    who = assistant(max_output_tokens=100)
    first = Meter(who, BODY, budget)
    assert first.reserve() is None
    got = reserving(Meter(who, BODY, budget))
    until(lambda: len(account.asked) == 2)
    return account, budget, first, got


@pytest.mark.parametrize(("tokens", "comes"), [(Tokens(1, 1), True), (None, False)])
def test_what_does_not_fit_waits_for_those_under_way(tokens: Tokens | None, *, comes: bool) -> None:
    """A reservation is far more than most attempts cost: while one is open, nothing is refused."""
    _, _, first, got = one_waits()
    assert not got
    first.settle(tokens, free=False)
    assert [why is None for why in until(lambda: got)] == [comes]


def test_nobody_overtakes_what_waits() -> None:
    """Else small attempts without end would keep a large one waiting."""
    account, budget, first, large = one_waits()
    small = reserving(Meter(assistant(max_output_tokens=1), BODY, budget))
    first.settle(None, free=False)
    until(lambda: large and small)
    assert account.asked == [MOST, MOST, MOST, 12]


def test_nobody_waits_for_an_attempt_that_failed_in_an_unknown_way() -> None:
    """It may have been paid, so it stays taken, and the next one is refused at once."""
    account = RunAccount(1.5 * MOST / 1e6)
    budget = Budget([account])
    who = assistant(max_output_tokens=100)
    with suppress(RuntimeError), Meter(who, BODY, budget):
        raise RuntimeError
    assert account.spent == MOST
    got = reserving(Meter(who, BODY, budget))
    assert until(lambda: got) != [None]


@given(
    cap=st.integers(0, 5_000),
    calls=st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), max_size=40),
)
def test_the_sum_never_exceeds_the_cap(cap: int, calls: list[tuple[int, bool, bool]]) -> None:
    """Whatever calls cost, up to what they may cost, reserved and settled sums stay below."""
    account = RunAccount(cap / 1e6)
    open_meters: list[Meter] = []
    for output, counted, together in calls:
        one = meter(account)
        if one.reserve() is not None:
            continue
        assert account.spent <= cap
        open_meters.append(one)
        if not together:
            for waiting in open_meters:
                waiting.settle(Tokens(1, output) if counted else None, free=False)
            open_meters.clear()
        assert account.spent <= cap


# ------------------------------------------------------------------ the day's sum


class Day:
    """A calendar for tests, and what history says was spent."""

    def __init__(self) -> None:
        self.today = "2026-11-21"
        self.spent = 0.0

    def account(self, directory: Path, cap: float = 0.001) -> DailyAccount:
        """An account over a directory."""
        return DailyAccount(cap, directory, lambda: self.today, lambda _: self.spent)


def test_the_day_is_shared_by_all_processes(tmp_path: Path) -> None:
    """Two accounts on one directory draw on one sum; settling gives back to both."""
    day = Day()
    one, two = day.account(tmp_path / "locks"), day.account(tmp_path / "locks")
    assert one.name == "daily_usd 0.001 of site.json"
    assert one.reserve(600) == "2026-11-21"
    assert two.reserve(600) is None
    assert two.reserve(400) is not None
    one.settle("2026-11-21", 600, 100)
    assert two.reserve(501) is None
    assert two.reserve(500) is not None


def test_a_new_day_starts_from_history(tmp_path: Path) -> None:
    """With no sum for the day, what history has for it counts."""
    day = Day()
    account = day.account(tmp_path)
    assert account.reserve(1000) is not None
    day.today, day.spent = "2026-11-22", 0.0004
    assert account.reserve(601) is None
    assert account.reserve(600) is not None


def test_settling_after_midnight_weighs_on_the_new_day(tmp_path: Path) -> None:
    """What was reserved yesterday frees nothing today, and what it cost counts today."""
    day = Day()
    account = day.account(tmp_path)
    taken = account.reserve(900)
    assert taken is not None
    day.today = "2026-11-22"
    account.settle(taken, 900, 300)
    assert account.reserve(701) is None
    assert account.reserve(700) is not None


def test_what_was_reserved_before_midnight_and_never_counted_stays_with_its_day(
    tmp_path: Path,
) -> None:
    """An attempt of unknown cost is paid from the day it was taken on, and from no other."""
    day = Day()
    account = day.account(tmp_path, cap=0.003)
    one = meter(account)
    assert one.reserve() is None
    day.today = "2026-11-22"
    one.settle(None, free=False)
    assert account.reserve(3000) is not None


@pytest.mark.parametrize(
    "found",
    [
        b"", b"{", b"[]", b'{"day": 5}', b'{"day": "\xff"}', b"[" * 9999,
        b'{"day": "2026-11-21", "micros": -1}',
        b'{"day": "2026-11-21", "micros": 1e9}',
        b'{"day": "2026-11-21", "micros": %s}' % (b"9" * 19),
        b'{"day": "2026-11-21", "micros": %s}' % (b"9" * 400),
        b'{"day": "", "micros": 5}',
    ],
)  # fmt: skip
def test_nothing_is_taken_from_a_damaged_sum(tmp_path: Path, found: bytes) -> None:
    """Nobody knows what was reserved: no poll is paid for until a person has deleted the file."""
    path = tmp_path / "locks" / "spent.json"
    path.parent.mkdir()
    path.write_bytes(found)
    day = Day()
    day.spent = 0.0009
    account = day.account(path.parent)
    why = meter(account).reserve()
    assert why is not None
    assert "cannot be kept: .locks/spent.json is damaged. Delete it, and what history" in why
    assert why in (account.fault() or "")
    assert path.read_bytes() == found
    path.unlink()
    assert account.fault() is None
    assert account.reserve(101) is None
    assert account.reserve(100) is not None


@pytest.mark.parametrize("day", ["2026-11-21", "2026-11-20"])
def test_a_sum_is_never_less_than_what_history_has(tmp_path: Path, day: str) -> None:
    """Though the file says that nothing was spent, or is of another day."""
    calendar = Day()
    calendar.spent = 0.0009
    (tmp_path / "spent.json").write_text(f'{{"day": "{day}", "micros": 0}}')
    account = calendar.account(tmp_path)
    assert account.reserve(101) is None
    assert account.reserve(100) is not None


def test_a_sum_that_vanished_gives_nothing_back_twice(tmp_path: Path) -> None:
    """What is settled was not reserved in a sum made anew, which is never less than history's."""
    day = Day()
    day.spent = 0.0005
    account = day.account(tmp_path)
    taken = account.reserve(400)
    assert taken is not None
    (tmp_path / "spent.json").unlink()
    account.settle(taken, 400, 0)
    assert account.reserve(501) is None
    assert account.reserve(500) is not None


def test_what_a_killed_process_had_reserved_stays_taken(tmp_path: Path) -> None:
    """Its calls may have been answered and billed: another process sees them as spent."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from store.polls.spending import DailyAccount\n"
        "account = DailyAccount(0.001, Path(sys.argv[1]), lambda: '2026-11-21', lambda _: 0)\n"
        "account.reserve(600)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, cwd=ROOT)
    account = Day().account(tmp_path)
    assert account.taken() == 0.0006
    assert account.reserve(401) is None


def test_threads_cannot_overdraw_the_day(tmp_path: Path) -> None:
    """Twenty threads that want all of it get exactly what there is."""
    day = Day()
    got: list[str] = []

    def take() -> None:
        account = day.account(tmp_path)
        got.extend(taken for _ in range(5) if (taken := account.reserve(30)))

    threads = [threading.Thread(target=take) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 33
