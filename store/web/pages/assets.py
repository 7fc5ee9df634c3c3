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

    @property
    def version(self) -> str:
        """What changes in an address when the file does, so that caches may keep it for good."""
        return self.encoded.etag[3:-1]


def read_assets() -> dict[str, Asset]:
    """Every file of the static directory, by name."""
    return {
        path.name: Asset(
            EncodedBody(path.read_bytes(), last_modified([path.stat().st_mtime_ns], None)),
            MEDIA_TYPES[path.suffix],
        )
        for path in sorted(DIRECTORY.iterdir())
        if path.suffix in MEDIA_TYPES
    }
