"""Asking an assistant for situations in which somebody needs a category, for search to find it by.

What comes back is a suggestion to a curator; nothing of it is used before one has accepted it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.cleaning import clean
from store.polls import answer_parsing, secrets
from store.polls.asking import PROVIDERS
from store.polls.providers import Prompt
from store.polls.sending import Skipped
from store.polls.spending import Meter
from store.records import Failure

if TYPE_CHECKING:
    from store.polls.sending import Sender
    from store.polls.spending import Budget
    from store.records import Assistant, Category

ASKED_FOR = 20
"""Situations that are asked for. The shipped categories have 16 to 20 each."""
MAX_SITUATIONS = 40
"""Situations of one answer that are kept: a list without end is no answer."""
LONGEST = 100
"""Characters of a situation; one that is longer describes several, and is left out."""

SYSTEM = (
    "You write short descriptions of situations for a search index. Answer with one JSON object "
    "and nothing else."
)


class _Said(Struct):
    situations: list[str]


msgspec.json.Decoder(_Said)  # prepares the type while no other thread does; see tests/test_house.py


def prompt(category: Category) -> Prompt:
    """The prompt that asks for situations; what the category has already is not to come again."""
    known = "; ".join((*category.aliases, *category.situations))
    return Prompt(
        SYSTEM,
        f'Somebody may need what this question asks for: "{category.question}"\n\n'
        f"Write {ASKED_FOR} descriptions of different situations, 3 to 9 words each, lower case, "
        "as people would type or say them, mostly without the words of the question: the cause, "
        "the symptom, the place, the person or trade, the job to be done, what went wrong, other "
        "common words for the thing. No brand names, and nothing so general that it would fit "
        f"other things.{f' These are known: {known}.' if known else ''}\n\n"
        'Answer with this JSON object only:\n{"situations": ["…"]}',
    )


def suggest(
    assistant: Assistant, category: Category, sender: Sender, budget: Budget
) -> tuple[str, ...] | Failure | Skipped:
    """Ask an assistant of a real provider for situations; those that are known are left out."""
    plain = msgspec.structs.replace(assistant, structured="prompt", web_search=False)
    provider = PROVIDERS[assistant.api]
    request = provider.build_request(plain, prompt(category), sender.secret)
    sent = sender.send(request, provider.read_reply, Meter(plain, request.body, budget))
    if isinstance(sent, Skipped):
        return sent
    said = sent.reply.outcome
    found = said if isinstance(said, Failure) else read(secrets.without(sender.secret, said))
    if isinstance(found, Failure):
        return found
    known = {text.casefold() for text in (*category.aliases, *category.situations)}
    return tuple(text for text in found if text.casefold() not in known)


def read(text: str) -> tuple[str, ...] | Failure:
    """Read a model's text: each situation once, cleaned; raises nothing."""
    value = answer_parsing.read_object(text)
    if isinstance(value, Failure):
        return value
    try:
        said = msgspec.convert(value, _Said)
    except msgspec.ValidationError as error:
        return Failure("schema", f"The answer does not have the asked-for shape: {error}.")
    texts = (clean(each).rstrip(".") for each in said.situations[:MAX_SITUATIONS])
    found = dict.fromkeys(each for each in texts if each and len(each) <= LONGEST)
    return tuple(found) or Failure("empty", "The model answered without a single situation.")
