"""The prompt, and the parser from a model's text to an answer, or to a failure that says why.

Nothing is ever guessed. The text is cleaned once, here, and escaped wherever it is shown. One
attempt is made to find the JSON object in a text that holds more; every mending leaves a note
(store/README.md, Polls).
"""

import json
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import idna
import msgspec
from msgspec import Struct

from store.rankings.merging import PLACES
from store.records import MAX_NAME, Answer, Failure, FailureKind, NearMiss, Pick
from store.text import DOMAIN_PATTERN, clean

# Every word of system and prompt is part of the instrument: another one begins all runs anew.
SYSTEM = (
    "You answer questions about which product or service is best. Answer from your own knowledge "
    "and judgement, in English. Answer with one JSON object and nothing else."
)


class Prompt(Struct, frozen=True):
    """A question as it is put: what the assistant is told to be, and what it is asked."""

    system: str
    user: str


def prompt(question: str) -> Prompt:
    """Return the prompt for a category's question, in the same words for every assistant."""
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


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


_PICK = _closed(
    {
        "name": _TEXT,
        "domain": _TEXT_OR_NULL,
        "reason": _TEXT,
        "fixes": {"type": "array", "items": _TEXT},
    }
)
_PICKS = {"type": "array", "description": f"At most {PLACES}, best first.", "items": _PICK}
_MISSES = {"type": "array", "items": _closed({"name": _TEXT, "reason": _TEXT})}

ANSWER_SCHEMA = _closed({"picks": _PICKS, "near_misses": _MISSES, "caveat": _TEXT_OR_NULL})
"""The answer's JSON schema, in the subset that every vendor takes: no counts, no lengths."""

MAX_PROSE = 2000
MAX_FIX = 500
MAX_FIXES = 10
MAX_MISSES = 20
MAX_HOST = 253

_DOMAIN = re.compile(DOMAIN_PATTERN)

Entry = TypeVar("Entry")


class _Pick(Struct):
    name: str
    reason: str | None
    domain: str | None
    fixes: list[str]


class _Miss(Struct):
    name: str
    reason: str | None


class _Shape(Struct):
    """The answer's shape as it is asked for; unknown members are ignored.

    The sample assistants invent the same, see :mod:`store.polls.sample`.
    """

    picks: list[_Pick]
    near_misses: list[_Miss]
    caveat: str | None


msgspec.json.Decoder(_Shape)  # prepares the type while no other thread does: tests/test_house.py


class _Unusable(Exception):
    def __init__(self, kind: FailureKind, sentence: str) -> None:
        self.failure = Failure(kind, sentence)


def read(text: str) -> Answer | Failure:
    """Read a model's text; raises nothing."""
    if not text.strip():
        return Failure("empty", "The model answered with no text.")
    try:
        value, notes = _object(text)
        return _answer(value, notes)
    except _Unusable as error:
        quoted = None if error.failure.kind == "empty" else text
        return msgspec.structs.replace(error.failure, excerpt=quoted)


def domain(text: str | None) -> str | None:
    """Return the bare host name in what a model gave as a domain, or ``None`` if there is none."""
    if not text:
        return None
    host = re.sub(r"^[a-z][a-z0-9+.-]*://", "", clean(text).lower())
    host = re.split(r"[\\/?#:\s]", host, maxsplit=1)[0].rpartition("@")[2].strip(".")
    if len(host) > MAX_HOST:
        return None
    try:
        if not host.isascii() or "xn--" in host:
            host = idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        return None
    host = host.removeprefix("www.") if host.count(".") > 1 else host
    return host if len(host) <= MAX_HOST and _DOMAIN.match(host) else None


def _object(text: str) -> tuple[Any, list[str]]:
    """Return the one JSON object of a text, and a note when it was not the whole text."""
    faults = []
    for note, candidate in (("", text), *_candidates(text)):
        try:
            return msgspec.json.decode(candidate.encode()), [note] if note else []
        except RecursionError:
            faults.append("it is nested too deep")
        except UnicodeEncodeError:
            faults.append("it holds half a surrogate pair")
        except ValueError as error:
            faults.append(f"{error}")
    if len(faults) == 1 and not text.lstrip().startswith(("{", "[")):
        raise _Unusable("parse", "The answer is text, not the JSON object asked for.")
    raise _Unusable("parse", f"The answer is not one JSON object: {faults[-1]}.")


def _candidates(text: str) -> Iterable[tuple[str, str]]:
    """Yield what may be the answer in a text that holds more than it, the likeliest first."""
    whole = text.strip()
    thinking, closed, after = whole.partition("</think>")
    if closed and thinking.startswith("<think>"):
        yield "salvaged: a <think> block was left out", after
    opening, _, fenced = whole.removesuffix("```").partition("\n")
    if whole.endswith("```") and opening.startswith("```") and "`" not in opening[3:]:
        yield "salvaged: a code fence was left out", fenced
    start = text.find("{")
    if start >= 0 and "[" not in text[:start]:
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        if not set("{}") & set(text[end:]):
            yield "salvaged: prose around the object was left out", text[start:end]


def _answer(value: Any, notes: list[str]) -> Answer:
    """Return what an object answers, cleaned; ``notes`` are added to."""
    if not isinstance(value, dict):
        raise _Unusable("schema", "The answer is JSON, but not an object.")
    try:
        shape = msgspec.convert(value, _Shape)
    except msgspec.ValidationError as error:
        sentence = f"The answer does not have the asked-for shape: {error}."
        raise _Unusable("schema", sentence) from None
    picks = tuple(
        Pick(
            rank=rank,
            product=_name(pick.name, "a pick"),
            domain=domain(pick.domain),
            reason=_prose(pick.reason, MAX_PROSE, f"reason of #{rank}", notes),
            fixes=tuple(
                fix
                for text in _first(MAX_FIXES, pick.fixes, f"fixes of #{rank}", notes)
                if (fix := _prose(text, MAX_FIX, f"fix of #{rank}", notes))
            ),
        )
        for rank, pick in enumerate(_first(PLACES, shape.picks, "picks", notes), start=1)
    )
    if not picks:
        raise _Unusable("empty", "The model answered without a single pick.")
    missed = tuple(
        NearMiss(
            _name(miss.name, "a near miss"),
            _prose(miss.reason, MAX_PROSE, "reason of a near miss", notes),
        )
        for miss in _first(MAX_MISSES, shape.near_misses, "near misses", notes)
    )
    return Answer(picks, missed, _prose(shape.caveat, MAX_PROSE, "caveat", notes), tuple(notes))


def _first(most: int, entries: list[Entry], what: str, notes: list[str]) -> list[Entry]:
    """Return so many entries at most, and note that others were left out."""
    if len(entries) > most:
        notes.append(f"only the first {most} of {len(entries)} {what} were kept")
    return entries[:most]


def _name(text: str, what: str) -> str:
    name = clean(text)
    if not any(char.isalnum() for char in name):
        raise _Unusable("schema", f"The name of {what} has no letter or digit.")
    if len(name) > MAX_NAME:
        sentence = f"The name of {what} has {len(name)} characters, over {MAX_NAME}."
        raise _Unusable("schema", sentence)
    return name


def _prose(text: str | None, limit: int, what: str, notes: list[str]) -> str | None:
    """Return cleaned text, cut if it is too long; ``None`` for nothing."""
    cleaned = clean(text or "")
    if len(cleaned) > limit:
        notes.append(f"the {what} was cut at {limit} characters")
        cleaned = clean(cleaned[: limit - 1]) + "…"
    return cleaned or None
