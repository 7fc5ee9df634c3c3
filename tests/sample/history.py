"""Makes the shipped history and its proof anew, byte for byte, with the commands of an operator.

    python tests/sample/history.py DIR        into DIR, a copy of data/ without both

Whoever adds a category to the sample, or rewords a question, makes its history so.
"""

import json
import sys
from pathlib import Path
from unittest.mock import patch

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[i]) for i in (1, 2)]

from collections.abc import Collection, Sequence

from builders import command

import sample
from store.ledger import Proof

MODELS = ("Model A", "Model B", "Model C", "Model D")
EVERY = 40
"""Of so many categories in a row, one has an answer that is stale, and one that is too old."""
LATE, STALE = 6, 26
OFTEN = (
    "crm-software-for-startups", "food-delivery-app", "budget-smartphone", "pellet-grill",
    "payroll-software-for-small-business", "telescope-for-beginners", "password-manager",
    "wireless-earbuds", "electric-car", "carry-on-luggage", "language-learning-app",
    "code-editor", "blender", "toaster", "backpack", "drone", "dishwasher", "dog-food",
    "protein-powder", "sleeping-bag", "lawn-mower", "project-management-software",
    "email-marketing-software", "espresso-machine", "running-shoes", "office-chair",
    "note-taking-app", "website-builder", "meal-kit-delivery-service", "help-desk-software",
    "accounting-software", "vector-database", "video-conferencing-software", "web-hosting",
    "refrigerator", "electric-toothbrush", "humidifier", "vpn", "crm-software", "robot-vacuum",
)  # fmt: skip
"""Categories that are asked every week, as all software is."""

WEEKS = ("2026-09-28", "2026-10-05", "2026-10-12", "2026-10-19")
"""Weeks in which they are asked before everything else is, so that their certainty is measured."""


def fill(directory: Path, slugs: Collection[str], chosen: Collection[str] | None = None) -> None:
    """Poll the categories of a directory without history; ``chosen`` are those that it has.

    ``slugs`` are those of the whole catalogue: a category's place among them says when it is
    polled. At the end every day is closed.
    """
    files = sorted(f"{slug}.json" for slug in slugs)
    places = {file.removesuffix(".json"): place % EVERY for place, file in enumerate(files)}
    shown = sorted(slugs if chosen is None else chosen)
    late = [slug for slug in shown if places[slug] == LATE]
    stale = [slug for slug in shown if places[slug] == STALE]
    often = [slug for slug in shown if slug in OFTEN or "software" in slug]
    with patch("store.polls.sample.reply", sample.reply):
        _poll(directory, late, "2026-07-13T06", MODELS[3:])  # by now it counts as missing
        _poll(directory, stale, "2026-09-14T06", MODELS[3:])
        for week in WEEKS:
            _poll(directory, often, f"{week}T06", MODELS)
        _poll(directory, shown, "2026-10-26T06", MODELS[:3])
        rest = [slug for slug in shown if slug not in {*late, *stale}]
        _poll(directory, rest, "2026-10-26T06", MODELS[3:])
        for day in (27, 28, 29):  # until every assistant has answered everywhere
            for model in MODELS:
                silent = [slug for slug in shown if model not in _answered(directory, slug)]
                _poll(directory, silent, f"2026-10-{day}T06", [model])
        _poll(directory, often, "2026-11-02T06", MODELS)
        _poll(directory, often, "2026-11-09T06", MODELS)
    Proof(directory).close("2026-11-09")


def _poll(directory: Path, slugs: Sequence[str], hour: str, models: Sequence[str]) -> None:
    """Run ``flask poll`` as of an hour; answers that cannot be read are part of the sample."""
    if not slugs:
        return
    named = [option for model in models for option in ("--model", model)]
    done = command(directory, "poll", *slugs, *named, "--at", f"{hour}:00:00Z")
    if "Error" in done.output or not (done.exception is None or done.exit_code in (0, 1)):
        raise RuntimeError(f"flask poll, {hour}: {done.output}")


def _answered(directory: Path, slug: str) -> set[str]:
    """Return the assistants that answered a category."""
    lines = (directory / "history" / f"{slug}.jsonl").read_bytes().splitlines()
    return {poll["model"] for poll in map(json.loads, lines) if poll["pick"]}


def main() -> None:
    """Fill the directory that the command line names."""
    directory = Path(sys.argv[1])
    fill(directory, [file.stem for file in (directory / "categories").glob("*.json")])


if __name__ == "__main__":
    main()
