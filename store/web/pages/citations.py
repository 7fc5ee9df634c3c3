"""How to cite a ranking so that a reader finds the same: the permanent link of a closed day."""

from msgspec import Struct

from store.web.shapes import CategoryVerdict
from store.web.view import View

_TEX = str.maketrans(
    {char: f"\\{char}" for char in "{}$&#%_"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)
"""How TeX spells the characters that have a meaning to it."""


class Citation(Struct, frozen=True):
    """A ranking as of a ``day``, ``final`` if it is closed: its address, and what to paste."""

    day: str
    final: bool
    address: str
    text: str
    bibtex: str


def citation(verdict: CategoryVerdict, day: str, view: View, *, final: bool) -> Citation:
    """How to cite a category's ranking as of a UTC day, ``final`` if that day is closed."""
    site, address = view.site, view.at.category_page(verdict.slug, day)
    text = f"{site.name}: {verdict.title}, as of {day}. {address} ({site.licence})"
    fields = {
        "author": f"{{{site.name.translate(_TEX)}}}",
        "title": f"{{{verdict.title.translate(_TEX)}}}",
        "year": day[:4],
        "url": address,
        "note": f"Ranking of AI assistants' answers as of {day}. {site.licence.translate(_TEX)}",
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return Citation(day, final, address, text, f"@misc{{{verdict.slug}-{day},\n{lines}}}")
