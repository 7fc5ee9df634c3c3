"""The sentences people quote: true, whole, and readable for any number of models."""

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from builders import answered, category
from hypothesis import given
from hypothesis import strategies as st
from leaderboards import AT, SITE, board_of, name_of, sentences_of

from store.rankings import sentences
from store.rankings.leaderboards import Leaderboard

PENS = category("Best pens")
LONG = "It writes for a very long time, " * 12 + "and never stops."


def board(configured: int = 0, stale: str = "", **models: str | dict[str, Any]) -> Leaderboard:
    """A leaderboard of what models answered: each a list, or a list and what else its poll holds.

    The answers of those that are ``stale`` are a month old.
    """
    polls = []
    for model, answer in models.items():
        fields = {"picks": answer} if isinstance(answer, str) else dict(answer)
        at = "2026-10-01T06:00:00Z" if model in stale.split() else AT
        fields |= {"slug": "pens", "question": PENS.question}
        polls.append(answered(model, fields.pop("picks").split(), at, **fields))
    polls.sort(key=attrgetter("polled_at"))
    missing = (f"M{number}" for number in range(len(models), configured))
    leaderboard = board_of(polls, [*models, *missing], SITE, PENS, "pens")
    assert leaderboard
    return leaderboard


def text_of(configured: int = 0, stale: str = "", **models: str | dict[str, Any]) -> str:
    """Every sentence of such a leaderboard."""
    return sentences_of(board(configured, stale, **models))


def bare(picks: str, **fields: Any) -> dict[str, Any]:
    """An answer without any reason."""
    return {"picks": picks, "reasons": dict.fromkeys(picks.split()), **fields}


def boards() -> dict[str, str]:
    """The sentences of every kind of category."""
    return {
        "one model of one": text_of(A="X Y"),
        "one model of four": text_of(4, A="X Y"),
        "one model, one pick, no words": text_of(A=bare("X")),
        "two models, unanimous": text_of(A="X Y", B="X Z"),
        "two of four answered, unanimous": text_of(4, A="X Y", B="X Z"),
        "two models, tied": text_of(A="X Y", B="Y X"),
        "two models, no most": text_of(A="X Y", B="Y Z X"),
        "three models, unanimous": text_of(A="X Y", B="X Z", C="X"),
        "three models, majority": text_of(A="X Y", B="X Y", C="Y X"),
        "three models, three-way tie": text_of(A="X Y Z", B="Y Z X", C="Z X Y"),
        "four models, four-way tie": text_of(A="X Y Z V", B="Y Z V X", C="Z V X Y", D="V X Y Z"),
        "three of four, unanimous": text_of(4, A="X Y", B="X Z", C="X"),
        "four models, unanimous": text_of(A="X Y", B="X Z", C="X", D="X"),
        "four models, one stale": text_of(stale="B", A="X Y", B="X", C="X", D="X"),
        "four models, two stale": text_of(stale="B C", A="X Y", B="X", C="X", D="X"),
        "two models, one stale": text_of(stale="B", A="X Y", B="X"),
        "three of four, one stale": text_of(4, stale="B", A="X Y", B="X", C="X"),
        "four models, majority": text_of(A="X Y", B="X Z", C="X", D="Y X"),
        "four models, most first places, alone": text_of(A="X Y", B="X Z", C="Y X", D="Z X"),
        "four models, another has more": text_of(A="Y X", B="Y X", C="Z X", D="P X"),
        "four models, each another first": text_of(A="P X", B="Q X", C="R X", D="S X"),
        "four models, two and two": text_of(A="X Y", B="X Y", C="Y P X", D="Y Q X"),
        "five models, unanimous": text_of(A="X", B="X", C="X", D="X", E="X Y"),
        "five models, two and two and one": text_of(A="X Y", B="X Y", C="Y Z", D="Y P", E="Z X"),
        "five models, two others have more": text_of(A="X Z", B="X Z", C="Y Z", D="Y Z", E="Z X"),
        "five models, five-way split": text_of(A="V X", B="W", C="X", D="Y", E="Z"),
        "a caveat of the leader's model only": text_of(
            A={"picks": "Y X", "caveat": "Not this one."},
            B={"picks": "X Y", "caveat": "It leaks."},
            C={"picks": "X Y", "caveat": "Nor this."},
        ),
        "no reasons": text_of(A=bare("X Y"), B=bare("X Y")),
        "words that end in marks of their own": text_of(
            A={
                "picks": "X Y",
                "reasons": {"X": "Who would not want it?", "Y": "Cheap and so on…"},
                "caveat": "It leaks!",
            }
        ),
        "words that end in dots and brackets": text_of(
            A={
                "picks": "X Y",
                "reasons": {"X": "It wins (by far.)", "Y": 'They call it "fair."'},
                "caveat": "Ink, paper and so on...",
            }
        ),
        "words that are too long": text_of(
            A={"picks": "X Y", "reasons": {"X": LONG, "Y": LONG}, "caveat": LONG}
        ),
    }


def product(picks: str = "X Y Z V W", of: int = 0, leaderboards_: int = 1, **fields: Any) -> str:
    """The verdict of the product at this place of what one assistant answered."""
    found = board(A={"picks": picks, **fields})
    return sentences.product_verdict(
        found, found.entries[of], name_of, site="Test", leaderboards=leaderboards_, source=PAGE
    )


PAGE = "https://rankings.example/product/x (Test, CC BY 4.0)"


def product_verdicts() -> dict[str, str]:
    """The verdicts of every kind of product."""
    tie = board(A="X Y", B="Y X")
    return {
        "product on one leaderboard": product(),
        "product on several": product(of=1, leaderboards_=3),
        "first product on several": product(leaderboards_=3),
        "product without a reason": product(reasons={"X": None}),
        "product alone, without a reason, on two": product(
            "X", reasons={"X": None}, leaderboards_=2
        ),
        "product with an exclamation": product(reasons={"X": "It writes!"}),
        "product with too many words": product(reasons={"X": LONG}),
        "product that is tied": sentences.product_verdict(
            tie, tie.entries[1], name_of, site="Test", leaderboards=2, source=PAGE
        ),
    }


def test_every_kind_of_sentence_is_as_it_was_read_and_approved(
    snapshot: Callable[[str, str], None],
) -> None:
    """Sentences change only on purpose: one file shows them all, to be read by people."""
    kinds = {**boards(), **product_verdicts()}
    text = "\n\n".join(f"# {kind}\n{told}" for kind, told in kinds.items())
    snapshot("sentences.txt", f"{text}\n")


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("one two three", 10, "one two…"),
        ("one two three", 8, "one two…"),
        ("one two three", 7, "one…"),
        ("one, two", 5, "one…"),
        ("first. Second", 8, "first…"),
        ("unbreakable", 6, "unbre…"),
    ],
)
def test_a_text_is_cut_on_a_word(text: str, limit: int, expected: str) -> None:
    """A cut text ends in an ellipsis, within the limit, without half a word or loose marks."""
    assert sentences.cut(text, limit) == expected


@given(st.text(), st.integers(min_value=2, max_value=60))
def test_a_cut_text_is_within_its_limit_and_begins_the_same(text: str, limit: int) -> None:
    """Nothing is invented: what is kept is a beginning of the text."""
    found = sentences.cut(text, limit)
    assert len(found) <= limit
    assert found == text or text.startswith(found.removesuffix("…"))


def test_a_models_words_are_whole_up_to_200_characters() -> None:
    """Longer ones are cut, the ellipsis included."""
    for length, quote in ((200, "x" * 200), (201, f"{'x' * 199}…")):
        assert f"“{quote}”" in product(reasons={"X": "x" * length})


@given(st.text(alphabet="ab .!?…\"')", min_size=1, max_size=30))
def test_no_sentence_ends_twice(text: str) -> None:
    """However a model's words end, a sentence has exactly one ending before the next begins."""
    words = f"a{text.strip()}"
    before, _, source = product(reasons={"X": words}).rpartition(" Source: ")
    assert source
    assert re.search(r"""[.!?…][\"')”]*$""", before)
    assert not re.search(r"""[!?…][\"')”]*\.$""", before)
