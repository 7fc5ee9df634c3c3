"""Lists go on to their end, and come as JSON Lines and CSV that hold what the JSON holds."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import BASE_URL, answered, app_over, client_over, failed, write_data
from flask import Flask
from flask.testing import FlaskClient
from mcp_rankings import used

from store.records import Poll, Usage
from store.web.endpoints import MEDIA_TYPES
from store.web.history import POLL_COLUMNS, PollRecord
from store.web.openapi import ENDPOINTS

HISTORY = "/api/v1/history?slug=crm-software"
LISTS = ("categories.json", "changes.json", "mentions.json")
MOST_PARTS = 20
AWKWARD = 'said "yes",\nthen\rno; =1+1, ＂NA＂'  # noqa: RUF001 - a wide quote is meant


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """Two assistants that change their minds every day, and a failure; awkward names and texts."""
    polls = []
    for day in range(1, 9):
        for model in "AB":
            at = f"2026-10-{day:02}T06:00:00Z"
            names = ["NA", "=x"] if day % 2 else ["=x", "NA"]
            usage = Usage(700, 1500, 0.02) if model == "A" else None
            polls.append(answered(model, names, at, reason=AWKWARD, usage=usage))
    polls.append(failed("B", at="2026-10-09T06:00:00Z"))
    return client_over(write_data(tmp_path_factory.mktemp("tables") / "data", polls=polls))


def next_of(link: str) -> str | None:
    """The address of the next part, if a Link header names one."""
    found = re.search(r'<([^>]*)>; rel="next"', link)
    return found[1] if found else None


def parts(client: FlaskClient, address: str) -> list[Any]:
    """The bodies from an address to the end, by following the links."""
    bodies = []
    following: str | None = address
    while following:
        answer = client.get(following.removeprefix(BASE_URL))
        assert answer.status_code == 200
        assert 'rel="alternate"' in answer.headers["Link"]
        bodies.append(answer.text if "format=" in following else answer.get_json())
        following = next_of(answer.headers["Link"])
        assert len(bodies) <= MOST_PARTS, "it goes round in circles"
    return bodies


@pytest.mark.parametrize("more", ["", "&model=A", "&model=B"])
@pytest.mark.parametrize("limit", [1, 4, 8, 17])
def test_history_goes_on_to_the_very_first_poll(reader: FlaskClient, limit: int, more: str) -> None:
    """The parts, joined, are the whole, each full but the last; the end has no further link."""
    whole = reader.get(f"{HISTORY}&limit=500{more}").get_json()
    found = parts(reader, f"{HISTORY}&limit={limit}{more}")
    assert [record for part in found for record in part] == whole
    assert [len(part) for part in found[:-1]] == [limit] * (len(found) - 1)
    assert found[-1]


def test_a_part_stays_the_same_while_polls_are_added(tmp_path: Path) -> None:
    """A cursor is a poll, not a number: what comes on top moves nothing."""
    polls = [answered("A", ["x"], f"2026-10-0{day}T06:00:00Z") for day in (1, 2, 3)]
    app = app_over(write_data(tmp_path, polls=polls))
    client, address = app.test_client(), f"{HISTORY}&before={polls[2].id}"
    before = client.get(address).data
    app.extensions["store"].record([answered("A", ["y"])], "2026-10-04T06:00:00Z")
    app.extensions["store"].reload()
    assert client.get(address).data == before


@pytest.mark.parametrize(
    ("address", "parameter", "says"),
    [
        (f"{HISTORY}&before=ABC", "before", "16 hexadecimal digits"),
        (f"{HISTORY}&format=xml", "format", "csv, json, jsonl"),
        ("/api/v1/categories.json?format=tsv", "format", "csv, json, jsonl"),
        ("/api/v1/mentions.json?format=", "format", "csv, json, jsonl"),
    ],
)
def test_what_cannot_be_listed_is_refused(
    reader: FlaskClient, address: str, parameter: str, says: str
) -> None:
    """A wrong argument is named with what it may be, never ignored."""
    answer = reader.get(address)
    (error,) = answer.get_json()["errors"]
    assert (answer.status_code, error["parameter"]) == (400, parameter)
    assert says in error["detail"]


def test_a_cursor_that_is_nowhere_is_404(reader: FlaskClient) -> None:
    """It never begins again at the top, as if there were more to come."""
    answer = reader.get(f"{HISTORY}&before=0000000000000000")
    assert (answer.status_code, answer.get_json()["code"]) == (404, "unknown-cursor")


def test_json_lines_of_history_are_the_lines_of_the_file(reader: FlaskClient) -> None:
    """Newest first, each as it stands, so that its id can be checked."""
    answer = reader.get(f"{HISTORY}&format=jsonl")
    assert answer.content_type == MEDIA_TYPES["jsonl"]
    assert f"[{','.join(answer.text.splitlines())}]" == reader.get(HISTORY).text
    joined = "".join(parts(reader, f"{HISTORY}&format=jsonl&limit=5"))
    assert joined == answer.text


def test_csv_of_history_is_one_row_a_poll(reader: FlaskClient) -> None:
    """Texts come back as they were, whatever is in them; lists are columns, null is empty."""
    answer = reader.get(f"{HISTORY}&format=csv")
    assert answer.content_type == "text/csv; charset=utf-8; header=present"
    assert answer.data.endswith(b"\n")
    assert b"\r\n" not in answer.data
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    records = reader.get(HISTORY).get_json()
    assert list(rows[0]) == list(POLL_COLUMNS)
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    asked_b, asked_a = rows[1], rows[2]
    assert asked_a["reason"] == AWKWARD
    assert (asked_a["product1"], asked_a["product2"], asked_a["product3"]) == ("=x", "NA", "")
    assert (asked_a["inputTokens"], asked_a["usd"], asked_b["usd"]) == ("700", "0.02", "")
    failure = [rows[0][column] for column in ("failure", "product1", "webSearch")]
    assert failure == ["timeout", "", "false"]


def test_every_member_of_a_poll_is_documented() -> None:
    """What a line of history may have stands in the schema of the poll history."""
    assert PollRecord.__struct_fields__ == Poll.__struct_fields__


def test_what_has_rows_takes_a_format() -> None:
    """And says so in the OpenAPI document; nothing else that is over everything does."""
    documented = {each.path for each in ENDPOINTS if "format" in each.query.__struct_fields__}
    assert documented == {f"/api/v1/{name}" for name in (*LISTS, "history")}


@pytest.mark.parametrize("name", LISTS)
def test_other_lists_are_the_same_in_every_format(reader: FlaskClient, name: str) -> None:
    """A row holds what the object holds; the format is part of the kept body's address."""
    address = f"/api/v1/{name}"
    whole = reader.get(address)
    found = whole.get_json()
    [objects, *_] = [found] if isinstance(found, list) else filter(_is_list, found.values())
    assert objects
    lines = reader.get(f"{address}?format=jsonl").text.splitlines()
    assert [json.loads(line) for line in lines] == objects
    text = reader.get(f"{address}?format=csv").text
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert rows == [{name: cell(value) for name, value in o.items()} for o in objects]
    assert reader.get(f"{address}?format=json").data == whole.data


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def cell(value: object) -> str:
    """A JSON value as a table shows it; a row is flat."""
    if isinstance(value, list):
        return "; ".join(value)
    assert not isinstance(value, dict)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_an_empty_table_has_its_header(tmp_path: Path) -> None:
    """Programs that read columns by name work on a site without a poll."""
    client = app_over(write_data(tmp_path)).test_client()
    answer = client.get("/api/v1/categories.json?format=csv")
    assert answer.text == "slug,title,updated,level,first,tied,page,api\n"
    assert client.get("/api/v1/categories.json?format=jsonl").data == b""


def test_a_withheld_poll_is_withheld_in_every_format(small: Flask) -> None:
    """No format shows the text, and each says why it is away."""
    client = small.test_client()
    for form in MEDIA_TYPES:
        text = client.get(f"{HISTORY}&format={form}").text
        assert "Withheld Wonder" not in text
        assert "Withheld since 2026-10-27: Defamatory." in text


def test_agents_page_through_a_history_too(reader: FlaskClient) -> None:
    """`nextBefore`, given back as `before`, goes on to the first poll."""
    seen: list[Any] = []
    before: dict[str, str] = {}
    for _ in range(20):
        result = used(reader, "get_poll_history", slug="crm-software", limit=6, **before)[
            "structuredContent"
        ]
        seen += result["polls"]
        if result["nextBefore"] is None:
            break
        before = {"before": result["nextBefore"]}
    assert seen == reader.get(HISTORY).get_json()
    for nowhere, says in (("0" * 16, "no poll of this category"), ("that", "16 hexadecimal")):
        wrong = used(reader, "get_poll_history", slug="crm-software", before=nowhere)
        assert wrong["isError"]
        assert says in wrong["content"][0]["text"]
