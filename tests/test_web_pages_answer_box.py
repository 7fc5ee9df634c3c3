"""The answer box tells, in words alone, what came first, how sure that is and who said it."""

import datetime as dt
import html
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders import answered, app_over, client_over, failed, write_data, write_json
from flask import Flask
from flask.testing import FlaskClient

from store.records import Poll


def weekly(slug: str, rounds: Sequence[Sequence[str]]) -> list[Poll]:
    """Return one poll a week of each assistant; a round has one list for each of A, B, C, D."""
    start = dt.date(2026, 8, 3)
    return [
        answered(model, list(names), f"{start + dt.timedelta(weeks=week)}T06:00:00Z", slug=slug)
        for week, lists in enumerate(rounds)
        for model, names in zip("ABCD", lists, strict=False)
        if names
    ]


CLEAR, OPEN, UNSETTLED, ONCE = "Clear lead", "Too close to call", "Unsettled", "Asked only once"
STATES = {
    "clear": [["XYZ"] * 4] * 12,
    "close": [["XYZ", "YXZ", "XZY", "YZX"], ["YXZ", "XYZ", "YZX", "XZY"]] * 5
    + [["XYZ", "XYZ", "XZY", "YXZ"]],
    "tied": [["XYZ", "XYZ", "YXZ", "YXZ"]] * 12,
    "unsettled": [["XYZ"] * 4] * 11 + [["YXZ"] * 4],
    "points": [["YXU", "ZXV", "WXT", "XYZ"]] * 12,
    "behind": [["YXZ"] * 4] * 11 + [["ZXY", "WXY", "VXY", "UXY"]],
    "most": [["XYU", "YXV", "ZWX", "ZWTY"]] * 4,
    "recent": [["YXZ"] * 4] * 5 + [["XYZ"] * 4] * 5,
    "third": [["XYZ", "YZX", "ZXY", "XZY"]] * 4,
    "older": [["XYZ"] * 4] * 20 + [["YXZ"] * 4] * 5,
    "equal": [["YPX", "ZQRX"]],
    "level": [["XYZ", "XZY", "YXZ", "YZX"]] * 6,
    "others": [["UX", "VX", "WX", "ZX"]] * 4,
    "once": [["XYZ", "XYZ", "XYZ", "YXZ"]],
    "missing": [["XYZ", "XYZ", "XYZ", ""]],
    "old": [["XYZ"] * 4, *[["XYZ", "XYZ", "XYZ", ""]] * 14],
    "alone": [["XYZ"]],
    "spread": [["XYZ", "YXZ", "ZXY", ""]],
    "second": [["YXZ", "ZXY", "WXY", ""]],
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """Somebody over one category in each state."""
    polls = [poll for slug, rounds in STATES.items() for poll in weekly(slug, rounds)]
    titles = {slug: {"title": f"Best {slug}"} for slug in STATES}
    directory = tmp_path_factory.mktemp("states")
    return app_over(write_data(directory, categories=titles, polls=polls)).test_client()


def text_of(client: FlaskClient, path: str) -> str:
    """Return what a reader sees of a page, without markup."""
    page = client.get(path).text.partition("<main")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize(
    ("slug", "level", "sentence"),
    [
        ("clear", CLEAR, "All four assistants name it first now. It came first in 20 of"),
        ("close", OPEN, "days such a lead on points can still be chance: ask again, and"),
        ("recent", OPEN, "in 20 of the last 20, but in only 20 of all 40 that count"),
        ("third", OPEN, "ask again, and Z or Y may come first."),
        ("level", OPEN, "Ask again, and Z may come first as well."),
        ("older", UNSETTLED, "Over all 100 comparable answers X"),
        ("equal", ONCE, "names it first, but no other product has more points."),
        ("tied", OPEN, "points each, and each came first in 10 of the last 20."),
        ("unsettled", UNSETTLED, "X came first in 16 of the last 20 and is ahead of it by more"),
        ("points", CLEAR, "It leads on points by more than chance: second to fifth places"),
        ("behind", UNSETTLED, "the most points in the latest answers, though none names it first;"),
        ("most", OPEN, "may come first. Z came first more often, 8 times, with"),
        ("others", CLEAR, "U, V, W and Z came first more often, 4 times each, with"),
        ("once", ONCE, "Three of four assistants name it first. Each assistant has answered"),
        ("missing", ONCE, "All three assistants that answered name it first."),
        ("old", CLEAR, "All three assistants whose answers count name it first now."),
        (
            "spread",
            ONCE,
            "answered names it first; second to fifth places give it the most points.",
        ),
        ("second", ONCE, "None of the three assistants that answered names it first, but second"),
        ("alone", ONCE, "A, the only one that answered, names it first. It has answered"),
    ],
)
def test_a_level_is_told_in_words(
    reader: FlaskClient, slug: str, level: str, sentence: str
) -> None:
    """The level and its reason stand in the box, whatever the state."""
    text = text_of(reader, f"/best/{slug}")
    assert level in text
    assert sentence in text


def test_answers_of_another_version_are_answers(tmp_path: Path) -> None:
    """Where a provider began to name it, two days are not all on which there were answers."""
    polls = [
        answered(model, ["X"], f"2026-10-0{day}T06:00:00Z", served_model="v1" if day > 1 else None)
        for day in (1, 2, 3)
        for model in "AB"
    ]
    client = client_over(write_data(tmp_path, models="AB", polls=polls))
    told = "Asked on too few days to tell: A and B on two each."
    assert told in text_of(client, "/best/crm-software")


def test_now_is_said_of_nothing_but_now(reader: FlaskClient, tmp_path: Path) -> None:
    """Of a past day it was then; with an answer that is weeks old it is the latest answers."""
    assert "assistants named it first. It came first" in text_of(
        reader, "/best/clear?asOf=2026-10-05"
    )
    rounds = [*STATES["clear"], *[["XYZ", "XYZ", "XYZ", ""]] * 5]
    polls = weekly("crm-software", rounds)
    client = app_over(write_data(tmp_path, stale_after_days=30, polls=polls)).test_client()
    assert "name it first in their latest answers." in text_of(client, "/best/crm-software")


def test_the_level_of_a_first_place_is_not_that_of_a_second(reader: FlaskClient) -> None:
    """A product that is not first shows its likely place, and no pill."""
    page = text_of(reader, "/product/w")
    assert "Clear lead" not in page
    assert "Its likely place there is" in page


def test_both_names_stand_in_the_box_where_answers_contradict(reader: FlaskClient) -> None:
    """The latest answers' product and the one that came first before, at one size."""
    page = reader.get("/best/unsettled").text
    winners = re.findall(r'<p class="winner">(.*?)</p>', page)
    assert ["<bdi>Y</bdi>" in winners[0], "<bdi>X</bdi>" in winners[1]] == [True, True]
    tied = re.findall(r'<p class="winner">(.*?)</p>', reader.get("/best/tied").text)
    assert len(tied) == 1
    assert tied[0].count("<bdi>") == 2


def test_each_assistants_last_choices_are_told_without_colour(reader: FlaskClient) -> None:
    """Squares are hidden from readers of text; the words beside them say the same."""
    text = text_of(reader, "/best/unsettled")
    assert "X 4 of 5 , now Y" in text
    assert "X every time" in text_of(reader, "/best/clear")
    assert "D no answer yet" in text_of(reader, "/best/missing")


def test_a_poll_that_failed_since_is_a_square_of_its_own(tmp_path: Path) -> None:
    """The answer before it still makes the ranking, and the page shows that it is not the last."""
    polls = [answered("A", ["x"]), failed("A", "timeout", "2026-11-09T06:00:00Z")]
    client = app_over(write_data(tmp_path, models="A", polls=polls)).test_client()
    squares = re.findall(
        r'<span class="squares" [^>]*>(.*?)</span>', client.get("/best/crm-software").text
    )
    assert "x (newest failed)" in text_of(client, "/best/crm-software")
    assert squares == ['<i class="c1"></i><i class="miss">\N{MULTIPLICATION SIGN}</i>']


def test_what_changed_is_told_in_sentences(reader: FlaskClient) -> None:
    """Who leads now, who names another product, how firm that is, and who says the same."""
    text = text_of(reader, "/best/unsettled")
    assert "What changed since 12 October 2026" in text
    assert "How sure that is: “Unsettled” now, “Clear lead” before." in text
    assert "Y now leads; before, X did." in text
    assert "It said X in 4 of its last 5 answers, so this may be chance." in text
    same = text_of(reader, "/best/clear")
    assert "X still leads." in same
    assert "A, B, C and D : X , as before." in same
    assert "What changed" not in text_of(reader, "/best/once")


def test_home_shows_where_they_agree_and_where_not(reader: FlaskClient) -> None:
    """A clear ranking among the first, a tie and an unsettled one among the others."""
    home = reader.get("/").text
    agree = home.partition('id="agree"')[2].partition("</section>")[0]
    differ = home.partition('id="differ"')[2].partition("</section>")[0]
    assert "/best/clear" in agree
    assert "/best/tied" in differ
    assert "/best/clear" not in differ


def test_only_what_may_be_first_is_told_beside_it(tmp_path: Path) -> None:
    """Z may be first and Y may not: "ahead" is not transitive, and Z is not ahead of Y."""
    polls = weekly("crm-software", [["Z", "ZX"]] * 5 + [["YX", "ZX"]] * 5)
    client = client_over(write_data(tmp_path, models="AB", polls=polls))
    assert client.get("/api/v1/best/crm-software.json").get_json()["certainty"]["level"] == "open"
    assert "ask again, and Z may come first." in text_of(client, "/best/crm-software")
    assert " X or Z " in text_of(client, "/")


@pytest.mark.parametrize(
    ("models", "everybody"),
    [("ABCD", "all four assistants"), ("ABCDE", "all assistants that answered")],
)
def test_home_counts_who_answered(tmp_path: Path, models: str, everybody: str) -> None:
    """An assistant that never did agrees with nobody."""
    slugs = [f"c{number}" for number in range(10)]
    polls = [answered(model, ["x"], slug=slug) for slug in slugs for model in "ABCD"]
    titles = {slug: {"title": f"Best {slug}"} for slug in slugs}
    client = client_over(write_data(tmp_path, categories=titles, models=models, polls=polls))
    assert f"In 100% of rankings {everybody} name the same product first." in text_of(client, "/")


@pytest.mark.parametrize(("firsts", "held"), [("XYY", "Y"), ("XYYZ", None), ("XYYZZ", "Z")])
def test_home_tells_no_change_that_a_later_one_ended(
    tmp_path: Path, firsts: str, held: str | None
) -> None:
    """Confirmed it holds as long as the assistant has named nothing else since."""
    polls = weekly("crm-software", [[first] for first in firsts])
    home = text_of(client_over(write_data(tmp_path, models="A", polls=polls)), "/")
    changes = re.findall(r"A : ([XYZ]) since", home)
    assert changes == ([held] if held else [])


def test_a_topic_tells_how_many_share_a_first_place(tmp_path: Path) -> None:
    """Three are named of four."""
    part = {"slug": "p", "title": "P", "categories": ["crm-software"]}
    write_data(tmp_path, polls=weekly("crm-software", [["X", "Y", "Z", "W"]]))
    topics = [{"slug": "one", "title": "One", "parts": [part]}]
    write_json(tmp_path / "topics.json", {"version": 1, "topics": topics})
    assert "W and X and Y and 1 more · a tie" in text_of(client_over(tmp_path), "/topics/one")


def test_topics_stand_in_their_groups_on_the_home_page(tmp_path: Path) -> None:
    """In the order of the file; a topic without a group comes under no heading."""
    part = {"slug": "p", "title": "P", "categories": ["crm-software"]}
    topics = [
        {"slug": "one", "title": "One", "group": "Work", "parts": [part]},
        {"slug": "two", "title": "Two", "parts": [part]},
        {"slug": "three", "title": "Three", "group": "Work", "parts": [part]},
    ]
    write_data(tmp_path, polls=[answered("A", ["x"])])
    write_json(tmp_path / "topics.json", {"version": 1, "topics": topics})
    browse = app_over(tmp_path).test_client().get("/").text.partition('id="browse"')[2]
    assert re.findall(r"<h3>(.*?)</h3>|/topics/(\w+)\"", browse) == [
        ("Work", ""), ("", "one"), ("", "three"), ("", "two"),
    ]  # fmt: skip


def test_only_rings_that_are_there_are_explained(reader: FlaskClient) -> None:
    """Asked once, an assistant has one square, which no ring tells from others."""
    assert "The newest answer of each (ringed) makes the ranking" in text_of(reader, "/best/clear")
    assert "ringed" not in text_of(reader, "/best/once")


def test_a_product_is_quoted_with_its_surest_first_place(tmp_path: Path) -> None:
    """Not with that among the most products, where nobody knows whether it is chance."""
    polls = [*weekly("small", STATES["clear"]), *weekly("large", [["XABCD"] * 4])]
    titles = {slug: {"title": f"Best {slug}"} for slug in ("small", "large")}
    client = app_over(write_data(tmp_path, categories=titles, polls=polls)).test_client()
    verdict = client.get("/api/v1/product/x.json").get_json()["verdict"]
    assert "#1 of 3 for small on" in verdict
    assert "#1 of 3 for small" in text_of(client, "/product/x")


def test_a_level_is_told_of_the_ranking_that_it_is_of(app: Flask) -> None:
    """On a product's page beside its first places alone; elsewhere its own likely place is."""
    client = app.test_client()
    record = client.get("/api/v1/product/ridgelo-lite.json").get_json()
    lines = client.get("/product/ridgelo-lite").text.split('<a class="where"')[1:]
    for entry, line in zip(record["entries"], lines, strict=False):
        is_ranged = entry["place"] > 1 and entry["range"] is not None
        assert ("likely place" in line) == is_ranged
    assert any(entry["place"] > 1 and entry["range"] for entry in record["entries"])
    assert "Who names what first" in client.get("/best/free-vpn").text
    said = "Zampino Play is ahead of it by more than chance, but not of Gribbel Meadow and Hound"
    assert said in client.get("/best/dog-food").text
    assert "how sure we are rests on all 24 that can be compared." in client.get("/best/vpn").text
