"""Two products, compared where both are."""

from itertools import starmap
from pathlib import Path

import pytest
from builders import answered, app_over, write_data

from store.rankings import comparing
from store.rankings.leaderboards import Leaderboard

ONE, OTHER = "attio", "zoho-crm"


@pytest.fixture
def boards(tmp_path: Path) -> dict[str, Leaderboard]:
    """One category clearly Attio's, one Zoho's by one answer, a tie, one with Zoho alone."""
    polls = [
        answered(
            model, ["Attio", "B", "C", "D", "Zoho CRM"], f"2026-10-{day:02}T06:00:00Z", slug="sure"
        )
        for day in range(5, 25)
        for model in "AB"
    ]
    polls += [answered(model, ["Zoho CRM", "Attio"], slug="once") for model in "AB"]
    polls += [
        answered("A", ["Zoho CRM", "Attio"], slug="tied"),
        answered("B", ["Attio", "Zoho CRM"], slug="tied"),
        answered("A", ["Zoho CRM"], slug="alone"),
    ]
    titles = {slug: {"title": f"Best {slug}"} for slug in ("alone", "once", "sure", "tied")}
    products = {ONE: {"name": "Attio"}, OTHER: {"name": "Zoho CRM"}}
    write_data(tmp_path, categories=titles, products=products, models="AB", polls=polls)
    found: dict[str, Leaderboard] = app_over(tmp_path).extensions["store"].snapshot.leaderboards
    return found


def met(boards: dict[str, Leaderboard]) -> dict[str, comparing.Meeting]:
    """How Attio and Zoho stand to each other, by category."""
    shared = []
    for board in boards.values():
        entries = {entry.product: entry for entry in board.entries}
        if entries.keys() >= {ONE, OTHER}:
            shared.append((board, entries[ONE], entries[OTHER]))
    return {meeting.board.slug: meeting for meeting in starmap(comparing.meet, shared)}


def test_who_stands_higher_and_whether_by_more_than_chance(boards: dict[str, Leaderboard]) -> None:
    """Twenty rounds of 5 to 1 are beyond chance; one round is not measured; a tie is even."""
    found = met(boards)
    assert found.keys() == {"once", "sure", "tied"}
    told = {slug: (m.higher, m.ahead, m.measured) for slug, m in found.items()}
    assert told == {
        "sure": (ONE, ONE, True),
        "once": (OTHER, None, False),
        "tied": (None, None, False),
    }


def test_what_each_assistant_puts_higher(boards: dict[str, Leaderboard]) -> None:
    """Per assistant: in how many of the rankings it puts either higher."""
    found = comparing.preferences(met(boards).values(), ONE, OTHER)
    assert found == {"A": (1, 2), "B": (2, 1)}
