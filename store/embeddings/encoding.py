"""Making the vectors that are missing, in steps that are kept."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from store.embeddings.vectors import VectorsError, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from store.embeddings.model import Model
    from store.embeddings.vectors import VectorFile, Vectors

STEP = 2048
"""Texts after which the file is written: a kill loses 8 s of work, and all steps write 190 MB."""
BATCH = 64
"""Texts that the model takes at once; those of a step are batched by length."""


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
