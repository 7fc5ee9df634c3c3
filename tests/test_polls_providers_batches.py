"""The providers' queues as pure functions: what odd or hostile descriptions of batches come to."""

import gc
import json
import sys
from typing import Any

import pytest

from store.cli.checks import why_no_batches
from store.polls.providers import queue_of
from store.polls.providers.anthropic import AnthropicQueue
from store.polls.providers.openai import OpenAIQueue
from store.polls.providers.wire import UNASKED, Response, no_answer, read_object
from store.records import Assistant

ASSISTANT = Assistant(name="A", api="responses", base_url="https://api.example/v1/", model="m")
openai, anthropic = (kind(ASSISTANT, "sk-key") for kind in (OpenAIQueue, AnthropicQueue))
QUEUES: dict[str, Any] = {"openai": openai, "anthropic": anthropic}
ODD = (b"", b"[]", b"null", b"<html>", b'{"id": "../x", "processing_status": "ended"}', b"[" * 9999)


@pytest.mark.parametrize("name", QUEUES)
@pytest.mark.parametrize("body", ODD)
def test_what_is_no_batch_is_none(name: str, body: bytes) -> None:
    """Nor is an id that would lead to another path."""
    gc.collect()  # else what older tests left may be finalized where nesting has used up the stack
    assert QUEUES[name].read_batch(read_object(body)) is None


@pytest.mark.parametrize("name", QUEUES)
def test_a_batch_goes_to_the_base_url_with_the_key_in_a_header(name: str) -> None:
    """Every request of a queue."""
    queue = QUEUES[name]
    items = {"k-0": {"model": "m"}}
    requests = [
        queue.build_upload(items),
        queue.build_batch(items, "file-1"),
        queue.build_status_request("b"),
        queue.build_cancel("b"),
        queue.build_get("f"),
    ]
    for request in filter(None, requests):
        assert request.url.startswith("https://api.example/v1/")
        assert "//" not in request.url.removeprefix("https://")
        assert "sk-key" not in request.url
        assert "sk-key" in " ".join(request.headers.values())


@pytest.mark.parametrize(
    ("api", "host", "queue"),
    [
        ("chat", "api.openai.com", OpenAIQueue),
        ("chat", "notopenai.com", None),
        ("chat", "api.x.ai", None),
        ("responses", "openrouter.ai", None),
        ("gemini", "generativelanguage.googleapis.com", None),
    ],
)
def test_which_queue_an_assistant_has(api: Any, host: str, queue: Any) -> None:
    """That of the host of its format; compatible servers speak the format without one."""
    who = Assistant(name="A", api=api, model="m", base_url=f"https://{host}/v1")
    assert queue_of(who) is queue
    assert ("no queue for batches" in (why_no_batches(who) or "")) is (queue is None)


def read(queue: Any, *lines: Any) -> dict[str, Response]:
    """Results of JSON Lines."""
    return dict(queue.read_results("\n".join(map(json.dumps, lines)).encode()))


def test_a_line_nested_as_deep_as_it_likes_holds_up_no_other() -> None:
    """Whether it can just be read, just not, or be read and not written."""
    gc.collect()  # as above
    for depth in range(sys.getrecursionlimit() - 400, sys.getrecursionlimit() + 2):
        deep = "[" * depth + "]" * depth
        for queue, result in (
            (openai, f'"response": {{"status_code": 200, "body": {deep}}}'),
            (anthropic, f'"result": {{"type": "succeeded", "message": {deep}}}'),
        ):
            lines = f'{{"custom_id": "a", {result}}}\n{{"custom_id": "b"}}'
            results = dict(queue.read_results(lines.encode()))
            assert "b" in results


def test_items_of_openai_that_have_no_response() -> None:
    """A known code has its kind; another is a failure with the provider's words."""
    found = read(
        openai,
        {"custom_id": "a", "error": {"code": "batch_expired"}},
        {"custom_id": "b", "error": {"code": "odd", "message": "no luck"}},
        {"custom_id": "c", "response": None, "error": None},
        {"custom_id": "d", "response": {"status_code": "200", "body": {}}},
    )
    assert found["a"] == UNASKED["expired"]
    assert found["b"] == no_answer("http", "The provider's batch did not answer (no luck).")
    assert found["c"] == no_answer("http", "The provider's batch did not answer (no reason).")
    assert found["d"].status == 0


@pytest.mark.parametrize(
    ("kind", "status"),
    [("invalid_request_error", 400), ("authentication_error", 401), ("billing_error", 402),
     ("permission_error", 403), ("not_found_error", 404), ("request_too_large", 413),
     ("rate_limit_error", 429), ("api_error", 500), ("timeout_error", 504),
     ("overloaded_error", 529), ("unheard_of", 500)],
)  # fmt: skip
def test_errors_of_anthropic_have_the_status_of_their_type(kind: str, status: int) -> None:
    """Nested once or twice."""
    inner = {"type": kind, "message": "no"}
    for error in (inner, {"type": "error", "error": inner}):
        came = read(anthropic, {"custom_id": "a", "result": {"type": "errored", "error": error}})
        assert came["a"] == Response(status, {}, json.dumps({"error": inner}).encode())


def test_a_result_of_anthropic_of_no_known_kind() -> None:
    """It is a failure, not an answer."""
    kinds: tuple[Any, ...] = ("new", [], {}, None)
    for kind in kinds:
        came = read(anthropic, {"custom_id": "a", "result": {"type": kind}})["a"]
        assert came == no_answer("http", "The provider's batch gave a result of no known kind.")


@pytest.mark.parametrize("status", ["new", "", "in_progress", "cancelling", "finalizing"])
def test_a_state_that_nobody_knows_is_open(status: str) -> None:
    """Until a provider says that a batch is over, it may cost."""
    remote = openai.read_batch({"id": "b", "status": status})
    assert remote
    assert remote.state == "open"


def test_why_a_batch_failed() -> None:
    """The first error's code and words."""
    errors = {"data": [{"code": "token_limit_exceeded", "message": "too many"}, {"code": "x"}]}
    found = openai.read_batch({"id": "b", "status": "failed", "errors": errors})
    assert found
    assert (found.state, found.why) == ("failed", "token_limit_exceeded: too many")
