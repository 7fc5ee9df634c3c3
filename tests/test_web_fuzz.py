"""Schemathesis over the whole document: no answer that the document does not promise.

The quick run is part of the suite; `pytest -m slow tests/test_web_fuzz.py` asks a thousand valid
and a thousand invalid examples of every operation and takes a few minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from store.web.openapi import ENDPOINTS

if TYPE_CHECKING:
    from flask import Flask

    from store.web.endpoints import Endpoint

PLAIN = {"Accept-Encoding": "identity"}
"""Schemathesis does not uncompress what a WSGI application answers."""

described = [each for each in ENDPOINTS if each.rule != "/api/v1/"]
every_route = pytest.mark.parametrize("route", described, ids=lambda route: route.name)


def ask(app: Flask, route: Endpoint, examples: int, *, same: bool) -> None:
    """Send valid and invalid requests and hold each answer to everything schemathesis checks.

    Without parameters there is nothing to get wrong, so that one kind is enough.
    """
    document = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)
    modes = list(GenerationMode) if route.query.__struct_fields__ else [GenerationMode.POSITIVE]
    # No schema can say which assistants there are, or which day is before the first answer.
    unheld: list[Any] = (
        [positive_data_acceptance] if {"as_of", "model"} & {*route.query.__struct_fields__} else []
    )
    for mode in modes:
        cases = document[route.path]["GET"].as_strategy(generation_mode=mode)

        @settings(
            max_examples=examples,
            derandomize=same,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def hold(case: Case[Any]) -> None:
            case.call_and_validate(headers=PLAIN, excluded_checks=unheld)

        hold()


@every_route
def test_every_operation_keeps_its_promises(small: Flask, route: Endpoint) -> None:
    """Valid requests are answered as documented, invalid ones refused as documented."""
    ask(small, route, 15, same=True)
