"""Pages are answered like the API, carry strict headers, and say what they rest on."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import (
    BASE_URL,
    answered,
    app_over,
    append,
    client_over,
    close_days,
    failed,
    withhold,
    write_data,
    write_json,
)
from flask import Flask
from flask.testing import FlaskClient
from mcp_rankings import text_of
from small_world import PAGES, TEXTS, write_small_world

from store.web.errors import CODES


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The little world, for a test that changes it."""
    return write_small_world(tmp_path)


@pytest.fixture
def reader(small: Flask) -> FlaskClient:
    """Somebody with a browser."""
    client = small.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html,*/*;q=0.8"
    return client


def test_a_poll_of_one_category_leaves_the_pages_of_others_as_they_are(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What shows nothing of it is not rendered again."""
    app = app_over(directory)
    client, store = app.test_client(), app.extensions["store"]
    paths = ("/best/tea-kettle", "/feeds/best/tea-kettle.atom")
    before = [client.get(path).data for path in paths]
    store.record([answered("B", ["Omega"])], "2026-11-09T06:00:00Z")
    store.reload()

    def fail(*_: object, **__: object) -> str:
        raise AssertionError

    monkeypatch.setattr("store.web.pages.routes.render_page", fail)
    assert [client.get(path).data for path in paths] == before


@pytest.mark.parametrize("path", PAGES + TEXTS)
def test_every_page_is_cached_like_the_api(reader: FlaskClient, path: str) -> None:
    """A page has a weak tag and a lifetime; test_web_http_responses.py asks for its other forms."""
    headers = reader.get(path).headers
    assert headers["ETag"].startswith('W/"')
    assert "stale-while-revalidate" in headers["Cache-Control"]
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "Last-Modified" not in headers


@pytest.mark.parametrize("path", [*PAGES, "/nowhere", "/best/unpolled"])
def test_every_page_carries_strict_headers(reader: FlaskClient, path: str) -> None:
    """No page may run or load anything inline or foreign, be framed, or be sniffed."""
    headers = reader.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "strict-origin-when-cross-origin"


def test_sample_data_says_so_on_every_page(reader: FlaskClient, directory: Path) -> None:
    """While site.json says sample, every page says that names and answers are invented."""
    write_json(directory / "site.json", {"version": 1, "name": "Real"})
    real = client_over(directory)
    for path in (*PAGES, "/best/unpolled"):
        assert "are invented" in reader.get(path).text, path
        assert "are invented" not in real.get(path).text, path
    for path in PAGES:
        described = [
            client.get(path).text.count('="Sample, invented: ') for client in (reader, real)
        ]
        assert described == [2, 0], path


@pytest.mark.parametrize(
    ("slug", "said"),
    [
        ("crm-software", "Asked too few times"),
        ("crm-software", "D last answered on 10 September 2026."),
        ("crm-software", "Nearly named"),
        ("crm-software", "What changed since"),
        ("tea-kettle", "no answer yet"),
    ],
)
def test_a_category_page_shows_what_it_rests_on(reader: FlaskClient, slug: str, said: str) -> None:
    """The sentence to quote, the level, stale answers, near misses, changes, who is missing."""
    text = html.unescape(reader.get(f"/best/{slug}").text)
    assert said in text
    assert reader.get(f"/api/v1/best/{slug}.json").get_json()["quote"] in text


def test_a_true_tie_is_shown_as_one(reader: FlaskClient) -> None:
    """Tied products bear the same place with a sign, whatever their slugs; in a search too."""
    text = reader.get("/best/tea-kettle").text
    assert "Most recommended now: a tie" in text
    both = '<span class="away">tied at </span><span aria-hidden="true">=</span>1'
    assert text.count(both) == reader.get("/search?q=tea+kettle").text.count(both) == 2


def test_a_category_that_nobody_has_answered_for_long_says_so(directory: Path) -> None:
    """As soon as a poll of another category is over the limit of days newer than its own."""
    app = app_over(directory)
    client, store = app.test_client(), app.extensions["store"]
    for time, is_old in (("2026-12-02T06:00:00Z", False), ("2026-12-03T06:00:00Z", True)):
        poll = answered(
            "B", ["Pot"], time, slug="tea-kettle", question="What is the best tea kettle?"
        )
        store.record([poll], time)
        store.reload()
        page = client.get("/best/crm-software")
        assert ("No assistant has answered this since 2 November 2026" in page.text) == is_old
    assert "elsewhere answers go up to" in page.text
    assert "No assistant has answered this" not in client.get("/best/tea-kettle").text


def test_failed_polls_are_told_as_no_answers(tmp_path: Path) -> None:
    """The newest answer is the newest answer, however long all polls have failed since."""
    polls = [answered("A", ["x"], "2026-10-01T06:00:00Z"), failed("A", at="2026-11-20T06:00:00Z")]
    client = client_over(write_data(tmp_path, polls=polls))
    page = client.get("/best/crm-software").text
    assert "No assistant has answered this since" not in page
    assert 'last answered <time datetime="2026-10-01T06:00:00Z">' in page
    assert 'last answer <time datetime="2026-10-01T06:00:00Z">' in client.get("/changes").text
    assert "the newest at 2026-10-01T06:00:00Z." in client.get("/api/v1/README.md").text
    assert "The last poll is of 2026-11-20." in text_of(client, "search_best", q="what changed?")


def test_a_category_without_a_poll_says_so(reader: FlaskClient) -> None:
    """Not yet ranked is 404 with a sentence, not an empty ranking."""
    answer = reader.get("/best/unpolled")
    assert answer.status_code == 404
    assert "has no answer yet" in answer.text
    assert "Perhaps you meant" not in answer.text
    assert "<h1><bdi>Best unpolled thing: no answer yet</bdi></h1>" in answer.text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/best/crm-softwere", 404, "/best/crm-software"),
        ("/product/gyokurro", 404, "/product/gyokuro"),
        ("/crm-software", 404, "/best/crm-software"),
        ("/best/CRM_Software", 400, "/best/crm-software"),
        ("/labs/two", 404, "/labs lists them all"),
        ("/search?q=" + "x" * 201, 400, "200 are allowed"),
    ],
)
def test_an_error_page_helps(reader: FlaskClient, path: str, status: int, said: str) -> None:
    """People who err get a page with the same status, what went wrong, and the closest pages."""
    answer = reader.get(path)
    assert answer.status_code == status
    assert answer.mimetype == "text/html"
    assert said in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_the_end_of_a_path_is_no_name(client: FlaskClient) -> None:
    """By the polls of a product that nobody knows no employee software is meant."""
    page = client.get("/product/zzzzzzzz/polls", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "Perhaps you meant" not in page.text


def test_an_error_page_keeps_the_headers_of_the_refusal(reader: FlaskClient) -> None:
    """A write to a page is refused with the methods that are allowed."""
    answer = reader.post("/best/crm-software")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize(
    "path", ["/api/v1/best/x.json", "/api/v1/nope", "/mcp", "/static/x.css", "/feeds/best/x.atom"]
)
def test_programs_keep_their_problem_details(reader: FlaskClient, path: str) -> None:
    """Errors where programs read stay JSON, even to a browser."""
    assert reader.get(path).mimetype != "text/html"


def test_an_unknown_path_is_a_page_only_to_a_browser(small: Flask, reader: FlaskClient) -> None:
    """Who does not ask for HTML gets a problem detail where no page ever was."""
    assert reader.get("/nowhere").mimetype == "text/html"
    client = small.test_client()
    assert client.get("/nowhere").mimetype == "application/problem+json"
    assert client.get("/best/nowhere").mimetype == "text/html"


def test_pages_stand_below_the_base_urls_path(directory: Path) -> None:
    """With a base URL that has a path, links of the site's own begin with that path."""
    reader = app_over(directory, base_url="https://host.example/rankings").test_client()
    text = reader.get("/best/crm-software").text
    assert 'href="/rankings/product/alpha"' in text
    assert 'href="/product' not in text
    assert 'rel="canonical" href="https://host.example/rankings/best/crm-software"' in text


def test_evidence_counts_every_naming_poll_in_the_models_spelling(reader: FlaskClient) -> None:
    """The evidence page lists each poll that named the product, newest first, as it was spelled.

    So it does with those of an assistant that is no longer asked, which is in no chart.
    """
    text = reader.get("/product/alpha/polls").text
    assert "All 5 answers" in text
    assert "as “<bdi>Alpha CRM</bdi>”" in text
    assert text.index("2026-11-02") < text.index("2026-10-19") < text.index("2026-10-12")
    assert "A on Alpha CRM" in text
    assert ">Retired<" in text
    assert ">Retired<" not in reader.get("/best/crm-software").text.partition("<main")[2]


def test_withheld_words_stand_on_no_page(directory: Path) -> None:
    """A withheld poll's texts appear on no page, and the box says that it is withheld."""
    bad = answered("D", ["Slander Inc"], "2026-11-05T06:00:00Z", slug="tea-kettle")
    append(directory, [bad])
    withhold(directory, bad.id)
    reader = client_over(directory)
    paths = (*PAGES, "/best/tea-kettle")
    assert "Slander" not in "".join(reader.get(path).text for path in paths)
    assert "its answer is withheld" in reader.get("/best/tea-kettle").text


def test_suggestions_are_titles_and_paths(reader: FlaskClient) -> None:
    """What is offered while typing is small: what to show and where it leads."""
    suggested = reader.get("/search/suggest?q=gy").json
    assert suggested == [{"title": "Gyokuro", "path": "product/gyokuro"}]


def test_assets_are_kept_for_good_only_under_their_own_version(reader: FlaskClient) -> None:
    """The address a page gives may be cached for ever; any other address of the file may not."""
    text = reader.get("/").text
    address = text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert "immutable" in reader.get(address).headers["Cache-Control"]
    assert "immutable" not in reader.get("/static/site.css?v=old").headers["Cache-Control"]


def test_robots_and_agents_find_everything(reader: FlaskClient) -> None:
    """robots.txt names the site map; that lists every page; llms.txt and the catalog the API."""
    assert f"Sitemap: {BASE_URL}/sitemap.xml" in reader.get("/robots.txt").text
    site_map = reader.get("/sitemap.xml").text
    for path in ("/best/crm-software", "/product/alpha", "/labs/by-hand", "/methodology"):
        assert f"<loc>{BASE_URL}{path}</loc>" in site_map
    assert f"<loc>{BASE_URL}/best/crm-software</loc><lastmod>2026-11-02</lastmod>" in site_map
    assert f"({BASE_URL}/api/v1/openapi.json)" in reader.get("/llms.txt").text
    catalog = json.loads(reader.get("/.well-known/api-catalog").data)
    assert catalog["linkset"][0]["service-desc"][0]["href"] == f"{BASE_URL}/api/v1/openapi.json"


def test_docs_show_every_endpoint_with_calls(reader: FlaskClient) -> None:
    """Every path of the OpenAPI document stands on the docs page with a call in three languages."""
    text = reader.get("/docs").text
    paths = reader.get("/api/v1/openapi.json").json["paths"]  # type: ignore[index]
    for path in paths:
        assert f"<b>GET</b> {path}</code>" in text
    assert text.count("<code>curl &#39;") >= len(paths)
    assert text.count("urlopen(") == text.count("await fetch(") == len(paths)


@pytest.mark.parametrize("days", [7, 3_650])
def test_pages_stand_before_the_first_poll(tmp_path: Path, days: int) -> None:
    """A new service with no poll has every general page, feed and file; no day is made up."""
    client = client_over(write_data(tmp_path, poll_every_days=days))
    for path in (
        "/", "/search", "/search?q=crm", "/changes", "/mentions", "/labs", "/methodology", "/docs",
        "/topics", "/models", "/compare", *TEXTS[:6],
        *[f"/api/v1/{name}" for name in ("changes.json", "openapi.json", "README.md")],
    ):  # fmt: skip
        assert client.get(path).status_code == 200, path
    assert "No topics have been written" in client.get("/topics").text
    assert "<time" not in (changes := client.get("/changes").text)
    assert "that day" not in changes


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/mentions", ">named in neither week where both were asked</span>"),
        ("/methodology", "<dt>of them failed</dt><dd>1</dd>"),
        ("/methodology", "kept like any other (1 of 9 so far)"),
        ("/models", "Former. Their answers stay in the history, changes and mentions; no ranking"),
        ("/best/crm-software", "withdraw an answer or no longer count an assistant"),
        ("/best/crm-software?asOf=2026-10-12", "product names, of the assistants asked today."),
        ("/changes?since=2026-10-05", "<p>Nothing was ranked before that day, so no #1 can be"),
    ],
)
def test_a_page_says_what_its_figures_count(tmp_path: Path, path: str, told: str) -> None:
    """Withheld is not failed, not named is not unasked, no longer asked counts in some."""
    weeks = [f"2026-10-{day:02}T06:00:00Z" for day in (5, 12, 19, 26)]
    polls = [
        answered(model, ["x"] if week < weeks[2] else ["y"], week)
        for week in weeks
        for model in ("A", "Former")
    ]
    data = write_data(tmp_path, models="A", polls=[*polls, failed("A", at="2026-10-27T06:00:00Z")])
    close_days(data)
    client = client_over(withhold(data, polls[-1].id).parent)
    assert told in client.get(path).text


@pytest.mark.parametrize("path", ["/best/crm-software", "/product/x", "/compare?a=x&b=y"])
def test_a_quoted_reason_names_the_assistant_that_gave_it(tmp_path: Path, path: str) -> None:
    """An assistant that ranks a product as high, and gives no reason, is not quoted."""
    polls = [answered("A", ["x", "y"], reasons={"x": None}), answered("B", ["x", "y"])]
    text = client_over(write_data(tmp_path, polls=polls)).get(path).text
    assert '“B on x” <span class="speaker">B</span>' in text


def test_a_product_on_no_leaderboard_keeps_its_page(tmp_path: Path) -> None:
    """A product once named says that it is on no board, and still shows the polls that named it."""
    polls = [
        answered("A", [name], f"2026-01-0{day}T06:00:00Z") for name, day in (("x", 1), ("y", 8))
    ]
    reader = client_over(write_data(tmp_path, polls=polls))
    assert "in no ranking now" in reader.get("/product/x").text
    assert "All 1 answer," in reader.get("/product/x/polls").text


def test_a_category_page_says_how_sure_it_is(tmp_path: Path) -> None:
    """Level, likely places, new versions and another leader, each where it is."""
    question = "What is the best CRM software?"
    rounds = ["X"] * 8 + ["Y"] * 60
    polls = [
        answered(
            model,
            list(names),
            f"2026-{9 + number // 28:02}-{1 + number % 28:02}T06:00:00Z",
            question=question,
            served_model="new" if model == "A" and number >= 8 else "old",
        )
        for number, names in enumerate(rounds)
        for model in "ABCD"
    ]
    categories = {"crm-software": {"title": "Best CRM", "question": question}}
    client = client_over(write_data(tmp_path / "data", categories=categories, polls=polls))
    page = client.get("/best/crm-software").text
    assert '<span class="pill sure">Clear lead</span>' in page
    assert (
        "name it first now. It came first in 20 of the last 20 answers; on points it leads by "
        "more than chance." in page
    )
    assert 'aria-label="Y: now 1, likely 1 to 1"' in page
    assert ">9 September 2026</time></a>: A changed from old to new." in page
    assert "Y leads in place of X, by more than chance" in page
    home = client.get("/").text
    assert "CRM" in home.partition('id="agree"')[2].partition("</section>")[0]
    assert 'id="differ"' not in home


def test_the_docs_describe_every_object_and_every_code(reader: FlaskClient) -> None:
    """What a type's name leads to is there, and so is each code that an answer can have."""
    text = reader.get("/docs").text
    document = reader.get("/api/v1/openapi.json").get_json()
    for name in (*document["components"]["schemas"], *CODES):
        assert f'id="{name}"' in text
    for target in re.findall(r'href="#([^"]+)"', text):
        assert f'id="{target}"' in text
    assert "unknown-parameter" in text


def test_the_rankings_of_a_level_are_listed(
    client: FlaskClient, verdicts: dict[str, dict[str, Any]]
) -> None:
    """Those that its figures call so, all of them; home leads to the clear and the close ones."""
    home = client.get("/").text
    for level in ("clear", "open", "contradicted", "unmeasured"):
        main = client.get(f"/search?level={level}").text.partition("<main")[2]
        expected = {s for s, body in verdicts.items() if body["certainty"]["level"] == level}
        assert set(re.findall(r'<li><a class="where" href="/best/([^"]+)"', main)) == expected
        linked = f'/search?level={level}">' in home
        assert linked == (level in ("clear", "open"))
    assert client.get("/search?level=sure").status_code == 400
    assert client.get("/search?q=tea&level=clear").status_code == 400


def test_a_search_says_what_its_hits_are(client: FlaskClient) -> None:
    """Closest ones where none is sure, ties as ties, and where news stand."""
    shown = {
        query: client.get("/search", query_string={"q": query}).text
        for query in ("how do i sleep better", "vpn", "Pickholt", "mirrado", "what changed today")
    }
    no_match = [query for query, text in shown.items() if "No exact match" in text]
    assert no_match == ["how do i sleep better"]
    assert "=#1 of 8, Best employee monitoring software" in shown["mirrado"]
    told = [query for query, text in shown.items() if "what changed</a> in all rankings" in text]
    assert told == ["what changed today"]


def test_how_noisy_assistants_are_is_one_figure_everywhere(client: FlaskClient) -> None:
    """Home, the methodology and the page of the assistants have the experiment's."""
    experiments = client.application.extensions["store"].snapshot.summary.experiments
    noise = next(e for e in experiments if e.slug == "how-noisy-is-one-answer")
    questions = sum(bar.n for bar in noise.bars)
    share = sum(bar.value * bar.n for bar in noise.bars) / questions
    assert f"same #1 in {share:.1%}" in noise.finding
    assert f"names another product first {1 - share:.0%} of the time" in client.get("/").text
    assert f"same #1 in {share:.0%} of cases" in client.get("/methodology").text
    overview = client.get("/models").text
    for bar in noise.bars:
        assert f"Repeats its #1 </span>{bar.value:.0%}</td>" in overview


def test_the_methodology_links_only_experiments_that_are_there(
    reader: FlaskClient, client: FlaskClient
) -> None:
    """With little data there are few, and our own record says that there is none yet."""
    text = reader.get("/methodology").text
    assert "Our own record: no ranking with a clear lead has had another round yet." in text
    for somebody in (reader, client):
        found = re.findall(r'href="(/labs/[^"]+)"', somebody.get("/methodology").text)
        assert [somebody.get(path).status_code for path in found] == [200] * len(found)
    assert len(found) == 4


def test_who_is_first_of_equal_points_is_told_with_the_rule(client: FlaskClient) -> None:
    """By places the other product would come first here; more assistants name this one."""
    page = client.get("/best/home-automation-software").text
    assert "13 points each; Otto &amp; Vane comes first because more assistants name it." in page
    news = "Otto &amp; Vane now leads; before, Pellucio did."
    assert f"{news} No assistant changed its first choice: lower places did." in page
