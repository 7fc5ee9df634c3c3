"""Sending over real sockets: what is retried, how long is waited, and what ends it."""

import itertools
import socket
import threading
import time
from http import HTTPStatus
from random import Random
from typing import Any

import pytest
from polling_world import budget
from processes import at_once
from replaying import CUT, DROPPED, HUGE, SILENT, Replaying, Step

from store.polls.answers import Prompt
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import Reply, Request
from store.polls.sending import Limits, RateLimiter, Sender
from store.polls.spending import Budget, Charge, at_most, micros, usd
from store.records import Assistant, Failure

CHAT = WIRE_FORMATS["chat"]
GOOD = {"picks": ["Alpha"]}
PRICES = {"usd_per_million_input": 1.0, "usd_per_million_output": 1.0}
RATE = {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}


class Waits(threading.Event):
    """A stop event whose waits are noted and take no time; set, it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Note the wait and let the clock of the test jump over it."""
        if not self.is_set():
            self.seconds.append(timeout or 0)
        return super().wait(0)

    def passed(self) -> float:
        """Seconds that were waited for in the test's mind, however busy the machine is."""
        return sum(self.seconds)


class Steady(Random):
    """Chance that always takes the upper end."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002 - the base class's signature
        """The upper end."""
        return b


def assistant(server: Replaying, **fields: Any) -> Assistant:
    """An assistant of the chat format at that server."""
    return Assistant(name="A", api="chat", base_url=f"{server.url}/v1", model="m", **fields)


def sender(stop: threading.Event, *, rpm: int = 1_000_000, **options: Any) -> Sender:
    """A sender in which chance takes the upper end and waits take no time."""
    if isinstance(stop, Waits):
        options = {"elapsed": stop.passed, **options}
    who = Assistant(name="A", api="chat", base_url="http://127.0.0.1", model="m", rpm=rpm)
    return Sender(who, stop, **{"random": Steady(), **options})


def send(to: Replaying, by: Sender, purse: Budget | None = None, **fields: Any) -> Reply | None:
    """Send one question; nothing when its cost does not fit."""
    who = by.assistant = assistant(to, **fields)
    request = CHAT.build_request(who, Prompt("s", "u"), "sk-canary")
    most = micros(usd(who, at_most(who, request.body)) or 0)
    charge = Charge(purse or budget(), most)
    return by.send(request, charge) if charge.reserve() else None


def outcome(sent: Reply | None) -> tuple[str, int]:
    """The failure kind, or "answered", and the number of attempts."""
    held = checked(sent).outcome
    return (held.kind if isinstance(held, Failure) else "answered"), checked(sent).attempts


def checked(sent: Reply | None) -> Reply:
    """The reply to what was sent."""
    assert sent is not None
    return sent


def failure(sent: Reply | None) -> Failure:
    """Why what was sent was not answered."""
    held = checked(sent).outcome
    assert isinstance(held, Failure)
    return held


def test_who_rests_sends_nothing_not_even_a_retry(provider: Replaying) -> None:
    """Questions that are on their way when their assistant is paused end with what they have."""
    provider.follow({"m": [{"status": 500, "body": {}}]})

    class Resting(Waits):
        def wait(self, timeout: float | None = None) -> bool:
            by.rest()
            return super().wait(timeout)

    by = sender(Resting())
    assert outcome(send(provider, by)) == ("http", 1)
    assert (len(provider.seen), send(provider, by)) == (1, None)


@pytest.mark.parametrize("status", [429, 500])
def test_what_may_pass_is_tried_four_times_with_growing_waits(
    provider: Replaying, status: int
) -> None:
    """Passing statuses are met with up to four attempts, each wait up to twice the one before."""
    provider.follow({"m": [{"status": status, "body": "{}"}]})
    stop = Waits()
    kind = "rate_limited" if status == 429 else "http"
    assert outcome(send(provider, sender(stop))) == (kind, 4)
    assert [wait for wait in stop.seconds if wait > 1] == pytest.approx([2, 4, 8], abs=0.5)
    assert len(provider.seen) == 4
    provider.follow({"m": [{"status": status}] * 3 + [GOOD]})
    assert outcome(send(provider, sender(Waits()))) == ("answered", 4)


REFUSED = {"choices": [{"message": {"refusal": "No."}, "finish_reason": "stop"}]}
AWAY = {"Location": "http://127.0.0.1:9/"}


@pytest.mark.parametrize(
    ("step", "kind", "pause"),
    [
        ({"status": 418, "body": "nonsense"}, "http", None),
        ({"status": 307, "headers": AWAY}, "http", None),
        ({"status": 200, "body": "<html>"}, "http", None),
        ({"body": REFUSED}, "refusal", None),
        ({"status": 401, "body": "{}"}, "auth", 21_600),
        ({"status": 404, "body": "{}"}, "http", 21_600),
        ({"status": 429, "body": {"error": {"code": "insufficient_quota"}}}, "quota", 21_600),
    ],
)
def test_what_will_not_pass_is_sent_once(
    provider: Replaying, step: dict[str, Any], kind: str, pause: float | None
) -> None:
    """No retry where none can help; a bad key, spent money or a gone model pauses the assistant.

    A redirect is not followed: it would take the key elsewhere.
    """
    provider.follow({"m": [step, GOOD]})
    stop = Waits()
    by = sender(stop)
    sent = checked(send(provider, by))
    assert outcome(sent) == (kind, 1)
    assert (sent.pause, stop.seconds, len(provider.seen)) == (pause, [], 1)
    # its other threads heed the pause
    assert (send(provider, by) is None) is (pause is not None)


RESET = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m5s"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (429, {"retry-after-ms": "2500", "retry-after": "9"}, {}, 3.5),
        (429, {"retry-after": "120"}, {}, 121),
        (429, {}, {"error": {"details": [{"retryDelay": "22s"}]}}, 23),
        (429, {"retry-after": "3"}, {"error": {"details": [{"retryDelay": "22s"}]}}, 4),
        (429, RESET, {}, 66),
        (429, {"retry-after": "soon"}, {}, 2),
        (503, {"retry-after": "5"}, {}, 6),
        (500, RESET, {}, 2),  # which was not the reason
    ],
)
def test_a_hint_is_honoured(
    provider: Replaying, status: int, headers: dict[str, str], body: dict[str, Any], wait: float
) -> None:
    """The provider's own wait is kept, with at most a second of jitter on top."""
    provider.follow({"m": [{"status": status, "headers": headers, "body": body}, GOOD]})
    stop = Waits()
    assert outcome(send(provider, sender(stop))) == ("answered", 2)
    assert sum(stop.seconds) == pytest.approx(wait, abs=0.6)


class Draws(Random):
    """Chance that notes its bounds and always takes the lower end."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds: list[tuple[float, float]] = []

    def uniform(self, a: float, b: float) -> float:
        """The lower end."""
        self.bounds.append((a, b))
        return a


def test_jitter_is_full(provider: Replaying) -> None:
    """A wait without a hint is drawn from nothing to its longest; a hint is never undercut."""
    draws = Draws()
    provider.follow({"m": [{"status": 500}]})
    send(provider, sender(Waits(), random=draws))
    assert draws.bounds[:3] == [(0, 2), (0, 4), (0, 8)]
    for asked in (0, 7):
        hinted, stop = Draws(), Waits()
        provider.follow({"m": [{"status": 429, "headers": {"retry-after": str(asked)}}, GOOD]})
        send(provider, sender(stop, random=hinted))
        assert (asked, asked + 1) in hinted.bounds
        assert sum(stop.seconds) == pytest.approx(asked, abs=0.5)


@pytest.mark.parametrize("attempt", [1, 4])
def test_a_long_hint_rests_the_assistant(provider: Replaying, attempt: int) -> None:
    """A wait over 120 seconds is not sat out: the poll fails and the assistant rests so long."""
    steps = [{"status": 500}] * (attempt - 1)
    long = {"status": 429, "headers": {"retry-after": "121"}, "body": RATE}
    provider.follow({"m": [*steps, long]})
    sent = send(provider, sender(Waits()))
    assert outcome(sent) == ("rate_limited", attempt)
    assert checked(sent).pause == 121


def test_a_wait_beyond_the_deadline_is_not_begun(provider: Replaying) -> None:
    """The poll ends with the failure that it has."""
    provider.follow({"m": [{"status": 429, "headers": {"retry-after": "50"}}, GOOD]})
    stop = Waits()
    assert outcome(send(provider, sender(stop, limits=Limits(total=10)))) == ("rate_limited", 1)
    assert stop.seconds == []


@pytest.mark.parametrize(
    ("status", "headers", "wait"), [(429, {}, 2), (503, {"retry-after": "5"}, 6), (500, {}, 0)]
)
def test_a_rate_limit_or_a_hint_holds_the_line(
    provider: Replaying, status: int, headers: dict[str, str], wait: float
) -> None:
    """Others wait as long as the poll that met it would; another fault is that poll's alone."""
    provider.follow({"m": [{"status": status, "headers": headers}, GOOD]})
    stop = Waits()
    by = sender(stop, limits=Limits(attempts=1))
    send(provider, by)
    assert outcome(send(provider, by)) == ("answered", 1)
    assert sum(stop.seconds) == pytest.approx(wait, abs=0.5)


@pytest.mark.parametrize(
    ("status", "said", "attempts"),
    [(500, "false", 1), (400, "true", 2), (500, "true", 2), (500, "maybe", 2), (401, "true", 1)],
)
def test_x_should_retry_is_honoured(
    provider: Replaying, status: int, said: str, attempts: int
) -> None:
    """The provider's own word on retrying goes before the table, except for a bad key."""
    step = {"status": status, "headers": {"x-should-retry": said}}
    provider.follow({"m": [step, GOOD]})
    assert outcome(send(provider, sender(Waits())))[1] == attempts


@pytest.mark.parametrize("fault", [DROPPED, CUT, {"raw": b"\x00\xff not HTTP\r\n\r\n"}])
def test_a_broken_line_is_tried_again(provider: Replaying, fault: Step) -> None:
    """A dropped, garbled or cut connection is ``network``, and may answer the next time."""
    provider.follow({"m": [fault, GOOD]})
    assert outcome(send(provider, sender(Waits()))) == ("answered", 2)
    provider.follow({"m": [fault]})
    sent = send(provider, sender(Waits()))
    assert outcome(sent) == ("network", 4)
    assert "127.0.0.1" not in failure(sent).error


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1", "nonsense", "http://a..b/", "http://[::1/", "gopher://x/"]
)
def test_an_unreachable_or_impossible_address_is_network(url: str) -> None:
    """After four attempts, which surely cost nothing; not a crash."""
    account = budget(1e9)
    charge = Charge(account, 1000)
    assert charge.reserve()
    assert outcome(sender(Waits()).send(Request(url, {}, {}), charge)) == ("network", 4)
    assert account.run_spent.total() == 0 or not url.endswith("v1")


def test_silence_is_a_timeout_and_retried_once(provider: Replaying) -> None:
    """What counts is how often the provider was silent, not how often it was asked."""
    provider.follow({"m": [{"status": 500}, SILENT]})
    assert outcome(send(provider, sender(Waits(), limits=Limits(read=0.2)))) == ("timeout", 3)


def test_a_reply_at_the_deadline_counts(provider: Replaying) -> None:
    """What arrives in the very last moment is taken, and its latency is in milliseconds."""
    provider.follow({"m": [GOOD]})

    def clock() -> float:
        """Time stands still until the provider is asked, then at the deadline."""
        return Limits().total if provider.seen else 0

    sent = send(provider, sender(threading.Event(), elapsed=clock))
    assert outcome(sent) == ("answered", 1)
    assert checked(sent).latency_ms == 600_000


def test_a_huge_reply_is_refused(provider: Replaying) -> None:
    """Reading stops at the size limit; the failure is ``http`` and not retried."""
    provider.follow({"m": [HUGE]})
    sent = send(provider, sender(Waits(), limits=Limits(size=100_000)))
    assert outcome(sent) == ("http", 1)
    assert failure(sent).error == "The reply is larger than 100,000 bytes."


class Stopped(threading.Event):
    """A stop event that is set the moment somebody waits for it."""

    def wait(self, timeout: float | None = None) -> bool:
        """Be set."""
        self.set()
        return super().wait(timeout)


@pytest.mark.parametrize(
    "step",
    [
        {"status": 500},
        {"status": 503, "headers": {"retry-after": "100"}},
        {"status": 429, "body": RATE},
    ],
)
def test_stop_ends_a_wait_to_retry(provider: Replaying, step: dict[str, Any]) -> None:
    """What was sent and waits to be sent again ends as ``interrupted``."""
    provider.follow({"m": [step]})
    sent = send(provider, sender(Stopped()))
    assert outcome(sent) == ("interrupted", 1)
    assert failure(sent).error == "The poll was stopped while it waited to ask again."
    assert 0 <= (checked(sent).latency_ms or 0) < 60_000
    assert len(provider.seen) == 1


def test_the_rate_is_kept_over_all_threads() -> None:
    """Requests leave evenly, 60 / rpm seconds apart, whoever sends them."""
    stop = Waits()
    pace = RateLimiter(1, stop.passed)
    starts = []
    for _ in range(5):
        assert pace.wait(stop)
        starts.append(stop.passed())
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert gaps == pytest.approx([60, 60, 60, 60], abs=0.5)
    stop.seconds.append(1000)
    assert pace.wait(stop)
    assert pace.wait(stop)
    assert stop.passed() - starts[-1] == pytest.approx(1060, abs=0.5), "a rest saves up no burst"
    start = stop.passed()
    stop.seconds.append(90)
    assert pace.wait(stop)
    assert pace.wait(stop)
    assert stop.passed() - start == pytest.approx(120, abs=0.5), "who wakes up late slows nobody"


def test_hundreds_of_threads_share_one_pace() -> None:
    """Under contention no moment is given away twice."""
    pace = RateLimiter(60_000, time.monotonic)
    stop = threading.Event()
    times: list[float] = []

    def take() -> None:
        for _ in range(5):
            pace.wait(stop)
            times.append(time.monotonic())

    start = time.monotonic()
    at_once(*[take] * 40)
    assert len(times) == 200
    assert max(times) - start >= 198 / 1000


def test_the_environment_cannot_redirect_a_key(
    provider: Replaying, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Proxy variables and ~/.netrc are ignored: both would take or replace the key."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password stolen\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert outcome(send(provider, sender(Waits()))) == ("answered", 1)
    assert provider.seen[0]["headers"]["authorization"] == "Bearer sk-canary"


def test_a_configured_proxy_is_used(provider: Replaying) -> None:
    """POLL_PROXY gets the request, with the full address in its request line."""
    who = Assistant(name="A", api="chat", base_url="http://provider.example/v1", model="m")
    request = CHAT.build_request(who, Prompt("s", "u"), None)
    by = sender(Waits(), proxy=provider.url)
    sent = by.send(request, Charge(budget(), 0))
    assert outcome(sent) == ("answered", 1)
    assert provider.seen[0]["path"] == "http://provider.example/v1/chat/completions"


def test_a_configured_proxy_is_used_for_https_too() -> None:
    """It is asked for a tunnel to the provider."""
    who = Assistant(name="A", api="chat", base_url="https://provider.example/v1", model="m")
    request = CHAT.build_request(who, Prompt("s", "u"), None)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(60)
        by = sender(
            Waits(),
            proxy=f"http://127.0.0.1:{proxy.getsockname()[1]}",
            limits=Limits(connect=0.05, attempts=1),
        )
        sent = by.send(request, Charge(budget(), 0))
        assert outcome(sent) == ("timeout", 1)
        line, _ = proxy.accept()
        with line:
            assert line.recv(99).startswith(b"CONNECT provider.example:443 ")


def test_a_body_that_is_not_as_encoded_is_no_fault_of_the_line(provider: Replaying) -> None:
    """The provider was reached, and may have been paid: the failure says what it sent."""
    provider.follow({"m": [{"body": GOOD, "headers": {"Content-Encoding": "gzip"}}]})
    sent = send(provider, sender(Waits()))
    assert failure(sent).kind == "http"
    assert "Content-Encoding" in failure(sent).error


def test_a_key_in_a_reply_is_taken_out(provider: Replaying) -> None:
    """A provider that echoes the key, in body or headers, echoes nothing to us."""
    step = {
        "body": {"error": {"message": "bad sk-canary"}},
        "headers": {"x-request-id": "sk-canary"},
    }
    provider.follow({"m": [step]})
    sent = send(provider, sender(Waits(), secret="sk-canary"))  # noqa: S106 - a canary
    assert "sk-canary" not in repr(sent)
    assert repr(sent).count("[redacted]") == 2


@pytest.mark.parametrize(
    ("status", "said", "kept"),
    [
        (401, "Bad key sk-canary-aaaa given", "Bad key [redacted] given"),
        (401, "Bad key sk-c********77f1 given", "Bad key sk-c********77f1 given"),
        (429, "key ending in c5b8e77f1", "key ending in [redacted]"),
        (200, "a canary-coloured kettle", "a canary-coloured kettle"),
        (200, "your key is sk-canary-aaaa", "your key is [redacted]"),
    ],
)
def test_a_part_of_a_key_in_a_failure_is_taken_out_too(
    provider: Replaying, status: int, said: str, kept: str
) -> None:
    """Six characters in a row are; the four that vendors show are theirs to show."""
    failure = {"status": status, "body": {"error": {"message": said}}}
    provider.follow({"m": [{"picks": [said]} if status == HTTPStatus.OK else failure]})
    by = sender(Waits(), secret="sk-canary-aaaa-c5b8e77f1")  # noqa: S106 - a canary
    assert kept in repr(send(provider, by))


def test_each_request_has_a_connection_of_its_own(provider: Replaying) -> None:
    """What a provider sends late or twice is never read as the answer to the next question."""
    by = sender(Waits())
    ports = []
    original = provider.finish_request

    def finish(request: Any, client_address: Any) -> None:
        ports.append(client_address[1])
        original(request, client_address)

    provider.finish_request = finish  # type: ignore[method-assign]
    assert outcome(send(provider, by)) == outcome(send(provider, by)) == ("answered", 1)
    assert len(ports) == 2


def test_a_cap_forbids_an_attempt_and_ends_retrying(provider: Replaying) -> None:
    """What does not fit under the cap is not sent; a retry that does not fit leaves its failure."""
    assert send(provider, sender(Waits()), budget(0), **PRICES) is None
    assert provider.seen == []
    provider.follow({"m": [CUT]})
    account = budget(0.006)
    assert outcome(send(provider, sender(Waits()), account, **PRICES)) == ("network", 1)
    assert 4000 <= account.run_spent.total() <= 6000, (
        "an attempt of unknown cost counts as what it could cost"
    )


def test_what_is_not_sent_costs_nothing(provider: Replaying) -> None:
    """Stopped before it left, or left out since its assistant rests: the reservation is back."""
    stopped, account = threading.Event(), budget(1)
    stopped.set()
    assert send(provider, sender(stopped), account, **PRICES) is None
    assert account.run_spent.total() == 0
    provider.follow({"m": [{"status": 401}]})
    resting = sender(Waits())
    assert outcome(send(provider, resting, account, **PRICES)) == ("auth", 1)
    assert send(provider, resting, account, **PRICES) is None
    assert account.run_spent.total() == 0


def test_the_whole_poll_has_one_deadline_from_its_first_attempt(provider: Replaying) -> None:
    """Waits between attempts count, what was waited before the first one does not."""
    provider.follow({"m": [{"status": 500}]})
    assert outcome(send(provider, sender(Waits(), limits=Limits(total=5)))) == ("http", 2)
    provider.follow({})
    slow = sender(Waits(), rpm=6, limits=Limits(total=5))
    assert outcome(send(provider, slow)) == outcome(send(provider, slow)) == ("answered", 1)


@pytest.mark.parametrize(
    ("step", "spent"),
    [
        ({"status": 400}, 0),
        ({"status": 500}, 0),
        (HUGE, None),
        ({"body": "<>"}, None),
        (GOOD, 700 * 2 + 300 * 10),
    ],
)
def test_what_may_have_been_paid_counts(
    provider: Replaying, step: dict[str, Any], spent: int | None
) -> None:
    """From status 400 up nothing was paid; what could not be read may have been (``None``)."""
    provider.follow({"m": [step]})
    account = budget(1)
    prices = {"usd_per_million_input": 2.0, "usd_per_million_output": 10.0}
    send(provider, sender(Waits(), limits=Limits(size=100_000)), account, **prices)
    assert account.run_spent.total() == spent or (
        spent is None and account.run_spent.total() > 40_000
    )
