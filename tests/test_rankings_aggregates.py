"""A category's polls read once: who said what about which product."""

from builders import answered, category, failed

from store.rankings import aggregates
from store.rankings.aggregates import CategoryAggregate
from store.rankings.names import Names
from store.records import Poll, Product

ZOHO = Product(version=1, name="Zoho CRM", maker="Zoho", domain="zoho.com", aliases=("Zoho",))
CATALOGUE = Names({"zoho-crm": ZOHO})
CATEGORY = category(nouns=("CRM",))


def read(*polls: Poll) -> CategoryAggregate:
    return aggregates.gather("crm-software", CATEGORY, polls, CATALOGUE)


def test_newest_is_by_order_of_appending_and_first_by_time() -> None:
    """Whatever times lines bear; a failure is a poll, but no answer."""
    days = [f"2026-10-0{day}T06:00:00Z" for day in range(1, 6)]
    aggregate = read(
        failed("A", at=days[0]),
        answered("A", ["Attio"], days[4]),
        answered("A", ["Close"], days[1]),
        answered("B", ["Attio"], days[2]),
        failed("C", at=days[3]),
    )
    first = {model: state.first_answer for model, state in aggregate.states.items()}
    assert first == {"A": days[1], "B": days[2], "C": None}
    assert aggregate.wordings.newest == days[2]
    assert aggregate.last_poll == days[3]


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
