"""Who polls closes days: once a provider's clock agreed, and not before; faults are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from builders import answered, append
from datasets import DAYS, small_data

from store.files import Files
from store.ledger import Proof
from store.polls.clocks import Clock
from store.polls.schedule import DayClosing, confirmed_time

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return small_data(tmp_path / "data")


def test_days_close_once_a_provider_confirmed_that_they_are_over(data: Path) -> None:
    """Nothing closes by this machine's clock alone, nor the day that a reply's Date is of."""
    closing, clock = DayClosing(data), Clock(lambda: NOON)
    closing.look(clock.confirmed)
    assert Proof(data).load().closed == ""
    clock.compare(NOON + timedelta(hours=13), NOON)  # a reply dated tomorrow confirms nothing
    closing.look(clock.confirmed)
    assert Proof(data).load().closed == ""
    clock.compare(NOON + timedelta(minutes=9), NOON)
    append(data, [answered("A", ["Product E"], "2026-11-20T06:00:00Z")])
    closing.look(clock.confirmed)
    assert Proof(data).load().closed == DAYS[-1]


def test_a_reply_that_is_minutes_ahead_closes_no_running_day() -> None:
    """Around midnight the earlier of both clocks counts."""
    midnight = datetime(2026, 11, 20, tzinfo=UTC)
    clock = Clock(lambda: midnight - timedelta(minutes=2))
    clock.compare(midnight + timedelta(minutes=3), midnight - timedelta(minutes=3))
    assert clock.confirmed == midnight - timedelta(minutes=2)


def test_where_all_assistants_are_samples_this_machines_clock_is_believed(data: Path) -> None:
    """They have no clock to compare with."""
    clock = Clock(lambda: NOON)
    assert confirmed_time(clock, Files(data).scan()) == NOON


def test_a_ledger_that_is_damaged_or_in_the_way_is_told_until_it_is_mended(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log, in the schedule's reasons until then; without the directory's path."""
    closing, ledger = DayClosing(data), data / "proof/ledger.jsonl"
    ledger.write_bytes(b"{\n")
    for minutes in (0, 1, 10):
        closing.look(NOON + timedelta(minutes=minutes))
    reason = closing.reason or ""
    assert reason.startswith("No day is closed: proof/ledger.jsonl:1: ")
    assert caplog.messages.count(reason) == 1
    ledger.unlink()
    ledger.mkdir()
    closing.look(NOON)
    assert closing.reason == "No day is closed: proof/ledger.jsonl: it is not a regular file."
    ledger.rmdir()
    ledger.touch()
    closing.look(NOON)
    assert Proof(data).load().closed == DAYS[-1]
    assert not closing.reason


def test_a_closing_does_not_wait_for_a_copy(data: Path) -> None:
    """While restic holds the lock nothing closes, and polling goes on; afterwards it does."""
    closing, proof = DayClosing(data), Proof(data)
    with proof.locked(shared=True):
        closing.look(NOON)
    assert (closing.reason, proof.load().closed) == (None, "")
    closing.look(NOON)
    assert proof.load().closed == DAYS[-1]
