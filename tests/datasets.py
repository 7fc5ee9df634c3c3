"""Small data directories with datasets, written where tests need them, and servers over them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import answered, failed, write_data
from replaying import answering
from werkzeug.serving import make_server

from store.publishing import formats
from store.publishing.dataset import Source, Written, write
from store.publishing.directories import owned
from store.publishing.manifest import FOLDER
from store.store import Store
from store.web.openapi import VERSION

SLUGS = ("crm-software", "help-desk")
needs_parquet = pytest.mark.skipif(not formats.has_parquet(), reason="needs the extra `data`")
DAYS = ("2026-10-26", "2026-11-02", "2026-11-09")


def small_data(directory: Path) -> Path:
    """Two categories, three days of polls in two months, one failure, one curated alias."""
    names = [f"Product {letter}" for letter in "ABCDE"]
    polls = [
        answered(model, names[i:] + names[:i], f"{day}T06:00:0{i}Z", slug=slug, missed=["The A"])
        for day in DAYS
        for slug in SLUGS
        for i, model in enumerate("ABC")
    ]
    write_data(
        directory,
        categories={slug: {"title": f"Best {slug}"} for slug in SLUGS},
        products={"product-a": {"name": "Product A", "aliases": ["The A"]}},
        polls=[*polls, failed("D", at="2026-11-09T07:00:00Z")],
    )
    return directory


def written(directory: Path, base_url: str | None = None) -> Written:
    """The dataset of a data directory, written anew."""
    store = Store(directory)
    return written_from(Source(directory, lambda: store.snapshot, base_url, VERSION))


def written_from(source: Source) -> Written:
    """The dataset of a source, in its data directory."""
    with owned(source.directory / FOLDER, "dataset", source.directory) as home:
        return write(home, source)


@contextmanager
def running(make: Callable[[str], Any]) -> Iterator[str]:
    """The address of a server that answers with what ``make`` gives for it."""
    server = make_server("127.0.0.1", 0, lambda *_: [], threaded=True)
    base = f"http://127.0.0.1:{server.port}"
    server.app = make(base)
    with answering(server):
        yield base
