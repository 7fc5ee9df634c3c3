"""``flask check``: everything wrong in a data directory, by file, line and column."""

import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import click

from store.cli import app_settings, checks, searching, with_data
from store.disk import is_full
from store.files import Files
from store.history import History, HistoryError
from store.ledger import FOLDER as PROOF
from store.ledger import HEADS, LEDGER, LedgerError, Proof, parse
from store.polls.batch_files import HAS_OPEN_BATCH, NOT_LISTED, BatchFiles
from store.polls.locks import FOLDER, DamagedFileError
from store.polls.spending import SPENDING_FILE, stored_spending
from store.publishing import manifest
from store.publishing.verification import CheckedLedger, Difference, Folder, check_file
from store.rankings.names import Names
from store.rankings.sentences import plural, some
from store.records import Problem, Site
from store.store import name_clashes
from store.text import is_slug, rfc3339

_PLACES_SHOWN = 3


@click.command()
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option(
    "--accept-history",
    "accept",
    is_flag=True,
    help="Take the history of each SLUG as it is, though some of it was lost.",
)
@click.option("--all", "everything", is_flag=True, help="The same for all that is lost.")
@click.option("--reopen", type=click.DateTime(["%Y-%m-%d"]), help="Open a day closed too early.")
@click.option("--reason", default="", help="Why you accept or reopen; it is published for good.")
@with_data
def check(
    slugs: tuple[str, ...],
    reopen: datetime | None,
    reason: str,
    *,
    accept: bool,
    everything: bool,
) -> None:
    """Say what is wrong in the data directory (DATA_DIR), as file:line:column: message.

    The files are read as the server reads them: what is an error here the server leaves out or
    keeps as it was. Exits with 1 when there is an error; warnings do no harm yet, and notices
    are only worth knowing.

    A history file that lost what it held is an error until it is put back, or until you say with
    --accept-history that it is to count as it is: its category is then served and polled again.
    """
    directory = app_settings().data_dir
    if accept != bool(slugs or everything):
        raise click.UsageError(
            "Everything is checked; --accept-history takes SLUG… or --all, which go with it alone."
        )
    if accept or reopen:
        _check_reason(reason)
        try:
            if accept:
                _accept(directory, slugs, reason)
            if reopen:
                day = f"{reopen:%Y-%m-%d}"
                Proof(directory).reopen(day, reason)
                click.echo(f"{day} and later days are open again until a clock is confirmed.")
        except LedgerError as error:
            raise click.ClickException(f"{error}.") from None
        except OSError as error:
            raise click.ClickException(
                f"{error.filename or directory / 'proof'}: {error.strerror}."
            ) from None
        return
    # One mistake may be found in two ways.
    problems = sorted(set(problems_in(directory)))
    counts = Counter(problem.severity for problem in problems)
    for problem in problems:
        click.echo(_line(problem))
    numbers = (plural(counts[word], word) for word in ("error", "warning", "notice"))
    click.echo(f"{', '.join(numbers)}.", err=True)
    if counts["error"]:
        raise click.exceptions.Exit(1)


def _check_reason(reason: str) -> None:
    """Refuse a reason that says nothing, or that the ledger cannot hold."""
    if not reason.strip():
        raise click.UsageError('Say why, for everybody who verifies: --reason "…".')
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in "".join(reason.split())):
        raise click.UsageError("A reason is UTF-8 text without control characters.")


def _accept(directory: Path, slugs: Sequence[str], reason: str) -> None:
    """Take the history of these slugs, or of all that lost some, as it is from now on."""
    history = History(directory / "history")
    files = sorted(filter(is_slug, history.signatures()))  # the ledger takes no other names
    if slugs and history.fault:
        raise click.ClickException(f"{history.fault}.")
    for slug in slugs:
        if slug not in files:
            raise click.UsageError(f'No history was ever seen of "{slug}".')
    named = {slug for slug in slugs if _is_unverifiable(directory, slug)}
    lost = [s for s in files if history.fault or s in named or history.read(s).is_lost]
    accepted = [slug for slug in dict.fromkeys(slugs or lost) if slug in lost]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    is_needed = accepted or history.fault
    for entry in Proof(directory).accept(accepted, reason, today) if is_needed else ():
        click.echo(f"history/{entry.file}.jsonl counts as it is: {plural(entry.lines, 'line')}.")
    for slug in dict.fromkeys(slugs):
        if slug not in lost:
            click.echo(f"history/{slug}.jsonl has lost nothing.")
    if not slugs and not lost:
        click.echo("No history is lost.")


def _is_unverifiable(directory: Path, slug: str) -> bool:
    """Return whether a history file is refused by who verifies it, though nothing of it is lost."""
    proof, checked = Proof(directory).read(), CheckedLedger()
    parse(proof[LEDGER], proof[HEADS], checked)
    where = f"history/{slug}.jsonl"
    try:
        check_file(checked, slug, Folder(directory).read(where), where)
    except Difference:
        return True
    return False


def problems_in(directory: Path) -> Iterator[Problem]:
    """Yield everything that is wrong in a data directory's files and history.

    Raises:
        DataDirectoryError: there is no data directory to look at.
    """
    files = Files(directory)
    catalogue = files.scan()
    yield from catalogue.problems
    yield from checks.check_assistants(catalogue, files)
    names = Names(catalogue.products)
    yield from name_clashes(names, files)
    yield from manifest.problems(directory)
    try:
        for name in BatchFiles(directory).owners_gone(catalogue):
            message = f'"{name}" {HAS_OPEN_BATCH} and {NOT_LISTED}'
            yield Problem("models.json", 1, 1, message, "warning")
    except OSError as error:
        yield Problem("batches", 1, 1, f"cannot be looked into: {error.strerror}")
    yield from checks.check_catalogue(catalogue, files)
    yield from searching.remarks(directory, catalogue)
    history, now = History(directory / "history"), datetime.now(UTC)
    try:
        yield from checks.check_history(history, catalogue, files, now)
        yield from checks.check_names(catalogue, files, history)
    except HistoryError as error:
        yield Problem("history", 1, 1, str(error))
    else:
        if history.fault:
            yield history.fault
    yield from unrecordable(directory, history, catalogue.site, now)
    try:
        stored_spending(directory / FOLDER, "")
    except DamagedFileError as error:
        yield Problem(f"{FOLDER}/{SPENDING_FILE}", 1, 1, f"{error}; under a cap nothing is polled")
    except OSError:  # who may not read it does not poll either
        return


def unrecordable(directory: Path, history: History, site: Site, now: datetime) -> Iterator[Problem]:
    """Yield what keeps polls from being recorded: a full disk, a file's mode, a closed day.

    ``history`` was looked into before. The times of a sample are pretended.
    """
    folders = [directory / name for name in ("history", PROOF, FOLDER)]
    places = [folder if folder.is_dir() else directory for folder in folders]
    if is_full(places[0]):
        message = "its disk is full, so that nothing is polled: make room"
        yield Problem("history", 1, 1, message)
    for home, _, names in chain.from_iterable(map(os.walk, folders)):
        places += [Path(home, name) for name in names if name.endswith((".jsonl", ".lock"))]
    paths = [path for path in dict.fromkeys(places) if not os.access(path, os.W_OK)]
    if names := [os.path.relpath(path, directory) for path in paths]:
        names = ["the data directory" if name == "." else name for name in names]
        message = (
            f"this user cannot write {some(names, _PLACES_SHOWN)}, so that polls are not "
            "recorded: is it mounted read-only, or another user's?"
        )
        is_poller = os.geteuid() in (0, directory.stat().st_uid)  # others need only look
        yield Problem(names[0], 1, 1, message, "error" if is_poller else "warning")
    if reason := history.closed_at(rfc3339(now)):
        yield Problem(f"{PROOF}/{HEADS}", 1, 1, reason, "notice" if site.sample else "error")


def _line(problem: Problem) -> str:
    """Return a problem as editors and GitHub's problem matchers read it."""
    mark = "" if problem.severity == "error" else f"{problem.severity}: "
    return f"{problem.file}:{problem.line}:{problem.column}: {mark}{problem.message}"
