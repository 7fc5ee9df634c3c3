"""The tools: the endpoints of the JSON API with smaller bounds, described for models.

What a model reads of them, description and text of each answer, is ``templates/mcp.md``.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct, to_builtins
from msgspec.structs import fields

from store.history import HistoryError
from store.rankings.products import ProductProfile
from store.search.words import words_of
from store.web import history, listings, lookup, queries, trends, verdicts
from store.web.errors import Moved, Refused
from store.web.openapi import properties_of
from store.web.pages import comparisons
from store.web.pages.news import news_of
from store.web.rendering import environment, render
from store.web.search import search_results
from store.web.view import View

TOP = 3
"""First places of a category that a hit of ``search_best`` names; its record has them all."""
NEWEST_CHANGES, MOST_FIRST_PLACES = 10, 20
NEWS = ("changes", "leaders", "firstPlaces", "total", "lastChecked")
"""Members of ``ChangeList`` that ``search_best`` has, too, if news is asked for."""
READ_ONLY = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
ALIASES = {"query": "q", "as_of": "asOf"}
"""Other names that are accepted for arguments, each with the argument it stands for."""


class Tool(Struct, frozen=True):
    """A tool: its title, what it takes, and the function that answers."""

    title: str
    query: type[queries.Query]
    function: Callable[[View, Any], dict[str, Any]]


@cache
def listing() -> Raw:
    """Return the encoded list of tools."""
    template = environment().get_template("mcp.md")
    described = [
        {
            "name": name,
            "title": tool.title,
            "description": template.render(tool=name, part="description").strip(),
            "inputSchema": {
                "type": "object",
                "properties": properties_of(tool.query),
                "required": [f.encode_name for f in fields(tool.query) if f.required],
                "additionalProperties": False,
            },
            "annotations": {"title": tool.title, **READ_ONLY},
        }
        for name, tool in TOOLS.items()
    ]
    return Raw(msgspec.json.encode(described))


def call(name: str, view: View, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result of a call, ``None`` if there is no such tool.

    What is wrong with the call is a result, too, marked ``isError``.
    """
    tool = TOOLS.get(name)
    if tool is None:
        return None
    given = {name: value for name, value in arguments.items() if value is not None}
    for other in ALIASES.keys() & given.keys():
        given.setdefault(ALIASES[other], given.pop(other))  # if both are given, its own name counts
    try:
        lookup.check_history(view.snapshot)
        query = queries.from_call(tool.query, given)
        answer = tool.function(view, query)
    except Moved as moved:  # upper and lower case of a model or a topic, or a product's old slug
        return call(name, view, {**given, **moved.parameters})
    except Refused as refused:
        return _failure(view, refused)
    except HistoryError as error:
        return _failure(view, Refused.unreadable(error))
    lines = render("mcp.md", view, tool=name, part="text", answer=answer, query=query).splitlines()
    text, notice = "\n".join(filter(None, lines)), _notice(view)
    content = [{"type": "text", "text": f"{text}\n\n{notice}"}]
    return {"content": content, "structuredContent": {**answer, "notice": notice}, "isError": False}


def _failure(view: View, refused: Refused) -> dict[str, Any]:
    closest = [f"{near.slug} ({near.title})" for near in refused.suggestions or ()]
    text = refused.sentence + (f" The closest: {', '.join(closest)}." if closest else "")
    if refused.suggestions is not None:
        text += " Call search_best with a topic or a name to find the slug."
    if closest:
        text += f"\n\n{_notice(view)}"
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _notice(view: View) -> str:
    return render("mcp.md", view, tool="", part="notice").strip()


def search_best(view: View, query: queries.SearchCall) -> dict[str, Any]:
    """Find categories and brands; how two named products compare, and what is new, if asked."""
    news = lookup.news_in(query.q, view)
    subject, since = news or (query.q, None)
    hits = view.search(subject, query.limit)
    results: dict[str, Any] = to_builtins(search_results(query.q, hits, view, most_places=1))
    for hit in results["categories"]:
        del hit["top"][TOP:]  # ten hits must not be longer than an agent should have to read
    for hit in (*results["categories"], *results["brands"]):
        if hit["match"] == "related":
            del hit["verdict"]  # nobody quotes what may not be meant
    pair = lookup.compared_products(query.q, view)
    results["comparison"] = pair and comparisons.in_short(*pair, view)
    results["related"] = [] if pair else results["related"]
    results["unknownNames"] = [] if pair else lookup.unknown_names(query.q, view)
    results |= {"newsAsked": news is not None, "changesSince": since, **dict.fromkeys(NEWS)}
    sure = [hit["slug"] for hit in results["categories"] if hit["match"] != "related"]
    topic, part = (None if sure else lookup.topic_in(subject, view)) or (None, None)
    results |= {"topic": topic, "part": part}
    if news and (sure or topic):  # who asks for news of these means no other hit
        results["categories"] = [h for h in results["categories"] if h["slug"] in sure]
        results["brands"] = []
    if news and (sure or topic or not subject):  # else it is asked of what is not here
        changes = queries.ChangesQuery(slug=next(iter(sure), None), topic=topic, since=since)
        listed = to_builtins(trends.change_list(view, changes, max(query.limit, NEWEST_CHANGES)))
        results |= {name: listed[name] for name in NEWS}
        results["since"] = since or trends.last_interval_start(view)
        results["firstPlacesTotal"] = len(results["firstPlaces"])
        boards = lookup.topic(view, topic).leaderboards if topic else view.snapshot.summary.ranked
        asked = [board for board in boards if not sure or board.slug == sure[0]]
        results["rankedBefore"] = trends.are_ranked_before(asked, results["since"])
        del results["firstPlaces"][MOST_FIRST_PLACES:]
        for change in results["firstPlaces"]:
            del change["reason"], change["api"]  # the record of a category has both
    return results


def get_best_in_category(view: View, query: queries.CategoryCall) -> dict[str, Any]:
    """Return the verdict of a category, and what changed: its #1, its leader, assistants' #1s.

    What the tool alone adds or leaves out is done to the dict: the shape is the endpoint's.
    """
    slug, day = _category(view, query.slug), query.as_of
    whole = verdicts.get_best_in_category(view, queries.RankingQuery(slug=slug, as_of=day))
    listed = trends.get_changes(view, queries.ChangesQuery(slug=slug))
    verdict: dict[str, Any] = to_builtins(whole)
    for name in ("changes", "leaders"):
        until = [c for c in getattr(listed, name) if day is None or c.to_date <= day]
        verdict[name] = to_builtins(until[: NEWEST_CHANGES // 2])
    news = None if day else news_of(view, view.snapshot.leaderboards[slug])
    verdict["news"] = news and {"since": news.since, "sentence": news.sentence}
    states = view.snapshot.aggregates[slug].states
    verdict["failedLast"] = [m for m in whole.models if not day and states[m].failure]
    if query.detail == "summary":
        for name in ("perModel", "missedByModel"):
            del verdict[name]
    return verdict


def get_product(view: View, query: queries.ProductCall) -> dict[str, Any]:
    """Return a part of the record of a product, and how often it is first."""
    product = _product(view, query.slug)
    record: dict[str, Any] = to_builtins(verdicts.product_record(view, product))
    firsts = [entry for entry in record["entries"] if entry["place"] == 1]
    end = query.offset + query.limit
    return {
        **record,
        "entries": record["entries"][query.offset : end],
        "firstPlaces": len(firsts),
        "tiedFirstPlaces": sum(entry["tied"] for entry in firsts),
        "clearFirstPlaces": sum(entry["level"] == "clear" for entry in firsts),
        "nextOffset": end if end < len(record["entries"]) else None,
    }


def get_poll_history(view: View, query: queries.HistoryCall) -> dict[str, Any]:
    """Return the newest polls of a category, as they stand in the files."""
    slug = _category(view, query.slug)
    model = lookup.model_parameter(view, query.model)
    part = queries.HistoryQuery(slug=slug, model=model, limit=query.limit, before=query.before)
    polls = history.get_history(view, part).value
    index = view.snapshot.poll_indexes[slug]
    counts = {key: n for key, n in index.outcomes.items() if model in (None, key[0])}
    return {
        "slug": slug,
        "model": model,
        "total": sum(counts.values()),
        "failed": sum(n for (_, outcome), n in counts.items() if outcome != "answered"),
        "withheld": sum(model in (None, index.models[i]) for i in index.withheld),
        "nextBefore": polls.cursor,
        "polls": [msgspec.json.decode(line) for line in polls.lines],
    }


def list_categories(view: View, query: queries.ListCall) -> dict[str, Any]:
    """Return one page of the list of ranked categories, those that have all words of ``q``."""
    topic = lookup.topic_parameter(view, query.topic)
    part = lookup.part_parameter(topic, query.part)
    whole = listings.category_items(view, part or topic, query)
    words = (query.q or "").casefold().split()
    items = [i for i in whole if all(word in f"{i.title} {i.slug}".casefold() for word in words)]
    end = query.offset + query.limit
    listed = to_builtins(items[query.offset : end])
    for item in listed:
        del item["page"], item["api"]  # 100 addresses are more than an agent should have to read
    next_offset = end if end < len(items) else None
    return {"total": len(items), "nextOffset": next_offset, "categories": listed}


def _category(view: View, slug: str) -> str:
    """Return the present slug of a category; many say ``best-x`` for x, or the title."""
    redirects = view.snapshot.summary.category_redirects
    for spelling in (slug, "-".join(words_of(slug))):
        if (current := redirects.get(spelling, spelling)) in view.snapshot.poll_indexes:
            return current
    return slug


def _product(view: View, slug: str) -> ProductProfile:
    """Return the product at a slug; many give the name instead."""
    named = lookup.product_named(slug, view)
    return lookup.product(view, named.slug if named else slug)


TOOLS = {
    "search_best": Tool("Search rankings and brands", queries.SearchCall, search_best),
    "get_best_in_category": Tool("Best in a category", queries.CategoryCall, get_best_in_category),
    "get_product": Tool("A product's rankings", queries.ProductCall, get_product),
    "get_poll_history": Tool("Poll history of a category", queries.HistoryCall, get_poll_history),
    "list_categories": Tool("List the categories", queries.ListCall, list_categories),
}
