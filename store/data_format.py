"""Which version of the service wrote a data directory, and whether this one may use it.

``DATA_DIR/.last-good/written-by`` says so. Files name their own version too; this one is for what
no file can say of itself, such as that a newer service added what an older one would lose.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.last_good import LastGood

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
"""Of the data directory: it rises when an older service could no longer use what a newer wrote."""
NAME = "written-by"


class WrittenBy(Struct, frozen=True):
    """The format of a data directory and the version of the service that last served from it."""

    format: int
    version: str


class NewerFormatError(Exception):
    """A newer service wrote the data; the sentence says which, and what to do."""


_WRITTEN_BY = msgspec.json.Decoder(WrittenBy)


def check(directory: Path, version: str) -> str | None:
    """What a start does about the version that wrote the data, or ``None`` if it is this one.

    Raises:
        NewerFormatError: it wrote a format that this one does not know.
    """
    before = written_by(directory)
    if before is None or (before.format == FORMAT and before.version == version):
        return None
    if before.format > FORMAT:
        raise NewerFormatError(
            f"The data was last written by version {before.version} in format {before.format}, and "
            f"this is version {version}, which knows format {FORMAT}; nothing was changed. Install "
            f"{before.version} or newer, or restore a backup that {version} made"
        )
    todo = "nothing needs to change" if before.format == FORMAT else "older files are read as ever"
    return (
        f"The data was last written by version {before.version} in format {before.format}; this is "
        f"{version} with format {FORMAT}: {todo}."
    )


def written_by(directory: Path) -> WrittenBy | None:
    """Who last wrote the data, as far as that was noted."""
    try:
        copy = LastGood(directory).read(NAME)
        return _WRITTEN_BY.decode(copy.data) if copy else None
    except (OSError, ValueError):
        return None


def note(directory: Path, version: str) -> None:
    """Note that this version serves from the directory now.

    Where it cannot be noted nothing is said: that nothing can be kept there, the store says.
    """
    mine = WrittenBy(FORMAT, version)
    if written_by(directory) == mine:
        return
    home = LastGood(directory)
    with suppress(OSError), home.locked():
        home.place(NAME, msgspec.json.encode(mine))
