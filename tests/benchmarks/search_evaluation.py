"""The relevance of search, class by class, on the judged queries of `tests/data/search`.

    python tests/benchmarks/search_evaluation.py
        --errors     and each query that went wrong
        --meaning    with the installed sentence model

The catalogue and the queries are copies of the project's evaluation set. Its names are facts to
search for; it ranks nothing. Negatives are queries to which nothing is the right answer.
"""

# ruff: noqa: T201 - a report is printed

import argparse
import atexit
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Iterator

from relevance import Judged, evaluate, report

from store.search import Compare, Document, Hits, Index
from store.search.meaning import Meaning, texts_of
from store.search.words import PREPOSITIONS, Words, singular, words_of

TESTS = Path(__file__).resolve().parents[1]
JUDGED = TESTS / "data" / "search"
DATA = TESTS.parent / "data"


def read_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    return msgspec.json.decode(path.read_bytes())


def read_queries(name: str) -> list[Judged]:
    """Return the judged queries of the set `dev`, `natural` or `extra` (more negatives)."""
    if name == "extra":
        return list(map(Judged, read_json(JUDGED / "negatives_extra.json")))
    path = JUDGED / f"queries_{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=list[Judged])


def make_index() -> Index:
    """Return an index of the evaluation catalogue."""
    catalogue = read_json(JUDGED / "catalogue.json")
    return Index(
        [Document(slug, (title,)) for slug, title in catalogue["categories"]],
        [Document(slug, (name,), domain) for slug, name, domain in catalogue["products"]],
        read_json(DATA / "synonyms.json")["synonyms"],
        read_json(DATA / "words.json")["words"],
    )


def left_out(folds: int = 2) -> Iterator[tuple[str, Hits]]:
    """Yield categories that are not in the index, with what a search for their titles finds.

    They are those whose last word, before any preposition, is in no other title. In each fold, a
    part of them is taken out of the evaluation catalogue.
    """
    catalogue = read_json(JUDGED / "catalogue.json")
    titles = {slug: words_of(title) for slug, title in catalogue["categories"]}
    used = Counter(word for words in titles.values() for word in {*map(singular, words)})
    alone = [slug for slug, words in titles.items() if used[_head(words)] == 1]
    whole = make_index()
    for fold in range(folds):
        missing = set(alone[fold::folds])
        categories = [item for item in whole.given[0] if item.slug not in missing]
        index = Index(categories, *whole.given[1:])
        for slug in sorted(missing):
            yield slug, index.search(" ".join(titles[slug]))


def _head(words: Words) -> str:
    ends = [i for i, word in enumerate(words) if i and word in PREPOSITIONS]
    return singular(words[ends[0] - 1 if ends else -1])


def comparing(index: Index) -> Compare:
    """Return the comparison by the installed sentence model."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    meaning = Meaning(directory)
    meaning.encode({text for each in index.compared for text in texts_of(each)}, lambda _: None)
    meaning.prepare(index.compared)
    return meaning.compare


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--errors", action="store_true", help="list each query that went wrong")
    parser.add_argument("--meaning", action="store_true", help="with the sentence model")
    arguments = parser.parse_args()
    index = make_index()
    compare = comparing(index) if arguments.meaning else None
    for name in ("dev", "natural", "extra"):
        print(name)
        report(evaluate(index, {}, read_queries(name), compare), errors=arguments.errors)


if __name__ == "__main__":
    main()
