"""A category's polls read once: who said what about which product."""

from builders import answered, category, failed

from store.rankings import aggregates
from store.rankings.aggregates import CategoryAggregate
from store.rankings.names import Names
from store.records import Poll, Product

ZOHO = Product(version=1, name="Zoho CRM", maker="Zoho", domain="zoho.com", aliases=("Zoho",))
CATALOGUE = Names({"zoho-crm": ZOHO})
CATEGORY = category(nouns=("CRM",))


def read(*polls: Poll, catalogue: Names = CATALOGUE) -> CategoryAggregate:
    return aggregates.gather("crm-software", CATEGORY, polls, catalogue)


def test_the_latest_success_of_each_model_stands() -> None:
    """A failed poll never displaces a good answer, and counts as a poll all the same."""
    aggregate = read(
        answered("A", ["Attio"], "2026-10-01T06:00:00Z"),
        answered("A", ["Close"], "2026-10-02T06:00:00Z"),
        answered("B", ["Attio"], "2026-10-02T07:00:00Z"),
        failed("A", at="2026-10-03T06:00:00Z"),
        failed("C", at="2026-10-04T06:00:00Z"),
    )
    assert {model: a.first for model, a in aggregate.wordings[0].latest.items()} == {
        "A": "=close",
        "B": "=attio",
    }
    assert aggregate.successes == 3
    assert aggregate.states.keys() == {"A", "B", "C"}
    assert aggregate.last_success == "2026-10-02T07:00:00Z"
    assert aggregate.last_poll == "2026-10-04T06:00:00Z"


def test_the_first_answers_are_the_earliest_whatever_their_order() -> None:
    """A day is looked up by its date: a line that a merge put behind later ones counts on its own.

    Failures are no answers.
    """
    aggregate = read(
        failed("A", at="2026-09-30T06:00:00Z"),
        answered("A", ["Attio"], "2026-10-03T06:00:00Z"),
        answered("B", ["Attio"], "2026-10-02T06:00:00Z"),
        answered("A", ["Close"], "2026-10-01T06:00:00Z"),
    )
    first = {model: state.first_answer for model, state in aggregate.states.items()}
    assert first == {"A": "2026-10-01T06:00:00Z", "B": "2026-10-02T06:00:00Z"}


def test_each_domain_counts_once_for_each_poll() -> None:
    """Two rows of one product with one domain are one poll that gives it."""
    domains = {"Zoho": "zoho.com", "Zoho CRM": "zoho.com", "Attio": None}
    aggregate = read(
        answered("A", ["Zoho", "Zoho CRM", "Attio"], domains=domains),
        answered("B", ["Zoho"], domains={"Zoho": "zoho.eu"}),
        answered("C", ["Zoho"], domains=domains),
    )
    assert aggregate.product_stats["zoho-crm"].domains == {"zoho.com": 2, "zoho.eu": 1}
    assert aggregate.product_stats["=attio"].domains == {}


def test_the_first_use_of_a_spelling_is_the_earliest_poll() -> None:
    """Time first, then the model's name, then the rank, in whatever order the polls are read."""
    early, late = "2026-10-01T06:00:00Z", "2026-10-02T06:00:00Z"
    for polls in (
        [answered("B", ["X", "Attio"], early), answered("A", ["X", "Y", "Attio"], early)],
        [answered("A", ["X", "Y", "Attio"], early), answered("B", ["X", "Attio"], early)],
    ):
        aggregate = read(*polls, answered("A", ["Attio"], late))
        use = aggregate.product_stats["=attio"].spellings["Attio"]
        assert (use.polled_at, use.model, use.rank) == (early, "A", 3)


def test_a_reading_holds_while_every_name_resolves_alike() -> None:
    """Other product files matter only if they claim a name that was used here."""
    aggregate = read(answered("A", ["Attio", "Zoho"]))
    unrelated = Product(version=1, name="Nobody's")
    claimed = Product(version=1, name="Attio Inc", aliases=("Attio",))
    assert aggregates.still_holds(aggregate, Names({"zoho-crm": ZOHO, "nobodys": unrelated}))
    assert not aggregates.still_holds(aggregate, Names({"zoho-crm": ZOHO, "attio": claimed}))
    assert not aggregates.still_holds(aggregate, Names({}))
