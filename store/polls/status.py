"""How polling stands, per assistant: what is due, what runs, what is paused and why. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from store.polls.due import Agenda, Pair


class Status(Struct, frozen=True):
    """One assistant's state. Times are RFC 3339; ``usd_today`` is what today's polls cost."""

    name: str
    due: int
    pairs: int
    running: int
    paused: str | None
    usd_today: float
    last_success: str | None

    def __str__(self) -> str:
        """One line for people."""
        parts = [f"{self.due} of {self.pairs} due"]
        parts += [f"{self.running} running"] if self.running else []
        parts += [f"spent today {self.usd_today:.2f} USD"] if self.usd_today else []
        parts.append(f"last success {self.last_success or 'never'}")
        parts += [f"paused {self.paused}"] if self.paused else []
        return f"{self.name}: {', '.join(parts)}"


def status(
    name: str,
    pairs: Sequence[Pair],
    agenda: Agenda,
    *,
    every_days: int,
    now: datetime,
    running: int,
) -> Status:
    """How one assistant's pairs stand."""
    stood = agenda.of_model(name)
    newest = max(stood, key=lambda stands: stands.polled_at, default=None)
    paused = None
    if newest and newest.rests_until and newest.rests_until > now.isoformat():
        paused = f"until {newest.rests_until}: {newest.error}"
    today = now.date().isoformat()
    return Status(
        name=name,
        due=len(agenda.due(pairs, every_days, now)),
        pairs=len(pairs),
        running=running,
        paused=paused,
        usd_today=round(sum(s.usd for s in stood if s.polled_at[:10] == today), 6),
        last_success=max((s.answered_at for s in stood if s.answered_at), default=None),
    )
