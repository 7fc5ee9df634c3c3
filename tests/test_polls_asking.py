"""From a category to a poll: what is recorded of an answer, a failure, a second try, and no key."""

import errno
import json
import os
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import command, write_data
from msgspec import UNSET
from polling_world import CANARY, PollingWorld, asked, budget
from processes import REAL
from replaying import DROPPED, Replaying, answer_text, envelope

from store.files import Files
from store.history import History
from store.polls.answers import prompt
from store.polls.asking import (
    FOLDER,
    encode_instrument,
    poll_of,
    read_result,
)
from store.polls.batch_files import BatchQuestion
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import Response
from store.polls.secrets import faults
from store.polls.sending import Limits, Sender
from store.polls.spending import Budget, at_reduced_price
from store.records import Assistant, Usage

APIS = tuple(WIRE_FORMATS)


@pytest.mark.parametrize("api", APIS)
def test_an_answer_becomes_a_poll(provider: Replaying, api: str) -> None:
    """All that history keeps of an answer is there, whatever the format."""
    got = asked(provider, {"picks": ["Alpha", "Beta"]}, api=api).poll
    searching = asked(provider, {"picks": ["Alpha"]}, api=api, web_search=True).poll
    assert (got.web_search, searching.web_search) == (False, True)
    assert (got.slug, got.model, got.question) == (
        "crm-software",
        "A",
        "What is the best CRM software?",
    )
    assert (got.pick, got.reason) == ("Alpha", "Alpha is good")
    assert [pick.product for pick in got.ranking] == ["Alpha", "Beta"]
    assert (got.error, got.failure, got.notes) == (None, None, ())
    assert got.served_model == "m-served"
    assert got.request_id
    assert got.usage == Usage(700, 300, 0.0044, UNSET if api == "chat" else 0)
    assert got.latency_ms is not None
    assert provider.seen[0]["api"] == api


def test_what_was_mended_is_noted(provider: Replaying) -> None:
    """The notes of the reading end up in history."""
    got = asked(provider, {"text": f"Sure!\n{answer_text(['Alpha'])}"}).poll
    assert got.notes == ("salvaged: prose around the object was left out",)


@pytest.mark.parametrize(
    ("step", "kind", "error"),
    [
        (
            {"text": "1. Alpha\n2. Beta"},
            "parse",
            'The answer is text, not the JSON object asked for. It begins: "1. Alpha 2. Beta"',
        ),
        ({"text": "{}"}, "schema", "The answer does not have the asked-for shape: Object missing "),
        ({"text": ""}, "empty", "The model answered with no text."),
        ({"status": 500}, "http", "The provider answered HTTP 500"),
        ({"status": 401}, "auth", "The provider answered HTTP 401"),
        (DROPPED, "network", "The connection broke (RemoteDisconnected)."),
    ],
)
def test_a_failure_becomes_a_poll_too(
    provider: Replaying, step: dict[str, Any], kind: str, error: str
) -> None:
    """A failed poll has a kind, a sentence, and neither pick nor ranking."""
    got = asked(provider, step).poll
    assert got.failure == kind
    assert got.error is not None
    assert got.error.startswith(error)
    assert (got.pick, got.ranking, got.reason, got.missed, got.caveat) == (None, (), None, (), None)
    assert got.succeeded is False


def test_an_unreadable_answer_was_still_paid(provider: Replaying) -> None:
    """Tokens are counted whatever the text was worth."""
    assert asked(provider, {"text": "no"}).poll.usage == Usage(700, 300, 0.0044)
    assert asked(provider, {"status": 500}).poll.usage is None
    free = asked(provider, {"text": "no"}, usd_per_million_input=None).poll
    assert free.usage == Usage(700, 300, None)


def truncated() -> dict[str, Any]:
    """A reply that ended at the output limit."""
    body = envelope("chat", answer_text(["Alpha"])[:20], "m")
    body["choices"][0]["finish_reason"] = "length"
    return {"body": body}


def test_a_truncated_answer_is_asked_for_again_with_twice_the_budget(provider: Replaying) -> None:
    """The second request has twice the output limit; both are paid and noted."""
    got = asked(provider, truncated(), {"picks": ["Alpha"]}, max_output_tokens=500).poll
    assert got.pick == "Alpha"
    assert [one["body"]["max_completion_tokens"] for one in provider.seen] == [500, 1000]
    assert got.usage == Usage(1400, 600, 0.0088)
    assert got.notes == (
        "the first answer was cut off; asked again with twice the output limit",
        "sent 2 times",
    )


def test_room_that_extra_sets_is_not_asked_for_twice(provider: Replaying) -> None:
    """Where twice the limit would change nothing in the request, nothing is paid again."""
    extra = {"max_completion_tokens": None, "max_tokens": 500}
    got = asked(provider, truncated(), extra=extra).poll
    assert got.failure == "truncated"
    assert len(provider.seen) == 1
    assert not got.notes


def test_both_tries_share_one_time_limit(
    provider: Replaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first answer that took nearly all of it leaves nothing for another to be paid for."""
    send = Sender.send

    def send_slowly(sender: Sender, *arguments: Any) -> Any:
        reply, elapsed = send(sender, *arguments), sender.elapsed
        sender.elapsed = lambda: elapsed() + sender.limits.total
        return reply

    monkeypatch.setattr(Sender, "send", send_slowly)
    assert asked(provider, truncated(), {"picks": ["Alpha"]}).poll.failure == "truncated"
    assert len(provider.seen) == 1


def test_a_second_try_that_fails_says_why(provider: Replaying) -> None:
    """The record is of the last thing that happened, the first answer's cost in it."""
    came = asked(provider, truncated(), {"status": 401})
    assert (came.poll.failure, came.pause) == ("auth", 21_600)
    assert came.poll.usage == Usage(700, 300, 0.0044)


def test_no_third_try_and_none_beyond_the_cap(provider: Replaying) -> None:
    """An answer stays truncated, also when twice the budget is too much for the cap."""
    assert asked(provider, truncated()).poll.failure == "truncated"
    assert len(provider.seen) == 2
    account = budget(0.05)
    got = asked(provider, truncated(), {"picks": ["Alpha"]}, account=account).poll
    assert got.failure == "truncated"
    assert account.run_spent.total() == 4400


def test_where_no_more_can_be_reserved_the_first_reply_counts(provider: Replaying) -> None:
    """The sums cannot be kept now: that is no word on the reply, which says what failed."""

    class Sums(Budget):
        def reserve(self, amount: int, name: str = "") -> str | None:
            if self.run_spent:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().reserve(amount, name)

    def account() -> Budget:
        return Sums(Path(), lambda: "2026-11-24", lambda _: Counter())

    oops = {"status": 500, "body": {"error": {"message": "oops"}}}
    got = asked(provider, oops, account=account(), limits=Limits(attempts=2)).poll
    assert (got.failure, "oops" in (got.error or "")) == ("http", True)
    got = asked(provider, truncated(), account=account()).poll
    assert (got.failure, got.usage) == ("truncated", Usage(700, 300, 0.0044))


@pytest.mark.parametrize("api", APIS)
def test_a_key_never_reaches_a_poll(provider: Replaying, api: str) -> None:
    """Wherever a provider puts our key, the record has a mark in its place."""
    escaped = CANARY.replace("s", "\\u0073")
    split = CANARY[:8] + "\u200b" + CANARY[8:]
    for shown in (CANARY, split):
        body = envelope(api, answer_text([f"Alpha {shown}"]), f"model-{shown}")
        got = asked(provider, {"body": body}, api=api).poll
        assert CANARY not in msgspec.json.encode(got).decode()
        assert got.pick == "Alpha [redacted]"
    for status in (200, 400, 401, 429, 500):
        for text in (f"bad key {CANARY}", "x" * 260 + CANARY, "x" * 255 + split):
            raw = msgspec.json.encode({"error": {"message": text}}).decode()
            for said in (raw, raw.replace(CANARY, escaped)):
                came = asked(
                    provider,
                    {"status": status, "body": said, "headers": {"x-request-id": CANARY}},
                    api=api,
                )
                kept = msgspec.json.encode(came.poll).decode()
                assert CANARY[:10] not in kept, "not even what a cut leaves of it"


@pytest.mark.parametrize("text", ["error", "refusal", "answer"])
def test_long_words_of_others_are_cut(provider: Replaying, text: str) -> None:
    """No provider fills the history with its error page, no model with its essay."""
    body: dict[str, Any] = envelope("chat", "x" * 5000, "m")
    if text == "error":
        body = {"error": {"message": "x" * 5000}}
    if text == "refusal":
        body["choices"][0]["message"] = {"refusal": "x" * 5000}
    error = asked(provider, {"body": body}).poll.error
    assert error is not None
    assert error.count("x") < 310
    assert error.rstrip('"').endswith("x…")


def test_an_answer_of_a_batch_that_costs_far_too_much_pauses_too() -> None:
    """As if it had been asked by itself; twice what it may cost is forgiven."""
    who = Assistant(
        name="A",
        api="chat",
        base_url="http://x",
        model="m",
        usd_per_million_input=1,
        usd_per_million_output=5,
    )
    priced = at_reduced_price(who)
    for made, rest in ((7_000, None), (70_000, 21_600)):
        body = envelope("chat", answer_text(["Alpha"]), "m")
        body["usage"] = {"prompt_tokens": 700, "completion_tokens": made}
        response = Response(200, {}, json.dumps(body).encode())
        item = BatchQuestion("crm-software", "Which?")
        reply = read_result(priced, item, response, "batch x-0", None)
        poll = poll_of(priced, "crm-software", "Which?", reply)
        assert (poll.succeeded, reply.pause) == (True, rest)
        assert "it cost" in poll.notes[1]


# ------------------------------------------------------------------ the instrument


def instrumented(**fields: Any) -> Assistant:
    """An assistant of a real provider."""
    start = {"name": "A", "api": "chat", "base_url": "https://a.example/v1", "model": "m-1"}
    return Assistant(**{**start, **fields})


@pytest.mark.parametrize("model", [name for name, _ in REAL])
def test_every_record_names_a_file_that_says_how_it_was_asked(
    session: PollingWorld, provider: Replaying, model: str
) -> None:
    """Its name is the start of its digest; with the question in its place it is what was sent.

    Failures name it too: whoever counts them by the way of asking can.
    """
    provider.follow({model.lower(): [{"status": 400}, {"picks": ["Alpha"]}]})
    assert session.due(model).outcomes == {"http": 1, "answered": 2}
    (name,) = {poll.instrument for poll in session.polls(model)}
    data = (session.directory / FOLDER / f"{name}.json").read_bytes()
    assert sha256(data).hexdigest()[:12] == name
    said = json.loads(data)
    question = session.polls(model)[0].question
    assert said["system"] == prompt(question).system
    assert said["prompt"].replace("{question}", question) == prompt(question).user
    assert Files(session.directory).scan().problems == ()
    for sent in provider.seen:
        text = json.dumps(said["request"])
        for mark in ("system", "prompt"):
            stands_for = json.dumps(said[mark].replace("{question}", sent["question"]))[1:-1]
            text = text.replace(f"{{{mark}}}", stands_for)
        assert json.loads(text) == sent["body"]


def test_its_file_is_there_before_anything_is_asked(
    session: PollingWorld, provider: Replaying
) -> None:
    """Where it cannot be written nothing is asked or paid for, and the summary says why."""
    (session.directory / FOLDER).write_text("in its place")
    summary = session.due()
    assert summary.fault == "what it is asked with cannot be kept: File exists"
    assert (session.polls(), provider.seen) == ([], [])


def test_a_sample_assistant_has_none(tmp_path: Path) -> None:
    """Nothing is sent to it: its answers are compared whatever the program would ask others."""
    data = write_data(tmp_path / "data")
    assert command(data, "poll", "--all").exit_code == 0
    polls = [stored.poll for stored in History(data / "history").read("crm-software").polls]
    assert [poll.instrument for poll in polls] == [UNSET] * 4
    assert not (data / FOLDER).exists()


@pytest.mark.parametrize(
    ("fields", "is_another"),
    [
        ({"web_search": True}, True),
        ({"extra": {"temperature": 0.7}}, True),
        ({"structured": "prompt"}, True),
        ({"max_output_tokens": 5000}, True),
        ({"model": "m-2"}, True),
        ({"api": "responses"}, True),
        ({"tier": "flex"}, False),
        ({"batch": True}, False),
        ({"base_url": "https://b.example/v1"}, False),
        ({"rpm": 7}, False),
        ({"concurrency": 1}, False),
        ({"usd_per_million_input": 1.0}, False),
        ({"name": "B"}, False),
        ({"key_env": "OTHER_KEY"}, False),
    ],
)
def test_what_may_change_an_answer_is_another_instrument(
    fields: dict[str, Any], *, is_another: bool
) -> None:
    """Prices and pace may change without a run that begins anew."""
    changed = encode_instrument(instrumented(**fields)) != encode_instrument(instrumented())
    assert changed is is_another


def test_its_own_key_is_not_published_with_it() -> None:
    """Wherever in its entry it stands."""
    own = encode_instrument(instrumented(extra={"user": CANARY}), CANARY)
    assert (CANARY.encode() in own, b"[redacted]" in own) == (False, True)


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-5-5-20260901", "qwen2p5coder32binstruct", "mistralai/Mixtral-8x22B-Instruct",
     "deepseekr1distillllama70b", "gpt-5.6-luna-2026-10-01"],
)  # fmt: skip
def test_a_long_name_of_a_model_is_no_key(model: str) -> None:
    """It is asked for, and told apart from every other."""
    assert list(faults(instrumented(model=model))) == []
    assert json.loads(encode_instrument(instrumented(model=model)))["model"] == model
