"""The evidence: every history file as it is, a line that is withheld without its texts.

Unpacked, it is history again, and chains over it can be checked: a redacted record says the digest
and the size of the line in whose place it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from store.history import History
from store.line_codec import (
    POLL_DECODER,
    decode_line,
    has_valid_checksum,
    redacted,
    redaction_of,
    stamp,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.line_codec import Stamp
    from store.records import Poll, Withholding

_ID = re.compile(rb'"id":"([0-9a-f]{16})"')


def published(line: bytes, withheld: Mapping[str, Withholding]) -> bytes:
    """Return a line of history as it is published; a damaged one may have its id anywhere."""
    if not withheld:
        return line
    ids = (match.decode() for match in _ID.findall(line))
    return next((redacted(line, withheld[id_]) for id_ in ids if id_ in withheld), line)


def published_stamp(line: bytes) -> Stamp:
    """Return the stamp of the line that is, or that stood, where this one stands."""
    digest, size, day = stamp(line)
    return (*(redaction_of(line) or (digest, size)), day)


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

    The chains over them must have been checked.
    """

    decode = staticmethod(decode)
    stamp = staticmethod(published_stamp)

    @staticmethod
    def is_intact(line: bytes) -> bool:
        """Whether a line is sealed, or was when its texts were withheld."""
        return has_valid_checksum(line) or redaction_of(line) is not None

    def _loss(self, slug: str, data: bytes | None) -> None:
        """Nothing: see the class."""
