"""The one place that sends: connections, deadlines, size limits and patient retries.

The environment's proxies and ``~/.netrc`` are ignored (``requests`` would replace our key with
netrc's) and redirects are not followed (it would hand our key to another host).
"""

from __future__ import annotations

import threading
import time
from random import Random
from typing import TYPE_CHECKING

import requests
from msgspec import Struct

from store.polls.providers import Request, Response
from store.records import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONNECT_SECONDS = 10
READ_SECONDS = 180
TOTAL_SECONDS = 300
MAX_BYTES = 4 << 20
ATTEMPTS = 4
LONGEST_WAIT = 120
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


class Sent(Struct, frozen=True):
    """What sending came to: the provider's response or a failure, and how long it took in all."""

    outcome: Response | Failure
    latency_ms: int


class Sender:
    """Sends requests of one assistant; a set ``stop`` ends every wait.

    ``final`` says of a response whether trying again is of no use.
    """

    def __init__(
        self,
        stop: threading.Event,
        proxy: str | None = None,
        random: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop
        self._random = random or Random()
        self._clock = clock
        self._local = threading.local()
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}

    def send(self, request: Request, final: Callable[[Response], bool]) -> Sent:
        """Send a request, again where that may help; raises nothing."""
        start = self._clock()
        for attempt in range(1, ATTEMPTS + 1):
            outcome = self._once(request, start + TOTAL_SECONDS)
            wait = self._wait(outcome, attempt, final)
            if wait is None or self._clock() + wait > start + TOTAL_SECONDS:
                break
            if self._stop.wait(wait):
                outcome = Failure("interrupted", "The poll was stopped while it waited to retry.")
                break
        return Sent(outcome, round(1000 * (self._clock() - start)))

    def _once(self, request: Request, deadline: float) -> Response | Failure:
        try:
            with self._session().post(
                request.url,
                json=request.body,
                headers=dict(request.headers),
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._body(response, deadline)
                if isinstance(body, Failure):
                    return body
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Response(response.status_code, headers, body)
        except requests.Timeout:
            return Failure("timeout", "The provider did not answer in time.")
        except requests.RequestException as error:
            return Failure("network", f"The provider could not be reached ({_cause(error)}).")

    def _body(self, response: requests.Response, deadline: float) -> bytes | Failure:
        body = bytearray()
        for chunk in response.iter_content(1 << 16):
            body += chunk
            if len(body) > MAX_BYTES:
                return Failure("http", f"The reply is larger than {MAX_BYTES:,} bytes.")
            if self._clock() > deadline:
                return Failure("timeout", f"The reply took over {TOTAL_SECONDS} seconds.")
        return bytes(body)

    def _wait(
        self, outcome: Response | Failure, attempt: int, final: Callable[[Response], bool]
    ) -> float | None:
        """Seconds to wait before the next attempt; ``None`` when there should be none."""
        if attempt == ATTEMPTS:
            return None
        backoff = self._random.uniform(0, min(60, 2**attempt))
        if isinstance(outcome, Failure):
            retried = outcome.kind == "network" or (outcome.kind == "timeout" and attempt == 1)
            return backoff if retried else None
        if outcome.status not in RETRIED or final(outcome):
            return None
        hint = _hinted_wait(outcome.headers)
        if hint is None:
            return backoff
        return hint if hint <= LONGEST_WAIT else None

    def _session(self) -> requests.Session:
        """This thread's session, kept for its connections."""
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.trust_env = False
            session.proxies.update(self._proxies)
        return session


def _hinted_wait(headers: Mapping[str, str]) -> float | None:
    """The wait a provider asks for, in seconds."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if wait >= 0:
            return wait
    return None


def _cause(error: requests.RequestException) -> str:
    """The kind of a network error, without the address and what else its text may hold."""
    reason = error.args[0] if error.args else error
    return type(getattr(reason, "reason", reason)).__name__
