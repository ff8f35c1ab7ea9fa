"""Over TLS the client speaks HTTP/2: many texts share one connection, and WebSockets still open."""

from collections.abc import Iterator

import pytest

from tests.client.tls_server import TlsServer, tls_server
from tests.fakes import silent_voices, tone_engine
from tutti.client import Audio, Client, Unreachable

pytestmark = pytest.mark.server

TEXTS = [f"{'deep ' * n}water" for n in range(1, 13)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    folder = tmp_path_factory.mktemp("tls_server")
    with tls_server(tone_engine(silent_voices(folder)), folder) as served:
        yield served


@pytest.fixture
def client(server: TlsServer) -> Iterator[Client]:
    server.requests.clear()
    with Client(server.url, verify=server.trusted, memory_cache_bytes=0, prewarm=False) as client:
        yield client


def test_twelve_texts_at_once_share_one_connection(server: TlsServer, client: Client) -> None:
    results = client.speak_many(TEXTS, format="pcm", max_concurrency=12)
    alone = [client.speak(text, format="pcm").data for text in TEXTS]
    assert [audio.data if isinstance(audio, Audio) else audio for audio in results] == alone
    assert {version for _, version, _ in server.requests} == {"2"}
    assert len({client_address for _, _, client_address in server.requests}) == 1
    stats = client.stats()
    assert (stats.count, stats.connections, stats.errors) == (24, 1, 0)
    assert stats.reuse_rate == 23 / 24


def test_a_stream_left_early_keeps_the_connection_for_the_others(server: TlsServer, client: Client) -> None:
    with client.stream("The old bridge stands still. " * 20) as stream:
        assert next(stream).audio
    assert client.speak("deep water").data
    assert client.stats().connections == 1
    assert len({client_address for _, _, client_address in server.requests}) == 1


def test_live_text_opens_a_second_connection(server: TlsServer, client: Client) -> None:
    with client.live() as live:
        live.say(["Deep ", "water."])
        assert sum(len(piece.audio) for piece in live) > 4800
    assert [version for path, version, _ in server.requests if path.endswith("/stream")] == ["1.1"]


def test_http2_can_be_disabled(server: TlsServer) -> None:
    server.requests.clear()
    with Client(server.url, verify=server.trusted, http2=False, prewarm=False) as client:
        assert client.speak("deep water").data
    assert [version for _, version, _ in server.requests] == ["1.1"]


def test_a_server_with_only_http_1_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("older")
    with (
        tls_server(tone_engine(silent_voices(folder)), folder, ("http/1.1",)) as older,
        Client(older.url, verify=older.trusted, prewarm=False) as client,
    ):
        assert client.speak("deep water").data
        assert [version for _, version, _ in older.requests] == ["1.1"]


def test_an_untrusted_certificate_is_refused(server: TlsServer) -> None:
    with Client(server.url, retries=0, prewarm=False) as client, pytest.raises(Unreachable, match=r"(?i)certificate"):
        client.speak("deep water")
