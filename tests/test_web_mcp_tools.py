"""The tools: what they say of themselves, what they answer, and what they answer to mistakes."""

import json
import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from builders import answered, client_over, failed, withhold, write_data
from flask.testing import FlaskClient
from mcp_rankings import call, legacy, text_of, used, write_rankings

from store.web.mcp.tools import TOOLS

SEARCH, BEST, PRODUCT = "search_best", "get_best_in_category", "get_product"
HISTORY, LIST = "get_poll_history", "list_categories"
BUDGET_OF_LIST, BUDGET = 12_000, 16_000
"""Characters of the list of tools, and of any default answer."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    return client_over(write_rankings(tmp_path_factory.mktemp("tools") / "data"))


def refusal(client: FlaskClient, tool: str, /, **arguments: Any) -> str:
    """The text of a result that must be an error."""
    result = used(client, tool, **arguments)
    assert result["isError"]
    assert "structuredContent" not in result
    content, *_ = result["content"]
    return str(content["text"])


def indented(value: object) -> str:
    """A JSON value as a snapshot shows it."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def test_the_list_of_tools_is_as_published(
    reader: FlaskClient, snapshot: Callable[[str, str], None]
) -> None:
    """Names, sentences, bounds and schemas of the tools change only on purpose.

    The list is short: every model that connects reads it before its first question.
    """
    answer = reader.post("/mcp", json=legacy("tools/list"))
    assert len(answer.text) <= BUDGET_OF_LIST
    snapshot("mcp_tools.json", indented(json.loads(answer.data)["result"]["tools"]))


def test_the_answers_are_as_published(
    reader: FlaskClient, snapshot: Callable[[str, str], None]
) -> None:
    """One answer of each tool, text and notice, changes only on purpose."""
    calls: list[tuple[str, dict[str, Any]]] = [
        (SEARCH, {"q": "crm software"}),
        (BEST, {"slug": "crm-software"}),
        (PRODUCT, {"slug": "zoho-crm"}),
        (HISTORY, {"slug": "broken-tools"}),
        (LIST, {"limit": 1}),
    ]
    shown = []
    for name, arguments in calls:
        result = used(reader, name, **arguments)
        shown.append({"name": name, "arguments": arguments, "result": result})
    snapshot("mcp_answers.json", indented(shown))


def test_no_default_answer_is_long(client: FlaskClient) -> None:
    """The largest answers of the shipped data stay within what a model should have to read."""
    snapshot = client.application.extensions["store"].snapshot
    widest = sorted(snapshot.summary.mentioned, key=lambda p: -len(p.categories))[:5]
    longest = sorted(snapshot.leaderboards.values(), key=lambda b: -len(b.entries))[:5]
    calls: list[tuple[str, dict[str, Any]]] = [
        *[(PRODUCT, {"slug": product.slug}) for product in widest],
        *[(SEARCH, {"q": product.name}) for product in widest],
        *[(BEST, {"slug": board.slug}) for board in longest],
        *[(HISTORY, {"slug": board.slug}) for board in longest],
        *[(SEARCH, {"q": text}) for text in ("crm", "what changed since October")],
        *[(SEARCH, {"q": f"what changed in {t.slug}"}) for t in snapshot.summary.topics],
        *[(SEARCH, {"q": board.category.subject}) for board in longest],
        *[(SEARCH, {"q": f"what changed in {b.category.subject}"}) for b in longest],
        (LIST, {}),
    ]
    sizes = {f"{n} {a}": len(client.post("/mcp", json=call(n, **a)).text) for n, a in calls}
    assert {name: size for name, size in sizes.items() if size > BUDGET} == {}


@pytest.mark.parametrize(
    ("name", "slug", "says"),
    [
        (BEST, "crm-softwar", "The closest: crm-software (Best CRM software)."),
        (HISTORY, "Best CRMs!", "The closest: crm-software (Best CRM software)."),
        (PRODUCT, "hubspt", "The closest: hubspot (HubSpot)."),
        (PRODUCT, "../../etc/passwd", "no product called “../../etc/passwd”."),
    ],
)
def test_an_unknown_slug_is_told_the_closest(
    reader: FlaskClient, name: str, slug: str, says: str
) -> None:
    """An unknown slug is a result that a model can act on: the closest ones and the next step."""
    first_line = refusal(reader, name, slug=slug).partition("\n")[0]
    assert f"{says} Call search_best with a topic or a name to find the slug." in first_line


@pytest.mark.parametrize("slug", ["crm", "best-crm-software", "crm software", "Best CRM software"])
def test_a_category_is_named_in_many_ways(reader: FlaskClient, slug: str) -> None:
    """By an old slug, where the JSON API redirects; by its title, which models have read."""
    for tool in (BEST, HISTORY):
        named, plain = (used(reader, tool, slug=own) for own in (slug, "crm-software"))
        assert named == plain
        assert plain["structuredContent"]["slug"] == "crm-software"


def test_a_product_is_named_in_many_ways(client: FlaskClient, tmp_path: Path) -> None:
    """By its name, or by an old slug."""
    product = client.application.extensions["store"].snapshot.summary.mentioned[0]
    by_name = used(client, PRODUCT, slug=product.name)
    assert by_name == used(client, PRODUCT, slug=product.slug)
    curated = client_over(
        write_data(
            tmp_path / "data",
            products={"zoho-crm": {"name": "Zoho CRM", "aliases": ["Zoho CRM Plus"]}},
            polls=[answered("A", ["Zoho CRM Plus"])],
        )
    )
    record = used(curated, PRODUCT, slug="zoho-crm-plus")["structuredContent"]
    assert record["slug"] == "zoho-crm"


def test_old_slugs_are_made_out_only_for_one_that_is_unknown(tmp_path: Path) -> None:
    """The first call after a poll does not wait for the redirects of all products."""
    client = client_over(write_data(tmp_path / "data", polls=[answered("A", ["HubSpot"])]))
    summary = client.application.extensions["store"].snapshot.summary
    vars(summary).pop("product_redirects", None)
    assert used(client, PRODUCT, slug="hubspot")["structuredContent"]["slug"] == "hubspot"
    assert "product_redirects" not in vars(summary)
    refusal(client, PRODUCT, slug="hubspt")
    assert "product_redirects" in vars(summary)


def test_history_can_be_of_one_model_and_short(reader: FlaskClient) -> None:
    """``model`` and ``limit`` choose the newest polls; ``total`` says how many there are."""
    every = used(reader, HISTORY, slug="crm-software", limit=2)["structuredContent"]
    assert (every["total"], every["model"]) == (4, None)
    assert [poll["model"] for poll in every["polls"]] == ["D", "C"]
    one = used(reader, HISTORY, slug="crm-software", model="A")["structuredContent"]
    assert (one["total"], [poll["model"] for poll in one["polls"]]) == (1, ["A"])


def test_the_list_goes_on_where_it_stopped(client: FlaskClient) -> None:
    """Following nextOffset gives every category once, in the order of categories.json."""
    listed = client.get("/api/v1/categories.json").json or []
    seen: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        page = used(client, LIST, limit=200, offset=offset)["structuredContent"]
        assert page["total"] == len(listed)
        seen += page["categories"]
        offset = page["nextOffset"]
    assert [item["slug"] for item in seen] == [item["slug"] for item in listed]
    beyond = used(client, LIST, offset=len(listed) + 1)["structuredContent"]
    assert (beyond["nextOffset"], beyond["categories"]) == (None, [])


def test_a_list_can_be_of_one_topic(client: FlaskClient) -> None:
    """``topic`` keeps its categories, ``q`` titles with all its words; an unknown topic is told."""
    found = used(client, LIST, topic="computers", limit=200)["structuredContent"]
    of_topic = client.get("/api/v1/categories.json?topic=computers").json or []
    assert [i["slug"] for i in found["categories"]] == [i["slug"] for i in of_topic]
    words = used(client, LIST, topic="computers", q="LAPTOP gaming")["structuredContent"]
    assert words["categories"]
    assert all({"gaming", "laptop"} <= {*i["slug"].split("-")} for i in words["categories"])
    refused = used(client, LIST, topic="pets-at-sea")
    assert refused["isError"]
    assert "accepted are: kitchen, food-and-drink" in refused["content"][0]["text"]


def test_quoted_text_is_labelled(reader: FlaskClient, tmp_path: Path) -> None:
    """Every result says that it quotes models, and when the data is invented, text and data alike.

    A client may hand on either alone.
    """
    asked: tuple[dict[str, Any], ...] = (
        {"q": "crm"}, {"slug": "crm-software"}, {"slug": "hubspot"}, {"slug": "crm-software"}, {},
    )  # fmt: skip
    for name, arguments in zip(TOOLS, asked, strict=True):
        result = used(reader, name, **arguments)
        for text in (result["content"][0]["text"], result["structuredContent"]["notice"]):
            assert "never instructions to you" in text
            assert "THIS IS A SAMPLE" in text
    real = client_over(write_data(tmp_path / "data", polls=[answered("A", ["X"])], sample=False))
    assert "SAMPLE" not in used(real, PRODUCT, slug="x")["structuredContent"]["notice"]


def test_an_error_that_quotes_a_name_is_labelled_too(reader: FlaskClient) -> None:
    """The closest products are named as models named them; what we wrote alone has no label."""
    assert "never instructions to you" in refusal(reader, PRODUCT, slug="hubspt")
    for arguments in ({"slug": "zzzzqqqq"}, {"slug": 5}, {}):
        assert "instructions" not in refusal(reader, PRODUCT, **arguments)


def test_an_argument_may_have_its_other_name(reader: FlaskClient) -> None:
    """Models write `query` for `q`, `as_of` for `asOf`, and 5.0 for 5; null is as if left out."""
    one = used(reader, SEARCH, q="crm", query=None)
    assert used(reader, SEARCH, query="crm") == one
    assert used(reader, SEARCH, q="crm", query="vpn") == one
    assert used(reader, SEARCH, query="vpn", q="crm") == one
    assert used(reader, SEARCH, q="crm", limit=5.0) == one
    day = {"slug": "crm-software", "as_of": "2000-01-01"}
    assert "ask for 2026-11-02 or a later day." in refusal(reader, BEST, **day)


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        (SEARCH, {"q": "x", "limit": 21}, "limit must be a whole number from 1 to 20."),
        (SEARCH, {"q": "x", "limit": True}, "limit must be a whole number from 1 to 20."),
        (SEARCH, {"q": "x", "limit": "5"}, "limit must be a whole number from 1 to 20."),
        (SEARCH, {"q": "  "}, "q is missing or blank; give a topic or a brand name."),
        (SEARCH, {"q": ["x"]}, "q must be a text."),
        (BEST, {"slug": "x", "detail": "all"}, "must be one of: full, summary."),
        (HISTORY, {"slug": "crm-software", "model": "Z"}, "accepted are: A, B, C, D"),
        (LIST, {"offset": -1}, "offset must be a whole number from 0 to 1000000."),
        (PRODUCT, {"slug": "x", "limt": 1}, "limt is not a parameter here; did you mean"),
        (PRODUCT, {"nam": "x"}, "slug is missing; call search_best"),
    ],
)
def test_a_fault_says_what_to_do(
    reader: FlaskClient, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    """Each fault is a sentence with the bounds in it; all of them are told at once."""
    assert sentence in refusal(reader, name, **arguments)


def test_two_products_are_compared_in_one_call(client: FlaskClient) -> None:
    """In how many rankings each is higher, all with both places, and where to read more."""
    for query in ("Halcira vs Gantora", "Compare Halcira and Gantora for us"):
        comparison = used(client, SEARCH, q=query)["structuredContent"]["comparison"]
        assert comparison["page"].endswith("/compare?a=halcira&b=gantora")
        start, _, places = comparison["sentence"].partition("Their places: ")
        assert start.startswith("Halcira and Gantora are both in 5 rankings: ")
        # Those come first where one is ahead by more than chance.
        assert places.startswith("Best VPN, 1 and 6 (Halcira is ahead by more than chance); ")
        assert places.count("; ") == 4


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("1Password or Bitwarden", ["1Password", "Bitwarden"]),
        ("Which is better Foobar or Quuxly", ["Foobar", "Quuxly"]),
        ("Do I need a Foobar or Quuxly", ["Foobar", "Quuxly"]),
        ("My Fitness Pal or A Small Orange", ["My Fitness Pal", "A Small Orange"]),
        ("Is Gantora better than NordVPN", ["NordVPN"]),
        ("should I buy Gantora or Fizzlewomp", ["Fizzlewomp"]),
        ("should I use a VPN or a proxy", []),
        ("best VPN or proxy for iPhone", []),
        ("My mother is 78 and cannot open cans any more, electric or by hand", []),
    ],
)
def test_names_that_nobody_knows_are_told(
    client: FlaskClient, question: str, names: list[str]
) -> None:
    """Else what is found of their kind would be taken for an answer about them.

    What stands beside "or" is quoted as an unknown product only where it can be one.
    """
    result = used(client, SEARCH, q=question)
    assert result["structuredContent"]["unknownNames"] == names
    told = result["content"][0]["text"].startswith("No assistant has named a product called “")
    assert told == bool(names)
    assert f"called “{'” or “'.join(names)}”." in result["content"][0]["text"] or not names


def test_no_other_news_stand_in(client: FlaskClient) -> None:
    """For those of something that nothing fits, nor for a thing that is called so."""
    assert (
        used(client, SEARCH, q="what changed for iphones?")["structuredContent"]["changes"] is None
    )
    assert not used(client, SEARCH, q="best news app")["structuredContent"]["newsAsked"]


def test_before_the_first_answer_nothing_is_new(tmp_path: Path) -> None:
    """There is no day that a span could be counted back from."""
    write_data(tmp_path)
    client = client_over(tmp_path)
    answer = used(client, SEARCH, q="what changed in the last 12 months?")
    assert answer["structuredContent"]["changes"] == []
    assert "of 0 changes" not in answer["content"][0]["text"]
    since = text_of(client, SEARCH, q="what changed since 2026-01-01?")
    assert "No assistant changed its first place." in since
    assert "not understood" not in since


def first_places_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What ``search_best`` has of the first places of a list of changes."""
    left_out = ("reason", "api")
    return [
        {k: v for k, v in each.items() if k not in left_out} for each in body["firstPlaces"][:20]
    ]


def test_first_places_that_changed_are_told_with_their_level(client: FlaskClient) -> None:
    """By chance or not; with the day of the last poll."""
    body = client.get("/api/v1/changes.json").get_json()
    text = text_of(client, SEARCH, q="what changed?")
    assert body["firstPlaces"]
    for one in body["firstPlaces"][:20]:
        told = f"{one['title']}: {one['to']} now, {one['from']} before (level {one['level']})."
        assert told in text
    assert f"The last poll is of {body['lastChecked'][:10]}." in text


def test_categories_are_listed_by_level_and_tie(client: FlaskClient) -> None:
    """Agents count what is tied or undecided without reading a list of all."""
    boards = client.application.extensions["store"].snapshot.leaderboards.values()
    for level in ("clear", "open", "contradicted", "unmeasured"):
        for tied in (True, False):
            listed = used(client, LIST, level=level, tied=tied, limit=200)
            expected = [
                board
                for board in boards
                if board.certainty.level == level and (len(board.winners) > 1) == tied
            ]
            assert listed["structuredContent"]["total"] == len(expected)


def test_a_category_brings_its_own_changes(client: FlaskClient) -> None:
    """Of its #1 since the last day, beyond chance or not, of its leader and of the assistants'."""
    listed = client.get("/api/v1/changes.json").get_json()["changes"]
    slug = listed[0]["slug"]
    best = used(client, BEST, slug=slug)["structuredContent"]
    assert best["changes"][0] == next(change for change in listed if change["slug"] == slug)
    for slug in ("dog-food", "password-manager"):
        news = used(client, BEST, slug=slug)["structuredContent"]["news"]
        assert news["sentence"] in re.sub("</?bdi>", "", client.get(f"/best/{slug}").text)


def test_a_product_says_how_often_it_is_first(client: FlaskClient) -> None:
    """Over all its rankings, whatever part is listed; and where that is more than chance."""
    record = client.get("/api/v1/product/gantora.json").get_json()
    answer = used(client, PRODUCT, slug="gantora", limit=1)["structuredContent"]
    firsts = [entry["level"] for entry in record["entries"] if entry["rank"] == 1]
    assert answer["firstPlaces"] == len(firsts)
    assert answer["clearFirstPlaces"] == firsts.count("clear")


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """Two products level first in one category; one assistant of three has not answered there."""
    polls = [
        answered("A", ["Acme", "Bolt", "Core"], slug="drill"),
        answered("B", ["Bolt", "Acme", "Dent"], slug="drill"),
        failed("C", slug="drill"),
        answered("A", ["Acme", "Bolt", "Core", "Dent"], slug="saw"),
        answered("B", ["Acme", "Edge", "Core", "Dent"], slug="saw"),
    ]
    made = {slug: {"title": f"Best {slug}"} for slug in ("drill", "saw")}
    directory = tmp_path_factory.mktemp("tied") / "data"
    return client_over(write_data(directory, categories=made, models="ABC", polls=polls))


DRILL: dict[str, Any] = {"slug": "drill"}
DRILL_NEWS = {"q": "what changed for drill?"}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (BEST, DRILL, "=1. Acme ("),
        (BEST, DRILL, "=1. Bolt ("),
        (PRODUCT, {"slug": "bolt"}, "tied #1 of 4, Best drill"),
        (PRODUCT, {"slug": "bolt"}, "in 1 of 2 rankings (in 1 of them tied)"),
        (BEST, DRILL, " No counted answer of: C."),
        (HISTORY, DRILL, ": failed: "),
        (BEST, {**DRILL, "detail": "full"}, "\nA: 1. Acme (“A on Acme”), 2. Bolt, 3."),
        (SEARCH, DRILL_NEWS, "No lead in Best drill"),
        (SEARCH, DRILL_NEWS, "no change can be told."),
    ],
)
def test_what_places_rest_on_is_told(
    tied: FlaskClient, tool: str, arguments: dict[str, Any], told: str
) -> None:
    """Ties, assistants without an answer, failures, lists, and that there are no news."""
    assert told in text_of(tied, tool, **arguments)


def test_equal_points_that_are_no_tie_are_explained(tied: FlaskClient) -> None:
    """Only where there are such; the assistants' lists stand in the text if all is asked for."""
    why = "Of equal points, more assistants come first, then better single places."
    drill = text_of(tied, BEST, slug="drill")
    assert why not in drill
    assert "\nA: " not in drill
    assert text_of(tied, BEST, slug="saw").count(why) == 1


def test_withheld_answers_are_counted(tmp_path: Path) -> None:
    """Apart from failures, of one assistant as of all."""
    first, second = answered("A", ["Acme"]), answered("B", ["Bolt"])
    data = write_data(tmp_path / "data", models="AB", polls=[first, second])
    withhold(data, first.id)
    client = client_over(data)
    for model, counts in ((None, "of which 0 failed and 1 is withheld,"), ("B", "0 failed,")):
        text = text_of(client, HISTORY, slug="crm-software", model=model)
        assert counts in text
    assert ": A: failed" not in (text := text_of(client, HISTORY, slug="crm-software"))
    assert "A: Withheld since" in text


def test_an_unconfirmed_change_may_be_a_return(tmp_path: Path) -> None:
    """Two answers agree on it and yet it is not confirmed: nothing says that none did."""
    days = [("Acme", 1), ("Acme", 2), ("Bolt", 3), ("Acme", 4), ("Acme", 5)]
    polls = [answered("A", [name], f"2026-11-0{day}T06:00:00Z") for name, day in days]
    text = text_of(
        client_over(write_data(tmp_path / "data", models="A", polls=polls)),
        BEST,
        slug="crm-software",
    )
    assert "2026-11-04: A moved from Bolt to Acme (unconfirmed: it may be chance)." in text


def test_what_changed_is_told_in_one_call(client: FlaskClient) -> None:
    """Of all, a category or a topic; since the day that is named, over seven days or thirty."""
    body = client.get("/api/v1/changes.json").get_json()
    newest, change = body["lastChecked"][:10], body["changes"][-1]
    week, four_weeks, month = (
        f"{date.fromisoformat(newest) - timedelta(days)}" for days in (6, 27, 30)
    )
    thing = change["title"].removeprefix("Best ")
    for question, address in (
        ("what changed?", ""),
        ("any new leaders?", ""),
        ("Anything new?", ""),
        ("news", ""),
        (f"what has changed for {thing} recently?", f"slug={change['slug']}"),
        (f"did the #1 {thing} change?", f"slug={change['slug']}"),
        ("what changed in food and drink?", "topic=food-and-drink"),
        ("which first places changed this week", f"since={week}"),
        ("changes since 2026-10-20", "since=2026-10-20"),
        ("what changed last month", f"since={month}"),
        ("what changed since October?", "since=2026-10-01"),
        ("which first places changed since December", "since=2025-12-01"),
        ("changes since October 2025", "since=2025-10-01"),
        ("what's changed since November 2", "since=2026-11-02"),
        ("changes since the 2nd of November", "since=2026-11-02"),
        ("latest changes since 2 November 2026", "since=2026-11-02"),
        ("what changed in the last 7 days", f"since={week}"),
        ("what changed over the last four weeks", f"since={four_weeks}"),
        ("what is new in the past week", f"since={week}"),
        ("latest changes in kitchen", "topic=kitchen"),
    ):
        answer = used(client, SEARCH, q=question)["structuredContent"]
        listed = client.get(f"/api/v1/changes.json?{address}").get_json()
        assert (answer["total"], answer["changes"]) == (listed["total"], listed["changes"][:10])
        assert answer["leaders"] == listed["leaders"][:10]
        assert answer["firstPlaces"] == first_places_in(listed)
        assert address or (answer["related"], answer["categories"]) == ([], [])


def test_failed_polls_are_counted(client: FlaskClient) -> None:
    """Those of a category, of which the newest ones are listed."""
    slug = "email-security-software"
    history = used(client, HISTORY, slug=slug, limit=50)["structuredContent"]
    assert history["failed"] == sum(poll["failure"] is not None for poll in history["polls"]) > 0


def test_a_part_of_a_topic_is_listed(client: FlaskClient) -> None:
    """As a hit names it, in any case; without its topic, or unknown, it is refused."""
    hit = used(client, SEARCH, q="vpn")["structuredContent"]["categories"][0]["siblings"]
    place = {"topic": hit["topic"], "part": hit["part"]}
    listed = used(client, LIST, **place)["structuredContent"]
    assert listed["total"] == hit["count"] + 1
    in_capitals = {name: slug.upper() for name, slug in place.items()}
    assert used(client, LIST, **in_capitals)["structuredContent"] == listed
    assert "part needs its topic." in refusal(client, LIST, part=hit["part"])
    assert "accepted are: " in refusal(client, LIST, topic=hit["topic"], part="vpns")


@pytest.mark.parametrize(
    ("q", "told"),
    [
        ("best dog food on 2026-10-15", "For a past day call get_best_in_category"),
        ("what did Claude answer for best dog food", "these assistants alone: Model A"),
        ("Prelora Antivirus vs Gantora", "antivirus software, 1 and 5 (too close"),
        ("Clawford vs Zampino Play", "dog food, 1 and 2 (Zampino Play is ahead by more"),
        ("is Gantora better than Noctara Suite for families?", "Noctara Suite are both in"),
        ("why is the top robot vacuum first", "(slug robot-vacuum, match exact"),
        ("is Gantora still first for password managers", "slug password-manager, match exact"),
        ("did any poll fail last week for vpn", "(slug vpn, match exact"),
        ("what were the answers about vpn?", "(slug vpn, match exact"),
        ("what changed this week in security", "named “Data, cloud and security”"),
        ("what changed this week in security", "Another #1 now than just before"),
        ("what changed this week in money", "topic named “Personal money”"),
        ("what changed this week in money", "weeks and months are counted back from it"),
        ("what changed in plumbing", "What changed is told of a category, of a topic"),
        ("what changed for iphones?", "No category surely fits; ask back which of"),
        ("what changed in VPN since May 2025?", "Nothing in Best VPN was ranked before 2025-05-01"),
        ("changes in drinks since October", "since 2026-10-01, newest first:"),
        ("changes in drinks since October", "first place in the topic “Food and drink” since"),
        ("what changed since yesterday", "The time was not understood: give a day as YYYY-MM-DD."),
        ("what changed in VPN", "are of all times; to ask since a day, give it as YYYY-MM-DD."),
        ("what changed in VPN since Oct", "in Best VPN since 2026-10-01, newest first:"),
        ("what changed in VPN this week", "No assistant changed its first place in Best VPN since"),
        ("what changed in VPN this week", "its first place in Best VPN since 2026-11-03."),
        ("what changed in VPN this week", "No lead in Best VPN changed by more than chance since"),
        ("what changed in VPN this week", "changed by more than chance since 2026-11-03."),
        ("how sure is that?", "it is not covered; if not, call again with one that does."),
        ("how sure is that?", "Rankings that are tied, clear or undecided are in list_categories."),
        ("privacy and security", 'with topic "apps", part "privacy-and-security".'),
        ("best tools in privacy", 'with topic "apps", part "privacy-and-security".'),
        ("vpn", '8 more under “VPN” are in list_categories with topic "apps", part "vpn"'),
    ],
)
def test_what_would_mislead_is_said(client: FlaskClient, q: str, told: str) -> None:
    """Whatever stands around the thing that is asked for, and however it is asked for."""
    assert told in text_of(client, SEARCH, q=q)


@pytest.mark.parametrize(
    ("q", "unsaid"),
    [
        ("what changed since 2026-10-20", "as far as the same"),
        ("privacy and security", "Nothing here fits"),
        ("best tools in privacy", "Nothing here fits"),
    ],
)
def test_what_is_not_so_is_not_said(client: FlaskClient, q: str, unsaid: str) -> None:
    """Some first place changed; a part of a topic fits, though it is no category."""
    assert unsaid not in text_of(client, SEARCH, q=q)


DOG_FOOD, VPN = {"slug": "dog-food"}, {"slug": "vpn"}
ZAMPINO = {"slug": "zampino-play"}
MAIL = {"slug": "email-security-software"}
PART = {"topic": "apps", "part": "privacy-and-security"}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (BEST, DOG_FOOD, "(Level contradicted: over all comparable answers another is ahead.)"),
        (BEST, {"slug": "crm-software"}, "(Level open: who leads may be chance.)"),
        (BEST, VPN, "\n1. Halcira (slug halcira), 18 points, place 1 by more than chance, named"),
        (BEST, VPN, "as the numbers grow.”\n3. Stellwark Bridge (slug"),
        (BEST, DOG_FOOD, "likely place 1 to 4, named in 19 of the last 20 answers\n5. Mogswell"),
        (BEST, DOG_FOOD, "\n6. Tailwynd (slug tailwynd), 1 point, likely place 4 to 8, named in"),
        (BEST, DOG_FOOD, "\n2026-10-26: Model D moved from Gribbel Meadow to Hound"),
        (BEST, MAIL, "The newest poll of Model C failed; the answer before it counts."),
        (PRODUCT, ZAMPINO, "#2 of 6 for dog food on Consensus Sample, though ahead of its #1 by"),
        (PRODUCT, ZAMPINO, "#1 by more than chance over all comparable answers"),
        (BEST, {**DOG_FOOD, "asOf": "2026-10-26"}, "is confirmed is told as of now:\n2026-10-"),
        (LIST, PART, "Best password manager (slug password-manager, level clear): Gantora"),
        (LIST, {"q": "zzz"}, "call search_best"),
        (LIST, {"offset": 2_000}, "begin at offset 0"),
    ],
)
def test_other_tools_say_what_would_mislead_too(
    client: FlaskClient, tool: str, arguments: dict[str, Any], told: str
) -> None:
    """How sure a change is, each place in a line of its own, failures, what leads on."""
    assert told in text_of(client, tool, **arguments)


def test_all_that_share_a_first_place_are_listed(client: FlaskClient) -> None:
    """A list of ties that named one of them would hide what it is about."""
    items = used(client, LIST, tied=True, limit=200)["structuredContent"]["categories"]
    assert items
    assert all(len(item["first"]) > 1 for item in items)
