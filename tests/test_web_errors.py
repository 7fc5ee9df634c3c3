"""Every failure is a problem detail: what went wrong, what to do, and nothing about the machine."""

import builtins
import io
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import BASE_URL, app_over
from flask import Flask
from flask.testing import FlaskClient
from hostile import PIECES
from small_world import write_small_world
from werkzeug.test import TestResponse

from store.web.errors import CODES

OPENING = ("open", "listdir", "scandir")
ROOT = str(Path(__file__).parent.parent)
PATHS = [
    "/api", "/api/", "/api/v2/search", "/api/v1/best", "/api/v1/best/",
    "/api/v1/best/.json", "/api/v1/best/a/b.json", "/api/v1/product/", "/api/v1/history.json",
    "/robots.txt.bak", "/.env", "/.git/config", "/data/site.json", "/app.py",
    "/site.json", "/history/crm-software.jsonl", "/wp-login.php", "/static", "/static/",
    "/static/../app.py", "/cgi-bin/sh", "/api/v1/best/crm-software.xml", "/api//v1/categories.json",
    "/api/v1//search",
]  # fmt: skip
TEMPLATES = [
    "/{}", "//{}", "/api/v1/{}", "/api/v1/best/{}", "/api/v1/best/{}.json",
    "/api/v1/product/{}.json", "/static/{}", "/api//v1/{}", "/healthz/{}", "/best/{}",
    "/product/{}", "/labs/{}", "/feeds/best/{}.atom",
]  # fmt: skip


def raw(client: FlaskClient, path: str, method: str = "GET") -> TestResponse:
    """Ask for a path exactly as it is, past the client's own idea of addresses."""
    environ = {"PATH_INFO": path.encode("utf-8", "surrogatepass").decode("latin-1")}
    return client.open("/", method=method, environ_overrides=environ)


def is_problem(answer: TestResponse, status: int) -> dict[str, Any]:
    """Assert a problem detail of RFC 9457 that no cache keeps, and return it."""
    assert answer.status_code == status
    assert answer.mimetype == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    body: dict[str, Any] = answer.get_json()
    assert list(body)[:5] == ["type", "title", "status", "detail", "instance"]
    assert list(body)[5] == "code"
    assert set(list(body)[6:]) <= {"errors", "suggestions"}
    assert CODES[body["code"]][0] == body["status"] == status
    assert body["type"] == "about:blank"
    assert body["title"] == {400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
                             500: "Internal Server Error"}[status]  # fmt: skip
    return body


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_path_is_404(reader: FlaskClient, path: str) -> None:
    """Whatever looks like a path and is none of ours."""
    body = is_problem(raw(reader, path), 404)
    assert body["instance"] == path
    assert ("/data lists" if path.startswith("/data/") else "/api/v1/README.md") in body["detail"]


def test_slashes_are_not_merged(reader: FlaskClient) -> None:
    """More slashes name nothing; ``instance`` is a path of ours, never another host's address."""
    body = is_problem(raw(reader, "//api/v1/categories.json"), 404)
    assert body["instance"] == "/.//api/v1/categories.json"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "FOO"])
@pytest.mark.parametrize("path", ["/api/v1/search", "/api/v1/best/x.json", "/healthz"])
def test_a_wrong_method_is_405_with_allow(reader: FlaskClient, path: str, method: str) -> None:
    """GET, HEAD and OPTIONS are all there is, and Allow says so."""
    answer = reader.open(path, method=method)
    is_problem(answer, 405)
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_an_unknown_slug_suggests_the_closest(reader: FlaskClient) -> None:
    """In a path and in a query, also where two letters are exchanged; else none."""
    for path, slug in (
        ("best/crm-sofware.json", "crm-software"),
        ("product/gyokurro.json", "gyokuro"),
        ("product/gyokuor.json", "gyokuro"),
        ("history?slug=green-teas", "green-tea"),
    ):
        body = is_problem(reader.get(f"/api/v1/{path}"), 404)
        assert body["suggestions"][0]["slug"] == slug
    assert is_problem(reader.get("/api/v1/best/qqqqxxxxzzzz.json"), 404)["suggestions"] == []


def test_a_category_without_a_ranking_says_so(reader: FlaskClient) -> None:
    """It is 404 with its own sentence, its history is there, and no list or search has it."""
    body = is_problem(reader.get("/api/v1/best/unpolled.json"), 404)
    assert "no successful poll yet" in body["detail"]
    assert "suggestions" not in body
    assert reader.get("/api/v1/history?slug=unpolled").get_json() == []
    listed = [item["slug"] for item in reader.get("/api/v1/categories.json").get_json()]
    assert "unpolled" not in listed
    found = reader.get("/api/v1/search?q=unpolled thing").get_json()
    assert "unpolled" not in [hit["slug"] for hit in found["categories"]]


def test_a_failure_of_ours_is_500_without_a_trace(
    small: Flask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reader gets a problem detail with CORS, the log gets the trace."""

    def break_down() -> None:
        raise ZeroDivisionError("a secret of the machine")

    monkeypatch.setitem(small.view_functions, "health", break_down)
    monkeypatch.setitem(small.config, "PROPAGATE_EXCEPTIONS", None)
    answer = small.test_client().get("/healthz", headers={"Origin": "https://x.example"})
    assert "secret" not in json.dumps(is_problem(answer, 500))
    assert "a secret of the machine" in caplog.text


def test_head_of_an_error_has_no_body(reader: FlaskClient) -> None:
    """HEAD answers what GET does, without the body."""
    answer = reader.head("/api/v1/best/nope.json")
    assert (answer.status_code, answer.data) == (404, b"")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The files and directories that this thread opens meanwhile; others are apps' watchers."""
    paths, thread = list[object](), threading.get_ident()

    def noting(real: Callable[..., Any]) -> Callable[..., Any]:
        def note(path: object = ".", *arguments: Any, **options: Any) -> Any:
            if threading.get_ident() == thread:
                paths.append(path)
            return real(path, *arguments, **options)

        return note

    for module, names in {builtins: ("open",), io: ("open",), os: OPENING}.items():
        for name in names:
            monkeypatch.setattr(module, name, noting(getattr(module, name)))
    return paths


def test_odd_paths_are_refused_and_open_nothing(tmp_path: Path, opened: list[object]) -> None:
    """Over six hundred odd paths: 400 or 404 in the end but for one more slash, no file touched."""
    client = app_over(write_small_world(tmp_path / "data")).test_client()
    client.get("/best/nope")  # the template of errors is read once
    assert opened, "the app is heard reading its data"
    paths = PATHS + [template.format(piece) for template in TEMPLATES for piece in PIECES]
    assert len(paths) > 600
    opened.clear()
    for path in paths:
        answer = raw(client, path)
        if answer.status_code == 308:  # another spelling of an address of ours
            assert answer.headers["Location"].startswith(f"{BASE_URL}/")
            answer = raw(client, answer.headers["Location"].removeprefix(BASE_URL))
        assert answer.status_code in ((200,) if path == "/healthz/" else (400, 404)), path
        assert "X-Bad" not in answer.headers
        assert ROOT not in answer.text
        assert str(tmp_path) not in answer.text
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert opened == []
