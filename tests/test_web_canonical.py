"""Upper case, a slash at the end and old slugs lead to what is meant, and nowhere else."""

from urllib.parse import urljoin

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from store.publishing.trees import paths_to_export

BASE = "https://rankings.example"


def raw(client: FlaskClient, path: str, **environ: str) -> TestResponse:
    """Ask for a path exactly as it is, past the client's own idea of addresses."""
    return client.open("/", environ_overrides={"PATH_INFO": path, **environ})


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        ("/best/CRM-Software", "/best/crm-software"),
        ("/best/crm-software/", "/best/crm-software"),
        ("/Best/CRM-Software/", "/best/crm-software"),
        ("/api/v1/best/CRM-Software.json", "/api/v1/best/crm-software.json"),
        ("/api/v1/best/crm-software.JSON", "/api/v1/best/crm-software.json"),
        ("/api/v1/categories.json/", "/api/v1/categories.json"),
        ("/api/v1/README.md/", "/api/v1/README.md"),
        ("/product/Alpha/", "/product/alpha"),
        ("/product/ALPHA/polls", "/product/alpha/polls"),
        ("/feeds/best/CRM-software.atom", "/feeds/best/crm-software.atom"),
        ("/labs/By-Hand", "/labs/by-hand"),
        ("/changes/", "/changes"),
        ("/search/", "/search"),
        ("/healthz/", "/healthz"),
        ("/best/CRM", "/best/crm"),
        ("/api/v1/best/CRM-Software", "/api/v1/best/crm-software.json"),
        ("/api/v1/categories", "/api/v1/categories.json"),
        ("/api/v1/product/alpha", "/api/v1/product/alpha.json"),
        ("/api/v1", "/api/v1/"),
    ],
)
def test_another_spelling_is_redirected_for_good(
    reader: FlaskClient, sent: str, canonical: str
) -> None:
    """308 to the address below the base URL, its query string kept as it was sent."""
    answer = raw(reader, sent, QUERY_STRING="q=a%20b&x=%ff\xff", HTTP_HOST="127.0.0.1")
    assert answer.status_code == 308
    assert answer.headers["Location"] == f"{BASE}{canonical}?q=a%20b&x=%ff%FF"
    assert raw(reader, canonical).headers.get("Location") != answer.headers["Location"]
    assert raw(reader, sent).headers["Location"] == f"{BASE}{canonical}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("best/crm.json", "best/crm-software.json"),
        ("best/crm-tools.json", "best/crm-software.json"),
        ("best/crm.json?asOf=2026-10-12", "best/crm-software.json?asOf=2026-10-12"),
        ("product/alfa.json", "product/alpha.json"),
        ("history?slug=crm", "history?slug=crm-software"),
        ("history?slug=crm&limit=2&model=A", "history?slug=crm-software&model=A&limit=2"),
        (
            "history?slug=crm&limit=2&before=0123456789abcdef&format=csv",
            "history?slug=crm-software&limit=2&before=0123456789abcdef&format=csv",
        ),
        ("/best/crm", "/best/crm-software"),
        ("/best/crm?asOf=2026-10-12", "/best/crm-software?asOf=2026-10-12"),
        ("/feeds/best/crm.atom", "/feeds/best/crm-software.atom"),
        (
            "/feeds/best/crm.atom?before=0123456789abcdef&utm_source=x",
            "/feeds/best/crm-software.atom?before=0123456789abcdef",
        ),
        ("/product/alfa", "/product/alpha"),
        ("/product/alfa/polls", "/product/alpha/polls"),
    ],
)
def test_an_old_slug_is_redirected_for_good(reader: FlaskClient, old: str, new: str) -> None:
    """308 to the slug of today, below the base URL, with all else that was asked for."""
    answer = reader.get(urljoin("/api/v1/", old))
    assert answer.status_code == 308
    assert answer.headers["Location"] == urljoin(f"{BASE}/api/v1/", new)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.data == b""


def test_what_was_never_a_slug_leads_nowhere(reader: FlaskClient) -> None:
    """An alias of which no spelling is in history."""
    assert reader.get("/api/v1/product/alpha-one.json").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/Nope", "/nope/", "/best/", "/best//", "/best/crm-software//", "/best/CRM_Software",
     "//evil.example/", "//Best/crm-software/", "/\\evil.example/", "/best/crm-soft\u212aare"],
)  # fmt: skip
def test_what_has_no_address_is_not_redirected(reader: FlaskClient, path: str) -> None:
    """Where no address of ours is meant, nothing is promised: 400 or 404."""
    answer = raw(reader, path.encode().decode("latin-1"))
    assert answer.status_code in (400, 404)
    assert "Location" not in answer.headers


@pytest.mark.parametrize("path", ["/best/crm-software", "/search"])
def test_raw_bytes_in_a_query_are_read_as_if_encoded(reader: FlaskClient, path: str) -> None:
    """Whoever sends them gets the same answer as with %FF, not an error of ours."""
    answers = [raw(reader, path, QUERY_STRING=f"q=tea{sent}&x={sent}") for sent in ("\xff", "%FF")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].data == answers[1].data


def test_a_message_is_redirected_with_its_method(reader: FlaskClient) -> None:
    """``POST /mcp/`` is 308 too, so that a client sends its message again; other posts are 404."""
    assert reader.post("/mcp/", json={}).headers["Location"] == f"{BASE}/mcp"
    assert reader.post("/best/crm-software/").status_code == 404


@given(st.text(st.sampled_from("/\\.:@%?#AaZzé-"), max_size=12))
def test_no_path_leads_off_the_site(small: Flask, path: str) -> None:
    """Whatever is asked for, a redirect stays below the base URL."""
    answer = raw(small.test_client(), f"/{path}".encode().decode("latin-1"))
    assert answer.headers.get("Location", f"{BASE}/").startswith(f"{BASE}/")


def test_every_page_takes_upper_case_and_a_slash(small: Flask) -> None:
    """Also where the variable of its rule is no slug, which `_canonical` would have to know."""
    reader = small.test_client()
    paths = [*paths_to_export(small, small.extensions["store"].snapshot)]
    pages = [path for path in paths if path != "/" and reader.get(path).mimetype == "text/html"]
    for sent, path in [(f"{path}/", path) for path in pages] + [(p.upper(), p) for p in pages]:
        assert raw(reader, sent).headers.get("Location", "").endswith(path), sent
