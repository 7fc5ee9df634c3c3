"""The evidence of a product: the newest polls that named it, read from history."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders import BASE_URL, answered, client_over, failed, store_over, write_data

from store.category_history import PollIndex
from store.line_codec import encode_line
from store.records import Poll
from store.store import Store
from store.web.pages.products import MOST_POLLS, PIECE, ProductMention, product_mentions
from store.web.view import View

CATEGORIES = {"crm-software": {"title": "Best CRM software"}, "vpn": {"title": "Best VPN"}}


def mentions(directory: Path, product: str) -> list[ProductMention]:
    """The newest polls of a data directory that named a product."""
    store = store_over(directory)
    view = View(store.snapshot, BASE_URL, store.lines)
    found = store.snapshot.product(product)
    assert found
    return product_mentions(view, found)


def test_namings_are_the_newest_of_all_categories(tmp_path: Path) -> None:
    """Polls of every category that named the product stand in one list, newest first, by time."""
    polls = [
        answered("A", ["x", "y"], "2026-01-01T06:00:00Z"),
        answered("A", ["y"], "2026-01-02T06:00:00Z"),
        answered("B", ["y", "x"], "2026-01-01T06:00:01Z", slug="vpn"),
        failed("B", at="2026-01-04T06:00:00Z"),
    ]
    found = mentions(write_data(tmp_path, categories=CATEGORIES, polls=polls), "x")
    assert [(n.slug, n.pick.rank) for n in found] == [("vpn", 2), ("crm-software", 1)]


def test_at_most_500_namings_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    """The page shows the newest 500 and says how many there are."""
    write_data(tmp_path)
    sealed(tmp_path, "crm-software", [answered("A", ["x"], at) for at in times(510)])
    newest = mentions(tmp_path, "x")
    assert len(newest) == MOST_POLLS
    assert newest[0].poll.polled_at == times(510)[-1]
    text = client_over(tmp_path).get("/product/x/polls").text
    assert "The newest 500 of 510 answers" in text


def sealed(directory: Path, slug: str, polls: list[Poll]) -> None:
    """Write a category's history at once."""
    file = directory / "history" / f"{slug}.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"".join(encode_line(poll, poll.polled_at)[1] for poll in polls))


def times(count: int) -> list[str]:
    """So many times, an hour apart."""
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    hours = (start + dt.timedelta(hours=i) for i in range(count))
    return [hour.strftime("%Y-%m-%dT%H:%M:%SZ") for hour in hours]


def test_a_naming_is_found_however_long_ago_it_was(tmp_path: Path) -> None:
    """Six hundred later polls that name others do not hide it, nor does a way to spell it."""
    write_data(tmp_path)
    names = ['x "\u00fc\\', *["y"] * 600]
    polls = [answered("A", [n], at) for n, at in zip(names, times(601), strict=True)]
    sealed(tmp_path, "crm-software", polls)
    assert [n.poll.polled_at for n in mentions(tmp_path, "x-u")] == ["2026-01-01T00:00:00Z"]


def test_no_more_is_read_than_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long histories in which everybody names it, little more is read than is shown."""
    write_data(tmp_path, categories=CATEGORIES)
    for slug in CATEGORIES:
        sealed(tmp_path, slug, [answered("A", ["x"], at, slug=slug) for at in times(1000)])
    read: list[int] = []
    lines = Store.lines

    def counted(store: Store, poll_index: PollIndex, positions: Sequence[int]) -> list[bytes]:
        read.append(len(positions))
        return lines(store, poll_index, positions)

    monkeypatch.setattr(Store, "lines", counted)
    assert len(mentions(tmp_path, "x")) == MOST_POLLS
    assert sum(read) <= MOST_POLLS + 2 * PIECE
