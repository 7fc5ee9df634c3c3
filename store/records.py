"""The records of data files and history: one frozen struct for each kind.

The same structs read, validate and document the files. Hand-edited files are strict: an unknown
key is an error, so that a typing mistake is never silently ignored. Polls are what we write
ourselves; their JSON keys are camelCase because a line of history is served as it stands.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import force_setattr

from store.text import (
    DOMAIN_PATTERN,
    MAX_SLUG,
    NEVER_NEEDED,
    SLUG_PATTERN,
    URL_RULE,
    ascii_url,
    printable,
)

MAX_NAME = 120
"""Characters of a product's name that a poll can bring."""
MOST_PICKS = 5
"""Picks of an answer at most: so many are asked for."""

_NO_MORE = r"(?!\n)"  # in Python "$" also fits before a last line feed
_INVISIBLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029" + NEVER_NEEDED

# A description is what a message says when a value does not fit, and what editors show. The
# limits are generous (the longest question shipped has 75 characters) and keep pasted documents
# out; 253 is the longest domain name (RFC 1035, section 2.3.4).
Slug = Annotated[
    str,
    Meta(
        pattern=SLUG_PATTERN + _NO_MORE,
        max_length=MAX_SLUG,
        description="a slug: lower-case letters a-z, digits and single hyphens between them",
    ),
]
Line = Annotated[
    str,
    Meta(
        pattern=rf"^(?!\s)[^{_INVISIBLE}]+(?<!\s)${_NO_MORE}",
        max_length=200,
        description="one line of text, without spaces around it or invisible characters",
    ),
]
Prose = Annotated[str, Meta(pattern=r"\S", max_length=20_000, description="text that is not blank")]
Domain = Annotated[
    str,
    Meta(
        pattern=DOMAIN_PATTERN + _NO_MORE,
        max_length=253,
        description="a bare domain in lower case such as zoho.com, without https:// and path",
    ),
]
HttpUrl = Annotated[
    str,
    Meta(
        max_length=500,
        description=URL_RULE,
        extra_json_schema={"format": "iri"},
    ),
]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Natural = Annotated[int, Meta(ge=0)]
Days = Annotated[int, Meta(ge=1, le=3_650)]
MAX_SAMPLES = 5
"""Answers that a series may have: no figure looks at more than an assistant's newest five."""
Samples = Annotated[int, Meta(ge=1, le=MAX_SAMPLES)]
Price = Annotated[float, Meta(ge=0, le=1_000_000)]
MOST_USD = 1e9
"""The most that one poll is said to have cost, whatever its provider states: sums stay finite."""
Variable = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z_][A-Za-z0-9_]*$" + _NO_MORE,
        max_length=100,
        description="the name of an environment variable such as OPENAI_API_KEY, not the key",
    ),
]
PollId = Annotated[
    str,
    Meta(pattern="^[0-9a-f]{16}$" + _NO_MORE, description="the id of a poll: 16 hex digits"),
]

SAMPLE = "sample-"
"""How the request ids of sample assistants begin, and those of no provider."""

# What follows: `due.RETRIED_SOONER`, `poll_states.NOT_COUNTED`, `poll_states.PUBLIC_REASONS`.
FailureKind = Literal[
    "network", "timeout", "http", "rate_limited", "quota", "auth",
    "refusal", "empty", "truncated", "parse", "schema", "interrupted",
]  # fmt: skip
ServedFailure = Literal[FailureKind, "withheld"]
"""The kinds of failure as they are served: no line of history says that it is withheld."""


class DataFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of every hand-edited file: its version and, for editors, its schema."""

    schema: str | UnsetType = field(default=UNSET, name="$schema")
    version: Literal[1]


class Site(DataFile, frozen=True, kw_only=True):
    """``site.json``: the service's own name and rules. Ages are in days, money in US dollars.

    ``samples_per_round`` is how many answers a series takes: those of one assistant in one category
    that are each less than ``poll_every_days`` after the one before. ``samples_at_first`` is how
    many it takes at least where the assistant, its question or its served model is new there.
    """

    name: Line
    base_url: HttpUrl | None = None
    licence: Line = "CC BY 4.0"
    sample: bool = False
    poll_every_days: Days = 7
    samples_per_round: Samples = 1
    samples_at_first: Samples = 1
    stale_after_days: Days = 30
    drop_after_days: Days = 90
    daily_usd: Price | None = None
    hosts: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        _hold_ascii_url(self)


def _hold_ascii_url(record: Site | Assistant) -> None:
    """Hold the base URL in ASCII.

    Raises:
        ValueError: it is not an http or https address; msgspec reports it as a bad value.
    """
    if record.base_url is not None:
        force_setattr(record, "base_url", ascii_url(record.base_url))


class Assistant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One assistant of ``models.json``: its public name, its wire format and its limits.

    Its polls under ``former_names`` are its own; a model of another maker is another assistant.
    ``maker`` is the company behind it, as product files name it.
    ``key_env`` names the environment variable that holds the key; a key itself never stands in a
    file. ``rpm`` is requests per minute; prices are US dollars. With ``batch`` it is asked through
    its provider's queue for batches, with ``tier`` in requests that may take a quarter of an hour,
    both at ``batch_price_factor`` times the prices. store/cli/README.md explains all members.
    """

    name: Line
    former_names: tuple[Line, ...] = ()
    maker: Line | None = None
    api: Literal["responses", "chat", "messages", "gemini", "sample"]
    base_url: HttpUrl | None = None
    model: Line | None = None
    key_env: Variable | None = None
    structured: Literal["json_schema", "json_object", "prompt"] = "json_schema"
    max_output_tokens: Count = 4000
    concurrency: Annotated[int, Meta(ge=1, le=64)] = 4
    rpm: Count = 60
    usd_per_million_input: Price | None = None
    usd_per_million_output: Price | None = None
    usd_per_thousand_searches: Price | None = None
    web_search: bool = False
    batch: bool = False
    batch_price_factor: Annotated[float, Meta(gt=0, le=1)] = 0.5
    tier: Literal["flex"] | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        _hold_ascii_url(self)


class Models(DataFile, frozen=True, kw_only=True):
    """``models.json``: the assistants that are asked, in the order in which they are listed.

    ``as_of`` is the date on which model names and prices were looked up.
    """

    as_of: dt.date | None = None
    models: Annotated[tuple[Assistant, ...], Meta(min_length=1)]


class Category(DataFile, frozen=True, kw_only=True):
    """``categories/<slug>.json``: one question and the words people use for it.

    ``former_questions`` are wordings that mean the same as ``question``: answers to them count.
    ``aliases`` are other names for the thing and short ways to ask for it; ``situations`` say, each
    in other words, when somebody needs it.
    """

    title: Line
    question: Line
    former_questions: tuple[Line, ...] = ()
    topic: Line | None = None
    aliases: tuple[Line, ...] = ()
    situations: tuple[Line, ...] = ()
    nouns: tuple[Line, ...] = ()
    former_slugs: tuple[Slug, ...] = ()

    @property
    def subject(self) -> str:
        """The words after "for" in a verdict: the topic, else the title without "Best".

        >>> Category(version=1, title="Best CRM software", question="What is best?").subject
        'CRM software'
        """
        return self.topic or self.title.removeprefix("Best ")

    def wording(self, question: str) -> str:
        """Return the present question for a former one that means the same; any other as it is."""
        return self.question if question in self.former_questions else question


class Product(DataFile, frozen=True, kw_only=True):
    """``products/<slug>.json``: a product that models name, as a curator knows it."""

    name: Line
    maker: Line | None = None
    domain: Domain | None = None
    domain_is_product: bool = False
    aliases: tuple[Line, ...] = ()
    not_same_as: tuple[Slug, ...] = ()
    former_slugs: tuple[Slug, ...] = ()


class WrittenExperiment(DataFile, frozen=True, kw_only=True):
    """``labs/<slug>.json``: an experiment written up by hand; ``body`` is Markdown."""

    title: Line
    method: Prose
    finding: Prose
    date: dt.date
    body: Prose


class Instrument(DataFile, frozen=True, kw_only=True):
    """``instruments/<id>.json``: all that an assistant was asked with, but the question.

    Polling writes it, once; the id is the start of the SHA-256 of its bytes. ``request`` is the
    body as it is sent, with ``{system}`` and ``{prompt}`` where these two texts stand; in
    ``prompt``, ``{question}`` stands for the question.
    """

    api: str
    model: str | None
    web_search: bool
    structured: str
    system: str
    prompt: str
    request: dict[str, Any]


def instrument_id(data: bytes) -> str:
    """Return the id of the instrument whose file has these bytes."""
    return hashlib.sha256(data).hexdigest()[:12]


class Synonyms(DataFile, frozen=True, kw_only=True):
    """``synonyms.json``: groups of phrases: names of one thing, and ways to say the need of it."""

    synonyms: tuple[Annotated[tuple[Line, ...], Meta(min_length=2)], ...]


class Words(DataFile, frozen=True, kw_only=True):
    """``words.json``: common English words, which search takes literally, and their source."""

    source: Prose
    words: tuple[Line, ...]


class TopicPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a topic: what its categories, named by slug or former slug, have in common."""

    slug: Slug
    title: Line
    categories: Annotated[tuple[Slug, ...], Meta(min_length=1)]


class Topic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shelf for readers who browse; a category may belong to several.

    The home page shows topics of one ``group`` together.
    """

    slug: Slug
    title: Line
    group: Line | None = None
    parts: Annotated[tuple[TopicPart, ...], Meta(min_length=1)]


class Topics(DataFile, frozen=True, kw_only=True):
    """``topics.json``: topics with their parts, in the order in which pages show them."""

    topics: tuple[Topic, ...]


class Withholding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason for which the texts of one poll are not shown, and since when."""

    reason: Line
    date: dt.date


class Withheld(DataFile, frozen=True, kw_only=True):
    """``withheld.json``: poll ids whose texts are not shown and which count nowhere."""

    withheld: dict[PollId, Withholding]


TOPICS = "topics.json"

SINGLE: dict[str, type[DataFile]] = {
    "site.json": Site,
    "models.json": Models,
    "synonyms.json": Synonyms,
    "words.json": Words,
    TOPICS: Topics,
    "withheld.json": Withheld,
}
FOLDERS: dict[str, type[DataFile]] = {
    "categories": Category,
    "products": Product,
    "labs": WrittenExperiment,
    "instruments": Instrument,
}
GOVERNING = ("site.json", "models.json", "withheld.json", TOPICS)
"""Files from which every answer follows: nothing starts without a good version of each."""


# A poll and its parts hold text and numbers only. No cycle can form, so the collector of cycles
# need not look at them (gc=False), which takes a third off the start with a long history.


class Pick(Struct, frozen=True, gc=False):
    """One place in a model's answer, in the model's own spelling; ranks start at 1."""

    rank: int
    product: str
    domain: str | None
    reason: str | None
    fixes: tuple[str, ...]


class NearMiss(Struct, frozen=True, gc=False):
    """A product that a model considered and left out."""

    product: str
    reason: str | None


class Usage(Struct, frozen=True, rename="camel"):
    """The cost of a poll: tokens and web searches as the provider counts them, and US dollars."""

    input_tokens: Natural
    output_tokens: Natural
    usd: Annotated[float, Meta(ge=0, le=MOST_USD)] | None
    searches: Natural | UnsetType = UNSET


class Answer(Struct, frozen=True):
    """A model's answer, cleaned: one to five picks, best first. ``notes`` say what was mended."""

    ranking: tuple[Pick, ...]
    missed: tuple[NearMiss, ...] = ()
    caveat: str | None = None
    notes: tuple[str, ...] = ()


class Failure(Struct, frozen=True):
    """The lack of an answer: a kind for programs, a sentence for people.

    ``excerpt`` is the model's own text, as it was sent, where its beginning should be kept.
    """

    kind: FailureKind
    error: str
    notes: tuple[str, ...] = ()
    excerpt: str | None = None


class Poll(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One line of history: one question put to one model, and what came of it.

    ``polled_at`` is RFC 3339 in UTC, whole seconds. A poll that has not been appended yet has no
    ``id`` and no ``crc``; see :mod:`store.line_codec`. A failed poll has no ``pick``, an empty
    ``ranking``, an ``error`` and a ``failure``; with ``cooldown_until`` it is the reason to leave
    its model alone until then. ``instrument`` is what it was asked with, where that was recorded.
    """

    v: Literal[1] = 1
    id: str = ""
    slug: str
    model: str
    polled_at: str = ""
    question: str
    pick: str | None = None
    ranking: tuple[Pick, ...] = ()
    reason: str | None = None
    missed: tuple[NearMiss, ...] = ()
    caveat: str | None = None
    error: str | None = None
    failure: ServedFailure | None = None
    notes: tuple[str, ...] = ()
    served_model: str | None = None
    request_id: str | None = None
    web_search: bool = False
    instrument: Annotated[str, Meta(pattern=r"^[0-9a-f]{12}\Z")] | UnsetType = UNSET
    usage: Usage | None = None
    latency_ms: Natural | None = None
    cooldown_until: str | UnsetType = UNSET
    withheld: bool | UnsetType = UNSET
    crc: str = ""

    @property
    def succeeded(self) -> bool:
        """True if the poll brought an answer that may be counted."""
        return self.pick is not None

    @property
    def is_invented(self) -> bool:
        """True if a sample assistant answered, which only the id of its request tells for good."""
        return self.request_id is not None and self.request_id.startswith(SAMPLE)


Severity = Literal["error", "warning", "notice"]


class Problem(Struct, frozen=True, order=True):
    """Something wrong in a data file, a folder or history: where, and what to do. Lines start at 1.

    A warning does no harm yet; a notice is only worth knowing.
    """

    file: str
    line: int
    column: int
    message: str
    severity: Severity = "error"

    def __post_init__(self) -> None:
        """Make file and message printable on one line, whatever the file holds."""
        for name in ("file", "message"):
            text = getattr(self, name)
            if not text.isprintable():
                force_setattr(self, name, printable(text))

    def __str__(self) -> str:
        """Return ``file:line:column: message``, the form that editors and compilers use."""
        return f"{self.file}:{self.line}:{self.column}: {self.message}"
