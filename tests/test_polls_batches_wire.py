"""What is sent to the providers' queues and read from them, to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store.polls.providers import Request, Response, messages
from store.polls.providers.batches import UNASKED, Item, Remote, matched
from store.polls.providers.batches.queues import QUEUES as KINDS
from store.polls.providers.batches.xai import XAIQueue
from store.records import Assistant, Failure

HEADERS = {
    "responses": {"Authorization": "Bearer sk"},
    "chat": {"Authorization": "Bearer sk"},
    "messages": messages.headers("sk"),
    "gemini": {"x-goog-api-key": "sk"},
    "xai": {"Authorization": "Bearer sk"},
}
ITEMS = [Item("k-0", {"model": "m"}), Item("k-1", {"x": 1})]
KEPT = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "604800"}  # fmt: skip  # noqa: E501
UPLOADS = {
    "responses": (KEPT, "/v1/responses"),
    "chat": (KEPT, "/v1/chat/completions"),
    "xai": ({}, "/v1/chat/completions"),
}


def assistant(api: str) -> Assistant:
    """An assistant of this format."""
    form: Any = "chat" if api == "xai" else api
    return Assistant(name="A", api=form, base_url="https://api.example/v1/", model="m")


QUEUES: dict[str, Any] = {
    api: kind(assistant(api), "sk") for api, kind in {**KINDS, "xai": XAIQueue}.items()
}


def sent(api: str, path: str, body: dict[str, Any] | None = None) -> Request:
    """A request as it should be: a POST if it has a body."""
    url, method = f"https://api.example/v1/{path}", "GET" if body is None else "POST"
    return Request(url, HEADERS[api], body or {}, method)  # type: ignore[arg-type]


@pytest.mark.parametrize("api", QUEUES)
def test_items_are_uploaded_as_json_lines(api: str) -> None:
    """Where the provider wants a file; OpenAI deletes it after a week."""
    request = QUEUES[api].build_upload(ITEMS)
    if api not in UPLOADS:
        assert request is None
        return
    fields, url = UPLOADS[api]
    assert (request.url, request.method) == ("https://api.example/v1/files", "POST")
    assert (request.headers, request.body) == (HEADERS[api], fields)
    assert request.file == (
        b'{"custom_id":"k-0","method":"POST","url":"%s","body":{"model":"m"}}\n'
        b'{"custom_id":"k-1","method":"POST","url":"%s","body":{"x":1}}\n'
    ) % (url.encode(), url.encode())


def of_openai(endpoint: str) -> tuple[str, dict[str, Any]]:
    """What makes a batch at OpenAI."""
    return "batches", {
        "input_file_id": "file-1",
        "endpoint": endpoint,
        "completion_window": "24h",
        "metadata": {"consensus_batch": "label"},
        "output_expires_after": {"anchor": "created_at", "seconds": 604_800},
    }


REQUESTS = [
    {"request": {"model": "m"}, "metadata": {"key": "k-0"}},
    {"request": {"x": 1}, "metadata": {"key": "k-1"}},
]
MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "responses": of_openai("/v1/responses"),
    "chat": of_openai("/v1/chat/completions"),
    "messages": ("messages/batches", {"requests": [
        {"custom_id": "k-0", "params": {"model": "m"}}, {"custom_id": "k-1", "params": {"x": 1}},
    ]}),
    "gemini": ("models/m:batchGenerateContent", {"batch": {
        "displayName": "label", "inputConfig": {"requests": {"requests": REQUESTS}},
    }}),
    "xai": ("batches", {"name": "label", "input_file_id": "file-1"}),
}  # fmt: skip


@pytest.mark.parametrize("api", QUEUES)
def test_a_batch_is_made(api: str) -> None:
    """Of items or of their file, under our label where there is a place for it."""
    made = QUEUES[api].build_batch(ITEMS, "label", "file-1")
    assert made == sent(api, *MADE[api])


PATHS = {
    "responses": ("batches/b", "batches/b/cancel", "batches?limit=100", "&after=", "files/b/content"),  # noqa: E501
    "chat": ("batches/b", "batches/b/cancel", "batches?limit=100", "&after=", "files/b/content"),
    "messages": (
        "messages/batches/b", "messages/batches/b/cancel", "messages/batches?limit=100",
        "&after_id=", "messages/batches/b/results",
    ),
    "gemini": ("batches/b", "batches/b:cancel", "batches?pageSize=100", "&pageToken=", "batches/b"),
    "xai": (
        "batches/b", "batches/b:cancel", "batches?limit=100", "&pagination_token=",
        "batches/b/results?limit=100",
    ),
}  # fmt: skip


@pytest.mark.parametrize("api", QUEUES)
def test_a_batch_is_looked_at_cancelled_listed_and_downloaded(api: str) -> None:
    """At these addresses, whatever a provider's page token looks like."""
    queue = QUEUES[api]
    look, cancel, listed, after, results = PATHS[api]
    assert queue.build_look("b") == sent(api, look)
    assert queue.build_cancel("b") == sent(api, cancel, {})
    assert queue.build_list(None) == sent(api, listed)
    assert queue.build_list("a&b=c/") == sent(api, f"{listed}{after}a%26b%3Dc%2F")
    assert queue.build_download("b") == sent(api, results)


def counts(done: int, asked: int) -> dict[str, Any]:
    """Counts of Gemini's."""
    return {"requestCount": str(asked), "pendingRequestCount": str(asked - done)}


DESCRIBED: list[tuple[str, dict[str, Any], Remote]] = [
    (
        "responses",
        {"id": "b", "status": "in_progress", "metadata": {"consensus_batch": "label"},
         "created_at": 1_700_000_000, "request_counts": {"total": 5, "completed": 2, "failed": 1},
         "output_file_id": None, "error_file_id": ""},
        Remote(id="b", state="open", label="label", created=1_700_000_000, asked=5, done=3),
    ),
    (
        "chat",
        {"id": "b", "status": "expired", "output_file_id": "f1", "error_file_id": "f2"},
        Remote(id="b", state="ended", asked=0, done=0, files=("f1", "f2"),
               unasked=UNASKED["expired"]),
    ),
    (
        "responses",
        {"id": "b", "status": "cancelled", "output_file_id": "f1", "error_file_id": "f1"},
        Remote(id="b", state="ended", asked=0, done=0, files=("f1",),
               unasked=UNASKED["cancelled"]),
    ),
    (
        "responses",
        {"id": "b", "status": "failed", "error_file_id": "f1", "errors": {"data": []}},
        Remote(id="b", state="ended", asked=0, done=0, files=("f1",)),
    ),
    (
        "responses",
        {"id": "b", "status": "failed", "errors": {"data": [{"message": "no"}]}},
        Remote(id="b", state="failed", asked=0, done=0, why="no"),
    ),
    (
        "messages",
        {"id": "b", "processing_status": "canceling", "created_at": "2026-11-20T06:00:00Z",
         "request_counts": {"processing": 16, "succeeded": 1, "errored": 2, "canceled": 4,
                            "expired": 8}},
        Remote(id="b", state="open", created=1_795_154_400, asked=31, done=15),
    ),
    (
        "messages",
        {"id": "b", "processing_status": "ended", "request_counts": {"succeeded": 2}},
        Remote(id="b", state="ended", asked=2, done=2, files=("b",)),
    ),
    (
        "gemini",
        {"name": "batches/b", "metadata": {"state": "BATCH_STATE_RUNNING", "displayName": "label",
         "createTime": "2026-11-20T06:00:00Z", "batchStats": counts(1, 3)}},
        Remote(id="b", state="open", label="label", created=1_795_154_400, asked=3, done=1),
    ),
    (
        "gemini",
        {"name": "batches/b", "metadata": {"state": "JOB_STATE_CANCELLED"}, "error": {"code": 13}},
        Remote(id="b", state="ended", asked=0, done=0, files=("b",), unasked=UNASKED["cancelled"]),
    ),
    (
        "gemini",
        {"name": "batches/b", "metadata": {"state": "BATCH_STATE_EXPIRED",
                                           "batchStats": {"pendingRequestCount": "2"}}},
        Remote(id="b", state="ended", asked=0, done=0, files=("b",), unasked=UNASKED["expired"]),
    ),
    (
        "gemini",
        {"name": "batches/b", "metadata": {"state": "BATCH_STATE_SUCCEEDED"}},
        Remote(id="b", state="ended", asked=0, done=0, files=("b",)),
    ),
    (
        "gemini",
        {"name": "batches/b", "metadata": {"state": "BATCH_STATE_FAILED"},
         "error": {"message": "no"}},
        Remote(id="b", state="failed", asked=0, done=0, why="no"),
    ),
    (
        "xai",
        {"batch_id": "b", "name": "label", "state": {"num_requests": 3, "num_pending": 1}},
        Remote(id="b", state="open", label="label", asked=3, done=2),
    ),
    (
        "xai",
        {"batch_id": "b", "state": {"num_requests": 3, "num_pending": 0}},
        Remote(id="b", state="ended", asked=3, done=3, files=("b",)),
    ),
    (
        "xai",
        {"batch_id": "b", "state": {"num_requests": 1, "num_cancelled": 1}},
        Remote(id="b", state="ended", asked=1, done=1, files=("b",), is_settling=True,
               unasked=UNASKED["cancelled"]),
    ),
    (
        "xai",
        {"batch_id": "b", "state": {"num_pending": 1}, "cancel_by_xai_message": "no"},
        Remote(id="b", state="failed", asked=0, done=0, files=("b",), why="no",
               unasked=UNASKED["cancelled"]),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("api", "given", "expected"), DESCRIBED)
def test_a_batch_reads_as_it_is_described(
    api: str, given: dict[str, Any], expected: Remote
) -> None:
    """Its state, counts, files, and what becomes of an item without a result; in a list too."""
    queue = QUEUES[api]
    assert queue.read_batch(given) == expected
    members = {"gemini": "operations", "xai": "batches"}
    listed = json.dumps({members.get(api, "data"): [{}, given]}).encode()
    page = queue.read_list(listed)
    assert (page.batches, page.following) == ((expected,), None)


@pytest.mark.parametrize(
    ("api", "page", "following"),
    [
        ("responses", {"data": [{"id": "a"}, {"id": "b"}], "has_more": True}, "b"),
        ("responses", {"data": [], "has_more": True}, None),
        ("messages", {"data": [{"id": "a", "processing_status": ""}], "has_more": True}, "a"),
        ("messages", {"data": [], "has_more": True}, None),
        ("messages", {"data": [{"id": "a", "processing_status": ""}], "has_more": 1}, None),
        ("gemini", {"operations": [], "nextPageToken": "t"}, "t"),
        ("xai", {"batches": [], "pagination_token": "t"}, "t"),
    ],
)
def test_a_list_has_another_page(api: str, page: dict[str, Any], following: str | None) -> None:
    """By the last of its ids, or by a token."""
    assert QUEUES[api].read_list(json.dumps(page).encode()).following == following


def test_an_answer_is_the_response_it_would_have_been() -> None:
    """Its status, body and request id, ready for the format's own reader."""
    line = {"custom_id": "a", "response": {
        "status_code": 201, "request_id": "req-1", "body": {"x": 1},
    }}  # fmt: skip
    ((name, came),) = QUEUES["responses"].read_results(json.dumps(line).encode())
    assert (name, came) == ("a", Response(201, {"x-request-id": "req-1"}, b'{"x": 1}'))
    line = {"custom_id": "a", "result": {"type": "succeeded", "message": {"x": 1}}}
    assert [*QUEUES["messages"].read_results(json.dumps(line).encode())] == [
        ("a", Response(200, {}, b'{"x": 1}'))
    ]
    given = {"results": [{"batch_request_id": "a", "batch_result": {
        "response": {"chat_get_completion": {"x": 1}},
    }}]}  # fmt: skip
    assert [*QUEUES["xai"].read_results(json.dumps(given).encode())] == [
        ("a", Response(200, {}, b'{"x": 1}'))
    ]


@pytest.mark.parametrize("where", ["response", "metadata"])
def test_an_answer_of_gemini_stands_in_either_place(where: str) -> None:
    """In the operation's response, or in the batch's output."""
    inlined = [
        {"metadata": {"key": "a"}, "response": {"x": 1}},
        {"metadata": {"key": "b"}, "error": {"code": 8, "message": "slow"}},
    ]
    output = {"inlinedResponses": {"inlinedResponses": inlined}}
    given = {"response": output} if where == "response" else {"metadata": {"output": output}}
    assert [*QUEUES["gemini"].read_results(json.dumps(given).encode())] == [
        ("a", Response(200, {}, b'{"x": 1}')),
        ("b", Response(429, {}, b'{"error": {"code": 429, "message": "slow"}}')),
    ]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ({"code": "odd", "message": "no luck"}, "The provider's batch did not answer (no luck)."),
        ({"code": "odd"}, "The provider's batch did not answer (odd)."),
        ({}, "The provider's batch did not answer (no reason)."),
    ],
)
def test_why_openai_has_no_response(error: dict[str, str], sentence: str) -> None:
    """Its words, else its code."""
    line = {"custom_id": "a", "response": None, "error": error}
    assert [*QUEUES["responses"].read_results(json.dumps(line).encode())] == [
        ("a", Failure("http", sentence))
    ]


def test_what_items_without_an_answer_come_to() -> None:
    """The sentences that stand in history."""
    one, two = Response(200, {}, b"1"), Response(200, {}, b"2")
    assert dict(UNASKED) == {
        "expired": Failure(
            "timeout", "The provider did not answer within the time of its batches."
        ),
        "cancelled": Failure("interrupted", "The batch was cancelled before this was asked."),
        "missing": Failure(
            "http", "The provider's batch ended without a result for this question."
        ),
    }
    assert matched(["a"], [("a", one), ("a", two), ("a", one)], UNASKED["missing"]) == {
        "a": Failure("http", "The provider's batch gave two different results for this question.")
    }
