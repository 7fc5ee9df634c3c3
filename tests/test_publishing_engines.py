"""Engines by others load the dataset, find our scores and mentions in it, and call it valid.

Needs the extra `engines`, and Spark Java 17: ``pip install '.[test,engines]'``.
"""

import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from builders import app_over
from datasets import running, written_from

from store.publishing.dataset import Source
from store.settings import SHIPPED_DATA
from store.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # the engines' own
]
NEEDED = "needs the extra `engines`"
MENTIONS = """SELECT n.product, count(DISTINCT p.poll_id)
  FROM 'picks.parquet' p JOIN 'names.parquet' n
    ON n.slug = p.slug AND n.name = p.product AND n.domain IS NOT DISTINCT FROM p.domain
  GROUP BY n.product"""

Rows = list[tuple[Any, ...]]
SCORES = """WITH best AS (
  SELECT a.slug, a.model, n.product, max(p.points) AS points
  FROM 'answers.parquet' a JOIN 'picks.parquet' p USING (poll_id)
  JOIN 'names.parquet' n
    ON n.slug = p.slug AND n.name = p.product AND n.domain IS NOT DISTINCT FROM p.domain
  GROUP BY ALL)
SELECT slug, product, sum(points) AS score FROM best GROUP BY ALL ORDER BY slug, score DESC"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    pytest.importorskip("pyarrow", reason="needs the extra `data`")
    directory = tmp_path_factory.mktemp("engines") / "data"
    shutil.copytree(SHIPPED_DATA, directory, ignore=shutil.ignore_patterns("dataset"))
    store = Store(directory)
    written_from(Source(directory, lambda: store.snapshot, None, "1.0"))
    return store


@pytest.fixture
def dataset(store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The dataset, which programs find in their working directory."""
    monkeypatch.chdir(store.directory / "dataset/current")
    return store.directory / "dataset/current"


@pytest.fixture
def scores(store: Store) -> Rows:
    snapshot = store.snapshot
    return sorted(
        (slug, snapshot.products[entry.product].slug, entry.score)
        for slug, board in snapshot.leaderboards.items()
        for entry in board.entries
    )


@pytest.fixture
def mentions(store: Store) -> Rows:
    return sorted((p.slug, p.mentions) for p in store.snapshot.products.values())


@pytest.mark.usefixtures("dataset")
def test_duckdb_finds_our_scores_and_mentions(scores: Rows, mentions: Rows) -> None:
    """One query is enough for the scores of every category."""
    duckdb = pytest.importorskip("duckdb", reason=NEEDED)
    assert sorted(duckdb.sql(SCORES).fetchall()) == scores
    assert sorted(duckdb.sql(MENTIONS).fetchall()) == mentions


def test_duckdb_counts_over_http_by_reading_little(store: Store) -> None:
    """As `/data` says: the end of each file alone, some 30 KB of it at most."""
    duckdb = pytest.importorskip("duckdb", reason=NEEDED)
    extensions = pytest.importorskip("duckdb_extensions", reason=NEEDED)
    extensions.import_extension("httpfs")
    app, sent = app_over(store.directory), dict[str, int]()

    def counting(environ: Any, respond: Any) -> Any:
        parts = list(app.wsgi_app(environ, respond))
        if environ["REQUEST_METHOD"] == "GET":
            path = environ["PATH_INFO"]
            sent[path] = sent.get(path, 0) + sum(map(len, parts))
        return parts

    with running(lambda _: counting) as base:
        page = unescape(app.test_client().get("/data").text)
        shown = page.partition("disable_parquet_prefetching")[2]
        files = shown.partition("FROM ")[2].partition(";")[0]
        connection = duckdb.connect()
        connection.execute("LOAD httpfs; SET disable_parquet_prefetching = true")
        for table in ("picks", "polls"):
            there = files.replace("https://rankings.example", base).replace("picks", table)
            query = f"SELECT count(*) FROM {there}"  # noqa: S608 - our own page
            (found,) = connection.execute(query).fetchone()
    assert found == sum(len(each.models) for each in store.snapshot.poll_indexes.values())
    print(sent)  # noqa: T201 - what `-s` is for
    assert len(sent) == 2
    assert max(sent.values()) < 30_000


@pytest.mark.usefixtures("dataset")
def test_polars_finds_our_scores_and_mentions(scores: Rows, mentions: Rows) -> None:
    """What the card says of points, products and names is enough, over every category."""
    pl = pytest.importorskip("polars", reason=NEEDED)
    files = ("answers.parquet", "picks.parquet", "names.parquet")
    answers, picks, names = (pl.scan_parquet(file) for file in files)
    named = picks.join(
        names,
        left_on=["slug", "product", "domain"],
        right_on=["slug", "name", "domain"],
        nulls_equal=True,
        suffix="_slug",
    )
    best = (
        named.join(answers, on="poll_id", suffix="_now")
        .group_by("slug_now", "model_now", "product_slug")
        .agg(pl.max("points"))
    )
    summed = best.group_by("slug_now", "product_slug").agg(score=pl.sum("points")).collect()
    assert sorted(summed.rows()) == scores
    counted = named.group_by("product_slug").agg(pl.n_unique("poll_id")).collect()
    assert sorted(counted.rows()) == mentions


def test_frictionless_reads_and_validates_the_package_over_http(store: Store) -> None:
    """Every table has the columns, types and hash that are described."""
    frictionless = pytest.importorskip("frictionless", reason=NEEDED)
    app = app_over(store.directory)
    with running(lambda _: app) as base:
        report = frictionless.validate(f"{base}/data/datapackage.json")
        package = frictionless.Package(f"{base}/data/datapackage.json")
        tables = len(list((store.directory / "dataset/current").glob("*.csv")))
        first = next(iter(package.get_resource("rankings").read_rows()))
    assert report.valid, report.flatten(["name", "message"])[:5]
    assert report.stats["tasks"] == len(package.resources) == tables
    assert first["rank"] == 1
