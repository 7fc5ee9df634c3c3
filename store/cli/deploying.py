"""``flask deploy``: configuration for the machine, filled in with the site's own values."""

from __future__ import annotations

import re
import sys
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from flask import current_app
from flask.cli import with_appcontext
from slugify import slugify

from store.cli.exporting import MANIFEST, Manifest
from store.files import DataDirectoryError, Files
from store.web.hosts import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.settings import Settings

WITH_ARGUMENTS = ("/search", "/search/suggest", "/api/v1/search", "/api/v1/history")


@click.group()
def deploy() -> None:
    """Print configuration for a server, with this site's own values."""


def application(command: Callable[..., None]) -> Callable[..., None]:
    """The option that says where the application listens."""
    return click.option(
        "--app",
        "apps",
        multiple=True,
        default=["127.0.0.1:8000"],
        show_default=True,
        metavar="HOST:PORT",
        help="Where the application listens; several replicas of it, if given again.",
    )(command)


@deploy.command()
@application
@click.option("--listen", default="80", show_default=True, help="What nginx listens to.")
@click.option("--tree", type=click.Path(path_type=Path), help="Serve what `flask export` wrote.")
@click.option("--cache", default=None, help="Where nginx keeps answers.")
@click.option("--log", default=None, help="Where nginx logs, one JSON line a request.")
@with_appcontext
def nginx(
    apps: tuple[str, ...], listen: str, tree: Path | None, cache: str | None, log: str | None
) -> None:
    """A proxy that makes slow clients harmless and keeps answers while they are fresh."""
    values = _values(apps)
    manifest = _manifest(tree) if tree else None
    click.echo(
        _render(
            "nginx.conf",
            **values,
            listen=listen,
            tree=tree.resolve() if tree else None,
            cache=cache or f"/var/cache/nginx/{values['unit']}",
            log=log or f"/var/log/nginx/{values['unit']}.log",
            pages_with_arguments=WITH_ARGUMENTS,
            headers=_headers(manifest) if manifest else {},
            odd_types=_odd_types(manifest) if manifest else {},
        )
    )


@deploy.command()
@application
@with_appcontext
def systemd(apps: tuple[str, ...]) -> None:
    """A unit that keeps the service running and lets it do nothing else."""
    places = {
        "checkout": current_app.root_path,
        "python": sys.executable,
        "data": str(current_app.extensions["settings"].data_dir.resolve()),
    }
    for path in places.values():
        if not path.isprintable() or '"' in path or "\\" in path:
            raise click.ClickException(f"systemd would misread the path {path!r}; move it.")
    click.echo(_render("systemd.service", **_values(apps), **places))


def _values(apps: tuple[str, ...]) -> dict[str, Any]:
    """What every template shows.

    Raises:
        click.ClickException: the site has no address or no data yet.
    """
    settings: Settings = current_app.extensions["settings"]
    try:
        site = Files(settings.data_dir).scan().site
    except DataDirectoryError as error:
        raise click.ClickException(str(error)) from None
    base_url = (settings.base_url or site.base_url or "").rstrip("/")
    if not base_url:
        raise click.ClickException(
            "BASE_URL is not set, and the configuration needs the site's name; set it, or "
            "base_url in site.json."
        )
    return {
        "name": site.name,
        "unit": _unit(site.name),
        "base_url": base_url,
        "host": host_of(base_url),
        "apps": apps,
    }


def _unit(name: str) -> str:
    """The site's name as a unit, a user and nginx's variables may be called: at most 31 letters.

    It begins so that no site's name is a user or a unit that is there already, such as root.
    """
    return f"rankings_{slugify(name, separator='_', max_length=20)}".rstrip("_")


def _manifest(tree: Path) -> Manifest:
    try:
        return msgspec.json.decode((tree / "current" / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError):
        raise click.ClickException(
            f"{tree} holds no exported tree yet; run `flask export {tree}` first."
        ) from None


def _headers(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Name → pattern of media types → value; one that all types share stands under ``""``."""
    types = {exported.type.partition(";")[0] for exported in manifest.files.values()}
    return {
        name: {"": next(iter(values.values()))}
        if len(set(values.values())) == 1 and values.keys() == types
        else {re.escape(type_): value for type_, value in values.items()}
        for name, values in sorted(manifest.headers.items())
    }


def _odd_types(manifest: Manifest) -> dict[str, tuple[str, str]]:
    """File and media type of what nginx would not know by its ending."""
    usual = {".md": "text/markdown", ".atom": "application/atom+xml", ".xml": "application/xml"}
    return {
        path: (exported.file, exported.type)
        for path, exported in sorted(manifest.files.items())
        if exported.type.partition(";")[0]
        != usual.get(Path(exported.file).suffix, guess_type(exported.file)[0])
        or not path.strip("/").isascii()
    }


def _render(template: str, **values: Any) -> str:
    source = Path(current_app.root_path, "templates", "deploy", template)
    plain = current_app.jinja_env.overlay(autoescape=False)
    return plain.from_string(source.read_text(encoding="utf-8")).render(**values)
