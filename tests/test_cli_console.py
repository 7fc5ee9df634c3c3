"""``consensus`` runs the checkout's commands from anywhere, as cron and systemd's timers do."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import write_data

from store.cli import console

ROOT = Path(__file__).parent.parent
INSTALLED = Path(sys.executable).parent / "consensus"


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """What pip installs of us, beside the packages that these tests run with."""
    folder = tmp_path / "site-packages"
    record = folder / "consensus_ranking_api-0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: consensus-ranking-api\n")
    shutil.copy(str(console.__file__), folder / "consensus_ranking_api.py")
    return folder


def installed_from(site_packages: Path, url: str) -> None:
    """Note where pip was told to install from."""
    [record] = site_packages.glob("*.dist-info")
    (record / "direct_url.json").write_text(json.dumps({"url": url, "dir_info": {}}))


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as cron does: from another directory, with next to no environment."""
    return subprocess.run(
        command, cwd="/", env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def run_script(site_packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run what pip writes as ``bin/consensus``."""
    program = "from consensus_ranking_api import main; main()"
    return run(sys.executable, "-c", program, *arguments, PYTHONPATH=str(site_packages),
               DATA_DIR=str(site_packages.parent / "data"))  # fmt: skip


def test_the_checkout_is_found_from_anywhere(site_packages: Path, tmp_path: Path) -> None:
    """The commands are those of the directory that was installed, the data those of DATA_DIR."""
    checkout = tmp_path / "a checkout"
    checkout.symlink_to(ROOT)
    installed_from(site_packages, checkout.as_uri())
    data = write_data(tmp_path / "data")
    done = run_script(site_packages, "check")
    assert done.stderr.startswith(f"Data: {data}\n")
    assert "0 errors" in done.stderr
    assert done.returncode == 0


def test_a_checkout_that_was_moved_is_named(site_packages: Path, tmp_path: Path) -> None:
    """One sentence says where it was, and what to do; no other copy is run in its place."""
    installed_from(site_packages, (tmp_path / "gone").as_uri())
    done = run_script(site_packages, "version")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"installed from {tmp_path}/gone, where no checkout is; run `pip" in done.stderr


def test_an_installation_without_a_checkout_says_so(site_packages: Path) -> None:
    """A package from elsewhere has no code to run."""
    done = run_script(site_packages, "version")
    assert (done.returncode, done.stdout) == (1, "")
    assert "was not installed from a checkout; run `pip install .`" in done.stderr


@pytest.mark.skipif(not INSTALLED.exists(), reason="only the dependencies are installed here")
def test_what_pip_installed_runs(tmp_path: Path) -> None:
    """The console script of the README's own installation works from cron's environment."""
    done = run(str(INSTALLED), "check", DATA_DIR=str(write_data(tmp_path / "data")))
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, f"Data: {tmp_path}/data")
