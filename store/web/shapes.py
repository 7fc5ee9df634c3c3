"""The wire shapes: one struct for each JSON object that readers get, and its schema.

Names and types of published fields never change; objects may gain fields (store/README.md,
Answers).
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from store.rankings.agreement import Label
from store.rankings.certainty import Level

Date = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d{2}-\d{2}$",
        description="UTC date, YYYY-MM-DD.",
        extra_json_schema={"format": "date"},
    ),
]
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
Time = Annotated[
    str,
    Meta(
        pattern=TIME_PATTERN,
        description="RFC 3339 time in UTC, whole seconds.",
        extra_json_schema={"format": "date-time"},
    ),
]
URI = {"format": "uri"}
Fraction = Annotated[float, Meta(ge=0, le=1)]
Interval = Annotated[
    tuple[float, ...],
    Meta(min_length=2, max_length=2, description="95 % interval: its lower and its upper end."),
]
RankRange = Annotated[
    tuple[int, ...],
    Meta(
        min_length=2,
        max_length=2,
        description="Best and worst rank that the runs leave possible: one more than the products "
        "ahead of it, and all that are named less those that it is ahead of. Each holds by itself; "
        "runs may name more products than are in the ranking.",
    ),
]
LevelSentence = Annotated[
    str,
    Meta(description="How sure that category's #1 is, in words. Tell it unless clear."),
]
OwnMaker = Annotated[
    bool, Meta(description="Recommended by an assistant of the company that makes it.")
]
CertaintyLevel = Annotated[
    Level,
    Meta(
        description="unmeasured: a model's run has under three days, or all together under twelve. "
        "clear: over the runs the #1 is ahead of every other product by more than chance, and not "
        "tied. open: it cannot be told apart from others. contradicted: another product is ahead "
        "of it by more than chance."
    ),
]
ModelRanks = Annotated[
    dict[str, int],
    Meta(description="Rank by model name; only the models that ranked the product are keys."),
]
Verdict = Annotated[
    str,
    Meta(description="Dated one-sentence answer with its source. Quote it verbatim when citing."),
]
Api = Annotated[str, Meta(description="Address of the full record.", extra_json_schema=URI)]
Page = Annotated[
    str,
    Meta(description="Address of the page to link when republishing.", extra_json_schema=URI),
]


class JsonObject(Struct, frozen=True, kw_only=True, rename="camel"):
    """A JSON object on the wire; snake_case in Python, camelCase in JSON."""


class ProductReference(JsonObject, frozen=True, kw_only=True):
    """A product, by name and slug."""

    product: Annotated[str, Meta(description="Product name.")]
    slug: Annotated[str, Meta(description="Product slug.")]


class AnswerShare(JsonObject, frozen=True, kw_only=True):
    """A share of the assistants' windowed answers."""

    named: Annotated[int, Meta(ge=0, description="Answers that do.")]
    of: Annotated[int, Meta(ge=1, description="Answers in all windows.")]
    share: Annotated[float, Meta(ge=0, le=1, description="The mean of the assistants' shares.")]
    interval: Interval


class Certainty(JsonObject, frozen=True, kw_only=True):
    """How far the first place can be trusted: the assistants' comparable answers."""

    level: CertaintyLevel
    sentence: Annotated[str, Meta(description="The level in words. Tell it with the verdict.")]
    answers: Annotated[int, Meta(ge=1, description="All answers in the runs.")]
    runs: Annotated[
        dict[str, int],
        Meta(
            description="By model, on how many days it gave its last answers in a row to this "
            "question, asked in the same way and by the same version: at most 260."
        ),
    ]
    from_: Annotated[Date, Meta(description="Day of the oldest answer compared.")] = field(
        name="from"
    )
    to: Annotated[Date, Meta(description="Day of the newest answer compared.")]
    leader: Annotated[
        ProductReference | None, Meta(description="The product with the most mean points.")
    ]
    contenders: Annotated[
        list[ProductReference],
        Meta(description="The leader, and all that it is not ahead of by more than chance."),
    ]


class RankedEntry(JsonObject, frozen=True, kw_only=True):
    """A place in the merged ranking."""

    rank: Annotated[int, Meta(ge=1, description="Position in the merged ranking, from 1.")]
    product: Annotated[str, Meta(description="Product name.")]
    slug: Annotated[str, Meta(description="Product slug.")]
    domain: Annotated[str | None, Meta(description="The product's web domain, if known.")]
    score: Annotated[int, Meta(ge=1, description="Points: the sum over models of 6 - rank.")]
    appearances: Annotated[int, Meta(ge=1, description="How many models ranked it.")]
    model_ranks: ModelRanks
    tied: Annotated[
        bool, Meta(description="Equal to a neighbour in everything; only the slug orders them.")
    ]
    reason: Annotated[
        str | None,
        Meta(description="A model's verbatim argument; may be cut short with an ellipsis."),
    ]
    mean_score: Annotated[
        float | None,
        Meta(description="Sum over models of its mean points in their runs; null: unmeasured."),
    ]
    range: Annotated[RankRange | None, Meta(description="Null while unmeasured.")]
    presence: Annotated[AnswerShare, Meta(description="Windowed answers that name it.")]
    firsts: Annotated[
        AnswerShare | None,
        Meta(description="Windowed answers that rank it #1; null while unmeasured."),
    ]
    own_maker: OwnMaker


class ModelPick(JsonObject, frozen=True, kw_only=True):
    """A place in one model's own list."""

    rank: Annotated[int, Meta(ge=1, le=5)]
    product: Annotated[str, Meta(description="The product's current name.")]
    named: Annotated[str, Meta(description="The name as the model wrote it.")]
    slug: str
    domain: str | None
    reason: Annotated[str | None, Meta(description="The model's verbatim reason, whole.")]
    own_maker: OwnMaker


class MissedProduct(JsonObject, frozen=True, kw_only=True):
    """A product that a model considered and left out."""

    product: str
    slug: Annotated[str | None, Meta(description="Its product slug, if any model ranks it.")]
    reason: str | None


class AnswerStamp(JsonObject, frozen=True, kw_only=True):
    """Which poll a model's list comes from."""

    polled_at: Time
    poll: Annotated[str, Meta(description="Id of the poll in the history.")]
    stale: Annotated[bool, Meta(description="Lags far behind the newest answer.")]


class TopPick(JsonObject, frozen=True, kw_only=True):
    """The product with most first places."""

    product: str
    slug: str
    votes: Annotated[int, Meta(ge=1, description="Models that rank it #1.")]
    of: Annotated[int, Meta(ge=2, description="Models counted.")]
    label: Annotated[Label, Meta(description="All of them, more than half of them, or fewer.")]


class Agreement(JsonObject, frozen=True, kw_only=True):
    """How far the models agree."""

    top1: TopPick
    overlap: Annotated[
        float, Meta(ge=0, le=1, description="Mean average overlap of the models' lists, 0 to 1.")
    ]
    self_overlap: Annotated[
        Fraction | None,
        Meta(description="The same of one model's own windowed answers: its noise."),
    ]
    relative_overlap: Annotated[
        Fraction | None,
        Meta(
            description="Overlap of two models' windowed answers as a share of selfOverlap; 1: "
            "they differ from each other no more than from themselves.",
        ),
    ]


class Rules(JsonObject, frozen=True, kw_only=True):
    """How many usual rules of counting put nothing before the same #1."""

    agree: Annotated[int, Meta(ge=1, description="Rules that do; one that has it level does.")]
    of: Annotated[
        int,
        Meta(
            ge=6,
            le=7,
            description="Rules tried on the same lists: 5-4-3-2-1 points (that of the ranking), "
            "most #1s, most in the top three, most named at all, Dowdall (1, 1/2, … 1/5), Formula "
            "1 (25, 18, 15, 12, 10), and Condorcet where a product beats every other one in pairs.",
        ),
    ]


class Response(JsonObject, frozen=True, kw_only=True):
    """How many polls of a category brought an answer, whatever its wording was."""

    answered: Annotated[int, Meta(ge=1, description="Polls that did.")]
    of: Annotated[
        int, Meta(ge=1, description="All polls of the configured models, but for withheld ones.")
    ]


class CategoryVerdict(JsonObject, frozen=True, kw_only=True):
    """One category's merged ranking and what each model said."""

    slug: Annotated[str, Meta(description="Category identifier.")]
    title: str
    question: Annotated[
        str, Meta(description="The question that the models answered, as it was put to them.")
    ]
    next_question: Annotated[
        str | None,
        Meta(description="The new wording that is being asked, until its answers take over."),
    ]
    verdict: Verdict | None
    quote: Annotated[str, Meta(description="The verdict as one sentence for people.")]
    url: Page
    updated: Date
    as_of: Annotated[
        Date | None,
        Meta(description="The day that `asOf` asked for; null in the ranking as it stands."),
    ]
    final: Annotated[
        bool | None,
        Meta(
            description="Whether the day of `asOf` is closed, so that this ranking gains no answer "
            "any more; null in the ranking as it stands."
        ),
    ]
    asked: Annotated[
        str, Meta(description="How the models were asked, in a sentence: with web search or not.")
    ]
    models: Annotated[list[str], Meta(description="The models that took part.")]
    missing: Annotated[list[str], Meta(description="Configured models without a counted answer.")]
    consensus: Annotated[str | None, Meta(description="Sentence that says who agrees on #1.")]
    disagreement: Annotated[str | None, Meta(description="Sentence that says who differs.")]
    agreement: Agreement | None
    certainty: Certainty
    rules: Rules
    response: Response
    combined: Annotated[list[RankedEntry], Meta(description="Merged ranking, best first.")]
    per_model: Annotated[
        dict[str, list[ModelPick]], Meta(description="Each model's own ranked list, by name.")
    ]
    missed_by_model: Annotated[
        dict[str, list[MissedProduct]], Meta(description="Near-misses each model called out.")
    ]
    answers: Annotated[
        dict[str, AnswerStamp], Meta(description="Which poll each model's list comes from.")
    ]


class Fix(JsonObject, frozen=True, kw_only=True):
    """What a model says it would take to rank higher."""

    model: str
    fix: str


class ProductEntry(JsonObject, frozen=True, kw_only=True):
    """A product's place on one leaderboard."""

    slug: Annotated[str, Meta(description="Category slug.")]
    title: str
    rank: Annotated[int, Meta(ge=1, description="Merged rank in that category.")]
    of: Annotated[int, Meta(ge=1, description="Number of entries in that ranking.")]
    model_ranks: ModelRanks
    range: Annotated[RankRange | None, Meta(description="Null while unmeasured.")]
    level: Annotated[CertaintyLevel, Meta(description="How sure that category's #1 is.")]
    level_sentence: LevelSentence
    reason: str | None
    fixes: list[Fix]
    api: Api


class ProductRecord(JsonObject, frozen=True, kw_only=True, rename=None):
    """A product and every leaderboard it appears on."""

    slug: str
    name: str
    domain: str | None
    verdict: Verdict | None
    best_rank: Annotated[int, Meta(ge=0, description="Best rank anywhere; 0 on no leaderboard.")]
    categories: Annotated[int, Meta(ge=0, description="Number of leaderboards it appears on.")]
    entries: Annotated[list[ProductEntry], Meta(description="One per leaderboard, best first.")]
    page: Page
    check: Annotated[
        str,
        Meta(description="Page with the newest polls that named it.", extra_json_schema=URI),
    ]
