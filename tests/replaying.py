"""A provider of our own on loopback: speaks all four wire formats and replays what it is told to.

A *script* maps a model's name to its steps, taken one after the other, the last for ever:

    {"text": "..."}            an answer in the envelope of the format that was asked
    {"picks": ["A", "B"]}      an answer with these picks
    {"status", "headers", "body"}   that reply, whatever the format (no Date unless told)
    {"raw": bytes, "endless": bytes, "seconds"}   these bytes, then those again and again so long
    {"gate": "name"}           the reply waits until somebody opens the gate
    {"delay": seconds}         the reply takes so long

``seen`` lists what was asked.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, cast

Step = dict[str, Any]

TOKENS = {"input": 700, "output": 300}

DROPPED: Step = {"raw": b""}
"""The line is closed without a word."""
CUT: Step = {"raw": b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"half":'}
SILENT: Step = {"raw": b"", "endless": b""}
HUGE: Step = {"raw": b"HTTP/1.1 200 OK\r\n\r\n", "endless": b" " * 65_536}


def answer_text(names: list[str]) -> str:
    """An answer as it is asked for, with these picks."""
    picks: list[dict[str, Any]] = [
        {"name": name, "domain": None, "reason": f"{name} is good", "fixes": []} for name in names
    ]
    return json.dumps({"picks": picks, "near_misses": [], "caveat": None})


def envelope(api: str, text: str, model: str) -> dict[str, Any]:
    """A good reply that holds a text, in the format of an API."""
    given, made = TOKENS["input"], TOKENS["output"]
    if api == "responses":
        content = [{"type": "output_text", "text": text}]
        return {
            "id": "resp_1",
            "model": model,
            "status": "completed",
            "output": [{"type": "reasoning"}, {"type": "message", "content": content}],
            "usage": {"input_tokens": given, "output_tokens": made},
        }
    if api == "messages":
        return {
            "id": "msg_1",
            "model": model,
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": given, "output_tokens": made},
        }
    if api == "gemini":
        return {
            "responseId": "gem_1",
            "modelVersion": model,
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": given, "candidatesTokenCount": made},
        }
    return {
        "id": "chat_1",
        "model": model,
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": given, "completion_tokens": made},
    }


class Replaying(ThreadingHTTPServer):
    """The server; ``script`` says what each model replies, ``seen`` what was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.script: dict[str, list[Step]] = {}
        self.seen: list[dict[str, Any]] = []
        self.gates: dict[str, threading.Event] = {}
        self.lock = threading.Lock()
        self._taken: dict[str, int] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def step(self, model: str) -> Step:
        """The next step of a model's script."""
        with self.lock:
            steps = self.script.get(model) or [{"picks": ["Alpha", "Beta", "Gamma"]}]
            taken = self._taken.get(model, 0)
            self._taken[model] = taken + 1
            return steps[min(taken, len(steps) - 1)]

    def follow(self, script: dict[str, list[Step]]) -> None:
        """Take a script, from its first step."""
        with self.lock:
            self.script = script
            self._taken = {}

    def gate(self, name: str) -> threading.Event:
        """A gate, closed until it is opened."""
        with self.lock:
            return self.gates.setdefault(name, threading.Event())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def serving() -> Iterator[Replaying]:
    """Serve on a thread of the test's own process; what waits at a gate ends with it."""
    with Replaying() as server, answering(server):
        yield server
        for gate in [server.gate("end"), *server.gates.values()]:
            gate.set()


@contextmanager
def answering(server: HTTPServer) -> Iterator[None]:
    """Let a server answer on a thread of its own."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def provider(self) -> Replaying:
        """The server this handler belongs to."""
        return cast("Replaying", self.server)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """A question."""
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: dict[str, Any]) -> None:
        api, model, question = self._read(body)
        entry = {
            "api": api,
            "model": model,
            "question": question,
            "path": self.path,
            "headers": {k.lower(): v for k, v in self.headers.items()},
            "body": body,
        }
        with self.provider.lock:
            self.provider.seen.append(entry)
        step = self.take_step(model)
        if gate := step.get("gate"):
            self.provider.gate(gate).wait(60)
        time.sleep(step.get("delay", 0))
        if "raw" in step:
            self._send_raw(step)
        elif "status" in step or "body" in step:
            given = step.get("body", "")
            raw = given if isinstance(given, str) else json.dumps(given)
            self._send(step.get("status", 200), step.get("headers", {}), raw.encode())
        else:
            text = step["text"] if "text" in step else answer_text(step["picks"])
            self._send(200, {}, json.dumps(envelope(api, text, f"{model}-served")).encode())

    def take_step(self, model: str) -> Step:
        """What is done to who asks a model."""
        return self.provider.step(model)

    def _read(self, body: dict[str, Any]) -> tuple[str, str, str]:
        """The format, model and question of a request."""
        if self.path.endswith("/responses"):
            return "responses", body["model"], body["input"].partition("\n")[0]
        if self.path.endswith("/messages"):
            return "messages", body["model"], body["messages"][0]["content"].partition("\n")[0]
        if found := re.search(r"/models/(.+):generateContent$", self.path):
            text = body["contents"][0]["parts"][0]["text"]
            return "gemini", found.group(1), text.partition("\n")[0]
        return "chat", body["model"], body["messages"][1]["content"].partition("\n")[0]

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _send_raw(self, step: Step) -> None:
        self.close_connection = True
        self.wfile.write(step["raw"])
        until = time.monotonic() + step.get("seconds", 30)
        while "endless" in step and time.monotonic() < until:
            self.wfile.write(step["endless"])
            if self.provider.gate("end").wait(0.01):
                return
