"""A provider that does everything a provider should not, beside two pollers."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import pytest
from builders import edit
from conftest import Report
from polling_world import PollingWorld
from processes import at_once, until
from replaying import DROPPED, Handler, Replaying, Step, answer_text, answering, envelope

from store.polls.sending import Limits
from store.records import Poll

DAILY_USD = 0.5
OVERBILLED = 0.4
"""US dollars that an overbilled answer is said to have cost; about ten times its reserve."""
MISBEHAVIOUR = (
    "slow", "401", "429", "wait", "500", "malformed", "huge", "truncated", "drip", "drop",
    "overbilling", "clock", "refusal",
)  # fmt: skip
BILLED = {"good", "slow", "malformed", "truncated", "overbilling", "refusal"}


class Hostile(Replaying):
    """The provider; ``now`` is the pollers' time, ``dead`` while nobody can reach it."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.RequestHandlerClass = cast("Any", HostileHandler)
        self.now: Callable[[], datetime] = datetime.now
        self.draw = random.Random(seed)
        self.requests: list[tuple[datetime, str, str]] = []
        self.billed: Counter[str] = Counter()
        self.is_dead = self.is_healthy = False
        self.accepted: dict[Any, datetime] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note when a request came; its thread may begin much later on a busy machine."""
        self.accepted[client_address] = self.now()
        super().process_request(request, client_address)

    def accept_all(self) -> None:
        """Wait until every request that was sent has been accepted; they are, in order."""
        until(lambda: not [t for t in threading.enumerate() if t.name.startswith("poll ")])
        connection = HTTPConnection("127.0.0.1", self.server_address[1])
        connection.request("GET", "/")
        connection.getresponse().read()
        connection.close()

    def step_for(self, model: str, client: Any) -> Step:
        """Answer as chance will have it."""
        with self.lock:
            kind = self.draw.choice(("good",) * 40 + MISBEHAVIOUR)
            kind = "drop" if self.is_dead else "good" if self.is_healthy else kind
            moment = self.accepted[client]
            self.requests.append((moment, model, kind))
            if kind in BILLED:
                cost = OVERBILLED if kind == "overbilling" else 0.0044
                self.billed[f"{moment:%Y-%m-%d}"] += round(cost * 1e6)
            return self.steps(model)[kind]

    def steps(self, model: str) -> dict[str, Step]:
        """What each kind of reply is."""
        body = envelope("chat", answer_text([f"P{self.draw.randrange(9)}"]), model)
        [choice] = body["choices"]
        refusal = {"role": "assistant", "content": None, "refusal": "No."}
        dear = {"prompt_tokens": 1000, "completion_tokens": 39_800}
        late = format_datetime(self.now() + timedelta(hours=3), usegmt=True)
        return {
            "good": {"body": body},
            "slow": {"body": body, "delay": 0.05},
            "401": {"status": 401, "body": body},
            "429": {"status": 429, "body": body},
            "wait": {"status": 429, "body": body, "headers": {"Retry-After": "7200"}},
            "500": {"status": 500, "body": body},
            "malformed": {"body": "{"},
            "huge": {"body": "x" * 300_000},
            "truncated": {"body": body | {"choices": [choice | {"finish_reason": "length"}]}},
            "drip": {"raw": b"HTTP/1.1 200 OK\r\nX: ", "endless": b"a", "seconds": 2},
            "drop": DROPPED,
            "overbilling": {"body": body | {"usage": dear}},
            "clock": {"body": body, "headers": {"Date": late}},
            "refusal": {"body": body | {"choices": [choice | {"message": refusal}]}},
        }


class HostileHandler(Handler):
    """One question."""

    def take_step(self, model: str) -> Step:
        """What the provider does to who asks."""
        return cast("Hostile", self.server).step_for(model, self.client_address)


def poll_on(data: PollingWorld, server: Hostile, is_begun: Callable[[], bool], number: int) -> None:
    """Take turn after turn with every assistant, each a process just started."""
    draw = random.Random(number)
    while is_begun():
        for name in ("GPT", "Claude", "Gemini", "Grok"):
            with TURNS[number]:
                data.due(name, most=20)
        # A request that is on its way would else reach the provider hours after it was sent.
        with TURNS[0], TURNS[1]:
            server.accept_all()
            data.later(hours=draw.choice((0.3, 6, 30)))


TURNS = threading.Lock(), threading.Lock()
"""Held by each poller while it takes a turn."""


def tell(tmp_path: Path, questions: int) -> tuple[Hostile, PollingWorld]:
    """Poll until so many questions were asked, then until a healthy provider has answered all."""
    with Hostile(41) as server, answering(server):
        data = poll(tmp_path / "data", server, questions)
    return server, data


def poll(directory: Path, server: Hostile, questions: int) -> PollingWorld:
    """Take turns with two pollers, then heal the provider."""
    data = PollingWorld(directory, server.url, 15, api="chat", concurrency=2, daily_usd=DAILY_USD)
    edit(data.directory / "site.json", poll_every_days=2)
    data.limits = Limits(attempts=1, total=0.4, size=200_000)
    server.now = lambda: data.now

    def is_begun() -> bool:
        server.is_dead = questions * 0.4 < len(server.requests) < questions * 0.45
        return len(server.requests) < questions

    at_once(*(partial(poll_on, data, server, is_begun, number) for number in (0, 1)))
    server.is_healthy, server.is_dead = True, False
    for _ in range(12):
        server.accept_all()
        data.later(hours=40)
        for name in ("GPT", "Claude", "Gemini", "Grok"):
            data.due(name, most=1000)
    server.accept_all()
    return data


def end_of(since: str, polls: list[Poll]) -> str:
    """When an answer to a question that was sent after a pause began ended it, by history."""
    ends = (
        poll.polled_at
        for poll in polls
        if poll.succeeded
        and datetime.fromisoformat(poll.polled_at) - timedelta(milliseconds=poll.latency_ms or 0)
        > datetime.fromisoformat(since)
    )
    return min(ends, default="9")


def check(server: Hostile, data: PollingWorld) -> dict[str, Any]:
    """One record for each question, no limit passed but by what was overbilled, no pause broken."""
    polls = data.polls()
    again = sum("asked again with twice" in note for poll in polls for note in poll.notes)
    # a cut-off answer is asked for again within its poll, which may then be given up: no note
    cut_off = sum(kind == "truncated" for _, _, kind in server.requests)
    # under load one that was given up may never have reached the provider
    unheard = sum(poll.failure in ("timeout", "network") for poll in polls)
    assert len(polls) - unheard + again <= len(server.requests) <= len(polls) + cut_off
    in_flight = 2 * 2 * OVERBILLED * 1e6  # two pollers, two questions at once
    assert max(server.billed.values()) <= DAILY_USD * 1e6 + in_flight
    newest = {(poll.slug, poll.model): poll for poll in polls}
    assert {poll.failure for poll in newest.values()} <= {None, "refusal", "parse", "schema"}
    assert len(newest) == 60
    broken = 0
    for model in ("GPT", "Claude", "Gemini", "Grok"):
        own = sorted((p for p in polls if p.model == model), key=lambda p: p.polled_at)
        pauses = [
            (poll.polled_at, min(poll.cooldown_until, end_of(poll.polled_at, own)))
            for poll in own
            if isinstance(poll.cooldown_until, str)
        ]
        for at, asked, _ in server.requests:
            moment = f"{at:%Y-%m-%dT%H:%M:%SZ}"
            if asked == model.lower():
                # those on their way when a pause began, at the same moment, are not its breach
                broken += any(since < moment < until for since, until in pauses)
    assert broken == 0
    return {
        "questions": len(server.requests),
        "records": len(polls),
        "kinds": dict(Counter(poll.failure or "answered" for poll in polls)),
        "most billed in a day": max(server.billed.values()) / 1e6,
    }


def test_a_hostile_provider_gets_one_record_a_question(tmp_path: Path) -> None:
    """Beside two pollers, for some dozen questions."""
    check(*tell(tmp_path, 60))


@pytest.mark.slow
def test_a_hostile_provider_for_five_thousand_questions(tmp_path: Path, report: Report) -> None:
    """The same, long enough for every kind of misbehaviour to meet every other."""
    for name, figure in check(*tell(tmp_path, 5000)).items():
        report(f"{name}: {figure}")
