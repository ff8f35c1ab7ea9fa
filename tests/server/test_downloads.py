"""`return_download_link`: the audio of an answer can be fetched again, once it is complete."""

import asyncio
import json
import os
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.responses import Response

from tests.fakes import FakeEngine, tone_engine
from tests.server.harness import LONG, SHORT, RunningServer, assert_error, serving
from tutti.audio.formats import FORMATS
from tutti.server import downloads
from tutti.voices import Voices

pytestmark = pytest.mark.server


@pytest.fixture
def own(fake_engine: FakeEngine) -> Iterator[RunningServer]:
    """A server with a data folder of its own."""
    with serving(fake_engine) as server:
        yield server


@pytest.fixture(scope="module")
def tones(voices: Voices) -> Iterator[RunningServer]:
    """The real engine, which reads marks, with tones."""
    with serving(tone_engine(voices)) as running:
        yield running


def folder(server: RunningServer) -> Path:
    path: Path = server.app.state.service.settings.data / "downloads"
    return path


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize("stream", [True, False])
def test_the_link_has_the_bytes_of_the_answer(server: RunningServer, text: str, stream: bool) -> None:
    response = server.speak(input=text, stream=stream, return_download_link=True)
    path = response.headers["x-download-path"]
    assert path.startswith("/download/")
    assert path.endswith(".mp3")
    again = server.get(path)
    assert (again.status_code, again.headers["content-type"]) == (200, "audio/mpeg")
    assert again.headers["content-disposition"] == 'attachment; filename="speech.mp3"'
    assert again.content == response.content


def test_without_the_option_nothing_is_stored(own: RunningServer) -> None:
    assert "x-download-path" not in own.speak().headers
    assert not folder(own).exists()


def test_an_unfinished_stream_has_no_file_and_leaves_none(own: RunningServer) -> None:
    own.engine.hold_from = 1
    body = {"input": LONG, "response_format": "pcm", "return_download_link": True}
    try:
        with own.client().stream("POST", "/v1/audio/speech", json=body) as response:
            next(response.iter_raw())
            assert_error(own.get(response.headers["x-download-path"]), 404, "download_not_found")
    finally:
        own.engine.release()
    assert own.engine.streams_cancelled.acquire(timeout=60)
    while list(folder(own).iterdir()):
        pass  # until the closed stream has removed its file


@pytest.mark.parametrize("name", ["x", "..%2f..%2fetc%2fpasswd", "a" * 22 + ".mp3", "." + "a" * 21 + ".mp3"])
def test_other_names_are_not_found(server: RunningServer, name: str) -> None:
    assert server.get(f"/v1/download/{name}").status_code == 404


@pytest.mark.parametrize("step_s", [-86_400, 3601, 86_400])
def test_a_step_of_the_wall_clock_ends_no_link(
    own: RunningServer, monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    path = own.speak(return_download_link=True).headers["x-download-path"]
    wall = time.time
    monkeypatch.setattr("tutti.server.downloads.time.time", lambda: wall() + step_s)
    assert own.get(path).status_code == 200
    assert own.get(own.speak(return_download_link=True).headers["x-download-path"]).status_code == 200
    assert own.get(path).status_code == 200


def test_a_link_ends_after_an_hour_on_the_monotonic_clock(tmp_path: Path) -> None:
    now = 1000.0
    links = downloads.Downloads(tmp_path, clock=lambda: now)

    async def store() -> str:
        download = links.begin(FORMATS["mp3"])
        download.record(Response(b"audio"))
        return download.audio.name

    name = asyncio.run(store())
    now += downloads.KEEP_S
    assert links.find(name) is not None
    now += 1
    assert links.find(name) is None
    asyncio.run(store())
    assert not (tmp_path / name).exists()


def test_old_files_are_deleted_and_the_oldest_when_there_are_too_many(
    own: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of an earlier process, whose age is what the file system says."""

    def store() -> Path:
        path = own.speak(return_download_link=True).headers["x-download-path"]
        return folder(own) / path.rpartition("/")[2]

    old, second, third = store(), store(), store()
    os.utime(old, (time.time() - downloads.KEEP_S - 1,) * 2)
    assert downloads.Downloads(folder(own)).find(old.name) is None
    downloads.make_room(folder(own), {}, 0.0)
    assert (old.exists(), second.exists(), third.exists()) == (False, True, True)
    os.utime(second, (time.time() - 60,) * 2)
    monkeypatch.setattr(downloads, "MAX_BYTES", 1.5 * third.stat().st_size)
    downloads.make_room(folder(own), {}, 0.0)
    assert (second.exists(), third.exists()) == (False, True)
    monkeypatch.setattr(downloads, "MAX_BYTES", 1e9)
    monkeypatch.setattr(downloads, "MAX_FILES", 1)
    fourth = store()
    os.utime(third, (time.time() - 60,) * 2)
    downloads.make_room(folder(own), {}, 0.0)
    assert (third.exists(), fourth.exists()) == (False, True)


def test_the_files_are_not_looked_at_for_each_link(own: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    monkeypatch.setattr(downloads, "make_room", lambda folder, *_: looks.append(folder))
    for _ in range(3):
        own.speak(return_download_link=True)
    assert looks == [folder(own)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("text", [SHORT, LONG])
def test_a_full_disk_costs_the_download_and_not_the_answer(
    own: RunningServer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    expected = own.speak(input=text, response_format="pcm").content
    monkeypatch.setattr(Path, "open", lambda _, mode: open("/dev/full", mode))  # noqa: SIM115
    response = own.speak(input=text, response_format="pcm", return_download_link=True)
    assert response.content == expected
    monkeypatch.undo()
    path = response.headers.get("x-download-path", "/download/" + "x" * 22 + ".pcm")
    assert_error(own.get(path), 404, "download_not_found")


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_says_that_its_audio_cannot_be_stored(own: RunningServer, stream: bool) -> None:
    folder(own).write_bytes(b"a file where the folder should be")
    response = own.speak(stream=stream, return_download_link=True, return_timing=True)
    assert response.content == own.speak(stream=stream).content
    assert not {"x-download-path", "x-timing-path"} & set(response.headers)
    assert response.headers["x-download-status"] == "unavailable"
    assert "could not be stored" in json.loads(response.headers["x-notices"])[-1]


# -- another format, and times -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("formats", [("mp3", "wav"), ("pcm", "flac"), ("wav", "mp3")])
def test_a_download_may_have_another_format(
    server: RunningServer, text: str, stream: bool, formats: tuple[str, str]
) -> None:
    asked = {"input": text, "stream": stream, "response_format": formats[0]}
    response = server.speak(**asked, return_download_link=True, download_format=formats[1])
    assert response.content == server.speak(**asked).content
    path = response.headers["x-download-path"]
    assert "x-ignored" not in response.headers
    stored = server.get(path)
    assert stored.headers["content-type"] == FORMATS[formats[1]].media_type
    n_header = 100  # which has the length, if that is known
    expected = server.speak(**asked | {"response_format": formats[1]}).content
    assert stored.content[n_header:] == expected[n_header:]
    if formats[1] == "wav":
        assert int.from_bytes(stored.content[40:44], "little") == len(stored.content) - 44


def test_an_unfinished_stream_leaves_no_copy_and_no_times(own: RunningServer) -> None:
    own.engine.hold_from = 1
    body = {"input": LONG, "response_format": "pcm", "return_download_link": True}
    asked = {**body, "download_format": "wav", "return_timing": True}
    try:
        with own.client().stream("POST", "/v1/audio/speech", json=asked) as response:
            next(response.iter_raw())
            for header in ("x-download-path", "x-timing-path"):
                assert_error(own.get(response.headers[header]), 404, "download_not_found")
    finally:
        own.engine.release()
    assert own.engine.streams_cancelled.acquire(timeout=60)
    while list(folder(own).iterdir()):
        pass


def test_a_refused_request_leaves_no_file(own: RunningServer) -> None:
    assert_error(own.speak(voice="nobody", return_download_link=True), 400, "voice_not_found", "voice")
    assert_error(own.speak(input="☺", return_download_link=True), 400, "nothing_to_speak", "input")
    assert not folder(own).exists() or not list(folder(own).iterdir())


@pytest.mark.parametrize("stream", [True, False])
def test_the_times_tell_when_each_part_of_the_text_is_spoken(tones: RunningServer, stream: bool) -> None:
    text = "Deep [voice:af_sky]water runs. [pause:1s]" + LONG
    asked = {"input": text, "stream": stream, "response_format": "pcm", "return_download_link": True}
    response = tones.speak(**asked, return_timing=True)
    path = response.headers["x-timing-path"]
    assert path == response.headers["x-download-path"] + ".json"
    answer = tones.get(f"/v1{path}")
    assert answer.headers["content-type"] == "application/json"
    parts = answer.json()["chunks"]
    spoken = " ".join(part["text"] for part in parts).split()
    assert spoken == f"Deep water runs. {LONG}".split()
    ends = [part["end"] for part in parts]
    assert [part["start"] for part in parts] == [0.0, *ends[:-1]]
    assert ends[-1] == pytest.approx(len(response.content) / 48_000, abs=0.001)
    assert "x-timing-path" not in tones.speak(**asked).headers


def test_the_times_of_ssml_have_no_tags(tones: RunningServer) -> None:
    text = '<speak>Deep <voice name="af_sky">water</voice> &amp; <prosody rate="slow">an old bridge.</prosody></speak>'
    path = tones.speak(input=text, return_download_link=True, return_timing=True).headers["x-timing-path"]
    spoken = " ".join(part["text"] for part in tones.get(path).json()["chunks"])
    assert "<" not in spoken
    assert spoken.startswith("Deep")
    assert spoken.endswith("bridge.")


def test_events_name_the_option_as_ignored(server: RunningServer) -> None:
    assert server.speak(stream_format="sse", return_download_link=True).headers["x-ignored"] == "return_download_link"


@pytest.mark.parametrize("stream", [True, False])
def test_the_audio_of_captions_can_be_stored(server: RunningServer, stream: bool) -> None:
    body = {"input": LONG, "stream": stream, "response_format": "mp3", "return_download_link": True}
    response = server.post("/dev/captioned_speech", {**body, "return_timing": True})
    assert "x-ignored" not in response.headers
    lines = [json.loads(line) for line in response.text.strip().split("\n")]
    audio = b"".join(b64decode(line["audio"]) for line in lines)
    assert server.get(response.headers["x-download-path"]).content == audio
    parts = server.get(response.headers["x-timing-path"]).json()["chunks"]
    assert " ".join(part["text"] for part in parts).split() == LONG.split()
