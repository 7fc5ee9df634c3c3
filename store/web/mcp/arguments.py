"""What a tool is given: flat arguments with bounds, checked completely and told in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.web.parameters import trimmed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.web.routes import Parameter


class BadCall(Exception):
    """A call that cannot be answered: what to do instead; ``quotes`` if models wrote some of it."""

    def __init__(self, message: str, *, quotes: bool = False) -> None:
        super().__init__(message)
        self.quotes = quotes


def input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {p.name: {**p.schema, "description": p.description} for p in parameters},
        "required": [p.name for p in parameters if p.required],
        "additionalProperties": False,
    }


def read(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all arguments: strings trimmed, defaults filled in, null taken as not given.

    Raises:
        BadCall: some are unknown, missing or out of bounds; the message names them all.
    """
    names = [p.name for p in parameters]
    faults = (
        [] if set(given) <= set(names) else [f"The arguments are {', '.join(names)}, no other."]
    )
    values: dict[str, Any] = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if isinstance(value, str):
            value = trimmed(value)
        values[parameter.name] = parameter.schema.get("default") if value is None else value
        if value is None and parameter.required:
            faults.append(f"{parameter.name} is missing. It is: {parameter.description}")
        elif value is not None and (wrong := _fault(parameter.schema, value)):
            faults.append(f"{parameter.name} {wrong}.")
    if faults:
        raise BadCall(" ".join(faults))
    return values


def _fault(schema: Mapping[str, Any], value: object) -> str | None:
    """What is wrong with a value, as the rest of a sentence that begins with its name."""
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        whole = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if whole else f"must be a whole number from {low} to {high}"
    if not isinstance(value, str):
        return "must be a string"
    if "enum" in schema:
        accepted = schema["enum"]
        return None if value in accepted else f"must be one of: {', '.join(accepted)}"
    low, high = schema.get("minLength", 0), schema["maxLength"]
    if not low <= len(value) <= high:
        return f"must have {low} to {high} characters; it has {len(value)}"
    return None
