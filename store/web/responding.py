"""Answering requests with what their addresses resolve to."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from store.web.errors import ProblemResponse
from store.web.http_responses import answer, moved
from store.web.resolution import Absent, Moved, without_history

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flask import Blueprint, Response

    from store.memory import Store
    from store.snapshot import Snapshot
    from store.web.cache import BodyCache, EncodedBody
    from store.web.resolution import Resolved, Resource
    from store.web.snapshot_view import SnapshotView


class Responder:
    """Resolves requests against a store's current snapshot; bodies are kept in one cache."""

    def __init__(
        self, store: Store, view: Callable[[Snapshot], SnapshotView], cache: BodyCache
    ) -> None:
        self.store = store
        self._view = view
        self._cache = cache
        self._resolvers: dict[str, Callable[..., Resolved]] = {}

    def view(self) -> SnapshotView:
        """What a request sees that comes now."""
        return self._view(self.store.snapshot)

    def body(self, resource: Resource) -> EncodedBody:
        """The body of a resource, kept or made."""
        return self._cache.get(resource.path, resource.generation, resource.make)

    def add(
        self,
        blueprint: Blueprint,
        rule: str,
        name: str,
        resolve: Callable[..., Resolved],
        *,
        needs_history: bool = True,
    ) -> None:
        """Serve what ``resolve`` finds, given a view and the variables of the rule.

        What ``needs_history`` is 503 while nothing of the history is known.
        """
        self._resolvers[f"{blueprint.name}.{name}"] = resolve

        def respond(**given: str) -> Response:
            view = self.view()
            lost = without_history(view.snapshot) if needs_history else None
            found = lost or resolve(view, **given)
            if isinstance(found, Absent):
                detail = found.page if blueprint.name == "pages" else found.api
                problem = ProblemResponse(found.status, detail, suggestions=found.closest)
                problem.heading = found.heading
                return problem
            if isinstance(found, Moved):
                return moved(found.address)
            return answer(self.body(found), found.media_type, found.link, found.cache_control)

        blueprint.add_url_rule(rule, name, respond)

    def is_known(self, endpoint: str, given: Mapping[str, Any]) -> bool:
        """Whether an endpoint has an answer for the variables of its rule.

        That something moved, is gone or cannot be shown just now is an answer.

        Raises:
            BadParameters: a variable is none that the rule may have.
        """
        if endpoint not in self._resolvers:  # its names are looked up as they are
            return False
        found = self._resolvers[endpoint](self.view(), **given)
        return not (isinstance(found, Absent) and found.status == HTTPStatus.NOT_FOUND)
