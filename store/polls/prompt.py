"""The question as it is put to every assistant, the same words for all."""

from __future__ import annotations

from store.polls.providers import Prompt
from store.rankings.merging import PLACES

SYSTEM = (
    "You answer questions about which product or service is best. Answer from your own knowledge "
    "and judgement, in English. Answer with one JSON object and nothing else."
)


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

ANSWER_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["picks", "near_misses", "caveat"],
    "properties": {
        "picks": {
            "type": "array",
            "description": f"At most {PLACES}, best first.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "domain", "reason", "fixes"],
                "properties": {
                    "name": _TEXT,
                    "domain": _TEXT_OR_NULL,
                    "reason": _TEXT,
                    "fixes": {"type": "array", "items": _TEXT},
                },
            },
        },
        "near_misses": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "reason"],
                "properties": {"name": _TEXT, "reason": _TEXT},
            },
        },
        "caveat": _TEXT_OR_NULL,
    },
}
"""The answer's JSON schema, in the subset that every vendor takes: no counts, no lengths."""
