"""Batches at a provider that hangs, drops, shuffles and bills; in either format."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from typing import Any

import batching
import msgspec
import pytest
from batching import Batching, serving
from builders import answered, append, command
from polling_world import CANARY, NOW, PollingWorld
from replaying import answer_text

from store.history import History, HistoryError
from store.polls.batch_files import BatchFiles
from store.polls.session import CANCELLED, IN_BATCH, Summary
from store.polls.spending import Budget
from store.text import rfc3339

WorldOf = Callable[..., PollingWorld]
NAMES = {"responses": "GPT", "messages": "Claude"}
MODELS = {api: name.lower() for api, name in NAMES.items()}


@pytest.fixture(scope="module")
def server() -> Iterator[Batching]:
    """The provider."""
    with serving() as provider:
        yield provider


class Queue:
    """One assistant's batches, in one format."""

    def __init__(self, directory: Path, server: Batching, api: str) -> None:
        self.server = server.forget()
        self.name, self.model = NAMES[api], MODELS[api]
        self.data = PollingWorld(
            directory, server.url, batch=True, daily_usd=100, names=["GPT", "Claude"]
        )

    def tell(self, **told: Any) -> None:
        """Set what the provider does."""
        self.server.told[self.model] = told

    def begin(self, *slugs: str) -> Summary:
        """Send these questions, or all, in one batch."""
        return self.data.begin(self.name, *slugs)

    def follow(self, *, cancel: bool = False) -> Summary:
        """Look after all of them."""
        return self.data.follow(self.name, cancel=cancel)

    @property
    def states(self) -> list[str]:
        """How the batches stand."""
        return [batch.state for batch in self.data.batches()]

    @property
    def bills(self) -> int:
        """How many answers of batches the provider bills."""
        return sum(how == "batch" for _, _, how in self.server.bills)


@pytest.fixture(params=list(NAMES))
def queue(request: pytest.FixtureRequest, tmp_path: Path, server: Batching) -> Queue:
    """Three questions to one assistant, in each format."""
    return Queue(tmp_path / "data", server, request.param)


@pytest.fixture
def world_of(tmp_path: Path, server: Batching) -> WorldOf:
    """A data directory of so many categories and these assistants, all asked in batches."""

    def make(count: int, *names: str) -> PollingWorld:
        return PollingWorld(
            tmp_path / "data", server.forget().url, count, batch=True, names=names or ["GPT"]
        )

    return make


@pytest.fixture
def openai(tmp_path: Path, server: Batching) -> Queue:
    """The same in OpenAI's format alone."""
    return Queue(tmp_path / "data", server, "responses")


def test_a_batch_is_begun_followed_and_collected(queue: Queue) -> None:
    """Every answer is one record at half the price; then nothing of the batch is left."""
    queue.tell(looks=1, results="shuffled")
    assert queue.begin().batched == 3
    assert queue.states == ["sent"]
    [file] = (queue.data.directory / "batches").iterdir()
    assert CANARY.encode() not in file.read_bytes()
    assert queue.data.spent() == pytest.approx(queue.data.batches()[0].reserved / 1e6)
    assert (queue.follow().polled, queue.data.polls()) == (0, [])
    assert queue.follow().outcomes == {"answered": 3}
    assert queue.states == []
    polls = queue.data.polls()
    assert Counter((p.slug, p.model, p.latency_ms) for p in polls) == {
        (slug, queue.name, None): 1 for slug in queue.data.slugs
    }
    assert {p.usage.usd for p in polls if p.usage} == {0.0022}
    assert queue.data.spent() == pytest.approx(3 * 0.0022)
    assert all(poll.notes[0].startswith("batch ") for poll in polls)


def test_no_batch_brings_its_key_into_a_record(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parted by characters that cleaning takes out, it is known once they are gone."""
    parted = "\u200b".join(CANARY)
    text = answer_text([f"Alpha {parted}"])
    monkeypatch.setattr(batching, "answer_text", lambda _: text)
    queue.begin()
    queue.follow()
    assert {poll.pick for poll in queue.data.polls()} == {"Alpha [redacted]"}


def test_a_providers_words_on_a_batch_are_cleaned_and_cut_and_without_the_key(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it refused the batch or says why it failed: they go to the log and to a file."""
    parted = "\u200b".join(CANARY)
    words = f"{parted}\x1b[31m\nNo {'x' * 900}"
    openai.tell(create=400, why=words)
    refusal = openai.begin("c-000").wrong
    monkeypatch.setattr(batching, "WHY", words)
    openai.tell(end="failed")
    openai.begin("c-001")
    for [sentence] in (refusal, openai.follow().wrong):
        assert "[redacted][31m No xxx" in sentence
        assert len(sentence) < 400
        assert sentence.isprintable()


STEPS = [(History, "append", nth) for nth in (1, 2, 3)] + [
    (BatchFiles, "forget", 1),
    (BatchFiles, "forget_failures", 1),
    (Budget, "settle_batch", 1),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("owner", "step", "nth"), STEPS)
def test_collecting_that_ends_at_any_step_is_finished_later(
    openai: Queue, monkeypatch: pytest.MonkeyPatch, owner: type, step: str, nth: int, when: str
) -> None:
    """Every answer is recorded once, and the ledger has what all of them cost."""
    openai.begin()
    calls, real = count(1), getattr(owner, step)

    def ending(*args: Any, **kwargs: Any) -> Any:
        call = next(calls)
        if call == nth and when == "before":
            raise KeyboardInterrupt
        result = real(*args, **kwargs)
        if call == nth:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, ending)
        with pytest.raises(KeyboardInterrupt):
            openai.follow()
    openai.follow()
    assert Counter(poll.slug for poll in openai.data.polls()) == dict.fromkeys(openai.data.slugs, 1)
    assert openai.states == []
    assert openai.data.spent() >= openai.bills * 0.0022 - 1e-9


def test_an_answer_names_what_its_batch_was_sent_with(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that asks in another way meanwhile does not change what was asked."""
    openai.begin()
    asked = openai.data.batches()[0].instrument
    monkeypatch.setattr("store.polls.answers.SYSTEM", "Say something else.")
    openai.follow()
    assert {poll.instrument for poll in openai.data.polls()} == {asked}
    assert (openai.data.directory / f"instruments/{asked}.json").is_file()


def test_what_is_in_a_batch_is_not_asked_otherwise(openai: Queue) -> None:
    """Until it is collected, whether it is due or named."""
    openai.tell(looks=9)
    openai.begin("c-000", "c-001")
    assert openai.data.ask("GPT", "c-000", follow=False).outcomes == {IN_BATCH: 1}
    openai.data.later(minutes=1)
    assert openai.data.due("GPT", follow=False).batched == 1
    assert [item.slug for item in openai.data.batches()[1].items] == ["c-002"]


@pytest.mark.parametrize("create", ["drop", 500, 408])
def test_an_unclear_create_counts_as_spent_and_pauses_batches(queue: Queue, create: Any) -> None:
    """Its pairs are free, to be asked directly; after 6 hours a batch is tried again."""
    queue.tell(create=create)
    summary = queue.begin()
    assert (summary.batched, queue.states) == (0, ["failed"])
    assert "did not say whether it took the batch" in str(summary.wrong)
    reserved = queue.data.batches()[0].reserved / 1e6
    assert queue.data.spent() == pytest.approx(reserved)
    session = queue.data.session()
    assert queue.data.files.under_way(session.catalogue) == frozenset()
    who = queue.data.pairs(session, queue.name)[0].assistant
    for hours, paused in ((5.9, True), (0.2, False)):
        queue.data.later(hours=hours)
        assert bool(queue.data.files.pause_of(who, queue.data.now)) is paused
    queue.begin()
    queue.data.later(hours=11.9)
    assert queue.data.files.pause_of(who, queue.data.now), "the second pause is twice as long"
    queue.data.later(hours=0.2)
    queue.tell()
    assert queue.begin().batched == 3
    queue.follow()
    assert queue.states == [], "an answered batch makes all failures forgotten"


def test_a_changed_entry_ends_a_pause_and_success_forgets_every_failure(openai: Queue) -> None:
    """Whoever changed it may have mended what failed; a new name is the same assistant."""
    openai.tell(create=400, why="no batches of this model")
    openai.begin()
    session = openai.data.session()
    who = openai.data.pairs(session, openai.name)[0].assistant
    files, now = openai.data.files, openai.data.now
    assert files.pause_of(who, now)
    assert not files.pause_of(msgspec.structs.replace(who, model="another"), now)
    after = msgspec.structs.replace(who, name="Next", former_names=(openai.name,))
    renamed = msgspec.structs.replace(session.catalogue, assistants=(after,))
    [batch] = openai.data.batches()
    other = msgspec.structs.replace(who, name="Somebody else")
    files.forget_failures(msgspec.structs.replace(batch, assistant=other), renamed)
    assert openai.states == ["failed"]
    files.forget_failures(msgspec.structs.replace(batch, assistant=after), renamed)
    assert openai.states == []


def test_an_older_batch_that_goes_well_ends_no_pause(openai: Queue) -> None:
    """Its request was sent before what failed, and says nothing of it."""
    openai.tell(looks=1)
    openai.begin("c-000")
    openai.data.later(minutes=1)
    openai.tell(create="drop")
    openai.begin("c-001")
    openai.follow()
    assert openai.follow().outcomes == {"answered": 1}
    who = openai.data.batches()[0].assistant
    assert openai.data.files.pause_of(who, openai.data.now)


def test_a_refused_create_costs_nothing(queue: Queue) -> None:
    """The provider's words are kept; it pauses the batches too."""
    queue.tell(create=400, why="no batches of this model")
    assert "no batches of this model" in str(queue.begin().wrong)
    assert (queue.states, queue.data.spent()) == (["failed"], 0)


def test_what_sent_a_batch_was_killed(queue: Queue) -> None:
    """An intent that is found counts as an unclear create."""
    queue.begin()
    [batch] = queue.data.batches()
    queue.data.files.write(msgspec.structs.replace(batch, state="intended"))
    queue.follow()
    assert queue.states == ["failed"]
    assert queue.data.spent() == pytest.approx(batch.reserved / 1e6)


@pytest.mark.parametrize("end", ["expired", "failed"])
def test_a_batch_that_ends_otherwise(queue: Queue, end: str) -> None:
    """What was answered is recorded and paid; of a failed one nothing was asked."""
    queue.tell(end=end, answered=0 if end == "failed" else 2)
    queue.begin()
    queue.follow()
    queue.data.later(hours=27)
    queue.follow()
    answers = [poll for poll in queue.data.polls() if poll.succeeded]
    assert len(answers) == queue.bills
    others = {poll.failure for poll in queue.data.polls() if not poll.succeeded}
    assert others <= {"timeout", "http"}
    assert "sent" not in queue.states


@pytest.mark.parametrize(("end", "cancel"), [("hang", True), ("cancelled", False)])
def test_cancelling_keeps_answers_and_leaves_no_records(
    queue: Queue, end: str, *, cancel: bool
) -> None:
    """What was not asked is due again, whether by `--cancel` or in the provider's console."""
    queue.tell(end=end, answered=2)
    queue.begin()
    told = Counter(queue.follow(cancel=cancel).outcomes) + queue.follow().outcomes
    assert (told["answered"], told[CANCELLED]) == (2, 1)
    assert Counter(poll.failure for poll in queue.data.polls()) == {None: 2}
    assert queue.bills == 2
    assert queue.states == ["failed"], "so that no batch is begun again at once"
    assert queue.data.spent() == pytest.approx(2 * 0.0022)


def test_several_batches_that_are_cancelled_at_once_pause_like_one(queue: Queue) -> None:
    """Six hours, as the README says: it is one decision of the operator."""
    queue.tell(end="hang", answered=0)
    for slug in ("c-000", "c-001"):
        queue.begin(slug)
    queue.follow(cancel=True)
    queue.follow()
    assert queue.states == ["failed"] * 2
    who = queue.data.batches()[0].assistant
    pause = queue.data.files.pause_of(who, queue.data.now)
    assert pause
    assert pause.until - queue.data.now <= timedelta(hours=6)


def test_a_batch_that_is_late_is_cancelled_and_at_last_given_up(queue: Queue) -> None:
    """After 26 hours it is told once to end; after 50 its questions are asked directly."""
    queue.tell(end="stuck")
    queue.begin()
    reserved = queue.data.batches()[0].reserved / 1e6
    assert queue.follow().wrong == []
    queue.data.later(hours=27)
    assert "is with its provider since 2026-11-20T06:00:00Z" in queue.follow().wrong[0]
    queue.follow()
    assert sum("cancel" in path for path in queue.server.paths) == 1
    queue.data.later(hours=24)
    queue.follow()
    assert queue.states == ["failed"]
    assert queue.data.spent() == pytest.approx(reserved), "it may have been billed"


@pytest.mark.parametrize("results", ["missing", "doubled", "foreign", "differing"])
def test_results_are_matched_by_id_alone(queue: Queue, results: str) -> None:
    """Never by position; one that is not there is a failure, two that differ are one."""
    queue.tell(results=results)
    queue.begin()
    queue.follow()
    kinds = Counter(poll.failure for poll in queue.data.polls())
    bad = {"missing": 1, "differing": 1}.get(results, 0)
    assert kinds == Counter({None: 3 - bad, "http": bad}) - Counter()


def test_a_batch_that_names_no_results_is_looked_at_again(openai: Queue) -> None:
    """They may be named a moment later; after 26 hours its questions count as unanswered."""
    openai.tell(results="none")
    openai.begin()
    for hours, states in ((0, ["sent"]), (25.9, ["sent"]), (0.2, [])):
        openai.data.later(hours=hours)
        openai.follow()
        assert openai.states == states
    assert [poll.failure for poll in openai.data.polls()] == ["http"] * 3


def test_what_cannot_be_recorded_waits_and_holds_up_nothing(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are recorded, once; the batch stays until history takes the rest."""
    openai.begin()
    with monkeypatch.context() as patched:
        append = History.append

        def refuse(history: History, polls: Any, now: str, **options: Any) -> Any:
            if polls[0].slug == "c-001":
                raise HistoryError("c-001.jsonl cannot be written")
            return append(history, polls, now, **options)

        patched.setattr(History, "append", refuse)
        assert "c-001.jsonl cannot be written" in openai.follow().wrong[0]
    assert (openai.states, len(openai.data.polls())) == (["sent"], 2)
    openai.follow()
    assert (openai.states, len(openai.data.polls())) == ([], 3)


def test_what_could_not_be_recorded_is_in_no_batch(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history is tried before anything is sent and paid for, and the reason is told."""

    def refuse(_: History, slug: str, now: str) -> None:
        if slug == "c-001":
            raise HistoryError(f"{slug}.jsonl cannot be written: {now}")

    monkeypatch.setattr(History, "check_appendable", refuse)
    assert openai.begin().reasons == {
        "not asked": "c-001.jsonl cannot be written: 2026-11-20T06:00:00Z"
    }
    assert [item.slug for item in openai.data.batches()[0].items] == ["c-000", "c-002"]
    assert (openai.begin("c-001").batched, len(openai.data.batches())) == (0, 1)


def test_by_a_clock_that_was_never_set_no_batch_is_begun(openai: Queue) -> None:
    """It says 1970; nothing is reserved, and no failed batch pauses those after it."""
    openai.data.now = datetime.fromtimestamp(0, NOW.tzinfo)
    assert "nothing is sent" in str(openai.begin().fault)
    assert openai.states == []


def test_a_renamed_category_gets_its_answer(openai: Queue) -> None:
    """It is recorded under the slug that was asked, whose file is read as its own."""
    openai.begin("c-000")
    categories = openai.data.directory / "categories"
    text = (categories / "c-000.json").read_text()
    (categories / "c-000.json").unlink()
    (categories / "new.json").write_text(text.replace("{", '{"former_slugs": ["c-000"],', 1))
    session = openai.data.session()
    assert openai.data.files.under_way(session.catalogue) == {("new", "GPT")}
    openai.follow()
    assert [poll.slug for poll in openai.data.polls()] == ["c-000"]


def test_a_provider_of_another_time_is_left_alone(openai: Queue, server: Batching) -> None:
    """Nothing is recorded by a clock that does not fit."""
    openai.begin()
    server.dated = format_datetime(NOW + timedelta(hours=3), usegmt=True)
    try:
        openai.follow()
    finally:
        server.dated = None
    assert (openai.states, openai.data.polls()) == (["sent"], [])


def test_an_open_batch_weighs_on_every_day(openai: Queue) -> None:
    """Midnight forgets none of its reserve, and nothing of it is given back twice."""
    openai.tell(looks=1)
    openai.begin()
    reserved = openai.data.batches()[0].reserved / 1e6
    openai.data.later(hours=19)
    assert openai.data.spent() == pytest.approx(reserved)
    openai.follow()
    openai.follow()
    assert openai.data.spent() == pytest.approx(3 * 0.0022)


def test_a_batch_over_midnight_beside_another_is_counted_once(openai: Queue) -> None:
    """Today's sum, written while both were on their way, has the reserves of both."""
    openai.tell(looks=1)
    openai.begin("c-000", "c-001")
    openai.data.later(hours=19)
    openai.begin("c-002")
    reserves = sum(batch.reserved for batch in openai.data.batches())
    assert openai.data.spent() == pytest.approx(reserves / 1e6)
    openai.follow()
    openai.follow()
    assert openai.states == []
    assert openai.data.spent() == pytest.approx(3 * 0.0022)


def test_what_a_batch_over_midnight_did_not_count_stays_taken(openai: Queue) -> None:
    """The day's first sum is written by one batch while another is on its way."""
    openai.tell(looks=0)
    openai.begin("c-000", "c-001")
    openai.tell(looks=1)
    openai.begin("c-002")
    one = min(batch.reserved for batch in openai.data.batches()) / 1e6
    openai.data.later(hours=19)
    openai.tell(results="missing")
    openai.follow()
    openai.tell()
    openai.follow()
    assert openai.states == []
    assert openai.data.spent() >= one + 2 * 0.0022 - 1e-9


def test_what_falls_due_bit_by_bit_gathers_for_a_batch(world_of: WorldOf, server: Batching) -> None:
    """While one is on its way a server waits for fifty; the command sends what is due."""
    data = world_of(120)
    server.told["gpt"] = {"looks": 9}
    times = [NOW - timedelta(days=7, minutes=-10 * number) for number in range(120)]
    for slug, time in zip(data.slugs, times, strict=True):
        append(data.directory, [answered("GPT", ["X"], rfc3339(time), slug=slug)])
    assert data.due("GPT", gathers=True).batched == 1
    data.later(minutes=490)
    early = data.due("GPT", gathers=True)
    assert (early.due, early.batched, early.polled) == (49, 0, 0)
    data.later(minutes=10)
    assert data.due("GPT", gathers=True).batched == 50
    data.later(minutes=10)
    assert data.due("GPT").batched == 1
    assert len(data.polls()) == 120, "nothing was asked directly"


def test_while_batches_are_paused_all_is_asked_directly(
    world_of: WorldOf, server: Batching
) -> None:
    """An unclear create counts as spent: another one at once would, too."""
    data = world_of(3)
    server.told["gpt"] = {"create": 408}
    assert data.due("GPT", slugs=("c-000",)).batched == 0
    server.told.clear()
    data.later(hours=5)
    direct = data.due("GPT")
    assert (direct.batched, direct.polled) == (0, 3)


def test_after_ten_failures_in_a_row_all_is_asked_directly(
    world_of: WorldOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the next one pauses; whole batches of garbage would be paid. An answer ends it."""
    data = world_of(12)
    with monkeypatch.context() as patched:
        patched.setattr(batching, "answer_text", lambda _: "I would rather chat about this.")
        data.due("GPT")
        assert data.due("GPT").outcomes == {"parse": 12}
    data.later(days=8)
    direct = data.due("GPT", most=1)
    assert (direct.batched, direct.outcomes) == (0, {"answered": 1})
    assert data.due("GPT").batched == 11


def test_a_batch_has_no_more_than_so_many_questions(
    world_of: WorldOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stuck, or reserved at a time, stays small."""
    monkeypatch.setattr("store.polls.batches.MOST_ITEMS", 2)
    assert world_of(3).due("GPT").batched == 2


def test_a_late_batch_holds_nothing_back(world_of: WorldOf, server: Batching) -> None:
    """A queue that is stuck keeps waiting only what is in it."""
    data = world_of(3)
    server.told["gpt"] = {"end": "hang"}
    assert data.due("GPT", slugs=("c-000",), gathers=True).batched == 1
    assert data.due("GPT", gathers=True).batched == 0
    data.later(hours=27)
    assert data.due("GPT", gathers=True).batched == 2


def test_a_batch_that_cannot_be_looked_after_is_given_up(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an update of this program knows no queue there: after 14 days, as spent."""
    openai.begin()
    [batch] = openai.data.batches()
    monkeypatch.setattr("store.polls.batches.queue_of", lambda _: None)
    for days, states in ((13.9, ["sent"]), (0.2, ["failed"])):
        openai.data.later(hours=24 * days)
        assert "no queue for its batches is known" in str(openai.follow().wrong)
        assert openai.states == states
    assert openai.data.spent() == pytest.approx(batch.reserved / 1e6)


def test_a_batch_of_who_left_is_named_and_collected(openai: Queue) -> None:
    """An assistant that was renamed without its former name still has its batch followed."""
    openai.begin()
    models = openai.data.directory / "models.json"
    models.write_text(models.read_text().replace('"name": "GPT"', '"name": "New"'))
    session = openai.data.session()
    assert session.batches.owners_gone(session.catalogue) == ["GPT"]
    status = command(openai.data.directory, "poll", "--status", environ={"POLL_TEST_KEY": CANARY})
    assert '"GPT" has a batch on its way and is no longer in models.json' in status.output
    assert 'warning: "GPT" has a batch on its way' in command(openai.data.directory, "check").output
    assert openai.follow().outcomes["answered"] == 3
    assert session.batches.owners_gone(session.catalogue) == []


def test_equal_shares_of_a_limit(world_of: WorldOf) -> None:
    """Each assistant asks the same categories, as many as the limit pays for all."""
    data = world_of(60, "GPT", "Claude")
    results = [data.due(name, run_usd=0.8) for name in ("GPT", "Claude")]
    assert len({result.batched for result in results}) == 1
    assert 0 < results[0].batched < 60
    assert {tuple(i.slug for i in batch.items) for batch in data.batches()} == {
        tuple(data.slugs[: results[0].batched])
    }
    assert sum(batch.reserved for batch in data.batches()) <= 0.8e6


def test_shares_are_of_the_price_that_is_paid(world_of: WorldOf, server: Batching) -> None:
    """Who is asked directly has twice the part of who is asked in batches."""
    data = world_of(3, "GPT", "Claude")

    def parts(*, is_due: bool = True) -> float:
        session = data.session()
        state = session.polling.read(session.catalogue)
        assistants = session.catalogue.assistants
        session.share_among(assistants, state, session.clock.now(), is_due=is_due)
        return session.budget.parts["GPT"] / session.budget.parts["Claude"]

    equal = parts()
    assert parts(is_due=False) == pytest.approx(equal, rel=0.01)
    server.told["gpt"] = {"create": 400}
    data.begin("GPT")
    assert parts() == pytest.approx(2 * equal, rel=0.01), "while its batches are paused"
    assert parts(is_due=False) == pytest.approx(equal, rel=0.01)


def test_a_damaged_file_stops_what_may_be_asked_already(openai: Queue) -> None:
    """Nobody knows what it asked; the sentence says what to do."""
    openai.begin()
    [path] = (openai.data.directory / "batches").iterdir()
    path.write_text("{")
    with pytest.raises(OSError, match="is damaged, so that nobody knows"):
        openai.data.due("GPT")
    path.unlink()
    append(openai.data.directory, [answered("Claude", ["X"], "2026-11-19T06:00:00Z", slug="c-000")])
    assert openai.data.due("GPT").batched == 3


def test_a_batch_that_is_forgotten_meanwhile_is_not_missed(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another assistant's turn may remove its own between the look at names and the reading."""
    openai.begin()
    read_bytes = Path.read_bytes

    def forget(path: Path) -> bytes:
        path.unlink(missing_ok=True)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", forget)
    assert openai.data.files.all() == []


def test_a_broken_line_after_days_off_gives_no_batch_up(openai: Queue) -> None:
    """Only a provider that says it has no such batch is believed after two days."""
    openai.tell(unknown=1)
    openai.begin()
    openai.data.later(hours=60)
    openai.data.stop.set()  # as a server that is ended while it looks
    assert "cannot be followed" in openai.follow().wrong[0]
    assert openai.states == ["sent"]
    openai.data.stop.clear()
    openai.follow()
    assert openai.states == ["failed"]


@pytest.mark.parametrize("status", [302, 401, 407, 429])
def test_after_days_off_a_refused_look_gives_no_batch_up(openai: Queue, status: int) -> None:
    """A portal, a changed key or a busy provider says nothing of it: its answers are collected."""
    openai.begin()
    openai.data.later(hours=60)
    openai.tell(look=status)
    assert "cannot be followed" in openai.follow().wrong[0]
    openai.tell()
    assert openai.follow().outcomes == {"answered": 3}


def test_a_stop_while_a_batch_is_uploaded_leaves_nothing(
    openai: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None was made, and nothing is wrong with batches: the next start sends one."""
    receive = batching.Handler.do_POST

    def stopping(handler: batching.Handler) -> None:
        openai.data.stop.set()
        receive(handler)

    with monkeypatch.context() as patched:
        patched.setattr(batching.Handler, "do_POST", stopping)
        summary = openai.begin()
    assert (summary.wrong, openai.states, openai.data.spent()) == ([], [], 0)
    openai.data.stop.clear()
    assert openai.data.due("GPT").batched == 3


def test_a_batch_that_has_ended_need_not_be_cancelled(openai: Queue, server: Batching) -> None:
    """A provider that refuses to is no fault: the answers are there."""
    refusal: dict[str, Any] = {"cancel": 409, "why": "it has ended"}
    openai.tell(end="hang", **refusal)
    openai.begin()
    assert "was not cancelled: The provider" in openai.follow(cancel=True).wrong[0]
    for batch in server.batches.values():
        server.end(batch, "completed")
    summary = openai.follow(cancel=True)
    assert (summary.wrong, summary.outcomes) == ([], {"answered": 3})


def test_a_batch_that_is_collected_the_next_day_counts_there(openai: Queue) -> None:
    """For every process, and though its reserve was of the day before."""
    openai.tell(looks=0)
    openai.begin()
    openai.data.later(days=1)
    other = openai.data.session()
    other.polling.read(other.catalogue)
    openai.follow()
    cost = sum(poll.usage.usd or 0 for poll in openai.data.polls() if poll.usage)
    assert other.budget.usd_today() == pytest.approx(cost)
