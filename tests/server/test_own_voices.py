"""Own voices on a server: listed on every wire, spoken in one batch with all others, never from an old file."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import Gate, RecordingModel, silent_voices, tone_engine
from tests.server.harness import RunningServer, assert_error, serving, wait_until
from tutti.voices import NAMES, Voices

pytestmark = pytest.mark.server

GATE = Gate()
MODEL = RecordingModel("acoustic", gate=GATE)


def write(folder: Path, name: str, value: float) -> None:
    folder.mkdir(exist_ok=True)
    np.save(folder / "new.tmp.npy", np.full((510, 1, 256), value, np.float16))
    (folder / "new.tmp.npy").rename(folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def own(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    kokoro = tmp_path_factory.mktemp("voices")
    silent_voices(kokoro)
    write(folder, "af_jadzia.npy", 2.0)
    write(folder, "gurney.en-gb.npy", 4.0)
    (folder / "bad.npy").write_bytes(b"hello")
    engine = tone_engine(Voices(kokoro, folder), lambda: MODEL, max_batch_size=8)
    with serving(engine, voice_names="narrator=gurney") as server:
        yield server


def styles(server: RunningServer, **body: Any) -> set[float]:
    """Speak, and return the styles of the rows that were made for it."""
    MODEL.acoustic_calls.clear()
    response = server.speak(**body)
    assert response.status_code == 200, response.text
    return {float(row.style[0]) for rows in MODEL.acoustic_calls for row in rows}


def test_they_are_listed_on_every_wire(own: RunningServer) -> None:
    names = [*NAMES, "af_jadzia", "gurney"]
    answer = own.get("/v1/audio/voices").json()
    assert [voice["id"] for voice in answer["voices"]] == names
    assert (answer["voices"][-1]["language"], answer["voices"][-1]["gender"]) == ("en-gb", "neutral")
    assert answer["refused"] == ["bad.npy: it is damaged or not an array of floats; write it with numpy.save"]
    assert own.get("/v1/audio/voices?legacy=true").json()["voices"] == names
    assert [voice["voice_id"] for voice in own.get("/v1/voices").json()["voices"]] == names
    assert [voice["id"] for voice in own.get("/voices").json()["data"]] == names
    assert [voice["ShortName"] for voice in own.get("/cognitiveservices/voices/list").json()] == names
    assert own.get("/v1/voices/gurney").json()["name"] == "Gurney (British English, your own)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"voice": "af_jadzia"}, {2.0}),
        ({"voice": "gurney(3)+af_jadzia"}, {3.5}),
        ({"voice": "Gurney (British English, your own)"}, {4.0}),
        ({"voice": "narrator"}, {4.0}),
        ({"input": "deep [voice:gurney]water [voice:narrator]runs"}, {0.0, 4.0}),
        ({"voice": "bob", "voice_aliases": {"bob": "af_jadzia"}}, {2.0}),
        ({"input": "<speak>deep <voice name='gurney'>water</voice></speak>"}, {0.0, 4.0}),
    ],
)
def test_they_speak_by_any_of_their_names(own: RunningServer, body: dict[str, Any], expected: set[float]) -> None:
    assert styles(own, **body) == expected
    assert styles(own, **body, stream=False) <= expected


def test_they_speak_in_one_batch_with_others_as_they_speak_alone(own: RunningServer) -> None:
    voices = ["af_jadzia", "gurney", "af_heart", "gurney+af_jadzia"]
    alone = [own.speak(voice=voice, response_format="pcm").content for voice in voices]
    MODEL.acoustic_calls.clear()
    with ThreadPoolExecutor(len(voices)) as pool, GATE.closed():
        answers = [pool.submit(own.speak, voice=voice, response_format="pcm") for voice in voices]
        wait_until(lambda: own.engine.n_streams == len(voices))
    assert [answer.result().content for answer in answers] == alone
    assert {float(row.style[0]) for rows in MODEL.acoustic_calls for row in rows} == {2.0, 4.0, 0.0, 3.0}


def test_a_replaced_file_never_serves_old_audio(own: RunningServer, folder: Path) -> None:
    write(folder, "kira.npy", 1.0)
    own.engine.voices.own._looked_s = -1e9  # a second has passed
    for body in ({"voice": "kira"}, {"voice": "af_sky+kira"}, {"input": "deep [voice:kira]water"}):
        write(folder, "kira.npy", 1.0)
        first = own.speak(**body, stream=False)
        assert own.speak(**body, stream=False).headers["etag"] == first.headers["etag"]
        assert not styles(own, **body, stream=False)  # from the cache
        write(folder, "kira.npy", 3.0)
        assert styles(own, **body, stream=False) & {3.0, 1.5}
        assert own.speak(**body, stream=False).headers["etag"] != first.headers["etag"]
    (folder / "kira.npy").unlink()
    assert_error(own.speak(voice="kira"), 400, "voice_not_found", "voice")
