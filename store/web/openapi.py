"""The OpenAPI 3.1 document, built with apispec from the route table and the wire structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from apispec import APISpec

from store.urls import LICENCES
from store.web import resources
from store.web.errors import MEDIA_TYPE
from store.web.routes import FORMAT, ROUTES, TAGS, Parameter, Route
from store.web.tables import MEDIA_TYPES

if TYPE_CHECKING:
    from store.records import Site

VERSION = "1.4.0"
REFERENCE = "#/components/schemas/{name}"

Examples = dict[str, Any]
"""By operation id: the values of the parameters, and the answer they bring, its lists shortened."""

Accepted = Mapping[str, Sequence[str]]
"""By name of a parameter, the values that the data lets it have."""

_PLAIN = {
    304: "Not modified: the copy named by If-None-Match is current.",
    308: "The slug has a new one, or is written in lower case; Location holds the address.",
}
_PROBLEMS = {
    400: "A parameter is missing or malformed (errors says which and why), or the Host header is "
    "not this service's.",
    404: "Nothing is known by that slug (suggestions holds the closest), or it has no ranking yet.",
    410: "The category is gone; detail names the day of its last answer. Its history stays.",
    500: "Something went wrong on our side.",
    503: "A file that this is made from cannot be used just now; detail says which, and why.",
}
_ALWAYS = (400, 500, 503)
"""Problems that any operation can answer: everywhere the Host is checked, and history needed."""

_TEXT = {"type": "string"}
_VALIDATORS = {
    "ETag": {"description": "Weak validator of the body.", "schema": _TEXT},
    "Cache-Control": {"description": "How long a copy may be used.", "schema": _TEXT},
    "Link": {
        "description": "Licence, this description, the page that shows the same; of a list that "
        "goes on, the next part.",
        "schema": _TEXT,
    },
}
_LOCATION = {"Location": {"description": "The new address.", "required": True, "schema": _TEXT}}


def document(
    site: Site, base_url: str, accepted: Accepted, examples: Mapping[str, Examples]
) -> dict[str, Any]:
    """The whole document; ``accepted`` are the values of parameters that follow from the data."""
    spec = APISpec(
        title=f"{site.name}: what AI assistants recommend",
        version=VERSION,
        openapi_version="3.1.0",
        info={
            "summary": "What AI assistants answer to 'best X' questions, merged into rankings.",
            "description": (
                "A read-only API that asks assistant models the same 'best X' question for every "
                "category, keeps every answer and every failure, and merges the answers into "
                "rankings (5 points for a #1 down to 1 for a #5). It measures what assistants "
                "recommend, not what is true. Quote `verdict` verbatim and link the page. In the "
                "examples, lists end after a few elements."
            ),
            "license": _licence(site.licence),
        },
        servers=[{"url": base_url}],
        security=[],
        tags=[{"name": name, "description": told} for name, told in TAGS.items()],
    )
    for name, schema in _schemas()[1].items():
        spec.components.schema(name, schema)
    for route in ROUTES:
        operation = _operation(route, accepted, examples.get(route.operation_id, {}))
        spec.path(route.path, operations={"get": operation})
    return spec.to_dict()


def _licence(name: str) -> dict[str, str]:
    """OpenAPI wants an SPDX identifier or nothing beside the name; ours may be any text."""
    return {"name": name, **({"identifier": name.replace(" ", "-")} if name in LICENCES else {})}


def _operation(route: Route, accepted: Accepted, example: Examples) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": _success(route, example),
        "304": {"description": _PLAIN[304], "headers": _VALIDATORS},
    }
    if route.redirects:
        responses["308"] = {"description": _PLAIN[308], "headers": _LOCATION}
    for status in sorted({*_ALWAYS, *route.errors}):
        responses[str(status)] = {
            "description": _PROBLEMS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(name="ProblemDetails")}}},
        }
    return {
        "tags": [route.tag],
        "operationId": route.operation_id,
        "summary": route.summary,
        "description": route.description,
        "parameters": [_parameter(p, accepted, example) for p in route.parameters],
        "responses": responses,
    }


def _parameter(parameter: Parameter, accepted: Accepted, example: Examples) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if values := accepted.get(parameter.name):
        schema["enum"] = list(values)
    described = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
    }
    if parameter.name in example.get("parameters", {}):
        described["example"] = example["parameters"][parameter.name]
    return described


@cache
def _schemas() -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each operation's answer, and of each component; they follow from the code."""
    answers = [*(route.resource for route in ROUTES), resources.ProblemDetails]
    schemas, components = msgspec.json.schema_components(answers, ref_template=REFERENCE)
    operations = (route.operation_id for route in ROUTES)
    return dict(zip(operations, schemas, strict=False)), components  # the last is the errors'


def _success(route: Route, example: Examples) -> dict[str, Any]:
    content: dict[str, Any] = {route.media_type: {"schema": _schemas()[0][route.operation_id]}}
    if "answer" in example:
        content[route.media_type]["example"] = example["answer"]
    if FORMAT in route.parameters:
        others = (type_ for form, type_ in MEDIA_TYPES.items() if form != "json")
        content |= {type_.partition(";")[0]: {"schema": _TEXT} for type_ in others}
    return {"description": route.summary, "headers": _VALIDATORS, "content": content}
