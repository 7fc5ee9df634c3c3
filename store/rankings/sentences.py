"""The sentences people quote: verdicts, consensus and disagreement (store/README.md, Figures)."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from store.rankings.merging import PLACES, leaders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.rankings.agreement import Agreement
    from store.rankings.certainty import Certainty, FirstShare
    from store.rankings.leader_changes import LeaderChange
    from store.rankings.merging import CountedAnswer, Entry
    from store.rankings.names import ProductId
    from store.rankings.windows import VersionChange, Window

MAX_QUOTE_CHARS = 200
"""Characters of a model's own words in a verdict at most (store/README.md, Figures)."""

MAX_NAMED = 4
"""Contenders that a sentence names before it counts the rest: as many as an ear keeps."""

MAX_VERSION_CHARS = 60
"""Characters of a provider's name for a version that a sentence tells at most."""

MAX_EXCERPT_CHARS = 280
"""Characters of a reason in a merged ranking at most; published, ``perModel`` has it uncut."""

_OWN_STOP = re.compile(r"(?<!\.)\.$")
_ENDED = re.compile("[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\\]]*$")


def cut(text: str, limit: int) -> str:
    """A text of at most ``limit`` characters, cut on a word, the ellipsis included.

    >>> cut("quiet, small and cheap", 14)
    'quiet, small…'
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    if text[limit - 1] != " " and " " in kept:
        kept = kept[: kept.rindex(" ")]
    return kept.rstrip(" .,;:-\u2013\u2014") + "…"


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["A"]), listed(["A", "B"]), listed(["A", "B", "C"])
    ('A', 'A and B', 'A, B and C')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def dated(time: str) -> str:
    """The UTC date of a time of history, ``YYYY-MM-DD``."""
    return time[:10]


def category_verdict(  # noqa: PLR0913 - a sentence has as many parts as it has
    *,
    date: str,
    topic: str,
    site: str,
    source: str,
    counted: Sequence[CountedAnswer],
    entries: Sequence[Entry],
    names: Mapping[ProductId, str],
    wording: str,
) -> str:
    """The dated one-sentence answer; ``source`` is the page with site and licence, in brackets."""
    leader = entries[0]
    models = listed([answer.model for answer in counted])
    rank = "ranks" if len(counted) == 1 else "collectively rank"
    product = names[leader.product]
    sentences = [f"As of {date}, {models} {rank} {product} #1 for {topic} on {site} — {wording}"]
    if leader.reason:
        sentences.append(f"The models' case: {_quoted(leader.reason)}")
    if caveat := _caveat(counted, leader.product):
        sentences.append(f"The models' main caveat: {_quoted(caveat)}")
    if len(entries) > 1:
        runner_up = entries[1]
        because = f" — {_quoted(runner_up.reason)}" if runner_up.reason else ""
        sentences.append(f"The strongest alternative is {names[runner_up.product]}{because}")
    return " ".join([*map(_ended, sentences), f"Source: {source}."])


def agreement_wording(
    counted: Sequence[CountedAnswer],
    configured: int,
    entries: Sequence[Entry],
    names: Mapping[ProductId, str],
    stale_after: int,
) -> str:
    """How the #1 came about, in words: the first wording that fits, in a fixed order."""
    of = len(counted)
    leader = entries[0]
    score = f"{leader.score} of {PLACES * of} points"
    if len(level := leaders(entries)) > 1:
        return f"{listed([names[product] for product in level])} tie for #1 on {score}"
    if of == 1:
        return "the only model that answered"
    votes = _votes(counted)
    if votes[leader.product] == of:
        return _unanimity(counted, configured, stale_after)
    most = max(votes.values())
    if votes[leader.product] == most and list(votes.values()).count(most) == 1:
        return f"{most} of {of} models rank it first"
    if votes[leader.product] < most:
        other = next(e.product for e in entries if votes[e.product] == most)
        return (
            f"it leads on combined score, {score}, though {most} of {of} models "
            f"rank{_s(most)} {names[other]} first"
        )
    return f"no product has most first places: it leads on combined score, {score}"


def product_verdict(  # noqa: PLR0913 - a sentence has as many parts as it has
    *,
    date: str,
    product: str,
    rank: int,
    of: int,
    topic: str,
    site: str,
    leaderboards: int,
    reason: str | None,
    source: str,
) -> str:
    """The dated one-sentence answer for a product, from the leaderboard where it ranks best."""
    also = f" and appears on {leaderboards} leaderboards" if leaderboards > 1 else ""
    because = f" — {_quoted(reason)}" if reason else ""
    standing = f"{product} is ranked #{rank} of {of} for {topic} on {site}{also}{because}"
    return f"As of {date}, {_ended(standing)} Source: {source}."


def consensus(agreement: Agreement | None, names: Mapping[ProductId, str]) -> str | None:
    """Who agrees on #1, when more than half do."""
    if agreement is None or agreement.label == "split":
        return None
    product, of = names[agreement.product], agreement.of
    who = _all(of).capitalize() if agreement.label == "unanimous" else f"{agreement.votes} of {of}"
    return f"{who} models rank {product} #1."


def disagreement(
    counted: Sequence[CountedAnswer], entries: Sequence[Entry], names: Mapping[ProductId, str]
) -> str | None:
    """Who picked what, when not all picked the same; most votes first."""
    votes = _votes(counted)
    if len(votes) < 2:  # noqa: PLR2004 - it takes two to differ
        return None
    picks = [entry.product for entry in entries if entry.product in votes]
    picks.sort(key=lambda product: -votes[product])
    sides = []
    for product in picks:
        models = [answer.model for answer in counted if answer.answered.first == product]
        sides.append(f"{listed(models)} rank{_s(len(models))} {names[product]} #1")
    return "; ".join(sides) + "."


def certainty(
    found: Certainty,
    firsts: Sequence[ProductId],
    windows: Mapping[str, Window],
    names: Mapping[ProductId, str],
    share: FirstShare | None = None,
) -> str:
    """How sure the published #1 is first; ``firsts`` are it and what is tied with it.

    ``share`` is the first share of ``found.first``.
    """
    if found.level == "unmeasured":
        return f"Not measured yet: {_answered_once(found.once, windows)}."
    answers = sum(len(window.answers) for window in windows.values())
    leading = [names[product] for product in found.contenders]
    if found.level == "contradicted":
        ahead = "ahead of it" if len(firsts) == 1 else "ahead"
        return (
            f"Contradicted: the latest answers put {listed([names[each] for each in firsts])} "
            f"first, but over {answers} answers {leading[0]} is {ahead} by more than chance."
        )
    if found.level == "clear":
        told = (
            f"Clear: over {answers} answers {leading[0]} is ahead of every other product by more "
            "than chance"
        )
        tied = [names[each] for each in firsts if each != found.first]
        told += f", though the latest answers tie it with {listed(tied)}." if tied else "."
    else:
        told = f"Open: {_some(leading)} cannot be told apart ({answers} answers, 95 %)."
    if share is None:
        return told
    told = f"{told} {_combined(names[found.first], share, len(windows))}"
    if found.level == "open" and share.first_in == share.combinations:
        return f"{told}, but so few answers may all be luck."
    return f"{told}."


def version_change(change: VersionChange) -> str:
    """That another version of an assistant answered."""
    return f"{change.model} changed {_versions(change)}."


def leader_change(change: LeaderChange, names: Mapping[ProductId, str]) -> str:
    """That another product leads by more than chance, and what that coincides with."""
    cause = f"; this {coincidence(change.cause)}" if change.cause else ""
    return (
        f"over the last {change.answers} answers {names[change.after]} leads in place of "
        f"{names[change.before]}, by more than chance{cause}."
    )


def coincidence(version: VersionChange) -> str:
    """With which change of a version something coincides."""
    return f"coincides with {version.model}'s change {_versions(version)}"


def source(page: str, site: str, licence: str) -> str:
    """Where a figure comes from: the page, the site and its licence."""
    return f"{page} ({site}, {licence})"


def _versions(change: VersionChange) -> str:
    return f"from {cut(change.before, MAX_VERSION_CHARS)} to {cut(change.after, MAX_VERSION_CHARS)}"


def _answered_once(once: Sequence[str], windows: Mapping[str, Window]) -> str:
    """Of whom one answer can be compared, and why that is so where there were others."""
    plain = [model for model in once if not windows[model].renewed]
    anew = [model for model in once if windows[model].began]
    only = [model for model in once if windows[model].renewed and not windows[model].began]
    told = [f"{listed(plain)} {_have(plain)} answered once"] if plain else []
    if anew:
        version = "its version" if len(anew) == 1 else "their versions"
        told.append(f"{listed(anew)} {_have(anew)} answered once since {version} changed")
    if only:
        told.append(f"{listed(only)} {_have(only)} one answer that can be compared")
    return "; ".join(told)


def _combined(product: str, share: FirstShare, assistants: int) -> str:
    whose = "assistant's" if assistants == 1 else "assistants'"
    return (
        f"{product} comes first in {share.first_in} of {share.combinations} combinations of the "
        f"{whose} last answers"
    )


def _have(models: Sequence[str]) -> str:
    return "has" if len(models) == 1 else "have each"


def _some(words: Sequence[str]) -> str:
    """Words as a list, of five or more the first four and how many are left."""
    left = len(words) - MAX_NAMED
    return listed(words) if left <= 0 else f"{', '.join(words[:MAX_NAMED])} and {left} more"


def _unanimity(counted: Sequence[CountedAnswer], configured: int, stale_after: int) -> str:
    stale = sum(answer.stale for answer in counted)
    who = _all(len(counted))
    if len(counted) < configured:
        who += " that answered"
    elif not stale:
        who += " models"
    if not stale:
        return f"{who} rank it first"
    answers = "answer" if stale == 1 else "answers"
    return f"{who} rank it first ({stale} {answers} over {stale_after} days old)"


def _all(number: int) -> str:
    return "both" if number == 2 else f"all {number}"  # noqa: PLR2004 - English has a word for two


def _votes(counted: Iterable[CountedAnswer]) -> Counter[ProductId]:
    return Counter(answer.answered.first for answer in counted)


def _caveat(counted: Iterable[CountedAnswer], product: ProductId) -> str | None:
    polls = (answer.answered.poll for answer in counted if answer.answered.first == product)
    return next((poll.caveat for poll in polls if poll.caveat), None)


def _quoted(text: str) -> str:
    """A model's words inside our sentence, without the full stop that the sentence brings."""
    return cut(_OWN_STOP.sub("", text), MAX_QUOTE_CHARS)


def _ended(sentence: str) -> str:
    """A sentence with a full stop, unless it ends in punctuation.

    >>> _ended("It is cheap"), _ended("Is it cheap?")
    ('It is cheap.', 'Is it cheap?')
    """
    return sentence if _ENDED.search(sentence) else f"{sentence}."


def _s(number: int) -> str:
    return "s" if number == 1 else ""
