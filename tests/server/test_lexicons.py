"""Lexicons that callers store by name: private to their key or shared, used by every route that speaks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import make_fake_engine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.text.pls import MEDIA_TYPE

pytestmark = pytest.mark.server

OURS, THEIRS = "key-of-ours", "key-of-theirs"
PATH = "/v1/lexicons"
WORDS = {"deep": "/dˈip/", "water": "voda"}
PLS = (
    "<lexicon alphabet='ipa' xml:lang='en'><lexeme><grapheme>deep</grapheme><phoneme>deɪp</phoneme></lexeme></lexicon>"
)


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture
def server(voices: Path) -> Iterator[RunningServer]:
    """A server with two keys."""
    with serving(make_fake_engine(voices), api_keys=f"{OURS},{THEIRS}", max_lexicons=2) as running:
        yield running


@pytest.fixture
def open_server(voices: Path) -> Iterator[RunningServer]:
    with serving(make_fake_engine(voices)) as running:
        yield running


def of(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def put(server: RunningServer, key: str, id: str, words: Any = WORDS, query: str = "") -> Any:
    return server.post(f"{PATH}/{id}{query}", words, headers=of(key))


def spoken(server: RunningServer, key: str, path: str, body: dict[str, Any]) -> dict[str, str]:
    """Speak, and return the pronunciations that the engine was asked for."""
    server.engine.reset()
    response = server.post(path, body, headers=of(key))
    assert response.status_code == 200, response.text
    found: dict[str, str] = server.engine.requests[-1]["lexicon"]
    return found


ROUTES = [
    ("/v1/audio/speech", {"input": "deep water"}),
    ("/v1/audio/speech", {"input": "deep water", "stream": False}),
    ("/v1/audio/speech", {"input": "deep water", "stream_format": "sse"}),
    ("/dev/captioned_speech", {"input": "deep water"}),
    ("/v1/audio/dialogue", {"turns": [{"voice": "af_heart", "text": "deep water"}]}),
    ("/tts", {"text": "deep water"}),
    ("/tts/stream", {"text": "deep water"}),
    ("/tts/batch", {"requests": [{"text": "deep water"}]}),
]


def speak_body(path: str, body: dict[str, Any], **options: Any) -> dict[str, Any]:
    if path == "/tts/batch":
        return {"requests": [{**body["requests"][0], **options}]}
    return {**body, **options}


def test_every_route_that_speaks_takes_its_name(server: RunningServer) -> None:
    answer = put(server, OURS, "sea").json()
    assert (answer["object"], answer["id"], answer["words"], answer["access"]) == ("lexicon", "sea", 2, "private")
    for path, body in ROUTES:
        assert spoken(server, OURS, path, speak_body(path, body, lexicon_id="sea")) == WORDS, path
    own = {"water": "uisce"}
    both = speak_body(*ROUTES[0], lexicon_id="sea", lexicon=own)
    assert spoken(server, OURS, ROUTES[0][0], both) == WORDS | own
    phonemes = server.post("/dev/phonemize", {"text": "deep", "lexicon_id": "sea"}, headers=of(OURS)).json()
    assert phonemes["phonemes"] == "dˈip"


SSML = "<speak>{}deep water</speak>"
WIRES: list[tuple[str, dict[str, Any], str]] = [
    ("/tts/bytes", {"transcript": "deep water", "pronunciation_dict_id": "sea"}, "pronunciation_dict_id"),
    ("/tts/sse", {"transcript": "deep water", "pronunciation_dict_id": "sea"}, "pronunciation_dict_id"),
    ("/v1/speak?lexicon_id=sea", {"text": "deep water"}, "lexicon_id"),
    ("/v2/speak?lexicon_id=sea", {"text": "deep water"}, "lexicon_id"),
    ("/v1/text-to-speech/af_heart", {"text": SSML.format('<lexicon uri="sea"/>')}, "text"),
    ("/v1/audio/speech", {"input": SSML.format("<lexicon xml:id='s' uri='sea'></lexicon>")}, "input"),
]


@pytest.mark.parametrize(("path", "body", "param"), WIRES)
def test_apis_of_other_services_take_its_name(
    server: RunningServer, path: str, body: dict[str, Any], param: str
) -> None:
    put(server, OURS, "sea")
    assert spoken(server, OURS, path, body) == WORDS
    assert_error(server.post(path, body, headers=of(THEIRS)), 404, "lexicon_not_found", param)


def test_ssml_names_lexicons(server: RunningServer) -> None:
    put(server, OURS, "sea")
    body = {"input": SSML.format('<lexicon uri="sea"/>'), "lexicon": {"water": "uisce"}}
    assert spoken(server, OURS, ROUTES[0][0], body) == WORDS | {"water": "uisce"}
    xml = {"content-type": "application/ssml+xml", **of(OURS)}
    azure = server.clients[0].post("/cognitiveservices/v1", content=body["input"], headers=xml)
    assert (azure.status_code, server.engine.requests[-1]["lexicon"]) == (200, WORDS)
    wrong = server.post(ROUTES[0][0], {"input": SSML.format('<lexicon uri="see"/>')}, headers=of(OURS))
    assert_error(wrong, 404, "lexicon_not_found", "input")
    assert spoken(server, OURS, ROUTES[0][0], {"input": SSML.format('<lexicon uri="https://a.b/sea.pls"/>')}) == {}


def test_of_several_lexicons_the_first_wins(server: RunningServer) -> None:
    put(server, OURS, "sea")
    put(server, OURS, "lake", {"water": "lough", "boat": "bád"})
    body = speak_body(*ROUTES[0], lexicon_id=["lake", "sea"])
    assert spoken(server, OURS, ROUTES[0][0], body) == {"deep": "/dˈip/", "water": "lough", "boat": "bád"}


def test_a_private_lexicon_is_of_its_key_alone(server: RunningServer) -> None:
    put(server, OURS, "sea")
    theirs = of(THEIRS)
    for path, body in ROUTES[:-1]:
        response = server.post(path, speak_body(path, body, lexicon_id="sea"), headers=theirs)
        assert_error(response, 404, "lexicon_not_found", "lexicon_id")
    for response in (
        server.get(f"{PATH}/sea", headers=theirs),
        server.clients[0].delete(f"{PATH}/sea", headers=theirs),
    ):
        assert_error(response, 404, "lexicon_not_found", "id")
    assert server.get(PATH, headers=theirs).json()["data"] == []
    assert put(server, THEIRS, "sea", {"deep": "other"}).status_code == 200  # a name of their own
    assert server.get(f"{PATH}/sea", headers=of(OURS)).json()["entries"] == WORDS


def test_a_shared_lexicon_is_for_all_and_changed_by_its_key_alone(server: RunningServer) -> None:
    put(server, OURS, "sea", query="?access=shared")
    assert spoken(server, THEIRS, ROUTES[0][0], speak_body(*ROUTES[0], lexicon_id="sea")) == WORDS
    one = server.get(f"{PATH}/sea", headers=of(THEIRS)).json()
    assert (one["access"], one["yours"], one["entries"]) == ("shared", False, WORDS)
    change = server.post(f"{PATH}/sea/words", {"deep": None}, headers=of(THEIRS))
    for response in (put(server, THEIRS, "sea"), change, server.clients[0].delete(f"{PATH}/sea", headers=of(THEIRS))):
        assert_error(response, 403, "not_your_lexicon", "id")
    assert put(server, OURS, "sea").json()["access"] == "shared"  # stays so until something else is asked for
    assert put(server, OURS, "sea", query="?access=private").json()["access"] == "private"
    assert server.get(PATH, headers=of(THEIRS)).json()["data"] == []


def test_words_are_added_replaced_and_removed(server: RunningServer) -> None:
    first = server.post(f"{PATH}/sea/words", WORDS, headers=of(OURS)).json()
    assert first["words"] == 2
    second = server.post(f"{PATH}/sea/words", {"deep": None, "water": "lough", "boat": "bád"}, headers=of(OURS)).json()
    assert second["version"] != first["version"]
    assert server.get(f"{PATH}/sea", headers=of(OURS)).json()["entries"] == {"water": "lough", "boat": "bád"}


def test_no_word_is_lost_when_many_are_added_at_once(open_server: RunningServer) -> None:
    words = [f"word{n}" for n in range(16)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda word: open_server.post(f"{PATH}/all/words", {word: "x"}), words))
    assert {answer.status_code for answer in answers} == {200}
    assert set(open_server.get(f"{PATH}/all").json()["entries"]) == set(words)


@pytest.mark.parametrize(
    ("media_type", "data", "expected"),
    [
        (MEDIA_TYPE, PLS, {"deep": "/dAp/"}),
        ("text/xml; charset=utf-8", PLS, {"deep": "/dAp/"}),
        ("text/tab-separated-values", "# our words\ndeep\t/dˈip/\n", {"deep": "/dˈip/"}),
        ("application/json", '{"deep": "/dˈip/"}', {"deep": "/dˈip/"}),
    ],
)
def test_it_is_stored_from_files_of_any_format(
    open_server: RunningServer, media_type: str, data: str, expected: dict[str, str]
) -> None:
    headers = {"content-type": media_type}
    response = open_server.clients[0].post(f"{PATH}/sea", content=data.encode(), headers=headers)
    assert response.status_code == 200, response.text
    assert open_server.get(f"{PATH}/sea").json()["entries"] == expected
    file = open_server.get(f"{PATH}/sea?format=pls")
    assert file.headers["content-type"].startswith(MEDIA_TYPE)
    assert 'filename="sea.pls"' in file.headers["content-disposition"]
    again = open_server.clients[0].post(f"{PATH}/again", content=file.content, headers={"content-type": MEDIA_TYPE})
    assert again.json()["words"] == 1
    assert open_server.get(f"{PATH}/again?format=json").json() == expected


def test_what_is_wrong_is_named(open_server: RunningServer) -> None:
    def send(data: Any, media_type: str = "application/json", id: str = "sea") -> Any:
        content = data if isinstance(data, bytes) else data.encode()
        return open_server.clients[0].post(f"{PATH}/{id}", content=content, headers={"content-type": media_type})

    assert_error(send('{"deep": "/§/"}'), 400, "invalid_input", "entries")
    assert_error(send('{"deep": 1}'), 400, "invalid_input", "entries")
    assert_error(send("{"), 400, "invalid_input", "entries")
    assert_error(send(b"\xff", "text/plain"), 400, "invalid_input", "entries")
    assert_error(send("<a/>", MEDIA_TYPE), 400, "invalid_input", "entries")
    assert_error(send("x", "image/png"), 415, "unsupported_media_type")
    assert_error(send("{}", id="Big%20Sea"), 400, "invalid_input", "id")
    assert_error(send("{}", id="sea?access=mine"), 400, "invalid_input", "access")
    assert_error(send("{}", id="sea?access=private"), 400, "invalid_input", "access")  # there are no keys
    assert_error(open_server.get(f"{PATH}/sea"), 404, "lexicon_not_found", "id")
    assert send("{}").status_code == 200
    assert_error(open_server.get(f"{PATH}/sea?format=csv"), 400, "invalid_input", "format")
    assert_error(open_server.speak(lexicon_id="see"), 404, "lexicon_not_found", "lexicon_id")
    assert "did you mean sea" in open_server.speak(lexicon_id="see").text
    assert_error(open_server.speak(lexicon_id=["sea"] * 11), 400, "invalid_input", "lexicon_id")


def test_a_key_stores_a_limited_number_and_deletes_its_own(server: RunningServer) -> None:
    for id in ("one", "two", "two"):
        assert put(server, OURS, id).status_code == 200
    assert_error(put(server, OURS, "three"), 429, "too_many_lexicons")
    assert put(server, THEIRS, "three").status_code == 200
    assert server.clients[0].delete(f"{PATH}/one", headers=of(OURS)).json() == {"id": "one", "deleted": True}
    assert put(server, OURS, "three").status_code == 200
    assert_error(server.post(f"{PATH}/four", WORDS), 401, "invalid_api_key")
    assert_error(server.clients[0].delete(f"{PATH}/two"), 401, "invalid_api_key")


def test_an_operator_may_allow_none(voices: Path) -> None:
    with serving(make_fake_engine(voices), max_lexicons=0) as server:
        assert_error(server.post(f"{PATH}/sea", WORDS), 403, "not_your_lexicon")


def test_an_answer_in_the_cache_is_not_that_of_an_older_lexicon(open_server: RunningServer) -> None:
    open_server.post(f"{PATH}/sea", WORDS)
    tags = [open_server.speak(stream=False, lexicon_id="sea").headers["etag"]]
    open_server.post(f"{PATH}/sea/words", {"deep": "other"})
    tags.append(open_server.speak(stream=False, lexicon_id="sea").headers["etag"])
    assert tags[0] != tags[1]
