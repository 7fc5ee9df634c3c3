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
from builders import answered, append, close_days, command, edit, failed, withhold, write_data
from click.testing import Result
from faults import FailingCalls, UnreadableFiles, needs_root, replace_os
from processes import write_real
from replaying import answer_text, envelope, serving

from store.history import History
from store.polls import sample as sample_assistant
from store.polls.locks import turn
from store.polls.providers.provider import Reply
from store.records import Failure, Poll
from store.text import rfc3339

NOWHERE = "http://127.0.0.1:9"


def run(data: Path, *arguments: str, **settings: Any) -> Result:
    """A ``flask poll`` in this process."""
    environ = {"POLL_TEST_KEY": "sk-canary-7e0f9c", **settings.pop("environ", {})}
    return command(data, "poll", *arguments, environ=environ, **settings)


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
    done = run(sample, "crm", "--at", "2026-11-02T06:00:00Z")
    assert (done.exit_code, done.output.splitlines()[-3:]) == (
        0,
        ["A: 1 answered", "B: 1 answered", "Total: 2 answers, 0 failed, 0.0000 USD."],
    )
    stored = History(sample / "history").read("crm").polls
    assert [(s.poll.model, s.poll.polled_at) for s in stored] == [
        ("A", "2026-11-02T06:00:00Z"),
        ("B", "2026-11-02T06:00:00Z"),
    ]


def test_a_category_whose_file_is_broken_is_not_called_unknown(sample: Path) -> None:
    """Its mistake is told with its place, and nothing is asked about it."""
    (sample / "categories/vpn.json").write_text('{"version": 1 "title": "Best VPN"}')
    at = ("--at", "2026-11-02T06:00:00Z")
    done = run(sample, "vpn", *at)
    assert (done.exit_code, "Nothing was asked: categories/vpn.json:1:15: " in done.stderr) == (
        1,
        True,
    )
    others = run(sample, "--all", *at)
    assert (others.exit_code, "not asked: categories/vpn.json:1:15: " in others.stderr) == (0, True)


@pytest.mark.parametrize("lost", ["history", "history/crm.jsonl"])
def test_what_a_poll_added_is_missed_when_it_goes(sample: Path, lost: str) -> None:
    """Though no server ever saw it, nothing is paid for twice."""
    at = ("--at", "2026-11-02T06:00:00Z")
    assert run(sample, "--all", *at).exit_code == 0
    close_days(sample)
    (sample / lost).rename(sample / "away")
    done = run(sample, "crm", "--due", *at)
    assert done.exit_code == 1
    assert "its category is left alone" in done.stderr
    assert command(sample, "check").exit_code == 1


@pytest.mark.parametrize("which", ["--due", "--all"])
def test_what_cannot_be_read_is_named_and_not_asked(
    sample: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """A history file that cannot be read keeps its category from being asked: exit 1, aloud."""
    run(sample, "--due", "--at", "2026-10-02T06:00:00Z")
    replace_os(monkeypatch, UnreadableFiles("crm.jsonl"))
    done = run(sample, which, "--at", "2026-11-02T06:00:00Z")
    reason = "history/crm.jsonl:1:1: cannot be read: Input/output error"
    assert (done.exit_code, done.stderr.splitlines()[1], done.output.splitlines()[-1]) == (
        1,
        f"{reason}; its category is left alone",
        "Total: 2 answers, 0 failed, 0.0000 USD.",
    )
    alone = run(sample, "crm")
    assert (alone.exit_code, alone.output.splitlines()[-1]) == (1, "Nothing is to be asked.")
    assert "A: 1 of 2 due" in run(sample, "--status").output, "what is unread is not due"


def test_the_checkouts_sample_is_not_added_to_by_accident(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without DATA_DIR nothing is asked and nothing written; with it, or --at, it is."""
    monkeypatch.setattr("store.settings.SHIPPED_DATA", sample)
    for arguments in (["--all"], ["crm"], ["--due", "--max-usd", "1"]):
        done = run(sample, *arguments)
        assert done.exit_code == 1
        assert "Nothing was asked: DATA_DIR is not set" in done.stderr
        assert "flask init DIR" in done.stderr
    assert not (sample / "history").exists()
    assert not (sample / ".locks").exists()
    assert run(sample, "--all", "--dry-run").exit_code == 0
    assert run(sample, "--status").exit_code == 0
    assert run(sample, "crm", "--at", "2026-11-02T06:00:00Z").exit_code == 0
    assert run(sample, "vpn", environ={"DATA_DIR": str(sample)}).exit_code == 0


@needs_root
def test_root_adds_nothing_that_the_datas_owner_could_not_use(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a service that runs as that user could show and ask no more what root once polled."""
    nobody = pwd.getpwnam("nobody")
    os.chown(sample, nobody.pw_uid, nobody.pw_gid)
    done = run(sample, "crm")
    assert done.exit_code == 1
    assert "the data belongs to nobody, who could not use what root adds" in done.output
    assert f"runuser -u nobody -- {sys.executable} -m flask poll" in done.output
    assert run(sample, "--status").exit_code == 0
    assert run(sample, "--dry-run", "crm").exit_code == 0
    assert not (sample / "history").exists()
    assert not (sample / ".locks").exists()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: nobody.pw_uid)
        assert run(sample, "crm").exit_code == 0


@needs_root
def test_whose_data_it_is_the_history_says(sample: Path) -> None:
    """What a server that root runs has written there is root's to go on with."""
    (sample / "history").mkdir()
    nobody = pwd.getpwnam("nobody")
    os.chown(sample, nobody.pw_uid, nobody.pw_gid)
    assert run(sample, "crm").exit_code == 0
    os.chown(sample / "history", nobody.pw_uid, nobody.pw_gid)
    assert run(sample, "crm").exit_code == 1
    os.chown(sample / "history", 54_321, 54_321)  # a container's root may know no such user
    assert run(sample, "crm").exit_code == 0


AT = ("--at", "2026-11-03T06:00:00Z")


def answers(data: Path, slug: str) -> list[tuple[str, str]]:
    """Who answered what in a category, in order."""
    polls = [stored.poll for stored in History(data / "history").read(slug).polls]
    return [(poll.model, poll.id) for poll in polls]


def test_samples_ask_each_so_often(sample: Path) -> None:
    """Every answer is a record of its own; the others are asked before anyone is again."""
    done = run(sample, "crm", "--samples", "3", *AT)
    assert (done.exit_code, done.output.splitlines()[-3:-1]) == (
        0,
        ["A: 3 answered", "B: 3 answered"],
    )
    assert [model for model, _ in answers(sample, "crm")] == ["A", "B"] * 3
    assert len({id_ for _, id_ in answers(sample, "crm")}) == 6
    times = {stored.poll.polled_at for stored in History(sample / "history").read("crm").polls}
    assert times == {"2026-11-03T06:00:00Z"}
    assert answers(sample, "vpn") == []


def test_samples_are_made_again_with_the_same_bytes(sample: Path, tmp_path: Path) -> None:
    """In one run or one after the other, repeats of a day are the same lines of history."""
    other = shutil.copytree(sample, tmp_path / "other")
    run(sample, "crm", "--samples", "3", *AT)
    for _ in range(3):
        run(other, "crm", *AT)
    path = Path("history/crm.jsonl")
    assert (sample / path).read_bytes() == (other / path).read_bytes()
    assert command(sample, "check").exit_code == 0


def test_due_fills_rounds_up(sample: Path) -> None:
    """With --due so many answers a round, those it has among them; so a run can be repeated."""
    run(sample, "crm", *AT)
    assert run(sample, "crm", "--due", *AT).stdout == "Nothing is due.\n"
    done = run(sample, "vpn", "crm", "--due", *AT)
    assert done.output.splitlines()[-3:-1] == ["A: 1 answered", "B: 1 answered"]
    done = run(sample, "--due", "--samples", "2", *AT)
    assert done.output.splitlines()[-3:-1] == ["A: 2 answered", "B: 2 answered"]
    assert [len(answers(sample, slug)) for slug in ("crm", "vpn")] == [4, 4]
    assert run(sample, "--due", "--samples", "2", *AT).stdout == "Nothing is due.\n"


def test_the_site_says_how_many_answers_a_round_takes(sample: Path) -> None:
    """At first more if it says so, then as many as every round."""
    edit(sample / "site.json", samples_per_round=2, samples_at_first=3)
    assert "A: 6 calls of a sample" in run(sample, "--due", "--dry-run", *AT).output
    once = run(sample, "--due", "--samples", "1", "--dry-run", *AT).output
    assert "A: 2 calls of a sample" in once  # the option stands for both of the site's numbers
    run(sample, "crm", *AT)
    status = run(sample, "--status", *AT).output
    assert "A: 2 of 2 due, last success 20" in status
    done = run(sample, "--due", *AT)
    assert done.output.splitlines()[-3:-1] == ["A: 5 answered", "B: 5 answered"]
    later = ("--at", "2026-11-10T06:00:00Z")
    assert "B: 4 answered" in run(sample, "--due", *later).output


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
    done = run(data, "--until-clear", "5", *AT)
    assert (done.exit_code, done.output.splitlines()[-2:]) == (
        0,
        ["Total: 2 answers, 0 failed, 0.0000 USD.", "Categories: 2 unmeasured."],
    )
    again = run(data, "--until-clear", "5", *AT)
    assert again.exit_code == 0
    assert re.fullmatch("Nothing is to be asked. Of one day one answer counts: .*\n", again.stdout)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "Say what to poll: one or more SLUGs, --due, --all or --until-clear."),
        (("--until-clear", "6"), 2, "6 is not in the range 2<=x<=5"),
        (("--until-clear", "3", "--due"), 2, "--until-clear goes with neither --due nor --samples"),
        (("cmr",), 2, 'No category has the slug "cmr". Closest: crm'),
        (("vnp",), 2, 'No category has the slug "vnp". Closest: vpn'),
        (("zzzzzz",), 2, 'No category has the slug "zzzzzz".\n'),
        (("crm", "--model", "C"), 2, 'No assistant is called "C"; models.json has A, B.'),
        (("crm", "--at", "yesterday"), 2, '"yesterday" is not a time such as 2026-11-02T06:00:00Z'),
        (("crm", "--at", "2199-11-02T06:00:00Z"), 2, "is before 2020 or still to come"),
        (("crm", "--at", "2019-12-31T23:59:59Z"), 2, "is before 2020 or still to come"),
        (("--due", "--all"), 2, "--all asks what is not due, too; leave out --due."),
        (("crm", "--max-usd", "-1"), 2, "-1.0 is not in the range"),
        (("crm", "--max-usd", "nan"), 2, '"nan" is not an amount'),
        (("crm", "--max-usd", "inf"), 2, "inf is not in the range"),
        (("crm", "--samples", "0"), 2, "0 is not in the range 1<=x<=5"),
    ],
)
def test_a_wrong_call_is_answered_by_what_to_do(
    sample: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    """Every mistake on the command line has a sentence; nothing is asked."""
    done = run(sample, *arguments)
    assert done.exit_code == code
    assert sentence in done.output
    assert History(sample / "history").signatures() == {}


def test_a_time_is_only_pretended_to_samples(real: Path) -> None:
    """--at would falsify real polls."""
    done = run(real, "crm", "--at", "2026-11-02T06:00:00Z")
    assert done.exit_code == 2
    assert "--at is only for data whose assistants are all of api sample." in done.output


def test_a_dry_run_says_what_it_would_cost(real: Path) -> None:
    """Dollars as expected, and with calls and tokens at most; nothing is sent or written."""
    done = run(real, "--all", "--dry-run", environ={"POLL_TEST_KEY": ""})
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert [line.partition(":")[0] for line in lines[:-1]] == ["GPT", "Claude", "Gemini", "Grok"]
    assert re.fullmatch(
        r"GPT: 2 calls, 0\.03 USD expected, 0\.08 USD at most; at most 1,(\d{3}) input and 8,000 "
        r"output tokens; at least 1 min at 1000000 a minute",
        lines[0],
    )
    assert lines[-1].startswith("In all: 0.13 USD expected, 0.33 USD at most, if no question has")
    assert lines[-1].endswith("Nothing was sent.")
    assert not (real / ".locks").exists()
    more = run(real, "--all", "--dry-run", "--max-usd", "0.1").stdout.splitlines()
    assert [line for line in more if line not in lines] == [
        "--max-usd 0.1 ends it before all is asked."
    ]


def test_a_dry_run_says_which_price_is_unknown(real: Path, sample: Path) -> None:
    """Without prices the total says so; sample assistants are free."""
    thrice = run(real, "--all", "--dry-run", "--samples", "3").stdout.splitlines()
    assert thrice[0].startswith("GPT: 6 calls, 0.09 USD expected")
    assert ", 1.00 USD at most, " in thrice[-1]
    change(real, usd_per_million_input=None)
    done = run(real, "crm", "--dry-run")
    assert "GPT: 1 call, price unknown;" in done.output
    assert re.search(r"0\.1[23] USD at most and what has no price, if no question", done.output)
    assert "A: 2 calls of a sample assistant, free" in run(sample, "--all", "--dry-run").output


def change(data: Path, **fields: Any) -> None:
    """Change members of the first assistant in models.json; ``None`` takes one out."""
    path = data / "models.json"
    told = json.loads(path.read_text())
    told["models"][0] |= fields
    told["models"][0] = {k: v for k, v in told["models"][0].items() if v is not None}
    path.write_text(json.dumps(told, indent=2))


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
    done = run(real, "--all", "--model", "GPT")
    assert done.exit_code == 1
    assert sentence in done.output
    assert "4x9f8a7b6c" not in done.output
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
    told = json.loads((real / "models.json").read_text())
    told["models"][1:] = [{"name": "A", "api": "sample"}]
    (real / "models.json").write_text(json.dumps(told))
    edit(real / "site.json", sample=True)
    change(real, **fields)
    done = run(real, "crm", *arguments)
    assert done.exit_code == 1
    assert sentence in done.output
    assert "A: 1 " in done.output
    assert polled(real) == 1


def polled(data: Path) -> int:
    """How many polls the history holds."""
    history = History(data / "history")
    return sum(len(history.read(slug).polls) for slug in history.signatures())


def test_a_key_over_plain_http_is_a_warning(tmp_path: Path) -> None:
    """An address that would carry a key unencrypted is warned of, before anything is sent."""
    data = write_real(tmp_path / "data", "http://llm.example", ["crm"])
    check = command(data, "check")
    assert (check.exit_code, check.output.count("would travel unencrypted; use https")) == (0, 4)
    assert run(data, "crm", "--max-usd", "0").output.count("warning: models.json:") == 4


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
    done = run(data, *arguments)
    assert (done.exit_code, limit in done.output, polled(data)) == (0, True, 0)


def test_trying_shows_no_part_of_a_key(tmp_path: Path) -> None:
    """An error that a provider sends as a success is redacted like any other."""
    said = {"error": {"message": "Incorrect API key provided: sk-canary"}}
    with serving() as server:
        data = write_real(tmp_path / "data", server.url, ["crm"], names=["GPT"])
        server.follow({"gpt": [{"body": said}]})
        done = run(data, "--try")
    assert (done.exit_code, "canary" in done.output) == (1, False)


def test_a_run_says_what_nobody_knows_the_cost_of(tmp_path: Path) -> None:
    """What a limit counts as spent is in the total, though no answer came."""
    with serving() as server:
        data = write_real(tmp_path / "data", server.url, ["crm"], names=["GPT"])
        server.follow({"gpt": [{"status": 200, "body": []}]})
        done = run(data, "crm", "--max-usd", "5")
    cost = r"0\.0000 USD and at most 0\.\d{4} USD of unknown cost"
    assert re.search(rf"Total: 0 answers, 1 failed, {cost}\.", done.output), done.output


def test_a_clock_that_differs_needs_a_person(tmp_path: Path) -> None:
    """Though other assistants have answered: what was paid is thrown away until it is set."""
    with serving() as server:
        data = write_real(tmp_path / "data", server.url, ["crm"], names=["GPT", "Claude"])
        date = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
        odd = {"headers": {"date": date}, "body": envelope("messages", answer_text(["A"]), "c")}
        server.follow({"claude": [odd], "gpt": [{"picks": ["A"]}]})
        done = run(data, "crm")
    assert "that of Claude's provider" in done.output
    assert done.exit_code == 1


def test_a_daily_limit_needs_prices(tmp_path: Path) -> None:
    """daily_usd without prices is a mistake of models.json, found by `flask check` too."""
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], daily_usd=1)
    change(data, usd_per_million_output=None)
    sentence = "this assistant has no usd_per_million_output, which daily_usd of site.json needs"
    for done in (run(data, "crm"), command(data, "check")):
        assert (done.exit_code, sentence in done.output) == (1, True)


def test_a_day_that_cannot_be_summed_up_needs_a_person(tmp_path: Path) -> None:
    """Where the limit's file cannot be kept nothing is asked, and the status says so."""
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], daily_usd=1)
    (data / ".locks" / "spent.json").mkdir(parents=True)
    why = "daily_usd 1 of site.json cannot be kept: Is a directory."
    for argument, sentence in (("--due", f"Nothing was asked: {why}"), ("--status", why)):
        done = run(data, argument)
        assert (done.exit_code, sentence in done.output) == (1, True), argument


def test_a_pause_that_is_met_needs_a_person(real: Path) -> None:
    """Nothing is asked of a paused assistant, and why is said, with status 1."""
    now = datetime.now(UTC)
    rest = rfc3339(now + timedelta(hours=3))
    append(real, [failed("GPT", "auth", rfc3339(now), slug="vpn", cooldown_until=rest)])
    done = run(real, "--due", "--max-usd", "0")
    assert (done.exit_code, f"  paused until {rest}" in done.output) == (1, True)
    assert '`flask poll --due --model "GPT"` asks one question first' in done.output


def test_a_pause_that_its_provider_named_is_kept_by_all(real: Path) -> None:
    """Nobody asks before the hour that it said, and who tries is told so."""
    now = datetime.now(UTC)
    rest = rfc3339(now + timedelta(hours=3))
    append(real, [failed("GPT", "rate_limited", rfc3339(now), slug="vpn", cooldown_until=rest)])
    done = run(real, "vpn", "--model", "GPT")
    assert (done.exit_code, polled(real)) == (1, 1)
    assert "its provider named the time, so nothing asks it before" in done.output
    tried = run(real, "--try", "--model", "GPT")
    assert (tried.exit_code, f"GPT: not asked, for it is paused until {rest}" in tried.output) == (
        1,
        True,
    )


def test_failed_questions_that_wait_are_told(real: Path) -> None:
    """Nothing is due after failures, and who has mended what was wrong is told what to run."""
    now = rfc3339(datetime.now(UTC))
    models = ("GPT", "Claude", "Gemini", "Grok")
    for slug in ("crm", "vpn"):
        append(real, [failed(model, "http", now, slug=slug) for model in models])
    done = run(real, "--due")
    said = "Nothing is due. 8 failed questions will be asked again later; --all asks now."
    assert (done.exit_code, said in done.output) == (0, True)


def test_nothing_real_is_added_to_invented_answers(sample: Path) -> None:
    """A history of invented answers under a site said to be real is a mistake of site.json."""
    run(sample, "crm", *AT)
    edit(sample / "site.json", sample=False)
    real = {"name": "GPT", "api": "chat", "model": "gpt", "base_url": NOWHERE}
    edit(sample / "models.json", models=[real])
    done = run(sample, "vpn")
    assert (done.exit_code, polled(sample)) == (1, 2)
    assert "Nothing was asked, for site.json has a mistake" in done.output


def test_check_tells_a_mistake_once(real: Path) -> None:
    """While models.json has a mistake of its schema, nothing is said about what follows from it."""
    change(real, api="chatter", base_url=None)
    check = command(real, "check")
    assert check.exit_code == 1
    assert check.output.count("models.json:") == 1
    assert "models[0].api must be one of" in check.output


def test_a_fault_of_the_disk_is_one_sentence(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that cannot be written ends the run with a sentence, not a traceback."""
    replace_os(monkeypatch, FailingCalls(also=("write",)))
    done = run(sample, "--all")
    assert done.exit_code == 1
    assert "  not asked on: an answer could not be recorded: " in done.output
    assert done.output.splitlines()[-1] == "Total: 0 answers, 0 failed, 0.0000 USD."


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
        done = run(real, "--status", environ={"POLL_TEST_KEY": ""})
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
    assert run(sample, "--status").exit_code == 0
    run(sample, "--all", "--at", "2026-01-01T06:00:00Z")
    assert run(sample, "--status").exit_code == 0


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
    assert run(real, "--status").exit_code == 0
    append(real, polls)
    done = run(real, "--status")
    assert done.exit_code == 1
    assert sentence in done.output


def test_what_is_reserved_is_spent_until_it_is_settled(tmp_path: Path) -> None:
    """Under a cap the status shows what a killed process had reserved, as the cap counts it."""
    data = write_real(tmp_path / "data", NOWHERE, ["crm"], daily_usd=1)
    today = datetime.now(UTC).date().isoformat()
    (data / ".locks").mkdir()
    (data / ".locks" / "spent.json").write_text(
        json.dumps({"day": today, "micros": {"GPT": 120_000}})
    )
    assert (
        "Spent today: 0.12 of 1 USD, 0.12 of it for batches on their way, calls"
        in run(data, "--status").output
    )
    (data / ".locks" / "spent.json").unlink()
    (data / ".locks" / "spent.json").mkdir()
    assert "Spent today: 0.00 of 1 USD." in run(data, "--status").output


def test_the_status_says_that_nothing_can_be_locked(real: Path) -> None:
    """Where locks cannot be used."""
    (real / ".locks").write_text("")
    done = run(real, "--status")
    assert done.exit_code == 1
    assert "Nothing can be asked, for .locks cannot be used: Not a directory." in done.output


@pytest.mark.parametrize("which", [("--all",), ("--until-clear", "5")])
def test_failures_give_their_reason(
    sample: Path, monkeypatch: pytest.MonkeyPatch, which: tuple[str, ...]
) -> None:
    """Each is asked once; under an assistant's line stands one sentence for each kind."""
    monkeypatch.setattr(sample_assistant, "reply", failing)
    done = run(sample, *which, *AT)
    assert (done.exit_code, polled(sample)) == (1, 4)
    for name in "AB":
        assert f"\n{name}: 2 refusal\n  refusal: The model refused.\n" in done.output


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
    done = run(real, "crm", "--model", "Claude")
    assert done.exit_code == 1
    assert "history/crm.jsonl:1:1: a poll of 20" in done.stderr
    end = "; `flask check` says what to do; its category is left alone\nNothing is to be asked.\n"
    assert done.output.endswith(end)
    assert f"withheld: flask withhold {poll.id}" in command(real, "check").output
    assert polled(real) == 2
    withhold(real, poll.id)
    change(real, key_env=None)
    assert "yet to come" not in run(real, "crm", "--max-usd", "0").output
