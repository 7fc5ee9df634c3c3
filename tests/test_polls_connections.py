"""Connections that another thread can cut, over real sockets."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
import requests
from processes import until
from raw_provider import RawProvider, raw_provider

from store.polls.connections import Connection
from store.polls.providers import Request, chat
from store.polls.sending import Limits, Sender, Sent
from store.polls.spending import Budget, Meter, RunAccount
from store.records import Assistant, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHO = Assistant(name="A", api="chat", usd_per_million_input=1, usd_per_million_output=1)


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    """A provider that sends what it is told to."""
    with raw_provider() as server:
        yield server


def sent_to(
    url: str, *, stop: threading.Event | None = None, proxy: str | None = None, total: float = 0.2
) -> tuple[Sent, RunAccount]:
    """What one attempt comes to, and the account that paid for it."""
    limits = Limits(connect=1, read=120, total=total, attempts=1)
    account = RunAccount(1)
    by = Sender(stop or threading.Event(), rpm=1_000_000, concurrency=1, limits=limits, proxy=proxy)
    meter = Meter(WHO, {}, Budget([account]))
    sent = by.send(Request(f"{url}/v1/chat/completions", {}, {}), chat.read_reply, meter)
    assert isinstance(sent, Sent)
    return sent, account


def kind(sent: Sent) -> str:
    """The kind of a failure."""
    assert isinstance(sent.reply.outcome, Failure)
    return sent.reply.outcome.kind


def no_thread_is_left() -> bool:
    """Whether every thread of a request has ended."""
    return not any(thread.name == "request" for thread in threading.enumerate())


DRIPS = {
    "status line": (b"HTTP/1.1 2", b"0"),
    "headers": (HEAD, b"x"),
    "many headers": (HEAD, b"X-A: b\r\n"),
    "body": (HEAD + b"\r\n", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a chunk's size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "100 Continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103 Early Hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
    "compressed": (HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\0"),
}


@pytest.mark.parametrize("what", DRIPS)
def test_what_drips_ends_with_its_poll(provider: RawProvider, what: str) -> None:
    """Whatever a provider drips, the poll ends at its deadline and its thread with it."""
    provider.reply, provider.endless = DRIPS[what]
    sent, account = sent_to(provider.url)
    assert kind(sent) in ("timeout", "network", "http")
    assert account.spent > 0, "it may have been paid"
    until(no_thread_is_left)


def test_silence_ends_with_its_poll(provider: RawProvider) -> None:
    """A thread that waits for the first byte is ended too, long before its read time-out."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        sent, _ = sent_to(f"http://127.0.0.1:{mute.getsockname()[1]}")
        assert kind(sent) == "timeout"
        until(no_thread_is_left)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_handshake_that_never_ends_was_free(scheme: str) -> None:
    """A mute TLS server, and a proxy that builds no tunnel, hold no thread; nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        if scheme == "https":
            sent, account = sent_to(f"https://{address}", total=60)
        else:
            sent, account = sent_to("https://x.example", proxy=f"http://{address}", total=60)
        assert kind(sent) == "timeout"
        assert account.spent == 0
        until(no_thread_is_left)


def test_a_stop_ends_the_thread(provider: RawProvider) -> None:
    """A request given up because of a stop leaves no thread behind."""
    provider.reply, provider.endless = DRIPS["body"]
    stop = threading.Event()

    def stop_when_asked() -> None:
        until(lambda: provider.asked)
        stop.set()

    threading.Thread(target=stop_when_asked, daemon=True).start()
    sent, account = sent_to(provider.url, stop=stop, total=60)
    assert kind(sent) == "interrupted"
    assert account.spent > 0
    until(no_thread_is_left)


def test_tls_that_fails_before_the_question_is_free() -> None:
    """Where no connection could be made, nothing was asked."""
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def greet() -> None:
            line, _ = plain.accept()
            with line:
                line.sendall(b"220 no TLS spoken here\r\n")

        threading.Thread(target=greet, daemon=True).start()
        sent, account = sent_to(f"https://127.0.0.1:{plain.getsockname()[1]}", total=60)
    assert kind(sent) == "network"
    assert account.spent == 0


def test_tls_that_fails_in_the_answer_may_have_been_paid(
    provider: RawProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same fault while a 200 is read leaves the reservation taken."""
    provider.reply = HEAD + b"\r\n{}"

    def fail(*_: object) -> None:
        raise requests.exceptions.SSLError("decryption failed or bad record mac")

    monkeypatch.setattr(requests.Response, "iter_content", fail)
    sent, account = sent_to(provider.url, total=60)
    assert kind(sent) == "network"
    assert account.spent > 0


def test_a_connection_that_was_cut_stays_cut(provider: RawProvider) -> None:
    """One that is made after the cut is shut down at once."""
    provider.endless = b" "
    connection = Connection()
    connection.cut()
    with pytest.raises(requests.ConnectionError):
        connection.session.post(provider.url, timeout=120)
    connection.close()
    connection.close()
