"""A server with the tone model, whose audio tells which text it speaks."""

from collections.abc import Iterator

import pytest

from tests.fakes import RecordingModel, tone_engine
from tests.server.harness import RunningServer, serving
from tutti.voices import Voices


@pytest.fixture(scope="module")
def model() -> RecordingModel:
    return RecordingModel()


@pytest.fixture(scope="module")
def server(voices: Voices, model: RecordingModel) -> Iterator[RunningServer]:
    with serving(tone_engine(voices, lambda: model)) as server:
        yield server
