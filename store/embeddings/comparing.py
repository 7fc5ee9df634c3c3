"""Comparing a query with categories: one at a time, for a share of a core, unless it is busy."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from store.embeddings.model import ModelError, SentenceModel, find, is_packaged
from store.embeddings.vectors import VectorFile, VectorsError, key_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from store.disk import Signature
    from store.embeddings.model import Model, ModelFiles
    from store.search import Document

log = logging.getLogger(__name__)

RETRY_AFTER = 60.0
"""Seconds after which what could not be read is tried again."""
SHARE, SAVED = 0.02, 1.0
"""Share of a core that comparing may use, and seconds of that it can save up.

One query a second and fifty at once. At .1, another reader's p95 beside 200 searches a second is 7
times its own, for more than 5 of 100 answers then meet a comparison.
"""


class _Table(NamedTuple):
    """What queries are compared with: the model, the categories it knows, their vectors."""

    model: Model
    slugs: Sequence[str]
    vectors: Any


class _Ready(NamedTuple):
    """A table, if there can be one, what it was made from, and until when it may be used."""

    documents: Sequence[Document]
    signature: Signature | None
    table: _Table | None
    until: float = math.inf


class Embeddings:
    """The vectors of one data directory, beside the model that made them.

    ``folder`` holds the model, if it is not the installed one. ``prepared`` counts how often model
    and vectors were read.
    """

    def __init__(
        self,
        directory: Path,
        folder: Path | None = None,
        load: Callable[[ModelFiles], Model] = SentenceModel,
        find: Callable[[Path | None], ModelFiles | None] = find,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self.prepared = 0
        self.is_wanted = folder is not None or is_packaged()
        self._file = VectorFile(directory)
        self._folder = folder
        self._load = load
        self._find = find
        self._model: tuple[str, Model] | None = None
        self._ready: _Ready | None = None
        self._fault = ""
        self._clock = clock
        self._cpu = cpu
        self._left, self._looked_at = SAVED, clock()
        self._comparing = threading.Lock()
        self._preparing = threading.Lock()

    @property
    def edition(self) -> str:
        """What tells answers from those that other vectors gave, or words until these were read."""
        return f"{self._file.signature()}-{self.prepared}" if self.is_wanted else ""

    def compare(self, text: str, documents: Sequence[Document]) -> dict[str, float] | None:
        """Slug → how alike a text is to each category; empty where no vectors can be used.

        ``None`` while another text is compared or the share is used up, and until model and vectors
        are there, which are read meanwhile.
        """
        if not self.is_wanted:
            return {}
        ready = self._ready
        if not ready or not self._holds(ready, documents):
            self._begin(documents)
            return None
        if not (table := ready.table):
            return {}
        if not self._comparing.acquire(blocking=False):
            return None
        try:
            return self._compared(text, table) if self._may_compare() else None
        except Exception:  # a search has an answer without the model
            log.exception("search goes by words alone: the sentence model failed")
            self._ready = ready._replace(table=None, until=self._clock() + RETRY_AFTER)
            return {}
        finally:
            self._comparing.release()

    def _holds(self, ready: _Ready, documents: Sequence[Document]) -> bool:
        """Whether what was read is still what is there."""
        same = ready.signature == self._file.signature() and self._clock() < ready.until
        return same and ready.documents == documents

    def _may_compare(self) -> bool:
        """Whether some of the share is left, now that time has passed."""
        now = self._clock()
        self._left = min(SAVED, self._left + SHARE * (now - self._looked_at))
        self._looked_at = now
        return self._left > 0

    def _compared(self, text: str, table: _Table) -> dict[str, float]:
        start = self._cpu()
        alike = table.model.alike(text, table.vectors)
        self._left -= self._cpu() - start
        return dict(zip(table.slugs, alike, strict=True))

    def prepare(self, documents: Sequence[Document]) -> None:
        """Read model and vectors now; what cannot be read is logged once, and done without."""
        signature, table, until = self._file.signature(), None, math.inf
        try:
            table = self._table(documents) if signature else None
            self._fault = ""
        except Exception as error:  # no fault in here may cost more than the model's help
            known = isinstance(error, ModelError | VectorsError | OSError)
            if str(error) != self._fault:
                log.warning("search goes by words alone: %s", error, exc_info=not known)
            self._fault, until = str(error), self._clock() + RETRY_AFTER
        self._ready = _Ready(documents, signature, table, until)
        self.prepared += 1

    def _begin(self, documents: Sequence[Document]) -> None:
        """Prepare in the background, unless that is under way."""
        if not self._preparing.acquire(blocking=False):
            return
        try:
            threading.Thread(None, self._prepare, "embeddings", (documents,), daemon=True).start()
        except RuntimeError as error:  # the system has no thread to give just now
            self._preparing.release()
            log.warning("search goes by words alone: %s", error)

    def _prepare(self, documents: Sequence[Document]) -> None:
        try:
            self.prepare(documents)
            from store.tuning import trim  # noqa: PLC0415 - it brings gunicorn

            trim(0)  # else what reading took is never given back: 60 MB
        finally:
            self._preparing.release()

    def _table(self, documents: Sequence[Document]) -> _Table | None:
        files = self._find(self._folder)
        if files is None:
            return None
        digest = files.digest
        known = self._file.read(digest)
        groups = {
            item.slug: [
                known[key]
                for text in texts_of(item.titles, item.situations)
                if (key := key_of(text)) in known
            ]
            for item in documents
        }
        held = {slug: group for slug, group in groups.items() if group}
        if not held:
            return None
        if not self._model or self._model[0] != digest:
            self._model = digest, self._load(files)
        model = self._model[1]
        return _Table(model, list(held), model.table(list(held.values())))
