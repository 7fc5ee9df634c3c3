"""Putting a ranking into the words of one assistant."""

import re
import unicodedata
from functools import lru_cache
from random import Random
from typing import Any

from sample.draws import digest, share
from sample.products import Invented
from sample.subjects import Subject
from sample.words import KINDS, VOICES, Kind, Trait, Voice


class Author:
    """One assistant at one answer; every choice is drawn from ``draw``, in a fixed order."""

    def __init__(self, assistant: str, subject: Subject, draw: Random) -> None:
        self.subject = subject
        self.voice = voice_of(assistant)
        self._assistant = assistant
        self._draw = draw
        self._faults: set[int] = set()

    def answer(self, ranked: list[Invented]) -> dict[str, Any]:
        """The answer to the category's question: the best few, near misses and a caveat."""
        count = self._draw.choices((5, 4, 3, 6), (84, 9, 4, 3))[0]
        misses = self._draw.choice((1, 1, 2))
        return {
            "picks": self._picks(ranked[:count]),
            "near_misses": self._misses(ranked[count : count + misses], ranked[count - 1].name),
            "caveat": self._caveat(ranked),
        }

    def _picks(self, products: list[Invented]) -> list[dict[str, Any]]:
        names = [product.name for product in products]
        subject, kind = self.subject, self.subject.kind
        first = self._draw.choice(self.voice.first)
        templates = [first, *self._templates(self.voice.others, len(names) - 1)]
        picks = []
        for i, (product, praised) in enumerate(zip(products, _strengths(names, kind), strict=True)):
            rival = names[i - 1] if i else names[1]
            reason = _said(
                templates[i], *(kind.traits[trait] for trait in praised),
                head=subject.head, noun=subject.noun, tail=subject.tail, other=rival,
            )  # fmt: skip
            picks.append(
                {
                    "name": self._written(product.name),
                    "domain": self._domain(product),
                    "reason": reason,
                    "fixes": self._fixes(product.name, praised, rival),
                }
            )
        return picks

    def _fixes(self, name: str, praised: tuple[int, int], rival: str) -> list[str]:
        count = self._draw.choices((0, 1, 2), (10, 80, 10))[0]
        templates = self._templates(self.voice.fixes, count)
        return [_said(one, self._fault(name, praised), rival=rival) for one in templates]

    def _misses(self, products: list[Invented], rival: str) -> list[dict[str, str]]:
        templates = self._templates(self.voice.misses, len(products))
        return [
            {
                "name": self._written(product.name),
                "reason": _said(template, self._fault(product.name), rival=rival),
            }
            for product, template in zip(products, templates, strict=True)
        ]

    def _caveat(self, ranked: list[Invented]) -> str | None:
        """What to know before choosing the first; nothing that was praised in it."""
        if self._draw.random() < 0.1:
            return None
        name, rival = ranked[0].name, ranked[1].name
        self._faults.clear()
        template = self._draw.choice(self.voice.caveats)
        (praised,) = _strengths([name], self.subject.kind)
        return _said(template, self._fault(name, praised), name=name, rival=rival)

    def _fault(self, name: str, praised: tuple[int, ...] = ()) -> Trait:
        """The weakest side of a product that was not praised and not named before."""
        order = _order(name, self.subject.kind.name)
        own = self.subject.kind.own
        rest = [i for i in reversed(order) if i not in praised]
        rest.sort(key=lambda i: i >= own)  # what is true of this kind of thing tells more
        worst = next((i for i in rest if i not in self._faults), rest[0])
        self._faults.add(worst)
        return self.subject.kind.traits[worst]

    def _templates(self, templates: tuple[str, ...], count: int) -> list[str]:
        """So many templates, as different as can be."""
        own = list(templates)
        self._draw.shuffle(own)
        return [own[i % len(own)] for i in range(count)]

    def _written(self, name: str) -> str:
        """A product's name in the assistant's own spelling: nearly always the product's."""
        habit = share("spelling", self._assistant, name)
        if habit < 0.06:
            plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
            return re.sub(r"\b([A-Z])(\d)", r"\1-\2", plain.replace(" & ", " and "))
        label = self.subject.label
        if habit > 0.985 and label and name.count(" ") == 0:
            return f"{name} {label}"
        return name

    def _domain(self, product: Invented) -> str | None:
        """A product's domain; now and then none, or a whole address."""
        habit = share("domain", self._assistant, product.name)
        if habit < 0.04:
            return None
        return f"https://www.{product.domain}/" if habit < 0.07 else product.domain


def voice_of(assistant: str) -> Voice:
    """Return the voice of Model A, B, C or D."""
    return list(VOICES.values())["ABCD".index(assistant[-1])]


def _said(template: str, first: Trait, second: Trait | None = None, **names: str) -> str:
    """A template filled: s, w, f, n of the first trait, t, m of the second; capitals begin one."""
    told = {"s": first.strength, "w": first.weakness, "f": first.fix, "n": first.noun}
    if second is not None:
        told |= {"t": second.strength, "m": second.noun}
    told |= {letter.upper(): text[0].upper() + text[1:] for letter, text in told.items()}
    return template.format_map(told | names)


@lru_cache(maxsize=32768)
def _order(name: str, kind_name: str) -> tuple[int, ...]:
    """The traits of a kind, as numbers, from a product's greatest strength to its weakest side."""
    drawn = digest("traits", name)
    count = len(KINDS[kind_name].traits)
    return tuple(sorted(range(count), key=lambda i: drawn[2 * i : 2 * i + 2]))


def _strengths(names: list[str], kind: Kind) -> list[tuple[int, int]]:
    """Two traits to praise in each product, none of them twice in one answer."""
    taken: set[int] = set()
    leads = []
    for name in names:
        order = _order(name, kind.name)
        lead = next(i for i in (*[i for i in order if i < kind.own], *order) if i not in taken)
        taken.add(lead)
        leads.append(lead)
    seconds = []
    for name in names:
        second = next(i for i in _order(name, kind.name) if i not in taken)
        taken.add(second)
        seconds.append(second)
    return list(zip(leads, seconds, strict=True))
