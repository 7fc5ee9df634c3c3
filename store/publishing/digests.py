"""Digests: of every file of a tree, and of all that a tree is made from."""

import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path

from store.disk import read_regular, real_path
from store.records import FOLDERS, SINGLE

SUMS = "SHA256SUMS"
"""The file of a tree that has the digests of all others, as ``sha256sum --check`` reads it."""
CODE = ("store", "templates")
"""The folders of the checkout that answers follow from."""


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex."""
    return sha256(data).hexdigest()


def sums(digests: Mapping[str, str]) -> bytes:
    """Return the digests of files, sorted by path, as SHA256SUMS has them."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items())).encode()


def digests_in(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder but SHA256SUMS, by its path."""
    start = len(str(folder)) + 1
    paths = (path for path in _below(folder) if path[start:] != SUMS)
    return {path[start:]: _digest(Path(path), folder) for path in paths}


def is_whole(folder: Path, digests: Mapping[str, str] | None = None) -> bool:
    """Return whether a folder holds what its SHA256SUMS lists, and nothing else.

    ``digests`` are those of its files, if they are known already.
    """
    try:
        listed = (folder / SUMS).read_bytes()
    except OSError:
        return False
    return listed == sums(digests_in(folder) if digests is None else digests)


def basis_of(checkout: Path, data: Path, *settings: object) -> str:
    """Return the digest of all that answers follow from: code, packages, data files, settings."""
    total = sha256(repr((sys.version, zlib.ZLIB_RUNTIME_VERSION, settings)).encode())
    for package in sorted(f"{each.name} {each.version}" for each in distributions()):
        total.update(f"{package}\n".encode())
    for home, paths in ((checkout, _code(checkout)), (data, _data(data))):
        for path in paths:
            total.update(f"{path} {_digest(path, home)}\n".encode())
    return total.hexdigest()


def _code(checkout: Path) -> Iterator[Path]:
    yield checkout / "app.py"
    for folder in CODE:
        yield from (Path(path) for path in sorted(_below(checkout / folder)) if ".pyc" not in path)


def _data(data: Path) -> Iterator[Path]:
    yield from (data / name for name in SINGLE)
    for folder in (*FOLDERS, "history", "proof"):
        yield from sorted((data / folder).glob("*.json*"))


def _below(folder: Path) -> Iterator[str]:
    for name, _, files in os.walk(folder):
        yield from (os.path.join(name, file) for file in files)  # noqa: PTH118 - of 80,000 paths


def _digest(path: Path, home: Path) -> str:
    """Return the digest of a file below ``home``, or why it has none."""
    try:
        return digest(read_regular(real_path(path, home)))
    except OSError as error:
        return str(error)
