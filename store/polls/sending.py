"""The one place that sends: deadlines, size limits, pace, patient retries, and the clock's check.

The environment's proxies and ``~/.netrc`` are ignored (``requests`` would replace our key with
netrc's) and redirects are not followed (it would hand our key to another host).
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import requests
from msgspec import Struct
from urllib3.exceptions import HTTPError

from store.polls import rate_limit_headers, secrets
from store.polls.clocks import Clock
from store.polls.connections import Connection
from store.polls.providers import Reply, Request, Response
from store.records import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from store.polls.spending import Meter
    from store.records import FailureKind


class Limits(Struct, frozen=True):
    """How patient sending is. Times in seconds, ``size`` in bytes."""

    connect: float = 10
    read: float = 180
    total: float = 600
    size: int = 4 << 20
    attempts: int = 4
    longest_wait: float = 120
    rest: float = 6 * 3600


class Sent(Struct, frozen=True):
    """What sending came to.

    ``latency_ms`` is that of the last of ``attempts``, ``rest`` the seconds without the assistant,
    ``deadline`` the end by the sender's clock, ``at`` the provider's time where ours does not fit.
    """

    reply: Reply
    latency_ms: int
    attempts: int
    rest: float | None = None
    deadline: float = math.inf
    at: datetime | None = None


class Skipped(Struct, frozen=True):
    """Nothing was sent; ``why`` says what forbids it for all the assistant's polls, if it does."""

    why: str | None = None


class RateLimiter:
    """Spaces requests out evenly over time, whichever thread sends them."""

    def __init__(self, rpm: int, elapsed: Callable[[], float]) -> None:
        self._gap = 60 / rpm
        self._elapsed = elapsed
        self._next = -math.inf
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> bool:
        """Wait for the next free moment; ``False`` when ``stop`` came first."""
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
    """Sends one assistant's requests; a set ``stop`` ends every wait.

    At most ``rpm`` requests leave in a minute and ``concurrency`` are on their way at once, however
    many threads send; those on their way when ``stop`` is set end as ``interrupted``. ``secret`` is
    taken out of what comes back. ``elapsed`` are the seconds of a clock that nobody sets.
    """

    def __init__(  # noqa: PLR0913 - its edges, and what tests put in their place
        self,
        stop: threading.Event,
        *,
        rpm: int,
        concurrency: int,
        secret: str | None = None,
        proxy: str | None = None,
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        random: Random | None = None,
        clock: Clock | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop
        self.secret = secret
        self._proxy = proxy
        self._limits = limits
        self._random = random or Random()
        self._clock = clock or Clock()
        self._elapsed = elapsed
        self._pace = RateLimiter(rpm, elapsed)
        self._slots = threading.BoundedSemaphore(concurrency)
        self._resting = False

    def send(
        self,
        request: Request,
        read: Callable[[Response], Reply],
        meter: Meter,
        deadline: float = math.inf,
    ) -> Sent | Skipped:
        """Send a request, again where it may help, until ``deadline``; ``meter`` is settled."""
        sent: Sent | None = None
        timeouts = 0
        attempt = 0
        while True:
            attempt += 1
            with self._slots, meter as why:
                if why:
                    return sent or Skipped(why)
                if not self._pace.wait(self._stop):
                    return self._stopped(sent)
                if barred := self._barred(deadline):
                    return sent or barred
                deadline = min(deadline, self._elapsed() + self._limits.total)
                sent, verdict = self._attempt(request, read, meter, attempt, deadline)
            timeouts += sent.reply.failure == "timeout"
            if verdict.wait is None or attempt == self._limits.attempts or timeouts > 1:
                return sent
            if self._elapsed() + verdict.wait > deadline:
                return sent
            if not verdict.held and self._stop.wait(verdict.wait):
                return self._stopped(sent)

    def call(self, request: Request) -> Response | Lost:
        """One attempt at a request that asks no question; the clock compares its ``Date``."""
        deadline = self._elapsed() + self._limits.total
        with self._slots:
            if not self._pace.wait(self._stop):
                return Lost("interrupted", "It was stopped before it was sent.", free=True)
            if barred := self._barred(deadline):
                return Lost("interrupted", barred.why or "It was not sent.", free=True)
            began = self._clock.now()
            came = self._once(request, deadline)
        if isinstance(came, Response) and (date := rate_limit_headers.date(came.headers)):
            self._clock.compare(date, began)
        return came

    def _barred(self, deadline: float) -> Skipped | None:
        """Why nothing may be sent any more, if so."""
        if self._resting or self._elapsed() > deadline:
            return Skipped()
        fault = self._clock.fault()
        return Skipped(fault) if fault else None

    def _attempt(
        self,
        request: Request,
        read: Callable[[Response], Reply],
        meter: Meter,
        attempt: int,
        deadline: float,
    ) -> tuple[Sent, _Verdict]:
        began, start = self._clock.now(), self._elapsed()
        came = self._once(request, deadline)
        took = round(1000 * (self._elapsed() - start))
        if isinstance(came, Response):
            reply, date = read(came), rate_limit_headers.date(came.headers)
            is_free = came.status >= 400  # noqa: PLR2004 - HTTP's own boundary
        else:
            reply, date = Reply(outcome=Failure(came.kind, came.sentence)), None
            is_free = came.free
        why = self._clock.compare(date, began) if date else None
        if why:
            reply = msgspec.structs.replace(reply, outcome=Failure("http", why))
        reply = meter.checked(reply)
        meter.settle(reply.tokens, free=is_free)
        verdict = _Verdict() if why else self._verdict(came, reply, attempt)
        self._resting = self._resting or verdict.rest is not None
        if verdict.held:
            self._pace.hold(verdict.wait or 0)
        at = date if why else None
        return Sent(reply, took, attempt, verdict.rest, deadline, at), verdict

    def _stopped(self, sent: Sent | None) -> Sent | Skipped:
        """The end of a poll that was stopped while it waited."""
        if sent is None:
            return Skipped()
        failure = Failure("interrupted", "The poll was stopped while it waited to ask again.")
        reply = msgspec.structs.replace(sent.reply, outcome=failure)
        return Sent(reply, sent.latency_ms, sent.attempts)

    def _verdict(self, came: Response | Lost, reply: Reply, attempt: int) -> _Verdict:
        """Whether asking again may help; rate limits and hints hold the whole line."""
        backoff = self._random.uniform(0, 2**attempt)
        if isinstance(came, Lost):
            again = came.kind in ("network", "timeout")
            return _Verdict(backoff if again else None)
        if reply.lasting:
            return _Verdict(rest=self._limits.rest)
        said = came.headers.get("x-should-retry")
        again = said == "true" or (said != "false" and reply.passing)
        if not (again and reply.failure):
            return _Verdict()
        limited = reply.failure == "rate_limited"
        asked = _hint(came, reply, self._clock.now(), limited=limited)
        if asked is None:
            return _Verdict(backoff, held=limited)
        if asked > self._limits.longest_wait:
            return _Verdict(rest=asked)
        return _Verdict(asked + self._random.uniform(0, 1), held=True)

    def _once(self, request: Request, deadline: float) -> Response | Lost:
        """One attempt, on a thread and a connection of its own, cut when it takes too long.

        On a shared one, whatever a provider sends late or twice would be taken for the answer to
        the next question.
        """
        connection = Connection(self._proxy)
        future: Future[Response | Lost] = Future()

        def deliver() -> None:
            try:
                future.set_result(self._post(connection, request, deadline))
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is wanted
                future.set_exception(error)
            finally:
                connection.close()

        threading.Thread(target=deliver, name="request", daemon=True).start()
        while True:
            try:
                return future.result(_LOOK)
            except NotYet:
                if self._stop.is_set():
                    connection.cut()
                    return Lost("interrupted", "The poll was stopped while it was on its way.")
                if self._elapsed() > deadline + _LOOK:
                    connection.cut()
                    return self._late()

    def _post(self, connection: Connection, request: Request, deadline: float) -> Response | Lost:
        connection.sent = False
        try:
            return self._exchange(connection.session, request, deadline)
        except requests.Timeout:
            sentence = "The provider did not answer in time."
            return Lost("timeout", sentence, free=not connection.sent)
        except requests.exceptions.ContentDecodingError:
            sentence = "The provider's answer is not what its Content-Encoding says it is."
            return Lost("http", sentence, free=False)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            sentence = f"The provider could not be reached ({_innermost(error)})."
            return Lost("network", sentence, free=not connection.sent)

    def _exchange(
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
            timeout=(self._limits.connect, self._limits.read),
            allow_redirects=False,
            stream=True,
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(1 << 16):
                body += chunk
                if len(body) > self._limits.size:
                    return Lost("http", f"The reply is larger than {self._limits.size:,} bytes.")
                if self._elapsed() > deadline:
                    return self._late()
            headers = {
                name.lower(): secrets.without(self.secret, value)
                for name, value in response.headers.items()
            }
            clean = secrets.body_without(self.secret, bytes(body))
            return Response(response.status_code, headers, clean)

    def _late(self) -> Lost:
        return Lost("timeout", f"The poll took over {self._limits.total:g} seconds.")


_LOOK = 0.1  # seconds between looks at the stop event while a request is on its way


class Lost(Struct, frozen=True):
    """An attempt that brought no response: why, and whether it surely cost nothing."""

    kind: FailureKind
    sentence: str
    free: bool = False


class _Verdict(Struct, frozen=True):
    """What follows from an attempt; nothing, when asking again is of no use.

    ``wait`` is the seconds until the next one, ``held`` whether nobody else may send until then,
    ``rest`` the seconds for which the assistant should not be asked at all.
    """

    wait: float | None = None
    held: bool = False
    rest: float | None = None


def _hint(response: Response, reply: Reply, now: datetime, *, limited: bool) -> float | None:
    """The wait a provider asks for; used-up limits count where they were the reason."""
    asked = rate_limit_headers.retry_after(response.headers, now)
    if asked is None and reply.wait is not None:
        asked = rate_limit_headers.believed(reply.wait)
    if asked is None and limited:
        asked = rate_limit_headers.limit_reset(response.headers, now)
    return asked


def _innermost(error: BaseException) -> str:
    """The kind of a network error's innermost cause, without the address in its text."""
    for _ in range(10):
        inner = (getattr(error, "reason", None), *error.args)
        nested = next((one for one in inner if isinstance(one, Exception)), None)
        if nested is None:
            break
        error = nested
    return type(error).__name__
