"""Schemathesis over the whole document: no answer that the document does not promise."""

from http import HTTPStatus
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from store.web.endpoints import Endpoint
from store.web.openapi import ENDPOINTS

PLAIN = {"Accept-Encoding": "identity"}
"""Schemathesis does not uncompress what a WSGI application answers."""

ROUTES = [route for route in ENDPOINTS if route.rule != "/api/v1/"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_operation_keeps_its_promises(small: Flask, route: Endpoint) -> None:
    """Valid requests are answered as documented, invalid ones refused as documented.

    Without parameters there is nothing to get wrong, so that one kind is enough.
    """
    document = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", small)
    fields = {*route.query.__struct_fields__}
    # No schema can say which assistants there are, or which day is before the first answer.
    unheld: list[Any] = [positive_data_acceptance] if {"as_of", "model"} & fields else []
    for mode in list(GenerationMode) if fields else [GenerationMode.POSITIVE]:
        cases = document[route.path]["GET"].as_strategy(generation_mode=mode)

        @settings(
            max_examples=8,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def hold(case: Case[Any]) -> None:
            answer = case.call(headers=PLAIN)
            # Upper case leads to the address in lower case, whose answer is told there.
            is_moved = answer.status_code == HTTPStatus.PERMANENT_REDIRECT
            excluded = [*unheld, negative_data_rejection] if is_moved else unheld
            case.validate_response(answer, excluded_checks=excluded)

        hold()
