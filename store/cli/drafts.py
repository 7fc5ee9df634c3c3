"""Replacing a file in one step, so that nobody reads half of it."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def drafted(path: Path, text: str) -> Iterator[Path]:
    """A file beside ``path`` with its new text, synced to disk, to be renamed to ``path``.

    It has the mode of the existing file, and its owner if we have the right to set it; it is
    removed at the end of the block.
    """
    draft = path.with_name(f".{path.name}.draft")
    there = path.stat() if path.exists() else None
    draft.unlink(missing_ok=True)
    try:
        with draft.open("xb") as file:  # never through a link that somebody has laid there
            os.fchmod(file.fileno(), there.st_mode & 0o777 if there else 0o644)
            if there:
                with suppress(PermissionError):
                    os.fchown(file.fileno(), there.st_uid, there.st_gid)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
