"""``flask aliases``: an assistant suggests situations, a curator decides."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from builders import command
from processes import REAL, write_real
from replaying import Replaying

from store.polls.suggesting import LONGEST, MAX_SITUATIONS, read
from store.records import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

KEY = "sk-canary-7e0f9c"


@pytest.fixture
def provider() -> Iterator[Replaying]:
    """A provider on loopback."""
    with Replaying() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def data(tmp_path: Path, provider: Replaying) -> Path:
    """Two categories, and the four formats, asked of the provider."""
    return write_real(tmp_path / "data", provider.url, ["crm", "vpn"])


def run(data: Path, *arguments: str) -> Result:
    """A ``flask aliases`` in this process."""
    return command(data, "aliases", *arguments, environ={"POLL_TEST_KEY": KEY})


def says(*situations: str) -> list[dict[str, Any]]:
    """A script: an answer with these situations."""
    return [{"text": json.dumps({"situations": situations})}]


@pytest.mark.parametrize("model", [name for name, _ in REAL])
def test_every_format_is_asked_for_situations(data: Path, provider: Replaying, model: str) -> None:
    """What is said is queued, and the shape of a poll's answer is not asked for."""
    provider.follow({model.lower(): says("lost the customer list again")})
    done = run(data, "suggest", "crm", "--model", model)
    assert done.exit_code == 0, done.output
    assert run(data, "queue").stdout == "crm 1: lost the customer list again\n"
    (asked,) = provider.seen
    assert "picks" not in json.dumps(asked["body"])


def test_what_is_accepted_is_written_and_the_rest_dropped(data: Path, provider: Replaying) -> None:
    """By number; the file gets the situations and nothing else, and the queue is empty."""
    path = data / "categories/crm.json"
    before = json.loads(path.read_bytes())
    provider.follow({"gpt": says("One.", "two", "two", "three", "call " + KEY)})
    run(data, "suggest", "crm", "--model", "GPT")
    assert KEY not in run(data, "queue", "crm").stdout
    done = run(data, "accept", "crm", "3", "1")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("--- a/categories/crm.json\n")
    assert json.loads(path.read_bytes()) == before | {"situations": ["three", "One"]}
    assert run(data, "reject", "crm", "1").stdout == "1 suggestion dropped.\n"
    run(data, "reject", "crm")
    assert run(data, "queue").stdout == ""
    provider.follow({"gpt": says("three", "four")})
    run(data, "suggest", "crm", "--model", "GPT")
    assert run(data, "queue").stdout == "crm 1: four\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("suggest", "crn", "--model", "X"), 'No category has the slug "crn". Closest: crm.'),
        (("suggest", "crm", "--model", "X"), 'No assistant is called "X"; models.json has '),
        (("accept", "crm"), 'No suggestion waits for "crm"'),
        (("accept", "../crm"), 'No suggestion waits for "../crm"'),
        (("reject", "vpn", "1"), 'No suggestion waits for "vpn"'),
    ],
)
def test_a_mistake_is_told(data: Path, arguments: tuple[str, ...], said: str) -> None:
    """In a sentence, before anything is sent or written."""
    done = run(data, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_number_that_nothing_has_is_refused(data: Path, provider: Replaying) -> None:
    """Nothing is accepted when one of the numbers is wrong."""
    provider.follow({"gpt": says("one", "two")})
    run(data, "suggest", "crm", "--model", "GPT")
    assert "has the number 3: they go from 1 to 2" in run(data, "accept", "crm", "1", "3").stderr
    assert run(data, "queue").stdout == "crm 1: one\ncrm 2: two\n"


def test_a_bad_answer_is_no_suggestion(data: Path, provider: Replaying) -> None:
    """Why is said, and nothing is queued."""
    provider.follow({"gpt": [{"text": "I would rather not."}]})
    done = run(data, "suggest", "crm", "--model", "GPT")
    assert (done.exit_code, run(data, "queue").stdout) == (1, "")
    assert "GPT gave no suggestion: The answer is text" in done.stderr


def test_an_answer_is_cleaned_and_bounded() -> None:
    """Each situation once, on one line, not too long and not too many; else a failure."""
    texts = ["a b.", "a b", "c\u202e\nd", "", "x" * (LONGEST + 1)]
    assert read(json.dumps({"situations": texts})) == ("a b", "c d")
    many = read(json.dumps({"situations": [str(number) for number in range(MAX_SITUATIONS + 5)]}))
    assert isinstance(many, tuple)
    assert len(many) == MAX_SITUATIONS
    for wrong in ("[]", '{"situations": "one"}', '{"situations": []}', "", "no"):
        assert isinstance(read(wrong), Failure)
