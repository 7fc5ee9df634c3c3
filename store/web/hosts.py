"""Hosts: those that the service answers to, and the address of a server that listens.

Flask's TRUSTED_HOSTS would compare names letter by letter; a Host may also be in upper case, have a
final dot or be any IP address of ours.
"""

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

import idna
from werkzeug.sansio.utils import host_is_trusted

PROBES = frozenset({"/healthz", "/livez", "/readyz"})
"""Paths that load balancers and monitors ask, by whatever name they know this machine."""


def is_trusted(environ: Mapping[str, str], names: Collection[str]) -> bool:
    """Return whether a request's Host is an IP literal or one of the names; ports do not matter.

    A request without a Host is one of HTTP/1.0, or malformed (RFC 9112, section 3.2).
    """
    header = environ.get("HTTP_HOST")
    if header is None:  # clients of HTTP/1.0 may leave it out
        return environ.get("SERVER_PROTOCOL") == "HTTP/1.0"
    name = host_of(header) if host_is_trusted(header) else ""  # without a list: if well-formed
    return name in names or is_ip(name)


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
