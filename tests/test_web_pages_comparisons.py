"""Comparisons are found from names; figures lead to the methodology."""

import html
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from builders import answered, app_over, write_data
from flask import Flask
from flask.testing import FlaskClient


def compared(client: FlaskClient, one: str, other: str) -> str:
    """The page that compares two things, as text."""
    answer = client.get("/compare?" + urlencode({"a": one, "b": other}))
    assert answer.status_code == 200
    return html.unescape(answer.text)


@pytest.mark.parametrize("other", ["beta", "Beta", " beta "])
@pytest.mark.parametrize("one", ["alpha", "Alpha", "alfa", "Alpha One"])
def test_products_are_found_by_slug_or_by_any_spelling(
    reader: FlaskClient, one: str, other: str
) -> None:
    """Slug, name, alias and old spelling all lead to the same comparison."""
    page = compared(reader, one, other)
    assert "<bdi>Alpha</bdi> or <bdi>Beta</bdi>?" in page
    assert "/best/crm-software" in page


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("", "", "Two products, to see"),
        ("alpha", "", 'value="Alpha"'),
        ("alpha", "alpha", "one and the same"),
        ("alpha", "zzzz", "No assistant has named “<bdi>zzzz</bdi>”"),
        ("alpha", "bet", "b=beta"),
    ],
)
def test_what_cannot_be_compared_is_a_page_to_choose_from(
    reader: FlaskClient, one: str, other: str, said: str
) -> None:
    """Nothing is guessed: what may be meant is offered, with the other side kept."""
    assert said in compared(reader, one, other)


def test_who_is_ahead_by_more_than_chance_is_told_first(app: Flask) -> None:
    """Before who is higher more often, with the ranking that shows it plainest and a reason."""
    page = compared(app.test_client(), "halcira", "gantora")
    box = page.partition('<section class="answer"')[2].partition("</section>")[0]
    winner, _, said = box.partition('<p class="say">')
    assert "<bdi>Halcira</bdi>" in winner
    assert said.startswith("In the one ranking asked often enough it is ahead by more than chance")
    assert 'Ahead by more than chance: <bdi>Halcira</bdi> for <a href="/best/vpn">VPNs</a>: ' in box
    titles = re.findall(r'class="where" href="[^"]*">([^<]+)<', page)
    assert titles[0] == "Best VPN"
    assert titles[1:] == sorted(titles[1:], key=str.casefold)


@pytest.mark.parametrize("query", ["a=" + "x" * 201, "a=x&a=y"])
def test_a_malformed_comparison_is_refused(reader: FlaskClient, query: str) -> None:
    """Too long a name, or two for one side."""
    assert reader.get(f"/compare?{query}").status_code == 400


@pytest.mark.parametrize(
    "query",
    ["alpha vs beta", "Alpha vs. Beta", "alfa versus BETA", "is alpha or beta named more?",
     "what is better, Alpha or Beta for tea", "alpha compared to beta"],
)  # fmt: skip
def test_a_search_for_two_leads_to_their_comparison(reader: FlaskClient, query: str) -> None:
    """The search page offers the comparison first."""
    asked = urlencode({"q": query})
    assert 'href="/compare?a=alpha&b=beta"' in html.unescape(reader.get(f"/search?{asked}").text)


@pytest.mark.parametrize("query", ["alpha", "alpha vs", "vs beta", "alpha vs alpha", "x or y"])
def test_no_comparison_is_offered_for_less_than_two(reader: FlaskClient, query: str) -> None:
    """One name, twice the same or unknown ones bring an ordinary search."""
    assert "/compare?a=" not in reader.get("/search?" + urlencode({"q": query})).text


def test_a_product_page_leads_to_comparisons(reader: FlaskClient) -> None:
    """A form compares it with any other product."""
    page = html.unescape(reader.get("/product/alpha").text)
    assert '<input type="hidden" name="a" value="alpha">' in page


@pytest.mark.parametrize(
    ("path", "sections"),
    [
        ("/", ""),
        ("/best/crm-software", "certainty scoring"),
        ("/product/alpha", "mentions"),
        ("/product/alpha/polls", "mentions names quotes"),
        ("/compare?a=alpha&b=beta", ""),
        ("/models", "agreement assistants noise polls scoring"),
        ("/topics/drinks", "certainty"),
        ("/changes", "changes"),
        ("/mentions", "mentions"),
        ("/search?q=alpha", "search"),
    ],
)
def test_figures_are_one_click_from_their_sentence(
    reader: FlaskClient, path: str, sections: str
) -> None:
    """Each kind of page leads to what the methodology says of its figures, and nowhere else."""
    told = set(re.findall(r'<h2 id="([a-z-]+)"', reader.get("/methodology").text))
    linked = set(re.findall(r'/methodology#([a-z-]+)"', reader.get(path).text))
    assert set(sections.split()) <= linked <= told


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("Nowhere or Nobody 5", "called “<bdi>Nowhere</bdi>” or “<bdi>Nobody 5</bdi>”."),
        ("X vs Nobody", "called “<bdi>Nobody</bdi>”."),
        ("gas or electric", None),
        ("X or Y", None),
    ],
)
def test_names_that_nobody_knows_are_told(tmp_path: Path, query: str, told: str | None) -> None:
    """What a search then finds is of their kind, not about them; other words name no product."""
    polls = [answered("A", ["X", "Y"])]
    client = app_over(write_data(tmp_path, models="A", polls=polls)).test_client()
    page = client.get("/search", query_string={"q": query}).text
    assert (told or "") in page
    assert ("No assistant has named a product" in page) == bool(told)
