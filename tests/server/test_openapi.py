"""Answers to generated requests conform to the OpenAPI document."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fakes import make_fake_engine
from tests.server.harness import RunningServer, serving

pytestmark = [pytest.mark.process, pytest.mark.server]


@pytest.fixture(scope="module")
def server(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voice_folder), max_text=200) as running:
        yield running


def test_every_answer_conforms_to_the_openapi_document(server: RunningServer) -> None:
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    n_routes = 0
    for operation in schemathesis.openapi.from_url(f"{server.url}/openapi.json").get_all_operations():
        n_routes += 1

        @given(case=operation.ok().as_strategy())
        @settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        def check(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=checks)

        check()
    assert n_routes > 20
