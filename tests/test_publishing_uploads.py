"""A bucket holds what the service would send, and nothing of what it no longer would.

Objects are held in memory by obstore's own store, or by moto's S3 in slow tests.
"""

import gzip
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import answered, app_over, append, output, withhold, write_data

from store.publishing import uploads
from store.publishing.trees import TreeManifest

obstore = pytest.importorskip("obstore", reason="needs the extra `cloud`")
WHERE = "s3://site/rankings"
SLUGS = ("crm-software", "help-desk")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    polls = [answered(m, ["X", "Y"], slug=slug) for slug in SLUGS for m in "ABCD"]
    categories = {slug: {"title": f"Best {slug}"} for slug in SLUGS}
    return write_data(tmp_path / "data", categories=categories, polls=polls)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What every address leads to."""
    memory = obstore.store.MemoryStore()
    monkeypatch.setattr("obstore.store.from_url", lambda _: memory)
    return memory


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of objects in the order of being written, one at a time."""
    names, put = list[str](), obstore.put

    def log(store: Any, name: str, *arguments: Any, **options: Any) -> Any:
        names.append(name)
        return put(store, name, *arguments, **options)

    monkeypatch.setattr(obstore, "put", log)
    monkeypatch.setattr(uploads, "AT_ONCE", 1)
    return names


def export(data: Path, where: str = WHERE, exit_code: int = 0) -> str:
    """All that the command says which ends with this exit code."""
    return output(data, "export", where, exit_code=exit_code)


def objects(bucket: Any) -> dict[str, bytes]:
    """Every object, unpacked."""
    names = [each["path"] for some in obstore.list(bucket) for each in some]
    return {name: body_of(bucket, name) for name in names}


def body_of(bucket: Any, name: str) -> bytes:
    found = obstore.get(bucket, name)
    body = bytes(found.bytes())
    return gzip.decompress(body) if found.attributes.get("Content-Encoding") == "gzip" else body


def test_every_object_is_the_answer_of_the_service(data: Path, bucket: Any) -> None:
    """With its type and how long it may be kept; old addresses stand in ``redirects.json``."""
    export(data)
    client = app_over(data).test_client()
    manifest = msgspec.json.decode(body_of(bucket, "manifest.json"), type=TreeManifest)
    assert "/best/crm-software" in manifest.files
    for path in manifest.files:
        found = obstore.get(bucket, path.strip("/") or "index.html")
        with client.get(path) as answer:
            assert body_of(bucket, path.strip("/") or "index.html") == answer.data, path
            assert found.attributes["Content-Type"] == answer.content_type
            assert found.attributes["Cache-Control"] == answer.headers["Cache-Control"]
    names = {path.strip("/") or "index.html" for path in manifest.files}
    assert set(objects(bucket)) == names | {"manifest.json", "redirects.json"}


def test_a_rerun_writes_nothing(data: Path, bucket: Any, written: list[str]) -> None:
    """Nor does it make an answer: the bucket knows what it was made from."""
    export(data)
    written.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr("store.publishing.trees.Tree.fill")
        assert "; 0 objects written" in export(data)
    assert written == []


def test_only_what_changed_is_written(data: Path, bucket: Any, written: list[str]) -> None:
    """Data before pages before what lists them, the manifest first and last."""
    export(data)
    written.clear()
    append(data, [answered("A", ["Y"], "2026-11-09T06:00:00Z")])
    assert "objects written" in export(data)
    assert written[0] == written[-1] == "manifest.json"
    assert "best/crm-software" in written
    assert "api/v1/best/help-desk.json" not in written
    order = [written.index(n) for n in ("api/v1/best/crm-software.json", "best/crm-software",
                                        "index.html", "redirects.json")]  # fmt: skip
    assert order == sorted(order)


def test_what_is_gone_or_withheld_does_not_linger(data: Path, bucket: Any) -> None:
    """The next export takes it out of every object, and takes away whole ones."""
    secret = answered("A", ["Planted"], "2026-11-09T06:00:00Z", reason="A slur")
    append(data, [secret])
    export(data)
    assert "product/planted" in objects(bucket)
    withhold(data, secret.id)
    (data / "categories/help-desk.json").unlink()
    export(data)
    held = objects(bucket)
    assert not [name for name, body in held.items() if b"Planted" in body or b"slur" in body]
    assert not [name for name in held if "planted" in name or name == "best/help-desk"]


@pytest.mark.parametrize("name", ["letter", "photos/1.jpg", "manifest.json"])
def test_a_prefix_of_somebody_else_is_left_alone(data: Path, bucket: Any, name: str) -> None:
    """Whatever it holds, be it a manifest of another kind."""
    obstore.put(bucket, name, b'{"name": "mine"}')
    refusal = f"{WHERE} holds {name}, which no manifest of `flask export` lists"
    assert refusal in export(data, exit_code=1)
    assert objects(bucket) == {name: b'{"name": "mine"}'}


def test_what_somebody_put_beside_our_objects_stays(data: Path, bucket: Any) -> None:
    """It is never deleted, and what would be written over it is refused."""
    export(data)
    obstore.put(bucket, "best/notes", b"mine")
    obstore.put(bucket, "product/z", b"mine")
    (data / "categories/help-desk.json").unlink()
    export(data)
    before = objects(bucket)
    assert before["best/notes"] == b"mine"
    append(data, [answered("A", ["Z"], "2026-11-09T06:00:00Z")])
    assert "holds product/z, which no manifest" in export(data, exit_code=1)
    assert objects(bucket) == before


@pytest.mark.parametrize(("name", "nth"), [("put", 20), ("delete", 1)])
def test_after_any_failure_the_next_run_puts_all_right(
    data: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch, name: str, nth: int
) -> None:
    """What was written or deleted until then is as a first export has it, or not there."""
    export(data)
    secret = answered("A", ["Planted"], "2026-11-09T06:00:00Z")
    append(data, [secret])
    (data / "categories/help-desk.json").rename(data / "away.json")
    real, left = getattr(obstore, name), [nth]

    def fail(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise obstore.exceptions.GenericError("PUT http://h/x?X-Amz-Signature=abc - dead")
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(obstore, name, fail)
        refusal = export(data, exit_code=1)
    assert "cannot be used (key? endpoint?): PUT http://h/x - dead" in refusal
    (data / "away.json").rename(data / "categories/help-desk.json")
    withhold(data, secret.id)
    export(data)
    fresh = obstore.store.MemoryStore()
    monkeypatch.setattr("obstore.store.from_url", lambda _: fresh)
    export(data)
    assert objects(bucket) == objects(fresh)


@pytest.mark.parametrize("where", ["ftp://x/y", "s3://", "s3://a b/c", "s3://bucket/$(x)"])
def test_an_address_that_is_none_is_refused(data: Path, where: str) -> None:
    """Before anything is sent."""
    assert "names no bucket: use s3://" in export(data, where, exit_code=1)


has_moto = find_spec("moto")
needs_moto = pytest.mark.skipif(not has_moto, reason="S3 needs: pip install '.[operations]'")


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an S3 server that nobody here wrote, with a bucket ``site``."""
    import boto3  # noqa: PLC0415 - optional
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - optional

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    for name, value in {"ENDPOINT_URL": url, "ALLOW_HTTP": "true", "REGION": "us-east-1",
                        "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}.items():  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", value)
    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket="site")
    yield client
    server.stop()


@pytest.mark.slow
@needs_moto
def test_amazons_protocol_carries_type_encoding_and_headers(data: Path, amazon: Any) -> None:
    """As another client of S3 reads them; a rerun writes nothing."""
    export(data, "s3://site/whole")
    page = amazon.get_object(Bucket="site", Key="whole/best/crm-software")
    assert page["ContentType"] == "text/html; charset=utf-8"
    assert page["CacheControl"].startswith("public, max-age=")
    assert page["ContentEncoding"] == "gzip"
    assert b"<title>" in gzip.decompress(page["Body"].read())
    assert "0 objects written" in export(data, "s3://site/whole")
    assert "s3://nobody/x cannot be used" in export(data, "s3://nobody/x", exit_code=1)
