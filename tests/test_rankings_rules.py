"""Rules: whether other usual ways of counting put the same product first."""

from __future__ import annotations

import pytest
from leaderboards import counted, merged

from store.rankings import rules


def objecting(*lists: str) -> str:
    """The rules that put another product before the #1 of the ranking, and how many were tried."""
    entries = merged(counted(dict(zip("ABCDE", map(" ".join, lists), strict=False))))
    verdicts = rules.compare(entries)
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
