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
    experiments = {e.slug: _computed(e, view) for e in view.snapshot.summary.experiments}
    experiments |= {
        slug: _written(slug, experiment, view)
        for slug, experiment in view.snapshot.catalogue.labs.items()
    }
    order = sorted(experiments.values(), key=lambda experiment: experiment.slug)
    order.sort(key=lambda experiment: experiment.date, reverse=True)
    return wire.Labs(count=len(order), experiments=order)


def _computed(experiment: Experiment, view: View) -> wire.LabsExperiment:
    question = QUESTIONS[experiment.slug]
    return wire.LabsExperiment(
        slug=experiment.slug,
        title=question.title,
        method=question.method,
        finding=experiment.finding,
        chart=_chart(experiment.chart) if experiment.chart else None,
        date=experiment.date,
        url=view.at.experiment_page(experiment.slug),
    )


def _written(slug: str, experiment: WrittenExperiment, view: View) -> wire.LabsExperiment:
    return wire.LabsExperiment(
        slug=slug,
        title=experiment.title,
        method=experiment.method,
        finding=experiment.finding,
        chart=None,
        date=str(experiment.date),
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
