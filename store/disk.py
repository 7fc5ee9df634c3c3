"""Files on disk: opened only if they are regular, put in place whole so that none is half read."""

import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile, mkstemp

ROOM = 1 << 16
"""Bytes of room without which a disk counts as full: more than what a poll writes."""

Signature = tuple[int, int, int, int]
"""Modification time in ns, size in bytes, inode, time of the last change of any kind in ns."""

MISSING: Signature = (0, 0, 0, 0)
"""The signature of a file that is not there."""


def signature_of(status: os.stat_result) -> Signature:
    """Return what differs when a file was changed or replaced."""
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


def signature_at(path: Path) -> Signature | None:
    """Return the signature of a file; ``None`` if there is none, or nobody may look."""
    with suppress(OSError):
        return signature_of(path.lstat())
    return None


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a regular file for reading.

    Raises:
        OSError: it cannot be opened, is a link, or (``EINVAL``) is not a regular file.
    """
    if path.is_symlink():  # os.open would call it too many levels of links
        reason = "it is a symbolic link, which is not followed; put the file itself here"
        raise OSError(errno.ELOOP, reason, path)
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would block
    try:
        check_regular(handle, path)
        yield handle
    finally:
        os.close(handle)


def check_no_link(folder: Path) -> None:
    """Raise ``OSError`` if a folder is a link: it may lead anywhere, and no backup follows it."""
    if folder.is_symlink():
        why = "it is a symbolic link, which is not followed; mount its disk there instead"
        raise OSError(errno.ELOOP, why, folder)


def read_regular(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: see :func:`opened`.
    """
    with opened(path) as handle, os.fdopen(handle, "rb", closefd=False) as file:
        return file.read()


@contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock (flock) of a folder, or of a file, which is made if it is not there.

    Nobody else, thread or process, can hold it meanwhile; if ``shared``, others may share it, but
    not hold it alone. A file then belongs to the owner of its folder.

    Raises:
        BlockingIOError: another one has it, and nobody was to ``wait``.
        OSError: it cannot be opened, or is a link.
    """
    kind = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT  # NFS locks what may be written
    handle = os.open(path, kind | os.O_NOFOLLOW, 0o640)
    try:
        if kind & os.O_CREAT:  # root may have made it
            give(handle, path.parent)
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(handle, operation if wait else operation | fcntl.LOCK_NB)
        yield
    finally:
        # closing alone is not enough while a child that was just forked has a copy
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def real_path(path: Path, directory: Path) -> Path:
    """Return where a file is, be it by a link within the directory, as containers mount files.

    Raises:
        OSError: it is a link that leads elsewhere.
    """
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(os.path.realpath(directory)):
        raise OSError(errno.ELOOP, "it leads out of the data directory", path)
    return target


def is_in_place(path: Path, handle: int) -> bool:
    """Return whether an open file is still the one of that name.

    Raises:
        OSError: it is not a regular file, or nobody may look.
    """
    check_regular(handle, path)
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def check_regular(handle: int, path: Path) -> None:
    """Raise ``OSError`` unless an open file is a regular one."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def atomic_write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put bytes, safe on the disk, in a file's place in one step.

    The file keeps its mode, and its owner where we may give it away; a new one has ``mode``, and
    the folder's owner.

    Raises:
        OSError: they could not be written; what was there is as it was.
    """
    is_there = path.is_file() and not path.is_symlink()  # a link is replaced, not followed
    handle, name = mkstemp(".draft", f".{path.name}.", path.parent)
    draft = Path(name)
    try:
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, path.stat().st_mode & 0o777 if is_there else mode)
                give(handle, path if is_there else path.parent)
                file.write(data)
                file.flush()
                os.fsync(handle)
        except OSError as error:
            error.filename = error.filename or str(path)  # a full disk names none
            raise
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_durably(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put bytes in a file's place so that they outlive a power cut; its folder is made if need be.

    Raises:
        OSError: they could not be written.
    """
    make_folder(path.parent)
    sync_directory(path.parent.parent)
    atomic_write(path, data, mode)
    sync_directory(path.parent)


def give(handle: int, like: Path) -> None:
    """Let an open file or folder belong to the owner of ``like``, where we may give it away."""
    owner = like.stat()
    with suppress(OSError):  # also of an owner whom a container does not know
        os.fchown(handle, owner.st_uid, owner.st_gid)


def is_full(folder: Path) -> bool:
    """Return whether a folder's disk has less than ``ROOM`` bytes for who is not root."""
    return disk_usage(folder).free < ROOM


def check_room(folder: Path) -> None:
    """Raise ``OSError`` unless a folder can take ``ROOM`` bytes more; they are gone at once."""
    with TemporaryFile(dir=folder, buffering=0) as file:
        if file.write(bytes(ROOM)) < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)


def make_folder(path: Path, mode: int = 0o750) -> None:
    """Make a folder, if it is not there, that belongs to the owner of the one that holds it.

    Raises:
        OSError: it could not be made.
    """
    if path.is_dir():
        return
    path.mkdir(mode, exist_ok=True)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        give(handle, path.parent)
    finally:
        os.close(handle)


def set_aside(path: Path, day: str) -> None:
    """Keep a damaged file, if it is there, under the first free name beside it."""
    names = (path.with_suffix(f"{path.suffix}.{day}-{n}.damaged") for n in itertools.count(1))
    with suppress(FileNotFoundError):
        path.rename(next(name for name in names if not name.exists()))


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable.

    Raises:
        OSError: the disk does not say that they are.
    """
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_lines(path: Path, data: bytes) -> None:
    """Add whole lines to a file, durably; what a crash left of a line there goes first.

    A new one has the folder's owner. The caller keeps others from writing. One write and one fsync.

    Raises:
        OSError: they could not be written; what was there is as it was.
    """
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o640)
    try:
        check_regular(handle, path)
        whole = os.pread(handle, os.fstat(handle).st_size, 0).rpartition(b"\n")[0].rstrip(b"\n")
        end = len(whole) + bool(whole)
        if not end:  # root may have made it
            give(handle, path.parent)
        os.ftruncate(handle, end)
        if os.write(handle, data) < len(data):  # a disk that is nearly full takes a part
            os.ftruncate(handle, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_directory(path.parent)
