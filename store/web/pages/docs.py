"""The documentation page's parts, read off the served OpenAPI document."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape
from werkzeug.datastructures import MultiDict

from store.web import verdicts
from store.web.errors import Moved, Refused, problem
from store.web.queries import AsOf, Changes, from_address
from store.web.view import View


def endpoints(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every operation of an OpenAPI document, its parameters with their ``rule`` in words.

    ``fields`` are name, type and description of each member of the answer.
    """
    base = document["servers"][0]["url"]
    schemas = document.get("components", {}).get("schemas", {})
    for path, operations in document["paths"].items():
        operation = operations["get"]
        media = next(iter(operation["responses"]["200"]["content"].values()))
        example = media.get("example")
        yield {
            **operation,
            "path": path,
            "parameters": [{**p, "rule": _rule(p["schema"])} for p in operation["parameters"]],
            "fields": fields(media["schema"], schemas),
            "address": base + _filled(path, operation["parameters"]),
            "example": json.dumps(example, indent=2, ensure_ascii=False) if example else None,
        }


def shapes(document: Mapping[str, Any]) -> list[tuple[str, str, list[tuple[str, Markup, str]]]]:
    """Return name, description and fields of every object that answers are made of."""
    schemas = document["components"]["schemas"]
    return [
        (name, schema.get("description", ""), fields(schema, schemas))
        for name, schema in sorted(schemas.items())
    ]


def problems(view: View) -> list[str]:
    """Return real error answers: of a parameter, of an unknown slug, of a day without a ranking."""
    slug = next(iter(view.snapshot.leaderboards), "x")
    asked: tuple[tuple[str, Callable[[], object]], ...] = (
        (
            "/api/v1/changes.json?limit=0&sinc=2026-11-01",
            lambda: from_address(
                Changes, MultiDict({"limit": "0", "sinc": "2026-11-01"}), {}, "", strict=True
            ),
        ),
        (
            f"/api/v1/best/{slug}s.json",
            lambda: verdicts.get_best_in_category(view, AsOf(slug=f"{slug}s")),
        ),
        (
            f"/api/v1/best/{slug}.json?asOf=2000-01-01",
            lambda: verdicts.get_best_in_category(view, AsOf(slug=slug, as_of="2000-01-01")),
        ),
    )
    bodies = []
    for address, ask in asked:
        with suppress(Moved):
            try:
                ask()
            except Refused as refused:
                body = msgspec.json.encode(problem(refused, address.partition("?")[0]))
                bodies.append(f"GET {address}\n\n{msgspec.json.format(body, indent=2).decode()}")
    return bodies


def _rule(schema: Mapping[str, Any]) -> str:
    """A parameter's schema in words."""
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    words = [str(schema.get("type", ""))]
    if "maximum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    if "maxLength" in schema:
        words.append(f"at most {schema['maxLength']} characters")
    if "default" in schema:
        words.append(f"default {schema['default']}")
    return ", ".join(words)


def _filled(path: str, parameters: list[Mapping[str, Any]]) -> str:
    """A path with the parameters' examples filled in."""
    query = {}
    for parameter in parameters:
        if "example" in parameter:
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
            else:
                query[parameter["name"]] = parameter["example"]
    return f"{path}?{urlencode(query)}" if query else path


def fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[tuple[str, Markup, str]]:
    """Return name, type and description of what an answer has, or its elements if it is a list."""
    resolved = _resolved(schema, schemas)
    if resolved.get("type") == "array":
        resolved = _resolved(resolved["items"], schemas)
    described = []
    for name, member in resolved.get("properties", {}).items():
        options = [member, *member.get("anyOf", [])]
        texts = (_resolved(option, schemas).get("description", "") for option in options)
        described.append((name, _type(member), next(filter(None, texts), "")))
    return described


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    if reference := _reference(schema):
        return {**schemas[reference], **schema}
    return schema


def _reference(schema: Mapping[str, Any]) -> str:
    """Return the name of the object that a schema refers to, if it does."""
    (referring, *_) = schema.get("allOf", [schema])
    return str(referring.get("$ref", "")).rpartition("/")[2]


def _type(schema: Mapping[str, Any]) -> Markup:
    """Return a member's type in a word or two; an object's leads to its description."""
    if "anyOf" in schema:
        return Markup(" or ").join(map(_type, schema["anyOf"]))
    if name := _reference(schema):
        return Markup('<a href="#{0}">{0}</a>').format(name)
    if "enum" in schema:
        return escape(" | ".join(json.dumps(value) for value in schema["enum"]))
    if schema.get("type") == "array":
        return Markup("array of {}").format(_type(schema.get("items", {})))
    if isinstance(schema.get("additionalProperties"), dict):
        return Markup("object of {}").format(_type(schema["additionalProperties"]))
    return escape(schema.get("format") or schema.get("type", "any"))
