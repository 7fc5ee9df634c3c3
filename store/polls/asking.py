"""Asking one assistant one question: from category to a poll that is ready for history.

The *instrument* is what it is asked with, all but the question, kept as a file. What is not part of
it may differ between two answers that are compared: prices, tier, batches, pace, time-outs, the
larger budget of a second try, and the address of the server.
"""

import logging
import traceback
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from store.disk import write_durably
from store.line_codec import decode_line, encode_line
from store.polls import answers, secrets, spending
from store.polls.answers import Prompt, prompt
from store.polls.batch_files import BatchQuestion
from store.polls.due import Pair
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import Reply, Request, Response
from store.polls.sending import Limits, Sender
from store.polls.spending import Charge
from store.records import (
    Answer,
    Assistant,
    Failure,
    Instrument,
    Poll,
    Usage,
    instrument_id,
)
from store.text import clean

log = logging.getLogger(__name__)

KEPT_CHARACTERS = 300
"""Characters that are kept of a sentence with a provider's words, and of a model's."""
UNEXPECTED = Failure("http", "The provider's reply could not be worked on; the log says why.")
EXAMPLE_TIME = "2026-01-01T00:00:00Z"
"""A time to see by whether a poll can be recorded and read back; its own follows when it is."""
FOLDER = "instruments"


def request_for(assistant: Assistant, question: str, key: str | None = None) -> Request:
    """Return the request that puts a question to an assistant of a real provider."""
    return WIRE_FORMATS[assistant.api].build_request(assistant, prompt(question), key)


def encode_instrument(assistant: Assistant, key: str | None = None) -> bytes:
    """Return what an assistant of a real provider is asked with, as canonical JSON.

    Members are sorted by name, without spaces between them, in UTF-8. It is published, so the key
    is taken out; an assistant with another one in its entry is not asked.
    """
    words = prompt("{question}")
    request = WIRE_FORMATS[assistant.api].build_request(
        replace(assistant, tier=None), Prompt("{system}", "{prompt}"), None
    )
    # the tier changes the price of an answer, and is not known to change the answer
    instrument = Instrument(
        version=1,
        api=assistant.api,
        model=assistant.model,
        web_search=assistant.web_search,
        structured=assistant.structured,
        system=words.system,
        prompt=words.user,
        request=dict(request.body),
    )
    return secrets.redact_body(key, msgspec.json.encode(instrument, order="sorted"))


def keep_instrument(directory: Path, assistant: Assistant, key: str | None) -> str | None:
    """Return the id of what an assistant is asked with, once a data directory has its text.

    A sample assistant is asked nothing, and has none.

    Raises:
        OSError: it could not be written.
    """
    if assistant.api == "sample":
        return None
    data = encode_instrument(assistant, key)
    path = directory / FOLDER / f"{instrument_id(data)}.json"
    if not path.exists():
        write_durably(path, data)  # no record may name a file that a power cut has taken
    return path.stem


def cost_at_most(assistant: Assistant, question: str) -> float | None:
    """Return what asking once may cost at most in US dollars, if the prices are known."""
    if assistant.api == "sample":
        return 0
    if assistant.base_url is None or assistant.model is None:
        return None
    return spending.usd(
        assistant, spending.at_most(assistant, request_for(assistant, question).body)
    )


def estimate_reserve(assistant: Assistant, question: str) -> int:
    """Return the micro-dollars to reserve for asking once; without prices that is nothing."""
    return spending.micros(cost_at_most(assistant, question) or 0)


def reserve_for_each(assistants: Iterable[Assistant], question: str) -> int:
    """Return the micro-dollars that one due question to each of some assistants reserves."""
    priced = (spending.at_reduced_price(one) if one.batch else one for one in assistants)
    return sum(estimate_reserve(one, question) for one in priced)


def ask(pair: Pair, sender: Sender, charge: Charge) -> Reply | None:
    """Ask an assistant a category's question, if it may be sent; ``charge`` has its reserve.

    An unexpected exception is a failure like any other, and its traceback is logged.
    """
    question = pair.category.question
    try:
        reply = sender.send(request_for(pair.assistant, question, sender.secret), charge)
        if reply and reply.failure == "truncated":
            reply = _ask_with_more_room(question, sender, charge, reply)
    except Exception:  # noqa: BLE001 - else one odd reply would end the polls of all others
        return _unexpected(pair.assistant, pair.slug, sender.secret)
    return reply


def read_result(
    assistant: Assistant, item: BatchQuestion, result: Response, note: str, key: str | None
) -> Reply:
    """Return one result of a batch as a reply; the ``assistant`` bears the prices of batches.

    It has no latency, which would be the queue's, and a cut-off answer is not asked for again.
    """
    try:
        reply = WIRE_FORMATS[assistant.api].read_reply(result)
        reply = spending.check_cost(assistant, estimate_reserve(assistant, item.question), reply)
    except Exception:  # noqa: BLE001 - else one odd result would keep all others from history
        reply = _unexpected(assistant, item.slug, key)
    pause = Limits().pause if reply.is_permanent else None
    return replace(reply, notes=(note, *reply.notes), pause=pause)


def _unexpected(assistant: Assistant, slug: str, key: str | None) -> Reply:
    """Return the failure that an unforeseen exception stands for; its trace is logged."""
    trace = secrets.redact(key, traceback.format_exc())
    log.error("asking %s about %s failed unexpectedly: %s", assistant.name, slug, trace)
    return Reply(outcome=UNEXPECTED)


def _ask_with_more_room(question: str, sender: Sender, charge: Charge, first: Reply) -> Reply:
    """Ask again with twice the room after a cut-off answer, unless ``extra`` sets the room."""
    assistant = sender.assistant
    wider = replace(assistant, max_output_tokens=2 * assistant.max_output_tokens)
    # extra may set the room under the name of another server, which is not doubled
    request = request_for(wider, question, sender.secret)
    if request_for(assistant, question).body == request.body:
        return first
    charge.amount = estimate_reserve(wider, question)
    second = sender.send(request, charge) if charge.reserve_again() else None
    if second is None:
        return first
    counts = [reply.tokens for reply in (first, second) if reply.tokens]
    note = "the first answer was cut off; asked again with twice the output limit"
    return replace(
        second,
        tokens=sum(counts[1:], counts[0]) if counts else None,
        notes=tuple(dict.fromkeys((note, *first.notes, *second.notes))),
        attempts=first.attempts + second.attempts,
    )


def poll_of(
    assistant: Assistant, slug: str, question: str, reply: Reply, key: str | None = None
) -> Poll:
    """Return the poll that a reply to a question comes to, without the key.

    One that history could not hold becomes a failure.
    """
    text = reply.outcome
    try:
        parsed = text if isinstance(text, Failure) else answers.read(text)
        answer = parsed if isinstance(parsed, Answer) else None
        failure = parsed if isinstance(parsed, Failure) else None
        error = quote(failure.error, key) if failure else None
        if failure and failure.excerpt:
            error = f'{error} It begins: "{quote(failure.excerpt, key)}"'
        usage = None
        if tokens := reply.tokens:
            cost = spending.price_of(assistant, reply)
            usage = Usage(tokens.input, tokens.output, cost, tokens.searches)
        attempts = (f"sent {reply.attempts} times",) if reply.attempts > 1 else ()
        poll = Poll(
            slug=slug,
            model=assistant.name,
            question=question,
            pick=answer.ranking[0].product if answer else None,
            ranking=answer.ranking if answer else (),
            reason=answer.ranking[0].reason if answer else None,
            missed=answer.missed if answer else (),
            caveat=answer.caveat if answer else None,
            error=error,
            failure=failure.kind if failure else None,
            notes=tuple(map(clean, (*reply.notes, *attempts, *parsed.notes))),
            served_model=reply.served_model,
            request_id=reply.request_id,
            web_search=assistant.web_search,
            latency_ms=reply.latency_ms,
            usage=usage,
        )
        # once more, for cleaning may have joined a key that hidden characters parted
        poll = msgspec.convert(secrets.redact(key, msgspec.to_builtins(poll)), Poll)
        decode_line(encode_line(poll, EXAMPLE_TIME)[1][:-1])
    except Exception:  # else one odd reply would end the polls of all others
        if text is UNEXPECTED:
            raise
        failed = replace(_unexpected(assistant, slug, key), notes=reply.notes)
        return poll_of(assistant, slug, question, failed, key)
    return poll


def quote(text: str, key: str | None) -> str:
    """Return text from outside, cleaned and cut; the key goes between, so that none is left."""
    whole: str = secrets.redact(key, clean(text), part=secrets.FAILURE_PART)
    return whole if len(whole) <= KEPT_CHARACTERS else f"{whole[:KEPT_CHARACTERS]}…"
