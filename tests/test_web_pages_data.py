"""The dataset is served as its manifest lists it: whole files, parts of them, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

import pytest
from builders import answered, app_over, append, command, write_json
from datasets import small_data, written

from store.publishing import formats

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskClient

FILE = "/data/csv/picks/month=2026-10/picks.csv.gz"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = small_data(tmp_path / "data")
    written(directory)
    return directory


@pytest.fixture
def reader(data: Path) -> FlaskClient:
    return app_over(data).test_client()


def body_of(reader: FlaskClient, path: str) -> bytes:
    with reader.get(path) as answer:
        return bytes(answer.data)


def test_every_file_of_the_manifest_is_served_under_name_and_digest(reader: FlaskClient) -> None:
    """Bytes, size and strong tag are those that the manifest says."""
    files = json.loads(body_of(reader, "/data/dataset.json"))["files"]
    for name, file in files.items():
        with reader.get(f"/data/{name}") as answer:
            body = answer.data
            assert (answer.status_code, len(body)) == (200, file["bytes"]), name
            assert hashlib.sha256(body).hexdigest() == file["sha256"]
            assert answer.headers["ETag"] == f'"{file["sha256"]}"'
    end = FILE.partition(".")[2]
    digest = files[FILE.removeprefix("/data/")]["sha256"]
    with reader.get(f"/data/objects/{digest}.{end}") as kept:
        assert hashlib.sha256(kept.data).hexdigest() == digest
        assert "immutable" in kept.headers["Cache-Control"]
    for other in ("SHA256SUMS", "v/2026.11.9.json"):
        with reader.get(f"/data/{other}") as answer:
            assert answer.status_code == 200


def test_a_part_of_a_file_can_be_had(reader: FlaskClient) -> None:
    """As engines read Parquet: HEAD for the size, then ranges, of one version only."""
    with reader.head(FILE) as head:
        size, tag = int(head.headers["Content-Length"]), head.headers["ETag"]
        assert head.headers["Accept-Ranges"] == "bytes"
    with reader.get(FILE) as whole:
        body = whole.data
    asked = {"Range": "bytes=-8", "If-Range": tag, "Accept-Encoding": "gzip"}
    with reader.get(FILE, headers=asked) as part:
        assert (part.status_code, part.data) == (206, body[-8:])
        assert part.headers["Content-Range"] == f"bytes {size - 8}-{size - 1}/{size}"
        assert "Content-Encoding" not in part.headers
        assert part.headers["Access-Control-Allow-Origin"] == "*"
        assert "Content-Range" in part.headers["Access-Control-Expose-Headers"]
    with reader.get(FILE, headers={**asked, "If-Range": '"older"'}) as whole:
        assert (whole.status_code, whole.data) == (200, body)
    with reader.get(FILE, headers={"If-None-Match": tag}) as known:
        assert known.status_code == 304
    with reader.get(FILE, headers={"If-Modified-Since": "Fri, 31 Dec 9999 23:59:59 GMT"}) as dated:
        assert dated.status_code == 200
        assert "Last-Modified" not in dated.headers
    with reader.get(FILE, headers={"Range": f"bytes={size}-"}) as beyond:
        assert beyond.status_code == 416


def status_of(reader: FlaskClient, path: str) -> int:
    with reader.get(path) as answer:
        return answer.status_code


@pytest.mark.parametrize(
    "name",
    ["nothing", "../site.json", "%2e%2e/site.json", "objects", "v/", "objects/..%2fdataset.json",
     ".dataset.json.draft", "polls", "dataset.json/", "Dataset.json"],
)  # fmt: skip
def test_nothing_else_is_served(reader: FlaskClient, name: str) -> None:
    """No request becomes a path: what the manifests do not list is 404 with the way out."""
    answer = reader.get(f"/data/{name}")
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"


def test_the_next_version_is_served_and_the_one_before_stays(
    data: Path, reader: FlaskClient
) -> None:
    """Without a restart; what somebody cited can still be had."""
    before = json.loads(body_of(reader, "/data/dataset.json"))
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    written(data)
    after = json.loads(body_of(reader, "/data/dataset.json"))
    assert (before["version"], after["version"]) == ("2026.11.9", "2026.11.16")
    with reader.get("/data/v/2026.11.9.json") as kept:
        assert json.loads(kept.data) == before
    with reader.get(f"/data/objects/{before['files']['rankings.csv']['sha256']}.csv") as kept:
        assert kept.status_code == 200


def test_the_page_tells_what_there_is_and_how_to_load_it(data: Path, reader: FlaskClient) -> None:
    """Version, tables, heads and structured data; lines to copy with every file's address."""
    heads = [json.loads(s) for s in (data / "leaves/heads.jsonl").read_text().splitlines()]
    text = reader.get("/data").text
    assert "Version 2026.11.9" in text
    assert all(head["root"] in text for head in heads)
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', text, re.DOTALL)
    assert found
    described = json.loads(found[1])
    assert described["@type"] == "sc:Dataset"
    addresses = {each["contentUrl"] for each in described["distribution"]}
    assert all(a.startswith("https://rankings.example/data/objects/") for a in addresses)
    if formats.has_parquet():
        for engine in ("DuckDB", "Polars", "pandas", "R", "Spark"):
            assert f"<h3>{engine}</h3>" in text
        assert "https://rankings.example/data/picks/month=2026-10/picks.parquet" in text
    etag = reader.get("/data").headers["ETag"]
    assert reader.get("/data", headers={"If-None-Match": etag}).status_code == 304


def test_without_a_dataset_the_page_says_so(tmp_path: Path) -> None:
    """And its files are 404."""
    reader = app_over(small_data(tmp_path / "none")).test_client()
    assert "This site has not published its dataset yet" in reader.get("/data").text
    assert reader.get("/data/dataset.json").status_code == 404


def test_damage_is_told_where_people_look(
    data: Path, reader: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    """On the page, at `/healthz`, in the log and by `flask check`; what is whole is still sent."""
    files = json.loads(body_of(reader, "/data/dataset.json"))["files"]
    digest = files["rankings.csv"]["sha256"]
    (data / f"dataset/objects/{digest}.csv").unlink()
    said = "rankings.csv of version 2026.11.9 cannot be read: No such file or directory"
    assert said in reader.get("/data").text
    assert status_of(reader, "/data/rankings.csv") == 503
    assert status_of(reader, "/data/names.csv") == 200
    health = reader.get("/healthz").json
    assert health is not None
    assert health["status"] == "degraded"
    assert said in health["problems"][0]
    assert said in caplog.text
    assert said in command(data, "check").stdout
    (data / "dataset/dataset.json").write_text("{")
    said = "dataset/dataset.json:1:1: it is no manifest: "
    assert said in reader.get("/data").text
    assert status_of(reader, "/data/names.csv") == 200
    (data / "dataset/v/2026.11.9.json").write_text("{")
    (data / "dataset/dataset.json").write_text("{,")
    text = reader.get("/data").text
    assert "The dataset cannot be shown just now" in text
    assert said in text
    assert status_of(reader, "/data/names.csv") == 404
    (data / "dataset/v/2026.11.9.json").unlink()
    assert command(data, "dataset").exit_code == 0
    assert status_of(reader, "/data/rankings.csv") == 200
    assert "no manifest" not in reader.get("/data").text
    assert reader.get("/healthz").json["status"] == "ok"  # type: ignore[index]


def test_feeds_name_the_heads(reader: FlaskClient) -> None:
    """Whoever follows changes learns where to keep a head from."""
    address = "https://rankings.example/data/heads.jsonl"
    assert f'href="{address}"' in reader.get("/feeds/changes.atom").text
    assert address in reader.get("/feeds/changes.json").json["description"]  # type: ignore[index]


def test_what_is_withheld_is_told(data: Path, reader: FlaskClient) -> None:
    """With its reason; its text is gone from every address."""
    secret = answered("A", ["Planted"], "2026-11-10T06:00:00Z")
    append(data, [secret])
    before = written(data).manifest
    entry = {secret.id: {"reason": "Insults a person", "date": "2026-11-15"}}
    write_json(data / "withheld.json", {"version": 1, "withheld": entry})
    written(data)
    assert "Insults a person" in reader.get("/data").text
    name = "csv/picks/month=2026-11/picks.csv.gz"
    old = before.files[name].object(name)
    assert reader.get(f"/data/{old}").status_code == 404
