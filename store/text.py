"""Text from outside: slugs, times, addresses, and what nobody sees in a text.

Sources: Unicode 14.0, DerivedCoreProperties.txt (``Default_Ignorable_Code_Point``) and
emoji-data.txt (``Emoji``; the blocks of pictographs above U+1F000 are taken as a whole).
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from urllib.parse import quote

import idna
from rapidfuzz import process
from rapidfuzz.distance import OSA

SLUG_PATTERN = "^[a-z0-9]+(-[a-z0-9]+)*$"
MAX_SLUG = 100
"""Characters of a slug at most, a published promise."""
DOMAIN_PATTERN = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]*[a-z][a-z0-9-]*$"
URL_RULE = (
    "an address such as https://rankings.example, without ?, # or @, in which keys could be pasted"
)
LICENCES = {
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC0 1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}
"""The addresses of licences by name; any other licence is served by its name alone.

The SPDX identifiers of these are their names with hyphens.
"""

_SLUG = re.compile(SLUG_PATTERN)
_URL = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+]|[^][:@/]+)(?::([0-9]{1,5}))?((?:/[^@]*)?)")
_NOT_IN_URLS = re.compile(r'[\s?#<>"\\^`{|}]')
_ASCII_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_UNQUOTED_IN_PATHS = "/%:!$&'()*+,;=~"  # what RFC 3986, section 3.3, allows in a path, and "%"
_PORTS = 65_536  # port numbers have 16 bits

JOINERS = "\u200c\u200d"
STYLES = "\ufe0e\ufe0f"  # drawn as text, drawn as an emoji
NEVER_NEEDED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
IGNORABLE = NEVER_NEEDED + JOINERS + STYLES
"""A regular expression's ranges: Unicode's default-ignorable characters, and blank Braille."""

_IGNORABLE = re.compile(f"[{IGNORABLE}]")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_SPACES = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_KEYS = frozenset("0123456789#*")
_KEYCAP = "\u20e3"
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf"
    "\u23e9-\u23f3\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2604\u260e"
    "\u2611\u2614\u2615\u2618\u261d\u2620\u2622\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640"
    "\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e\u267f\u2692-\u2697\u2699"
    "\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8\u26ce"
    "\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d"
    "\u270f\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755"
    "\u2757\u2763\u2764\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50"
    "\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_JOINING = re.compile(
    "[\u0600-\u08ff"  # Arabic, Syriac, N'Ko, Mandaic
    "\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u1b00-\u1b7f"  # Devanagari to Sinhala, their kin
    "\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9df\uaa60-\uaa7f\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010ac0-\U00010aff\U00010b80-\U00010baf\U00010d00-\U00010d3f\U00010f30-\U00010fdf"
    "\U00011000-\U00011fff\U0001e900-\U0001e95f]"
)
"""Blocks of scripts with joining letters, and of Indic scripts."""


def is_slug(text: str) -> bool:
    """Return whether a text is lower-case words joined by single hyphens, at most 100 characters.

    >>> is_slug("crm-software"), is_slug("CRM--software")
    (True, False)
    """
    return len(text) <= MAX_SLUG and _SLUG.fullmatch(text) is not None


def rfc3339(time: datetime) -> str:
    """Return a time that carries its zone as history and answers write it: UTC, whole seconds.

    >>> rfc3339(datetime.fromisoformat("2026-11-20T07:00:00.9+01:00"))
    '2026-11-20T06:00:00Z'
    """
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ascii_url(text: str) -> str:
    """Return an http(s) address with its host in IDNA (RFC 5891), its path percent-encoded.

    >>> ascii_url("https://bücher.example/übersicht")
    'https://xn--bcher-kva.example/%C3%BCbersicht'

    Raises:
        ValueError: it is not one, or has a query, a fragment, a user name or a password; the
            message quotes nothing of it, in case a key was pasted there.
    """
    match = _URL.fullmatch(text) if text.isprintable() and not _NOT_IN_URLS.search(text) else None
    if match:
        scheme, host, port, path = match.groups("")
        with suppress(ValueError):
            if 0 < int(port or 1) < _PORTS:
                netloc = _ascii_host(host.lower()) + (f":{port}" if port else "")
                return f"{scheme}://{netloc}{quote(path, safe=_UNQUOTED_IN_PATHS)}"
    raise ValueError(f"must be {URL_RULE}")


def _ascii_host(host: str) -> str:
    """Return a host in ASCII: an IPv6 literal, a name or an IPv4 address.

    Raises:
        ValueError: it is not one of these.
    """
    if host.startswith("["):
        return f"[{ipaddress.IPv6Address(host[1:-1])}]"
    name = host if host.isascii() else idna.encode(host, uts46=True).decode()
    if not _ASCII_HOST.fullmatch(name):
        raise ValueError(host)
    return name


def clean(text: str) -> str:
    r"""Return a text in NFC without what nobody sees, its white space folded, trimmed.

    Control, format, default-ignorable and unassigned characters go. A joiner stays between letters
    of joining or Indic scripts and inside an emoji sequence, and so does one variation selector
    after an emoji (store/README.md, Text).

    >>> clean("  Zo\u200bho\tCRM\u202e ")
    'Zoho CRM'
    """
    if text.isascii() and text.isprintable():  # hides nothing: nearly every name of a history
        return " ".join(text.split())
    visible = ""
    for char, after in pairwise(f"{text}\n"):
        if not is_hidden(char) or _is_needed(char, visible[-2:], after):
            visible += char
    return unicodedata.normalize("NFC", " ".join(visible.split()))


def printable(text: str) -> str:
    r"""Return a text with what steers a terminal, line ends too, written as escapes.

    >>> printable("Zoho\x1b[2K")
    'Zoho\\x1b[2K'
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def is_hidden(char: str) -> bool:
    """Return whether a character is invisible by itself; white space, which is folded, is not."""
    if _IGNORABLE.match(char):
        return True
    return not (_EMOJI.match(char) or char in _SPACES) and unicodedata.category(char) in _HIDDEN


def _is_needed(char: str, before: str, after: str) -> bool:
    """Return whether a hidden character changes how its neighbours are drawn, and so must stay."""
    last = before[-1:]
    if char in STYLES:
        return bool(_EMOJI.match(last)) or (last in _KEYS and after == _KEYCAP)
    if char not in JOINERS:
        return False
    emoji = before if last and last in STYLES else last
    sequence = _EMOJI.match(emoji) and _EMOJI.match(after)
    return bool(sequence) or (_joins(last) and _joins(after))


def _joins(char: str) -> bool:
    """Return whether a character is a visible letter or mark of a joining or Indic script."""
    return (
        bool(_JOINING.match(char))
        and unicodedata.category(char)[0] in "LM"
        and not _IGNORABLE.match(char)
    )


def slips(slug: str, slugs: Iterable[str]) -> list[str]:
    """Return up to three slugs that differ by one letter, or by two that were exchanged.

    The score of alike words does not see that in short ones.

    >>> slips("vnp", ["vpn", "vpn-router"])
    ['vpn']
    """
    near = process.extract(
        slug, list(slugs), scorer=OSA.distance, limit=3, score_cutoff=1, processor=str.lower
    )
    return [name for name, *_ in near]
