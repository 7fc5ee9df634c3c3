"""Verification: whether lines, ledger and dataset are what follows from one another.

Nothing that a source says of itself is believed: what is published is made anew from the lines with
the same writers, and compared.
"""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from msgspec import field

from store import ledger
from store.disk import read_regular
from store.history import History
from store.ledger import FOLDER, HEADS, LEDGER, Head, Ledger, LedgerEntry, LedgerError
from store.line_codec import Stamp, decode_line, id_of, original_of, stamp, whole, whole_lines
from store.publishing import formats, manifest, trees
from store.publishing.dataset import CATALOGUE, Draft, Source, restore_catalogue
from store.publishing.directories import SUMS
from store.rankings.sentences import plural, some
from store.records import instrument_id
from store.store import Store

AROUND = 30
"""Bytes shown on both sides of a difference."""
INDENT = "\n  "
"""What the lines of a difference begin with, but for the first."""
MAX_OPEN_BYTES = 64 << 20
"""Bytes of all lines of open days at most; of closed days the ledger says how many there are."""
MAX_FILE_BYTES = 1 << 30
"""Bytes of any other file at most."""
LAST = (manifest.MANIFEST, trees.TREE_MANIFEST, *manifest.DESCRIPTIONS, SUMS)
"""Files that differ wherever another one does, so they are compared last."""


class Difference(Exception):
    """A difference from what the lines imply; the sentence names the file and the place."""


class Folder:
    """The files of a folder, in folders below it too."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> set[str]:
        """Return the names of all files; none where there is no folder."""
        paths = (path for path in self._path.rglob("*") if path.is_symlink() or not path.is_dir())
        try:
            next(self._path.iterdir(), None)  # rglob passes over what it may not look into
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise Difference(f"{self._path.name} cannot be read: {error.strerror}") from None
        return {path.relative_to(self._path).as_posix() for path in paths}

    def read(self, name: str, most: int = MAX_FILE_BYTES) -> bytes:
        """Return the bytes of a file, ``most`` at most: it may be larger than the memory."""
        try:
            if (self._path / name).lstat().st_size <= most:
                return read_regular(self._path / name)
        except OSError as error:
            raise Difference(f"{name} cannot be read: {error.strerror}") from None
        raise Difference(f"{name} is larger than {most:,} bytes")


class CheckedLedger(Ledger):
    """A ledger that was replayed, and what a check of all lines showed.

    - ``head_lines``: the lines of the file of heads;
    - ``entries``: by file, its entries since the newest accepted loss, each with the newest day
      that was closed before;
    - ``stamps``: by file, the stamps of its lines;
    - ``unclosed_entries``: the entries by which open lines would be closed;
    - ``redacted``: the ids of withheld lines, empty for one that was damaged;
    - ``damaged``: how many lines count nowhere;
    - ``unfinished``: the files that end in what a crash left of a line;
    - ``instruments``: by instrument, the first line that names it;
    - ``unseen``: what could not be looked at, as the end of a sentence.
    """

    head_lines: list[Head] = field(default_factory=list)
    entries: dict[str, list[tuple[LedgerEntry, str]]] = field(default_factory=dict)
    stamps: dict[str, list[Stamp]] = field(default_factory=dict)
    unclosed_entries: list[LedgerEntry] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    damaged: int = 0
    unfinished: list[str] = field(default_factory=list)
    instruments: dict[str, str] = field(default_factory=dict)
    unseen: str = ""

    def take_entry(self, entry: LedgerEntry) -> None:
        """Take in the next line of the ledger."""
        if entry.accepted:
            self.entries.pop(entry.file, None)
        self.entries.setdefault(entry.file, []).append((entry, self.last_closed_day))
        super().take_entry(entry)

    def check_end(self, data: bytes, where: str, *, published: bool) -> None:
        """Note what a crash left of a line at the end of a file; in a published one, raise."""
        if whole(data) != data:
            if published:
                number = data.rstrip(b"\n").count(b"\n") + 1
                raise Difference(f"{where}:{number}: the line is cut short")
            if not data.endswith(b"\n") and whole(data) != data + b"\n":
                self.unfinished.append(where)

    def __str__(self) -> str:
        """Say how many lines and heads there are, and which are odd."""
        present = self.provisional_head(self.unclosed_entries)
        counts = {
            "of open days": present.lines - present.closed,
            "withheld": len(self.redacted),
            "damaged, which count nowhere": self.damaged,
        }
        heads = sum(not head.reopened for head in self.head_lines)
        parts = [f"{number:,} {kind}" for kind, number in counts.items() if number]
        if files := self.unfinished:
            parts.append(f"{plural(len(files), 'unfinished record')} ({some(files)})")
        text = ", ".join([plural(present.lines, "line"), plural(heads, "head"), *parts])
        for head in self.head_lines:
            text += f"; {head.day} was reopened: {head.reason}" if head.reopened else ""
        for file, entry in sorted(self.accepted.items()):
            text += f"; {file} cannot be checked before {entry.day}: {entry.reason}"
        return f"{text}; root {present.root}"


def read_ledger(
    folder: Folder, witnesses: Sequence[Head], *, published: bool = False
) -> CheckedLedger:
    """Read a ledger; raise ``Difference`` unless it is sound and holds all ``witnesses``.

    These are heads that the caller kept.
    """
    names = folder.names()
    is_begun = not names or HEADS in names  # a closing that was cut off leaves a ledger alone
    # Heads first: a closing meanwhile writes them last.
    texts = {HEADS: folder.read(HEADS) if is_begun else b"", LEDGER: folder.read(LEDGER)}
    try:
        checked = CheckedLedger(head_lines=[*ledger.decode_records(HEADS, texts[HEADS], Head)])
        for name, data in texts.items():
            checked.check_end(data, name, published=published)
        ledger.parse(texts[LEDGER], texts[HEADS], checked)
    except LedgerError as error:
        raise Difference(str(error).removeprefix(f"{FOLDER}/")) from None
    for head in witnesses:
        roots = [other.root for other in checked.head_lines if other.day == head.day and other.root]
        if head.root not in roots:
            there = f"here its root is {roots[-1]}" if roots else "here it is missing"
            raise Difference(
                f"{HEADS}: history up to {head.day} was rewritten or cut short: the head of that "
                f"day that you kept has the root {head.root}, and {there}"
            )
    if not is_begun:
        raise Difference("no day is closed yet: there is nothing to verify before the first is")
    return checked


def check_file(
    checked: CheckedLedger, file: str, data: bytes, where: str, *, published: bool = False
) -> None:
    """Check that a history file is sound and agrees with the ledger: lines, chain, days.

    In one that is ``published`` redacted records stand for withheld lines.
    """
    checked.check_end(data, where, published=published)
    lines = whole_lines(data)
    entries = checked.entries.get(file, [])
    damage_accepted_to = max((entry.lines for entry, _ in entries if entry.accepted), default=0)
    for number, line in enumerate(lines, start=1):
        if published and original_of(line):
            # A damaged line is published without its id.
            checked.redacted.append(id_of(line) if b'"id":"' in line else "")
            continue
        try:
            if instrument := decode_line(line).instrument:
                checked.instruments.setdefault(instrument, f"{where}:{number}")
        except ValueError as error:
            if number > damage_accepted_to:
                raise Difference(f"{where}:{number}: {error}") from None
            checked.damaged += 1
    stamps = [stamp(line, published=published) for line in lines]
    after = [*accumulate(stamps, ledger.extend, initial=ledger.empty_entry(file))]
    first = 0
    for entry, closed in entries:
        there = after[min(entry.lines, len(lines))]
        fits = there.extent == entry.extent
        if not entry.accepted:  # an acceptance lists what is there, whenever it came
            _check_times(stamps[first : entry.lines], first, closed, where)
            day = max(there.day, ledger.day_after(closed))
            fits = fits and first < entry.lines and day == entry.day
        if not fits:
            which = f"lines {first + 1:,} to {entry.lines:,} are not those that the ledger lists"
            raise Difference(f"{where}:{first + 1}: {which} under {entry.day}")
        first = entry.lines
    _check_times(stamps[first:], first, checked.last_closed_day, where)
    checked.stamps[file] = stamps
    checked.unclosed_entries += checked.open_entries(file, stamps[first:])


def check_instruments(checked: CheckedLedger, files: Folder) -> None:
    """See that a data directory has the text of every instrument that a line names."""
    for id_, line in checked.instruments.items():
        try:
            there = instrument_id(files.read(f"instruments/{id_}.json"))
        except Difference as error:
            raise Difference(f"{line} names the instrument {id_}: {error}") from None
        if there != id_:
            raise Difference(f"{line}: instruments/{id_}.json is not that text: its id is {there}")


def check_dataset(
    dataset: Folder, witnesses: Sequence[Head], work: Path, version: str
) -> tuple[CheckedLedger, Store]:
    """See that a dataset, written by this ``version`` of the service, follows from its lines.

    The folder ``work`` gets the data directory that follows, ``data``, and its ``dataset``. Parquet
    that another pyarrow wrote is taken as it is. Returns what the lines showed, and a store.
    """
    first = dataset.read(manifest.MANIFEST)
    try:
        return _check_dataset(dataset, witnesses, work, version)
    except Difference:
        if dataset.read(manifest.MANIFEST) == first:
            raise
        raise Difference("another dataset took its place meanwhile: try again") from None


def _check_dataset(
    dataset: Folder, witnesses: Sequence[Head], work: Path, version: str
) -> tuple[CheckedLedger, Store]:
    described = _read_manifest(dataset, version)
    checked = read_ledger(dataset, witnesses, published=True)
    data, remade = work / "data", work / "dataset"
    for folder in (data / "history", data / FOLDER, remade):
        folder.mkdir(parents=True)
    proof = {name: dataset.read(name) for name in (LEDGER, HEADS)}
    for name, body in proof.items():
        (data / FOLDER / name).write_bytes(body)
    # So that nobody's archive fills the memory: no more than the ledger says there is.
    budget = MAX_OPEN_BYTES + sum(entry.bytes for entry in checked.newest.values())
    where = ""
    try:
        for file in sorted({*described.evidence, *checked.entries}):
            where, text = manifest.EVIDENCE.format(file), b""
            if file in described.evidence:
                text = formats.unpacked(dataset.read(where, budget), budget)
                (data / "history" / f"{file}.jsonl").write_bytes(text)
            budget -= len(text)
            check_file(checked, file, text, where, published=True)
        where = CATALOGUE
        restore_catalogue(dataset.read(where), data)
    except ValueError as error:
        raise Difference(f"{where}: {error}") from None
    check_instruments(checked, Folder(data))
    store = Store(data)
    store.history = History(data / "history", published=True)
    snapshot = store.snapshot
    # Redacted lines without an id were damaged: nothing tells which poll they were.
    if unknown := set(checked.redacted) - snapshot.catalogue.withheld.keys() - {""}:
        raise Difference(f"{CATALOGUE}: the poll {min(unknown)} is redacted and not withheld")
    source = Source(data, lambda: snapshot, snapshot.catalogue.site.base_url, version)
    draft = Draft(remade, source, snapshot, described.tools)
    for name in draft.unwritable:
        (remade / name).write_bytes(dataset.read(name))
    if draft.unwritable:
        needed = described.tools["pyarrow"]
        checked.unseen = f"; NOT looked at: Parquet, which needs pyarrow {needed}"
    draft.fill(proof)
    compare_all(Folder(remade), dataset)
    checked.damaged = sum(map(len, snapshot.damage.values()))
    return checked, store


def compare_all(expected: Folder, actual: Folder) -> None:
    """See that the expected files are there, byte for byte, and no other."""
    names = expected.names()
    for name in sorted(names ^ (actual.names() or names)):
        which = "is missing" if name in names else "is there and is not expected"
        raise Difference(f"{name} {which}")
    for name in sorted(names, key=lambda name: (LAST.index(name) if name in LAST else -1, name)):
        body = expected.read(name)
        compare(name, body, actual.read(name, max(2 * len(body), 1 << 20)))


def compare(name: str, expected: bytes, actual: bytes) -> None:
    """See that bytes are as expected; name the first that differs, and what is around it."""
    if expected == actual:
        return
    pairs = enumerate(zip(expected, actual, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(actual)))
    there, follows = (
        ascii(text[max(0, at - AROUND) : at + AROUND].decode("utf-8", "replace"))
        for text in (actual, expected)
    )
    place = f"{name} differs at byte {at:,}"
    raise Difference(f"{place}:{INDENT}there:   {there}{INDENT}follows: {follows}")


def _check_times(stamps: Sequence[Stamp], first: int, closed: str, where: str) -> None:
    """Raise unless no line bears a time of a day that was closed before it came."""
    early = [number for number, (_, _, day) in enumerate(stamps, first + 1) if "" < day <= closed]
    if early:
        raise Difference(
            f"{where}:{early[0]}: {plural(len(early), 'line')} came after {closed} was closed, "
            "with a time of that day or before"
        )


def _read_manifest(dataset: Folder, version: str) -> manifest.Manifest:
    """Return the manifest of a dataset that this version can make anew."""
    try:
        described = manifest.decode(dataset.read(manifest.MANIFEST))
    except ValueError as error:
        raise Difference(f"{manifest.MANIFEST} is not a manifest: {error}") from None
    here = {"the service": version, **formats.tools()}
    there = {"the service": described.service, **described.tools}
    for name in sorted((here.keys() | there.keys()) - {"pyarrow"}):
        if there.get(name) != here.get(name):
            raise Difference(
                f"it was written by version {str(there.get(name))[:AROUND]} of {name[:AROUND]}, "
                f"this is {here.get(name)}: install that to check it"
            )
    return described
