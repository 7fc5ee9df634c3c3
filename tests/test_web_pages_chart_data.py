"""Every chart can be taken away as a table with the figures that stand beside it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from builders import answered, app_over, write_data

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Flask
    from flask.testing import FlaskClient


def rows(client: FlaskClient, path: str) -> list[dict[str, str]]:
    """A table as a reader of CSV gets it."""
    answer = client.get(path)
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert answer.headers["ETag"]
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_ranks_are_those_of_the_chart(small: Flask) -> None:
    """The last day holds the merged ranking of now."""
    client = small.test_client()
    found = rows(client, "/best/crm-software/ranks.csv")
    combined = client.get("/api/v1/best/crm-software.json").get_json()["combined"]
    last = [row for row in found if row["date"] == found[-1]["date"]]
    assert [row["slug"] for row in last] == [entry["slug"] for entry in combined]
    assert [int(row["rank"]) for row in last] == [entry["rank"] for entry in combined]


def test_mentions_are_those_of_the_chart(small: Flask) -> None:
    """By day: answers that named it, of all answers in its categories."""
    found = rows(small.test_client(), "/product/alpha/mentions.csv")
    assert {row["date"]: (row["named"], row["answers"]) for row in found}["2026-10-12"] == (
        "2",
        "2",
    )


@pytest.mark.parametrize("slug", ["agreement-on-first", "overlap-of-lists"])
def test_an_experiments_figures(client: FlaskClient, slug: str) -> None:
    """Label, value, interval and n of every bar; shares of one whole add up to one."""
    found = rows(client, f"/labs/{slug}/chart.csv")
    assert all(float(r["low"]) <= float(r["value"]) <= float(r["high"]) for r in found)
    if slug == "agreement-on-first":
        assert sum(float(row["value"]) for row in found) == pytest.approx(1)
    page = client.get(f"/labs/{slug}").text
    assert f'href="/labs/{slug}/chart.csv"' in page
    assert all(f"{float(row['value']):.1%}" in page for row in found)


def test_lengths_of_reigns_add_up(client: FlaskClient) -> None:
    """Every ended reign is in one bar."""
    found = rows(client, "/labs/how-long-a-first-place-lasts/chart.csv")
    assert sum(float(row["value"]) for row in found) == pytest.approx(1)
    assert found[-1]["label"] == "5 polls or more"


def test_the_matrix_of_assistants(client: FlaskClient) -> None:
    """Each two of four assistants once, with the categories that count both."""
    found = rows(client, "/models.csv")
    assert len(found) == 6
    assert {int(row["categories"]) for row in found} <= set(range(1, 1426))


@pytest.mark.parametrize(
    "path", ["/best/x/ranks.csv", "/product/x/mentions.csv", "/labs/x/chart.csv"]
)
def test_what_is_unknown_has_no_table(small: Flask, path: str) -> None:
    """An unknown slug is 404; an old one leads to the new table."""
    client = small.test_client()
    assert client.get(path).status_code == 404
    moved = client.get("/best/crm/ranks.csv")
    assert moved.headers["Location"].endswith("/best/crm-software/ranks.csv")


def test_a_long_silence_is_a_gap_in_the_chart(tmp_path: Path) -> None:
    """Two months without an answer are drawn as none, and said in words and in the table."""
    polls = [answered("A", ["X"], f"2026-{month:02}-05T06:00:00Z") for month in (1, 3)]
    page = app_over(write_data(tmp_path, polls=polls)).test_client().get("/product/x").text
    assert page.count('class="gap"') == 1
    assert "no answers for over 14 days" in page
    weekly = [answered("A", ["X"], f"2026-01-{day:02}T06:00:00Z") for day in (5, 12, 19)]
    write_data(tmp_path / "weekly", polls=weekly)
    page = app_over(tmp_path / "weekly").test_client().get("/product/x").text
    assert 'class="gap"' not in page
