"""The Grafana dashboard that ``flask deploy grafana`` prints."""

from __future__ import annotations

from typing import Any, NamedTuple

WIDTH, HEIGHT = 12, 8
"""Of a panel, in Grafana's grid of 24 columns: two stand side by side."""


class Panel(NamedTuple):
    """One chart: its title and unit, the query, and what a line is called."""

    title: str
    unit: str
    query: str
    legend: str


PANELS = (
    Panel("Polls per hour", "short",
          "sum by (outcome) (increase(consensus_polls_total{{job}}[1h]))", "{{outcome}}"),
    Panel("Time since the last answer", "s",
          "time() - consensus_last_success_timestamp_seconds{{job}}", "{{assistant}}"),
    Panel("Polls that are due", "short", "consensus_due_polls{{job}}", "{{assistant}}"),
    Panel("Paused", "bool", "consensus_paused{{job}}", "{{assistant}}"),
    Panel("Spent today", "currencyUSD", "consensus_spent_today_usd{{job}}", "spent"),
    Panel("Problems", "short", "consensus_problems{{job}}", "{{severity}}"),
    Panel("Requests per second", "reqps",
          "sum by (route) (rate(consensus_http_requests_total{{job}}[5m]))", "{{route}}"),
    Panel("Answers by status", "reqps",
          "sum by (status) (rate(consensus_http_requests_total{{job}}[5m]))", "{{status}}"),
    Panel("Time to answer, 99 %", "s",
          "histogram_quantile(0.99, sum by (le, route) "
          "(rate(consensus_http_request_duration_seconds_bucket{{job}}[5m])))", "{{route}}"),
    Panel("Time since the files were looked at", "s",
          "time() - consensus_looked_timestamp_seconds{{job}}", "looked"),
)  # fmt: skip


def dashboard(name: str, job: str) -> dict[str, Any]:
    """A dashboard over the figures of one site, whose Prometheus job has this name."""
    return {
        "title": name,
        "uid": job[:40],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, panel, job) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel, job: str) -> dict[str, Any]:
    query = panel.query.replace("{{job}}", f'{{job="{job}"}}')
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "timeseries",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": {
            "x": number % 2 * WIDTH, "y": number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit}},
        "targets": [{"refId": "A", "expr": query, "legendFormat": panel.legend}],
    }  # fmt: skip
