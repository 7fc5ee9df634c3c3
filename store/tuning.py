"""How a worker of gunicorn tunes the interpreter, and gunicorn itself; nobody else is tuned.

:mod:`store.gunicorn` turns all of this on; ``flask run`` and the commands leave the interpreter as
it is. Each figure is what leaving that one thing out costs: shipped data, two busy cores, variants
in turn, medians. "Beside edits" is a reader who asks every 5 ms while ``site.json`` is saved four
times, each of which rebuilds everything.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gunicorn.http import wsgi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.memory import Store

REPLACED = ("gunicorn.http.wsgi.Response",)
"""What is replaced in a library, since no hook of it does the same: see :class:`Whole`."""

SWITCH_INTERVAL = 0.001
"""Seconds for which a look may keep the interpreter from a request (Python's default: 0.005).

Without it the slowest hundredth of requests beside edits takes 40 ms instead of 22.
"""

NEVER = 1_000_000
"""Collections of younger objects between two full ones: so many do not happen during a look.

Without it the slowest request beside edits takes 112 ms instead of 69: it waits for a full
collection of what is being built.
"""

trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)
"""Gives the pages between kept bodies that are free back to the system; only glibc keeps them.

Without it 2,000 polls with a page and a search after each leave 35 MB more behind. It takes 4 ms,
without the interpreter's lock (``python tests/cache_growth.py DIRECTORY 2000``).
"""


def loading() -> None:
    """Let no collector run while the data is loaded: it would add 14 % to the CPU of a start."""
    gc.disable()


def loaded() -> None:
    """Spare the collector what was loaded: it is there to stay; see :class:`Background`."""
    gc.freeze()
    gc.enable()


class Background:
    """Surrounds each look of the watcher so that requests hardly notice it.

    What a look has made is frozen too: a snapshot has no cycles, and is freed when its last reader
    lets go. Without freezing, a full collection stops all threads for 540 to 990 ms; with it, one
    takes 8 ms after a few polls and 40 ms after everything was rebuilt.
    """

    def __init__(self) -> None:
        self._interval = sys.getswitchinterval()
        self._thresholds = gc.get_threshold()
        self._frozen_at: float | None = None

    @contextmanager
    def __call__(self, store: Store) -> Iterator[None]:
        """Surround one look at the files of a store."""
        sys.setswitchinterval(min(SWITCH_INTERVAL, self._interval))
        gc.set_threshold(*self._thresholds[:2], NEVER)
        try:
            yield
            if store.made_at != self._frozen_at:
                gc.collect()  # else what is garbage now, old snapshots with it, would stay for good
                gc.freeze()
                trim(0)
                self._frozen_at = store.made_at
        finally:
            gc.set_threshold(*self._thresholds)
            sys.setswitchinterval(self._interval)


class Whole(wsgi.Response):  # type: ignore[misc] # gunicorn has no types
    """Sends the head of an answer with its body, in one call: two calls cost 6 % more CPU.

    So a worker that is killed has sent both or neither: for an answer that has not begun, a proxy
    asks another worker; it cannot ask for the rest of one.
    """

    sock: Any

    def write(self, arg: bytes) -> None:
        """Send a piece of the body, after the head if that is still to go, in one call."""
        sock, pieces = self.sock, _Pieces()
        self.sock = pieces
        try:
            super().write(arg)
        finally:
            self.sock = sock
        sock.sendall(b"".join(pieces))


class _Pieces(list[bytes]):
    """Stands in for a socket and keeps what is sent."""

    sendall = list.append


def send_in_one_piece() -> None:
    """Let gunicorn's workers answer with :class:`Whole`; no setting names another class."""
    wsgi.Response = Whole
