"""Money is reserved before sending and settled after it, and no limit is ever passed."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT, at_once

from store.polls.locks import DamagedFileError
from store.polls.providers.wire import Reply, Tokens
from store.polls.spending import (
    UNCOUNTED,
    UNCOUNTED_SEARCHES,
    Budget,
    Charge,
    at_most,
    check_cost,
    missing_prices,
    price_of,
    usd,
)
from store.records import MOST_USD, Assistant


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
    dear = assistant(usd_per_million_input=1e308, usd_per_million_output=1e308)
    assert usd(dear, Tokens(10**9, 10**9)) == MOST_USD, "a finite sum, which no usual limit covers"
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


def test_the_flex_tier_is_cheap_only_where_the_reply_says_so() -> None:
    """OpenAI answers some such requests in its ordinary tier, and bills them so."""
    flex, tokens = assistant(tier="flex"), Tokens(1000, 100)
    for tier, cost in (("flex", 0.0015), ("default", 0.003), (None, 0.003)):
        assert price_of(flex, Reply(outcome="", tokens=tokens, tier=tier)) == cost
    assert price_of(assistant(), Reply(outcome="", tokens=tokens, tier="flex")) == 0.003


RESERVED = 1002


def counted(given: int, made: int, searches: int = 0) -> Reply:
    """A reply with these counts, checked against what was reserved."""
    reply = Reply(outcome="", tokens=Tokens(given, made, searches), notes=("as before",))
    return check_cost(assistant(max_output_tokens=100), RESERVED, reply)


def test_what_is_stated_is_charged_however_large() -> None:
    """More than was reserved is noted; over twice as much is the assistant's last for a while."""
    assert counted(1, 100).notes == ("as before",)
    over = "0.001002 USD were reserved"
    assert counted(2, 100).notes == ("as before", f"it cost 0.001004 USD; {over}")
    assert not counted(2, 200).is_permanent
    for read, made, searches, cost in (
        (3, 200, 0, "0.002006"),
        (1, 1001, 0, "0.010012"),
        (1, 1, 51, "0.510012"),
        (10**15, 10**15, 0, "1e+09"),
    ):
        reply = counted(read, made, searches)
        assert reply.is_permanent
        why = f"it cost {cost} USD; {over}; are the prices and limits in models.json right?"
        assert reply.notes == ("as before", why)
    uncounted = counted(0, 7)  # a request has input
    assert (uncounted.tokens, uncounted.notes) == (None, ("as before", UNCOUNTED))


def test_searches_that_nobody_counted_cost_the_most() -> None:
    """Five, as were reserved; the record says so. None were made by who may not search."""
    searching = assistant(web_search=True)
    assert usd(searching, Tokens(700, 300)) == usd(searching, Tokens(700, 300, 5)) == 0.0544
    assert usd(searching, Tokens(700, 300, 0)) == usd(assistant(), Tokens(700, 300)) == 0.0044
    uncounted = Reply(outcome="", tokens=Tokens(3, 2))
    free = assistant(web_search=True, usd_per_thousand_searches=0)
    for who, notes in ((searching, (UNCOUNTED_SEARCHES,)), (free, ()), (assistant(), ())):
        assert check_cost(who, 10**6, uncounted).notes == notes


class Day:
    """A calendar for tests, and what history says was spent."""

    def __init__(self) -> None:
        self.today = "2026-11-21"
        self.spent = 0

    def budget(
        self, directory: Path, usd: float | None = 0.001, run: float | None = None
    ) -> Budget:
        """A budget over a directory."""

        def recorded(_: str) -> Counter[str]:
            return Counter({"": self.spent})

        return Budget(directory, lambda: self.today, recorded, usd, run)


def test_a_run_stops_before_its_limit(tmp_path: Path) -> None:
    """What fits exactly is taken, a micro-dollar more is not; the day's sum has nothing of it."""
    budget = Day().budget(tmp_path, 1, 0.000010)
    day = budget.reserve(10)
    assert day
    assert budget.reserve(1) is None
    assert budget.reached(1) == "--max-usd 1e-05 is reached"
    budget.settle(day, 10, 4)
    assert budget.run_spent.total() == 4
    assert budget.reserve(7) is None
    assert budget.usd_today() == 0.000004
    budget.settle_batch(900, 5)
    assert budget.reserve(7) is None, "what an earlier run reserved is not this one's to spend"
    assert budget.reserve(6)


def test_midnight_begins_a_new_sum(tmp_path: Path) -> None:
    """What was reserved yesterday frees nothing today; what it cost, and history has, counts."""
    day = Day()
    budget = day.budget(tmp_path)
    assert budget.reserve(1000) == "2026-11-21"
    day.today, day.spent = "2026-11-22", 400
    budget.settle("2026-11-21", 1000, 300)
    assert budget.usd_today() == 0.0007
    assert budget.reserve(301) is None
    assert budget.reserve(300)


def test_a_batch_that_is_being_collected_is_counted_once(tmp_path: Path) -> None:
    """Its reserve and its first answers are recorded at once; others settle meanwhile."""
    recorded = Counter[str]()
    budget = Budget(tmp_path, lambda: "2026-11-21", lambda _: recorded, 1.0)
    assert budget.reserve(600, "A")
    recorded["A"] = 600 + 250  # half of its answers are in history, its file still there
    assert budget.reserve(100, "B")
    budget.settle("2026-11-21", 100, 50, "B")
    recorded["A"] = 500
    budget.settle_batch(600, 500, "A")
    assert budget.usd_today() == 0.00055


def test_a_batch_of_yesterday_costs_today(tmp_path: Path) -> None:
    """Its reserve went with that day; what nobody counted of it is in no history."""
    recorded = Counter(A=600)
    budget = Budget(tmp_path, lambda: "2026-11-22", lambda _: recorded, 1.0)
    assert budget.reserve(100, "A")
    recorded.clear()
    budget.settle_batch(600, 500, "A")
    assert budget.usd_today() == 0.0006


def test_the_day_is_shared_by_all_processes(tmp_path: Path) -> None:
    """Two ledgers on one directory draw on one sum; settling gives back to both."""
    day = Day()
    one, two = day.budget(tmp_path / "locks"), day.budget(tmp_path / "locks")
    assert one.reserve(600)
    assert two.reserve(600) is None
    assert two.reached(600) == "daily_usd 0.001 of site.json is reached until 00:00 UTC"
    assert two.reserve(400)
    one.settle(day.today, 600, 100)
    assert two.reserve(501) is None
    assert two.reserve(500) == day.today
    two.settle(day.today, 500, 5000)
    assert (one.usd_today(), one.reserve(1)) == (0.0055, None), "what is stated is charged"


def test_each_assistant_has_its_part_of_the_day(tmp_path: Path) -> None:
    """Who is asked sooner takes nothing of the others."""
    parts = {"A": 0.25, "B": 0.75}
    budget = Day().budget(tmp_path)
    budget.parts = parts
    assert budget.reserve(250, "A")
    assert budget.reserve(1, "A") is None
    share = "its equal share of daily_usd 0.001 of site.json"
    assert budget.reached(1, "A") == f"{share} is reached until 00:00 UTC"
    assert budget.available("B") == 750
    too_small = f"{share} is too small: a question may cost 0.0003 USD"
    new = Day().budget(tmp_path / "new")
    new.parts = parts
    assert new.reached(251, "A") == too_small
    assert budget.reserve(750, "B")
    assert budget.reached(251, "A") == too_small, "no hour ends that"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"day": 5}', b'{"day": "2026-11-21", "micros": {"A": -1}}',
     b'{"day": "2026-11-21", "micros": {"A": %s}}' % (b"9" * 400), b'{"day": "", "micros": {}}'],
)  # fmt: skip
def test_nothing_is_taken_from_a_damaged_sum(tmp_path: Path, content: bytes) -> None:
    """Nobody knows what was reserved: nothing is paid for until a person has deleted the file."""
    path = tmp_path / "spent.json"
    path.write_bytes(content)
    day = Day()
    day.spent = 900
    budget = day.budget(tmp_path)
    with pytest.raises(DamagedFileError, match=r"is damaged\. Delete it, and what history"):
        budget.reserve(1)
    assert "cannot be kept: .locks/spent.json is damaged." in (budget.fault() or "")
    assert path.read_bytes() == content
    without_limit = day.budget(tmp_path, usd=None)
    assert (without_limit.usd_today(), without_limit.fault()) == (0.0009, None)
    path.unlink()
    assert budget.fault() is None
    assert budget.reserve(101) is None
    assert budget.reserve(100)


def test_a_sum_written_is_never_less_than_what_history_has(tmp_path: Path) -> None:
    """Another process, which has not read history yet, goes by the file alone."""
    (tmp_path / "spent.json").write_text('{"day": "2026-11-21", "micros": {}}')
    day = Day()
    day.spent = 900
    day.budget(tmp_path).settle(day.today, 50, 0)
    assert Day().budget(tmp_path).reserve(101) is None
    assert Day().budget(tmp_path).reserve(100)


def test_a_sum_that_vanished_gives_nothing_back_twice(tmp_path: Path) -> None:
    """What is settled was not reserved in a sum made anew, which is never less than history's."""
    day = Day()
    day.spent = 500
    budget = day.budget(tmp_path)
    assert budget.reserve(400)
    (tmp_path / "spent.json").unlink()
    budget.settle(day.today, 400, 0)
    assert budget.reserve(501) is None
    assert budget.reserve(500)


def test_what_a_killed_process_had_reserved_stays_taken(tmp_path: Path) -> None:
    """Its calls may have been answered and billed: another process sees them as spent."""
    script = (
        "import os, signal, sys\n"
        "from collections import Counter\n"
        "from pathlib import Path\n"
        "from store.polls.spending import Budget\n"
        "Budget(Path(sys.argv[1]), lambda: '2026-11-21', lambda _: Counter(), 0.001).reserve(600)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, cwd=ROOT)
    budget = Day().budget(tmp_path)
    assert budget.usd_today() == 0.0006
    assert budget.reserve(401) is None


def test_threads_cannot_overdraw_the_day(tmp_path: Path) -> None:
    """Twenty threads that want all of it get exactly what there is."""
    day = Day()
    taken: list[object] = []

    def take() -> None:
        budget = day.budget(tmp_path)
        taken.extend(reserve for _ in range(5) if (reserve := budget.reserve(30)))

    at_once(*[take] * 20)
    assert len(taken) == 33


def test_a_charge_is_settled_kept_or_given_back() -> None:
    """A known cost replaces the reserve; an unknown one keeps it."""
    for cost, left in ((12, 12), (None, 100), (0, 0)):
        budget = Day().budget(Path("/nowhere"), None, 1)
        charge = Charge(budget, 100)
        assert charge.reserve()
        charge.settle(cost)
        charge.settle(0)
        assert budget.run_spent.total() == left


@given(
    limit=st.integers(0, 5_000),
    calls=st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=40),
)
def test_the_sum_never_passes_the_limit(limit: int, calls: list[tuple[int, bool]]) -> None:
    """Whatever calls cost, up to what they may cost, reserved and settled sums stay below."""
    budget = Day().budget(Path("/nowhere"), None, limit / 1e6)
    for cost, is_settled in calls:
        day = budget.reserve(100)
        assert budget.run_spent.total() <= limit
        if day and is_settled:
            budget.settle(day, 100, cost)
