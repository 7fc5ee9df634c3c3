"""The merged ranking: what counts, what it is worth, and what decides between equals."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from leaderboards import answer
from msgspec.structs import replace

from store.rankings.agreement import measure
from store.rankings.merging import CountedAnswer, Entry, ResolvedAnswer, eligible_wording, merge
from store.records import Site

SLUGS = {product: product.lower() for product in "PQRSTUVW"}
LISTS = st.lists(st.sampled_from("PQRSTUVW"), unique=True, min_size=1, max_size=5)
BOARDS = st.dictionaries(st.sampled_from("ABCDE"), LISTS, min_size=1, max_size=5)


def latest(**times: str) -> dict[str, ResolvedAnswer]:
    """Each model's latest answer by its day, the newest last."""
    return {
        model: answer(model, "X", f"2026-{day}T06:00:00Z")
        for model, day in sorted(times.items(), key=lambda item: item[1])
    }


def counting(latest: dict[str, ResolvedAnswer], *models: str) -> list[tuple[str, bool]]:
    """The models that count after these latest answers, and whether their answers are stale."""
    selected = eligible_wording("What is best?", latest, models, Site(version=1, name="Test"))
    return [(each.model, each.stale) for each in selected.answers] if selected else []


def test_ages_are_measured_from_the_newest_answer_of_the_category() -> None:
    """Exactly 30 days is fresh and exactly 90 still counts; a second more is stale or missing."""
    answers = latest(A="10-01", B="09-01", C="07-03")
    assert counting(answers, "A", "B", "C") == [("A", False), ("B", False), ("C", True)]
    later = {"B": answers["B"], "C": answers["C"], "A": answer("A", "X", "2026-10-01T06:00:01Z")}
    assert counting(later, "A", "B", "C") == [("A", False), ("B", True)]


def test_the_newest_answer_is_the_one_appended_last() -> None:
    """One appended before it under a later time makes nobody look old."""
    odd = {
        "A": answer("A", "X", "2099-01-01T06:00:00Z"),
        "B": answer("B", "X", "2026-10-01T06:00:00Z"),
    }
    assert counting(odd, "A", "B") == [("A", False), ("B", False)]


@given(BOARDS, st.randoms(use_true_random=False))
def test_the_order_of_the_models_changes_nothing_but_the_quote(
    lists: dict[str, list[str]], random: Random
) -> None:
    """Every figure of an entry and the whole agreement are the same for every configuration."""
    shuffled = list(lists)
    random.shuffle(shuffled)
    one, other = (
        [CountedAnswer(answer(model, lists[model]), stale=False) for model in order]
        for order in (lists, shuffled)
    )
    assert without_quotes(merge(one, SLUGS)) == without_quotes(merge(other, SLUGS))
    assert measure(one, merge(one, SLUGS)) == measure(other, merge(other, SLUGS))


def without_quotes(entries: Sequence[Entry]) -> list[Entry]:
    return [replace(entry, reason=None, speaker=None) for entry in entries]
