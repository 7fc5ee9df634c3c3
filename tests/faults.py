"""A machine that fails on purpose: operating-system calls with faults, and a disk that loses power.

Both stand in for the ``os`` module that ``store.history`` uses and pass on to the real one what
they do not change, so that real files are written.
"""

import errno
import os
import random
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")

SHORT = -1
"""As an error number: no error, but only half of what was to be written is."""
KILL = -2
"""As an error number: the call, half done if it writes, is the last of its process."""

FAULTS = {
    "open": (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES),
    "write": (errno.ENOSPC, errno.EIO, errno.EFBIG, SHORT),
    "fsync": (errno.EIO, errno.ENOSPC),
    "ftruncate": (errno.EIO,),
    "pread": (errno.EIO,),
}
"""Which calls the history makes that can fail, and how."""


class FailingCalls:
    """The ``os`` module whose nth call of one name fails; ``also`` names calls that always do."""

    def __init__(
        self, name: str = "", nth: int = 0, error: int = 0, also: tuple[str, ...] = ()
    ) -> None:
        self._name, self._nth, self._error, self._also = name, nth, error, also
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        """A function of ``os``, counted and made to fail where that was asked for."""
        real = getattr(os, name)
        if name not in FAULTS:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            if name in self._also:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            if name != self._name or self.calls[name] != self._nth:
                return real(*arguments, **options)
            if name == "write" and self._error in (SHORT, KILL):
                handle, data = arguments
                count = os.write(handle, data[: len(data) // 2])
            if self._error == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            if self._error == SHORT:
                return count
            raise OSError(self._error, os.strerror(self._error))

        return call


def replace_os(monkeypatch: pytest.MonkeyPatch, disk: object) -> None:
    """Let history do all it does with files through ``disk`` in place of the ``os`` module."""
    for module in ("disk", "history"):
        monkeypatch.setattr(f"store.{module}.os", disk)


Disk = TypeVar("Disk")


@contextmanager
def on(disk: Disk) -> Iterator[Disk]:
    """Let history use ``disk`` in place of the ``os`` module inside the block."""
    with pytest.MonkeyPatch.context() as patched:
        replace_os(patched, disk)
        yield disk


class UnreadableFiles:
    """The ``os`` module on a disk where files of some names cannot be read.

    ``call`` is what fails: ``open`` for reading, or ``pread``.
    """

    def __init__(self, *names: str, call: str = "pread", error: int = errno.EIO) -> None:
        self._names, self._call, self._error = set(names), call, error
        self._bad: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        """A function of ``os``."""
        return getattr(os, name)

    def open(self, path: Path, flags: int, *mode: int) -> int:
        """Open a file, unless it cannot be opened for reading."""
        is_bad = path.name in self._names and flags & os.O_ACCMODE == os.O_RDONLY
        if is_bad and self._call == "open":
            raise OSError(self._error, os.strerror(self._error))
        handle = os.open(path, flags, *mode)
        (self._bad.add if is_bad else self._bad.discard)(handle)
        return handle

    def pread(self, handle: int, size: int, start: int) -> bytes:
        """Read a file, unless it cannot be."""
        if handle in self._bad:
            raise OSError(self._error, os.strerror(self._error))
        return os.pread(handle, size, start)


@contextmanager
def failing_names(
    nth: int, error: int, names: tuple[str, ...] = ("rename", "replace", "link", "symlink")
) -> Iterator[Counter[str]]:
    """Let the nth call that gives a file a name fail; yields how often each was called.

    What servers keep is not counted: those of earlier tests may do that meanwhile.
    """
    calls: Counter[str] = Counter()
    real = {name: getattr(os, name) for name in names}

    def failing(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if "/.exported" not in str(arguments[-1]):
                calls[name] += 1
                if calls.total() == nth:
                    raise OSError(error, os.strerror(error))
            return real[name](*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name in real:
            patched.setattr(os, name, failing(name))
        yield calls


class VolatileDisk:
    """The ``os`` module over a disk that keeps through a power cut only what was fsynced.

    ``honest=False`` is the control: an fsync that does nothing.
    """

    def __init__(self, directory: Path, *, honest: bool = True) -> None:
        self._directory = directory
        self._honest = honest
        self._contents: dict[int, bytes] = {}
        self._names: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        """A function of ``os``."""
        return getattr(os, name)

    def fsync(self, handle: int) -> None:
        """Keep a file's bytes, or a directory's names, through the next power cut."""
        if not self._honest:
            return
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode):
            self._contents[found.st_ino] = os.pread(handle, found.st_size, 0)
        elif os.path.samestat(found, self._directory.stat()):
            self._names = {p.name: p.stat().st_ino for p in self._directory.iterdir()}

    def cut_power(self, chance: random.Random) -> None:
        """Leave each file as a disk may: what was fsynced, and any part of what was not."""
        for path in list(self._directory.iterdir()):
            inode = path.stat().st_ino
            kept, written = self._contents.get(inode, b""), path.read_bytes()
            if self._names.get(path.name) != inode and chance.random() < 0.5:
                path.unlink()
                continue
            path.write_bytes(_after_power_cut(kept, written, chance))


def _after_power_cut(kept: bytes, written: bytes, chance: random.Random) -> bytes:
    """The fsynced bytes, then a part of the unsynced ones, zeros or garbage in their place."""
    if not written.startswith(kept):
        return chance.choice([kept, written])
    tail = written[len(kept) :]
    cut = chance.randint(0, len(tail))
    spoiled: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: bytes(len(tail) - cut),
        lambda: chance.randbytes(len(tail) - cut),
    ]
    return kept + tail[:cut] + chance.choice(spoiled)()
