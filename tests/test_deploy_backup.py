"""Copies of a directory that is being polled, made by what templates/deploy runs: nothing is lost.

With Debian's restic and rclone: ``pytest -m slow tests/test_deploy_backup.py``.
"""

import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest
import servers
from builders import answered, append
from deployed import Unit, printed
from processes import flask, polls, started, until, write_real
from replaying import serving

from store.ledger import Proof

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("flock"), reason="flock is not installed"),
]
needs_restic = pytest.mark.skipif(not shutil.which("restic"), reason="restic is not installed")
needs_rclone = pytest.mark.skipif(not shutil.which("rclone"), reason="rclone is not installed")

SLUGS = [f"tool-{n}" for n in range(300)]
QUIET = "vpn"
"""A category that nobody polls meanwhile."""


@pytest.fixture
def polled(tmp_path: Path) -> Iterator[Path]:
    """A data directory to which ``flask poll`` appends answers all the time."""
    with serving() as imitation:
        data = write_real(tmp_path / "data", imitation.url, [QUIET, *SLUGS])
        (data / "proof").mkdir(exist_ok=True)
        (data / ".env").write_text("OPENAI_API_KEY=sk-canary")
        assert flask(data, "poll", QUIET).returncode == 0
        slow = [{"picks": ["Alpha", "Beta"], "delay": 0.2}]
        imitation.follow(dict.fromkeys(("gpt", "claude", "gemini", "grok"), slow))
        with started(data, "flask", "poll", *SLUGS):
            until(lambda: len(acknowledged(data)) > 100)
            yield data


def acknowledged(data: Path) -> set[tuple[str, str]]:
    """Slug and id of every poll that stands in history."""
    files = (data / "history").glob("*.jsonl")
    lines = (line for file in files for line in file.read_bytes().split(b"\n")[:-1])
    return {(poll["slug"], poll["id"]) for poll in map(json.loads, lines)}


def tear(data: Path) -> None:
    """Leave the beginning of a line, as a copy that was made in the middle of an append does."""
    file = data / "history" / f"{QUIET}.jsonl"
    with file.open("ab") as history:
        history.write(file.read_bytes()[:100])


def shown(server: servers.Server, known: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Slug and id of every poll that a server shows of the categories of those that are known."""
    return {
        (slug, record["id"])
        for slug in {slug for slug, _ in known}
        for record in json.loads(server.get(f"/api/v1/history?slug={slug}&limit=500").body)
    }


def backup_unit(data: Path, tmp_path: Path, job: str) -> Unit:
    """A unit of restic's."""
    return Unit(printed(data, f"rankings-{job}.service"), **repository(tmp_path))


def repository(tmp_path: Path) -> dict[str, str]:
    """What /etc/rankings-backup.env says."""
    return {
        "RESTIC_REPOSITORY": str(tmp_path / "repository"),
        "RESTIC_PASSWORD": "a password",
        "RESTIC_CACHE_DIR": str(tmp_path / "cache"),
    }


def restic(tmp_path: Path, *arguments: str) -> str:
    """A command that an operator gives."""
    environ = {**os.environ, **repository(tmp_path)}
    done = subprocess.run(["restic", *arguments], env=environ, capture_output=True, check=True)
    return done.stdout.decode()


@needs_restic
def test_a_restored_backup_has_every_acknowledged_answer(polled: Path, tmp_path: Path) -> None:
    """A server shows them all, a torn tail is repaired by the next poll, and no key was copied."""
    restic(tmp_path, "init")
    tear(polled)
    before = acknowledged(polled)
    code, output = backup_unit(polled, tmp_path, "backup").run()
    assert code == 0, output
    assert len(acknowledged(polled)) > len(before), "history grew meanwhile"
    code, output = backup_unit(polled, tmp_path, "prune").run()
    assert code == 0, output
    assert "no errors were found" in output

    restored = tmp_path / "restored"
    restic(tmp_path, "restore", "latest", "--target", str(restored))
    assert not (restored / ".env").exists()
    with servers.gunicorn(restored, tmp_path / "gunicorn.log") as server:
        assert before <= shown(server, before)
        assert json.loads(server.get("/healthz?strict").body)["status"] == "ok"
    with serving() as imitation:
        shutil.copy(write_real(tmp_path / "other", imitation.url, []) / "models.json", restored)
        assert flask(restored, "poll", QUIET).returncode == 0
    assert before < {(poll.slug, poll.id) for poll in polls(restored)}


@needs_restic
def test_backups_of_others_in_the_repository_are_kept(polled: Path, tmp_path: Path) -> None:
    """The same repository may hold other machines' backups, which are pruned by other rules."""
    restic(tmp_path, "init")
    (tmp_path / "letter").write_text("Dear")
    for minute in range(3):
        time = f"--time=2020-01-01 10:0{minute}:00"
        restic(tmp_path, "backup", "--host=other", time, str(tmp_path / "letter"))
    for job in ("backup", "prune"):
        code, output = backup_unit(polled, tmp_path, job).run()
        assert code == 0, output
    assert len(json.loads(restic(tmp_path, "snapshots", "--json", "--host=other"))) == 3


@needs_restic
def test_a_backup_waits_until_a_day_is_closed(polled: Path, tmp_path: Path) -> None:
    """Whoever holds the lock of the proof alone is waited for."""
    restic(tmp_path, "init")
    unit = backup_unit(polled, tmp_path, "backup")
    with (polled / "proof" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = unit.begin()
        until(lambda: f" {process.pid} " in waiting())
        assert snapshots(tmp_path) == 0
    with process:
        assert process.wait(60) == 0
    assert snapshots(tmp_path) == 1


def waiting() -> str:
    """Those who wait for a lock, by Linux' own list."""
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return "\n".join(line for line in lines if "->" in line)


def snapshots(tmp_path: Path) -> int:
    """How many backups there are."""
    return len(json.loads(restic(tmp_path, "snapshots", "--json")) or ())


@contextmanager
def days_that_close(data: Path) -> Iterator[None]:
    """Append to every file and close the day, again and again, inside the block."""
    end, proof = threading.Event(), Proof(data)

    def work() -> None:
        day = date(2026, 1, 1)
        while not end.is_set():
            time = f"{day}T06:00:00Z"
            append(data, [answered("GPT", ["X"], time, slug=slug) for slug in SLUGS[:40]])
            proof.close(str(day))
            day += timedelta(1)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        until(lambda: len(proof.load().heads) > 1)
        yield
        closed = len(proof.load().heads)
        until(lambda: len(proof.load().heads) > closed)
        end.set()
        working.result()


@needs_restic
@needs_rclone
@pytest.mark.parametrize("job", ["backup", "replica"])
def test_a_copy_has_all_that_its_proof_lists(tmp_path: Path, job: str) -> None:
    """Though days are closed one after the other while it is made."""
    data = write_real(tmp_path / "data", "http://127.0.0.1", SLUGS[:40])
    (data / "labs").mkdir()
    for n in range(4):  # long to read, between history and proof
        (data / "labs" / f"video-{n}").write_bytes(os.urandom(32_000_000))
    copy, variables = tmp_path / "copy", repository(tmp_path)
    unit = Unit(printed(data, f"rankings-{job}.service"), REPLICA=str(copy), **variables)
    restic(tmp_path, "init")
    with days_that_close(data):
        code, output = unit.run()
        assert code == 0, output
    if job == "backup":
        restic(tmp_path, "restore", "latest", "--target", str(copy))
    checked = flask(copy, "check")
    assert checked.returncode == 0, checked.stdout


@needs_restic
@needs_rclone
@pytest.mark.parametrize("job", ["backup", "replica"])
def test_a_directory_that_is_gone_is_not_copied(tmp_path: Path, job: str) -> None:
    """A disk that is not mounted leaves copies as they are, and the unit fails."""
    data = write_real(tmp_path / "data", "http://127.0.0.1", [QUIET])
    replica = shutil.copytree(data, tmp_path / "replica")
    text = printed(data, f"rankings-{job}.service")
    shutil.rmtree(data)
    data.mkdir()
    restic(tmp_path, "init")
    code, output = Unit(text, REPLICA=str(replica), **repository(tmp_path)).run()
    assert code
    assert "proof/.lock" in output
    assert (replica / "models.json").exists()
    assert snapshots(tmp_path) == 0


@needs_rclone
def test_a_replica_has_the_history_before_its_proof(tmp_path: Path) -> None:
    """What its proof lists is there already, what was lost of history stays, its dataset is one."""
    data = write_real(tmp_path / "data", "http://127.0.0.1", [QUIET])
    (data / "proof").mkdir(exist_ok=True)
    (data / "proof" / "ledger.jsonl").write_text("{}\n")
    (data / "dataset" / "trees" / "1").mkdir(parents=True)
    (data / "dataset" / "trees" / "1" / "README.md").write_text("The dataset\n")
    (data / "dataset" / "current").symlink_to(Path("trees", "1"))
    replica = tmp_path / "replica"
    unit = Unit(printed(data, "rankings-replica.service"), REPLICA=str(replica))
    for slug in SLUGS:
        (data / "history" / f"{slug}.jsonl").write_text("{}\n")
    (data / "history").rename(tmp_path / "disk")
    (data / "history").symlink_to(tmp_path / "disk")  # refused by us, and yet copied
    assert unit.run()[0] == 0
    times = [path.stat().st_ctime_ns for path in (replica / "history").iterdir()]
    assert len(times) == len(SLUGS)
    assert max(times) <= (replica / "proof" / "ledger.jsonl").stat().st_ctime_ns
    assert [*(replica / "dataset").rglob("*.md")] == [replica / "dataset/current/README.md"]
    (data / "history" / f"{SLUGS[0]}.jsonl").unlink()
    (data / "categories" / f"{QUIET}.json").unlink()
    assert unit.run()[0] == 0
    assert (replica / "history" / f"{SLUGS[0]}.jsonl").exists()
    assert not (replica / "categories" / f"{QUIET}.json").exists()


@needs_rclone
@pytest.mark.parametrize("name", ["letter", "history/vpn.jsonl"])
def test_a_replica_empties_no_directory_of_something_else(tmp_path: Path, name: str) -> None:
    """REPLICA may be wrong: what is there stays, and the unit fails; history alone was begun."""
    data = write_real(tmp_path / "data", "http://127.0.0.1", [QUIET])
    (data / "proof" / ".lock").touch()
    other = tmp_path / "replica" / name
    other.parent.mkdir(parents=True)
    other.write_text("Dear")
    unit = Unit(printed(data, "rankings-replica.service"), REPLICA=str(tmp_path / "replica"))
    code, output = unit.run()
    assert other.read_text() == "Dear"
    assert (code, "holds something else" in output) == (
        (1, True) if name == "letter" else (0, False)
    )
    assert unit.run()[0] == code


@needs_rclone
def test_a_replica_is_served_while_it_is_brought_up_to_date(polled: Path, tmp_path: Path) -> None:
    """Readers see no error, and each time every answer that was acknowledged before."""
    replica = tmp_path / "replica"
    unit = Unit(printed(polled, "rankings-replica.service"), REPLICA=str(replica))
    code, output = unit.run()
    assert code == 0, output
    assert not [path for path in replica.rglob(".*") if path.is_file()]
    with servers.gunicorn(replica, tmp_path / "gunicorn.log") as server:
        first = acknowledged(polled)
        for _ in range(3):
            until(lambda: acknowledged(polled) > first)
            before = acknowledged(polled)
            with unit.begin() as process:
                while process.poll() is None:
                    for path in (f"/api/v1/best/{QUIET}.json", "/api/v1/changes.json", "/"):
                        assert server.get(path).status == 200
                assert process.returncode == 0
            until(lambda before=before: before <= shown(server, before))  # type: ignore[misc]
        assert json.loads(server.get("/healthz?strict").body)["status"] == "ok"
