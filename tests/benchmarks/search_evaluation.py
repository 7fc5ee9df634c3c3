"""The relevance of search, class by class, on the judged queries of `tests/data/search`.

    python tests/benchmarks/search_evaluation.py [BASE_URL]    an index in this process, or a server
        --errors       and each query that went wrong
        --meaning      with the installed sentence model
        --write DIR    no more than a data directory with the catalogue

The catalogue and the queries are copies of the project's evaluation set. Its names are facts to
search for; it ranks nothing. Negatives are queries to which nothing is the right answer.
"""

# ruff: noqa: T201 - a report is printed

import argparse
import atexit
import http.client
import shutil
import sys
import tempfile
import time
import urllib.parse
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[i]) for i in (1, 2)]

from collections.abc import Callable, Iterator

from builders import answered, write_data

from store.line_codec import encode_line
from store.rankings.names import slug as slug_of
from store.search import Compare, Document, Hits, Index
from store.search.meaning import Meaning, texts_of
from store.search.words import PREPOSITIONS, Words, singular, words_of

TESTS = Path(__file__).resolve().parents[1]
JUDGED = TESTS / "data" / "search"
DATA = TESTS.parent / "data"

Slugs = list[str]


class Judged(msgspec.Struct, frozen=True):
    """A query and the slugs that answer it; `kind` is category, brand or negative."""

    query: str
    kind: str
    group: str = msgspec.field(name="class")
    targets: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What became of one query: the rank of its first target (0: none), whether all was empty."""

    judged: Judged
    rank: int
    silent: bool
    found: Slugs
    milliseconds: float


class Row(NamedTuple):
    """One line of the table: shares of so many `queries`, each 0..1."""

    queries: int
    recall_1: float
    recall_5: float
    mean_reciprocal_rank: float
    answered: float


def read_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    return msgspec.json.decode(path.read_bytes())


def read_queries(name: str) -> list[Judged]:
    """Return the judged queries of the set `dev`, `natural` or `extra` (more negatives)."""
    if name == "extra":
        texts = read_json(JUDGED / "negatives_extra.json")
        return [Judged(text, "negative", "negative") for text in texts]
    path = JUDGED / f"queries_{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=list[Judged])


def make_index(*, synonyms: bool = True) -> Index:
    """Return an index of the evaluation catalogue, with or without the shipped synonyms."""
    catalogue = read_json(JUDGED / "catalogue.json")
    return Index(
        [Document(slug, (title,)) for slug, title in catalogue["categories"]],
        [Document(slug, (name,), domain) for slug, name, domain in catalogue["products"]],
        read_json(DATA / "synonyms.json")["synonyms"] if synonyms else [],
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


def write_catalogue(directory: Path) -> None:
    """Write a data directory that serves the evaluation catalogue, every product once ranked.

    A product is ranked where chance puts it: its polls make it findable and mean nothing. It has a
    file only if its slug does not follow from its name.
    """
    catalogue = read_json(JUDGED / "catalogue.json")
    categories = catalogue["categories"]
    domains = {name: domain for _, name, domain in catalogue["products"] if domain}
    write_data(
        directory,
        categories={slug: {"title": title} for slug, title in categories},
        products={
            slug: {"name": name} for slug, name, _ in catalogue["products"] if slug != slug_of(name)
        },
        models=("A", "B"),
    )
    for name in ("synonyms.json", "words.json"):
        (directory / name).write_bytes((DATA / name).read_bytes())
    (directory / "history").mkdir()
    for i, (slug, title) in enumerate(categories):
        names = [name for _, name, _ in catalogue["products"][i :: len(categories)]]
        polls = [
            answered(
                model, part, slug=slug, question=f"What is the {title.lower()}?", domains=domains
            )
            for model, part in (("A", names[:5]), ("B", names[5:]))
            if part
        ]
        lines = b"".join(encode_line(poll, poll.polled_at)[1] for poll in polls)
        (directory / "history" / f"{slug}.jsonl").write_bytes(lines)


def comparing(index: Index) -> Compare:
    """Return the comparison by the installed sentence model."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    meaning = Meaning(directory)
    meaning.encode({text for each in index.compared for text in texts_of(each)}, lambda _: None)
    meaning.prepare(index.compared)
    return meaning.compare


def ask_index(index: Index, compare: Compare | None = None) -> Callable[[str], tuple[Slugs, Slugs]]:
    """Return a function from a query to the slugs of categories and brands an index finds."""

    def ask(query: str) -> tuple[Slugs, Slugs]:
        found = index.search(query, compare=compare)
        return [hit.slug for hit in found.categories], [hit.slug for hit in found.brands]

    return ask


def ask_server(base: str) -> Callable[[str], tuple[Slugs, Slugs]]:
    """Return a function from a query to the slugs that the API under a base URL finds."""
    url = urllib.parse.urlsplit(base)
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.netloc, timeout=30)

    def ask(query: str) -> tuple[Slugs, Slugs]:
        path = url.path.rstrip("/") + "/api/v1/search?q=" + urllib.parse.quote(query, safe="")
        connection.request("GET", path)
        answer = msgspec.json.decode(connection.getresponse().read())
        categories, brands = answer.get("categories", []), answer.get("brands", [])
        return [hit["slug"] for hit in categories], [hit["slug"] for hit in brands]

    return ask


def run(queries: list[Judged], ask: Callable[[str], tuple[Slugs, Slugs]]) -> list[Outcome]:
    """Return what becomes of each query."""
    outcomes = []
    for judged in queries:
        start = time.perf_counter()
        categories, brands = ask(judged.query)
        milliseconds = (time.perf_counter() - start) * 1000
        found = brands if judged.kind == "brand" else categories
        if judged.kind == "negative":
            found = categories + brands
        rank = next((i for i, slug in enumerate(found, 1) if slug in judged.targets), 0)
        outcomes.append(Outcome(judged, rank, not (categories or brands), found, milliseconds))
    return outcomes


def tabulate(outcomes: list[Outcome]) -> dict[str, Row]:
    """Return the rows of the table by name: each class, `all`, `all but synonyms`, `negative`."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        kind, group = outcome.judged.kind, outcome.judged.group
        if kind == "negative":
            groups["negative"].append(outcome)
            continue
        groups[f"{kind} {group}"].append(outcome)
        groups["all"].append(outcome)
        if group != "synonym":
            groups["all but synonyms"].append(outcome)
    return {name: _row(members) for name, members in sorted(groups.items())}


def _row(outcomes: list[Outcome]) -> Row:
    count, ranks = len(outcomes), [outcome.rank for outcome in outcomes]
    return Row(
        count,
        ranks.count(1) / count,
        sum(1 <= rank <= 5 for rank in ranks) / count,
        sum(1 / rank for rank in ranks if rank) / count,
        sum(not outcome.silent for outcome in outcomes) / count,
    )


def went_wrong(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield a line for each query without a target in first place, or answered for nothing."""
    for judged, rank, silent, found, _ in outcomes:
        if judged.kind == "negative" and not silent:
            yield f"answered | {judged.query} | {', '.join(found[:3])}"
        elif judged.kind != "negative" and rank != 1:
            wanted = " or ".join(judged.targets[:3])
            yield f"{judged.group} | {judged.query} | {wanted} | {rank} | {', '.join(found[:3])}"


def show(name: str, outcomes: list[Outcome], *, errors: bool) -> None:
    """Print the table of one set of queries."""
    print(f"\n{name:34} n  recall@1  recall@5  MRR    answered")
    for group, row in tabulate(outcomes).items():
        figures = f"{row.recall_1:8.3f}  {row.recall_5:8.3f}  {row.mean_reciprocal_rank:5.3f}"
        figures = figures if group != "negative" else " " * len(figures)
        print(f"  {group:28} {row.queries:4} {figures}  {row.answered:8.3f}")
    times = sorted(outcome.milliseconds for outcome in outcomes)
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"  milliseconds: p50 {p50:.1f}, p99 {p99:.1f}, worst {times[-1]:.1f}")
    for line in went_wrong(outcomes) if errors else ():
        print("   ", line)


def main() -> None:
    """Print every table, for an index in this process or for a server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("base", nargs="?", help="base URL of a server that serves the catalogue")
    parser.add_argument("--errors", action="store_true", help="list each query that went wrong")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write a data directory, no more")
    parser.add_argument("--meaning", action="store_true", help="with the sentence model")
    arguments = parser.parse_args()
    if arguments.write:
        write_catalogue(arguments.write)
        return
    index = make_index()
    compare = comparing(index) if arguments.meaning else None
    ask = ask_server(arguments.base) if arguments.base else ask_index(index, compare)
    for name in ("dev", "natural", "extra"):
        show(name, run(read_queries(name), ask), errors=arguments.errors)


if __name__ == "__main__":
    main()
