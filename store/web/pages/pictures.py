"""Pictures that travel: badges, a ranking to embed, cards for links; each says how sure it is."""

import unicodedata
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from typing import Any

from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import PLACES, Entry
from store.rankings.sentences import day_in_words, level_in_words, listed, who_named_first
from store.web import lookup
from store.web.pages.routes import page, resource
from store.web.queries import CategoryQuery, Slug
from store.web.rendering import render_page
from store.web.responses import Body, Route, category_basis
from store.web.shapes import CategoryVerdict
from store.web.verdicts import verdict_shape
from store.web.view import View

SVG = "image/svg+xml"
PNG = "image/png"

BADGE_TEXT = 11
"""Font size of a badge in pixels: that of the badges it stands beside."""

MOST_LABEL = 40
"""Characters of a badge's label: longer ones would not fit beside others in a README."""

MOST_NAME = 28
"""Characters of a product's name on a badge."""

PLACES_SHOWN = 5
CARD = (1200, 630)
"""Pixels of the card: what sites that show links ask for (Open Graph, ratio 1.91 : 1)."""

EMBEDDED_WIDTH = 400
"""Pixels of an embedded ranking: on a phone it shrinks by a tenth, and stays legible."""
EMBEDDED_HEIGHT = 490
"""The most pixels that an embedded ranking takes: frames keep their height while it changes."""

ROW = 46
USUAL_WIDTH = 0.64
"""The width of most characters, as a share of the size of type."""

_PLAIN = "#56605c"
LEVEL_COLOURS = {
    "clear": "#0b6a63",
    "contradicted": "#8a4b00",
    "open": _PLAIN,
    "unmeasured": _PLAIN,
}
"""The colours of a badge, by how sure a #1 is; the page's own."""

_PROBE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
    b'<text y="15" font-family="sans-serif">%s</text></svg>'
)

NARROW = frozenset("iljtfrI.,:;'|!()[]·- ")
BROAD = frozenset("mwMW@%&")
"""Characters by how wide they are, roughly: SVG clips no text, and fonts are not known."""


class BadgeQuery(CategoryQuery, frozen=True, kw_only=True):
    """A product, and the ranking in which its place is shown."""

    product: Slug


def _json_of_category(view: View, query: CategoryQuery) -> str:
    return view.at.category(query.slug)


@resource("/badge/<slug>/<product>.svg", SVG)
def badge(view: View, query: BadgeQuery) -> bytes:
    """Draw a product's place, how sure it is, and the date, on halves as wide as their texts."""
    board = lookup.board(view, query.slug)
    product = lookup.product(view, query.product, "product")
    entry = next((entry for entry in board.entries if entry.product == product.id), None)
    sample, invented = ("sample: ", ", invented data") if view.site.sample else ("", "")
    label = fitted(f"{sample}{board.category.subject}", 1, MOST_LABEL * USUAL_WIDTH)
    standing = _standing(board, entry) if entry else "not ranked"
    place, _, sure = standing.partition(" \N{MIDDLE DOT} ")
    name = fitted(product.name, 1, MOST_NAME * USUAL_WIDTH)
    message = f"{name} {standing} · {board.updated}"
    # A colour says how sure a #1 is; other places have none.
    is_first = entry is not None and entry.rank == 1
    return render_page(
        "badge.svg",
        view,
        label=label,
        message=message,
        colour=LEVEL_COLOURS[board.certainty.level] if is_first else _PLAIN,
        widths=[round(width(text, BADGE_TEXT)) for text in (label, message)],
        alt=(
            f"{product.name} {place} for {board.category.subject}{sure and f', {sure}'}, "
            f"{day_in_words(board.updated)} ({view.site.name}{invented})"
        ),
    )


def _standing(board: Leaderboard, entry: Entry) -> str:
    """Return a product's place with how sure it is: "#1 of 7 · clear lead"."""
    standing = f"{'tied ' if entry.tied else ''}#{entry.place} of {len(board.entries)}"
    likely = board.ranges.get(entry.product)
    if entry.rank == 1 or likely is None:
        return f"{standing} · {level_in_words(board).lower()}"
    if likely[0] == likely[1]:
        return standing
    return f"{standing} · likely {likely[0]}\N{EN DASH}{likely[1]}"


@page(
    "/embed/best/<slug>.svg",
    "ranking.svg",
    basis=category_basis,
    alternate=_json_of_category,
    media_type=SVG,
)
def ranking(view: View, query: CategoryQuery) -> dict[str, Any]:
    """Draw a ranking's first places, with their source."""
    board = lookup.board(view, query.slug)
    verdict = verdict_shape(view, board)
    room = EMBEDDED_WIDTH - 40
    title = wrap(verdict.title, 20, room, 2)
    return {
        "board": board,
        "verdict": verdict,
        "rows": [(e, fitted(e.product, 16, room - 80)) for e in verdict.combined[:PLACES_SHOWN]],
        "most": PLACES * len(board.counted),
        "titles": title,
        "sure": wrap(verdict.certainty.sentence, 13, room, 4),
        "width": EMBEDDED_WIDTH,
        "row": ROW,
        "top": 24 + 26 * len(title) + 20,
        "credit": fitted(f"{view.site.name}, {board.updated}, {view.site.licence}", 12, room),
    }


def _card(board: Leaderboard, verdict: CategoryVerdict, view: View) -> dict[str, Any]:
    """Return the lines of the card of a verdict, each cut to fit."""
    room = CARD[0] - 120
    names = listed([view.name(product) for product in board.winners])
    first = "Most recommended: a tie" if len(board.winners) > 1 else "Most recommended"
    if board.certainty.level == "contradicted":
        names = f"{names} or {view.name(board.certainty.ahead_of_first[0])}"
        first = "First in the latest answers, or over all of them"
    # The largest at which all names stand in one line.
    sizes = [size for size in (72, 60, 48) if len(wrap(names, size, room, 99)) == 1]
    size = sizes[0] if sizes else 48
    wording = who_named_first(board, view.name)
    titles = wrap(verdict.title, 44, room, 2)
    return {
        "titles": titles,
        "first": first,
        "names": wrap(names, size, room, 2),
        "size": size,
        "wording": wrap(wording[0].upper() + wording[1:] + ".", 30, room, 4 - len(titles)),
        "sure": wrap(verdict.certainty.sentence, 28, room, 3),
        "updated": board.updated,
        "credit": fitted(f"{view.site.name} · {verdict.url.partition('://')[2]}", 24, room),
    }


@cache
def rasteriser() -> Callable[[bytes], bytes] | None:
    """Return a function from SVG to PNG: resvg's, where it is installed and finds a font."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - the extra "pictures"
    except ImportError:
        return None

    def draw(svg: bytes) -> bytes:
        return bytes(svg_to_bytes(svg_string=svg.decode()))

    # Without a font resvg draws no text and reports no fault.
    return draw if draw(_PROBE % b"A") != draw(_PROBE % b"") else None


@cache
def mark_of(draw: Callable[[bytes], bytes]) -> bytes:
    """Return a digest of rasteriser and font as an SVG comment: the ETag must change with them."""
    return b"<!-- %b -->" % blake2b(draw(_PROBE % b"A"), digest_size=8).hexdigest().encode()


def card(draw: Callable[[bytes], bytes]) -> Route:
    """Return the route of the picture that sites show beside a link to a ranking."""

    @resource("/cards/best/<slug>.png", PNG, basis=category_basis)
    def drawn(view: View, query: CategoryQuery) -> Body:
        board = lookup.board(view, query.slug)
        context = _card(board, verdict_shape(view, board), view)
        source = render_page("card.svg", view, **context) + mark_of(draw)
        headers = {"Content-Type": PNG, "Link": view.page_link(_json_of_category(view, query))}
        return Body(source, headers, draw=draw)

    return drawn


def routes() -> tuple[Route, ...]:
    """Return every picture; cards only where they can be drawn."""
    draw = rasteriser()
    return (badge, ranking, *([card(draw)] if draw else []))


def width(text: str, size: float) -> float:
    """Return the width of a text at a font size, in its unit: that of a broad sans serif."""
    return size * sum(map(_share, text))


def _share(char: str) -> float:
    """Return the width of a character, 1 being the font size, after DejaVu Sans and Verdana."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF" or ord(char) > 0x1F000:  # noqa: PLR2004 - emoji
        return 1.0
    if char in NARROW:
        return 0.4
    return 0.9 if char in BROAD else 0.72 if char.isupper() else USUAL_WIDTH


def fitted(text: str, size: float, room: float) -> str:
    """Return a text, cut with an ellipsis where it is wider than the room there is."""
    if width(text, size) <= room:
        return text
    start = text
    while start and width(f"{start}…", size) > room:
        start = start[:-1]
    return f"{start.rstrip()}…"


def wrap(text: str, size: float, room: float, most: int) -> list[str]:
    """Return a text broken at spaces into ``most`` lines at most, the last cut to fit."""
    broken: list[str] = []
    for word in text.split():
        if broken and width(f"{broken[-1]} {word}", size) <= room:
            broken[-1] += f" {word}"
        else:
            broken.append(word)
    last = " ".join(broken[most - 1 :])
    return [fitted(line, size, room) for line in (*broken[: most - 1], last) if line]
