"""A key that is pasted where it does not belong shows nowhere: not to readers, not in a log."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from builders import BASE_URL, answered, app_over, write_data, write_json

from app import create_app
from store.settings import Settings

BARE = "CANARY4f9a1c7e2b8d"
"""What gives a key away; it may be a variable's name too."""
CANARY = f"sk-{BARE}"

ASSISTANT: dict[str, Any] = {
    "name": "A",
    "api": "chat",
    "base_url": "http://127.0.0.1:9/v1",
    "model": "a",
    "key_env": "A_API_KEY",
    "structured": "json_schema",
    "max_output_tokens": 4000,
    "concurrency": 4,
    "rpm": 60,
    "usd_per_million_input": 2,
    "usd_per_million_output": 10,
    "usd_per_thousand_searches": 0,
    "web_search": False,
    "extra": {"x": 1},
}
SITE: dict[str, Any] = {
    "version": 1,
    "name": "Consensus Test",
    "base_url": "https://a.example",
    "poll_every_days": 7,
    "daily_usd": 5,
    "hosts": ["a.example"],
}
PAGES = (
    "/",
    "/best/crm-software",
    "/product/x",
    "/methodology",
    "/docs",
    "/llms.txt",
    "/nope",
    "/best/nope",
    "/healthz",
    "/api/v1/best/crm-software.json",
    "/api/v1/history?slug=crm-software",
    "/api/v1/history?slug=crm-software&model=nobody",
    "/api/v1/search?q=crm",
    "/api/v1/openapi.json",
    "/api/v1/README.md",
    "/.well-known/mcp/server-card.json",
)
COMMANDS = (
    ("check",),
    ("poll", "--status"),
    ("poll", "--all", "--dry-run"),
    ("names", "queue"),
    ("names", "explain", "X"),
    ("deploy", "nginx.conf"),
    ("deploy", "rankings.service"),
)


def assistants() -> Iterator[tuple[str, str]]:
    """What models.json may hold by mistake: a name for it, and the file's text."""
    for member in [name for name in ASSISTANT if name != "name"]:
        for value in (CANARY, BARE, [CANARY], {CANARY: CANARY}, f"https://a.example/{CANARY}"):
            changed = {**ASSISTANT, member: value}
            yield f"{member}={json.dumps(value)}", _models(changed)
    for base_url in (f"https://{CANARY}@a.example", f"https://a.example/?key={CANARY}"):
        yield base_url, _models({**ASSISTANT, "base_url": base_url})
    yield "a member", _models({**ASSISTANT, CANARY: CANARY})
    yield "like a member", _models({**ASSISTANT, f"key_env{CANARY}": 1})
    yield "version", json.dumps({"version": CANARY, "models": [ASSISTANT]})
    yield "top", json.dumps({"version": 1, "models": [ASSISTANT], CANARY: CANARY})
    yield "an assistant", json.dumps({"version": 1, "models": [CANARY]})
    yield "all assistants", json.dumps({"version": 1, "models": CANARY})
    yield "the whole", json.dumps(CANARY)
    good = _models(ASSISTANT)
    yield "bare", good.replace('"A_API_KEY"', CANARY)
    yield "twice", good.replace('"model": "a"', f'"{CANARY}": 1, "{CANARY}": 1')
    yield "no colon", good.replace('"model": "a"', f'"{CANARY}" 1')
    yield "unclosed", good.replace('"A_API_KEY"', f'"{CANARY}')
    yield "escape", good.replace('"A_API_KEY"', f'"\\z{CANARY}"')
    yield "comment", good.replace('"model": "a"', f'/* {CANARY} */ "model": "a"')
    yield "after", good + CANARY
    yield "two of a name", json.dumps({"version": 1, "models": [ASSISTANT] * 2})


def sites() -> Iterator[tuple[str, str]]:
    """The same for site.json, whose name and licence every page shows."""
    for member in [name for name in SITE if name not in ("name", "licence")]:
        yield member, json.dumps({**SITE, member: CANARY})
    yield "user", json.dumps({**SITE, "base_url": f"https://{CANARY}@a.example"})
    yield "a member", json.dumps({**SITE, CANARY: CANARY})


def _models(assistant: dict[str, Any]) -> str:
    return json.dumps({"version": 1, "models": [assistant]}, indent=1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with one real assistant and one answer."""
    data = write_data(tmp_path / "data", polls=[answered("A", ["X"])])
    (data / "models.json").write_text(_models(ASSISTANT), encoding="utf-8")
    write_json(data / "site.json", SITE)
    return data


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that is logged."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    logging.getLogger().addHandler(handler)
    yield text
    logging.getLogger().removeHandler(handler)


def told(directory: Path, **settings: Any) -> str:
    """All that a server and the commands over a data directory say."""
    try:
        app = app_over(directory, **settings)
    except click.ClickException as error:
        return error.message
    client, runner = app.test_client(), app.test_cli_runner()
    done = [runner.invoke(args=command) for command in COMMANDS]
    if "A_API_KEY" not in settings.get("environ", ()):  # it would be asked, and again
        done.append(runner.invoke(args=("poll", "--all")))
    done.append(runner.invoke(args=("export", str(directory.parent / "tree"))))
    assert not [
        d.exception for d in done if d.exception and not isinstance(d.exception, SystemExit)
    ]
    answers = [client.get(page) for page in PAGES]
    mcp = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    answers.append(client.post("/mcp", json=mcp))
    return "\n".join(
        [*(d.output for d in done), *(f"{answer.headers}\n{answer.text}" for answer in answers)]
    )


def test_a_key_in_models_or_site_shows_nowhere(directory: Path, logged: io.StringIO) -> None:
    """As any value, as a member's name, as broken JSON: on a start and while it is served."""
    for name, made in (("models.json", assistants), ("site.json", sites)):
        good = (directory / name).read_text(encoding="utf-8")
        running = app_over(directory)
        store = running.extensions["store"]
        for what, text in made():
            (directory / name).write_text(text, encoding="utf-8")
            store.reload()
            said = running.test_client().get("/healthz").text + "\n".join(map(str, store.problems))
            said += logged.getvalue()
            assert BARE not in said, (name, what, _around(said))
        (directory / name).write_text(good, encoding="utf-8")
        store.reload()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "made"), [("models.json", assistants), ("site.json", sites)])
def test_no_command_and_no_page_shows_it_either(
    directory: Path, logged: io.StringIO, name: str, made: Any
) -> None:
    """Every command in every format, every endpoint, over a fresh server for each place."""
    for what, text in made():
        (directory / name).write_text(text, encoding="utf-8")
        said = told(directory) + logged.getvalue()
        assert BARE not in said, (name, what, _around(said))


@pytest.mark.parametrize("place", ["extra", "key_env", "unknown", "concurrency"])
def test_a_few_places_with_every_command(directory: Path, logged: io.StringIO, place: str) -> None:
    """The same for the likeliest places, in every run of the suite."""
    changed = {**ASSISTANT, place: BARE if place == "key_env" else CANARY}
    (directory / "models.json").write_text(_models(changed), encoding="utf-8")
    assert BARE not in told(directory) + logged.getvalue()


@pytest.mark.parametrize(
    "environ",
    [
        {"A_API_KEY": CANARY},
        {"A_API_KEY": f"{CANARY} \u00fc"},
        {"A_API_KEY_FILE": f"/{CANARY}"},
        {"BASE_URL": f"https://{CANARY}@a.example"},
        {"BASE_URL": CANARY},
        {"POLL_PROXY": f"http://user:{CANARY}@127.0.0.1:9"},
        {"POLL_TICK_SECONDS": CANARY},
        {"POLL_ENABLED": CANARY},
        {"HOSTS": CANARY},
        {"OTHER": CANARY},
    ],
    ids="-".join,
)
def test_a_key_in_the_environment_shows_nowhere(
    directory: Path, logged: io.StringIO, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever variable holds it, what is said of that variable does not repeat it."""
    monkeypatch.chdir(directory.parent)
    for name, value in {"DATA_DIR": str(directory), "BASE_URL": BASE_URL, **environ}.items():
        monkeypatch.setenv(name, value)
    try:
        create_app()
        settings = Settings.from_env()
        said = repr(settings)
        given = {name: getattr(settings, name) for name in ("base_url", "hosts", "environ")}
        said += told(directory, **given)
    except click.ClickException as error:
        said = error.message
    assert BARE not in said + logged.getvalue(), _around(said)


def _around(said: str) -> str:
    """What stands about the key, for a failure's message."""
    at = said.find(BARE)
    return said[max(0, at - 200) : at + 50]
