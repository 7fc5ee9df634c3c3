"""The wire shapes: one struct for each JSON object that readers get, and its schema.

Names and types of published fields never change; objects may gain fields (store/README.md,
Answers).
"""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from store.rankings.agreement import POINTS, Label
from store.rankings.certainty import Level, Share
from store.rankings.merging import PLACES


def doc(description: str, **limits: Any) -> Meta:
    """Return the note of a member in its schema: its description, and limits of its values."""
    return Meta(description=description, **limits)


Date = Annotated[
    str,
    doc(
        "UTC date, YYYY-MM-DD.",
        pattern=r"^\d{4}-\d{2}-\d{2}$",
        extra_json_schema={"format": "date"},
    ),
]
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
Time = Annotated[
    str,
    doc(
        "RFC 3339 time in UTC, whole seconds.",
        pattern=TIME_PATTERN,
        extra_json_schema={"format": "date-time"},
    ),
]
URI = {"format": "uri"}
Fraction = Annotated[float, Meta(ge=0, le=1)]
POINTS_SUMMED = f"Points: the sum over models of {PLACES + 1} - rank."
# tuple[int, int] would be prefixItems in the schema, which few generators of clients know.
RankRange = Annotated[
    tuple[int, ...],
    doc(
        "Best and worst rank that the runs leave possible: one more than the products "
        "ahead of it, and all that are named less those that it is ahead of. Each holds by itself; "
        "runs may name more products than are in the ranking.",
        min_length=2,
        max_length=2,
    ),
]
LevelSentence = Annotated[
    str, doc("How sure that category's #1 is, in words. Tell it unless clear.")
]
OwnMaker = Annotated[bool, doc("Recommended by an assistant of the company that makes it.")]
CertaintyLevel = Annotated[
    Level,
    doc(
        "unmeasured: a model's run has under three days, or all together under twelve. "
        "clear: over the runs the #1 is ahead of every other product by more than chance, and not "
        "tied. open: it cannot be told apart from others. contradicted: another product is ahead "
        "of it by more than chance."
    ),
]
ModelRanks = Annotated[
    dict[str, int], doc("Rank by model name; only the models that ranked the product are keys.")
]
VerdictSentence = Annotated[
    str, doc("Dated one-sentence answer with its source. Quote it verbatim when citing.")
]
Api = Annotated[str, doc("Address of the full record.", extra_json_schema=URI)]
Page = Annotated[str, doc("Address of the page to link when republishing.", extra_json_schema=URI)]


class JsonObject(Struct, frozen=True, kw_only=True, rename="camel"):
    """A JSON object on the wire; snake_case in Python, camelCase in JSON."""


class ProductReference(JsonObject, frozen=True, kw_only=True):
    """A product, by name and slug."""

    product: Annotated[str, doc("Product name.")]
    slug: Annotated[str, doc("Product slug.")]


class VerdictCertainty(JsonObject, frozen=True, kw_only=True):
    """The level to which the first place can be trusted, by the assistants' comparable answers."""

    level: CertaintyLevel
    sentence: Annotated[str, doc("The level in words. Tell it with the verdict.")]
    answers: Annotated[int, doc("All answers in the runs.", ge=1)]
    runs: Annotated[
        dict[str, int],
        doc(
            "By model, on how many days it gave its last answers in a row to this "
            "question, asked in the same way and by the same version: at most 260."
        ),
    ]
    from_: Annotated[Date, doc("Day of the oldest answer compared.")] = field(name="from")
    to: Annotated[Date, doc("Day of the newest answer compared.")]
    leader: Annotated[ProductReference | None, doc("The product with the most mean points.")]
    contenders: Annotated[
        list[ProductReference],
        doc("The leader, and all that it is not ahead of by more than chance."),
    ]


class RankedEntry(JsonObject, frozen=True, kw_only=True):
    """A place in the merged ranking."""

    rank: Annotated[int, doc("Position in the merged ranking, from 1.", ge=1)]
    place: Annotated[int, doc("Rank with ties: those tied share the best one (1, 2, 2, 4).", ge=1)]
    product: Annotated[str, doc("Product name.")]
    slug: Annotated[str, doc("Product slug.")]
    domain: Annotated[str | None, doc("The product's web domain, if known.")]
    score: Annotated[int, doc(POINTS_SUMMED, ge=1)]
    appearances: Annotated[int, doc("How many models ranked it.", ge=1)]
    model_ranks: ModelRanks
    tied: Annotated[bool, doc("Equal to a neighbour in everything; only the slug orders them.")]
    reason: Annotated[
        str | None, doc("A model's verbatim argument; may be cut short with an ellipsis.")
    ]
    mean_score: Annotated[
        float | None, doc("Sum over models of its mean points in their runs; null: unmeasured.")
    ]
    range: Annotated[RankRange | None, doc("Null while unmeasured.")]
    presence: Annotated[Share, doc("Windowed answers that name it.")]
    firsts: Annotated[Share | None, doc("Windowed answers that rank it #1; null while unmeasured.")]
    own_maker: OwnMaker


class ModelPick(JsonObject, frozen=True, kw_only=True):
    """A place in one model's own list."""

    rank: Annotated[int, Meta(ge=1, le=PLACES)]
    product: Annotated[str, doc("The product's current name.")]
    named: Annotated[str, doc("The name as the model wrote it.")]
    slug: str
    domain: str | None
    reason: Annotated[str | None, doc("The model's verbatim reason, whole.")]
    own_maker: OwnMaker


class MissedProduct(JsonObject, frozen=True, kw_only=True):
    """A product that a model considered and left out."""

    product: str
    slug: Annotated[str | None, doc("Its product slug, if any model ranks it.")]
    reason: str | None


class AnswerStamp(JsonObject, frozen=True, kw_only=True):
    """The poll that a model's list comes from."""

    polled_at: Time
    poll: Annotated[str, doc("Id of the poll in the history.")]
    stale: Annotated[bool, doc("Lags far behind the newest answer.")]


class TopPick(JsonObject, frozen=True, kw_only=True):
    """The product with most first places."""

    product: str
    slug: str
    votes: Annotated[int, doc("Models that rank it #1.", ge=1)]
    of: Annotated[int, doc("Models counted.", ge=2)]
    label: Annotated[Label, doc("All of them, more than half of them, or fewer.")]


class VerdictAgreement(JsonObject, frozen=True, kw_only=True):
    """The models' agreement on the first place and on their whole lists."""

    top1: TopPick
    overlap: Annotated[float, doc("Mean average overlap of the models' lists, 0 to 1.", ge=0, le=1)]
    self_overlap: Annotated[
        Fraction | None, doc("The same of one model's own windowed answers: its noise.")
    ]
    relative_overlap: Annotated[
        Fraction | None,
        doc(
            "Overlap of two models' windowed answers as a share of selfOverlap; 1: "
            "they differ from each other no more than from themselves."
        ),
    ]


class Rules(JsonObject, frozen=True, kw_only=True):
    """The number of usual rules of counting that put nothing before the same #1."""

    agree: Annotated[int, doc("Rules that do; one that has it level does.", ge=1)]
    of: Annotated[
        int,
        doc(
            "Rules tried on the same lists: 5-4-3-2-1 points (that of the ranking), "
            "most #1s, most in the top three, most named at all, Dowdall (1, 1/2, … 1/5), Formula "
            "1 (25, 18, 15, 12, 10), and Condorcet where a product beats every other one in pairs.",
            ge=len(POINTS),
            le=len(POINTS) + 1,
        ),
    ]


class ResponseRate(JsonObject, frozen=True, kw_only=True):
    """The number of polls of a category that brought an answer, whatever its wording was."""

    answered: Annotated[int, doc("Polls that did.", ge=1)]
    of: Annotated[int, doc("All polls of the configured models, but for withheld ones.", ge=1)]


class CategoryVerdict(JsonObject, frozen=True, kw_only=True):
    """One category's merged ranking and what each model said."""

    slug: Annotated[str, doc("Category identifier.")]
    title: str
    question: Annotated[str, doc("The question that the models answered, as it was put to them.")]
    next_question: Annotated[
        str | None, doc("The new wording that is being asked, until its answers take over.")
    ]
    verdict: VerdictSentence | None
    quote: Annotated[str, doc("The verdict as one sentence for people.")]
    url: Page
    updated: Date
    as_of: Annotated[
        Date | None, doc("The day that `asOf` asked for; null in the ranking as it stands.")
    ]
    final: Annotated[
        bool | None,
        doc(
            "Whether the day of `asOf` is closed, so that this ranking gains no answer "
            "any more; null in the ranking as it stands."
        ),
    ]
    asked: Annotated[str, doc("How the models were asked, in a sentence: with web search or not.")]
    models: Annotated[tuple[str, ...], doc("The models that took part.")]
    missing: Annotated[tuple[str, ...], doc("Configured models without a counted answer.")]
    consensus: Annotated[str | None, doc("Sentence that says who agrees on #1.")]
    disagreement: Annotated[str | None, doc("Sentence that says who differs.")]
    agreement: VerdictAgreement | None
    certainty: VerdictCertainty
    rules: Rules
    response: ResponseRate
    combined: Annotated[list[RankedEntry], doc("Merged ranking, best first.")]
    per_model: Annotated[dict[str, list[ModelPick]], doc("Each model's own ranked list, by name.")]
    missed_by_model: Annotated[
        dict[str, list[MissedProduct]], doc("Near-misses each model called out.")
    ]
    answers: Annotated[dict[str, AnswerStamp], doc("Which poll each model's list comes from.")]


class Fix(JsonObject, frozen=True, kw_only=True):
    """A model's word on what it would take to rank higher."""

    model: str
    fix: str


class ProductEntry(JsonObject, frozen=True, kw_only=True):
    """A product's place on one leaderboard."""

    slug: Annotated[str, doc("Category slug.")]
    title: str
    rank: Annotated[int, doc("Merged rank in that category.", ge=1)]
    place: Annotated[int, doc("Rank with ties: those tied share the best one (1, 2, 2, 4).", ge=1)]
    of: Annotated[int, doc("Number of entries in that ranking.", ge=1)]
    tied: Annotated[bool, doc("Equal to a neighbour in everything; only the slug orders them.")]
    model_ranks: ModelRanks
    range: Annotated[RankRange | None, doc("Null while unmeasured.")]
    level: Annotated[CertaintyLevel, doc("How sure that category's #1 is.")]
    level_sentence: LevelSentence
    reason: str | None
    fixes: list[Fix]
    api: Api


class ProductRecord(JsonObject, frozen=True, kw_only=True, rename=None):  # best_rank is published
    """A product and every leaderboard it appears on."""

    slug: str
    name: str
    domain: str | None
    verdict: VerdictSentence | None
    best_rank: Annotated[int, doc("Best rank anywhere, ties broken; 0 on no leaderboard.", ge=0)]
    categories: Annotated[int, doc("Number of leaderboards it appears on.", ge=0)]
    entries: Annotated[list[ProductEntry], doc("One per leaderboard, best first.")]
    page: Page
    check: Annotated[str, doc("Page with the newest polls that named it.", extra_json_schema=URI)]
