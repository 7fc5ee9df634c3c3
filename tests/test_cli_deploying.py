"""The files of templates/deploy work as they are printed, and carry nothing but their values."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from builders import answered, app_over, write_data
from deployed import printed
from prometheus_client import CollectorRegistry
from test_web_health import State

from store import gunicorn
from store.monitoring.metrics import Collector, Requests

DEPLOY = servers.ROOT / "templates" / "deploy"
FILES = sorted(path.name for path in DEPLOY.iterdir())
UNITS = [name for name in FILES if name.endswith((".service", ".timer"))]
CLI_README = "store/cli/README.md"
JSON_PATH = "/api/v1/best/crm-software.json"

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
        polls=[answered(model, names) for model in "ABCD"],
    )


def refused(data: Path, file: str, *options: str, **settings: Any) -> str:
    """What it says instead of a file."""
    done = app_over(data, **settings).test_cli_runner().invoke(args=["deploy", file, *options])
    assert done.exit_code in (1, 2), done.output
    assert not done.stdout
    return done.stderr


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A linter, run to its end."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


class TestPlaceholders:
    """What is filled in, and what cannot be."""

    def test_there_are_eight(self) -> None:
        """A file can be read, and filled in by hand, with a table of eight lines."""
        texts = [(DEPLOY / file).read_text(encoding="utf-8") for file in FILES]
        assert len({name for text in texts for name in re.findall("@([A-Z_]+)@", text)}) == 8

    @pytest.mark.parametrize("file", FILES)
    def test_none_is_left(self, data: Path, file: str) -> None:
        """Each file is printed whole, with the site's own values."""
        text = printed(data, file, "--name", "best_of", "--app", "[::1]:8001")
        assert not re.search("@[A-Z_]+@", text)
        assert str(data) in text or "DATA_DIR@" not in (DEPLOY / file).read_text("utf-8")

    def test_the_files_are_listed(self, data: Path) -> None:
        """Without a name, and where no file has the name; no path leads elsewhere."""
        done = app_over(data).test_cli_runner().invoke(args=["deploy"])
        assert done.stdout.splitlines() == FILES
        assert "There is no ../llms.txt among Containerfile, " in refused(data, "../llms.txt")

    def test_the_readmes_name_files_that_are_there(self) -> None:
        """Whoever follows them finds each unit."""
        texts = [(servers.ROOT / file).read_text("utf-8") for file in ("README.md", CLI_README)]
        named = {name for text in texts for name in re.findall(r"rankings-\w+@?\.[a-z]+", text)}
        assert len(named) > 4
        assert named <= {*FILES, "rankings-backup.env"}

    @pytest.mark.parametrize(
        "name", ["root", "Best", "a-b", "0a", "", "a" * 32, "a b", "a;b", "@APP@"]
    )
    def test_a_name_fits_everywhere(self, data: Path, name: str) -> None:
        """Unit, user and nginx's variables are called so; and the service is not root."""
        assert "--name must be" in refused(data, "rankings.service", "--name", name)

    @pytest.mark.parametrize(
        "app",
        ["x", "", "x:", ":80", "x:8e3", "x:٣", "x:80:90", "x 1:80", "x;y:80", "x:80;", "x:80\n",
         "x\n:80", "$x:80", "x:$y", "{x}:80", '"x":80', "::1:80", "[x]:80", "[::1:80",
         "unix:/run/x", "%i:80", "x:80 weight=5", "@NAME@:80"],
    )  # fmt: skip
    def test_an_address_is_one(self, data: Path, app: str) -> None:
        """What is none never gets into a file, whatever nginx or systemd would make of it."""
        for file in ("nginx.conf", "rankings.service", "rankings-health.service"):
            assert "--app must be an address" in refused(data, file, "--app", app)

    @pytest.mark.parametrize("file", ["nginx.conf", "rankings.service"])
    @pytest.mark.parametrize(
        "base_url",
        [None, "https://x.example;include", "https://x.example/a;b", "https://x.example/$host",
         "https://x.example/a'b", "https://x.example/{a}", "https://x.example/%41",
         "https://x.example/a/../b", "https://x.example//a", "https://key@x.example",
         'https://x.example:8"0', "https://x.example:80;", "https://[::1]:$x", "https://[x"],
    )  # fmt: skip
    def test_a_base_url_that_means_more_is_refused(
        self, data: Path, file: str, base_url: str | None
    ) -> None:
        """So is one that is missing, for there would be no server name to print."""
        environ = {"DATA_DIR": str(data)}
        told = refused(data, file, base_url=base_url, environ=environ)
        assert "Set BASE_URL, or base_url in site.json" in told

    def test_nginx_answers_to_every_host(self, tmp_path: Path) -> None:
        """Those of the settings and of the site too, or another site's server would answer them."""
        hosts = ["www.rankings.example", "Bücher.example:80", "www.rankings.example"]
        data = write_data(tmp_path / "data", hosts=hosts)
        names = "rankings.example www.rankings.example xn--bcher-kva.example 10.0.0.1 [::1]"
        site = printed(data, "nginx.conf", hosts=("10.0.0.1", "[::1]"))
        assert f"server_name {names};" in site
        assert "A host is not one" in refused(data, "nginx.conf", hosts=("a;b",))

    @pytest.mark.parametrize(
        "odd", ['"', "\\", "$(id)", "`id`", "a\nb", "50%n", "my data", "é", "@BIN@"]
    )
    def test_a_path_that_could_mean_more_is_refused(self, tmp_path: Path, odd: str) -> None:
        """Else a unit would pass every check and serve other data, or a comment run a command."""
        data = write_data(tmp_path / odd)
        assert "has odd characters; move it" in refused(data, "rankings.service")

    def test_nothing_is_for_the_checkouts_sample_by_accident(
        self, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A service that polls would add to files of the checkout."""
        monkeypatch.setattr("store.settings.SHIPPED_DATA", data)
        assert "DATA_DIR is not set" in refused(data, "rankings.service", environ={})
        assert str(data) in printed(data, "rankings.service")


@needs_systemd
class TestUnits:
    """What systemd is given."""

    @pytest.fixture
    def folder(self, data: Path, tmp_path: Path) -> Path:
        """All units as they are installed, with the programs that they call."""
        folder = tmp_path / "units"
        (folder / "bin").mkdir(parents=True)
        paths = {str(Path(sys.executable).parent): str(folder / "bin")}
        for program in ("gunicorn", "consensus", "restic", "rclone"):
            (folder / "bin" / program).symlink_to("/bin/true")
            paths[f"/usr/bin/{program}"] = str(folder / "bin" / program)
        for unit in UNITS:
            text = printed(data, unit)
            for path, own in paths.items():
                text = text.replace(f"{path} ", f"{own} ").replace(f"{path}/", f"{own}/")
            (folder / unit).write_text(text, encoding="utf-8")
        return folder

    def test_systemd_takes_them(self, folder: Path) -> None:
        """systemd-analyze finds nothing amiss, neither in a unit nor in what it refers to."""
        done = run("systemd-analyze", "verify", *UNITS, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_the_service_exposes_little(self, folder: Path) -> None:
        """By systemd's own reckoning, of 10, where 0 is nothing: at most 1.3.

        Of it 0.1 is NotifyAccess=all, which the worker's watchdog needs.
        """
        done = run("systemd-analyze", "security", "--offline=true", f"{folder}/rankings.service")
        level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert level, done.stderr
        assert float(level[1]) <= 1.3

    def test_every_failure_is_told(self, folder: Path) -> None:
        """What a timer starts names the unit that tells a person."""
        started = [
            folder / name.replace(".timer", ".service") for name in UNITS if ".timer" in name
        ]
        assert len(started) == 5
        for unit in started:
            assert "\nOnFailure=rankings-alert@%n.service\n" in unit.read_text(encoding="utf-8")

    def test_the_service_is_waited_for(self, data: Path) -> None:
        """Polls and requests under way get all the time that gunicorn gives them."""
        waits = re.search(r"TimeoutStopSec=(\d+)", printed(data, "rankings.service"))
        assert waits
        assert int(waits[1]) > gunicorn.graceful_timeout

    def test_a_poll_by_hand_is_the_units_in_all_it_needs(self, data: Path) -> None:
        """The same user, keys, code and data as the service."""
        unit = printed(data, "rankings.service")
        [line] = [line for line in unit.splitlines() if "systemd-run" in line]
        words = shlex.split(line.removeprefix("#"))
        assert {"User=rankings", "EnvironmentFile=-/etc/rankings.env", f"DATA_DIR={data}"} < {
            *words
        }
        assert words[-3:] == [f"{Path(sys.executable).parent}/consensus", "poll", "--due"]


@needs_nginx
class TestNginx:
    """What nginx is given, in a real one."""

    @pytest.fixture
    def proxy(self, data: Path, tmp_path: Path) -> Iterator[servers.Server]:
        """Nginx before an application that is not there."""
        site = printed(data, "nginx.conf", "--app", f"127.0.0.1:{servers.free_port()}")
        with servers.nginx(site, tmp_path / "nginx", servers.free_port()) as server:
            yield server

    def test_a_plain_debian_has_all_it_needs(self, data: Path) -> None:
        """It writes only where Debian has the parent folder, and listens to IPv6 as well."""
        site = printed(data, "nginx.conf")
        written = re.findall(r"(?:proxy_cache_path|access_log) (\S+)", site)
        assert {os.path.dirname(path) for path in written} == {"/var/cache", "/var/log/nginx"}  # noqa: PTH120
        assert re.findall("listen (.*);", site) == ["80", "[::]:80"]

    @pytest.mark.skipif(not servers.has_ipv6(), reason="this machine has no IPv6")
    def test_it_answers_over_ipv6(self, proxy: servers.Server) -> None:
        """A host with an AAAA record is not answered by another site."""
        done = run("curl", "-gsS", f"http://[::1]:{proxy.port}/api/v1/")
        assert json.loads(done.stdout)["status"] == 503, done.stderr

    def test_programs_get_a_problem_without_an_application(self, proxy: servers.Server) -> None:
        """Where nothing is kept either: JSON with CORS that no cache keeps, as from the API."""
        for path in (JSON_PATH, "/api/v1/search?q=%22%5C", "/mcp"):
            answer = proxy.get(path)
            assert (answer.status, json.loads(answer.body)["code"]) == (503, "unavailable")
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["cache-control"] == "no-store"
        assert proxy.get("/best/crm-software").status == 502

    def test_it_serves_two_sites(self, tmp_path: Path) -> None:
        """Nothing that one file names stands in the other, if their names differ."""
        app, sites = f"127.0.0.1:{servers.free_port()}", ""
        for name in ("one", "two"):
            data = write_data(tmp_path / name)
            base_url = f"https://{name}.example"
            sites += printed(data, "nginx.conf", "--name", name, "--app", app, base_url=base_url)
        with servers.nginx(sites, tmp_path / "nginx", servers.free_port()) as server:
            assert server.get("/", {"Host": "two.example"}).status == 502
        assert {path.name for path in (tmp_path / "nginx/var/cache").iterdir()} == {
            "one-nginx", "two-nginx",
        }  # fmt: skip

    @pytest.mark.parametrize("prefix", ["", "/rank.s"])
    def test_every_link_works_below_the_base_urls_path(
        self, data: Path, tmp_path: Path, prefix: str
    ) -> None:
        """Each link of pages and answers, with its arguments; nothing else is answered."""
        port = servers.free_port()
        base_url = f"http://127.0.0.1:{port}{prefix}"
        with servers.gunicorn(data, tmp_path / "gunicorn.log", BASE_URL=base_url) as app:
            options = ("--app", f"127.0.0.1:{app.port}")
            site = printed(data, "nginx.conf", *options, base_url=base_url)
            with servers.nginx(site, tmp_path / "nginx", port) as proxy:
                home = proxy.get(f"{prefix}/").body.decode()
                verdict = proxy.get(f"{prefix}{JSON_PATH}").body.decode()
                pattern = rf'"(?:http://127.0.0.1:{port})?{re.escape(prefix)}(/[^"#<>\s]*)'
                found = re.findall(pattern, home + verdict)
                links = {*found, "/search?q=crm&x=%20%2F"}
                assert len(links) > 10
                for link in links:
                    answer, direct = proxy.get(f"{prefix}{link}"), app.get(link)
                    assert (answer.status, answer.body) == (direct.status, direct.body), link
                    assert answer.status != 404, link
                for odd in ("/best/a%2Fb", "//best/crm-software", "/%62est/crm-software", "/a%0Ab"):
                    assert proxy.get(f"{prefix}{odd}").body == app.get(odd).body, odd
                if prefix:
                    for path in ("/", "/best/crm-software", "/rankXs/", "/rank.sbest/crm-software"):
                        assert proxy.get(path).status == 404, path
                    bare = proxy.get("/rank.s?a=b")
                    assert (bare.status, bare.headers["location"]) == (301, "/rank.s/?a=b")

    def test_the_cache_answers_while_the_application_is_away(
        self, data: Path, tmp_path: Path
    ) -> None:
        """A fresh answer needs no application, each compression has its own copy, errors none."""
        with servers.gunicorn(data, tmp_path / "gunicorn.log") as app:
            site = printed(data, "nginx.conf", "--app", f"127.0.0.1:{app.port}")
            with servers.nginx(site, tmp_path / "nginx", servers.free_port()) as proxy:
                plain = proxy.get(JSON_PATH)
                packed = proxy.get(JSON_PATH, {"Accept-Encoding": "br, gzip"})
                direct = app.get(JSON_PATH)
                assert plain.body == direct.body
                assert plain.headers["etag"] == direct.headers["etag"]
                assert packed.headers["content-encoding"] == "gzip"
                assert proxy.get("/nope").status == 404
                app.process.terminate()
                app.process.wait(30)
                assert proxy.get(JSON_PATH).body == plain.body
                again = proxy.get(JSON_PATH, {"Accept-Encoding": "gzip, deflate"})
                assert again.body == packed.body
                tag = {"If-None-Match": plain.headers["etag"]}
                assert proxy.get(JSON_PATH, tag).status == 304
                assert proxy.get("/nope").status == 502


PROMTOOL = shutil.which("promtool")
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


class TestMonitoring:
    """What Prometheus and Grafana are given."""

    def test_the_job_has_the_sites_name(self, data: Path) -> None:
        """Scrape configuration, rules and dashboard name one job, so that two sites differ."""
        assert "job_name: best\n" in printed(data, "prometheus.yml", "--name", "best")
        rules = printed(data, "prometheus.rules.yml", "--name", "best")
        panels = json.loads(printed(data, "grafana.json", "--name", "best"))["panels"]
        queries = [panel["targets"][0]["expr"] for panel in panels]
        for query in [*re.findall(r"consensus_\w+({[^}]*})?", rules), *queries]:
            assert 'job="best"' in query
        assert len({panel["id"] for panel in panels}) == len(queries)

    def test_every_figure_that_is_asked_for_exists(self, data: Path) -> None:
        """A rule over a metric that nobody serves would never fire."""
        app = app_over(data)
        app.extensions["scheduler"] = State
        app.extensions["store"].exported_at = 0.0
        registry = CollectorRegistry()
        registry.register(Collector(app))
        app.wsgi_app = Requests(app.wsgi_app, registry)  # type: ignore[method-assign]
        app.test_client().get("/")
        served = {sample.name for family in registry.collect() for sample in family.samples}
        served.add("consensus_budget_usd")  # where site.json sets one
        text = printed(data, "prometheus.rules.yml") + printed(data, "grafana.json")
        assert set(re.findall(r"consensus_[a-z_]+", text)) <= served

    @pytest.mark.skipif(not PROMTOOL, reason="promtool is not installed")
    def test_prometheus_takes_it(self, data: Path, tmp_path: Path) -> None:
        """Prometheus' own tool checks configuration, rules and every query of the dashboard."""
        (tmp_path / "prometheus.yml").write_text(printed(data, "prometheus.yml"))
        (tmp_path / "rankings.rules.yml").write_text(printed(data, "prometheus.rules.yml"))
        panels = json.loads(printed(data, "grafana.json"))["panels"]
        rules = [
            {"record": f"panel:{panel['id']}", "expr": panel["targets"][0]["expr"]}
            for panel in panels
        ]
        groups = {"groups": [{"name": "panels", "rules": rules}]}
        (tmp_path / "panels.yml").write_text(json.dumps(groups))
        for what in (["config", "prometheus.yml"], ["rules", "panels.yml"]):
            done = run(str(PROMTOOL), "check", *what, cwd=tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "FAILED" not in done.stdout + done.stderr


class TestContainer:
    """Containerfile and compose file."""

    def test_the_application_has_no_rights(self, data: Path) -> None:
        """Not root, nothing written but data, and keys only as files."""
        assert "USER 10001:10001" in printed(data, "Containerfile")
        compose = printed(data, "compose.yaml")
        for line in ("read_only: true", "cap_drop: [ALL]", 'user: "10001:10001"'):
            assert line in compose
        shipped = json.loads((servers.ROOT / "templates/init/models.json").read_text("utf-8"))
        for assistant in shipped["models"]:
            name = assistant["key_env"]
            assert f"{name}_FILE: /run/secrets/{name}\n" in compose

    @pytest.mark.skipif(not HADOLINT, reason="hadolint needs: pip install '.[operations]'")
    def test_hadolint_finds_nothing(self, data: Path, tmp_path: Path) -> None:
        """The linter of Containerfiles is content with every rule."""
        file = tmp_path / "Containerfile"
        file.write_text(printed(data, "Containerfile"))
        done = run(str(HADOLINT), str(file))
        assert (done.returncode, done.stdout) == (0, "")
