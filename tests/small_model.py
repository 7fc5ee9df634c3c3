"""A made-up sentence model in plain Python: texts are alike if they have the same letters."""

from __future__ import annotations

import math
import string
import struct
from operator import mul
from typing import TYPE_CHECKING, Any

from store.embeddings.comparing import Embeddings
from store.embeddings.model import ModelFiles
from store.embeddings.vectors import VectorFile, encode, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from store.search import Document

SHAPE = struct.Struct("<26e")


class SmallModel:
    """Counts letters; ``encoded`` are all texts that it was given."""

    def __init__(self, files: ModelFiles | None = None) -> None:
        self.files = files
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """The share of each letter, as a vector of length 1."""
        self.encoded += texts
        return [SHAPE.pack(*_vector(text)) for text in texts]

    def table(self, groups: Sequence[Sequence[bytes]]) -> list[list[tuple[float, ...]]]:
        """The vectors of each group."""
        return [[SHAPE.unpack(each) for each in group] for group in groups]

    def alike(self, text: str, table: Any) -> list[float]:
        """The likeness of the most alike text of each group."""
        own = _vector(text)
        return [max(sum(map(mul, own, each)) for each in group) for group in table]


def _vector(text: str) -> list[float]:
    counts = [text.lower().count(letter) for letter in string.ascii_lowercase]
    return [count / (math.hypot(*counts) or 1) for count in counts]


def model_in(folder: Path) -> ModelFiles:
    """The files of a model, which hold nothing that could be read."""
    folder.mkdir(exist_ok=True)
    files = ModelFiles(folder / "model.onnx", folder / "tokenizer.json")
    for path in files:
        path.write_bytes(b"made up")
    return files


def encode_all(directory: Path, files: ModelFiles, documents: Collection[Document]) -> None:
    """Write the vectors of all documents into a data directory."""
    texts = {text for each in documents for text in texts_of(each.titles, each.situations)}
    encode(VectorFile(directory), files.digest, SmallModel, texts, lambda _: None)


def embeddings_of(directory: Path, files: ModelFiles, model: SmallModel) -> Embeddings:
    """What compares with that model."""
    folder = files.weights.parent
    return Embeddings(directory, folder, lambda _: model, lambda _: files)
