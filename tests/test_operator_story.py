"""The operator's story is true: each step works against real processes, and nothing is lost."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
import servers
from processes import ROOT, environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(not servers.NGINX, reason="nginx is not installed")
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.skipif(
    not (find_spec("moto") and find_spec("obstore")), reason="needs: pip install '.[operations]'"
)
def test_the_operators_story(tmp_path: Path) -> None:
    """Init, poll, scrape, alert, backup, loss, restore, upgrade, export, replica."""
    home = tmp_path / "story"
    done = subprocess.run(
        ["bash", str(ROOT / "tests" / "operator_story.sh"), str(home)],
        env=environment(home, PYTHON=sys.executable),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.endswith("== the story is told\n")
    assert done.stdout.count(": the same bytes\n") == 4
    assert "none is lost" in done.stdout
    assert "; 0 objects written." in done.stdout
    alert = re.search(r"the alert came ([\d.]+) s later; a tick is (\d+) s", done.stdout)
    assert alert
    assert float(alert[1]) <= 2 * float(alert[2])
