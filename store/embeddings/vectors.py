"""The vectors of what is said of categories: ``DATA_DIR/.meaning/vectors``, by hashes of texts.

Nothing in it is needed: it can be deleted, and `flask meaning` writes it again.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from store.disk import atomic_write, locked, make_folder, read_regular, signature_at, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from store.disk import Signature
    from store.embeddings.model import Model

FOLDER = ".meaning"
VECTORS = f"{FOLDER}/vectors"
KEY = 16
"""Bytes of a hash: of a text, of the model and of the file."""
STEP = 2048
"""Texts after which the file is written: a kill loses 8 s of work, and all steps write 190 MB."""
BATCH = 64
"""Texts that the model takes at once; those of a step are batched by length."""

Vectors = dict[bytes, bytes]
"""The vector of each text, by its key."""


class VectorsError(Exception):
    """The file cannot be used; the sentence says why, and what to do."""


def texts_of(titles: Sequence[str], situations: Sequence[str]) -> list[str]:
    """What is said of a category: its title without "Best", its aliases, its situations."""
    title = titles[0]
    bare = title[5:] if title[:5].casefold() == "best " else title
    return [bare, *titles[1:], *situations]


def key_of(text: str) -> bytes:
    """What a text's vector is kept under."""
    return blake2b(text.encode(), digest_size=KEY).digest()


class VectorFile:
    """The vectors in one data directory.

    A line with the model's digest, their number and width in bytes; the keys; the vectors; the
    hash of all that.
    """

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER
        self._path = directory / VECTORS

    def signature(self) -> Signature | None:
        """What differs when the file was changed or replaced; ``None`` if there is none."""
        return signature_at(self._path)

    def read(self, digest: str) -> Vectors:
        """The vectors that the model with this digest made.

        Raises:
            VectorsError: the file is damaged, of another model, or cannot be read.
        """
        try:
            made_by, found = _decoded(read_regular(self._path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise VectorsError(f"{VECTORS} cannot be read: {error.strerror}") from error
        except (ValueError, IndexError) as error:
            todo = "it is left out until `flask meaning` writes it anew"
            raise VectorsError(f"{VECTORS} is damaged; {todo}") from error
        if made_by != digest:
            raise VectorsError(f"{VECTORS} was made by another model; run `flask meaning`")
        return found

    def write(self, digest: str, vectors: Mapping[bytes, bytes]) -> None:
        """Put these vectors, all of one length, in the file's place.

        Raises:
            OSError: they could not be written; what was there is as it was.
        """
        width = len(next(iter(vectors.values()), b""))
        head = f"{digest} {len(vectors)} {width}\n".encode()
        data = b"".join((head, *vectors, *vectors.values()))
        atomic_write(self._path, data + blake2b(data, digest_size=KEY).digest(), 0o640)
        sync_directory(self._home)

    def locked(self) -> AbstractContextManager[int]:
        """The folder, made if need be, for one writer that does not wait for another.

        Raises:
            OSError: see :func:`store.disk.locked`.
        """
        make_folder(self._home)
        return locked(self._home, wait=False)


def encode(
    file: VectorFile,
    digest: str,
    load: Callable[[], Model],
    texts: Collection[str],
    tell: Callable[[int], object],
) -> int:
    """Keep a vector of each of these texts; returns how many had to be made.

    Those of other texts stay: a category that is mended or put back needs them again.

    ``tell`` hears how many more there are. The model is loaded only if it is needed. Wherever this
    ends, what was made is kept.

    Raises:
        BlockingIOError: another process does the same.
        ModelError: the model cannot be used.
        OSError: the file cannot be written.
    """
    wanted = {key_of(text): text for text in texts}
    kept: Vectors = {}
    with file.locked():
        with suppress(VectorsError):  # a file that cannot be read is written anew
            kept = file.read(digest)
        missing = [key for key in wanted if key not in kept]
        tell(len(wanted) - len(missing))
        if missing:
            _make(file, digest, load(), kept, {key: wanted[key] for key in missing}, tell)
    return len(missing)


def _make(
    file: VectorFile,
    digest: str,
    model: Model,
    kept: Vectors,
    texts: dict[bytes, str],
    tell: Callable[[int], object],
) -> None:
    keys = list(texts)
    for start in range(0, len(keys), STEP):
        step = sorted(keys[start : start + STEP], key=lambda key: len(texts[key]))
        try:
            for i in range(0, len(step), BATCH):
                batch = step[i : i + BATCH]
                vectors = model.encode([texts[key] for key in batch])
                kept.update(zip(batch, vectors, strict=True))
                tell(len(batch))
        finally:
            file.write(digest, kept)


def _decoded(data: bytes) -> tuple[str, Vectors]:
    """The digest of the model that made the vectors of a file, and the vectors.

    Raises:
        ValueError: the file is damaged.
    """
    if blake2b(data[:-KEY], digest_size=KEY).digest() != data[-KEY:]:
        raise ValueError("its hash is another one")
    head, _, _ = data.partition(b"\n")
    made_by, count, width = head.decode().split()
    keys = len(head) + 1
    vectors = keys + int(count) * KEY
    return made_by, {
        data[keys + i * KEY : keys + (i + 1) * KEY]: data[
            vectors + i * int(width) : vectors + (i + 1) * int(width)
        ]
        for i in range(int(count))
    }
