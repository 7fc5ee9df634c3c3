"""Polls, with a page and a search after each: what they leave in memory.

    python tests/benchmarks/cache_growth.py DIRECTORY POLLS

DIRECTORY is a data directory that may be written to. Printed are the megabytes by which the
process grew since its start, and how many former snapshots are alive after a full collection.
"""

import gc
import sys
import weakref
from itertools import cycle, islice
from pathlib import Path

if __name__ == "__main__":
    tests = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(tests.parent), str(tests)]

import click
from builders import answered, app_over

from store.gunicorn import put_requests_first

PAGE = 4096


def resident() -> float:
    """Megabytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE / 1e6


def grow(directory: Path, polls: int) -> tuple[float, int]:
    """Megabytes more than at the start, and former snapshots that no collection frees.

    Every hundred polls, and after the last, comes a look like the watcher's. Nothing new is named,
    so that what the polls themselves add is little.
    """
    with click.Context(click.Command("flask")):  # so that no watcher runs beside it
        app = app_over(directory)
    store, client = app.extensions["store"], app.test_client()
    slugs = sorted(store.snapshot.leaderboards)
    models = store.snapshot.models
    store.snapshot.summary.index.prepare()
    for path in ("/best/" + slugs[0], "/api/v1/search?q=crm"):  # templates compiled, once for all
        assert client.get(path).status_code == 200
    put_requests_first()
    before, old = resident(), []

    for number, slug in enumerate(islice(cycle(slugs), polls)):
        snapshot = store.snapshot
        old.append(weakref.ref(snapshot))
        names = [
            snapshot.products[entry.product].name for entry in snapshot.leaderboards[slug].entries
        ]
        time = f"2027-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        model = models[number % len(models)]
        store.record([answered(model, names[number % 2 :][:5], time, slug=slug)], time)
        del snapshot
        store.keep_current(prepare=True)
        asked = (f"/best/{slug}", f"/api/v1/search?q={slug.replace('-', '+')}")
        for path in asked:
            assert client.get(path, headers={"Accept-Encoding": "gzip"}).status_code == 200
    store.keep_current(prepare=True)
    grown = resident() - before
    gc.collect()
    return grown, sum(snapshot() is not None for snapshot in old)


if __name__ == "__main__":
    print(*grow(Path(sys.argv[1]), int(sys.argv[2])))  # noqa: T201
