"""Voices that callers add over HTTP: private to their key or shared, on every route and wire, never a hostile file."""

import asyncio
import io
import json
import pickle
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from websockets.sync.client import connect

from tests.fakes import RecordingModel, silent_voices, tone_engine
from tests.server.harness import RunningServer, assert_error, serving
from tests.server.test_jobs import wait_for_end
from tutti.torch_file import torch_file
from tutti.voices import NAMES, Voices

pytestmark = pytest.mark.server

MODEL = RecordingModel("acoustic")
OURS, THEIRS = "key-of-ours", "key-of-theirs"
ADD = "/v1/audio/voices"
TEXT = "deep water"


def voice(value: float) -> bytes:
    return torch_file(np.full((510, 1, 256), value, np.float32))


@pytest.fixture(scope="module")
def kokoro(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("voices")
    silent_voices(folder)
    return folder


@pytest.fixture
def server(kokoro: Path, tmp_path: Path) -> Iterator[RunningServer]:
    """A server with two keys."""
    engine = tone_engine(Voices(kokoro, tmp_path / "own"), lambda: MODEL)
    with serving(engine, api_keys=f"{OURS},{THEIRS}", max_voices=3, voice_names="narrator=am_adam") as running:
        yield running


@pytest.fixture
def open_server(kokoro: Path, tmp_path: Path) -> Iterator[RunningServer]:
    """A server without keys."""
    with serving(tone_engine(Voices(kokoro, tmp_path / "own"), lambda: MODEL)) as running:
        yield running


def of(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def add(
    server: RunningServer,
    key: str,
    name: str,
    data: bytes,
    file: str = "v.pt",
    field: str = "audio_sample",
    **form: str,
) -> httpx2.Response:
    return server.clients[0].post(ADD, headers=of(key), data={"name": name, **form}, files={field: (file, data)})


def styles(server: RunningServer, key: str, path: str, body: Any, **options: Any) -> tuple[int, set[float]]:
    """Return the status of a request, and the styles of the rows that were made for it."""
    MODEL.acoustic_calls.clear()
    headers = of(key) | options.pop("headers", {})
    if isinstance(body, str):
        response = server.clients[0].post(path, content=body.encode(), headers=headers)
    else:
        response = server.post(path, body, headers=headers)
    return response.status_code, {float(row.style[0]) for rows in MODEL.acoustic_calls for row in rows}


def test_the_answer_is_openais(server: RunningServer) -> None:
    answer = add(server, OURS, "kira", voice(2.0), language="en-gb", consent="cons_1").json()
    assert (answer["object"], answer["id"], answer["name"]) == ("audio.voice", "kira", "kira")
    assert (answer["language"], answer["access"], answer["yours"]) == ("en-gb", "private", True)
    assert isinstance(answer["created_at"], int)
    one = server.get(f"{ADD}/kira", headers=of(OURS)).json()
    assert one == {name: value for name, value in answer.items() if name != "created_at"}
    assert server.get(f"{ADD}/af_sky", headers=of(OURS)).json()["id"] == "af_sky"


SPEECH = [
    ("/v1/audio/speech", {"input": TEXT, "voice": "kira"}),
    ("/v1/audio/speech", {"input": TEXT, "voice": "kira", "stream": False}),
    ("/v1/audio/speech", {"input": TEXT, "voice": "kira", "stream_format": "sse"}),
    ("/v1/audio/speech", {"input": TEXT, "voice": {"id": "kira"}}),
    ("/v1/audio/speech", {"input": TEXT, "voice": "Kira (American English, your own)"}),
    ("/v1/audio/speech", {"input": TEXT, "voice": "kira(3)+af_sky"}),
    ("/v1/audio/speech", {"input": TEXT, "voice": ["af_sky", "kira"]}),
    ("/v1/audio/speech", {"input": "[voice:kira]deep water"}),
    ("/v1/audio/speech", {"input": "<speak><voice name='kira'>deep water</voice></speak>"}),
    ("/v1/audio/speech", {"input": TEXT, "voice": "bob", "voice_aliases": {"bob": "kira"}}),
    ("/v1/audio/speech", {"input": TEXT, "voice": "kira", "style": "kira"}),
    ("/tts", {"text": TEXT, "voice": "kira"}),
    ("/tts/stream", {"text": TEXT, "speaker": "kira"}),
    ("/dev/captioned_speech", {"input": TEXT, "voice": "kira"}),
    ("/dev/dialogue", {"turns": [{"voice": "kira", "text": TEXT}]}),
    ("/dev/generate_from_phonemes", {"phonemes": "dˈip", "voice": "kira"}),
    ("/v1/text-to-speech/kira", {"text": TEXT}),
    ("/v1/text-to-speech/kira/stream", {"text": TEXT}),
    ("/v1/text-to-speech/kira/with-timestamps", {"text": TEXT}),
    ("/v1/text-to-speech/kira/stream/with-timestamps", {"text": TEXT}),
    ("/v1/text-to-dialogue", {"inputs": [{"text": TEXT, "voice_id": "kira"}]}),
    ("/v1/text-to-dialogue/stream", {"inputs": [{"text": TEXT, "voice_id": "kira"}]}),
    ("/v1/speak?model=kira", {"text": TEXT}),
    ("/v2/speak?model=kira", {"text": TEXT}),
    ("/tts/bytes", {"transcript": TEXT, "voice": {"mode": "id", "id": "kira"}}),
    ("/tts/sse", {"transcript": TEXT, "voice": {"mode": "id", "id": "kira"}}),
]


def test_a_private_voice_speaks_for_its_key_alone_on_every_route(server: RunningServer) -> None:
    assert add(server, OURS, "kira", voice(2.0)).status_code == 200
    for path, body in SPEECH:
        status, made = styles(server, OURS, path, body)
        assert status == 200, (path, body)
        assert made & {2.0, 1.5, 1.0}, (path, body)
        status, made = styles(server, THEIRS, path, body)
        assert status == 400, (path, body)
        assert not made, (path, body)
    azure = "<speak><voice name='kira'>deep water</voice></speak>"
    for key, expected in ((OURS, (200, {2.0})), (THEIRS, (400, set()))):
        ssml = {"content-type": "application/ssml+xml"}
        assert styles(server, key, "/cognitiveservices/v1", azure, headers=ssml) == expected
    for path, body in ((f"{ADD}/combine", "kira+af_sky"), ("/dev/ssml", {"text": "x", "voice": "kira"})):
        assert server.post(path, body, headers=of(OURS)).status_code == 200
        assert_error(server.post(path, body, headers=of(THEIRS)), 400, "voice_not_found", "voice")


def names_listed(server: RunningServer, headers: dict[str, str]) -> list[set[str]]:
    return [
        {each["id"] for each in server.get(ADD, headers=headers).json()["voices"]},
        set(server.get(f"{ADD}?legacy=true", headers=headers).json()["voices"]),
        {each["voice_id"] for each in server.get("/v1/voices", headers=headers).json()["voices"]},
        {each["voice_id"] for each in server.get("/v2/voices", headers=headers).json()["voices"]},
        {each["id"] for each in server.get("/voices", headers=headers).json()["data"]},
        {each["ShortName"] for each in server.get("/cognitiveservices/voices/list", headers=headers).json()},
    ]


def test_a_private_voice_is_listed_for_its_key_alone(server: RunningServer) -> None:
    add(server, OURS, "kira", voice(2.0))
    add(server, OURS, "tom", voice(3.0), access="shared")
    for headers in (of(OURS), {"xi-api-key": OURS}, {"api-key": OURS}):
        assert all(names == {*NAMES, "kira", "tom"} for names in names_listed(server, headers))
    for headers in (of(THEIRS), {}, of("wrong")):
        assert all(names == {*NAMES, "tom"} for names in names_listed(server, headers))
    for path in (f"{ADD}/kira", "/v1/voices/kira", "/v1/voices/kira/settings", "/voices/kira"):
        assert server.get(path, headers=of(OURS)).status_code == 200, path
        answer = server.get(path, headers=of(THEIRS))
        assert answer.status_code in (400, 404), path
        assert "kira or" not in answer.text, path
    assert styles(server, THEIRS, "/v1/audio/speech", {"input": TEXT, "voice": "tom"}) == (200, {3.0})


def socket_styles(server: RunningServer, path: str, key: str, *messages: Any, voice_key: str = "") -> set[float]:
    """Return the styles of what a socket speaks until it is closed or says that it has ended."""
    MODEL.acoustic_calls.clear()
    headers = of(key)
    with connect(f"{server.socket_url}{path}", additional_headers=headers) as socket:
        for message in messages:
            socket.send(json.dumps(message))
        for received in socket:
            event = {} if isinstance(received, bytes) else json.loads(received)
            ends = ("error", "Error", "session.done", "response.done", "done", "Flushed", "output.done")
            if event.get("type") in ends or event.get("isFinal") or event.get("done") or "error" in event:
                break
    return {float(row.style[0]) for rows in MODEL.acoustic_calls for row in rows}


SOCKETS = [
    (
        "/v1/audio/speech/stream",
        [
            {"type": "session.config", "voice": "kira"},
            {"type": "input.text", "text": TEXT},
            {"type": "input.done"},
        ],
    ),
    (
        "/v1/realtime",
        [
            {"type": "session.update", "session": {"audio": {"output": {"voice": "kira"}}}},
            {"type": "response.create", "response": {"instructions": "", "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TEXT}]}]}},
        ],
    ),
    (
        "/v1/text-to-speech/kira/multi-stream-input",
        [{"text": TEXT, "context_id": "c", "flush": True}, {"context_id": "c", "close_context": True}],
    ),
    (
        "/tts/websocket",
        [{"context_id": "c", "transcript": TEXT, "voice": {"mode": "id", "id": "kira"}, "model_id": "sonic"}],
    ),
    ("/v1/speak?model=kira", [{"type": "Speak", "text": TEXT}, {"type": "Flush"}]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "messages"), SOCKETS, ids=[path for path, _ in SOCKETS])
def test_a_private_voice_speaks_for_its_key_alone_on_every_socket(
    server: RunningServer, path: str, messages: list[Any]
) -> None:
    add(server, OURS, "kira", voice(2.0))
    assert socket_styles(server, path, OURS, *messages) == {2.0}
    try:
        heard = socket_styles(server, path, THEIRS, *messages)
    except Exception as error:  # noqa: BLE001 - refused before the upgrade
        assert "400" in str(error)  # noqa: PT017
        heard = set()
    assert 2.0 not in heard


def test_a_key_in_the_first_message_has_its_private_voices(server: RunningServer) -> None:
    add(server, OURS, "kira", voice(2.0))
    path = "/v1/text-to-speech/kira/stream-input"
    for key, expected in ((OURS, {2.0}), (THEIRS, set())):
        messages = [{"text": " ", "xi_api_key": key}, {"text": f"{TEXT} "}, {"text": ""}]
        assert socket_styles(server, path, "", *messages) == expected


@pytest.mark.process
def test_a_book_is_read_by_a_private_voice_of_its_owner(server: RunningServer) -> None:
    add(server, OURS, "kira", voice(2.0))
    body = {"text": "# One\n\n[voice:kira]It began.", "voice": "kira", "format": "wav"}
    assert_error(server.post("/v1/jobs", body, headers=of(THEIRS)), 400, "voice_not_found", "voice")
    marked = {"text": "# One\n\n[voice:kira]It began.", "format": "wav"}
    refused = server.post("/v1/jobs", marked, headers=of(THEIRS), timeout=300)
    assert_error(refused, 400, "voice_not_found", "voice")
    MODEL.acoustic_calls.clear()
    answer = server.post("/v1/jobs", body, headers=of(OURS), timeout=300)
    assert answer.status_code == 201, answer.text
    job = answer.json()
    assert wait_for_end(server, job["id"], headers=of(OURS), timeout=300)["state"] == "done"
    assert {float(row.style[0]) for rows in MODEL.acoustic_calls for row in rows} == {2.0}


def test_two_keys_may_have_a_voice_of_one_name(server: RunningServer) -> None:
    add(server, OURS, "kira", voice(2.0))
    assert add(server, THEIRS, "kira", voice(4.0)).status_code == 200
    body = {"input": TEXT, "voice": "kira", "stream": False}
    assert styles(server, OURS, "/v1/audio/speech", body) == (200, {2.0})
    assert styles(server, THEIRS, "/v1/audio/speech", body) == (200, {4.0})
    tags = [server.post("/v1/audio/speech", body, headers=of(key)).headers["etag"] for key in (OURS, THEIRS)]
    assert tags[0] != tags[1]


def test_only_who_has_added_a_voice_deletes_it(server: RunningServer, tmp_path: Path) -> None:
    add(server, OURS, "kira", voice(2.0))
    add(server, OURS, "tom", voice(3.0), access="shared")
    np.save(tmp_path / "own" / "dora.npy", np.ones((510, 256), np.float32))

    def delete(name: str, key: str) -> httpx2.Response:
        return server.clients[0].delete(f"{ADD}/{name}", headers=of(key))

    assert_error(delete("kira", THEIRS), 404, "voice_not_found", "id")
    assert_error(delete("tom", THEIRS), 403, "not_your_voice", "id")
    assert_error(delete("kira", ""), 401, "invalid_api_key")
    for name in ("dora", "af_sky"):
        assert_error(delete(name, OURS), 403, "not_your_voice", "id")
    for name in ("kira", "tom"):
        assert delete(name, OURS).json() == {"id": name, "deleted": True}
        assert_error(delete(name, OURS), 404, "voice_not_found", "id")
        assert styles(server, OURS, "/v1/audio/speech", {"input": TEXT, "voice": name}) == (400, set())
    assert [path.name for path in (tmp_path / "own").rglob("*.*") if path.name != ".lock"] == ["dora.npy"]


def test_they_survive_a_restart_and_are_seen_by_all_processes_at_once(
    server: RunningServer, kokoro: Path, tmp_path: Path
) -> None:
    elsewhere = Voices(kokoro, tmp_path / "own")
    assert "kira" not in elsewhere.seen_by(sha256(OURS.encode()).hexdigest()[:12])
    add(server, OURS, "kira", voice(2.0))
    add(server, OURS, "tom", voice(3.0), access="shared")
    for voices in (elsewhere, Voices(kokoro, tmp_path / "own")):
        assert "tom" in voices
        assert "kira" not in voices
        assert voices.seen_by(sha256(OURS.encode()).hexdigest()[:12]).get("kira+tom").table[7, 7] == 2.5
        assert "kira" not in voices.seen_by(sha256(THEIRS.encode()).hexdigest()[:12])


def test_a_server_without_keys_shares_them(open_server: RunningServer) -> None:
    answer = add(open_server, "", "kira", voice(2.0)).json()
    assert (answer["access"], answer["yours"]) == ("shared", True)
    assert styles(open_server, "", "/v1/audio/speech", {"input": TEXT, "voice": "kira"}) == (200, {2.0})
    assert_error(add(open_server, "", "tom", voice(2.0), access="private"), 400, "invalid_input", "access")
    assert open_server.clients[0].delete(f"{ADD}/kira").status_code == 200


def test_a_key_has_a_limit(server: RunningServer) -> None:
    for name in ("a1", "a2"):
        assert add(server, OURS, name, voice(1.0)).status_code == 200
    assert add(server, OURS, "a3", voice(1.0), access="shared").status_code == 200
    error = assert_error(add(server, OURS, "a4", voice(1.0)), 429, "too_many_voices")
    assert "TUTTI_MAX_VOICES" in error["message"]
    assert add(server, THEIRS, "a1", voice(1.0)).status_code == 200
    server.clients[0].delete(f"{ADD}/a1", headers=of(OURS))
    assert add(server, OURS, "a4", voice(1.0)).status_code == 200


def test_the_operator_says_who_may_add(kokoro: Path, tmp_path: Path) -> None:
    adder = sha256(OURS.encode()).hexdigest()[:12]
    for settings, allowed in (({"voice_adders": adder}, (OURS,)), ({"max_voices": 0}, ())):
        engine = tone_engine(Voices(kokoro, tmp_path / f"own{len(allowed)}"), lambda: MODEL)
        with serving(engine, api_keys=f"{OURS},{THEIRS}", **settings) as running:
            for key in (OURS, THEIRS):
                assert add(running, key, "kira", voice(1.0)).status_code == (200 if key in allowed else 403)
            assert add(running, "", "kira", voice(1.0)).status_code == 401


class Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 50_000_000)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("file", "data", "reason"),
    [
        ("v.npy", npy(np.ones((100, 256), np.float32)), "shape"),
        ("v.npy", npy(np.full((510, 256), np.nan, np.float32)), "not finite"),
        ("v.npy", npy(np.zeros((510, 256), np.float32)), "not a voice of Kokoro"),
        ("v.pt", pickle.dumps(Code()), "run code"),
        ("v.pt", zip_bomb(), "compressed"),
        ("v.pt", b"", "damaged"),
        ("../../v.exe", voice(1.0), "suffix"),
        ("v", b"RIFF" + bytes(100), "is a recording"),
        ("me.wav", b"RIFF" + bytes(100), "is a recording, and this server makes no voices of recordings"),
        ("me.mp3", b"ID3" + bytes(100), "is a recording"),
        ("v.bin", bytes(3_000_000), "at most 2"),
    ],
)
def test_a_bad_file_is_refused_with_a_reason(
    server: RunningServer, tmp_path: Path, file: str, data: bytes, reason: str
) -> None:
    error = assert_error(add(server, OURS, "kira", data, file), 400, "invalid_input", "audio_sample")
    assert reason in error["message"]
    assert (
        reason in assert_error(add(server, OURS, "kira", data, file, "file"), 400, "invalid_input", "file")["message"]
    )
    assert not [*(tmp_path / "own").rglob("*.bin")]


@pytest.mark.parametrize("name", ["../kira", "a/b", "Kira", "", "a" * 41, "af_sky", "alloy", "default", "narrator"])
def test_a_bad_name_is_refused(server: RunningServer, name: str) -> None:
    assert_error(add(server, OURS, name, voice(1.0)), 400, "invalid_input", "name")


def test_a_form_that_is_none_is_refused(server: RunningServer) -> None:
    assert_error(server.post(ADD, {"name": "kira"}, headers=of(OURS)), 415, "unsupported_media_type")
    client = server.clients[0]
    form = {"name": (None, "kira")}
    assert_error(client.post(ADD, headers=of(OURS), files=form), 400, "invalid_input", "file")
    assert_error(add(server, OURS, "kira", voice(1.0), access="ours"), 400, "invalid_input", "access")
    assert_error(add(server, OURS, "kira", voice(1.0), language="tlh"), 400, "unknown_language", "language")
    answer = add(server, OURS, "kira", voice(1.0), colour="red")
    assert answer.headers["x-ignored"] == "colour"


def test_a_gigabyte_is_refused_before_it_is_read(server: RunningServer) -> None:
    async def send() -> bytes:
        host, port = server.host_port
        reader, writer = await asyncio.open_connection(host, port)
        head = f"POST {ADD} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {OURS}\r\n"
        writer.write(
            f"{head}content-type: multipart/form-data; boundary=x\r\ncontent-length: 1000000000\r\n\r\n".encode()
        )
        answer = await reader.read(4096)
        writer.close()
        return answer

    assert b"413" in asyncio.run(send()).partition(b"\r\n")[0]
