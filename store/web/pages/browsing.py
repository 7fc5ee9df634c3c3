"""The resolvers of pages to browse by: topics, comparisons, assistants."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from flask import request

from store.rankings.names import slug as slug_of
from store.web.addresses import compare_path, topic_path
from store.web.pages import assistants, comparisons, contexts
from store.web.pages.making import PageMaker
from store.web.parameters import Parameters, path_slug
from store.web.resolution import Absent, Moved

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.web.resolution import Resolved, Resource
    from store.web.snapshot_view import SnapshotView


class Browsing(PageMaker):
    """Pages that lead from one ranking to others."""

    def rules(self) -> tuple[tuple[str, Callable[..., Resolved]], ...]:
        """Every rule with its resolver."""
        return (
            self.general("topics", "topics.html", same="topics.json"),
            self.general("models", "models.html", assistants.overview),
            ("/topics/<slug>", self.topic),
            ("/models/<slug>", self.model),
            ("/compare", self.compare),
        )

    def topic(self, view: SnapshotView, slug: str) -> Resolved:
        """``/topics/<slug>``: the categories of a topic, part by part."""
        found = view.snapshot.summary.topic(path_slug(slug))
        if found is None:
            return no_topic(slug)
        shown = partial(contexts.topic, found, view.snapshot)
        return self.page(view, f"topics/{slug}", "topic.html", shown, same=topic_path(slug))

    def model(self, view: SnapshotView, slug: str) -> Resolved:
        """``/models/<slug>``: what an assistant recommends, how steadily, how often it fails."""
        model = view.snapshot.summary.model_slugs.get(path_slug(slug))
        if model is None or model not in view.snapshot.summary.assistants:
            return _no_model(slug, view)
        shown = partial(assistants.assistant, model, slug, view)
        return self.page(view, f"models/{slug}", "model.html", shown)

    def compare(self, view: SnapshotView) -> Resolved:
        """``/compare``: two products, or two assistants; without both, a form to choose them."""
        parameters = Parameters(request.args)
        asked = parameters.name("a"), parameters.name("b")
        parameters.check()
        one, other = (comparisons.side(each, view) for each in asked)
        if one.product and other.product and one.product is not other.product:
            products = one.product, other.product
            return self._compared(asked, view, lambda: comparisons.products(*products, view))
        if one.model and other.model and one.model != other.model:
            models = one.model, other.model
            return self._compared(asked, view, lambda: comparisons.models(*models, view))
        return self._compared(asked, view, lambda: comparisons.choice(one, other, view))

    def _compared(
        self, asked: tuple[str, str], view: SnapshotView, context: Callable[[], dict[str, Any]]
    ) -> Resource:
        """The page of a comparison, kept until anything at all changes."""
        found = self.page(view, compare_path(*asked), "compare.html", context)
        return msgspec.structs.replace(found, generation=view.snapshot.generations.newest)


def no_topic(slug: str) -> Absent:
    """That there is no such topic."""
    why = f'There is no topic with the slug "{slug}". /topics lists them all.'
    return Absent.because(HTTPStatus.NOT_FOUND, why)


def _no_model(slug: str, view: SnapshotView) -> Absent | Moved:
    """Where a slug leads that no configured assistant has: to its new one, or nowhere."""
    for former, model in view.snapshot.catalogue.former_names.items():
        if slug_of(former) == slug:
            slugs = {name: own for own, name in view.snapshot.summary.model_slugs.items()}
            return Moved(view.at.model_page(slugs[model]))
    retired = next((m for m in view.snapshot.summary.retired if slug_of(m) == slug), None)
    if retired:
        why = f"{retired} is not asked any more: its polls stay in the history, and count nowhere."
        return Absent.because(HTTPStatus.GONE, why)
    why = f'There is no assistant with the slug "{slug}". /models lists them all.'
    return Absent.because(HTTPStatus.NOT_FOUND, why)
