"""An exported tree in object storage, where readers or a CDN get it; the only user of obstore.

Objects are written in place, each whole. Before the first is written, a provisional manifest takes
the place of the bucket's: it lists every object that is there or will be, without a digest where
one is about to change. After the last object the tree's own manifest follows. So a run knows what
one that died may have touched, and touches nothing else.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from store.publishing.trees import TREE_MANIFEST, TreeManifest, encode, object_of

AT_ONCE = 32  # with more, servers begin to refuse some
JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": "public, max-age=60"}
LISTS = ("/", "/sitemap.xml", "/api/v1/categories.json", "/llms.txt", "/data/dataset.json")  # last


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

    def read_manifest(self) -> tuple[TreeManifest, str]:
        """Return the bucket's manifest, and the digest of what its tree was made from."""
        with self._sentences():
            with suppress(FileNotFoundError, ValueError):
                there = self._client.get(self._store, TREE_MANIFEST)
                manifest = msgspec.json.decode(bytes(there.bytes()), type=TreeManifest)
                return manifest, there.attributes.get("basis", "")
            self._refuse_others()
        return TreeManifest({}, {}), ""

    def upload(self, before: TreeManifest, manifest: TreeManifest, tree: Path, basis: str) -> int:
        """Write what changed, delete what is gone; return how many answers were written."""
        old, new = before.files, manifest.files
        paths = [path for path, file in new.items() if old.get(path) != file]
        paths.sort(key=lambda path: (path in LISTS, new[path].type.startswith("text/html")))
        gone = old.keys() - new.keys()
        unsure = {p: replace(new.get(p) or old[p], sha256="") for p in (*paths, *gone)}
        put = partial(self._client.put, self._store)

        def write(path: str) -> None:
            file = new[path]
            body = (tree / (f"{file.file}.gz" if file.gzip else file.file)).read_bytes()
            put(object_of(path), body, attributes=file.headers)

        with self._sentences(), ThreadPoolExecutor(AT_ONCE) as pool:
            self._refuse_others({object_of(path) for path in new.keys() - old.keys()})
            put(
                TREE_MANIFEST,
                encode(replace(before, files=old | new | unsure)),
                attributes=JSON_HEADERS,
            )
            list(pool.map(write, paths))
            put("redirects.json", msgspec.json.encode(manifest.redirects), attributes=JSON_HEADERS)
            for path in gone:
                with suppress(FileNotFoundError):  # a run that died was as far
                    self._client.delete(self._store, object_of(path))
            put(TREE_MANIFEST, encode(manifest), attributes={**JSON_HEADERS, "basis": basis})
        return len(paths)

    def _refuse_others(self, new: set[str] | None = None) -> None:
        """Refuse to go on where objects are that no manifest lists: any, or ones to be written."""
        names = {item["path"] for page in self._client.list(self._store) for item in page}
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
            raise UploadError(f"{self._address} cannot be used (key? endpoint?): {text}") from None
