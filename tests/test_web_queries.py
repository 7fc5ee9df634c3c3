"""Parameters are read exactly: what is odd is refused, named, and never guessed at."""

import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from hostile import ODD_LIMITS
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from store.web.queries import NOT_BLANK, trimmed

BLANK = "".join(c for c in map(chr, range(0x10000)) if c.isspace()) + "\ufeff"
ODD_SLUGS = [
    "", " ", "crm_software", "crm--software", "-crm", "crm-", "crm software",
    "crm.json", "../site", "..", "%2e%2e", "a" * 101, "crm-software\n", "crm\x00", "crм", "é", "٣",
    "crm-software,green-tea",
]  # fmt: skip


def refused(answer: TestResponse, *names: str) -> dict[str, Any]:
    """Assert a 400 that names these parameters, in this order, and return its body."""
    assert answer.status_code == 400
    body: dict[str, Any] = answer.get_json()
    assert [error["parameter"] for error in body["errors"]] == list(names)
    for error in body["errors"]:
        assert f"{error['parameter']} {error['detail']}" in body["detail"]
    return body


@pytest.mark.parametrize("limit", ODD_LIMITS)
def test_an_odd_limit_is_refused(reader: FlaskClient, limit: str) -> None:
    """Only an ASCII integer, as people write one; 1 to 500 polls, or 1 to 50 hits of each kind."""
    for path, query, bounds in (
        ("history", {"slug": "crm-software"}, "1 to 500"),
        ("search", {"q": "tea"}, "1 to 50"),
    ):
        answer = reader.get(f"/api/v1/{path}", query_string={**query, "limit": limit})
        assert bounds in refused(answer, "limit")["detail"]


@pytest.mark.parametrize(("given", "count"), [("1", 1), ("2", 2), ("500", 8), (None, 8)])
def test_a_limit_limits(reader: FlaskClient, given: str | None, count: int) -> None:
    """The newest so many records; without it up to a hundred."""
    query = {"slug": "crm-software", **({"limit": given} if given else {})}
    whole = reader.get("/api/v1/history?slug=crm-software&limit=500").get_json()
    assert reader.get("/api/v1/history", query_string=query).get_json() == whole[:count]


@pytest.mark.parametrize("slug", ODD_SLUGS)
def test_a_malformed_slug_is_refused(reader: FlaskClient, slug: str) -> None:
    """400, not 404, in a query and in a path, since no such slug can ever exist."""
    refused(reader.get("/api/v1/history", query_string={"slug": slug}), "slug")
    if slug and "/" not in slug:
        for kind in ("best", "product"):
            environ = {"PATH_INFO": f"/api/v1/{kind}/{slug}.json".encode().decode("latin-1")}
            refused(reader.get("/", environ_overrides=environ), "slug")


def test_a_slug_may_have_a_hundred_characters(reader: FlaskClient) -> None:
    """The longest slug is unknown, not malformed."""
    assert reader.get(f"/api/v1/best/{'a' * 100}.json").status_code == 404


@pytest.mark.parametrize(
    "query", [None, "", " ", "\t\n", "\u3000", "\u00a0", "\x1d\x85", "\ufeff", "a" * 201, "é" * 201]
)
def test_a_missing_blank_or_long_query_is_refused(reader: FlaskClient, query: str | None) -> None:
    """``q`` has 1 to 200 characters after trimming."""
    refused(reader.get("/api/v1/search", query_string={} if query is None else {"q": query}), "q")


@given(st.text(st.sampled_from(BLANK + "ab\u200b") | st.characters(), max_size=8))
def test_a_query_is_trimmed_as_python_and_browsers_trim(query: str) -> None:
    """White space by anybody's definition goes, from the ends only."""
    assert trimmed(query) == query.strip(BLANK)
    assert (trimmed(query) != "") == (re.search(NOT_BLANK, query) is not None)


@pytest.mark.parametrize("query", ["x", "é" * 200, f"  {'a' * 200}  ", "%", "'\"<>", "\x00", "🫖"])
def test_any_other_query_is_answered(reader: FlaskClient, query: str) -> None:
    """Characters are counted, not bytes, and after trimming; the answer says what it looked for."""
    answer = reader.get("/api/v1/search", query_string={"q": query})
    assert answer.status_code == 200
    assert answer.get_json()["query"] == query.strip()


def test_bytes_that_are_no_text_are_no_failure(reader: FlaskClient) -> None:
    """A query that is not UTF-8 is looked for as it was written, and finds nothing."""
    answer = reader.get("/api/v1/search?q=%ff%fe")
    lists: dict[str, Any] = {"categories": [], "brands": [], "related": []}
    assert answer.get_json() == {"query": "%FF%FE", **lists}


@pytest.mark.parametrize("model", ["", "E", "A ", "A,B", "Model A"])
def test_an_unknown_model_is_refused_with_the_accepted_names(
    reader: FlaskClient, model: str
) -> None:
    """The detail lists every accepted name, retired ones included."""
    query = {"slug": "crm-software", "model": model}
    body = refused(reader.get("/api/v1/history", query_string=query), "model")
    assert "A, B, C, D, Retired" in body["detail"]


@pytest.mark.parametrize(
    "address",
    [
        "search?q=tea&q=tea",
        *["history?slug=crm-software&model=A&limit=5&" + w for w in ("model=A", "limit=5")],
        *[f"history?slug={first}&slug=crm-software" for first in ("crm-software", "Green-Tea")],
    ],
)
def test_a_parameter_given_twice_is_refused(reader: FlaskClient, address: str) -> None:
    """Which of two values is meant is not guessed, be they equal or in other letters."""
    name = address.rpartition("&")[2].partition("=")[0]
    body = refused(reader.get(f"/api/v1/{address}"), name)
    assert "more than once" in body["detail"]


def test_one_answer_tells_everything_that_is_wrong(reader: FlaskClient) -> None:
    """Three bad parameters are three errors, so that nobody has to ask three times."""
    refused(reader.get("/api/v1/history?before=x&limit=0"), "slug", "limit", "before")


@pytest.mark.parametrize(
    ("path", "name", "meant"),
    [
        ("best/crm-software.json?asof=2026-11-01", "asof", "asOf"),
        ("best/crm-software.json?as_of=2026-11-01", "as_of", "asOf"),
        ("history?slug=crm-software&modell=A", "modell", "model"),
        ("categories.json?cache=no", "cache", None),
        ("labs.json?x=", "x", None),
        ("product/alpha.json?slug=beta", "slug", None),
    ],
)
def test_an_unknown_parameter_is_refused(
    reader: FlaskClient, path: str, name: str, meant: str | None
) -> None:
    """Else a misspelt one would bring an answer to another question; the closest is named."""
    body = refused(reader.get(f"/api/v1/{path}"), name)
    assert body["code"] == "unknown-parameter"
    assert ("did you mean" in body["detail"]) == (meant is not None)
    assert meant is None or f"did you mean {meant}?" in body["detail"]


def test_of_many_unknown_parameters_ten_are_told(reader: FlaskClient) -> None:
    """A refusal is no longer than a page."""
    answer = reader.get(f"/api/v1/mentions.json?{'&'.join(f'b{i}=1' for i in range(500))}")
    assert len(answer.get_json()["errors"]) == 10


def test_pages_ignore_parameters_that_they_do_not_know(reader: FlaskClient) -> None:
    """A link to a page, a feed or a picture may carry what others added to it."""
    for path in (
        "/best/crm-software",
        "/best/crm-software?slug=green-tea&slug=green-tea",
        "/search",
        "/feeds/changes.atom",
        "/embed/best/green-tea.svg",
    ):
        more = f"{'&' if '?' in path else '?'}utm_source=x"
        assert reader.get(f"{path}{more}").status_code in (200, 308)


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        ("history?slug=Green-Tea&limit=2", "history?slug=green-tea&limit=2"),
        ("history?slug=green-tea&model=a", "history?slug=green-tea&model=A"),
        ("categories.json?topic=DRINKS", "categories.json?topic=drinks"),
        ("changes.json?format=CSV&slug=GREEN-tea", "changes.json?slug=green-tea&format=csv"),
    ],
)
def test_upper_case_leads_to_the_same_in_lower_case(
    reader: FlaskClient, sent: str, canonical: str
) -> None:
    """308, as for addresses: nobody should have to know who is sensitive to case, and where."""
    answer = reader.get(f"/api/v1/{sent}")
    assert answer.status_code == 308
    assert answer.headers["Location"] == f"https://rankings.example/api/v1/{canonical}"
    assert reader.get(f"/api/v1/{canonical}").status_code == 200


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ("", 1), ("since=2026-10-19", 1), ("since=2026-10-20", 0), ("topic=software", 1),
        ("topic=drinks", 0), ("slug=crm-software", 1), ("slug=green-tea", 0), ("confirmed=true", 0),
        ("confirmed=false", 1), ("since=2026-10-01&confirmed=false&slug=crm-software", 1),
    ],
)  # fmt: skip
def test_changes_can_be_narrowed(reader: FlaskClient, query: str, counted: int) -> None:
    """By day, topic, category and confirmation; total says how many there are of these."""
    answer = reader.get(f"/api/v1/changes.json?{query}").get_json()
    assert (answer["count"], answer["total"]) == (counted, counted)
