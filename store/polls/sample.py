"""The sample assistants: invented answers, to try the service without a key and without cost.

An answer is a pure function of category, question, assistant, day and repeat. Every product is
invented, and every domain ends in ``.example``, a name that nobody can own (RFC 2606).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from random import Random
from typing import NamedTuple

import msgspec

from store.polls.providers.wire import Reply, Tokens
from store.records import SAMPLE, Category

SERVED_MODEL = "sample-1"

_FIRST = ("Brindle", "Corrow", "Fennel", "Hawkin", "Jessam", "Larkin", "Mottle", "Oster", "Quill",
          "Rushel", "Tamber", "Wickle")  # fmt: skip
_LAST = ("beck", "croft", "dane", "fell", "garth", "holm", "mere", "nook", "stow", "thorpe",
         "wold", "yarn")  # fmt: skip


class _Quality(NamedTuple):
    """Phrases on one quality: for a product, against it, and what would help."""

    strength: str
    weakness: str
    remedy: str


_QUALITIES = (
    _Quality("what it costs", "it costs more than most", "a lower price"),
    _Quality("an easy start", "it takes a while to get used to", "a gentler start"),
    _Quality("lasting long", "it is too new to be sure that it lasts", "some years of proof"),
    _Quality("quick help", "help can be slow", "help on weekends"),
    _Quality("doing one thing well", "it tries to be too many things", "fewer extras"),
    _Quality("a wide choice", "there is little to choose from", "more variants"),
    _Quality("clear instructions", "its instructions leave questions", "better instructions"),
    _Quality("fair terms", "its terms are hard to read", "terms on a single page"),
)
_LISTED, _KNOWN = 5, 9
"""Products in an answer, and those that the assistants know in a category."""
_TASTE, _MOOD = 0.4, 0.25
"""How far an assistant's opinion differs from the others', and from its own of another day."""


def reply(slug: str, category: Category, assistant: str, at: datetime, repeat: int = 0) -> Reply:
    """Return an invented reply, with the milliseconds it pretends to have taken.

    ``at`` needs a zone; ``repeat`` is the number of earlier polls of that UTC day.

    >>> from datetime import datetime
    >>> from store.records import Category
    >>> asked = Category(version=1, title="Best kettle", question="What is the best kettle?")
    >>> first = reply("kettle", asked, "Model A", datetime(2026, 11, 2, tzinfo=UTC))
    >>> first == reply("kettle", asked, "Model A", datetime(2026, 11, 2, 9, tzinfo=UTC))
    True
    >>> first == reply("kettle", asked, "Model A", datetime(2026, 11, 2, tzinfo=UTC), 1)
    False
    """
    parts = (slug, category.question, assistant, f"{at.astimezone(UTC):%Y-%m-%d}", str(repeat))
    digest = sha256("\x1f".join(parts).encode()).hexdigest()
    draw = Random(digest)
    names = _ranked(slug, assistant, draw)
    text = msgspec.json.encode(_answer(names, draw)).decode()
    tokens = Tokens(input=430 + len(category.question) // 4, output=len(text) // 4)
    return Reply(
        outcome=text,
        served_model=SERVED_MODEL,
        request_id=f"{SAMPLE}{digest[:20]}",
        tokens=tokens,
        latency_ms=draw.randrange(900, 9000),
    )


def _ranked(slug: str, assistant: str, draw: Random) -> list[str]:
    """Return the category's products as the assistant likes them just now, best first."""
    pool, taste = Random(slug), Random(f"{slug}\x1f{assistant}")
    parts = zip(pool.sample(_FIRST, _KNOWN), pool.sample(_LAST, _KNOWN), strict=True)
    names = [first + last for first, last in parts]
    liking = {
        name: pool.random() + _TASTE * taste.random() + _MOOD * draw.random() for name in names
    }
    return sorted(names, key=lambda name: -liking[name])


def _answer(names: Sequence[str], draw: Random) -> dict[str, object]:
    """Return the object that a prompt asks for; nothing is praised and found wanting alike."""
    qualities = draw.sample(_QUALITIES, len(_QUALITIES))
    picks = [
        {
            "name": name,
            "domain": f"{name.lower()}.example",
            "reason": f"{name} stands out for {qualities[place].strength}.",
            "fixes": [f"It would rank higher with {qualities[place + 1].remedy}."],
        }
        for place, name in enumerate(names[:_LISTED])
    ]
    misses = [
        {"name": name, "reason": f"Just left out: {quality.weakness}."}
        for name, quality in zip(names[_LISTED:], qualities[_LISTED:-1], strict=False)
    ]
    caveat = f"Before you choose {names[0]}, know that {qualities[-1].weakness}."
    return {"picks": picks, "near_misses": misses, "caveat": caveat}
