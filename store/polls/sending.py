"""The one place that sends to providers.

It keeps deadlines, size limits and the pace, retries patiently, and has replies check the clock.

The environment's proxies and ``~/.netrc`` are ignored (``requests`` would replace our key with
netrc's) and redirects are not followed (it would hand our key to another host).
"""

import math
import queue
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from random import Random
from typing import Any

import requests
from msgspec import Struct
from msgspec.structs import replace
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from store.polls import clocks, secrets
from store.polls.clocks import Clock
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import Reply, Request, Response, no_answer
from store.polls.spending import Charge, check_cost, micros, price_of
from store.rankings.poll_states import STATED
from store.records import Assistant, Failure


class Limits(Struct, frozen=True):
    """The limits of one request, and how long an assistant is paused after one that no retry mends.

    Times are in seconds, ``size`` is in bytes.
    """

    connect: float = 10
    read: float = 180
    total: float = 600
    size: int = 4 << 20
    attempts: int = 4
    longest_wait: float = 120
    pause: float = 6 * 3600
    """Seconds that an assistant rests after a bad key, spent money, a model that is gone, a far too
    dear answer, or ``session.MOST_FAILURES`` in a row; ``due.FIRST_RETRY`` is one pair's."""


FLEX_LIMITS = Limits(read=900, total=2700)
"""OpenAI advises to wait 15 minutes for an answer in this tier, Google says 1 to 15."""


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
    """Sends one assistant's requests, at most ``rpm`` in a minute.

    Setting ``stop`` ends every wait. ``secret`` is taken out of what comes back. ``elapsed``
    returns monotonic seconds.
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
        pace: RateLimiter | None = None,
    ) -> None:
        self.assistant = assistant
        self.secret = secret
        self.limits = limits
        self.elapsed = elapsed
        self._stop = stop
        self._proxy = proxy
        self._random = random or Random()
        self._clock = clock or Clock()
        self._pace = pace or RateLimiter(assistant.rpm, elapsed)
        self._is_paused = False

    def rest(self) -> None:
        """Send nothing more, not even the retries of questions that are on their way."""
        self._is_paused = True

    def send(self, request: Request, charge: Charge) -> Reply | None:
        """Send a request, and retry where that may help; ``None`` if it was not sent at all.

        The caller has reserved the first attempt of ``charge``. Each attempt is settled here, since
        one that failed may be billed.
        """
        reply: Reply | None = None
        timeouts = 0
        for attempt in range(1, self.limits.attempts + 1):
            if attempt > 1 and not charge.reserve_again():
                break
            is_its_turn = self._pace.wait(self._stop)
            sent_at = self.elapsed() if charge.sent_at is None else charge.sent_at
            deadline = sent_at + self.limits.total
            if not is_its_turn or self._is_barred(deadline):
                charge.settle(0)
                return self._stopped(reply) if self._stop.is_set() else reply
            charge.sent_at = sent_at
            reply, wait = self._attempt(request, charge, attempt, deadline)
            timeouts += reply.failure == "timeout"
            is_last = attempt == self.limits.attempts or timeouts > 1
            if wait is None or is_last or self.elapsed() + wait > deadline:
                break
            if self._stop.wait(wait):
                return self._stopped(reply)
        return reply

    def call(self, request: Request) -> Response:
        """Send a request that asks no question, once; the clock compares its ``Date``.

        It runs on a daemon thread, which is left to itself when it takes too long.
        """
        deadline = self.elapsed() + self.limits.total
        if not self._pace.wait(self._stop) or self._is_barred(deadline):
            why = self._clock.fault() or "It was stopped before it was sent."
            return no_answer("interrupted", why, is_free=True)
        began = self._clock.now()
        box: queue.SimpleQueue[Response] = queue.SimpleQueue()

        def exchange() -> None:
            box.put(self._exchange(request, deadline))

        threading.Thread(target=exchange, name="request", daemon=True).start()
        while box.empty():
            if self._stop.wait(0.05):
                return no_answer("interrupted", "It was stopped on its way.")
            if self.elapsed() > deadline + 1:
                return self._late()
        response = box.get()
        self._clock.compare(clocks.date(response.headers), began, self.assistant.name)
        return response

    def _is_barred(self, deadline: float) -> bool:
        """Return whether nothing may be sent any more."""
        return self._is_paused or self.elapsed() > deadline or self._clock.fault() is not None

    def _attempt(
        self, request: Request, charge: Charge, attempt: int, deadline: float
    ) -> tuple[Reply, float | None]:
        """Send once and charge it; return also the wait to the next attempt, if one may help."""
        began, start = self._clock.now(), self.elapsed()
        response = self._exchange(request, deadline)
        latency = round(1000 * (self.elapsed() - start))
        reply = WIRE_FORMATS[self.assistant.api].read_reply(response)
        date = clocks.date(response.headers)
        if misfit := self._clock.compare(date, began, self.assistant.name):
            reply = replace(reply, outcome=Failure("http", misfit), is_permanent=False, at=date)
        reply = check_cost(self.assistant, charge.amount, reply)
        cost = 0 if response.is_free or response.is_error else None
        if reply.tokens:
            cost = micros(price_of(self.assistant, reply) or 0)
        charge.settle(cost)
        wait, pause = self._next_step(response, reply, attempt)
        self._is_paused = self._is_paused or pause is not None
        if pause is not None and not reply.is_permanent:
            reply = replace(reply, notes=(*reply.notes, STATED))
        return replace(reply, latency_ms=latency, attempts=attempt, pause=pause), wait

    def _stopped(self, reply: Reply | None) -> Reply | None:
        """Return the end of a poll that was stopped while it waited."""
        failure = Failure("interrupted", "The poll was stopped while it waited to ask again.")
        return replace(reply, outcome=failure, pause=None, at=None) if reply else None

    def _next_step(
        self, response: Response, reply: Reply, attempt: int
    ) -> tuple[float | None, float | None]:
        """Return (wait, pause): seconds to the next attempt, or seconds of rest; or neither.

        Rate limits and hints hold all the assistant's requests.
        """
        if reply.is_permanent:  # of a batch's results `asking.read_result` says so
            return None, self.limits.pause
        advice = response.headers.get("x-should-retry")
        may_help = advice == "true" or (advice != "false" and reply.is_transient)
        if reply.at or not (may_help and reply.failure):
            return None, None
        now, is_limited = self._clock.now(), reply.failure == "rate_limited"
        hint = clocks.retry_after(response.headers, now)
        if hint is None and reply.wait is not None:
            hint = clocks.believed(reply.wait)
        # only after a 429: other failures bear rate-limit headers too, and must not wait for them
        if hint is None and is_limited:
            hint = clocks.limit_reset(response.headers, now)
        if hint is not None and hint > self.limits.longest_wait:
            return None, hint
        least, most = (0, 2**attempt) if hint is None else (hint, hint + 1)
        wait = self._random.uniform(least, most)
        if is_limited or hint is not None:
            self._pace.hold(wait)
        return wait, None

    def _exchange(self, request: Request, deadline: float) -> Response:
        """Send once, on a connection of its own.

        On a shared one, whatever a provider sends late or twice would be taken for the answer to
        the next question.
        """
        with requests.Session() as session:
            # else requests would put the password of ~/.netrc in the place of our key
            session.trust_env = False
            session.proxies.update(
                {"http": self._proxy, "https": self._proxy} if self._proxy else {}
            )
            try:
                return self._response(session, request, deadline)
            except requests.Timeout as error:
                is_free = isinstance(error, requests.ConnectTimeout)
                return no_answer("timeout", "The provider did not answer in time.", is_free=is_free)
            except requests.exceptions.ContentDecodingError:
                sentence = "The provider's answer is not what its Content-Encoding says it is."
                return no_answer("http", sentence)
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                cause = _innermost(error)
                is_free = isinstance(cause, BEFORE_SENDING)
                what = "The provider could not be reached" if is_free else "The connection broke"
                return no_answer("network", f"{what} ({type(cause).__name__}).", is_free=is_free)

    def _response(self, session: requests.Session, request: Request, deadline: float) -> Response:
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
            allow_redirects=False,  # which would hand x-api-key to another host
            stream=True,
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(1 << 16):
                body += chunk
                if len(body) > self.limits.size:
                    return no_answer(
                        "http", f"The reply is larger than {self.limits.size:,} bytes."
                    )
                if self.elapsed() > deadline:
                    return self._late()
            is_answer = response.status_code < HTTPStatus.BAD_REQUEST
            part = secrets.ANSWER_PART if is_answer else secrets.FAILURE_PART
            headers = {
                name.lower(): secrets.redact(self.secret, value, part=part)
                for name, value in response.headers.items()
            }
            clean = secrets.redact_body(self.secret, bytes(body), part=part)
            return Response(response.status_code, headers, clean)

    def _late(self) -> Response:
        return no_answer("timeout", f"The poll took over {self.limits.total:g} seconds.")


BEFORE_SENDING = (NewConnectionError, ConnectTimeoutError, ssl.SSLCertVerificationError)
"""Errors that arise before anything is sent, of TLS and proxy too."""


def _innermost(error: BaseException) -> BaseException:
    """Return the innermost cause of a network error, whose text may hold the address."""
    for _ in range(10):
        inner = (getattr(error, "reason", None), *error.args)
        nested = next((one for one in inner if isinstance(one, Exception)), None)
        if nested is None:
            break
        error = nested
    return error
