"""Pictures that travel say no more than the data does, and hold whatever a name may hold."""

import html
import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from builders import BASE_URL, answered, app_over, write_data
from flask import Flask
from flask.testing import FlaskClient
from hostile_texts import PAYLOADS
from hypothesis import given
from hypothesis import strategies as st

from store.text import clean
from store.web.pages import pictures
from store.web.pages.pictures import fitted, width, wrap

NEEDS_RESVG = pytest.mark.skipif(
    pictures.rasteriser() is None, reason="cards need a font and: pip install '.[pictures]'"
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """A reader of three rankings: one sure, one a tie at the top, one answered once."""
    polls = [
        answered(model, ["X", second, "Y"], f"2026-10-{day:02}T06:00:00Z", slug="sure")
        for day in range(8, 20)
        for model, second in {"A": "P", "B": "Q"}.items()
    ]
    polls += [
        answered("A", ["X", "Y"], slug="tied"),
        answered("B", ["Y", "X"], slug="tied"),
        answered("A", ["Y"], slug="once"),
    ]
    titles = {slug: {"title": f"Best {slug}"} for slug in ("sure", "tied", "once")}
    directory = tmp_path_factory.mktemp("pictures")
    write_data(directory, categories=titles, models="AB", polls=polls, sample=True)
    return app_over(directory).test_client()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("sure/x", "X #1 of 4 · clear lead · 2026-10-19"),
        ("sure/y", "Y #2 of 4 · 2026-10-19"),
        ("tied/x", "X tied #1 of 2 · asked only once · 2026-11-02"),
        ("tied/y", "Y tied #1 of 2 · asked only once · 2026-11-02"),
        ("once/y", "Y #1 of 1 · asked only once · 2026-11-02"),
        ("once/x", "X not ranked · 2026-11-02"),
    ],
)
def test_a_badge_says_rank_certainty_and_date(reader: FlaskClient, path: str, message: str) -> None:
    """A tie is one, and a product that fell off is not ranked."""
    drawn = reader.get(f"/badge/{path}.svg")
    assert drawn.mimetype == "image/svg+xml"
    assert f">{message}</text>" in html.unescape(drawn.text)
    assert f">sample: {path.partition('/')[0]}</text>" in drawn.text


def test_a_badge_is_green_only_for_a_clear_first_place(reader: FlaskClient) -> None:
    """No colour claims more than the level does."""
    greens = {p: "#0b6a63" in reader.get(f"/badge/{p}.svg").text for p in ("sure/x", "sure/y")}
    assert greens == {"sure/x": True, "sure/y": False}
    assert "#0b6a63" not in reader.get("/badge/tied/x.svg").text


def test_a_badge_does_not_die(small: Flask) -> None:
    """Old slugs move; an unknown category or product is 404; an unpolled category too."""
    client = small.test_client()
    path = "/badge/crm/alfa.svg"
    for present in ("/badge/crm-software/alfa.svg", "/badge/crm-software/alpha.svg"):
        moved = client.get(path)
        assert (moved.status_code, moved.location) == (308, f"{BASE_URL}{present}")
        path = present
    for path in ("nothing/alpha.svg", "crm-software/nothing.svg", "unpolled/alpha.svg"):
        assert client.get(f"/badge/{path}").status_code == 404
    assert client.get("/badge/CRM/alpha.svg").status_code in (308, 400)


def test_an_embedded_ranking_names_its_source(reader: FlaskClient) -> None:
    """First places, certainty, date, licence, that it is a sample, and links to the pages."""
    answer = reader.get("/embed/best/sure.svg")
    text = " ".join(ET.fromstring(answer.data).itertext())  # noqa: S314 - our own
    for said in ("Best sure", "X", "Clear lead", "Consensus Test, 2026-10-19, CC BY 4.0",
                 "Sample: products and answers are invented"):  # fmt: skip
        assert said in text, said
    assert f'href="{BASE_URL}/best/sure"' in answer.text
    assert "script" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert reader.get("/embed/best/nothing.svg").status_code == 404


def test_a_frame_holds_the_tallest_ranking(tmp_path: Path) -> None:
    """The height to paste cuts off neither the link to the source nor the licence."""
    names = [f"{letter} of a name that is as long as names of products are" for letter in "ABCDE"]
    polls = [
        answered(model, ranked, f"2026-10-{day:02}T06:00:00Z")
        for day in range(1, 8)
        for model, ranked in {"A": names, "B": names[::-1]}.items()
    ]
    title = "Best software for keeping an eye on machines that measure the weather"
    categories = {"crm-software": {"title": title}}
    client = app_over(
        write_data(tmp_path, categories=categories, models="AB", polls=polls, sample=True)
    ).test_client()
    picture = ET.fromstring(client.get("/embed/best/crm-software.svg").data)  # noqa: S314 - our own
    assert 450 < int(picture.attrib["height"]) <= pictures.EMBEDDED_HEIGHT
    frame = f'width="400" height="{pictures.EMBEDDED_HEIGHT}" title='
    assert frame in html.unescape(client.get("/best/crm-software").text)


def test_pages_offer_what_to_paste(reader: FlaskClient) -> None:
    """The snippets on the page of a category are whole, with a text instead of the picture."""
    page = html.unescape(reader.get("/best/sure").text)
    src = f"{BASE_URL}/embed/best/sure.svg"
    alt = reader.get("/api/v1/best/sure.json").json["quote"]  # type: ignore[index]
    assert f'<a href="{BASE_URL}/best/sure"><img src="{src}" width="400" alt="{alt}"></a>' in page
    assert f'<iframe src="{src}"' in page
    assert f"[![X]({BASE_URL}/badge/sure/x.svg)]({BASE_URL}/best/sure)" in page
    assert f"[![X]({BASE_URL}/badge/sure/x.svg)]" in html.unescape(reader.get("/product/x").text)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Every picture of hostile names parses and has only the elements of a harmless one."""
    names = [clean(PAYLOADS[number]) for number in (2, 7, 19, 30, 44)]
    other = ["One", "Two", "Three", "Four", "Five"]
    elements = []
    for number, ranked in enumerate((names, other)):
        data = tmp_path / str(number)
        write_data(data, models="A", polls=[answered("A", ranked)], name=ranked[0])
        client = app_over(data).test_client()
        first = client.get("/api/v1/best/crm-software.json").get_json()["combined"][0]["slug"]
        drawn = [
            client.get(p)
            for p in ("/embed/best/crm-software.svg", f"/badge/crm-software/{first}.svg")
        ]
        elements.append([[e.tag for e in ET.fromstring(d.data).iter()] for d in drawn])  # noqa: S314
    assert elements[0] == elements[1]


@NEEDS_RESVG
@pytest.mark.parametrize("name", ["X", "\u7d22\u5c3c", "\u0639\u0631\u0628\u064a", "W" * 120])
def test_a_card_is_drawn_in_any_script(tmp_path: Path, name: str) -> None:
    """A PNG of 1200 by 630 on which the name, or boxes in its place, can be seen."""
    drawn = []
    for number, first in enumerate((name, "Another")):
        data = tmp_path / str(number)
        write_data(data, models="A", polls=[answered("A", [first])])
        client = app_over(data).test_client()
        answer = client.get("/cards/best/crm-software.png", headers={"Accept-Encoding": "gzip"})
        assert answer.mimetype == "image/png"
        assert "Content-Encoding" not in answer.headers
        assert struct.unpack(">II", answer.data[16:24]) == pictures.CARD
        drawn.append(answer.data)
    assert drawn[0] != drawn[1]
    assert 'property="og:image" content="' in client.get("/best/crm-software").text


def test_without_the_extra_there_is_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag is left out, and so is the address."""
    monkeypatch.setattr(pictures, "rasteriser", lambda: None)
    write_data(tmp_path, polls=[answered("A", ["X"])])
    client = app_over(tmp_path).test_client()
    assert "og:image" not in client.get("/best/crm-software").text
    assert client.get("/cards/best/crm-software.png").status_code == 404


@given(st.text(max_size=80), st.integers(60, 400))
def test_a_line_never_runs_over(text: str, room: int) -> None:
    """Whatever is cut ends in an ellipsis and fits; what fits is left alone."""
    shown = fitted(text, 10, room)
    assert width(shown, 10) <= room
    assert shown == text or shown.endswith("\u2026")


@given(st.text(max_size=200), st.integers(1, 4))
def test_lines_hold_the_words_in_order(text: str, most: int) -> None:
    """No more lines than asked for, each within its room; only the last may be cut."""
    broken = wrap(text, 10, 200, most)
    assert len(broken) <= most
    assert all(width(line, 10) <= 200 for line in broken)
    if not any(line.endswith("\u2026") for line in broken):
        assert " ".join(broken).split() == text.split()


@pytest.mark.parametrize(
    ("narrow", "broad"), [("iiii", "mmmm"), ("abcd", "ABCD"), ("abcd", "\u7d22\u5c3c\u5546\u5e97")]
)
def test_broad_letters_take_more_room(narrow: str, broad: str) -> None:
    """Capitals and ideographs are estimated wider than small letters."""
    assert width(narrow, 10) < width(broad, 10)


def test_marks_take_no_room_of_their_own() -> None:
    """A combining accent adds nothing."""
    assert width("e\u0301", 10) == width("e", 10)
