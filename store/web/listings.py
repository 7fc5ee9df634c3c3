"""Lists over everything: categories, topics, ways of asking and experiments, with their shapes."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Struct, to_builtins

from store.rankings.experiments import Experiment
from store.records import WrittenExperiment
from store.site_summary import RankedPart, RankedTopic
from store.web import lookup
from store.web.endpoints import endpoint, rows
from store.web.queries import CategoryFilter, CategoryListQuery, Query
from store.web.shapes import URI, Api, CertaintyLevel, Date, JsonObject, Page, doc
from store.web.view import View


class CategoryItem(JsonObject, frozen=True, kw_only=True):
    """A ranked category in the list of all."""

    slug: str
    title: str
    updated: Date
    level: CertaintyLevel
    first: Annotated[list[str], doc("The product at #1, or all that share it.")]
    tied: Annotated[bool, doc("Several products share its #1.")]
    page: Page
    api: Api


class TopicPartItem(JsonObject, frozen=True, kw_only=True):
    """A part of a topic."""

    slug: Annotated[str, doc("Slug, unique within the topic.")]
    title: Annotated[str, doc("What its categories have in common.")]
    categories: Annotated[list[str], doc("Slugs of its ranked categories, by title.")]


class TopicItem(JsonObject, frozen=True, kw_only=True):
    """A topic to browse by."""

    slug: Annotated[str, doc("Topic slug.")]
    title: Annotated[str, doc("Topic title.")]
    categories: Annotated[int, doc("How many ranked categories it has.", ge=0)]
    parts: Annotated[list[TopicPartItem], doc("Its parts; a category may be in several.")]
    page: Page
    api: Annotated[str, doc("Address of the list of its categories.", extra_json_schema=URI)]


class InstrumentUse(JsonObject, frozen=True, kw_only=True):
    """A way of asking: all that is sent but the question, and who answered to it."""

    id: Annotated[str, doc("What polls name as instrument.")]
    models: Annotated[list[str], doc("The models that ever answered to it.")]
    counted: Annotated[int, doc("Answers to it that count in rankings now.", ge=0)]
    says: Annotated[
        dict[str, Any],
        doc(
            "Its text: api, model (as asked for), web_search, structured (how the "
            "form of the answer is asked for), system, prompt (with {question} for the question) "
            "and request (the body, with {system} and {prompt} for these texts). The id is the "
            "start of the SHA-256 of this JSON, its members sorted, without spaces, in UTF-8."
        ),
    ]


class InstrumentList(JsonObject, frozen=True, kw_only=True):
    """The ways in which the models were asked, those of the present rankings first."""

    count: Annotated[int, doc("Number of instruments.", ge=0)]
    instruments: list[InstrumentUse]


class LabsExperiment(JsonObject, frozen=True, kw_only=True):
    """One of the service's own experiments."""

    slug: str
    title: str
    method: str
    finding: str
    date: Date
    url: Annotated[str, doc("Address of the full write-up.", extra_json_schema=URI)]


class Labs(JsonObject, frozen=True, kw_only=True):
    """The service's own experiments."""

    count: int
    experiments: list[LabsExperiment]


class ComputedTexts(Struct, frozen=True):
    """The title and the method of an experiment whose finding is computed."""

    title: str
    method: str


COMPUTED = msgspec.json.Decoder(dict[str, ComputedTexts]).decode(
    (Path(__file__).parents[2] / "templates/labs.json").read_bytes()
)
"""The texts of each computed experiment, by slug."""


@endpoint(
    "/api/v1/categories.json",
    "Rankings",
    page=lambda view, query: view.at.topic_page(query.topic) if query.topic else view.at.page(),
    write=rows(CategoryItem),
    problems=("unknown-topic",),
)
def list_categories(view: View, query: CategoryListQuery) -> list[CategoryItem]:
    """All ranked categories.

    Every category with at least one counted answer, by title; or those of one topic, of one
    level, with a tie at #1.
    """
    return category_items(view, lookup.topic_parameter(view, query.topic), query)


def category_items(
    view: View, topic: RankedTopic | RankedPart | None, query: CategoryFilter
) -> list[CategoryItem]:
    """Return the categories of a topic or a part of one, or all, that are as a query asks."""
    return [
        CategoryItem(
            slug=board.slug,
            title=board.category.title,
            updated=board.updated,
            level=board.certainty.level,
            first=[view.name(product) for product in board.winners],
            tied=len(board.winners) > 1,
            page=view.at.category_page(board.slug),
            api=view.at.category(board.slug),
        )
        for board in (topic.leaderboards if topic else view.snapshot.summary.ranked)
        if query.level in (None, board.certainty.level)
        and query.tied in (None, len(board.winners) > 1)
    ]


@endpoint("/api/v1/topics.json", "Rankings", page=lambda view, _: view.at.page("topics"))
def list_topics(view: View, query: Query) -> list[TopicItem]:  # noqa: ARG001
    """Topics to browse by.

    Topics with their parts and the ranked categories in each; a category may be in several.
    """
    return [
        TopicItem(
            slug=topic.slug,
            title=topic.title,
            categories=len(topic.leaderboards),
            parts=[
                TopicPartItem(
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


@endpoint("/api/v1/instruments.json", "Over time", page=lambda view, _: view.at.page("methodology"))
def get_instruments(view: View, query: Query) -> InstrumentList:  # noqa: ARG001
    """The ways in which the models were asked.

    Every way of asking that a poll of the history names as its instrument: prompt, form of the
    answer, web search, model and whatever else is sent. Answers to different ones are never
    compared. Polls without one are older than this record, or of sample models.
    """
    snapshot = view.snapshot
    counted = Counter(
        answer.answer.key.instrument
        for board in snapshot.summary.ranked
        for answer in board.counted
    )
    models: dict[str | None, set[str]] = {}
    for aggregate in snapshot.aggregates.values():
        for key in aggregate.log.keys:
            # Of all ever asked so, also by former polls that no ranking counts.
            models.setdefault(key.instrument, set()).add(key.model)
    instruments = [
        InstrumentUse(
            id=id_,
            models=sorted(models.get(id_, ())),
            counted=counted[id_],
            says=to_builtins(says),
        )
        for id_, says in snapshot.catalogue.instruments.items()
    ]
    # First the ways by which most rankings of today came about.
    instruments.sort(key=lambda use: (-use.counted, use.models, use.id))
    return InstrumentList(count=len(instruments), instruments=instruments)


@endpoint("/api/v1/labs.json", "About", page=lambda view, _: view.at.page("labs"))
def get_labs(view: View, query: Query) -> Labs:  # noqa: ARG001
    """The service's own experiments.

    Each with its method, its finding and the address of the full write-up.
    """

    def experiment(
        slug: str, texts: ComputedTexts | WrittenExperiment, result: Experiment | WrittenExperiment
    ) -> LabsExperiment:
        return LabsExperiment(
            slug=slug,
            title=texts.title,
            method=texts.method,
            finding=result.finding,
            date=str(result.date),
            url=view.at.page(f"labs/{slug}"),
        )

    computed = view.snapshot.summary.experiments
    experiments = {e.slug: experiment(e.slug, COMPUTED[e.slug], e) for e in computed}
    written = view.snapshot.catalogue.labs
    experiments |= {slug: experiment(slug, text, text) for slug, text in written.items()}
    # Sorting is stable: of one day, by slug.
    by_slug = [experiments[slug] for slug in sorted(experiments)]
    newest_first = sorted(by_slug, key=lambda experiment: experiment.date, reverse=True)
    return Labs(count=len(newest_first), experiments=newest_first)
