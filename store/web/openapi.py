"""The OpenAPI document, made by apispec of the endpoints, their queries and the shapes."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from apispec import APISpec
from msgspec import NODEFAULT, Struct

from store.records import Site
from store.text import LICENCES
from store.web import errors
from store.web.endpoints import Endpoint
from store.web.queries import Query
from store.web.tables import MEDIA_TYPES

VERSION = "1.4.0"
REFERENCE = "#/components/schemas/{name}"

Examples = dict[str, Any]
"""By operation id: the values of the parameters, and the answer they bring, its lists shortened."""

_PLAIN = {
    304: "Not modified: the copy named by If-None-Match is current.",
    308: "The slug has a new one, or something is written in lower case; Location holds the "
    "address.",
}
_PROBLEMS = {
    400: "A parameter is missing, malformed or unknown (errors says which and why), or the Host "
    "header is not this service's.",
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
_LOCATION = {
    "Location": {
        "description": "The new address.",
        "required": True,
        "schema": {"type": "string", "format": "uri"},
    }
}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def document(
    site: Site,
    base_url: str,
    endpoints: tuple[Endpoint, ...],
    tags: Mapping[str, str],
    examples: Mapping[str, Examples],
    values: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the whole document; ``values`` are those that the data lets a parameter have."""
    spec = APISpec(
        title="Consensus rankings",
        version=VERSION,
        openapi_version="3.1.0",
        info={
            "summary": "What AI assistants answer to 'best X' questions, merged into rankings.",
            "description": (
                f"The API of {site.name}: read-only; assistant models are asked the same 'best X' "
                "question for every category, every answer and every failure is kept, and the "
                "answers are merged into rankings (5 points for a #1 down to 1 for a #5). It "
                "measures what assistants recommend, not what is true. Quote `verdict` verbatim "
                "and link the page. Fields may be added, and enumerations in answers may grow, "
                "within version 1; ignore what you do not know. In the examples, lists end after "
                "a few elements."
            ),
            "license": _licence(site.licence),
        },
        servers=[{"url": base_url}],
        security=[],
        tags=[{"name": name, "description": told} for name, told in tags.items()],
    )
    schemas, components = _schemas(endpoints)
    for name, schema in components.items():
        spec.components.schema(name, schema)
    for endpoint in endpoints:
        example = examples.get(endpoint.name, {})
        operation = _operation(endpoint, schemas[endpoint.name], example, values)
        spec.path(endpoint.path, operations={"get": operation})
    return spec.to_dict()


def _licence(name: str) -> dict[str, str]:
    """OpenAPI wants an SPDX identifier or nothing beside the name; ours may be any text."""
    return {"name": name, **({"identifier": name.replace(" ", "-")} if name in LICENCES else {})}


def _operation(
    endpoint: Endpoint, schema: Any, example: Examples, values: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": _success(endpoint, schema, example),
        "304": {"description": _PLAIN[304], "headers": _VALIDATORS},
    }
    if endpoint.moves or "format" in endpoint.query.__struct_fields__:
        responses["308"] = {"description": _PLAIN[308], "headers": _LOCATION}
    for status in sorted({*_ALWAYS, *endpoint.problems}):
        responses[str(status)] = {
            "description": _PROBLEMS[status],
            "content": {
                errors.MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(name="ProblemDetails")}}
            },
        }
    return {
        "tags": [endpoint.tag],
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": endpoint.description,
        "parameters": [
            {**parameter, **_example_of(parameter, example, values)}
            for parameter in parameters(endpoint.query, endpoint.rule)
        ],
        "responses": responses,
    }


def _example_of(
    parameter: Mapping[str, Any], example: Examples, values: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return what the data adds to a parameter: an enumeration would forbid tomorrow's values."""
    name, given = parameter["name"], example.get("parameters", {})
    known = {"schema": {**parameter["schema"], "examples": list(values.get(name, ()))}}
    shown = {"example": given[name]} if name in given else {}
    return {**(known if values.get(name) else {}), **shown}


def parameters(query: type[Query], rule: str = "") -> list[dict[str, Any]]:
    """Return the parameters of an address, as OpenAPI has them."""
    properties = properties_of(query)
    return [
        {
            "name": field.encode_name,
            "in": "path" if f"<{field.encode_name}>" in rule else "query",
            "required": field.default is NODEFAULT,
            "description": properties[field.encode_name].get("description", ""),
            "schema": _without(properties[field.encode_name], "description"),
        }
        for field in msgspec.structs.fields(query)
    ]


def properties_of(query: type[Struct]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field of a query; ``null`` is as if left out."""
    schema = msgspec.json.schema(query)["$defs"][query.__name__]
    properties = {}
    for name, given in typed(schema["properties"]).items():
        found = _without(given, "anyOf", "default")
        for option in given.get("anyOf", []):
            found |= option if option.get("type") != "null" else {}
        if given.get("default") is not None:
            found["default"] = given["default"]
        properties[name] = found
    return properties


def typed(schema: Any) -> Any:
    """Return a schema with a type beside each enumeration, and nothing beside a reference.

    Generators of clients go wrong without the one and ignore what stands beside the other.
    """
    if isinstance(schema, list):
        return [typed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: typed(part) for name, part in schema.items()}
    if isinstance(values := schema.get("enum"), list):
        kinds = {_TYPES[type(value)] for value in values}
        found = {"type": kinds.pop(), **found} if len(kinds) == 1 else found
    if "$ref" in found and len(found) > 1:
        reference = {"$ref": found.pop("$ref")}
        found = {"allOf": [reference], **found}
    return found


@cache
def _schemas(endpoints: tuple[Endpoint, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of each operation's answer, and of each component."""
    answers = [*(endpoint.answer for endpoint in endpoints), errors.ProblemDetails]
    schemas, components = msgspec.json.schema_components(answers, ref_template=REFERENCE)
    names = (endpoint.name for endpoint in endpoints)
    return dict(zip(names, typed(list(schemas)), strict=False)), typed(components)


def _success(endpoint: Endpoint, schema: Any, example: Examples) -> dict[str, Any]:
    content: dict[str, Any] = {endpoint.media_type: {"schema": schema}}
    if "answer" in example:
        content[endpoint.media_type]["example"] = example["answer"]
    if "format" in endpoint.query.__struct_fields__:
        others = (type_ for form, type_ in MEDIA_TYPES.items() if form != "json")
        content |= {type_.partition(";")[0]: {"schema": _TEXT} for type_ in others}
    return {"description": endpoint.summary, "headers": _VALIDATORS, "content": content}


def _without(schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}
