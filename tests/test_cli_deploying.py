"""The printed configuration works as it stands: nginx and systemd take it."""

from __future__ import annotations

import email.utils
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import servers
from builders import answered, app_over, write_data

from store import gunicorn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flask.testing import FlaskClient

needs_nginx = pytest.mark.skipif(not servers.NGINX, reason="nginx is not installed")
needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd is not installed"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    names = [f"Product {letter}" for letter in "ABCDE"]
    return write_data(
        tmp_path / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in ("crm-software", "help-desk")},
        products={"product-a": {"name": "Product A", "aliases": ["The A"]}},
        polls=[answered(model, [*names[1:], "The A"]) for model in "ABCD"],
        name="The Best",
    )


def run(data: Path, *arguments: str, **settings: Any) -> str:
    result = app_over(data, **settings).test_cli_runner().invoke(args=list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


class TestPrinted:
    """What is printed."""

    def test_it_has_the_sites_own_values(self, data: Path) -> None:
        """Name, address, data directory and the application's places."""
        site = run(data, "deploy", "nginx", "--app", "10.0.0.1:8000", "--app", "10.0.0.2:8000")
        assert "server_name rankings.example;" in site
        assert "server 10.0.0.1:8000 " in site
        assert "server 10.0.0.2:8000 " in site
        unit = run(data, "deploy", "systemd")
        assert f'Environment="DATA_DIR={data}"' in unit
        assert 'Environment="BASE_URL=https://rankings.example"' in unit
        assert "User=rankings_the_best" in unit

    @pytest.mark.parametrize("what", ["nginx", "systemd"])
    def test_it_needs_an_address(self, data: Path, what: str) -> None:
        """Without BASE_URL there is no server name to print."""
        app = app_over(data, base_url=None)
        result = app.test_cli_runner().invoke(args=["deploy", what])
        assert result.exit_code == 1
        assert "BASE_URL is not set" in result.output

    def test_a_tree_must_have_been_exported(self, data: Path, tmp_path: Path) -> None:
        """A configuration for a tree that is not there says how to make it."""
        arguments = ["deploy", "nginx", "--tree", str(tmp_path / "tree")]
        result = app_over(data).test_cli_runner().invoke(args=arguments)
        assert result.exit_code == 1
        assert "run `flask export" in result.output

    def test_systemd_waits_longer_than_gunicorn(self, data: Path) -> None:
        """Polls and requests under way get all the time that gunicorn gives them."""
        waits = re.search(r"TimeoutStopSec=(\d+)", run(data, "deploy", "systemd"))
        assert waits
        assert int(waits[1]) > gunicorn.graceful_timeout

    def test_a_poll_by_hand_is_the_units_in_all_it_needs(self, data: Path) -> None:
        """The same user, keys, code and data as the service."""
        unit = run(data, "deploy", "systemd")
        [line] = [each for each in unit.splitlines() if "systemd-run" in each]
        words = shlex.split(line.removeprefix("#"))
        assert words[0] == "systemd-run"
        assert "User=rankings_the_best" in words
        assert "EnvironmentFile=-/etc/rankings_the_best.env" in words
        assert f"WorkingDirectory={servers.ROOT}" in words
        assert f"DATA_DIR={data}" in words
        assert words[-5:] == [sys.executable, "-m", "flask", "poll", "--due"]

    def test_nobody_but_root_may_read_the_keys(self, data: Path) -> None:
        """The unit names a file for keys; none stands in it."""
        unit = run(data, "deploy", "systemd", environ={"OPENAI_API_KEY": "sk-CANARY"})
        assert "EnvironmentFile=-/etc/rankings_the_best.env" in unit
        assert "CANARY" not in unit

    @needs_systemd
    @pytest.mark.parametrize("name", ["The Best", "The 100% Best", "100 Best", "Best " * 12 + "!"])
    @pytest.mark.parametrize("folder", ["data", "my data", "50%n"])
    def test_systemd_takes_the_unit(self, tmp_path: Path, name: str, folder: str) -> None:
        """Whatever the site and its directory are called, systemd-analyze finds nothing amiss."""
        directory = write_data(tmp_path / folder, name=name)
        done = analysed(directory, "verify")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_percent_sign_stays_one(self, tmp_path: Path) -> None:
        """What systemd would take for a specifier is written twice, so that it is none."""
        unit = run(write_data(tmp_path / "50%n", name="The 100% Best"), "deploy", "systemd")
        assert "Description=The 100%% Best\n" in unit
        assert unit.count(f'{tmp_path}/50%%n"') == 2  # the data's place, and that it may be written

    @needs_systemd
    def test_a_path_that_systemd_would_misread_is_refused(self, tmp_path: Path) -> None:
        """Else the unit would pass every check and serve no data."""
        data = write_data(tmp_path / 'the "best"')
        done = app_over(data).test_cli_runner().invoke(args=["deploy", "systemd"])
        assert done.exit_code == 1
        assert "systemd would misread the path" in done.output

    def test_the_unit_exposes_little(self, data: Path) -> None:
        """By systemd's own reckoning, of 10, where 0 is nothing: at most 1.2."""
        done = analysed(data, "security", "--offline=true")
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert found, done.stderr
        assert float(found[1]) <= 1.2


def analysed(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says of the printed unit."""
    path = data.parent / "rankings_the_best.service"
    path.write_text(run(data, "deploy", "systemd"), encoding="utf-8")
    return subprocess.run(
        ["systemd-analyze", *arguments, str(path)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def alone(data: Path, tmp_path: Path) -> Iterator[servers.Server]:
    """Nginx over an exported tree, no application behind it."""
    run(data, "export", str(tmp_path / "tree"))
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    port = servers.free_port()
    site = run(
        data, "deploy", "nginx", "--tree", str(tmp_path / "tree"),
        "--listen", f"127.0.0.1:{port}", "--app", f"127.0.0.1:{servers.free_port()}",
        "--cache", str(tmp_path / "cache"), "--log", str(tmp_path / "access.log"),
    )  # fmt: skip
    with servers.nginx(site, tmp_path / "nginx", port) as server:
        yield server


@pytest.fixture
def client(data: Path) -> FlaskClient:
    return app_over(data).test_client()


def paths(client: FlaskClient) -> list[str]:
    site_map = client.get("/sitemap.xml")
    pages = re.findall(r"<loc>https://rankings.example([^<]*)</loc>", site_map.text)
    documents = ("categories", "changes", "mentions", "labs", "openapi", "best/crm-software")
    found = [*(f"/api/v1/{name}.json" for name in documents), "/api/v1/product/product-a.json"]
    found += ["/api/v1/README.md"]
    return [path for path in [*found, *pages] if path != "/search"]


@needs_nginx
class TestNginxAlone:
    """The exported tree without any process of ours."""

    def test_it_answers_as_the_application_does(
        self, alone: servers.Server, client: FlaskClient
    ) -> None:
        """Status, body and every header that readers and caches rely on, for every static path."""
        for path in paths(client):
            for sent in ({}, {"Accept-Encoding": "gzip"}):
                ours, theirs = client.get(path, headers=sent), alone.get(path, sent)
                assert (theirs.status, theirs.body) == (ours.status_code, ours.data), path
                for name, value in ours.headers:
                    if name not in ("ETag", "Link", "Vary", "Content-Length"):
                        assert theirs.headers.get(name.lower()) == value, (path, name)
                for link in theirs.headers.get("link", "").split(", <"):
                    assert link.removeprefix("<") in ours.headers.get("Link", "")
                if path.startswith("/api/"):
                    assert 'rel="license"' in theirs.headers["link"]
                    assert 'rel="service-desc"' in theirs.headers["link"]

    def test_readers_who_have_it_get_304(self, alone: servers.Server) -> None:
        """By tag and by date."""
        path = "/api/v1/best/crm-software.json"
        first = alone.get(path).headers
        assert alone.get(path, {"If-None-Match": first["etag"]}).status == 304
        assert alone.get(path, {"If-Modified-Since": first["last-modified"]}).status == 304
        earlier = email.utils.formatdate(0, usegmt=True)
        assert alone.get(path, {"If-Modified-Since": earlier}).status == 200

    def test_old_addresses_lead_to_the_new(self, alone: servers.Server) -> None:
        """308, to the same place as from the application."""
        moved = alone.get("/api/v1/product/the-a.json")
        assert moved.status == 308
        assert moved.headers["location"] == "https://rankings.example/api/v1/product/product-a.json"

    def test_what_needs_a_process_says_that_there_is_none(self, alone: servers.Server) -> None:
        """Search, history and unknown paths are the application's, which is away."""
        for path in (
            "/api/v1/search?q=crm",
            "/api/v1/history?slug=crm-software",
            "/nope",
            "/a.html",
        ):
            assert alone.get(path).status == 502


@needs_nginx
def test_the_cache_keeps_answers_while_the_application_is_away(data: Path, tmp_path: Path) -> None:
    """A fresh answer needs no application, each compression has its own copy, errors none."""
    port, path = servers.free_port(), "/api/v1/best/crm-software.json"
    with servers.gunicorn(data, tmp_path / "gunicorn.log") as app:
        site = run(
            data, "deploy", "nginx", "--app", f"127.0.0.1:{app.port}",
            "--listen", f"127.0.0.1:{port}",
            "--cache", str(tmp_path / "cache"), "--log", str(tmp_path / "access.log"),
        )  # fmt: skip
        with servers.nginx(site, tmp_path / "nginx", port) as proxy:
            plain, packed = proxy.get(path), proxy.get(path, {"Accept-Encoding": "br, gzip"})
            direct = app.get(path)
            assert plain.body == direct.body
            assert plain.headers["etag"] == direct.headers["etag"]
            assert packed.headers["content-encoding"] == "gzip"
            assert proxy.get("/nope").status == 404
            app.process.terminate()
            app.process.wait(30)
            assert proxy.get(path).body == plain.body
            assert proxy.get(path, {"Accept-Encoding": "gzip, deflate"}).body == packed.body
            tag = {"If-None-Match": plain.headers["etag"]}
            assert proxy.get(path, tag).status == 304
            assert proxy.get("/nope").status == 502
