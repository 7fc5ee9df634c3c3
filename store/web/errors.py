"""Error answers: the exceptions of views, and the problem details (RFC 9457) that readers get.

None shows a stack trace or a path of the machine.
"""

import logging
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from store.history import HistoryError
from store.web.shapes import Api, JsonObject, doc

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

CODES = {
    "bad-parameter": (400, "A parameter is missing or malformed; `errors` says which, and how."),
    "unknown-parameter": (400, "The address has no such parameter; `errors` names those."),
    "bad-request": (400, "The request is malformed, or its Host is not this service."),
    "unknown-category": (404, "No category has this slug; `suggestions` holds the closest."),
    "unknown-product": (404, "No product has this slug; `suggestions` holds the closest."),
    "unknown-topic": (404, "No topic has this slug."),
    "unknown-experiment": (404, "No experiment has this slug."),
    "unknown-cursor": (404, "`before` is not the id of anything in this list."),
    "no-answer-yet": (404, "The category is there, and no assistant has answered it yet."),
    "no-such-day": (404, "The category had no ranking on that day; the detail names its first."),
    "not-found": (404, "There is nothing at this address."),
    "method-not-allowed": (405, "The service is read-only; `Allow` names what it takes."),
    "gone": (410, "The category was deleted; its history stays."),
    "too-large": (413, "A message to MCP has more than 64 KB."),
    "unsupported-media-type": (415, "A message to MCP is not declared as JSON."),
    "internal": (500, "Something went wrong on our side; it has been logged."),
    "unavailable": (503, "A file that this is made from cannot be used just now."),
}
"""The codes of problems, each with its status and what it means."""

_OF_STATUS = {status: code for code, (status, _) in CODES.items()}
"""The general code of each status, which is the last one in the table: new ones stand above it."""
_DETAILS = {
    404: "There is nothing at this address. /api/v1/README.md lists what there is; slugs are "
    "resolved through /api/v1/search?q=.",
    405: "This address does not take this method: Allow names those that it takes.",
    500: "Something went wrong on our side; it has been logged.",
}


class ParameterError(JsonObject, frozen=True, kw_only=True):
    """A parameter that is wrong, and how."""

    parameter: str
    detail: str


class Suggestion(JsonObject, frozen=True, kw_only=True):
    """A category or product that may have been meant."""

    slug: str
    title: str
    api: Api


class ProblemDetails(JsonObject, frozen=True, kw_only=True, omit_defaults=True):
    """A problem detail of RFC 9457."""

    type: Annotated[str, doc("about:blank: title is the phrase of the status.")]
    title: str
    status: int
    detail: Annotated[str, doc("What is wrong and what to do, in a sentence.")]
    instance: Annotated[str, doc("The path that was asked for.")]
    code: Annotated[str, doc("What kind of problem this is, for programs; a table is on /docs.")]
    errors: Annotated[list[ParameterError] | None, doc("Which parameters are wrong, and how.")] = (
        None
    )
    suggestions: Annotated[list[Suggestion] | None, doc("The closest slugs to an unknown one.")] = (
        None
    )


class Moved(Exception):
    """Raised where a request has moved for good: ``parameters`` are the values that changed."""

    def __init__(self, **parameters: str) -> None:
        super().__init__(parameters)
        self.parameters = parameters


class Refused(Exception):
    """Raised where a request cannot be answered.

    ``detail`` says why to programs, ``sentence`` to people and agents, under a ``heading`` where
    the status alone would say the wrong thing; ``suggestions`` are what may have been meant.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        sentence: str | None = None,
        *,
        heading: str | None = None,
        errors: list[ParameterError] | None = None,
        suggestions: list[Suggestion] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status = CODES[code][0]
        self.phrase = HTTPStatus(self.status).phrase
        self.detail = detail
        self.sentence = sentence or detail
        self.heading = heading
        self.errors = errors
        # An empty list says that nothing is close; without one nothing was looked for.
        self.suggestions = suggestions

    @classmethod
    def parameters(cls, errors: list[ParameterError], code: str = "bad-parameter") -> "Refused":
        """Return the refusal of parameters, all that is wrong with them in one."""
        detail = " ".join(f"{error.parameter} {error.detail}" for error in errors)
        return cls(code, detail, errors=errors)

    @classmethod
    def unreadable(cls, error: HistoryError) -> "Refused":
        """Return the refusal while history cannot be read; it is logged."""
        log.error("%s", error)
        return cls(
            "unavailable",
            f"The history that this is made from cannot be shown: {error}. It has been logged, "
            "and /healthz names what is to be mended.",
        )


def problem(refused: Refused) -> ProblemDetails:
    """Return the body of an error answer to the request at hand."""
    return ProblemDetails(
        type="about:blank",
        title=refused.phrase,
        status=refused.status,
        detail=refused.detail,
        instance=_instance(),
        code=refused.code,
        errors=refused.errors,
        suggestions=refused.suggestions,
    )


class ProblemResponse(Response):
    """An error answer that no cache keeps; what was ``refused`` can also be shown as a page."""

    def __init__(self, refused: Refused) -> None:
        body = msgspec.json.encode(problem(refused))
        super().__init__(body, refused.status, mimetype=MEDIA_TYPE)
        self.headers["Cache-Control"] = "no-store"
        self.refused = refused


def _instance() -> str:
    """Return the request's path as a URI reference: percent-encoded, never a host's (``//x``)."""
    # WSGI has the path's bytes as Latin-1.
    path = quote(request.environ["PATH_INFO"].encode("latin-1")) or "/"
    return f"/.{path}" if path.startswith("//") else path


def handle_http_exception(error: HTTPException) -> Response:
    """Answer what Werkzeug refused, keeping the headers that it wants sent (``Allow``)."""
    status = error.code or 500
    code = _OF_STATUS.get(status, "bad-request")
    # People are not given the directions for programs.
    is_page = status == HTTPStatus.NOT_FOUND and not request.url_rule
    sentence = "There is no page at this address." if is_page else None
    refused = Refused(code, _DETAILS.get(status, error.description or ""), sentence)
    # As Werkzeug has it, be it a status of which our table has no code.
    refused.status, refused.phrase = status, HTTPStatus(status).phrase
    response = ProblemResponse(refused)
    for name, value in error.get_headers():
        if name.lower() == "allow":  # Werkzeug keeps methods in a set, in any order
            response.headers[name] = ", ".join(sorted(value.split(", ")))
        elif name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def handle_malformed_body(_: Exception) -> Response:
    """Answer a body that the server that runs us could not take apart."""
    detail = "The body of the request is malformed: its chunks are not as HTTP has them."
    return ProblemResponse(Refused("bad-request", detail))


def register(app: Flask) -> None:
    """Answer every failure of the app as a problem detail; the unexpected ones are logged."""
    app.register_error_handler(HistoryError, lambda e: ProblemResponse(Refused.unreadable(e)))
    app.register_error_handler(Refused, ProblemResponse)
    app.register_error_handler(HTTPException, handle_http_exception)
