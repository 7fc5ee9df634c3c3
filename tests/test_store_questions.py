"""Edits of what was asked and of whom, and lines that cannot be: what a running service shows."""

import json
from pathlib import Path
from typing import Any

import pytest
from builders import (
    answered,
    app_over,
    append,
    bodies,
    edit,
    failed,
    line_of,
    question_of,
    same_as_fresh,
    withhold,
    write_data,
    write_json,
)
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.line_codec import encode_line
from store.store import Store

CRM = "crm-software"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two assistants that answered twice, a change among their answers, and a failure."""
    return write_data(
        tmp_path / "data",
        models=("A", "B"),
        polls=[
            answered("A", ["X", "Y"], "2026-10-05T06:00:00Z"),
            answered("B", ["Y", "X"], "2026-10-05T06:00:01Z"),
            answered("A", ["Y", "W"], "2026-10-12T06:00:00Z"),
            answered("B", ["Y", "X"], "2026-10-12T06:00:01Z"),
            failed("A", at="2026-10-13T06:00:00Z"),
        ],
    )


@pytest.fixture
def service(data: Path) -> Flask:
    return app_over(data)


def store_of(service: Flask) -> Store:
    """The store of a service, brought up to date."""
    store: Store = service.extensions["store"]
    store.reload()
    return store


def shown(service: Flask, path: str = f"/api/v1/best/{CRM}.json") -> Any:
    """An answer of the service as it is now."""
    store_of(service)
    return service.test_client().get(path).get_json()


def test_a_new_question_is_never_put_above_old_answers(
    data: Path, service: Flask, caplog: pytest.LogCaptureFixture
) -> None:
    """Until everybody has answered, question and sentences are of what was asked; the log tells."""
    before = shown(service)
    edit(data / f"categories/{CRM}.json", question="Which CRM is finest?", topic="finest CRM")
    between = shown(service)
    assert "categories/crm-software.json: a new question: each assistant is due" in caplog.text
    assert (between["question"], between["nextQuestion"]) == (
        question_of(CRM),
        "Which CRM is finest?",
    )
    assert f"#1 for “{question_of(CRM)}” on" in between["verdict"]
    assert between["combined"] == before["combined"]
    client = service.test_client()
    page = client.get(f"/best/{CRM}").text
    assert f"The question: “{question_of(CRM)}”" in page
    assert "The question is changing to “Which CRM is finest?”" in page
    assert f"for “{question_of(CRM)}”" in client.get("/product/y").text
    [hit] = shown(service, "/api/v1/search?q=crm")["categories"]
    assert hit["question"] == question_of(CRM)
    new = "Which CRM is finest?"
    append(data, [answered("A", ["N"], "2026-10-19T06:00:00Z", question=new)])
    assert shown(service)["combined"] == before["combined"]
    append(data, [answered("B", ["N"], "2026-10-19T06:00:01Z", question=new)])
    after = shown(service)
    assert (after["question"], after["nextQuestion"]) == (new, None)
    assert [entry["product"] for entry in after["combined"]] == ["N"]
    assert "#1 for finest CRM on" in after["verdict"]
    assert same_as_fresh(store_of(service), data)


def test_a_new_question_is_no_change_of_anybodys_mind(data: Path, service: Flask) -> None:
    """Neither changes nor trends compare its answers with the old ones; mentions count all."""
    changes = shown(service, "/api/v1/changes.json")["changes"]
    assert [change["to"] for change in changes] == ["Y"]
    new = "Which CRM is finest?"
    edit(data / f"categories/{CRM}.json", question=new)
    for day in (19, 20):
        append(data, [answered("A", ["N"], f"2026-10-{day}T06:00:00Z", question=new)])
    assert shown(service, "/api/v1/changes.json")["changes"] == changes
    found = {p["name"]: p for p in shown(service, "/api/v1/mentions.json")["products"]}
    assert (found["N"]["mentions"], found["N"]["polls7d"]) == (2, 0)
    assert found["Y"]["mentions"] == 4


def test_a_wording_that_means_the_same_changes_nothing(data: Path, service: Flask) -> None:
    """With the old one in ``former_questions`` old answers are answers to the new one."""
    before = shown(service)
    edit(data / f"categories/{CRM}.json", question="Best CRM?", former_questions=[question_of(CRM)])
    assert shown(service) == {**before, "question": "Best CRM?"}
    assert same_as_fresh(store_of(service), data)


def test_a_renamed_assistant_keeps_its_answers(data: Path, service: Flask) -> None:
    """Rankings, changes and the filter know it by its present name; the record stays as it was."""
    before = shown(service)
    models = [{"name": "Z", "api": "sample", "former_names": ["A"]}, {"name": "B", "api": "sample"}]
    write_json(data / "models.json", {"version": 1, "models": models})
    after = shown(service)
    assert json.dumps(after["perModel"]).replace('"Z"', '"A"') == json.dumps(before["perModel"])
    assert after["missing"] == []
    [change] = shown(service, "/api/v1/changes.json")["changes"]
    assert change["model"] == "Z"
    of_z = shown(service, f"/api/v1/history?slug={CRM}&model=Z")
    assert [poll["model"] for poll in of_z] == ["A", "A", "A"]
    assert shown(service, f"/api/v1/history?slug={CRM}&model=A") == of_z
    assert store_of(service).snapshot.summary.retired == ()
    assert same_as_fresh(store_of(service), data)


def test_a_withheld_poll_under_a_wrong_clock_moves_nothing(data: Path, service: Flask) -> None:
    """No date, age, trend or order is other than if it had never been made."""
    before = bodies(store_of(service))
    wrong = answered("A", ["Wrong"], "2099-01-01T06:00:00Z")
    append(data, [wrong])
    assert shown(service)["updated"] == "2099-01-01"
    withhold(data, wrong.id)
    store = store_of(service)
    assert bodies(store) == before
    [recorded] = store.record([answered("B", ["Y"])], "2026-10-14T06:00:00Z")
    assert recorded.polled_at == "2026-10-14T06:00:00Z"
    store.reload()
    assert "2099" not in service.test_client().get(f"/best/{CRM}").text
    assert same_as_fresh(store_of(service), data)


MEMBERS = json.loads(encode_line(answered("A", ["X"]), "2026-10-20T06:00:00Z")[1])
ODD: st.SearchStrategy[Any] = st.sampled_from(
    ["", " ", "-", "\ud800", "\x00\x1b", "İ", "🏳️", "a" * 3000, 10**30, -1, 1e300, None, [], {}]
)
PICKS = st.lists(
    st.fixed_dictionaries(
        {
            "rank": st.integers(0, 6),
            "product": st.sampled_from(["X", "", "\u202e", "™", "\u0301", "n" * 500, "日本"]),
            "domain": st.sampled_from([None, "", "x.example", "//"]),
            "reason": st.none() | st.text(max_size=3),
            "fixes": st.just([]),
        }
    ),
    max_size=6,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from([*MEMBERS, "withheld", "usage"]), ODD, max_size=2),
    PICKS,
    st.booleans(),
)
def test_no_line_that_can_be_sealed_stops_the_service(
    data: Path,
    members: dict[str, Any],
    ranking: list[dict[str, Any]],
    ranked: bool,  # noqa: FBT001
) -> None:
    """Whatever a sealed line says, a start shows the others, and counts it or names its line."""
    path = data / f"history/{CRM}.jsonl"
    whole = path.read_bytes()
    said = {**MEMBERS, **members}
    if ranked:
        said |= {"ranking": ranking, "pick": ranking[0]["product"] if ranking else None}
    try:
        line = line_of(said)
    except UnicodeEncodeError:  # escaped, half a surrogate pair is as hostile
        line = line_of(json.dumps(said, separators=(",", ":")).encode())
    try:
        path.write_bytes(whole + line)
        store = store_of(app_over(data))
        store.keep_current(prepare=True)
        assert bodies(store)
        counted = len(store.snapshot.poll_indexes[CRM].models)
        assert (counted, len(store.problems)) in {(6, 0), (5, 1)}
    finally:
        path.write_bytes(whole)
