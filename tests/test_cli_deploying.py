"""The printed configuration works as it stands: nginx and systemd take it."""

from __future__ import annotations

import email.utils
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import servers
from builders import BASE_URL, answered, app_over, cache_control, write_data
from prometheus_client import CollectorRegistry
from test_web_health import State

from store import gunicorn
from store.monitoring.metrics import Collector, Requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    return result.stdout


MISREAD = [
    "x", "", "x:", ":80", "x:0", "x:65536", "x:8e3", "x:٣", "x:80:90", "x 1:80",
    "x;y:80", "x:80;", "x:80\n", "x\n:80", "$x:80", "x:$y", "{x}:80", '"x":80', "::1:80", "[x]:80",
    "[::1:80", "1.2.3:80", "999.1.1.1:80", "unix:/run/x", "%i:80", "x:80 weight=5", "80 ssl", "80;",
]  # fmt: skip


def refused(data: Path, *arguments: str, **settings: Any) -> str:
    """What ``flask deploy`` says instead of a configuration."""
    app = app_over(data, **settings)
    done = app.test_cli_runner().invoke(args=["deploy", *arguments])
    assert done.exit_code in (1, 2), done.output
    assert not done.stdout
    return done.stderr


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
        assert re.search("^User=rankings_the_best_[0-9a-f]{6}$", unit, re.MULTILINE)

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
        unit = run(data, "deploy", "systemd", "--unit", "the_best")
        [line] = [each for each in unit.splitlines() if "systemd-run" in each]
        words = shlex.split(line.removeprefix("#"))
        assert words[0] == "systemd-run"
        assert "User=the_best" in words
        assert "EnvironmentFile=-/etc/the_best.env" in words
        assert f"WorkingDirectory={servers.ROOT}" in words
        assert f"DATA_DIR={data}" in words
        assert words[-5:] == [sys.executable, "-m", "flask", "poll", "--due"]

    def test_nobody_but_root_may_read_the_keys(self, data: Path) -> None:
        """The unit names a file for keys; none stands in it."""
        arguments = ["deploy", "systemd", "--unit", "the_best"]
        unit = run(data, *arguments, environ={"OPENAI_API_KEY": "sk-CANARY"})
        assert "EnvironmentFile=-/etc/the_best.env" in unit
        assert "CANARY" not in unit

    @needs_systemd
    @pytest.mark.parametrize(
        "name", ["The Best", "The 100% Best", "100 Best", "Best " * 12 + "!", "B\\"]
    )
    @pytest.mark.parametrize("folder", ["data", "my data", "50%n"])
    def test_systemd_takes_the_unit(self, tmp_path: Path, name: str, folder: str) -> None:
        """Whatever the site and its directory are called, systemd-analyze finds nothing amiss."""
        directory = write_data(tmp_path / folder, name=name)
        done = analysed(directory, "verify")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_percent_sign_stays_one(self, tmp_path: Path) -> None:
        """What systemd would take for a specifier is written twice, so that it is none."""
        unit = run(write_data(tmp_path / "50%n", name="The 100% Best"), "deploy", "systemd")
        assert "Description=The 100%% Best," in unit
        assert unit.count(f'{tmp_path}/50%%n"') == 2  # the data's place, and that it may be written

    @pytest.mark.parametrize("odd", ['"', "\\", "$(id)", "`id`", "a\nb"])
    def test_a_path_that_systemd_would_misread_is_refused(self, tmp_path: Path, odd: str) -> None:
        """Else the unit would pass every check and serve no data, or its comments run a command."""
        assert "systemd would misread the path" in refused(
            write_data(tmp_path / f"the {odd} best"), "systemd"
        )

    @pytest.mark.parametrize("odd", ['"', "\\", "$host", "*", "[ab]", "a\nb"])
    @pytest.mark.parametrize("option", ["--cache", "--log"])
    def test_a_path_that_nginx_would_misread_is_refused(
        self, data: Path, option: str, odd: str
    ) -> None:
        """Quotes end a path, a dollar begins a variable, a star finds other files."""
        assert "nginx would misread the path" in refused(data, "nginx", option, f"/var/{odd}")

    @pytest.mark.parametrize("option", ["nginx --app", "systemd --app", "nginx --listen"])
    def test_an_address_is_one(self, data: Path, option: str) -> None:
        """What is none never gets into the configuration, whatever nginx would make of it."""
        runner = app_over(data).test_cli_runner()
        ports = () if option == "nginx --listen" else ("80", "*:80")
        for misread in (*MISREAD, *ports):
            done = runner.invoke(args=["deploy", *option.split(), misread])
            assert f'"{misread}" is no address such as' in done.stderr
            assert (done.exit_code, done.stdout) == (2, "")

    @pytest.mark.parametrize("listen", ["80", "*:80", "127.0.0.1:80", "[::1]:80", "localhost:80"])
    def test_nginx_listens_where_it_can(self, data: Path, listen: str) -> None:
        """A port, on all addresses or on one."""
        assert f"listen {listen};" in run(data, "deploy", "nginx", "--listen", listen)

    @pytest.mark.parametrize("what", ["nginx", "systemd"])
    @pytest.mark.parametrize(
        "base_url",
        ["https://x.example;include", "https://x.example/a;b", "https://x.example/$host",
         "https://x.example/a'b", "https://x.example/{a}", "https://x.example/%41",
         "https://x.example/a/../b", "https://x.example//a", "https://key@x.example", 'https://x.example:8"0',
         "https://x.example:80;", "https://[::1]:$x", "https://[x"],
    )  # fmt: skip
    def test_an_address_that_means_more_is_refused(
        self, tmp_path: Path, what: str, base_url: str
    ) -> None:
        """A base URL that nginx, systemd or a shell would read as more than one is told apart."""
        data = write_data(tmp_path / "data")
        assert "cannot stand in configuration" in refused(data, what, base_url=base_url)

    def test_nginx_answers_to_every_host(self, tmp_path: Path) -> None:
        """Those of the settings and of the site too, or another site's server would answer them."""
        data = write_data(
            tmp_path / "data",
            hosts=["www.rankings.example", "Bücher.example:80", "www.rankings.example"],
        )
        site = run(data, "deploy", "nginx", hosts=("10.0.0.1", "[::1]"))
        names = "rankings.example www.rankings.example xn--bcher-kva.example 10.0.0.1 [::1]"
        assert f"server_name {names};" in site
        assert "A further host is none" in refused(data, "nginx", hosts=("a;b",))

    @pytest.mark.parametrize("unit", ["root", "Best", "a-b", "0a", "", "a" * 32, "a b", "a;b"])
    def test_a_unit_bears_a_name_that_fits_everywhere(self, data: Path, unit: str) -> None:
        """Unit, user and variables are called so; and the service is not root."""
        assert "cannot be the name" in refused(data, "systemd", "--unit", unit)

    def test_two_sites_of_one_name_do_not_meet(self, tmp_path: Path) -> None:
        """Another data directory, or another address, is another unit, user, zone and log."""
        one, two = (write_data(tmp_path / name) for name in ("one", "two"))
        printed = [
            run(directory, "deploy", what, base_url=base_url)
            for what in ("nginx", "systemd")
            for directory in (one, two)
            for base_url in ("https://a.example", "https://a.example/b", "https://b.example")
        ]
        names = [re.findall(r"rankings_consensus_test_[0-9a-f]+", text) for text in printed]
        assert all(len(set(found)) == 1 for found in names)
        assert len({found[0] for found in names}) == 6
        assert names[0][0] == names[6][0], "nginx and systemd speak of one service"

    def test_a_name_given_is_the_only_one(self, data: Path) -> None:
        """``--unit`` names the file, the user, the keys, the zone, the cache and the log."""
        for what in ("nginx", "systemd"):
            text = run(data, "deploy", what, "--unit", "mine")
            assert "rankings_" not in text
            assert re.search(r"into /etc/\S+/mine\.(conf|service)", text)

    def test_no_unit_is_for_the_checkouts_sample_by_accident(
        self, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A service that polls would add to files of the checkout."""
        monkeypatch.setattr("store.settings.SHIPPED_DATA", data)
        assert "DATA_DIR is not set" in refused(data, "systemd")
        assert str(data) in run(data, "deploy", "systemd", environ={"DATA_DIR": str(data)})

    def test_the_unit_says_how_to_poll(self, data: Path) -> None:
        """Without POLL_ENABLED a service runs for weeks and asks nobody."""
        unit = run(data, "deploy", "systemd", "--unit", "mine")
        comment = unit.partition("[Unit]")[0]
        assert re.search(r"/etc/mine\.env.*POLL_ENABLED=1", comment.replace("\n", " "))

    def test_several_applications_are_a_template_unit(self, data: Path) -> None:
        """Every ``--app`` is an instance that listens there; one given twice is one."""
        arguments = ["127.0.0.1:8000", "[::1]:8001", "my-host:8002", "127.0.0.1:8000"]
        apps = [word for app in arguments for word in ("--app", app)]
        unit = run(data, "deploy", "systemd", "--unit", "mine", *apps)
        assert "/etc/systemd/system/mine@.service" in unit
        assert " -b %I app:create_app()" in unit
        [line] = re.findall("enable --now (.*)", unit)
        instances = [word.removeprefix("mine@") for word in shlex.split(line)]
        assert instances == ["127.0.0.1:8000", r"\x5b::1\x5d:8001", r"my\x2dhost:8002"]

    @needs_systemd
    def test_systemd_takes_a_template_unit(self, data: Path) -> None:
        """The same check as for a unit of one."""
        done = analysed(data, "verify", apps=["--app", "127.0.0.1:1", "--app", "127.0.0.1:2"])
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_the_unit_exposes_little(self, data: Path) -> None:
        """By systemd's own reckoning, of 10, where 0 is nothing: at most 1.3.

        Of it 0.1 is NotifyAccess=all, which the worker's watchdog needs.
        """
        done = analysed(data, "security", "--offline=true")
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert found, done.stderr
        assert float(found[1]) <= 1.3


def analysed(
    data: Path, *arguments: str, apps: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says of the printed unit."""
    unit = run(data, "deploy", "systemd", *apps)
    [name] = re.findall(r"/etc/systemd/system/(\S+\.service)", unit)
    path = data.parent / name
    path.write_text(unit, encoding="utf-8")
    return subprocess.run(
        ["systemd-analyze", *arguments, str(path)], capture_output=True, text=True, check=False
    )


@pytest.fixture(params=["", "/rank.s/one"])
def prefix(request: pytest.FixtureRequest) -> str:
    """The path of the base URL."""
    path: str = request.param
    return path


class Alone(NamedTuple):
    """Nginx, and the path before which it answers nothing."""

    server: servers.Server
    prefix: str

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> servers.Answer:
        """Ask for a path of the application's."""
        return self.server.get(self.prefix + path, headers)


@pytest.fixture
def alone(data: Path, tmp_path: Path, prefix: str) -> Iterator[Alone]:
    """Nginx over an exported tree in a folder of an odd name, no application behind it."""
    tree, base_url = tmp_path / "the tree; {a}'s #1", f"{BASE_URL}{prefix}"
    run(data, "export", str(tree), base_url=base_url)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    port = servers.free_port()
    site = run(
        data, "deploy", "nginx", "--tree", str(tree),
        "--listen", f"127.0.0.1:{port}", "--app", f"127.0.0.1:{servers.free_port()}",
        "--cache", str(tmp_path / "a cache;"), "--log", str(tmp_path / "access; {a} log"),
        base_url=base_url,
    )  # fmt: skip
    with servers.nginx(site, tmp_path / "nginx", port) as server:
        yield Alone(server, prefix)


@pytest.fixture
def client(data: Path, prefix: str) -> FlaskClient:
    return app_over(data, base_url=f"{BASE_URL}{prefix}").test_client()


def paths(client: FlaskClient) -> list[str]:
    site_map = client.get("/sitemap.xml")
    pages = re.findall(rf"<loc>{BASE_URL}(?:/rank.s/one)?([^<]*)</loc>", site_map.text)
    documents = ("categories", "changes", "mentions", "labs", "openapi", "best/crm-software")
    found = [*(f"/api/v1/{name}.json" for name in documents), "/api/v1/product/product-a.json"]
    found += ["/api/v1/README.md"]
    return [*found, *pages]


@needs_nginx
class TestNginxAlone:
    """The exported tree without any process of ours."""

    def test_it_answers_as_the_application_does(self, alone: Alone, client: FlaskClient) -> None:
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

    def test_each_file_may_be_kept_as_long_as_from_the_application(
        self, alone: Alone, client: FlaskClient, tmp_path: Path
    ) -> None:
        """Assets and objects of the dataset for good, all else for a minute."""
        [tree] = tmp_path.glob("the tree*/current/manifest.json")
        files = json.loads(tree.read_text())["files"]
        ours = {path: cache_control(client, path) for path in files}
        assert {path: alone.get(path).headers["cache-control"] for path in files} == ours
        assert len(set(ours.values())) > 1

    def test_readers_who_have_it_get_304(self, alone: Alone) -> None:
        """By tag and by date."""
        path = "/api/v1/best/crm-software.json"
        first = alone.get(path).headers
        assert alone.get(path, {"If-None-Match": first["etag"]}).status == 304
        assert alone.get(path, {"If-Modified-Since": first["last-modified"]}).status == 304
        earlier = email.utils.formatdate(0, usegmt=True)
        assert alone.get(path, {"If-Modified-Since": earlier}).status == 200

    def test_old_addresses_lead_to_the_new(self, alone: Alone) -> None:
        """308, to the same place as from the application."""
        moved = alone.get("/api/v1/product/the-a.json")
        assert moved.status == 308
        base_url = f"{BASE_URL}{alone.prefix}"
        assert moved.headers["location"] == f"{base_url}/api/v1/product/product-a.json"

    def test_what_needs_a_process_says_that_there_is_none(self, alone: Alone) -> None:
        """Search, history, past days, tables and unknown paths are the application's, now away."""
        for path in (
            "/search?q=crm",
            "/search/suggest?q=crm",
            "/api/v1/search?q=crm",
            "/api/v1/search",
            "/api/v1/history?slug=crm-software",
            "/healthz",
            "/mcp",
            "/api/v1/best/crm-software.json?asOf=2026-11-02",
            "/best/crm-software?utm=x&asOf=2026-11-02",
            "/best/crm-software/changes",
            "/best/crm-software/changes?from=2026-11-02&to=2026-11-03",
            "/api/v1/changes.json?limit=1",
            "/api/v1/mentions.json?format=csv",
            "/nope",
            "/a.html",
        ):
            assert alone.get(path).status == 502, path
        assert alone.get("/best/crm-software?utm=asOf").status == 200

    def test_a_tree_is_for_one_address(self, data: Path, tmp_path: Path) -> None:
        """Else every link of the site would lead to where it once was."""
        run(data, "export", str(tmp_path / "tree"))
        arguments = ["nginx", "--tree", str(tmp_path / "tree")]
        assert "was exported for another address" in refused(
            data, *arguments, base_url="https://moved.example"
        )


@needs_nginx
def test_one_nginx_proxies_two_sites_of_one_name(tmp_path: Path) -> None:
    """Nothing that one configuration names stands in the other."""
    ports, sites = [servers.free_port(), servers.free_port()], []
    for port, name in zip(ports, ("one", "two"), strict=True):
        arguments = ["--listen", f"127.0.0.1:{port}", "--app", f"127.0.0.1:{servers.free_port()}"]
        site = run(write_data(tmp_path / name), "deploy", "nginx", *arguments)
        sites.append(re.sub('"/var/(cache|log)/nginx/', rf'"{tmp_path}/\1_', site))
    with servers.nginx("\n".join(sites), tmp_path / "nginx", ports[0]) as first:
        assert first.get("/").status == 502
        assert servers.Server(first.process, ports[1]).get("/").status == 502
    assert len([*tmp_path.glob("log_*.log")]) == 2


@needs_nginx
def test_a_base_url_with_a_path_is_answered_below_it(data: Path, tmp_path: Path) -> None:
    """Each link of pages and answers works, with its arguments; nothing else is answered."""
    port = servers.free_port()
    base_url = f"http://127.0.0.1:{port}/rank.s"
    with servers.gunicorn(data, tmp_path / "gunicorn.log", BASE_URL=base_url) as app:
        site = run(
            data, "deploy", "nginx", "--app", f"127.0.0.1:{app.port}",
            "--listen", f"127.0.0.1:{port}", "--cache", str(tmp_path / "cache"),
            "--log", str(tmp_path / "access.log"), base_url=base_url,
        )  # fmt: skip
        with servers.nginx(site, tmp_path / "nginx", port) as proxy:
            home = proxy.get("/rank.s/").body.decode()
            verdict = proxy.get("/rank.s/api/v1/best/crm-software.json").body.decode()
            found = re.findall(rf'"(?:http://127.0.0.1:{port})?/rank\.s(/[^"#]*)', home + verdict)
            links = {*found, "/search?q=crm&x=%20%2F"}
            assert len(links) > 10
            for link in links:
                answer, direct = proxy.get(f"/rank.s{link}"), app.get(link)
                assert (answer.status, answer.body) == (direct.status, direct.body), link
                assert answer.status != 404, link
            for path in ("/", "/best/crm-software", "/rankXs/", "/rank.sbest/crm-software"):
                assert proxy.get(path).status == 404, path
            bare = proxy.get("/rank.s?a=b")
            assert (bare.status, bare.headers["location"]) == (308, "/rank.s/?a=b")
            for odd in ("/best/a%2Fb", "//best/crm-software", "/%62est/crm-software", "/a%0Ab"):
                assert proxy.get(f"/rank.s{odd}").body == app.get(odd).body, odd


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


PROMTOOL = shutil.which("promtool")
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


class TestMonitoring:
    """What Prometheus and Grafana are given."""

    def test_the_job_is_the_unit(self, data: Path) -> None:
        """Scrape configuration, rules and dashboard name one job, so that two sites differ."""
        scraped = run(data, "deploy", "prometheus", "--unit", "rankings", "--port", "9999")
        assert "job_name: rankings\n" in scraped
        assert 'targets: ["127.0.0.1:9999"]' in scraped
        rules = run(data, "deploy", "prometheus", "--rules", "--unit", "rankings")
        found = json.loads(run(data, "deploy", "grafana", "--unit", "rankings"))
        queries = [panel["targets"][0]["expr"] for panel in found["panels"]]
        for query in [*re.findall(r"consensus_\w+({[^}]*})?", rules), *queries]:
            assert 'job="rankings"' in query
        assert len({panel["id"] for panel in found["panels"]}) == len(queries)

    def test_every_figure_that_is_asked_for_exists(self, data: Path) -> None:
        """A rule over a metric that nobody serves would never fire."""
        app = app_over(data)
        app.extensions["scheduler"] = State
        app.extensions["store"].exported_at = 0.0
        registry = CollectorRegistry()
        registry.register(Collector(app))
        requests = Requests(app.wsgi_app)
        registry.register(requests)
        app.wsgi_app = requests  # type: ignore[method-assign]
        app.test_client().get("/")
        served = {sample.name for family in registry.collect() for sample in family.samples}
        served.add("consensus_budget_usd")  # where site.json sets one
        printed = run(data, "deploy", "prometheus", "--rules", "--unit", "u")
        printed += run(data, "deploy", "grafana", "--unit", "u")
        assert set(re.findall(r"consensus_[a-z_]+", printed)) <= served

    @pytest.mark.skipif(not PROMTOOL, reason="promtool is not installed")
    def test_prometheus_takes_it(self, data: Path, tmp_path: Path) -> None:
        """Prometheus' own tool checks configuration, rules and every query of the dashboard."""
        app = ["--unit", "rankings"]
        (tmp_path / "prometheus.yml").write_text(run(data, "deploy", "prometheus", *app))
        rules = tmp_path / "rankings.rules.yml"
        rules.write_text(run(data, "deploy", "prometheus", "--rules", *app))
        panels = json.loads(run(data, "deploy", "grafana", *app))["panels"]
        of_panels = [
            {"record": f"panel:{panel['id']}", "expr": panel["targets"][0]["expr"]}
            for panel in panels
        ]
        panel_rules = tmp_path / "panels.yml"
        panel_rules.write_text(json.dumps({"groups": [{"name": "panels", "rules": of_panels}]}))
        for what in (["config", "prometheus.yml"], ["rules", "panels.yml"]):
            done = subprocess.run(
                [str(PROMTOOL), "check", *what],
                cwd=tmp_path, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            assert "FAILED" not in done.stdout + done.stderr


class TestContainer:
    """Containerfile and compose file."""

    def test_the_application_has_no_rights(self, data: Path) -> None:
        """Not root, nothing written but data, and keys only as files."""
        models = json.loads((data / "models.json").read_text())
        models["models"][0]["key_env"] = "SOME_API_KEY"
        (data / "models.json").write_text(json.dumps(models))
        file = run(data, "deploy", "container", "--extras", "cloud,data")
        assert "USER 10001:10001" in file
        assert ".[cloud,data]" in file
        printed = run(data, "deploy", "compose", "--unit", "rankings")
        for line in ("read_only: true", "cap_drop: [ALL]", 'user: "10001:10001"',
                     "SOME_API_KEY_FILE: /run/secrets/SOME_API_KEY",
                     'SOME_API_KEY: {file: "./secrets/SOME_API_KEY"}'):  # fmt: skip
            assert line in printed

    def test_extras_are_names(self, data: Path) -> None:
        """They stand in a command."""
        assert "no list of extras" in refused(data, "container", "--extras", "x' && y")

    @pytest.mark.skipif(not HADOLINT, reason="hadolint needs: pip install '.[operations]'")
    def test_hadolint_finds_nothing(self, data: Path, tmp_path: Path) -> None:
        """The linter of Containerfiles is content with every rule."""
        file = tmp_path / "Containerfile"
        file.write_text(run(data, "deploy", "container"))
        done = subprocess.run(
            [str(HADOLINT), str(file)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")
