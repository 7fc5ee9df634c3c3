"""One tiny question to an assistant: whether its key, model, price and clock are right."""

from __future__ import annotations

from msgspec.structs import replace

from store.polls.assistant_checks import Unready
from store.polls.poller import Desk
from store.polls.prices import at_most, micros, price_of, usd
from store.polls.providers import Prompt
from store.polls.providers.registry import PROVIDERS
from store.polls.sending import Sent
from store.polls.spending import Charge
from store.records import Assistant, Failure
from store.settings import SettingsError

PROMPT = Prompt("You are asked whether you can be reached.", "Answer with the word OK.")


def attempt(desk: Desk, assistant: Assistant) -> tuple[str, bool]:
    """Ask an assistant whether it is there; return a sentence, and whether it answered.

    Nothing is recorded but what it cost.
    """
    name = assistant.name
    if assistant.api == "sample":
        return f"{name}: a sample assistant, always there and free", True
    plain = replace(assistant, structured="prompt", web_search=False)
    try:
        sender = desk.sender(plain)
        request = PROVIDERS[plain.api].build_request(plain, PROMPT, sender.secret)
        charge = Charge(desk.budget, micros(usd(plain, at_most(plain, request.body)) or 0))
        if not charge.reserve():
            return f"{name}: not asked, for {desk.budget.reached(charge.amount)}", False
        sent = sender.send(request, PROVIDERS[plain.api].read_reply, charge)
    except (Unready, SettingsError, OSError) as error:
        return f"{error}.", False
    if not isinstance(sent, Sent):
        return f"{name}: not asked; {sent.reason or 'it was stopped'}", False
    reply = sent.reply
    if isinstance(reply.outcome, Failure):
        return f"{name}: {reply.outcome.error}", False
    cost = price_of(plain, reply)
    price = "at a price that models.json does not give" if cost is None else f"{cost:.6f} USD"
    tier = f" in tier {reply.tier}" if assistant.tier else ""
    model = reply.served_model or "a model without a name"
    sentence = f"{name}: {model} answers{tier} after {sent.latency_ms} ms, {price}"
    return f"{sentence}, its clock as this machine's", True
