"""An exported tree in object storage, where readers or a CDN get it; the only user of obstore.

A bucket renames nothing: objects are written in place, each whole. Before the first the bucket's
manifest is replaced by one that also lists what is about to be written, without digests; after the
last, and after what is gone was deleted, by the tree's own. So the next run knows of all that one
that died may have written, and nothing that no manifest lists is ever replaced or deleted.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from store.publishing.trees import MANIFEST, TreeManifest, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

AT_ONCE = 32  # with more, servers begin to refuse some
JSON = {"Content-Type": "application/json", "Cache-Control": "public, max-age=60"}
LISTS = ("/", "/sitemap.xml", "/api/v1/categories.json", "/llms.txt", "/data/dataset.json")
"""What leads to other addresses, and so is written after them."""


class UploadError(Exception):
    """A bucket that cannot be used; the sentence says why."""


class Bucket:
    """A prefix of a bucket for an exported tree; keys and endpoint come from the environment."""

    def __init__(self, address: str) -> None:
        if not re.fullmatch(r"(s3|gs|az)://[\w.-]+(/[\w.~-]+)*/?", address, re.ASCII):
            raise UploadError(f"{address} names no bucket: use s3://BUCKET/PREFIX, gs:// or az://")
        try:
            import obstore.store  # noqa: PLC0415 - an extra
        except ImportError:
            raise UploadError("object storage needs: pip install '.[cloud]'") from None
        self._address, self._client = address, obstore
        with self._sentences():
            self._store: Any = obstore.store.from_url(address)

    def look(self) -> tuple[TreeManifest, str]:
        """Return the bucket's manifest, and the digest of what its tree was made from."""
        with self._sentences():
            with suppress(FileNotFoundError, ValueError):
                found = self._client.get(self._store, MANIFEST)
                return decode(bytes(found.bytes())), found.attributes.get("basis", "")
            self._refuse_others()
        return TreeManifest({}, {}), ""

    def upload(self, before: TreeManifest, manifest: TreeManifest, tree: Path, basis: str) -> int:
        """Write what changed, delete what is gone; return how many objects were written."""
        pages = {path for path, file in manifest.files.items() if file.type.startswith("text/html")}
        paths = [path for path, file in manifest.files.items() if before.files.get(path) != file]
        paths.sort(key=lambda path: (path in LISTS, path in pages))
        gone = before.files.keys() - manifest.files.keys()
        union = {**before.files, **manifest.files}
        unsure = {path: replace(union[path], sha256="") for path in (*paths, *gone)}
        old, new = ({key(path) for path in each.files} for each in (before, manifest))

        def write(path: str) -> None:
            file = manifest.files[path]
            body = (tree / (f"{file.file}.gz" if file.gzip else file.file)).read_bytes()
            headers = {"Content-Type": file.type, "Cache-Control": file.cache_control}
            headers |= {"Content-Encoding": "gzip"} if file.gzip else {}
            self._put(key(path), body, headers)

        pool = ThreadPoolExecutor(AT_ONCE)
        with self._sentences():
            self._refuse_others(new - old)
            self._put(MANIFEST, encode(replace(before, files={**union, **unsure})), JSON)
            try:
                list(pool.map(write, paths))
            finally:
                pool.shutdown(cancel_futures=True)
            self._put("redirects.json", msgspec.json.encode(manifest.redirects), JSON)
            for name in old - new:
                with suppress(FileNotFoundError):  # a run that died was as far
                    self._client.delete(self._store, name)
            self._put(MANIFEST, encode(manifest), {**JSON, "basis": basis})
        return len(paths)

    def _put(self, name: str, data: bytes, headers: Mapping[str, str]) -> None:
        self._client.put(self._store, name, data, attributes=headers)

    def _refuse_others(self, new: set[str] | None = None) -> None:
        """Refuse to go on where objects are that no manifest lists: any, or ones to be written."""
        names = {each["path"] for some in self._client.list(self._store) for each in some}
        if others := names if new is None else names & new:
            raise UploadError(f"{self._address} holds {min(others)}, which no manifest of `flask "
                              "export` lists: nothing was touched; name a new prefix")  # fmt: skip

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what the client raises into a sentence, without what may be signed."""
        try:
            yield
        except (self._client.exceptions.BaseError, FileNotFoundError) as error:
            text = re.sub(r"\?\S*", "", str(error).partition("\n")[0])
            raise UploadError(
                f"{self._address} cannot be used (are key and endpoint set?): {text}"
            ) from None


def key(path: str) -> str:
    """Return the object at a path, ``index.html`` at the first."""
    return path.strip("/") or "index.html"
