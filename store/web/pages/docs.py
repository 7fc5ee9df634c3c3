"""The documentation page's parts, read off the served OpenAPI document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Parameter(Struct, frozen=True):
    """A parameter with its rule in words."""

    name: str
    place: str
    required: bool
    description: str
    rule: str


class Field(Struct, frozen=True):
    """A member of an answer."""

    name: str
    type: str
    description: str


class Endpoint(Struct, frozen=True):
    """One operation: what it takes, what it answers, and how to call it."""

    path: str
    name: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    fields: tuple[Field, ...]
    statuses: tuple[tuple[str, str], ...]
    address: str
    example: str | None

    @property
    def curl(self) -> str:
        """A call from a shell."""
        return f"curl '{self.address}'"

    @property
    def python(self) -> str:
        """A call from Python's standard library."""
        read = "json.load(answer)" if self.path != "/api/v1/README.md" else "answer.read().decode()"
        lines = ["import json", "from urllib.request import urlopen", ""]
        if read.startswith("answer"):
            lines.pop(0)
        opened = f'with urlopen("{self.address}") as answer:'
        return "\n".join([*lines, opened, f"    print({read})"])

    @property
    def javascript(self) -> str:
        """A call from a browser or Node."""
        read = "text" if self.path == "/api/v1/README.md" else "json"
        return f'const answer = await fetch("{self.address}");\nconsole.log(await answer.{read}());'


def endpoints(document: Mapping[str, Any]) -> Iterator[Endpoint]:
    """Every operation of an OpenAPI document."""
    base = document["servers"][0]["url"]
    schemas = document.get("components", {}).get("schemas", {})
    for path, operations in document["paths"].items():
        operation = operations["get"]
        media = next(iter(operation["responses"]["200"]["content"].values()))
        example = media.get("example")
        yield Endpoint(
            path=path,
            name=operation["operationId"],
            summary=operation["summary"],
            description=operation["description"],
            parameters=tuple(_parameter(p) for p in operation["parameters"]),
            fields=tuple(_fields(media["schema"], schemas)),
            statuses=tuple((s, r["description"]) for s, r in operation["responses"].items()),
            address=base + _filled(path, operation["parameters"]),
            example=json.dumps(example, indent=2, ensure_ascii=False) if example else None,
        )


def _parameter(parameter: Mapping[str, Any]) -> Parameter:
    return Parameter(
        name=parameter["name"],
        place=parameter["in"],
        required=parameter["required"],
        description=parameter["description"],
        rule=_rule(parameter["schema"]),
    )


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


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[Field]:
    """The members of an answer, or of its elements when it is a list."""
    resolved = _resolved(schema, schemas)
    if resolved.get("type") == "array":
        resolved = _resolved(resolved["items"], schemas)
    for name, member in resolved.get("properties", {}).items():
        options = member.get("anyOf", [member])
        told = (_resolved(option, schemas).get("description", "") for option in options)
        yield Field(name, _type(member), next(filter(None, told), ""))


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
