"""``flask withhold``: take the texts of one poll out of sight, and out of every figure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from store.cli import app_settings, refuse, with_data
from store.cli.editing import Edit, canonical, carry_out, text_of
from store.files import Files
from store.history import History

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Poll, Problem

NAME = "withheld.json"


@click.command()
@click.argument("poll_id", metavar="ID")
@click.option("--reason", required=True, help="Why, in one line; readers of the history see it.")
@with_data
def withhold(poll_id: str, reason: str) -> None:
    """Withhold the poll ID: its record stays in its place without its texts and counts nowhere.

    Prints the diff it wrote to withheld.json; taking the entry out shows the poll again.
    """
    directory = app_settings().data_dir
    poll = _find(directory, poll_id)
    for problem in Files(directory).scan().governing_errors:
        if problem.file == NAME:  # it withheld others, perhaps, and a new one would show them
            raise click.ClickException(f"Mend this first: {problem}")
    entry = {"reason": reason, "date": datetime.now(UTC).date().isoformat()}
    before = text_of(directory, NAME)
    record = json.loads(before)
    if poll_id in record["withheld"]:
        raise click.ClickException(f"{poll_id} is withheld already; see {NAME}.")
    record["withheld"][poll_id] = entry
    edit = Edit(NAME, before, canonical(record))
    carry_out(directory, [edit])
    click.echo(edit.diff, nl=False)
    click.echo(f"Withheld: {poll.model} on {poll.slug}, {poll.polled_at}.", err=True)


def _find(directory: Path, poll_id: str) -> Poll:
    history = History(directory / "history")
    unread: list[Problem] = []
    for slug in sorted(history.signatures()):
        log = history.read(slug)
        for stored in log.polls:
            if stored.poll.id == poll_id:
                return stored.poll
        unread += log.problems if log.unread else ()
    refuse(f'No poll that can be read has the id "{poll_id}"', unread)
    raise click.ClickException(
        f'No poll has the id "{poll_id}"; ids stand in /api/v1/history and on the pages of polls.'
    )
