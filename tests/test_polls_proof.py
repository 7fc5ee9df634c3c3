"""A server that polls lists history's lines itself, once a day, and says when it cannot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from builders import answered, append
from datasets import DAYS, small_data

from store.polls.proof import DailyProof
from store.publishing.leaves import LeafList, first_listing

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LAST = f"{DAYS[-1]}T07:00:00Z"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return small_data(tmp_path / "data")


def listed(data: Path) -> int:
    return len(list(LeafList(data).leaves()))


def said(proof: DailyProof) -> str:
    return proof.reason or ""


def test_the_first_poll_of_a_day_closes_the_day_before(data: Path) -> None:
    """At the start what is missing is listed; then nothing until a poll of another day."""
    proof = DailyProof(data)
    proof.look(LAST, NOON)
    assert listed(data) == 19
    append(data, [answered("A", ["Product E"], f"{DAYS[-1]}T08:00:00Z")])
    proof.look(f"{DAYS[-1]}T08:00:00Z", NOON)
    assert listed(data) == 19
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    proof.look("2026-11-16T06:00:00Z", NOON)
    assert listed(data) == 21
    assert [head.date for head in LeafList(data).heads()] == list(DAYS)
    assert list(first_listing(data)) == list(LeafList(data).leaves())


def test_no_fault_ends_the_schedule(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody thought of is a reason, too; the thread that polls goes on."""

    def failing(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LeafList, "extend", failing)
    proof = DailyProof(data)
    proof.look(LAST, NOON)
    assert "the log has the fault" in said(proof)


def test_without_a_poll_nothing_is_written(data: Path) -> None:
    """A new site has no proof of nothing."""
    DailyProof(data).look(None, NOON)
    assert not (data / "proof").exists()


def test_a_poll_that_is_yet_to_come_does_not_end_the_listing(data: Path) -> None:
    """While a record of a wrong clock stands in history, each day is listed all the same."""
    proof = DailyProof(data)
    proof.look("2027-01-01T00:00:00Z", NOON)
    append(data, [answered("A", ["Product E"], "2026-11-21T06:00:00Z")])
    proof.look("2027-01-01T00:00:00Z", NOON + timedelta(days=1))
    assert listed(data) == 20


def test_a_damaged_proof_is_told_and_looked_at_again(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log, in the schedule's reasons until it is mended; every ten minutes."""
    proof = DailyProof(data)
    proof.look(LAST, NOON)
    heads = data / "proof/heads.jsonl"
    whole = heads.read_bytes()
    heads.write_bytes(whole.replace(b'"size":6', b'"size":7'))
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    for minutes in (0, 1, 10):
        proof.look("2026-11-16T06:00:00Z", NOON + timedelta(minutes=minutes))
    assert said(proof).startswith("The proof is not extended: proof/heads.jsonl: 2026-10-26 ")
    assert caplog.messages.count(said(proof)) == 1
    heads.write_bytes(whole)
    proof.look("2026-11-16T06:00:00Z", NOON + timedelta(minutes=11))
    assert said(proof)
    proof.look("2026-11-16T06:00:00Z", NOON + timedelta(minutes=20))
    assert (said(proof), listed(data)) == ("", 20)


def test_a_proof_that_cannot_be_written_is_told_with_its_name(data: Path) -> None:
    """But not where the data directory is: the sentence is public, at `/healthz`."""
    (data / "proof").write_text("a file")
    proof = DailyProof(data)
    proof.look(LAST, NOON)
    assert said(proof) == "The proof is not extended: proof: File exists."
