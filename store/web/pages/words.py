"""Days and small numbers as readers say them."""

import datetime as dt

_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def day_in_words(day: str) -> str:
    """Return a UTC day, ``YYYY-MM-DD``, as people write it.

    >>> day_in_words("2026-11-09")
    '9 November 2026'
    """
    date = dt.date.fromisoformat(day)
    return f"{date.day} {date:%B} {date.year}"


def number_in_words(number: int) -> str:
    """Return a number in words up to ten, else in digits.

    >>> number_in_words(3), number_in_words(1425)
    ('three', '1,425')
    """
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else f"{number:,}"
