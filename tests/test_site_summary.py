"""What is over all categories: order, counts, topics."""

from operator import attrgetter
from pathlib import Path

from builders import answered, app_over, client_over, store_over, write_data
from flask import Flask
from small_world import write_small_world

from store.site_summary import SiteSummary


def test_categories_stand_by_title_whatever_its_case(tmp_path: Path) -> None:
    """By title, and by slug where titles are the same."""
    titles = {"a": "Best zoom", "b": "best Apple", "c": "Best apple", "d": "Best Mango"}
    categories = {slug: {"title": title} for slug, title in titles.items()}
    polls = [answered("A", ["X"], slug=slug) for slug in "dcba"]
    client = client_over(write_data(tmp_path, categories=categories, polls=polls))
    listed = client.get("/api/v1/categories.json").get_json()
    assert [item["slug"] for item in listed] == ["b", "c", "d", "a"]


def test_changes_come_newest_first_over_all_categories(tmp_path: Path) -> None:
    """Within one second by category and model."""
    days = {("b", "A"): (1, 3, 5), ("a", "B"): (1, 5, 6), ("a", "A"): (1, 2, 5)}
    polls = [
        answered(model, [pick], f"2026-10-{day:02}T06:00:00Z", slug=slug)
        for (slug, model), own in days.items()
        for day, pick in zip(own, "XYZ", strict=True)
    ]
    polls.sort(key=attrgetter("polled_at"))
    categories = {slug: {"title": f"Best {slug}"} for slug in "ab"}
    client = client_over(write_data(tmp_path, categories=categories, polls=polls))
    changes = client.get("/api/v1/changes.json").get_json()["changes"]
    assert [tuple(each[f] for f in ("toDate", "slug", "model", "to")) for each in changes] == [
        ("2026-10-06", "a", "B", "Z"),
        ("2026-10-05", "a", "A", "Z"),
        ("2026-10-05", "a", "B", "Y"),
        ("2026-10-05", "b", "A", "Z"),
        ("2026-10-03", "b", "A", "Y"),
        ("2026-10-02", "a", "A", "Y"),
    ]


def test_the_search_index_is_kept_while_the_titles_stay(tmp_path: Path) -> None:
    """A poll that names nothing new costs no new index; a new name does."""
    store = store_over(write_data(tmp_path, polls=[answered("A", ["X", "Y"])]))
    first = store.snapshot.summary.index
    for names, is_kept in ((["Y", "X"], True), (["X", "Z"], False)):
        store.record([answered("B", names)], "2026-11-03T06:00:00Z")
        store.reload()
        assert (store.snapshot.summary.index is first) == is_kept


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


def test_an_assistants_figures(small: Flask) -> None:
    """What counts, what agrees and what failed, over the little world; withheld polls nowhere."""
    profiles = summary(small).assistants
    assert (profiles["A"].polls, profiles["A"].answers) == (5, 4)
    assert (profiles["A"].counted, profiles["A"].agreeing, profiles["A"].shared) == (3, 3, 3)
    assert (profiles["C"].counted, profiles["C"].agreeing, profiles["C"].shared) == (2, 1, 2)
