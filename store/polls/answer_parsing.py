"""A model's text becomes an answer, or a failure that says why; nothing is ever guessed.

It is cleaned once, here, and escaped wherever it is shown. One attempt is made to find the JSON
object in a text that holds more; every mending leaves a note (store/README.md, Polls).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import idna
import msgspec
from msgspec import Struct

from store.rankings.merging import PLACES
from store.records import MAX_NAME, Answer, Failure, NearMiss, Pick
from store.text import DOMAIN_PATTERN, clean

MAX_PROSE = 2000
MAX_FIX = 500
MAX_FIXES = 10
MAX_MISSES = 20
MAX_HOST = 253

_DOMAIN = re.compile(DOMAIN_PATTERN)


class _SaidPick(Struct):
    name: str
    reason: str | None
    domain: str | None
    fixes: list[str]


class _SaidMiss(Struct):
    name: str
    reason: str | None


class _Said(Struct):
    """The answer's shape as it is asked for; unknown members are ignored."""

    picks: list[_SaidPick]
    near_misses: list[_SaidMiss]
    caveat: str | None


msgspec.json.Decoder(_Said)  # prepares the type while no other thread does; see tests/test_house.py


class _Unusable(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def read(text: str) -> Answer | Failure:
    """Read a model's text; raises nothing."""
    if not text.strip():
        return Failure("empty", "The model answered with no text.")
    try:
        value, salvage = _object(text)
        return _answer(_said(value), salvage)
    except _Unusable as error:
        quoted = None if error.failure.kind == "empty" else text
        return msgspec.structs.replace(error.failure, excerpt=quoted)


def domain(text: str | None) -> str | None:
    """The bare host name in what a model gave as a domain, or ``None`` when there is none."""
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


def _object(text: str) -> tuple[Any, tuple[str, ...]]:
    """The one JSON object of a text, and a note when it was not the whole text."""
    faults = []
    for note, candidate in (("", text), *_candidates(text)):
        try:
            return _loads(candidate), (note,) if note else ()
        except ValueError as error:
            faults.append(str(error))
    if len(faults) == 1 and not text.lstrip().startswith(("{", "[")):
        raise _Unusable(Failure("parse", "The answer is text, not the JSON object asked for."))
    raise _Unusable(Failure("parse", f"The answer is not one JSON object: {faults[-1]}."))


def _candidates(text: str) -> Iterable[tuple[str, str]]:
    """What may be the answer in a text that holds more than it, the likeliest first."""
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


def _loads(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half a surrogate pair") from None


def _said(value: Any) -> _Said:
    if not isinstance(value, dict):
        raise _Unusable(Failure("schema", "The answer is JSON, but not an object."))
    try:
        return msgspec.convert(value, _Said)
    except msgspec.ValidationError as error:
        raise _Unusable(
            Failure("schema", f"The answer does not have the asked-for shape: {error}.")
        ) from None


def _answer(said: _Said, notes: tuple[str, ...]) -> Answer:
    noted = list(notes)
    if len(said.picks) > PLACES:
        noted.append(f"only the first {PLACES} of {len(said.picks)} picks were kept")
    picks = tuple(
        Pick(
            rank=rank,
            product=_name(pick.name, "a pick"),
            domain=domain(pick.domain),
            reason=_prose(pick.reason, MAX_PROSE, f"reason of #{rank}", noted),
            fixes=_fixes(pick.fixes, rank, noted),
        )
        for rank, pick in enumerate(said.picks[:PLACES], start=1)
    )
    if not picks:
        raise _Unusable(Failure("empty", "The model answered without a single pick."))
    missed = tuple(
        NearMiss(
            _name(miss.name, "a near miss"),
            _prose(miss.reason, MAX_PROSE, "reason of a near miss", noted),
        )
        for miss in said.near_misses[:MAX_MISSES]
    )
    if len(said.near_misses) > MAX_MISSES:
        noted.append(
            f"only the first {MAX_MISSES} of {len(said.near_misses)} near misses were kept"
        )
    return Answer(picks, missed, _prose(said.caveat, MAX_PROSE, "caveat", noted), tuple(noted))


def _name(text: str, what: str) -> str:
    name = clean(text)
    if not any(char.isalnum() for char in name):
        raise _Unusable(Failure("schema", f"The name of {what} has no letter or digit."))
    if len(name) > MAX_NAME:
        raise _Unusable(
            Failure("schema", f"The name of {what} has {len(name)} characters, over {MAX_NAME}.")
        )
    return name


def _prose(text: str | None, limit: int, what: str, notes: list[str]) -> str | None:
    """Cleaned text, cut if it is too long; ``None`` for nothing."""
    cleaned = clean(text or "")
    if len(cleaned) > limit:
        notes.append(f"the {what} was cut at {limit} characters")
        cleaned = clean(cleaned[: limit - 1]) + "…"
    return cleaned or None


def _fixes(texts: list[str], rank: int, notes: list[str]) -> tuple[str, ...]:
    if len(texts) > MAX_FIXES:
        notes.append(f"only the first {MAX_FIXES} of {len(texts)} fixes of #{rank} were kept")
    fixes = (_prose(text, MAX_FIX, f"fix of #{rank}", notes) for text in texts[:MAX_FIXES])
    return tuple(fix for fix in fixes if fix)
