"""Small, readable test data: polls, data directories and stores, written where they are used."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import click
import msgspec
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient
from msgspec import UNSET, UnsetType

from app import create_app
from store.history import History
from store.ledger import Proof
from store.line_codec import encode_line
from store.rankings.names import slugs
from store.records import Category, NearMiss, Pick, Poll
from store.settings import Settings
from store.snapshot import Snapshot
from store.store import Store
from store.web import listings, trends, verdicts
from store.web.endpoints import Endpoint
from store.web.queries import (
    CategoryListQuery,
    ChangesQuery,
    MentionsQuery,
    ProductQuery,
    Query,
    RankingQuery,
)
from store.web.view import View

_BODIES: WeakKeyDictionary[Store, dict[tuple[str, int], bytes]] = WeakKeyDictionary()
"""Bodies of each store by path and the step that they follow from: a server keeps them as long."""

BASE_URL = "https://rankings.example"

SITE = {"version": 1, "name": "Consensus Test", "sample": True}


def question_of(slug: str) -> str:
    """What a category asks, unless a test says otherwise."""
    return f"What is the best {slug.replace('crm-software', 'CRM software')}?"


def hashed_slug(name: str) -> str:
    """The address of a name whose plain slug is not its own: the second that it can have."""
    _, hashed = islice(slugs(name), 2)
    return hashed


def category(title: str = "Best CRM software", **fields: Any) -> Category:
    """A category record; its question follows from the title."""
    topic = title.removeprefix("Best ")
    return Category(version=1, title=title, question=f"What is the best {topic}?", **fields)


def answered(
    model: str,
    names: Sequence[str],
    at: str = "2026-11-02T06:00:00Z",
    *,
    slug: str = "crm-software",
    **fields: Any,
) -> Poll:
    """A successful poll that ranks these names, best first, sealed as in history.

    ``reasons`` maps names to reasons (else "<model> on <name>"), ``domains`` names to domains.
    """
    domains: Mapping[str, str] = fields.pop("domains", {})
    reasons: Mapping[str, str | None] = fields.pop("reasons", {})
    missed: Sequence[str] = fields.pop("missed", ())
    ranking = tuple(
        Pick(
            rank,
            name,
            domains.get(name),
            reasons.get(name, f"{model} on {name}"),
            (f"{model} would fix {name}",),
        )
        for rank, name in enumerate(names, start=1)
    )
    poll = Poll(
        slug=slug,
        model=model,
        question=fields.pop("question", question_of(slug)),
        pick=names[0],
        ranking=ranking,
        reason=fields.pop("reason", ranking[0].reason),
        missed=tuple(NearMiss(name, f"{model} left out {name}") for name in missed),
        **fields,
    )
    return encode_line(poll, at)[0]


def failed(
    model: str,
    kind: str = "timeout",
    at: str = "2026-11-02T06:00:00Z",
    *,
    slug: str = "crm-software",
    question: str | None = None,
    cooldown_until: str | UnsetType = UNSET,
) -> Poll:
    """A failed poll, sealed as in history."""
    poll = Poll(
        slug=slug,
        model=model,
        question=question or question_of(slug),
        error=f"It failed: {kind}.",
        failure=kind,  # type: ignore[arg-type]
        cooldown_until=cooldown_until,
    )
    return encode_line(poll, at)[0]


def line_of(members: Mapping[str, Any] | bytes) -> bytes:
    """A line of history that says anything at all, with an id and a checksum that fit it.

    ``members`` are those of a record, or the bytes of a JSON object that begins as a record does.
    """
    if isinstance(members, bytes):
        bare = members
    else:
        rest = {key: value for key, value in members.items() if key not in ("v", "id", "crc")}
        said = {"v": members.get("v", 1), **rest}
        bare = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    identity = hashlib.sha256(bare).hexdigest()[:16]
    body = bare[:7] + b'"id":"%b",' % identity.encode() + bare[7:]
    return body[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(body)


def write_json(path: Path, value: object) -> Path:
    """Write a data file as a person would, indented."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    return path


def write_data(
    directory: Path,
    *,
    categories: Mapping[str, Mapping[str, Any]] | None = None,
    products: Mapping[str, Mapping[str, Any]] | None = None,
    models: Iterable[str] = ("A", "B", "C", "D"),
    polls: Iterable[Poll] = (),
    **site: Any,
) -> Path:
    """A data directory: categories and products by slug, sample assistants, polls in order."""
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "site.json", {**SITE, **site})
    assistants = [{"name": name, "api": "sample"} for name in models]
    write_json(directory / "models.json", {"version": 1, "models": assistants})
    write_json(directory / "withheld.json", {"version": 1, "withheld": {}})
    write_json(directory / "topics.json", {"version": 1, "topics": []})
    default = {"crm-software": {"title": "Best CRM software", "topic": "CRM software"}}
    for slug, fields in (categories or default).items():
        start = {"version": 1, "title": fields["title"], "question": question_of(slug)}
        value = {**start, **fields}
        write_json(directory / "categories" / f"{slug}.json", value)
    for slug, fields in (products or {}).items():
        write_json(directory / "products" / f"{slug}.json", {"version": 1, **fields})
    (directory / "proof").mkdir(exist_ok=True)
    (directory / "proof/ledger.jsonl").touch()
    append(directory, polls)
    return directory


def write_instrument(directory: Path, **fields: Any) -> str:
    """Write what an assistant was asked with to a data directory; return its id."""
    value = {
        "version": 1, "api": "chat", "model": "m-1", "web_search": False, "structured": "prompt",
        "system": "Say what is best.", "prompt": "{question}\n\nAnswer in JSON.",
        "request": {"model": "m-1", "temperature": 0.7}, **fields,
    }  # fmt: skip
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    identity = hashlib.sha256(text.encode()).hexdigest()[:12]
    (directory / "instruments").mkdir(exist_ok=True)
    (directory / f"instruments/{identity}.json").write_text(text, encoding="utf-8")
    return identity


def edit(path: Path, **fields: Any) -> Path:
    """Change members of a data file as a person would."""
    return write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **fields})


def withhold(directory: Path, *ids: str) -> Path:
    """Write that these polls of a data directory are withheld, and no others."""
    entry = {"reason": "Insults a person", "date": "2026-11-15"}
    value = {"version": 1, "withheld": dict.fromkeys(ids, entry)}
    return write_json(directory / "withheld.json", value)


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file below a directory with its bytes; a link's are those it leads to."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def append(directory: Path, polls: Iterable[Poll]) -> None:
    """Append polls to a data directory's history, each at its own time.

    Neighbours of one category and time are written together: each writing reads the whole file.
    """
    history = History(directory / "history")
    for (_, time), together in groupby(polls, key=lambda poll: (poll.slug, poll.polled_at)):
        history.append(list(together), time)


def close_days(directory: Path, through: str = "2026-11-23") -> None:
    """Close every day of a data directory up to this one."""
    Proof(directory).close(through)


def app_over(directory: Path, **settings: Any) -> Flask:
    """The application over a data directory, as a server would have it.

    It looks at its files when it is made and when the test says so. Watched, the thousand
    applications of the suite would be a thousand threads that look every two seconds.
    """
    app = create_app(Settings(data_dir=directory, **{"base_url": BASE_URL, **settings}))
    if watcher := app.extensions.get("watcher"):
        app.before_request_funcs[None].remove(watcher.ensure_running)
    return app


def client_over(directory: Path) -> FlaskClient:
    """A reader of a server over a data directory that has just started."""
    return app_over(directory).test_client()


def store_over(directory: Path) -> Store:
    """The store of a server over a data directory that has just started."""
    store: Store = app_over(directory).extensions["store"]
    return store


def command(directory: Path, *arguments: str, **settings: Any) -> Result:
    """A command of ours as the shell runs it: beside it nothing serves or watches."""
    with click.Context(click.Command("flask")):
        app = app_over(directory, **settings)
    return app.test_cli_runner().invoke(args=list(arguments))


def output(directory: Path, *arguments: str, exit_code: int = 0, **settings: Any) -> str:
    """All that a command says which ends with this exit code."""
    done = command(directory, *arguments, **settings)
    assert done.exit_code == exit_code, done.output
    return done.output


def cache_control(client: FlaskClient, path: str) -> str:
    """How long the answer at a path may be kept."""
    with client.head(path) as answer:
        return answer.headers["Cache-Control"]


def prepared(store: Store, held: Snapshot | None = None) -> dict[str, bytes]:
    """Every verdict and record that a store has, by path; made unless what was made still holds.

    A snapshot that is ``held`` is shown in place of the current one.
    """
    view = view_of(held or store.snapshot)
    steps, step = view.snapshot.board_steps, view.snapshot.step
    best, product = verdicts.get_best_in_category, verdicts.get_product
    asked: list[tuple[Endpoint, Query, int, str]] = [
        *[(best, RankingQuery(slug=s), steps[s], s) for s in view.snapshot.leaderboards],
        *[(product, ProductQuery(slug=s), step, s) for s in view.snapshot.product_slugs],
    ]
    return _answers(store, view, asked)


def documents(store: Store) -> dict[str, bytes]:
    """What is over everything, by path; made unless what was made still holds."""
    view = view_of(store.snapshot)
    queries: tuple[tuple[Endpoint, Query], ...] = (
        (listings.list_categories, CategoryListQuery()), (listings.list_topics, Query()),
        (listings.get_labs, Query()),
        (trends.get_changes, ChangesQuery()), (trends.get_mentions, MentionsQuery()),
    )  # fmt: skip
    step = view.snapshot.step
    return _answers(store, view, [(each, query, step, "") for each, query in queries])


def bodies(store: Store) -> dict[str, bytes]:
    """Every answer that does not depend on a query, by path."""
    return {**prepared(store), **documents(store)}


def view_of(snapshot: Snapshot) -> View:
    """What a request sees of a snapshot, history aside."""
    return View(snapshot, BASE_URL, lambda _, __: [])


def _answers(
    store: Store, view: View, asked: Iterable[tuple[Endpoint, Query, int, str]]
) -> dict[str, bytes]:
    cache, answers = _BODIES.setdefault(store, {}), {}
    for endpoint, query, step, slug in asked:
        path = endpoint.rule.removeprefix("/api/v1/").replace("<slug>", slug)
        if (path, step) not in cache:
            cache[path, step] = endpoint.body(view, query).content
        answers[path] = cache[path, step]
    return answers


def same_as_fresh(store: Store, directory: Path) -> bool:
    """Whether a server started now would answer the same, and find the same amiss."""
    fresh: Store = app_over(directory).extensions["store"]
    return bodies(store) == bodies(fresh) and store.problems == fresh.problems
