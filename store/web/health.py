"""``/healthz``: where the operator looks. The one answer that depends on the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from store.counting import doubt_clock, latest_time
from store.publishing import manifest
from store.rankings.poll_states import PollState, ScheduleState, outage, usd_on
from store.records import Problem, Severity
from store.search.meaning import VECTORS
from store.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from store.ledger import Present
    from store.search.meaning import Meaning
    from store.snapshot import Snapshot
    from store.store import Store

UNSEEN_AFTER = 60
"""Seconds without a look at the files after which what is served may be old."""

SHOWN = 100
"""Problems that are listed."""

QUOTED = 3
"""Errors that the reason itself names: a further one is then another reason."""


class ScheduleHealth(Struct, frozen=True):
    """Whether this process stands ready to poll, is the one that does, and since when."""

    alive: bool
    polling: bool
    since: str


class PauseHealth(Struct, frozen=True):
    """Until when an assistant is left alone, and why."""

    until: str
    why: str


class AssistantHealth(Struct, frozen=True, rename="camel"):
    """When a configured assistant was last asked, and when it last answered; times of history.

    ``answer_age`` is the seconds since then, ``failures`` the polls that failed since, ``failure``
    the kind of the last one. ``paused`` and ``due`` (polls) are null where this process does not
    poll.
    """

    name: str
    last_poll: str | None
    last_answer: str | None
    answer_age: int | None
    failures: int
    failure: str | None
    paused: PauseHealth | None
    due: int | None


class Spending(Struct, frozen=True, rename="camel"):
    """What the polls of the running UTC day cost, and site.json's ``daily_usd``."""

    usd_today: float
    cap_usd: float | None


class Damage(Struct, frozen=True):
    """History files with records that cannot be read, and how many such records there are."""

    files: int
    records: int


class Health(Struct, frozen=True, rename="camel"):
    """Whether the service is what its files say; ``degraded`` still serves the last good state.

    ``reasons`` say why it is degraded. In seconds: ``snapshot_age`` since what is served was made,
    ``looked_ago`` since the files were looked at, ``export_age`` since ``flask export`` published
    them. ``problems`` are the first hundred of ``problem_count``, as ``file:line:column: message``.
    ``scheduler`` is null where this process has none. ``history`` has the root over all lines, for
    anybody to keep.
    """

    status: str
    reasons: tuple[str, ...]
    categories: int
    ranked: int
    polls: int
    last_poll: str | None
    snapshot_age: int
    looked_ago: int
    assistants: tuple[AssistantHealth, ...]
    spending: Spending
    export_age: int | None
    damage: Damage
    problem_count: int
    problems: tuple[str, ...]
    scheduler: ScheduleHealth | None
    history: Present

    @property
    def is_well(self) -> bool:
        """Whether nothing needs a person."""
        return not self.reasons


def examine(
    store: Store,
    now: float,
    schedule: Callable[[], ScheduleState] | None,
    meaning: Meaning | None = None,
) -> Health:
    """The health of a store at ``now``, in Unix seconds."""
    snapshot, time = store.snapshot, datetime.fromtimestamp(now, UTC)
    dataset = manifest.problems(store.directory)
    problems = [*store.problems, *dataset, *_ahead(snapshot, time)]
    if meaning and meaning.fault:
        problems.append(Problem(VECTORS, 1, 1, meaning.fault, "warning"))
    looked_ago = int(now - store.looked_at)
    damaged = [
        found for slug, found in snapshot.damage.items() if found and slug in snapshot.line_indexes
    ]
    states = _states(snapshot)
    state = schedule() if schedule else None
    reasons = [*_of_files(problems, looked_ago)]
    if state:
        reasons += state.reasons
        every_days = snapshot.catalogue.site.poll_every_days
        reasons += _silent(states, every_days, datetime.fromisoformat(state.since), time)
    exported_at = store.exported_at
    return Health(
        status="degraded" if reasons else "ok",
        reasons=tuple(reasons),
        categories=len(snapshot.catalogue.categories),
        ranked=len(snapshot.leaderboards),
        polls=sum(len(line_index.models) for line_index in snapshot.line_indexes.values()),
        last_poll=snapshot.summary.last_poll,
        snapshot_age=int(now - store.made_at),
        looked_ago=looked_ago,
        assistants=tuple(_assistant(name, each, time, state) for name, each in states.items()),
        spending=Spending(
            round(usd_on(f"{time:%Y-%m-%d}", snapshot.polled.values()), 6),
            snapshot.catalogue.site.daily_usd,
        ),
        export_age=None if exported_at is None else int(now - exported_at),
        damage=Damage(len(damaged), sum(map(len, damaged))),
        problem_count=len(problems),
        problems=tuple(map(str, problems[:SHOWN])),
        scheduler=ScheduleHealth(state.alive, state.polling, state.since) if state else None,
        history=snapshot.present,
    )


def _of_files(problems: Sequence[Problem], looked_ago: int) -> Iterator[str]:
    """Say why what is served is not what the files say, if so."""
    errors = [str(problem) for problem in problems if problem.severity == "error"]
    if errors:
        some = "; ".join(errors[:QUOTED]) + ("; …" if len(errors) > QUOTED else "")
        yield f"The data has {len(errors)} error{'s' if len(errors) > 1 else ''}: {some}"
    if looked_ago >= UNSEEN_AFTER:
        yield f"The files were last looked at {looked_ago} seconds ago; restart the server."


def _ahead(snapshot: Snapshot, now: datetime) -> Iterator[Problem]:
    """What records from the future say of the clock, or of themselves; samples may pretend."""
    limit = latest_time(now)
    newest = {slug: r.latest_time for slug, r in snapshot.aggregates.items() if r.latest_time}
    ahead = {slug: time for slug, time in newest.items() if time > limit}
    severity: Severity = "notice" if snapshot.catalogue.site.sample else "error"
    if doubt := doubt_clock(ahead, len(newest), now):
        yield Problem(".", 1, 1, doubt, severity)
        return
    for slug, time in ahead.items():
        message = (
            f"a poll of {time}, which is yet to come: its category is not polled; `flask check` "
            "says what to do"
        )
        yield Problem(f"history/{slug}.jsonl", 1, 1, message, severity)


def _states(snapshot: Snapshot) -> dict[str, list[PollState]]:
    """Where each configured assistant stands in every category that it was ever asked."""
    return {
        name: [a.states[name] for a in snapshot.aggregates.values() if name in a.states]
        for name in snapshot.models
    }


def _assistant(
    name: str, states: Sequence[PollState], now: datetime, schedule: ScheduleState | None
) -> AssistantHealth:
    newest = max(states, key=lambda state: state.polled_at, default=None)
    answered = last_answer(states)
    since = [state for state in states if state.failed_at and state.polled_at > (answered or "")]
    pause = schedule.pauses.get(name) if schedule else None
    return AssistantHealth(
        name=name,
        last_poll=newest.polled_at if newest else None,
        last_answer=answered,
        answer_age=int((now - datetime.fromisoformat(answered)).total_seconds())
        if answered
        else None,
        failures=sum(time > (answered or "") for state in since for time in state.failed_at),
        failure=newest.failure if newest else None,
        paused=PauseHealth(rfc3339(pause.until), pause.why) if pause else None,
        due=schedule.due.get(name) if schedule else None,
    )


def last_answer(states: Iterable[PollState]) -> str | None:
    """The time of the newest answer among an assistant's states."""
    return max((state.answered_at for state in states if state.answered_at), default=None)


def _silent(
    states: Mapping[str, Sequence[PollState]], every_days: int, since: datetime, now: datetime
) -> Iterator[str]:
    """A sentence for each assistant that no longer answers."""
    for name, each in states.items():
        failed = [time for state in each for time in state.failed_at]
        if why := outage(last_answer(each), failed, every_days, since, now):
            yield f"{name} {why}."
