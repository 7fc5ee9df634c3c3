"""The evidence: every history file as it is, a line that is withheld without its texts.

Unpacked, it is history again, and chains over it can be checked: a redacted record says the digest
and the size of the line in whose place it stands.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from store.history import History, Log
from store.ledger import day_of
from store.line_codec import (
    POLL_DECODER,
    decode_line,
    has_valid_checksum,
    redacted,
    redaction_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from store.ledger import Entry, Ledger
    from store.records import Poll, Withholding

_ID = re.compile(rb'"id":"([0-9a-f]{16})"')


def published(line: bytes, withheld: Mapping[str, Withholding]) -> bytes:
    """Return a line of history as it is published; a damaged one may have its id anywhere."""
    if not withheld:
        return line
    ids = (match.decode() for match in _ID.findall(line))
    return next((redacted(line, withheld[id_]) for id_ in ids if id_ in withheld), line)


def stamp_of(line: bytes) -> tuple[bytes, int, str]:
    """Return digest, size and day of the line that is, or that stood, where this one stands."""
    digest, size = redaction_of(line) or (sha256(line).digest(), len(line))
    return digest, size, day_of(line)


def decode(line: bytes) -> Poll:
    """Return the poll of a published line, sealed or withheld.

    Raises:
        ValueError: it is damaged.
    """
    if not redaction_of(line):
        return decode_line(line)
    try:
        return POLL_DECODER.decode(line)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


class PublishedHistory(History):
    """History that was made from evidence: redacted records stand in it for withheld lines.

    Its lines have other places than the ledger says: ``ledger`` is one with the places that they
    have here, and ``entries`` are those by which open lines would be closed. The chains must have
    been checked.
    """

    decode = staticmethod(decode)

    def __init__(
        self, directory: Path, ledger: Ledger, entries: Mapping[str, Sequence[Entry]]
    ) -> None:
        super().__init__(directory)
        self.ledger = ledger
        self._proof_files = ()
        self._entries = entries

    @staticmethod
    def is_intact(line: bytes) -> bool:
        """Whether a line is sealed, or was when its texts were withheld."""
        return has_valid_checksum(line) or redaction_of(line) is not None

    def read(self, slug: str) -> Log:
        """Every readable poll of a file, with the entries that its true lines have."""
        return replace(super().read(slug), open=tuple(self._entries.get(slug, ())))

    def _look_at_ledger(self) -> None:
        """Keep the ledger that was given."""

    def _loss(self, slug: str, data: bytes | None) -> None:
        """Nothing: see the class."""
