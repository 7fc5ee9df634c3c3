"""``flask withhold``: take the texts of one poll out of sight, and out of every figure."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from store.cli import app_settings, refuse, with_data
from store.data_file import MAX_BYTES, decode, load
from store.disk import atomic_write, locked
from store.history import History
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
    entry = {"reason": reason, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    try:
        with locked(directory.resolve()):  # against another command, whose entry would be lost
            record = _members(directory)
            if poll_id in record["withheld"]:
                raise click.ClickException(f"{poll_id} is withheld already; see {NAME}.")
            record["withheld"][poll_id] = entry
            text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
            data = text.encode(errors="surrogatepass")  # what is no UTF-8 is refused below
            if len(data) > MAX_BYTES:
                message = f"it would be larger than {MAX_BYTES:,} bytes"
                raise click.ClickException(f"{NAME} was left as it was: {message}.")
            if problems := decode(NAME, data).problems:
                raise click.ClickException(f"{NAME} was left as it was: {problems[0].message}.")
            atomic_write(directory / NAME, data)
    except OSError as error:
        raise click.ClickException(f"{NAME} cannot be written: {error.strerror}.") from None
    click.echo(f"Withheld: {poll.model} on {poll.slug}, {poll.polled_at}; see {NAME}.")


def _members(directory: Path) -> dict[str, Any]:
    """Return the members of withheld.json; where it has a mistake, that is mended by hand first."""
    loaded = load(directory, NAME)
    if loaded is None:
        raise click.ClickException(f"{NAME} is not there.")
    if loaded.problems:
        raise click.ClickException(f"Mend this first: {loaded.problems[0]}.")
    record: dict[str, Any] = json.loads(loaded.text)
    return record


def _find(directory: Path, poll_id: str) -> Poll:
    """Return the poll of an id; a history that cannot be read may hold it, which is said."""
    history = History(directory / "history")
    unread: list[Problem] = []
    for slug in sorted(history.signatures()):
        log = history.read(slug)
        for stored in log.polls:
            if stored.poll.id == poll_id:
                return stored.poll
        unread += log.problems if log.is_lost else ()
    refuse(f'No poll that can be read has the id "{poll_id}"', unread)
    raise click.ClickException(
        f'No poll has the id "{poll_id}"; ids stand in /api/v1/history and on the pages of polls.'
    )
