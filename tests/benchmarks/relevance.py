"""The relevance of search on judged queries: recall, negatives, precision of each label.

    python tests/benchmarks/relevance.py             the evaluation set of `tests/data/search`
    python tests/benchmarks/relevance.py FILE...     files about the shipped catalogue
        --errors     and each query that went wrong
        --meaning    with the sentence model; for files after `flask meaning`

The catalogue and the queries of the evaluation set are copies of the project's. Its names are facts
to search for; it ranks nothing. A file is a list of `{query, targets, class, kind}`. Targets are
slugs of categories; where `kind` is `brand`, names of products. Without targets a query is a
negative: nothing should be found. A query's answer is `categories` (or `brands`), then `related`.
"""

# ruff: noqa: T201 - a report is printed

import argparse
import atexit
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Iterable, Iterator, Sequence

from store.search import SURE, Compare, Document, Hit, Hits, Index
from store.search.meaning import Meaning, texts_of
from store.search.words import PREPOSITIONS, Words, singular, words_of
from store.store import Store

DATA = Path(__file__).resolve().parents[2] / "data"
JUDGED = Path(__file__).resolve().parents[1] / "data" / "search"
WORDS, SHELVES = "queries_words.json", "queries_shelves.json"
SHORT = "queries_short.json"
THIRD = "queries_third.json"


class Judged(msgspec.Struct, frozen=True):
    """A query and what answers it: slugs of categories, or names of products."""

    query: str
    group: str = msgspec.field(name="class", default="negative")
    kind: str = "category"
    targets: tuple[str, ...] = ()


class Word(msgspec.Struct, frozen=True):
    """One or two words that name a shelf, many, or none.

    `targets` are the right shelves, `choice` those that may be offered beside them; `sure` if a
    target may be called exact or likely; `held` if it was to judge rules and not to make them.
    """

    query: str
    group: str = msgspec.field(name="class")
    targets: tuple[str, ...]
    choice: tuple[str, ...]
    sure: bool
    held: bool


def judge(index: Index, word: Word) -> Literal["right", "honest", "oversure", "missed", "wrong"]:
    """Return what becomes of a word.

    It is wrong to call another shelf sure, and missed to show none of the right ones in five. It
    is honest to offer some without calling any sure.
    """
    hits = index.search(word.query)
    sure = {hit.slug for hit in (*hits.categories, *hits.brands) if hit.match in SURE}
    shown = [*(hit.slug for hit in hits.categories), *hits.related]
    if sure - set(word.targets):
        return "wrong"
    if sure and not word.sure:
        return "oversure"
    if shown and shown[0] in word.targets:
        return "right"
    fair = {*word.targets, *word.choice}
    if not sure and (not fair or not fair.isdisjoint(shown[:5])):
        return "honest"
    return "missed"


class Outcome(NamedTuple):
    """What a query found: of its own array, `related` of it, and the best hit of any array."""

    judged: Judged
    targets: frozenset[str]
    hits: tuple[Hit, ...]
    related: tuple[str, ...]
    best: Hit | None

    def rank(self, *, related: bool) -> int:
        """The place of the first target from 1, or 0; `related` counts on after the hits."""
        found = [hit.slug for hit in self.hits]
        found += self.related if related else ()
        return next((i for i, slug in enumerate(found, 1) if slug in self.targets), 0)

    @property
    def is_answered(self) -> bool:
        """Whether something is called an exact or a likely match."""
        return self.best is not None and self.best.match in SURE


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


def comparing(directory: Path, index: Index) -> Compare:
    """Return the comparison by the sentence model, with a data directory's vectors."""
    meaning = Meaning(directory)
    meaning.prepare(index.compared)
    return meaning.compare


def comparing_anew(index: Index) -> Compare:
    """Return the same for an index that has no vectors yet."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    texts = {text for document in index.compared for text in texts_of(document)}
    Meaning(directory).encode(texts, lambda _: None)
    return comparing(directory, index)


def evaluate(
    index: Index, names: dict[str, str], queries: Iterable[Judged], compare: Compare | None = None
) -> list[Outcome]:
    """Search for each query; `names` are the slugs of products by their names."""
    outcomes = []
    for judged in queries:
        found = index.search(judged.query, compare=compare)
        brand = judged.kind == "brand"
        slugs = (names.get(t, t) if brand else t for t in judged.targets)
        hits = found.brands if brand else found.categories
        best = max((h[0] for h in found[:2] if h), key=lambda hit: hit.score, default=None)
        outcomes.append(
            Outcome(judged, frozenset(slugs), hits, () if brand else found.related, best)
        )
    return outcomes


def count_labels(outcomes: Iterable[Outcome]) -> dict[str, tuple[int, int]]:
    """Return how many first hits of each label are right, and how many there are."""
    right, said = Counter[str](), Counter[str]()
    for outcome in outcomes:
        first = outcome.hits[0] if outcome.targets and outcome.hits else outcome.best
        if first:
            said[first.match] += 1
            right[first.match] += first.slug in outcome.targets
    return {label: (right[label], count) for label, count in said.items()}


def grouped(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Return what becomes of each class, of `all`, `all but synonyms`, and of the `negative`."""
    groups = defaultdict(list)
    for outcome in outcomes:
        if not outcome.targets:
            groups["negative"].append(outcome)
            continue
        groups[f"{outcome.judged.kind} {outcome.judged.group}"].append(outcome)
        groups["all"].append(outcome)
        if outcome.judged.group != "synonym":
            groups["all but synonyms"].append(outcome)
    return dict(sorted(groups.items()))


def in_five(ranks: Iterable[int]) -> int:
    """Return how many of these places are among the first five."""
    return sum(1 <= rank <= 5 for rank in ranks)


def report(outcomes: Sequence[Outcome], *, errors: bool) -> None:
    """Print recall by class, the share of negatives answered, and the precision of each label."""
    print(f"  {'':28}         hits alone      with related     answered")
    print(f"  {'':28}    n  first  in five   first  in five  surely  at all")
    for name, members in grouped(outcomes).items():
        alone, related = ([o.rank(related=more) for o in members] for more in (False, True))
        shares = [
            *(count for ranks in (alone, related) for count in (ranks.count(1), in_five(ranks))),
            sum(o.is_answered for o in members),
            sum(o.best is not None for o in members),
        ]
        figures = "  ".join(f"{share / len(members):6.3f}" for share in shares)
        print(f"  {name:28} {len(members):4}  {figures}")
    for label, (right, said) in sorted(count_labels(outcomes).items()):
        print(f"  first hits called {label:8} {right}/{said} right")
    for o in outcomes if errors else ():
        if o.rank(related=True) != 1 if o.targets else o.is_answered:
            shown = ", ".join(f"{h.slug} {h.score} {h.match}" for h in o.hits[:3])
            more = ", ".join(o.related)
            print(f"    {o.judged.query} | {'/'.join(o.targets)[:60]} | {shown} || {more}")


def report_words(index: Index, words: Sequence[Word], *, errors: bool) -> None:
    """Print what becomes of words, of those that were to judge rules for themselves."""
    for held in (False, True):
        own = [word for word in words if word.held == held]
        verdicts = [judge(index, word) for word in own]
        if verdicts:
            print(f"  {'held' if held else 'seen'}", dict(Counter(verdicts)))
        for word, verdict in zip(own, verdicts, strict=True) if errors else ():
            if verdict not in ("right", "honest"):
                print(f"    {word.query} | {verdict}")


def report_evaluation(*, errors: bool, meaning: bool) -> None:
    """Print a report of each part of the evaluation set."""
    index = make_index()
    compare = comparing_anew(index) if meaning else None
    for name in ("dev", "natural", "extra"):
        print(name)
        report(evaluate(index, {}, read_queries(name), compare), errors=errors)


def main() -> None:
    """Print a report of the evaluation set, or of each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--errors", action="store_true", help="list each query that went wrong")
    parser.add_argument("--meaning", action="store_true", help="with the sentence model")
    parser.add_argument("--data", type=Path, default=DATA, help="data directory")
    arguments = parser.parse_args()
    if not arguments.files:
        report_evaluation(errors=arguments.errors, meaning=arguments.meaning)
        return
    snapshot = Store(arguments.data).snapshot
    names = {p.name: p.slug for p in snapshot.products.values()}
    index = snapshot.summary.index
    compare = comparing(arguments.data, index) if arguments.meaning else None
    for file in arguments.files:
        print(file.name)
        if file.name in (WORDS, SHELVES, SHORT, THIRD):
            words = msgspec.json.decode(file.read_bytes(), type=list[Word])
            report_words(index, words, errors=arguments.errors)
            continue
        queries = msgspec.json.decode(file.read_bytes(), type=list[Judged])
        report(evaluate(index, names, queries, compare), errors=arguments.errors)


if __name__ == "__main__":
    main()
