"""The batches that are with their providers, each a file in ``DATA_DIR/batches``.

A file is there from before anything is sent until all answers are in history. That of a failed
batch stays until a later one of the same assistant goes well: it says since when that assistant's
batches are paused.
"""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from store.category_history import history_files
from store.disk import check_no_link, sync_directory, write_durably
from store.files import Catalogue
from store.polls.due import Key
from store.polls.locks import DamagedFileError
from store.rankings.poll_states import Pause
from store.records import Assistant, Natural

FOLDER = "batches"
HAS_OPEN_BATCH = "has a batch on its way"
NOT_LISTED = (
    "is no longer in models.json; if it was renamed, list this name in former_names of its new "
    "entry, or its questions are asked and paid for again"
)
FIRST_PAUSE = timedelta(hours=6)
LONGEST_PAUSE = timedelta(days=7)


class BatchQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """One question of a batch."""

    slug: str
    question: str


class Batch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch and how it stands. Times are RFC 3339; ``reserved`` is in micro-dollars.

    ``intended``: it may have been sent. ``sent``: its provider has it as ``remote_id``. ``failed``:
    over since ``failed_at``, for the reason ``why``; what is ``reserved`` then counts as spent.
    ``instrument`` is the id of what it asks with.
    """

    key: str
    state: Literal["intended", "sent", "failed"]
    # as it was then: a member renamed in records.py makes these files unreadable
    assistant: Assistant
    intended_at: str
    reserved: Natural
    items: tuple[BatchQuestion, ...]
    instrument: str | None = None
    remote_id: str | None = None
    cancelled_at: str | None = None
    failed_at: str | None = None
    why: str | None = None

    @property
    def is_open(self) -> bool:
        """True while its questions are under way."""
        return self.state != "failed"

    def item_id(self, number: int) -> str:
        """Return the id of its item of this number, unique over all batches."""
        return f"{self.key}-{number}"

    def age(self, now: datetime) -> timedelta:
        """Return how long ago it was made; no time where the clock was set back."""
        return max(now - datetime.fromisoformat(self.intended_at), timedelta())

    def as_failed(self, now: str, why: str, spent: int) -> Self:
        """Return it as over since now, with the micro-dollars that count as spent."""
        return replace(self, state="failed", failed_at=now, why=why, reserved=spent)

    def owner(self, catalogue: Catalogue) -> str:
        """Return the present name of its assistant."""
        return catalogue.former_names.get(self.assistant.name, self.assistant.name)


_BATCHES = msgspec.json.Decoder(Batch)


class BatchFiles:
    """The batches of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER

    def all(self) -> list[Batch]:
        """Return every batch, oldest first.

        Raises:
            OSError: one cannot be read, or the folder cannot be looked into, or is a link.
        """
        check_no_link(self._home)
        try:
            names = [path.name for path in self._home.iterdir() if path.suffix == ".json"]
        except FileNotFoundError:
            return []
        batches = [self._read(name) for name in names if not name.startswith(".")]
        return sorted(filter(None, batches), key=lambda batch: (batch.intended_at, batch.key))

    def open_of(self, name: str, catalogue: Catalogue) -> list[Batch]:
        """Return the open batches of an assistant, those under former names included."""
        return [b for b in self.all() if b.is_open and b.owner(catalogue) == name]

    def owners_gone(self, catalogue: Catalogue) -> list[str]:
        """Return the names of open batches' assistants that models.json no longer has."""
        present = {assistant.name for assistant in catalogue.assistants}
        owners = {batch.owner(catalogue) for batch in self.all() if batch.is_open}
        return sorted(owners - present) if present else []  # else models.json is not known

    def write(self, batch: Batch) -> None:
        """Make a batch's state durable.

        Raises:
            OSError: it could not be written.
        """
        data = msgspec.json.format(msgspec.json.encode(batch)) + b"\n"
        # what is sent is billed
        write_durably(self._home / f"{batch.key}.json", data, 0o640)

    def forget(self, batch: Batch) -> None:
        """Remove a batch of which nothing is left to do."""
        (self._home / f"{batch.key}.json").unlink(missing_ok=True)
        sync_directory(self._home)

    def under_way(self, catalogue: Catalogue) -> frozenset[Key]:
        """Return the pairs in open batches, by the present names of categories and assistants."""
        categories = catalogue.categories
        present = {file: slug for slug in categories for file in history_files(slug, categories)}
        return frozenset(
            (present.get(item.slug, item.slug), batch.owner(catalogue))
            for batch in self.all()
            if batch.is_open
            for item in batch.items
        )

    def reserved(self, day: str, catalogue: Catalogue) -> Counter[str]:
        """Return the micro-dollars of each assistant's batches, open or failed on a day."""
        amounts: Counter[str] = Counter()
        for batch in self.all():
            if batch.is_open or str(batch.failed_at)[:10] == day:
                amounts[batch.owner(catalogue)] += batch.reserved
        return amounts

    def pause_of(self, assistant: Assistant, now: datetime) -> Pause | None:
        """Return the pause of an assistant's batches, twice as long with each failure in a row.

        Whoever changed its entry in models.json may have mended what failed.
        """
        # the whole entry is compared: whoever changed it need not wait
        failed = [b for b in self.all() if b.failed_at and b.assistant == assistant]
        if not failed:
            return None
        last = max(failed, key=lambda batch: str(batch.failed_at))
        # Those of one hour ended together, as by one --cancel.
        times = len({str(batch.failed_at)[:13] for batch in failed})
        lasts = min(FIRST_PAUSE * 2 ** min(times - 1, 16), LONGEST_PAUSE)
        until = datetime.fromisoformat(str(last.failed_at)) + lasts
        return Pause(until, last.why or "a batch failed") if until > now else None

    def forget_failures(self, answered: Batch, catalogue: Catalogue) -> None:
        """Remove what paused an assistant's batches before one was sent that went well."""
        for batch in self.all():
            is_before = batch.failed_at is not None and batch.failed_at <= answered.intended_at
            if is_before and batch.owner(catalogue) == answered.owner(catalogue):
                self.forget(batch)

    def _read(self, name: str) -> Batch | None:
        """Return a batch, ``None`` if another assistant's turn has just forgotten it."""
        try:
            return _BATCHES.decode((self._home / name).read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            raise DamagedFileError(
                f"{FOLDER}/{name} is damaged, so that nobody knows what is asked already; restore "
                "it, or delete it if what it asked may be asked and paid for again"
            ) from None
