"""What pages read from history: the newest polls that named a product, and what a day brought."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from builders import answered, app_over, failed, write_data

from store.sealing import seal
from store.web.pages.evidence import MOST_POLLS, Evidence

if TYPE_CHECKING:
    from pathlib import Path

    from store.rankings.products import Named

CATEGORIES = {"crm-software": {"title": "Best CRM software"}, "vpn": {"title": "Best VPN"}}


def evidence(directory: Path, product: str) -> tuple[Evidence, Named]:
    """The evidence of a data directory as it is, and one of its products."""
    store = app_over(directory).extensions["store"]
    return Evidence(store, store.snapshot), store.snapshot.product(product)


def test_namings_are_the_newest_of_all_categories(tmp_path: Path) -> None:
    """Polls of every category that named the product stand in one list, newest first."""
    polls = [
        answered("A", ["x", "y"], "2026-01-01T06:00:00Z"),
        answered("A", ["y"], "2026-01-02T06:00:00Z"),
        answered("B", ["y", "x"], "2026-01-03T06:00:00Z", slug="vpn"),
        failed("B", at="2026-01-04T06:00:00Z"),
    ]
    found, product = evidence(write_data(tmp_path, categories=CATEGORIES, polls=polls), "x")
    assert [(n.slug, n.pick.rank) for n in found.namings(product)] == [
        ("vpn", 2),
        ("crm-software", 1),
    ]


def test_at_most_500_namings_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    """The page shows the newest 500 and says how many there are."""
    write_data(tmp_path)
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    times = [(start + dt.timedelta(hours=i)).strftime("%Y-%m-%dT%H:%M:%SZ") for i in range(510)]
    lines = [seal(answered("A", ["x"], at), at)[1] for at in times]
    history = tmp_path / "history" / "crm-software.jsonl"
    history.parent.mkdir()
    history.write_bytes(b"".join(lines))
    found, product = evidence(tmp_path, "x")
    namings = found.namings(product)
    assert len(namings) == MOST_POLLS
    assert namings[0].poll.polled_at == times[-1]
    text = app_over(tmp_path).test_client().get("/product/x/polls").text
    assert "The newest 500 of 510 answers" in text


def test_mentions_have_their_denominators(tmp_path: Path) -> None:
    """Per day: how many answers named the product, of how many in its categories; no failures."""
    polls = [
        answered("A", ["x"], "2026-01-01T06:00:00Z"),
        answered("B", ["y"], "2026-01-01T06:00:00Z"),
        failed("C", at="2026-01-01T06:00:00Z"),
        answered("A", ["x"], "2026-01-02T06:00:00Z"),
        answered("A", ["z"], "2026-01-02T06:00:00Z", slug="vpn"),
    ]
    found, product = evidence(write_data(tmp_path, categories=CATEGORIES, polls=polls), "x")
    assert found.mentions(product) == [("2026-01-01", 1, 2), ("2026-01-02", 1, 1)]
