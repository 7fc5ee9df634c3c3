"""The instrument: each record names what it was asked with, and a file says what that is."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from builders import command, write_data
from msgspec import UNSET
from polling_desk import CANARY, PollingDesk
from processes import REAL

from store.files import Files
from store.history import History
from store.polls.asking import FOLDER, encode_instrument
from store.polls.providers.provider import prompt
from store.polls.secrets import faults
from store.records import Assistant

if TYPE_CHECKING:
    from pathlib import Path

    from replaying import Replaying


def assistant(**fields: Any) -> Assistant:
    """An assistant of a real provider."""
    start = {"name": "A", "api": "chat", "base_url": "https://a.example/v1", "model": "m-1"}
    return Assistant(**{**start, **fields})


@pytest.mark.parametrize("model", [name for name, _ in REAL])
def test_every_record_names_a_file_that_says_how_it_was_asked(
    desk: PollingDesk, provider: Replaying, model: str
) -> None:
    """Its name is the start of its digest; with the question in its place it is what was sent."""
    desk.due(model)
    (name,) = {poll.instrument for poll in desk.polls(model)}
    data = (desk.directory / FOLDER / f"{name}.json").read_bytes()
    assert sha256(data).hexdigest()[:12] == name
    said = json.loads(data)
    question = desk.polls(model)[0].question
    assert said["system"] == prompt(question).system
    assert said["prompt"].replace("{question}", question) == prompt(question).user
    assert Files(desk.directory).scan().problems == ()
    for sent in provider.seen:
        text = json.dumps(said["request"])
        for mark in ("system", "prompt"):
            stands_for = json.dumps(said[mark].replace("{question}", sent["question"]))[1:-1]
            text = text.replace(f"{{{mark}}}", stands_for)
        assert json.loads(text) == sent["body"]


def test_its_file_is_there_before_anything_is_asked(desk: PollingDesk, provider: Replaying) -> None:
    """Where it cannot be written nothing is asked or paid for, and the summary says why."""
    (desk.directory / FOLDER).write_text("in its place")
    summary = desk.due()
    assert summary.fault == "what it is asked with cannot be kept: File exists"
    assert (desk.polls(), provider.seen) == ([], [])


def test_a_failure_names_it_too(desk: PollingDesk, provider: Replaying) -> None:
    """Whoever counts failures by the way of asking can."""
    provider.follow({"gpt": [{"status": 400}]})
    desk.due()
    polls = desk.polls("GPT")
    assert {poll.failure for poll in polls} == {"http"}
    assert UNSET not in {poll.instrument for poll in polls}


def test_a_sample_assistant_has_none(tmp_path: Path) -> None:
    """Nothing is sent to it: its answers are compared whatever the program would ask others."""
    data = write_data(tmp_path / "data")
    assert command(data, "poll", "--all").exit_code == 0
    polls = [stored.poll for stored in History(data / "history").read("crm-software").polls]
    assert [poll.instrument for poll in polls] == [UNSET] * 4
    assert not (data / FOLDER).exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"web_search": True},
        {"extra": {"temperature": 0.7}},
        {"structured": "prompt"},
        {"max_output_tokens": 5000},
        {"model": "m-2"},
        {"api": "responses"},
    ],
)
def test_another_way_of_asking_is_another_instrument(fields: dict[str, Any]) -> None:
    """Whatever may change an answer."""
    assert encode_instrument(assistant(**fields)) != encode_instrument(assistant())


@pytest.mark.parametrize(
    "fields",
    [
        {"tier": "flex"},
        {"batch": True},
        {"base_url": "https://b.example/v1"},
        {"rpm": 7},
        {"concurrency": 1},
        {"usd_per_million_input": 1.0},
        {"name": "B"},
        {"key_env": "OTHER_KEY"},
    ],
)
def test_what_changes_no_answer_is_no_part_of_it(fields: dict[str, Any]) -> None:
    """Prices and pace may change without a run that begins anew."""
    assert encode_instrument(assistant(**fields)) == encode_instrument(assistant())


def test_its_own_key_is_not_published_with_it() -> None:
    """Wherever in its entry it stands."""
    own = encode_instrument(assistant(extra={"user": CANARY}), CANARY)
    assert (CANARY.encode() in own, b"[redacted]" in own) == (False, True)


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-5-5-20260901", "qwen2p5coder32binstruct", "mistralai/Mixtral-8x22B-Instruct",
     "deepseekr1distillllama70b", "gpt-5.6-luna-2026-10-01"],
)  # fmt: skip
def test_a_long_name_of_a_model_is_no_key(model: str) -> None:
    """It is asked for, and told apart from every other."""
    assert list(faults(assistant(model=model))) == []
    assert json.loads(encode_instrument(assistant(model=model)))["model"] == model
