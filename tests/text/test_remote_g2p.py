"""G2P over HTTP: the same result as in process, and an error with its cause for everything else."""

import json
import pickle
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
import uvicorn

from tutti.errors import G2PUnavailable, InvalidInput, MissingExtra, NothingToSpeak, UnknownLanguage
from tutti.server.routes.g2p import MAX_BODY, g2p_app
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p import chinese, espeak, japanese
from tutti.text.g2p.remote import RemoteG2P
from tutti.text.normalize import normalize

pytestmark = pytest.mark.server

SENTENCES = {
    "es": "«Hola», dijo ella (en voz baja) a las 14:30.",
    "fr": "Les enfants ont mangé 3 oranges, n'est-ce pas ?",
    "hi": "मेरा नाम राहुल है।",
    "zh": "我有3个苹果，你好！",
    "ja": "私は学校へ2人で行きます。",
}


def english(aligned: AlignedText, given: Mapping[int, str]) -> Pronunciation:
    return Pronunciation((PhonemeWord("ˈɛks", aligned.source()),))


def pronounce(aligned: AlignedText, code: str, given: Mapping[int, str]) -> Pronunciation:
    match code:
        case "zh":
            return chinese.pronounce(aligned, given, english)
        case "ja":
            return japanese.pronounce(aligned, given, english)
        case "it" if aligned.text == "boom":
            raise RuntimeError("a secret")
        case "it" if aligned.text == "niente":
            raise NothingToSpeak("there is nothing to speak", param="text")
        case "it":
            raise MissingExtra("Italian is not installed here", param="language")
        case _:
            return espeak.pronounce(aligned, code, given)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Server(uvicorn.Config(g2p_app(pronounce), log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    assert started.wait(20)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture(scope="module")
def remote(url: str) -> Iterator[RemoteG2P]:
    service = RemoteG2P(url, timeout_s=60)  # the first text loads its dictionaries
    yield service
    service.close()


@contextmanager
def answering(status: int, body: object) -> Iterator[RemoteG2P]:
    """A foreign service that always gives the same answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    service = RemoteG2P(f"http://127.0.0.1:{server.server_port}/say")
    try:
        yield service
    finally:
        service.close()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("code", SENTENCES)
def test_the_service_gives_the_same_result_as_this_process(remote: RemoteG2P, code: str) -> None:
    aligned = normalize(AlignedText.of(SENTENCES[code], offset=1000), code)
    assert remote.pronounce(aligned, code) == pronounce(aligned, code, {})


def test_given_ipa_is_sent_to_the_service(remote: RemoteG2P) -> None:
    aligned = AlignedText.of("hola ", 50) + AlignedText("\ufffc", (55,), (80,)) + AlignedText.of(" y \ufffc.", 80)
    given = {55: "mˈundo", 83: "ˈotɾa"}
    pronunciation = remote.pronounce(aligned, "es", given)
    assert pronunciation == espeak.pronounce(aligned, "es", given)
    assert [word.source for word in pronunciation.words][1] == (55, 80)


def test_many_threads_can_use_one_client(remote: RemoteG2P) -> None:
    expected = {code: remote.pronounce(AlignedText.of(text), code) for code, text in SENTENCES.items()}
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(lambda code: (code, remote.pronounce(AlignedText.of(SENTENCES[code]), code)), [*SENTENCES] * 10)
        )
    assert all(pronunciation == expected[code] for code, pronunciation in results)


def test_it_can_be_pickled(remote: RemoteG2P) -> None:
    twin = pickle.loads(pickle.dumps(remote))
    assert twin.pronounce(AlignedText.of("hola"), "es") == remote.pronounce(AlignedText.of("hola"), "es")
    twin.close()


def test_a_direct_call_may_contain_figures_and_a_paragraph(url: str) -> None:
    with httpx2.Client() as client:
        answer = client.post(f"{url}/g2p", json={"text": "Corre 5 km. " * 800, "language": "Spanish"}).json()
    assert len(answer["words"]) == 2400
    assert answer["phonemes"].startswith("kˈore θˈinko kilˈometɾos. ")
    assert answer["dropped"] == []
    assert (answer["words"][1]["start"], answer["words"][2]["end"]) == (6, 10)


def test_the_service_has_a_health_check(url: str) -> None:
    assert httpx2.get(f"{url}/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": "a" * 10_001}, "text"),
        ({"text": "a", "language": "klingon"}, "language"),
        ({"text": "a", "given": {"x": "a"}}, "given"),
        ("no object", None),
    ],
)
def test_bad_requests_are_400_and_name_the_field(url: str, body: object, param: str | None) -> None:
    response = httpx2.post(f"{url}/g2p", json=body)
    error_body = response.json()
    assert response.status_code == 400
    assert error_body["error"]["param"] == param
    assert error_body["error"]["type"] == "invalid_request_error"
    assert error_body["detail"]["message"] == error_body["error"]["message"]


@pytest.mark.parametrize("raw", [b"{", b'{"text": "\\ud800"}', b"[" * 50_000, b"\xff", b""])
def test_broken_bodies_are_400(url: str, raw: bytes) -> None:
    response = httpx2.post(f"{url}/g2p", content=raw, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["code"]


def test_a_huge_body_is_refused(url: str) -> None:
    assert httpx2.post(f"{url}/g2p", content=b" " * (MAX_BODY + 1)).status_code == 413


def test_a_crash_reveals_no_internals(url: str) -> None:
    response = httpx2.post(f"{url}/g2p", json={"text": "boom", "language": "it"})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert "secret" not in response.text


def test_errors_of_the_caller_keep_their_type(remote: RemoteG2P) -> None:
    with pytest.raises(UnknownLanguage, match="klingon"):
        remote.pronounce(AlignedText.of("a"), "klingon")
    with pytest.raises(NothingToSpeak) as caught:
        remote.pronounce(AlignedText.of("niente"), "it")
    assert caught.value.param == "text"


def test_errors_of_the_service_name_its_address_and_the_cause(remote: RemoteG2P) -> None:
    with pytest.raises(G2PUnavailable, match=r"127\.0\.0\.1.*/g2p.*501.*Italian is not installed"):
        remote.pronounce(AlignedText.of("a"), "it")


WORD = {"phonemes": "a", "start": 0, "end": 4}


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (500, {}, "status 500"),
        (302, {}, "status 302"),
        (404, {"detail": "Not Found"}, "status 404"),
        (400, {"error": {"message": "no", "code": "queue_on_fire"}}, "no"),
        (200, b"<html>", "malformed"),
        (200, [], "malformed"),
        (200, {}, "neither"),
        (200, {"words": [{"phonemes": "a"}]}, "words.0.start"),
        (200, {"words": [WORD | {"end": 99}]}, "0-99"),
        (200, {"words": [WORD | {"start": -1}]}, "-1-4"),
        (200, {"words": [WORD | {"start": 4}]}, "4-4"),
        (200, {"words": [WORD | {"phonemes": "漢"}]}, "漢"),
        (200, {"words": [WORD | {"after": "@"}]}, "@"),
        (200, {"words": [WORD | {"start": 5, "end": 10}, WORD]}, "order"),
        (200, {"phonemes": "həlˈo§"}, "§"),
    ],
)
def test_a_bad_response_is_an_error_with_address_and_cause(status: int, body: object, cause: str) -> None:
    with answering(status, body) as service, pytest.raises(G2PUnavailable) as caught:
        service.pronounce(AlignedText.of("hola mundo"), "es")
    assert service.url in caught.value.message
    assert cause in caught.value.message


def test_a_response_with_only_phonemes_is_aligned_by_spaces() -> None:
    with answering(200, {"phonemes": "“ˈola, mˈundo!”"}) as service:
        pronunciation = service.pronounce(AlignedText.of("«hola, mundo!»", 10), "es")
    assert [(word.phonemes, word.source) for word in pronunciation.words] == [("ˈola", (11, 15)), ("mˈundo", (17, 22))]
    assert [word.symbols for word in pronunciation.words] == ["“ˈola, ", "mˈundo!” "]


def test_more_or_fewer_groups_than_words_still_cover_the_text() -> None:
    for phonemes in ("ˈola", "ˈo la mˈun do"):
        with answering(200, {"phonemes": phonemes}) as service:
            pronunciation = service.pronounce(AlignedText.of("hola mundo"), "es")
        assert "".join(word.phonemes for word in pronunciation.words) == phonemes.replace(" ", "")
        assert (pronunciation.words[0].source[0], pronunciation.words[-1].source[1]) == (0, 10)


def _listen_only(listening: socket.socket) -> None:
    listening.listen()


@pytest.mark.parametrize(("prepare", "cause"), [(_listen_only, "no answer in"), (lambda listening: None, "refused")])
def test_no_answer_and_a_refused_connection_are_errors(prepare: Callable[[socket.socket], None], cause: str) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        prepare(listening)
        service = RemoteG2P(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_s=0.2)
        with pytest.raises(G2PUnavailable, match=cause) as caught:
            service.pronounce(AlignedText.of("hola"), "es")
        assert service.url in caught.value.message
        service.close()


@pytest.mark.parametrize("url", ["", "localhost:9000", "ftp://host/g2p", "file:///etc/passwd"])
def test_only_http_addresses_are_accepted(url: str) -> None:
    with pytest.raises(InvalidInput, match="http"):
        RemoteG2P(url)
