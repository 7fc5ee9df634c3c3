"""Fills a directory with years of sample polls, to see how the service bears them.

    python tests/benchmarks/scale.py DIR              the shipped categories, 13 weekly polls each
    python tests/benchmarks/scale.py DIR --weeks 130  the same with ten times the weeks

It writes what ``flask poll --all --at TIME`` would, without an fsync for each record. Serve it
with ``DATA_DIR=DIR``. Needs an empty DIR; 74,100 polls take 118 MB and half a minute.
"""

import argparse
import datetime as dt
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Sequence

from store.files import Files
from store.ledger import Proof
from store.line_codec import encode_line
from store.polls import sample
from store.polls.asking import poll_of
from store.records import GOVERNING, Assistant, Category, Poll
from store.settings import SHIPPED_DATA

NEWEST = dt.datetime(2026, 11, 9, 6, tzinfo=dt.UTC)


def fill(directory: Path, weeks: int = 13, most: int | None = None) -> int:
    """Fill an empty directory; the number of polls. ``most`` limits the shipped categories."""
    names = sorted(path.name for path in (SHIPPED_DATA / "categories").iterdir())[:most]
    (directory / "categories").mkdir(parents=True)
    (directory / "history").mkdir()
    for name in (*GOVERNING, "synonyms.json", "words.json"):
        shutil.copy(SHIPPED_DATA / name, directory)
    for name in names:
        shutil.copy(SHIPPED_DATA / "categories" / name, directory / "categories")
    catalogue = Files(directory).scan()
    moments = [NEWEST - dt.timedelta(weeks=week) for week in reversed(range(weeks))]
    proof = Proof(directory)
    with proof.locked():  # begins the ledger
        for slug, category in catalogue.categories.items():
            lines = _lines(slug, category, catalogue.assistants, moments)
            (directory / "history" / f"{slug}.jsonl").write_bytes(b"".join(lines))
    proof.close(f"{NEWEST:%Y-%m-%d}")
    return len(catalogue.categories) * len(catalogue.assistants) * weeks


def _sample(slug: str, category: Category, assistant: Assistant, moment: dt.datetime) -> Poll:
    """What a sample assistant says; it is always asked."""
    reply = sample.reply(slug, category, assistant.name, moment)
    return poll_of(assistant, slug, category.question, reply)


def _lines(
    slug: str, category: Category, assistants: Sequence[Assistant], moments: Sequence[dt.datetime]
) -> list[bytes]:
    return [
        encode_line(
            _sample(slug, category, assistant, moment), moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        )[1]
        for moment in moments
        for assistant in assistants
    ]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--weeks", type=int, default=13)
    asked = parser.parse_args()
    print(f"{fill(asked.directory, asked.weeks):,} polls")  # noqa: T201


if __name__ == "__main__":
    main()
