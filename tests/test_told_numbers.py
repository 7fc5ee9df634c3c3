"""The numbers that people are told in prose are those that the code goes by."""

import re
from pathlib import Path

import pytest

from store import search
from store.category_history import CLOCK_TOLERANCE
from store.cli import exporting
from store.polls import batch_files, batches, due, poller, sending, session
from store.rankings import agreement, certainty, mention_trends, merging, poll_states, runs
from store.rankings.sentences import number_in_words as words
from store.records import MAX_SAMPLES, Assistant, Site
from store.search import meaning, nearness
from store.web import openapi, queries, trends

ROOT = Path(__file__).parent.parent
METHOD, DATASET = "templates/methodology.html", "templates/dataset.md"
COMMANDS, DECISIONS = "store/cli/README.md", "store/README.md"

SITE = Site(version=1, name="Any")
MIXTURE, ALPHA = f"{certainty.MIXTURE:g}", f"{certainty.ALPHA:g}"
FIRST, SECOND, *_, LAST = map(merging.points, range(1, merging.PLACES + 1))
TRIED = len(agreement.POINTS) + 1
FORMULA_1 = ", ".join(map(str, agreement.POINTS["Formula 1"]))
FALSE = f"{float(100 * mention_trends.FALSE_DISCOVERIES):g}"
MAX_GONE_PERCENT = f"{100 / exporting.MAX_GONE_SHARE:g} %"
TAKEOVER = merging.TAKEOVER_DAYS
HOUR = 3600


def hours(seconds: float) -> str:
    return f"{seconds / HOUR:g}"


def largest(query: type[queries.Query]) -> int:
    return int(openapi.properties_of(query)["limit"]["maximum"])


TOLD = (
    (METHOD, f"gives one to {words(merging.PLACES)} picks"),
    (METHOD, f"or for {words(TAKEOVER)} days"),
    ("templates/category.html", f"or {words(TAKEOVER)} days have passed"),
    (DATASET, f"until the category has an answer {TAKEOVER} days"),
    (DECISIONS, f"at most until {TAKEOVER} days"),
    (METHOD, f"A #1 is worth {FIRST} points, a #2 {words(SECOND)}"),
    (METHOD, f"and a #{merging.PLACES} {words(LAST)}"),
    (DECISIONS, f"{FIRST} to {LAST} points"),
    ("templates/mcp.md", f"{FIRST} points for a #1 down to {LAST} for a #{merging.PLACES}"),
    ("templates/agents.md", f"{FIRST} points for a #1, {SECOND} for a #2"),
    (METHOD, f"we try {words(TRIED)} on the same lists"),
    (METHOD, f"then {words(TRIED - 1)} are tried"),
    (METHOD, f"Formula 1 ({FORMULA_1})"),
    (DATASET, f"Formula 1 ({FORMULA_1})"),
    ("templates/labs.json", f"by {words(TRIED)} usual rules"),
    ("templates/labs.json", f"Formula 1 ({FORMULA_1})"),
    ("templates/agents.md", f"of {words(TRIED)} usual rules"),
    (DATASET, f"over `stale_after_days` (`site.json`, else {SITE.stale_after_days})"),
    (DATASET, f"`drop_after_days` (else {SITE.drop_after_days})"),
    (METHOD, f"the newest {runs.MAX_DAYS} days with answers"),
    (METHOD, f"fewer than {words(certainty.FEWEST_DAYS)} days, or all runs together fewer than "),
    (METHOD, {12: "twelve"}[certainty.FEWEST_DAYS_IN_ALL]),
    (METHOD, f"s² = ({certainty.PRIOR_SQUARES} + ΣΣ"),
    (METHOD, f"With v = {MIXTURE} · n + 1"),
    (METHOD, f"({MIXTURE} · n) · ln(√v"),
    (METHOD, f" {ALPHA}) )"),
    (METHOD, f"z = {certainty.Z}"),
    (METHOD, f"share of the newest {words(runs.WINDOW_ANSWERS)} answers of each run"),
    (METHOD, f"the newest {words(runs.WINDOW_ANSWERS)} of each"),
    ("templates/labs.json", f"{words(runs.WINDOW_ANSWERS)} at most, and compare every two"),
    (METHOD, f"the {words(mention_trends.TREND_WINDOW.days)} UTC days that end with"),
    ("templates/llms.txt", f"{mention_trends.TREND_WINDOW.days}-day trend"),
    (METHOD, f"at least {mention_trends.MIN_CELLS} pairs"),
    (METHOD, f"b + c is at least {mention_trends.MIN_DISCORDANT}"),
    (METHOD, f"m of {FALSE}%. Of those called"),
    (DECISIONS, f"false discoveries at {FALSE} %"),
    (METHOD, f"Where no score reaches {search.EXACT:g}"),
    (METHOD, f"exact from {search.EXACT:g}, likely from {search.LIKELY:g}"),
    (METHOD, f"at least {words(search.MIN_SHARED_TO_FIND)} words with it"),
    (METHOD, f"at least {words(search.MIN_SHARED_TO_BE_LIKELY)} words are shared"),
    (METHOD, {0.6: "Three fifths of that order"}[nearness.MODEL_SHARE]),
    (METHOD, f"of the {words(meaning.MOST_ALIKE)} texts of a category"),
    ("README.md", f"`limit=` up to {largest(queries.SearchQuery)}"),
    ("README.md", f"`limit=` up to {largest(queries.HistoryQuery)}"),
    ("README.md", f"the newest {trends.MOST_CHANGES:,} changes"),
    (COMMANDS, f"takes up to {words(MAX_SAMPLES)}"),
    (COMMANDS, f"`batch_price_factor` ({Assistant(name='A', api='chat').batch_price_factor:g})"),
    (COMMANDS, f"of up to {batches.MOST_ITEMS} questions"),
    (COMMANDS, f"until {batches.WORTH_ANOTHER} more are due"),
    (COMMANDS, f"After {hours(batches.CANCEL_AFTER.total_seconds())} hours it is cancelled"),
    (COMMANDS, f"given up after {hours(batches.GIVE_UP_AFTER.total_seconds())} hours"),
    (COMMANDS, f"paused for {hours(batch_files.FIRST_PAUSE.total_seconds())} hours"),
    (COMMANDS, f"tried again after {hours(due.FIRST_RETRY.total_seconds())}, "),
    (COMMANDS, f"{words(session.MOST_FAILURES)} failures in a row"),
    (COMMANDS, f"over {words(int(sending.Limits().longest_wait / 60))} minutes pauses"),
    (COMMANDS, f"({hours(sending.Limits().pause)} hours, or as long as"),
    (COMMANDS, f"at most {poller.QUESTIONS_PER_TURN} questions"),
    (DECISIONS, f"at most {poller.QUESTIONS_PER_TURN} questions"),
    (DECISIONS, f"for {poller.QUESTIONS_PER_TURN} questions at most"),
    (COMMANDS, f"over {words(CLOCK_TOLERANCE.seconds // 60)} minutes behind"),
    (COMMANDS, f"failed {words(poll_states.OUTAGE_FAILURES)} times in a row "),
    (COMMANDS, f"({words(poll_states.FAILURES_AT_FIRST)} times, if it never answered)"),
    (COMMANDS, f"more than {exporting.MAX_GONE} addresses (or {MAX_GONE_PERCENT})"),
    (DECISIONS, f"more than {exporting.MAX_GONE} addresses (or {MAX_GONE_PERCENT}"),
)


def plain(text: str) -> str:
    """A text in one line, without tags: sentences break anywhere."""
    return " ".join(re.sub(r"</?\w+(?: [^>]*)?>", "", text).split())


@pytest.mark.parametrize(("file", "phrase"), TOLD)
def test_a_number_in_prose_is_that_of_the_code(file: str, phrase: str) -> None:
    """Who changes a constant is led to every sentence that tells it."""
    assert plain(phrase) in plain((ROOT / file).read_text(encoding="utf-8"))


def test_the_link_to_a_categorys_answers_asks_for_as_many_as_it_may() -> None:
    """It stands in an attribute, which the list above does not see."""
    page = (ROOT / "templates/category.html").read_text(encoding="utf-8")
    assert f"format=csv&amp;limit={largest(queries.HistoryQuery)}" in page
