"""The relevance of search on judged queries, as a reader of the API meets it."""

from __future__ import annotations

from itertools import chain

import pytest
from builders import app_over
from search_evaluation import (
    Outcome,
    Row,
    ask_client,
    read_queries,
    run,
    tabulate,
    write_catalogue,
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Outcome]]:
    directory = tmp_path_factory.mktemp("relevance") / "data"
    write_catalogue(directory)
    ask = ask_client(app_over(directory).test_client())
    return {name: run(read_queries(name), ask) for name in ("dev", "natural", "extra")}


@pytest.fixture(scope="module")
def tables(outcomes: dict[str, list[Outcome]]) -> dict[str, dict[str, Row]]:
    return {name: tabulate(found) for name, found in outcomes.items()}


@pytest.mark.parametrize(
    ("name", "group", "floor"),
    [
        ("dev", "all", 0.975),
        ("dev", "all but synonyms", 0.98),
        ("dev", "brand exact", 1.0),
        ("dev", "category exact", 1.0),
        ("dev", "brand domain", 1.0),
        ("dev", "category plural", 1.0),
        ("dev", "brand wordorder", 1.0),
        ("dev", "category wordorder", 1.0),
        ("natural", "all", 0.9),
        ("natural", "category question", 0.75),
        ("natural", "category synonym", 0.94),
        ("natural", "brand brand_sentence", 0.95),
    ],
)
def test_the_first_answer_is_right(
    tables: dict[str, dict[str, Row]], name: str, group: str, floor: float
) -> None:
    """Recall at one on the judged queries does not fall below what was once reached."""
    assert tables[name][group].recall_1 >= floor


def test_negatives_stay_unanswered(outcomes: dict[str, list[Outcome]]) -> None:
    """Where nothing is the right answer, nothing is said, but for a few."""
    every = list(chain(outcomes["dev"], outcomes["extra"]))
    assert tabulate(every)["negative"].answered <= 0.02
    assert tabulate(outcomes["natural"])["negative"].answered <= 0.04
