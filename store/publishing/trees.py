"""What an exported tree holds: the answers by path, old addresses, and headers of answers."""

from __future__ import annotations

from msgspec import Struct

from store.publishing import manifest as dataset

DATA = "/data/"
"""Where the dataset is; its files need no page of their own and change with every version."""
OBJECTS = f"{DATA}{dataset.OBJECTS}/"
"""Its files by digest; manifests and lists, which stand beside them, lead to them."""


class Exported(Struct, frozen=True):
    """One file of the tree; ``size`` is in bytes.

    ``cache_control`` is that of the answer; ``etag`` that of a picture, by which it need not be
    drawn again.
    """

    file: str
    type: str
    size: int
    sha256: str
    gzip: bool
    etag: str = ""
    cache_control: str = ""

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return self.type.partition(";")[0]


class Manifest(Struct, frozen=True):
    """What a tree holds: files and redirects by the path that readers ask for.

    ``headers`` are those that all answers of one media type share: name → media type → value.
    """

    files: dict[str, Exported]
    redirects: dict[str, str]
    headers: dict[str, dict[str, str]]

    @property
    def addresses(self) -> set[str]:
        """Every path that readers can ask for."""
        return {*self.files, *self.redirects}
