"""The documentation page's parts, read off the served OpenAPI document."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode


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
            "fields": list(_fields(media["schema"], schemas)),
            "address": base + _filled(path, operation["parameters"]),
            "example": json.dumps(example, indent=2, ensure_ascii=False) if example else None,
        }


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


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The members of an answer, or of its elements when it is a list."""
    resolved = _resolved(schema, schemas)
    if resolved.get("type") == "array":
        resolved = _resolved(resolved["items"], schemas)
    for name, member in resolved.get("properties", {}).items():
        options = member.get("anyOf", [member])
        told = (_resolved(option, schemas).get("description", "") for option in options)
        yield name, _type(member), next(filter(None, told), "")


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        found: Mapping[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]
        return {**found, **schema}
    return schema


def _type(schema: Mapping[str, Any]) -> str:
    """A member's type in a word or two."""
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
