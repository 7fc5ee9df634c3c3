"""The style sheet, the little script and the icon: small, few, and kept in memory."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from store.snapshot import last_modified
from store.web.cache import EncodedBody

DIRECTORY = Path(__file__).parent.parent / "static"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(Struct, frozen=True):
    """A file as it is sent."""

    encoded: EncodedBody
    media_type: str


class Assets:
    """Every file of the static directory, by name."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._files = {
            path.name: Asset(
                EncodedBody(path.read_bytes(), last_modified([path.stat().st_mtime_ns], None)),
                MEDIA_TYPES[path.suffix],
            )
            for path in sorted(directory.iterdir())
            if path.suffix in MEDIA_TYPES
        }

    def get(self, name: str) -> Asset | None:
        """A file by its name."""
        return self._files.get(name)

    def version(self, name: str) -> str:
        """What changes in an address when the file does, so that caches may keep it for good."""
        return self._files[name].encoded.etag[3:-1]
