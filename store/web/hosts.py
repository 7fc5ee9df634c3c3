"""Which hosts the service answers to, and how it is reached when nobody says."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import idna
from flask import Flask, request
from werkzeug.exceptions import BadRequest
from werkzeug.routing import MapAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from flask import Request

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)]|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::[0-9]{0,5})?")
"""``uri-host [ ":" port ]`` of RFC 9110, lower case: an IPv6 literal, or a name or IPv4 address."""

MAX_HOST = 270
"""Characters of the longest Host header looked at: a name of 253, a dot, brackets, a port."""


class PathRouted(Flask):
    """A Flask app that routes by the path alone, exactly as it was sent.

    Werkzeug would route ``//x`` as ``/x``, and refuse a request for its Host or for an upgrade it
    offers before anybody could answer it.
    """

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to a request without a look at its Host."""
        if request is None:
            return super().create_url_adapter(request)
        sent: str = request.environ["PATH_INFO"]
        return MapAdapter(
            self.url_map,
            server_name="localhost",
            script_name=request.root_path,
            subdomain="",
            url_scheme="http",
            path_info=f"/.{sent}" if sent.startswith("//") else request.path,
            default_method=request.method,
            query_args=request.query_string.decode("latin-1"),
        )

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Take views as they are: none is a coroutine, and to look costs a request 6 of 58 µs."""
        return func


PROBES = frozenset({"/healthz", "/livez", "/readyz"})
"""Paths that load balancers and monitors ask, by whatever name they know this machine."""


def register(app: Flask, names: Callable[[], Collection[str]]) -> None:
    """Refuse requests that name another host; ``PROBES`` answer any."""

    @app.before_request
    def refuse_other_hosts() -> None:
        environ = request.environ
        if not is_trusted(environ, names()) and environ["PATH_INFO"] not in PROBES:
            raise BadRequest(
                "The Host header names a host that is not this service. Its operator can add it "
                "to HOSTS, or to hosts in site.json."
            )


def is_trusted(environ: Mapping[str, str], names: Collection[str]) -> bool:
    """Whether a request's Host is an IP literal or one of the names; ports do not matter.

    A request without a Host is one of HTTP/1.0, or malformed (RFC 9112, section 3.2).
    """
    header = environ.get("HTTP_HOST")
    if header is None:
        return environ.get("SERVER_PROTOCOL") == "HTTP/1.0"
    name = host_name(header) if len(header) <= MAX_HOST else ""
    return name in names or is_ip(name)


def host_name(header: str) -> str:
    """The host of a Host header, lower case, without port and final dot; empty if malformed."""
    match = _HOST.fullmatch(header.lower())
    return (match[1] or match[2]) if match else ""


@lru_cache(maxsize=4)
def host_names(given: tuple[str, ...]) -> frozenset[str]:
    """The hosts of all addresses and hosts of ours, with ``localhost``."""
    return frozenset({"localhost", *map(host_of, given)} - {""})


def host_of(address: str) -> str:
    """The host of an address or ``host:port``, lower case and ASCII; empty where there is none."""
    try:
        name = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        name = name.removesuffix(".")
        return name if name.isascii() else idna.encode(name, uts46=True).decode()
    except ValueError:
        return ""


def address(host: str, port: int, scheme: str = "http") -> str:
    """The address at which a server that listens there can be reached from this machine."""
    if host in ("", "0.0.0.0", "::", "[::]"):  # noqa: S104 - recognised, not bound
        host = "127.0.0.1"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{scheme}://{host}:{port}"


def is_ip(host: str) -> bool:
    """Whether a host is written as an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
