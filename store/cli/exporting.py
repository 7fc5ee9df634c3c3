"""``flask export``: everything that can be served without a process, as files."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import click
import msgspec
from flask import current_app

from store.cli import app_settings, refuse, with_data
from store.cli.dataset import close_days_option, close_past_days, dataset_in
from store.disk import atomic_write
from store.publishing import manifest as datasets
from store.publishing.dataset import Written
from store.publishing.directories import (
    CURRENT,
    Directory,
    DirectoryError,
    digests_in,
    is_whole,
    owned,
)
from store.publishing.trees import TREE_MANIFEST, Tree, TreeError, TreeManifest, category_paths
from store.publishing.uploads import Bucket, UploadError
from store.store import EXPORTED, Store

COMPANIONS = ("/badge/", "/embed/", "/cards/")
"""Addresses that come and go with a page, as CSV does: they are not counted as gone."""
MAX_GONE, MAX_GONE_SHARE = 20, 1000
"""Addresses that may vanish unasked: 20, or one in 1,000 if more (store/README.md, Publishing)."""

_refuse = partial(refuse, "Nothing was published, the last tree stays")


@click.command()
@click.argument("where", metavar="DIRECTORY|BUCKET")
@click.option(
    "--even-if",
    type=click.IntRange(min=0),
    metavar="N",
    help="Publish although N addresses would be gone, as the refusal says.",
)
@close_days_option
@with_data
def export(where: str, even_if: int | None, *, close_days: bool) -> None:
    """Write every answer that needs no process into DIRECTORY/current, for nginx or a CDN.

    Or into a bucket: s3://NAME/PREFIX, gs:// or az:// (needs pip install '.[cloud]').

    The bytes are those the service would send, with a gzip file beside each. Where nothing changed,
    nothing is written; search, history, past days and MCP still need the service. Nothing is
    published, and the last tree stays, while a file that governs has an error, while a category
    cannot be shown because its file or its history is broken or lost, or when many addresses would
    be gone.
    """
    if close_days:
        close_past_days()
    store: Store = current_app.extensions["store"]
    snapshot = store.snapshot
    if not app_settings().address(snapshot.catalogue.site.base_url):
        raise click.ClickException(
            "BASE_URL is not set, and every exported address begins with it; set it, or base_url "
            "in site.json."
        )
    _refuse(snapshot.unpublishable)
    sentence = (_upload if "://" in where else _export)(where, store, even_if)
    try:
        atomic_write(store.directory / EXPORTED, b"")
    except OSError as error:
        why = f"{EXPORTED} cannot be written: {error.strerror}"
        click.echo(f"warning: {why}; /healthz does not know of this export", err=True)
    click.echo(sentence)


def _export(where: str, store: Store, even_if: int | None) -> str:
    """Bring an exported directory up to date; return what came of it."""
    dataset = app_settings().data_dir / datasets.FOLDER
    try:
        with (
            owned(Path(where), "export", store.directory) as home,
            dataset_in(dataset, store) as written,
        ):
            manifest, changed = _updated(home, store, written, even_if)
    except (DirectoryError, TreeError) as error:
        raise click.ClickException(f"Nothing was published: {error}.") from None
    except OSError as error:
        raise click.ClickException(f"{where} cannot be written: {error.strerror}") from None
    return f"{_counts(manifest)} in {Path(where, CURRENT)}; {changed:,} answers changed."


def _upload(where: str, store: Store, even_if: int | None) -> str:
    """Bring a bucket up to date; return what came of it."""
    dataset = app_settings().data_dir / datasets.FOLDER
    try:
        bucket = Bucket(where)
        with dataset_in(dataset, store) as written, TemporaryDirectory() as home:
            before, basis = bucket.read_manifest()
            if written.basis and basis == written.basis:
                return f"{_counts(before)} in {where}; 0 objects written."
            tree = Tree(Path(home), before, Path(home), {})
            manifest = tree.fill(current_app, store.snapshot, dataset / CURRENT)
            _refuse_gone(before, manifest, store, even_if)
            count = bucket.upload(before, manifest, Path(home), written.basis)
    except (UploadError, TreeError) as error:
        raise click.ClickException(f"The export did not end: {error}.") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or gettempdir()}: {error.strerror}.") from None
    return f"{_counts(manifest)} in {where}; {count:,} objects written."


def _counts(manifest: TreeManifest) -> str:
    return f"{len(manifest.files):,} answers and {len(manifest.redirects):,} redirects"


def _updated(
    home: Directory, store: Store, written: Written, even_if: int | None
) -> tuple[TreeManifest, int]:
    """Put a new tree in place unless the one there is whole and was made from the same.

    Returns its manifest and the number of answers that changed.
    """
    before = _manifest_in(home.current)
    digests = digests_in(home.current)
    # Bytes may rot and files be lost meanwhile, so an equal basis is not enough.
    if written.basis and written.basis == home.basis and is_whole(home.current, digests):
        return before, 0
    dataset = app_settings().data_dir / datasets.FOLDER / CURRENT
    with home.draft() as folder:
        tree = Tree(folder, before, home.current, digests)
        manifest = tree.fill(current_app, store.snapshot, dataset)
        _refuse_gone(before, manifest, store, even_if)
        tree.finish(manifest)
        home.publish(written.basis)
    return manifest, tree.changed


def _refuse_gone(
    before: TreeManifest, manifest: TreeManifest, store: Store, even_if: int | None
) -> None:
    """End the command if too many published addresses would be gone."""
    published = {
        path
        for path in before.addresses
        if not path.startswith(COMPANIONS) and not path.endswith(".csv")
    }
    # Whoever accepted that history is lost has been asked already.
    accepted = category_paths(current_app, store.history.ledger.accepted)
    gone = published - manifest.addresses - accepted
    if len(gone) > max(MAX_GONE, len(published) // MAX_GONE_SHARE) and even_if != len(gone):
        shown = ", ".join(sorted(gone)[:3])
        named = "" if even_if is None else f", not {even_if:,}"
        count = f"{len(gone):,} of {len(published):,} published addresses would be gone"
        _refuse([f"{count}{named}: {shown}, …; if that is meant: --even-if {len(gone)}"])


def _manifest_in(tree: Path) -> TreeManifest:
    """Return the manifest of the last tree, empty if there is none; damage ends the command."""
    if not tree.is_symlink():
        return TreeManifest({}, {})
    try:
        return msgspec.json.decode((tree / TREE_MANIFEST).read_bytes(), type=TreeManifest)
    except (OSError, ValueError):
        raise click.ClickException(
            f"{tree / TREE_MANIFEST} cannot be read, so nobody can say which addresses would be "
            f"gone; put it back, or remove {tree} to begin anew."
        ) from None
