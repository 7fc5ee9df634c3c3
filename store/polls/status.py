"""How polling stands, per assistant: what is due, what runs, what is paused and why. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.poll_states import outage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from store.polls.batches.standing import OpenBatches
    from store.polls.due import DuePolls, Pair, Rounds
    from store.records import Assistant


class Status(Struct, frozen=True, rename="camel"):
    """One assistant's state. Times are RFC 3339; ``usd_today`` is what today's polls cost.

    ``open_rounds`` of its pairs have ``open_answers`` of the ``open_wanted`` that rounds take.
    ``no_batches`` is why none takes what is due, ``wrong`` in sentences what needs a person.
    """

    name: str
    due: int
    pairs: int
    open_rounds: int
    open_answers: int
    open_wanted: int
    running: int
    paused: str | None
    batches: OpenBatches | None
    no_batches: str | None
    usd_today: float
    last_success: str | None
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        """A line for people, and one for each thing that is wrong."""
        parts = [f"{self.due} of {self.pairs} due"]
        if self.open_rounds:
            rounds = "round" if self.open_rounds == 1 else "rounds"
            answers = f"{self.open_answers} of {self.open_wanted} answers"
            parts.append(f"{self.open_rounds} {rounds} under way ({answers})")
        parts += [f"{self.running} running"] if self.running else []
        parts += [str(self.batches)] if self.batches else []
        parts += [self.no_batches] if self.no_batches else []
        parts += [f"spent today {self.usd_today:.2f} USD"] if self.usd_today else []
        parts.append(f"last success {self.last_success or 'never'}")
        parts += [f"paused {self.paused}"] if self.paused else []
        return "\n".join([f"{self.name}: {', '.join(parts)}", *self.wrong])


class PollingReport(Struct, frozen=True, rename="camel"):
    """How polling stands; with a cap, ``usd_today`` includes what calls on their way may cost."""

    assistants: tuple[Status, ...]
    wrong: tuple[str, ...]
    usd_today: float
    cap_usd: float | None
    scheduled: bool

    @property
    def is_well(self) -> bool:
        """Whether nothing needs a person."""
        return not (self.wrong or any(one.wrong or one.paused for one in self.assistants))

    def __str__(self) -> str:
        """Lines for people."""
        of = "" if self.cap_usd is None else f" of {self.cap_usd:g}"
        server = "A server polls on schedule." if self.scheduled else "No server polls on schedule"
        if not self.scheduled:
            server += "." if self.wrong else "; one with POLL_ENABLED=1 would."
        spent = f"Spent today: {self.usd_today:.2f}{of} USD."
        return "\n".join([*map(str, self.assistants), *self.wrong, spent, server])


def status(  # noqa: PLR0913 - what is known of an assistant
    assistant: Assistant,
    pairs: Sequence[Pair],
    stands: DuePolls,
    *,
    rounds: Rounds,
    now: datetime,
    running: int,
    unready: str | None = None,
    capped: str | None = None,
    batches: OpenBatches | None = None,
    no_batches: str | None = None,
    free: Sequence[Pair] | None = None,
    wrong: Sequence[str] = (),
) -> Status:
    """How an assistant's pairs stand; those in its ``batches`` on their way are not ``free``."""
    name = assistant.name
    states = stands.of_model(name)
    pause = stands.pause_of(name, now)
    answered = max((s.answered_at for s in states if s.answered_at), default=None)
    failed = [time for state in states for time in state.failed_at]
    silent = assistant.api != "sample" and outage(answered, failed, rounds.every_days, now, now)
    today = now.date().isoformat()
    under_way = stands.under_way(pairs, rounds, now)
    return Status(
        name=name,
        due=len(stands.due(pairs if free is None else free, rounds, now)),
        pairs=len(pairs),
        open_rounds=len(under_way),
        open_answers=sum(taken for taken, _ in under_way),
        open_wanted=sum(taken + lacking for taken, lacking in under_way),
        running=running,
        paused=str(pause) if pause else capped,
        batches=batches,
        no_batches=no_batches,
        usd_today=round(sum(s.usd for s in states if s.polled_at[:10] == today), 6),
        last_success=answered,
        wrong=tuple(filter(None, (unready, f"{name} {silent}." if silent else None, *wrong))),
    )
