"""``consensus``: the ``flask`` commands from any working directory, as cron and timers run them.

pip installs this file alone, as the module ``consensus_ranking_api`` (``force-include`` in
``pyproject.toml``); all else runs from the checkout, so that there is no second copy to grow stale.
The checkout is where pip was told to install from. Source: PEP 610, ``direct_url.json``.
"""

import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from flask.cli import FlaskGroup

REMEDY = "run `pip install .` in the checkout"


def checkout() -> Path:
    """Return the directory that the service was installed from.

    Raises:
        SystemExit: pip installed something other than a directory, or that directory is gone.
    """
    record = distribution("consensus-ranking-api").read_text("direct_url.json")
    if record is None:
        raise SystemExit(f"Error: consensus was not installed from a checkout; {REMEDY}.")
    directory = Path(url2pathname(urlsplit(json.loads(record)["url"]).path))
    if not (directory / "app.py").is_file():
        raise SystemExit(f"Error: consensus was installed from {directory}, where no checkout is; "
                         f"{REMEDY}.")  # fmt: skip
    return directory


def main() -> None:
    """Run a command of the checkout's application."""
    sys.path.insert(0, str(checkout()))
    from app import create_app  # noqa: PLC0415 - only now can it be found

    FlaskGroup(create_app=create_app).main(prog_name="consensus")
