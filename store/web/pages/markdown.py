"""Markdown in pages: an operator's as HTML, and text that means none."""

import re

from markdown_it import MarkdownIt
from markupsafe import Markup


def escaped(text: str) -> str:
    r"""A text as Markdown shows it: whatever has a meaning there is escaped.

    >>> print(escaped("A*B [x]"))
    A\*B \[x\]
    """
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~&-])", r"\\\1", text)


def html(text: str) -> Markup:
    """An operator's Markdown as HTML: no raw HTML or images, links to the web only, from ``h2``."""
    reader = _Markdown("commonmark", {"html": False}).enable("table").disable("image")
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    rendered = reader.renderer.render(tokens, reader.options, {})
    return Markup(rendered)  # noqa: S704 - markdown-it escapes all text while HTML is disabled


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - markdown-it's hook
        """Whether a link leads to the web; any other is left as the text that it is."""
        return url.startswith(("https://", "http://", "/", "#")) and not url.startswith("//")
