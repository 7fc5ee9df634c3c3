"""Addresses as people write them in a setting, and as they travel: in ASCII, or refused."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from urllib.parse import quote

import idna

_URL = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+]|[^][:@/]+)(?::([0-9]{1,5}))?((?:/[^@]*)?)")
_REFUSED = re.compile(r'[\s?#<>"\\^`{|}]')
_ASCII_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_KEPT_IN_PATHS = "/%:!$&'()*+,;=~"
_PORTS = 65_536

DESCRIPTION = (
    "an address such as https://rankings.example, without ?, # or @, in which keys could be pasted"
)


def ascii_url(text: str) -> str:
    """An http or https address with its host in IDNA (RFC 5891) and its path percent-encoded.

    Raises:
        ValueError: it is none, or carries a query, a fragment, a user name or a password; the
            message quotes nothing of it.
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
    """Whether a value, if it is text at all, is such an address."""
    try:
        return not isinstance(value, str) or bool(ascii_url(value))
    except ValueError:
        return False


def _ascii_host(host: str) -> str:
    """A host as it travels: an IPv6 literal, a name or an IPv4 address in ASCII.

    Raises:
        ValueError: it is none.
    """
    if host.startswith("["):
        return f"[{ipaddress.IPv6Address(host[1:-1])}]"
    name = host if host.isascii() else idna.encode(host, uts46=True).decode()
    if not _ASCII_HOST.fullmatch(name):
        raise ValueError(host)
    return name
