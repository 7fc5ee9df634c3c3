"""Hosts: those that the service answers to, and the address of a server that listens.

Flask's TRUSTED_HOSTS would compare names letter by letter; a Host may also be in upper case, have a
final dot or be any IP address of ours.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

import idna

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)]|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::[0-9]{0,5})?")
"""``uri-host [ ":" port ]`` of RFC 9110, lower case: an IPv6 literal, or a name or IPv4 address."""

MAX_HOST = 270
"""Characters of the longest Host header looked at: a name of 253, a dot, brackets, a port."""

PROBES = frozenset({"/healthz", "/livez", "/readyz"})
"""Paths that load balancers and monitors ask, by whatever name they know this machine."""


def is_trusted(environ: Mapping[str, str], names: Collection[str]) -> bool:
    """Return whether a request's Host is an IP literal or one of the names; ports do not matter.

    A request without a Host is one of HTTP/1.0, or malformed (RFC 9112, section 3.2).
    """
    header = environ.get("HTTP_HOST")
    if header is None:  # clients of HTTP/1.0 may leave it out
        return environ.get("SERVER_PROTOCOL") == "HTTP/1.0"
    # What is longer than any name is not worth a regular expression.
    name = host_name(header) if len(header) <= MAX_HOST else ""
    return name in names or is_ip(name)


def host_name(header: str) -> str:
    """Return the host of a Host header, lower case, without port and final dot, if it has one."""
    match = _HOST.fullmatch(header.lower())
    return (match[1] or match[2]) if match else ""


def host_names(own: Iterable[str]) -> frozenset[str]:
    """Return the hosts of our addresses and hosts, with ``localhost``."""
    return frozenset({"localhost", *map(host_of, own)} - {""})


def host_of(address: str) -> str:
    """Return the host of an address or ``host:port``, lower case and ASCII; or empty."""
    try:
        name = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        name = name.removesuffix(".")
        return name if name.isascii() else idna.encode(name, uts46=True).decode()
    except ValueError:
        return ""


def address(host: str, port: int, scheme: str = "http") -> str:
    """Return the address at which a server that listens there can be reached from this machine."""
    # Listening everywhere is no address to connect to.
    if host in ("", "0.0.0.0", "::", "[::]"):  # noqa: S104 - recognised, not bound
        host = "127.0.0.1"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{scheme}://{host}:{port}"


def is_ip(host: str) -> bool:
    """Return whether a host is written as an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
