"""Law: a server answers the same, byte for byte, whether its own process speaks HTTP or others before it."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from tests.faults.limited_server import TEXT, LimitedServer, limited_server

pytestmark = [pytest.mark.server, pytest.mark.process]

LONG = TEXT * 3
SPEECH, JSON = "/v1/audio/speech", {"response_format": "pcm"}
# What a server says of itself and of the moment.
MOVING_HEADERS = {
    "date",
    "server-timing",
    "x-request-id",
    "x-stream-id",
    "x-batch-size",
    "retry-after-ms",
    "retry-after",
}
MOVING_HEADERS |= {"x-download-path", "x-timing-path", "etag", "set-cookie"}
MOVING_PAGES = {"/metrics", "/v1/stats", "/v1/stats/costs", "/v1/stats/stream", "/health", "/health/workers"}
MOVING_PAGES |= {"/v1/jobs/feed", "/health/batching", "/health/streaming", "/test/batching", "/v1/stats/trial"}
POSTS: list[tuple[str, Any]] = [
    *[(SPEECH, {"input": LONG, "response_format": name}) for name in ("pcm", "wav", "mp3", "opus", "flac", "aac")],
    (SPEECH, {"input": LONG, "stream": False, **JSON}),
    (SPEECH, {"input": LONG, "stream_format": "sse", "word_timestamps": True, **JSON}),
    (SPEECH, {"input": TEXT, "return_download_link": True, "stream": False, **JSON}),
    (SPEECH, {"input": TEXT, "return_download_link": True, "download_format": "flac", "return_timing": True}),
    (SPEECH, {"input": "", **JSON}),
    (SPEECH, {"input": TEXT, "voice": "nobody"}),
    (SPEECH, {"input": TEXT, "model": "nobody"}),
    (SPEECH, {"input": 7}),
    (SPEECH, []),
    ("/tts", {"text": LONG, "format": "wav"}),
    ("/tts", {"text": LONG, "speed": 99}),
    ("/tts/stream", {"text": LONG}),
    ("/tts/batch", {"requests": [{"text": TEXT}, {"text": ""}]}),
    ("/dev/captioned_speech", {"input": LONG, **JSON}),
    ("/dev/dialogue", {"turns": [{"voice": "af_sky", "text": LONG}, {"voice": "am_puck", "text": TEXT}], **JSON}),
    ("/dev/dialogue", {"turns": []}),
    ("/v1/audio/dialogue", {"turns": []}),
    ("/dev/ssml", {"text": "<speak>one<break/>two</speak>"}),
    ("/dev/phonemize", {"text": TEXT}),
    ("/dev/generate_from_phonemes", {"phonemes": "dˈip"}),
    ("/v1/audio/voices", {}),
    ("/v1/audio/voices/combine", "af_sky+af_bella"),
    ("/v1/text-to-speech/af_sky", {"text": LONG}),
    ("/v1/text-to-speech/af_sky/stream", {"text": LONG}),
    *((f"/v1/text-to-speech/af_sky{path}", {"text": LONG}) for path in ("/with-timestamps", "/stream/with-timestamps")),
    *((f"/v1/text-to-dialogue{path}", {"inputs": [{"text": LONG, "voice_id": "af_sky"}]}) for path in ("", "/stream")),
    *((f"{path}?encoding=linear16", {"text": LONG}) for path in ("/v1/speak", "/v2/speak")),
    ("/v1/speak", {"text": LONG}),
    ("/v2/speak", {"text": ""}),
    ("/cognitiveservices/v1", "<speak>deep</speak>"),
    ("/tts/bytes", {"transcript": LONG}),
    ("/tts/bytes", {"transcript": LONG, "output_format": {"container": "raw", "encoding": "pcm_f32le"}}),
    ("/tts/sse", {"transcript": LONG, "add_timestamps": True}),
    ("/test/batching", {}),
    ("/v1/stats/trial", {"policy": "nobody"}),
    ("/v1/jobs", {"text": ""}),
    ("/v1/jobs/nobody/cancel", {}),
    ("/v1/jobs/nobody/resume", {}),
    ("/v1/jobs/nobody/again", {}),
    ("/v1/lexicons/mine", {"nginx": "engine ex"}),
    ("/v1/lexicons/mine/words", {"deep": None}),
    ("/v1/lexicons/nobody/words", {"nginx": "engine ex"}),
    ("/dev/readings", {"text": "nginx", "word": "nginx"}),
    ("/v1/pronunciation-dictionaries/add-from-rules", {"name": "mine", "rules": [{"type": "odd"}]}),
    ("/v1/pronunciation-dictionaries/add-from-file", {}),
    *((f"/v1/pronunciation-dictionaries/nobody/{kind}-rules", {"rules": []}) for kind in ("add", "set")),
    ("/v1/pronunciation-dictionaries/nobody/remove-rules", {"rule_strings": ["nginx"]}),
    ("/nowhere", {}),
]
GETS = [
    *(
        "/v1/models",
        "/v1/models/kokoro",
        "/v1/models/nobody",
        "/v1/audio/models",
        "/v1/audio/voices",
        "/v1/audio/voices/af_sky",
        "/v1/audio/voices/nobody",
        "/v1/audio/voices/af_sky/similar",
        "/v1/test",
        "/v1/",
    ),
    *(
        "/health",
        "/health/batching",
        "/health/streaming",
        "/health/workers",
        "/v2/voices",
        "/v1/voices",
        "/healthz",
    ),
    *("/readyz", "/version", "/metrics", "/v1/stats", "/v1/stats/costs", "/v1/jobs", "/v1/jobs/x", "/v1/jobs/x/audio"),
    *(
        "/v1/jobs/x/captions",
        "/v1/jobs/x/events",
        "/",
        "/docs",
        "/openapi.json",
        "/v1/download/x.wav",
        "/download/x.wav",
    ),
    *("/nowhere", SPEECH, "/tts?x=y", "/voices", "/voices/nobody"),
    *("/dev/ssml", "/web", "/web/"),
    *("/v1/voices/af_sky", "/v1/voices/af_sky/settings", "/v1/voices/settings/default"),
    *(
        "/v1/lexicons/nobody",
        "/v1/lexicons/nobody?format=pls",
        "/v1/jobs/feed",
        "/v1/jobs/x/cover",
        "/v1/jobs/x/chapters",
    ),
    *("/v1/pronunciation-dictionaries", "/v1/pronunciation-dictionaries/nobody"),
    *("/v1/lexicons", "/v1/pronunciation-dictionaries/nobody/1/download", "/app.webmanifest"),
    *("/cognitiveservices/voices/list", "/v1/user", "/v1/user/subscription"),
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LimitedServer]]:
    with ExitStack() as stack:
        same_order = {"PYTHONHASHSEED": "0"}  # of the methods in a header
        flags = [("0", same_order), ("3", {**same_order, "TONE_BUSY": "1"})]
        found = []
        for number, env in flags:
            folder: Path = tmp_path_factory.mktemp(f"processes-{number}")
            found.append(stack.enter_context(limited_server(folder, "--http-processes", number, **env)))
        yield found
        assert not [error for server in found for error in server.errors()]


def told(server: LimitedServer, method: str, path: str, **options: Any) -> tuple[int, dict[str, str], bytes | None]:
    """Status, headers and body of an answer, without what changes with every request."""
    with httpx2.Client(base_url=server.url, timeout=60, verify=False) as client:
        answer = client.request(method, path, **options)
    headers = {name: value for name, value in answer.headers.items() if name not in MOVING_HEADERS}
    if path in MOVING_PAGES or "return_download_link" in str(options):
        headers.pop("content-length", None)
        return answer.status_code, headers, None
    return answer.status_code, headers, answer.content


@pytest.mark.parametrize(("path", "body"), POSTS, ids=[f"{path} {json.dumps(body)[:60]}" for path, body in POSTS])
def test_a_post_is_answered_the_same(servers: list[LimitedServer], path: str, body: Any) -> None:
    one, other = (told(server, "POST", path, json=body) for server in servers)
    assert one == other


@pytest.mark.parametrize("path", GETS)
def test_what_only_reads_is_answered_the_same(servers: list[LimitedServer], path: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS"):
        one, other = (told(server, method, path) for server in servers)
        assert one == other


def test_live_text_is_answered_the_same(servers: list[LimitedServer]) -> None:
    def audio(server: LimitedServer) -> bytes:
        with connect(f"ws{server.url.removeprefix('http')}{SPEECH}/stream") as live:
            live.send(json.dumps({"type": "input.text", "text": LONG}))
            live.send(json.dumps({"type": "input.done"}))
            messages = takewhile(lambda message: "session.done" not in str(message), live)
            return b"".join(message for message in messages if isinstance(message, bytes))

    one, other = map(audio, servers)
    assert one == other != b""


def test_every_route_is_here(servers: list[LimitedServer]) -> None:
    document = httpx2.get(f"{servers[0].url}/openapi.json").json()
    known = [path for path, _ in POSTS] + GETS
    left_out = {"/v1/stats/stream", "/v1/jobs/{id}", "/dev/unload"}  # endless; DELETE; changes the server

    def is_known(path: str) -> bool:
        return any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), each) for each in known)

    assert [path for path in document["paths"] if not is_known(path) and path not in left_out] == []
