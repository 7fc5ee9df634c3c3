"""Reading a request's parameters: exact, complete, and never guessing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from store.records import is_slug
from store.web.errors import BadParameters
from store.web.resources import ParameterError
from store.web.routes import DEFAULT_LIMIT, MAX_LIMIT, MAX_QUERY, NOT_BLANK

if TYPE_CHECKING:
    from collections.abc import Collection

    from werkzeug.datastructures import MultiDict

    from store.snapshot import Snapshot

_CORE = re.compile(f"{NOT_BLANK}(?s:.*{NOT_BLANK})?")
_LIMIT = re.compile(r"[1-9][0-9]{0,2}")


class Parameters:
    """Collects what is wrong with a request's parameters, so that one answer tells all of it."""

    def __init__(self, given: MultiDict[str, str]) -> None:
        self._given = given
        self._errors: list[ParameterError] = []

    def query(self) -> str:
        """``q``, trimmed."""
        text = trimmed(self._one("q") or "")
        if not text:
            self._refuse("q", "is missing or blank; give a topic or a brand name.")
        elif len(text) > MAX_QUERY:
            self._refuse("q", f"has {len(text)} characters; {MAX_QUERY} are allowed.")
        return text

    def slug(self) -> str:
        """``slug`` of the query string."""
        text = self._one("slug")
        if text is None:
            self._refuse("slug", "is missing; resolve one through /api/v1/search?q=.")
        elif not is_slug(text):
            self._refuse("slug", NO_SLUG)
        return text or ""

    def model(self, accepted: Collection[str]) -> str | None:
        """``model``, one of the accepted names, or ``None``."""
        text = self._one("model")
        if text is not None and text not in accepted:
            self._refuse("model", f"is unknown; accepted are: {', '.join(accepted) or 'none yet'}.")
        return text

    def limit(self) -> int:
        """``limit``, from 1 to 500, or the default."""
        text = self._one("limit")
        if text is None:
            return DEFAULT_LIMIT
        if not _LIMIT.fullmatch(text) or int(text) > MAX_LIMIT:
            self._refuse("limit", f"must be a whole number from 1 to {MAX_LIMIT}.")
            return DEFAULT_LIMIT
        return int(text)

    def check(self) -> None:
        """Raise :class:`BadParameters` if anything was refused."""
        if self._errors:
            raise BadParameters(self._errors)

    def _one(self, name: str) -> str | None:
        values = self._given.getlist(name)
        if len(values) > 1:
            self._refuse(name, "is given more than once.")
        return values[0] if values else None

    def _refuse(self, name: str, detail: str) -> None:
        if not any(error.parameter == name for error in self._errors):
            self._errors.append(ParameterError(parameter=name, detail=detail))


def asked_query(given: MultiDict[str, str]) -> str:
    """``q`` alone, trimmed; raises :class:`BadParameters` when it is missing or too long."""
    parameters = Parameters(given)
    query = parameters.query()
    parameters.check()
    return query


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


def path_slug(text: str) -> str:
    """A slug from a path; raises :class:`BadParameters` when it is none."""
    if not is_slug(text):
        raise BadParameters([ParameterError(parameter="slug", detail=NO_SLUG)])
    return text
