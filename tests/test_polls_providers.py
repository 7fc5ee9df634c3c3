"""The four wire formats: the requests that are built, and what every recorded reply is read as."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.polls.answers import ANSWER_SCHEMA, Prompt, prompt, read
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import Reply, Request, Response, Tokens
from store.polls.spending import at_most
from store.records import Answer, Assistant, Failure

REPLIES = Path(__file__).parent / "data" / "replies"

CASES = [(file.parent.name, file.stem) for file in sorted(REPLIES.glob("*/*.json"))]


def recorded(api: str, name: str) -> Response:
    """A recorded reply as it came."""
    told = json.loads((REPLIES / api / f"{name}.json").read_text("utf-8"))
    body = told["body"] if isinstance(told["body"], str) else json.dumps(told["body"])
    return Response(told["status"], told["headers"], body.encode())


def reply(api: str, name: str) -> Reply:
    """What a recorded reply is read as."""
    return WIRE_FORMATS[api].read_reply(recorded(api, name))


def meaning(got: Reply) -> str:
    """The kind of a reply, its text read as an answer, and whether it may pass or lasts."""
    said = got.outcome if isinstance(got.outcome, Failure) else read(got.outcome)
    kind = said.kind if isinstance(said, Failure) else "answer"
    return kind + "+" * got.is_transient + "!" * got.is_permanent


@pytest.mark.parametrize(("api", "name"), CASES)
def test_a_recorded_reply_is_read_as_what_it_is(api: str, name: str) -> None:
    """Its file says it: "answer", or the kind of failure; with "+" it may pass, with "!" it lasts.

    Good replies hold the same answer, whatever stands before, beside or between the text.
    """
    got = reply(api, name)
    kind = json.loads((REPLIES / api / f"{name}.json").read_text("utf-8"))["is"]
    assert meaning(got) == kind
    if kind == "answer":
        assert isinstance(got.outcome, str)
        answer = read(got.outcome)
        assert isinstance(answer, Answer)
        assert [pick.product for pick in answer.ranking] == ["Zoho CRM", "Pipedrive"]
        assert (answer.caveat, answer.notes) == ("The free plan is small.", ())


SOL = "gpt-6.1-sol-2026-08-12"


@pytest.mark.parametrize(
    ("api", "name", "served", "request_id", "tokens"),
    [
        ("chat", "good", SOL, "req_7f3a", Tokens(412, 388)),
        ("chat", "good-without-request-id", SOL, "chatcmpl-9x", Tokens(412, 388)),
        ("chat", "good-with-searches", SOL, "req_7f3a", Tokens(412, 388, 3)),
        ("chat", "good-without-usage", SOL, "req_7f3a", None),
        ("chat", "ok-odd-types", None, "x" * 200, None),
        ("chat", "bad-key", None, "req_7f3a", None),
        ("responses", "good", SOL, "req_51c2", Tokens(431, 612, 0)),
        ("responses", "searched", SOL, "req_51c2", Tokens(431, 612, 2)),
        ("responses", "searched-and-counted", SOL, "req_51c2", Tokens(431, 612, 4)),
        ("responses", "truncated", SOL, "req_51c2", Tokens(431, 612, 0)),
        ("responses", "ok-odd-types", None, None, None),
        ("responses", "overloaded", None, "req_51c2", None),
        ("messages", "good", "claude-sonnet-5-5-20260901", "req_018E", Tokens(420, 377, 0)),
        ("messages", "searched", "claude-sonnet-5-5-20260901", "req_018E", Tokens(9000, 400, 2)),
        ("messages", "ok-odd-types", None, None, None),
        ("messages", "quota", None, "req_018E", None),
        ("gemini", "good", "gemini-4-argon-002", "kXQ8aZ", Tokens(402, 878, 0)),
        ("gemini", "searched", "gemini-4-argon-002", "kXQ8aZ", Tokens(3402, 366, 2)),
        ("gemini", "blocked-prompt", "gemini-4-argon-002", "kXQ8aZ", None),
        ("gemini", "ok-odd-types", None, None, None),
        ("gemini", "overloaded", None, None, None),
    ],
)
def test_what_stands_beside_the_text_is_read(
    api: str, name: str, served: str | None, request_id: str | None, tokens: Tokens | None
) -> None:
    """The served model, the request's id and the provider's own token count are read back."""
    got = reply(api, name)
    assert (got.served_model, got.request_id, got.tokens) == (served, request_id, tokens)


@pytest.mark.parametrize(
    ("api", "headers", "members", "tier"),
    [
        ("chat", {}, {"service_tier": "flex"}, "flex"),
        ("responses", {}, {"service_tier": "default"}, "default"),
        ("responses", {}, {}, None),
        ("responses", {}, {"service_tier": "\x1b[31m\nflex"}, "[31m flex"),
        ("gemini", {}, {"usageMetadata": {"serviceTier": "FLEX"}}, "flex"),
        ("gemini", {"x-gemini-service-tier": "Standard"}, {}, "standard"),
    ],
)
def test_the_tier_that_answered_is_read(
    api: str, headers: dict[str, str], members: dict[str, Any], tier: str | None
) -> None:
    """Where each vendor says it; the price depends on it, and people read it."""
    body = json.dumps({"id": "x", **members}).encode()
    assert WIRE_FORMATS[api].read_reply(Response(200, headers, body)).tier == tier


@pytest.mark.parametrize(
    ("name", "wait"),
    [
        ("rate-limited-retry-info", 22),
        ("rate-limited-fraction", 0.733),
        ("rate-limited-plain", None),
        ("overloaded", None),
    ],
)
def test_a_wait_in_a_body_is_read(name: str, wait: float | None) -> None:
    """Gemini's RetryInfo is understood; without one nothing is made up."""
    assert reply("gemini", name).wait == wait


@pytest.mark.parametrize(
    ("api", "name", "sentence"),
    [
        ("chat", "refusal", "The model refused: I can't rank products for this request."),
        ("chat", "truncated", "The answer was cut off at the output limit."),
        ("chat", "gateway-html", "The provider answered HTTP 502"),
        ("chat", "redirect", "The provider answered HTTP 307, not an answer."),
        ("chat", "ok-html", "The provider's reply is not a JSON object."),
        ("chat", "ok-with-error-text", 'The provider answered HTTP 200: "no healthy upstream"'),
        ("responses", "incomplete", "The provider left the answer incomplete (steered)."),
        ("messages", "refusal-without-details", "The model refused."),
        ("gemini", "filter-spii", "The provider's content filter stopped the answer (SPII)."),
    ],
)
def test_a_failure_says_what_happened(api: str, name: str, sentence: str) -> None:
    """The sentence in history is for people, the provider's own words in quotation marks."""
    failure = reply(api, name).outcome
    assert isinstance(failure, Failure)
    assert failure.error == sentence


MEMBERS = [
    "choices", "message", "content", "finish_reason", "refusal", "output", "type", "text", "status",
    "error", "code", "candidates", "parts", "promptFeedback", "usage", "usageMetadata", "details",
    "retryDelay", "violations", "stop_reason", "id", "model", "incomplete_details",
    "groundingMetadata", "webSearchQueries",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("api", WIRE_FORMATS)
@given(status=st.integers(100, 599), value=JSON)
def test_no_json_breaks_a_reader(api: str, status: int, value: Any) -> None:
    """JSON of any shape at any status is a text or a failure with a sentence."""
    got = WIRE_FORMATS[api].read_reply(Response(status, {}, json.dumps(value).encode()))
    assert isinstance(got.outcome, str) or got.outcome.error


@pytest.mark.parametrize(
    "raw", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b'"\xed\xa0\x80"']
)
def test_bytes_made_to_break_readers(raw: bytes) -> None:
    """Deep nesting and broken encodings are a failure like any other."""
    for provider in WIRE_FORMATS.values():
        got = provider.read_reply(Response(200, {}, raw))
        assert got.outcome == Failure("http", "The provider's reply is not a JSON object.")


# ------------------------------------------------------------------ requests

QUESTION = Prompt("Be brief.", "What is the best CRM software?")
BASE = "https://api.example/v1/"


def built(api: str, key: str | None = "sk-1", **fields: Any) -> Request:
    """The request for an assistant."""
    who = Assistant(name="A", api=api, base_url=BASE, model="m-1", **fields)  # type: ignore[arg-type]
    return WIRE_FORMATS[api].build_request(who, QUESTION, key)


@pytest.mark.parametrize("api", WIRE_FORMATS)
def test_the_limit_on_the_output_is_reserved_for(api: str) -> None:
    """By whatever name a format calls it: ``extra`` may set a higher one than models.json."""
    body = built(api, max_output_tokens=4321).body
    who = Assistant(name="A", api=api, max_output_tokens=1)  # type: ignore[arg-type]
    assert at_most(who, body).output == 4321


def test_chat_request() -> None:
    """Chat Completions: messages, a strict schema, the budget, a bearer key."""
    request = built("chat")
    assert request.url == "https://api.example/v1/chat/completions"
    assert request.headers == {"Authorization": "Bearer sk-1"}
    assert request.body == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is the best CRM software?"},
        ],
        "max_completion_tokens": 4000,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": ANSWER_SCHEMA},
        },
    }
    assert built("chat", structured="json_object").body["response_format"] == {
        "type": "json_object"
    }
    assert "response_format" not in built("chat", structured="prompt").body
    assert built("chat", web_search=True).body["web_search_options"] == {}


def test_responses_request() -> None:
    """Responses: instructions and input, text.format, nothing stored by the provider."""
    request = built("responses")
    assert request.url == "https://api.example/v1/responses"
    assert request.headers == {"Authorization": "Bearer sk-1"}
    assert request.body == {
        "model": "m-1",
        "instructions": "Be brief.",
        "input": "What is the best CRM software?",
        "max_output_tokens": 4000,
        "store": False,
        "text": {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "strict": True,
                "schema": ANSWER_SCHEMA,
            }
        },
    }
    plain = built("responses", structured="json_object").body
    assert plain["text"] == {"format": {"type": "json_object"}}
    assert "text" not in built("responses", structured="prompt").body
    searching = built("responses", web_search=True).body
    assert searching["tools"] == [{"type": "web_search"}]
    assert searching["max_tool_calls"] == 5


def test_messages_request() -> None:
    """Messages: its version, x-api-key, output_config.format."""
    request = built("messages")
    assert request.url == "https://api.example/v1/messages"
    assert request.headers == {"anthropic-version": "2026-10-21", "x-api-key": "sk-1"}
    assert request.body == {
        "model": "m-1",
        "max_tokens": 4000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "What is the best CRM software?"}],
        "output_config": {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}},
    }
    for structured in ("json_object", "prompt"):
        assert "output_config" not in built("messages", structured=structured).body
    assert built("messages", web_search=True).body["tools"] == [
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 5}
    ]


def test_gemini_request() -> None:
    """Gemini: the model in the path, the key in a header and never in the address."""
    request = built("gemini")
    assert request.url == "https://api.example/v1/models/m-1:generateContent"
    assert request.headers == {"x-goog-api-key": "sk-1"}
    assert request.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "What is the best CRM software?"}]}],
        "generationConfig": {
            "maxOutputTokens": 4000,
            "responseMimeType": "application/json",
            "responseJsonSchema": ANSWER_SCHEMA,
        },
    }
    plain = built("gemini", structured="json_object").body["generationConfig"]
    assert plain == {"maxOutputTokens": 4000, "responseMimeType": "application/json"}
    assert built("gemini", structured="prompt").body["generationConfig"] == {
        "maxOutputTokens": 4000
    }
    assert built("gemini", web_search=True).body["tools"] == [{"googleSearch": {}}]


@pytest.mark.parametrize("api", WIRE_FORMATS)
def test_what_all_requests_have_in_common(api: str) -> None:
    """No sampling parameters, no key without one, the budget as told, the operator's extras."""
    text = json.dumps(built(api, web_search=True).body)
    assert not any(name in text for name in ("temperature", "top_p", "topP", "top_k", "seed"))
    assert "sk-1" not in text + built(api).url
    assert "sk-1" not in json.dumps(dict(built(api, None).headers))
    assert "8123" in json.dumps(built(api, max_output_tokens=8123).body)
    extended = built(api, extra={"service_tier": "flex", "tools": None}, web_search=True).body
    assert extended["service_tier"] == "flex"
    assert "tools" not in extended


def test_the_prompt_asks_for_what_the_contract_says() -> None:
    """The question comes first and word for word, then the limit of five and the JSON object."""
    asked = prompt("What is the best CRM software?")
    assert asked.user.startswith("What is the best CRM software?\n")
    assert "at most 5 picks" in asked.user
    assert "json" in asked.user.casefold()
    assert "English" in asked.system
