"""``flask check``: every problem of every file in one run, where it stands and what to do."""

import json
import os
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from broken import KINDS, write_one_of_each
from builders import (
    answered,
    app_over,
    append,
    close_days,
    command,
    edit,
    output,
    withhold,
    write_json,
)
from flask.testing import FlaskCliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.files import Files
from store.ledger import Proof
from store.records import GOVERNING
from store.text import rfc3339


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


def check(directory: Path, exit_code: int = 0) -> list[str]:
    """The lines that the command prints which ends with this exit code."""
    done = command(directory, "check")
    assert done.exit_code == exit_code, done.output
    return done.stdout.splitlines()


def test_good_data_is_called_good(directory: Path) -> None:
    """Without an error the exit code is 0."""
    assert "\n0 errors, 0 warnings" in output(directory, "check")


@pytest.mark.parametrize("arguments", [["vpn"], ["--all"], ["--accept-history", "--reason", "x"]])
def test_a_slug_is_what_to_accept(directory: Path, arguments: list[str]) -> None:
    """Who wants one file checked is told that all are, and what slugs are for."""
    usage = "Everything is checked; --accept-history takes SLUG… or --all, which go with it alone."
    assert usage in output(directory, "check", *arguments, exit_code=2)


def test_an_alias_claimed_twice_is_named_in_both_places(directory: Path) -> None:
    """Each of two product files that claim a name is told of the other."""
    pipe = {"version": 1, "name": "Pipe", "aliases": ["PIPE", "ZOHO\u2122"]}
    write_json(directory / "products" / "pipe.json", pipe)
    belongs = "until one gives it up it belongs to neither, and ranks as a product of its own"
    pipe_, zoho = "products/pipe.json", "products/zoho-crm.json"
    assert check(directory, 1) == [
        f'{pipe_}:6:5: "ZOHO\u2122" is also claimed by {zoho}; {belongs}',
        f'{zoho}:5:5: "Zoho" is also claimed by {pipe_}; {belongs}',
    ]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to(__file__)])
@pytest.mark.parametrize("name", ["heads.jsonl", "ledger.jsonl"])
def test_a_ledger_that_cannot_be_read_hides_no_other_mistake(
    directory: Path, make: Callable[[Path], None], name: str
) -> None:
    """A pipe, a folder or a link in place of one of its files."""
    path = directory / "proof" / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    (directory / "categories" / "vpn.json").write_text("{", encoding="utf-8")
    printed = "\n".join(check(directory, 1))
    assert "categories/vpn.json:1:2:" in printed
    assert f"proof/{name}:1:1: cannot be read" in printed


@pytest.mark.parametrize(
    ("folder", "place"),
    [("history", "history:1:1: the folder history cannot be looked into"), ("proof", "proof:1:1:")],
)
@pytest.mark.parametrize(
    "arguments", [("check",), ("poll", "vpn"), ("poll", "--status"), ("verify", ".")]
)
def test_a_folder_that_is_a_link_is_refused(
    directory: Path, tmp_path: Path, arguments: tuple[str, ...], folder: str, place: str
) -> None:
    """A backup would hold the link alone, and a replica nothing: no answer is added there."""
    append(directory, [answered("A", ["Zoho"], "2026-11-20T06:00:00Z", slug="vpn")])
    lines = (directory / "history/vpn.jsonl").read_bytes()
    (directory / folder).rename(tmp_path / folder)
    (directory / folder).symlink_to(tmp_path / folder)
    named = [str(directory) if argument == "." else argument for argument in arguments]
    said = output(directory, *named, exit_code=1)
    assert "it is a symbolic link, which is not followed; mount its disk there instead" in said
    assert place in said or "check" not in arguments
    assert (directory / "history/vpn.jsonl").read_bytes() == lines


@pytest.mark.parametrize(
    ("fields", "place", "warning"),
    [
        ({"topic": "Best VPN"}, "5:3", 'a topic does not start with "Best"'),
        ({"topic": "VPN?"}, "5:3", "a topic does not end in punctuation"),
        ({"title": "Best VPN."}, "3:3", "a topic does not end in punctuation"),
        ({"topic": "theatre tickets"}, "", ""),
    ],
)
def test_a_topic_that_reads_badly_in_a_verdict_is_a_warning(
    directory: Path, fields: dict[str, str], place: str, warning: str
) -> None:
    """What would stand after "for" must not start with Best or The or end a sentence."""
    edit(directory / "categories" / "vpn.json", **fields)
    topic = fields.get("topic", "VPN.")
    line = f'categories/vpn.json:{place}: warning: "for {topic}" stands in verdicts: {warning}'
    assert check(directory) == ([line] if warning else [])


def test_polling_less_than_weekly_is_a_warning(directory: Path) -> None:
    """Above seven days no cell is polled in both windows of a trend."""
    edit(directory / "site.json", poll_every_days=8)
    report = output(directory, "check")
    assert "\nsite.json:5:3: warning: poll_every_days is 8: above 7 nothing" in report
    assert report.endswith("\n0 errors, 1 warning, 0 notices.\n")


def test_who_retired_and_what_nobody_polls_is_a_notice(directory: Path) -> None:
    """Models that left, categories without a poll and histories without a category are named."""
    models = [{"name": name, "api": "sample"} for name in ("B", "C")]
    edit(directory / "models.json", models=models)
    edit(directory / "categories" / "crm-software.json", former_slugs=[])
    (directory / "categories" / "vpn.json").rename(directory / "categories" / "vpn-service.json")
    assert check(directory) == [
        (
            "categories/vpn-service.json:1:1: warning: the category is in no topic; list it in a "
            "part of topics.json"
        ),
        (
            "history:1:1: notice: 1 slug (vpn) has no category any more; if one was renamed, "
            "list its old slug in former_slugs"
        ),
        (
            "history:1:1: notice: 1 slug (vpn-service) has never been polled; "
            "`flask poll --due` asks for what is due"
        ),
        (
            'models.json:1:1: warning: "A" is retired: its 2 polls count in no ranking; if it was '
            'renamed, list it in former_names of "C", whose new round is else 2 polls for at most '
            "0.00 USD"
        ),
        'topics.json:13:13: warning: no category has the slug "vpn"; take it out',
    ]


def test_topics_name_a_renamed_category_by_its_new_slug(directory: Path) -> None:
    """A former slug in a topic is a warning that gives the present one; its category is in it."""
    old, new = (directory / "categories" / f"{name}.json" for name in ("vpn", "vpn-service"))
    old.rename(new)
    edit(new, former_slugs=["vpn"])
    assert check(directory) == [
        'topics.json:13:13: warning: no category has the slug "vpn"; it is called "vpn-service" now'
    ]
    [problem] = app_over(directory).test_client().get("/healthz").get_json()["problems"]
    assert problem.endswith('it is called "vpn-service" now')


def test_two_topics_with_one_address_are_an_error(directory: Path) -> None:
    """No address can lead to two topics, or to two parts of one."""
    part = {"slug": "all", "title": "All", "categories": ["vpn", "crm-software"]}
    topic = {"slug": "software", "title": "Software", "parts": [part]}
    for topics in ([topic, topic], [{**topic, "parts": [part, part]}]):
        edit(directory / "topics.json", topics=topics)
        assert "is there twice; give each its own" in check(directory, 1)[0]


def test_withholding_a_poll_that_is_not_there_is_a_warning(directory: Path) -> None:
    """An id with a typing mistake withholds nothing, which somebody should know."""
    withhold(directory, "0" * 16)
    line = f"withheld.json:4:5: warning: no poll in history has the id {'0' * 16}"
    assert check(directory) == [line]
    client = app_over(directory).test_client()
    assert client.get("/healthz").get_json()["problems"] == [line.replace("warning: ", "")]


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "damaged"])
def test_an_id_whose_poll_may_be_lost_is_not_doubted(
    directory: Path,
    is_lost: bool,  # noqa: FBT001
) -> None:
    """Who took it out would show the withheld text again once the file is back, or at once."""
    path = directory / "history/crm-software.jsonl"
    append(directory, [poll := answered("A", ["Secret"], slug="crm-software")])
    withhold(directory, poll.id)
    if is_lost:
        close_days(directory)
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"Secret", b"Segret", 1))
    problems = app_over(directory).test_client().get("/healthz").get_json()["problems"]
    for damage, *doubts in (check(directory, 1), problems):
        assert damage.startswith("history/crm-software.jsonl")
        assert len(doubts) == (not is_lost), "a slip in an id must be seen beside damage, too"
        assert all(line.endswith("keep it if a damaged one may be that poll") for line in doubts)


def test_a_site_that_cannot_be_read_is_called_nothing_else(directory: Path) -> None:
    """Whether its history may be invented is not known then."""
    append(directory, [answered("A", ["Zoho"], "2026-11-20T06:00:00Z", request_id="sample-1")])
    (directory / "site.json").write_text("", encoding="utf-8")
    assert not any("invented" in line for line in check(directory, 1))


def test_lines_that_were_moved_are_damage(directory: Path) -> None:
    """Times that go backwards, which no writer leaves; a withheld poll's time says nothing."""
    path = directory / "history/vpn.jsonl"
    times = [f"2026-11-0{day}T06:00:00Z" for day in (3, 4, 5)]
    polls = [answered("A", ["Moved"], time, slug="vpn") for time in times]
    append(directory, polls)
    *first, one, two, three = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*first, three, one, two]))
    damage = [
        f"history/vpn.jsonl:{len(first) + place}:1: a damaged record is left out: its time, {time},"
        f" is before that of line {len(first) + 1}, {times[2]}"
        for place, time in ((2, times[0]), (3, times[1]))
    ]
    assert check(directory, 1) == damage
    withhold(directory, json.loads(three)["id"])
    assert check(directory) == []


@pytest.mark.parametrize(("sample", "mark"), [(False, ""), (True, "notice: ")])
def test_a_poll_yet_to_come_is_named_with_what_to_do(
    directory: Path,
    sample: bool,  # noqa: FBT001
    mark: str,
) -> None:
    """One from under a wrong clock is an error, of invented data a notice, until it is withheld."""
    declare(directory, sample=sample)
    append(directory, [answered("A", ["Pipe"], "2999-01-01T00:00:00Z", slug="vpn")])
    [line] = check(directory, 0 if sample else 1)
    assert line.startswith(
        f"history/vpn.jsonl:3:1: {mark}a poll of 2999-01-01T00:00:00Z, which is yet to come"
    )
    output(directory, *shlex.split(line.partition("flask ")[2]))
    assert check(directory) == []


def declare(directory: Path, *, sample: bool) -> None:
    """Let the answers be invented, or those of a real assistant."""
    edit(directory / "site.json", sample=sample)
    if not sample:
        real = {"name": "A", "api": "chat", "base_url": "https://api.example/v1", "model": "m"}
        edit(directory / "models.json", models=[{**real, "former_names": ["B"]}])


@pytest.mark.parametrize(("sample", "mark"), [(False, ""), (True, "notice: ")])
def test_a_day_closed_too_early_is_named_before_a_poll_is_due(
    directory: Path,
    sample: bool,  # noqa: FBT001
    mark: str,
) -> None:
    """By a clock that ran ahead: what to do stands in the line, and in what polling says."""
    declare(directory, sample=sample)
    now = rfc3339(datetime.now(UTC))
    append(directory, [answered("A", ["Pipe"], now, slug="vpn")])
    close_days(directory, now[:10])
    [line] = check(directory, 0 if sample else 1)
    assert line.startswith(f"proof/heads.jsonl:1:1: {mark}a poll of {now[:10]}")
    status = command(directory, "poll", "--status").stdout
    assert ("all days before are closed" in status) is not sample
    output(directory, *shlex.split(line.partition("or, if it was wrong then, flask ")[2]))
    assert check(directory) == []


@pytest.mark.parametrize("name", ["history", "history/vpn.jsonl", "proof/.lock", ".locks"])
def test_what_cannot_be_written_is_named_before_a_poll_is_due(
    directory: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An error for who owns the data; who may only look is warned, and it is no fault of polling.

    Root may write whatever a file's mode says, so that ``os.access`` answers as for others.
    """
    (directory / ".locks").mkdir(exist_ok=True)
    with Proof(directory).locked():
        pass
    monkeypatch.setattr("os.access", lambda path, _: Path(path) != directory / name)
    sentence = f"this user cannot write {name}, so that polls are not recorded"
    assert f"{name}:1:1: {sentence}" in check(directory, 1)[0]
    assert f"{name}:1:1: {sentence}" in output(directory, "poll", "--status", exit_code=1)
    monkeypatch.setattr("os.geteuid", lambda: 54_321)
    assert f"{name}:1:1: warning: {sentence}" in check(directory)[0]
    assert sentence not in command(directory, "poll", "--status").stdout


def test_a_new_question_is_told_with_what_asking_it_costs(directory: Path) -> None:
    """Who has not answered it yet, what they may cost at most, and how to say it is no new one."""
    priced = {"usd_per_million_input": 1.0, "usd_per_million_output": 100.0, "model": "m"}
    real = {"api": "chat", "base_url": "https://api.example/v1", "max_output_tokens": 4000}
    models = [{"name": "A", **real, **priced}, {"name": "B", "api": "sample"}]
    edit(directory / "models.json", models=models)
    vpn = directory / "categories" / "vpn.json"
    old = json.loads(vpn.read_text(encoding="utf-8"))["question"]
    edit(vpn, question="Which VPN is best?")
    line, warning = check(directory)
    assert warning.startswith("models.json:"), "that a real assistant's answers are invented"
    assert line.startswith(
        "categories/vpn.json:4:3: notice: a new question, yet to be answered by A and B: "
        "2 polls for at most 0.40"
    )
    new = answered("A", ["Pipe"], "2026-11-04T06:00:00Z", slug="vpn", question="Which VPN is best?")
    append(directory, [new])
    assert "yet to be answered by B: 1 poll for at most 0.0000 USD" in check(directory)[0]
    edit(directory / "site.json", samples_at_first=3)
    assert "yet to be answered by B: 3 polls for" in check(directory)[0]
    edit(vpn, former_questions=[old])
    assert check(directory) == [warning]


def test_categories_without_situations_are_counted(directory: Path) -> None:
    """One line says how many of a larger catalogue have none, and what that costs."""
    vpn = (directory / "categories/vpn.json").read_bytes()
    for i in range(9):
        (directory / f"categories/a{i}.json").write_bytes(vpn.replace(b"VPN", b"VPN %d" % i))
    count = "11 of 11 categories have no situations (a0, a1, a2, a3, a4, \u2026)"
    assert count in output(directory, "check")
    for slug in ("a0", "vpn"):
        edit(directory / f"categories/{slug}.json", situations=["somebody needs this"])
    assert "have no situations" not in output(directory, "check")


def test_a_question_that_is_asked_twice_is_warned_of(directory: Path) -> None:
    """A category copied and not edited is paid for twice."""
    (directory / "categories/vpn2.json").write_bytes(
        (directory / "categories/vpn.json").read_bytes()
    )
    [first] = [line for line in check(directory) if "is also the question of" in line]
    assert first.startswith('categories/vpn2.json:4:3: warning: "What is the best vpn?" is also')


def test_an_alias_that_is_another_title_is_warned_of(directory: Path) -> None:
    """Who searches for that other category would be sent to this one."""
    title = json.loads((directory / "categories/crm-software.json").read_bytes())["title"]
    edit(directory / "categories/vpn.json", aliases=["hide my address", title.upper()])
    [warning] = check(directory)
    assert f'warning: "{title.upper()}" is the title of crm-software' in warning


def test_the_shipped_data_is_good(runner: FlaskCliRunner) -> None:
    """Not a word is to be said about what we ship."""
    done = runner.invoke(args=["check"])
    assert (done.exit_code, done.stdout) == (0, "")


JUNK = st.sampled_from(["", *'"{}[],:1-\\\n\0\u00e9', "null", "NaN", "  "])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*KINDS, "products/pipe.json"]), st.data())
def test_check_accepts_exactly_what_a_server_loads(
    directory: Path, kind: str, data: st.DataObject
) -> None:
    """However a file is mangled, check calls it an error if and only if a fresh server does."""
    text = GOOD.setdefault(kind, _good_text(directory, kind))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 12, len(text))))
    mangled = text[:start] + data.draw(JUNK) + text[end:]
    (directory / kind).write_text(mangled, encoding="utf-8")
    done = command(directory, "check")
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if not re.match(r"\S+: (warning|notice): ", line)]
    if wrong and kind in GOVERNING and kind in Files(directory).scan().unusable:
        with pytest.raises(click.ClickException, match=re.escape(wrong[0])):
            app_over(directory)
    else:
        store = app_over(directory).extensions["store"]
        assert [str(p) for p in store.problems if p.severity == "error"] == wrong
    assert done.exit_code == (1 if wrong else 0)
    (directory / kind).write_text(text, encoding="utf-8")


GOOD: dict[str, str] = {}


def _good_text(directory: Path, kind: str) -> str:
    if kind == "products/pipe.json":
        return '{"version": 1, "name": "Pipe", "aliases": ["Zohoo"], "former_slugs": ["pipes"]}'
    return (directory / kind).read_text(encoding="utf-8")
