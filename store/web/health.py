"""``/healthz``: where the operator looks. The one answer that depends on the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from store.memory import Store
    from store.snapshot import Snapshot

UNSEEN_AFTER = 60
"""Seconds without a look at the files after which what is served may be old."""

SHOWN = 100


class AssistantHealth(Struct, frozen=True, rename="camel"):
    """When a configured assistant was last asked, and when it last answered; times of history."""

    name: str
    last_poll: str | None
    last_answer: str | None


class Damage(Struct, frozen=True):
    """History files with records that cannot be read, and how many such records there are."""

    files: int
    records: int


class Health(Struct, frozen=True, rename="camel"):
    """Whether the service is what its files say; ``degraded`` still serves the last good state.

    ``snapshot_age`` is the seconds since what is served was made, ``looked_ago`` since the files
    were last looked at. ``problems`` are the first hundred of ``problem_count``, as
    ``file:line:column: message``. ``scheduler`` is what this process's scheduler says of itself,
    null where none runs.
    """

    status: str
    categories: int
    ranked: int
    polls: int
    last_poll: str | None
    snapshot_age: int
    looked_ago: int
    assistants: tuple[AssistantHealth, ...]
    damage: Damage
    problem_count: int
    problems: tuple[str, ...]
    scheduler: Any


def examine(store: Store, now: float, scheduler: Callable[[], object] | None) -> Health:
    """The health of a store at ``now``, in Unix seconds."""
    snapshot, problems = store.snapshot, store.problems
    looked_ago = int(now - store.looked_at)
    well = not any(p.severity == "error" for p in problems) and looked_ago < UNSEEN_AFTER
    damaged = [found for found in snapshot.damage.values() if found]
    return Health(
        status="ok" if well else "degraded",
        categories=len(snapshot.catalogue.categories),
        ranked=len(snapshot.boards),
        polls=sum(len(ledger.models) for ledger in snapshot.ledgers.values()),
        last_poll=snapshot.overview.last_poll,
        snapshot_age=int(now - store.made_at),
        looked_ago=looked_ago,
        assistants=tuple(_assistants(snapshot)),
        damage=Damage(len(damaged), sum(map(len, damaged))),
        problem_count=len(problems),
        problems=tuple(map(str, problems[:SHOWN])),
        scheduler=scheduler() if scheduler else None,
    )


def _assistants(snapshot: Snapshot) -> Iterator[AssistantHealth]:
    readings = snapshot.readings.values()
    for name in snapshot.models:
        polled = max((r.polled[name] for r in readings if name in r.polled), default=None)
        answers = (r.latest[name].poll.polled_at for r in readings if name in r.latest)
        yield AssistantHealth(name, polled, max(answers, default=None))
