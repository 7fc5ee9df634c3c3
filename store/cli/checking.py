"""``flask check``: everything wrong in a data directory, by file, line and column."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from store.cli import alias_checks, app_settings, checks, encoding, name_checks, plural, with_data
from store.disk import read_regular
from store.edits import name_clashes
from store.files import Files
from store.history import History, HistoryError
from store.polls.assistant_checks import mistakes
from store.publishing import leaves, manifest
from store.rankings.names import Names
from store.records import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@click.command()
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    help="How to say it: lines for people and editors, JSON, or GitHub annotations.",
)
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option(
    "--accept-history",
    "accept",
    is_flag=True,
    help="Take the history of each SLUG as it is, though some of it was lost.",
)
@click.option("--all", "everything", is_flag=True, help="The same for all that is lost.")
@with_data
def check(style: str, slugs: tuple[str, ...], *, accept: bool, everything: bool) -> None:
    """Say what is wrong in the data directory (DATA_DIR), as file:line:column: message.

    The files are read as the server reads them: what is an error here the server leaves out or
    keeps as it was. Exits with 1 when there is an error; warnings do no harm yet, and notices
    are only worth knowing.

    A history file that lost what it held is an error until it is restored, or until you say with
    --accept-history that it is to count as it is: its category is then served and polled again.
    """
    settings = app_settings()
    directory = settings.data_dir
    if accept != bool(slugs or everything):
        raise click.UsageError("Say which history to accept: --accept-history SLUG… or --all.")
    if accept:
        _accept(History(directory / "history"), slugs)
        return
    problems = sorted(set(problems_in(directory, settings.meaning_model)))
    counts = Counter(problem.severity for problem in problems)
    if style == "json":
        click.echo(json.dumps([msgspec.to_builtins(each) for each in problems], indent=2))
    else:
        say = _as_text if style == "text" else _as_annotation
        for problem in problems:
            click.echo(say(problem, directory))
    numbers = (plural(counts[each], each) for each in ("error", "warning", "notice"))
    click.echo(f"{', '.join(numbers)}.", err=True)
    if counts["error"]:
        raise click.exceptions.Exit(1)


def _accept(history: History, slugs: Sequence[str]) -> None:
    """Take the history of these slugs, or of all that lost some, as it is from now on."""
    held = {*history.signatures(), *history.remembered()}
    damaged = history.damaged_checkpoints
    if slugs and damaged:
        raise click.ClickException(f"{damaged}.")
    lost = [slug for slug in sorted(held) if damaged or history.read(slug).unread]
    for slug in slugs:
        if slug not in held:
            raise click.UsageError(f'No history was ever seen of "{slug}".')
    accepted = [slug for slug in dict.fromkeys(slugs or lost) if slug in lost]
    logs = history.accept(*accepted) if accepted or damaged else []
    for slug, log in zip(accepted, logs, strict=True):
        polls = plural(len(log.polls), "poll")
        click.echo(f"history/{slug}.jsonl counts as it is: {polls}.")
    for slug in dict.fromkeys(slugs):
        if slug not in lost:
            click.echo(f"history/{slug}.jsonl has lost nothing.")
    if damaged:
        click.echo(f"{damaged.file} is written anew.")
    elif not slugs and not lost:
        click.echo("No history is lost.")


def problems_in(directory: Path, model: Path | None = None) -> Iterator[Problem]:
    """Everything wrong in a data directory's files and history; ``model`` is MEANING_MODEL.

    Raises:
        DataDirectoryError: there is no data directory to look at.
    """
    files = Files(directory)
    catalogue = files.scan()
    yield from catalogue.problems
    yield from mistakes(catalogue, files)
    names = Names(catalogue.products)
    yield from name_clashes(names, files)
    yield from manifest.problems(directory / manifest.FOLDER, older=True)
    yield from _damage_of_proof(directory)
    yield from checks.advice(catalogue, files)
    yield from alias_checks.remarks(catalogue, files)
    yield from encoding.remarks(directory, model, catalogue)
    try:
        history = History(directory / "history")
        yield from checks.in_history(history, catalogue, files, datetime.now(UTC))
        yield from name_checks.remarks(catalogue, names, files, history)
    except HistoryError as error:
        yield Problem("history", 1, 1, str(error))
    else:
        if history.damaged_checkpoints:
            yield history.damaged_checkpoints


def _damage_of_proof(directory: Path) -> Iterator[Problem]:
    """What is wrong in the proof by itself; `flask verify` compares it with history, too.

    A torn last line, of the newest month or the heads, is no damage: whoever lists next writes it
    again.
    """
    listed, heads = leaves.LeafList(directory), leaves.Heads()
    name = f"{leaves.FOLDER}/{leaves.HEADS}"
    try:
        known = b""
        with suppress(FileNotFoundError):  # heads before leaves: a server may add both meanwhile
            known = read_regular(directory / name)
        written = leaves.parse_heads(known[: known.rfind(b"\n") + 1], name)
        months = listed.months()
        for month in months:
            data = listed.month(month)
            if month == months[-1]:
                data = data[: data.rfind(b"\n") + 1]
            for leaf in leaves.parse(data, month, f"{leaves.FOLDER}/{month}{leaves.SUFFIX}"):
                heads.add(leaf.day, leaf.hash)
        leaves.check_grown(written, heads.closed, name)
    except leaves.ProofError as error:
        yield Problem(leaves.FOLDER, 1, 1, str(error))
    except OSError as error:
        file = Path(error.filename or leaves.FOLDER).name
        yield Problem(leaves.FOLDER, 1, 1, f"{file} cannot be read: {error.strerror}")


def _as_text(problem: Problem, _: Path) -> str:
    mark = "" if problem.severity == "error" else f"{problem.severity}: "
    return f"{problem.file}:{problem.line}:{problem.column}: {mark}{problem.message}"


def _as_annotation(problem: Problem, directory: Path) -> str:
    """One command of a GitHub workflow; the path is from where the command runs.

    Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    in_data = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
    in_property = in_data | str.maketrans({":": "%3A", ",": "%2C"})
    file = os.path.relpath(directory / problem.file).translate(in_property)
    place = f"file={file},line={problem.line},col={problem.column}"
    return f"::{problem.severity} {place}::{problem.message.translate(in_data)}"
