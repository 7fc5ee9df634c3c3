"""The catalogue as it is published: what the data files say, one JSON line for each file.

With it and the evidence anyone can make the data directory again from which every answer follows.
What is an operator's own stays at home: keys' names, providers' addresses, prices, caps, hosts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from store.files import Catalogue
from store.records import (
    FOLDERS,
    SINGLE,
    Assistant,
    DataFile,
    Models,
    Words,
)

NAME = "catalogue.jsonl"
_FILE = re.compile(r"({})/([a-z0-9-]{{1,100}})\.json".format("|".join(FOLDERS)))

_SHOWN = ("name", "former_names", "maker", "api", "web_search")
"""What is published of an assistant."""


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """What one data file says; ``file`` is its name relative to the data directory."""

    file: str
    says: dict[str, Any]


_ENTRY = msgspec.json.Decoder(Entry)


def published(catalogue: Catalogue, base_url: str | None) -> bytes:
    """The catalogue in JSON Lines, sorted by file."""
    files = sorted(_files(catalogue, base_url))
    entries = [{"file": name, "says": says} for name, says in files]
    return msgspec.json.Encoder().encode_lines(entries)


def restore(data: bytes, directory: Path) -> None:
    """Write the data files that a published catalogue tells of.

    Raises:
        ValueError: a line of it is none; the sentence names it.
    """
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            entry = _ENTRY.decode(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None
        if entry.file not in SINGLE and not _FILE.fullmatch(entry.file):
            raise ValueError(f'line {number}: "{entry.file[:100]}" is no data file')
        path = directory / entry.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(entry.says, order="sorted"))


def _files(catalogue: Catalogue, base_url: str | None) -> Iterator[tuple[str, DataFile]]:
    replace = msgspec.structs.replace
    yield "site.json", replace(catalogue.site, base_url=base_url, hosts=(), daily_usd=None)
    models = tuple(
        Assistant(**{name: getattr(assistant, name) for name in _SHOWN})
        for assistant in catalogue.assistants
    )
    yield "models.json", Models(version=1, models=models)
    source = catalogue.words_from or "none given"
    yield "words.json", Words(version=1, source=source, words=catalogue.words)
    for name in SINGLE.keys() - {"site.json", "models.json", "words.json"}:
        fields = set(SINGLE[name].__struct_fields__).difference(DataFile.__struct_fields__)
        says = {field: getattr(catalogue, field) for field in fields}
        yield name, SINGLE[name](version=1, **says)
    for folder in FOLDERS:
        for slug, record in getattr(catalogue, folder).items():
            yield f"{folder}/{slug}.json", record
