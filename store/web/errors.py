"""Every error answer: one place that turns what is raised into problem details.

Bodies follow RFC 9457. None shows a stack trace or a path of the machine.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest, HTTPException

from store.history import HistoryError
from store.web.resources import ParameterError, ProblemDetails, Suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from werkzeug.wrappers import Response as BaseResponse

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class BadParameters(BadRequest):
    """One or more parameters are missing or wrong."""

    def __init__(self, errors: Sequence[ParameterError]) -> None:
        super().__init__(" ".join(f"{e.parameter} {e.detail}" for e in errors))
        self.errors = list(errors)


class ProblemResponse(Response):
    """A problem detail as an answer that no cache keeps; a page may show it under ``heading``.

    Its type is ``about:blank``, so its title is the status's own phrase (RFC 9457, section 4.2.1).
    """

    heading: str | None = None

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        errors: list[ParameterError] | None = None,
        suggestions: list[Suggestion] | None = None,
    ) -> None:
        self.details = ProblemDetails(
            type="about:blank",
            title=status.phrase,
            status=status.value,
            detail=detail,
            instance=_instance(),
            errors=errors,
            suggestions=suggestions,
        )
        super().__init__(msgspec.json.encode(self.details), status.value, mimetype=MEDIA_TYPE)
        self.headers["Cache-Control"] = "no-store"


def _instance() -> str:
    """The path of the request as a URI reference: percent-encoded, and never a host's (``//x``)."""
    path = quote(request.environ["PATH_INFO"].encode("latin-1")) or "/"
    return f"/.{path}" if path.startswith("//") else path


def handle_http_exception(error: HTTPException) -> BaseResponse:
    """Answer what Werkzeug or we refused, keeping the headers it wants sent (``Allow``)."""
    status = HTTPStatus(error.code or 500)
    if status < HTTPStatus.BAD_REQUEST:
        return error.get_response()
    wrong = error.errors if isinstance(error, BadParameters) else None
    response = ProblemResponse(status, _DETAILS.get(status, error.description or ""), wrong)
    for name, value in error.get_headers():
        if name.lower() == "allow":
            response.headers[name] = ", ".join(sorted(value.split(", ")))
        elif name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def unreadable(error: HistoryError) -> str:
    """What to tell, once it is logged, while history cannot be read."""
    log.error("%s", error)
    return (
        f"The history that this is made from cannot be shown: {error}. It has been logged, and "
        "/healthz names what is to be mended."
    )


def handle_malformed_body(_: Exception) -> Response:
    """Answer a body that the server that runs us could not take apart."""
    detail = "The body of the request is malformed: its chunks are not as HTTP has them."
    return ProblemResponse(HTTPStatus.BAD_REQUEST, detail)


def register(app: Flask) -> None:
    """Answer every failure of the app as a problem detail; the unexpected ones are logged."""
    app.register_error_handler(
        HistoryError, lambda e: ProblemResponse(HTTPStatus.SERVICE_UNAVAILABLE, unreadable(e))
    )
    app.register_error_handler(HTTPException, handle_http_exception)


_DETAILS = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address. /api/v1/README.md lists what there "
    "is; slugs are resolved through /api/v1/search?q=.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This service is read-only; Allow names the methods that this "
    "address takes.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong on our side; it has been logged.",
}
