"""The five tools: the endpoints of the JSON API with smaller bounds, told to a model.

What a model reads of them, description and text of each answer, is ``templates/mcp.md``.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct, to_builtins

from store.history import HistoryError
from store.web import history, listings, lookup, trends, verdicts
from store.web.errors import Moved, ParameterError, Refused
from store.web.openapi import properties_of, typed
from store.web.pages import comparisons, differences
from store.web.queries import (
    AsOf,
    Categories,
    CategoryCall,
    Changes,
    History,
    HistoryCall,
    ListCall,
    OfProduct,
    ProductCall,
    Query,
    SearchCall,
    from_call,
)
from store.web.rendering import environment, render
from store.web.search import SearchResults, search_results
from store.web.shapes import CategoryVerdict, JsonObject, ProductRecord
from store.web.view import View

MOST_PLACES = 2
"""Leaderboards that a brand found by search lists: a product may be on many, 150 bytes each."""
NEWEST_CHANGES = 10
NEWS = ("changes", "leaders", "total")
"""What an answer has of the list of changes, if they are asked for."""
LEFT_OUT = ("perModel", "missedByModel")
"""What a summary of a category leaves out."""
_NEWS = re.compile(
    r"\b(what|has|have|did|anything)\b.*\bchanged?\b|\bchanges\b|\bnews\b|\bwhat.?s new\b|"
    r"\bany new leaders?\b|\b(recently|lately|this week|since last week)\b",
    re.IGNORECASE,
)
"""Words of who asks for what is new."""
READ_ONLY = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
OTHER_NAMES = {"query": "q", "as_of": "asOf"}
"""Names of arguments that are taken as well."""


class PollHistory(JsonObject, frozen=True, kw_only=True):
    """The newest polls of a category."""

    slug: str
    model: str | None
    total: int
    next_before: str | None
    polls: list[history.PollRecord]


class CategoryPage(JsonObject, frozen=True, kw_only=True):
    """A part of the list of ranked categories."""

    total: int
    next_offset: int | None
    categories: list[listings.CategoryItem]


class Tool(Struct, frozen=True):
    """A tool: its title, what it takes and gives, and the function that answers.

    ``beside`` are schemas of members beside those of the output; some of those may be ``left_out``.
    """

    title: str
    query: type[Query]
    output: type[JsonObject]
    answer: Callable[[View, Any], dict[str, Any]]
    beside: dict[str, Any] = {}
    left_out: tuple[str, ...] = ()


@cache
def listing() -> Raw:
    """Return the encoded list of tools."""
    return Raw(msgspec.json.encode([_described(name, tool) for name, tool in TOOLS.items()]))


def call(name: str, view: View, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result of a call; what is wrong with the call is one too, marked ``isError``."""
    tool = TOOLS.get(name)
    if tool is None:
        return None
    known = {n: v for n, v in given.items() if n not in OTHER_NAMES}
    for alias, other in OTHER_NAMES.items():
        if given.get(alias) is not None:
            known.setdefault(other, given[alias])
    try:
        lookup.check_history(view)
        answer = tool.answer(view, from_call(tool.query, known))
    except Refused as refused:
        return _failed(view, refused)
    except Moved as moved:  # a model or a topic but for upper and lower case
        parameter = "model" if "model" in given else "topic"
        return call(name, view, {**given, parameter: moved.address})
    except HistoryError as error:
        return _failed(view, Refused.unreadable(error))
    lines = render("mcp.md", view, tool=name, part="text", answer=answer).splitlines()
    text = "\n".join(line for line in lines if line)
    notice = render("mcp.md", view, tool="", part="notice").strip()
    content = [{"type": "text", "text": f"{text}\n\n{notice}"}]
    structured = {**answer, "notice": notice}
    return {"content": content, "structuredContent": structured, "isError": False}


def _failed(view: View, refused: Refused) -> dict[str, Any]:
    near = [f"{each.slug} ({each.title})" for each in refused.suggestions or ()]
    text = refused.sentence + (f" The closest: {', '.join(near)}." if near else "")
    if refused.suggestions is not None:
        text += " Call search_best with a topic or a name to find the slug."
    if near:
        text += "\n\n" + render("mcp.md", view, tool="", part="notice").strip()
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _described(name: str, tool: Tool) -> dict[str, Any]:
    """Return a tool as ``tools/list`` shows it."""
    template = environment().get_template("mcp.md")
    _, components = msgspec.json.schema_components([tool.output], ref_template="#/{name}")
    output = typed(components[tool.output.__name__]["properties"])
    properties = {**{n: _outline(schema) for n, schema in output.items()}, **tool.beside}
    return {
        "name": name,
        "title": tool.title,
        "description": template.render(tool=name, part="description").strip(),
        "inputSchema": {
            "type": "object",
            "properties": properties_of(tool.query),
            "required": [f.encode_name for f in msgspec.structs.fields(tool.query) if f.required],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {**properties, "notice": {"type": "string"}},
            "required": [n for n in (*properties, "notice") if n not in tool.left_out],
        },
        "annotations": {"title": tool.title, **READ_ONLY},
    }


def _outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what its objects hold; the OpenAPI document has it whole."""
    if "anyOf" in schema:
        return {"anyOf": [_outline(option) for option in schema["anyOf"]]}
    if "$ref" in schema or "allOf" in schema:
        return {"type": "object"}
    found = {"type": schema["type"]} if "type" in schema else {}
    if "items" in schema:
        found["items"] = _outline(schema["items"])
    return found


TOP = 3
"""First places that a hit of ``search_best`` names; its record has them all."""


def search_best(view: View, query: SearchCall) -> dict[str, Any]:
    """Find categories and brands; what two names have in common, and what is new, if asked."""
    if query.q is None:
        missing = "is missing; give a topic or a brand name."
        raise Refused.parameters([ParameterError(parameter="q", detail=missing)])
    topic, asks_for_news = _NEWS.subn("", query.q)
    hits = view.search(topic, query.limit, query.kind)
    results: dict[str, Any] = to_builtins(search_results(query.q, hits, view, MOST_PLACES))
    for hit in results["categories"]:
        del hit["top"][TOP:]  # ten hits must not be longer than an agent should have to read
    pair = comparisons.pair_in(query.q, view)
    results["comparison"] = comparisons.summary(*pair, view) if pair else None
    results |= dict.fromkeys(NEWS)
    if asks_for_news:
        sure = [hit["slug"] for hit in results["categories"] if hit["match"] != "related"]
        most = max(query.limit, NEWEST_CHANGES)
        listed = trends.get_changes(view, Changes(slug=sure[0] if sure else None, limit=most)).value
        results |= {name: to_builtins(getattr(listed, name)) for name in NEWS}
        del results["leaders"][most:]
    if results["comparison"] or results["changes"]:
        results["related"] = []
    return results


def get_best_in_category(view: View, query: CategoryCall) -> dict[str, Any]:
    """Return the verdict of a category, and what changed: its #1, its leader, assistants' #1s."""
    slug = _category(view, query.slug)
    verdict: dict[str, Any] = to_builtins(
        verdicts.get_best_in_category(view, AsOf(slug=slug, as_of=query.as_of))
    )
    listed = trends.get_changes(view, Changes(slug=slug)).value
    changes: dict[str, list[Any]] = {"changes": listed.changes, "leaders": listed.leaders}
    for name, entries in changes.items():
        known = [c for c in entries if query.as_of is None or c.to_date <= query.as_of]
        verdict[name] = to_builtins(known[: NEWEST_CHANGES // 2])
    verdict["news"] = None if query.as_of else _news(view, verdict["slug"])
    if query.detail == "summary":
        for name in LEFT_OUT:
            del verdict[name]
    return verdict


def _news(view: View, slug: str) -> dict[str, Any] | None:
    """Return whether another product is first than on the last day before, in a sentence."""
    board = view.snapshot.leaderboards[slug]
    changed = differences.between(view, board)
    return {"since": changed.start, "sentence": changed.leader} if changed else None


def get_product(view: View, query: ProductCall) -> dict[str, Any]:
    """Return a part of the record of a product, and how often it is first."""
    slug = query.slug
    if view.snapshot.product(slug) is None:  # only then: redirects of a new snapshot take 30 ms
        slug = view.snapshot.summary.product_redirects.get(slug, slug)
    record: dict[str, Any] = to_builtins(verdicts.get_product(view, OfProduct(slug=slug)))
    end = query.offset + query.limit
    following = end if end < len(record["entries"]) else None
    firsts = [entry for entry in record["entries"] if entry["rank"] == 1]
    return {
        **record,
        "entries": record["entries"][query.offset : end],
        "firstPlaces": len(firsts),
        "clearFirstPlaces": sum(entry["level"] == "clear" for entry in firsts),
        "nextOffset": following,
    }


def get_poll_history(view: View, query: HistoryCall) -> dict[str, Any]:
    """Return the newest polls of a category, as they stand in the files."""
    slug = _category(view, query.slug)
    model = lookup.model_parameter(view, query.model, str)
    asked = History(slug=slug, model=model, limit=query.limit, before=query.before)
    polls = history.get_history(view, asked).value
    models = view.snapshot.line_indexes[slug].models
    return {
        "slug": slug,
        "model": model,
        "total": len(models) if model is None else models.count(model),
        "nextBefore": polls.cursor,
        "polls": [msgspec.json.decode(line) for line in polls.lines],
    }


def list_categories(view: View, query: ListCall) -> dict[str, Any]:
    """Return a part of the list of ranked categories, those that have all words of ``q``."""
    topic = lookup.topic_parameter(view, query.topic, str)
    words = (query.q or "").casefold().split()
    items = [
        item
        for item in listings.list_categories(view, Categories(topic=topic.slug if topic else None))
        if all(word in f"{item.title} {item.slug}".casefold() for word in words)
    ]
    end = query.offset + query.limit
    return {
        "total": len(items),
        "nextOffset": end if end < len(items) else None,
        "categories": to_builtins(items[query.offset : end]),
    }


def _category(view: View, slug: str) -> str:
    """Return the present slug of a category; many say ``best-x`` for x."""
    redirects = view.snapshot.summary.category_redirects
    for spelling in (slug, slug.removeprefix("best-")):
        if (current := redirects.get(spelling, spelling)) in view.snapshot.line_indexes:
            return current
    return slug


_OBJECT, _LIST = {"type": "object"}, {"type": "array", "items": {"type": "object"}}
_NUMBER = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
TOOLS = {
    "search_best": Tool(
        "Search rankings and brands", SearchCall, SearchResults, search_best,
        {"comparison": {"anyOf": [_OBJECT, {"type": "null"}]},
         "changes": {"anyOf": [_LIST, {"type": "null"}]},
         "leaders": {"anyOf": [_LIST, {"type": "null"}]}, "total": _NUMBER},
    ),
    "get_best_in_category": Tool(
        "Best in a category", CategoryCall, CategoryVerdict, get_best_in_category,
        {"news": {"anyOf": [_OBJECT, {"type": "null"}]}, "changes": _LIST, "leaders": _LIST},
        LEFT_OUT,
    ),
    "get_product": Tool(
        "A product's rankings", ProductCall, ProductRecord, get_product,
        {"firstPlaces": {"type": "integer"}, "clearFirstPlaces": {"type": "integer"},
         "nextOffset": _NUMBER},
    ),
    "get_poll_history": Tool(
        "Poll history of a category", HistoryCall, PollHistory, get_poll_history
    ),
    "list_categories": Tool(
        "List the categories", ListCall, CategoryPage, list_categories
    ),
}  # fmt: skip
