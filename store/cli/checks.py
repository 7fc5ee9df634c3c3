"""What ``flask check`` looks at beyond what keeps a file from being loaded."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.records import Problem
from store.snapshot import history_files

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from store.files import Catalogue, Files
    from store.history import History, Log
    from store.positions import JsonPath

_NO_TOPIC = re.compile(r"(best|the)\b", re.IGNORECASE)
_STOPS = tuple(".,;:!?\u2026")
_LONGEST_ROUND = 7
_NAMED = 5
UNKNOWN = "unknown"


class Census(Struct, frozen=True):
    """What all history files hold: polls per model, newest poll per file, all ids.

    Of a file that cannot be read, or that lost some, the newest poll is :data:`UNKNOWN`.
    """

    models: Mapping[str, int]
    newest: Mapping[str, str]
    ids: frozenset[str]


def advice(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """What is allowed and yet hardly meant."""
    for slug, category in catalogue.categories.items():
        key: JsonPath = ("topic",) if category.topic else ("title",)
        fault = _fault_of_topic(category.subject)
        if fault:
            message = f'"for {category.subject}" stands in verdicts: a topic {fault}'
            yield files.problem_at(f"categories/{slug}.json", key, message, "warning")
    site = catalogue.site
    if site.poll_every_days > _LONGEST_ROUND:
        message = (
            f"poll_every_days is {site.poll_every_days}: above {_LONGEST_ROUND} nothing is polled "
            "in both weeks of a trend, and every trend is insufficient"
        )
        yield files.problem_at("site.json", ("poll_every_days",), message, "warning")
    if site.drop_after_days < site.stale_after_days:
        message = "answers are dropped before they are called stale; it should be the later"
        yield files.problem_at("site.json", ("drop_after_days",), message, "warning")


def damage(history: History) -> Generator[Problem, None, Census]:
    """Every line of history that is damaged or not what its id says; returns the census."""
    models: Counter[str] = Counter()
    newest: dict[str, str] = {}
    ids: set[str] = set()
    for slug in sorted({*history.signatures(), *history.remembered()}):
        log = history.read(slug)
        yield from log.problems
        if log.unread:
            newest[slug] = UNKNOWN
            continue
        yield from _forged(history, slug, log)
        models.update(stored.poll.model for stored in log.polls)
        ids.update(stored.poll.id for stored in log.polls)
        newest[slug] = max((stored.poll.polled_at for stored in log.polls), default="")
    return Census(models, newest, frozenset(ids))


def remarks(catalogue: Catalogue, census: Census, files: Files) -> Iterator[Problem]:
    """What is worth knowing: who retired, what nobody polls, what nobody asks for any more."""
    for id_ in catalogue.withheld.keys() - census.ids:
        message = f"no poll in history has the id {id_}"
        yield files.problem_at("withheld.json", ("withheld", id_), message, "warning")
    names = {assistant.name for assistant in catalogue.assistants}
    for model in sorted(census.models.keys() - names) if names else ():
        message = f'"{model}" is retired: its {census.models[model]:,} polls count in no ranking'
        yield Problem("models.json", 1, 1, message, "notice")
    read = {
        slug: history_files(slug, category, catalogue.categories)
        for slug, category in catalogue.categories.items()
    }
    never = [s for s, own in read.items() if not any(census.newest.get(file) for file in own)]
    if never:
        message = f"{_counted(never)} never been polled; `flask poll --due` asks for what is due"
        yield Problem("history", 1, 1, message, "notice")
    held = {file for files_of_one in read.values() for file in files_of_one}
    held |= {slug for slug in census.newest if f"categories/{slug}.json" in catalogue.modified}
    left = sorted(census.newest.keys() - held)
    if left:
        message = f"{_counted(left)} no category any more; if one was renamed, list its old slug"
        yield Problem("history", 1, 1, f"{message} in former_slugs", "notice")


def _fault_of_topic(topic: str) -> str | None:
    if start := _NO_TOPIC.match(topic):
        return f'does not start with "{start.group()}"'
    return "does not end in punctuation" if topic.endswith(_STOPS) else None


def _forged(history: History, slug: str, log: Log) -> Iterator[Problem]:
    """The polls whose id is not the hash of what they say (CONTRACT section 3)."""
    if not log.polls:
        return
    lines = history.lines(slug, [(stored.start, stored.end) for stored in log.polls])
    for stored, line in zip(log.polls, lines, strict=True):
        if line is None:  # set aside since it was read
            continue
        bare = msgspec.json.decode(line)
        del bare["id"], bare["crc"]
        identity = hashlib.sha256(msgspec.json.encode(bare)).hexdigest()[:16]
        if identity != stored.poll.id:
            number = _line_number(history, slug, stored.start)
            message = "the record is not what its id says: it was changed after it was written"
            yield Problem(f"history/{slug}.jsonl", number, 1, message)


def _line_number(history: History, slug: str, start: int) -> int:
    with history.path(slug).open("rb") as file:
        return file.read(start).count(b"\n") + 1


def _counted(slugs: list[str]) -> str:
    """``3 categories (a, b, c) have`` …, the first few by name."""
    shown = ", ".join(slugs[:_NAMED]) + (", …" if len(slugs) > _NAMED else "")
    return f"1 slug ({shown}) has" if len(slugs) == 1 else f"{len(slugs):,} slugs ({shown}) have"
