"""A provider that does everything a provider should not, beside two pollers."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import format_datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from builders import edit
from conftest import Report
from polling_world import PollingWorld
from processes import until
from replaying import answer_text, envelope

from store.polls.sending import Limits
from store.records import Poll

DAILY_USD = 0.5
OVERBILLED = 0.4
"""US dollars that an overbilled answer is said to have cost; about ten times its reserve."""
KINDS = ("good",) * 40 + (
    "slow", "401", "429", "wait", "500", "malformed", "huge", "truncated", "drip", "drop",
    "overbilling", "clock", "refusal",
)  # fmt: skip


class Hostile(ThreadingHTTPServer):
    """The provider; ``now`` is the pollers' time, ``dead`` while nobody can reach it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.now: Callable[[], datetime] = datetime.now
        self.draw = random.Random(seed)
        self.mutex = threading.Lock()
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients hang up."""


class Handler(BaseHTTPRequestHandler):
    """One question."""

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer as chance will have it."""
        server = cast("Hostile", self.server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.mutex:
            kind = "good" if server.is_healthy else server.draw.choice(KINDS)
            kind = "drop" if server.is_dead else kind
            moment = server.accepted[self.client_address]
            server.requests.append((moment, body["model"], kind))
            if kind in ("good", "slow", "malformed", "truncated", "overbilling", "refusal"):
                cost = OVERBILLED if kind == "overbilling" else 0.0044
                server.billed[f"{moment:%Y-%m-%d}"] += round(cost * 1e6)
        with suppress(OSError):
            self.answer(kind, body["model"], server)

    def answer(self, kind: str, model: str, server: Hostile) -> None:
        """Send what this kind of reply is."""
        self.close_connection = True
        if kind == "drop":
            return
        if kind == "drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(20):
                self.wfile.write(b"a")
                time.sleep(0.1)
            return
        status = {"401": 401, "429": 429, "wait": 429, "500": 500}.get(kind, 200)
        headers = {"Retry-After": "7200"} if kind == "wait" else {}
        if kind == "clock":
            date = server.now() + timedelta(hours=3)
            status, headers = 200, {"Date": format_datetime(date, usegmt=True)}
        time.sleep(0.05 if kind == "slow" else 0)
        envelope_ = envelope("chat", answer_text([f"P{server.draw.randrange(9)}"]), model)
        choice = envelope_["choices"][0]
        if kind == "truncated":
            choice["finish_reason"] = "length"
        if kind == "refusal":
            choice["message"] = {"role": "assistant", "content": None, "refusal": "No."}
        if kind == "overbilling":
            envelope_["usage"] = {"prompt_tokens": 1000, "completion_tokens": 39_800}
        raw = json.dumps(envelope_).encode()
        raw = b"x" * 300_000 if kind == "huge" else b"{" if kind == "malformed" else raw
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)


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
    server = Hostile(41)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    data = PollingWorld(tmp_path / "data", url, 15, api="chat", concurrency=2, daily_usd=DAILY_USD)
    edit(data.directory / "site.json", poll_every_days=2)
    data.limits = Limits(attempts=1, total=0.4, size=200_000)
    server.now = lambda: data.now

    def is_begun() -> bool:
        server.is_dead = questions * 0.4 < len(server.requests) < questions * 0.45
        return len(server.requests) < questions

    threads = [threading.Thread(target=poll_on, args=(data, server, is_begun, n)) for n in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.is_healthy, server.is_dead = True, False
    for _ in range(12):
        server.accept_all()
        data.later(hours=40)
        for name in ("GPT", "Claude", "Gemini", "Grok"):
            data.due(name, most=1000)
    server.accept_all()
    server.shutdown()
    server.server_close()
    return server, data


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
