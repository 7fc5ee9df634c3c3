"""``flask dataset``: the whole history and what follows from it, as files for analysis."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from flask import current_app

from store.cli import app_settings, plural, refuse, this_writer, with_data
from store.publishing import formats
from store.publishing.dataset import DatasetError, Source, Written, write
from store.publishing.directories import DirectoryError, owned
from store.publishing.leaves import ProofError
from store.publishing.manifest import FOLDER

if TYPE_CHECKING:
    from store.memory import Store
    from store.snapshot import Snapshot

_refuse = partial(refuse, "Nothing was written, the last version stays")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), required=False)
@with_data
def dataset(directory: Path | None) -> None:
    """Write every poll, pick and ranking into DIRECTORY, by default DATA_DIR/dataset, for /data.

    Parquet and CSV by month, the sealed lines as evidence, the proof over them, and what describes
    it all. Only what changed since the last version is written. Parquet needs: pip install
    '.[data]'.
    """
    store: Store = current_app.extensions["store"]
    _refuse(store.snapshot.unpublishable)
    written = written_for(store, directory)
    found = written.manifest
    size = sum(file.bytes for file in found.files.values())
    click.echo(
        f"Version {found.version} in {directory or app_settings().data_dir / FOLDER}: "
        f"{plural(len(found.files), 'file')}, {size / 1e6:,.1f} MB; "
        f"{plural(written.new, 'new file')}."
    )
    if written.heads:
        head = written.heads[-1]
        click.echo(f"Head of {head.date}: {head.size:,} lines, root {head.root}")


def written_for(store: Store, directory: Path | None = None) -> Written:
    """The dataset of the app's data, brought up to date with what was polled since they were read.

    Raises:
        click.ClickException: it cannot be; the sentence says why.
    """
    settings = app_settings()
    target = directory or settings.data_dir / FOLDER
    base_url = settings.address(store.snapshot.catalogue.site.base_url)

    def read() -> Snapshot:
        store.reload()
        _refuse(store.snapshot.unpublishable)
        return store.snapshot

    source = Source(settings.data_dir, read, base_url)
    if not formats.has_parquet():
        click.echo("warning: without Parquet, which needs: pip install '.[data]'", err=True)
    gc.collect()
    gc.freeze()  # or the collector looks through the snapshot again and again, for a second
    try:
        with owned(target, "dataset", this_writer()):
            return write(target, source, datetime.now(UTC))
    except (DatasetError, DirectoryError, ProofError) as error:
        raise click.ClickException(f"{error}.") from None
    except OSError as error:
        what = f"{error.filename or target} cannot be written: {error.strerror}"
        raise click.ClickException(f"The dataset was not written: {what}.") from None
