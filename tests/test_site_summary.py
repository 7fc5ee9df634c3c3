"""What is over all categories: order, counts, retired models, old addresses, topics."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from builders import answered, app_over, category
from flask import Flask
from small_world import write_small_world

from store import site_summary
from store.files import Catalogue
from store.rankings import aggregates, leaderboards, products
from store.rankings.names import Names
from store.records import Assistant, Category, Poll, Site
from store.site_summary import SiteSummary

SITE = Site(version=1, name="Test")


def summarise(
    polls: Mapping[str, Sequence[Poll]],
    categories: Mapping[str, Category] | None = None,
    before: SiteSummary | None = None,
) -> SiteSummary:
    """The overview of categories' polls; models A and B are configured."""
    known = dict.fromkeys(polls, category()) | dict(categories or {})
    read = {
        slug: aggregates.gather(slug, known[slug], said, Names({})) for slug, said in polls.items()
    }
    named = {
        id_: products.describe(
            id_, {s: r.product_stats[id_] for s, r in read.items() if id_ in r.product_stats}, None
        )
        for aggregate in read.values()
        for id_ in aggregate.product_stats
    }
    slugs = {id_: product.slug for id_, product in named.items()}
    made = {
        slug: leaderboards.board(aggregate, ("A", "B"), SITE, slugs)
        for slug, aggregate in read.items()
    }
    ranked = {slug: board for slug, board in made.items() if board}
    catalogue = Catalogue(
        site=SITE,
        assistants=(Assistant(name="A", api="sample"), Assistant(name="B", api="sample")),
        categories=known,
        products={},
        labs={},
        synonyms=(),
        words=(),
        withheld={},
        problems=(),
    )
    return site_summary.summarise(catalogue, read, ranked, named, "", before)


def test_categories_stand_by_title_whatever_its_case() -> None:
    """By title, and by slug where titles are the same."""
    said = {slug: [answered("A", ["X"], slug=slug)] for slug in "dcba"}
    titles = {"a": "Best zoom", "b": "best Apple", "c": "Best apple", "d": "Best Mango"}
    found = summarise(said, {slug: category(title) for slug, title in titles.items()})
    assert [board.slug for board in found.ranked] == ["b", "c", "d", "a"]


def test_changes_come_newest_first_over_all_categories() -> None:
    """Within one second by category and model."""

    def pick_changes(model: str, *days: int) -> list[Poll]:
        picks = ("X", "Y", "Z")
        return [
            answered(model, [pick], f"2026-10-{day:02}T06:00:00Z")
            for day, pick in zip(days, picks, strict=True)
        ]

    found = summarise(
        {
            "b": pick_changes("A", 1, 3, 5),
            "a": [*pick_changes("B", 1, 5, 6), *pick_changes("A", 1, 2, 5)],
        }
    )
    assert [
        (change.current_at[8:10], change.slug, change.model, change.current)
        for change in found.changes
    ] == [
        ("06", "a", "B", "=z"),
        ("05", "a", "A", "=z"),
        ("05", "a", "B", "=y"),
        ("05", "b", "A", "=z"),
        ("03", "b", "A", "=y"),
        ("02", "a", "A", "=y"),
    ]


def test_former_slugs_lead_to_their_category_unless_one_bears_them() -> None:
    """A renamed category keeps its old address, until another category takes it."""
    said: dict[str, list[Poll]] = {"a": [], "taken": []}
    renamed = {"a": category(former_slugs=("old", "taken"))}
    assert summarise(said, renamed).category_redirects == {"old": "a"}


def test_the_search_index_is_kept_while_the_titles_stay() -> None:
    """A poll that names nothing new costs no new index; a new name does."""
    first = summarise({"a": [answered("A", ["X", "Y"])]})
    same = summarise({"a": [answered("A", ["X", "Y"]), answered("B", ["Y", "X"])]}, before=first)
    other = summarise({"a": [answered("A", ["X", "Z"])]}, before=first)
    assert same.index is first.index
    assert other.index is not first.index
    assert [hit.slug for hit in other.index.search("CRM software").categories] == ["a"]


def summary(app: Flask) -> SiteSummary:
    """What is over all categories of the little world."""
    found: SiteSummary = app.extensions["store"].snapshot.summary
    return found


def test_a_part_without_a_ranking_is_left_out(tmp_path: Path) -> None:
    """A topic stays, for its address; a part that has nothing to show goes."""
    directory = write_small_world(tmp_path / "data")
    for slug in ("green-tea", "tea-kettle"):
        (directory / "history" / f"{slug}.jsonl").unlink()
    client = app_over(directory).test_client()
    assert client.get("/api/v1/topics.json").get_json()[0]["parts"] == []
    page = client.get("/topics/drinks")
    assert page.status_code == 200
    assert "No category of this topic has been answered yet" in page.text
    assert "/topics/drinks" not in client.get("/topics").text


def test_a_category_knows_its_topics(small: Flask) -> None:
    """From a category the way leads back to topic and part."""
    found = summary(small).topics_of["tea-kettle"]
    assert [(topic.slug, part.slug) for topic, part in found] == [("drinks", "gear")]
    page = small.test_client().get("/best/tea-kettle").text
    assert 'href="/topics/drinks#gear"' in page


def test_an_edited_topic_shows_on_the_category_pages(tmp_path: Path) -> None:
    """A renamed topic changes the pages of its categories, cached or not."""
    directory = write_small_world(tmp_path / "data")
    app = app_over(directory)
    client, store = app.test_client(), app.extensions["store"]
    assert ">Drinks<" in client.get("/best/tea-kettle").text
    path = directory / "topics.json"
    path.write_text(path.read_text().replace('"Drinks"', '"Beverages"'))
    store.reload()
    assert ">Beverages<" in client.get("/best/tea-kettle").text


def test_an_assistants_figures(small: Flask) -> None:
    """What counts, what agrees and what failed, over the little world; withheld polls nowhere."""
    profiles = summary(small).assistants
    assert (profiles["A"].polls, profiles["A"].answers) == (5, 4)
    assert (profiles["A"].counted, profiles["A"].agreeing, profiles["A"].shared) == (3, 3, 3)
    assert (profiles["C"].counted, profiles["C"].agreeing, profiles["C"].shared) == (2, 1, 2)
