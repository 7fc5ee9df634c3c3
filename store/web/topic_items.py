"""Topics as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.web import resources as wire

if TYPE_CHECKING:
    from store.web.snapshot_view import SnapshotView


def topic_items(view: SnapshotView) -> list[wire.TopicItem]:
    """Every topic, in the order of its file."""
    return [
        wire.TopicItem(
            slug=topic.slug,
            title=topic.title,
            categories=len(topic.leaderboards),
            parts=[
                wire.TopicPart(
                    slug=part.slug,
                    title=part.title,
                    categories=[board.slug for board in part.leaderboards],
                )
                for part in topic.parts
            ],
            page=view.at.topic_page(topic.slug),
            api=view.at.topic(topic.slug),
        )
        for topic in view.snapshot.summary.topics
    ]
