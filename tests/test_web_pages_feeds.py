"""Feeds are valid, complete, and name every change by the same id for ever."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from builders import answered, app_over, client_over, failed, write_data
from flask import Flask

from store.records import Poll

ATOM = "{http://www.w3.org/2005/Atom}"
POLLS = [
    answered("A", ["x"], "2026-01-01T06:00:00Z"),
    answered("A", ["y"], "2026-01-08T06:00:00Z"),
    answered("A", ["y"], "2026-01-15T06:00:00Z"),
    answered("A", ["x"], "2026-01-22T06:00:00Z"),
]
FINEST = [
    answered("A", [name], f"2026-01-{day}T06:00:00Z", question="Which CRM is the finest?")
    for name, day in (("z", 29), ("x", 30))
]
"""Answers, and with them a change, to a wording that does not stand."""


def ids(directory: Path, path: str, **settings: str) -> list[str]:
    """The ids of a feed's entries, newest first."""
    answer = app_over(directory, **settings).test_client().get(path)
    if answer.is_json or path.endswith(".json"):
        return [item["id"] for item in answer.get_json(force=True)["items"]]
    feed = ET.fromstring(answer.data)  # noqa: S314 - our own
    return [entry.findtext(f"{ATOM}id", "") for entry in feed.findall(f"{ATOM}entry")]


def test_all_feeds_name_a_change_alike(tmp_path: Path) -> None:
    """By one id in Atom, JSON Feed and the feed of a category, which holds its own alone."""
    others = [
        answered("A", [name], f"2026-01-{day}T06:00:00Z", slug="help-desk")
        for name, day in (("x", "10"), ("y", "17"))
    ]
    slugs = ("crm-software", "help-desk")
    titles = {slug: {"title": f"Best {slug}"} for slug in slugs}
    write_data(tmp_path, categories=titles, polls=[*POLLS, *others])
    atom = ids(tmp_path, "/feeds/changes.atom")
    assert ids(tmp_path, "/feeds/changes.json") == atom
    parts = [ids(tmp_path, f"/feeds/best/{slug}.atom") for slug in slugs]
    assert [len(part) for part in parts] == [2, 1]
    assert sorted([*parts[0], *parts[1]]) == sorted(set(atom)) == sorted(atom)


def test_a_feed_holds_every_change_of_its_newest_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads once a round misses none, however many there are; older ones follow after it."""
    monkeypatch.setattr("store.web.pages.feeds.ENTRIES", 1)
    slugs = ("crm-software", "help-desk")
    titles = {slug: {"title": f"Best {slug}"} for slug in slugs}
    others = [
        answered("A", [name], f"2026-01-{day}T06:00:00Z", slug="help-desk")
        for name, day in (("x", "10"), ("y", "22"))
    ]
    write_data(tmp_path, categories=titles, polls=[*POLLS, *others])
    assert len(ids(tmp_path, "/feeds/changes.atom")) == 2


def test_ids_outlive_a_move_and_a_rename(tmp_path: Path) -> None:
    """Another address, another site name and a renamed product leave every id as it was."""
    before = ids(write_data(tmp_path / "a", polls=POLLS), "/feeds/changes.atom")
    product = {"better-name": {"name": "Better Name", "aliases": ["x"]}}
    moved = write_data(tmp_path / "b", polls=POLLS, products=product, name="Other")
    assert ids(moved, "/feeds/changes.atom", base_url="https://else.example") == before


def test_the_id_of_a_feed_outlives_a_rename(tmp_path: Path) -> None:
    """Who reads on behind the redirect reads the same feed, however often its slug changes."""
    slugs = ("crm", "crm-tools", "crm-software")
    identities = set()
    for n, slug in enumerate(slugs):
        renamed = {slug: {"title": "Best CRM", "former_slugs": slugs[:n]}}
        polls = [answered("A", ["x"], slug="crm")]
        data = write_data(tmp_path / slug, categories=renamed, polls=polls)
        feed = ET.fromstring(client_over(data).get(f"/feeds/best/{slug}.atom").data)  # noqa: S314 - our own
        identities.add(feed.findtext(f"{ATOM}id"))
    assert len(identities) == 1


@pytest.mark.parametrize("path", ["/feeds/changes.atom", "/feeds/best/crm-software.atom"])
def test_atom_feeds_hold_what_the_format_demands(tmp_path: Path, path: str) -> None:
    """RFC 4287: id, title, updated and an author of the feed; id, title, updated of each entry."""
    client = app_over(write_data(tmp_path, polls=POLLS)).test_client()
    answer = client.get(path)
    assert answer.mimetype == "application/atom+xml"
    feed = ET.fromstring(answer.data)  # noqa: S314 - our own
    assert all(feed.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated"))
    assert feed.findtext(f"{ATOM}author/{ATOM}name") == "Consensus Test"
    for entry in feed.findall(f"{ATOM}entry"):
        assert all(entry.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated"))


def test_the_json_feed_says_which_changes_are_confirmed(tmp_path: Path) -> None:
    """JSON Feed 1.1, newest first; a change that the next answer agreed with is tagged so."""
    feed = app_over(write_data(tmp_path, polls=POLLS)).test_client().get("/feeds/changes.json").json
    assert feed is not None
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert [item["tags"] for item in feed["items"]] == [["unconfirmed"], ["confirmed"]]
    assert [item["date_published"][:10] for item in feed["items"]] == ["2026-01-22", "2026-01-08"]


def flips(page: str) -> int:
    """The changes of assistants that a page lists."""
    return page.count("</b> now says <b>")


def test_rankings_with_another_first_place_are_told_before_their_assistants(tmp_path: Path) -> None:
    """Compared is with the last day before the one that is asked for; a reason stands beside it."""
    client = app_over(write_data(tmp_path, polls=POLLS)).test_client()
    told = client.get("/changes?since=2026-01-22").text.partition('id="firsts"')[2]
    listed = client.get("/api/v1/changes.json?since=2026-01-22").get_json()["firstPlaces"]
    names = {client.get(f"/api/v1/best/crm-software.json{day}").get_json()["combined"][0]["product"]
             for day in ("", "?asOf=2026-01-21")}  # fmt: skip
    assert {listed[0]["from"], listed[0]["to"]} == names
    assert (listed[0]["fromDate"], listed[0]["toDate"]) == ("2026-01-15", "2026-01-22")
    assert f"<bdi>{listed[0]['to']}</bdi></b>" in told.partition("</section>")[0]
    assert client.get("/api/v1/changes.json?since=2026-01-23").get_json()["firstPlaces"] == []


def test_changes_since_a_day(tmp_path: Path) -> None:
    """The day is in the address, nobody is remembered; that day's own changes are among them."""
    client = app_over(write_data(tmp_path, polls=POLLS)).test_client()
    every = client.get("/changes").text
    assert flips(every) == 3, "the one that held is told apart, too"
    assert 'href="/changes?since=2026-01-22"' in every
    for since, count in (
        ("2026-01-08", 2),
        ("2026-01-09", 1),
        ("2026-01-22", 1),
        ("2026-01-23", 0),
    ):
        page = client.get(f"/changes?since={since}")
        assert flips(page.text) == count, since
        assert "Set-Cookie" not in page.headers
    assert "No assistant has changed its first choice since 23 January 2026" in page.text
    assert client.get("/changes?since=yesterday").status_code == 400


@pytest.mark.parametrize("path", ["changes", "best/crm-software"])
@pytest.mark.parametrize(
    "polls",
    [
        [*POLLS, failed("A", at="2026-01-29T06:00:00Z")],
        [*POLLS, *FINEST],
        [answered("A", ["x", "z"], "2026-01-01T06:00:00Z"), failed("A", at="2026-01-02T06:00:00Z")],
    ],
    ids=["a failed poll", "answers to a wording that does not stand yet", "no change yet"],
)
def test_a_feed_is_as_new_as_its_newest_entry(tmp_path: Path, path: str, polls: list[Poll]) -> None:
    """Readers that go by the feed's own time miss no change, and are not woken without one."""
    answer = app_over(write_data(tmp_path, polls=polls)).test_client().get(f"/feeds/{path}.atom")
    feed = ET.fromstring(answer.data)  # noqa: S314 - our own
    times = [e.findtext(f"{ATOM}updated", "") for e in feed.findall(f"{ATOM}entry")]
    assert feed.findtext(f"{ATOM}updated") == max(times, default=polls[0].polled_at)


def test_a_feed_goes_on_to_its_first_change(app: Flask) -> None:
    """Following next leads to every change once; no part ends within a day that it begins."""
    client = app.test_client()
    listed = client.get("/api/v1/changes.json").get_json()["changes"]
    seen, address = [], "https://rankings.example/feeds/changes.json"
    while address:
        feed = client.get(address.removeprefix("https://rankings.example")).get_json()
        assert feed["feed_url"] == address
        seen += feed["items"]
        address = feed.get("next_url", "")
        days = [item["date_published"][:10] for item in feed["items"]]
        assert not address or len(days) >= 100
    ids = [item["id"] for item in seen]
    assert len(ids) == len(set(ids)) == len(listed)
    newest = [change for change in listed if change["toDate"] == listed[0]["toDate"]]
    first = client.get("/feeds/changes.json").get_json()["items"]
    assert len(first) >= len(newest)
    atom = client.get("/feeds/changes.atom").text
    assert atom.count("<entry>") == len(first)
    assert ('rel="next"' in atom) == (len(first) < len(listed))


def test_changes_that_held_stand_before_all_changes(tmp_path: Path) -> None:
    """The newest cannot be confirmed yet: who asks what is firm need not look through them."""
    named = enumerate(("X", "Y", "Y", "Z"), start=1)
    polls = [answered("A", [name], f"2026-01-{7 * week:02}T06:00:00Z") for week, name in named]
    page = app_over(write_data(tmp_path, polls=polls)).test_client().get("/changes").text
    held, every = page.split('id="held"')[1].split('<section aria-labelledby="d', 1)
    assert (held.count("now says"), every.count("now says")) == (1, 2)
    assert ">confirmed</span>" in held
