"""``flask version``: which service this is, and what it runs on.

``flask --version`` cannot say it: Flask answers that option before it looks for an application.
"""

from __future__ import annotations

import click
from flask.cli import get_version, version_option

from store.web.openapi import VERSION


@click.command()
@click.pass_context
def version(ctx: click.Context) -> None:
    """Say the version of this service, and those of Python, Flask and Werkzeug."""
    click.echo(f"Consensus ranking API {VERSION}")
    get_version(ctx, version_option, value=True)
