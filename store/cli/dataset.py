"""``flask dataset``: the whole history and what follows from it, as files for analysis."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click
from flask import current_app

from store.cli import app_settings, local, refuse, with_data
from store.ledger import FOLDER as PROOF
from store.ledger import LedgerError, Proof
from store.publishing import formats
from store.publishing.dataset import Source, Written, write
from store.publishing.directories import CURRENT, DirectoryError, basis_of, owned
from store.publishing.manifest import FOLDER
from store.rankings.sentences import plural
from store.snapshot import Snapshot
from store.store import Store
from store.web.openapi import VERSION
from store.web.pages import pictures

_refuse = partial(refuse, "Nothing was written, the last dataset stays")


close_days_option = click.option(
    "--close-days",
    is_flag=True,
    help="First close all past UTC days: you answer for this machine's clock.",
)


def close_past_days() -> None:
    """Close yesterday and the days before by this machine's clock; wait for who appends or copies.

    Raises:
        click.ClickException: the ledger is damaged, or it could not be written.
    """
    home = app_settings().data_dir
    try:
        heads = Proof(home).close(f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}")
    except LedgerError as error:
        raise click.ClickException(f"No day is closed: {error}.") from None
    except OSError as error:
        where = error.filename or home / PROOF
        raise click.ClickException(f"No day is closed: {where}: {error.strerror}.") from None
    for head in heads:
        click.echo(f"Closed {head.day}: {head.lines:,} lines, root {head.root}")


@click.command()
@click.argument(
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    required=False,
    callback=local,
)
@close_days_option
@with_data
def dataset(directory: Path | None, *, close_days: bool) -> None:
    """Write every poll, pick and ranking into DIRECTORY/current, by default for /data.

    That is DATA_DIR/dataset. Tables in Parquet (needs: pip install '.[data]'), the small ones in
    CSV too, the sealed lines as evidence, the proof over them, a README. It is written whole and
    takes the last one's place in one step; where nothing changed, nothing is written.
    """
    if close_days:
        close_past_days()
    store: Store = current_app.extensions["store"]
    _refuse(store.snapshot.unpublishable)
    target = directory or app_settings().data_dir / FOLDER
    with dataset_in(target, store) as written:
        files = written.manifest.files
        size = sum(file.bytes for file in files.values())
        click.echo(
            f"Version {written.manifest.version} in {target / CURRENT}: "
            f"{plural(len(files), 'file')}, {size / 1e6:,.1f} MB"
            f"{'' if written.is_new else '; nothing changed'}."
        )
        for head in store.snapshot.ledger.heads[-1:]:
            click.echo(f"Head of {head.day}: {head.lines:,} lines, root {head.root}")


@contextmanager
def dataset_in(target: Path, store: Store) -> Iterator[Written]:
    """Bring a dataset up to date with what was polled since the app read it, and hold its lock.

    Raises:
        click.ClickException: it cannot be; the sentence says why.
    """
    settings = app_settings()
    base_url = settings.address(store.snapshot.catalogue.site.base_url)

    def read() -> Snapshot:
        store.reload()
        _refuse(store.snapshot.unpublishable)
        return store.snapshot

    def basis() -> str:
        draw = pictures.rasteriser()
        mark = pictures.mark_of(draw) if draw else b""
        return basis_of(Path(current_app.root_path), settings.data_dir, base_url, mark)

    if not formats.has_parquet():
        click.echo("warning: without Parquet, which needs: pip install '.[data]'", err=True)
    gc.collect()
    gc.freeze()  # or the collector looks through the snapshot again and again, for a second
    source = Source(settings.data_dir, read, base_url, VERSION, basis)
    with ExitStack() as stack:
        try:
            home = stack.enter_context(owned(target, "dataset", settings.data_dir))
            written = write(home, source)
        except (DirectoryError, LedgerError) as error:
            raise click.ClickException(f"{error}.") from None
        except OSError as error:
            reason = f"{error.filename or target} cannot be written: {error.strerror}"
            raise click.ClickException(f"The dataset was not written: {reason}.") from None
        yield written
