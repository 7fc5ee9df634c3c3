"""Directories that one command fills: marked as its own, locked while it writes, always whole.

The mark is a file that bears the command's name. A directory without it that holds anything
belongs to somebody else, whatever it looks like, and is left alone. The lock is on the mark.
What readers see is one folder of ``trees``, to which the link ``current`` leads: the next is made
beside it and takes its place in one step, and nothing older is kept.

Digests tell whether such a tree is whole, and whether what it was made from is as it was.
"""

import os
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path

from store.disk import (
    atomic_write,
    give,
    locked,
    make_folder,
    read_regular,
    real_path,
    sync_directory,
)
from store.records import FOLDERS, SINGLE

MARK = ".written-by-flask-{}"
"""The name of the mark of a command."""
CURRENT = "current"
_TREES, _DRAFT, _BASIS = "trees", ".new", ".basis"
_TREE = re.compile(r"[0-9a-f]{16}|\.new")
"""The names of trees; nothing else among them is removed."""

_OF_DATA = (*FOLDERS, "history", "proof", "batches", "schemas", ".locks", "dataset")
"""The folders of a data directory; the last is that of the command of this name."""


class DirectoryError(Exception):
    """A directory that must not be written; the sentence says why."""


class Directory:
    """A directory that :func:`owned` holds: the tree that readers see, and the next."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._trees = home / _TREES

    @property
    def current(self) -> Path:
        """The folder that readers see, if there is one."""
        return self._home / CURRENT

    @property
    def basis(self) -> str:
        """The digest of all that the current tree was made from, empty if nobody knows it."""
        with suppress(OSError, ValueError):
            name, basis = (self._home / _BASIS).read_text().split()
            return basis if name == self.current.readlink().name else ""
        return ""

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield an empty folder for the next tree; it is gone at the end unless published."""
        folder = self._trees / _DRAFT
        make_folder(self._trees, 0o777)
        folder.mkdir()
        try:
            yield folder
        finally:
            self.sweep()

    def publish(self, basis: str) -> None:
        """Let the draft take the current tree's place; remove what was there before.

        Raises:
            OSError: it could not be written; readers see what they saw.
        """
        draft, tree = self._trees / _DRAFT, self._trees / secrets.token_hex(8)
        _sync(draft)
        draft.rename(tree)  # a name of its own, so that who reads the old one is not disturbed
        sync_directory(self._trees)
        atomic_write(self._home / _BASIS, f"{tree.name} {basis}\n".encode())
        link = self._home / f".{CURRENT}"
        link.unlink(missing_ok=True)
        link.symlink_to(tree.relative_to(self._home))
        link.replace(self.current)  # the one step that readers see
        sync_directory(self._home)

    def sweep(self) -> None:
        """Remove all trees but the current one, such as what a killed command left."""
        if not self._trees.is_dir():
            return
        current = self.current.resolve()
        for path in self._trees.iterdir():
            # By its name: what somebody put beside our trees stays.
            if _TREE.fullmatch(path.name) and path.resolve() != current:
                shutil.rmtree(path)


@contextmanager
def owned(home: Path, command: str, data: Path) -> Iterator[Directory]:
    """Hold a command's own directory inside the block; make it if it is not there.

    What is made belongs to the owner of what holds it. ``data`` is the data directory.

    Raises:
        DirectoryError: it is neither empty nor marked as the command's own, is of a folder that the
            data directory has for something else, or another process holds it.
        OSError: it cannot be written.
    """
    path = Path(os.path.realpath(home))
    for name in _OF_DATA:
        if name != command and path.is_relative_to(os.path.realpath(data / name)):
            raise DirectoryError(
                f"{home} belongs to {name}/ of the data directory; name another directory"
            )
    if os.path.lexists(home) and not home.is_dir():
        raise DirectoryError(f"{home} is not a directory; name a new or an empty one")
    for folder in (*reversed(home.parents), home):
        make_folder(folder, 0o777)  # less the umask: web servers read it
    mark, current = home / MARK.format(command), home / CURRENT
    names = [] if mark.is_file() else sorted(path.name for path in home.iterdir())
    if names or (current.exists() and not current.is_symlink()):
        raise DirectoryError(
            f"{home} holds {names[0] if names else CURRENT}, which `flask {command}` did not "
            "write: nothing there was touched; name a new or an empty directory"
        )
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(mark, wait=False))
        except BlockingIOError:
            raise DirectoryError(
                f"another process is writing {home}; try again when it has ended"
            ) from None
        directory = Directory(home)
        directory.sweep()
        yield directory


def _sync(tree: Path) -> None:
    """Let what is new in a tree outlive a power cut, and belong to the owner of what holds it.

    That is folders, and files that are no hard links.
    """
    for folder, _, names in os.walk(tree):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in names:
                if os.stat(name, dir_fd=handle).st_nlink == 1:
                    _sync_file(name, handle, tree.parent)
            give(handle, tree.parent)
            os.fsync(handle)
        finally:
            os.close(handle)


def _sync_file(name: str, folder: int, like: Path) -> None:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        give(file, like)
        os.fsync(file)
    finally:
        os.close(file)


SUMS = "SHA256SUMS"
"""The file of a tree that has the digests of all others, as ``sha256sum --check`` reads it."""
CODE = ("store", "templates")
"""The folders of the checkout that answers follow from."""


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex."""
    return sha256(data).hexdigest()


def sums(digests: Mapping[str, str]) -> bytes:
    """Return the digests of files, sorted by path, as SHA256SUMS has them."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items())).encode()


def digests_in(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder but SHA256SUMS, by its path."""
    start = len(str(folder)) + 1
    paths = (path for path in _below(folder) if path[start:] != SUMS)
    return {path[start:]: _digest(Path(path), folder) for path in paths}


def is_whole(folder: Path, digests: Mapping[str, str] | None = None) -> bool:
    """Return whether a folder holds what its SHA256SUMS lists, and nothing else.

    ``digests`` are those of its files, if they are known already.
    """
    try:
        listed = (folder / SUMS).read_bytes()
    except OSError:
        return False
    return listed == sums(digests_in(folder) if digests is None else digests)


def basis_of(checkout: Path, data: Path, *settings: object) -> str:
    """Return the digest of all that answers follow from: code, packages, data files, settings."""
    made_by = (sys.version, zlib.ZLIB_RUNTIME_VERSION, _packages(), settings)
    total = sha256(repr(made_by).encode())
    for path in _code(checkout):  # a module may be a link to anywhere, and is run all the same
        target = path.resolve()
        total.update(f"{path} {_digest(target, target.parent)}\n".encode())
    for path in _data(data):
        total.update(f"{path} {_digest(path, data)}\n".encode())
    return total.hexdigest()


@cache  # a process goes on with the packages that it began with, and to read them takes 0.1 s
def _packages() -> list[str]:
    return sorted(f"{package.name} {package.version}" for package in distributions())


def _code(checkout: Path) -> Iterator[Path]:
    yield checkout / "app.py"
    for folder in CODE:
        yield from (Path(path) for path in sorted(_below(checkout / folder)) if ".pyc" not in path)


def _data(data: Path) -> Iterator[Path]:
    yield from (data / name for name in SINGLE)
    for folder in (*FOLDERS, "history", "proof"):
        yield from sorted((data / folder).glob("*.json*"))


def _below(folder: Path) -> Iterator[str]:
    for name, _, files in os.walk(folder):
        yield from (os.path.join(name, file) for file in files)  # noqa: PTH118 - of 80,000 paths


def _digest(path: Path, home: Path) -> str:
    """Return the digest of a file below ``home``, or why it has none."""
    try:
        return digest(read_regular(real_path(path, home)))
    except OSError as error:
        return str(error)
