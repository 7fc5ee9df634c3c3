"""``flask backup``, ``restore`` and ``pull``: the data directory, elsewhere and back."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from flask.cli import with_appcontext

from store.cli import app_settings, plural, with_data
from store.copies import backups
from store.copies.places import PlaceError, is_cloud, place
from store.polls.leases import held, locks_in
from store.polls.schedule import LOCK, other_owner
from store.publishing.leaves import LeafList, ProofError
from store.times import rfc3339
from store.web.openapi import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.settings import Settings

TO = click.argument("where", metavar="PLACE")


@click.command()
@TO
@with_data
def backup(where: str) -> None:
    """Copy the data directory to PLACE: a folder, or s3://, gs:// or az:// with bucket and prefix.

    Only what changed is copied. It is safe beside a running service, and if it is interrupted the
    last backup stays. It refuses when history was lost since that one. Keys are no part of it.
    """
    settings = app_settings()
    if not is_cloud(where) and Path(where).resolve().is_relative_to(settings.data_dir.resolve()):
        raise click.ClickException(
            f"{where} is inside the data directory, and would be lost with it; name another place."
        )
    now = datetime.now(UTC)
    with _sentences("The backup was not made, the last one stays"):
        _list_lines(settings, now)
        made, new = backups.back_up(settings.data_dir, place(where), rfc3339(now), VERSION)
    lines, root = made.head
    click.echo(
        f"{plural(len(made.files), 'file')}, {made.size / 1e6:,.1f} MB in {where}; "
        f"{new:,} new. Proof: {lines:,} lines, root {root}"
    )


@click.command()
@TO
@with_appcontext
def restore(where: str) -> None:
    """Put the backup in PLACE into DATA_DIR, which must be new or empty.

    Every file is fetched and checked before the first is put in place. What an interrupted restore
    left is completed. Run `flask check` afterwards, and `flask verify` if there is a dataset.
    """
    _get(where, pull=False)


@click.command()
@TO
@with_appcontext
def pull(where: str) -> None:
    """Bring DATA_DIR, a copy, up to date with the backup in PLACE; for servers that do not poll.

    Every file is fetched and checked before the first is put in place, and history must begin with
    what is here. A running server shows the new state within seconds.
    """
    settings = app_settings()
    with suppress(OSError):
        if held(locks_in(settings) / LOCK):
            raise click.ClickException(
                f"{settings.data_dir} is polled by a running server, so it is no copy; nothing was "
                "changed. Set POLL_ENABLED=0 there, or name another directory."
            )
    _get(where, pull=True)


def _get(where: str, *, pull: bool) -> None:
    settings = app_settings()
    directory: Path = settings.data_dir
    if not settings.has_own_data:
        raise click.ClickException(
            "DATA_DIR is not set, and the sample that came with the checkout would be in the way; "
            "set it to the directory that is to hold the data."
        )
    click.echo(f"Data: {directory.absolute()}", err=True)
    with _sentences(f"Nothing of {where} was put in place"):
        found, written = backups.restore(directory, place(where), pull=pull)
    lines, root = found.head
    click.echo(
        f"{plural(len(found.files), 'file')} of {found.made}, made by {found.made_by}; "
        f"{written:,} written. Proof: {lines:,} lines, root {root}"
    )


def _list_lines(settings: Settings, now: datetime) -> None:
    """List in the proof what history holds, unless the service could not use what we add."""
    if os.access(settings.data_dir, os.W_OK) and not other_owner(settings):
        try:
            LeafList(settings.data_dir).extend(now)
        except ProofError as error:
            click.echo(f"warning: the proof is not extended: {error}", err=True)
        except OSError:
            pass  # what was listed before is backed up


@contextmanager
def _sentences(otherwise: str) -> Iterator[None]:
    try:
        yield
    except (backups.BackupError, PlaceError, ProofError) as error:
        raise click.ClickException(f"{otherwise}: {error}.") from None
    except OSError as error:
        what = error.filename or app_settings().data_dir
        raise click.ClickException(f"{otherwise}: {what}: {error.strerror}.") from None
