"""What Prometheus reads: requests by route, and how the service stands."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from builders import answered, app_over, failed, write_data
from flask import Flask
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_web_health import State

from store.monitoring.metrics import Collector, Requests
from store.rankings.poll_states import Pause

NOW = datetime(2026, 11, 10, 6, tzinfo=UTC)


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    polls = [
        answered("A", ["X"], "2026-11-09T07:00:00Z"),
        answered("A", ["X"], "2026-11-09T08:00:00Z"),
        failed("A", "timeout", "2026-11-09T09:00:00Z"),
    ]
    data = write_data(tmp_path / "data", models="AB", polls=polls, daily_usd=25)
    return app_over(data)


def registry_of(app: Flask) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Collector(app, NOW.timestamp))
    return registry


def test_a_scrape_tells_how_the_service_stands(app: Flask) -> None:
    """Polls by outcome, when each assistant last answered, money, files, the scheduler."""
    until = datetime(2026, 11, 10, 12, tzinfo=UTC)
    state = State(pauses={"B": Pause(until, "no key")}, due={"A": 3})
    app.extensions["scheduler"] = lambda: state
    value: Any = registry_of(app).get_sample_value
    assert value("consensus_polls_total", {"assistant": "A", "outcome": "answered"}) == 2
    assert value("consensus_polls_total", {"assistant": "A", "outcome": "timeout"}) == 1
    answered_at = datetime(2026, 11, 9, 8, tzinfo=UTC).timestamp()
    assert value("consensus_last_success_timestamp_seconds", {"assistant": "A"}) == answered_at
    assert value("consensus_last_success_timestamp_seconds", {"assistant": "B"}) is None
    assert value("consensus_paused", {"assistant": "B"}) == 1
    assert value("consensus_due_polls", {"assistant": "A"}) == 3
    assert value("consensus_budget_usd") == 25
    assert value("consensus_problems", {"severity": "error"}) == 0
    assert value("consensus_damaged_records") == 0
    assert value("consensus_scheduler_leader") == 1
    assert value("consensus_looked_timestamp_seconds") == app.extensions["store"].looked_at
    assert value("consensus_export_timestamp_seconds") is None


def test_money_of_the_day_is_all_that_counts_towards_the_limit(app: Flask) -> None:
    """Also what history has nothing of: a call of unknown cost, or one of `--try`."""
    locks = app.extensions["settings"].data_dir / ".locks"
    locks.mkdir()
    value: Any = registry_of(app).get_sample_value
    for day, usd in (("2026-11-09", 0), ("2026-11-10", 2.16)):
        (locks / "spent.json").write_text(f'{{"day":"{day}","micros":{{"A":2160000}}}}')
        assert value("consensus_spent_today_usd") == usd


def test_requests_are_counted_by_route(app: Flask) -> None:
    """A client's own paths and methods make no labels: all of them are ``other``."""
    registry = CollectorRegistry()
    app.wsgi_app = Requests(app.wsgi_app, registry)  # type: ignore[method-assign]
    client = app.test_client()
    for path in ("/api/v1/best/crm-software.json", "/api/v1/best/nope.json", "/a", "/b"):
        client.get(path)
    for method in ("BREW", "FRY"):
        client.open("/a", method=method)

    def count(route: str, method: str, status: int) -> float | None:
        labels = {"route": route, "method": method, "status": str(status)}
        return registry.get_sample_value("consensus_http_requests_total", labels)

    rule = "/api/v1/best/<slug>.json"
    assert count(rule, "GET", 200) == 1
    assert count(rule, "GET", 404) == 1
    assert count("other", "GET", 404) == 2
    assert count("other", "other", 404) == 2
    took: Any = registry.get_sample_value
    name = "consensus_http_request_duration_seconds"
    assert took(f"{name}_count", {"route": "other"}) == 4
    assert took(f"{name}_bucket", {"route": "other", "le": "+Inf"}) == 4
    assert took(f"{name}_sum", {"route": "other"}) > 0
    labels = {s.labels.get("route") for m in registry.collect() for s in m.samples}
    assert labels == {rule, "other"}


def test_both_formats_are_well_formed(app: Flask) -> None:
    """Prometheus' own parser reads the OpenMetrics form, which ends as it must."""
    registry = registry_of(app)
    text = openmetrics(registry).decode()  # type: ignore[no-untyped-call]
    assert text.endswith("# EOF\n")
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    names = {family.name for family in families}
    assert {"consensus_polls", "consensus_build", "consensus_problems"} <= names
    assert b'consensus_build_info{version="' in generate_latest(registry)
