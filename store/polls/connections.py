"""HTTP connections that another thread can cut, and that know whether anything was sent on them.

``requests`` has time-outs between two bytes only: a provider that drips headers, a body or
``100 Continue`` without end holds a thread as long as it likes. Its socket shut down, it ends.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection


class Connection:
    """A session for one thread, which others may cut.

    ``sent`` if a request may have left: from when one is written, TLS and proxy included.
    """

    def __init__(self, proxy: str | None = None) -> None:
        self.sent = self.is_cut = False
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.proxies.update({"http": proxy, "https": proxy} if proxy else {})
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, _Adapter(self))
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def hold(self, made: socket.socket) -> None:
        """Keep hold of a new socket, under a descriptor that TLS cannot take away."""
        with self._lock:
            self._let_go()
            self._socket = made.dup()
            if self.is_cut:
                self._shut_down()

    def cut(self) -> None:
        """End whatever the connection is waiting for, now and from now on."""
        with self._lock:
            self.is_cut = True
            self._shut_down()

    def close(self) -> None:
        """Give everything back; nobody may be using it."""
        self.session.close()
        with self._lock:
            self._let_go()

    def _shut_down(self) -> None:
        if self._socket:
            with suppress(OSError):  # the other end was faster
                self._socket.shutdown(socket.SHUT_RDWR)

    def _let_go(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None


class _Held(HTTPConnection):
    """A connection of urllib3 that tells its :class:`Connection` of its socket and its request."""

    owner: Connection

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        self.owner.hold(made)
        return made

    def connect(self) -> None:
        self.owner.sent = False
        super().connect()
        self.owner.sent = True

    def request(self, *args: Any, **options: Any) -> None:
        self.owner.sent = True
        super().request(*args, **options)


class _Adapter(HTTPAdapter):
    """Makes such connections, through a proxy as without one."""

    def __init__(self, owner: Connection) -> None:
        self._owner = owner
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        """The pool, whose new connections show their sockets to the owner."""
        pool: Any = super().get_connection_with_tls_context(*args, **options)
        plain = type(pool).ConnectionCls
        pool.ConnectionCls = type("Held", (_Held, plain), {"owner": self._owner})
        return pool
