"""Search beside other readers, over the evaluation catalogue; `-m slow -s` prints figures."""

import http.client
import itertools
import json
import random
import statistics
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import servers
from search_evaluation import read_queries, write_catalogue

pytestmark = pytest.mark.slow

ROUNDS = 7
LONGEST = 200
CATEGORY = "/api/v1/best/crm-software.json"


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of 1,425 categories and 9,079 brands."""
    directory = tmp_path_factory.mktemp("load") / "data"
    write_catalogue(directory)
    return directory


class Reader:
    """One client on one connection; times are in milliseconds."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.close = self._connection.close

    def time(self, path: str) -> float:
        """How long an answer took; any status but 200 is an error."""
        start = time.perf_counter()
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200, path
        return (time.perf_counter() - start) * 1000

    def p95(self, path: str, seconds: float) -> float:
        """The 95th percentile over so many seconds, a few milliseconds between requests."""
        times = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            times.append(self.time(path))
            time.sleep(0.005)
        return statistics.quantiles(times, n=20)[-1]


def search(query: str) -> str:
    """The path that searches for a text."""
    return "/api/v1/search?q=" + urllib.parse.quote(query, safe="")


def judged() -> list[str]:
    """All judged queries, in one arbitrary order."""
    queries = [one.query for name in ("dev", "natural", "extra") for one in read_queries(name)]
    random.Random(6).shuffle(queries)
    return queries


def repeated() -> Iterator[str]:
    """The judged queries without end: an answer is kept longer than it takes to come round."""
    return itertools.cycle(judged())


def never_repeated() -> Iterator[str]:
    """The judged queries without end, each time with other capitals, so that hardly any is kept."""
    draw = random.Random(7)
    for query in itertools.cycle(judged()):
        yield "".join(draw.choice((letter, letter.upper())) for letter in query)


@contextmanager
def searching(port: int, queries: Iterator[str]) -> Iterator[list[float]]:
    """A client that searches without pause meanwhile; it yields how long each search took."""
    stop, took = threading.Event(), list[float]()

    def run() -> None:
        with closing(Reader(port)) as reader:
            while not stop.is_set():
                took.append(reader.time(search(next(queries))))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield took
    finally:
        stop.set()
        thread.join(60)


@pytest.mark.parametrize(("asked", "most"), [(repeated, 2), (never_repeated, 2.5)])
def test_a_searching_client_leaves_the_others_their_pace(
    asked: Callable[[], Iterator[str]], most: float, tmp_path: Path, catalogue: Path
) -> None:
    """While one client searches without pause, another's p95 is at most so many times its own."""
    control, loaded, searches, queries = [], [], 0, asked()
    with (
        servers.gunicorn(catalogue, tmp_path / "log") as server,
        closing(Reader(server.port)) as reader,
    ):
        reader.p95(CATEGORY, 5)
        for _ in range(ROUNDS):
            with searching(server.port, queries) as took:
                loaded.append(reader.p95(CATEGORY, 2))
            searches += len(took)
            control.append(reader.p95(CATEGORY, 2))
    alone, beside = statistics.median(control), statistics.median(loaded)
    print(f"p95 {beside:.1f} ms beside {searches} searches, {alone:.1f} alone")  # noqa: T201
    assert beside <= most * alone


def test_no_thread_waits_for_a_search(tmp_path: Path, catalogue: Path) -> None:
    """While one client searches, a 1 ms ticker is never 25 ms late, control subtracted."""
    report, port = tmp_path / "ticks.json", servers.free_port()
    program = Path(__file__).parent / "ticking_server.py"
    command = [sys.executable, str(program), str(catalogue), str(port), str(report)]
    environ = {"PYTHONPATH": str(servers.ROOT)}
    with servers.running(command, port, environ, tmp_path / "log"):
        time.sleep(5)  # past the first look
        start = time.time()
        time.sleep(10)
        between = time.time()
        with searching(port, itertools.cycle([*judged(), *hostile()])):
            time.sleep(20)
        end = time.time()
    late = json.loads(report.read_text())
    control = max((delay for at, delay in late if start < at < between), default=0)
    worst = max((delay for at, delay in late if between < at < end), default=0)
    print(f"worst tick {worst:.0f} ms late, control {control:.0f} ms")  # noqa: T201
    assert worst - control <= 25


def hostile() -> list[str]:
    """The longest legal queries, each of another kind, that may keep a search busy."""
    draw = random.Random(200)
    words = [part for query in judged() for part in query.split()]
    common = ["best", "software", "for", "home", "water", "online", "pro", "the"]
    alphabets = ["a", "ab", "aeiou", "etaoinshr", "0123456789", "abc ", "e t a o i n ", "́a", "ßİ"]
    alphabets += ["漢字", "😀👍🏽", "ابتث", "\u200b\u200dx", "-_.&+# ", "Ⅷ㎏ﬁ ", "\uff41\uff42 "]
    texts = ["".join(draw.choices(alphabet, k=LONGEST)) for alphabet in alphabets]
    texts += [" ".join(draw.choices(words, k=60)) for _ in range(20)]
    texts += [" ".join(word[:2] for word in draw.choices(words, k=90)) for _ in range(5)]
    texts += [" ".join(word[:-1] + "x" for word in draw.choices(words, k=60)) for _ in range(5)]
    texts += [" ".join(draw.sample(common, 8) * 6), "a " * 100, "best " * 40, "s" * LONGEST]
    texts += ["".join(chr(draw.randrange(0x20, 0xD7FF)) for _ in range(LONGEST)) for _ in range(5)]
    return [text[:LONGEST] for text in texts]


def test_the_longest_hostile_queries_are_quick(tmp_path: Path, catalogue: Path) -> None:
    """No legal query keeps the server over 60 ms, whatever its 200 characters are."""
    with (
        servers.gunicorn(catalogue, tmp_path / "log") as server,
        closing(Reader(server.port)) as reader,
    ):
        reader.p95(CATEGORY, 5)
        took = {}
        for query in hostile():  # each answer is kept for the next, so a space makes it another
            took[query] = statistics.median(reader.time(search(query[:-2] + end)) for end in "xyz")
    slowest = max(took, key=lambda query: took[query])
    print(f"slowest of {len(took)}: {took[slowest]:.1f} ms, {slowest!r}")  # noqa: T201
    assert took[slowest] <= 60
