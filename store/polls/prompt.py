"""The question as it is put to every assistant, the same words for all."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from store.rankings.merging import PLACES

SYSTEM = (
    "You answer questions about which product or service is best. Answer from your own knowledge "
    "and judgement, in English. Answer with one JSON object and nothing else."
)


class Prompt(Struct, frozen=True):
    """A question as it is put: what the assistant is told to be, and what it is asked."""

    system: str
    user: str


def prompt(question: str) -> Prompt:
    """The prompt for a category's question."""
    return Prompt(
        SYSTEM,
        f"{question}\n\n"
        f"Name at most {PLACES} picks, best first. For each give its name as its maker writes it, "
        "its web domain (null when unsure), the reason for its place in one or two sentences, and "
        "what it would take to rank higher. Then name near misses with the reason each was left "
        "out, and one caveat about your first pick (null if there is none).\n\n"
        "Answer with this JSON object only:\n"
        '{"picks": [{"name": "…", "domain": "example.com", "reason": "…", "fixes": ["…"]}], '
        '"near_misses": [{"name": "…", "reason": "…"}], "caveat": "…"}',
    )


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


_PICK = _object(
    {
        "name": _TEXT,
        "domain": _TEXT_OR_NULL,
        "reason": _TEXT,
        "fixes": {"type": "array", "items": _TEXT},
    }
)
_PICKS = {"type": "array", "description": f"At most {PLACES}, best first.", "items": _PICK}
_MISSES = {"type": "array", "items": _object({"name": _TEXT, "reason": _TEXT})}

ANSWER_SCHEMA = _object({"picks": _PICKS, "near_misses": _MISSES, "caveat": _TEXT_OR_NULL})
"""The answer's JSON schema, in the subset that every vendor takes: no counts, no lengths."""
