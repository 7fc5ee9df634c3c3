"""``flask poll``: what it says before, instead of and after asking."""

import json
import os
import pwd
import re
import shutil
import sys
import threading
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from builders import (
    answered,
    append,
    command,
    edit,
    failed,
    output,
    withhold,
    write_data,
)
from click.testing import Result
from faults import FailingCalls, UnreadableFiles, needs_root, replace_os
from msgspec.structs import replace
from processes import write_real
from replaying import Replaying, answer_text, envelope

from store.files import Files
from store.history import History
from store.polls import sample as sample_assistant
from store.polls.batch_files import Batch, BatchFiles
from store.polls.locks import turn
from store.polls.providers.wire import Reply
from store.records import Failure, Poll
from store.text import rfc3339

NOWHERE = "http://127.0.0.1:9"
KEY = {"POLL_TEST_KEY": "sk-canary-7e0f9c"}


def run(data: Path, *arguments: str, **environ: str) -> Result:
    """A ``flask poll`` in this process."""
    return command(data, "poll", *arguments, environ={**KEY, **environ})


def said(data: Path, *arguments: str, exit_code: int = 0, **environ: str) -> str:
    """All that a ``flask poll`` says which ends with this exit code."""
    return output(data, "poll", *arguments, exit_code=exit_code, environ={**KEY, **environ})


AT = ("--at", "2026-11-03T06:00:00Z")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Two categories and two sample assistants."""
    titles = {slug: {"title": f"Best {slug}"} for slug in ("crm", "vpn")}
    return write_data(tmp_path / "sample", categories=titles, models=("A", "B"))


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """Two categories and the four formats, asked where nobody answers."""
    return write_real(tmp_path / "data", NOWHERE, ["crm", "vpn"])


def test_a_poll_says_what_came_of_it(sample: Path) -> None:
    """One line per assistant, one in all, and the records in history."""
    lines = said(sample, "crm", *AT).splitlines()
    total = "Total: 2 answers, 0 failed, 0.0000 USD."
    assert lines[-3:] == ["A: 1 answered", "B: 1 answered", total]
    stored = History(sample / "history").read("crm").polls
    assert [(s.poll.model, s.poll.polled_at) for s in stored] == [("A", AT[1]), ("B", AT[1])]


def test_a_category_whose_file_is_broken_is_not_called_unknown(sample: Path) -> None:
    """Its mistake is told with its place, and nothing is asked about it."""
    (sample / "categories/vpn.json").write_text('{"version": 1 "title": "Best VPN"}')
    alone = said(sample, "vpn", *AT, exit_code=1)
    assert "Nothing was asked: categories/vpn.json:1:15: " in alone
    assert "not asked: categories/vpn.json:1:15: " in said(sample, "--all", *AT)


@pytest.mark.parametrize("which", ["--due", "--all"])
def test_what_cannot_be_read_is_named_and_not_asked(
    sample: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """A history file that cannot be read keeps its category from being asked: exit 1, aloud."""
    run(sample, "--due", "--at", "2026-10-02T06:00:00Z")
    replace_os(monkeypatch, UnreadableFiles("crm.jsonl"))
    lines = said(sample, which, *AT, exit_code=1).splitlines()
    reason = "history/crm.jsonl:1:1: cannot be read: Input/output error"
    assert lines[1] == f"{reason}; its category is left alone"
    assert lines[-1] == "Total: 2 answers, 0 failed, 0.0000 USD."
    assert said(sample, "crm", exit_code=1).endswith("\nNothing is to be asked.\n")
    assert "A: 1 of 2 due" in said(sample, "--status", exit_code=1), "what is unread is not due"


def test_the_checkouts_sample_is_not_added_to_by_accident(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without DATA_DIR nothing is asked and nothing written; with it, or --at, it is."""
    monkeypatch.setattr("store.settings.SHIPPED_DATA", sample)
    for arguments in (["--all"], ["crm"], ["--due", "--max-usd", "1"]):
        refusal = said(sample, *arguments, exit_code=1)
        assert "Nothing was asked: DATA_DIR is not set" in refusal
        assert "flask init DIR" in refusal
    assert not (sample / "history").exists()
    assert not (sample / ".locks").exists()
    for allowed in (("--all", "--dry-run"), ("--status",), ("crm", *AT)):
        said(sample, *allowed)
    said(sample, "vpn", DATA_DIR=str(sample))


@needs_root
def test_root_adds_nothing_that_the_datas_owner_could_not_use(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a service that runs as that user could show and ask no more what root once polled."""
    nobody = pwd.getpwnam("nobody")
    os.chown(sample, nobody.pw_uid, nobody.pw_gid)
    refusal = said(sample, "crm", exit_code=1)
    assert "the data belongs to nobody, who could not use what root adds" in refusal
    assert f"runuser -u nobody -- {sys.executable} -m flask poll" in refusal
    said(sample, "--status")
    said(sample, "--dry-run", "crm")
    assert not (sample / "history").exists()
    assert not (sample / ".locks").exists()
    monkeypatch.setattr(os, "geteuid", lambda: nobody.pw_uid)
    said(sample, "crm")


@needs_root
def test_what_root_makes_is_the_datas_owners(real: Path) -> None:
    """--try lets root keep the day's sum, which the service must go on with; so do locks."""
    nobody = pwd.getpwnam("nobody")
    edit(real / "site.json", daily_usd=5)
    os.chown(real, nobody.pw_uid, nobody.pw_gid)
    locks = real / ".locks"
    said(real, "--try", exit_code=1)
    assert {path.stat().st_uid for path in (locks, *locks.iterdir())} == {nobody.pw_uid}
    shutil.rmtree(locks)
    with turn(locks, "GPT", threading.Event()):
        assert {path.stat().st_uid for path in (locks, *locks.iterdir())} == {nobody.pw_uid}


@needs_root
def test_whose_data_it_is_the_history_says(sample: Path) -> None:
    """What a server that root runs has written there is root's to go on with."""
    (sample / "history").mkdir()
    nobody = pwd.getpwnam("nobody")
    os.chown(sample, nobody.pw_uid, nobody.pw_gid)
    said(sample, "crm")
    os.chown(sample / "history", nobody.pw_uid, nobody.pw_gid)
    said(sample, "crm", exit_code=1)
    os.chown(sample / "history", 54_321, 54_321)  # a container's root may know no such user
    said(sample, "crm")


def answers(data: Path, slug: str) -> list[tuple[str, str]]:
    """Who answered what in a category, in order."""
    polls = [stored.poll for stored in History(data / "history").read(slug).polls]
    return [(poll.model, poll.id) for poll in polls]


def test_samples_ask_each_so_often(sample: Path) -> None:
    """Every answer is a record of its own; the others are asked before anyone is again."""
    lines = said(sample, "crm", "--samples", "3", *AT).splitlines()
    assert lines[-3:-1] == ["A: 3 answered", "B: 3 answered"]
    assert [model for model, _ in answers(sample, "crm")] == ["A", "B"] * 3
    assert len({id_ for _, id_ in answers(sample, "crm")}) == 6
    times = {stored.poll.polled_at for stored in History(sample / "history").read("crm").polls}
    assert times == {"2026-11-03T06:00:00Z"}
    assert answers(sample, "vpn") == []


def test_a_category_that_is_named_twice_is_asked_once(sample: Path) -> None:
    """It would be paid for twice, and tell nothing more."""
    assert "\nA: 1 answered\nB: 1 answered\n" in said(sample, "crm", "crm", *AT)


def test_samples_are_made_again_with_the_same_bytes(sample: Path, tmp_path: Path) -> None:
    """In one run or one after the other, repeats of a day are the same lines of history."""
    other = shutil.copytree(sample, tmp_path / "other")
    run(sample, "crm", "--samples", "3", *AT)
    for _ in range(3):
        run(other, "crm", *AT)
    path = Path("history/crm.jsonl")
    assert (sample / path).read_bytes() == (other / path).read_bytes()
    output(sample, "check")


def test_due_fills_rounds_up(sample: Path) -> None:
    """With --due so many answers a round, those it has among them; so a run can be repeated."""
    run(sample, "crm", *AT)
    assert run(sample, "crm", "--due", *AT).stdout == "Nothing is due.\n"
    assert "\nA: 1 answered\nB: 1 answered\n" in said(sample, "vpn", "crm", "--due", *AT)
    more = said(sample, "--due", "--samples", "2", *AT)
    assert "\nA: 2 answered\nB: 2 answered\n" in more
    assert [len(answers(sample, slug)) for slug in ("crm", "vpn")] == [4, 4]
    assert run(sample, "--due", "--samples", "2", *AT).stdout == "Nothing is due.\n"


def test_the_site_says_how_many_answers_a_round_takes(sample: Path) -> None:
    """At first more if it says so, then as many as every round."""
    edit(sample / "site.json", samples_per_round=2, samples_at_first=3)
    assert "A: 6 calls of a sample" in said(sample, "--due", "--dry-run", *AT)
    once = said(sample, "--due", "--samples", "1", "--dry-run", *AT)
    assert "A: 2 calls of a sample" in once  # the option stands for both of the site's numbers
    run(sample, "crm", *AT)
    assert "A: 2 of 2 due, last success 20" in said(sample, "--status", *AT)
    assert "\nA: 5 answered\nB: 5 answered\n" in said(sample, "--due", *AT)
    assert "B: 4 answered" in said(sample, "--due", "--at", "2026-11-10T06:00:00Z")


@pytest.mark.parametrize("named", [(), ("crm", "vpn")])
def test_the_progress_of_rounds_ends_where_they_do(
    sample: Path, monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...]
) -> None:
    """Also where some rounds take more answers than others."""
    bars: list[tuple[int, list[int]]] = []

    class Bar(nullcontext[None]):
        def __init__(self, length: int, **_: str) -> None:
            super().__init__()
            steps: list[int] = []
            bars.append((length, steps))
            self.update = steps.append

    monkeypatch.setattr("click.progressbar", Bar)
    edit(sample / "site.json", samples_at_first=3)
    run(sample, "crm", *AT)
    run(sample, *named, "--due", *AT)
    assert [(length, sum(steps)) for length, steps in bars] == [(2, 2), (10, 10)]


def test_until_clear_asks_once_a_day(tmp_path: Path) -> None:
    """Every category that is not clear unless some are named, each assistant once more today."""
    titles = {slug: {"title": f"Best {slug}"} for slug in ("sofa", "piano")}
    data = write_data(tmp_path / "data", categories=titles, models=("A", "B"))
    run(data, "sofa", *AT)
    dry = run(data, "--until-clear", "5", "--dry-run", *AT).stdout.splitlines()
    assert dry[:2] == [f"{name}: 1 call of a sample assistant, free" for name in "AB"]
    end = "\nTotal: 2 answers, 0 failed, 0.0000 USD.\nCategories: 2 unmeasured.\n"
    assert said(data, "--until-clear", "5", *AT).endswith(end)
    again = run(data, "--until-clear", "5", *AT)
    assert again.exit_code == 0
    assert re.fullmatch("Nothing is to be asked. Of one day one answer counts: .*\n", again.stdout)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Say what to poll: one or more SLUGs, --due, --all or --until-clear."),
        (("--until-clear", "6"), "6 is not in the range 2<=x<=5"),
        (("--until-clear", "3", "--due"), "--until-clear goes with neither --due nor --samples"),
        (("cmr",), 'No category has the slug "cmr". Closest: crm'),
        (("vnp",), 'No category has the slug "vnp". Closest: vpn'),
        (("zzzzzz",), 'No category has the slug "zzzzzz".\n'),
        (("crm", "--model", "C"), 'No assistant is called "C"; models.json has A, B.'),
        (("crm", "--at", "yesterday"), '"yesterday" is not a time such as 2026-11-02T06:00:00Z'),
        (("crm", "--at", "2199-11-02T06:00:00Z"), "is before 2020 or still to come"),
        (("crm", "--at", "2019-12-31T23:59:59Z"), "is before 2020 or still to come"),
        (("--all", "crm"), "--all asks every category, due or not; leave out --due and SLUGs."),
        (("--try", "--dry-run"), "--status, --cancel and --try poll no category; name one of them"),
        (("--cancel", "--status"), "--status, --cancel and --try poll no category; name one"),
        (("crm", "--cancel"), "--status, --cancel and --try poll no category; name one of them"),
        (("--status", "--samples", "2"), "--status, --cancel and --try poll no category; name"),
        (("--due", "--all"), "--all asks every category, due or not; leave out --due and SLUGs."),
        (("crm", "--max-usd", "-1"), "-1.0 is not in the range"),
        (("crm", "--max-usd", "nan"), '"nan" is not an amount'),
        (("crm", "--max-usd", "inf"), "inf is not in the range"),
        (("crm", "--samples", "0"), "0 is not in the range 1<=x<=5"),
    ],
)
def test_a_wrong_call_is_answered_by_what_to_do(
    sample: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    """Every mistake on the command line has a sentence; nothing is asked."""
    assert sentence in said(sample, *arguments, exit_code=2)
    assert History(sample / "history").signatures() == {}


def test_a_time_is_only_pretended_to_samples(real: Path) -> None:
    """--at would falsify real polls."""
    sentence = "--at is only for data whose assistants are all of api sample."
    assert sentence in said(real, "crm", *AT, exit_code=2)


def test_a_dry_run_says_what_it_would_cost(real: Path) -> None:
    """Dollars as expected, and with calls and tokens at most; nothing is sent or written."""
    done = run(real, "--all", "--dry-run", POLL_TEST_KEY="")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert [line.partition(":")[0] for line in lines[:-1]] == ["GPT", "Claude", "Gemini", "Grok"]
    assert re.fullmatch(
        r"GPT: 2 calls, 0\.03 USD expected, 0\.08 USD at most; at most 1,(\d{3}) input and 8,000 "
        r"output tokens",
        lines[0],
    )
    assert lines[-1].startswith("In all: 0.13 USD expected, 0.33 USD at most, if no question has")
    assert lines[-1].endswith("Nothing was sent.")
    assert not (real / ".locks").exists()
    more = run(real, "--all", "--dry-run", "--max-usd", "0.1").stdout.splitlines()
    assert [line for line in more if line not in lines] == [
        "--max-usd 0.1 ends it before all is asked."
    ]
    change(real, rpm=1)
    assert "; at least 2 min at 1 a minute\n" in said(real, "--all", "--dry-run")


def test_a_daily_limit_below_one_question_each_is_told_before_anything_waits(real: Path) -> None:
    """No day ends that: `check` warns of it, and a dry run counts no days; 0 is meant."""
    edit(real / "site.json", daily_usd=0.1)
    warning = "daily_usd is 0.1: one question to each assistant may cost 0.166"
    assert f": warning: {warning}" in output(real, "check")
    assert "At daily_usd 0.1 none is asked: once each may cost 0.166" in said(
        real, "--all", "--dry-run"
    )
    for enough in (0.17, 0):
        edit(real / "site.json", daily_usd=enough)
        assert "one question to each" not in output(real, "check")
        assert "once each" not in said(real, "--all", "--dry-run")
    edit(real / "site.json", daily_usd=0.15)
    change(real, batch=True)
    assert "once each" not in said(real, "--due", "--dry-run")
    assert "once each may cost 0.166" in said(real, "--all", "--dry-run"), "no batch is asked so"


def test_a_dry_run_says_which_price_is_unknown(real: Path, sample: Path) -> None:
    """Without prices the total says so; sample assistants are free."""
    thrice = run(real, "--all", "--dry-run", "--samples", "3").stdout.splitlines()
    assert thrice[0].startswith("GPT: 6 calls, 0.09 USD expected")
    assert ", 1.00 USD at most, " in thrice[-1]
    change(real, usd_per_million_input=None)
    once = said(real, "crm", "--dry-run")
    assert "GPT: 1 call, price unknown;" in once
    assert re.search(r"0\.1[23] USD at most and what has no price, if no question", once)
    assert "A: 2 calls of a sample assistant, free" in said(sample, "--all", "--dry-run")


def change(data: Path, **fields: Any) -> None:
    """Change members of the first assistant in models.json; ``None`` takes one out."""
    path = data / "models.json"
    first, *others = json.loads(path.read_text())["models"]
    first = {key: value for key, value in {**first, **fields}.items() if value is not None}
    edit(path, models=[first, *others])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"base_url": None}, "this assistant lacks base_url, which its api needs"),
        ({"key_env": "AIzaSyD4x9f8a7b6c5d4e3f2a1b0c"}, "this looks like an API key"),
        ({"api": "chatter"}, "models.json:6:"),
    ],
)
def test_nothing_is_asked_while_models_json_has_mistakes(
    real: Path, fields: dict[str, Any], sentence: str
) -> None:
    """They stop the run before the first request."""
    change(real, **fields)
    refusal = said(real, "--all", "--model", "GPT", exit_code=1)
    assert sentence in refusal
    assert "4x9f8a7b6c" not in refusal
    assert polled(real) == 0


@pytest.mark.parametrize(
    ("fields", "arguments", "sentence"),
    [
        (
            {"key_env": "OTHER"},
            (),
            "GPT: the environment variable that its key_env names is not set\n",
        ),
        (
            {"usd_per_million_input": None},
            ("--max-usd", "5"),
            "GPT: a spending limit needs usd_per",
        ),
    ],
)
def test_who_cannot_be_asked_stops_nobody_else(
    real: Path, fields: dict[str, Any], arguments: tuple[str, ...], sentence: str
) -> None:
    """A missing key or price is named and ends the run with 1; the others are asked."""
    [first, *_] = json.loads((real / "models.json").read_text())["models"]
    edit(real / "models.json", models=[first, {"name": "A", "api": "sample"}])
    edit(real / "site.json", sample=True)
    change(real, **fields)
    report = said(real, "crm", *arguments, exit_code=1)
    assert sentence in report
    assert "A: 1 " in report
    assert polled(real) == 1


def polled(data: Path) -> int:
    """How many polls the history holds."""
    history = History(data / "history")
    return sum(len(history.read(slug).polls) for slug in history.signatures())


def test_a_key_over_plain_http_is_a_warning(tmp_path: Path) -> None:
    """An address that would carry a key unencrypted is warned of, before anything is sent."""
    data = write_real(tmp_path / "data", "http://llm.example", ["crm"])
    assert output(data, "check").count("would travel unencrypted; use https") == 4
    assert said(data, "crm", "--max-usd", "0").count("warning: models.json:") == 4
    models = json.loads((data / "models.json").read_text())["models"]
    edit(data / "models.json", models=[*models, {"name": "Invented", "api": "sample"}])
    lines = output(data, "check", exit_code=1)
    assert lines.count("would travel unencrypted; use https") == 4, "beside another mistake"


def test_who_asks_one_assistant_looks_after_its_batches_alone(real: Path) -> None:
    """That of an assistant that left models.json is followed by who asks all."""
    for slug in ("crm", "vpn"):
        append(real, [answered("GPT", ["X"], rfc3339(datetime.now(UTC)), slug=slug)])
    owner = replace(Files(real).scan().assistants[0], name="Gone")
    at = "2026-11-20T06:00:00Z"
    batch = Batch(key="a1", state="sent", assistant=owner, intended_at=at, reserved=1, items=())
    (real / "batches").mkdir()
    BatchFiles(real).write(batch)
    assert "Nothing is due." in said(real, "--due", "--model", "GPT")


@pytest.mark.parametrize(
    ("cap", "arguments", "limit"),
    [
        (None, ("crm", "--max-usd", "0"), "GPT: --max-usd 0 is too small: a question may cost 0.0"),
        (0.03, ("crm",), "GPT: daily_usd 0.03 of site.json is too small: a question"),
        (0.001, ("--status",), "daily_usd 0.001 of site.json is too small: a question may cost"),
    ],
)
def test_a_limit_that_is_reached_is_no_failure(
    tmp_path: Path, cap: float | None, arguments: tuple[str, ...], limit: str
) -> None:
    """Nothing is asked, and why is said: a state with an hour, as in /healthz."""
    fields = {"daily_usd": cap} if cap else {}
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], **fields)
    assert limit in said(data, *arguments)
    assert polled(data) == 0


def test_trying_shows_no_part_of_a_key(tmp_path: Path, provider: Replaying) -> None:
    """An error that a provider sends as a success is cleaned, cut and redacted like any other."""
    data = write_real(tmp_path / "data", provider.url, ["crm"], names=["GPT"])
    hidden = "\u200b".join(KEY["POLL_TEST_KEY"])  # whole again once it is cleaned
    message = f"\x1b]0;mine\x07 Incorrect key: sk-canary, {hidden}{' x' * 1_000}"
    provider.follow({"gpt": [{"body": {"error": {"message": message}}}]})
    tried = said(data, "--try", exit_code=1)
    assert "canary" not in tried.replace("\u200b", "")
    assert "\x1b" not in tried
    assert len(tried) < 1_000


def test_trying_says_whether_the_clocks_agree(tmp_path: Path, provider: Replaying) -> None:
    """Of a reply without a ``Date`` nobody knows; that of another provider says nothing of it."""
    data = write_real(tmp_path / "data", provider.url, ["crm"], names=["GPT", "Claude"])
    date = {"Date": format_datetime(datetime.now(UTC), usegmt=True)}
    dated = {"headers": date, "body": envelope("responses", "OK", "gpt")}
    provider.follow({"gpt": [dated], "claude": [{"text": "OK"}]})
    [*_, gpt, claude] = said(data, "--try").splitlines()
    assert gpt.endswith(", its clock as this machine's")
    assert claude.endswith(", without saying the time")


def test_parts_of_a_run_that_asks_directly_are_equal(tmp_path: Path, provider: Replaying) -> None:
    """--all asks no batches: whoever takes them is asked at the full price like the others."""
    slugs = [f"c-{number:02}" for number in range(20)]
    data = write_real(
        tmp_path / "data", provider.url, slugs, names=["GPT", "Claude"], concurrency=1
    )
    change(data, batch=True)
    report = said(data, "--all", "--max-usd", "0.1")
    [gpt, claude] = re.findall(r"\n(?:GPT|Claude): (\d+) answered", report)
    assert int(gpt) == int(claude) < 20


def test_a_run_says_what_nobody_knows_the_cost_of(tmp_path: Path, provider: Replaying) -> None:
    """What a limit counts as spent is in the total, though no answer came."""
    data = write_real(tmp_path / "data", provider.url, ["crm"], names=["GPT"])
    provider.follow({"gpt": [{"status": 200, "body": []}]})
    report = run(data, "crm", "--max-usd", "5").output
    cost = r"0\.0000 USD and at most 0\.\d{4} USD of unknown cost"
    assert re.search(rf"Total: 0 answers, 1 failed, {cost}\.", report), report


def test_a_clock_that_differs_needs_a_person(tmp_path: Path, provider: Replaying) -> None:
    """Though other assistants have answered: what was paid is thrown away until it is set."""
    data = write_real(tmp_path / "data", provider.url, ["crm"], names=["GPT", "Claude"])
    date = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    odd = {"headers": {"date": date}, "body": envelope("messages", answer_text(["A"]), "c")}
    provider.follow({"claude": [odd], "gpt": [{"picks": ["A"]}]})
    assert "that of Claude's provider" in said(data, "crm", exit_code=1)


def test_a_daily_limit_needs_prices(tmp_path: Path) -> None:
    """daily_usd without prices is a mistake of models.json, found by `flask check` too."""
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], daily_usd=1)
    change(data, usd_per_million_output=None)
    sentence = "this assistant has no usd_per_million_output, which daily_usd of site.json needs"
    assert sentence in said(data, "crm", exit_code=1)
    assert sentence in output(data, "check", exit_code=1)


def test_a_day_that_cannot_be_summed_up_needs_a_person(tmp_path: Path) -> None:
    """Where the limit's file cannot be kept nothing is asked, and the status says so."""
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], daily_usd=1)
    (data / ".locks" / "spent.json").mkdir(parents=True)
    why = "daily_usd 1 of site.json cannot be kept: Is a directory."
    assert f"Nothing was asked: {why}" in said(data, "--due", exit_code=1)
    status = said(data, "--status", exit_code=1)
    assert why in status
    assert "Spent today: 0.00 of 1 USD." in status


def pause(data: Path, kind: str) -> str:
    """Let a failure of this kind pause GPT for three hours; return until when."""
    now = datetime.now(UTC)
    rest = rfc3339(now + timedelta(hours=3))
    append(data, [failed("GPT", kind, rfc3339(now), slug="vpn", cooldown_until=rest)])
    return rest


def test_a_pause_that_its_provider_named_is_kept_by_all(real: Path) -> None:
    """Nobody asks before the hour that it said, and who tries is told so."""
    rest = pause(real, "rate_limited")
    report = said(real, "vpn", "--model", "GPT", exit_code=1)
    assert polled(real) == 1
    assert "its provider named the time, so nothing asks it before" in report
    tried = said(real, "--try", "--model", "GPT", exit_code=1)
    assert f"GPT: not asked, for it is paused until {rest}" in tried


def test_failed_questions_that_wait_are_told(real: Path) -> None:
    """Nothing is due after failures, and who has mended what was wrong is told what to run."""
    now = rfc3339(datetime.now(UTC))
    models = ("GPT", "Claude", "Gemini", "Grok")
    for slug in ("crm", "vpn"):
        append(real, [failed(model, "http", now, slug=slug) for model in models])
    sentence = "Nothing is due. 8 failed questions will be asked again later; --all asks now."
    assert sentence in said(real, "--due")


def test_check_tells_a_mistake_once(real: Path) -> None:
    """While models.json has a mistake of its schema, nothing is said about what follows from it."""
    change(real, api="chatter", base_url=None)
    check = output(real, "check", exit_code=1)
    assert check.count("models.json:") == 1
    assert "models[0].api must be one of" in check


def test_a_fault_of_the_disk_is_one_sentence(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that cannot be written ends the run with a sentence, not a traceback."""
    replace_os(monkeypatch, FailingCalls(also=("write",)))
    report = said(sample, "--all", exit_code=1)
    assert "  not asked on: an answer could not be recorded: " in report
    assert report.endswith("\nTotal: 0 answers, 0 failed, 0.0000 USD.\n")


def test_the_status_says_how_polling_stands(real: Path) -> None:
    """Due, running, paused and why, spent, last success: per assistant, from the files alone."""
    now = datetime.now(UTC)

    def at(**ago: float) -> str:
        return (now - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")

    rest = at(hours=-3)
    append(real, [answered("GPT", ["X"], at(days=2), slug="crm")])
    over = failed("Grok", "quota", at(hours=9), slug="vpn", cooldown_until=at(hours=3))
    append(real, [over])
    append(real, [failed("GPT", "auth", at(hours=3), slug="vpn", cooldown_until=rest)])
    with turn(real / ".locks", "Gemini", threading.Event()):
        done = run(real, "--status", POLL_TEST_KEY="")
    assert done.exit_code == 1
    way = '`flask poll --due --model "GPT"`'
    lines = [line for line in done.stdout.splitlines() if "is not set" not in line]
    assert lines == [
        f"GPT: 0 of 2 due, last success {at(days=2)}",
        f"GPT is paused until {rest}: It failed: auth; {way} asks one question first.",
        "Claude: 2 of 2 due, last success never",
        "Gemini: 2 of 2 due, being asked now, last success never",
        "Grok: 2 of 2 due, last success never",
        "Spent today: 0.00 USD.",
        "No server polls on schedule; one with POLL_ENABLED=1 would.",
    ]
    assert done.output.count("the environment variable POLL_TEST_KEY is not set.") == 4


def test_the_status_of_what_is_fine_is_0(sample: Path) -> None:
    """Nothing asked yet, then everything answered, and however long ago: invented answers."""
    said(sample, "--status")
    run(sample, "--all", "--at", "2026-01-01T06:00:00Z")
    said(sample, "--status")


@pytest.mark.parametrize(
    ("polls", "sentence"),
    [
        (
            [failed("GPT", "timeout", f"2026-11-01T06:00:{n:02}Z", slug="crm") for n in range(10)],
            "GPT failed in its last 10 polls, since 2026-11-01T06:00:00Z.",
        ),
        ([answered("GPT", ["X"], "2026-01-01T06:00:00Z", slug="vpn")], "GPT has not answered for "),
    ],
)
def test_the_status_of_what_no_longer_answers_is_1(
    real: Path, polls: list[Poll], sentence: str
) -> None:
    """Ten failures in a row, or silence for twice the interval, need a person."""
    said(real, "--status")
    append(real, polls)
    assert sentence in said(real, "--status", exit_code=1)


def test_what_is_reserved_is_spent_until_it_is_settled(tmp_path: Path) -> None:
    """Under a cap the status shows what a killed process had reserved, as the cap counts it."""
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], daily_usd=1)
    today = datetime.now(UTC).date().isoformat()
    (data / ".locks").mkdir()
    ledger = {"day": today, "micros": {"GPT": 120_000}}
    (data / ".locks" / "spent.json").write_text(json.dumps(ledger))
    spent = "Spent today: 0.12 of 1 USD, 0.12 of it for batches on their way, calls"
    assert spent in said(data, "--status")


def test_the_status_says_that_nothing_can_be_locked(real: Path) -> None:
    """Where locks cannot be used."""
    (real / ".locks").write_text("")
    sentence = "Nothing can be asked, for .locks cannot be used: Not a directory."
    assert sentence in said(real, "--status", exit_code=1)
    sentence = "Nothing can be asked, for .locks cannot be used: File exists"
    assert f"GPT: nothing was asked\n  not asked on: {sentence}\n" in said(real, "crm", exit_code=1)
    edit(real / "site.json", daily_usd=5)
    assert said(real, "--try", exit_code=1).count(sentence) == 1, "not for each assistant"


@pytest.mark.parametrize("arguments", [("--status",), ("--due",), ("--due", "--dry-run")])
def test_batches_that_cannot_be_used_are_one_sentence(
    real: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A link in their place, or a damaged file: it is named, and .locks is not blamed."""
    (tmp_path / "elsewhere").mkdir()
    (real / "batches").symlink_to(tmp_path / "elsewhere")
    refusal = said(real, *arguments, exit_code=1)
    assert refusal.endswith(
        "/batches: it is a symbolic link, which is not followed; mount its disk there instead.\n"
    )
    (real / "batches").unlink()
    (real / "batches").mkdir()
    (real / "batches/x.json").write_text("{")
    damage = said(real, *arguments, exit_code=1)
    assert "batches/x.json is damaged, so that nobody knows" in damage
    assert ".locks" not in damage


@pytest.mark.parametrize("which", [("--all",), ("--until-clear", "5")])
def test_failures_give_their_reason(
    sample: Path, monkeypatch: pytest.MonkeyPatch, which: tuple[str, ...]
) -> None:
    """Each is asked once; under an assistant's line stands one sentence for each kind."""
    monkeypatch.setattr(sample_assistant, "reply", failing)
    report = said(sample, *which, *AT, exit_code=1)
    assert polled(sample) == 4
    for name in "AB":
        assert f"\n{name}: 2 refusal\n  refusal: The model refused.\n" in report


def failing(*_: object) -> Reply:
    """A sample assistant that refuses."""
    return Reply(outcome=Failure("refusal", "The model refused."), latency_ms=1)


def test_a_record_from_the_future_keeps_its_category_from_being_asked(
    real: Path, tmp_path: Path
) -> None:
    """Ten minutes are forgiven; beyond that nothing is sent, and one sentence says what to do."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    poll = answered("GPT", ["X"], ahead.strftime("%Y-%m-%dT%H:%M:%SZ"), slug="crm")
    append(real, [poll])
    append(real, [answered("GPT", ["X"], "2026-01-05T06:00:00Z", slug="vpn")])
    refusal = said(real, "crm", "--model", "Claude", exit_code=1)
    assert "history/crm.jsonl:1:1: a poll of 20" in refusal
    end = "; `flask check` says what to do; its category is left alone\nNothing is to be asked.\n"
    assert refusal.endswith(end)
    assert f"withheld: flask withhold {poll.id}" in command(real, "check").output
    assert polled(real) == 2
    withhold(real, poll.id)
    change(real, key_env=None)
    assert "yet to come" not in run(real, "crm", "--max-usd", "0").output
