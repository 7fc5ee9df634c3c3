"""States of polling: what became of the polls of one category, assistant by assistant.

What is due, what is paused and what was spent follow from it; see :mod:`store.polls.due`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from operator import attrgetter
from typing import Self

from msgspec import UNSET, Struct

from store.records import MAX_SAMPLES, Category, Poll, ServedFailure
from store.text import rfc3339

FAILURES_AT_FIRST, OUTAGE_FAILURES = 3, 10
"""Failed polls in a row at which health is ``degraded``, of an assistant that never answered and
of any other (store/cli/README.md, Monitoring)."""

PUBLIC_REASONS: Mapping[ServedFailure | None, str] = {
    None: "an answer cost far more than was foreseen",
    "auth": "its key is refused",
    "quota": "its provider says that the money is spent",
    "rate_limited": "its provider asked to wait",
    "network": "its provider cannot be reached",
    "timeout": "its provider does not answer",
    "http": "its provider answers with errors",
}
"""Reasons of a pause in our own words, by the kind of failure."""
NOT_COUNTED: tuple[ServedFailure | None, ...] = ("interrupted", "withheld")
"""Failures that say nothing of an assistant, and count towards no pause."""
STATED = "its provider said how long to wait"
"""The note of a failure whose pause its provider has set."""
IN_A_ROW = "it is paused, for all its latest polls failed"
"""The note of a failure that called for a pause only because of those before it."""


class Pause(Struct, frozen=True):
    """A pause of an assistant: until when, and why, in a provider's words.

    ``stated`` if the provider itself set the time; ``kind`` is the failure's, if it was one;
    ``since`` the time of the poll that called for it, if one did.
    """

    until: datetime
    why: str
    stated: bool = False
    kind: ServedFailure | None = None
    since: datetime | None = None

    @property
    def public(self) -> "Pause":
        """The same in our own words, for anybody to read."""
        return Pause(
            self.until, PUBLIC_REASONS.get(self.kind, "its answers cannot be used"), self.stated
        )

    def __str__(self) -> str:
        """Return the end of a sentence on who is paused."""
        return f"until {rfc3339(self.until)}: {self.why}"


class PairState(Struct, frozen=True, gc=False):
    """One assistant's last poll in one category, and what came before it. Times are RFC 3339.

    ``failed_at`` are the times of the failures since the last answer, but for those
    ``NOT_COUNTED``. ``answer_times`` are those of the five newest answers, oldest first; the last
    ``answers_of_version`` of them are of one served model. ``sent_at`` is when the request for the
    newest answer was sent, if known. ``cooldown`` is the newest pause that a poll called for. On
    the UTC day of the last poll there were ``polls_that_day``, which cost ``usd_that_day``.
    ``polls`` counts all, ``successes`` the answers among them, the earliest at ``first_answer``.
    """

    polled_at: str
    failure: ServedFailure | None
    cooldown: Pause | None
    failed_at: tuple[str, ...]
    answer_times: tuple[str, ...]
    sent_at: datetime | None
    answers_of_version: int
    polls_that_day: int
    usd_that_day: float
    polls: int
    successes: int
    first_answer: str | None

    @property
    def answered_at(self) -> str | None:
        """The time of the newest success."""
        return self.answer_times[-1] if self.answer_times else None


class ScheduleStatus(Struct, frozen=True):
    """A schedule's own state, as anybody may read it.

    ``alive`` when it stands ready to poll, ``polling`` when it is the one of all processes that
    does; ``since`` is when it began. ``reasons`` say in sentences what needs a person, one for each
    pause among them. ``due`` is how many polls of each assistant were due when its job last ran; of
    it and of ``pauses`` only the process that polls knows.
    """

    alive: bool
    polling: bool
    since: str
    reasons: tuple[str, ...]
    pauses: Mapping[str, Pause] = {}
    due: Mapping[str, int] = {}


class CategoryStates(Struct, frozen=True):
    """The states of one category, by assistant; withheld polls are among them.

    ``current`` rests on polls of its present question alone, ``ever`` on all. ``latest_time`` is
    the latest that any poll bears, empty without polls; ``invented`` are of sample assistants.
    """

    current: Mapping[str, PairState] = {}
    ever: Mapping[str, PairState] = {}
    latest_time: str = ""
    invented: int = 0

    @classmethod
    def of(cls, polls: Sequence[Poll], category: Category) -> Self:
        """Return those after all polls, oldest first."""
        question, ever = category.question, poll_states(polls)
        asked_now = [poll for poll in polls if category.wording(poll.question) == question]
        return cls(
            # Nearly always all of them: then both are one object.
            current=ever if len(asked_now) == len(polls) else poll_states(asked_now),
            ever=ever,
            latest_time=max((poll.polled_at for poll in polls), default=""),
            invented=sum(poll.is_invented for poll in polls),
        )

    def asked_on(self, day: str, model: str) -> int:
        """Return how many polls an assistant had on the UTC day of its newest poll; else 0."""
        state = self.ever.get(model)
        return state.polls_that_day if state and state.polled_at[:10] == day else 0


def poll_states(polls: Iterable[Poll]) -> dict[str, PairState]:
    """Return where each assistant stands after these polls of one category, oldest first."""
    models: dict[str, list[Poll]] = {}
    for poll in polls:
        models.setdefault(poll.model, []).append(poll)
    return {model: _state(own) for model, own in models.items()}


def usd_on(day: str, categories: Iterable[Mapping[str, PairState]]) -> dict[str, float]:
    """Return what each assistant's polls cost in US dollars on a UTC day.

    Complete only for the newest day: a state has just the cost of its last poll's day. A poll whose
    cost is unknown counts as nothing.
    """
    usd: dict[str, float] = {}
    for states in categories:
        for model, state in states.items():
            if state.polled_at[:10] == day:
                usd[model] = usd.get(model, 0) + state.usd_that_day
    return usd


def recorded_pause(states: Sequence[PairState], now: datetime) -> Pause | None:
    """Return the longest pause of an assistant that its polls call for, by where each stands.

    An answer to a request that was sent after a pause had begun ends it, whoever asked.
    """
    sent_at = max((state.sent_at for state in states if state.sent_at), default=None)
    lasting = [
        pause
        for state in states
        if (pause := state.cooldown)
        and pause.until > now
        # times in records are cut to seconds: a pause began up to one later than it says
        and not (sent_at and pause.since and sent_at >= pause.since + timedelta(seconds=1))
    ]
    return max(lasting, key=attrgetter("until"), default=None)


def outage(
    answered: str | None, failed: Sequence[str], every_days: int, since: datetime, now: datetime
) -> str | None:
    """Return why an assistant needs a person, as the end of a sentence; ``None`` while it answers.

    ``answered`` is when it last did, ``failed`` when polls failed that no answer of the same
    category followed, ``since`` when polling began, for one that was never asked.
    """
    after = sorted(time for time in failed if time > (answered or ""))
    if answered is None and FAILURES_AT_FIRST <= len(after) < OUTAGE_FAILURES:
        return f"failed in all of its {len(after)} polls, since {after[0]}"
    if len(after) >= OUTAGE_FAILURES:
        return f"failed in its last {len(after)} polls, since {after[0]}"
    begun = answered or (after[0] if after else None)
    silent = now - (datetime.fromisoformat(begun) if begun else since)
    if silent > timedelta(days=2 * every_days):
        return f"has not answered for {silent.days} days"
    return None


def _state(polls: Sequence[Poll]) -> PairState:
    last = polls[-1]
    failures = list(takewhile(lambda poll: not poll.succeeded, reversed(polls)))  # in a row
    answers = list(islice((poll for poll in reversed(polls) if poll.succeeded), MAX_SAMPLES))
    version = takewhile(lambda poll: poll.served_model == answers[0].served_model, answers)
    that_day = [poll for poll in polls if poll.polled_at[:10] == last.polled_at[:10]]
    return PairState(
        polled_at=last.polled_at,
        failure=last.failure,
        cooldown=next(filter(None, map(cooldown, reversed(polls))), None),
        failed_at=tuple(p.polled_at for p in reversed(failures) if p.failure not in NOT_COUNTED),
        answer_times=tuple(poll.polled_at for poll in reversed(answers)),
        sent_at=_sent_at(answers[0]) if answers else None,
        answers_of_version=sum(1 for _ in version),
        polls_that_day=len(that_day),
        usd_that_day=sum(poll.usage.usd or 0 for poll in that_day if poll.usage),
        polls=len(polls),
        successes=sum(poll.succeeded for poll in polls),
        first_answer=min((poll.polled_at for poll in polls if poll.succeeded), default=None),
    )


def cooldown(poll: Poll) -> Pause | None:
    """Return the pause that a poll calls for; of a rate limit its provider set the end, too."""
    if poll.cooldown_until is UNSET:
        return None
    return Pause(
        until=datetime.fromisoformat(poll.cooldown_until),
        why=poll.error or "; ".join(poll.notes),  # a dear answer has a note of its cost
        stated=(poll.failure == "rate_limited" or STATED in poll.notes)
        and IN_A_ROW not in poll.notes,
        kind=poll.failure,
        since=datetime.fromisoformat(poll.polled_at),
    )


def _sent_at(poll: Poll) -> datetime | None:
    """Return when the request for an answer was sent; nobody knows it of a batch's."""
    if poll.latency_ms is None:
        return None
    return datetime.fromisoformat(poll.polled_at) - timedelta(milliseconds=poll.latency_ms)
