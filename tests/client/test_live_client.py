"""live(): text in as it is written, the right audio out, and nothing of what was cancelled."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.server.harness import RunningServer
from tutti.client import AsyncClient, Client, ClientClosed, Piece, Unreachable
from tutti.errors import TuttiError, UnknownVoice

pytestmark = pytest.mark.server

TEXT = "The old bridge stands still. Under it the water runs deep. Nobody knows how deep it is."


def fragments(text: str) -> list[str]:
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def joined(pieces: list[Piece]) -> tuple[bytes, list[str]]:
    return b"".join(piece.audio for piece in pieces), [word.word for piece in pieces for word in piece.words]


def test_text_in_fragments_is_spoken_whole_with_its_words(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client, client.live(voice="af_heart") as live:
        live.say(fragments(TEXT))
        audio, words = joined(list(live))
    assert [word.strip(".") for word in words] == TEXT.replace(".", "").split()
    assert len(audio) > 24_000
    assert len(audio) % 2 == 0


def test_texts_follow_each_other_on_one_socket(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client, client.live() as live:
        results = []
        for _ in range(2):
            live.say(fragments(TEXT))
            results.append(joined(list(live)))
        stats = client.stats()
    assert results[0] == results[1]
    assert (stats.count, stats.errors, stats.first_byte_s.count) == (2, 0, 2)


def test_after_a_cancel_only_the_new_text_is_delivered(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client, client.live() as live:
        live.say(fragments("Deep water."))
        expected = joined(list(live))
        live.say(fragments(TEXT * 20))
        next(live)
        live.cancel()
        live.say(fragments("Deep water."))
        assert joined(list(live)) == expected


def test_async_code_sends_and_receives_at_once(engine_url: str) -> None:
    async def talk() -> tuple[bytes, list[str]]:
        async with AsyncClient(engine_url, prewarm=False) as client, client.live() as live:

            async def tokens() -> AsyncIterator[str]:
                for fragment in fragments(TEXT):
                    await asyncio.sleep(0)
                    yield fragment

            writing = asyncio.create_task(live.say(tokens()))
            pieces = [piece async for piece in live]
            await writing
            return joined(pieces)

    _, words = asyncio.run(talk())
    assert len(words) == len(TEXT.split())


def test_closing_ends_the_iteration_of_another_thread(engine_url: str) -> None:
    ended = threading.Event()
    with Client(engine_url, prewarm=False) as client:
        with client.live() as live:

            def listen() -> None:
                with suppress(TuttiError):
                    list(live)
                ended.set()

            threading.Thread(target=listen, daemon=True).start()
            live.send("Deep water. ")
        assert ended.wait(60)
        with pytest.raises(ClientClosed):
            live.send("more")


def test_an_invalid_option_raises_the_error_of_the_server(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client, client.live(voice="af_hart") as live:
        live.say(["Hello."])
        with pytest.raises(UnknownVoice, match="af_heart"):
            list(live)


def test_an_empty_text_ends(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client, client.live() as live:
        live.finish()
        assert list(live) == []


def test_an_unreachable_server_raises(server: RunningServer) -> None:
    with Client("http://127.0.0.1:9", prewarm=False) as client, pytest.raises(Unreachable), client.live():
        pass
