"""A disk that is really full: a small file system, filled by real appends."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import answered, append, write_data
from conftest import Report
from processes import call, flask, polls, served, until, write_real
from replaying import serving

from store.history import History, HistoryError

pytestmark = pytest.mark.slow

SLUGS = ("crm-software", "help-desk")
FULL = "no space left"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of 256 KB."""
    directory = tmp_path / "data"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk can be made: {error}")
    if done.returncode:
        pytest.skip(f"no small disk can be made: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Take all room but so many bytes, in a file that can be removed."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096) == 4096:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leave))
    return filler


def test_no_acknowledged_record_is_lost(disk: Path, report: Report) -> None:
    """Fill the disk by appends and make room, again and again: each record is there, once."""
    log = History(disk / "history")
    acknowledged: dict[str, list[str]] = {slug: [] for slug in SLUGS}
    refusals: list[str] = []
    for room in range(1, 41):
        filler = fill(disk, room * 1500)
        refused = 0
        while refused < len(SLUGS):
            slug = SLUGS[len(refusals) % len(SLUGS)]
            names = [f"{room}-{len(log.read(slug).polls)}-{n}" for n in range(1 + room % 4)]
            why = "X" * (room * 37 % 700)
            batch = [answered(name, ["X", "Y"], slug=slug, reason=why) for name in names]
            try:
                acknowledged[slug] += [p.id for p in log.append(batch, batch[0].polled_at)]
            except HistoryError as refusal:
                refusals.append(str(refusal))
                refused += 1
        filler.unlink()
        for slug, ids in acknowledged.items():
            found = log.read(slug)
            assert [stored.poll.id for stored in found.polls] == ids
            assert found.problems == ()
    total = sum(map(len, acknowledged.values()))
    report(f"full disk: {len(refusals)} appends refused, {total} records acknowledged, 0 lost")
    assert total > len(refusals)
    assert all(len(set(ids)) == len(ids) for ids in acknowledged.values())
    assert all("cannot be written: " in refusal for refusal in refusals)


def test_polling_stops_with_a_sentence_and_goes_on_when_there_is_room(disk: Path) -> None:
    """`flask poll` until nothing fits: what was shown stays served, no line is torn or glued."""
    write_data(disk, categories={slug: {"title": f"Best {slug}"} for slug in SLUGS})
    append(disk, [answered("A", ["Alpha"], "2026-01-05T06:00:00Z")])
    with served(disk) as (url, _):
        filler = fill(disk, 100_000)
        for week in range(1, 100):
            done = flask(
                disk, "poll", "--all", "--at", f"2026-02-01T{week // 60:02}:{week % 60:02}:00Z"
            )
            if "Nothing was asked" in done.stderr:  # a run before it may have had room for a part
                break
        refusal = done.stderr.splitlines()[-1]
        assert refusal.startswith(f"Error: Nothing was asked: {disk}/history cannot be written, ")
        assert FULL in refusal.lower()
        check = flask(disk, "check")
        assert check.returncode == 1
        assert "history:1:1: its disk is full, so that nothing is polled: make room" in check.stdout
        held = {slug: (disk / f"history/{slug}.jsonl").read_bytes() for slug in SLUGS}
        newest = max(poll.polled_at for poll in polls(disk))
        until(lambda: call(f"{url}/healthz")["lastPoll"] == newest)
        assert call(f"{url}/healthz")["status"] == "ok"
        assert call(f"{url}/api/v1/best/crm-software.json")["models"]

        filler.unlink()
        before = len(polls(disk))
        done = flask(disk, "poll", "--all", "--at", "2026-03-01T06:00:00Z")
        assert (done.returncode, done.stderr) == (0, f"Data: {disk}\n")
        assert len(polls(disk)) == before + 8
        for slug, data in held.items():
            assert (disk / f"history/{slug}.jsonl").read_bytes().startswith(data)
        until(lambda: call(f"{url}/healthz")["lastPoll"] == "2026-03-01T06:00:00Z")
        for slug in SLUGS:
            shown = call(f"{url}/api/v1/history?slug={slug}&limit=500")
            assert len(shown) == len(held[slug].splitlines()) + 4
            assert json.dumps(shown).count("2026-03-01T06:00:00Z") == 4


def test_a_server_on_a_full_disk_pays_for_nothing_and_goes_on_at_once(disk: Path) -> None:
    """Nothing is asked and health says why; when there is room all is asked, with no pause."""
    with serving() as asked:
        write_real(disk, asked.url, ["c-0", "c-1"], daily_usd=5)
        filler = fill(disk, 0)
        with served(disk, POLL_ENABLED="1", POLL_TICK_SECONDS="0.1") as (url, _):
            until(lambda: FULL in str(call(f"{url}/healthz")["reasons"]).lower())
            assert asked.seen == []
            filler.unlink()
            until(lambda: len(polls(disk)) == 8)
            until(lambda: call(f"{url}/healthz")["status"] == "ok")
        assert len(asked.seen) == 8


@pytest.mark.parametrize("arguments", [("init", "mine"), ("export", "tree")], ids=" ".join)
def test_what_does_not_fit_leaves_nothing(
    disk: Path, tmp_path: Path, arguments: tuple[str, str]
) -> None:
    """A command that runs out of room says so in one sentence and takes up none afterwards."""
    command, name = arguments
    polled = [answered(model, ["Alpha", "Beta"]) for model in "ABCD"]
    data = write_data(tmp_path / "small", polls=polled)
    done = flask(data, command, str(disk / name), BASE_URL="https://rankings.example")
    assert done.returncode == 1
    refusal = f"Error: {disk / name} cannot be written: No space left on device"
    assert done.stderr.splitlines()[-1] == refusal
    left = [path.name for path in disk.rglob("*") if path.is_file()]
    assert left in ([], [".written-by-flask-export"])  # the mark of its own directory
