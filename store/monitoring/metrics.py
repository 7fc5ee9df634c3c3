"""Metrics for Prometheus, on a port of their own on 127.0.0.1.

Requests are counted around the application; everything else is read once, at each scrape. Names
follow the conventions of Prometheus and OpenMetrics: base units, ``_total``, ``_info``.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import prometheus_client
from prometheus_client import CollectorRegistry, core

from store.web.health import examine
from store.web.openapi import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from flask import Flask

    from store.memory import Store
    from store.web.health import Health

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds: a kept answer takes some 0.0001, a search 0.001, a past day 0.03."""
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
"""Methods with a label of their own; clients invent others, and each label takes memory."""
RETRY_AFTER = 2.0
"""Seconds until a port that is taken is tried again: by a worker that is just being replaced."""


class Requests:
    """Counts the requests of a WSGI application by route, method and status, and their time.

    A route is the rule that fits, ``other`` where none does, so that no client makes new labels.
    One row of numbers for each is a third of what the client library's own counters cost.
    """

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str, str], list[float]] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, and count it."""
        begun = time.perf_counter()
        route, status = "other", "500"

        def started(line: str, *more: Any) -> Any:
            nonlocal route, status
            status = line[:3]
            # Flask lets go of its request before it returns.
            if (request := environ.get("werkzeug.request")) and request.url_rule:
                route = request.url_rule.rule
            return start_response(line, *more)

        try:
            return self._application(environ, started)
        finally:
            took = time.perf_counter() - begun
            method = environ["REQUEST_METHOD"]
            key = (route, method if method in METHODS else "other", status)
            with self._lock:
                row = self._rows.get(key)
                if row is None:
                    row = self._rows[key] = [0] * (len(BUCKETS) + 2)
                row[bisect_left(BUCKETS, took)] += 1
                row[-1] += took

    def collect(self) -> Iterator[core.Metric]:
        """What was counted so far."""
        with self._lock:
            rows = {key: list(row) for key, row in self._rows.items()}
        requests = core.CounterMetricFamily(
            "consensus_http_requests", "Requests answered.", labels=("route", "method", "status")
        )
        times: dict[str, list[float]] = {}
        for key, row in sorted(rows.items()):
            requests.add_metric(key, sum(row[:-1]))
            before = times.get(key[0], [0] * len(row))
            times[key[0]] = [sum(pair) for pair in zip(before, row, strict=True)]
        durations = core.HistogramMetricFamily(
            "consensus_http_request_duration_seconds",
            "Time from a request's head to its answer's.",
            labels=("route",),
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for route, row in times.items():
            buckets = list(zip(bounds, accumulate(row[:-1]), strict=True))
            durations.add_metric([route], buckets, row[-1])
        yield from (requests, durations)


class Collector:
    """Reads the health of a store at each scrape."""

    def __init__(self, app: Flask, clock: Callable[[], float] = time.time) -> None:
        self._extensions = app.extensions
        self._clock = clock

    def collect(self) -> Iterator[core.Metric]:
        """Every figure as it is now."""
        store: Store = self._extensions["store"]
        now = self._clock()
        schedule, meaning = map(self._extensions.get, ("scheduler", "meaning"))
        found = examine(store, now, schedule, meaning)
        yield core.InfoMetricFamily("consensus_build", "The service.", {"version": VERSION})
        yield _polls(store)
        yield from _of_assistants(found)
        yield from _of_store(store, found)


def _polls(store: Store) -> core.Metric:
    """How often each assistant was asked, and what came of it, over the whole history."""
    polls = core.CounterMetricFamily(
        "consensus_polls", "Polls in the history.", labels=("assistant", "outcome")
    )
    counts = Counter[tuple[str, str]]()
    for line_index in store.snapshot.line_indexes.values():
        counts.update(line_index.outcomes)
    for labels, count in sorted(counts.items()):
        polls.add_metric(labels, count)
    return polls


def _of_assistants(found: Health) -> Iterator[core.Metric]:
    answered = _gauge("consensus_last_success_timestamp_seconds", "When it last answered.")
    failures = _gauge("consensus_failures", "Polls that failed since it last answered.")
    paused = _gauge("consensus_paused", "Whether it is left alone for a while.")
    due = _gauge("consensus_due_polls", "Its polls that are due.")
    for one in found.assistants:
        name = [one.name]
        if one.last_answer and one.answer_age is not None:
            answered.add_metric(name, datetime.fromisoformat(one.last_answer).timestamp())
        failures.add_metric(name, one.failures)
        if found.scheduler and found.scheduler.polling:
            paused.add_metric(name, one.paused is not None)
            due.add_metric(name, one.due or 0)
    yield from (answered, failures, paused, due)


def _of_store(store: Store, found: Health) -> Iterator[core.Metric]:
    scheduler = found.scheduler
    leader = scheduler.polling if scheduler else None
    values: Mapping[str, tuple[str, float | None]] = {
        "spent_today_usd": ("What today's polls cost.", found.spending.usd_today),
        "budget_usd": ("daily_usd of site.json.", found.spending.cap_usd),
        "snapshot_timestamp_seconds": ("When what is served was made.", store.made_at),
        "looked_timestamp_seconds": ("When the files were last looked at.", store.looked_at),
        "export_timestamp_seconds": ("When the data was last exported.", store.exported_at),
        "damaged_records": ("Lines of history that cannot be used.", found.damage.records),
        "degraded": ("Whether something needs a person.", not found.is_well),
        "scheduler_enabled": ("Whether it stands ready to poll.", scheduler is not None),
        "scheduler_leader": ("Whether this process is the one that polls.", leader),
    }
    for name, (text, value) in values.items():
        if value is not None:
            yield core.GaugeMetricFamily(f"consensus_{name}", text, value=float(value))
    problems = _gauge("consensus_problems", "What keeps the data from being good.", "severity")
    severities = [problem.severity for problem in store.problems]
    for severity in ("error", "warning", "notice"):
        problems.add_metric([severity], severities.count(severity))
    yield problems


def begin(app: Flask, port: int) -> None:
    """Count requests from now on and serve the figures on a port, once it is free."""
    registry = CollectorRegistry()
    registry.register(Collector(app))
    prometheus_client.ProcessCollector(registry=registry)
    requests = Requests(app.wsgi_app)
    registry.register(requests)
    app.wsgi_app = requests  # type: ignore[method-assign]
    threading.Thread(target=_serve, args=[registry, port], name="metrics", daemon=True).start()


def _serve(registry: CollectorRegistry, port: int) -> None:
    """Listen, or wait until whoever has the port lets go."""
    told = False
    while True:
        try:
            prometheus_client.start_http_server(port, HOST, registry)
        except OSError as error:
            if not told:
                log.warning("METRICS_PORT %d cannot be had, and is tried again: %s", port, error)
            told = True
            time.sleep(RETRY_AFTER)
        else:
            log.info("Metrics: http://%s:%d/metrics", HOST, port)
            return


def _gauge(name: str, text: str, label: str = "assistant") -> core.GaugeMetricFamily:
    return core.GaugeMetricFamily(name, text, labels=(label,))
