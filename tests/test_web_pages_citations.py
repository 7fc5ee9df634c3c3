"""Citations: a link that stays, a line to paste, and BibTeX that TeX can set."""

import html
import re
from pathlib import Path

from builders import BASE_URL, answered, app_over, close_days, view_of, write_data
from flask import Flask

from store.web.pages.category import bibtex
from store.web.verdicts import verdict_shape

CATEGORIES = {
    "crm-software": {"title": "Best R&D_tools {100%} #1 ~ $5 \\ ^"},
    "vpn": {"title": "Best VPN"},
}


def app_with_a_closed_day(directory: Path) -> Flask:
    """A category whose newest poll is of a closed day, and one whose newest is not."""
    polls = [
        answered("A", ["x"], "2026-10-01T06:00:00Z"),
        answered("A", ["y"], "2026-10-08T06:00:00Z", slug="vpn"),
    ]
    data = write_data(directory, categories=CATEGORIES, polls=polls)
    close_days(data, "2026-10-07")
    return app_over(data)


def test_bibtex_is_what_tex_can_set(tmp_path: Path) -> None:
    """Characters that mean something to TeX are written so that they appear."""
    view = view_of(app_with_a_closed_day(tmp_path).extensions["store"].snapshot)
    verdict = verdict_shape(view, view.snapshot.leaderboards["crm-software"])
    assert bibtex(verdict, "2026-10-01", view) == (
        "@misc{crm-software-2026-10-01,\n"
        "  author = {{Consensus Test}},\n"
        "  title = {{Best R\\&D\\_tools \\{100\\%\\} \\#1 \\textasciitilde{} \\$5 "
        "\\textbackslash{} \\textasciicircum{}}},\n"
        "  year = {2026},\n"
        f"  url = {{{BASE_URL}/best/crm-software?asOf=2026-10-01}},\n"
        "  note = {Ranking of AI assistants' answers as of 2026-10-01. CC BY 4.0},\n"
        "}"
    )


def test_the_cited_address_shows_what_the_page_showed(tmp_path: Path) -> None:
    """The page's own ranking, later too: a poll of a later day changes the page, not the link."""
    app = app_with_a_closed_day(tmp_path)
    client, store = app.test_client(), app.extensions["store"]
    page = client.get("/best/crm-software").text
    (line,) = re.findall(r'<a id="link" href="[^"]*">(.*?)</a>', page)
    assert html.unescape(line) == f"{BASE_URL}/best/crm-software?asOf=2026-10-01"
    assert "always shows the ranking you see now" in page
    cited = client.get("/best/crm-software?asOf=2026-10-01").data
    store.record([answered("A", ["z"])], "2026-10-09T06:00:00Z")
    store.reload()
    assert "z" in client.get("/api/v1/best/crm-software.json").get_json()["combined"][0]["product"]
    assert client.get("/best/crm-software?asOf=2026-10-01").data == cited
