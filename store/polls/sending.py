"""The one place that sends: connections, deadlines, size limits, pace and patient retries.

The environment's proxies and ``~/.netrc`` are ignored (``requests`` would replace our key with
netrc's) and redirects are not followed (it would hand our key to another host).
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import requests
from msgspec import Struct
from urllib3.exceptions import HTTPError

from store.polls import hints, secrets
from store.polls.providers import Reply, Request, Response
from store.records import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.polls.spending import Meter
    from store.records import FailureKind

NOT_SENT = frozenset(
    {"ConnectTimeoutError", "NewConnectionError", "NameResolutionError", "SSLError", "ProxyError"}
)
"""Causes of a network error that come before the request was sent."""


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

    ``latency_ms`` is that of the last of ``attempts``; ``rest`` the seconds for which the
    assistant should not be asked at all.
    """

    reply: Reply
    latency_ms: int
    attempts: int
    rest: float | None = None


class Unsent(Struct, frozen=True):
    """Nothing was sent; ``why`` says which cap forbade it, if one did."""

    why: str | None = None


class Pace:
    """Spaces requests out evenly over time, whichever thread sends them."""

    def __init__(self, rpm: int, clock: Callable[[], float]) -> None:
        self._gap = 60 / rpm
        self._clock = clock
        self._next = -math.inf
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> bool:
        """Wait for the next free moment; ``False`` when ``stop`` came first."""
        while not stop.is_set():
            with self._lock:
                now = self._clock()
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
            self._next = max(self._next, self._clock() + seconds)


class Sender:
    """Sends one assistant's requests; a set ``stop`` ends every wait.

    At most ``rpm`` requests leave in a minute and ``concurrency`` are on their way at once,
    however many threads send. A request that is on its way when ``stop`` is set ends as
    ``interrupted``. ``secret`` is taken out of whatever comes back.
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop
        self._secret = secret
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}
        self._limits = limits
        self._random = random or Random()
        self._clock = clock
        self._pace = Pace(rpm, clock)
        self._slots = threading.BoundedSemaphore(concurrency)
        self._idle: deque[requests.Session] = deque()
        self._resting = False

    def send(
        self, request: Request, read: Callable[[Response], Reply], meter: Meter
    ) -> Sent | Unsent:
        """Send a request, again where that may help; raises nothing."""
        deadline = math.inf
        sent: Sent | None = None
        timeouts = 0
        attempt = 0
        while True:
            attempt += 1
            with self._slots, meter as why:
                if why:
                    return sent or Unsent(why)
                if not self._pace.wait(self._stop):
                    return self._stopped(sent)
                if self._resting or self._clock() > deadline:
                    return sent or Unsent()
                start = self._clock()
                deadline = min(deadline, start + self._limits.total)
                came = self._once(request, deadline)
                took = round(1000 * (self._clock() - start))
                reply = read(came) if isinstance(came, Response) else Reply(outcome=came.failure)
                verdict = self._verdict(came, reply, attempt)
                self._resting = self._resting or verdict.rest is not None
                if verdict.held:
                    self._pace.hold(verdict.wait or 0)
                meter.settle(reply.tokens, free=_was_free(came))
            sent = Sent(reply, took, attempt, verdict.rest)
            timeouts += _kind(reply) == "timeout"
            if verdict.wait is None or attempt == self._limits.attempts or timeouts > 1:
                return sent
            if self._clock() + verdict.wait > deadline:
                return sent
            if not verdict.held and self._stop.wait(verdict.wait):
                return self._stopped(sent)

    def _stopped(self, sent: Sent | None) -> Sent | Unsent:
        """The end of a poll that was stopped while it waited."""
        if sent is None:
            return Unsent()
        failure = Failure("interrupted", "The poll was stopped while it waited to ask again.")
        return Sent(Reply(outcome=failure), sent.latency_ms, sent.attempts)

    def _verdict(self, came: Response | _Lost, reply: Reply, attempt: int) -> _Verdict:
        """What follows from an attempt: whether asking again may help, and how long nobody should.

        A rate limit or a provider's own hint holds the whole line, other faults only this poll.
        """
        backoff = self._random.uniform(0, 2**attempt)
        if isinstance(came, _Lost):
            again = came.failure.kind in ("network", "timeout")
            return _Verdict(backoff if again else None)
        if reply.lasting:
            return _Verdict(rest=self._limits.rest)
        said = came.headers.get("x-should-retry")
        again = said == "true" or (said != "false" and reply.passing)
        if not (again and isinstance(reply.outcome, Failure)):
            return _Verdict()
        limited = reply.outcome.kind == "rate_limited"
        asked = _hint(came, reply, limited=limited)
        if asked is None:
            return _Verdict(backoff, held=limited)
        if asked > self._limits.longest_wait:
            return _Verdict(rest=asked)
        return _Verdict(asked + self._random.uniform(0, 1), held=True)

    def _once(self, request: Request, deadline: float) -> Response | _Lost:
        """One attempt, on a thread of its own that is left behind when it takes too long."""
        future: Future[Response | _Lost] = Future()
        threading.Thread(
            target=self._deliver, args=(future, request, deadline), name="request", daemon=True
        ).start()
        while True:
            try:
                return future.result(_LOOK)
            except NotYet:
                if self._stop.is_set():
                    return _lost("interrupted", "The poll was stopped while it was on its way.")
                if self._clock() > deadline + _LOOK:
                    return self._late()

    def _deliver(self, future: Future[Response | _Lost], request: Request, deadline: float) -> None:
        try:
            future.set_result(self._post(request, deadline))
        finally:
            if not future.done():
                future.set_exception(RuntimeError("sending failed; see the log"))

    def _post(self, request: Request, deadline: float) -> Response | _Lost:
        try:
            session = self._idle.pop()
        except IndexError:
            session = self._session()
        try:
            came = self._exchange(session, request, deadline)
        except requests.Timeout as error:
            free = isinstance(error, requests.ConnectTimeout)
            return _lost("timeout", "The provider did not answer in time.", free=free)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            causes = _causes(error)
            sentence = f"The provider could not be reached ({causes[-1]})."
            return _lost("network", sentence, free=not NOT_SENT.isdisjoint(causes))
        self._idle.append(session)
        return came

    def _exchange(
        self, session: requests.Session, request: Request, deadline: float
    ) -> Response | _Lost:
        with session.post(
            request.url,
            json=request.body,
            headers=dict(request.headers),
            timeout=(self._limits.connect, self._limits.read),
            allow_redirects=False,
            stream=True,
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(1 << 16):
                body += chunk
                if len(body) > self._limits.size:
                    return _lost("http", f"The reply is larger than {self._limits.size:,} bytes.")
                if self._clock() > deadline:
                    return self._late()
            headers = secrets.headers_without(self._secret, response.headers)
            clean = secrets.body_without(self._secret, bytes(body))
            return Response(response.status_code, headers, clean)

    def _late(self) -> _Lost:
        return _lost("timeout", f"The poll took over {self._limits.total:g} seconds.")

    def _session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.proxies.update(self._proxies)
        return session


_LOOK = 0.1  # seconds between looks at the stop event while a request is on its way


class _Lost(Struct, frozen=True):
    """An attempt that brought no response, and whether it surely cost nothing."""

    failure: Failure
    free: bool


class _Verdict(Struct, frozen=True):
    """What follows from an attempt; nothing, when asking again is of no use.

    ``wait`` is the seconds until the next one, ``held`` whether nobody else may send until then,
    ``rest`` the seconds for which the assistant should not be asked at all.
    """

    wait: float | None = None
    held: bool = False
    rest: float | None = None


def _hint(response: Response, reply: Reply, *, limited: bool) -> float | None:
    """The wait a provider asks for; used-up limits count where they were the reason."""
    now = datetime.now(UTC)
    asked = hints.retry_after(response.headers, now)
    asked = reply.wait if asked is None else asked
    return hints.limit_reset(response.headers, now) if asked is None and limited else asked


def _lost(kind: FailureKind, sentence: str, *, free: bool = False) -> _Lost:
    return _Lost(Failure(kind, sentence), free)


def _was_free(came: Response | _Lost) -> bool:
    """Whether an attempt surely cost nothing, going by how it ended."""
    return came.free if isinstance(came, _Lost) else came.status >= 400  # noqa: PLR2004


def _kind(reply: Reply) -> FailureKind | None:
    return reply.outcome.kind if isinstance(reply.outcome, Failure) else None


def _causes(error: BaseException) -> list[str]:
    """The kinds of a network error, the innermost last, without the address in their texts."""
    inner = (getattr(error, "reason", None), *error.args)
    nested = next((one for one in inner if isinstance(one, Exception)), None)
    return [type(error).__name__, *(_causes(nested) if nested else [])]
