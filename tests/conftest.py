"""What all tests share: the official files, fetched once into the user's cache; and what a pure test must not do."""

import multiprocessing.util
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

from tests.fakes import silent_voices
from tutti import settings
from tutti.voices import Voices
from tutti.weights import FP32_MODEL, INT8_MODEL, Store, required_files, show_progress, sources

# Machines are shared and noisy: the time of one example says nothing.
hypothesis.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.register_profile("check", hypothesis.get_profile("full"), max_examples=10)  # of `make check`
hypothesis.load_profile("full")

# A test without one of these markers is pure. What each call needs, and which other markers imply it:
PROCESS = ("process", "browser", "weights", "network", "cluster")
SERVER = ("server", "browser", "weights", "cluster")
GUARDED = (
    (subprocess.Popen, "__init__", PROCESS),
    (multiprocessing.util, "spawnv_passfds", PROCESS),
    (os, "fork", PROCESS),
    (os, "posix_spawn", PROCESS),
    (socket.socket, "listen", SERVER),
)
FIXTURE_MARKERS = {"home": "weights", "official": "weights", "browser": "browser"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in FIXTURE_MARKERS.items():
            if fixture in getattr(item, "fixturenames", ()) and not item.get_closest_marker(marker):
                raise pytest.UsageError(f"{item.nodeid} uses `{fixture}`: mark it with @pytest.mark.{marker}")
    # Long files first: the last of several processes should not end with one alone.
    long = {item.path for item in items if item.get_closest_marker("weights")}
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test, or the fixture it is the first to use, that does more than its markers say."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, markers in GUARDED:
            if not any(item.get_closest_marker(marker) for marker in markers):
                patch.setattr(owner, name, refuse(markers[0], name))
        return (yield)


def refuse(marker: str, name: str) -> Callable[..., None]:
    def fail(*args: object, **options: object) -> None:
        pytest.fail(f"`{name}` is not for pure tests: mark this one with @pytest.mark.{marker}")

    return fail


@pytest.fixture(scope="session", autouse=True)
def hang_ups_reach_children() -> Iterator[None]:
    """Ignore hang-ups by a handler if nohup started the run: children would inherit that they are ignored."""
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


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
