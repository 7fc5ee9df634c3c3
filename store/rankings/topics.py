"""Topics: what readers browse by, filled with the rankings that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.rankings.leaderboards import Leaderboard
    from store.records import Topic


MAX_RELATED = 6
"""Related rankings that a page lists: as many as are seen at a glance."""


class RankedPart(Struct, frozen=True):
    """A part of a topic and its ranked categories, by title."""

    slug: str
    title: str
    leaderboards: tuple[Leaderboard, ...]


class RankedTopic(Struct, frozen=True):
    """A topic and those of its parts in which something is ranked."""

    slug: str
    title: str
    group: str | None
    parts: tuple[RankedPart, ...]

    @property
    def leaderboards(self) -> list[Leaderboard]:
        """Its ranked categories, each once, by title."""
        found = {board.slug: board for part in self.parts for board in part.leaderboards}
        return sorted(found.values(), key=lambda board: board.by_title)


def ranked(
    topics: Iterable[Topic],
    leaderboards: Mapping[str, Leaderboard],
    redirects: Mapping[str, str],
) -> tuple[RankedTopic, ...]:
    """The topics in their own order; ``redirects`` lead from a category's old slug to its new."""
    return tuple(
        RankedTopic(
            topic.slug,
            topic.title,
            topic.group,
            tuple(
                RankedPart(part.slug, part.title, found)
                for part in topic.parts
                if (found := _boards(part.categories, leaderboards, redirects))
            ),
        )
        for topic in topics
    )


def by_category(topics: Iterable[RankedTopic]) -> dict[str, list[tuple[RankedTopic, RankedPart]]]:
    """The topics and parts that each ranked category is in, in the order of the topics."""
    found: dict[str, list[tuple[RankedTopic, RankedPart]]] = {}
    for topic in topics:
        for part in topic.parts:
            for board in part.leaderboards:
                found.setdefault(board.slug, []).append((topic, part))
    return found


def related(
    board: Leaderboard, parts: Iterable[tuple[RankedTopic, RankedPart]]
) -> tuple[Leaderboard, ...]:
    """Return a few other rankings of the same parts, those with most words in common first."""
    words = set(board.category.subject.casefold().split())
    others = {o.slug: o for _, part in parts for o in part.leaderboards if o.slug != board.slug}

    def in_common(other: Leaderboard) -> int:
        return len(words & set(other.category.subject.casefold().split()))

    return tuple(sorted(others.values(), key=in_common, reverse=True)[:MAX_RELATED])


def _boards(
    slugs: Iterable[str], leaderboards: Mapping[str, Leaderboard], redirects: Mapping[str, str]
) -> tuple[Leaderboard, ...]:
    found = {redirects.get(slug, slug): None for slug in slugs}
    boards = (leaderboards[slug] for slug in found if slug in leaderboards)
    return tuple(sorted(boards, key=lambda board: board.by_title))
