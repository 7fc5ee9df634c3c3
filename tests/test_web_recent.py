"""Bodies made for queries are kept while they are true, and only so many of them."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from builders import app_over, write_data

from store.snapshot import Prepared
from store.web.recent import Recent

if TYPE_CHECKING:
    from pathlib import Path


def test_a_body_is_made_once_for_a_snapshot(tmp_path: Path) -> None:
    """The second reader gets the first one's bytes; the next snapshot starts afresh."""
    app = app_over(write_data(tmp_path / "data"))
    one = app.extensions["store"].snapshot
    two = app_over(tmp_path / "data").extensions["store"].snapshot
    recent = Recent()
    first = recent.get(one, "key", lambda: Prepared(b"first", 0))
    assert recent.get(one, "key", lambda: Prepared(b"again", 0)) is first
    assert recent.get(two, "key", lambda: Prepared(b"second", 0)).body == b"second"
    assert recent.get(one, "key", lambda: Prepared(b"third", 0)).body == b"third"


def test_a_body_of_an_older_snapshot_is_not_kept(tmp_path: Path) -> None:
    """A reader that took long must not leave an old answer in the new snapshot's place."""
    one = app_over(write_data(tmp_path / "data")).extensions["store"].snapshot
    two = app_over(tmp_path / "data").extensions["store"].snapshot
    recent = Recent()

    def slowly() -> Prepared:
        recent.get(two, "other key", lambda: Prepared(b"other", 0))
        return Prepared(b"old", 0)

    assert recent.get(one, "key", slowly).body == b"old"
    assert recent.get(two, "key", lambda: Prepared(b"new", 0)).body == b"new"


def test_room_is_limited_and_the_least_recent_goes_first(tmp_path: Path) -> None:
    """Whatever is asked for, no more bytes are kept than there is room for."""
    snapshot = app_over(write_data(tmp_path / "data")).extensions["store"].snapshot
    recent = Recent(room=45)
    made: list[int] = []

    def ask(key: int, size: int = 10) -> None:
        def make() -> Prepared:
            made.append(key)
            return Prepared(b"x" * size, 0)

        recent.get(snapshot, key, make)

    for key in (1, 2, 3, 1, 4, 1, 2):
        ask(key)
    assert made == [1, 2, 3, 4, 2], "2 was the least recent when 4 came"
    ask(5, size=31)
    ask(5, size=31)
    assert made[-2:] == [5, 5], "what is larger than the room is never kept"


def test_so_many_are_kept_however_small(tmp_path: Path) -> None:
    """A stranger who asks for ever new nothings does not make it grow."""
    snapshot = app_over(write_data(tmp_path / "data")).extensions["store"].snapshot
    recent = Recent(most=2)

    def ask(key: int) -> Prepared:
        return recent.get(snapshot, key, lambda: Prepared(b"", 0))

    first, second = ask(1), ask(2)
    ask(1)
    ask(3)
    assert ask(1) is first
    assert ask(2) is not second


def test_threads_may_ask_at_once(tmp_path: Path) -> None:
    """Eight threads over a small room: every answer is the one for its key."""
    snapshot = app_over(write_data(tmp_path / "data")).extensions["store"].snapshot
    recent = Recent(room=100)
    wrong: list[bytes] = []

    def ask() -> None:
        for number in range(2000):
            expected = b"%d" % (number % 37) * 9
            body = recent.get(snapshot, expected, partial(Prepared, expected, 0)).body
            if body != expected:
                wrong.append(body)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
