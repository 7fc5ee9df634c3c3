"""The page of a category: its ranking, what changed, and how to cite it."""

import datetime as dt
from typing import Any

from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import PLACES
from store.web import as_of, lookup, verdicts
from store.web.pages import pictures
from store.web.pages.answer_box import answer_box
from store.web.pages.news import news_of
from store.web.pages.routes import page
from store.web.queries import RankingQuery
from store.web.responses import category_basis
from store.web.shapes import CategoryVerdict
from store.web.view import View

_TEX = str.maketrans(
    {char: f"\\{char}" for char in "{}$&#%_"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)
"""TeX's spellings of the characters that have a meaning to it."""


def _basis(view: View, slug: str) -> tuple[Any, ...]:
    """Return the basis of a category's page: also the day to cite, its age, related rankings.

    Not the newest day itself: its first poll would make every page anew, 10 s of CPU.
    """
    board = view.snapshot.leaderboards.get(slug)
    if board is None:
        return (category_basis(view, slug),)
    cited = as_of.cited_day(view.snapshot, slug)
    related = [(b.slug, category_basis(view, b.slug)) for b in view.snapshot.summary.related(board)]
    closed = view.snapshot.ledger.last_closed_day
    own = category_basis(view, slug), view.snapshot.is_unreadable(slug)
    return *own, cited, _newest_day_if_behind(view, board), closed, *related


def _newest_day_if_behind(view: View, board: Leaderboard) -> str | None:
    """Return the newest day of the site, if a category's newest answer is far older."""
    newest_day = view.snapshot.summary.last_answer[:10]
    behind = dt.date.fromisoformat(newest_day) - dt.date.fromisoformat(board.updated)
    return newest_day if behind.days > view.site.stale_after_days else None


@page(
    "/best/<slug>",
    "category.html",
    basis=_basis,
    alternate=lambda view, query: view.at.category(query.slug, query.as_of),
)
def category(view: View, query: RankingQuery) -> dict[str, Any]:
    """Show a verdict, how sure it is, and where it comes from."""
    day, slug = query.as_of, query.slug
    current = lookup.board(view, slug)
    board = verdicts.board_of_day(view, current, day)
    verdict = verdicts.verdict_shape(view, board, day)
    cited = day or as_of.cited_day(view.snapshot, slug)
    return {
        "board": board,
        "verdict": verdict,
        "box": answer_box(board, view, day),
        "points": PLACES * len(board.counted),
        "news": news_of(view, board),
        "cited": cited,
        "is_cited_final": as_of.is_final(view.snapshot, cited),
        "bibtex": bibtex(verdict, cited, view),
        # A past day was asked for: that it is old needs no warning.
        "behind": None if day else _newest_day_if_behind(view, current),
        "embedded_width": pictures.EMBEDDED_WIDTH,
        "embedded_height": pictures.EMBEDDED_HEIGHT,
        "has_card": pictures.rasteriser() is not None,
    }


def bibtex(verdict: CategoryVerdict, day: str, view: View) -> str:
    """Return a reference to a category's ranking as of a UTC day."""
    site = view.site
    invented = " (invented sample data)" if site.sample else ""
    # Double braces: BibTeX would take the name apart and lower the letters of the title.
    fields = {
        "author": f"{{{site.name.translate(_TEX)}}}",
        "title": f"{{{verdict.title.translate(_TEX)}}}",
        "year": day[:4],
        "url": view.at.category_page(verdict.slug, day),
        "note": f"Ranking of AI assistants' answers{invented} as of {day}. "
        f"{site.licence.translate(_TEX)}",
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@misc{{{verdict.slug}-{day},\n{lines}}}"
