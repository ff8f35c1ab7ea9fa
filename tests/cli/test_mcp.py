"""`tutti mcp`: the official SDK's client speaks to it over stdio and HTTP; a fake sound card records what is played."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import FakeEngine, make_fake_engine
from tests.server.harness import LONG, SHORT, RunningServer, expected_samples, serving, wait_until

mcp = pytest.importorskip("mcp")
stdio = pytest.importorskip("mcp.client.stdio")

pytestmark = [pytest.mark.server, pytest.mark.process]

ROOT = Path(__file__).parents[2]
CARD = """
class PortAudioError(Exception):
    pass

def check_output_settings(**settings):
    pass

class RawOutputStream:
    def __init__(self, **settings):
        self.file = open(PATH, "ab", buffering=0)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def write(self, data):
        self.file.write(data)
"""
Test = Callable[[Any], Awaitable[None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(make_fake_engine(tmp_path_factory.mktemp("voices"))) as running:
        yield running


@pytest.fixture
def engine(server: RunningServer) -> Iterator[FakeEngine]:
    server.engine.reset()
    yield server.engine
    server.engine.release()
    server.engine.reset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the agent may use, beside a fake sound card."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library/sounddevice.py").write_text(CARD.replace("PATH", repr(str(tmp_path / "played.pcm"))))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/book.md").write_text("# First\n\nDeep water.\n\n# Second\n\nAn old bridge.\n")
    (tmp_path / "secret.txt").write_text("not for the agent")
    return tmp_path / "folder"


def environment(folder: Path, *, card: bool = True) -> dict[str, str]:
    paths = [str(ROOT), *([str(folder.parent / "library")] if card else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def arguments(server: RunningServer, folder: Path) -> list[str]:
    return ["-m", "tutti", "mcp", "--url", server.url, "--folder", str(folder)]


def over_stdio(server: RunningServer, folder: Path, test: Test, *, card: bool = True) -> None:
    command = stdio.StdioServerParameters(
        command=sys.executable, args=arguments(server, folder), env=environment(folder, card=card), cwd=folder
    )
    asyncio.run(with_client(command, test))


async def with_client(target: Any, test: Test) -> None:
    async with mcp.Client(target) as client:
        await test(client)


@contextmanager
def http_address(server: RunningServer, folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, *arguments(server, folder), "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL) as process:

        def listens() -> bool:
            assert process.poll() is None
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        try:
            wait_until(listens)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


async def called(client: Any, tool: str, **options: Any) -> tuple[str, bool]:
    """The text that a tool returns, and whether it is an error."""
    result = await client.call_tool(tool, options)
    return " ".join(part.text for part in result.content), bool(result.is_error)


async def speaks_plays_and_lists(client: Any, server: RunningServer, folder: Path) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"speak", "list_voices", "read_document", "stop"}
    assert all(tool.description for tool in tools.values())
    assert tools["speak"].input_schema["required"] == ["text"]
    said, failed = await called(client, "speak", text=SHORT, voice="am_adam")
    assert (said.startswith("said "), failed) == (True, False), said
    assert server.engine.requests[-1]["voice"] == "am_adam"
    played = np.frombuffer((folder.parent / "played.pcm").read_bytes(), "<i2")
    assert np.array_equal(played, np.rint(expected_samples(server, SHORT, voice="am_adam") * 32767).astype("<i2"))
    wrote, failed = await called(client, "speak", text=SHORT, file="hello.mp3")
    assert (str(folder / "hello.mp3") in wrote, failed) == (True, False), wrote
    assert (folder / "hello.mp3").read_bytes() == server.speak(stream=False, response_format="mp3").content
    french, _ = await called(client, "list_voices", language="fr")
    assert "ff_siwis" in french
    assert "af_heart" not in french


def test_an_agent_speaks_over_stdio(server: RunningServer, engine: FakeEngine, folder: Path) -> None:
    over_stdio(server, folder, lambda client: speaks_plays_and_lists(client, server, folder))


def test_an_agent_speaks_over_http(server: RunningServer, engine: FakeEngine, folder: Path) -> None:
    with http_address(server, folder) as url:
        asyncio.run(with_client(url, lambda client: speaks_plays_and_lists(client, server, folder)))


def test_a_document_is_read_in_the_background_until_it_is_stopped(
    server: RunningServer, engine: FakeEngine, folder: Path
) -> None:
    async def test(client: Any) -> None:
        said, _ = await called(client, "read_document", path="book.md")
        assert said.startswith("reading First, about 1 min. Chapters: 1: First, 2: Second"), said
        await asyncio.to_thread(wait_until, lambda: len(engine.requests) == 2)
        assert [request["text"].split()[-1] for request in engine.requests] == ["water.", "bridge."]
        engine.reset()
        engine.hold_from = 1
        (folder / "long.txt").write_text(LONG * 3)
        await called(client, "read_document", path="long.txt")
        await asyncio.to_thread(engine.streams_opened.acquire)
        assert (await called(client, "stop"))[0] == "stopped"
        engine.release()
        await asyncio.to_thread(engine.streams_cancelled.acquire)

    over_stdio(server, folder, test)


def test_a_chapter_is_written_to_a_file(server: RunningServer, engine: FakeEngine, folder: Path) -> None:
    async def test(client: Any) -> None:
        said, failed = await called(client, "read_document", path="book.md", chapter=2, file="two.wav")
        assert (said.startswith("wrote "), failed) == (True, False), said
        assert engine.requests[-1]["text"].endswith("An old bridge.")
        assert "water" not in engine.requests[-1]["text"]

    over_stdio(server, folder, test)


def test_mistakes_are_said_to_the_agent(server: RunningServer, engine: FakeEngine, folder: Path) -> None:
    mistakes: list[tuple[str, dict[str, Any], str]] = [
        ("speak", {"text": SHORT, "voice": "af_hart"}, "did you mean af_heart"),
        ("speak", {"text": " "}, "the text is empty"),
        ("speak", {"text": SHORT, "file": "x.exe"}, "choose one of .wav"),
        ("speak", {"text": SHORT, "file": "../x.wav"}, "--folder allows another"),
        ("speak", {"text": SHORT, "file": "taken.wav"}, "choose another name"),
        ("speak", {"text": SHORT, "file": "none/x.wav"}, "there is no folder"),
        ("read_document", {"path": "../secret.txt"}, "is outside of"),
        ("read_document", {"path": "/etc/hostname"}, "is outside of"),
        ("read_document", {"path": "none.epub"}, "cannot read"),
        ("read_document", {"path": "taken.wav"}, "is not a book file"),
        ("read_document", {"path": "book.md", "chapter": 3}, "has chapters 1 to 2"),
    ]
    (folder / "taken.wav").write_bytes(b"mine")

    async def test(client: Any) -> None:
        for tool, options, message in mistakes:
            said, failed = await called(client, tool, **options)
            assert (message in said, failed) == (True, True), (tool, options, said)
        assert (await called(client, "stop"))[0] == "nothing is being said"

    over_stdio(server, folder, test)
    assert (folder / "taken.wav").read_bytes() == b"mine"


def test_without_a_sound_card_a_file_is_offered(server: RunningServer, engine: FakeEngine, folder: Path) -> None:
    async def test(client: Any) -> None:
        said, failed = await called(client, "speak", text=SHORT)
        assert ("to play audio" in said, "give `file`" in said, failed) == (True, True, True)

    over_stdio(server, folder, test, card=False)
