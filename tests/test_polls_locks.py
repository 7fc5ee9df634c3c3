"""Locks between pollers: one at a time, in turn, and free when their holder is gone."""

import threading
from pathlib import Path

from processes import until

from store.polls.locks import path_of, turn


def test_names_of_any_kind_have_a_file(tmp_path: Path) -> None:
    """A name may hold what no file's may; two names have two files."""
    assert path_of(tmp_path, "A/B\n").parent == tmp_path
    assert path_of(tmp_path, "A") != path_of(tmp_path, "B")


def test_who_waits_has_the_next_turn(tmp_path: Path) -> None:
    """Who lets go and wants the next turn at once stands behind."""
    stop = threading.Event()
    order: list[str] = []
    waiting = threading.Event()

    def take() -> None:
        with turn(tmp_path, "A", stop, waiting.set):
            order.append("waited")

    with turn(tmp_path, "A", stop):
        thread = threading.Thread(target=take)
        thread.start()
        assert waiting.wait(60)
    with turn(tmp_path, "A", stop):
        order.append("again")
    thread.join()
    assert order == ["waited", "again"]


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    """Then there is no turn."""
    stop = threading.Event()
    turns: list[bool] = []

    def take() -> None:
        with turn(tmp_path, "A", stop) as is_held:
            turns.append(is_held)

    with turn(tmp_path, "A", threading.Event()):
        thread = threading.Thread(target=take)
        thread.start()
        stop.set()
        until(lambda: turns)
    thread.join()
    assert turns == [False]
