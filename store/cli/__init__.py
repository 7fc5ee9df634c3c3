"""The ``flask`` commands, one module for each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.cli.checking import check
from store.cli.deploying import deploy
from store.cli.exporting import export
from store.cli.naming import names_group
from store.cli.polling import poll
from store.cli.schemas import schema
from store.cli.starting import init
from store.cli.withholding import withhold

if TYPE_CHECKING:
    from flask import Flask


def register(app: Flask) -> None:
    """Give the app its commands."""
    for command in (poll, check, names_group, withhold, init, schema, export, deploy):
        app.cli.add_command(command)
