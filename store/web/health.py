"""What monitors ask: ``/healthz``, and whether the process lives and is ready. Nothing is kept.

No other answer depends on the clock; one that did would take the time as an argument, and could
not be kept. Anybody may read them: money, assistants'
failures and providers' words are for ``flask poll --status`` and the metrics.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec
from flask import Flask, Response, current_app, request
from msgspec import Struct

from store.category_history import doubt_clock, latest_time
from store.ledger import ProvisionalHead
from store.publishing import manifest
from store.rankings.poll_states import ScheduleStatus, outage
from store.records import Problem, Severity
from store.search.meaning import VECTORS, Meaning
from store.snapshot import Snapshot
from store.store import Store
from store.web.errors import Refused
from store.web.lookup import check_history

UNSEEN_AFTER = 60
"""Seconds without a look at the files after which what is served may be old."""
PROBLEMS_SHOWN = 100
"""Problems that are listed."""
ERRORS_QUOTED = 3
"""Errors that the reason itself names: a further one is then another reason."""


class Damage(Struct, frozen=True):
    """History files with records that cannot be read, and how many such records there are."""

    files: int
    records: int


class Health(Struct, frozen=True, rename="camel"):
    """The state of the service; ``degraded`` still serves the last good state of its files.

    ``reasons`` say why it is degraded. Ages are in seconds: ``snapshot_age`` of what is served,
    ``looked_ago`` of the last look at the files, ``export_age`` of the last ``flask export``.
    ``problems`` are the first hundred of ``problem_count``, as ``file:line:column: message``.
    ``history`` has the root over all lines, for anybody to keep.
    """

    status: str
    reasons: tuple[str, ...]
    categories: int
    ranked: int
    polls: int
    last_poll: str | None
    snapshot_age: int
    looked_ago: int
    export_age: int | None
    damage: Damage
    problem_count: int
    problems: tuple[str, ...]
    history: ProvisionalHead


def register(app: Flask, store: Store) -> None:
    """Serve the probes.

    ``app.extensions["scheduler"]`` may hold a function that says how the scheduler is.
    """

    def report() -> Response:
        schedule, meaning = map(current_app.extensions.get, ("scheduler", "meaning"))
        health = examine(store, time.time(), schedule() if schedule else None, meaning)
        # Load balancers must not drop a server that still answers, monitors must not miss a fault.
        return _unstored(health, ok=not health.reasons or "strict" not in request.args)

    def live() -> Response:
        return _unstored({"status": "ok"})

    def ready() -> Response:
        if not store.made_at:
            return _unstored({"status": "starting"}, ok=False)
        try:
            check_history(store.snapshot)
        except Refused as lost:
            return _unstored({"status": "unavailable", "detail": lost.detail}, ok=False)
        return _unstored({"status": "ok"})

    app.add_url_rule("/healthz", "health", report)
    app.add_url_rule("/livez", "live", live)
    app.add_url_rule("/readyz", "ready", ready)


def _unstored(body: object, *, ok: bool = True) -> Response:
    """Return an answer about this moment: 200, or 503 when it is not ``ok``."""
    response = Response(msgspec.json.encode(body), 200 if ok else 503, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def examine(
    store: Store, now: float, schedule: ScheduleStatus | None, meaning: Meaning | None = None
) -> Health:
    """Return the health of a store at ``now``, in Unix seconds."""
    snapshot, time_ = store.snapshot, datetime.fromtimestamp(now, UTC)
    problems = [*store.problems, *manifest.problems(store.directory), *_ahead(snapshot, time_)]
    if meaning and meaning.fault:
        problems.append(Problem(VECTORS, 1, 1, meaning.fault, "warning"))
    looked_ago = int(now - store.looked_at)
    damaged = [
        lines for slug, lines in snapshot.damage.items() if lines and slug in snapshot.poll_indexes
    ]
    reasons = [*_of_files(problems, looked_ago)]
    # Without a schedule no assistant is expected to answer; commands ask `report.show_status`.
    if schedule:
        since = datetime.fromisoformat(schedule.since)
        reasons += [*schedule.reasons, *_silent(snapshot, since, time_)]
    exported_at = store.exported_at
    return Health(
        status="degraded" if reasons else "ok",
        reasons=tuple(reasons),
        categories=len(snapshot.catalogue.categories),
        ranked=len(snapshot.leaderboards),
        polls=sum(len(poll_index.models) for poll_index in snapshot.poll_indexes.values()),
        last_poll=snapshot.summary.last_poll,
        snapshot_age=int(now - store.made_at),
        looked_ago=looked_ago,
        export_age=None if exported_at is None else int(now - exported_at),
        damage=Damage(len(damaged), sum(map(len, damaged))),
        problem_count=len(problems),
        problems=tuple(map(str, problems[:PROBLEMS_SHOWN])),
        history=snapshot.provisional_head,
    )


def _of_files(problems: Sequence[Problem], looked_ago: int) -> Iterator[str]:
    """Yield why what is served is not what the files say, if so."""
    errors = [str(problem) for problem in problems if problem.severity == "error"]
    if errors:
        some = "; ".join(errors[:ERRORS_QUOTED]) + ("; …" if len(errors) > ERRORS_QUOTED else "")
        yield f"The data has {len(errors)} error{'s' if len(errors) > 1 else ''}: {some}"
    if looked_ago >= UNSEEN_AFTER:
        yield f"The files were last looked at {looked_ago} seconds ago; restart the server."


def _ahead(snapshot: Snapshot, now: datetime) -> Iterator[Problem]:
    """Yield a problem for records of the future: of the clock where several are, else of each."""
    limit = latest_time(now)
    newest = {slug: a.last_poll for slug, a in snapshot.aggregates.items() if a.last_poll}
    ahead = {slug: time_ for slug, time_ in newest.items() if time_ > limit}
    # The times of a sample are pretended.
    severity: Severity = "notice" if snapshot.catalogue.site.sample else "error"
    # Several records ahead accuse this machine's clock, one alone accuses itself.
    if doubt := doubt_clock(ahead, len(newest), now):
        yield Problem(".", 1, 1, doubt, severity)
        return
    for slug, time_ in ahead.items():
        message = (
            f"a poll of {time_}, which is yet to come: its category is not polled; `flask check` "
            "says what to do"
        )
        yield Problem(f"history/{slug}.jsonl", 1, 1, message, severity)


def last_answer(snapshot: Snapshot, model: str) -> str | None:
    """Return the time of an assistant's newest answer."""
    states = [a.states[model] for a in snapshot.aggregates.values() if model in a.states]
    return max((state.answered_at for state in states if state.answered_at), default=None)


def _silent(snapshot: Snapshot, since: datetime, now: datetime) -> Iterator[str]:
    """Yield a sentence for each assistant that no longer answers."""
    for model in snapshot.models:
        states = [a.states[model] for a in snapshot.aggregates.values() if model in a.states]
        failures = [time_ for state in states for time_ in state.failed_at]
        every_days, last = snapshot.site.poll_every_days, last_answer(snapshot, model)
        if reason := outage(last, failures, every_days, since, now):
            yield f"{model} {reason}."
