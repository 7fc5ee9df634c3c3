"""The evidence: the sealed lines of history by month, one for each line of the leaf list.

A withheld poll stands there as the API serves it, without its texts; its leaf keeps the hash of
the line as it was sealed. ``null`` stands for a line that is gone from history.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from store.disk import opened, read_regular
from store.history import History
from store.line_codec import (
    CRC_SIZE,
    POLL_DECODER,
    decode_line,
    has_valid_checksum,
    id_of,
    redacted,
)
from store.publishing.leaves import Leaf, sealed_lines, sort_key_of
from store.publishing.merkle import leaf_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from store.records import Poll, Withholding

GONE = b"null"


def lines(
    leaves: Sequence[Leaf], history: Path, withheld: Mapping[str, Withholding]
) -> list[bytes]:
    """The line of each leaf as it is published."""
    found = [GONE] * len(leaves)
    by_file: dict[str, list[int]] = {}
    for position, leaf in enumerate(leaves):
        by_file.setdefault(leaf.slug, []).append(position)
    for slug, positions in by_file.items():
        sealed = _sealed(history / f"{slug}.jsonl", [leaves[i] for i in positions])
        for position, line in zip(positions, sealed, strict=True):
            found[position] = hide(line, withheld)
    return found


def _sealed(path: Path, leaves: Sequence[Leaf]) -> Iterator[bytes]:
    """The lines of one file; one that is nowhere in it as its leaf says is gone."""
    first = min(leaf.start for leaf in leaves)
    elsewhere: dict[bytes, bytes] | None = None
    try:
        with opened(path) as handle:
            block = os.pread(handle, max(leaf.end for leaf in leaves) - first, first)
    except FileNotFoundError:
        block, elsewhere = b"", {}
    for leaf in leaves:
        line = block[leaf.start - first : leaf.end - first]
        if leaf_hash(line) != leaf.hash:
            if elsewhere is None:  # a line before it was repaired or lost
                elsewhere = {leaf_hash(line): line for _, line in sealed_lines(read_regular(path))}
            line = elsewhere.get(leaf.hash, GONE)
        yield line


def hide(line: bytes, withheld: Mapping[str, Withholding]) -> bytes:
    """A line without its texts, if its poll is withheld."""
    identity = id_of(line)
    if identity not in withheld:
        return line
    try:
        return redacted(POLL_DECODER.decode(line), withheld[identity])
    except (ValueError, RecursionError):  # a damaged line may say anything: nothing of it is shown
        return GONE


def polls(published: Sequence[bytes]) -> Iterator[Poll]:
    """The polls that published lines hold, each category together, so that it can be read alone.

    One by one, for a month takes 120 MB. What is damaged or stood before counts nowhere.
    """
    seen = set[str]()
    for _, i in sorted((sort_key_of(line), i) for i, line in enumerate(published)):
        poll = read(published[i])
        if poll and poll.id not in seen:
            seen.add(poll.id)
            yield poll


def read(line: bytes) -> Poll | None:
    """The poll of a published line, sealed or withheld; ``None`` if it is gone or damaged."""
    try:
        return decode(line)
    except ValueError:
        return None


def decode(line: bytes) -> Poll:
    """The poll of a published line, sealed or withheld.

    Raises:
        ValueError: it is damaged.
    """
    if not is_withheld(line):
        return decode_line(line)
    try:
        return POLL_DECODER.decode(line)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def is_withheld(line: bytes) -> bool:
    """Whether a published line says that its poll is withheld, which no sealed line can."""
    return line[:-CRC_SIZE].endswith(b',"withheld":true') and not has_valid_checksum(line)


class PublishedHistory(History):
    """History files that were made from evidence: withheld polls stand in them without texts."""

    decode = staticmethod(decode)

    @staticmethod
    def is_intact(line: bytes) -> bool:
        """Whether a line is sealed, or was when its texts were withheld."""
        return has_valid_checksum(line) or is_withheld(line)


def lines_of(data: bytes) -> list[bytes]:
    r"""The lines of published evidence.

    >>> lines_of(b'{"v":1}\n{"v":\r1}\n')
    [b'{"v":1}', b'{"v":\r1}']
    """
    found = data.split(b"\n")  # not splitlines: a sealed line may hold a CR
    return found if found[-1] else found[:-1]


def restore(months: Iterable[tuple[Sequence[Leaf], Sequence[bytes]]], history: Path) -> None:
    """Write history files again, month by month, their lines in the order of being appended."""
    starts: dict[str, list[int]] = {}
    history.mkdir(parents=True, exist_ok=True)
    (history.parent / "proof").mkdir(exist_ok=True)
    (history.parent / "proof/ledger.jsonl").touch()
    for leaves, published in months:
        files: dict[str, list[bytes]] = {}
        for leaf, line in zip(leaves, published, strict=True):
            if line != GONE:
                starts.setdefault(leaf.slug, []).append(leaf.start)
                files.setdefault(leaf.slug, []).append(line + b"\n")
        for slug, lines in files.items():
            mode = "ab" if len(starts[slug]) > len(lines) else "wb"
            with (history / f"{slug}.jsonl").open(mode) as file:
                file.writelines(lines)
    for slug, order in starts.items():
        if order != sorted(order):  # one was repaired, and listed late
            path = history / f"{slug}.jsonl"
            found = sorted(zip(order, lines_of(path.read_bytes()), strict=True))
            path.write_bytes(b"".join(line + b"\n" for _, line in found))
