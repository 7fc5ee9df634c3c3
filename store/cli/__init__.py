"""The ``flask`` commands, one module for each group, imported when one of its commands is run."""

import errno
import re
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import ParamSpec, TypeVar

import click
from flask import Flask, current_app
from flask.cli import AppGroup, get_version, version_option, with_appcontext
from rapidfuzz import process

from store.files import DataDirectoryError, check_data_in
from store.history import HistoryError
from store.polls.locks import DamagedFileError
from store.settings import Settings
from store.text import slips

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Names and not functions: no command waits for the imports of all the others.
COMMANDS = {
    "check": "store.cli.checking:check",
    "dataset": "store.cli.dataset:dataset",
    "deploy": "store.cli.deploying:deploy",
    "export": "store.cli.exporting:export",
    "init": "store.cli.starting:init",
    "meaning": "store.cli.searching:encode",
    "names": "store.cli.naming:names_group",
    "poll": "store.cli.polling:poll",
    "schema": "store.cli.schemas:schema",
    "search": "store.cli.searching:search",
    "verify": "store.cli.verifying:verify",
    "version": "store.cli:version",
    "withhold": "store.cli.withholding:withhold",
}


def with_data(command: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Give a command the app, and say on stderr which data directory it works on.

    Raises:
        click.ClickException: there is no usable data directory; this ends the command.
    """

    @wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        say_data(current_app)
        try:
            check_data_in(app_settings().data_dir)
            return command(*args, **kwargs)
        except (DataDirectoryError, HistoryError, DamagedFileError) as error:
            raise click.ClickException(f"{error}.") from None
        except OSError as error:  # of links: `check_no_link`
            if error.errno not in (errno.EACCES, errno.EPERM, errno.ELOOP):
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}.") from None

    return with_appcontext(run)


def local(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Return a directory that an argument names, unless it is rather an address.

    Raises:
        click.BadParameter: it is one, such as a bucket's.
    """
    if path and re.match(r"[a-z][a-z0-9]+:/", str(path)):
        raise click.BadParameter("it is an address; name a directory of this machine")
    return path


def app_settings() -> Settings:
    """Return the settings of the app that a command works on."""
    settings: Settings = current_app.extensions["settings"]
    return settings


def say_data(app: Flask) -> None:
    """Print an app's data directory on stderr, so that stdout stays for programs."""
    click.echo(f"Data: {app.extensions['settings'].data_dir.absolute()}", err=True)


def unknown_slug(kind: str, slug: str, slugs: Iterable[str]) -> click.UsageError:
    """Return the error for a slug that is not among others, with those that come close."""
    slugs = list(slugs)
    # Below 60 the closest have nothing to do with what was typed.
    close = process.extract(slug, slugs, limit=3, score_cutoff=60, processor=str.lower)
    names = list(dict.fromkeys([*slips(slug, slugs), *(name for name, *_ in close)]))[:3]
    hint = f" Closest: {', '.join(names)}." if names else ""
    return click.UsageError(f'No {kind} has the slug "{slug}".{hint}')


def refuse(what: str, reasons: Iterable[object]) -> None:
    """End the command if there are reasons, each in a line below ``what``."""
    if listed := "".join(f"\n  {reason}" for reason in reasons):
        raise click.ClickException(f"{what}:{listed}")


class Commands(AppGroup):
    """The commands of an app; their modules are imported only when one is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, or none."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = resolve_name(COMMANDS[cmd_name])
        return command


@click.command()
@click.pass_context
def version(ctx: click.Context) -> None:
    """Say the version of this service, and those of Python, Flask and Werkzeug."""
    from store.web.openapi import VERSION  # noqa: PLC0415 - of use to this command alone

    click.echo(f"Consensus ranking API {VERSION}")
    get_version(ctx, version_option, value=True)


def register(app: Flask) -> None:
    """Give the app its commands."""
    app.cli = Commands(app.name)
