"""The units under a systemd of their own, in namespaces of their own: as on an operator's machine.

``systemd-analyze`` reads units; only systemd itself shows what their sandbox forbids. As root, in a
container: ``pytest -m slow tests/test_deploy_systemd.py``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import servers
from deployed import printed
from processes import polls, reached, until, write_real
from replaying import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or Path("/run/systemd/system").exists(),
        reason="needs root on a machine that does not run systemd itself, such as a container",
    ),
    pytest.mark.skipif(
        not all(map(shutil.which, ("unshare", "systemctl", "restic", "curl", "jq"))),
        reason="unshare, systemd, restic, curl or jq is not installed",
    ),
]

SYSTEMD = Path("/usr/lib/systemd")
USER = 64990
"""A number that no user has."""
UNITS = ("rankings.service", "rankings-health.service", "rankings-alert@.service",
         "rankings-backup.service")  # fmt: skip
JOURNAL = ("systemd-journald.service", "systemd-journald.socket")
TARGETS = ("sysinit", "basic", "sockets", "shutdown", "network-online")
RESTIC = {"RESTIC_REPOSITORY": "/srv/repository", "RESTIC_PASSWORD": "a password"}
SHARED = ("data", "repository", "told")
"""What the machine has below /srv and its user may write; we have it below the test's folder."""
BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /srv
mount -t tmpfs tmpfs /var/cache
cp {home}/*.env /run/
for folder in {shared}; do
    mkdir /srv/$folder
    mount --bind {home}/$folder /srv/$folder
done
mkdir /srv/checkout
mount --bind {checkout} /srv/checkout
if [ -n "{hidden}" ]; then  # no other user may run Python from there
    mkdir /srv/python
    mount --bind {python} /srv/python
    mount -t tmpfs -o mode=755 tmpfs {hidden}
    mkdir -p {python}
    mount --bind /srv/python {python}
fi
mount --bind {home}/own /etc/systemd/system
mount --bind {home}/vendor /usr/lib/systemd/system
mount --bind {home}/passwd /etc/passwd
mount --bind {home}/group /etc/group
cd /srv
chown -R rankings: {shared}
mount -t tmpfs tmpfs /dev/shm  # RemoveIPC= takes away what the user has there
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/tmp
mkdir -p /run/log/journal
chgrp systemd-journal /run/log/journal
chmod 2750 /run/log/journal
exec /usr/lib/systemd/systemd --system --unit=basic.target --log-target=journal
"""


class Machine:
    """A systemd that runs our units and nothing else, and where its service listens."""

    def __init__(self, enter: list[str], log: Path, port: int) -> None:
        self._enter = enter
        self._log = log
        self.url = f"http://127.0.0.1:{port}"

    def systemctl(self, *arguments: str) -> int:
        """Give systemd an order; its exit code."""
        with self._log.open("a") as log:
            command = [*self._enter, "systemctl", *arguments]
            return subprocess.run(command, stdout=log, stderr=log, check=False).returncode


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose service polls a provider of ours."""
    port, before = servers.free_port(), control_groups()
    with serving() as imitation:
        data = write_real(tmp_path / "data", imitation.url, ["crm-software", "vpn"])
        furnish(tmp_path, data, port)
        hidden = "/root" if sys.base_prefix.startswith("/root/") else ""
        boot = BOOT.format(
            home=tmp_path, checkout=servers.ROOT, shared=" ".join(SHARED),
            hidden=hidden, python=sys.base_prefix,
        )  # fmt: skip
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts",
                   "--mount-proc", "bash", "-c", boot]  # fmt: skip
        environ = {"PATH": os.environ["PATH"], "container": "other"}
        with subprocess.Popen(command, env=environ) as process:
            try:
                until(lambda: servers.tree_of(process.pid)[1:])
                enter = ["nsenter", "--all", "-t", str(servers.tree_of(process.pid)[1])]
                booted = Machine(enter, tmp_path / "machine.log", port)
                until(lambda: booted.systemctl("is-active", "basic.target") == 0)
                yield booted
            finally:
                process.kill()
    until(lambda: removed(control_groups() - before))


def furnish(home: Path, data: Path, port: int) -> None:
    """Write what the machine has of its own: units, user, variables."""
    for folder in ("own", "vendor", "repository", "told"):
        (home / folder).mkdir()
    (home / "told" / "all").touch()
    for unit in UNITS:
        text = printed(data, unit, "--app", f"127.0.0.1:{port}")
        text = text.replace(str(data), "/srv/data").replace(str(servers.ROOT), "/srv/checkout")
        (home / "own" / unit).write_text(text.replace("/etc/rankings", "/run/rankings"))
    for unit in JOURNAL:
        shutil.copy(SYSTEMD / "system" / unit, home / "vendor")
    for target in TARGETS:
        (home / "vendor" / f"{target}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    with (home / "vendor" / "sysinit.target").open("a") as sysinit:
        sysinit.write(f"Requires={' '.join(JOURNAL)}\nAfter={' '.join(JOURNAL)}\n")
    for name, lines in (("passwd", f"rankings:x:{USER}:{USER}::/:/bin/sh\n"),
                        ("group", f"rankings:x:{USER}:\n")):  # fmt: skip
        (home / name).write_text(Path("/etc", name).read_text(encoding="utf-8") + lines)
    variables = {"POLL_TEST_KEY": "sk-canary", "POLL_ENABLED": "1", "POLL_TICK_SECONDS": "1",
                 "TELL": "cat >> /srv/told/all"}  # fmt: skip
    for name, values in (("rankings", variables), ("rankings-backup", RESTIC)):
        lines = "".join(f"{name}={value}\n" for name, value in values.items())
        (home / f"{name}.env").write_text(lines)


def control_groups() -> set[Path]:
    """The control groups that there are; systemd makes some of its own."""
    return {Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup")}


def removed(groups: set[Path]) -> bool:
    """Remove control groups; whether the last process of each had ended."""
    for group in sorted(groups, reverse=True):
        with suppress(OSError):
            group.rmdir()
    return not any(group.exists() for group in groups)


def restic(home: Path, *arguments: str) -> None:
    """A command that an operator gives."""
    environ = {**os.environ, **RESTIC, "RESTIC_REPOSITORY": str(home / "repository")}
    subprocess.run(["restic", "--no-cache", *arguments], env=environ, check=True)


def test_the_units_do_their_work(machine: Machine, tmp_path: Path) -> None:
    """Within its sandbox the service polls; a person is told of each change; a copy comes back."""
    lines = tmp_path / "told" / "all"

    def look_tells(reason: str) -> None:
        """Look at health, and wait until a person has been told this, and from where."""
        before = lines.read_text()
        assert machine.systemctl("start", "rankings-health") == 1
        until(lambda: f"\n{reason}" in lines.read_text().removeprefix(before))
        assert lines.read_text().removeprefix(before).startswith("rankings-health.service on ")

    assert machine.systemctl("start", "rankings") == 0
    until(lambda: len(polls(tmp_path / "data")) == 8)
    assert machine.systemctl("start", "rankings-health") == 0
    category = tmp_path / "data" / "categories" / "vpn.json"
    good = category.read_bytes()
    category.write_text("{")
    until(lambda: reached(f"{machine.url}/healthz")["status"] == "degraded")
    look_tells("The data has 1 error: categories/vpn.json:1:2: ")
    category.write_bytes(good)
    until(lambda: reached(f"{machine.url}/healthz")["status"] == "ok")
    look_tells("All is well.")
    machine.systemctl("stop", "rankings")
    look_tells(f"{machine.url}/healthz?strict does not answer with its health.")

    restic(tmp_path, "init", "--quiet")
    for path in (tmp_path / "repository", *(tmp_path / "repository").rglob("*")):
        shutil.chown(path, USER, USER)
    assert machine.systemctl("start", "rankings-backup") == 0
    restic(tmp_path, "restore", "latest", "--quiet", "--target", str(tmp_path / "restored"))
    assert polls(tmp_path / "restored") == polls(tmp_path / "data")
    assert (tmp_path / "restored" / "models.json").exists()
