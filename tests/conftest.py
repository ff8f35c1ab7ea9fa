"""What all tests share: the real files, fetched once into the user's cache."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

from tests.fakes import silent_voices
from tutti import settings
from tutti.voices import Voices
from tutti.weights import FP32_MODEL, INT8_MODEL, Store, required_files, show_progress, sources

# Machines are shared and noisy: how long an example takes says nothing about the law it shows.
hypothesis.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.load_profile("calm")


@pytest.fixture(scope="session")
def home() -> Path:
    """A folder with every official file: both precisions, the voices, the lexicons."""
    chosen, _ = settings.load({}, os.environ)
    files = list({file.path: file for file in (*required_files("fp32"), *required_files("int8"))}.values())
    with show_progress() as progress:
        Store(chosen.home).ensure(files, sources=sources(offline=chosen.offline), progress=progress)
    return chosen.home


@pytest.fixture(scope="session")
def official(home: Path) -> dict[str, Path]:
    """The official graphs by precision."""
    store = Store(home)
    return {"fp32": store.path(FP32_MODEL), "int8": store.path(INT8_MODEL)}


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Voices:
    """Every voice, none with a style: enough for the tone model."""
    return silent_voices(tmp_path_factory.mktemp("voices"))
