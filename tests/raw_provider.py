"""A provider that sends whatever bytes it is told to, as slowly as it is told to."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast


class RawProvider(socketserver.ThreadingTCPServer):
    """Sends ``reply`` after each request and closes; then ``endless``, again and again, if set."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = b""
        self.endless = b""
        self.asked = 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        provider = cast("RawProvider", self.server)
        with contextlib.suppress(OSError):
            self._take()
            provider.asked += 1
            self.wfile.write(provider.reply)
            while provider.endless and not provider.ended.wait(0.01):
                self.wfile.write(provider.endless)

    def _take(self) -> None:
        """Read one request to its end."""
        size = 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        self.rfile.read(size)


@contextmanager
def raw_provider() -> Iterator[RawProvider]:
    """One on a thread of the test's own process."""
    with RawProvider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()
