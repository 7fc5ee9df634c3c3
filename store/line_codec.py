"""One line of history: how a poll becomes bytes that prove themselves, and what makes one damage.

A line ends in its own checksum: ``crc`` is the CRC-32 of the line without that member, so a line
stays ordinary JSON. ``id`` is the start of the SHA-256 of the line without both: members are cut
out as bytes, so that no other program's way of writing numbers or letters matters.
"""

import hashlib
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime
from functools import lru_cache

import msgspec
from msgspec import UNSET

from store.records import MAX_NAME, MOST_PICKS, Poll, Withholding
from store.text import DOMAIN_PATTERN, clean

SHOWN_OF_WITHHELD = (
    "v", "id", "slug", "model", "polled_at", "question", "served_model", "request_id", "web_search",
    "instrument", "usage", "latency_ms", "cooldown_until", "crc",
)  # fmt: skip
"""The members of a poll that are shown although it is withheld; a new one is not, unless named."""
FIRST_YEAR, LAST_YEAR = "2020", "9000"
"""Years in which a poll can have been made; arithmetic with such times never overflows."""

POLL_DECODER = msgspec.json.Decoder(Poll)
_DOMAIN = re.compile(DOMAIN_PATTERN)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\dZ", re.ASCII)
_TIME_MEMBER = re.compile(rb'"polledAt":"([2-8]\d{3}-\d\d-\d\d)T\d\d:\d\d:\d\dZ"')
Stamp = tuple[bytes, int, str]
"""A line as the ledger knows it: SHA-256, size in bytes, and the UTC day it bears."""
# Only at the end of a line, where no text of an answer can stand.
_REDACTED = re.compile(
    rb'"withheld":true(?:,"crc":"[0-9a-f]{8}")?,"sha256":"([0-9a-f]{64})","bytes":(\d{1,12})\}\Z'
)
_ID = re.compile(rb'"id":"([0-9a-f]{16})"')
_BEFORE_ID = b'{"v":1,'
_ID_SIZE = 16
CRC_SIZE = len(b',"crc":"01234567"}')


def whole(data: bytes) -> bytes:
    """Return what a file holds up to its last line: no torn tail, no empty lines at the end.

    The next append takes away what a crash or an editor left there.
    """
    cut = data.rfind(b"\n") + 1  # a record that lacks its newline alone stays, and is a line
    text = (data if has_valid_checksum(data[cut:]) else data[:cut]).rstrip(b"\n")
    return text + b"\n" if text else b""


def whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of what is whole, without their newlines."""
    return whole(data).split(b"\n")[:-1]


def stamp(line: bytes, *, published: bool = False) -> Stamp:
    """Return the stamp of a line; its day is empty where it bears none.

    In what is ``published`` a redacted line has the stamp of the line in whose place it stands.
    """
    match = _TIME_MEMBER.search(line)
    day = match[1].decode() if match else ""
    try:
        date.fromisoformat(day)
    except ValueError:
        day = ""
    original = original_of(line) if published else None
    return (*(original or (hashlib.sha256(line).digest(), len(line))), day)


def encode_line(poll: Poll, polled_at: str) -> tuple[Poll, bytes]:
    """Give a poll its time, id and checksum; return it with its line, newline included."""
    members = msgspec.to_builtins(msgspec.structs.replace(poll, polled_at=polled_at))
    del members["id"], members["crc"]
    bare = msgspec.json.encode(members)
    identity = hashlib.sha256(bare).hexdigest()[:_ID_SIZE]
    cut = len(_BEFORE_ID)
    body = b'%b"id":"%b",%b' % (bare[:cut], identity.encode(), bare[cut:])
    crc = f"{zlib.crc32(body):08x}"
    sealed = msgspec.structs.replace(poll, polled_at=polled_at, id=identity, crc=crc)
    return sealed, b'%b,"crc":"%b"}\n' % (body[:-1], crc.encode())


def decode_line(line: bytes, *, published: bool = False) -> Poll:
    """Read one line, newline excluded; it may be redacted in what is ``published``.

    Raises:
        ValueError: it is damaged; the sentence says in what way.
    """
    if not line.strip():
        raise ValueError("an empty line; a record may have been erased here")
    if b"\r" in line:
        raise ValueError("it holds a carriage return; the line ends of a history are LF alone")
    try:
        poll = POLL_DECODER.decode(line)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if published and original_of(line):
        return poll
    if not has_valid_checksum(line):
        raise ValueError("the checksum does not fit the record")
    if not _is_identified(line, poll.id):
        raise ValueError("it is not what its id says: it was changed after it was written")
    _check_time("polledAt", poll.polled_at)
    if poll.cooldown_until is not UNSET:
        _check_time("cooldownUntil", poll.cooldown_until)
    _check_answer(poll)
    return poll


def has_valid_checksum(line: bytes) -> bool:
    """Return whether a line ends in the checksum of what stands before it."""
    crc = zlib.crc32(b"}", zlib.crc32(memoryview(line)[:-CRC_SIZE]))
    return line[-CRC_SIZE:] == b',"crc":"%08x"}' % crc


def id_of(line: bytes) -> str:
    """Return the text at the position of a line's id."""
    start = len(_BEFORE_ID) + len('"id":"')
    return line[start : start + _ID_SIZE].decode("ascii", "replace")


def is_intact(line: bytes, identity: str) -> bool:
    """Return whether a line is the one that was sealed under an id."""
    return has_valid_checksum(line) and _is_identified(line, identity)


def _is_identified(line: bytes, identity: str) -> bool:
    """Return whether a sealed line's id stands in its place and is the start of its digest."""
    head = b'%b"id":"%b",' % (_BEFORE_ID, identity.encode())
    digest = hashlib.sha256(_BEFORE_ID)
    digest.update(memoryview(line)[len(head) : -CRC_SIZE])  # not copied: all lines come by here
    digest.update(b"}")
    return line.startswith(head) and digest.hexdigest()[:_ID_SIZE] == identity


def redacted(line: bytes, withholding: Withholding) -> bytes:
    """Return what is shown in place of a line that is withheld: the record without its texts.

    ``sha256`` and ``bytes`` are those of the line, so that chains over it can still be checked; of
    one that is damaged nothing else is shown but its time. What is redacted stays redacted.
    """
    digest, size = original_of(line) or (hashlib.sha256(line).digest(), len(line))
    time = _TIME_MEMBER.search(line)
    shown = b'{%b"withheld":true}' % (time[0] + b"," if time else b"")
    with suppress(ValueError, RecursionError):
        shown = _without_texts(POLL_DECODER.decode(line), withholding)
    return b'%b,"sha256":"%b","bytes":%d}' % (shown[:-1], digest.hex().encode(), size)


def publish(line: bytes, withheld: Mapping[str, Withholding]) -> bytes:
    """Return a line of history as it is published; a damaged one may have its id anywhere."""
    ids = (match.decode() for match in _ID.findall(line)) if withheld else ()
    return next((redacted(line, withheld[id_]) for id_ in ids if id_ in withheld), line)


def original_of(line: bytes) -> tuple[bytes, int] | None:
    """Return digest and size of the line that a redacted one replaces; ``None`` for any other."""
    match = _REDACTED.search(line)
    return (bytes.fromhex(match[1].decode()), int(match[2])) if match else None


def _without_texts(poll: Poll, withholding: Withholding) -> bytes:
    shown = {name: getattr(poll, name) for name in SHOWN_OF_WITHHELD}
    error = f"Withheld since {withholding.date}: {withholding.reason}"
    return msgspec.json.encode(Poll(**shown, error=error, failure="withheld", withheld=True))


def _check_time(member: str, text: str) -> None:
    """Raise ``ValueError`` unless a member is a time at which a poll can have been made."""
    if not _TIME.fullmatch(text):
        raise ValueError(f'{member} is not a time such as 2026-11-02T06:00:00Z: "{text}"')
    datetime.fromisoformat(text)
    if not FIRST_YEAR <= text[:4] <= LAST_YEAR:
        raise ValueError(
            f"{member} is {text}: no poll was made before {FIRST_YEAR} or after {LAST_YEAR}"
        )


def _check_answer(poll: Poll) -> None:
    """Raise ``ValueError`` unless a poll is either an answer or a failure, and whole."""
    for place, pick in enumerate(poll.ranking, start=1):
        if pick.rank != place:
            raise ValueError("the ranks in ranking are not 1, 2, 3 and so on")
        if not _is_name(pick.product):
            raise ValueError(f"the name of #{place} is not one that a poll can have brought")
        if pick.domain is not None and not _DOMAIN.fullmatch(pick.domain):
            raise ValueError(f"the domain of #{place} is not a plain domain such as zoho.com")
    if len(poll.ranking) > MOST_PICKS:
        raise ValueError(f"the ranking holds {len(poll.ranking)} picks, more than {MOST_PICKS}")
    if poll.pick != (poll.ranking[0].product if poll.ranking else None):
        raise ValueError("pick is not what stands first in ranking")
    failed = (poll.error is not None, poll.failure is not None)
    if failed != (poll.pick is None,) * 2:
        raise ValueError("it must be an answer with a pick, or a failure with an error, not both")
    if poll.withheld is not UNSET or poll.failure == "withheld":
        raise ValueError("it says that it is withheld, which only withheld.json can say")


@lru_cache(maxsize=1 << 16)  # the same names come again and again: all lines come by here
def _is_name(text: str) -> bool:
    """Return whether a product's name is as a poll cleans it: nothing hidden, and not too long."""
    return 0 < len(text) <= MAX_NAME and clean(text) == text
