"""Polls, with a page and a search after each: what they leave in memory.

    python tests/cache_growth.py DIRECTORY [POLLS]

DIRECTORY is a data directory that may be written to. Printed are the megabytes by which the process
grew since its start, and how many snapshots are alive at the end.
"""

from __future__ import annotations

import gc
import sys
from itertools import cycle, islice
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from builders import answered, app_over

from store.snapshot import Snapshot

PAGE = 4096


def resident() -> float:
    """Megabytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE / 1e6


def grow(directory: Path, polls: int) -> tuple[float, int]:
    """Megabytes more than at the start, and snapshots alive at the end."""
    app = app_over(directory)
    store, client = app.extensions["store"], app.test_client()
    slugs = sorted(store.snapshot.leaderboards)
    models = store.snapshot.models
    store.snapshot.summary.prepare()
    gc.collect()
    before = resident()
    for number, slug in enumerate(islice(cycle(slugs), polls)):
        time = f"2027-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        names = [f"New {slug} {number % 7}", f"Other {slug}"]
        store.record([answered(models[number % len(models)], names, time, slug=slug)], time)
        if number % 20 == 0:
            store.flush()
            store.prepare()
        words = slug.replace("-", "+")
        for path in (f"/best/{slug}", f"/api/v1/search?q={words}", f"/search?q={words}"):
            assert client.get(path, headers={"Accept-Encoding": "gzip"}).status_code == 200
    gc.collect()
    return resident() - before, sum(type(found) is Snapshot for found in gc.get_objects())


if __name__ == "__main__":
    print(*grow(Path(sys.argv[1]), int((sys.argv[2:] or ["2000"])[0])))  # noqa: T201
