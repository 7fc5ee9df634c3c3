"""Reading from a server that nobody vouches for: bounded in size and time, no redirect followed."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import requests

if TYPE_CHECKING:
    from requests import PreparedRequest

TIMEOUT = 30
"""Seconds until a connection or the next bytes; a page of ours takes milliseconds."""
_CHUNK = 1 << 16


class Refused(Exception):
    """The server's answer is none that can be used; the sentence says which and why."""


class Download:
    """One server, and what may still be read from it: bytes and seconds in all."""

    def __init__(self, base: str, most_bytes: int, most_seconds: float) -> None:
        self.base = base
        self.received = 0
        self._most = most_bytes
        self._until = time.monotonic() + most_seconds
        self._session = requests.Session()
        self._session.auth = _nobody

    def get(self, path: str, most: int) -> bytes:
        """What stands at a path, ``most`` bytes at most.

        Raises:
            Refused: it is larger, slower or something else than an answer.
        """
        address = f"{self.base}{path}"
        try:
            with self._session.get(
                address, stream=True, allow_redirects=False, timeout=TIMEOUT
            ) as answer:
                if answer.status_code != HTTPStatus.OK:
                    moved = answer.headers.get("Location")
                    raise Refused(
                        f"{address} answers {answer.status_code}"
                        + (f" and leads to {moved}, which is not followed" if moved else "")
                    )
                return self._read(address, answer, most)
        except requests.RequestException as error:
            raise Refused(f"{address} cannot be read: {type(error).__name__}") from None

    def _read(self, address: str, answer: requests.Response, most: int) -> bytes:
        found = bytearray()
        for chunk in answer.iter_content(_CHUNK):
            found += chunk
            self.received += len(chunk)
            if len(found) > most:
                raise Refused(f"{address} is larger than the {most:,} bytes that it should have")
            if self.received > self._most:
                raise Refused(f"more than {self._most >> 20:,} MB were sent; see --max-mb")
            if time.monotonic() > self._until:
                raise Refused("the time is up; see --max-minutes")
        return bytes(found)


def _nobody(request: PreparedRequest) -> PreparedRequest:
    """No credentials, whatever ``~/.netrc`` has for this host."""
    return request
