"""Text in pictures fits, whatever script it is in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.web.pages.pictures import fitted, lines, width


@given(st.text(max_size=80), st.integers(60, 400))
def test_a_line_never_runs_over(text: str, room: int) -> None:
    """Whatever is cut ends in an ellipsis and fits; what fits is left alone."""
    shown = fitted(text, 10, room)
    assert width(shown, 10) <= room
    assert shown == text or shown.endswith("\u2026")


@given(st.text(max_size=200), st.integers(1, 4))
def test_lines_hold_the_words_in_order(text: str, most: int) -> None:
    """No more lines than asked for, each within its room; only the last may be cut."""
    found = lines(text, 10, 200, most)
    assert len(found) <= most
    assert all(width(line, 10) <= 200 for line in found)
    if not any(line.endswith("\u2026") for line in found):
        assert " ".join(found).split() == text.split()


@pytest.mark.parametrize(
    ("narrow", "broad"), [("iiii", "mmmm"), ("abcd", "ABCD"), ("abcd", "\u7d22\u5c3c\u5546\u5e97")]
)
def test_broad_letters_take_more_room(narrow: str, broad: str) -> None:
    """Capitals and ideographs are estimated wider than small letters."""
    assert width(narrow, 10) < width(broad, 10)


def test_marks_take_no_room_of_their_own() -> None:
    """A combining accent adds nothing."""
    assert width("e\u0301", 10) == width("e", 10)
