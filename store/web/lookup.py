"""What stands at a slug: a ranking, a product, a topic; or where it moved, or why there is none."""

from collections.abc import Callable
from typing import NoReturn

from store.rankings.leaderboards import Leaderboard
from store.rankings.products import ProductProfile
from store.rankings.site_summary import RankedTopic
from store.records import Problem
from store.snapshot import Snapshot
from store.web import as_of
from store.web.errors import Moved, ParameterError, Refused
from store.web.view import View


def check_history(view: View) -> None:
    """Refuse to answer from history of which nothing is known.

    Else lists would be empty and products unknown, as if nobody had ever answered.

    Raises:
        Refused: no line of it could be read.
    """
    snapshot = view.snapshot
    if snapshot.lost and not any(index.models for index in snapshot.line_indexes.values()):
        why = f"Nothing can be shown until this is mended: {snapshot.lost[0]}"
        raise Refused("unavailable", why)


def board(view: View, slug: str, address: Callable[[str], str]) -> Leaderboard:
    """Return the ranking of a category; a former slug leads to the ``address`` of the present one.

    Raises:
        Moved: the slug is a former one.
        Refused: there is no ranking.
    """
    return view.snapshot.leaderboards.get(slug) or refuse_category(view, slug, address)


def refuse_category(view: View, slug: str, address: Callable[[str], str]) -> NoReturn:
    """Raise where a slug without a ranking leads, or why it leads nowhere."""
    if current := view.snapshot.summary.category_redirects.get(slug):
        raise Moved(address(current))
    raise no_category(view, slug)


def product(view: View, slug: str, address: Callable[[str], str]) -> ProductProfile:
    """Return the product at a slug; a former slug leads to the ``address`` of the present one.

    Raises:
        Moved: the slug is a former one.
        Refused: there is no such product.
    """
    if found := view.snapshot.product(slug):
        return found
    fault = view.snapshot.catalogue.fault_of("products", slug)
    # Only now: the redirects of a new snapshot take 30 ms.
    if not fault and (current := view.snapshot.summary.product_redirects.get(slug)):
        raise Moved(address(current))
    raise no_product(view, slug)


def topic(view: View, slug: str) -> RankedTopic:
    """Return the topic at a slug, or raise :class:`Refused`."""
    if found := view.snapshot.summary.topic(slug):
        return found
    why = f'There is no topic with the slug "{slug}". /topics lists them all.'
    raise Refused("unknown-topic", why)


def topic_parameter(
    view: View, slug: str | None, address: Callable[[str], str]
) -> RankedTopic | None:
    """Return the topic that a parameter names, if any.

    Raises:
        Moved: it is one but for upper and lower case.
        Refused: it is unknown.
    """
    find = view.snapshot.summary.topic
    found = find(slug) if slug is not None else None
    if slug is not None and found is None:
        if find(slug.lower()):
            raise Moved(address(slug.lower()))
        accepted = ", ".join(each.slug for each in view.snapshot.summary.topics) or "none yet"
        error = ParameterError(parameter="topic", detail=f"is unknown; accepted are: {accepted}.")
        raise Refused.parameters([error], "unknown-topic")
    return found


def model_names(snapshot: Snapshot) -> dict[str, str]:
    """Return the present name by every one that ``model`` may give: present, retired, former."""
    present = (*snapshot.models, *snapshot.summary.retired)
    return {**{name: name for name in present}, **snapshot.catalogue.former_names}


def model_parameter(view: View, name: str | None, address: Callable[[str], str]) -> str | None:
    """Return the present name of the assistant that a parameter names, if any.

    Raises:
        Moved: it is one but for upper and lower case.
        Refused: it is unknown.
    """
    if name is None:
        return None
    names = model_names(view.snapshot)
    if name in names:
        return names[name]
    if alike := next((known for known in names if known.casefold() == name.casefold()), None):
        raise Moved(address(alike))
    detail = f"is unknown; accepted are: {', '.join(names) or 'none yet'}."
    raise Refused.parameters([ParameterError(parameter="model", detail=detail)])


def check_day(view: View, found: Leaderboard, day: str) -> None:
    """Refuse a day as of which a category has no ranking that can be shown."""
    if loss := as_of.loss_after(view.snapshot, found.slug, day):
        raise Refused(
            "unavailable",
            f'What "{found.slug}" ranked before {loss.day} cannot be shown: history was lost, '
            f"which a person accepted on that day ({loss.reason}).",
        )
    check_first(view, found, day)


def check_first(view: View, found: Leaderboard, day: str) -> None:
    """Refuse a day before that of a category's first answer."""
    first = as_of.first_day(view.snapshot, found.slug)
    if day < first:
        raise Refused(
            "no-such-day",
            f'The category "{found.slug}" had no ranking on {day}: its first answer is of {first}. '
            "Ask for that day or a later one.",
        )


def no_category(view: View, slug: str) -> Refused:
    """Return why there is no ranking of a category.

    Deleted means that history holds the slug and its file is gone (store/README.md, Damage).
    Where a file is bad or history lost, its ranking is there and cannot be shown.
    """
    snapshot = view.snapshot
    check_history(view)
    if fault := snapshot.fault_of(slug):
        return _faulty(slug, fault)
    if deleted := snapshot.gone(slug):
        answered = deleted.last_success
        last = f"its last answer is of {answered[:10]}" if answered else "it was never answered"
        why = f'The category "{slug}" is gone: {last}. Its polls stay at '
        return Refused("gone", f"{why}/api/v1/history?slug={slug}.")
    if category := snapshot.catalogue.categories.get(slug):
        return Refused(
            "no-answer-yet",
            f'The category "{slug}" has no successful poll yet.',
            f"“{category.question}” has no successful poll yet. Its ranking appears here as "
            "soon as one assistant has answered.",
            heading=f"{category.title}: no answer yet",
        )
    return Refused(
        "unknown-category",
        f'No category with the slug "{slug}". Resolve slugs through /api/v1/search?q=.',
        f'There is no category with the slug "{slug}".',
        suggestions=view.suggested_categories(slug),
    )


def no_product(view: View, slug: str) -> Refused:
    """Return why there is no product; its file may be bad, or history lost that may name it."""
    if fault := view.snapshot.catalogue.fault_of("products", slug):
        return _faulty(slug, fault)
    if view.snapshot.lost:
        return Refused(
            "unavailable",
            f'No product with the slug "{slug}" is known, but it may be named in history that '
            f"cannot be read until this is mended: {view.snapshot.lost[0]}",
        )
    return Refused(
        "unknown-product",
        f'No product with the slug "{slug}". Resolve names through /api/v1/search?q=.',
        f'There is no product with the slug "{slug}".',
        suggestions=view.suggested_products(slug),
    )


def no_experiment(view: View, slug: str) -> Refused:
    """Return why there is no write-up of an experiment."""
    if fault := view.snapshot.catalogue.fault_of("labs", slug):
        return _faulty(slug, fault)
    why = f'No experiment with the slug "{slug}". /labs lists them all.'
    return Refused("unknown-experiment", why)


def no_cursor(what: str) -> Refused:
    """Return why a list does not go on from ``before``."""
    why = f"before is the id of no {what}. Take it from the end of the part before this one."
    return Refused("unknown-cursor", why)


def place(view: View, slug: str, product: str) -> tuple[Leaderboard, ProductProfile]:
    """Return a ranking and a product; former slugs lead to the badge of the present ones."""
    snapshot, summary = view.snapshot, view.snapshot.summary
    found, named = snapshot.leaderboards.get(slug), snapshot.product(product)
    if found and named:
        return found, named
    now = (
        summary.category_redirects.get(slug, slug),
        summary.product_redirects.get(product, product),
    )
    if now != (slug, product):
        raise Moved(view.at.badge(*now))
    raise no_category(view, slug) if found is None else no_product(view, product)


def _faulty(slug: str, fault: Problem) -> Refused:
    return Refused("unavailable", f'"{slug}" cannot be shown until this is mended: {fault}')
