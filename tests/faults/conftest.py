"""One server for all tests of this folder that leave it as it was."""

from collections.abc import Iterator

import pytest

from tests.faults.limited_server import LimitedServer, limited_server

FLAGS = (
    *("--idle-s", "1", "--max-audio-mb", "40", "--max-whole-mb", "16", "--cache-mb", "4", "--max-jobs-gb", "0.02"),
    *("--wyoming-port", "0", "--grace-s", "20", "--max-connections", "1500"),
)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    folder = tmp_path_factory.mktemp("faults")
    watched = {"TONE_OPENS": str(folder / "opens"), "TONE_LOOP": str(folder / "loop")}
    with limited_server(folder, *FLAGS, limit="-n 4096", **watched) as server:
        yield server


@pytest.fixture
def server(shared_server: LimitedServer) -> Iterator[LimitedServer]:
    """The server; afterwards it must still serve, with the same sound as ever."""
    expected = shared_server.speak().content
    yield shared_server
    shared_server.wait_until_ready()
    answer = shared_server.speak()
    assert answer.status_code == 200, answer.text
    assert answer.content == expected
