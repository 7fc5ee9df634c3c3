"""The dataset is served as its manifest lists it: whole files, parts of them, and nothing else."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import answered, app_over, append, close_days, command, withhold
from datasets import small_data, written
from flask import Response, send_file
from flask.testing import FlaskClient

from store.publishing import formats

FILE = "/data/evidence/help-desk.jsonl.gz"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = small_data(tmp_path / "data")
    close_days(directory, "2026-11-02")
    written(directory)
    return directory


@pytest.fixture
def reader(data: Path) -> FlaskClient:
    return app_over(data).test_client()


def body_of(reader: FlaskClient, path: str) -> bytes:
    with reader.get(path) as answer:
        return bytes(answer.data)


def test_every_file_of_the_manifest_is_served(reader: FlaskClient) -> None:
    """Bytes, size and strong tag are those that the manifest says; it and the sums are, too."""
    files = json.loads(body_of(reader, "/data/dataset.json"))["files"]
    for name, file in files.items():
        with reader.get(f"/data/{name}") as answer:
            body = answer.data
            assert (answer.status_code, len(body)) == (200, file["bytes"]), name
            assert hashlib.sha256(body).hexdigest() == file["sha256"]
            assert answer.headers["ETag"] == f'"{file["sha256"]}"'
            assert "immutable" not in answer.headers["Cache-Control"]
    sums = body_of(reader, "/data/SHA256SUMS").decode()
    assert len(sums.splitlines()) == len(files) + 1


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
        problem = beyond.get_json()
        assert (problem["status"], problem["title"]) == (416, "Requested Range Not Satisfiable")


def status_of(reader: FlaskClient, path: str) -> int:
    with reader.get(path) as answer:
        return answer.status_code


@pytest.mark.parametrize(
    "name",
    ["nothing", "../site.json", "%2e%2e/site.json", "evidence", "evidence/..%2fdataset.json",
     "current/dataset.json", ".basis", "dataset.json/", "Dataset.json"],
)  # fmt: skip
def test_nothing_else_is_served(reader: FlaskClient, name: str) -> None:
    """No request becomes a path: what the manifest does not list is 404 with the way out."""
    answer = reader.get(f"/data/{name}")
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"


def test_the_next_dataset_is_served_without_a_restart(data: Path, reader: FlaskClient) -> None:
    """Whole: its manifest and its files."""
    before = json.loads(body_of(reader, "/data/dataset.json"))
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    written(data)
    after = json.loads(body_of(reader, "/data/dataset.json"))
    assert (before["date"], after["date"]) == ("2026-11-09", "2026-11-16")
    for name, file in after["files"].items():
        assert hashlib.sha256(body_of(reader, f"/data/{name}")).hexdigest() == file["sha256"]


def test_the_page_tells_what_there_is_and_how_to_load_it(data: Path, reader: FlaskClient) -> None:
    """Version, tables, heads and structured data; lines to copy with every file's address."""
    heads = [json.loads(s) for s in (data / "proof/heads.jsonl").read_text().splitlines()]
    text = reader.get("/data").text
    assert "Version 2026.11.9+" in text
    assert all(head["root"] in text for head in heads)
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', text, re.DOTALL)
    assert found
    described = json.loads(found[1])
    assert described["@type"] == "Dataset"
    addresses = {each["contentUrl"] for each in described["distribution"]}
    assert {"https://rankings.example/data/rankings.csv"} < addresses
    if formats.has_parquet():
        for engine in ("DuckDB", "Polars", "pandas", "R"):
            assert f"<h3>{engine}</h3>" in text
        assert "https://rankings.example/data/picks.parquet" in text
    etag = reader.get("/data").headers["ETag"]
    assert reader.get("/data", headers={"If-None-Match": etag}).status_code == 304


def test_without_a_dataset_the_page_says_so(tmp_path: Path) -> None:
    """It offers what there is instead; the files are 404."""
    reader = app_over(small_data(tmp_path / "none")).test_client()
    page = reader.get("/data").text
    assert "There are no files to download yet" in page
    assert "/api/v1/categories.json?format=csv" in page
    assert reader.get("/data/dataset.json").status_code == 404


def test_damage_is_told_where_people_look(
    data: Path, reader: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    """On the page, at `/healthz`, in the log and by `flask check`; what is whole is still sent."""
    (data / "dataset/current/rankings.csv").unlink()
    cut = data / "dataset/current/categories.csv"
    cut.write_bytes(cut.read_bytes()[:-1])
    for name in ("rankings.csv", "categories.csv"):
        assert status_of(reader, f"/data/{name}") == 503
    assert status_of(reader, "/data/names.csv") == 200
    (data / "dataset/current/dataset.json").write_text("{,")
    said = "dataset/current/dataset.json:1:1: it is not a manifest: "
    text = reader.get("/data").text
    assert "The dataset cannot be shown just now" in text
    assert said in text
    health = reader.get("/healthz").json
    assert health is not None
    assert health["status"] == "degraded"
    assert said in health["problems"][0]
    assert said in caplog.text
    assert said in command(data, "check").stdout
    answer = reader.get("/data/names.csv")
    assert (answer.status_code, said in answer.get_json()["detail"]) == (503, True)
    assert command(data, "dataset").exit_code == 0
    assert status_of(reader, "/data/rankings.csv") == 200
    assert "not a manifest" not in reader.get("/data").text
    assert reader.get("/healthz").json["status"] == "ok"  # type: ignore[index]


def test_feeds_name_the_heads_and_the_root(data: Path, reader: FlaskClient) -> None:
    """Whoever follows changes has a root over all lines, and learns where the proof is."""
    address = "https://rankings.example/methodology#check"
    root = json.loads((data / "dataset/current/dataset.json").read_bytes())["present"]["root"]
    atom, feed = (reader.get(f"/feeds/changes.{kind}").text for kind in ("atom", "json"))
    assert f'href="{address}"' in atom
    assert all(text in feed and text in atom for text in (address, root))
    assert root in reader.get("/data").text


def test_an_entry_of_a_feed_carries_the_head_before_it(data: Path) -> None:
    """Whoever keeps the feed is a witness; later heads change no entry."""
    close_days(data, "2026-11-15")
    append(data, [answered("A", ["Product B"], "2026-11-16T06:00:00Z")])
    heads = [json.loads(line) for line in (data / "proof/heads.jsonl").read_text().splitlines()]
    before = app_over(data).test_client().get("/feeds/changes.json").get_json()["items"][0]
    assert before["content_text"].endswith(f"before it: {heads[-1]['root']}")
    close_days(data, "2026-11-20")
    assert before in app_over(data).test_client().get("/feeds/changes.json").get_json()["items"]


def test_what_is_withheld_is_told(data: Path, reader: FlaskClient) -> None:
    """With its reason; test_publishing_dataset.py: its text is in no file."""
    secret = answered("A", ["Planted"], "2026-11-10T06:00:00Z")
    append(data, [secret])
    withhold(data, secret.id)
    written(data)
    assert "Insults a person" in reader.get("/data").text


def test_a_file_is_sent_although_its_dataset_is_just_replaced(
    data: Path, reader: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the manifest and the opening of the file: the next one's is sent."""
    opened: list[Path] = []

    def send_late(path: Path, *arguments: Any, **options: Any) -> Response:
        if not opened:
            append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
            written(data)
        opened.append(path)
        return send_file(path, *arguments, **options)

    monkeypatch.setattr("store.web.pages.data.send_file", send_late)
    with reader.get("/data/rankings.csv") as answer:
        assert answer.status_code == 200
        assert answer.data == (data / "dataset/current/rankings.csv").read_bytes()
    assert len(opened) == 2
