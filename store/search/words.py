"""Words: the tokeniser that titles, synonyms and queries share, word lists, and synonyms."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence

Words = tuple[str, ...]

SHORTEST_STEM = 3
"""Letters that a stem keeps at least. At 4, 1 right hit is lost."""
LONGEST_TEXT = 400
"""Characters of a text that are read, after decomposition; `q` has at most 200 before it."""

_SPOKEN = str.maketrans({"&": " and ", "+": " plus ", "#": " sharp ", "'": "", "\u2019": ""})
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[a-z]+(\d.+)|\d+([a-z].+)")
_PLURALS = (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("s", ""))
_NO_PLURALS = ("ss", "us", "is")
_ENDINGS = ("ing", "er", "or", "ed", "ion", "e")

FUNCTION_WORDS = frozenset(
    """
    a about above after again all almost already also always am an and any anybody anyone anything
    are arent around as at away be became because been before being below between both but by came
    can cannot cant come comes could couldnt did didnt do does doesnt doing done dont down during
    each either else enough etc even ever every everyone everything for from get gets getting give
    go goes going gone got had has hasnt have havent having he her here hers herself him himself his
    how i id if ill im in into is isnt it its itself ive just keep keeps kind let lets like likes
    lot lots make makes making many may maybe me might mine more most much must my myself near need
    needs neither never no nobody none nor not nothing now of off often oh ok on once one ones only
    onto or other others our ours out over own per please put quite rather really right same see
    shall she should shouldnt since so some somebody someone something sometimes still stop such
    take than thanks that thats the their them then there these they thing things this those though
    through till to together too try trying under until up upon us use used uses using very via vs
    want wants was wasnt way we well went were weve what whats when where which while who whos whom
    whose why will with within without wont would yet you your youre yours
    """.split()  # noqa: SIM905 - a list in quotes and commas would fill pages
)
"""Words that carry grammar and no topic."""

ARTICLES = frozenset(("a", "an", "my", "our", "the", "your"))
"""Words after which a word is a noun and no name: "the sky", "my swift"."""

SHOPPING_WORDS = frozenset(
    """
    advice afford alternative alternatives app apps available awesome bad best better big brand
    brands buy buying cancel cheap cheaper cheapest choice choose com companies company compare
    compared comparison complaint complaints cost costs coupon current currently customer day
    days deal deals decent difference discount download easiest easy excellent expensive
    favorite favourite fee fees find fine fix free friendly good great help helps home honest
    http https ideal know last lately legit list little login long look looking money month
    monthly months new nice old online opinion opinions org overpriced people pick picks popular
    price prices pricing problem problems product products quality quick quote quotes rank
    ranked ranking ranks rated rating ratings real recent recently recommend recommendation
    recommendations recommended reddit refund reliable review reviews safe sell share shop show
    sign similar simple site sites small solid start store stuff subscription suggest suggestion
    suggestions support tell think time times tool tools top tried trust trusted
    trustworthy website websites week weeks wondering work working works worth www year years
    yesterday
    2023 2024 2025 2026 2027
    """.split()  # noqa: SIM905
)
"""Words in which people ask for a recommendation, whatever it is about."""

BEFORE_NAMES = frozenset(
    """
    about are at by can could did do does from had has have is on or should than tried use using
    versus vs was were will would
    """.split()  # noqa: SIM905
)
"""Words after which a bare noun is a name: "is swift fast", "than swift"; not "a swift"."""

QUALIFIERS = frozenset(
    """
    afford alternative alternatives cancel cheap cheaper cheapest complaint complaints coupon
    difference discount download easiest easy expensive fee fees fix free friendly help login new
    old overpriced quality quick refund reliable safe share sell simple small solid subscription
    support trustworthy used
    """.split()  # noqa: SIM905
)
"""Shopping words that ask for something of its own kind, or for something else."""

FILLERS = FUNCTION_WORDS | SHOPPING_WORDS

PREPOSITIONS = frozenset(("for", "with", "in", "on", "of", "to", "at", "without", "from", "and"))
"""Words that end a noun phrase: what stands before the first of them names the thing."""

PURPOSES = frozenset(("for", "with", "without", "under"))
"""Prepositions that end the name of the thing in a title."""

SOFTWARE_NOUNS = frozenset(("platform", "program", "software", "solution", "system", "tool"))
"""Nouns that a query may leave out: CRM is CRM software, but pizza no pizza chain."""
GENERIC_NOUNS = SOFTWARE_NOUNS | {
    "app", "brand", "chain", "company", "provider", "service", "shop", "site", "store",
}  # fmt: skip
"""Nouns that name no thing without the one before: "CRM software" is a CRM."""


# An atomic group, and a bounded repetition below, keep a hostile query from backtracking for hours.
# Who asks about rankings also calls assistants by the names of the best known.
_AI = r"(?:(?:ai )?(?:assistants?|models|chatbots|llms)|chatgpt|claude|gemini|grok|ais?)"
_AIS = rf"(?:(?:most|all|the|of|these|four|4) )*{_AI}(?:(?:,| and|,? or) {_AI})*"
_INTRODUCTION = (
    r"^(?>(?:what|which|when|who|how|did|does|do|has|have|is|are|was|were|show|tell|give|me|us|the|"
    rf"any|anything|ever|latest|last|of|polls?|history|{_AI}) )*(?:polls|history|answers|changed?|"
    r"changes|fail(?:s|ed)?|caveats|news|ahead|leads?|leader|says?|answer|pick|name|top \w+)"
    r"(?: recently| lately| (?:this|last) \w+)? (?:for|in|of|on|about)\b(?: the best\b)?"
)
"""All before the thing, as in "which polls failed last week for VPN"."""
_ONE_ANSWER = (
    r"\bdo (?:they|all|all four|all of them) (?:all )?(?:dis)?agree (?:on|about)\b|"
    r"^what (?:do|does|did) (?!you |i |we |it )[\w.-]+(?: [\w.-]+)? (?:say|answer|recommend|pick|"
    r"name|choose|think|rank)(?: first)?(?: about| for| of| on)?\b"
)
"""Who said it, as in "what did Model C say about VPN"."""
_LOWER_PLACE = (
    r"\b(?:who is |what is |which is )?(?:the )?(?:second|third|fourth|fifth|2nd|3rd|4th|5th|next)"
    r"(?:[- ]best\b| (?:place )?(?:for|in|among)\b)|\b(?:the )?runner[- ]?up(?: for| in| among)?\b"
)
"""A place below the first, as in "second best VPN"."""
_SECOND_QUESTION = (
    r",? and (?:how (?:sure|certain|confident|clear|firm)|why|who (?:says|disagrees|named)|"
    r"is (?:it|that|the \w+) (?:\w+ )?(?:sure|clear|certain|close|tied|firm)|"
    r"their (?:points|scores|reasons))\b[^.?!]*(?=\W*$)"
)
"""What follows the thing, as in "best VPN, and how sure are they"."""
MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|march|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
"""A month's name."""

_TIME = (
    r"(?: (?:right now|now|today|currently|recently|lately|at the moment|these days|change|"
    r"(?:last )?updated|(?:this|last) (?:week|month|year)|on (?:\d\d? \w{3,9}|\w{3,9} \d\d?)|"
    r"(?:(?:in|on|since|before|until) )?(?:(?:early|mid|late) )?(?:\d\d?(?:st|nd|rd|th)? )?"
    rf"{MONTH}(?: \d\d?(?:st|nd|rd|th)?)?(?:,? \d{{4}})?|"
    r"\w+ (?:days?|weeks?|months?|years?) ago)){1,4}(?=\W*$)"
)
"""When, at the end."""
_ABOUT_RANKINGS = re.compile(
    r"\b(?:is|are) there (?:still )?(?:any |an? )?(?:clear |real )?"
    r"(?:ties?|winners?|leaders?|favou?rites?|consensus) (?:for|in|at|on|between|about)\b"
    r"|\bhow (?:sure|certain|confident|clear|close|firm) (?:is|are)(?: (?:you|we) (?:of|about))?\b"
    r"|(?<!\bwhich )(?<!\bwhat )(?<!\bai )"  # "which models rank first" is about models
    rf"\b(?:(?:do|does|did) )?{_AIS} (?:recommends?|(?:dis)?agree(?: (?:on|about))?|says?|names?|"
    r"picks?|chooses?|prefers?|ranks?|thinks? (?:of|about))\b(?: first)?"
    r"|\b(?:in )?(?:which|what) (?:rankings?|categor(?:y|ies)|lists?) (?:is|are|does|do)\b"
    r"|\b(?:according to|(?:is |are )?(?:most )?(?:recommended |rated |picked |named )?by)"
    rf" {_AIS}(?=\W*$)"
    r"|\b(?:is|are|came|comes?|ranks|ranked) (?:the best|best|first|on top|number one)(?=\W*$)"
    r"|^why (?:is|are|was|were) (?:the )?(?:(?:top|leading|winning|first) )?(?=.* first\W*$)"
    r"|(?: still| ranked)*(?<!\bmy) first(?=\W*$)"
    r"|\branks? higher(?=\W*$)|\bsurely\b|\b(?:for )?sure(?=\W*$)"
    r"|\b(?:on|as of|at|since) \d{4}-\d\d-\d\d\b|\b(?:is it|it is|it.s) a tie (?:for|in|at)\b"
    rf"|\bhow many {_AIS} (?:answered|were asked|rank|name|pick|agree)"
    r"(?: for| about| in| on)?(?: the same)?\b|^compare the top \w+ (?:of |in |for )?"
    r"|\b(?:which|what) (?:brand|product|maker|company|model|one) is\b(?= (?:the )?most)"
    rf"|{_INTRODUCTION}|{_ONE_ANSWER}|{_LOWER_PLACE}|{_SECOND_QUESTION}|{_TIME}",
    re.IGNORECASE,
)
"""Words that ask about a ranking, and say nothing of what is ranked."""
_FIRST = re.compile(
    r"(.*)(?:\b(?:best|most recommended|(?:top|highest)[- ]rated|top \d\d?|number one)\b|#1|"
    r"\b(?:leads?|leader|winner|first|second|third|runner[- ]up|tied|consensus|verdict|ranking) "
    r"(?:in|for|among|of|on|about)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""What stands before the last word for "first", which the thing asked for follows."""


def subject_of(query: str) -> str:
    """Return a query without words that only ask about its ranking.

    >>> subject_of("which VPN do most AI assistants recommend")
    'which VPN'
    """
    subject = _ABOUT_RANKINGS.sub("", query).strip()
    return query if FUNCTION_WORDS.issuperset(words_of(subject)) else subject


def split_at_best(query: str) -> tuple[Words, Words]:
    """Return the words before the last "best" of a query, and the thing after it by its bare name.

    >>> split_at_best("is Halcira really the best password manager to buy")
    (('is', 'halcira', 'really', 'the'), ('password', 'manager'))
    """
    first = _FIRST.match(query)
    words = words_of(query[first.end() :] if first else query)
    telling = [i for i, word in enumerate(words) if word not in FILLERS or word in QUALIFIERS]
    end = telling[-1] + 1 if telling and purpose_of(words) == len(words) else len(words)
    return words_of(first[1]) if first else (), words[telling[0] : end] if telling else ()


def words_of(text: str) -> Words:
    """Return the plain words of a text: no case, marks or punctuation, and no leading "best".

    >>> words_of("Best café-bar & Grill"), words_of("C++")
    (('cafe', 'bar', 'and', 'grill'), ('c', 'plus', 'plus'))
    """
    folded = unicodedata.normalize("NFKD", text.translate(_SPOKEN))[:LONGEST_TEXT].casefold()
    if not folded.isascii():
        folded = "".join(letter for letter in folded if not unicodedata.combining(letter))
    words = tuple(_WORD.findall(folded))
    return words[1:] if len(words) > 1 and words[0] == "best" else words


def singular(word: str) -> str:
    """Return one form that the singular and the plural of an English word share.

    >>> singular("batteries"), singular("boxes"), singular("bus")
    ('battery', 'box', 'bus')
    """
    if word.endswith("s") and len(word) > SHORTEST_STEM and not word.endswith(_NO_PLURALS):
        for plural, ending in _PLURALS:
            if word.endswith(plural):
                return word.removesuffix(plural) + ending
    return word


def purpose_of(words: Words) -> int:
    """Return the position from which a title says what the thing is for, or its end.

    Other prepositions stand in names of things: "print on demand", "2 in 1".

    >>> purpose_of(("water", "filter", "for", "hiking"))
    2
    """
    return next((i for i, word in enumerate(words) if i and word in PURPOSES), len(words))


def head_of(words: Words) -> int:
    """Return the position of the head noun of a title: the thing, before what it is for.

    >>> head_of(("water", "filter", "for", "hiking")), head_of(("crm", "software"))
    (1, 0)
    """
    end = purpose_of(words)
    is_generic = end > 1 and singular(words[end - 1]) in GENERIC_NOUNS
    return end - 2 if is_generic else end - 1


def root(word: str) -> str:
    """Return the stem that related words share.

    >>> root("journaling") == root("journals"), root("counter")
    (True, 'count')
    """
    stem = singular(word)
    if stem.endswith(_ENDINGS):
        for ending in _ENDINGS:
            if stem.endswith(ending) and len(stem) > len(ending) + SHORTEST_STEM:
                stem = stem.removesuffix(ending)
                break
    return stem[:-1] if len(stem) > SHORTEST_STEM + 1 and stem[-1] == stem[-2] else stem


def model_part(word: str) -> str | None:
    """Return what follows the first digits or letters of a model number.

    >>> model_part("1000xm5"), model_part("sofa")
    ('xm5', None)
    """
    match = _PART.fullmatch(word)
    return (match[1] or match[2]) if match else None


class SynonymGroups:
    """Groups of phrases, found in any text that holds all the words of one of them.

    A phrase is a name of the thing or what those who need it say. Its words may stand scattered and
    in any order: "my flat needs someone to clean it" mentions "clean flat".
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        """Take groups of interchangeable phrases."""
        self._words: dict[str, list[int]] = defaultdict(list)
        self._phrases: dict[str, list[tuple[frozenset[str], int]]] = defaultdict(list)
        self.groups = sorted(map(sorted, groups))
        for group, phrases in enumerate(self.groups):
            for words in map(words_of, phrases):
                if len(words) == 1:
                    self._words[singular(words[0])].append(group)
                elif words:
                    roots = _telling_roots(words)
                    # The longest root is in few other phrases, so that few are looked at.
                    self._phrases[max(roots, key=len)].append((roots, group))

    def mentioned(self, words: Words) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each group the words mention, with the positions of the words that mention it."""
        positions: dict[str, int] = {}
        for position, word in enumerate(words):
            positions.setdefault(root(word), position)
            for group in self._words.get(singular(word), ()):
                yield group, (position,)
        for stem in positions:
            for roots, group in self._phrases.get(stem, ()):
                if positions.keys() >= roots:
                    yield group, tuple(sorted(map(positions.__getitem__, roots)))

    def phrases(self, title: str) -> list[list[str]]:
        """Return the phrases of each group that a title mentions."""
        return [self.groups[group] for group in {g for g, _ in self.mentioned(words_of(title))}]


def _telling_roots(words: Words) -> frozenset[str]:
    """Return the roots of a phrase without function words, if at least two words are left."""
    telling = [word for word in words if word not in FUNCTION_WORDS]
    return frozenset(root(word) for word in (telling if len(telling) > 1 else words))
