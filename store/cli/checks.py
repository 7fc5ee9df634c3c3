"""Checks of ``flask check`` beyond mistakes that keep a file from being loaded."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from rapidfuzz import fuzz, process

from store import category_history
from store.data_file import JsonPath
from store.files import Catalogue, Files
from store.history import History, PollLine
from store.polls.asking import cost_at_most, reserve_for_each
from store.polls.due import most_answers
from store.polls.providers import WIRE_FORMATS, queue_of
from store.polls.providers.wire import LOOPBACK, of_host
from store.polls.secrets import KEY_NAME, KEY_OWNERS, faults, looks_like_a_key
from store.polls.spending import micros, missing_prices
from store.rankings import curation, merging
from store.rankings import names as naming
from store.rankings.curation import NameResolution
from store.rankings.mention_trends import TREND_WINDOW
from store.rankings.products import ProductProfile
from store.rankings.sentences import listed, plural, some
from store.records import TOPICS, Assistant, Poll, Problem, Severity, Site
from store.search.words import words_of
from store.snapshot import Snapshot, derive
from store.store import find_unknown_withheld

_BAD_START = re.compile(r"(best|the)\b", re.IGNORECASE)
_STOPS = tuple(".,;:!?\u2026")
_LONGEST_INTERVAL = TREND_WINDOW.days  # with more, no pair is polled in both windows of a trend
_SLUGS_SHOWN = 5
_NAMES_SHOWN = 3  # of names, and of places of one
_BARE = 10  # categories without situations that are told: of fewer, a reader sees all at once
_UNKNOWN = "unknown"  # the newest poll of a file that cannot be read, or that lost some

_SENT = "; its value is sent to the host of base_url"

_Mistake = tuple[str | None, str, Literal["error", "warning"]]
"""A member of an assistant, or ``None`` for the whole; a sentence; how grave it is."""


def check_catalogue(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield warnings about what is allowed but probably not meant."""
    for slug, category in catalogue.categories.items():
        start = _BAD_START.match(category.subject)
        if start or category.subject.endswith(_STOPS):
            fault = f'does not start with "{start[0]}"' if start else "does not end in punctuation"
            key: JsonPath = ("topic",) if category.topic else ("title",)
            message = f'"for {category.subject}" stands in verdicts: a topic {fault}'
            yield files.problem_at(f"categories/{slug}.json", key, message, "warning")
    yield from _topics(catalogue, files)
    yield from _same_questions(catalogue, files)
    yield from _misleading_aliases(catalogue, files)
    yield from _without_situations(catalogue)
    site = catalogue.site
    if site.poll_every_days > _LONGEST_INTERVAL:
        message = (
            f"poll_every_days is {site.poll_every_days}: above {_LONGEST_INTERVAL} nothing is "
            "polled in both weeks of a trend, and every trend is insufficient"
        )
        yield files.problem_at("site.json", ("poll_every_days",), message, "warning")
    yield from _daily_limit(catalogue, files)


def _daily_limit(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield a warning if daily_usd is too small to be shared by all assistants; 0 is meant."""
    daily = catalogue.site.daily_usd
    question = next((category.question for category in catalogue.categories.values()), "")
    if daily and micros(daily) < (most := reserve_for_each(catalogue.assistants, question)):
        message = (
            f"daily_usd is {daily:g}: one question to each assistant may cost {most / 1e6:.4f} "
            "USD, and with less a day nothing that is due is asked"
        )
        yield files.problem_at("site.json", ("daily_usd",), message, "warning")


def _same_questions(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield the categories that ask what another one asks, which is paid for twice."""
    owners: dict[str, str] = {}
    for slug, category in catalogue.categories.items():
        owner = owners.setdefault(category.question.casefold(), slug)
        if owner != slug:
            message = f'"{category.question}" is also the question of {owner}: it is asked twice'
            yield files.problem_at(f"categories/{slug}.json", ("question",), message, "warning")


def _misleading_aliases(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield the aliases that are another category's title, which searches would then not find."""
    owners = {words_of(category.title): slug for slug, category in catalogue.categories.items()}
    for slug, category in catalogue.categories.items():
        for i, alias in enumerate(category.aliases):
            owner = owners.get(words_of(alias), slug)
            if owner != slug:
                message = f'"{alias}" is the title of {owner}; searches for that would come here'
                path = f"categories/{slug}.json"
                yield files.problem_at(path, ("aliases", i), message, "warning")


def _without_situations(catalogue: Catalogue) -> Iterator[Problem]:
    """Yield which categories name no situation, and what that costs searches.

    The shares are of 208 judged questions about the shipped catalogue, with and without.
    """
    bare = sorted(slug for slug, item in catalogue.categories.items() if not item.situations)
    if len(bare) >= _BARE:
        shown = ", ".join(bare[:_SLUGS_SHOWN]) + (", \u2026" if bare[_SLUGS_SHOWN:] else "")
        message = (
            f"{len(bare):,} of {len(catalogue.categories):,} categories have no situations "
            f"({shown}): of questions in other words than a title's, 4 of 10 find the right one "
            "first, 8 with situations and aliases; write who needs the thing, and when"
        )
        yield Problem("categories", 1, 1, message, "notice")


def _topics(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield categories in no topic; none without topics."""
    parts = (part for topic in catalogue.topics for part in topic.parts)
    listed = {catalogue.renamed.get(slug, slug) for part in parts for slug in part.categories}
    for slug in sorted(catalogue.categories.keys() - listed) if catalogue.topics else ():
        message = f"the category is in no topic; list it in a part of {TOPICS}"
        yield files.problem_at(f"categories/{slug}.json", (), message, "warning")


def check_history(
    history: History, catalogue: Catalogue, files: Files, now: datetime
) -> Iterator[Problem]:
    """Yield lines that are damaged or yet to come, and where sound lines contradict other files."""
    models: Counter[str] = Counter()
    of_samples = 0
    newest = dict.fromkeys(history.signatures(), "")
    ids: set[str] = set()
    named: dict[str, PollLine] = {}
    files_of = _files(catalogue, newest)
    ahead: dict[str, list[PollLine]] = {}
    is_lost = is_damaged = False
    for slug, own in files_of.items():
        logs = [history.read(file) for file in own]
        stored, problems = category_history.sound_polls(logs, catalogue.withheld)
        yield from problems
        if late := category_history.from_the_future(stored, catalogue.withheld, now):
            ahead[slug] = late
        polls = category_history.under_present_names(
            (line.poll for line in stored), catalogue.former_names
        )
        models.update(poll.model for poll in polls)
        named = {str(x.poll.instrument): x for x in stored[::-1] if x.poll.instrument} | named
        of_samples += sum(poll.is_invented for poll in polls)
        ids.update(poll.id for poll in polls)
        newest |= {line.file: line.poll.polled_at for line in stored}
        newest |= {log.file: _UNKNOWN for log in logs if log.is_lost}
        is_lost |= any(log.is_lost for log in logs)
        is_damaged |= bool(problems)
        if slug in catalogue.categories:
            yield from _rewording(slug, polls, catalogue, files)
    polled = sum(any(map(newest.get, own)) for own in files_of.values())
    yield from _future_polls(ahead, polled, now, "notice" if catalogue.site.sample else "error")
    if not is_lost:  # else the poll may stand in what is lost, and must stay withheld
        unknown = catalogue.withheld.keys() - ids
        yield from find_unknown_withheld(unknown, files, is_damaged=is_damaged)
    yield from _without_text(named, catalogue)
    if all(problem.file != "site.json" for problem in catalogue.governing_errors):
        yield from filter(None, [category_history.undeclared_sample(of_samples, catalogue.site)])
    yield from _retired(models, catalogue)
    never = [slug for slug in catalogue.categories if not any(map(newest.get, files_of[slug]))]
    if never:
        message = f"{_counted(never)} never been polled; `flask poll --due` asks for what is due"
        yield Problem("history", 1, 1, message, "notice")
    orphans = [slug for slug in files_of if slug not in catalogue.categories]
    if left := [slug for slug in orphans if not catalogue.fault_of("categories", slug)]:
        message = f"{_counted(left)} no category any more; if one was renamed, list its old slug"
        yield Problem("history", 1, 1, f"{message} in former_slugs", "notice")


def _without_text(named: Mapping[str, PollLine], catalogue: Catalogue) -> Iterator[Problem]:
    """Yield the instruments that a line names and no file describes."""
    unseen = named.keys() if "instruments" in catalogue.unusable else catalogue.instruments.keys()
    for instrument in sorted(named.keys() - unseen):
        first = named[instrument]
        message = (
            f"it was asked with the instrument {instrument}, and instruments/{instrument}.json is "
            "missing or damaged, so nobody can read how; put it back from a copy"
        )
        yield Problem(f"history/{first.file}.jsonl", first.line, 1, message)


def _retired(models: Mapping[str, int], catalogue: Catalogue) -> Iterator[Problem]:
    """Yield assistants of history that models.json no longer has, and what a new round costs."""
    names = {assistant.name for assistant in catalogue.assistants}
    unasked = [assistant for assistant in catalogue.assistants if assistant.name not in models]
    for model in sorted(models.keys() - names) if names else ():
        message = f'"{model}" is retired: its {models[model]:,} polls count in no ranking'
        if unasked:
            questions = [category.question for category in catalogue.categories.values()]
            choice = " or ".join(f'"{assistant.name}"' for assistant in unasked)
            message += (
                f"; if it was renamed, list it in former_names of {choice}, whose new round "
                f"is else {_cost(unasked, questions, catalogue.site, 2)}"
            )
        yield Problem("models.json", 1, 1, message, "warning" if unasked else "notice")


def _cost(
    assistants: Sequence[Assistant], questions: Sequence[str], site: Site, decimals: int
) -> str:
    """Return how many polls a first round of these takes, and what they cost at most."""
    costs = [cost_at_most(assistant, q) for assistant in assistants for q in questions]
    times = most_answers(site)
    price = "at a price that models.json does not give"
    if None not in costs:
        price = f"for at most {times * sum(filter(None, costs)):.{decimals}f} USD"
    return f"{plural(times * len(costs), 'poll')} {price}"


def _future_polls(
    ahead: Mapping[str, Sequence[PollLine]], polled: int, now: datetime, severity: Severity
) -> Iterator[Problem]:
    """Yield the polls dated in the future; if this machine's clock is to blame, that alone."""
    newest = {slug: max(s.poll.polled_at for s in late) for slug, late in ahead.items()}
    if doubt := category_history.doubt_clock(newest, polled, now):
        yield Problem(".", 1, 1, doubt, severity)
        return
    for stored in (stored for late in ahead.values() for stored in late):
        poll = stored.poll
        message = (
            f"a poll of {poll.polled_at}, which is yet to come (it is {now:%Y-%m-%d %H:%M} UTC): "
            "its clock was wrong, or this machine's is; it counts, and its category is not "
            f'polled, until it is withheld: flask withhold {poll.id} --reason "wrong clock"'
        )
        yield Problem(f"history/{stored.file}.jsonl", stored.line, 1, message, severity)


def _files(catalogue: Catalogue, names: Iterable[str]) -> dict[str, Sequence[str]]:
    """Return the history files by category; one that belongs to none is under its own name."""
    files: dict[str, Sequence[str]] = {
        slug: category_history.history_files(slug, catalogue.categories)
        for slug in sorted(catalogue.categories)
    }
    owned = {file for own in files.values() for file in own}
    return files | {slug: [slug] for slug in sorted(names) if slug not in owned}


def _rewording(
    slug: str, polls: Sequence[Poll], catalogue: Catalogue, files: Files
) -> Iterator[Problem]:
    """Yield what a new wording still costs, where some assistant has answered only another."""
    category = catalogue.categories[slug]
    answered = {(category.wording(p.question), p.model) for p in polls if p.succeeded}
    unasked = [a for a in catalogue.assistants if (category.question, a.name) not in answered]
    if unasked and any(question != category.question for question, _ in answered):
        message = (
            f"a new question, yet to be answered by {listed([a.name for a in unasked])}: "
            f"{_cost(unasked, [category.question], catalogue.site, 4)}; the answers to the one "
            f"before stand until all have answered, {merging.TAKEOVER_DAYS} days after the first "
            "at most; if both mean the same, list the one before in former_questions"
        )
        yield files.problem_at(f"categories/{slug}.json", ("question",), message, "notice")


def _counted(slugs: list[str]) -> str:
    """Return a count of slugs with its verb, the first few by name: ``3 slugs (a, b, c) have``."""
    shown = ", ".join(slugs[:_SLUGS_SHOWN]) + (", …" if len(slugs) > _SLUGS_SHOWN else "")
    return f"1 slug ({shown}) has" if len(slugs) == 1 else f"{len(slugs):,} slugs ({shown}) have"


def check_names(catalogue: Catalogue, files: Files, history: History) -> Iterator[Problem]:
    """Yield the names in history that a product file takes in or lets go, unsaid."""
    if not catalogue.products:
        return
    snapshot = derive(None, catalogue, history)
    yield from _taken_in(snapshot, files)
    yield from _detached(snapshot, files)
    yield from _without_effect(snapshot, files)


def _taken_in(snapshot: Snapshot, files: Files) -> Iterator[Problem]:
    groups: defaultdict[tuple[str, str], list[NameResolution]] = defaultdict(list)
    for resolution in curation.find_inferred(snapshot.aggregates.values(), snapshot.names):
        groups[resolution.product, resolution.rule].append(resolution)
    for (slug, rule), resolutions in groups.items():
        taken = [
            f'"{resolution.spelling}" ({some(resolution.places, _NAMES_SHOWN)})'
            for resolution in sorted(resolutions, key=lambda m: (-len(m.places), m.spelling))
        ]
        addresses = sorted({naming.slug(resolution.spelling) for resolution in resolutions})
        message = (
            f'takes in {some(taken, _NAMES_SHOWN)} by the rule "{rule}": what is the same product '
            "belongs in aliases; what is not, by its address, in not_same_as "
            f"({some(addresses, _NAMES_SHOWN)})"
        )
        yield files.problem_at(f"products/{slug}.json", ("name",), message, "notice")


def _detached(snapshot: Snapshot, files: Files) -> Iterator[Problem]:
    for slug, product in curation.find_detached(snapshot.products, snapshot.names):
        message = (
            f'"{product.name}" ({_uses(product)}) is neither the name nor an alias, so it ranks '
            f"as another product, at {product.slug}: put it in aliases if it is this one, else "
            f"{product.slug} in not_same_as"
        )
        yield files.problem_at(f"products/{slug}.json", ("name",), message, "warning")


def _without_effect(snapshot: Snapshot, files: Files) -> Iterator[Problem]:
    """Yield what product files say of names that no answer has, and so changes nothing."""
    spellings = sorted({use.name for use in curation.uses(snapshot.aggregates.values())})
    keys, files_of = set(map(naming.key, spellings)), snapshot.catalogue.products
    addresses = {*snapshot.product_slugs, *files_of, *map(naming.slug, spellings)}
    for slug, product in files_of.items() if spellings else ():
        texts: dict[JsonPath, str] = {("aliases", i): a for i, a in enumerate(product.aliases)}
        texts |= {} if slug in snapshot.products else {("name",): product.name}
        messages = {
            place: f'no answer names "{text}"{_closest(text, spellings)}'
            for place, text in texts.items()
            if naming.key(text) not in keys
        }
        messages |= {
            ("not_same_as", i): f'no product is at "{other}"{_closest(other, addresses)}'
            for i, other in enumerate(product.not_same_as)
            if other not in addresses and naming.key(other) not in keys
        }
        for place, message in messages.items():
            yield files.problem_at(f"products/{slug}.json", place, message, "notice")


def _closest(text: str, others: Iterable[str]) -> str:
    """Return the end of a sentence that names what a mistyped text may stand for."""
    close = process.extractOne(text, others, scorer=fuzz.ratio, score_cutoff=curation.ALIKE)
    return f'; did you mean "{close[0]}"?' if close else ""


def _uses(product: ProductProfile) -> str:
    """Return how often and where a product is named."""
    return f"{plural(product.mentions, 'poll')} in {some(product.categories, _NAMES_SHOWN)}"


def check_assistants(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield what is wrong with each assistant beyond the schema of models.json, with its place.

    `flask poll` prints it, too. While the file does not fit its schema there are no assistants.
    """
    for number, assistant in enumerate(catalogue.assistants):
        for member, message, severity in _mistakes_of(assistant, catalogue):
            place: JsonPath = ("models", number, member) if member else ("models", number)
            yield files.problem_at("models.json", place, message, severity)


def _mistakes_of(assistant: Assistant, catalogue: Catalogue) -> Iterator[_Mistake]:
    for member, fault in faults(assistant):
        yield member, fault, "error"
    if not looks_like_a_key(assistant.key_env) and (doubt := doubtful_key(assistant)):
        yield "key_env", doubt, "warning"
    address = urlsplit(assistant.base_url or "")
    is_plain = address.scheme == "http" and address.hostname not in LOOPBACK
    if is_plain and assistant.key_env is not None:
        yield "base_url", "the key would travel unencrypted; use https", "warning"
    if assistant.batch and (why := why_no_batches(assistant)):
        yield "batch", why, "error"
    provider = WIRE_FORMATS.get(assistant.api)
    if assistant.tier and not (provider and of_host(provider.FLEX, assistant)):
        why = 'only OpenAI and Gemini are known here to have a flex tier; take "tier" out'
        yield "tier", why, "error"
    if catalogue.site.daily_usd is not None and (missing := missing_prices(assistant)):
        message = f"this assistant has no {listed(missing)}, which daily_usd of site.json needs"
        yield None, message, "error"


def doubtful_key(assistant: Assistant) -> str | None:
    """Return why what is sent as the key may not be meant for the host that is asked, if so."""
    host = urlsplit(assistant.base_url or "").hostname or ""
    if assistant.key_env is None or host in LOOPBACK:
        return None
    owner = KEY_OWNERS.get(assistant.key_env)
    if owner is None:
        is_named = KEY_NAME.search(assistant.key_env.upper())
        message = "this does not look like the name of an API key's variable"
        return None if is_named else message + _SENT
    if host == owner or host.endswith(f".{owner}"):
        return None
    return "this variable holds the key of another provider" + _SENT


def why_no_batches(assistant: Assistant) -> str | None:
    """Return why an assistant cannot be asked in batches, as far as models.json tells."""
    if queue_of(assistant) is None:
        return (
            'no queue for batches is known here of this api at the host of base_url; take "batch" '
            'out, and where the provider has one, "tier": "flex" costs the same'
        )
    if assistant.web_search:
        return "batches are asked without web_search; set one of the two to false"
    if assistant.tier == "flex":
        return 'a batch has its own price; set "batch" to false or take "tier" out'
    return None
