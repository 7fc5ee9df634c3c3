"""The OpenAPI document: valid, complete, and the truth about every live answer.

Errors are held to it in `test_web_fuzz.py`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from builders import answered, app_over, append, client_over, write_data, write_json
from flask import Flask
from flask.testing import FlaskClient
from jsonschema_rs import Draft202012Validator
from mcp_rankings import used
from openapi_spec_validator import OpenAPIV31SpecValidator
from small_world import write_small_world

from store.web.openapi import ENDPOINTS

Json = Any

DOCUMENTS = (
    "categories.json", "topics.json", "mentions.json", "changes.json", "instruments.json",
    "labs.json", "openapi.json", "README.md",
)  # fmt: skip
"""What is answered without a parameter."""


def served(client: FlaskClient) -> dict[str, Any]:
    document: dict[str, Any] = client.get("/api/v1/openapi.json").get_json()
    return document


def validator(document: dict[str, Any], path: str) -> Draft202012Validator:
    """A validator of one operation's answers, by the served document alone."""
    content = next(iter(document["paths"][path]["get"]["responses"]["200"]["content"].values()))
    return Draft202012Validator({**content["schema"], "components": document["components"]})


@pytest.fixture(params=["shipped", "small", "empty"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> FlaskClient:
    """A reader of the shipped data, of the little world, and of data that nobody has polled."""
    if request.param == "shipped":
        app: Flask = request.getfixturevalue("app")
    elif request.param == "small":
        app = request.getfixturevalue("small")
    else:
        app = app_over(write_data(tmp_path / "data"))
    return app.test_client()


def test_the_document_is_valid(anywhere: FlaskClient) -> None:
    """openapi-spec-validator finds nothing, whatever the data."""
    document = served(anywhere)
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.4.0")
    assert document["servers"] == [{"url": "https://rankings.example"}]
    for schema in document["components"]["schemas"].values():  # objects may gain fields within v1
        assert schema.get("additionalProperties", True) is not False


def test_every_route_is_documented_and_every_documented_route_exists(app: Flask) -> None:
    """The Flask rules below /api/ and the document's paths are the same."""
    rules = {
        rule.rule.replace("<", "{").replace(">", "}")
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/")
    }
    assert rules == {*served(app.test_client())["paths"], "/api/v1/"}


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """A reader of the little world, of which a category was deleted."""
    data = write_small_world(tmp_path_factory.mktemp("deleted") / "data")
    append(data, [answered("Model A", ["Alpha"], slug="old")])
    return client_over(data)


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("best/{slug}.json", "best/nope.json"),
        ("best/{slug}.json", "best/unpolled.json"),
        ("best/{slug}.json", "best/old.json"),
        ("best/{slug}.json", "best/green-tea.json?asOf=2020-01-01"),
        ("product/{slug}.json", "product/nope.json"),
        ("history", "history?slug=nope"),
        ("history", "history?slug=green-tea&before=0123456789abcdef"),
        ("categories.json", "categories.json?topic=nope"),
        ("changes.json", "changes.json?topic=nope"),
        ("changes.json", "changes.json?slug=nope"),
        ("changes.json", "changes.json?slug=unpolled"),
        ("changes.json", "changes.json?slug=old"),
        ("mentions.json", "mentions.json?a=b"),
        ("search", "search"),
    ],
)
def test_every_refusal_is_documented_with_its_code(
    deleted: FlaskClient, path: str, address: str
) -> None:
    """Of an operation those codes that it can answer: whoever writes a client handles these."""
    answer = deleted.get(f"/api/v1/{address}")
    responses = served(deleted)["paths"][f"/api/v1/{path}"]["get"]["responses"]
    code = f"`{answer.get_json()['code']}`"
    assert code in responses[str(answer.status_code)]["description"]


def test_every_category_and_product_fits_the_served_schema(
    client: FlaskClient, verdicts: dict[str, Any], product_records: dict[str, Any]
) -> None:
    """Every shipped verdict and record is valid under draft 2020-12."""
    for kind, answers in (("best", verdicts), ("product", product_records)):
        check = validator(served(client), f"/api/v1/{kind}/{{slug}}.json")
        for answer in answers.values():
            check.validate(answer)


def test_histories_and_searches_fit_the_served_schema(app: Flask, client: FlaskClient) -> None:
    """A spread of categories, each by its history and by a search for its title."""
    document = served(client)
    history, search = (validator(document, f"/api/v1/{name}") for name in ("history", "search"))
    for slug, board in list(app.extensions["store"].snapshot.leaderboards.items())[::60]:
        history.validate(client.get(f"/api/v1/history?slug={slug}").get_json())
        query = urlencode({"q": board.category.title})
        search.validate(client.get(f"/api/v1/search?{query}").get_json())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_fit_the_served_schema(anywhere: FlaskClient, name: str) -> None:
    """Each answer without parameters is valid, over any data."""
    answer = anywhere.get(path := f"/api/v1/{name}")
    body: Json = answer.text if path.endswith(".md") else answer.get_json()
    validator(served(anywhere), path).validate(body)


def test_the_little_world_fits_the_served_schema(small: Flask) -> None:
    """Withheld, failed, stale, retired, unranked: the rare shapes are valid too."""
    client = small.test_client()
    document = served(client)
    for slug in ("crm-software", "green-tea", "tea-kettle"):
        best = client.get(f"/api/v1/best/{slug}.json").get_json()
        validator(document, "/api/v1/best/{slug}.json").validate(best)
    for slug in ("crm-software", "green-tea", "tea-kettle", "unpolled"):
        history = client.get(f"/api/v1/history?slug={slug}").get_json()
        validator(document, "/api/v1/history").validate(history)
    for product in small.extensions["store"].snapshot.products.values():
        record = client.get(f"/api/v1/product/{product.slug}.json").get_json()
        validator(document, "/api/v1/product/{slug}.json").validate(record)


def begins(shown: Json, real: Json) -> bool:
    """Whether a value is the other one with lists cut to their first elements, five at most."""
    if isinstance(shown, list):
        fits = len(shown) == min(len(real), 5)
        return fits and all(map(begins, shown, real))
    if isinstance(shown, dict):
        return shown.keys() == real.keys() and all(begins(shown[k], real[k]) for k in shown)
    return bool(shown == real)


def test_every_documented_example_is_a_real_answer(anywhere: FlaskClient) -> None:
    """Asked with the example's parameters, the service answers the example, long lists aside."""
    seen = set()
    for path, item in served(anywhere)["paths"].items():
        operation = item["get"]
        content = operation["responses"]["200"]["content"]
        if "example" not in content.get("application/json", {}):
            continue
        parameters = {p["name"]: p["example"] for p in operation["parameters"] if "example" in p}
        assert {p["name"] for p in operation["parameters"] if p["required"]} <= parameters.keys()
        query = urlencode({n: v for n, v in parameters.items() if f"{{{n}}}" not in path})
        address = path.format(**parameters) + (f"?{query}" if query else "")
        assert begins(content["application/json"]["example"], anywhere.get(address).get_json())
        seen.add(operation["operationId"])
    every = {each.name for each in ENDPOINTS} - {"getRoot", "getOpenapi", "getReadme"}
    documents = every - {"search", "getBestInCategory", "getProduct", "getHistory"}
    assert seen == (every if anywhere.get("/api/v1/categories.json").json else documents)


def test_every_name_of_an_assistant_is_accepted(tmp_path: Path) -> None:
    """Present, retired and former ones, in this order: records keep the name that one bore."""
    data = write_small_world(tmp_path / "data")
    models = json.loads((data / "models.json").read_bytes())["models"]
    models[0] |= {"name": "Z", "former_names": ["A"]}
    write_json(data / "models.json", {"version": 1, "models": models})
    client = app_over(data).test_client()
    records = client.get("/api/v1/history?slug=crm-software&model=A").get_json()
    assert {record["model"] for record in records} == {"A"}
    assert records == client.get("/api/v1/history?slug=crm-software&model=Z").get_json()
    operation = served(client)["paths"]["/api/v1/history"]["get"]
    (model,) = [p for p in operation["parameters"] if p["name"] == "model"]
    assert model["schema"]["examples"] == ["Z", "B", "C", "D", "Retired", "A"]
    assert "former names" in model["description"]
    for name in ("B", "C", "D", "Retired"):
        own = client.get(f"/api/v1/history?slug=crm-software&model={name}").get_json()
        assert {record["model"] for record in own} == {name}
    refused = client.get("/api/v1/history?slug=crm-software&model=nobody").get_json()
    assert refused["errors"][0]["detail"] == "is unknown; accepted are: Z, B, C, D, Retired, A."
    one, other = (
        used(client, "get_poll_history", slug="crm-software", model=name) for name in "AZ"
    )
    assert one == other
    assert not one["isError"]


def test_a_licence_that_is_no_spdx_identifier_is_given_by_name(tmp_path: Path) -> None:
    """OpenAPI allows an SPDX expression in `identifier` and nothing else."""
    for licence, described in (
        ("CC0 1.0", {"name": "CC0 1.0", "identifier": "CC0-1.0"}),
        ("Ask us first", {"name": "Ask us first"}),
    ):
        document = served(app_over(write_data(tmp_path / licence, licence=licence)).test_client())
        assert document["info"]["license"] == described
        head = {"openapi": document["openapi"], "info": document["info"], "paths": {}}
        assert list(OpenAPIV31SpecValidator(head).iter_errors()) == []


def test_the_document_reads_as_recorded(
    tmp_path: Path, snapshot: Callable[[str, str], None]
) -> None:
    """A change of the published contract is seen in a diff, never slipped in."""
    app = app_over(write_small_world(tmp_path / "data"))
    document = served(app.test_client())
    snapshot("openapi.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
