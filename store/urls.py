"""Addresses from settings and data files, converted to ASCII or refused."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from urllib.parse import quote

import idna

_URL = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+]|[^][:@/]+)(?::([0-9]{1,5}))?((?:/[^@]*)?)")
_REFUSED = re.compile(r'[\s?#<>"\\^`{|}]')
_ASCII_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_KEPT_IN_PATHS = "/%:!$&'()*+,;=~"  # what RFC 3986, section 3.3, allows in a path, and "%"
_PORTS = 65_536  # port numbers have 16 bits

DESCRIPTION = (
    "an address such as https://rankings.example, without ?, # or @, in which keys could be pasted"
)


LICENCES = {
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC0 1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}
"""Where the text of a licence stands, by its name; any other licence is served by name alone.

The SPDX identifiers of these are their names with hyphens.
"""


def ascii_url(text: str) -> str:
    """An http or https address with its host in IDNA (RFC 5891) and its path percent-encoded.

    >>> ascii_url("https://bücher.example/übersicht")
    'https://xn--bcher-kva.example/%C3%BCbersicht'

    Raises:
        ValueError: it is not one, or has a query, a fragment, a user name or a password; the
            message quotes nothing of it, in case a key was pasted there.
    """
    match = _URL.fullmatch(text) if text.isprintable() and not _REFUSED.search(text) else None
    if match:
        scheme, host, port, path = match.groups("")
        with suppress(ValueError):
            if 0 < int(port or 1) < _PORTS:
                netloc = _ascii_host(host.lower()) + (f":{port}" if port else "")
                return f"{scheme}://{netloc}{quote(path, safe=_KEPT_IN_PATHS)}"
    raise ValueError(f"must be {DESCRIPTION}")


def is_url(value: object) -> bool:
    """Whether a value is not text, or is an address that :func:`ascii_url` accepts."""
    try:
        return not isinstance(value, str) or bool(ascii_url(value))
    except ValueError:
        return False


def _ascii_host(host: str) -> str:
    """A host in ASCII: an IPv6 literal, a name or an IPv4 address.

    Raises:
        ValueError: it is none of these.
    """
    if host.startswith("["):
        return f"[{ipaddress.IPv6Address(host[1:-1])}]"
    name = host if host.isascii() else idna.encode(host, uts46=True).decode()
    if not _ASCII_HOST.fullmatch(name):
        raise ValueError(host)
    return name
