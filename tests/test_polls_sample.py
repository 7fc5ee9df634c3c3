"""The sample assistants' promises: pure, plainly invented, varied, and shared among neighbours."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from statistics import mean

import pytest
from builders import category
from hypothesis import given
from hypothesis import strategies as st

from store.polls import answer_parsing, sample
from store.polls.sample.opinions import EPOCH, TREND, ranked, trend
from store.polls.sample.products import Invented
from store.polls.sample.subjects import subject_of
from store.records import Answer, Failure

ASSISTANTS = ("Model A", "Model B", "Model C", "Model D")
AT = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
WEEK = dt.timedelta(days=7)

HEADS = (
    "CRM software", "project management software", "email marketing software", "help desk software",
    "payroll software", "accounting software", "password manager", "VPN", "note-taking app",
    "website builder", "vector database", "code editor", "language learning app", "savings account",
    "video streaming service", "flight booking site", "meal kit delivery service", "laptop",
    "beach destination", "smartphone", "gaming monitor", "mechanical keyboard", "portable SSD",
    "wireless earbuds", "mirrorless camera", "power bank", "smartwatch", "smart lock", "3D printer",
    "digital piano", "mattress", "bed sheets", "office chair", "espresso machine", "air fryer",
    "nonstick pan", "chef knife", "water bottle", "robot vacuum", "air purifier", "cordless drill",
    "lawn mower", "electric car", "backpacking tent", "carry-on luggage", "running shoes",
    "rain jacket", "stroller", "dog bed", "olive oil", "coffee beans", "board game", "PC game",
)  # fmt: skip
TOPICS = tuple(
    pattern.format(head)
    for head in HEADS
    for pattern in ("{}", "budget {}", "{} for beginners", "{} for families")
)
KNOWN = {topic.lower().replace(" ", "-"): category(f"Best {topic}") for topic in TOPICS}


@cache
def replied(slug: str, assistant: str, at: dt.datetime) -> sample.SampleReply:
    """What an assistant replies when it is asked about a known topic."""
    return sample.reply(slug, KNOWN[slug], assistant, at)


def read(outcome: str | Failure) -> Answer | Failure:
    """What a poll would make of a reply: failures of either sort are one."""
    return outcome if isinstance(outcome, Failure) else answer_parsing.read(outcome)


@pytest.fixture(scope="module")
def spoken() -> dict[tuple[str, str], Answer | Failure]:
    """Every assistant's answer to every topic, at one time."""
    return {
        (slug, name): read(replied(slug, name, AT).reply.outcome)
        for slug in KNOWN
        for name in ASSISTANTS
    }


@pytest.fixture(scope="module")
def answered(spoken: dict[tuple[str, str], Answer | Failure]) -> dict[tuple[str, str], Answer]:
    """The successful ones of them."""
    return {cell: answer for cell, answer in spoken.items() if isinstance(answer, Answer)}


ResolvedAnswer = dict[tuple[str, str], Answer]


def test_the_same_question_at_the_same_time_gets_the_same_reply() -> None:
    """A reply is a function of its arguments, in another process and another zone too."""
    here = sample.reply("laptop", KNOWN["laptop"], "Model C", AT)
    zone = dt.timezone(dt.timedelta(hours=5))
    assert sample.reply("laptop", KNOWN["laptop"], "Model C", AT.astimezone(zone)) == here
    program = (
        "import datetime as dt; from builders import category; from store.polls import sample;"
        " print(repr(sample.reply('laptop', category('Best laptop'), 'Model C',"
        " dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC))))"
    )
    path = f"import sys; sys.path[:0] = {sys.path!r}; "
    there = subprocess.run(
        [sys.executable, "-c", path + program],
        capture_output=True, check=True, text=True, env={"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert there.stdout.strip() == repr(here)


def test_asked_again_an_assistant_answers_otherwise() -> None:
    """Repeats of a day are draws of their own, each the same whenever it is made again."""

    def drawn(repeat: int) -> sample.SampleReply:
        return sample.reply("laptop", KNOWN["laptop"], "Model C", AT, repeat)

    replies = [drawn(repeat) for repeat in range(5)]
    assert len(set(map(repr, replies))) == 5
    assert replies == [drawn(repeat) for repeat in range(5)]
    assert drawn(0) == sample.reply("laptop", KNOWN["laptop"], "Model C", AT)


def test_repeats_differ_as_answers_of_real_models_do() -> None:
    """Asked twice an assistant seldom gives the same list, and often the same first place."""
    days = (AT - EPOCH) / dt.timedelta(days=1)
    pairs = [
        [[p.name for p in ranked(slug, KNOWN[slug], name, days, n)[:5]] for n in (1, 2)]
        for slug in list(KNOWN)[::2]
        for name in ASSISTANTS
    ]
    assert 0.0 < mean(one == two for one, two in pairs) < 0.1
    assert 0.55 < mean(one[0] == two[0] for one, two in pairs) < 0.75


def test_every_domain_is_an_example_domain(spoken: dict[tuple[str, str], Answer | Failure]) -> None:
    """Nothing that is sent names a host outside .example, in whatever form it is written."""
    for slug, name in spoken:
        outcome = replied(slug, name, AT).reply.outcome
        if isinstance(outcome, str):
            written = re.findall(r'"domain":"(?:https?://)?([^/"]*)', outcome)
            assert all(host.endswith(".example") for host in written)


def test_some_domains_are_missing_and_some_are_addresses(answered: ResolvedAnswer) -> None:
    """The cases that a reader of real models meets occur, and stay rare."""
    domains = [pick.domain for answer in answered.values() for pick in answer.ranking]
    assert 0.01 < domains.count(None) / len(domains) < 0.1
    assert all(domain is None or domain.endswith(".example") for domain in domains)


@pytest.mark.parametrize(
    ("topic", "noun", "kind"),
    [
        ("dog grooming clippers", "dog grooming clippers", "pet"),
        ("rechargeable batteries", "rechargeable battery", "power"),
        ("light switches", "light switch", "smarthome"),
        ("food waste app", "food waste app", "generic software"),
        ("online custom suit service", "online custom suit service", "generic service"),
        ("app for making friends", "app", "social"),
    ],
)
def test_a_topic_names_one_thing_of_a_kind(topic: str, noun: str, kind: str) -> None:
    """Nouns are told in the singular, and software about food is software."""
    subject = subject_of(topic, ())
    assert (subject.noun, subject.kind.name) == (noun, kind)


def test_an_assistant_may_add_the_noun_to_a_name() -> None:
    """Now and then a bare name carries what the product is, as people write it."""
    asked = category("Best accounting software for nonprofits", nouns=("accounting",))
    slug = "accounting-software-for-nonprofits"
    heard = [read(sample.reply(slug, asked, name, AT).reply.outcome) for name in ASSISTANTS]
    names = {pick.product for one in heard if isinstance(one, Answer) for pick in one.ranking}
    assert {"Nettleby", "Nettleby Accounting"} <= names


def test_neighbouring_categories_share_most_products(answered: ResolvedAnswer) -> None:
    """A free or budget variant, or one for some people, draws on the same pool."""

    def named(slug: str) -> set[str]:
        cells = (answered.get((slug, name)) for name in ASSISTANTS)
        return {pick.product for answer in cells if answer for pick in answer.ranking}

    shared = []
    for head in HEADS:
        plain = named(head.lower().replace(" ", "-"))
        variant = named(f"budget-{head}".lower().replace(" ", "-"))
        shared.append(len(plain & variant) / max(1, min(len(plain), len(variant))))
    assert mean(shared) > 0.5
    assert not named("crm-software") & named("mattress")


def test_about_three_polls_in_a_hundred_fail_in_several_ways() -> None:
    """Failures are rare, of many kinds, and depend on the time: asking again helps."""
    outcomes = [
        read(replied(slug, name, AT + hour * dt.timedelta(hours=6)).reply.outcome)
        for slug in KNOWN
        for name in ASSISTANTS
        for hour in range(2)
    ]
    kinds = Counter(outcome.kind for outcome in outcomes if isinstance(outcome, Failure))
    assert 0.02 < kinds.total() / len(outcomes) < 0.04
    assert {"timeout", "rate_limited", "http", "network"} <= set(kinds)
    assert {"parse", "schema", "empty"} <= set(kinds)
    assert max(kinds.values()) < kinds.total() / 2


def test_agreement_is_of_every_kind() -> None:
    """Over many topics first places are unanimous, three to one, split and all different."""
    days = (AT - EPOCH) / dt.timedelta(days=1)
    kinds = Counter(
        tuple(sorted(Counter(firsts).values(), reverse=True))
        for slug, asked in KNOWN.items()
        if (firsts := [ranked(slug, asked, name, days)[0].name for name in ASSISTANTS])
    )
    share = {kind: count / len(KNOWN) for kind, count in kinds.items()}
    assert 0.14 < share[(4,)] < 0.32
    assert 0.2 < share[(3, 1)] < 0.4
    assert 0.25 < share[(2, 2)] + share[(2, 1, 1)] < 0.5
    assert 0.03 < share[(1, 1, 1, 1)] < 0.16


def test_first_places_drift_slowly() -> None:
    """From week to week some first places change; within a day hardly any does."""
    cells = [(slug, name) for slug in list(KNOWN)[::2] for name in ASSISTANTS]

    def changed(between: dt.timedelta) -> float:
        days = [(at - EPOCH) / dt.timedelta(days=1) for at in (AT, AT + between)]
        firsts = [
            [ranked(slug, KNOWN[slug], name, day)[0].name for day in days] for slug, name in cells
        ]
        return sum(before != after for before, after in firsts) / len(firsts)

    assert changed(dt.timedelta(hours=12)) < 0.03
    assert 0.03 < changed(WEEK) < 0.15


def test_some_products_appear_after_a_date() -> None:
    """A product with a launch is in nobody's answer before its day, and in answers after it."""
    launched = {
        product.name: product.launch
        for slug, asked in KNOWN.items()
        for product in ranked(slug, asked, "Model A", 100_000.0)
        if product.launch > 0
    }
    assert launched
    early = {
        product.name
        for slug, asked in KNOWN.items()
        for product in ranked(slug, asked, "Model A", 0.0)
        if product.launch > 0
    }
    assert not early & set(launched)


def test_a_trend_rises_and_falls() -> None:
    """A fashionable product is liked more at one time than at another; the others are not."""
    calm = Invented("Calm", "calm.example", 0.0, 0.0, 0.0)
    moving = Invented("Moving", "moving.example", 0.0, 0.0, 100.0)
    heights = [trend(moving, day) for day in range(200)]
    assert max(heights) == TREND / 2
    assert min(heights) == -TREND / 2
    assert all(abs(after - before) < 0.1 for before, after in pairwise(heights))
    assert trend(calm, 3.0) == 0


def test_each_assistant_has_a_voice(answered: ResolvedAnswer) -> None:
    """The four differ in length, in wording and in whether they compare with other products."""
    reasons = {
        name: [
            (pick.reason or "", answer.ranking)
            for (_, asked), answer in answered.items()
            if asked == name
            for pick in answer.ranking
        ]
        for name in ASSISTANTS
    }
    length = {name: mean(len(reason) for reason, _ in told) for name, told in reasons.items()}
    assert length["Model A"] < min(length[name] for name in ASSISTANTS[1:])
    compares = {
        name: mean(any(p.product in reason for p in ranking) for reason, ranking in told)
        for name, told in reasons.items()
    }
    assert compares["Model D"] > 0.8
    assert compares["Model A"] < 0.1


def test_any_name_has_a_voice() -> None:
    """An operator may call a sample assistant anything."""
    for name in ("Model A", "Zoë", "  ", "4", "a/b Model"):
        told = sample.reply("laptop", KNOWN["laptop"], name, AT)
        assert told == sample.reply("laptop", KNOWN["laptop"], name, AT)


written = st.text(min_size=1, max_size=60).map(str.strip).filter(bool)


@given(written, st.lists(written, max_size=3), st.text())
def test_any_category_gets_a_reply(title: str, nouns: list[str], assistant: str) -> None:
    """Whatever a curator writes, a text or a failure comes back."""
    odd = category(title, nouns=tuple(nouns))
    assert sample.reply("odd", odd, assistant, AT).latency_ms > 0


def test_no_sentence_stands_twice_in_an_answer(answered: ResolvedAnswer) -> None:
    """No two products of an answer are praised, or found wanting, in the same words."""
    for answer in answered.values():
        reasons = [pick.reason for pick in answer.ranking]
        fixes = [fix for pick in answer.ranking for fix in pick.fixes]
        missed = [miss.reason for miss in answer.missed]
        for texts in (reasons, fixes, missed):
            assert len(set(texts)) == len(texts)
        names = [pick.product for pick in answer.ranking] + [m.product for m in answer.missed]
        assert len({name.casefold() for name in names}) == len(names)


def test_texts_are_whole_sentences_of_a_readable_length(answered: ResolvedAnswer) -> None:
    """Every text begins with a capital or a name, ends in a full stop and left no gap unfilled."""
    for answer in answered.values():
        texts = [pick.reason or "" for pick in answer.ranking]
        texts += [fix for pick in answer.ranking for fix in pick.fixes]
        texts += [miss.reason or "" for miss in answer.missed]
        texts += [answer.caveat] if answer.caveat else []
        for text in texts:
            assert text.endswith(".")
            assert not text[0].islower()
            assert not {"{", "}", "|"} & set(text)
            assert "  " not in text
            assert 10 < len(text) < 260
    lengths = [len(pick.reason or "") for a in answered.values() for pick in a.ranking]
    assert 100 < mean(lengths) < 150


def test_answers_have_the_expected_shape_and_size(answered: ResolvedAnswer) -> None:
    """Mostly five picks, a caveat and near misses, in about a kilobyte and a half of text."""
    counts = Counter(len(answer.ranking) for answer in answered.values())
    assert counts[5] > 0.75 * len(answered)
    assert set(counts) <= {3, 4, 5}
    assert all(answer.missed for answer in answered.values())
    assert 0.02 < mean(answer.caveat is None for answer in answered.values()) < 0.25
    assert any(answer.notes for answer in answered.values())
    texts = (replied(slug, name, AT).reply.outcome for slug, name in answered)
    assert 1300 < mean(len(text.encode()) for text in texts if isinstance(text, str)) < 1700


def test_a_reply_says_who_served_it_and_what_it_took() -> None:
    """Latency differs by assistant; model, request and tokens look like a provider's."""
    latencies = {
        name: mean(replied(slug, name, AT).latency_ms for slug in KNOWN) for name in ASSISTANTS
    }
    assert len({round(latency, -2) for latency in latencies.values()}) == len(ASSISTANTS)
    whole = replied("laptop", "Model A", AT).reply
    assert whole.served_model == "sample-a-2026-10"
    assert whole.request_id
    assert whole.tokens is not None
    assert isinstance(whole.outcome, str)
    assert 200 < whole.tokens.output < 800


def test_a_successor_is_another_product() -> None:
    """Some makers offer two versions in a row, which no reader may take for one."""
    names = {
        product.name
        for slug, asked in KNOWN.items()
        for product in ranked(slug, asked, "Model A", 500.0)
    }
    pairs = [
        name
        for name in names
        if name[-1] in "2345678" and f"{name[:-1]}{int(name[-1]) + 1}" in names
    ]
    assert len(pairs) > 5
