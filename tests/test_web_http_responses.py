"""Validators, conditional requests, compression and headers, the same for every resource."""

import gzip
from pathlib import Path

import pytest
from builders import app_over
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from small_world import PAGES, TEXTS, write_small_world

ANSWERS = {
    "/api/v1/search?q=crm": ("application/json", "/search?q=crm"),
    "/api/v1/categories.json": ("application/json", "/"),
    "/api/v1/best/crm-software.json": ("application/json", "/best/crm-software"),
    "/api/v1/product/alpha.json": ("application/json", "/product/alpha"),
    "/api/v1/mentions.json": ("application/json", "/mentions"),
    "/api/v1/changes.json": ("application/json", "/changes"),
    "/api/v1/history?slug=crm-software": ("application/json", "/best/crm-software"),
    "/api/v1/instruments.json": ("application/json", "/methodology"),
    "/api/v1/labs.json": ("application/json", "/labs"),
    "/api/v1/openapi.json": ("application/json", "/"),
    "/api/v1/README.md": ("text/markdown", "/"),
}
BEST = "/api/v1/best/crm-software.json"


@pytest.mark.parametrize("address", ANSWERS)
def test_every_answer_has_its_headers(reader: FlaskClient, address: str) -> None:
    """Type, weak ETag, caching, Vary, CORS, and links to licence, description and page."""
    media_type, page = ANSWERS[address]
    answer = reader.get(address)
    assert answer.mimetype == media_type
    assert answer.headers["ETag"].startswith('W/"')
    assert "Last-Modified" not in answer.headers
    assert answer.headers["Cache-Control"] == "public, max-age=60, stale-while-revalidate=600"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Expose-Headers"] == "ETag, Link"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Link"] == (
        '<https://creativecommons.org/licenses/by/4.0/>; rel="license", '
        '<https://rankings.example/api/v1/openapi.json>; rel="service-desc"; '
        f'type="application/json", <https://rankings.example{page}>; rel="alternate"; '
        'type="text/html"'
    )


@pytest.mark.parametrize("address", [*ANSWERS, *PAGES, *TEXTS])
def test_each_form_of_an_answer_has_its_headers(reader: FlaskClient, address: str) -> None:
    """304 to who has it, HEAD without a body, gzip above a kilobyte, all under the same tag."""
    full = reader.get(address)
    same = reader.get(address, headers={"If-None-Match": full.headers["ETag"]})
    assert (same.status_code, same.data) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary", "Link", "Access-Control-Allow-Origin"):
        assert same.headers[name] == full.headers[name]
    assert "Content-Type" not in same.headers
    head = reader.head(address)
    assert (head.status_code, head.data) == (200, b"")
    assert dict(head.headers) == dict(full.headers)
    small = reader.get(address, headers={"Accept-Encoding": "gzip"})
    assert small.headers["ETag"] == full.headers["ETag"]
    assert small.headers["Vary"] == "Accept-Encoding"
    if len(full.data) > 1024:
        assert small.headers["Content-Encoding"] == "gzip"
        assert int(small.headers["Content-Length"]) == len(small.data) < len(full.data)
        assert gzip.decompress(small.data) == full.data
    else:
        assert "Content-Encoding" not in small.headers
        assert small.data == full.data


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        (None, False), ("", False), ("identity", False), ("br", False), ("gzip", True),
        ("GZIP", True), ("deflate, gzip, br", True), ("gzip;q=0", False), ("gzip; q=0.0", False),
        ("gzip;q=0.001", True), ("*", True), ("*;q=0", False), ("gzip;q=0, *", False),
        ("identity;q=0, *;q=0.1", True), ("identity, gzip;q=0.5", False), ("notgzip", False),
        ("gzip;q=rubbish", False), (";;,", False), ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
    ],
)  # fmt: skip
def test_gzip_is_sent_only_where_it_is_wanted(
    reader: FlaskClient,
    accepted: str | None,
    compressed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Quality values are heard: zero forbids, and a preferred plain body stays plain."""
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    answer = reader.get(BEST, headers=headers)
    assert answer.status_code == 200
    assert ("Content-Encoding" in answer.headers) == compressed


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("{tag}", 304), ("*", 304), ('"other", {tag}', 304), ("{tag},{tag}", 304),
        ("{strong}", 304), ('W/"other"', 200), ('"other"', 200), ("", 200), ('"', 200), (",,", 200),
        ("{tag}x", 200), ('W/""', 200), ("\u00ff", 200), ('"*"', 200),
    ],
)  # fmt: skip
def test_if_none_match_is_compared_weakly(reader: FlaskClient, form: str, status: int) -> None:
    """Lists, the asterisk, strong and weak tags; what is no tag is no match."""
    tag = reader.get(BEST).headers["ETag"]
    value = form.format(tag=tag, strong=tag.removeprefix("W/"))
    assert reader.get(BEST, headers={"If-None-Match": value}).status_code == status


@pytest.mark.parametrize("address", [*ANSWERS, "/", "/best/crm-software", "/static/site.css"])
@pytest.mark.parametrize(
    "since", ["Sun, 01 Nov 2026 06:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"]
)
def test_no_date_brings_304(reader: FlaskClient, address: str, since: str) -> None:
    """Two polls may come in one second, and a file be taken away: a tag alone says what is new."""
    answer = reader.get(address, headers={"If-Modified-Since": since})
    assert answer.status_code == 200
    assert "Last-Modified" not in answer.headers


@given(st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40))
def test_no_header_brings_a_failure(small: Flask, value: str) -> None:
    """Whatever stands in the headers we read, the answer is 200 or 304."""
    for name in ("If-None-Match", "Accept-Encoding"):
        answer = small.test_client().get(BEST, headers={name: value})
        assert answer.status_code in (200, 304)


def test_a_history_that_changes_underneath_is_said_to_be_incomplete(tmp_path: Path) -> None:
    """Between snapshot and read a file may shrink or be replaced; no part passes for the whole."""
    directory = write_small_world(tmp_path / "data")
    file = directory / "history" / "crm-software.jsonl"
    whole = file.read_bytes()
    for left in (whole[:700], b"x" * len(whole)):
        file.write_bytes(whole)
        client = app_over(directory).test_client()
        client.get("/healthz")
        file.write_bytes(left)
        answer = client.get("/api/v1/history?slug=crm-software")
        assert answer.status_code == 503
        assert "crm-software.jsonl no longer holds all" in answer.get_json()["detail"]


def test_a_history_that_is_away_is_said_to_be_and_comes_back(tmp_path: Path) -> None:
    """While its file cannot be read, history is 503 and kept by no cache; then it is whole."""
    directory = write_small_world(tmp_path / "data")
    file = directory / "history" / "crm-software.jsonl"
    client = app_over(directory).test_client()
    before = client.get("/api/v1/history?slug=crm-software&limit=99").data
    away = file.rename(file.with_suffix(".away"))
    answer = client.get("/api/v1/history?slug=crm-software")
    assert answer.status_code == 503
    assert answer.headers["Cache-Control"] == "no-store"
    page = client.get("/best/crm-software", headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert "Perhaps you meant" not in page.text
    assert client.get("/api/v1/best/crm-software.json").status_code == 200
    away.rename(file)
    assert client.get("/api/v1/history?slug=crm-software").data == before
    assert client.get("/best/crm-software").status_code == 200
