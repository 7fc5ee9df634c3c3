"""Searches that only a sentence model can order, 200 a second, and another reader meanwhile.

    python tests/meaning_flood.py DIR [--rate 200] [--rounds 5]

DIR is a data directory for which `flask meaning` has run. gunicorn serves it as README.md says; no
search repeats, and none has an exact or likely match. Prints what the other reader's p95 is alone
and meanwhile, in turn, and how many searches the model had a say in.
"""

# ruff: noqa: T201 - a report is printed

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import servers
from test_search_load import CATEGORY, Reader, search

from store.memory import Store
from store.search import LIKELY

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 4
CONNECTIONS = 8


def queries(directory: Path) -> Iterator[str]:
    """Texts that never repeat and that words cannot settle: parts of two situations."""
    index = Store(directory).snapshot.summary.index
    said = [each.split() for item in index.given[0] for each in item.situations]
    draw = random.Random(24)
    while True:
        first, second = draw.sample(said, 2)
        query = " ".join((*first[: len(first) // 2], *second[len(second) // 2 :]))[:200]
        found = index.search(query)
        if all(hit.score < LIKELY for hit in (*found.categories[:1], *found.brands[:1])):
            yield query


def flood(port: int, rate: float, texts: list[str]) -> None:
    """Search for texts at this rate, however long answers take; print how they were answered."""
    start, numbers, final = time.monotonic(), itertools.count(), list[bool]()

    def run() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with closing(connection):
            for i in iter(lambda: next(numbers), None):
                if i >= len(texts):
                    return
                time.sleep(max(0, start + i / rate - time.monotonic()))
                connection.request("GET", search(texts[i]))
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                final.append(answer.headers["Cache-Control"] != "no-store")

    threads = [threading.Thread(target=run) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([len(final), sum(final), time.monotonic() - start]))


def main() -> None:
    """Measure, round by round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--port", type=int, help="flood a server with the texts on stdin, no more")
    given = parser.parse_args()
    if given.port:
        flood(given.port, given.rate, json.load(sys.stdin))
        return
    source, count = queries(given.directory), int(given.rate * (SECONDS + 1))
    batches = [list(itertools.islice(source, count)) for _ in range(given.rounds + 1)]
    log = Path(tempfile.mkdtemp()) / "log"
    with (
        servers.gunicorn(given.directory, log) as server,
        closing(Reader(server.port)) as reader,
    ):
        while "no-store" in headers(server.port, next(source)):
            time.sleep(0.5)
        measure(server.port, reader, batches, given.rate)


def headers(port: int, query: str) -> str:
    """How long an answer to a search may be kept."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with closing(connection):
        connection.request("GET", search(query))
        return connection.getresponse().headers["Cache-Control"]


def measure(port: int, reader: Reader, batches: list[list[str]], rate: float) -> None:
    """Print both p95 of every round, and of all; what comparing has saved up is spent before."""
    alone, beside = [], []
    for text in batches.pop(0):
        reader.time(search(text))
    for texts in batches:
        alone.append(reader.p95(CATEGORY, SECONDS))
        command = [sys.executable, __file__, "-", "--port", str(port), "--rate", str(rate)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdin
            assert other.stdout
            other.stdin.write(json.dumps(texts))
            other.stdin.close()
            time.sleep(1)
            beside.append(reader.p95(CATEGORY, SECONDS - 0.5))
            sent, final, took = json.loads(other.stdout.read())
        print(
            f"p95 {alone[-1]:.2f} ms alone, {beside[-1]:.2f} beside {sent / took:.0f} searches "
            f"a second, {final} of {sent} ordered by the model"
        )
    ratio = statistics.median(beside) / statistics.median(alone)
    print(f"median {statistics.median(alone):.2f}, {statistics.median(beside):.2f}: {ratio:.2f} x")


if __name__ == "__main__":
    main()
