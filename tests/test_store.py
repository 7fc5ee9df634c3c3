"""The heart of the service's honesty: what it publishes is a pure function of the files."""

import json
import os
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from builders import (
    answered,
    close_days,
    documents,
    failed,
    prepared,
    store_over,
    withhold,
    write_data,
    write_json,
)
from faults import UnreadableFiles, replace_os
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from store.history import History, HistoryError
from store.ledger import Proof
from store.polls.clocks import Clock
from store.polls.due import PollingReader
from store.records import Poll
from store.store import Store

MODELS = ("A", "B", "C", "D", "E")
SLUGS = ("crm-software", "help-desk", "email-tool", "old-crm", "old-desk")
SPELLINGS = (
    "Zoho CRM", "Zoho", "zoho crm", "Acme Desk", "Desk 2", "Acme Desk 2", "Desk", "Pipedrive",
    "Pipe-drive", "Mail+", "Mail Plus", "Mail", "Ünïversal", "!!!",
    "Ørst\u0435d", "\u041ersted", "Orsted A",
)  # fmt: skip
PRODUCTS = (
    "zoho-crm",
    "zoho",
    "acme-desk",
    "desk-2",
    "pipedrive",
    "mail-plus",
    "mail",
    "never-named",
    "orsted-a",
)
DOMAINS = ("zoho.example", "acme.example", "mail.example")
TIMES = tuple(f"2026-{day}T06:00:00Z" for day in ("07-01", "10-03", "10-26", "11-02", "11-03"))

QUESTIONS = ("What is the best?", "Which is best?", "Which is the finest?")

names = st.sampled_from(SPELLINGS)
domains = st.sampled_from(DOMAINS)


@st.composite
def polls(draw: st.DrawFn, slug: str) -> Poll:
    """A poll of a category: mostly an answer, now and then a failure."""
    model = draw(st.sampled_from(MODELS))
    if draw(st.integers(0, 5)) == 0:
        return failed(model, slug=slug)
    return answered(
        model,
        draw(st.lists(names, min_size=1, max_size=5, unique=True)),
        slug=slug,
        domains=draw(st.dictionaries(names, domains, max_size=2)),
        missed=draw(st.lists(names, max_size=1)),
        question=draw(st.sampled_from(QUESTIONS)),
    )


def category_files() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"title": st.sampled_from(["Best CRM software", "Best help desk", "Best help desk tool"])},
        optional={
            "topic": st.sampled_from(["CRM software", "customer software"]),
            "nouns": st.lists(st.sampled_from(["CRM", "Desk", "2"]), max_size=2),
            "question": st.sampled_from(QUESTIONS),
            "former_questions": st.lists(st.sampled_from(QUESTIONS), max_size=2),
            "aliases": st.lists(st.sampled_from(["tickets", "sales"]), max_size=2),
            "former_slugs": st.lists(st.sampled_from(SLUGS), max_size=2, unique=True),
        },
    )


def product_files() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"name": names},
        optional={
            "maker": st.sampled_from(["Zoho", "Acme"]),
            "domain": domains,
            "domain_is_product": st.booleans(),
            "aliases": st.lists(names, max_size=2, unique=True),
            "not_same_as": st.lists(st.sampled_from(PRODUCTS), max_size=1),
            "former_slugs": st.lists(st.sampled_from(PRODUCTS), max_size=1),
        },
    )


def site_files() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"name": st.sampled_from(["Consensus", "Ranked"])},
        optional={
            "stale_after_days": st.sampled_from([1, 30]),
            "drop_after_days": st.sampled_from([10, 90]),
            "licence": st.sampled_from(["CC BY 4.0", "CC0 1.0"]),
        },
    )


pytestmark = pytest.mark.usefixtures("one_digit")


class Edits(RuleBasedStateMachine):
    """A store that follows its files step by step, beside one that reads them afresh."""

    @initialize(crm=category_files(), desk=category_files())
    def start(self, crm: dict[str, Any], desk: dict[str, Any]) -> None:
        """Two categories and a product."""
        self.home = Path(tempfile.mkdtemp(prefix="edits-"))
        self.tick = 1_700_000_000
        self.ids: list[str] = []
        self.data = write_data(
            self.home / "data",
            categories={"crm-software": crm, "help-desk": desk},
            products={"zoho-crm": {"name": "Zoho CRM", "maker": "Zoho"}},
        )
        self.store = store_over(self.data)

    def write(self, name: str, value: object) -> None:
        """Save a file at a time of its own, whole seconds after the last."""
        self.tick += 1
        path = write_json(self.data / name, value)
        os.utime(path, (self.tick, self.tick))

    def claim_what_is_free(self, folder: str, slug: str, fields: dict[str, Any]) -> None:
        """Leave out what other files claim: a dispute is an error, of which nothing is taken in."""
        files = [p for p in (self.data / folder).glob("*.json") if p.stem != slug]
        records = {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in files}
        former = {s for record in records.values() for s in record.get("former_slugs", ())}
        assume(slug not in former)
        taken = {slug, *records, *former}
        if "former_slugs" in fields:
            fields["former_slugs"] = [s for s in fields["former_slugs"] if s not in taken]

    @rule(data=st.data(), slug=st.sampled_from(SLUGS), at=st.sampled_from(TIMES))
    def record(self, data: st.DataObject, slug: str, at: str) -> None:
        """This process polls, unless the day is closed."""
        batch = data.draw(st.lists(polls(slug), min_size=1, max_size=3))
        with suppress(HistoryError):
            self.ids += [poll.id for poll in self.store.record(batch, at)]

    @rule(data=st.data(), slug=st.sampled_from(SLUGS), at=st.sampled_from(TIMES))
    def another_process_polls(self, data: st.DataObject, slug: str, at: str) -> None:
        """Another process appends; this one sees it when it looks."""
        batch = data.draw(st.lists(polls(slug), min_size=1, max_size=3))
        with suppress(HistoryError):
            self.ids += [poll.id for poll in History(self.data / "history").append(batch, at)]

    @rule(day=st.sampled_from([time[:10] for time in TIMES]))
    def close(self, day: str) -> None:
        """The days up to one are closed."""
        close_days(self.data, day)

    @rule(fields=site_files())
    def edit_site(self, fields: dict[str, Any]) -> None:
        """The curator changes the rules or the name."""
        self.write("site.json", {"version": 1, **fields})

    @rule(
        models=st.lists(st.sampled_from(MODELS), min_size=1, max_size=4, unique=True),
        former=st.lists(st.sampled_from(MODELS), max_size=2, unique=True),
    )
    def edit_models(self, models: list[str], former: list[str]) -> None:
        """Assistants come, go, change places and are renamed."""
        listed: list[dict[str, Any]] = [{"name": name, "api": "sample"} for name in models]
        listed[-1]["former_names"] = [name for name in former if name not in models]
        self.write("models.json", {"version": 1, "models": listed})

    @rule(slug=st.sampled_from(SLUGS), fields=category_files())
    def save_category(self, slug: str, fields: dict[str, Any]) -> None:
        """A category is added or changed."""
        self.claim_what_is_free("categories", slug, fields)
        value = {"version": 1, "question": "What is the best?", **fields}
        self.write(f"categories/{slug}.json", value)

    @rule(slug=st.sampled_from(SLUGS))
    def remove_category(self, slug: str) -> None:
        """A category leaves the catalogue; its history stays."""
        (self.data / f"categories/{slug}.json").unlink(missing_ok=True)

    @rule(old=st.sampled_from(SLUGS), new=st.sampled_from(SLUGS))
    def rename_category(self, old: str, new: str) -> None:
        """A category under a new slug, its old one kept as a former slug."""
        path = self.data / f"categories/{old}.json"
        assume(old != new and path.exists())
        fields = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        fields["former_slugs"] = [*fields.get("former_slugs", ()), old]
        self.claim_what_is_free("categories", new, fields)
        self.write(f"categories/{new}.json", fields)

    @rule(slug=st.sampled_from(PRODUCTS), fields=product_files())
    def save_product(self, slug: str, fields: dict[str, Any]) -> None:
        """A product file is added or changed."""
        self.claim_what_is_free("products", slug, fields)
        self.write(f"products/{slug}.json", {"version": 1, **fields})

    @rule(slug=st.sampled_from(PRODUCTS))
    def remove_product(self, slug: str) -> None:
        """A product goes back to what models call it."""
        (self.data / f"products/{slug}.json").unlink(missing_ok=True)

    @rule(data=st.data())
    def withhold(self, data: st.DataObject) -> None:
        """Polls are withheld, and shown again."""
        chosen = data.draw(st.sets(st.sampled_from(sorted(self.ids or ["0" * 16])), max_size=3))
        why = {"reason": "It was poisoned", "date": "2026-11-20"}
        self.write("withheld.json", {"version": 1, "withheld": dict.fromkeys(sorted(chosen), why)})

    @rule(slug=st.sampled_from(["one", "two"]), finding=st.sampled_from(["Yes.", "No."]))
    def write_up(self, slug: str, finding: str) -> None:
        """An experiment is written up."""
        text = {"title": slug, "method": "We looked.", "finding": finding, "body": "It *is* so."}
        self.write(f"labs/{slug}.json", {"version": 1, **text, "date": "2026-11-20"})

    @rule(groups=st.lists(st.just(["crm", "sales tool"]), max_size=1))
    def edit_synonyms(self, groups: list[list[str]]) -> None:
        """Search learns or forgets a synonym."""
        self.write("synonyms.json", {"version": 1, "synonyms": groups})

    @rule(words=st.lists(st.sampled_from(["desk", "mail"]), max_size=2, unique=True))
    def edit_words(self, words: list[str]) -> None:
        """Search learns or forgets plain English."""
        self.write("words.json", {"version": 1, "source": "Ours.", "words": words})

    @rule(slugs=st.sets(st.sampled_from([*SLUGS, "no-such"]), min_size=1))
    def edit_topics(self, slugs: set[str]) -> None:
        """Topics list other categories."""
        part = {"slug": "all", "title": "All", "categories": sorted(slugs)}
        topic = {"slug": "one", "title": "One", "parts": [part]}
        self.write("topics.json", {"version": 1, "topics": [topic]})

    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        """A file is saved as it was, perhaps in another layout: only its time and lines differ."""
        files = sorted(str(p.relative_to(self.data)) for p in self.data.rglob("*.json"))
        name = data.draw(st.sampled_from(files))
        self.tick += 1
        path = self.data / name
        value = json.loads(path.read_text(encoding="utf-8"))
        path.write_text("\n" * (self.tick % 3) + json.dumps(value), encoding="utf-8")
        os.utime(path, (self.tick, self.tick))

    @rule(data=st.data())
    def break_and_mend(self, data: st.DataObject) -> None:
        """A file is broken for one look."""
        files = sorted(str(p.relative_to(self.data)) for p in self.data.rglob("*.json"))
        path = self.data / data.draw(st.sampled_from(files))
        text = path.read_bytes()
        path.write_bytes(b"{")
        self.store.reload()
        path.write_bytes(text)

    @rule(slug=st.sampled_from(SLUGS), at=st.integers(0, 5_000), torn=st.booleans())
    def damage_history(self, slug: str, at: int, torn: bool) -> None:  # noqa: FBT001
        """A history file is torn, or a byte in it changes."""
        path = self.data / f"history/{slug}.jsonl"
        assume(path.exists() and path.stat().st_size)
        data = path.read_bytes()
        at %= len(data)
        path.write_bytes(data[: at + 1] if torn else data[:at] + b"#" + data[at + 1 :])
        Proof(self.data).accept([slug], "damaged", "2026-11-23")

    @rule(slug=st.sampled_from(SLUGS), other=st.sampled_from(SLUGS))
    def copy_history(self, slug: str, other: str) -> None:
        """Lines of a history file are put into another one, or into itself."""
        source = self.data / f"history/{other}.jsonl"
        assume(source.exists())
        with (self.data / f"history/{slug}.jsonl").open("ab") as file:
            file.write(source.read_bytes()[:10_000])

    @rule()
    def look(self) -> None:
        """The scan comes round."""
        self.store.reload()

    @rule(slugs=st.sets(st.sampled_from(SLUGS), min_size=1))
    def look_in_vain(self, slugs: set[str]) -> None:
        """The scan comes round while some history files cannot be read."""
        with pytest.MonkeyPatch.context() as patched:
            replace_os(patched, UnreadableFiles(*(f"{slug}.jsonl" for slug in slugs)))
            self.store.reload()

    @rule()
    def compare(self) -> None:
        """Step by step and afresh are the same, to the byte."""
        self.store.reload()
        followed, fresh = picture(self.store), picture(store_over(self.data))
        for part, expected in fresh.items():
            assert followed[part] == expected, part
        products = self.store.snapshot.products
        assert sorted(self.store.snapshot.product_slugs.values()) == sorted(products)

    def teardown(self) -> None:
        """The last comparison."""
        if hasattr(self, "store"):
            self.compare()
            shutil.rmtree(self.home)


def picture(store: Store) -> dict[str, Any]:
    """Everything that readers can be shown, in a form that can be compared."""
    snapshot, summary = store.snapshot, store.snapshot.summary
    return {
        "prepared": prepared(store),
        "documents": documents(store),
        "product redirects": summary.product_redirects,
        "category redirects": summary.category_redirects,
        "product slugs": snapshot.product_slugs,
        "retired": summary.retired,
        "problems": [str(problem) for problem in store.problems],
        "history": {
            slug: (poll_index.models, store.lines(poll_index, poll_index.newest(None, 500)))
            for slug, poll_index in snapshot.poll_indexes.items()
        },
        "read": {slug: (r.last_poll, r.states) for slug, r in snapshot.aggregates.items()},
        "poll_states": snapshot.poll_states,
        "present": snapshot.provisional_head,
        "search": [summary.index.search(q, 10) for q in ("crm", "Zoho", "help desk", "mail")],
    }


class ManyEdits(Edits):
    """The same machine for longer runs."""


TestEdits = Edits.TestCase
TestEdits.settings = settings(
    max_examples=15,
    stateful_step_count=16,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes; the steps are readable as is
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TestManyEdits = pytest.mark.slow(ManyEdits.TestCase)
TestManyEdits.settings = settings(TestEdits.settings, max_examples=400, stateful_step_count=30)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_over(
        write_data(
            tmp_path / "data",
            categories={slug: {"title": f"Best {slug}"} for slug in ("crm-software", "help-desk")},
            polls=[answered("A", ["Zoho CRM", "HubSpot"]), answered("B", ["HubSpot"])],
        )
    )


def verdict(store: Store, slug: str = "crm-software") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(prepared(store)[f"best/{slug}.json"])
    return found


def data_of(store: Store) -> Path:
    return store.history.path("any").parent.parent


def test_a_recorded_poll_shows_everywhere_with_the_next_look(store: Store) -> None:
    """A category, its products and what is over all are of one derivation."""
    before = store.snapshot
    [recorded] = store.record([answered("C", ["Pipedrive", "HubSpot"])], TIMES[-1])
    assert store.snapshot is before
    store.reload()
    assert verdict(store)["answers"]["C"]["poll"] == recorded.id
    assert "product/pipedrive.json" in prepared(store)
    mentions = json.loads(documents(store)["mentions.json"])
    assert "Pipedrive" in [product["name"] for product in mentions["products"]]


def test_a_snapshot_that_is_held_never_changes(store: Store) -> None:
    """A reader who took a snapshot goes on seeing one consistent state."""
    held = store.snapshot
    then = prepared(store_over(data_of(store)))
    store.record([answered("A", ["Pipedrive"])], TIMES[-1])
    store.reload()
    assert store.snapshot is not held
    assert prepared(store).keys() != then.keys()
    assert prepared(store, held) == then


def test_a_look_at_unchanged_files_keeps_the_snapshot(store: Store) -> None:
    """Nothing is rebuilt when nothing changed."""
    before = store.snapshot
    store.reload()
    assert store.snapshot is before


def test_while_nothing_can_be_derived_nobody_is_asked_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked is known from history, however long the snapshot lags behind it."""

    def broken(*_: Any) -> None:
        raise MemoryError

    catalogue, now = store.snapshot.catalogue, datetime.fromisoformat(TIMES[-1])
    monkeypatch.setattr("store.store.derive", broken)
    [recorded] = store.record([answered("C", ["Pipedrive"])], TIMES[-1])
    store.keep_current()
    assert "C" not in store.snapshot.poll_states["crm-software"]
    states = PollingReader(store.history, Clock(lambda: now)).states_of("crm-software", catalogue)
    assert states.ever["C"].answered_at == recorded.polled_at


def test_lines_are_the_file_and_withheld_texts_are_not_in_them(store: Store) -> None:
    """History is served as it stands; a withheld poll keeps its place and loses its texts."""
    poll_index = store.snapshot.poll_indexes["crm-software"]
    raw = store.history.path("crm-software").read_bytes().splitlines()
    assert store.lines(poll_index, poll_index.newest(None, 10)) == raw[::-1]
    hidden = json.loads(raw[0])["id"]
    withhold(data_of(store), hidden)
    store.reload()
    poll_index = store.snapshot.poll_indexes["crm-software"]
    second, first = store.lines(poll_index, poll_index.newest(None, 10))
    assert second == raw[1]
    shown = json.loads(first)
    assert (shown["id"], shown["withheld"], shown["pick"]) == (hidden, True, None)
    assert b"Zoho" not in first
    assert verdict(store)["models"] == ["B"]


def edited(store: Store, **fields: Any) -> None:
    """A curator saves the product file at Zoho CRM's address, and the store looks."""
    write_json(data_of(store) / "products/zoho-crm.json", {"version": 1, **fields})
    store.reload()


def test_an_edit_logs_what_it_makes_of_names(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """How many names stand for another product now, in one line, and no word where none does."""
    edited(store, name="Zoho CRM", domain="zoho.example")
    assert caplog.messages == []
    edited(store, name="Zoho CRM", domain="zoho.example", aliases=["HubSpot"])
    edited(store, name="Zoho Suite", domain="zoho.example")
    assert caplog.messages == [
        f"an edit moved {names} to other products; see `flask check`"
        for names in ("1 name", "2 names")
    ]
    caplog.clear()
    store.record([answered("C", ["Zoho CRM", "Other"])], TIMES[-1])
    store.reload()
    assert caplog.messages == []


def test_a_clash_logs_which_product_loses_which_name(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Both files are told that the name is neither's, and what it stands for from then on."""
    edited(store, name="Zoho CRM")
    write_json(data_of(store) / "products/zoho.json", {"version": 1, "name": "zoho-crm"})
    store.reload()
    moved, *clashes = caplog.messages
    assert moved.startswith("an edit moved 1 name ")
    assert ["is also claimed by" in clash for clash in clashes] == [True, True]
