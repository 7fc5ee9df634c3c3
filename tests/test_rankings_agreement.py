"""How far the models agree, first places and overlap of lists, and other rules of counting."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from leaderboards import counted, merged
from test_rankings_merging import BOARDS, LISTS

from store.rankings.agreement import average_overlap, compare_rules, measure


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


def objecting(*lists: str) -> str:
    """The rules that put another product before the #1 of the ranking, and how many were tried."""
    entries = merged(counted(dict(zip("ABCDE", map(" ".join, lists), strict=False))))
    verdicts = compare_rules(entries)
    others = sorted(rule for rule, agrees in verdicts.items() if not agrees)
    return f"{entries[0].product} of {len(verdicts)}: {', '.join(others)}"


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        # The example of the methodology: X is first, third and fourth, Y first and never else.
        ("XYZVW XZWYV YXWZV XWYZU", "X of 7: "),
        # X has 12 points, by Formula 1 54 and by Dowdall 3/2; Y, not in the third list, has 10,
        # 50 and 2, and it beats all others in pairs
        ("YXUVW YXVWU WXUVZ", "X of 7: Condorcet, Dowdall, plurality"),
        # X has 12 again, Y with a fifth place more 11, by Formula 1 54 against 60
        ("YXZVW YXWZV UXVZY", "X of 7: Condorcet, Dowdall, Formula 1, plurality"),
        # X has 5 + 5 = 10 and is not named by C, Y 3 + 3 + 3 = 9 from all
        ("XUYVW XVYWU WUYVZ", "X of 7: named at all, top three"),
        # nobody beats all: X over Y, Y over Z, Z over X, each in two of three
        ("XYZ YZX ZXY", "X of 6: "),
        ("X", "X of 7: "),
    ],
)
def test_a_rule_objects_only_where_it_puts_another_product_first(lists: str, said: str) -> None:
    """Level is no objection, and a rule without a winner is not asked."""
    assert objecting(*lists.split()) == said
