"""What is said of how sure a ranking is, once more, from the definitions; nothing of ours."""

import datetime as dt
from collections.abc import Callable

from certainty_figures import Figures

NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def series(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def some(words: list[str]) -> str:
    """Five or more: four and the number of the rest."""
    return series(words) if len(words) < 5 else series([*words[:4], f"{len(words) - 4} more"])


def tied_names(words: list[str]) -> str:
    """Four or more: two and the number of the rest."""
    return series(words) if len(words) < 4 else f"{words[0]}, {words[1]} and {len(words) - 2} more"


class Doubt:
    """How sure it is that some products, the first and what is truly tied with it, are first.

    ``renewed`` are the words for why an assistant's run began anew.
    """

    def __init__(
        self,
        figures: Figures,
        firsts: list[str],
        name: Callable[[str], str],
        renewed: dict[str, str],
    ) -> None:
        self.figures, self.firsts, self.name, self.renewed = figures, firsts, name, renewed
        self.level = figures.level(firsts[0], tied=len(firsts) > 1)
        self.over = f"over {figures.answers:,} answer{'s' * (figures.answers != 1)}"
        self.alone = figures.answers == len(figures.sizes) and not renewed
        contenders = figures.contenders if figures.measured else []
        self.rivals = [name(item) for item in contenders if item not in firsts]
        behind = [name(item) for item in firsts if item not in contenders]
        self.lead = (
            f"{name(contenders[0])} is ahead of {some(behind)}"
            if contenders and behind and len(firsts) > 1
            else ""
        )

    def clause(self) -> str:
        """The end of a verdict's first clause."""
        many = len(self.figures.sizes) > 1
        if self.level == "unmeasured":
            once = "each asked once" if many else "asked once"
            return once if self.alone else "asked too few times to tell"
        if self.lead:
            return f"though {self.over} {self.lead}"
        if self.level == "contradicted":
            return f"though {self.over} {self._above()} is ahead"
        if self.level == "clear":
            return f"a clear lead {self.over}"
        return "too close to call " + (f"with {some(self.rivals)}" if self.rivals else self.over)

    def _above(self) -> str:
        return self.name(self.figures.above(self.firsts[0])[0])

    def sentence(self) -> str:
        """The sentence that stands beside a verdict."""
        names = [self.name(item) for item in self.firsts]
        if self.level == "unmeasured":
            return self._too_few()
        if len(names) > 1:
            more = f"; {self.over} {self.lead}" if self.lead else ""
            return f"Tied: the latest answers put {series(names)} level{more}."
        if self.level == "contradicted":
            return (
                f"Unsettled: the latest answers put {names[0]} first, but {self.over} "
                f"{self._above()} is ahead of it by more than chance."
            )
        if self.level == "clear":
            return (
                f"Clear lead: {self.over} {names[0]} is ahead of every other product by more than "
                "chance."
            )
        return f"Too close to call: {self.over} {some(names + self.rivals)} cannot be told apart."

    def _too_few(self) -> str:
        sizes = self.figures.sizes
        if set(sizes.values()) == {1} and not self.renewed:
            return "Asked only once." if self.alone else "Asked on one day only."
        few = [model for model in sizes if sizes[model] < 3] or list(sizes)
        parts = []
        for n, why in sorted({(sizes[m], self.renewed.get(m, "")) for m in few}, key=_by_cause):
            who = [m for m in few if (sizes[m], self.renewed.get(m, "")) == (n, why)]
            since = f" since {why} changed" if why else ""
            number = NUMBERS[n] if n < 11 else str(n)
            parts.append(f"{series(who)} on {number}{' each' * (len(who) > 1)}{since}")
        return f"Asked on too few days to tell: {'; '.join(parts)}."

    def quote_end(self, *, is_level: bool, is_most_named: bool) -> str:
        """The end of the sentence for people.

        Others may have as many points as the first, or be named first by more assistants.
        """
        if self.level == "unmeasured":
            each = "each assistant was" if len(self.firsts) > 1 else "each was"
            who = each if len(self.figures.sizes) > 1 else "it was"
            return (
                f"; {who} asked only once"
                if self.alone
                else (", asked too few times to rule out chance")
            )
        if self.lead:
            return f", though {self.over} {self.lead.replace(' is ahead', ' came out ahead')}"
        if self.level == "contradicted":
            return f", though {self.over} {self._above()} came out ahead"
        if len(self.firsts) > 1:
            return f"; {self.over} they could not be told apart"
        if self.level == "clear":
            who = "it" if is_most_named else self.name(self.firsts[0])
            return f"; {who} led by more than chance {self.over}"
        first, rivals = self.name(self.firsts[0]), some(self.rivals)
        lead = "its lead" if is_most_named else f"the lead of {first}"
        small = f"{lead} over {rivals} was too small to rule out chance"
        return f"; {f'chance may have put {first} before {rivals}' if is_level else small}"


def _by_cause(group: tuple[int, str]) -> tuple[int, str]:
    order = {"": "", "the way of asking": "a", "the question": "b", "its version": "c"}
    return group[0], order[group[1]]


def quote_beginning(
    whose: str, of: int, votes: dict[str, int], scores: list[int], firsts: list[str]
) -> str:
    """Who named the first product; ``votes`` are first places by name, in order of the ranking."""
    score, own, most = scores[0], votes.get(firsts[0], 0), max(votes.values())
    if len(firsts) > 1:
        who = f"{NUMBERS[of]} AI assistant{'s' * (of != 1)}"
        return (
            f"{who} put {tied_names(firsts)} level at the top with {score} of {5 * of} points each"
        )
    if of == 1:
        return f"the only AI assistant{whose} named {firsts[0]} first"
    if own == of:
        everybody = "both" if of == 2 else "all " + NUMBERS[of]
        return f"{everybody} AI assistants{whose} named {firsts[0]} first"
    points, is_alone = f"{score} of {5 * of}", scores.count(score) == 1
    leading = [name for name in votes if votes[name] == most]
    if own == most:
        who = f"{NUMBERS[own]} of {NUMBERS[of]} AI assistants named {firsts[0]} first"
        had = "it had the most points" if is_alone else "no other had more points"
        return who if len(leading) == 1 else f"{who}, and {had} ({points})"
    had = "the most points" if is_alone else "as many points as any other"
    if most == 1 and not own:
        different = f"{NUMBERS[of]} AI assistants named different products first"
        return f"{different}, none {firsts[0]}, which had {had} ({points})"
    told = [f"{NUMBERS[most]} of {NUMBERS[of]} AI assistants named {leading[0]} first"]
    told += [f"{NUMBERS[most]} {name}" for name in leading[1:]]
    own_votes = NUMBERS[own] if own else "none"
    return f"{', '.join(told)} and {own_votes} {firsts[0]}, which had {had} ({points})"


def in_words(date: str) -> str:
    return dt.date.fromisoformat(date).strftime("%d %B %Y").lstrip("0")
