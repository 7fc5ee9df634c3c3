"""``flask deploy``: a file of ``templates/deploy``, filled in with the site's own values."""

import re
import sys
from pathlib import Path

import click
from flask import current_app

from store.cli import app_settings, with_data
from store.files import Files
from store.settings import NOT_THE_SAMPLE
from store.web.hosts import host_of

HOST = r"([\w-]+(\.[\w-]+)*|\[[0-9A-Fa-f:.]+\])"
URL_PATH = r"(?P<path>(/(?!\.+(/|$))[\w.~-]+)*)"
ADDRESS = (
    "The files need the site's address, such as https://rankings.example: a plain host, and in its "
    "path letters, digits and . _ ~ - only. Set BASE_URL, or base_url in site.json."
)
ODD_PATH = "The path of the checkout, its environment or the data has odd characters; move it."
FORMS = {
    "NAME": (r"(?!root$)[a-z][a-z0-9_]{0,30}",
             "--name must be at most 31 of a-z, 0-9 and _, a letter first, and not root."),
    "APP": (rf"{HOST}:[0-9]{{1,5}}", "--app must be an address such as 127.0.0.1:8000."),
    "BASE_URL": (rf"https?://{HOST}(:[0-9]{{1,5}})?{URL_PATH}", ADDRESS),
    "PATH": (URL_PATH, ADDRESS),
    "HOSTS": (rf"{HOST}( {HOST})*", "A host is not one; mend HOSTS, or hosts in site.json."),
    **dict.fromkeys(("CHECKOUT", "BIN", "DATA_DIR"), (r"(/[\w.+-]+)+", ODD_PATH)),
}  # fmt: skip
"""For each placeholder the pattern of a value that nginx, systemd, YAML and shells take literally,
and what is said of any other."""


@click.command()
@click.argument("file", required=False)
@click.option("--name", default="rankings", show_default=True, help="Of the unit and its user.")
@click.option("--app", default="127.0.0.1:8000", show_default=True, help="Where the app listens.")
@with_data
def deploy(file: str | None, name: str, app: str) -> None:
    """Print FILE of templates/deploy with this site's own values; without FILE, list them."""
    folder = Path(current_app.root_path, "templates", "deploy")
    files = sorted(path.name for path in folder.iterdir())
    if file is None:
        click.echo("\n".join(files))
        return
    if file not in files:
        raise click.UsageError(f"There is no {file} among {', '.join(files)}.")
    values = {"NAME": name, "APP": app, **_values()}
    text = (folder / file).read_text(encoding="utf-8")
    click.echo(re.sub("@([A-Z_]+)@", lambda match: _checked(match[1], values), text), nl=False)


def _values() -> dict[str, str]:
    """Return what the placeholders without an option stand for, unchecked."""
    settings = app_settings()
    if not settings.has_own_data:
        raise click.ClickException(f"The service may poll, but {NOT_THE_SAMPLE}.")
    catalogue = Files(settings.data_dir).scan()
    catalogue.check_governing()
    site = catalogue.site
    base_url = settings.address(site.base_url) or ""
    # In ASCII, for \w takes letters that shells and nginx read otherwise.
    url = re.fullmatch(FORMS["BASE_URL"][0], base_url, re.ASCII)
    hosts = dict.fromkeys(map(host_of, (base_url, *site.hosts, *settings.hosts)))
    return {
        # "?" is not a path, so that the address itself is refused.
        "BASE_URL": base_url, "PATH": url["path"] if url else "?",
        # nginx takes an IPv6 address in brackets only.
        "HOSTS": " ".join(f"[{host}]" if ":" in host else host for host in hosts),
        "CHECKOUT": current_app.root_path, "BIN": str(Path(sys.executable).parent),
        "DATA_DIR": str(settings.data_dir.resolve()),
    }  # fmt: skip


def _checked(placeholder: str, values: dict[str, str]) -> str:
    """Return a placeholder's value, or end the command with what is wrong with it."""
    form, remedy = FORMS[placeholder]
    if not re.fullmatch(form, values[placeholder], re.ASCII):
        raise click.ClickException(remedy)
    return values[placeholder]
