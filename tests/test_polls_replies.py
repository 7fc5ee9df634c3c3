"""From a provider's bytes to a record: whatever comes back, one poll is one record."""

import gzip
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polling_world import CANARY, NOW, Outcome, asked, budget
from replaying import Replaying, answer_text, envelope, serving

from store.line_codec import decode_line, encode_line
from store.polls.asking import UNEXPECTED
from store.polls.clocks import Clock
from store.polls.providers import WIRE_FORMATS
from store.polls.sending import Limits
from store.polls.spending import micros

APIS = tuple(WIRE_FORMATS)
LIMITS = Limits(total=60, attempts=1)


@pytest.fixture(scope="module")
def provider() -> Iterator[Replaying]:
    """One provider for all of them."""
    with serving() as server:
        yield server


def poll_on(provider: Replaying, api: str, reply: bytes) -> Outcome:
    """What one question comes to where these bytes come back; it can be recorded and read back."""
    purse = budget(100)
    outcome = asked(
        provider, {"raw": reply}, account=purse, limits=LIMITS, clock=Clock(lambda: NOW), api=api
    )
    poll, encoded = encode_line(outcome.poll, "2026-11-20T06:00:00Z")
    assert decode_line(encoded[:-1]) == poll
    assert CANARY.encode() not in encoded
    if poll.usage:
        assert purse.run_spent.total() >= micros(poll.usage.usd or 0)
    else:
        assert 0 <= purse.run_spent.total() <= 10 * 1e6
    assert poll.latency_ms is None or poll.latency_ms < 1000 * (LIMITS.total + 5)
    assert poll.failure != "interrupted"
    return outcome


def http(body: bytes, status: int = 200, **headers: str) -> bytes:
    """A reply that ends with its connection."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} Whatever", *lines, "", ""])
    return head.encode("latin-1", "replace") + body


def nested(depth: int) -> Any:
    """Lists within lists."""
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def nested_text(depth: int) -> Any:
    """Text parts within text parts."""
    value: Any = "deep"
    for _ in range(depth):
        value = [{"type": "text", "text": value}]
    return value


def spent(given: Any, made: Any) -> bytes:
    """A good answer with these counts of tokens."""
    body = envelope("chat", answer_text(["Alpha"]), "m")
    body["usage"] = {"prompt_tokens": given, "completion_tokens": made}
    return json.dumps(body).encode()


@pytest.mark.parametrize(("digits", "usd"), [(9, 11_999.999988), (15, 1e9), (400, 1e9)])
def test_counts_that_are_far_too_large_are_charged(
    provider: Replaying, digits: int, usd: float
) -> None:
    """The record says what it cost, a billion dollars at most, and its assistant is paused."""
    body = http(spent(7, 7).replace(b"7", b"9" * digits))
    poll, pause = poll_on(provider, "chat", body)
    assert (poll.usage and poll.usage.usd, poll.failure, pause) == (usd, None, 21_600)
    assert poll.notes[-1].endswith("are the prices and limits in models.json right?")


def test_an_answer_of_another_time_that_cost_far_too_much_pauses(provider: Replaying) -> None:
    """It is a failure by its date, and as dear as any other."""
    body = http(spent(7, 7).replace(b"7", b"9" * 9), Date="Fri, 20 Nov 2026 09:00:00 GMT")
    poll, pause = poll_on(provider, "chat", body)
    assert (poll.failure, pause) == ("http", 21_600)


def test_a_count_without_end_is_no_answer(provider: Replaying) -> None:
    """What no program could read is neither booked nor believed."""
    poll, _ = poll_on(provider, "chat", http(spent(7, 7).replace(b"7", b"9" * 5000)))
    assert (poll.usage, poll.failure) == (None, "http")


@pytest.mark.parametrize("depth", [340, 900, 5000])
@pytest.mark.parametrize("build", [nested, nested_text])
def test_content_as_deep_as_it_likes(provider: Replaying, build: Any, depth: int) -> None:
    """Nesting in the envelope, with and without escapes, is a failed poll."""
    body = envelope("chat", "", "m")
    body["choices"][0]["message"]["content"] = "HERE"
    deep = '[{"text":' * depth + '"\\u0061"' + "}]" * depth
    text = deep if build is nested_text else "[" * depth + '"\\u0061"' + "]" * depth
    poll, _ = poll_on(provider, "chat", http(json.dumps(body).replace('"HERE"', text).encode()))
    assert poll.failure in ("empty", "http")


def test_what_a_model_said_is_kept(provider: Replaying) -> None:
    """The beginning of what could not be read is in the record, cleaned, cut, without the key."""
    split = CANARY[:4] + "\u200b" + CANARY[4:]
    text = "x" * 290 + split + "y" * 100
    poll, _ = poll_on(provider, "chat", http(json.dumps(envelope("chat", text, "m")).encode()))
    assert poll.error is not None
    assert poll.error.startswith("The answer is text, not the JSON object asked for. It begins: ")
    assert "[redac" in poll.error[-20:]
    assert not any(CANARY[at : at + 6] in poll.error for at in range(len(CANARY) - 5))


# ------------------------------------------------------------------ anything at all

HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 10**15, 10**399, -(2**63) - 1, 1.5, 1e308, "", " ", "x" * 5000, CANARY,
    CANARY.replace("s", "\u200bs"), "\x00\x1b[31m", "\u202e", "\U000e0041", {}, [], [[]],
    nested(340), nested_text(340), {"text": CANARY}, {"reason": nested(400)}, "stop", "length",
    "content_filter", "insufficient_quota", 429, "1. Alpha", answer_text(["Alpha"] * 9),
    answer_text([CANARY]), "{" * 2000, '{"picks":' * 400, "```json\n{}\n```", "<think>", "NaN",
)  # fmt: skip
LEAVES = [json.dumps(value) for value in HOSTILE]
HINTS = (
    "Retry-After", "retry-after-ms", "Date", "x-ratelimit-reset-tokens", "x-request-id",
    "x-should-retry", "Content-Type", "Location", "Set-Cookie",
)  # fmt: skip
FRAMES = ("Content-Encoding", "Transfer-Encoding", "Content-Length", "Connection")
VALUES = (
    "0", "1", "-1", "9" * 30, "1795255230", "1795255230000", "nan", "true", "gzip", "chunked",
    "gzip, gzip, gzip", "deflate", "br", "Sat, 21 Nov 99999999999 10:00:30 GMT", CANARY,
    "Fri, 20 Nov 2026 06:00:00 GMT", "Fri, 20 Nov 2026 09:00:00 GMT", "8h", "\xff\xfe", "",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2300", "9999-12-31T23:59:59Z",
)  # fmt: skip
USED_UP = {"x_ratelimit_remaining_tokens": "0"}


def hostile_body(draw: Random, api: str) -> bytes:
    """An envelope after a few hostile changes, in the answer, around it and in its bytes."""
    answer: Any = json.loads(answer_text(["Alpha", "Beta"]))
    for _ in range(draw.choice((0, 0, 1, 2))):
        change(draw, answer)
    body: Any = envelope(api, json.dumps(answer), "m")
    if draw.random() < 0.2:
        body = {"error": {"message": "m", "code": "c", "details": [{"retryDelay": "9s"}]}}
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        change(draw, body)
    text = json.dumps(body, ensure_ascii=draw.random() < 0.5).encode("utf-8", "replace")
    if draw.random() < 0.15:
        at = draw.randrange(len(text))
        text = text[:at] + draw.randbytes(draw.randrange(9)) + text[at + draw.randrange(9) :]
    return text


def change(draw: Random, body: Any) -> None:
    """Put something hostile at some place of a value."""
    while isinstance(body, dict | list) and body:
        at = draw.choice(sorted(body) if isinstance(body, dict) else range(len(body)))
        if not isinstance(body[at], dict | list) or draw.random() < 0.2:
            body[at] = json.loads(draw.choice(LEAVES))
            return
        body = body[at]


def hostile_reply(draw: Random) -> tuple[str, bytes]:
    """An API and the bytes that come back from it."""
    api = draw.choice(APIS)
    if draw.random() < 0.03:
        return api, draw.randbytes(draw.randrange(200))
    body = hostile_body(draw, api)
    status = draw.choice((200,) * 12 + (204, 101, 302, 400, 401, 404, 429, 429, 503, 999))
    headers = {draw.choice(HINTS): draw.choice(VALUES) for _ in range(draw.randrange(3))}
    headers |= USED_UP if draw.random() < 0.3 else {}
    headers |= {draw.choice(FRAMES): draw.choice(VALUES)} if draw.random() < 0.1 else {}
    if draw.random() < 0.1:
        body, headers = gzip.compress(body), headers | {"Content-Encoding": "gzip"}
    reply = http(body, status, **headers)
    return api, reply[: draw.randrange(len(reply))] if draw.random() < 0.05 else reply


def is_one_record(provider: Replaying, draw: Random) -> None:
    """Poll once; what was thought of is no fault of the program, and nothing is out of bounds."""
    api, reply = hostile_reply(draw)
    poll, pause = poll_on(provider, api, reply)
    assert pause is None or 0 <= pause <= 7 * 86_400
    assert (poll.pick is None) == (poll.failure is not None) == (poll.error is not None)
    assert poll.error != UNEXPECTED.error, reply
    usd = poll.usage.usd or 0 if poll.usage else 0
    assert usd < 0.1 or pause is not None, "what costs over twice the reserve pauses"


DRAWS = st.randoms(use_true_random=True)


@settings(max_examples=80)
@given(draw=DRAWS)
def test_any_reply_is_one_record(provider: Replaying, draw: Random) -> None:
    """Whatever bytes come back, one poll is exactly one record, and the key is not in it."""
    is_one_record(provider, draw)


# requests leaves a socket to the garbage collector where it cannot decode a Location
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@settings(max_examples=20_000, suppress_health_check=list(HealthCheck), derandomize=False)
@given(draw=DRAWS)
def test_twenty_thousand_replies_are_as_many_records(provider: Replaying, draw: Random) -> None:
    """The same, with other replies on every run."""
    is_one_record(provider, draw)
