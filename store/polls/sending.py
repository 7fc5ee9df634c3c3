"""The one place that sends: deadlines, size limits, pace, patient retries, and the clock's check.

The environment's proxies and ``~/.netrc`` are ignored (``requests`` would replace our key with
netrc's) and redirects are not followed (it would hand our key to another host).
"""

from __future__ import annotations

import math
import queue
import ssl
import threading
import time
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

import requests
from msgspec import Struct
from msgspec.structs import replace
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from store.polls import rate_limit_headers, secrets
from store.polls.clocks import Clock
from store.polls.prices import check_cost, micros, price_of
from store.polls.providers import Reply, Request, Response
from store.polls.spending import Charge
from store.records import Assistant, Failure, FailureKind


class Limits(Struct, frozen=True):
    """How patient sending is. Times in seconds, ``size`` in bytes."""

    connect: float = 10
    read: float = 180
    total: float = 600
    size: int = 4 << 20
    attempts: int = 4
    longest_wait: float = 120
    pause: float = 6 * 3600


FLEX_LIMITS = Limits(read=900, total=2700)
"""OpenAI advises to wait 15 minutes for an answer in this tier, Google says 1 to 15."""


class Sent(Struct, frozen=True):
    """What sending came to.

    ``latency_ms`` is that of the last of ``attempts``, ``pause`` the seconds for which the
    assistant should not be asked, ``deadline`` the end by the sender's clock, ``at`` the provider's
    time where ours does not fit.
    """

    reply: Reply
    latency_ms: int
    attempts: int
    pause: float | None = None
    deadline: float = math.inf
    at: datetime | None = None


class Unsent(Struct, frozen=True):
    """Nothing was sent; a ``reason`` forbids it for all the assistant's questions."""

    reason: str | None = None


class Lost(Struct, frozen=True):
    """An attempt that brought no response: why, and whether it surely cost nothing."""

    kind: FailureKind
    sentence: str
    is_free: bool = False


class RateLimiter:
    """Spaces requests out evenly over time, whichever thread sends them."""

    def __init__(self, rpm: int, elapsed: Callable[[], float]) -> None:
        self._gap = 60 / rpm
        self._elapsed = elapsed
        self._next = -math.inf
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> bool:
        """Wait for the next free moment; return ``False`` when ``stop`` came first."""
        while not stop.is_set():
            with self._lock:
                now = self._elapsed()
                early = self._next - now
                if early <= 0:
                    on_time = early > -self._gap
                    self._next = (self._next if on_time else now) + self._gap
                    return True
            stop.wait(early)
        return False

    def hold(self, seconds: float) -> None:
        """Let nobody send for so long."""
        with self._lock:
            self._next = max(self._next, self._elapsed() + seconds)


class Sender:
    """Sends one assistant's requests, at most ``rpm`` in a minute; a set ``stop`` ends every wait.

    ``secret`` is taken out of what comes back. ``elapsed`` are the seconds of a clock that nobody
    sets.
    """

    def __init__(  # noqa: PLR0913 - its edges, and what tests put in their place
        self,
        assistant: Assistant,
        stop: threading.Event,
        *,
        secret: str | None = None,
        proxy: str | None = None,
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        random: Random | None = None,
        clock: Clock | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.assistant = assistant
        self.secret = secret
        self.limits = limits
        self.elapsed = elapsed
        self._stop = stop
        self._proxy = proxy
        self._random = random or Random()
        self._clock = clock or Clock()
        self._pace = RateLimiter(assistant.rpm, elapsed)
        self._is_paused = False

    def send(
        self,
        request: Request,
        read: Callable[[Response], Reply],
        charge: Charge,
        deadline: float = math.inf,
    ) -> Sent | Unsent:
        """Send a request, again where it may help, until ``deadline``.

        ``charge`` has its first reserve, and is settled.
        """
        sent: Sent | None = None
        timeouts = 0
        for attempt in range(1, self.limits.attempts + 1):
            if attempt > 1 and not charge.reserve():
                return sent or Unsent()
            barred = None if self._pace.wait(self._stop) else Unsent()
            if barred := barred or self._barred(deadline):
                charge.settle(0)
                return self._stopped(sent) if self._stop.is_set() else sent or barred
            deadline = min(deadline, self.elapsed() + self.limits.total)
            sent, wait = self._attempt(request, read, charge, attempt, deadline)
            timeouts += sent.reply.failure == "timeout"
            is_last = attempt == self.limits.attempts or timeouts > 1
            if wait is None or is_last or self.elapsed() + wait > deadline:
                return sent
            if self._stop.wait(wait):
                return self._stopped(sent)
        return sent or Unsent()

    def call(self, request: Request) -> Response | Lost:
        """Send a request that asks no question, once; the clock compares its ``Date``.

        It runs on a daemon thread, which is left to itself when it takes too long.
        """
        deadline = self.elapsed() + self.limits.total
        if not self._pace.wait(self._stop):
            return Lost("interrupted", "It was stopped before it was sent.", is_free=True)
        if barred := self._barred(deadline):
            return Lost("interrupted", barred.reason or "It was not sent.", is_free=True)
        began = self._clock.now()
        box: queue.SimpleQueue[Response | Lost] = queue.SimpleQueue()

        def exchange() -> None:
            box.put(self._exchange(request, deadline))

        threading.Thread(target=exchange, name="request", daemon=True).start()
        while box.empty():
            if self._stop.wait(0.05):
                return Lost("interrupted", "It was stopped on its way.")
            if self.elapsed() > deadline + 1:
                return self._late()
        response = box.get()
        if isinstance(response, Response) and (date := rate_limit_headers.date(response.headers)):
            self._clock.compare(date, began)
        return response

    def _barred(self, deadline: float) -> Unsent | None:
        """Return why nothing may be sent any more, if so."""
        if self._is_paused or self.elapsed() > deadline:
            return Unsent()
        fault = self._clock.fault()
        return Unsent(fault) if fault else None

    def _attempt(
        self,
        request: Request,
        read: Callable[[Response], Reply],
        charge: Charge,
        attempt: int,
        deadline: float,
    ) -> tuple[Sent, float | None]:
        """Send once and charge it; return also the wait to the next attempt."""
        began, start = self._clock.now(), self.elapsed()
        charge.is_sent = True
        response = self._exchange(request, deadline)
        took = round(1000 * (self.elapsed() - start))
        date = at = None
        if isinstance(response, Response):
            reply, date = read(response), rate_limit_headers.date(response.headers)
            is_free = response.status >= 400  # noqa: PLR2004 - HTTP's own boundary
        else:
            reply = Reply(outcome=Failure(response.kind, response.sentence))
            is_free = response.is_free
        misfit = self._clock.compare(date, began) if date else None
        if misfit:
            reply, at = replace(reply, outcome=Failure("http", misfit)), date
        reply = check_cost(self.assistant, charge.amount, reply)
        cost = 0 if is_free else None
        if reply.tokens:
            cost = micros(price_of(self.assistant, reply) or 0)
        charge.settle(cost)
        wait, pause = (None, None) if misfit else self._verdict(response, reply, attempt)
        self._is_paused = self._is_paused or pause is not None
        return Sent(reply, took, attempt, pause, deadline, at), wait

    def _stopped(self, sent: Sent | None) -> Sent | Unsent:
        """Return the end of a poll that was stopped while it waited."""
        if sent is None:
            return Unsent()
        failure = Failure("interrupted", "The poll was stopped while it waited to ask again.")
        return Sent(replace(sent.reply, outcome=failure), sent.latency_ms, sent.attempts)

    def _verdict(
        self, response: Response | Lost, reply: Reply, attempt: int
    ) -> tuple[float | None, float | None]:
        """Return the seconds until another attempt, if one may help, or those of a pause.

        Rate limits and hints hold all the assistant's requests.
        """
        backoff = self._random.uniform(0, 2**attempt)
        if isinstance(response, Lost):
            return (backoff if response.kind in ("network", "timeout") else None), None
        if reply.lasting:
            return None, self.limits.pause
        advice = response.headers.get("x-should-retry")
        again = advice == "true" or (advice != "false" and reply.passing)
        if not (again and reply.failure):
            return None, None
        limited = reply.failure == "rate_limited"
        hint = _hint(response, reply, self._clock.now(), limited=limited)
        if hint is not None and hint > self.limits.longest_wait:
            return None, hint
        wait = backoff if hint is None else hint + self._random.uniform(0, 1)
        if limited or hint is not None:
            self._pace.hold(wait)
        return wait, None

    def _exchange(self, request: Request, deadline: float) -> Response | Lost:
        """Send once, on a connection of its own.

        On a shared one, whatever a provider sends late or twice would be taken for the answer to
        the next question.
        """
        with requests.Session() as session:
            session.trust_env = False
            session.proxies.update(
                {"http": self._proxy, "https": self._proxy} if self._proxy else {}
            )
            try:
                return self._response(session, request, deadline)
            except requests.Timeout as error:
                is_free = isinstance(error, requests.ConnectTimeout)
                return Lost("timeout", "The provider did not answer in time.", is_free)
            except requests.exceptions.ContentDecodingError:
                sentence = "The provider's answer is not what its Content-Encoding says it is."
                return Lost("http", sentence)
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                cause = _innermost(error)
                sentence = f"The provider could not be reached ({type(cause).__name__})."
                return Lost("network", sentence, isinstance(cause, UNSENT))

    def _response(
        self, session: requests.Session, request: Request, deadline: float
    ) -> Response | Lost:
        content: dict[str, Any] = {}
        if request.file is not None:
            # OpenAI wants the extension, whatever the type says
            file = ("batch.jsonl", request.file, "application/jsonl")
            content = {"data": request.body, "files": {"file": file}}
        elif request.method == "POST":
            content = {"json": request.body}
        with session.request(
            request.method,
            request.url,
            **content,
            headers=dict(request.headers),
            timeout=(self.limits.connect, self.limits.read),
            allow_redirects=False,
            stream=True,
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(1 << 16):
                body += chunk
                if len(body) > self.limits.size:
                    return Lost("http", f"The reply is larger than {self.limits.size:,} bytes.")
                if self.elapsed() > deadline:
                    return self._late()
            headers = {
                name.lower(): secrets.without(self.secret, value)
                for name, value in response.headers.items()
            }
            clean = secrets.body_without(self.secret, bytes(body))
            return Response(response.status_code, headers, clean)

    def _late(self) -> Lost:
        return Lost("timeout", f"The poll took over {self.limits.total:g} seconds.")


UNSENT = (NewConnectionError, ConnectTimeoutError, ssl.SSLCertVerificationError)
"""Causes that come before anything is sent, TLS and proxy included."""


def _hint(response: Response, reply: Reply, now: datetime, *, limited: bool) -> float | None:
    """Return the wait a provider asks for; used-up limits count where they were the reason."""
    hint = rate_limit_headers.retry_after(response.headers, now)
    if hint is None and reply.wait is not None:
        hint = rate_limit_headers.believed(reply.wait)
    if hint is None and limited:
        hint = rate_limit_headers.limit_reset(response.headers, now)
    return hint


def _innermost(error: BaseException) -> BaseException:
    """Return the innermost cause of a network error, whose text may hold the address."""
    for _ in range(10):
        inner = (getattr(error, "reason", None), *error.args)
        nested = next((one for one in inner if isinstance(one, Exception)), None)
        if nested is None:
            break
        error = nested
    return error
