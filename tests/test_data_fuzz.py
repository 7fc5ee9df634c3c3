"""Every data file broken in every way: nothing fails open, nothing is shown that should not be.

The quick run is part of the suite; `pytest -m slow -s tests/test_data_fuzz.py` breaks files 50,000
times.
"""

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders import answered, app_over, close_days, withhold, write_data, write_json
from click import ClickException
from conftest import Report
from flask import Flask
from mutations import KEY, mutated

from store.cli.checking import problems_in
from store.data_file import decode
from store.records import GOVERNING
from store.store import Store, Watcher

PLANTED, NOTE = "WITHHELD-TEXT", "invented"
SLUGS = ("thing-a", "thing-b", "thing-c")


def write_world(directory: Path) -> Path:
    """A data directory with a file of every kind; one answer of thing-c is withheld."""
    polls = [
        answered(
            model,
            [f"Prod {slug[-1].upper()}{(number + day + i) % 5}" for i in range(4)],
            f"2026-11-{day:02}T06:00:00Z",
            slug=slug,
        )
        for day in (2, 9)
        for slug in SLUGS
        for number, model in enumerate("ABCD")
    ]
    polls.append(answered("B", [PLANTED], "2026-11-09T06:00:01Z", slug="thing-c"))
    titles: dict[str, dict[str, Any]] = {slug: {"title": f"Best {slug}"} for slug in SLUGS}
    titles["thing-a"] |= {"former_slugs": ["old-thing"], "nouns": ["A0"], "topic": "things"}
    product = {"name": "Prod A1", "aliases": ["Product A1"], "domain": "a.example"}
    write_data(
        directory, categories=titles, products={"prod-a1": product}, polls=polls, daily_usd=5
    )
    provider = {"base_url": "https://api.provider.example/v1", "key_env": "PROVIDER_API_KEY"}
    prices = {"usd_per_million_input": 2, "usd_per_million_output": 10}
    models = [{"name": n, "api": "chat", "model": "m", **provider, **prices} for n in "ABCD"]
    write_json(directory / "models.json", {"version": 1, "models": models})
    withhold(directory, polls[-1].id)
    write_json(directory / "synonyms.json", {"version": 1, "synonyms": [["thing", "object"]]})
    write_json(directory / "words.json", {"version": 1, "source": "us", "words": ["the"]})
    lab = {"title": "L", "method": "M.", "finding": "F.", "date": "2026-11-01", "body": "B."}
    write_json(directory / "labs" / "by-hand.json", {"version": 1, **lab})
    return directory


PATHS = (
    *(f"/api/v1/best/{slug}.json" for slug in SLUGS),
    *(f"/api/v1/{name}.json" for name in ("categories", "changes", "mentions", "labs")),
    "/api/v1/search?q=thing",
    "/api/v1/history?slug=thing-c&limit=500",
    "/api/v1/product/withheld-text.json",
    "/",
    "/best/thing-c",
    "/product/prod-c1/polls",
    "/feeds/changes.atom",
    "/llms.txt",
    "/healthz",
)
SERVED = frozenset({200, 308, 404, 410, 503})


def seen_by(app: Flask) -> dict[str, tuple[int, bytes]]:
    """What a reader gets at each path."""
    client = app.test_client()
    found = {}
    for path in PATHS:
        with client.get(path) as response:
            found[path] = response.status_code, response.get_data()
    return found


def lasting(answers: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    """Return what is the same again once a file is as it was: health tells the time."""
    return {path: answer for path, answer in answers.items() if path != "/healthz"}


class Broken:
    """A file broken for the length of a ``with`` block, then put back as it was."""

    def __init__(self, directory: Path, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self._path = directory / name

    def __enter__(self) -> None:
        self._good = self._path.read_bytes()
        self._times = self._path.stat()
        self._path.write_bytes(self.data)

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._good)
        os.utime(self._path, ns=(self._times.st_atime_ns, self._times.st_mtime_ns))

    @property
    def is_history(self) -> bool:
        """Whether it is a file of history."""
        return self.name.startswith("history/")

    @property
    def record(self) -> Any:
        """What the broken file says, if it is a good data file all the same."""
        return None if self.is_history else decode(self.name, self.data).record


def names_in(directory: Path) -> list[str]:
    """Every data file, those that govern and history as often as all others together."""
    every = sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*.json*")
        if not any(part.startswith((".", "proof")) for part in path.relative_to(directory).parts)
    )
    return every + 6 * [*GOVERNING] + 3 * [name for name in every if name.startswith("history/")]


def seen_at_a_start(world: Path, broken: Broken) -> dict[str, tuple[int, bytes]]:
    """What a reader gets of a server that starts now; nothing where it has to end at once."""
    if broken.name in GOVERNING and broken.record is None:
        with pytest.raises(ClickException, match=rf"^{broken.name}:\d+:\d+: "):
            app_over(world)
        return {}
    return seen_by(app_over(world))


def hold(
    broken: Broken,
    found: dict[str, tuple[int, bytes]],
    whole: dict[str, tuple[int, bytes]] | None = None,
) -> None:
    """Nothing is shown that should not be, and what is still known is still served.

    ``whole`` is what a server showed that has run since before the file broke.
    """
    for path, (status, body) in found.items():
        assert status in SERVED, (path, status, body[:300])
        assert KEY.encode() not in body, path
        assert b"Traceback" not in body, path
        if broken.name != "withheld.json" or broken.record is None:
            assert PLANTED.encode() not in body, path
        if path in ("/", "/best/thing-c") and (broken.name != "site.json" or not broken.record):
            assert status != 200 or NOTE.encode() in body, path
    if whole and not broken.is_history and broken.record is None:
        assert lasting(found) == lasting(whole), broken.name
    for path in (path for path in found if "/best/" in path and broken.is_history):
        assert found[path][0] in (200, 503), (path, found[path])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The three categories, all days closed."""
    monkeypatch.setattr(Watcher, "ensure_running", lambda _: None)
    directory = write_world(tmp_path / "data")
    close_days(directory)
    return directory


def fuzz(world: Path, times: int, seed: int) -> Counter[str]:
    """Break one file after the other; return how often each kind was."""
    random = Random(seed)
    running = app_over(world)
    store: Store = running.extensions["store"]
    whole = seen_by(running)
    names, kinds = names_in(world), Counter[str]()
    for number in range(times):
        name = random.choice(names)
        broken = Broken(world, name, mutated((world / name).read_bytes(), random))
        kinds[name.partition("/")[0]] += 1
        with broken:
            problems = list(problems_in(world))
            if not broken.is_history and broken.record is None:
                assert any(p.file == name and p.severity == "error" for p in problems), name
            assert not any(KEY in str(problem) for problem in problems), name
            store.keep_current()
            hold(broken, seen_by(running), whole)
            if number % 10 == 0:
                hold(broken, seen_at_a_start(world, broken))
        store.keep_current()
        if number % 5 == 0:
            assert lasting(seen_by(running)) == lasting(whole), name
    return kinds


def test_no_broken_file_fails_open(world: Path) -> None:
    """Nothing withheld, unlabelled or secret shows, and undoing undoes all."""
    assert fuzz(world, 20, seed=1).total() == 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_no_broken_file_fails_open_for_long(world: Path, seed: int, report: Report) -> None:
    """The same 50,000 times."""
    kinds = fuzz(world, 10_000, seed=100 + seed)
    report(f"seed {seed}: {kinds.total():,} broken files, {dict(kinds)}")
