"""Experiments as readers see them: computed ones with what templates/labs.json says of each."""

from pathlib import Path

import msgspec
from msgspec import Struct

from store.rankings.experiments import Chart, Experiment
from store.records import WrittenExperiment
from store.web import shapes as wire
from store.web.certainty_view import PLACES
from store.web.view import View


class Question(Struct, frozen=True):
    """What an experiment asks, and how its figures are computed."""

    title: str
    method: str


QUESTIONS = msgspec.json.Decoder(dict[str, Question]).decode(
    (Path(__file__).parents[2] / "templates/labs.json").read_bytes()
)
"""The question of each computed experiment, by slug."""


def labs(view: View) -> wire.Labs:
    """Return the computed experiments and those written by hand, newest first."""
    computed, written = view.snapshot.summary.experiments, view.snapshot.catalogue.labs
    found = {e.slug: _experiment(e, QUESTIONS[e.slug], e.chart, e.slug, view) for e in computed}
    found |= {slug: _experiment(e, e, None, slug, view) for slug, e in written.items()}
    experiments = [found[slug] for slug in sorted(found)]
    experiments.sort(key=lambda experiment: experiment.date, reverse=True)
    return wire.Labs(count=len(experiments), experiments=experiments)


def _experiment(
    source: Experiment | WrittenExperiment,
    question: Question | WrittenExperiment,
    chart: Chart | None,
    slug: str,
    view: View,
) -> wire.LabsExperiment:
    return wire.LabsExperiment(
        slug=slug,
        title=question.title,
        method=question.method,
        finding=source.finding,
        chart=_chart(chart) if chart else None,
        date=str(source.date),
        url=view.at.experiment_page(slug),
    )


def _chart(chart: Chart) -> wire.LabsChart:
    figures = [
        wire.LabsFigure(
            label=bar.label,
            value=round(bar.value, PLACES),
            interval=tuple([round(end, PLACES) for end in bar.interval]),
            n=bar.n,
        )
        for bar in chart.bars
    ]
    return wire.LabsChart(what=chart.what, counted=chart.counted, figures=figures)
