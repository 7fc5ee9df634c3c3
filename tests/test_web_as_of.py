"""Rankings as of a past day are what ranking only the polls up to its end gives."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from builders import BASE_URL, answered, app_over, close_days, withhold, write_data, write_json
from flask import Flask
from mcp_rankings import text_of, used
from test_rankings_recomputed import ODD, odd_world

from store.ledger import Proof
from store.line_codec import encode_line
from store.rankings import leaderboards
from store.snapshot import Snapshot
from store.store import Store
from store.web.as_of import cited_day
from store.web.verdicts import verdict_shape
from store.web.view import View


def truncated(directory: Path, day: str, copy: Path) -> Path:
    """A data directory as it was at the end of a day: of a closed one, what the ledger has."""
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("dataset", "history"))
    (copy / "history").mkdir()
    ledger = Proof(directory).load()
    for file in (directory / "history").glob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        own = [line for line in lines if _day_of(line) <= day]
        if day <= ledger.last_closed_day:
            own = lines[: ledger.lines_on(file.stem, day)]
        (copy / "history" / file.name).write_bytes(b"".join(own))
    for file in (copy / "proof").glob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(line for line in lines if json.loads(line)["day"] <= day))
    return copy


def _day_of(line: bytes) -> str:
    try:
        return str(json.loads(line)["polledAt"])[:10]
    except ValueError:
        return ""


def as_fresh(whole: Snapshot, directory: Path, day: str) -> dict[str, bytes]:
    """Every verdict of a process that read only these polls, under the whole history's names."""
    fresh = Store(directory).snapshot
    named = {"products": whole.products, "product_slugs": whole.product_slugs}
    view = View(msgspec.structs.replace(fresh, **named), BASE_URL, Store(directory).lines)
    found = {}
    for slug, aggregate in fresh.aggregates.items():
        slugs = {id_: whole.products[id_].slug for id_ in aggregate.product_stats}
        board = leaderboards.board(aggregate, fresh.models, fresh.catalogue.site, slugs)
        if board and slug in fresh.catalogue.categories:
            final = day <= whole.ledger.last_closed_day
            verdict = msgspec.structs.replace(verdict_shape(view, board), as_of=day, final=final)
            found[slug] = msgspec.json.encode(verdict)
    return found


def days_of(snapshot: Snapshot, directory: Path) -> list[str]:
    """Every day with a poll that counts, as the lines of history say."""
    newest = (snapshot.summary.last_poll or "")[:10]
    lines = (
        line
        for file in (directory / "history").glob("*.jsonl")
        for line in file.read_bytes().splitlines()
    )
    return sorted({day for line in lines if "" < (day := _day_of(line)) <= newest})


def hold(app: Flask, days: list[str], places: Path) -> None:
    """Compare every category on these days with a fresh process."""
    whole, client = app.extensions["store"].snapshot, app.test_client()
    for day in days:
        copy = truncated(app.extensions["settings"].data_dir, day, places / day)
        expected = as_fresh(whole, copy, day)
        shutil.rmtree(copy)
        for slug in whole.leaderboards:
            answer = client.get(f"/api/v1/best/{slug}.json?asOf={day}")
            assert answer.status_code == (200 if slug in expected else 404)
            if slug in expected:
                assert answer.data == expected[slug]


@pytest.fixture(scope="module")
def odd_times(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """Random answers, far apart: damage, former slugs and names, two wordings, withheld polls."""
    return app_over(odd_world(tmp_path_factory.mktemp("odd") / "data", ODD[:8], 28))


def test_a_past_day_is_what_ranking_only_its_polls_gives(
    small: Flask, odd_times: Flask, tmp_path: Path
) -> None:
    """Byte for byte: the little world on all its days, the odd one on four of them."""
    for app, steps in ((small, 7), (odd_times, 4)):
        days = days_of(app.extensions["store"].snapshot, app.extensions["settings"].data_dir)
        hold(app, days[:: -(-len(days) // steps)], tmp_path / str(steps))


def answers_of(app: Flask, days: list[str]) -> dict[str, bytes]:
    """Every ranking as of these days."""
    client, slugs = app.test_client(), sorted(app.extensions["store"].snapshot.leaderboards)
    paths = [f"/api/v1/best/{slug}.json?asOf={day}" for slug in slugs for day in days]
    answers = {path: client.get(path) for path in paths}
    assert {answer.status_code for answer in answers.values()} <= {200, 404}
    return {path: answer.data for path, answer in answers.items() if answer.status_code == 200}


def keeps_closed_days(data: Path, cut: int, step: int = 1) -> None:
    """Close all days, add lines to every file, and compare every closed day before and after.

    Added are an answer, a backdated one, another between the two, and one of long after; with
    ``cut`` the backdated ones are damaged.
    """
    close_days(data)
    days = [head.day for head in Proof(data).load().heads][::step]
    before = answers_of(app_over(data), days)
    assert before
    for path in (data / "history").glob("*.jsonl"):
        times = ("2035-01-01T06:00:00Z", f"{days[0]}T23:59:59Z", f"{days[-1]}T01:00:00Z")
        polls = [answered("A", [f"Late {t[:4]}"], t, slug=path.stem) for t in times]
        first, *late = [encode_line(poll, poll.polled_at)[1] for poll in polls]
        last = encode_line(polls[0], "2036-01-01T06:00:00Z")[1]
        with path.open("ab") as file:
            file.write(b"".join([first, *(x[: -1 - cut] + b"\n" for x in late), last]))
    assert answers_of(app_over(data), days) == before


@pytest.mark.parametrize("cut", [0, 9], ids=["sealed", "damaged"])
def test_a_closed_day_keeps_what_was_there_when_it_closed(
    odd_times: Flask, tmp_path: Path, cut: int
) -> None:
    """Byte for byte, whatever is appended afterwards, backdated by hand or polled."""
    data = odd_times.extensions["settings"].data_dir
    keeps_closed_days(shutil.copytree(data, tmp_path / "data"), cut, step=10)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["shipped", "odd names", "odd times"])
def test_every_day_and_category_of_whole_worlds(world: str, shipped: Path, tmp_path: Path) -> None:
    """Every day with a poll is what ranking only its polls gives; every closed day keeps that."""
    if world == "shipped":
        data = shutil.copytree(shipped, tmp_path / "data")
    else:
        data = odd_world(tmp_path / "data", *((ODD, 9) if world == "odd names" else (ODD[:8], 28)))
    app = app_over(data)
    hold(app, days_of(app.extensions["store"].snapshot, data), tmp_path / "days")
    keeps_closed_days(data, 0)


CRM = "/api/v1/best/crm-software.json"


def test_a_past_day_differs_from_today_as_its_polls_do(small: Flask) -> None:
    """Without the parameter `asOf` is null; with it, it is the day, and later answers are away."""
    client = small.test_client()
    now, then = (client.get(f"{CRM}{query}").get_json() for query in ("", "?asOf=2026-10-12"))
    assert (now["asOf"], then["asOf"]) == (None, "2026-10-12")
    assert then["updated"] == "2026-10-12"
    assert then["missing"] == ["C"]
    assert then["models"] == ["A", "B", "D"]
    for day in ("2026-11-03", "2030-01-01"):
        expected = {**now, "asOf": day, "final": False}
        assert client.get(f"{CRM}?asOf={day}").get_json() == expected


def test_the_page_of_a_past_day_shows_nothing_later(small: Flask) -> None:
    """Its ranking, verdict, links and citation are of that day, and it says so."""
    client = small.test_client()
    page = client.get("/best/crm-software?asOf=2026-10-12").text
    assert "You are looking at the ranking up to <strong><time" in page
    assert client.get(f"{CRM}?asOf=2026-10-12").get_json()["combined"][0]["reason"] in page
    assert f"{CRM}?asOf=2026-10-12" in page
    assert "/best/crm-software?asOf=2026-10-12</a>" in page
    assert '<meta name="robots" content="noindex">' in page
    for later in ("2026-10-19", "2026-10-26", "2026-11-02"):
        assert later not in page
    assert "2026-11-02" in client.get("/best/crm-software").text


@pytest.mark.parametrize(
    ("day", "status", "says"),
    [
        ("2026-09-09", 404, "or a later "),
        ("2026-02-30", 400, "YYYY-MM-DD"),
        ("2026-1-01", 400, "YYYY-MM-DD"),
        ("20261012", 400, "YYYY-MM-DD"),
        ("２０２６-10-12", 400, "YYYY-MM-DD"),  # noqa: RUF001 - digits that are not ASCII
        ("", 400, "YYYY-MM-DD"),
        ("2026-10-12&asOf=2026-10-13", 400, "more than once"),
    ],
)
@pytest.mark.parametrize("path", [CRM, "/best/crm-software"])
def test_a_day_without_a_ranking_says_which_has_one(
    small: Flask, path: str, day: str, status: int, says: str
) -> None:
    """A retired model's answers make no ranking; what is no day is told with the right form."""
    answer = small.test_client().get(f"{path}?asOf={day}", headers={"Accept": "application/json"})
    assert answer.status_code == status
    assert says in answer.text


@pytest.mark.parametrize("closed", ["2026-10-06", "2025-12-31"])
def test_a_past_day_tells_the_absence_of_its_own_day(tmp_path: Path, closed: str) -> None:
    """Who had answered, and whose answer was withheld, whatever they answered since."""
    days = {"2026-01-05": "ABD", "2026-05-05": "A", "2026-06-05": "ABCD", "2026-10-05": "A"}
    polls = [answered(m, ["x"], f"{day}T06:00:00Z") for day, models in days.items() for m in models]
    data = write_data(tmp_path, polls=polls)
    close_days(data, closed)
    withhold(data, polls[2].id, *(poll.id for poll in polls if poll.model == "C"))
    client = app_over(data).test_client()
    since, none, withheld = "no answer since {}", "no answer yet", "its answer is withheld"
    for day, absences in (
        ("2026-01-05", {"C": none, "D": withheld}),
        ("2026-05-05", {"B": since.format("5 January 2026"), "C": none, "D": withheld}),
        ("2026-06-05", {"C": withheld}),
        (
            "2026-10-05",
            {"B": since.format("5 June 2026"), "C": withheld, "D": since.format("5 June 2026")},
        ),
    ):
        page = client.get(f"/best/crm-software?asOf={day}").text
        rows = re.findall(r'<th scope="row">(.)</th>.*?<td>([^<]*)</td></tr>', page)
        assert {model: absence for model, absence in rows if absence} == absences, day
        assert "polls answered, " not in page


def test_a_past_day_follows_curation_withholding_and_new_polls(tmp_path: Path) -> None:
    """What is kept of a past day holds no longer than what it was made from."""
    polls = [
        answered("A", ["Zoho", "Attio"], "2026-10-01T06:00:00Z"),
        answered("B", ["Attio", "Zoho"], "2026-10-01T06:00:00Z"),
        answered("A", ["Attio"], "2026-10-08T06:00:00Z"),
    ]
    data = write_data(tmp_path, polls=polls)
    app = app_over(data)
    store, client = app.extensions["store"], app.test_client()

    def shown() -> list[tuple[str, float]]:
        verdict = client.get(f"{CRM}?asOf=2026-10-02").get_json()
        return [(entry["product"], entry["score"]) for entry in verdict["combined"]]

    assert shown() == [("Attio", 9), ("Zoho", 9)]
    write_json(data / "products" / "zoho.json", {"version": 1, "name": "Zoho CRM"})
    write_json(data / "products" / "attio.json", {"version": 1, "name": "At", "aliases": ["Attio"]})
    store.reload()
    assert shown() == [("At", 9), ("Zoho", 9)]
    withhold(data, polls[1].id)
    store.reload()
    assert shown() == [("Zoho", 5), ("At", 4)]


def test_a_past_day_is_kept_and_read_from_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second reader of the same day costs no disk access."""
    app = app_over(write_data(tmp_path, polls=[answered("A", ["Zoho"], "2026-10-01T06:00:00Z")]))
    client = app.test_client()
    first = client.get(f"{CRM}?asOf=2026-10-01")
    monkeypatch.setattr(app.extensions["store"].history, "lines", None)
    again = client.get(f"{CRM}?asOf=2026-10-01")
    assert again.data == first.data
    known = {"If-None-Match": first.headers["ETag"]}
    assert client.get(f"{CRM}?asOf=2026-10-01", headers=known).status_code == 304


def test_the_link_to_cite_shows_what_the_page_shows(tmp_path: Path) -> None:
    """The last closed day on which the category grew; with answers since then, their day."""
    polls = [
        answered("A", ["x"], "2026-10-01T06:00:00Z"),
        answered("A", ["y"], "2026-10-05T06:00:00Z", slug="vpn"),
    ]
    categories = {slug: {"title": slug} for slug in ("crm-software", "vpn")}
    data = write_data(tmp_path, categories=categories, polls=polls)
    app = app_over(data)
    store, client = app.extensions["store"], app.test_client()

    def cited(slug: str) -> tuple[str, bool]:
        day = cited_day(app.extensions["store"].snapshot, slug)
        page = client.get(f"/best/{slug}").text
        assert f"{BASE_URL}/best/{slug}?asOf={day}" in page
        then = client.get(f"/api/v1/best/{slug}.json?asOf={day}").get_json()
        assert then["combined"] == client.get(f"/api/v1/best/{slug}.json").get_json()["combined"]
        assert ("always shows the ranking you see now" in page) is then["final"]
        assert ("may still gain answers" in page) is not then["final"]
        return day, then["final"]

    assert [cited("crm-software"), cited("vpn")] == [("2026-10-01", False), ("2026-10-05", False)]
    close_days(data, "2026-10-04")
    store.reload()
    assert [cited("crm-software"), cited("vpn")] == [("2026-10-01", True), ("2026-10-05", False)]
    store.record([answered("A", ["z"])], "2026-10-09T06:00:00Z")
    close_days(data, "2026-10-08")
    store.reload()
    assert [cited("crm-software"), cited("vpn")] == [("2026-10-09", False), ("2026-10-05", True)]


def test_days_before_an_accepted_loss_are_not_shown(tmp_path: Path) -> None:
    """503 with the reason that a person gave; from the day of the acceptance on it is shown."""
    polls = [answered("A", ["x"], f"2026-10-0{day}T06:00:00Z") for day in (1, 2)]
    data = write_data(tmp_path, polls=polls)
    close_days(data)
    path = data / "history/crm-software.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    Proof(data).accept(["crm-software"], "the disk died", "2026-11-01")
    client = app_over(data).test_client()
    lost = client.get(f"{CRM}?asOf=2026-10-02")
    assert lost.status_code == 503
    assert "the disk died" in lost.get_json()["detail"]
    assert client.get(f"{CRM}?asOf=2026-12-02").status_code == 200


def test_agents_get_the_same_past_day(small: Flask) -> None:
    """The MCP argument `as_of` brings what `asOf` does, and its refusals say the same."""
    client, tool = small.test_client(), "get_best_in_category"
    day = {"slug": "crm-software", "as_of": "2026-10-12"}
    same = client.get(f"{CRM}?asOf=2026-10-12").get_json()
    full = used(client, tool, **day, detail="full")["structuredContent"]
    assert {**full, **same} == full
    assert [each["toDate"] for each in full["changes"] if each["toDate"] > "2026-10-12"] == []
    page = f"Page: {BASE_URL}/best/crm-software?asOf=2026-10-12"
    assert page in used(client, tool, **day)["content"][0]["text"]
    for refused, says in (
        ("2026-01-01", "first answer is of 10 September 2026"),
        ("soon", "YYYY-MM-DD"),
    ):
        assert says in text_of(client, tool, slug="crm-software", as_of=refused)
