"""An exported tree in object storage, where readers or a CDN get it.

A bucket renames nothing, so changed objects are written in place, each whole: data before pages
before what lists them, ``manifest.json`` last. First the manifest says, on condition that nobody
else wrote it, which objects are about to change and to what: so of two exporters one is refused,
and after a crash the next knows which objects may be of either state. What is gone stays for one
more export, for pages in caches that still lead there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.copies.places import Item, Place, Replaced
from store.publishing.trees import DATA, OBJECTS, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MANIFEST, REDIRECTS = "manifest.json", "redirects.json"
LISTS = ("/", "/sitemap.xml", "/api/v1/categories.json", "/llms.txt")
"""What leads to everything else, and so is written after it."""
JSON = {"Content-Type": "application/json", "Cache-Control": "public, max-age=60"}


class UploadError(Exception):
    """A tree cannot be uploaded; the sentence says why."""


class UploadLease(Struct, frozen=True):
    """An upload under way: who began it and when, and the objects it writes.

    ``objects`` has every SHA-256 that an object may have: uploads that died before count too.
    """

    exporter: str
    since: str
    objects: dict[str, tuple[str, ...]]


class Published(Manifest, frozen=True):
    """A bucket's manifest; ``withdrawn`` are objects that nothing leads to any more."""

    withdrawn: tuple[str, ...] = ()
    claim: UploadLease | None = None


class Remote(Struct, frozen=True):
    """What a bucket holds by its manifest, and the manifest's tag (``None``: there is none)."""

    published: Published
    tag: str | None


_PUBLISHED = msgspec.json.Decoder(Published)


def look(place: Place) -> Remote:
    """What a bucket holds.

    Raises:
        UploadError: its manifest cannot be read.
        PlaceError: the bucket cannot be used.
    """
    found = place.read(MANIFEST)
    if found is None:
        return Remote(Published({}, {}, {}), None)
    try:
        return Remote(_PUBLISHED.decode(found.data), found.tag)
    except ValueError as error:
        raise UploadError(
            f"{MANIFEST} there cannot be read ({error}), so nobody can say which addresses would "
            "be gone; name another prefix, or remove it to begin anew"
        ) from None


class Uploader:
    """Brings a bucket from what it holds to what a tree holds."""

    def __init__(self, place: Place, remote: Remote, exporter: str, *, take_over: bool) -> None:
        claim = remote.published.claim
        if claim and claim.exporter != exporter and not take_over:
            raise UploadError(
                f"another exporter began at {claim.since} and has not ended; if it is dead: "
                "--take-over"
            )
        self._place = place
        self._before = remote.published
        self._tag = remote.tag
        self._exporter = exporter
        self._unsure = claim.objects if claim else {}

    def changed(self, manifest: Manifest) -> list[str]:
        """The paths whose objects are to be written, in order."""
        before = self._before
        paths = (
            path
            for path in manifest.files
            if key(path) in self._unsure
            or path not in before.files
            or _state(before, path) != _state(manifest, path)
        )
        return sorted(paths, key=lambda path: (_phase(manifest, path), path))

    def upload(
        self, manifest: Manifest, tree: Path, now: str, done: Callable[[], None] = lambda: None
    ) -> int:
        """Write what changed; how many objects that were.

        Raises:
            UploadError: somebody else began meanwhile; nothing more is written.
            PlaceError: the bucket cannot be used; a rerun goes on from there.
        """
        paths, before, unsure = self.changed(manifest), self._before, self._unsure
        keys = {key(path) for path in manifest.files}
        gone = ({key(path) for path in before.files} | unsure.keys()) - keys
        if before.claim:  # what it withdrew is still there
            gone |= set(before.withdrawn) - keys
        headers, withdrawn = manifest.headers, tuple(sorted(gone))
        after = Published(manifest.files, manifest.redirects, headers, withdrawn)
        if not paths and not before.claim and after == before:
            return 0
        new = {key(path): (manifest.files[path].sha256,) for path in paths}
        objects = {name: unsure.get(name, ()) + new.get(name, ()) for name in {**unsure, **new}}
        claim = UploadLease(self._exporter, now, objects)
        self._put(msgspec.structs.replace(before, claim=claim))
        for phase in range(3):
            self._check_ours()
            self._place.write(
                (_item(manifest, path, tree) for path in paths if _phase(manifest, path) == phase),
                done,
            )
        if manifest.redirects != before.redirects or before.claim:
            self._place.write([Item(REDIRECTS, _json(manifest.redirects), JSON)])
        self._check_ours()
        if not before.claim:
            self._place.remove(sorted(set(before.withdrawn) - keys))
        self._put(after)
        return len(paths)

    def _put(self, published: Published) -> None:
        try:
            self._tag = self._place.replace(Item(MANIFEST, _json(published), JSON), self._tag)
        except Replaced as error:
            raise UploadError(f"{error}; nothing more was written") from None

    def _check_ours(self) -> None:
        """Stop if somebody took over."""
        if self._place.tag(MANIFEST) != self._tag:
            raise UploadError("another exporter took over meanwhile; nothing more was written")


def key(path: str) -> str:
    """The object that is at a path.

    >>> key("/best/humidifier"), key("/")
    ('best/humidifier', 'index.html')
    """
    return path.strip("/") or "index.html"


def _phase(manifest: Manifest, path: str) -> int:
    """0 for data, 1 for pages, 2 for what lists them."""
    if path.startswith(DATA):
        return 0 if path.startswith(OBJECTS) else 2
    if path in LISTS:
        return 2
    return int(manifest.files[path].type.startswith("text/html"))


def _head(manifest: Manifest, path: str) -> dict[str, str]:
    """The HTTP headers of an object; there is one, which every reader gets compressed."""
    exported = manifest.files[path]
    headers = {"Content-Type": exported.type, "Cache-Control": exported.cache_control}
    if exported.gzip:
        headers["Content-Encoding"] = "gzip"
    return {name: value for name, value in headers.items() if value}


def _state(manifest: Manifest, path: str) -> tuple[object, ...]:
    return (manifest.files[path].sha256, *_head(manifest, path).items())


def _item(manifest: Manifest, path: str, tree: Path) -> Item:
    exported = manifest.files[path]
    file = tree / (f"{exported.file}.gz" if exported.gzip else exported.file)
    return Item(key(path), file.read_bytes(), _head(manifest, path))


def _json(value: Mapping[str, str] | Published) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"))
