"""Reading a request's parameters: exact, complete, and never guessing."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast, get_args

from store.records import is_slug
from store.search import Kind
from store.web.as_of import newest_day
from store.web.errors import BadParameters
from store.web.resources import ParameterError
from store.web.routes import AS_OF, DATE, DEFAULT_LIMIT, MAX_LIMIT, MAX_QUERY, NOT_BLANK, POLL_ID
from store.web.tables import MEDIA_TYPES, Format

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from werkzeug.datastructures import MultiDict

    from store.snapshot import Snapshot

_CORE = re.compile(f"{NOT_BLANK}(?s:.*{NOT_BLANK})?")
_DATE = re.compile(DATE)
_LIMIT = re.compile(r"[1-9][0-9]{0,3}")
_POLL_ID = re.compile(POLL_ID)
_FORMATS = f"must be one of: {', '.join(MEDIA_TYPES)}."
_KINDS = f"must be {' or '.join(get_args(Kind))}; leave it out for both."

Found = TypeVar("Found")


class Parameters:
    """Collects what is wrong with a request's parameters, so that one answer tells all of it."""

    def __init__(self, given: MultiDict[str, str]) -> None:
        self._given = given
        self._errors: list[ParameterError] = []

    def query(self) -> str:
        """``q``, trimmed."""
        text = self.name("q")
        if not text:
            self._refuse("q", "is missing or blank; give a topic or a brand name.")
        return text

    def slug(self) -> str:
        """``slug`` of the query string."""
        text = self._where("slug", is_slug, NO_SLUG)
        if text is None:
            self._refuse("slug", "is missing; resolve one through /api/v1/search?q=.")
        return text or ""

    def one_of(self, name: str, accepted: Collection[str]) -> str | None:
        """One of the accepted values, or ``None``."""
        text = self._one(name)
        if text is not None and text not in accepted:
            self._refuse(name, f"is unknown; accepted are: {', '.join(accepted) or 'none yet'}.")
        return text

    def name(self, name: str) -> str:
        """A text, trimmed, such as the name of a product; empty if it is left out."""
        text = trimmed(self._one(name) or "")
        if len(text) > MAX_QUERY:
            self._refuse(name, f"has {len(text)} characters; {MAX_QUERY} are allowed.")
        return text

    def limit(self, default: int = DEFAULT_LIMIT, most: int = MAX_LIMIT) -> int:
        """``limit``, from 1 to ``most``, or the default."""
        text = self._one("limit")
        if text is None:
            return default
        if not _LIMIT.fullmatch(text) or int(text) > most:
            self._refuse("limit", f"must be a whole number from 1 to {most}.")
            return default
        return int(text)

    def before(self) -> str | None:
        """``before``, written as the id of a poll."""
        wrong = "must be the id of a poll: 16 hexadecimal digits in lower case."
        return self._where("before", _POLL_ID.fullmatch, wrong)

    def format(self) -> Format:
        """``format``: one of :data:`store.web.tables.MEDIA_TYPES`, or JSON."""
        return cast("Format", self._where("format", MEDIA_TYPES.__contains__, _FORMATS) or "json")

    def day(self, name: str) -> str | None:
        """A UTC date as ``YYYY-MM-DD``; ``None`` without."""
        return self._where(name, is_date, NO_DAY)

    def kind(self) -> Kind | None:
        """``kind``, or ``None`` for both."""
        return cast("Kind | None", self._where("kind", get_args(Kind).__contains__, _KINDS))

    def check(self) -> None:
        """Raise :class:`BadParameters` if anything was refused."""
        if self._errors:
            raise BadParameters(self._errors)

    def _where(self, name: str, is_right: Callable[[str], object], wrong: str) -> str | None:
        """A parameter that is right, if it is given."""
        text = self._one(name)
        if text is not None and not is_right(text):
            self._refuse(name, wrong)
        return text

    def _one(self, name: str) -> str | None:
        values = self._given.getlist(name)
        if len(values) > 1:
            self._refuse(name, "is given more than once.")
        return values[0] if values else None

    def _refuse(self, name: str, detail: str) -> None:
        if not any(error.parameter == name for error in self._errors):
            self._errors.append(ParameterError(parameter=name, detail=detail))


NO_DAY = "must be a date in UTC, written YYYY-MM-DD."
"""What is wrong with a text that is not a day of the calendar."""


def is_date(text: str) -> bool:
    """Whether a text is a date of the calendar, written ``YYYY-MM-DD``.

    >>> is_date("2026-02-28"), is_date("2026-02-30"), is_date("20260228")
    (True, False, False)
    """
    with suppress(ValueError):
        return _DATE.fullmatch(text) is not None and bool(dt.date.fromisoformat(text))
    return False


def alone(given: MultiDict[str, str], read: Callable[[Parameters], Found]) -> Found:
    """What is read of a request's parameters where that is all.

    Raises:
        BadParameters: something of it is missing or wrong.
    """
    parameters = Parameters(given)
    found = read(parameters)
    parameters.check()
    return found


def asked_day(given: MultiDict[str, str]) -> str | None:
    """``asOf`` alone; raises :class:`BadParameters` when it is not a day of the calendar."""
    return alone(given, lambda asked: asked.day(AS_OF.name))


def asked_days(given: MultiDict[str, str], slug: str, snapshot: Snapshot) -> dict[str, str]:
    """``from`` and ``to``, those given; ``to`` is the newest poll's day where only it is left out.

    Raises:
        BadParameters: one is no day up to the newest poll's, or they are not in this order.
    """
    newest = newest_day(snapshot, slug)
    found = alone(given, lambda asked: {n: asked.day(n) for n in ("from", "to")})
    days = {name: day for name, day in found.items() if day is not None}
    if "from" not in days:
        return days
    end = days.setdefault("to", newest)
    if days["from"] >= end:
        why = f"must be a day before {end}, the day to compare with."
        raise BadParameters([ParameterError(parameter="from", detail=why)])
    return days


def model_names(snapshot: Snapshot) -> dict[str, str]:
    """The present name by every one that ``model`` may give: present, retired and former ones."""
    present = (*snapshot.models, *snapshot.summary.retired)
    return {**{name: name for name in present}, **snapshot.catalogue.former_names}


def trimmed(text: str) -> str:
    """A text without white space at its ends, a byte order mark included."""
    core = _CORE.search(text)
    return core[0] if core else ""


NO_SLUG = (
    "must be lower-case letters and digits, joined by single hyphens, at most 100 characters; "
    "resolve one through /api/v1/search?q=."
)
"""What is wrong with a malformed slug."""


def checked_slug(text: str) -> str:
    """A slug from a path; raises :class:`BadParameters` when it is none."""
    if not is_slug(text):
        raise BadParameters([ParameterError(parameter="slug", detail=NO_SLUG)])
    return text
