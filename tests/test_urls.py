"""Addresses in settings: good ones travel in ASCII, the others are refused unquoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import answered, app_over, write_data
from hypothesis import example, given
from hypothesis import strategies as st

from store.files import Files
from store.urls import ascii_url, is_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("written", "travels"),
    [
        ("https://rankings.example", "https://rankings.example"),
        ("https://\u4f8b\u3048.example", "https://xn--r8jz45g.example"),
        ("https://B\u00dccher.example:8443/", "https://xn--bcher-kva.example:8443/"),
        ("http://a.example/r\u00e4nge/%20x", "http://a.example/r%C3%A4nge/%20x"),
        ("http://[::1]:5000", "http://[::1]:5000"),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("http://my_host:80/v1", "http://my_host:80/v1"),
        ("https://a.example.", "https://a.example."),
    ],
)
def test_an_address_travels_in_ascii(written: str, travels: str) -> None:
    """The host in IDNA, the path percent-encoded; what travels stays as it is."""
    assert ascii_url(written) == ascii_url(travels) == travels


@pytest.mark.parametrize(
    "written",
    [
        "", "rankings.example", "//rankings.example", "ftp://a.example", "javascript:alert(1)",
        "https://", "https:///x", "https://a b.example", "https://a\x07.example",
        "https://a.example/\u202e", "https://a.example\n", "https://user@a.example",
        "https://a.example/x@y", "https://user:sk-CANARY@a.example", "https://a.example/?key=CANARY",
        "https://a.example/#CANARY", "https://a..b", "https://-\u2603-.example", "https://[::1",
        "https://[v1.x]", "https://[zz]", "https://a.example:0", "https://a.example:99999",
        "https://a.example:x", "https://" + "\u00fc" * 80 + ".example", 'https://a.example/"',
        "https://\ud800.example", "https://\u0661.\u0662.example:\u0663",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_unquoted(written: str) -> None:
    """Nothing others could be built on, and nothing that may hold a key; none of it is repeated."""
    with pytest.raises(ValueError, match=r"^must be an address such as https://rankings\.example"):
        ascii_url(written)


@given(st.text() | st.text().map(lambda rest: f"https://{rest}"))
@example("https://[::1]]")
def test_any_text_is_an_address_or_refused(text: str) -> None:
    """What is accepted is ASCII, fit for a header and for a second reading."""
    if is_url(text):
        travels = ascii_url(text)
        assert travels.isascii()
        assert travels.isprintable()
        assert " " not in travels
        assert ascii_url(travels) == travels


def test_an_international_base_url_is_served_in_ascii(tmp_path: Path) -> None:
    """Every address and header of a site in another script can be sent."""
    directory = write_data(tmp_path / "data", polls=[answered("A", ["X"])])
    (directory / "site.json").write_text(
        '{"version": 1, "name": "\u4f8b\u3048", "sample": true, '
        '"base_url": "https://\u4f8b\u3048.example"}',
        encoding="utf-8",
    )
    client = app_over(directory, base_url=None).test_client()
    for path in ("/", "/best/crm-software", "/api/v1/best/crm-software.json", "/sitemap.xml"):
        answer = client.get(path, headers={"Host": "xn--r8jz45g.example"})
        assert answer.status_code == 200
        assert "https://xn--r8jz45g.example/" in answer.headers["Link"]
    assert client.get("/best/crm-software/").headers["Location"].startswith("https://xn--r8jz45g.")


@pytest.mark.parametrize("base_url", ["https://a\\u0007.example", "https://-\\u2603-.example"])
def test_a_base_url_that_is_none_is_a_problem_of_its_line(tmp_path: Path, base_url: str) -> None:
    """The file is refused where the address stands, and its last good version stays in use."""
    directory = write_data(tmp_path / "data")
    files = Files(directory)
    before = files.scan().site
    text = f'{{\n  "version": 1,\n  "name": "x",\n  "base_url": "{base_url}"\n}}\n'
    (directory / "site.json").write_text(text, encoding="utf-8")
    catalogue = files.scan()
    assert catalogue.site == before
    (problem,) = catalogue.problems
    assert str(problem).startswith("site.json:4:3: base_url must be an address such as")
