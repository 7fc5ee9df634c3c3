"""Batches at mock servers that others wrote, and by the types of the vendors' own SDKs.

The servers are aimock for OpenAI (``npm install @copilotkit/aimock@1.43.0``, its program ``llmock``
named by ``AIMOCK``) and llmock for Anthropic; it and the SDKs are the extra ``sdk``.
"""

import os
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from polling_world import PollingWorld
from processes import until
from servers import free_port, running

from store.polls.asking import request_for
from store.polls.providers import WIRE_FORMATS, queue_of
from store.polls.providers.wire import Items, Queue, RemoteBatch, Response
from store.records import Assistant

AIMOCK = os.environ.get("AIMOCK")
EXTRA = "pip install '.[sdk]'"


NAMES = {"responses": "GPT", "messages": "Claude", "chat": "Grok"}


def through(tmp_path: Path, url: str, api: str) -> PollingWorld:
    """Three questions sent in a batch and collected."""
    data = PollingWorld(tmp_path / "data", url, batch=True)
    data.now = datetime.now(UTC)
    assert data.begin(NAMES[api]).batched == 3
    until(lambda: not data.follow(NAMES[api]).wrong and not data.batches(), 20)
    assert len(data.polls()) == 3
    return data


@pytest.mark.slow
@pytest.mark.skipif(not AIMOCK, reason="AIMOCK does not name aimock's program llmock")
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_aimock_takes_our_batches(tmp_path: Path, api: str) -> None:
    """Upload, batch, look and download are as it expects; its fixed text is no answer to us."""
    port = free_port()
    (tmp_path / "none.json").write_text('{"fixtures": []}')
    command = [str(AIMOCK), "-p", str(port), "-f", str(tmp_path / "none.json")]
    with running(command, port, {}, tmp_path / "log"):
        polls = through(tmp_path, f"http://127.0.0.1:{port}", api).polls()
    assert {poll.failure for poll in polls} == {"parse"}
    assert 'It begins: "Mock batch completion"' in (polls[0].error or "")


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("llmock"), reason=f"llmock is not installed: {EXTRA}")
def test_llmock_takes_our_batches(tmp_path: Path) -> None:
    """Batch, look and results of Anthropic's format are as it expects."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("llmock")), "serve", "-p", str(port)]
    with running(command, port, {}, tmp_path / "log"):
        polls = through(tmp_path, f"http://127.0.0.1:{port}/anthropic", "messages").polls()
    assert all(poll.usage and poll.served_model for poll in polls)


def sdk(module: str, install: str = EXTRA) -> Any:
    """A module of a vendor's SDK."""
    return pytest.importorskip(module, reason=f"{module} is not installed: {install}")


def assistant_of(api: Any) -> Assistant:
    """An assistant that is asked in batches."""
    return Assistant(name="A", model="m", base_url="http://127.0.0.1:9/v1", api=api)


def queue_for(assistant: Assistant) -> Queue:
    """The queue of its provider."""
    queue = queue_of(assistant)
    assert queue
    return queue(assistant, "key")


def items(assistant: Assistant) -> Items:
    """Items of a batch."""
    bodies = (request_for(assistant, question).body for question in ("Which?", "What?"))
    return {f"{1:016x}-{n}": body for n, body in enumerate(bodies)}


def test_openai_sdk_reads_our_lines_in_both_formats() -> None:
    """They fit its parameter types."""
    of_responses = sdk("openai.types.responses.response_create_params")
    of_chat = sdk("openai.types.chat.completion_create_params")
    for api, path, question in (
        ("responses", "/v1/responses", of_responses.ResponseCreateParamsNonStreaming),
        ("chat", "/v1/chat/completions", of_chat.CompletionCreateParamsNonStreaming),
    ):
        upload = queue_for(assistant_of(api)).build_upload(items(assistant_of(api)))
        assert upload
        lines = [msgspec.json.decode(line) for line in (upload.file or b"").splitlines()]
        assert [line["url"] for line in lines] == [path] * 2
        for line in lines:
            sdk("pydantic").TypeAdapter(question).validate_python(line["body"])


def test_openai_sdk_reads_our_batch_and_we_its() -> None:
    """The request fits its parameter types; a batch that it made reads as the right one."""
    types = sdk("openai.types")
    params, fits = types.batch_create_params.BatchCreateParams, sdk("pydantic").TypeAdapter

    assistant = assistant_of("responses")
    queue = queue_for(assistant)
    given = items(assistant)
    made = queue.build_batch(given, "file-1")
    fits(params).validate_python(made.body)
    sample = types.Batch(
        id="batch_1", object="batch", completion_window="24h", created_at=1_700_000_000,
        endpoint="/v1/responses", input_file_id="file-1", status="completed",
        output_file_id="file-2",
    )  # fmt: skip
    remote = queue.read_batch(sample.model_dump(mode="json"))
    assert remote == RemoteBatch(id="batch_1", state="ended", files=("files/file-2/content",))
    content = {"type": "output_text", "text": "hello", "annotations": []}
    message = {
        "id": "m", "type": "message", "role": "assistant", "status": "completed",
        "content": [content],
    }  # fmt: skip
    whole = types.responses.Response.model_validate({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt", "output": [message],
        "status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    })  # fmt: skip
    result = {
        "custom_id": "x",
        "response": {"status_code": 200, "body": whole.model_dump(mode="json")},
    }
    ((_, came),) = queue.read_results(msgspec.json.encode(result))
    assert isinstance(came, Response)
    assert WIRE_FORMATS[assistant.api].read_reply(came).outcome == "hello"


def test_anthropic_sdk_reads_our_batch_and_we_its_results() -> None:
    """The request fits its parameter types; results that it made read as the right records."""
    types, batch_types = sdk("anthropic.types"), sdk("anthropic.types.messages")
    params, fits = batch_types.batch_create_params.BatchCreateParams, sdk("pydantic").TypeAdapter

    assistant = assistant_of("messages")
    queue = queue_for(assistant)
    made = queue.build_batch(items(assistant), None)
    fits(params).validate_python(made.body)
    counts = {"processing": 1, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0}
    sample = batch_types.MessageBatch.model_validate({
        "id": "msgbatch_1", "type": "message_batch", "processing_status": "in_progress",
        "request_counts": counts, "created_at": "2026-11-20T06:00:00Z",
        "expires_at": "2026-11-21T06:00:00Z",
    })  # fmt: skip
    remote = queue.read_batch(sample.model_dump(mode="json"))
    assert remote
    assert (remote.id, remote.state) == ("msgbatch_1", "open")
    message = types.Message.model_validate({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "stop_reason": "end_turn", "content": [{"type": "text", "text": "hello"}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    })  # fmt: skip
    inner = {"type": "rate_limit_error", "message": "slow"}
    samples = {
        "succeeded": {"type": "succeeded", "message": message.model_dump(mode="json")},
        "errored": {"type": "errored", "error": {"type": "error", "error": inner}},
        "canceled": {"type": "canceled"},
        "expired": {"type": "expired"},
    }
    found: dict[str, Any] = {}
    for name, result in samples.items():
        shape = batch_types.MessageBatchIndividualResponse.model_validate(
            {"custom_id": name, "result": result}
        )
        found.update(queue.read_results(shape.model_dump_json().encode()))
    outcomes = {
        name: WIRE_FORMATS[assistant.api].read_reply(came).outcome for name, came in found.items()
    }
    assert outcomes.pop("succeeded") == "hello"
    kinds = {name: getattr(came, "kind", None) for name, came in outcomes.items()}
    assert kinds == {"errored": "rate_limited", "canceled": "interrupted", "expired": "timeout"}
