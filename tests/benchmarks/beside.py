"""A reader beside other work: how long it waits, and how soon a poll is visible.

    python tests/benchmarks/beside.py DIR [ROUNDS]

DIR is a data directory with sample assistants that may be written to, such as scale.py fills.
Printed are the reader's median and 99th percentile in ms, the median over rounds that take turns:
alone; beside a client that searches without pause, the same query or never the same; beside
``flask poll --all`` at the pace of real assistants (a provider on loopback, a second a reply, 60
requests a minute each as models.json has it unless told); then the seconds from a poll's append
until its answer names it, beside new searches; and the slowest of the longest hostile queries in
ms.
"""

import http.client
import itertools
import json
import random
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from statistics import median, quantiles

if __name__ == "__main__":
    tests = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(tests.parent), str(tests)]

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import servers
from builders import answered
from processes import started
from replaying import serving

from store.store import Store

CATEGORY = "crm-software"
LONGEST = 200
SECONDS = 6.0
ALPHABETS = ("a", "ab", "aeiou", "etaoinshr", "0123456789", "abc ", "e t a o i n ", "ßİ", "漢字")
WORDS = ("best", "software", "for", "home", "water", "online", "pro", "the", "headphnes", "lptop")


class Reader:
    """A client on one connection of its own."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(self, path: str) -> tuple[float, bytes]:
        """Return the ms that an answer took, and its body."""
        start = time.perf_counter()
        self._connection.request("GET", path, headers={"Accept-Encoding": "identity"})
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, path
        return (time.perf_counter() - start) * 1000, body


def search(query: str) -> str:
    """Return the address of a search."""
    return "/api/v1/search?q=" + urllib.parse.quote(query)


def never_repeated() -> Iterator[str]:
    """Yield queries of known and misspelt words, each with another number."""
    draw = random.Random(7)
    for number in itertools.count():
        yield f"{' '.join(draw.choices(WORDS, k=4))} {number}"


@contextmanager
def searching(port: int, queries: Iterator[str]) -> Iterator[None]:
    """Search without pause meanwhile."""
    stop = threading.Event()

    def run() -> None:
        reader = Reader(port)
        while not stop.is_set():
            reader.get(search(next(queries)))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def polling(directory: Path) -> Iterator[None]:
    """Poll every category meanwhile, by another process, from a provider that takes a second."""
    file = directory / "models.json"
    sample = file.read_bytes()
    names = [model["name"] for model in json.loads(sample)["models"]]
    slow = [{"picks": ["Alpha", "Beta", "Gamma"], "delay": 1}]
    with serving() as provider:
        provider.follow(dict.fromkeys(names, slow))
        common = {"api": "chat", "base_url": f"{provider.url}/v1", "key_env": "POLL_TEST_KEY"}
        prices = {"usd_per_million_input": 2, "usd_per_million_output": 10}
        models = [{"name": name, "model": name, **common, **prices} for name in names]
        file.write_text(json.dumps({"version": 1, "models": models}))
        try:
            with started(directory, "flask", "poll", "--all") as process:
                time.sleep(5)  # until it asks
                yield
                assert process.poll() is None, "the round ended before the measurement"
        finally:
            file.write_bytes(sample)


def waits(port: int) -> tuple[float, float]:
    """Return a reader's median and 99th percentile in ms, 5 ms between requests."""
    reader, times, end = Reader(port), list[float](), time.monotonic() + SECONDS
    while time.monotonic() < end:
        times.append(reader.get(f"/api/v1/best/{CATEGORY}.json")[0])
        time.sleep(0.005)
    return median(times), quantiles(times, n=100)[-1]


def seconds_until_visible(directory: Path, port: int, polls: int) -> list[float]:
    """Append polls of another process, and return how long each was not in the server's history."""
    store, reader, took = Store(directory), Reader(port), list[float]()
    model = store.snapshot.models[0]
    board = store.snapshot.leaderboards[CATEGORY]
    names = [store.snapshot.products[entry.product].name for entry in board.entries][:5]
    for number in range(polls):
        moment = f"2026-12-01T00:{number // 60:02}:{number % 60:02}Z"
        (poll,) = store.record([answered(model, names, moment, slug=CATEGORY)], moment)
        start = time.perf_counter()
        while poll.id.encode() not in reader.get(f"/api/v1/history?slug={CATEGORY}&limit=1")[1]:
            time.sleep(0.01)
        took.append(time.perf_counter() - start)
    return took


def hostile() -> list[str]:
    """Return queries of the greatest length, each of another kind."""
    draw = random.Random(200)
    texts = ["".join(draw.choices(alphabet, k=LONGEST)) for alphabet in ALPHABETS]
    texts += [" ".join(draw.choices(WORDS, k=60)) for _ in range(20)]
    texts += [" ".join(word[:2] for word in draw.choices(WORDS, k=90)) for _ in range(5)]
    texts += ["a " * 100, "best " * 40, "s" * LONGEST]
    texts += ["".join(chr(draw.randrange(0x20, 0xD7FF)) for _ in range(LONGEST)) for _ in range(5)]
    return [text[:LONGEST] for text in texts]


def main(directory: Path, rounds: int) -> None:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory() as log,
        servers.gunicorn(directory, Path(log) / "log") as server,
    ):
        port, queries = server.port, never_repeated()
        beside: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "alone": nullcontext,
            "beside one search": lambda: searching(port, itertools.repeat("crm")),
            "beside new searches": lambda: searching(port, queries),
            "beside flask poll --all": lambda: polling(directory),
        }
        waits(port)  # bodies made, index ready
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in beside}
        for _ in range(rounds):
            for name, work in beside.items():
                with work():
                    times[name].append(waits(port))
        for name, pairs in times.items():
            middle, late = (median(values) for values in zip(*pairs, strict=True))
            print(f"{name}: {middle:.1f}, {late:.1f} ms")  # noqa: T201
        with searching(port, queries):
            took = seconds_until_visible(directory, port, 25)
        print(f"visible after {median(took):.2f}, at most {max(took):.2f} s")  # noqa: T201
        reader = Reader(port)
        slowest = max(hostile(), key=lambda query: reader.get(search(query))[0])
        again = median(reader.get(search(slowest[:-1] + end))[0] for end in "xyz")
        print(f"slowest hostile query {again:.1f} ms: {slowest!r}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 5)
