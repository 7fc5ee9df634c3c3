"""What is published: every answer's bytes, recorded, and the agents' README."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import app_over
from flask import Flask
from flask.testing import FlaskClient

from store.web import openapi
from store.web.openapi import ENDPOINTS

ANSWERS = {
    "search.json": "/api/v1/search?q=tea",
    "search-brand.json": "/api/v1/search?q=alpha",
    "categories.json": "/api/v1/categories.json",
    "categories-of-a-topic.json": "/api/v1/categories.json?topic=drinks",
    "topics.json": "/api/v1/topics.json",
    "best.json": "/api/v1/best/crm-software.json",
    "best-unanimous.json": "/api/v1/best/green-tea.json",
    "product.json": "/api/v1/product/alpha.json",
    "product-unlisted.json": "/api/v1/product/delta.json",
    "mentions.json": "/api/v1/mentions.json",
    "changes.json": "/api/v1/changes.json",
    "history.json": "/api/v1/history?slug=crm-software",
    "instruments.json": "/api/v1/instruments.json",
    "labs.json": "/api/v1/labs.json",
    "error-parameters.json": "/api/v1/history?slug=Nope&limit=0&model=x",
    "error-topic.json": "/api/v1/categories.json?topic=drink",
    "error-category.json": "/api/v1/best/green-teas.json",
    "error-product.json": "/api/v1/product/alfa-two.json",
    "error-unranked.json": "/api/v1/best/unpolled.json",
    "error-path.json": "/api/v1/nothing",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_answer_reads_as_recorded(
    small: Flask, snapshot: Callable[[str, str], None], name: str
) -> None:
    """One answer of each endpoint, and of each kind of error, over fixed data."""
    answer = small.test_client().get(ANSWERS[name]).get_json()
    snapshot(f"answers/{name}", json.dumps(answer, indent=1, ensure_ascii=False) + "\n")


def test_the_agents_readme_reads_as_recorded(
    small: Flask, snapshot: Callable[[str, str], None]
) -> None:
    """The instructions for agents, with live addresses and counts, over fixed data."""
    snapshot("agents.md", small.test_client().get("/api/v1/README.md").text)


def test_the_agents_readme_names_every_route_with_a_working_example(client: FlaskClient) -> None:
    """Every endpoint is there, and each address given as an example answers 200."""
    readme = client.get("/api/v1/README.md").text
    for route in ENDPOINTS:
        assert f"`GET {route.path}`" in readme
        for parameter in openapi.parameters(route.query, route.rule):
            assert f"`{parameter['name']}`" in readme
    examples = re.findall(r"^Example: https://rankings\.example(\S+)$", readme, re.MULTILINE)
    assert len(examples) == len(ENDPOINTS)
    for address in examples:
        assert client.get(address).status_code == 200


def test_two_apps_over_the_same_data_give_the_same_bytes(tmp_path: Path, small: Flask) -> None:
    """Bodies and validators follow from the files alone: not from the clock or the process."""
    directory = small.extensions["settings"].data_dir
    again = tmp_path / "copy"
    shutil.copytree(directory, again)
    other = app_over(again).test_client()
    for address in [*ANSWERS.values(), "/api/v1/openapi.json", "/api/v1/README.md"]:
        one, two = (
            client.get(address, headers={"Accept-Encoding": "gzip"})
            for client in (small.test_client(), other)
        )
        assert one.data == two.data
        for header in ("ETag", "Link", "Cache-Control", "Content-Type"):
            assert one.headers.get(header) == two.headers.get(header)
