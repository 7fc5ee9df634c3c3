"""How polling stands, from a category's polls."""

from datetime import UTC, datetime, timedelta

import pytest
from builders import answered, category, failed
from msgspec import structs

from store.rankings.poll_states import (
    CategoryStates,
    outage,
    poll_states,
    recorded_pause,
    usd_on,
)
from store.records import Poll, Usage

CATEGORY = category()
NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(hour: int, day: int = 2) -> str:
    """A time of November 2026."""
    return f"2026-11-{day:02}T{hour:02}:00:00Z"


def test_the_newest_five_answers_are_kept() -> None:
    """No round takes more; failures between them are none of them."""
    polls = [answered("A", ["X"], at(hour)) for hour in range(1, 7)]
    state = poll_states([*polls, failed("A", at=at(8)), answered("A", ["X"], at(9))])["A"]
    assert state.answer_times == (at(3), at(4), at(5), at(6), at(9))
    assert (state.answers_of_version, state.answered_at) == (5, at(9))


def test_failures_that_say_nothing_of_an_assistant_do_not_count() -> None:
    """What we interrupted, and answers that were withheld."""
    kinds = ("http", "interrupted", "withheld", "parse")
    polls = [failed("A", kind, at(hour)) for hour, kind in enumerate(kinds, 1)]
    assert poll_states(polls)["A"].failed_at == (at(1), at(4))


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (["v"], 1),
        (["v", "v", "w"], 1),
        (["v", "w", "w"], 2),
        (["w", "v", "w"], 1),
        ([None, None], 2),
        (["v", None], 1),
    ],
)
def test_answers_of_one_version_are_counted(served: list[str | None], expected: int) -> None:
    """Those in a row that the newest served model gave; an unnamed model is one, too."""
    polls = [answered("A", ["X"], at(n), served_model=name) for n, name in enumerate(served)]
    assert poll_states(polls)["A"].answers_of_version == expected
    assert poll_states([*polls, failed("A", at=at(9))])["A"].answers_of_version == expected


def test_polls_are_counted_by_utc_day() -> None:
    """Failed ones too, of whatever wording, and of the newest day alone."""
    polls = [answered("A", ["X"], at(5, day=1)), answered("A", ["X"], at(5)), failed("A", at=at(6))]
    other = answered("A", ["X"], at(7), question="Which was best?")
    states = CategoryStates.of([*polls, other], CATEGORY)
    asked = [states.asked_on(f"2026-11-0{day}", "A") for day in (1, 2, 3)]
    assert (asked, states.asked_on("2026-11-02", "B")) == ([0, 3, 0], 0)


def pause_at(hour: int, *polls: Poll) -> str | None:
    """The pause of an assistant after these polls at an hour of the same day."""
    states = [poll_states([poll for poll in polls if poll.slug == slug]) for slug in ("a", "b")]
    moment = datetime(2026, 11, 2, hour, tzinfo=UTC)
    pause = recorded_pause([state["A"] for state in states if "A" in state], moment)
    return str(pause) if pause else None


def test_only_a_later_requests_answer_ends_a_pause() -> None:
    """Neither another failure, nor what was on its way, nor a batch's answer, sent before."""
    begun = failed("A", "quota", at(1), slug="a", cooldown_until=at(7))
    said = f"until {at(7)}: It failed: quota."
    assert [pause_at(hour, begun) for hour in (1, 6, 7)] == [said, said, None]
    assert pause_at(6, begun, failed("A", "timeout", at(2), slug="a")) == said
    for slug, latency, after in (
        ("a", None, said),
        ("b", 3_600_000, said),
        ("b", 3_599_001, said),
        ("b", 3_599_000, None),
        ("a", 10, None),
    ):
        answer = structs.replace(answered("A", ["X"], at(2), slug=slug), latency_ms=latency)
        assert pause_at(6, begun, answer) == after, (slug, latency)
    again = failed("A", "auth", at(4), slug="b", cooldown_until=at(5))
    answer = structs.replace(answered("A", ["X"], at(3), slug="a"), latency_ms=10)
    assert pause_at(4, begun, answer, again) == f"until {at(5)}: It failed: auth."
    assert pause_at(4, begun, again) == said, "the longer one"


def test_an_answer_that_cost_far_too_much_pauses_by_its_note() -> None:
    """It is the answer itself that began the pause, and does not end it."""
    dear = answered("A", ["X"], at(1), slug="a", notes=("it cost 9 USD",), cooldown_until=at(7))
    assert pause_at(2, structs.replace(dear, latency_ms=10)) == f"until {at(7)}: it cost 9 USD"


def test_another_wording_is_asked_ever_but_not_presently() -> None:
    """Both views are one while there is one wording, or others that mean the same."""
    former = answered("A", ["X"], at(1), question="Which was best?")
    present = answered("B", ["X"], at(2))
    states = CategoryStates.of([former, present], CATEGORY)
    assert (set(states.current), set(states.ever)) == ({"B"}, {"A", "B"})
    same = structs.replace(CATEGORY, former_questions=("Which was best?",))
    states = CategoryStates.of([former, present], same)
    assert states.current is states.ever


def test_the_latest_time_is_not_always_the_last() -> None:
    """A clock that was wrong for a while leaves a later time before an earlier one."""
    polls = [answered("A", ["X"], at(1, day=9)), answered("A", ["X"], at(1))]
    assert CategoryStates.of(polls, CATEGORY).latest_time == at(1, day=9)
    assert CategoryStates.of([], CATEGORY) == CategoryStates()


def test_a_days_cost_is_that_of_all_its_polls() -> None:
    """On that UTC day only; what is not known counts as nothing."""

    def paid(model: str, usd: float | None, time: str) -> CategoryStates:
        return CategoryStates.of([answered(model, ["X"], time, usage=Usage(1, 1, usd))], CATEGORY)

    one = [answered("A", ["X"], at(h), usage=Usage(1, 1, 0.5)) for h in (1, 2)]
    before = answered("A", ["X"], at(1, day=1), usage=Usage(1, 1, 9))
    states = [
        CategoryStates.of([before, *one], CATEGORY),
        paid("B", 0.25, at(23)),
        paid("B", None, at(22)),
        paid("C", 4, at(1, day=1)),
    ]
    assert usd_on("2026-11-02", (category.ever for category in states)) == {"A": 1.0, "B": 0.25}


def ago(**ago: float) -> str:
    """A time before now, as history writes it."""
    return (NOW - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_three_failures_of_one_that_never_answered_are_an_outage() -> None:
    """It may never have been set up; one that has answered is given ten."""
    failures = [ago(hours=n) for n in (1, 2, 3)]
    told = f"failed in all of its 3 polls, since {ago(hours=3)}"
    assert outage(None, failures, 7, NOW, NOW) == told
    assert outage(None, failures[1:], 7, NOW, NOW) is None
    assert outage(ago(hours=4), failures, 7, NOW, NOW) is None
    ten = [ago(hours=n) for n in range(1, 11)]
    assert outage(ten[-1], ten, 7, NOW, NOW) is None, "one of the answer's own second is before it"


def test_silence_for_twice_the_interval_is_an_outage() -> None:
    """It is counted from the last answer, else from the first poll, else from the beginning."""
    since = NOW - timedelta(days=14) - SECOND
    assert outage(ago(days=14), (), 7, since, NOW) is None
    assert outage(ago(days=14, seconds=1), (), 7, NOW, NOW) == "has not answered for 14 days"
    assert outage(None, [ago(days=1), ago(days=14)], 7, since, NOW) is None
    assert outage(None, [ago(days=1), ago(days=15)], 7, NOW, NOW) == "has not answered for 15 days"
    assert outage(None, (), 7, since, NOW) == "has not answered for 14 days"
    assert outage(None, (), 7, since + SECOND, NOW) is None
