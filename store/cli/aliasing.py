"""``flask aliases``: situations by which search finds a category, suggested and accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from store.cli import app_settings, plural, with_data
from store.cli.editing import Edit, carry_out, text_of, with_item
from store.cli.poll_runs import PollContext, lack, look_at
from store.cli.polling import assistants_named, categories_named, context_at
from store.disk import atomic_write
from store.files import Files
from store.polls.runner import sender_for
from store.polls.sending import Skipped
from store.polls.spending import Budget
from store.polls.suggesting import suggest as ask_for_situations
from store.records import Assistant, Category, Failure
from store.settings import NOT_THE_SAMPLE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


FOLDER = ".suggested"
"""Where suggestions wait, one file for each category; nothing but these commands reads it."""
ORDER = tuple(field.encode_name for field in msgspec.structs.fields(Category))


class Suggestions(Struct, frozen=True):
    """What waits for a curator's word on one category."""

    situations: tuple[str, ...]


@click.group()
def aliases() -> None:
    """Collect situations in which somebody needs a category; search finds it by them.

    An assistant suggests, a curator accepts or rejects. Accepting prints the diff it wrote, which
    `git apply -R` in the data directory takes back.
    """


@aliases.command()
@click.argument("slug")
@click.option("--model", required=True, metavar="NAME", help="Ask this assistant of models.json.")
@with_data
def suggest(slug: str, model: str) -> None:
    """Ask an assistant in which situations somebody needs SLUG, and queue what it says.

    One call, paid like a poll and counted under daily_usd; nothing is shown to readers before it
    is accepted.
    """
    context = context_at(None)
    settings = context.settings
    categories_named(context.catalogue, [slug])
    (assistant,) = assistants_named(context.catalogue, [model])
    if assistant.api == "sample":
        raise click.ClickException(f"{model} is a sample assistant: it has nothing to suggest.")
    if not settings.has_own_data:
        raise click.ClickException(f"Nothing was asked: {NOT_THE_SAMPLE}.")
    queued = Queue(settings.data_dir)
    waiting = queued.of(slug)
    new = [text for text in _asked(context, assistant, slug) if text not in waiting]
    queued.put(slug, (*waiting, *new))
    click.echo(f"{plural(len(new), 'suggestion')} more; `flask aliases queue {slug}` shows them.")


@aliases.command()
@click.argument("slug", required=False)
@with_data
def queue(slug: str | None) -> None:
    """List what waits to be accepted or rejected, for SLUG or all categories."""
    queued = Queue(app_settings().data_dir)
    for each in [slug] if slug else queued.slugs():
        for number, text in enumerate(queued.of(each), start=1):
            click.echo(f"{each} {number}: {text}")


@aliases.command()
@click.argument("slug")
@click.argument("numbers", nargs=-1, type=int, metavar="[NUMBER]...")
@with_data
def accept(slug: str, numbers: tuple[int, ...]) -> None:
    """Write the suggestions of SLUG with these NUMBERs, or all, into its file."""
    directory = app_settings().data_dir
    queued = Queue(directory)
    chosen, left = queued.split(slug, numbers)
    name = f"categories/{slug}.json"
    before = after = text_of(directory, name)
    category = Files(directory).scan().categories[slug]
    for text in chosen:
        if text not in category.situations:
            after = with_item(after, "situations", text, ORDER)
    edit = Edit(name, before, after)
    carry_out(directory, [edit])
    queued.put(slug, left)
    click.echo(edit.diff, nl=False)


@aliases.command()
@click.argument("slug")
@click.argument("numbers", nargs=-1, type=int, metavar="[NUMBER]...")
@with_data
def reject(slug: str, numbers: tuple[int, ...]) -> None:
    """Drop the suggestions of SLUG with these NUMBERs, or all."""
    queued = Queue(app_settings().data_dir)
    dropped, left = queued.split(slug, numbers)
    queued.put(slug, left)
    click.echo(f"{plural(len(dropped), 'suggestion')} dropped.")


class Queue:
    """The suggestions that wait in a data directory."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER

    def slugs(self) -> list[str]:
        """The categories with suggestions."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def of(self, slug: str) -> tuple[str, ...]:
        """The suggestions of a category, in the order in which they are numbered.

        Raises:
            click.ClickException: the file is damaged.
        """
        path = self._folder / f"{slug}.json"
        if path not in self._folder.glob("*.json"):
            return ()
        try:
            return msgspec.json.decode(path.read_bytes(), type=Suggestions).situations
        except ValueError as error:
            said = f"{FOLDER}/{path.name} cannot be read: {error}. Delete it, or mend it."
            raise click.ClickException(said) from None

    def split(self, slug: str, numbers: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The suggestions with these numbers, or all, and those that are left.

        Raises:
            click.UsageError: nothing waits, or not under one of the numbers.
        """
        waiting = dict(enumerate(self.of(slug), start=1))
        if not waiting:
            raise click.UsageError(f'No suggestion waits for "{slug}"; see `flask aliases queue`.')
        if wrong := [str(number) for number in numbers if number not in waiting]:
            raise click.UsageError(
                f"No suggestion of {slug} has the number {', '.join(wrong)}: they go from 1 to "
                f"{len(waiting)}."
            )
        chosen = numbers or tuple(waiting)
        left = tuple(text for number, text in waiting.items() if number not in chosen)
        return tuple(waiting[number] for number in dict.fromkeys(chosen)), left

    def put(self, slug: str, texts: tuple[str, ...]) -> None:
        """Keep these suggestions of a category and no others."""
        path = self._folder / f"{slug}.json"
        if not texts:
            path.unlink(missing_ok=True)
            return
        self._folder.mkdir(exist_ok=True)
        body = msgspec.json.encode(Suggestions(texts))
        atomic_write(path, msgspec.json.format(body, indent=2) + b"\n")


def _asked(context: PollContext, assistant: Assistant, slug: str) -> tuple[str, ...]:
    """What an assistant suggests; one that cannot be asked, or says nothing, ends the command."""
    catalogue = context.catalogue
    capped = catalogue.site.daily_usd is not None
    stands, _ = look_at(context, catalogue.categories if capped else ())
    accounts = context.accounts(stands)
    faults = (context.clock.fault(), *(account.fault() for account in accounts))
    if why := next(filter(None, (lack(context.settings, assistant, accounts), *faults)), None):
        raise click.ClickException(f"Nothing was asked: {why}")
    sender = sender_for(assistant, context.dependencies(context.record, accounts))
    said = ask_for_situations(assistant, catalogue.categories[slug], sender, Budget(accounts))
    if isinstance(said, Skipped):
        raise click.ClickException(f"Nothing was asked: {said.why}.")
    if isinstance(said, Failure):
        raise click.ClickException(f"{assistant.name} gave no suggestion: {said.error}")
    return said
