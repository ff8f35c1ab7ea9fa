"""/v1/jobs: books read in the background; each caller's own, stopped and gone on with, limited, never lost."""

import asyncio
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import wave
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import httpx2
import pytest

from tests.audiobook.make_epub import epub, page, png
from tests.fakes import silent_voices, tone_engine
from tests.server.harness import FakeEngine, RunningServer, assert_error, serving
from tutti.audiobook import passages
from tutti.audiobook.book import Chapter
from tutti.errors import ModelFailed
from tutti.model.tone import FRAMES_PER_TOKEN, ToneModel
from tutti.speech import Frames, Samples, Speech, SpeechParams

ROOT = Path(__file__).parents[2]
SENTENCE = "The old bridge stands still under the water tonight and runs deep. "
TEXT = "\n\n".join(
    f"# {word}\n\n{word}. {SENTENCE * 6}\n\n{word} again. {SENTENCE * 6}" for word in ("One", "Two", "Three")
)


class Paced(FakeEngine):
    """Says as many texts as a test lets through."""

    async def start(self) -> None:
        await super().start()
        self._permits = asyncio.Semaphore(0)

    def let(self, n_texts: int) -> None:
        assert self.loop is not None
        for _ in range(n_texts):
            self.loop.call_soon_threadsafe(self._permits.release)

    def let_all(self) -> None:
        self.let(1000)

    async def stream(self, text: str, params: SpeechParams, **asked: Any) -> AsyncGenerator[Speech]:
        await self._permits.acquire()
        async for speech in super().stream(text, params, **asked):
            yield speech


@contextmanager
def paced(folder: Path, data: Path, **chosen: Any) -> Iterator[tuple[RunningServer, Paced]]:
    fake_engine = Paced(silent_voices(folder))
    with serving(fake_engine, data=data, **chosen) as server:
        yield server, fake_engine


def events(server: RunningServer, id: str, **options: Any) -> Iterator[dict[str, Any]]:
    return events_at(server.client(), id, **options)


def events_at(client: httpx2.Client, id: str, **options: Any) -> Iterator[dict[str, Any]]:
    with client.stream("GET", f"/v1/jobs/{id}/events", **options) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def ended(server: RunningServer, id: str, **options: Any) -> dict[str, Any]:
    """The job when nothing more happens."""
    return ended_at(server.client(), id, **options)


def ended_at(client: httpx2.Client, id: str, **options: Any) -> dict[str, Any]:
    *_, last = events_at(client, id, **options)
    return dict(last["job"])


def made(server: RunningServer, **body: Any) -> dict[str, Any]:
    response = server.post("/v1/jobs", {"text": TEXT, "format": "wav", **body})
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"/v1/jobs/{response.json()['id']}"
    return dict(response.json())


def samples(data: bytes) -> bytes:
    with wave.open(io.BytesIO(data)) as file:
        return file.readframes(file.getnframes())


@pytest.fixture(scope="module")
def whole(server: RunningServer) -> bytes:
    """What TEXT sounds like when nothing comes between."""
    return samples(server.get(f"/v1/jobs/{ended(server, made(server)['id'])['id']}/audio").content)


def test_a_text_is_read_in_the_background_and_fetched_when_it_is_done(server: RunningServer) -> None:
    id = made(server, captions="srt", title="Bridges")["id"]
    seen = list(events(server, id))
    assert seen[-1]["type"] == "job.done"
    assert {event["type"] for event in seen[:-1]} <= {"job.progress"}
    job = server.get(f"/v1/jobs/{id}").json()
    assert job == seen[-1]["job"]
    assert (job["state"], job["title"], job["chapters"], job["progress"], job["error"]) == (
        "done",
        "Bridges",
        3,
        None,
        None,
    )
    audio = server.get(f"/v1/jobs/{id}/audio")
    assert audio.headers["content-type"] == "audio/wav"
    assert 'filename="Bridges.wav"' in audio.headers["content-disposition"]
    assert len(samples(audio.content)) / 48_000 == pytest.approx(job["duration_s"], abs=0.001)
    assert "again. The old bridge" in " ".join(server.get(f"/v1/jobs/{id}/captions").text.split())


def test_it_says_every_passage_once_as_bulk(server: RunningServer) -> None:
    server.engine.requests.clear()
    ended(server, made(server, voice="am_adam", speed=2)["id"])
    asked = server.engine.requests
    assert sorted(each["text"].strip() for each in asked) == sorted(passage.strip() for passage in said())
    assert {(each["voice"], each["speed"], each["delivery"]) for each in asked} == {("am_adam", 2.0, "bulk")}


def said() -> list[str]:
    """The passages of TEXT."""
    chapters = [Chapter("", f"# {part}") for part in TEXT.split("# ") if part]
    return [passage.said(chapters) for passage in passages(chapters)]


def test_a_book_comes_as_a_form_and_goes_as_an_audiobook_in_ranges(server: RunningServer) -> None:
    pages = {f"{n}.xhtml": page(f"<h1>Part {n}</h1><p>{SENTENCE}</p>") for n in (1, 2)}
    files = {"file": ("../../my book.epub", epub(pages, cover=png()), "application/epub+zip")}
    response = server.clients[0].post(
        "/v1/jobs", files=files, data={"voice": "bm_george", "speed": "2", "lexicon": "{}"}
    )
    assert response.status_code == 201, response.text
    id = response.json()["id"]
    assert ended(server, id)["author"] == "Ada Example"
    audio = server.get(f"/v1/jobs/{id}/audio")
    assert audio.headers["content-type"] == "audio/mp4"
    with av.open(io.BytesIO(audio.content)) as file:
        assert [mark["metadata"]["title"] for mark in file.chapters()] == ["Part 1", "Part 2"]
    part = server.get(f"/v1/jobs/{id}/audio", headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, audio.content[100:200])
    assert server.get(f"/v1/jobs/{id}/audio", headers={"range": "bytes=99999999-"}).status_code == 416
    assert_error(server.get(f"/v1/jobs/{id}/captions"), 404, "job_not_found", "id")


def test_stopped_it_goes_on_where_it_was(voice_folder: Path, tmp_path: Path, whole: bytes) -> None:
    with paced(voice_folder, tmp_path) as (server, fake_engine):
        id = made(server)["id"]
        assert_error(server.get(f"/v1/jobs/{id}/audio"), 409, "wrong_state", "id")
        watching = events(server, id)
        fake_engine.let(3)
        until_kept(watching, 3)
        assert server.post(f"/v1/jobs/{id}/cancel").json()["state"] == "cancelled"
        assert list(watching)[-1]["type"] == "job.cancelled"
        assert server.get("/v1/jobs").json()["data"][0]["state"] == "cancelled"
        fake_engine.requests.clear()
        fake_engine.let_all()
        assert server.post(f"/v1/jobs/{id}/resume").json()["state"] in ("queued", "running")
        assert ended(server, id)["state"] == "done"
        assert len(fake_engine.requests) == len(said()) - 3
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole
        assert_error(server.post(f"/v1/jobs/{id}/resume"), 409, "wrong_state", "id")
        assert server.clients[0].delete(f"/v1/jobs/{id}").json() == {"id": id, "deleted": True}
        assert_error(server.get(f"/v1/jobs/{id}"), 404, "job_not_found", "id")
        assert not (tmp_path / "jobs" / id).exists()


def until_kept(watching: Iterator[dict[str, Any]], n_passages: int) -> None:
    for event in watching:
        if event["job"]["progress"]["passages"] == n_passages:
            return
    raise AssertionError("the job ended first")


def test_a_restart_goes_on_by_itself(voice_folder: Path, tmp_path: Path, whole: bytes) -> None:
    with paced(voice_folder, tmp_path) as (server, fake_engine):
        id = made(server)["id"]
        fake_engine.let(2)
        until_kept(events(server, id), 2)
    with paced(voice_folder, tmp_path) as (server, fake_engine):
        assert server.get(f"/v1/jobs/{id}").json()["state"] in ("queued", "running")
        fake_engine.let_all()
        assert ended(server, id)["state"] == "done"
        assert len(fake_engine.requests) == len(said()) - 2
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole


@contextmanager
def process(folder: Path, die_after: int = 0) -> Iterator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """A server in a process of its own."""
    command = [sys.executable, "-m", "tests.server.serve_jobs", str(folder), "--port", "0", "--data", str(folder)]
    env = {**os.environ, "READ_TONES_DIE_AFTER": str(die_after)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env) as server:
        assert server.stderr is not None
        try:
            lines = iter(server.stderr.readline, "")
            ready = next(found for line in lines if (found := re.search(r"tutti is ready: (http://\S+)", line)))
            with httpx2.Client(base_url=ready[1], timeout=60) as client:
                yield server, client
        finally:
            server.kill()


def test_killed_with_the_server_it_goes_on_by_itself(tmp_path: Path) -> None:
    body = {"text": TEXT, "format": "wav"}
    with process(tmp_path, die_after=3) as (server, client):
        id = client.post("/v1/jobs", json=body).json()["id"]
        assert server.wait(60) == -signal.SIGKILL
    note = tmp_path / "said"
    note.unlink()
    with process(tmp_path) as (_, client):
        assert ended_at(client, id)["state"] == "done"
        assert len(note.read_text().splitlines()) == len(said()) - 3
        again = client.post("/v1/jobs", json=body).json()["id"]
        assert ended_at(client, again)["state"] == "done"
        first, second = (samples(client.get(f"/v1/jobs/{each}/audio").content) for each in (id, again))
        assert first == second


def test_a_caller_has_one_job_under_way_and_the_next_waits_for_it(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path) as (server, fake_engine):
        first, second = made(server)["id"], made(server)["id"]
        until_step(events(server, first), "reading")
        waiting = server.get(f"/v1/jobs/{second}").json()
        assert (waiting["state"], waiting["progress"]["step"]) == ("queued", "waiting")
        fake_engine.let_all()
        assert ended(server, second)["state"] == "done"
        assert server.get(f"/v1/jobs/{first}").json()["state"] == "done"


def until_step(watching: Iterator[dict[str, Any]], step: str) -> None:
    assert any(event["job"]["progress"]["step"] == step for event in watching)


def test_a_second_server_in_the_same_folder_takes_no_jobs(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path) as (first, _), paced(voice_folder, tmp_path) as (second, _):
        made(first)
        assert_error(second.post("/v1/jobs", {"text": "words"}), 503, "jobs_in_use")
        assert second.get("/v1/jobs").json()["data"] == []


def test_a_caller_sees_only_its_own(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path, api_keys="ada, bob") as (server, fake_engine):
        fake_engine.let_all()
        ada, bob = ({"authorization": f"Bearer {key}"} for key in ("ada", "bob"))
        id = server.post("/v1/jobs", {"text": "words", "format": "wav"}, headers=ada).json()["id"]
        assert ended(server, id, headers=ada)["state"] == "done"
        assert [job["id"] for job in server.get("/v1/jobs", headers=ada).json()["data"]] == [id]
        assert server.get("/v1/jobs", headers=bob).json()["data"] == []
        for path in ("", "/events", "/audio", "/captions"):
            assert_error(server.get(f"/v1/jobs/{id}{path}", headers=bob), 404, "job_not_found", "id")
            assert_error(server.get(f"/v1/jobs/{id}{path}"), 401, "invalid_api_key")
        for path in ("/cancel", "/resume"):
            assert_error(server.post(f"/v1/jobs/{id}{path}", headers=bob), 404, "job_not_found", "id")
        assert_error(server.clients[0].delete(f"/v1/jobs/{id}", headers=bob), 404, "job_not_found", "id")
        assert_error(server.clients[0].delete(f"/v1/jobs/{id}"), 401, "invalid_api_key")
        assert_error(server.get("/v1/jobs"), 401, "invalid_api_key")


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"text": ""}, 400, "invalid_input", "text"),
        ({"text": "…"}, 400, "nothing_to_speak", "file"),
        ({"text": "words", "voice": "nobody"}, 400, "voice_not_found", "voice"),
        ({"text": "words", "format": "doc"}, 400, "unknown_format", "format"),
        ({"text": "words", "speed": 9}, 400, "invalid_input", "speed"),
        ({"text": "words", "captions": "doc"}, 400, "invalid_input", "captions"),
        ({"text": "words", "language": "klingon"}, 400, "unknown_language", "language"),
        ({"text": "words [pause:never]"}, 400, "invalid_input", "input"),
        ({"text": "words", "model": "gpt-9"}, 404, "model_not_found", "model"),
        ({"text": "words " * 40_000}, 413, "too_large", "file"),
        ({"text": "words", "sample_rate": 8000}, 400, "invalid_input", "sample_rate"),
        (["words"], 400, "invalid_input", None),
    ],
)
def test_what_is_wrong_is_told_at_once(
    small: RunningServer, body: Any, status: int, code: str, param: str | None
) -> None:
    assert_error(small.post("/v1/jobs", body), status, code, param)
    assert not any((small.app.state.service.settings.data / "jobs").glob("*/book*"))


@pytest.fixture(scope="module")
def small(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(FakeEngine(silent_voices(voice_folder)), max_job_mb=0.1) as running:
        yield running


def test_a_broken_book_is_refused(small: RunningServer) -> None:
    for name, data, said in (
        ("b.epub", b"PK nothing", "not an EPUB"),
        ("b.doc", b"words", "a book is one of"),
        ("b.txt", b"caf\xe9", "not utf-8"),
    ):
        error = assert_error(small.clients[0].post("/v1/jobs", files={"file": (name, data)}), 400, "invalid_input",
                       "encoding" if name == "b.txt" else "file")  # fmt: skip
        assert said in error["message"]
    assert_error(small.clients[0].post("/v1/jobs", content=b"words"), 415, "unsupported_media_type")
    assert_error(small.clients[0].post("/v1/jobs", files={"other": ("x", b"y")}), 400, "invalid_input", "file")


def test_a_caller_keeps_so_many_jobs_and_no_more(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path, max_jobs=1) as (server, _):
        id = made(server)["id"]
        error = assert_error(server.post("/v1/jobs", {"text": "words"}), 429, "too_many_jobs")
        assert "delete some" in error["message"]
        server.clients[0].delete(f"/v1/jobs/{id}")
        made(server)


def test_a_book_counts_against_the_characters_of_its_caller(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path, rate_characters=100) as (server, _):
        made(server)
        assert_error(server.post("/v1/jobs", {"text": "words"}), 429, "rate_limited")
        assert len(list((tmp_path / "jobs").glob("*/book.md"))) == 1


def test_jobs_hold_so_much_of_the_disk_and_no_more(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path, max_jobs_gb=1e-4) as (server, fake_engine):
        fake_engine.let_all()
        ended(server, made(server)["id"])
        assert_error(server.post("/v1/jobs", {"text": "words"}), 429, "too_many_jobs")


def test_a_full_disk_pauses_a_job_and_nothing_is_lost(
    voice_folder: Path, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own limit on the size of a file stands for the end of the disk."""
    monkeypatch.setattr("tutti.audiobook.journal._TABLES", _tables(limit=True))
    with paced(voice_folder, tmp_path) as (server, fake_engine):
        fake_engine.let_all()
        id = made(server)["id"]
        paused = ended(server, id)
        assert paused["state"] == "paused"
        assert paused["error"]["code"] == "storage_full"
        assert "no room left" in paused["error"]["message"]
        n_kept = kept(tmp_path / "jobs" / id / "reading")
        assert 0 < n_kept < len(said())
        fake_engine.requests.clear()
        monkeypatch.setattr("tutti.audiobook.journal._TABLES", _tables(limit=False))
        server.post(f"/v1/jobs/{id}/resume")
        assert ended(server, id)["state"] == "done"
        assert len(fake_engine.requests) == len(said()) - n_kept
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole


def kept(journal: Path) -> int:
    with sqlite3.connect(journal) as db:
        found = int(db.execute("SELECT count(*) FROM passages").fetchone()[0])
    db.close()
    return found


def _tables(*, limit: bool, tables: list[str] = []) -> str:  # noqa: B006 - what it was is remembered
    from tutti.audiobook import journal

    tables.append(journal._TABLES)
    return tables[0] + ("PRAGMA max_page_count = 1000;" if limit else "")


def test_a_job_that_fails_says_where_and_can_be_tried_again(voice_folder: Path, tmp_path: Path) -> None:
    with paced(voice_folder, tmp_path) as (server, fake_engine):
        fake_engine.fail_at, fake_engine.error = 0, ModelFailed("the network broke on this row")
        fake_engine.let_all()
        id = made(server)["id"]
        failed = ended(server, id)
        assert (failed["state"], failed["error"]["code"]) == ("failed", "model_failed")
        assert failed["error"]["message"].startswith("chapter ")
        fake_engine.fail_at = None
        server.post(f"/v1/jobs/{id}/resume")
        assert ended(server, id)["state"] == "done"


# -- behind whoever listens --------------------------------------------------------------------------------------


class Gated(ToneModel):
    """Makes sound only for permits, and notes the length of every row."""

    def __init__(self) -> None:
        super().__init__()
        self.permits = threading.Semaphore(0)
        self.at_work = threading.Event()
        self.n_frames: list[int] = []

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        self.at_work.set()
        self.permits.acquire()
        self.n_frames += [row.n_frames for row in rows]
        return super().vocoder(rows)


def test_a_listener_does_not_wait_behind_a_job(voice_folder: Path) -> None:
    """While a row of a job is on the device and others of it wait, a listener's text is the very next to sound."""
    model = Gated()
    engine = tone_engine(silent_voices(voice_folder), lambda: model, max_batch_size=1)
    with serving(engine) as server:
        id = made(server)["id"]
        assert model.at_work.wait(60)
        answers: list[int] = []

        def listen() -> None:
            response = server.client().post("/v1/audio/speech", json={"input": "lanterns", "response_format": "pcm"})
            answers.append(response.status_code)

        listener = threading.Thread(target=listen)
        listener.start()
        while not engine.stats()["queue_status"]["by_class"]["first"]:
            time.sleep(0.01)
        assert engine.stats()["queue_status"]["by_class"]["bulk"]
        model.permits.release(1000)
        listener.join(60)
        assert answers == [200]
        assert ended(server, id)["state"] == "done"
        assert model.n_frames[1] == FRAMES_PER_TOKEN * len("_lanterns_")
