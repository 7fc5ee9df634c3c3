"""``flask deploy``: configuration for the machine, filled in with the site's own values."""

from __future__ import annotations

import hashlib
import re
import sys
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import msgspec
from flask import current_app
from slugify import slugify

from store.cli import app_settings, with_data
from store.cli.dashboards import dashboard
from store.cli.exporting import CACHING, MANIFEST
from store.files import Files
from store.publishing.trees import DATA, Manifest
from store.settings import NOT_THE_SAMPLE
from store.web.hosts import host_name, host_of, is_ip
from store.web.pages.rendering import environment
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OF_PAGES = {"a", "b", "since"}
"""Arguments that only pages take: the sides of a comparison, the day that changes begin with."""

ARGUMENTS = tuple(
    sorted({p.name for route in ROUTES for p in route.parameters if p.place == "query"} | OF_PAGES)
)
"""Arguments with which an address is never answered from an exported tree."""


def address(value: str, *, any_host: bool = False) -> str:
    """HOST:PORT, and with ``any_host`` a port alone or ``*:PORT``; for use in configuration."""
    host, _, port = value.rpartition(":")
    host_fits = (any_host and host in ("", "*")) or _is_host(host)
    port_fits = re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65_536  # noqa: PLR2004
    if not (host_fits and port_fits) or value.startswith(":"):
        more = ", 80 or *:80" if any_host else " or [::1]:8000"
        raise click.BadParameter(f'"{value}" is no address such as 127.0.0.1:8000{more}')
    return value


def unit_name(value: str) -> str:
    """A name that a systemd unit, a user and nginx's variables can all have."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,30}", value) or value == "root":
        raise click.BadParameter(
            f'"{value}" cannot be the name: at most 31 of a-z, 0-9 and _, a letter first, '
            "and not root"
        )
    return value


@click.group()
def deploy() -> None:
    """Print configuration for a server, with this site's own values."""


def common(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where the application listens and what the service is called."""
    app = click.option(
        "--app",
        "apps",
        multiple=True,
        default=["127.0.0.1:8000"],
        show_default=True,
        type=address,
        metavar="HOST:PORT",
        help="Where the application listens; several replicas of it, if given again.",
    )
    unit = click.option(
        "--unit",
        type=unit_name,
        metavar="NAME",
        help="What the unit, its user and nginx's names are called. Otherwise a name that follows "
        "from the site's name and address and from the data directory.",
    )
    return app(unit(command))


@deploy.command()
@common
@click.option(
    "--listen",
    default="80",
    show_default=True,
    type=lambda value: address(value, any_host=True),
    metavar="[HOST:]PORT",
    help="What nginx listens to.",
)
@click.option("--tree", type=click.Path(path_type=Path), help="Serve what `flask export` wrote.")
@click.option("--cache", default=None, help="Where nginx keeps answers.")
@click.option("--log", default=None, help="Where nginx logs, one JSON line a request.")
@with_data
def nginx(
    apps: tuple[str, ...],
    unit: str | None,
    listen: str,
    tree: Path | None,
    cache: str | None,
    log: str | None,
) -> None:
    """A proxy that makes slow clients harmless and keeps answers while they are fresh."""
    values = _values(apps, unit)
    manifest = _manifest(tree, values["base_url"]) if tree else None
    places = {
        "tree": str(tree.resolve()) if tree else "",
        "cache": cache or f"/var/cache/nginx/{values['unit']}",
        "log": log or f"/var/log/nginx/{values['unit']}.log",
    }
    _refuse_odd("nginx", places.values(), r"""["\\$*?[]""")
    _print(
        "nginx.conf",
        **values,
        **places,
        listen=listen,
        arguments=ARGUMENTS,
        headers=_headers(manifest) if manifest else {},
        odd_types=_odd_types(manifest) if manifest else {},
    )


@deploy.command()
@common
@with_data
def systemd(apps: tuple[str, ...], unit: str | None) -> None:
    """A unit that keeps the service running and lets it do nothing else.

    For several --app it is a template, of which each is an instance.
    """
    if not app_settings().has_own_data:
        raise click.ClickException(f"The service may poll, but {NOT_THE_SAMPLE}.")
    places = {
        "checkout": current_app.root_path,
        "python": sys.executable,
        "data": str(app_settings().data_dir.resolve()),
    }
    _refuse_odd("systemd", places.values(), r"""["\\$`]""")
    values = _values(apps, unit)
    instances = [f"'{values['unit']}@{_escaped(app)}'" for app in values["apps"]]
    several = len(instances) > 1
    _print(
        "systemd.service",
        **values,
        **places,
        several=several,
        services=" ".join(instances) if several else values["unit"],
    )


@deploy.command()
@common
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=9464,
    show_default=True,
    help="METRICS_PORT of the service.",
)
@click.option("--rules", is_flag=True, help="Print the alert rules instead.")
@with_data
def prometheus(apps: tuple[str, ...], unit: str | None, port: int, *, rules: bool) -> None:
    """What to scrape, and with --rules when to call a person."""
    template = "prometheus.rules.yml" if rules else "prometheus.yml"
    values = _values(apps, unit)
    days = Files(app_settings().data_dir).scan().site.poll_every_days
    quoted = re.sub(r'["\\{}]', "", values["name"])
    more = {"port": port, "poll_every_days": days, "name_in_quotes": quoted}
    _print(template, **values, **more)


@deploy.command()
@common
@with_data
def grafana(apps: tuple[str, ...], unit: str | None) -> None:
    """A dashboard of the metrics, as JSON to import."""
    values = _values(apps, unit)
    found = dashboard(values["name"], values["unit"])
    click.echo(msgspec.json.format(msgspec.json.encode(found)))


@deploy.command()
@common
@click.option("--extras", default="", metavar="NAMES", help="Extras to install: data,cloud.")
@with_data
def container(apps: tuple[str, ...], unit: str | None, extras: str) -> None:
    """A Containerfile: two stages, no root, no secret in it."""
    if not re.fullmatch("([a-z]+(,[a-z]+)*)?", extras):
        raise click.BadParameter(f'"{extras}" is no list of extras such as data,cloud')
    _print("Containerfile", **_values(apps, unit), extras=extras)


@deploy.command()
@common
@with_data
def compose(apps: tuple[str, ...], unit: str | None) -> None:
    """Service and nginx for podman or docker compose: read-only, keys as files."""
    assistants = Files(app_settings().data_dir).scan().assistants
    names = {assistant.key_env for assistant in assistants if assistant.key_env}
    keys = sorted(name for name in names if re.fullmatch("[A-Z][A-Z0-9_]*", name))
    checkout = current_app.root_path
    _refuse_odd("compose", [checkout], r"""["\\$`]""")
    _print("compose.yaml", **_values(apps, unit), keys=keys, checkout=checkout)


def _values(apps: tuple[str, ...], unit: str | None) -> dict[str, Any]:
    """The variables of every template, ``path`` without a final slash; a site needs an address."""
    settings = app_settings()
    site = Files(settings.data_dir).scan().site
    base_url = settings.address(site.base_url)
    if not base_url:
        raise click.ClickException(
            "BASE_URL is not set, and the configuration needs the site's address, such as "
            "https://rankings.example; set it, or base_url in site.json."
        )
    host, path = _host_and_path(base_url)
    hosts = [host, *map(_host_alone, (*site.hosts, *settings.hosts))]
    if not all(hosts):
        raise click.ClickException("A further host is none; mend HOSTS, or hosts in site.json.")
    return {
        "name": site.name,
        "unit": unit or _unit(site.name, f"{host}{path}\n{settings.data_dir.resolve()}"),
        "base_url": base_url,
        "host": host,
        "hosts": tuple(dict.fromkeys(hosts)),
        "path": path,
        "apps": tuple(dict.fromkeys(apps)),
    }


def _host_and_path(base_url: str) -> tuple[str, str]:
    """Host and path as nginx writes them; what nginx, systemd or a shell misreads is refused."""
    host = _host_alone(base_url)
    parts = urlsplit(base_url if host else "")
    if not (
        host
        and re.fullmatch(r"(\[[0-9A-Fa-f:.]+]|[\w.-]+)(:[0-9]{1,5})?", parts.netloc)
        and re.fullmatch(r"(/(?!\.+(/|$))[A-Za-z0-9._~-]+)*", parts.path)
        and base_url.endswith(f"//{parts.netloc}{parts.path}")
    ):
        raise click.ClickException(
            "The base URL cannot stand in configuration; it needs a plain host, and in its path "
            "letters, digits and . _ ~ - only."
        )
    return host, parts.path


def _host_alone(address: str) -> str:
    """The host of an address as nginx writes it; empty where there is none."""
    host = host_of(address)
    host = f"[{host}]" if ":" in host else host
    return host if _is_host(host) else ""


def _unit(name: str, places: str) -> str:
    """What a unit, a user and nginx's variables are called: at most 31 letters.

    The prefix keeps it from being an existing user such as root; the digest of address and data
    directory tells two sites of one name apart on one machine.
    """
    digest = hashlib.sha256(places.encode()).hexdigest()[:6]
    words = slugify(name, separator="_", max_length=15).strip("_")
    return "_".join(filter(None, ("rankings", words, digest)))


def _is_host(text: str) -> bool:
    """Whether it is a host name, an IPv4 address or an IPv6 address in brackets."""
    name = host_name(text)
    if text.lower() not in (name, f"[{name}]") or not name:
        return False
    return is_ip(name) if text.startswith("[") or re.fullmatch("[0-9.]+", name) else True


def _refuse_odd(reader: str, paths: Iterable[str], odd: str) -> None:
    """Refuse paths with characters that are special in the configuration's syntax."""
    for path in paths:
        if not path.isprintable() or re.search(odd, path):
            raise click.ClickException(f"{reader} would misread the path {path!r}; name another.")


def _escaped(instance: str) -> str:
    """An address as a unit's instance is written. Source: systemd.unit(5), string escaping."""
    return re.sub(r"[^A-Za-z0-9:_.]", lambda char: f"\\x{ord(char[0]):02x}", instance)


def _manifest(tree: Path, base_url: str) -> Manifest:
    """What an exported tree holds; one that is not there, or for another address, is refused."""
    current = tree / "current"
    try:
        manifest = msgspec.json.decode((current / MANIFEST).read_bytes(), type=Manifest)
        (current / CACHING).stat()
    except (OSError, ValueError):
        raise click.ClickException(
            f"{tree} holds no tree of this version; run `flask export {tree}` first."
        ) from None
    links = "".join(manifest.headers.get("Link", {}).values())
    if f"<{base_url}/" not in links:
        raise click.ClickException(
            f"{tree} was exported for another address than {base_url}, and its links lead there; "
            f"run `flask export {tree}` again."
        )
    return manifest


def _headers(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Name → pattern of media types → value; one that all types share stands under ``""``."""
    types = {exported.media_type for exported in manifest.files.values()}
    return {
        name: {"": next(iter(values.values()))}
        if len(set(values.values())) == 1 and values.keys() == types
        else {re.escape(type_): value for type_, value in values.items()}
        for name, values in sorted(manifest.headers.items())
    }


def _odd_types(manifest: Manifest) -> dict[str, tuple[str, str]]:
    """File and media type of what nginx would not recognise by its extension."""
    usual = {".md": "text/markdown", ".atom": "application/atom+xml", ".xml": "application/xml"}
    return {
        path: (exported.file, exported.type)
        for path, exported in sorted(manifest.files.items())
        if (
            not path.startswith(DATA)
            and exported.media_type
            != usual.get(Path(exported.file).suffix, guess_type(exported.file)[0])
        )
        or not path.strip("/").isascii()
    }


def _print(template: str, **values: Any) -> None:
    click.echo(environment().get_template(f"deploy/{template}").render(**values))
