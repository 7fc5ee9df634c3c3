"""``flask withhold``: take the texts of one poll out of sight, and out of every figure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from store.cli import app_settings, refuse, with_data
from store.cli.editing import members, write
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

    Taking its entry out of withheld.json shows it again.
    """
    directory = app_settings().data_dir
    poll = _find(directory, poll_id)
    before = members(directory, NAME)
    if poll_id in before["withheld"]:
        raise click.ClickException(f"{poll_id} is withheld already; see {NAME}.")
    entry = {"reason": reason, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    write(directory, NAME, {**before, "withheld": {**before["withheld"], poll_id: entry}}, before)
    click.echo(f"Withheld: {poll.model} on {poll.slug}, {poll.polled_at}; see {NAME}.")


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
