"""What gunicorn's workers tune: requests come before looks at files; answers go in one piece."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import servers

from store import tuning


class Store:
    """Stands in for a store whose snapshot was made at a time."""

    made_at = 1.0


def interpreter() -> tuple[float, tuple[int, int, int]]:
    """What is tuned."""
    return sys.getswitchinterval(), gc.get_threshold()


def test_a_look_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile requests get the interpreter soon and no full collection starts."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    usual, store = interpreter(), Store()
    background: Any = tuning.Background()
    with background(store):
        interval, thresholds = interpreter()
    assert interval <= 0.001
    assert thresholds[:2] == usual[1][:2]
    assert thresholds[2] > 1000 * usual[1][2]
    assert interpreter() == usual


def test_a_look_that_fails_leaves_the_interpreter_as_it_was() -> None:
    """Else one fault would hold back full collections for good."""
    usual, background = interpreter(), tuning.Background()
    look: Any = background(Store())  # type: ignore[arg-type]
    with pytest.raises(KeyError), look:
        raise KeyError
    assert interpreter() == usual


def test_what_a_look_made_is_frozen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that changed nothing freezes nothing: what a request holds is not there to stay."""
    frozen: list[float] = []
    store = Store()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(store.made_at))
    background: Any = tuning.Background()
    for made_at in (1.0, 1.0, 2.0, 2.0):
        store.made_at = made_at
        with background(store):
            pass
    assert frozen == [1.0, 2.0]


def test_a_look_that_made_something_leaves_no_free_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the snapshot before took is the system's again, and an idle look costs nothing."""
    trimmed: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(tuning, "trim", trimmed.append)
    background: Any = tuning.Background()
    for _ in range(2):
        with background(Store()):
            pass
    assert trimmed == [0]


class Cycle:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


def test_no_garbage_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody holds when a look ends is freed; frozen an old snapshot would stay."""
    alive: list[object] = []
    cycle = Cycle()
    garbage = weakref.ref(cycle)
    monkeypatch.setattr(gc, "freeze", lambda: alive.append(garbage()))
    background: Any = tuning.Background()
    with background(Store()):
        del cycle
    assert alive == [None]


IMPORTED = """
import gc, sys
before = sys.getswitchinterval(), gc.get_threshold(), gc.isenabled()
import app, store.cli, store.memory, store.watcher
assert before == (sys.getswitchinterval(), gc.get_threshold(), gc.isenabled())
assert not gc.get_freeze_count()
assert "store.tuning" not in sys.modules
"""


def test_only_gunicorn_is_tuned() -> None:
    """``flask run`` and the commands leave the interpreter as it is."""
    subprocess.run([sys.executable, "-c", IMPORTED], cwd=servers.ROOT, check=True)


def test_a_worker_of_gunicorn_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data is spared the collector, which runs again, and its looks let requests go first."""
    frozen: list[bool] = []
    around: list[object] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    settings = SimpleNamespace(poll_enabled=False)
    watcher = SimpleNamespace(ensure_running=around.append)
    extensions = {"watcher": watcher, "settings": settings}
    app = SimpleNamespace(extensions=extensions, register_error_handler=lambda *_: None)
    monkeypatch.setattr("store.gunicorn.monitoring.begin", lambda _: None)
    tuning.loading()
    assert not gc.isenabled()
    importlib.import_module("store.gunicorn").post_worker_init(SimpleNamespace(wsgi=app))
    assert gc.isenabled()
    assert frozen == [True]
    assert isinstance(around[0], tuning.Background)


@pytest.mark.parametrize("name", tuning.REPLACED)
def test_what_is_replaced_in_a_library_is_still_there(name: str) -> None:
    """The next version of the library may call it otherwise; then this fails, not production."""
    importlib.import_module("store.gunicorn")
    module, _, attribute = name.rpartition(".")
    replaced = getattr(importlib.import_module(module), attribute)
    assert replaced.__module__ == "store.tuning"
    assert replaced.__base__.__module__ == module
    assert replaced.__base__.__name__ == attribute


def test_an_answer_is_one_piece() -> None:
    """Head and first bytes of the body are sent by one call, whatever follows by one more."""
    sent: list[bytes] = []
    request = SimpleNamespace(version=(1, 1), method="GET", should_close=lambda: False)
    answer = tuning.Whole(request, SimpleNamespace(sendall=sent.append), SimpleNamespace())
    answer.start_response("200 OK", [("Content-Length", "4")])
    answer.write(b"ab")
    answer.write(b"cd")
    head, _, body = sent[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (body, sent[1:]) == (b"ab", [b"cd"])
