"""Scripts of any origin may read every answer, and every preflight succeeds."""

import pytest
from flask.testing import FlaskClient

ORIGINS = ["https://x.example", "null", None]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/api/v1/best/crm-software.json", 200),
        ("HEAD", "/api/v1/history?slug=crm-software", 200),
        ("GET", "/api/v1/README.md", 200),
        ("GET", "/healthz", 200),
        ("GET", "/static/site.css", 200),
        ("GET", "/changes", 200),
        ("GET", "/.well-known/mcp/server-card.json", 200),
        ("GET", "/best/crm-software/", 308),
        ("GET", "/api/v1/best/crm.json", 308),
        ("GET", "/api/v1/search", 400),
        ("GET", "/api/v1/product/nope.json", 404),
        ("GET", "/nothing", 404),
        ("DELETE", "/api/v1/labs.json", 405),
        ("OPTIONS", "/api/v1/labs.json", 204),
    ],
)
def test_every_answer_says_any_origin_literally(
    reader: FlaskClient, origin: str | None, method: str, address: str, status: int
) -> None:
    """The asterisk itself, once, whoever asks: an echo would split caches by site; ``nosniff``."""
    answer = reader.open(address, method=method, headers={"Origin": origin} if origin else {})
    assert answer.status_code == status
    assert answer.headers.getlist("Access-Control-Allow-Origin") == ["*"]
    assert answer.headers["Access-Control-Expose-Headers"] == "ETag, Link"
    assert answer.headers.getlist("X-Content-Type-Options") == ["nosniff"]
    assert "Origin" not in answer.headers.get("Vary", "")
    assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize(
    "path",
    ["/api/v1/best/crm-software.json", "/api/v1/best/nope.json", "/api/v1/search", "/healthz",
     "/nothing", "/", "/api/v1/best/..%2f.json", "//x", "*"],
)  # fmt: skip
def test_a_preflight_succeeds_on_every_path(reader: FlaskClient, path: str) -> None:
    """A script that sends If-None-Match to an address we do not have can read our 404."""
    answer = reader.options(
        "/",
        headers={
            "Origin": "https://x.example",
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "if-none-match, x-other",
        },
        environ_overrides={"PATH_INFO": path},
    )
    assert (answer.status_code, answer.data) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Access-Control-Allow-Headers"] == "if-none-match, x-other"
    assert answer.headers["Access-Control-Max-Age"] == "86400"
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_a_preflight_for_another_method_promises_nothing(reader: FlaskClient) -> None:
    """We read only, and say so before a browser tries."""
    headers = {"Origin": "https://x.example", "Access-Control-Request-Method": "DELETE"}
    answer = reader.options("/api/v1/labs.json", headers=headers)
    assert "DELETE" not in answer.headers.get("Access-Control-Allow-Methods", "")
