"""An upload converges whatever happens to it, and two of them never mix."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from builders import answered, append, command, write_data
from processes import ROOT, environment, free_port, until

from store.copies import uploads
from store.copies.places import Folder, Item, PlaceError, Read, _reason, place
from store.publishing.trees import Exported, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

HTML, JSON = "text/html; charset=utf-8", "application/json"
KEPT = "public, max-age=60"
NOW = "2026-11-20T06:00:00Z"


class Logged(Folder):
    """A folder that says what was written, and may stop in the middle."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.written: list[str] = []
        self.fails_at: str | None = None
        self.asked = 0

    def read(self, name: str) -> Read | None:
        """Count it."""
        self.asked += 1
        return super().read(name)

    def write(self, items: Iterable[Item], done: Callable[[], None] = lambda: None) -> None:
        """Write until the object at which it is to fail."""
        for item in items:
            if item.name == self.fails_at:
                raise PlaceError("the line is dead")
            super().write([item], done)
            if item.name != uploads.MANIFEST:
                self.written.append(item.name)


def tree(home: Path, **answers: str) -> tuple[Manifest, Path]:
    """A tree with answers by path, written with two underscores for a slash."""
    home.mkdir(exist_ok=True)
    files = {}
    for name, text in answers.items():
        path = "/" + name.removeprefix("root").replace("__", "/")
        is_page = path in ("/", "/page", "/other")
        file = f"{name}.html" if is_page else name
        (home / file).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        files[path] = Exported(
            file, HTML if is_page else JSON, len(text), digest, gzip=False, cache_control=KEPT
        )
    return Manifest(files, {"/old": "/new"}, {}), home


@pytest.fixture
def bucket(tmp_path: Path) -> Logged:
    return Logged(tmp_path / "bucket")


def upload(bucket: Folder, built: tuple[Manifest, Path], who: str = "we", **more: bool) -> int:
    """Upload as a command would."""
    take_over = more.get("take_over", False)
    uploader = uploads.Uploader(bucket, uploads.look(bucket), who, take_over=take_over)
    return uploader.upload(*built, NOW)


def test_data_comes_before_pages_and_pages_before_lists(bucket: Logged, tmp_path: Path) -> None:
    """Nobody is led to what is not there yet."""
    dataset = {"data__dataset.json": "manifest", "data__objects__ab.parquet": "rows"}
    answers = {"root": "home", "page": "page", "api__v1__best__x": "data"}
    upload(bucket, tree(tmp_path / "t", **answers, **dataset))
    data, lists = ["api/v1/best/x", "data/objects/ab.parquet"], ["index.html", "data/dataset.json"]
    assert bucket.written == [*data, "page", *lists, "redirects.json"]


def test_only_what_changed_is_written(bucket: Logged, tmp_path: Path) -> None:
    """Unchanged: nothing at all, not even the manifest."""
    built = tree(tmp_path / "t", root="home", page="page")
    upload(bucket, built)
    bucket.written.clear()
    before = bucket.read("manifest.json")
    bucket.asked = 0
    assert upload(bucket, built) == 0
    assert bucket.asked == 1, "one request is all"
    assert (bucket.written, bucket.read("manifest.json")) == ([], before)
    assert upload(bucket, tree(tmp_path / "t", root="home", page="new")) == 1
    assert bucket.written == ["page"]


def test_what_is_gone_goes_one_export_later(bucket: Logged, tmp_path: Path) -> None:
    """Pages in caches still lead there."""
    upload(bucket, tree(tmp_path / "t", root="1", page="page"))
    upload(bucket, tree(tmp_path / "t", root="2"))
    assert bucket.read("page")
    upload(bucket, tree(tmp_path / "t", root="3"))
    assert bucket.read("page") is None


def test_after_a_crash_nobody_trusts_what_was_being_written(bucket: Logged, tmp_path: Path) -> None:
    """Even what is as the last whole export had it: the dead one may have changed it."""
    upload(bucket, tree(tmp_path / "t", root="1", other="o1", page="p1"))
    bucket.fails_at = "page"
    with pytest.raises(PlaceError):
        upload(bucket, tree(tmp_path / "t", root="1", other="o2", page="p2"))
    bucket.fails_at = None
    assert bucket.read("other").data == b"o2"  # type: ignore[union-attr]
    upload(bucket, tree(tmp_path / "t", root="1", other="o1", page="p1"))
    found = {name: bucket.read(name).data for name in ("other", "page")}  # type: ignore[union-attr]
    assert found == {"other": b"o1", "page": b"p1"}
    assert uploads.look(bucket).published.claim is None


def test_another_exporter_waits_until_it_is_told(bucket: Logged, tmp_path: Path) -> None:
    """A claim that is not its own may be alive; who is overtaken writes nothing more."""
    built = tree(tmp_path / "t", root="1", page="p1")
    bucket.fails_at = "index.html"
    with pytest.raises(PlaceError):
        upload(bucket, built)
    bucket.fails_at = None
    with pytest.raises(uploads.UploadError, match=f"another exporter began at {NOW}"):
        upload(bucket, built, "they")
    assert upload(bucket, built, "they", take_over=True) == 2


def test_who_is_overtaken_writes_nothing_more(bucket: Logged, tmp_path: Path) -> None:
    """The first sees it before its next objects, and leaves the manifest of the second alone."""
    first = tree(tmp_path / "first", root="1", page="p1")
    second = tree(tmp_path / "second", root="2", page="p2")

    def overtake() -> None:
        if not told:
            told.append(True)
            upload(bucket, second, "they", take_over=True)

    told: list[bool] = []
    uploader = uploads.Uploader(bucket, uploads.look(bucket), "we", take_over=False)
    with pytest.raises(uploads.UploadError, match="took over"):
        uploader.upload(*first, NOW, overtake)
    assert bucket.read("index.html").data == b"2"  # type: ignore[union-attr]
    assert uploads.look(bucket).published.files == second[0].files


@pytest.mark.parametrize("where", ["ftp://x/y", "s3://", "s3://a b/c", "s3://bucket/$(x)"])
def test_an_address_that_is_none_is_refused(where: str) -> None:
    """Before anything is asked."""
    with pytest.raises(PlaceError, match="no place that is known"):
        place(where)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Server returned non-2xx status code: 403 Forbidden: <Error><Code>AccessDenied</Code>",
         "AccessDenied"),
        ("response error, after 1 retries: status: 503 Service Unavailable", "503"),
        ("HTTP error: error sending request for url (http://x/?X-Amz-Signature=abc)",
         "it cannot be reached"),
        ("in 31 s, after 10 retries  - HTTP error: request or response body error\n\nDebug http://x/?abc",
         "request or response body error"),
        ("Error performing PUT http://169.254.169.254/latest/api/token in 5 ms - 403 Forbidden",
         "its credentials are not set"),
        ("Generic GCS error: Unable to open service account file from /x: No such file\n\nDebug",
         "Unable to open service account file from /x"),
    ],
)  # fmt: skip
def test_what_a_cloud_says_is_told_without_signatures(text: str, said: str) -> None:
    """The library's own text has addresses that may be signed."""
    assert _reason(ValueError(text)).startswith(said)
    assert "abc" not in _reason(ValueError(text))


class Generations(BaseHTTPRequestHandler):
    """Google's object storage as far as conditions go: XML API, x-goog-if-generation-match.

    They are conditions on a number that every write makes anew; ETags are digests, and none.
    """

    protocol_version = "HTTP/1.1"
    objects: ClassVar[dict[str, tuple[int, bytes]]] = {}

    def do_GET(self) -> None:
        """Answer with an object."""
        found = self.objects.get(self.path)
        self._answer(200 if found else 404, *(found or (0, b"<Code>NoSuchKey</Code>")))

    do_HEAD = do_GET  # noqa: N815 - its base calls it so

    def do_PUT(self) -> None:
        """Take an object, if the condition holds."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        now = self.objects.get(self.path, (0, b""))[0]
        if int(self.headers.get("x-goog-if-generation-match", now)) != now:
            return self._answer(412)
        self.objects[self.path] = now + 1, body
        return self._answer(200, now + 1)

    def do_DELETE(self) -> None:
        """Remove an object that is there."""
        self._answer(204 if self.objects.pop(self.path, None) else 404)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, generation: int = 0, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (("ETag", '"same"'), ("x-goog-generation", generation),
                            ("Last-Modified", "Fri, 20 Nov 2026 06:00:00 GMT"),
                            ("Content-Length", len(body))):  # fmt: skip
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.mark.skipif(not find_spec("obstore"), reason="clouds need: pip install '.[cloud]'")
def test_google_replaces_only_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its conditions name generations; and what is not there does not keep the rest from going."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Generations) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("GOOGLE_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "x")
        bucket = place("gs://site/x")
        first = bucket.replace(Item("m", b"1"), None)
        with pytest.raises(PlaceError, match="somebody else"):
            bucket.replace(Item("m", b"2"), None)
        second = bucket.replace(Item("m", b"3"), first)
        assert (bucket.read("m"), bucket.tag("m")) == ((b"3", second), second)
        with pytest.raises(PlaceError, match="somebody else"):
            bucket.replace(Item("m", b"4"), first)
        bucket.write(Item(name, b"") for name in "abc")
        bucket.remove(["none", *"abc"])
        assert [bucket.read(name) for name in "abc"] == [None] * 3
        server.shutdown()


has_moto = find_spec("moto") and find_spec("obstore")
needs_moto = pytest.mark.skipif(not has_moto, reason="S3 needs: pip install '.[operations]'")


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server that nobody here wrote, with a bucket ``site``; the environment to reach it."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    env = {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
           "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}  # fmt: skip
    command = [sys.executable, "-m", "moto.server", "-p", port]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            os.environ.update(env)
            until(lambda: _made(client(url)))
            yield env
        finally:
            for name in env:
                del os.environ[name]
            server.kill()


def client(url: str) -> Any:
    import boto3  # noqa: PLC0415 - optional

    return boto3.client("s3", endpoint_url=url)


def _made(s3: Any) -> bool:
    try:
        s3.create_bucket(Bucket="site")
    except Exception:  # noqa: BLE001 - not there yet
        return False
    return True


@pytest.fixture
def data(tmp_path: Path) -> Path:
    polls = [answered(model, ["X", "Y"]) for model in "ABCD"]
    return write_data(tmp_path / "data", polls=polls)


@pytest.mark.slow
@needs_moto
def test_a_bucket_holds_what_the_service_would_send(data: Path, s3: dict[str, str]) -> None:
    """Every path with its type, encoding and cache header; a rerun writes nothing."""
    done = command(data, "export", "s3://site/whole", environ={})
    assert done.exit_code == 0, done.output
    amazon = client(s3["AWS_ENDPOINT_URL"])
    got = amazon.get_object(Bucket="site", Key="whole/best/crm-software")
    assert got["ContentType"] == HTML
    assert got["CacheControl"].startswith("public, max-age=")
    assert got["ContentEncoding"] == "gzip"
    assert b"<title>" in gzip.decompress(got["Body"].read())
    assert "0 objects written" in command(data, "export", "s3://site/whole", environ={}).output
    append(data, [answered("A", ["Y"], "2026-11-19T06:00:00Z")])
    said = command(data, "export", "s3://site/whole", environ={}).output
    assert "0 objects written" not in said
    assert "objects written" in said


@pytest.mark.slow
@needs_moto
def test_killed_uploads_show_only_whole_and_known_bytes(tmp_path: Path, s3: dict[str, str]) -> None:
    """After each of 30 kill -9 every object is what the manifest or its claim says."""
    slugs = [f"c-{n}" for n in range(150)]
    categories = {slug: {"title": f"Best {slug}"} for slug in slugs}
    polls = [answered(m, ["X", "Y"], slug=slug) for slug in slugs for m in "AB"]
    data = write_data(tmp_path / "data", categories=categories, models="AB", polls=polls)
    env = environment(data, BASE_URL="https://rankings.example", **s3)
    export = [sys.executable, "-m", "flask", "export", "s3://site/killed"]
    chance, killed, begun = random.Random(22), 0, 0
    bucket = place("s3://site/killed")
    subprocess.run(export, cwd=ROOT, env=env, check=True, capture_output=True)
    for n in range(30):
        time_ = f"2026-11-{3 + n // 2:02}T{10 + n % 2}:00:00Z"
        append(data, [answered("A", [f"P{n}"], time_, slug=slug) for slug in slugs[::3]])
        with subprocess.Popen(
            export, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while n % 2 and process.poll() is None and not uploads.look(bucket).published.claim:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.2) if n % 2 else chance.uniform(0.5, 3.5))
            process.kill()
        killed += process.returncode == -9
        published = uploads.look(bucket).published
        begun += published.claim is not None
        writing = published.claim.objects if published.claim else {}
        for path in chance.sample([p for p in sorted(published.files) if p[:6] != "/data/"], 40):
            found = bucket.read(uploads.key(path))
            assert found, path
            body = gzip.decompress(found.data) if found.data[:2] == b"\x1f\x8b" else found.data
            known = {published.files[path].sha256, *writing.get(uploads.key(path), ())}
            assert hashlib.sha256(body).hexdigest() in known, path
    assert (killed > 10, begun > 3) == (True, True), (killed, begun)
    done = subprocess.run(export, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    assert "objects written" in done.stdout
    published = uploads.look(bucket).published
    for path, exported in published.files.items():
        found = bucket.read(uploads.key(path))
        assert found
        body = gzip.decompress(found.data) if exported.gzip else found.data
        assert hashlib.sha256(body).hexdigest() == exported.sha256, path
