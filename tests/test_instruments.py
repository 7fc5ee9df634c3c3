"""Instruments as readers see them: another way of asking is another run and never a change."""

import json
from collections.abc import Callable
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from builders import (
    answered,
    append,
    client_over,
    close_days,
    command,
    failed,
    write_data,
    write_instrument,
    write_json,
)
from flask.testing import FlaskClient
from mcp_rankings import text_of
from polling_world import PollingWorld
from replaying import serving

from store.files import Files
from store.records import Poll

MODELS = ("A", "B", "C", "D")
FIRST = date(2026, 9, 1)
SWITCHES: dict[str, dict[str, Any]] = {
    "web search": {"web_search": True},
    "prompt": {"system": "Say what is best, and be brief."},
    "extra": {"request": {"model": "m-1", "temperature": 1.0}},
}
"""What an operator may switch, as members of the instrument."""


def read(client: FlaskClient, path: str) -> Any:
    """The JSON at a path of the API."""
    return json.loads(client.get(f"/api/v1/{path}").data)


def answers(days: range, names: str, instrument: str | None, **fields: Any) -> list[Poll]:
    """One answer of each assistant a day, all alike."""
    own = {"instrument": instrument, **fields} if instrument else fields
    return [
        answered(model, list(names), f"{FIRST + timedelta(days=day)}T06:00:00Z", **own)
        for day in days
        for model in MODELS
    ]


def write_real(directory: Path) -> Path:
    """A site that is no sample, with four assistants of a provider and no poll."""
    data = write_data(directory, sample=False)
    base = {"api": "chat", "base_url": "https://a.example/v1", "model": "m-1"}
    models = [{"name": name, **base} for name in MODELS]
    write_json(data / "models.json", {"version": 1, "models": models})
    return data


def world(directory: Path, switched: dict[str, Any], *, is_first_known: bool = True) -> Path:
    """A category asked for eight days in one way, then in another with other answers."""
    data = write_real(directory)
    first = write_instrument(data) if is_first_known else None
    second = write_instrument(data, **switched)
    is_on = switched.get("web_search", False)
    append(data, answers(range(8), "XYZ", first))
    append(data, answers(range(8, 15), "YZX", second, web_search=is_on))
    return data


def told(client: FlaskClient) -> list[str]:
    """Every sentence of the category's page that says that something changed its way."""
    page = client.get("/best/crm-software").text
    return [line for line in page.splitlines() if "earlier answers are not compared" in line]


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_is_a_new_run_and_no_change(tmp_path: Path, switch: str) -> None:
    """No flip, no other leader, no trend; a run from that day on, and one line that says so."""
    client = client_over(world(tmp_path / "data", SWITCHES[switch]))
    changes = read(client, "changes.json")
    assert (changes["total"], changes["changes"], changes["leaders"]) == (0, [], [])
    verdict = read(client, "best/crm-software.json")
    assert verdict["combined"][0]["product"] == "Y"
    assert verdict["certainty"]["runs"] == dict.fromkeys(MODELS, 7)
    assert (verdict["certainty"]["from"], verdict["certainty"]["level"]) == ("2026-09-09", "clear")
    assert verdict["combined"][0]["firsts"]["share"] == 1
    [x] = [each for each in read(client, "mentions.json")["products"] if each["name"] == "X"]
    assert (x["polls7d"], x["direction"]) == (0, "insufficient")
    page = client.get("/best/crm-software").text
    assert "leads in place of" not in page
    line = "How A, B, C and D are asked changed; earlier answers are not compared with these."
    assert page.count(line) == 1
    assert client.get("/feeds/best/crm-software.atom").text.count("<entry>") == 0


def test_without_a_switch_the_same_answers_are_changes(tmp_path: Path) -> None:
    """So the test before can fail: as one instrument all four flip, and another product leads."""
    data = write_real(tmp_path / "data")
    one = write_instrument(data)
    append(data, [*answers(range(8), "XYZ", one), *answers(range(8, 40), "YZX", one)])
    client = client_over(data)
    assert read(client, "changes.json")["total"] == len(MODELS)
    assert "leads in place of" in client.get("/best/crm-software").text
    assert told(client) == []


def test_answers_from_before_the_record_are_an_instrument_of_their_own(tmp_path: Path) -> None:
    """It is told as what it is: nobody knows whether the way of asking changed."""
    client = client_over(world(tmp_path / "data", {}, is_first_known=False))
    assert read(client, "changes.json")["total"] == 0
    [line] = told(client)
    assert "How A, B, C and D are asked is recorded from here on; earlier" in line


@pytest.mark.parametrize(
    ("request_id", "search", "said"),
    [
        ("r", "", "Asked over the APIs, web search off."),
        ("r", "ABCD", "Asked over the APIs, web search on."),
        ("r", "BD", "Asked over the APIs, web search on for B and D, off for A and C."),
        ("sample-1", "", "Nobody was asked: sample assistants invented the answers."),
    ],
)
def test_each_ranking_says_how_it_was_asked(
    tmp_path: Path, request_id: str, search: str, said: str
) -> None:
    """In JSON, on its page and to agents, from what the counted answers record."""
    data = write_data(tmp_path / "data")
    own = {"request_id": request_id}
    append(data, [answered(model, ["X"], web_search=model in search, **own) for model in MODELS])
    client = client_over(data)
    assert read(client, "best/crm-software.json")["asked"] == said
    assert said in client.get("/best/crm-software").text
    assert said in text_of(client, "get_best_in_category", slug="crm-software")


def test_instruments_are_published_with_who_answered_to_them(tmp_path: Path) -> None:
    """Those of the present rankings first, each as its file has it; the prompt on a page."""
    data = world(tmp_path / "data", SWITCHES["web search"])
    client = client_over(data)
    answer = read(client, "instruments.json")
    new, old = answer["instruments"]
    assert answer["count"] == 2
    assert (new["models"], new["counted"], new["says"]["web_search"]) == (list(MODELS), 4, True)
    assert (old["counted"], old["says"]["web_search"]) == (0, False)
    text = json.dumps(new["says"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert sha256(text.encode()).hexdigest()[:12] == new["id"]
    assert text == (data / f"instruments/{new['id']}.json").read_text(encoding="utf-8")
    [poll] = read(client, "history?slug=crm-software&limit=1")
    assert poll["instrument"] == new["id"]
    assert command(data, "export", f"{tmp_path}/tree").exit_code == 0
    exported = (tmp_path / "tree/current/api/v1/instruments.json").read_bytes()
    assert exported == client.get("/api/v1/instruments.json").data
    page = client.get("/methodology").text
    assert "Say what is best." in page
    assert "A, B, C, D: m-1, web search on (4 answers count)" in page


def test_a_poll_is_served_as_it_was_asked(tmp_path: Path) -> None:
    """From the provider's answer to the published text, without a restart."""
    with serving() as provider:
        session = PollingWorld(tmp_path / "data", provider.url)
        client = client_over(session.directory)
        session.due()
        client.application.extensions["store"].reload()
        [poll] = read(client, "history?slug=c-000")
        [instrument] = read(client, "instruments.json")["instruments"]
        assert (instrument["id"], instrument["models"]) == (poll["instrument"], ["GPT"])
        assert poll["usage"]["searches"] == 0


BREAKS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "changed": lambda path: path.write_text(path.read_text().replace("best", "worst")),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_text_that_is_missing_or_changed_is_a_problem(tmp_path: Path, how: str) -> None:
    """`check` and `verify` name the first line that it is the text of."""
    data = world(tmp_path / "data", SWITCHES["prompt"])
    close_days(data)
    assert command(data, "check").exit_code == 0
    assert command(data, "verify", str(data)).exit_code == 0
    assert command(data, "dataset").exit_code == 0
    assert command(data, "verify", str(data)).exit_code == 0
    poll = json.loads((data / "history/crm-software.jsonl").read_bytes().splitlines()[-1])
    BREAKS[how](data / f"instruments/{poll['instrument']}.json")
    line = 8 * len(MODELS) + 1
    checked = command(data, "check")
    assert checked.exit_code == 1
    start = f"history/crm-software.jsonl:{line}:1: it was asked with the instrument"
    assert f"{start} {poll['instrument']}" in checked.output
    verified = command(data, "verify", str(data))
    assert verified.exit_code == 1
    assert f"history/crm-software.jsonl:{line}" in verified.output
    if how == "changed":
        assert [p.file for p in Files(data).scan().problems] == [
            f"instruments/{poll['instrument']}.json"
        ]


def test_a_folder_that_cannot_be_looked_into_is_the_one_mistake(tmp_path: Path) -> None:
    """Its texts are not called missing or damaged: nobody knows."""
    data = world(tmp_path / "data", SWITCHES["prompt"])
    (data / "instruments").rename(tmp_path / "away")
    (data / "instruments").symlink_to(tmp_path / "away")
    [line] = command(data, "check").stdout.splitlines()
    assert line.startswith("instruments:1:1: the folder cannot be looked into")


def test_a_failed_poll_may_be_all_that_names_one(tmp_path: Path) -> None:
    """Its text is published all the same."""
    data = write_real(tmp_path / "data")
    write_instrument(data)
    append(data, [answered("A", ["X"]), failed("B")])
    [one] = read(client_over(data), "instruments.json")["instruments"]
    assert (one["models"], one["counted"]) == ([], 0)
    assert "No answer yet: m-1" in client_over(data).get("/methodology").text
