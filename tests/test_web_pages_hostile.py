"""No text that a model, a reader or a data file can hold becomes markup, in any template."""

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

import pytest
from builders import BASE_URL, answered, app_over, write_data, write_json
from flask.testing import FlaskClient
from hostile_texts import HARMLESS, HOSTILE, PAYLOADS

from store.text import clean
from store.web.rendering import markdown, website

MODELS = ("A", "B", "C", "D")
SLUGS = ("crm-software", "mattress", "vpn")
PAST = "2026-10-05"


class Markup(HTMLParser):
    """The elements of a page with their attributes' names, and every address."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.addresses += [
            value or "" for name, value in attrs if name in ("href", "src", "action")
        ]


def client_over(directory: Path, texts: Sequence[str]) -> FlaskClient:
    """A reader of data in which every text is one of these, cleaned as an answer's texts are."""
    texts = [clean(text) for text in texts]
    polls = []
    for week, at in enumerate(("2026-10-05T06:00:00Z", "2026-10-12T06:00:00Z")):
        for s, slug in enumerate(SLUGS):
            for m, model in enumerate(MODELS):
                first = (s * len(MODELS) + m) * 5
                names = list(texts[first : first + 5])
                if week:
                    names.reverse()
                polls.append(
                    answered(
                        model,
                        names,
                        at,
                        slug=slug,
                        question=f"What is the best {texts[s]}?",
                        reason=names[0],
                        missed=(names[-1], texts[(first + 7) % 60]),
                        caveat=names[1],
                    )
                )
    categories = {
        slug: {"title": f"Best {texts[s]}", "question": f"What is the best {texts[s]}?"}
        for s, slug in enumerate(SLUGS)
    }
    write_data(directory, categories=categories, polls=polls, name=texts[3])
    part = {"slug": "one", "title": texts[8], "categories": list(SLUGS)}
    topic = {"slug": "one", "title": texts[9], "parts": [part]}
    write_json(directory / "topics.json", {"version": 1, "topics": [topic]})
    lab = {"title": texts[5], "method": texts[6], "finding": texts[7], "body": "Plain."}
    write_json(directory / "labs" / "one.json", {"version": 1, "date": "2026-10-01", **lab})
    return app_over(directory).test_client()


def pages_of(client: FlaskClient) -> list[str]:
    """Every kind of HTML page, each in every instance."""
    snapshot = client.application.extensions["store"].snapshot
    products = snapshot.product_slugs
    first, second = (p.slug for p in snapshot.summary.mentioned[:2])
    return [
        "/", "/search", "/changes", "/mentions", "/labs", "/labs/one",
        "/methodology", "/docs", "/best/crm", "/topics", "/topics/one", "/models",
        "/compare", f"/compare?a={first}&b={second}",
        f"/compare?a={first}&b=no-such",
        *(f"/best/{slug}" for slug in SLUGS),
        *(f"/best/{slug}?asOf={PAST}" for slug in SLUGS),
        *(f"/product/{slug}" for slug in sorted(products)),
        *(f"/product/{slug}/polls" for slug in sorted(products)),
    ]  # fmt: skip


def titles(client: FlaskClient) -> list[str]:
    """Return the titles of all categories, each of which finds its ranking."""
    ranked = client.application.extensions["store"].snapshot.summary.ranked
    return [board.category.title for board in ranked]


def test_a_search_that_finds_hostile_texts_adds_no_element(
    hostile: FlaskClient, harmless: FlaskClient
) -> None:
    """A hit that holds markup brings only elements that a harmless hit brings too."""
    known = {
        element
        for title in titles(harmless)
        for element in Markup(harmless.get("/search", query_string={"q": title}).text).elements
    }
    for title in titles(hostile):
        page = Markup(hostile.get("/search", query_string={"q": title[:200]}).text)
        assert set(page.elements) <= known, title


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    return client_over(tmp_path_factory.mktemp("hostile"), HOSTILE)


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    return client_over(tmp_path_factory.mktemp("harmless"), HARMLESS)


def test_hostile_texts_add_no_element_no_attribute_and_no_address(
    hostile: FlaskClient, harmless: FlaskClient
) -> None:
    """Every page over 60 hostile texts has exactly the elements and attributes of its twin.

    Each address is a path of the site, an anchor, or begins with its base.
    """
    found, expected = pages_of(hostile), pages_of(harmless)
    assert len(found) == len(expected) > 2 * len(PAYLOADS)
    for ours, twin in zip(found, expected, strict=True):
        page, plain = Markup(hostile.get(ours).text), Markup(harmless.get(twin).text)
        assert page.elements == plain.elements, ours
        for address in page.addresses:
            own = address.startswith((BASE_URL + "/", "/", "#")) and not address.startswith("//")
            licence = address == "https://creativecommons.org/licenses/by/4.0/"
            assert own or licence, (ours, address)


def test_a_query_is_shown_as_text(hostile: FlaskClient, harmless: FlaskClient) -> None:
    """Whatever is searched for brings only elements that other searches bring too."""
    known = {
        element
        for client in (hostile, harmless)
        for query in ("item", "zqx", "script", *titles(client))
        for element in Markup(client.get("/search", query_string={"q": query}).text).elements
    }
    for payload in PAYLOADS:
        found = Markup(hostile.get(f"/search?q=zqx{quote(payload)}").text)
        assert set(found.elements) <= known, payload


def test_a_wrong_path_is_shown_as_text(hostile: FlaskClient) -> None:
    """A path that is markup adds nothing to the page that says it is unknown."""
    known = set(Markup(hostile.get("/best/item").text).elements)
    for payload in PAYLOADS:
        answer = hostile.get(f"/best/{quote(payload, safe='')}")
        assert answer.status_code in (400, 404)
        assert set(Markup(answer.text).elements) <= known, payload


@pytest.mark.parametrize("path", ["/feeds/changes.atom", "/feeds/best/vpn.atom", "/sitemap.xml"])
def test_feeds_stay_well_formed(hostile: FlaskClient, harmless: FlaskClient, path: str) -> None:
    """XML over hostile texts parses and has the elements of its twin."""
    ours, twin = (ET.fromstring(c.get(path).data) for c in (hostile, harmless))  # noqa: S314 - own
    assert [element.tag for element in ours.iter()] == [element.tag for element in twin.iter()]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_domain_becomes_a_link_only_as_a_plain_host(payload: str) -> None:
    """No hostile domain gets an address of its own."""
    assert website(payload) is None


def test_a_plain_host_becomes_a_link() -> None:
    """An ordinary domain is linked over https, and nothing but its host is taken."""
    assert website("zoho.com") == "https://zoho.com/"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markdown_makes_no_html_of_its_own(payload: str) -> None:
    """An operator's Markdown may format and link to the web; raw HTML stays text."""
    page = Markup(markdown(f"# One\n\n{payload}\n\n[a](https://a.example/) {payload}"))
    assert {tag for tag, _ in page.elements} <= {
        "h2", "p", "a", "em", "strong", "code", "pre", "ul", "li", "hr", "blockquote",
    }  # fmt: skip
    assert {name for _, names in page.elements for name in names} <= {"href"}
    assert {urlsplit(address).scheme for address in page.addresses} <= {"https"}
