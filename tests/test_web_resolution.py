"""An address resolves to a resource, to where it moved, or to nothing, with why and the closest."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from builders import answered, app_over, view_of, write_data

from store.web import resolution
from store.web.resolution import Absent, Moved

if TYPE_CHECKING:
    from pathlib import Path

    from store.web.snapshot_view import SnapshotView


@pytest.fixture
def view(tmp_path: Path) -> SnapshotView:
    """A category that had another slug, and one that nobody has answered."""
    categories: dict[str, dict[str, Any]] = {
        "crm-software": {"title": "Best CRM software", "former_slugs": ["crm"]},
        "unpolled": {"title": "Best unpolled"},
    }
    data = write_data(tmp_path / "data", categories=categories, polls=[answered("A", ["Zoho CRM"])])
    return view_of(app_over(data).extensions["store"].snapshot)


def test_a_former_slug_has_moved(view: SnapshotView) -> None:
    """The caller says which kind of address it has now."""
    found = resolution.no_category("crm", view, view.at.category_page)
    assert found == Moved(view.at.category_page("crm-software"))


def test_nothing_says_why_to_each_kind_of_reader(view: SnapshotView) -> None:
    """An unknown slug names the closest ones; an unranked category is none to suggest for."""
    unknown = resolution.absent_product("zoho-crn", view)
    assert unknown.status == HTTPStatus.NOT_FOUND
    assert [suggestion.slug for suggestion in unknown.closest or ()] == ["zoho-crm"]
    assert len({unknown.api, unknown.page, unknown.tool}) == 3
    unranked = resolution.no_category("unpolled", view, view.at.category)
    assert isinstance(unranked, Absent)
    assert unranked.closest is None
    assert "no successful poll yet" in unranked.page


def test_every_resource_has_an_address_and_a_generation_of_its_part(view: SnapshotView) -> None:
    """What was made for one part stands as long as that part does."""
    snapshot = view.snapshot
    verdict = resolution.verdict(snapshot.leaderboards["crm-software"], view)
    assert verdict.path == "api/v1/best/crm-software.json"
    assert verdict.generation == snapshot.generations.categories["crm-software"]
    document = resolution.document("labs.json", view)
    assert document.generation == snapshot.generations.summary


def test_what_has_no_rows_is_no_table(view: SnapshotView) -> None:
    """Rather an error than JSON under the name of another format."""
    found = resolution.document("labs.json", view, "csv")
    with pytest.raises(ValueError, match="has no rows to write as csv"):
        found.make()
