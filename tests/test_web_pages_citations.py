"""Citations: BibTeX that TeX can set; the link is held by test_web_as_of.py."""

from pathlib import Path

from builders import BASE_URL, answered, store_over, view_of, write_data

from store.web.pages.category import bibtex
from store.web.verdicts import verdict_shape


def test_bibtex_is_what_tex_can_set(tmp_path: Path) -> None:
    """Characters that mean something to TeX are written so that they appear."""
    polls = [answered("A", ["x"], "2026-10-01T06:00:00Z")]
    categories = {"crm-software": {"title": "Best R&D_tools {100%} #1 ~ $5 \\ ^"}}
    view = view_of(store_over(write_data(tmp_path, categories=categories, polls=polls)).snapshot)
    verdict = verdict_shape(view, view.snapshot.leaderboards["crm-software"])
    assert bibtex(verdict, "2026-10-01", view) == (
        "@misc{crm-software-2026-10-01,\n"
        "  author = {{Consensus Test}},\n"
        "  title = {{Best R\\&D\\_tools \\{100\\%\\} \\#1 \\textasciitilde{} \\$5 "
        "\\textbackslash{} \\textasciicircum{}}},\n"
        "  year = {2026},\n"
        f"  url = {{{BASE_URL}/best/crm-software?asOf=2026-10-01}},\n"
        "  note = {Ranking of AI assistants' answers (invented sample data) as of 2026-10-01. "
        "CC BY 4.0},\n"
        "}"
    )
