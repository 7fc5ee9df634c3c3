"""The sentences people quote: verdicts, consensus and disagreement."""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from store.rankings.certainty import FEWEST_DAYS, Level
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import PLACES, CountedAnswer, Entry
from store.rankings.names import ProductId
from store.rankings.rounds import LeaderChange
from store.rankings.runs import VersionChange
from store.records import Site

MAX_QUOTE_CHARS = 200
"""Characters of a model's own words in a verdict at most."""

MAX_NAMED = 4
"""Contenders that a sentence names before it counts the rest: as many as an ear keeps."""

LEVELS: Mapping[Level, str] = {
    "clear": "Clear lead",
    "open": "Too close to call",
    "contradicted": "Unsettled",
    "unmeasured": "Asked too few times",
}
"""Levels as people read them."""

MOST_TIED, NAMED_OF_MORE = 3, 2
"""Tied products that are all named; how many are of more, before "and n more"."""

BOTH = 2
"""The number for which English says "both", not "all"."""

MAX_VERSION_CHARS = 60
"""Characters of a provider's name for a version that a sentence tells at most."""

MAX_EXCERPT_CHARS = 280
"""Characters of a reason in a merged ranking at most; published, ``perModel`` has it uncut."""

Name = Callable[[ProductId], str]
"""The function that gives a product's name."""

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_SINCE = {
    "instrument": " since the way of asking changed",
    "record": " since it is recorded how it is asked",
    "question": " since the question changed",
    "version": " since its version changed",
}
"""Reasons why a run began anew, at the end of a sentence."""

_OWN_STOP = re.compile(r"(?<!\.)\.$")  # not the last of three dots
_ENDED = re.compile("[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\\]]*$")


def cut(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters, cut on a word, the ellipsis included.

    >>> cut("quiet, small and cheap", 14)
    'quiet, small…'
    """
    if len(text) <= limit:
        return text
    start = text[: limit - 1]
    if text[limit - 1] != " " and " " in start:
        start = start[: start.rindex(" ")]
    return start.rstrip(" .,;:-\u2013\u2014") + "…"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    >>> listed(["A"]), listed(["A", "B"]), listed(["A", "B", "C"])
    ('A', 'A and B', 'A, B and C')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def some(words: Sequence[str], most: int = MAX_NAMED, shown: int | None = None) -> str:
    """Return words as a list; of more than ``most`` the first ones and how many are left.

    >>> some(["a", "b", "c"], 3, 2), some(["a", "b", "c", "d"], 3, 2)
    ('a, b and c', 'a, b and 2 more')
    """
    if len(words) <= most:
        return listed(words)
    first = words[: shown or most]
    return listed([*first, f"{len(words) - len(first)} more"])


def number_in_words(number: int) -> str:
    """Return a number in words up to ten, else in digits.

    >>> number_in_words(3), number_in_words(1425)
    ('three', '1,425')
    """
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def level_in_words(board: Leaderboard) -> str:
    """Return how sure a ranking's first place is, in two to four words."""
    return "Asked only once" if board.certainty.is_asked_once else LEVELS[board.certainty.level]


def plural(number: int, what: str) -> str:
    """Return a number and what it counts, in the plural unless there is one."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def day_in_words(day: str) -> str:
    """Return a UTC day, ``YYYY-MM-DD``, as people write it.

    >>> day_in_words("2026-11-09")
    '9 November 2026'
    """
    date = dt.date.fromisoformat(day)
    return f"{date.day} {date:%B} {date.year}"


def category_verdict(board: Leaderboard, name: Name, site: Site, source: str) -> str:
    """Return the dated one-sentence answer; ``source`` is the page with site and licence."""
    top = board.entries[0]
    models = listed(board.models)
    rank = "ranks" if len(board.counted) == 1 else "collectively rank"
    tied = [name(product) for product in board.winners]
    first = some(tied, MOST_TIED, NAMED_OF_MORE)
    votes = board.votes
    # Where the wording has a "though" already, the doubt is joined by "and".
    is_behind = not top.tied and votes[top.product] < max(votes.values())
    doubt = _certainty_clause(board, name, link="and" if is_behind else "though")
    claim = (
        f"As of {board.updated}, {models} {rank} {first} #1 for {board.subject} on "
        f"{site.name} — {agreement_clause(board, name, site.stale_after_days)}{doubt}"
    )
    sentences = [claim]
    if top.reason:
        whose = f" for {tied[0]}" if len(tied) > 1 else ""
        sentences.append(f"The models' case{whose}: {_quoted(top.reason)}")
    if caveat := _caveat(board.counted, top.product):
        sentences.append(f"The models' main caveat: {_quoted(caveat)}")
    if len(board.entries) > len(tied):
        other = board.entries[len(tied)]  # the first below the tie
        because = f" — {_quoted(other.reason)}" if other.reason else ""
        sentences.append(f"The strongest alternative is {name(other.product)}{because}")
    return " ".join([*map(_ended, sentences), f"Source: {source}."])


def agreement_clause(board: Leaderboard, name: Name, stale_after: int) -> str:
    """Return how the #1 came about, in words: the first phrase that fits, in a fixed order."""
    of = len(board.counted)
    top = board.entries[0]
    score = f"{top.score} of {PLACES * of} points"
    if top.tied:
        return f"a tie on {score}"
    if of == 1:
        return f"the only model {counted_clause(board)}"
    votes = board.votes
    if votes[top.product] == of:
        return _unanimity(board, stale_after)
    most = max(votes.values())
    if votes[top.product] == most and list(votes.values()).count(most) == 1:
        return f"{most} of {of} models rank it first"
    lead = f"it leads on combined score, {score}"
    if level := level_on_points(board):
        rivals = some([name(product) for product in level], MOST_TIED, NAMED_OF_MORE)
        lead = f"it has as many points as {rivals}, {score}, and is first by the rule for a tie"
    if votes[top.product] < most:
        other = next(e.product for e in board.entries if votes[e.product] == most)
        return f"{lead}, though {most} of {of} models rank{_verb_ending(most)} {name(other)} first"
    return f"no product has most first places: {lead}"


def level_on_points(board: Leaderboard) -> list[ProductId]:
    """Return the other products that have as many points as the #1."""
    return [e.product for e in board.entries[1:] if e.score == board.entries[0].score]


def counted_clause(board: Leaderboard) -> str:
    """Return the clause on the counted assistants: "that answered", or "whose answers count".

    The second where one that is not counted has answered, too.
    """
    if any(answer.model in board.missing for answer in board.log):
        return f"whose answer{' counts' if len(board.counted) == 1 else 's count'}"
    return "that answered"


def _certainty_clause(
    board: Leaderboard, name: Name, who: str = "each", link: str = "though"
) -> str:
    """Return how sure the #1 is, as the end of a clause; ``who`` was asked.

    The ``link`` to what speaks against it is another one where the clause has a "though" already.
    """
    sure, firsts = board.certainty, board.winners
    over = f"over {plural(sure.answers, 'answer')}"
    if sure.level == "unmeasured":
        if not sure.is_asked_once:
            return ", asked too few times to tell"
        return f", {who} asked once" if len(sure.runs) > 1 else ", asked once"
    if leads := _lead_in_tie(board, name):
        return f", though {over} {leads}"
    if sure.level == "contradicted":
        return f", {link} {over} {name(sure.ahead_of_first[0])} is ahead"
    if sure.level == "clear":
        return f", a clear lead {over}"
    rivals = [name(product) for product in sure.rivals if product not in firsts]
    return f", too close to call with {some(rivals)}" if rivals else f", too close to call {over}"


def _lead_in_tie(board: Leaderboard, name: Name) -> str | None:
    """Return which product is ahead of which of those that the latest answers put level."""
    sure, firsts = board.certainty, board.winners
    behind = [name(product) for product in firsts if product not in sure.contenders]
    if len(firsts) == 1 or not sure.leader or not behind:
        return None
    return f"{name(sure.leader)} is ahead of {some(behind)}"


def quote(board: Leaderboard, name: Name, site: Site) -> str:
    """Return one sentence for people, to cite a category's ranking with."""
    title = board.category.title
    request = "Asked for the best " + title.removeprefix("Best ")
    if board.next_question or not title.startswith("Best "):
        request = f"Asked “{board.question}”"
    invented = "invented sample data, " if site.sample else ""
    where = f"({site.name}, {invented}{day_in_words(board.updated)})"
    return f"{request}, {who_named_first(board, name)}{_certainty_in_quote(board, name)} {where}."


def who_named_first(board: Leaderboard, name: Name) -> str:
    """Return how many assistants named the #1 first, and what else put it there."""
    of, top = len(board.counted), board.entries[0]
    top_name = name(top.product)
    points = f"{top.score} of {PLACES * of}"
    if top.tied:
        tied = some([name(product) for product in board.winners], MOST_TIED, NAMED_OF_MORE)
        who = f"{number_in_words(of)} AI assistant{'' if of == 1 else 's'}"
        return f"{who} put {tied} level at the top with {points} points each"
    votes = board.votes
    own, most = votes[top.product], max(votes.values())
    if own == of:
        counted = f" {counted_clause(board)}" if board.missing or of == 1 else ""
        everybody = "both" if of == BOTH else f"all {number_in_words(of)}"
        who = f"{everybody} AI assistants" if of > 1 else "the only AI assistant"
        return f"{who}{counted} named {top_name} first"
    level = level_on_points(board)
    had = f"{'as many points as any other' if level else 'the most points'} ({points})"
    if not own and most == 1:
        different = f"{number_in_words(of)} AI assistants named different products first"
        return f"{different}, {'neither' if of == BOTH else 'none'} {top_name}, which had {had}"
    # Who is named first by more assistants comes first in the sentence, too.
    leading = [entry.product for entry in board.entries if votes[entry.product] == most]
    first, *others = leading if own < most else [top.product]
    who = (
        f"{number_in_words(most)} of {number_in_words(of)} AI assistants named {name(first)} first"
    )
    if leading == [top.product]:
        return who
    who = ", ".join([who, *(f"{number_in_words(most)} {name(product)}" for product in others)])
    if own < most:
        own_votes = number_in_words(own) if own else "none"
        return f"{who} and {own_votes} {top_name}, which had {had}"
    return f"{who}, and {'no other had more' if level else 'it had the most'} points ({points})"


def _certainty_in_quote(board: Leaderboard, name: Name) -> str:
    """Return how sure the #1 was, as the end of a quote."""
    sure, firsts = board.certainty, board.winners
    over = f"over {plural(sure.answers, 'answer')}"
    rivals = [name(product) for product in sure.rivals if product not in firsts]
    if sure.level == "unmeasured":
        everybody = "each assistant" if len(firsts) > 1 else "each"
        once = f"; {everybody if len(sure.runs) > 1 else 'it'} was asked only once"
        return once if sure.is_asked_once else ", asked too few times to rule out chance"
    if leads := _lead_in_tie(board, name):
        return f", though {over} {leads.replace(' is ahead', ' came out ahead')}"
    if sure.level == "contradicted":
        return f", though {over} {name(sure.ahead_of_first[0])} came out ahead"
    if len(firsts) > 1:
        return f"; {over} {'neither' if len(firsts) == BOTH else 'none'} led by more than chance"
    top, is_most_named = name(firsts[0]), board.votes[firsts[0]] == max(board.votes.values())
    if sure.level == "open":
        lead = "its lead" if is_most_named else f"the lead of {top}"
        small = f"{lead} over {some(rivals)} was too small to rule out chance"
        level = f"chance may have put {top} before {some(rivals)}"
        return f"; {level if level_on_points(board) else small}"
    return f"; {'it' if is_most_named else top} led by more than chance {over}"


def product_verdict(
    board: Leaderboard,
    entry: Entry,
    name: Name,
    *,
    site: str,
    leaderboards: int,
    source: str,
) -> str:
    """Return the dated one-sentence answer for a product, from the ranking that speaks for it."""
    level = [other.product for other in board.entries if other.place == entry.place]
    tied_with = [name(product) for product in level if product != entry.product]
    tie = f", level with {some(tied_with)}," if tied_with else ""
    is_first = entry.product in board.winners
    sure = _certainty_clause(board, name, "each assistant") if is_first else ""
    if not is_first and entry.product in board.certainty.ahead_of_first:
        sure = ", though ahead of its #1 by more than chance over all comparable answers"
    also = f" and appears on {leaderboards} leaderboards" if leaderboards > 1 else ""
    because = f" — {_quoted(entry.reason)}" if entry.reason else ""
    claim = (
        f"{name(entry.product)} is ranked #{entry.place} of {len(board.entries)}{tie} for "
        f"{board.subject} on {site}{sure}{',' if sure and also else ''}{also}{because}"
    )
    return f"As of {board.updated}, {_ended(claim)} Source: {source}."


def consensus(board: Leaderboard, name: Name) -> str | None:
    """Return who agrees on #1, when more than half do."""
    agreement = board.agreement
    if agreement is None or agreement.label == "split":
        return None
    product, of = name(agreement.product), agreement.of
    who = _all(of).capitalize() if agreement.label == "unanimous" else f"{agreement.votes} of {of}"
    return f"{who} models rank {product} #1."


def disagreement(board: Leaderboard, name: Name) -> str | None:
    """Return who picked what, when not all picked the same; most votes first."""
    votes = board.votes
    if len(votes) < 2:  # noqa: PLR2004 - it takes two to differ
        return None
    picks = [entry.product for entry in board.entries if entry.product in votes]
    picks.sort(key=lambda product: -votes[product])  # of equals the higher one, for it is stable
    sides = []
    for product in picks:
        models = [answer.model for answer in board.counted if answer.answer.first == product]
        sides.append(f"{listed(models)} rank{_verb_ending(len(models))} {name(product)} #1")
    return "; ".join(sides) + "."


def certainty_sentence(board: Leaderboard, name: Name) -> str:
    """Return how sure the published #1 is, as a sentence of its own."""
    sure, firsts = board.certainty, board.winners
    over = f"over {plural(sure.answers, 'answer')}"
    if sure.level == "unmeasured":
        return _too_few(board)
    tied = [name(product) for product in firsts]
    if len(tied) > 1:
        leads = _lead_in_tie(board, name)
        return (
            f"Tied: the latest answers put {listed(tied)} level{f'; {over} {leads}' * bool(leads)}."
        )
    if sure.level == "contradicted":
        return (
            f"Unsettled: the latest answers put {tied[0]} first, but {over} "
            f"{name(sure.ahead_of_first[0])} is ahead of it by more than chance."
        )
    if sure.level == "clear":
        return f"Clear lead: {over} {tied[0]} is ahead of every other product by more than chance."
    rivals = [name(product) for product in sure.rivals if product not in firsts]
    return f"Too close to call: {over} {some([*tied, *rivals])} cannot be told apart."


def _too_few(board: Leaderboard) -> str:
    """Return who has answered on too few days for anything to be measured."""
    sure = board.certainty
    if not sure.began_anew and max(sure.runs.values()) == 1:
        return "Asked only once." if sure.is_asked_once else "Asked on one day only."
    few = {model: days for model, days in sure.runs.items() if days < FEWEST_DAYS} or sure.runs
    groups: dict[tuple[int, str], list[str]] = {}
    for model, days in few.items():
        groups.setdefault((days, sure.renewed.get(model, "")), []).append(model)
    parts = []
    for (days, renewal), models in sorted(groups.items()):
        on, since = f"on {number_in_words(days)}", _SINCE.get(renewal, "")
        if len(models) > 1:
            on, since = f"{on} each", since.replace("its version", "their versions")
        parts.append(f"{listed(models)} {on}{since}")
    return f"Asked on too few days to tell: {'; '.join(parts)}."


def version_change(change: VersionChange) -> str:
    """Return that another version of an assistant answered."""
    return f"{change.model} changed {_versions(change)}."


def asked_anew(models: Sequence[str], *, is_known: bool) -> str:
    """Return that assistants are asked with another instrument; nobody may know the one before."""
    verb = "is" if len(models) == 1 else "are"
    what = "changed" if is_known else "is recorded from here on"
    return f"How {listed(models)} {verb} asked {what}; earlier answers are not compared with these."


def asked(board: Leaderboard) -> str:
    """Return how the answers that count were asked for: over the APIs, with web search or not."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for answer in board.counted:
        poll = answer.answer.poll
        if not poll.is_invented:  # some assistants search unbidden
            sides[poll.web_search or bool(poll.usage and poll.usage.searches)].append(answer.model)
    on, off = sides[True], sides[False]
    if on and off:
        return f"Asked over the APIs, web search on for {listed(on)}, off for {listed(off)}."
    if not (on or off):
        return "Nobody was asked: sample assistants invented the answers."
    return f"Asked over the APIs, web search {'on' if on else 'off'}."


def leader_change(change: LeaderChange, name: Name) -> str:
    """Return that another product leads by more than chance, and what that coincides with."""
    cause = f"; this {coincidence(change.cause)}" if change.cause else ""
    return (
        f"over the last {change.answers} answers {name(change.after)} leads in place of "
        f"{name(change.before)}, by more than chance{cause}."
    )


def coincidence(version: VersionChange) -> str:
    """Return with which change of a version something coincides."""
    return f"coincides with {version.model}'s change {_versions(version)}"


def _versions(change: VersionChange) -> str:
    return f"from {cut(change.before, MAX_VERSION_CHARS)} to {cut(change.after, MAX_VERSION_CHARS)}"


def _unanimity(board: Leaderboard, stale_after: int) -> str:
    stale = sum(answer.stale for answer in board.counted)
    who = _all(len(board.counted))
    if board.missing:
        who += f" {counted_clause(board)}"
    elif not stale:
        who += " models"
    old = f" ({plural(stale, 'answer')} over {stale_after} days old)" if stale else ""
    return f"{who} rank it first{old}"


def _all(number: int) -> str:
    return "both" if number == BOTH else f"all {number}"


def _caveat(counted: Iterable[CountedAnswer], product: ProductId) -> str | None:
    polls = (answer.answer.poll for answer in counted if answer.answer.first == product)
    return next((poll.caveat for poll in polls if poll.caveat), None)


def _quoted(text: str) -> str:
    """Return a model's words in quotation marks, without the full stop that the sentence brings."""
    return f"“{cut(_OWN_STOP.sub('', text), MAX_QUOTE_CHARS)}”"


def _ended(sentence: str) -> str:
    """Return a sentence with a full stop, unless it ends in punctuation.

    >>> _ended("It is cheap"), _ended("Is it cheap?")
    ('It is cheap.', 'Is it cheap?')
    """
    return sentence if _ENDED.search(sentence) else f"{sentence}."


def _verb_ending(number: int) -> str:
    """Return the ending of a verb in the third person."""
    return "s" if number == 1 else ""
