"""Rendering: templates and assets, what every page is given, and text made safe."""

import re
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from store.rankings.sentences import day_in_words, level_in_words, number_in_words
from store.text import DOMAIN_PATTERN
from store.web.queries import MAX_QUERY
from store.web.view import View

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
TEMPLATES = Path(__file__).parents[2] / "templates"

_DOMAIN = re.compile(DOMAIN_PATTERN)
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that XML 1.0 forbids or HTML calls an error; nobody can see them."""


HTML = "text/html; charset=utf-8"


@cache
def assets() -> dict[str, bytes]:
    """Return every file of the static directory, by name."""
    files = sorted(path for path in STATIC.iterdir() if path.suffix in MEDIA_TYPES)
    return {path.name: path.read_bytes() for path in files}


@cache
def asset_digest(name: str) -> str:
    """Return the digest that an asset's address bears, so that caches may keep it for good."""
    return blake2b(assets()[name], digest_size=8).hexdigest()


def render(template: str, view: View, /, **context: Any) -> str:
    """Return a template filled in; names, reasons and all other data are escaped.

    ``root`` stands before every path of the site's own links.
    """
    root = urlsplit(view.at.base).path  # behind a proxy the site may not begin at /
    return (
        environment()
        .get_template(template)
        .render(
            site=view.site,
            at=view.at,
            snapshot=view.snapshot,
            licence=view.licence,
            root=root,
            asset=lambda name: f"{root}/static/{name}?v={asset_digest(name)}",
            **context,
        )
    )


def render_page(template: str, view: View, /, **context: Any) -> bytes:
    """Return a page of HTML, XML or SVG, without characters that nobody can see."""
    return _UNSHOWABLE.sub("", render(template, view, **context)).encode()


@cache
def environment() -> Environment:
    """Return all templates, each compiled when it is first used; HTML and XML are escaped."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(("html", "xml", "svg"), default_for_string=True),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    templates.globals["max_query"] = MAX_QUERY
    templates.filters |= {
        "website": website,
        "markdown": markdown,
        "markdown_text": escape_markdown,
        "code": lambda text: Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))),  # noqa: S704
        "percent": percent,
        "thousands": "{:,}".format,
        "day": day_in_words,
        "in_words": number_in_words,
        "level": level_in_words,
    }
    return templates


def website(domain: str | None) -> str | None:
    """Return the address of a product's domain, or ``None`` if it is not a plain host name."""
    if domain is None or len(domain) > 253 or not _DOMAIN.fullmatch(domain):  # noqa: PLR2004 - DNS
        return None
    return f"https://{domain}/"


def percent(share: float) -> str:
    """Return a share from 0 to 1 in words: ``52%``."""
    return f"{100 * share:.0f}%"


def escape_markdown(text: str) -> str:
    r"""Return a text as Markdown shows it: whatever has a meaning there is escaped.

    >>> print(escape_markdown("A*B [x]"))
    A\*B \[x\]
    """
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~&-])", r"\\\1", text)


def markdown(text: str) -> Markup:
    """Return an operator's Markdown as HTML: links to the web, no raw HTML, no images."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 20 ms, of use to few pages

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    reader.validateLink = _is_web_link  # type: ignore[method-assign]
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"  # the page has the h1
    rendered = reader.renderer.render(tokens, reader.options, {})
    return Markup(rendered)  # noqa: S704 - markdown-it escapes all text while HTML is disabled


def _is_web_link(url: str) -> bool:
    """Return whether a link leads to the web; any other is left as the text that it is."""
    return url.startswith(("https://", "http://", "/", "#")) and not url.startswith("//")
