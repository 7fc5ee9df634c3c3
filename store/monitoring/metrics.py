"""Metrics for Prometheus, on a port of their own on 127.0.0.1.

Requests are counted around the application; everything else is read once, at each scrape. Names
follow the conventions of Prometheus and OpenMetrics: base units, ``_total``, ``_info``.
"""

import collections
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import prometheus_client
from flask import Flask
from prometheus_client import CollectorRegistry, Counter, Histogram, core

from store.polls.locks import FOLDER
from store.polls.spending import stored_spending
from store.rankings.poll_states import ScheduleStatus, usd_on
from store.store import Store
from store.web.health import Health, examine, last_answer
from store.web.openapi import VERSION

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
    """

    def __init__(self, application: WSGIApplication, registry: CollectorRegistry) -> None:
        self._application = application
        self._requests = Counter(
            "consensus_http_requests",
            "Requests answered.",
            ("route", "method", "status"),
            registry=registry,
        )
        self._durations = Histogram(
            "consensus_http_request_duration_seconds",
            "Time from a request's head to its answer's.",
            ("route",),
            buckets=BUCKETS,
            registry=registry,
        )
        self._children: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, and count it."""
        start = time.perf_counter()
        route, status = "other", "500"

        def respond(line: str, *more: Any) -> Any:
            nonlocal route, status
            status = line[:3]
            # Flask lets go of its request before it returns.
            if (request := environ.get("werkzeug.request")) and request.url_rule:
                route = request.url_rule.rule
            return start_response(line, *more)

        try:
            return self._application(environ, respond)
        finally:
            method = environ["REQUEST_METHOD"]
            key = (route, method if method in METHODS else "other", status)
            if not (children := self._children.get(key)):  # looking them up costs twice as much
                children = self._requests.labels(*key), self._durations.labels(route)
                self._children[key] = children
            requests, durations = children
            requests.inc()
            durations.observe(time.perf_counter() - start)


class Collector:
    """Reads the health of a store at each scrape."""

    def __init__(self, app: Flask, clock: Callable[[], float] = time.time) -> None:
        self._extensions = app.extensions
        self._clock = clock

    def collect(self) -> Iterator[core.Metric]:
        """Yield every figure as it is now."""
        store: Store = self._extensions["store"]
        schedule, meaning = map(self._extensions.get, ("scheduler", "meaning"))
        now, state = self._clock(), schedule() if schedule else None
        health = examine(store, now, state, meaning)
        yield core.InfoMetricFamily("consensus_build", "The service.", {"version": VERSION})
        yield from _of_assistants(store, state)
        today = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
        locks = self._extensions["settings"].data_dir / FOLDER
        yield from _of_store(store, health, state, today, locks)


def _of_assistants(store: Store, schedule: ScheduleStatus | None) -> Iterator[core.Metric]:
    polls = core.CounterMetricFamily(
        "consensus_polls", "Polls in the history.", labels=("assistant", "outcome")
    )
    counts = collections.Counter[tuple[str, str]]()
    for poll_index in store.snapshot.poll_indexes.values():
        counts.update(poll_index.outcomes)
    for labels, number in sorted(counts.items()):
        polls.add_metric(labels, number)
    answered = _gauge("consensus_last_success_timestamp_seconds", "When it last answered.")
    paused = _gauge("consensus_paused", "Whether it is left alone for a while.")
    due = _gauge("consensus_due_polls", "Its polls that are due.")
    for model in store.snapshot.models:
        if time_ := last_answer(store.snapshot, model):
            answered.add_metric([model], datetime.fromisoformat(time_).timestamp())
        if schedule and schedule.polling:
            paused.add_metric([model], model in schedule.pauses)
            due.add_metric([model], schedule.due.get(model, 0))
    yield from (polls, answered, paused, due)


def _of_store(
    store: Store, health: Health, scheduler: ScheduleStatus | None, today: str, locks: Path
) -> Iterator[core.Metric]:
    snapshot = store.snapshot
    leader = scheduler.polling if scheduler else None
    spent = 0.0
    with suppress(OSError):  # said by health: nothing is asked then
        spent = stored_spending(locks, today).total() / 1e6
    values: Mapping[str, tuple[str, float | None]] = {
        "spent_today_usd": (
            "What today's polls cost; with daily_usd, all that counts towards it.",
            max(spent, sum(usd_on(today, snapshot.poll_states.values()).values())),
        ),
        "budget_usd": ("daily_usd of site.json.", snapshot.catalogue.site.daily_usd),
        "looked_timestamp_seconds": ("When the files were last looked at.", store.looked_at),
        "export_timestamp_seconds": ("When the data was last exported.", store.exported_at),
        "damaged_records": ("Lines of history that cannot be used.", health.damage.records),
        "degraded": ("Whether something needs a person.", bool(health.reasons)),
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


def _gauge(name: str, text: str, label: str = "assistant") -> core.GaugeMetricFamily:
    return core.GaugeMetricFamily(name, text, labels=(label,))


def begin(app: Flask, port: int) -> None:
    """Count requests from now on and serve the figures on a port, once it is free."""
    registry = CollectorRegistry()
    registry.register(Collector(app))
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    prometheus_client.ProcessCollector(registry=registry)
    app.wsgi_app = Requests(app.wsgi_app, registry)  # type: ignore[method-assign]
    threading.Thread(target=_serve, args=[registry, port], name="metrics", daemon=True).start()


def _serve(registry: CollectorRegistry, port: int) -> None:
    """Listen, or wait until whoever has the port lets go."""
    for attempt in count():
        try:
            prometheus_client.start_http_server(port, HOST, registry)
        except OSError as error:
            if not attempt:
                log.warning("METRICS_PORT %d cannot be had, and is tried again: %s", port, error)
            time.sleep(RETRY_AFTER)
        else:
            log.info("Metrics: http://%s:%d/metrics", HOST, port)
            return
