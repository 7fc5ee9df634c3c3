"""Lookup of rankings, products, topics and assistants: found, moved elsewhere, or refused."""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from itertools import dropwhile
from typing import NoReturn, TypeVar

from store.rankings.leaderboards import Leaderboard
from store.rankings.products import ProductProfile
from store.rankings.sentences import day_in_words, number_in_words
from store.records import Problem
from store.search import SURE
from store.search.words import FILLERS, FUNCTION_WORDS, MONTH, words_of
from store.site_summary import RankedPart, RankedTopic
from store.snapshot import Snapshot
from store.web import as_of
from store.web.errors import Moved, ParameterError, Refused
from store.web.queries import is_day
from store.web.view import View

Chosen = TypeVar("Chosen")

_BETWEEN = re.compile(
    r"\s+(?:vs\.?|versus|or|against|compared (?:to|with)|(?:better|worse) than|ahead of)\s+",
    re.IGNORECASE,
)
"""Words that people write between two names that they want compared."""
_COUNTS = {number_in_words(number): number for number in range(2, 13)}
_SPAN = rf"(?:this|last|past) (?:(\d{{1,3}}|{'|'.join(_COUNTS)}) )?(day|week|month)s?"
"""A span of time; it ends with the newest answer, for no answer depends on the clock."""
_NEWS = re.compile(
    r"\b(?:what(?:.?s)?|which|has|have|did|anything)\b(.*)\bchanged?\b|"
    r"\b(?:(?:any|latest|newest|recent) )?(?:changes|news)\b"
    r"(?=\W*$|\W+(?:about|for|from|in|of|on|since|this|last|past|after)\b)|"
    r"\bwhat(?:.?s| is) new\b|\banything new\b|\bnew (?:leaders?|#1s?|winners?)\b|"
    rf"\b(?:recently|lately|(?:(?:in|over|during) )?(?:the )?{_SPAN})\b",
    re.IGNORECASE,
)
"""Phrases that ask for news."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NEWS_FROM = re.compile(
    r"\b(?:(?:(?:since|on|after|from) )?(?P<day>\d{4}-\d\d-\d\d)|"
    r"(?:since|in|after|from) (?:(?:the )?(?P<before>\d\d?)(?:st|nd|rd|th)?(?: of)? )?"
    rf"(?P<month>{MONTH})(?: (?P<after>\d\d?)(?:st|nd|rd|th)?\b)?(?:,? (?P<year>\d{{4}}))?)\b",
    re.IGNORECASE,
)
"""A day or month from which on news is asked for: "since 2 November", "in May 2026"."""
_ASKING = frozenset({
    "are", "best", "can", "do", "does", "how", "is", "should", "the", "what", "which", "who", "why",
})  # fmt: skip
"""Words with which a question begins, in upper case as well."""
_LEADING_WORDS = _ASKING | {
    "I", "a", "an", "better", "buy", "choose", "could", "get", "help", "i", "it", "me", "my",
    "need", "one", "pick", "to", "use", "want", "we",
}  # fmt: skip
"""Words before a name in a question; spelled in another case they may be part of the name."""
_OF_RANKINGS = FILLERS | {
    "biggest", "categories", "category", "change", "first", "leader", "leaders", "number", "place",
    "places", "ranking", "rankings",
}  # fmt: skip
"""Words that name no ranking: who uses no others asks about all of them."""
_COMPARED = re.compile(
    r"\W*(?:compare|comparison of|differences? between)\s+(.+?)\s+(?:and|with|to)\s+(.+)",
    re.IGNORECASE,
)
"""A query that begins with a word for comparing, as in "compare A and B"."""
_MOST_WORDS_OF_NAME = 6
"""Words of a query beside "vs" that may be a name at most: the longest name shipped has five."""


def check_history(snapshot: Snapshot) -> None:
    """Refuse to answer from history of which nothing is known.

    Else lists would be empty and products unknown, as if nobody had ever answered.

    Raises:
        Refused: no line of it could be read.
    """
    if snapshot.lost and not any(index.models for index in snapshot.poll_indexes.values()):
        why = f"Nothing can be shown until this is mended: {snapshot.lost[0]}"
        raise Refused("unavailable", why)


def board(view: View, slug: str) -> Leaderboard:
    """Return the ranking of a category.

    Raises:
        Moved: the slug is a former one.
        Refused: there is no ranking.
    """
    return view.snapshot.leaderboards.get(slug) or refuse_category(view, slug)


def refuse_category(view: View, slug: str) -> NoReturn:
    """Raise :class:`Moved` for a former slug, else :class:`Refused` with why there is no ranking.

    A category is deleted if history holds its slug and its file is gone (store/README.md, Damage).
    Where a file is bad or history lost, its ranking is there and cannot be shown.
    """
    snapshot = view.snapshot
    if current := snapshot.summary.category_redirects.get(slug):
        raise Moved(slug=current)
    if fault := snapshot.fault_of(slug):
        raise _unavailable(slug, fault)
    if deleted := snapshot.deleted_category(slug):
        answered = deleted.wordings.newest
        last = f"its last answer is of {answered[:10]}" if answered else "it was never answered"
        why = f'The category "{slug}" is gone: {last}. Its polls stay at '
        raise Refused("gone", f"{why}/api/v1/history?slug={slug}.")
    if category := snapshot.catalogue.categories.get(slug):
        index = snapshot.poll_indexes.get(slug)
        withheld = " that is not withheld" if index and index.withheld else ""
        what = "only answers that are withheld" if withheld else "no answer yet"
        raise Refused(
            "no-answer-yet",
            f'The category "{slug}" has no successful poll yet{withheld}.',
            f"“{category.question}” has {what}. Its ranking appears here as soon as there is one "
            "to show.",
            heading=f"{category.title}: {'nothing to show' if withheld else 'no answer yet'}",
        )
    raise Refused(
        "unknown-category",
        f'No category with the slug "{slug}". Resolve slugs through /api/v1/search?q=.',
        f"There is no ranking called “{slug}”.",
        suggestions=view.suggestions(slug, "categories"),
    )


def product(view: View, slug: str, parameter: str = "slug") -> ProductProfile:
    """Return the product at the slug that a parameter has.

    Raises:
        Moved: the slug is a former one.
        Refused: there is no such product; its file may be bad, or history lost that may name it.
    """
    snapshot = view.snapshot
    if profile := snapshot.product(slug):
        return profile
    if fault := snapshot.catalogue.fault_of("products", slug):
        raise _unavailable(slug, fault)
    # Last: the first look at the redirects of a snapshot takes 30 ms.
    if current := snapshot.summary.product_redirects.get(slug):
        raise Moved(**{parameter: current})
    if snapshot.lost:
        raise Refused(
            "unavailable",
            f'No product with the slug "{slug}" is known, but it may be named in history that '
            f"cannot be read until this is mended: {snapshot.lost[0]}",
        )
    raise Refused(
        "unknown-product",
        f'No product with the slug "{slug}". Resolve names through /api/v1/search?q=.',
        f"There is no product called “{slug}”.",
        suggestions=view.suggestions(slug, "brands"),
    )


def topic(view: View, slug: str) -> RankedTopic:
    """Return the topic at a slug, or raise :class:`Refused`."""
    if topic := view.snapshot.summary.topic(slug):
        return topic
    why = f'There is no topic with the slug "{slug}". /topics lists them all.'
    raise Refused("unknown-topic", why)


def topic_parameter(view: View, slug: str | None) -> RankedTopic | None:
    """Return the topic that a parameter names, if any; raise as :func:`_choice` does."""
    topics = {topic.slug: topic for topic in view.snapshot.summary.topics}
    return _choice("topic", slug, topics, "unknown-topic")


def part_parameter(topic: RankedTopic | None, slug: str | None) -> RankedPart | None:
    """Return the part of a topic that a parameter names, if any; raise as :func:`_choice` does."""
    if slug and not topic:
        raise Refused.parameters([ParameterError(parameter="part", detail="needs its topic.")])
    parts = {part.slug: part for part in topic.parts} if topic else {}
    return _choice("part", slug, parts)


def model_parameter(view: View, name: str | None) -> str | None:
    """Return the present name of the assistant that a parameter names, if any.

    Raises as :func:`_choice` does.
    """
    return _choice("model", name, model_names(view.snapshot))


def _choice(
    parameter: str,
    text: str | None,
    choices: Mapping[str, Chosen],
    code: str = "bad-parameter",
) -> Chosen | None:
    """Return what the text of a parameter stands for; ``None`` without one.

    Raises:
        Moved: it would be right in other upper and lower case.
        Refused: it is unknown.
    """
    if text is None:
        return None
    if text in choices:
        return choices[text]
    # Nobody should have to know where case matters.
    if alike := next((c for c in choices if c.casefold() == text.casefold()), None):
        raise Moved(**{parameter: alike})
    detail = f"is unknown; accepted are: {', '.join(choices) or 'none yet'}."
    raise Refused.parameters([ParameterError(parameter=parameter, detail=detail)], code)


def model_names(snapshot: Snapshot) -> dict[str, str]:
    """Return the present name by every one that ``model`` may give: present, retired, former."""
    present = (*snapshot.models, *snapshot.summary.retired)
    return {**{name: name for name in present}, **snapshot.catalogue.former_names}


def check_day(view: View, board: Leaderboard, day: str) -> None:
    """Refuse a day as of which a category has no ranking that can be shown."""
    # History that was lost and accepted cannot be told apart from what never was.
    if loss := as_of.loss_after(view.snapshot, board.slug, day):
        raise Refused(
            "unavailable",
            f'What "{board.slug}" ranked before {loss.day} cannot be shown: history was lost, '
            f"which a person accepted on that day ({loss.reason}).",
        )
    first = as_of.first_day(view.snapshot, board.slug)
    if day < first:
        raise Refused(
            "no-such-day",
            f'The category "{board.slug}" had no ranking on {day}: its first answer is of {first}. '
            "Ask for that day or a later one.",
            f"Its first answer is of {day_in_words(first)}: ask for {first} or a later day.",
            heading=f"“{board.category.title}” had no ranking on {day_in_words(day)}",
        )


def no_experiment(view: View, slug: str) -> Refused:
    """Return why there is no write-up of an experiment."""
    if fault := view.snapshot.catalogue.fault_of("labs", slug):
        return _unavailable(slug, fault)
    why = f'No experiment with the slug "{slug}". /labs lists them all.'
    return Refused(
        "unknown-experiment", why, "There is no finding at this address. /labs lists them all."
    )


def _unavailable(slug: str, fault: Problem) -> Refused:
    return Refused("unavailable", f'"{slug}" cannot be shown until this is mended: {fault}')


def product_named(text: str, view: View) -> ProductProfile | None:
    """Return the product whose slug, former slug or name a text is, by the rules for answers."""
    snapshot = view.snapshot
    if product := snapshot.product(text):
        return product
    # Last: the first look at the redirects of a snapshot takes 30 ms.
    if product := snapshot.product(snapshot.summary.product_redirects.get(text, "")):
        return product
    return snapshot.products.get(snapshot.names.resolve(text, None, ()).product) if text else None


def compared_products(query: str, view: View) -> tuple[ProductProfile, ProductProfile] | None:
    """Return the two products in a query such as "is x or y better", each exactly as spelled."""
    sides = _sides(query)
    if len(sides) != 2:  # noqa: PLR2004 - what stands before and after
        return None
    before, after = (side.split() for side in sides)
    # The longest name first: "Alpha One" is another product than "Alpha".
    ends = [
        " ".join(before[i:]) for i in range(max(0, len(before) - _MOST_WORDS_OF_NAME), len(before))
    ]
    starts = [" ".join(after[:i]) for i in range(min(len(after), _MOST_WORDS_OF_NAME), 0, -1)]
    one, other = (
        next(filter(None, (product_named(text, view) for text in texts)), None)
        for texts in (ends, starts)
    )
    return (one, other) if one and other and one is not other else None


def news_in(query: str, view: View) -> tuple[str, str | None] | None:
    """Return the subject that a query wants news of, empty for all, and the UTC day since which.

    ``None`` if it asks for none. "Has the #1 VPN changed" asks for news of the #1 VPN.
    """
    subject, count = _NEWS.subn(r"\1", query)
    if not count:
        return None
    subject = " ".join(_NEWS_FROM.sub("", subject).split())
    of_all = _OF_RANKINGS.issuperset(words_of(subject)) and not topic_in(subject, view)
    newest = as_of.newest_day(view.snapshot)
    since = _since(query, date.fromisoformat(newest)) if newest else None
    return "" if of_all else subject, since


def _since(query: str, newest: date) -> str | None:
    """Return the UTC day from which on a query asks; a month without a year is the last such."""
    if span := re.search(rf"\b{_SPAN}\b", query, re.IGNORECASE):
        days = {"day": 1, "week": 7, "month": 31}[span[2].lower()]
        count = int(_COUNTS.get((span[1] or "1").lower(), span[1] or 1))
        return f"{newest - timedelta(days=count * days - 1)}"
    if not (time := _NEWS_FROM.search(query)):
        return None
    if not time["month"]:
        return time["day"] if is_day(time["day"]) else None
    number, day = _MONTHS.index(time["month"][:3].lower()) + 1, time["before"] or time["after"]
    # A later day of the month of the newest answer is asked about today: nothing is newer than it.
    year = int(time["year"] or newest.year - (number > newest.month))
    start = f"{year:04}-{number:02}-{int(day or 1):02}"
    return start if is_day(start) else None


def topic_in(text: str, view: View) -> tuple[str, str | None] | None:
    """Return the slugs of the topic, and of the part of one, that a text names.

    It is the one with this title or slug, else the only one with its words; topics come first.
    """

    def telling(text: str) -> set[str]:
        return {word for word in words_of(text) if word not in _OF_RANKINGS}

    words, names = {*words_of(text)}, telling(text)
    topics = view.snapshot.summary.topics
    if not names:  # "money" and "apps" are telling only as topics
        return next(((topic.slug, None) for topic in topics if topic.slug in words), None)
    whole = [(title, (t.slug, None)) for t in topics for title in (t.title, t.slug)]
    parts = [(part.title, (topic.slug, part.slug)) for topic in topics for part in topic.parts]
    for title, slugs in (*whole, *parts):
        # "Security" is not "home security", though "home" tells nothing by itself.
        if names == telling(title) and words >= {*words_of(title)} - FUNCTION_WORDS:
            return slugs
    for titles in (whole, parts):
        partly = {slugs for title, slugs in titles if names < telling(title)}
        if len(partly) == 1:
            return partly.pop()
    return None


def unknown_names(query: str, view: View) -> list[str]:
    """Return what stands beside "vs" or "or", is spelled as a name, and is of no product here."""
    sides = _sides(query)
    if len(sides) == 1:
        return []
    if (start := sides[0].split()[:1]) and start[0].lower() in _ASKING:
        sides[0] = sides[0][0].lower() + sides[0][1:]
    names = [" ".join(dropwhile(_LEADING_WORDS.__contains__, side.split())) for side in sides]
    # What is longer is a sentence, what begins in lower case a word, what is ranked a thing.
    names = [
        n for n in names if len(n.split()) <= _MOST_WORDS_OF_NAME and re.match(r"\S*[A-Z\d]", n)
    ]
    names = [name for name in names if not _begins_or_ends_with_product(name.split(), view)]
    return [name for name in names if not _is_category(name, view)]


def _is_category(name: str, view: View) -> bool:
    """Return whether a name is that of a category, or what its title says of it: "CRM"."""
    categories = view.snapshot.catalogue.categories
    return any(
        hit.match == "exact"
        or (hit.match in SURE and {*words_of(name)} <= {*words_of(categories[hit.slug].title)})
        for hit in view.search(name, 1).categories
    )


def _begins_or_ends_with_product(words: list[str], view: View) -> bool:
    parts = (part for i in range(len(words)) for part in (words[i:], words[: i + 1]))
    return any(product_named(" ".join(part), view) for part in parts)


def _sides(query: str) -> list[str]:
    compared = _COMPARED.fullmatch(query)
    sides = compared.groups() if compared else _BETWEEN.split(query, maxsplit=1)
    return [side.strip(" ?!.,\"'") for side in sides]
