"""What is new in a category since the round before: on its page, in sentences."""

from pathlib import Path

import pytest
from builders import BASE_URL, answered, app_over, write_data

from store.web import as_of
from store.web.pages.news import News, news_of
from store.web.view import View


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three days: A and B, then A alone, then all, of whom A changes its mind and C is new."""
    polls = [
        answered("A", ["Zoho", "Attio"], "2026-10-01T06:00:00Z"),
        answered("B", ["Attio", "Zoho"], "2026-10-01T06:00:00Z"),
        answered("A", ["Attio"], "2026-10-08T06:00:00Z"),
        answered("A", ["Close", "Attio"], "2026-10-15T06:00:00Z"),
        answered("B", ["Attio", "Close"], "2026-10-15T06:00:00Z"),
        answered("C", ["Close", "Attio"], "2026-10-15T06:00:00Z"),
    ]
    return write_data(tmp_path / "data", polls=polls)


def news(data: Path, day: str | None = None) -> News:
    """What is new in the ranking of today, or as of a day."""
    store = app_over(data).extensions["store"]
    board = store.snapshot.leaderboards["crm-software"]
    if day:
        board = as_of.leaderboard(store.snapshot, "crm-software", day, store.lines)
    result = news_of(View(store.snapshot, BASE_URL, store.lines), board)
    assert result
    return result


def test_only_who_answered_before_can_change_its_mind(data: Path) -> None:
    """A newcomer changed nothing; another set of assistants is a first ranking."""
    newest = news(data)
    assert newest.since == "2026-10-08"
    changed = [(choice.model, choice.before, choice.after) for choice in newest.changed]
    assert changed == [("A", "Attio", "Close")]
    assert newest.unchanged == [("B", "Attio")]
    assert newest.silent == ""
    assert newest.sentence == "The first ranking of these assistants: Close leads."


def test_a_past_day_has_the_news_of_its_own_round(data: Path) -> None:
    """Also as of a day on which nobody answered: those of the last two with answers count."""
    earlier = news(data, "2026-10-10")
    assert earlier.since == "2026-10-01"
    assert [choice.model for choice in earlier.changed] == ["A"]
    assert earlier.silent == "B"
    assert earlier.sentence == "Attio now leads; before, Attio and Zoho did."


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({"question": "What was asked before?"}, "The first ranking for this question"),
        ({"instrument": "a" * 12}, "The first ranking since the way of asking changed"),
    ],
)
def test_an_answer_to_something_else_is_no_change_of_mind(
    tmp_path: Path, fields: dict[str, str], first: str
) -> None:
    """Neither another wording nor another way of asking: the page says what begins anew."""
    polls = [
        answered("A", ["x"], "2026-10-01T06:00:00Z", **fields),
        answered("A", ["y"], "2026-10-08T06:00:00Z", instrument="b" * 12),
    ]
    page = app_over(write_data(tmp_path, polls=polls)).test_client().get("/best/crm-software").text
    assert f"{first}: y leads." in page
    assert "now says" not in page


def test_one_day_alone_has_no_news(tmp_path: Path) -> None:
    """A young category has nothing to compare yet."""
    client = app_over(write_data(tmp_path, polls=[answered("A", ["x"])])).test_client()
    assert 'id="changed"' not in client.get("/best/crm-software").text


def test_a_change_that_held_is_told_on_its_page(tmp_path: Path) -> None:
    """Once the assistant said it again, and never on the page of a day before it did."""
    firsts = ["Zoho", "Zoho", "Attio", "Attio", "Attio"]
    polls = [answered("A", [n], f"2026-10-{i:02}T06:00:00Z") for i, n in enumerate(firsts, 1)]
    data = write_data(tmp_path, models="A", polls=polls)
    held = ("2026-10-03", "A named Attio first in place of Zoho, and said so again.")
    assert news(data).earlier == [held]
    assert news(data, "2026-10-03").events == []
