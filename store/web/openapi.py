"""The description of the API to programs and agents: root, OpenAPI document, instructions.

The document is made by apispec of the endpoints, their queries and the shapes, with real answers as
examples.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from apispec import APISpec
from msgspec import NODEFAULT, Struct

from store.history import HistoryError
from store.text import LICENCES
from store.web import errors, history, listings, search, trends, verdicts
from store.web.endpoints import MEDIA_TYPES, Endpoint, endpoint
from store.web.errors import Refused
from store.web.lookup import model_names
from store.web.queries import Query
from store.web.rendering import render
from store.web.shapes import JsonObject, Page, Time, doc
from store.web.view import View

EXAMPLE_ROWS = 5
"""Elements of any list that an example shows at most."""
VERSION = "1.4.0"
REFERENCE = "#/components/schemas/{name}"

Examples = dict[str, Any]
"""By operation id: the values of the parameters, and the answer they bring, its lists shortened."""

_UNCHANGED = "Not modified: the copy named by If-None-Match is current."
_MOVED = (
    "The slug has a new one, or something is written in lower case; Location holds the address."
)
_ALWAYS = ("bad-parameter", "unknown-parameter", "bad-request", "internal", "unavailable")
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

TAGS = {
    "Search": "From a topic, a need or a brand to slugs.",
    "Rankings": "What the assistants recommend now.",
    "Over time": "What they answered before, and what changed.",
    "About": "The service's experiments, and how to use it.",
}
"""Groups of operations, with what each answers."""


class Root(JsonObject, frozen=True, kw_only=True):
    """The service in short, and the addresses of its endpoints."""

    name: Annotated[str, doc("The service's name.")]
    version: Annotated[str, doc("Of this description of the API.")]
    last_poll: Annotated[Time | None, doc("Time of the newest poll.")]
    licence: Annotated[str, doc("The data's licence.")]
    sample: Annotated[bool, doc("Whether this is made-up data.")]
    docs: Annotated[Page, doc("The documentation, for people.")]
    mcp: Annotated[Page, doc("The same over MCP.")]
    endpoints: Annotated[dict[str, str], doc("Addresses by operation id, as URI templates.")]


@endpoint("/api/v1/", "About")
def get_root(view: View, query: Query) -> Root:  # noqa: ARG001
    """The root of the API.

    The service's name, its newest poll, its licence, and the addresses of all endpoints.
    """
    return Root(
        name=view.site.name,
        version=VERSION,
        last_poll=view.snapshot.summary.last_poll,
        licence=view.site.licence,
        sample=view.site.sample,
        docs=view.at.page("docs"),
        mcp=view.at.page("mcp"),
        endpoints={route.name: view.at.page(route.path.removeprefix("/")) for route in ENDPOINTS},
    )


@endpoint("/api/v1/openapi.json", "About", page=lambda view, _: view.at.page())
def get_openapi(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """This description.

    The OpenAPI 3.1 description of the endpoints.
    """
    site, samples = view.site, examples(view)
    values = {
        "model": list(model_names(view.snapshot)),
        "topic": [topic.slug for topic in view.snapshot.catalogue.topics],
    }
    # OpenAPI wants an SPDX identifier or nothing beside the name; ours may be any text.
    is_spdx = site.licence in LICENCES
    identifier = {"identifier": site.licence.replace(" ", "-")} if is_spdx else {}
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
            "license": {"name": site.licence, **identifier},
        },
        servers=[{"url": view.at.base}],
        security=[],  # nothing asks for a key; linters want that said
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
    )
    # The root is not among them: linters take a slash at the end of a path for a mistake.
    endpoints = tuple(route for route in ENDPOINTS if route is not get_root)
    schemas, components = _schemas(endpoints)
    for name, schema in components.items():
        spec.components.schema(name, schema)
    for route in endpoints:
        operation = _operation(route, schemas[route.name], samples.get(route.name, {}), values)
        spec.path(route.path, operations={"get": operation})
    return spec.to_dict()


@endpoint(
    "/api/v1/README.md",
    "About",
    write=lambda text, _: text.encode(),
    media_type="text/markdown; charset=utf-8",
)
def get_readme(view: View, query: Query) -> str:  # noqa: ARG001
    """Instructions for agents.

    What the data is, how to find, quote and attribute it.
    """
    described = [(route, parameters(route.query, route.rule)) for route in ENDPOINTS]
    return render("agents.md", view, endpoints=described, examples=examples(view))


def _operation(
    endpoint: Endpoint, schema: Any, example: Examples, values: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": _success(endpoint, schema, example),
        "304": {"description": _UNCHANGED, "headers": _VALIDATORS},
    }
    # A former slug is redirected, and so is a format in upper case.
    if {"slug", "format"} & {*endpoint.query.__struct_fields__}:
        responses["308"] = {"description": _MOVED, "headers": _LOCATION}
    codes: dict[int, list[str]] = {}
    for code in (*_ALWAYS, *endpoint.problems):
        codes.setdefault(errors.CODES[code][0], []).append(f"`{code}`")
    for status, own in sorted(codes.items()):
        responses[str(status)] = {
            "description": f"{HTTPStatus(status).phrase}; its code is {' or '.join(own)}.",
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
            {**parameter, **_of_data(parameter, example, values)}
            for parameter in parameters(endpoint.query, endpoint.rule)
        ],
        "responses": responses,
    }


def _of_data(
    parameter: Mapping[str, Any], example: Examples, values: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return a parameter's known values, as examples: an enumeration would forbid those to come."""
    name, sample = parameter["name"], example.get("parameters", {})
    schema = {**parameter["schema"], "examples": list(values.get(name, ()))}
    return {
        **({"schema": schema} if values.get(name) else {}),
        **({"example": sample[name]} if name in sample else {}),
    }


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
    for name, whole in typed(schema["properties"]).items():
        properties[name] = _without(whole, "anyOf", "default")
        for option in whole.get("anyOf", []):
            properties[name] |= option if option.get("type") != "null" else {}
        if whole.get("default") is not None:
            properties[name]["default"] = whole["default"]
    return properties


def typed(schema: Any) -> Any:
    """Return a schema with a type beside each enumeration, and nothing beside a reference.

    Generators of clients go wrong without the one and ignore what stands beside the other.
    """
    if isinstance(schema, list):
        return [typed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    mended = {name: typed(part) for name, part in schema.items()}
    if isinstance(values := schema.get("enum"), list):
        kinds = {_TYPES[type(value)] for value in values}
        mended = {"type": kinds.pop(), **mended} if len(kinds) == 1 else mended
    if "$ref" in mended and len(mended) > 1:
        mended = {"allOf": [{"$ref": mended.pop("$ref")}], **mended}
    return mended


@cache  # the code alone decides them
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
        tables = (MEDIA_TYPES["jsonl"], MEDIA_TYPES["csv"])
        content |= {type_.partition(";")[0]: {"schema": _TEXT} for type_ in tables}
    return {"description": endpoint.summary, "headers": _VALIDATORS, "content": content}


def _without(schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def examples(view: View) -> dict[str, Examples]:
    """Return real answers by operation id, with the parameters that bring them."""
    samples: dict[str, Examples] = {}
    for route, given in _sample_parameters(view):
        try:
            body = route.body(view, route.query(**given))
        except (Refused, HistoryError):  # a file is bad just now
            continue
        answer = _shortened(msgspec.json.decode(body.content))
        samples[route.name] = {"parameters": given, "answer": answer}
    return samples


def _sample_parameters(view: View) -> Iterator[tuple[Endpoint, dict[str, Any]]]:
    snapshot, summary = view.snapshot, view.snapshot.summary
    for route in (listings.list_topics, listings.get_instruments, listings.get_labs):
        yield route, {}
    yield trends.get_mentions, {}
    yield trends.get_changes, {}
    topics = [topic.slug for topic in summary.topics if topic.parts]
    yield listings.list_categories, {"topic": topics[0]} if topics else {}
    for board in summary.ranked[:1]:  # none before the first answer
        first = snapshot.products[board.entries[0].product]
        yield search.search, {"q": board.category.subject}
        yield verdicts.get_best_in_category, {"slug": board.slug}
        yield verdicts.get_product, {"slug": first.slug}
        states = snapshot.aggregates[board.slug].states
        for model in [a.model for a in board.counted if states[a.model].failure is None][:1]:
            yield history.get_history, {"slug": board.slug, "model": model, "limit": 1}


def _shortened(value: Any) -> Any:
    """Return a value with every list in it cut to its first elements."""
    if isinstance(value, list | tuple):
        return [_shortened(item) for item in value[:EXAMPLE_ROWS]]
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return value


ENDPOINTS: tuple[Endpoint, ...] = (
    search.search, listings.list_categories, listings.list_topics, verdicts.get_best_in_category,
    verdicts.get_product, trends.get_mentions, trends.get_changes, history.get_history,
    listings.get_instruments, listings.get_labs, get_root, get_openapi, get_readme,
)  # fmt: skip
"""Every endpoint of the API."""
