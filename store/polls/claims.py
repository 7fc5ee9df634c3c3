"""Claims on pairs of category and assistant, so that no two pollers ask the same one at once.

A claim is a lock on a small file, held by a process until it releases it or dies.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 0.1
"""Seconds for which a claim is tried: longer than :meth:`Claims.held` takes to look at one."""


class Claims:
    """The claims on one data directory's pairs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def claim(self, slug: str, model: str) -> Iterator[bool]:
        """Hold a pair's claim inside the block; yields whether it could be had."""
        self._directory.mkdir(exist_ok=True)
        lock = FileLock(self._directory / f"{slug}{_suffix(model)}")
        try:
            lock.acquire(timeout=PATIENCE, poll_interval=PATIENCE / 5)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def held(self, model: str) -> int:
        """How many of an assistant's pairs are being asked now, by any process."""
        return sum(is_held(path) for path in self._directory.glob(f"*{_suffix(model)}"))


def is_held(path: Path) -> bool:
    """Whether some process holds the lock on a file; looks for an instant only."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def _suffix(model: str) -> str:
    return f".{hashlib.sha256(model.encode()).hexdigest()[:8]}.lock"
