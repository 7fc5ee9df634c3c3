"""Times as history and answers write them."""

from __future__ import annotations

from datetime import datetime

from store.times import rfc3339


def test_times_are_written_in_utc() -> None:
    """Whatever zone a time comes in, history has UTC and whole seconds."""
    assert rfc3339(datetime.fromisoformat("2026-11-20T07:00:00.9+01:00")) == "2026-11-20T06:00:00Z"
