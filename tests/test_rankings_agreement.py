"""How far the models agree, first places and overlap of lists, and other rules of counting."""

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from leaderboards import counted, merged
from test_rankings_merging import BOARDS, LISTS

from store.rankings.agreement import average_overlap, measure


@given(LISTS, LISTS)
def test_overlap_is_a_symmetric_share(first: list[str], second: list[str]) -> None:
    """It lies between 0 and 1, is 1 only for equal lists, 0 only for disjoint ones."""
    overlap = average_overlap(first, second)
    assert overlap == average_overlap(second, first)
    assert 0 <= overlap <= 1
    assert math.isclose(overlap, 1) is (first == second)
    assert (overlap == 0) is (not set(first) & set(second))


@given(BOARDS, st.randoms(use_true_random=False))
def test_the_order_of_the_models_changes_no_agreement(
    lists: dict[str, list[str]], random: Random
) -> None:
    """Product, votes, label and overlap are the same for every order of the configuration."""
    shuffled = list(lists)
    random.shuffle(shuffled)
    one, other = counted(lists), counted({model: lists[model] for model in shuffled})
    assert measure(one, merged(one)) == measure(other, merged(other))
