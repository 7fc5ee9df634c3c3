"""The sample assistants: answers like real ones, plainly invented, the same whenever made again."""

import datetime as dt
import subprocess
import sys

import pytest
from builders import category
from hypothesis import given
from hypothesis import strategies as st

from store.polls import answers
from store.polls.sample import reply
from store.records import Answer, Category

SLUGS = tuple(f"kettle-{number}" for number in range(100))
KETTLE = category("Best kettle")
AT = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)


def answer(slug: str, assistant: str, at: dt.datetime = AT, repeat: int = 0) -> Answer:
    """What history would keep of a reply."""
    outcome = reply(slug, KETTLE, assistant, at, repeat).outcome
    assert isinstance(outcome, str)
    read = answers.read(outcome)
    assert isinstance(read, Answer)
    return read


def names(slug: str, assistant: str, repeat: int = 0) -> list[str]:
    return [pick.product for pick in answer(slug, assistant, repeat=repeat).ranking]


def test_the_same_question_gets_the_same_reply_everywhere() -> None:
    """A reply is a function of its arguments, in another process and another zone too."""
    here = reply("kettle", KETTLE, "Model C", AT)
    zone = dt.timezone(dt.timedelta(hours=5))
    assert reply("kettle", KETTLE, "Model C", AT.astimezone(zone)) == here
    program = (
        f"import datetime, sys; sys.path[:0] = {sys.path!r}; from builders import category;"
        " from store.polls.sample import reply;"
        f" print(repr(reply('kettle', category('Best kettle'), 'Model C', {AT!r})))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, check=True, text=True, env={"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert there.stdout.strip() == repr(here)


@pytest.mark.parametrize(
    "other",
    [
        ("kettle", KETTLE, "Model B", AT, 0),
        ("kettle", category("Best tea kettle"), "Model A", AT, 0),
        ("pot", KETTLE, "Model A", AT, 0),
        ("kettle", KETTLE, "Model A", AT + dt.timedelta(days=1), 0),
        ("kettle", KETTLE, "Model A", AT, 1),
    ],
    ids=["assistant", "question", "category", "day", "repeat"],
)
def test_another_draw_is_another_answer(other: tuple[str, Category, str, dt.datetime, int]) -> None:
    """Category, question, assistant, day and repeat each enter the digest of a request."""
    first = reply("kettle", KETTLE, "Model A", AT)
    second = reply(*other)
    assert first.request_id != second.request_id
    assert first.outcome != second.outcome


def test_every_name_is_invented() -> None:
    """Every domain ends in .example, and nothing is left of an address that somebody may own."""
    for slug in SLUGS:
        for pick in answer(slug, "Model A").ranking:
            assert pick.domain == f"{pick.product.lower()}.example"


def test_an_answer_has_all_that_a_real_one_has() -> None:
    """Five different picks with reasons and fixes, near misses, a caveat, and what it took."""
    found = reply("kettle", KETTLE, "Model A", AT)
    assert found.served_model
    assert found.tokens
    assert found.latency_ms
    assert found.latency_ms > 0
    for slug in SLUGS:
        said = answer(slug, "Model A")
        listed = [pick.product for pick in said.ranking]
        missed = [miss.product for miss in said.missed]
        assert (len(listed), len(missed), len({*listed, *missed})) == (5, 2, 7)
        texts = [pick.reason for pick in said.ranking] + [miss.reason for miss in said.missed]
        texts += [fix for pick in said.ranking for fix in pick.fixes] + [said.caveat]
        assert all(text and text[0].isupper() and text[-1] == "." for text in texts)
        assert not said.notes


written = st.text(min_size=1, max_size=60).map(str.strip).filter(bool)


@given(written, st.text())
def test_whatever_a_curator_writes_is_answered(title: str, assistant: str) -> None:
    """Titles and assistants may be called anything."""
    found = reply("odd", category(title), assistant, AT)
    assert isinstance(found.outcome, str)
    assert isinstance(answers.read(found.outcome), Answer)
