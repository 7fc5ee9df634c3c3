"""Bodies are kept while what they were made from is current, and never beyond the budget."""

from __future__ import annotations

import gc
import gzip
import shutil
import subprocess
import sys
import threading
import tracemalloc
import weakref
from functools import partial
from pathlib import Path

import pytest
from builders import answered, app_over, write_data

from store.web.cache import BUDGET, OVERHEAD, BodyCache, EncodedBody


class Maker:
    """Makes bodies of a size and counts how often it was asked."""

    def __init__(self, size: int = 4096) -> None:
        self.size = size
        self.made = 0

    def __call__(self) -> EncodedBody:
        """A body."""
        self.made += 1
        return EncodedBody(b"x" * self.size)


def test_equal_bytes_have_equal_validators() -> None:
    """The tag is weak and follows from the bytes alone; so does the compressed form."""
    first, second = EncodedBody(b"x" * 5_000), EncodedBody(b"x" * 5_000)
    assert first.etag == second.etag
    assert first.etag.startswith('W/"')
    assert first.etag != EncodedBody(b"y").etag
    assert first.gzipped == second.gzipped
    assert gzip.decompress(first.gzipped) == first.body


def test_a_body_is_made_once_while_its_generation_stands() -> None:
    """The second reader gets the first one's bytes; the next generation is made anew."""
    cache, make = BodyCache(), Maker()
    first = cache.get("a", 1, make)
    assert cache.get("a", 1, make) is first
    assert make.made == 1
    assert cache.get("a", 2, make) is not first
    assert make.made == 2


def test_a_body_of_an_older_generation_replaces_none() -> None:
    """A reader that took long must not leave an old answer in the new one's place."""
    cache = BodyCache()

    def slowly() -> EncodedBody:
        cache.get("a", 2, lambda: EncodedBody(b"new"))
        return EncodedBody(b"old")

    assert cache.get("a", 1, slowly).body == b"old"
    assert cache.get("a", 2, Maker()).body == b"new"
    assert cache.get("a", 1, lambda: EncodedBody(b"old")).body == b"old"
    assert cache.get("a", 2, Maker()).body == b"new"


def test_the_budget_bounds_what_is_kept() -> None:
    """Over budget, what was used longest ago goes first; compressed forms count."""
    cache, make = BodyCache(budget=2 * (6 * 1024 + 2 * OVERHEAD)), Maker(4 * 1024)
    for path in ("a", "b", "a", "c"):
        cache.get(path, 1, make)
    assert make.made == 3
    cache.get("a", 1, make)
    assert make.made == 3
    cache.get("b", 1, make)
    assert make.made == 4


def test_what_is_larger_than_the_budget_is_served_and_not_kept() -> None:
    """It takes the place of nothing else."""
    cache, huge, small = BodyCache(budget=8 * 1024), Maker(50_000), Maker(10)
    for _ in range(2):
        cache.get("small", 1, small)
        assert len(cache.get("huge", 1, huge).body) == 50_000
    assert (small.made, huge.made) == (1, 2)


def test_a_renewed_body_counts_once() -> None:
    """Renewing a body a thousand times takes no more of the budget than one."""
    cache, make, other = BodyCache(budget=20 * 1024), Maker(), Maker()
    cache.get("other", 1, other)
    for generation in range(1000):
        cache.get("a", generation, make)
    cache.get("other", 1, other)
    assert other.made == 1


def test_all_that_a_kept_body_takes_is_counted() -> None:
    """Keys, validators and compressed forms too: memory grows by no more than the cache says."""
    cache, bodies = BodyCache(), []
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(300):
            text = b",".join(b'{"n": %d}' % (number * i) for i in range(20 + 2 * number))
            bodies.append(cache.get(f"api/v1/best/{number}.json", 1, partial(EncodedBody, text)))
        for body in bodies:
            assert body.etag
            assert body.gzipped
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= cache.size <= 2 * (after - before)


def test_so_many_are_kept_however_small() -> None:
    """A stranger who asks for ever new nothings does not make it grow."""
    cache, make = BodyCache(budget=10 * OVERHEAD), Maker(0)
    for number in range(100):
        cache.get(f"{number}", 1, make)
    for number in range(100):
        cache.get(f"{number}", 1, make)
    assert make.made == 200
    assert cache.size <= 10 * OVERHEAD


def test_threads_may_ask_at_once() -> None:
    """Eight threads over a small room: every answer is the one for its path."""
    cache = BodyCache(budget=10 * OVERHEAD)
    wrong: list[bytes] = []

    def ask() -> None:
        for number in range(2000):
            expected = b"%d" % (number % 37) * 9
            if cache.get(f"{number % 37}", 1, partial(EncodedBody, expected)).body != expected:
                wrong.append(expected)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_bodies_hold_no_old_snapshots(tmp_path: Path) -> None:
    """Polls with pages and a search after each leave nothing of the snapshots they were made of."""
    app = app_over(write_data(tmp_path / "data", polls=[answered("A", ["X"])]))
    store, client = app.extensions["store"], app.test_client()
    pages = ["/", "/changes", "/mentions", "/labs", "/methodology", "/docs", "/llms.txt"]
    old = []
    for day, page in enumerate(pages, start=10):
        for path in (page, "/best/crm-software", "/product/x", "/api/v1/search?q=x"):
            assert client.get(path).status_code == 200
        old.append(weakref.ref(store.snapshot))
        store.record([answered("A", ["X"])], f"2026-11-{day}T06:00:00Z")
        store.reload()
    gc.collect()
    assert [ref() for ref in old] == [None] * len(old)


@pytest.mark.slow
def test_two_thousand_polls_leave_the_budget_and_little_else(tmp_path: Path) -> None:
    """Pages and searches after each poll cost no more memory than the budget and a third of it."""
    root = Path(__file__).resolve().parent.parent
    grown = []
    for extra in ([], ["alone"]):
        data = tmp_path / "-".join(["data", *extra])
        shutil.copytree(root / "data", data, copy_function=shutil.copy2)
        program = root / "tests/benchmarks/cache_growth.py"
        command = [sys.executable, str(program), str(data), "2000", *extra]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        grown.append(float(told[0]))
        assert told[1] == "0", "no former snapshot is alive"
    assert grown[0] - grown[1] <= BUDGET / 1e6 * 4 / 3
