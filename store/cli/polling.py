"""``flask poll``: ask the assistants and append what they say to history."""

from __future__ import annotations

import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from flask import current_app
from flask.cli import with_appcontext
from rapidfuzz import process

from store.files import Catalogue, DataDirectoryError, Files
from store.history import History, HistoryError
from store.polls.asking import Unready, check_ready
from store.polls.runner import ANSWERED, LEFT, SKIPPED, Pair, Runner, Tally, due_pairs
from store.polls.sending import Sender
from store.settings import Settings, SettingsError
from store.snapshot import history_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Assistant, Poll


class Instant(click.ParamType[datetime]):
    """A time in UTC, RFC 3339."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Read a time; refuse one without a zone, since nothing is guessed."""
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            time = None
        if time is None or time.tzinfo is None:
            self.fail(f'"{value}" is no time such as 2026-11-02T06:00:00Z', param, ctx)
        return time.astimezone(UTC)


@click.command()
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option("--all", "everything", is_flag=True, help="Poll every category.")
@click.option("--due", is_flag=True, help="Poll only what is due, those waiting longest first.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Ask only this assistant.")
@click.option(
    "--at",
    type=Instant(),
    metavar="TIME",
    help="Pretend it is this time; only for sample assistants.",
)
@with_appcontext
def poll(
    slugs: tuple[str, ...],
    models: tuple[str, ...],
    at: datetime | None,
    *,
    everything: bool,
    due: bool,
) -> None:
    """Ask the assistants and append what they say to history.

    Name categories by SLUG, or use --all or --due. Works beside a running server, which shows the
    new rankings within seconds. Exits with 1 when every poll failed.
    """
    settings: Settings = current_app.extensions["settings"]
    catalogue = _catalogue(settings)
    if not (slugs or everything or due):
        raise click.UsageError("Say what to poll: one or more SLUGs, --all or --due.")
    chosen = _assistants(catalogue, models, at, settings)
    wanted = _categories(catalogue, slugs)
    pairs = [
        Pair(slug, catalogue.categories[slug], assistant) for slug in wanted for assistant in chosen
    ]
    history = History(settings.data_dir / "history")
    every_days = catalogue.site.poll_every_days

    def clock() -> datetime:
        return at or datetime.now(UTC)

    def polls_of(slug: str) -> list[Poll]:
        files = history_files(slug, catalogue.categories[slug], catalogue.categories)
        return [stored.poll for file in files for stored in history.read(file).polls]

    if due:
        polls = {slug: polls_of(slug) for slug in wanted}
        pairs = due_pairs(pairs, polls, every_days, clock())
    if not pairs:
        click.echo("Nothing is due.")
        return
    stop = threading.Event()
    runner = Runner(
        record=history.append,
        polls_of=polls_of,
        locks=settings.data_dir / ".locks",
        secret=settings.secret,
        sender=Sender(stop, settings.proxy),
        stop=stop,
        every_days=every_days,
        now=clock,
        in_order=at is not None,
    )
    tallies = _run(runner, pairs, stop, only_due=due)
    _summarise(tallies)
    polled = sum(tally.polled for tally in tallies.values())
    if polled and not any(tally.outcomes[ANSWERED] for tally in tallies.values()):
        raise click.exceptions.Exit(1)


def _catalogue(settings: Settings) -> Catalogue:
    try:
        return Files(settings.data_dir).scan()
    except DataDirectoryError as error:
        raise click.ClickException(str(error)) from None


def _assistants(
    catalogue: Catalogue, names: Sequence[str], at: datetime | None, settings: Settings
) -> list[Assistant]:
    """The assistants to ask, all of them able to be asked."""
    known = {assistant.name: assistant for assistant in catalogue.assistants}
    for name in names:
        if name not in known:
            raise click.UsageError(
                f'No assistant is called "{name}"; models.json has {", ".join(known)}.'
            )
    chosen = [known[name] for name in names or known]
    if not chosen:
        raise click.ClickException("models.json names no assistant; see `flask check`.")
    if at and any(assistant.api != "sample" for assistant in catalogue.assistants):
        raise click.UsageError("--at is only for data whose assistants are all of api sample.")
    for assistant in chosen:
        try:
            check_ready(assistant, settings.secret)
        except (Unready, SettingsError) as error:
            raise click.ClickException(f"{error}.") from None
    return chosen


def _categories(catalogue: Catalogue, slugs: Sequence[str]) -> list[str]:
    for slug in slugs:
        if slug not in catalogue.categories:
            close = process.extract(slug, list(catalogue.categories), limit=3, score_cutoff=60)
            hint = f" Closest: {', '.join(name for name, *_ in close)}." if close else ""
            raise click.UsageError(f'No category has the slug "{slug}".{hint}')
    return list(dict.fromkeys(slugs)) or list(catalogue.categories)


def _run(
    runner: Runner, pairs: Sequence[Pair], stop: threading.Event, *, only_due: bool
) -> dict[str, Tally]:
    """Run the polls behind a progress bar; Ctrl-C and SIGTERM end them in good order."""
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        with click.progressbar(length=len(pairs), label="Polling") as bar:
            return runner.run(pairs, only_due=only_due, done=lambda: bar.update(1))
    except (HistoryError, OSError) as error:
        raise click.ClickException(f"The polls could not be recorded: {error}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summarise(tallies: dict[str, Tally]) -> None:
    for name, tally in tallies.items():
        failures = [o for o in tally.outcomes if o not in (ANSWERED, SKIPPED, LEFT)]
        order = [ANSWERED, *sorted(failures), SKIPPED, LEFT]
        counted = ", ".join(f"{tally.outcomes[o]} {o}" for o in order if tally.outcomes[o])
        click.echo(f"{name}: {counted}")
        if tally.paused:
            click.echo(f"{name} was paused: {tally.paused}")
