"""``flask poll --batch``, ``--collect``, ``--cancel`` and ``--status``, as a person uses them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from batching import Batching, serving
from builders import command, write_json
from processes import environment, polls, write_real

from store.polls.batches.files import Batches
from store.polls.leases import leased

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def served() -> Iterator[Batching]:
    """The provider, on a thread of the test's own process."""
    with serving() as server:
        yield server


@pytest.fixture
def data(tmp_path: Path, served: Batching) -> Path:
    """Three categories; GPT and Claude are asked in batches, Gemini directly."""
    names = ["GPT", "Claude", "Gemini"]
    directory = write_real(tmp_path / "data", served.url, ["a", "b", "c"], names=names)
    change(directory, {"GPT": {"batch": True}, "Claude": {"batch": True}})
    return directory


def change(directory: Path, fields: dict[str, dict[str, Any]]) -> None:
    """Change members of assistants."""
    models = json.loads((directory / "models.json").read_text())
    for assistant in models["models"]:
        assistant.update(fields.get(assistant["name"], {}))
    write_json(directory / "models.json", models)


def poll(data: Path, *arguments: str) -> Result:
    """A ``flask poll``."""
    return command(data, "poll", *arguments, base_url=None, environ=environment(data))


def test_batches_are_sent_seen_and_collected(data: Path, served: Batching) -> None:
    """First one question to see whether it works, then the rest; the status says how it stands."""
    served.tell(gpt={"looks": 1}, claude={"looks": 1})
    first = poll(data, "--due", "--batch")
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines()[-2:] == [
        f"{name}: 1 sent in batches: the first batch, of one question, is on its way; the others "
        f"can be sent when it is collected"
        for name in ("GPT", "Claude")
    ]
    status = poll(data, "--status").stdout
    assert "GPT: 2 of 3 due, 1 batch: 1 asked 0 min ago, 0 done, direct after " in status
    assert ", at most 0.02 USD, last success never" in status
    told = json.loads(poll(data, "--status", "--json").stdout)["assistants"][0]["batches"]
    assert (told["count"], told["asked"], told["done"]) == (1, 1, 0)
    waiting = poll(data, "--collect")
    assert (waiting.exit_code, waiting.stdout) == (0, "2 batches are still on the way.\n")
    done = poll(data, "--collect")
    assert done.stdout.splitlines() == [
        "Claude: 1 answered, 0.0022 USD",
        "GPT: 1 answered, 0.0022 USD",
        "0 batches are still on the way.",
    ]
    rest = poll(data, "--due", "--batch")
    assert rest.stdout.splitlines()[-2:] == ["GPT: 2 sent in batches", "Claude: 2 sent in batches"]
    direct = poll(data, "--due")
    assert "Gemini: 3 answered" in direct.stdout
    assert "GPT" not in direct.stdout, "what is in a batch is not due"
    poll(data, "--collect")
    poll(data, "--collect")
    assert len(polls(data)) == 9
    assert len(served.book["bills"]) == 9
    assert poll(data, "--due", "--batch").stdout == "Nothing is due.\n"
    assert poll(data, "--collect").stdout == "No batch is on its way.\n"
    named = poll(data, "--collect", "--model", "GPT", "--model", "Claude").stdout
    assert named == "No batch of Claude or GPT is on its way.\n"


def test_a_named_category_in_a_batch_is_not_asked_beside_it(data: Path, served: Batching) -> None:
    """`flask poll SLUG` leaves alone what a batch asks, and says so."""
    served.tell(gpt={"looks": 9})
    poll(data, "a", "--batch", "--model", "GPT")
    assert "GPT: 1 in a batch" in poll(data, "a", "--model", "GPT").stdout


def test_cancelled_batches_are_collected(data: Path, served: Batching) -> None:
    """`--cancel` ends what is on its way; what was not answered is due at once, directly."""
    served.tell(gpt={"end": "hang"})
    poll(data, "a", "--batch", "--model", "GPT")
    done = poll(data, "--cancel")
    assert done.exit_code == 0
    assert "GPT: 1 interrupted" in done.stdout
    served.tell(claude={"end": "stuck"})
    poll(data, "a", "--batch", "--model", "Claude")
    served.book["batches"]["b2"]["unknown"] = 99
    served.book["batches"].pop("b2")
    gone = poll(data, "--cancel")
    assert gone.exit_code == 1
    assert "A batch of Claude was not cancelled: The provider answered HTTP 404" in gone.stderr


def test_only_a_named_assistants_batches_are_cancelled(data: Path, served: Batching) -> None:
    """The other's stay with their provider."""
    served.tell(gpt={"end": "hang"}, claude={"end": "hang"})
    poll(data, "a", "--batch")
    done = poll(data, "--cancel", "--model", "GPT")
    assert done.stdout.splitlines()[-1] == "1 batch is still on the way."
    asked = [path for method, path in served.book["asked"] if method == "POST"]
    assert [path.endswith("/batches/b1/cancel") for path in asked if "cancel" in path] == [True]


def test_a_dry_run_names_both_prices(data: Path) -> None:
    """What the questions cost at most directly, and in batches."""
    done = poll(data, "--due", "--dry-run", "--model", "GPT")
    assert "3 calls, at most " in done.stdout
    assert "0.12 USD (0.06 USD in batches)" in done.stdout
    assert "At most 0.12 USD (0.06 USD with batches), if no question" in done.stdout
    both = poll(data, "--due", "--dry-run", "--model", "GPT", "--model", "Gemini")
    assert "At most 0.25 USD (0.19 USD with batches), if" in both.stdout
    direct = poll(data, "--due", "--dry-run", "--model", "Gemini")
    assert "At most 0.12 USD, if no question" in direct.stdout


def test_a_call_that_makes_no_sense_is_refused(data: Path) -> None:
    """Batches of who takes none, or while waiting for clarity."""
    alone = "--collect and --cancel look after what was asked, and go with --model alone."
    for arguments, sentence in (
        (("a", "--collect"), alone),
        (("--due", "--cancel"), alone),
        (("--collect", "--dry-run"), alone),
        (("a", "--batch", "--model", "Gemini"), 'Gemini: models.json does not say "batch": true.'),
        (("--until-clear", "2", "--batch"), "--until-clear waits for answers"),
        (("--collect", "--at", "2026-11-02T06:00:00Z"), "--at is for sample assistants"),
    ):
        refused = poll(data, *arguments)
        assert refused.exit_code == 2
        assert sentence in refused.stderr


def test_one_assistant_that_takes_none_needs_a_person(data: Path, served: Batching) -> None:
    """The others are sent; the command ends with 1 whichever comes first."""
    served.tell(gpt={"create": 400}, claude={"looks": 9})
    sent = poll(data, "a", "--batch")
    assert sent.exit_code == 1
    assert sent.stdout.splitlines()[-2:] == [
        'GPT: 0 sent in batches: The provider answered HTTP 400: "no batches of this model"',
        "Claude: 1 sent in batches",
    ]


def test_a_batch_costs_no_more_than_it_may(data: Path, served: Batching) -> None:
    """`--max-usd` shrinks a batch, or forbids it."""
    refused = poll(data, "a", "--batch", "--model", "GPT", "--max-usd", "0.001")
    assert refused.exit_code == 1
    assert "GPT: 0 sent in batches: --max-usd 0.001 leaves too little" in refused.stdout
    assert served.book["batches"] == {}


def test_a_late_batch_needs_a_person(data: Path, served: Batching) -> None:
    """`--status` exits with 1 and says since when it is away."""
    served.tell(gpt={"looks": 99})
    poll(data, "a", "--batch", "--model", "GPT")
    (file,) = (data / "batches").glob("*.json")
    age(data, file.stem, "2026-01-01T00:00:00Z")
    done = poll(data, "--status")
    assert done.exit_code == 1
    assert "A batch of GPT is with its provider since 2026-01-01T00:00:00Z" in done.stdout


def age(data: Path, key: str, at: str) -> None:
    """Let a batch have been made then."""
    files = Batches(data)
    (batch,) = [each for each in files.all() if each.key == key]
    files.write(msgspec.structs.replace(batch, intended_at=at))


def test_a_file_that_was_deleted_by_hand_is_named(data: Path, served: Batching) -> None:
    """`--status` says which, and what to do; with its copy gone too, that nothing is known."""
    served.tell(gpt={"looks": 99})
    poll(data, "a", "--batch", "--model", "GPT")
    (file,) = (data / "batches").glob("*.json")
    file.write_text("{}")
    assert f"batches/{file.name} was edited or deleted" in poll(data, "--status").stdout
    (data / ".last-good" / "batches" / file.name).write_text("{}")
    done = poll(data, "--status")
    assert done.exit_code == 1
    assert f"batches/{file.name} is damaged and has no good copy" in done.stdout
    for arguments in (("--due",), ("--due", "--batch"), ("--collect",)):
        refused = poll(data, *arguments)
        assert refused.exit_code == 1, arguments
        assert "is damaged and has no good copy" in refused.output


def test_two_commands_do_not_work_on_the_same_batches(data: Path, served: Batching) -> None:
    """The second says that another process is at it, and sends nothing."""
    (data / ".locks").mkdir()
    with leased(data / ".locks" / f"{hashlib.sha256(b'GPT').hexdigest()[:8]}.batch.lock"):
        refused = poll(data, "b", "--batch", "--model", "GPT")
        assert refused.stdout.splitlines()[-1] == (
            "GPT: 0 sent in batches: another process is at its batches"
        )
        assert served.book["batches"] == {}
    served.tell(gpt={"looks": 9})
    poll(data, "a", "--batch", "--model", "GPT")
    with leased(data / ".locks" / f"{hashlib.sha256(b'GPT').hexdigest()[:8]}.batch.lock"):
        collected = poll(data, "--collect")
        assert "Another process is at the batches of GPT." in collected.stderr.splitlines()


def test_without_its_key_a_batch_is_not_cancelled(data: Path, served: Batching) -> None:
    """The sentence says what is not set."""
    served.tell(gpt={"looks": 9})
    poll(data, "a", "--batch", "--model", "GPT")
    environ = {**environment(data), "POLL_TEST_KEY": ""}
    done = command(data, "poll", "--cancel", base_url=None, environ=environ)
    assert done.exit_code == 1
    assert "A batch of GPT was not cancelled: GPT: the environment variable" in done.stderr


def test_a_sample_or_a_searching_assistant_takes_no_batches(data: Path) -> None:
    """`flask check` and `flask poll` say so, by line and column."""
    change(data, {"GPT": {"web_search": True}})
    done = poll(data, "a")
    assert done.exit_code == 1
    assert "batches are asked without web_search; set one of the two to false" in done.stderr
    site = json.loads((data / "site.json").read_text())
    write_json(data / "site.json", {**site, "sample": True})
    change(data, {"GPT": {"web_search": False, "api": "sample"}})
    assert 'no queue takes batches of its api "sample"' in poll(data, "a").stderr


def test_a_person_may_try_again_what_was_refused(data: Path, served: Batching) -> None:
    """Batches that are off are tried by hand, with one question at a time."""
    served.tell(gpt={"create": 400})
    refused = poll(data, "a", "b", "--batch", "--model", "GPT")
    assert refused.exit_code == 1
    assert "no batches of this model" in refused.stdout
    off = "batches are off, for the first was refused: The provider answered HTTP 400"
    assert f"GPT: 3 of 3 due, {off}" in poll(data, "--status").stdout
    served.tell(gpt={"looks": 9})
    tried = poll(data, "a", "b", "--batch", "--model", "GPT")
    assert tried.exit_code == 0
    assert "GPT: 1 sent in batches: batches are off, for the first was refused" in tried.stdout
    again = poll(data, "a", "b", "--batch", "--model", "GPT")
    assert "GPT: 0 sent in batches: the first batch, of one question, is on its way" in again.stdout
