"""Pages as resources: a template, what it is given, and until when the result may be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from store.web.cache import EncodedBody
from store.web.pages.rendering import HTML, PageRenderer, page_link
from store.web.resolution import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

    from store.web.responding import Responder
    from store.web.snapshot_view import SnapshotView

Shape = TypeVar("Shape")


class PageMaker:
    """Makes pages of what the API's resources say."""

    def __init__(self, responder: Responder, renderer: PageRenderer) -> None:
        self.responder = responder
        self.renderer = renderer

    def page(
        self,
        view: SnapshotView,
        path: str,
        template: str,
        context: Callable[[], Mapping[str, Any]],
        *,
        about: Resource | None = None,
        same: str | None = None,
        media_type: str = HTML,
    ) -> Resource:
        """A page of what a resource of the API is ``about``, or over everything.

        ``same`` is the path below ``/api/v1/`` of what a page over everything shows, if anything.
        """

        def make() -> EncodedBody:
            return EncodedBody(self.renderer.render(template, view, **context()))

        generation = about.generation if about else view.snapshot.generations.summary
        resource = about.path if about else same and f"api/v1/{same}"
        return Resource(path, generation, make, media_type, page_link(view, resource))

    def general(
        self,
        path: str,
        template: str,
        context: Callable[[SnapshotView], Mapping[str, Any]] = lambda _: {},
        same: str | None = None,
        media_type: str = HTML,
    ) -> tuple[str, Callable[[SnapshotView], Resource]]:
        """The rule of a page over everything, with its resolver."""

        def resolve(view: SnapshotView) -> Resource:
            return self.page(
                view, path, template, lambda: context(view), same=same, media_type=media_type
            )

        return f"/{path}", resolve

    def decoded(self, found: Resource, shape: msgspec.json.Decoder[Shape]) -> Shape:
        """What a resource says; decoding its body costs a tenth of making it."""
        return shape.decode(self.responder.body(found).body)


def small(
    path: str, make: Callable[[SnapshotView], bytes], media_type: str
) -> tuple[str, Callable[[SnapshotView], Resource]]:
    """The rule of what no template makes, so quickly that it is not kept, with its resolver."""

    def resolve(view: SnapshotView) -> Resource:
        def encoded() -> EncodedBody:
            return EncodedBody(make(view))

        return Resource(path, None, encoded, media_type, page_link(view))

    return f"/{path}", resolve
