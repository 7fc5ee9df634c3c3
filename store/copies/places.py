"""Where copies are kept: a folder, or a bucket of S3, Google's or Azure's object storage.

Both hold objects by name, written whole. One object can be replaced on condition that it is still
what was read, so that of two writers one is refused. Only this module knows obstore.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from store.disk import atomic_write, locked, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

AT_ONCE = 32
"""Objects on their way at once: 9,000 take 3.5 s; with more, servers begin to refuse some."""
CLOUDS = ("s3", "gs", "az")
NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
"""What Amazon and Google, and Azure, say when there is no object because there is no bucket."""
REASONS = (
    (r"//169\.254\.|//metadata\.|Account must be specified", "its credentials are not set"),
    (r"Unable to open [^\n]+", r"\g<0>"),
    (r"<Code>(\w+)</Code>", r"\1"),
    (r"\bstatus(?: code)?: ([45]\d\d[ \w]*)", r"\1"),
    (r"error sending request", "it cannot be reached"),
    (r"builder error", "http:// needs AWS_ALLOW_HTTP=true (for Azure AZURE_ALLOW_HTTP)"),
    (r"HTTP error: ([\w ]+)", r"\1"),
)
"""What obstore's texts mean, the first that fits; without keys it asks a machine of that cloud."""


class PlaceError(Exception):
    """A place cannot be used; the sentence says why."""


class Replaced(PlaceError):
    """An object is no longer what was read: somebody else wrote it meanwhile."""


class Read(NamedTuple):
    """An object's bytes, and a tag of this version of it."""

    data: bytes
    tag: str


class Item(NamedTuple):
    """An object to be written: its name, its bytes, its HTTP headers."""

    name: str
    data: bytes
    headers: Mapping[str, str] = {}


class Folder:
    """Objects as files below a folder of this machine; their names may have slashes."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def read(self, name: str) -> Read | None:
        """An object, or ``None`` if there is none."""
        try:
            data = read_regular(self._home / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise PlaceError(f"{self._home / name} cannot be read: {error.strerror}") from None
        return Read(data, sha256(data).hexdigest())

    def tag(self, name: str) -> str | None:
        """The tag of an object's version, or ``None`` if there is none."""
        found = self.read(name)
        return found.tag if found else None

    def write(self, items: Iterable[Item], done: Callable[[], None] = lambda: None) -> None:
        """Write objects in any order; ``done`` is called after each.

        Each is made when its turn comes: a whole tree would not fit in memory.
        """
        for item in items:
            path = self._home / item.name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(path, item.data, 0o640)
            except OSError as error:
                raise PlaceError(f"{path} cannot be written: {error.strerror}") from None
            done()

    def replace(self, item: Item, tag: str | None) -> str:
        """Write one object if its version still has this tag, or if there is none; its new tag.

        Raises:
            Replaced: it has another.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        with locked(self._home.resolve()):
            if self.tag(item.name) != tag:
                raise Replaced(f"{self._home / item.name} was written by somebody else meanwhile")
            self.write([item])
        return sha256(item.data).hexdigest()

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects, be they there or not."""
        for name in names:
            (self._home / name).unlink(missing_ok=True)


class Bucket:
    """Objects of a cloud, many on their way at once; keys and endpoint come from the environment.

    store/cli/README.md (Backup and restore) says which variables each cloud reads.
    """

    def __init__(self, address: str) -> None:
        try:
            import obstore  # noqa: PLC0415 - optional
            import obstore.store  # noqa: PLC0415
        except ImportError:
            raise PlaceError("object storage needs: pip install '.[cloud]'") from None
        self._obstore: Any = obstore
        self._address = address
        # Google's conditions name generations, the others' ETags
        self._condition = "version" if address.startswith("gs:") else "e_tag"
        with self._told():
            self._bucket = obstore.store.from_url(address)

    def read(self, name: str) -> Read | None:
        """See :class:`Folder`."""
        with self._told():
            try:
                found = self._obstore.get(self._bucket, name)
                return Read(bytes(found.bytes()), str(found.meta[self._condition]))
            except FileNotFoundError as error:
                if _reason(error) in NO_BUCKET:
                    raise
                return None

    def tag(self, name: str) -> str | None:
        """See :class:`Folder`."""
        with self._told():
            try:
                return str(self._obstore.head(self._bucket, name)[self._condition])
            except FileNotFoundError:
                return None

    def write(self, items: Iterable[Item], done: Callable[[], None] = lambda: None) -> None:
        """See :class:`Folder`."""
        with self._told():
            asyncio.run(self._write(iter(items), done))

    def replace(self, item: Item, tag: str | None) -> str:
        """See :class:`Folder`."""
        errors = self._obstore.exceptions
        gone = (FileNotFoundError,) if tag else ()  # where nothing was, the bucket is missing
        changed = (errors.AlreadyExistsError, errors.PreconditionError, *gone)
        mode = {self._condition: tag} if tag else "create"
        with self._told():
            try:
                put = self._obstore.put(
                    self._bucket, item.name, item.data, attributes=dict(item.headers), mode=mode
                )
            except changed:
                why = f"{self._address}/{item.name} was written by somebody else meanwhile"
                raise Replaced(why) from None
            return str(put[self._condition])

    def remove(self, names: Iterable[str]) -> None:
        """See :class:`Folder`."""
        listed = list(names)
        with self._told():
            try:
                self._obstore.delete(self._bucket, listed)
            except FileNotFoundError:  # but for Amazon, clouds stop at the first that is not there
                for name in listed:
                    with suppress(FileNotFoundError):
                        self._obstore.delete(self._bucket, name)

    async def _write(self, items: Iterator[Item], done: Callable[[], None]) -> None:
        async def work() -> None:
            for item in items:  # shared: each worker makes the next
                await self._obstore.put_async(
                    self._bucket, item.name, item.data, attributes=dict(item.headers)
                )
                done()

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the library raises into a sentence without keys or signatures."""
        try:
            yield
        except* (self._obstore.exceptions.BaseError, ValueError, OSError) as group:
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            if isinstance(error, OSError) and error.errno is not None:
                raise error from None  # a file of this machine
            raise PlaceError(f"{self._address} cannot be used: {_reason(error)}") from None


Place = Folder | Bucket


def place(where: str) -> Place:
    """The place that a command was given: a path, or an address such as ``s3://bucket/prefix``.

    Raises:
        PlaceError: it is an address that cannot be used.
    """
    scheme, found, rest = where.partition("://")
    if not found:
        return Folder(Path(where))
    if scheme not in CLOUDS or not re.fullmatch(r"[\w.-]+(/[\w.~-]+)*/?", rest, re.ASCII):
        raise PlaceError(f"{scheme}:// is no place that is known, or its name is none; "
                         "use a folder, s3://bucket/prefix, gs://… or az://…")  # fmt: skip
    return Bucket(where)


def is_cloud(where: str) -> bool:
    """Whether a command was given an address, not a path."""
    return "://" in where


def _reason(error: BaseException) -> str:
    """What the other end said, or that there is none; the whole text may hold a signature."""
    for pattern, meaning in REASONS:
        if found := re.search(pattern, str(error)):
            return found.expand(meaning).strip()
    return type(error).__name__.removesuffix("Error")
