"""A line proves itself, and whatever else a line says is damage, never an exception."""

import datetime as dt
import hashlib
import json
import re
import zlib
from contextlib import suppress
from typing import Any

import pytest
from builders import answered, failed, line_of
from hypothesis import given
from hypothesis import strategies as st

from store.line_codec import decode_line, encode_line, redacted
from store.records import Poll, Usage, Withholding
from store.text import clean

NOW = "2026-11-02T06:00:00Z"
LINE = encode_line(answered("A", ["X"]), NOW)[1]
NO_TIME = f"not a time such as {NOW}"
PICK = {"rank": 1, "product": "X", "domain": None, "reason": None, "fixes": []}


def answer(**members: Any) -> dict[str, Any]:
    """The members of a good answer that names X, some of them changed."""
    good: dict[str, Any] = json.loads(LINE)
    return {**good, **members}


def test_ids_and_checksums_need_no_code_of_ours() -> None:
    """The id is the digest of the line's own bytes without it and the checksum, costs and all."""
    cheap = answered("A", ["Zoho — «CRM»"], usage=Usage(1, 1, 0.00002))
    for poll in (cheap, answered("B", ["X"]), failed("C")):
        line = encode_line(poll, NOW)[1].rstrip(b"\n")
        record = json.loads(line)
        body = line[: -len(b',"crc":"00000000"}')] + b"}"
        assert f"{zlib.crc32(body):08x}" == record["crc"]
        bare = body.replace(b'"id":"%b",' % record["id"].encode(), b"", 1)
        assert hashlib.sha256(bare).hexdigest()[:16] == record["id"]


def test_a_line_made_for_a_test_is_one() -> None:
    """The tests' own maker of lines follows the rule, so that only what it says can be damage."""
    assert decode_line(line_of(answer())[:-1]).pick == "X"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"polledAt": "yesterday"}, f'polledAt is not a time such as {NOW}: "yesterday"'),
        ({"polledAt": "2026-11-02T06:00:00+01:00"}, NO_TIME),
        ({"polledAt": "2026-11-02T24:00:00Z"}, NO_TIME),
        ({"polledAt": "\u0662026-11-02T06:00:00Z"}, NO_TIME),
        ({"polledAt": "2026-02-31T06:00:00Z"}, ""),
        ({"polledAt": "0001-01-01T00:00:00Z"}, "no poll was made before 2020 or after 9000"),
        ({"polledAt": "2019-12-31T23:59:59Z"}, "no poll was made before 2020 or after 9000"),
        ({"polledAt": "9999-12-31T23:59:59Z"}, "no poll was made before 2020 or after 9000"),
        ({"pick": None}, "pick is not what stands first in ranking"),
        ({"pick": "Y"}, "pick is not what stands first in ranking"),
        ({"ranking": []}, "pick is not what stands first in ranking"),
        ({"pick": None, "ranking": []}, "not both"),
        ({"failure": "timeout"}, "not both"),
        ({"error": "No answer."}, "not both"),
        ({"pick": None, "ranking": [], "error": "No answer."}, "not both"),
        ({"ranking": [{**PICK, "rank": 2}]}, "the ranks in ranking are not 1, 2, 3 and so on"),
        ({"ranking": [PICK, PICK]}, "the ranks in ranking are not 1, 2, 3 and so on"),
        (
            {"ranking": [{**PICK, "rank": rank} for rank in range(1, 13)]},
            "the ranking holds 12 picks, more than 5",
        ),
        ({"pick": "A\u202eB", "ranking": [{**PICK, "product": "A\u202eB"}]}, "can have brought"),
        ({"pick": " ", "ranking": [{**PICK, "product": " "}]}, "can have brought"),
        ({"pick": "", "ranking": [{**PICK, "product": ""}]}, "can have brought"),
        ({"pick": "x" * 121, "ranking": [{**PICK, "product": "x" * 121}]}, "can have brought"),
        ({"ranking": [{**PICK, "domain": "javascript:alert(1)"}]}, "not a plain domain"),
        ({"ranking": [{**PICK, "domain": "evil.example/x?y"}]}, "not a plain domain"),
        ({"usage": {"inputTokens": 1, "outputTokens": 1, "usd": -4}}, "`$.usage.usd`"),
        ({"usage": {"inputTokens": 1, "outputTokens": 1, "usd": 1e300}}, "`$.usage.usd`"),
        ({"usage": {"inputTokens": -1, "outputTokens": 1, "usd": 0}}, "`$.usage.inputTokens`"),
        ({"latencyMs": -1}, "`$.latencyMs`"),
        ({"withheld": True}, "which only withheld.json can say"),
        ({"withheld": False}, "which only withheld.json can say"),
        ({"v": 2}, ""),
    ],
)
def test_a_record_that_cannot_be_is_damage(members: dict[str, Any], reason: str) -> None:
    """Id and checksum fit, and yet no poll can have been so; the sentence says why."""
    with pytest.raises(ValueError, match=f"{re.escape(reason)}.*"):
        decode_line(line_of(answer(**members))[:-1])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a":' * 50_000, "it is nested too deep"),
        (line_of(b'{"v":1,"deep":' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "nested too deep"),
        (LINE[:-1] + b"\r", "LF alone"),
        (LINE[:-1].replace(b'"X"', b'"Y"'), "checksum does not fit"),
        (LINE[:-1].replace(b'"id":"', b'"di":"', 1), "does not fit"),
    ],
    ids=["cut", "whole", "CRLF", "changed", "without an id"],
)
def test_bytes_that_no_writer_of_ours_wrote_are_damage(line: bytes, reason: str) -> None:
    """However deep, long or odd a line is, reading it ends in a sentence."""
    with pytest.raises(ValueError, match=reason):
        decode_line(line)


def test_a_changed_record_is_known_by_its_id() -> None:
    """Whoever changes a record and mends its checksum is found out: the id is a digest of it."""
    body = LINE.replace(b'"X"', b'"Y"')[: -len(b',"crc":"00000000"}\n')] + b"}"
    with pytest.raises(ValueError, match="it is not what its id says"):
        decode_line(body[:-1] + b',"crc":"%08x"}' % zlib.crc32(body))


@given(
    name=st.text(max_size=60).map(clean).filter(bool),
    reason=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    usd=st.none() | st.floats(0, 1e6),
)
def test_any_text_survives_sealing(name: str, reason: str | None, usd: float | None) -> None:
    """Whatever a model wrote, once it is cleaned, a line stays one line and reads back the same."""
    poll, line = encode_line(answered("A", [name], reason=reason, usage=Usage(1, 2, usd)), NOW)
    assert line.count(b"\n") == 1
    assert decode_line(line[:-1]) == poll


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**30, -(10**400), 2**64])
    | st.floats()
    | st.text()
    | st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", NOW, "X"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
MEMBERS = [*answer(), "withheld"]


@given(
    st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=4), st.binary(max_size=4), st.data()
)
def test_reading_a_hostile_line_raises_nothing_but_a_sentence(
    members: dict[str, Any], junk: bytes, data: st.DataObject
) -> None:
    """Any value in any member, sealed as if it were ours, or any bytes put into a line."""
    try:
        line = line_of(answer(**members))[:-1]
    except UnicodeEncodeError:  # half a surrogate pair, which escaped is hostile as well
        line = line_of(json.dumps(answer(**members), separators=(",", ":")).encode())[:-1]
    place = data.draw(st.integers(0, len(line)))
    for hostile in (line, line[:place] + junk + line[place:], junk + line, line[:place]):
        with suppress(ValueError):
            assert isinstance(decode_line(hostile), Poll)


def test_a_withheld_line_keeps_what_is_no_text() -> None:
    """What it was asked with, and the pause it began, still hold; texts of an assistant do not."""
    line = line_of(answer(instrument="ab" * 6, cooldownUntil="2026-11-03T06:00:00Z"))[:-1]
    shown = json.loads(redacted(line, Withholding(date=dt.date(2026, 11, 4), reason="asked for")))
    assert (shown["instrument"], shown["cooldownUntil"]) == ("ab" * 6, "2026-11-03T06:00:00Z")
    assert (shown["pick"], shown["ranking"], shown["missed"], shown["notes"]) == (None, [], [], [])
