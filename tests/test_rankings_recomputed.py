"""What is served equals what a second, independent computation finds, for all the data."""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import mcp_rankings
import pytest
from builders import (
    BASE_URL,
    answered,
    app_over,
    append,
    close_days,
    failed,
    line_of,
    prepared,
    view_of,
    withhold,
    write_data,
    write_json,
)
from certainty_figures import Figures
from flask import Flask
from flask.testing import FlaskClient
from lab_figures import by_rule, noise, record, standing
from recomputation import Recomputation

from store.rankings import sentences
from store.rankings.experiments import Experiment
from store.records import Poll
from store.web import as_of
from store.web.pages.answer_box import answer_box

WORLDS = ("shipped", "odd names", "odd times", "repeats")

ODD = (
    "Zoho CRM", "Zoho", "zoho crm™", "CRM by Zoho", "Zoho CRM Plus", "Salesforce Sales Cloud",
    "Sales Cloud", "Salesforce", "HubSpot", "HubSpot CRM", "Hubspot crm software", "Pipedrive",
    "Pipedrive 3.1", "Pipedrive 31", "Attio", "Attio+", "Attio#", "Café CRM", "Cafe", "Monday.com",
    "monday", "Yahoo!", "Ωmega", "omega", "日本CRM", "C", "C++", "1,000 CRM",
    "Ørsted", "Orsted 7C9BF7", "Orsted-C0FFEE", "Decade", "The Decade", "Old Notion", "Notion",
)  # fmt: skip
DOMAINS = (None, None, "zoho.com", "salesforce.com", "elsewhere.example", "monday.com")

PRODUCTS: dict[str, dict[str, Any]] = {
    "zoho-crm": {"name": "Zoho CRM", "maker": "Zoho", "domain": "zoho.com"},
    "sales-cloud": {"name": "Salesforce Sales Cloud", "maker": "Salesforce"},
    "hubspot": {
        "name": "HubSpot",
        "aliases": ["Hub Spot", "Attio+"],
        "not_same_as": ["hubspot-crm"],
    },
    "attio": {"name": "Attio", "aliases": ["Attio+"]},
    "monday": {"name": "monday.com", "domain": "monday.com", "domain_is_product": True},
    "never-named": {"name": "Never Named", "former_slugs": ["pipedrive-31"]},
    "notion": {"name": "Notion", "former_slugs": ["old-notion"]},
}

WORDS = (
    "Quick",
    "steady",
    "plain.",
    "Tidy!",
    "Cheap?",
    "Long,",
    "and so on…",
    "(truly.)",
    "done..",
)


def _prose(draw: Random) -> str | None:
    """Nothing, a few words or very many, with every kind of ending."""
    return (
        " ".join(draw.choices(WORDS, k=draw.choice([1, 3, 30, 60])))
        if draw.random() < 0.8
        else None
    )


def _polls(seed: int, slugs: dict[str, str], names: tuple[str, ...], gap: int) -> Iterator[Poll]:
    """Random polls at random distances, with failures, a retired model and changed questions."""
    draw = Random(seed)
    for slug, question in slugs.items():
        day = 0
        for _ in range(draw.randint(1, 14)):
            day += draw.randint(0, gap)
            at = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T06:00:00Z"
            model = draw.choice(["A", "B", "C", "D", "Retired"])
            if draw.random() < 0.15:
                yield failed(model, at=at, slug=slug)
                continue
            poll = answered(
                model,
                draw.sample(names, draw.randint(1, 5)),
                at,
                slug=slug,
                question=question if draw.random() < 0.9 else "What was asked before?",
                domains={name: draw.choice(DOMAINS) for name in names},
                reason=_prose(draw),
                caveat=_prose(draw),
            )
            yield poll


def _repeats(seed: int, questions: dict[str, str]) -> Iterator[Poll]:
    """Pace of up to four assistants with repeats, new versions, pauses and few products."""
    draw = Random(seed)
    for slug, question in questions.items():
        models = "ABCD"[: draw.randint(1, 4)]
        taste = draw.sample(ODD, draw.randint(2, 9))
        noise, version = draw.choice([0.2, 0.6, 2]), dict.fromkeys(models, 1)
        rounds = draw.randint(1, 14)
        for number in range(rounds):
            if number == rounds - 1 and draw.random() < 0.3:
                taste[:2] = taste[1::-1]
            at = f"2026-{1 + draw.choice([1, 1, 1, 3]) * number // 14:02}-{1 + number:02}"
            for model in models * draw.choice([1, 1, 2]):
                version[model] += draw.random() < 0.02
                order = sorted(taste, key=lambda name: taste.index(name) + draw.gauss(0, noise))
                yield answered(
                    model,
                    order[: draw.randint(2, 5)],
                    f"{at}T06:00:{draw.randint(0, 59):02}Z",
                    slug=slug,
                    question=question,
                    served_model=draw.choice([None, *[f"v{version[model]}"] * 99]),
                )


def _repeated_world(directory: Path, seed: int, categories: int) -> Path:
    """Categories asked again and again, so that every level occurs."""
    questions = {f"c{i}": f"What is the best c{i}?" for i in range(categories)}
    made = {slug: {"title": f"Best {slug}", "question": q} for slug, q in questions.items()}
    write_data(directory, categories=made, products=PRODUCTS, drop_after_days=60)
    append(directory, list(_repeats(seed, questions)))
    assistants = [{"name": name, "api": "sample"} for name in "ABCD"]
    assistants[0]["maker"], assistants[2]["maker"] = "ZOHO", "Salesforce"
    write_json(directory / "models.json", {"version": 1, "models": assistants})
    return directory


def odd_world(directory: Path, names: tuple[str, ...], gap: int) -> Path:
    """Forty categories about few products, some with nouns, one with a former slug."""
    categories: dict[str, dict[str, Any]] = {
        f"crm-{i}": {
            "title": f"Best CRM {i}",
            "question": f"What is the best CRM {i}?",
            "nouns": [[], ["CRM"], ["CRM", "software", "CRM software"]][i % 3],
            "former_slugs": ["crm-old"] if i == 7 else [],
            "former_questions": ["What was asked before?"] if i % 4 == 3 else [],
        }
        for i in range(40)
    }
    write_data(directory, categories=categories, products=PRODUCTS, stale_after_days=20)
    asked = {slug: fields["question"] for slug, fields in categories.items()}
    polls = list(_polls(gap, {**asked, "crm-old": asked["crm-7"]}, names, gap))
    append(directory, polls)
    assistants: list[dict[str, Any]] = [{"name": name, "api": "sample"} for name in "ABCD"]
    assistants[1]["former_names"] = ["Retired"] if gap > 9 else []
    write_json(directory / "models.json", {"version": 1, "models": assistants})
    _damage(directory / "history")
    withhold(directory, *(poll.id for poll in polls[::25]))
    return directory


def _damage(history: Path) -> None:
    """Put what counts nowhere behind sound lines: repeats, other files' lines, what cannot be."""
    lines = {path: path.read_bytes().splitlines(keepends=True) for path in history.iterdir()}
    for path, own in lines.items():
        other = lines[history / "crm-3.jsonl"]
        impossible = {**json.loads(own[0]), "withheld": True}
        beyond = {**json.loads(own[-1]), "polledAt": "9999-01-01T00:00:00Z"}
        bad = [own[0], other[-1], line_of(impossible), line_of(beyond), b"{\n"]
        path.write_bytes(b"".join([*own[:-1], *bad, own[-1]]))


class World(NamedTuple):
    """A data directory recomputed, its figures by category, and a reader of its answers."""

    directory: Path
    recomputed: Recomputation
    figures: dict[str, dict[str, Any] | None]
    client: FlaskClient
    verdicts: dict[str, bytes]


@pytest.fixture(scope="module", params=WORLDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The shipped data, and three directories of odd data.

    Of the shipped categories every eighth is recomputed: exact fractions take 4 ms each.
    """
    directory: Path
    if request.param == "shipped":
        directory = request.getfixturevalue("shipped")
        app: Flask = request.getfixturevalue("app")
    elif request.param == "repeats":
        directory = _repeated_world(tmp_path_factory.mktemp("repeats") / "data", 1, 40)
        close_days(directory, "2026-01-12")
        app = app_over(directory)
    else:
        names, gap = (ODD, 9) if request.param == "odd names" else (ODD[:8], 28)
        directory = odd_world(tmp_path_factory.mktemp("odd") / "data", names, gap)
        close_days(directory, "2026-03-01")
        app = app_over(directory)
    recomputed = Recomputation(directory, BASE_URL)
    slugs = list(recomputed.categories)[:: 8 if request.param == "shipped" else 1]
    figures = {slug: recomputed.category(slug) for slug in slugs}
    return World(
        directory, recomputed, figures, app.test_client(), prepared(app.extensions["store"])
    )


@pytest.mark.slow
def test_every_shipped_category_is_as_recomputed(shipped: Path, verdicts: dict[str, Any]) -> None:
    """Every figure of every category."""
    recomputed = Recomputation(shipped, BASE_URL)
    for slug, body in verdicts.items():
        expected = recomputed.category(slug)
        assert expected
        _hold(recomputed, slug, expected, deepcopy(body))


@pytest.mark.slow
def test_certainty_is_as_recomputed_in_300_histories(tmp_path: Path) -> None:
    """Every figure of 300 made-up categories, among which every level occurs."""
    directory = _repeated_world(tmp_path / "data", 7, 300)
    recomputed, client = Recomputation(directory, BASE_URL), app_over(directory).test_client()
    levels = Counter[str]()
    for slug in recomputed.categories:
        body = client.get(f"/api/v1/best/{slug}.json").get_json()
        _hold_certainty(recomputed, recomputed.certainty(slug), body)
        levels[body["certainty"]["level"]] += 1
    assert levels.keys() == {"unmeasured", "clear", "open", "contradicted"}


SENTENCES = ("verdict", "quote", "consensus", "disagreement", "asked")
HELD_ELSEWHERE = ("slug", "title", "url", "asOf", "final", "missedByModel", "certainty", *SENTENCES)
"""Members of a verdict that are no figures, and one whose figures are taken out one by one."""


def test_every_category_is_as_recomputed(world: World) -> None:
    """Scores, order, ties, ranks, agreement, overlap and sureness, no other."""
    for slug, expected in world.figures.items():
        if expected is None:
            answer = world.client.get(f"/api/v1/best/{slug}.json")
            assert answer.status_code == (503 if slug in world.recomputed.damaged else 404), slug
        else:
            body = json.loads(world.verdicts[f"best/{slug}.json"])
            _hold(world.recomputed, slug, expected, body)


def _hold(
    recomputed: Recomputation, slug: str, expected: dict[str, Any], body: dict[str, Any]
) -> None:
    """Every figure of a verdict, that there are no others, and that the sentences tell these."""
    if expected["agreement"]:
        exact = expected["agreement"]["overlap"]
        assert abs(body["agreement"]["overlap"] - exact) <= 0.00005 + 1e-12, slug
        body["agreement"]["overlap"] = exact
    _hold_certainty(recomputed, recomputed.certainty(slug), body)
    assert {k: v for k, v in body.items() if k not in HELD_ELSEWHERE} == expected, slug
    names = [entry["product"] for entry in expected["combined"] if entry["place"] == 1]
    start = f"As of {expected['updated']}, {', '.join(expected['models'][:-1])}"
    assert body["verdict"].startswith(start), slug
    for sentence in (body["verdict"], body["quote"]):
        assert all(name in sentence for name in names[:2]), slug
    label = (expected["agreement"] or {"top1": {"label": "split"}})["top1"]["label"]
    assert (body["consensus"] is None) == (label == "split"), slug
    firsts = {rows[0]["slug"] for rows in expected["perModel"].values()}
    assert (body["disagreement"] is None) == (len(firsts) == 1), slug


def _hold_certainty(recomputed: Recomputation, sure: Figures, body: dict[str, Any]) -> None:
    """Every figure of how sure a category is, to four decimals; taken out of the body."""
    ids = {recomputed.slug(item): item for item in sure.items}
    found, entries = body["certainty"], body["combined"]
    assert found["level"] == sure.level(ids[entries[0]["slug"]], tied=entries[0]["tied"])
    assert found["runs"] == sure.sizes
    assert found["answers"] == sure.answers
    contenders = sure.contenders if sure.measured else []
    assert [each["slug"] for each in found["contenders"]] == list(map(recomputed.slug, contenders))
    assert found["leader"] == (found["contenders"][0] if contenders else None)
    for entry in entries:
        item = ids[entry["slug"]]
        assert entry.pop("range") == (sure.range(item) if sure.measured else None)
        mean = float(sure.mean(item)) if sure.measured else None
        assert entry.pop("meanScore") == (mean and pytest.approx(mean, abs=6e-5))
        _hold_share(entry.pop("presence"), sure.share(partial(_names, item)))
        leading = sure.share(partial(_ranks_first, item)) if sure.measured else None
        _hold_share(entry.pop("firsts"), leading)
        assert entry.pop("ownMaker") == any(recomputed.is_own(m, item) for m in entry["modelRanks"])
    for model, picks in body["perModel"].items():
        for pick in picks:
            assert pick.pop("ownMaker") == recomputed.is_own(model, ids[pick["slug"]])
    if body["agreement"]:
        own, relative = sure.overlaps()
        assert body["agreement"].pop("selfOverlap") == (own and pytest.approx(own, abs=6e-5))
        shown = body["agreement"].pop("relativeOverlap")
        assert shown == (relative and pytest.approx(relative, abs=6e-5))


def _names(item: str, answer: dict[str, int]) -> bool:
    return item in answer


def _ranks_first(item: str, answer: dict[str, int]) -> bool:
    return answer.get(item) == 1


def _hold_share(shown: dict[str, Any] | None, exact: dict[str, Any] | None) -> None:
    assert (shown or {}).keys() == (exact or {}).keys(), "each figure is recomputed"
    for key, value in (exact or {}).items():
        assert shown
        assert shown[key] == pytest.approx(value, abs=6e-5), key


def test_the_list_holds_exactly_the_ranked_categories(world: World) -> None:
    """Categories with a counted answer, by title, with the date of their newest one."""
    categories = world.client.get("/api/v1/categories.json").get_json()
    listed = {each["slug"]: each["updated"] for each in categories}
    unlooked = world.recomputed.categories.keys() - world.figures.keys()
    expected = {slug: each["updated"] for slug, each in world.figures.items() if each}
    assert {slug: day for slug, day in listed.items() if slug not in unlooked} == expected


def test_every_change_is_as_recomputed(world: World) -> None:
    """Which flips there are, from what to what, confirmed or not, newest first."""
    recomputed, client = world.recomputed, world.client
    expected, body = recomputed.changes(), client.get("/api/v1/changes.json").get_json()
    shown = body["changes"]
    assert body["total"] == len(expected)
    assert body["count"] == len(shown) == min(1000, len(expected))
    assert len({change["id"] for change in shown}) == len(shown)
    times = [expected[change["id"]]["at"] for change in shown]
    assert times == sorted(times, reverse=True)
    assert min(times) >= max(
        (c["at"] for id_, c in expected.items() if id_ not in {s["id"] for s in shown}), default=""
    )
    for change in shown:
        assert {**change, "at": expected[change["id"]]["at"]} == expected[change["id"]]
    assert body["lastChecked"] == recomputed.last_poll()
    assert body["tracked"] == len({slug for slug, _ in recomputed.successes})


def test_every_change_of_a_leader_is_as_recomputed(world: World) -> None:
    """Who led alone and who does, since when, and what it coincides with."""
    shown = world.client.get("/api/v1/changes.json").get_json()["leaders"]
    looked_at = [change for change in shown if change["slug"] in world.figures]
    assert looked_at == world.recomputed.leaders(world.figures)


def test_every_other_first_place_is_as_the_days_say(world: World) -> None:
    """The #1 at the end of the day before, and now, both as the ranking itself is published."""
    if not (last := world.recomputed.last_poll()):
        return
    since = dt.date.fromisoformat(last[:10]) - dt.timedelta(days=6)
    expected = {}
    for slug in world.figures:
        path = f"/api/v1/best/{slug}.json"
        now = world.client.get(path)
        before = world.client.get(f"{path}?asOf={since - dt.timedelta(days=1)}")
        if (now.status_code, before.status_code) != (200, 200):
            continue
        one, other = before.get_json(), now.get_json()
        firsts = [
            [entry["product"] for entry in verdict["combined"] if entry["place"] == 1]
            for verdict in (one, other)
        ]
        asked = [(v["question"], _instruments(world, v)) for v in (one, other)]
        if {*firsts[0]}.isdisjoint(firsts[1]) and asked[0] == asked[1]:
            expected[slug] = " and ".join(firsts[0]), " and ".join(firsts[1])
    listed = world.client.get("/api/v1/changes.json").get_json()["firstPlaces"]
    shown = {one["slug"]: (one["from"], one["to"]) for one in listed}
    assert {slug: both for slug, both in shown.items() if slug in world.figures} == expected


def _instruments(world: World, verdict: dict[str, Any]) -> dict[str, str | None]:
    """What each assistant of a verdict was asked with."""
    polls = world.client.get(f"/api/v1/history?slug={verdict['slug']}&limit=500").get_json()
    by_id = {poll["id"]: poll for poll in polls}
    return {m: by_id[own["poll"]].get("instrument") for m, own in verdict["answers"].items()}


def _successions(seed: int, questions: dict[str, str]) -> Iterator[Poll]:
    """Pace in which X leads, then Y; of every other category the new version of A brought it."""
    draw = Random(seed)
    for number, (slug, question) in enumerate(questions.items()):
        turn, gap = draw.randint(6, 12), draw.choice([1, 2])
        for day in range(draw.randint(50, 60)):
            date = dt.date(2026, 1, 1) + dt.timedelta(gap * day)
            for model in "ABCD":
                names, version = list("XYZ"), "v1"
                if day > turn and model == "A":
                    names, version = (["Y"], "v2") if number % 2 else (list("YXZ"), "v1")
                elif day > turn and draw.random() < 0.6 + 0.4 * (number % 2 == 0):
                    names = list("YXZ")
                yield answered(
                    model,
                    names,
                    f"{date}T06:00:00Z",
                    slug=slug,
                    question=question,
                    served_model=version,
                )


def test_changes_of_leaders_are_as_recomputed_where_there_are_many(tmp_path: Path) -> None:
    """Successions of leaders, with and without a version that brought them."""
    questions = {f"c{i}": f"What is the best c{i}?" for i in range(4)}
    made = {slug: {"title": f"Best {slug}", "question": q} for slug, q in questions.items()}
    directory = write_data(tmp_path / "data", categories=made, models=list("ABCD"))
    append(directory, list(_successions(3, questions)))
    client = app_over(directory).test_client()
    listed = client.get("/api/v1/changes.json").get_json()["leaders"]
    assert listed == Recomputation(directory, BASE_URL).leaders(questions)
    assert len(listed) > 2
    assert {change["model"] for change in listed} == {None, "A"}
    day, slug = listed[1]["toDate"], listed[-1]["slug"]
    for query, expected in (
        (f"since={day}", [c for c in listed if c["toDate"] >= day]),
        (f"slug={slug}", [c for c in listed if c["slug"] == slug]),
        ("confirmed=true", listed),
    ):
        assert client.get(f"/api/v1/changes.json?{query}").get_json()["leaders"] == expected
    for name, arguments, expected in (
        ("search_best", {"q": "what changed?"}, listed),
        ("get_best_in_category", {"slug": slug}, [c for c in listed if c["slug"] == slug]),
    ):
        message = mcp_rankings.call(name, **arguments)
        result = client.post("/mcp", json=message).get_json()["result"]
        assert result["structuredContent"]["leaders"] == expected
        assert result["content"][0]["text"].count(" in place of ") == len(expected)
    page = client.get(f"/changes?since={day}").text
    assert page.count(" leads in place of ") == sum(c["toDate"] >= day for c in listed)


def test_every_mention_is_as_recomputed(world: World) -> None:
    """Counts, windows, denominators, differences and directions of the most mentioned."""
    recomputed, client = world.recomputed, world.client
    expected, body = recomputed.mentions(), client.get("/api/v1/mentions.json").get_json()
    assert body["polls"] == len(recomputed.successes)
    assert body["asOf"] == recomputed.last_poll()
    assert [product["mentions"] for product in body["products"]] == sorted(
        (product["mentions"] for product in expected.values()), reverse=True
    )[:100]
    for rank, product in enumerate(body["products"], start=1):
        assert product["rank"] == rank
        wanted = expected[product["slug"]]
        delta = wanted.pop("delta")
        assert (product["delta"] is None) == (delta is None)
        assert delta is None or abs(product["delta"] - delta) <= 0.05 + 1e-9
        assert {key: product[key] for key in wanted} == wanted


def test_the_experiments_are_as_recomputed(world: World) -> None:
    """How noisy answers are, how long first places last, and what other rules say."""
    shown = _experiments(world.client)
    _hold_chart(shown["would-another-rule-choose-another"], by_rule(world.recomputed))
    firsts, means = noise(world.recomputed)
    _hold_chart(shown["how-noisy-is-one-answer"], firsts)
    finding = shown["how-noisy-is-one-answer"].finding
    assert f"#1 in {means[0]:.1%} and gives the same list in {means[1]:.1%}" in finding
    assert f"overlap by {means[2]:.0%} on average" in finding
    lasts = shown["how-long-a-first-place-lasts"]
    labels = [bar.label for bar in lasts.bars]
    _hold_chart(lasts, dict(zip(labels, standing(world.recomputed), strict=True)))


@pytest.mark.parametrize("world", ["shipped", "repeats"], indirect=True)
def test_only_what_may_be_first_is_too_close_to_call(world: World) -> None:
    """Beside the #1 no product is named whose range begins after 1, unless the #1 leads them all.

    "Ahead" is not transitive: the leader may not be ahead of a product that others are ahead of.
    """
    view = view_of(world.client.application.extensions["store"].snapshot)
    boards = [b for b in view.snapshot.leaderboards.values() if b.certainty.level == "open"]
    assert boards
    for board in boards:
        first, contenders = board.winners[0], board.certainty.contenders
        rivals = [p for p in contenders if p != first and board.ranges[p][0] == 1]
        if len(board.winners) > 1 or not rivals:
            continue
        named, behind = ([view.name(p) for p in own] for own in (rivals, {*contenders} - {*rivals}))
        body = json.loads(world.verdicts[f"best/{board.slug}.json"])
        assert f", too close to call with {sentences.some(named)}." in body["verdict"]
        together = sentences.some([view.name(first), *named])
        assert f" {together} cannot be told apart." in body["certainty"]["sentence"]
        assert re.search(
            rf"(over|before) {re.escape(sentences.some(named))} (was|\()", body["quote"]
        )
        said = answer_box(board, view)["sentence"]
        assert not [n for n in behind if n != view.name(first) and f" {n} may" in said], board.slug
        assert not [n for n in behind if f"{n} or " in said], board.slug


@pytest.mark.parametrize("world", ["repeats"], indirect=True)
def test_a_round_is_what_the_ranking_was_as_of_its_day(world: World) -> None:
    """Our record rests on what anybody sees of a closed day: its #1, its level, its question.

    In a damaged history a line may have been closed under another day than it bears.
    """
    store = world.client.application.extensions["store"]
    closed = store.snapshot.ledger.last_closed_day
    compared = 0
    for slug, board in store.snapshot.leaderboards.items():
        for day in board.rounds:
            if day.date <= closed:
                past = as_of.leaderboard(store.snapshot, slug, day.date, store.lines)
                assert past
                shown = past.winners, past.certainty.level, past.question
                assert shown == ([*day.winners], day.level, day.question), (slug, day.date)
                compared += 1
    assert compared > 100


@pytest.mark.parametrize("world", WORLDS[1:], indirect=True)
def test_our_own_record_is_as_recomputed(world: World) -> None:
    """By level, how often the next closed round of a category agreed."""
    expected = record(world.recomputed, world.directory)
    assert expected
    _hold_chart(_experiments(world.client)["track-record"], expected)


@pytest.mark.slow
def test_our_own_record_is_as_recomputed_in_the_shipped_data(
    shipped: Path, client: FlaskClient
) -> None:
    """The same for every round of every category."""
    expected = record(Recomputation(shipped, BASE_URL), shipped)
    _hold_chart(_experiments(client)["track-record"], expected)


def _experiments(client: FlaskClient) -> dict[str, Experiment]:
    summary = client.application.extensions["store"].snapshot.summary
    return {experiment.slug: experiment for experiment in summary.experiments}


def _hold_chart(
    experiment: Experiment, expected: dict[str, tuple[float, list[float], int]]
) -> None:
    """Every figure of an experiment, to four decimals."""
    bars = {bar.label: bar for bar in experiment.bars}
    assert bars.keys() == expected.keys()
    for label, (value, interval, n) in expected.items():
        assert bars[label].value == pytest.approx(value, abs=6e-5), (experiment.slug, label)
        assert bars[label].interval == pytest.approx(interval, abs=6e-5), (experiment.slug, label)
        assert bars[label].n == n, (experiment.slug, label)


def test_every_address_leads_to_the_product_that_owns_it(world: World) -> None:
    """Each slug that a spelling ever had answers with its product, or moved to it for good."""
    recomputed, client = world.recomputed, world.client
    owners = recomputed.owners()
    for address, product in list(owners.items())[:: 1 + len(owners) // 1000]:
        answer = client.get(f"/api/v1/product/{address}.json")
        slug = recomputed.slug(product)
        if slug == address:
            assert answer.get_json()["name"] == recomputed.name(product)
        else:
            assert answer.status_code == 308, address
            assert answer.location == f"{BASE_URL}/api/v1/product/{slug}.json"


def test_a_product_file_that_no_poll_named_has_no_record(world: World) -> None:
    """A record is what models said; a curator's file alone is none."""
    recomputed, client = world.recomputed, world.client
    unnamed = recomputed.files.keys() - recomputed.first_use.keys() - recomputed.owners().keys()
    for slug in unnamed:
        assert client.get(f"/api/v1/product/{slug}.json").status_code == 404, slug
