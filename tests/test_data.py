"""The shipped data: a complete and honest sample, made by our own commands."""

import json
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from flask.testing import FlaskClient
from sample.history import LATE, fill

from store.records import GOVERNING


@pytest.fixture(scope="module")
def history(shipped: Path) -> dict[str, list[dict[str, Any]]]:
    """The shipped records by category, oldest first."""
    return {
        file.stem: [json.loads(line) for line in file.read_bytes().splitlines()]
        for file in sorted((shipped / "history").glob("*.jsonl"))
    }


def test_every_category_is_ranked_and_in_a_topic(client: FlaskClient) -> None:
    """There are exactly 1,425; who browses by topic misses none, and has about twenty of them."""
    ranked = client.get("/api/v1/categories.json").get_json()
    topics = client.get("/api/v1/topics.json").get_json()
    listed = {slug for topic in topics for part in topic["parts"] for slug in part["categories"]}
    assert len(ranked) == 1425
    assert listed == {category["slug"] for category in ranked}
    assert 15 <= len(topics) <= 30


def test_every_model_has_answered_every_category(
    history: dict[str, list[dict[str, Any]]], shipped: Path
) -> None:
    """Every category has at least one successful poll of every assistant."""
    assert set(history) == {file.stem for file in (shipped / "categories").iterdir()}
    models = {f"Model {letter}" for letter in "ABCD"}
    for slug, polls in history.items():
        assert {poll["model"] for poll in polls if poll["pick"]} == models, slug


def test_no_real_company_gets_invented_praise(history: dict[str, list[dict[str, Any]]]) -> None:
    """Every domain in the sample's answers is under .example, which nobody can own."""
    picks = (pick for polls in history.values() for poll in polls for pick in poll["ranking"])
    domains = {pick["domain"] for pick in picks} - {None}
    assert domains
    assert {domain.rpartition(".")[2] for domain in domains} == {"example"}


def test_the_sample_says_that_it_is_one(client: FlaskClient, shipped: Path) -> None:
    """Whoever reads the data, the instructions or a verdict sees that it is a sample."""
    assert json.loads((shipped / "site.json").read_text())["sample"] is True
    assert "This is a sample" in client.get("/api/v1/README.md").text
    assert "Sample" in client.get("/api/v1/best/humidifier.json").get_json()["verdict"]


def test_the_sample_is_of_the_real_ones_size(client: FlaskClient, shipped: Path) -> None:
    """A category file has around 10 KB in the median; the history has at most 25 MB."""
    files = [file.stem for file in (shipped / "categories").iterdir()]
    sizes = [len(client.get(f"/api/v1/best/{slug}.json").data) for slug in files[::10]]
    assert 8_000 < median(sizes) < 12_000
    assert sum(file.stat().st_size for file in (shipped / "history").iterdir()) <= 25_000_000


def test_the_sample_shows_every_kind_of_figure(
    client: FlaskClient, verdicts: dict[str, Any]
) -> None:
    """Every agreement and level, ties, stale answers, missing models, changes, trends occur."""
    bodies = verdicts.values()
    labels = {body["agreement"]["top1"]["label"] for body in bodies}
    votes = {body["agreement"]["top1"]["votes"] for body in bodies}
    assert labels == {"unanimous", "majority", "split"}
    assert votes == {1, 2, 3, 4}
    assert any(body["combined"][0]["tied"] for body in bodies)
    levels = {body["certainty"]["level"] for body in bodies}
    assert levels == {"unmeasured", "clear", "open", "contradicted"}
    assert any(answer["stale"] for body in bodies for answer in body["answers"].values())
    assert any(body["missing"] for body in bodies)
    changes = client.get("/api/v1/changes.json").get_json()["changes"]
    assert {change["confirmed"] for change in changes} == {True, False}
    directions = {
        p["direction"] for p in client.get("/api/v1/mentions.json").get_json()["products"]
    }
    assert len(directions) > 1


@pytest.mark.parametrize(
    "every", [150, pytest.param(1, marks=pytest.mark.slow)], ids=["a few", "all"]
)
def test_the_history_made_again_has_the_same_bytes(
    shipped: Path, tmp_path: Path, every: int
) -> None:
    """Whoever makes history and proof anew, with `tests/sample/history.py`, gets these files."""
    slugs = sorted(file.stem for file in (shipped / "categories").iterdir())
    chosen = {*slugs[LATE::every], *slugs[:LATE:every], "vpn"}
    (tmp_path / "categories").mkdir()
    for name in (*GOVERNING, *(f"categories/{slug}.json" for slug in chosen)):
        shutil.copy(shipped / name, tmp_path / name)
    fill(tmp_path, slugs, chosen)
    files = [f"history/{slug}.jsonl" for slug in chosen]
    files += [f"proof/{name}.jsonl" for name in ("heads", "ledger") if chosen == set(slugs)]
    for file in files:
        assert (tmp_path / file).read_bytes() == (shipped / file).read_bytes(), file


def test_topics_read_well_in_a_sentence(shipped: Path) -> None:
    """A topic has no leading article; a question asks. `flask check` sees to the rest."""
    for file in (shipped / "categories").iterdir():
        category = json.loads(file.read_text(encoding="utf-8"))
        assert not category["topic"].lower().startswith(("a ", "an ")), file.name
        assert category["question"].endswith("?"), file.name
        assert category["title"].startswith("Best "), file.name
