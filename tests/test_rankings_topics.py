"""Topics hold what is ranked, under the slugs that categories have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import app_over
from small_world import write_small_world

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Flask

    from store.rankings.site_summary import SiteSummary


def summary(app: Flask) -> SiteSummary:
    """What is over all categories of the little world."""
    found: SiteSummary = app.extensions["store"].snapshot.summary
    return found


def test_a_topic_holds_what_is_ranked_and_follows_renames(small: Flask) -> None:
    """An unpolled category is left out; a former slug stands for the category that has it."""
    drinks, software = summary(small).topics
    assert [[b.slug for b in part.leaderboards] for part in drinks.parts] == [
        ["green-tea"],
        ["tea-kettle"],
    ]
    assert [b.slug for b in software.leaderboards] == ["crm-software"]


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
