"""``flask check`` warns of aliases and synonyms that send searches to another category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import app_over, write_data, write_json

if TYPE_CHECKING:
    from pathlib import Path

TITLES = {
    "vpn": "Best VPN",
    "vpn-for-travel": "Best VPN for travel",
    "vpn-for-business": "Best VPN for business",
    "cloud-ide": "Best cloud IDE",
    "ide": "Best integrated development environment",
    "ide-for-java": "Best IDE for Java",
    "ide-for-python": "Best IDE for Python",
}


@pytest.mark.parametrize(
    ("slug", "alias", "warning"),
    [
        ("free-vpn", "vpn for travel", "is the title of vpn-for-travel"),
        ("free-vpn", "VPN that costs nothing", "says too little: 3 other titles"),
        ("free-vpn", "what is that in my money", "says nothing"),
        ("free-vpn", "hide my address without paying", None),
        ("vpn", "VPN for business trips", None),
        ("ide", "IDE", None),
    ],
)
def test_an_alias_that_misleads_is_warned_of(
    tmp_path: Path, slug: str, alias: str, warning: str | None
) -> None:
    """Another's title, or words that other titles have; its own initials may be few words."""
    titles = TITLES | {"free-vpn": "Best free VPN"}
    categories = {
        each: {"title": title, "aliases": [alias] if each == slug else []}
        for each, title in titles.items()
    }
    app = app_over(write_data(tmp_path / "data", categories=categories))
    lines = app.test_cli_runner().invoke(args=["check"]).stdout.splitlines()
    said = [line for line in lines if f'"{alias}"' in line]
    assert len(said) == (warning is not None)
    for line in said:
        assert line.startswith(f"categories/{slug}.json:")
        assert ": warning: " in line
        assert str(warning) in line


def test_a_group_with_two_titles_is_warned_of(tmp_path: Path) -> None:
    """Each title after the first, where it stands: by the group one finds the other."""
    directory = write_data(
        tmp_path / "data", categories={slug: {"title": title} for slug, title in TITLES.items()}
    )
    groups = [["vpn", "hide me"], ["cloud IDE", "browser IDE", "ide for java", "IDE for Python"]]
    write_json(directory / "synonyms.json", {"version": 1, "synonyms": groups})
    lines = app_over(directory).test_cli_runner().invoke(args=["check"]).stdout.splitlines()
    said = [line.split(": warning: ")[1] for line in lines if line.startswith("synonyms.json:")]
    assert [message.partition(", and")[0] for message in said] == [
        '"ide for java" is the title of ide-for-java',
        '"IDE for Python" is the title of ide-for-python',
    ]
