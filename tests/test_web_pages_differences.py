"""The page of differences: who moved, came and went between two days, and who changed its mind."""

from pathlib import Path
from typing import Any

import pytest
from builders import BASE_URL, answered, app_over, write_data
from flask.testing import FlaskClient

from store.web import as_of
from store.web.pages import differences
from store.web.pages.differences import Differences
from store.web.view import View

PAGE = "/best/crm-software/changes"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three days: Attio falls, Close comes, Zoho goes; A changes its mind, B stays, C is new."""
    polls = [
        answered("A", ["Zoho", "Attio"], "2026-10-01T06:00:00Z"),
        answered("B", ["Attio", "Zoho"], "2026-10-01T06:00:00Z"),
        answered("A", ["Attio"], "2026-10-08T06:00:00Z"),
        answered("A", ["Close", "Attio"], "2026-10-15T06:00:00Z", reason="Close is closer."),
        answered("B", ["Attio", "Close"], "2026-10-15T06:00:00Z"),
        answered("C", ["Close", "Attio"], "2026-10-15T06:00:00Z"),
    ]
    return write_data(tmp_path / "data", polls=polls)


@pytest.fixture
def reader(data: Path) -> FlaskClient:
    """Somebody with a browser."""
    client = app_over(data).test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    return client


def between(data: Path, start: str | None, end: str | None) -> Differences:
    """What the page is made from."""
    store = app_over(data).extensions["store"]
    view = View(store.snapshot, BASE_URL, store.lines)
    board = store.snapshot.leaderboards["crm-software"]
    if end:
        board = as_of.leaderboard(store.snapshot, "crm-software", end, store.lines)
    compared = differences.between(view, board, start, end)
    assert compared
    return compared


def test_products_move_come_and_go(data: Path) -> None:
    """By the later ranking, then those that went; places count rises as positive."""
    shifts = between(data, "2026-10-01", "2026-10-15").shifts
    assert [(s.product.name, s.before, s.after, s.move) for s in shifts] == [
        ("Close", None, 1, None),
        ("Attio", 1, 2, -1),
        ("Zoho", 1, None, None),  # the two were truly tied
    ]
    assert [(s.points_before, s.points_after) for s in shifts] == [
        (None, 14),
        (9, 13),
        (9, None),
    ]


def test_only_who_answered_on_both_days_can_change_its_mind(data: Path) -> None:
    """A newcomer changed nothing; the reason is that of the later answer."""
    choices = between(data, "2026-10-01", "2026-10-15").choices
    assert {c.model: (c.changed, c.after and c.after.name, c.reason) for c in choices} == {
        "A": (True, "Close", "Close is closer."),
        "B": (False, "Attio", "B on Attio"),
        "C": (False, "Close", "C on Close"),
    }


def test_days_not_given_are_the_last_two_with_answers(data: Path) -> None:
    """Also before a day on which nobody answered."""
    newest = between(data, None, None)
    assert (newest.start, newest.end) == ("2026-10-08", "2026-10-15")
    earlier = between(data, None, "2026-10-10")
    assert (earlier.start, earlier.end) == ("2026-10-01", "2026-10-10")
    assert [choice.changed for choice in earlier.choices] == [True, False]


def test_answers_to_different_questions_are_no_change_of_mind(tmp_path: Path) -> None:
    """The rankings stand side by side, and the page says why nobody changed its mind."""
    polls = [
        answered("A", ["x"], "2026-10-01T06:00:00Z", question="What was asked before?"),
        answered("A", ["y"], "2026-10-08T06:00:00Z"),
    ]
    client = app_over(write_data(tmp_path, polls=polls)).test_client()
    text = client.get(PAGE).text
    assert "answer different questions: “What was asked before?”" in text
    assert "names another first</span>" not in text


def test_the_page_shows_both_days_and_links_them(reader: FlaskClient) -> None:
    """Without a script: a form for two days, the table, and links to each day's ranking."""
    text = reader.get(f"{PAGE}?from=2026-10-01&to=2026-10-15").text
    for expected in (
        "/best/crm-software?asOf=2026-10-01",
        "/best/crm-software?asOf=2026-10-15",
        'min="2026-10-01" max="2026-10-15" value="2026-10-01"',
        "names another first</span>",
        "“Close is closer.”",
    ):
        assert expected in text
    assert "/best/crm-software/changes" in reader.get("/best/crm-software").text
    assert reader.get(f"{PAGE}?from=2026-10-01").text == text
    assert reader.get(f"{PAGE}?from=2026-10-15&to=2026-10-01").text == text


def test_a_place_moves_only_between_rankings_of_the_same_assistants(reader: FlaskClient) -> None:
    """Where another one counts, nothing has moved, come or gone, and the page says so."""
    alike = reader.get(f"{PAGE}?from=2026-10-01&to=2026-10-08").text
    assert '<th scope="col">Moved</th>' in alike
    assert alike.count('<span class="move ') == 2
    text = reader.get(f"{PAGE}?from=2026-10-08&to=2026-10-15").text
    assert "same assistants count on both days: A, B, and then A, B, C." in text
    assert "no place has moved" in text
    assert "Moved" not in text
    assert 'class="move ' not in text
    assert "names another first</span>" in text


def test_products_come_and_go_between_rankings_of_the_same_assistants(tmp_path: Path) -> None:
    """What was not ranked before is new, and what is not any more dropped out."""
    polls = [
        answered("A", ["x", "z"], "2026-10-01T06:00:00Z"),
        answered("A", ["y", "x"], "2026-10-08T06:00:00Z"),
    ]
    text = app_over(write_data(tmp_path, polls=polls)).test_client().get(PAGE).text
    assert text.count(">new</span>") == text.count(">dropped out</span>") == 1
    assert '<span class="move down"><span aria-hidden="true">▼</span> 1' in text


def test_asked_in_another_way_nothing_has_moved(tmp_path: Path) -> None:
    """Neither a place nor a mind, on this page and on the category's."""
    polls = [
        answered("A", ["x"], "2026-10-01T06:00:00Z", instrument="a" * 12),
        answered("A", ["y"], "2026-10-08T06:00:00Z", instrument="b" * 12),
    ]
    client = app_over(write_data(tmp_path, polls=polls)).test_client()
    text = client.get(PAGE).text
    assert "Between the two days the way of asking changed, or came to be recorded." in text
    assert "names another first</span>" not in text
    assert 'class="move ' not in text
    category = client.get("/best/crm-software").text
    assert "The first ranking since the way of asking changed: y leads." in category
    assert "now says" not in category


def test_one_day_alone_is_said_to_be_one(tmp_path: Path) -> None:
    """A young category has nothing to compare yet."""
    client = app_over(write_data(tmp_path, polls=[answered("A", ["x"])])).test_client()
    answer = client.get(PAGE)
    assert answer.status_code == 200
    assert "nothing to compare" in answer.text


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("from=2026-09-30&to=2026-10-08", 404, "first answer is of 2026-10-01"),
        ("to=2026-09-30", 404, "first answer is of 2026-10-01"),
        ("from=then", 400, "YYYY-MM-DD"),
    ],
)
def test_days_that_cannot_be_compared_are_refused(
    reader: FlaskClient, query: str, status: int, says: str
) -> None:
    """With the day from which on, or up to which, it can be done."""
    answer = reader.get(f"{PAGE}?{query}")
    assert answer.status_code == status
    assert says in answer.text


def test_a_former_slug_keeps_both_days(tmp_path: Path) -> None:
    """308, as for every page of a category."""
    crm: dict[str, Any] = {"title": "Best CRM software", "former_slugs": ["crm"]}
    app = app_over(
        write_data(
            tmp_path,
            categories={"crm-software": crm},
            polls=[
                answered("A", ["x"], "2026-10-01T06:00:00Z"),
                answered("A", ["y"], "2026-10-08T06:00:00Z"),
            ],
        )
    )
    moved = app.test_client().get("/best/crm/changes?from=2026-10-01&to=2026-10-08")
    assert moved.status_code == 308
    assert moved.location.endswith(f"{PAGE}?from=2026-10-01&to=2026-10-08")
