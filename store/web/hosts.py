"""Which hosts the service answers to, and how it is reached when nobody says."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Flask, request

from store.web.errors import UntrustedHost

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


def register(app: Flask, names: Callable[[], Collection[str]]) -> None:
    """Refuse requests that name another host; ``/healthz`` answers any, for load balancers."""

    @app.before_request
    def refuse_other_hosts() -> None:
        if request.path != "/healthz" and not is_trusted(request.environ, names()):
            raise UntrustedHost(
                "The Host header names a host that is not this service. Its operator can add it "
                "to HOSTS, or to hosts in site.json."
            )


def is_trusted(environ: dict[str, str], names: Collection[str]) -> bool:
    """Whether a request's Host is an IP literal or one of the names; ports do not matter."""
    header = environ.get("HTTP_HOST", "")
    try:
        host = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    return not header or host in names or is_ip(host)


def host_of(url: str) -> str:
    """The host name of an address, lower case."""
    return urlsplit(url).hostname or ""


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
