"""/v1/jobs: books are read in the background; jobs are private, limited, resumable and survive a crash."""

import asyncio
import io
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import wave
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import av
import httpx2
import pytest

from tests.audiobook.make_epub import epub, page, png
from tests.fakes import FakeEngine, silent_voices
from tests.server.harness import RunningServer, assert_error, serving
from tutti.audiobook.book import Chapter
from tutti.audiobook.jobs.import_turns import MAX_WAITING
from tutti.audiobook.jobs.runner import JobRunner
from tutti.audiobook.passages import passages
from tutti.engine.request import StreamRequest
from tutti.errors import ModelFailed
from tutti.speech import Speech

pytestmark = [pytest.mark.server, pytest.mark.process]

ROOT = Path(__file__).parents[2]
SENTENCE = "The old bridge stands still under the water tonight and runs deep. "
TEXT = "\n\n".join(
    f"# {word}\n\n{word}. {SENTENCE * 6}\n\n{word} again. {SENTENCE * 6}" for word in ("One", "Two", "Three")
)


class PacedEngine(FakeEngine):
    """Speaks as many texts as a test permits."""

    async def start(self) -> None:
        await super().start()
        self._permits = asyncio.Semaphore(0)

    def permit(self, n_texts: int) -> None:
        assert self.loop is not None
        for _ in range(n_texts):
            self.loop.call_soon_threadsafe(self._permits.release)

    def permit_all(self) -> None:
        self.permit(1000)

    async def stream(self, request: StreamRequest) -> AsyncGenerator[Speech]:
        await self._permits.acquire()
        async for speech in super().stream(request):
            yield speech


@contextmanager
def serve_paced(folder: Path, data: Path, **chosen: Any) -> Iterator[tuple[RunningServer, PacedEngine]]:
    fake_engine = PacedEngine(silent_voices(folder))
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


def wait_for_end(server: RunningServer, id: str, **options: Any) -> dict[str, Any]:
    """Wait until the job has ended, and return it."""
    return wait_for_end_at(server.client(), id, **options)


def wait_for_end_at(client: httpx2.Client, id: str, **options: Any) -> dict[str, Any]:
    *_, last = events_at(client, id, **options)
    return dict(last["job"])


def create_job(server: RunningServer, **body: Any) -> dict[str, Any]:
    response = server.post("/v1/jobs", {"text": TEXT, "format": "wav", **body})
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"/v1/jobs/{response.json()['id']}"
    return dict(response.json())


def samples(data: bytes) -> bytes:
    with wave.open(io.BytesIO(data)) as file:
        return file.readframes(file.getnframes())


@pytest.fixture(scope="module")
def whole(server: RunningServer) -> bytes:
    """The audio of TEXT from a job without interruption."""
    return samples(server.get(f"/v1/jobs/{wait_for_end(server, create_job(server)['id'])['id']}/audio").content)


def test_options_of_a_job_without_effect_are_named(server: RunningServer) -> None:
    body = {"text": TEXT, "format": "wav", "flavour": "sweet", "allow_voice_tags": False}
    assert server.post("/v1/jobs", body).headers["x-ignored"] == "flavour, allow_voice_tags"


def test_a_text_is_read_in_the_background_and_downloaded(server: RunningServer) -> None:
    id = create_job(server, captions="srt", title="Bridges")["id"]
    received = list(events(server, id))
    assert received[-1]["type"] == "job.done"
    assert {event["type"] for event in received[:-1]} <= {"job.progress"}
    job = server.get(f"/v1/jobs/{id}").json()
    assert job == received[-1]["job"]
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


def test_every_passage_is_spoken_once_as_bulk(server: RunningServer) -> None:
    server.engine.requests.clear()
    wait_for_end(server, create_job(server, voice="am_adam", speed=2)["id"])
    requests = server.engine.requests
    assert sorted(each["text"].strip() for each in requests) == sorted(
        passage.strip() for passage in expected_passages()
    )
    assert {(each["voice"], each["speed"], each["delivery"]) for each in requests} == {("am_adam", 2.0, "bulk")}


def expected_passages() -> list[str]:
    """The passages of TEXT."""
    chapters = [Chapter("", f"# {part}") for part in TEXT.split("# ") if part]
    return [passage.text(chapters) for passage in passages(chapters)]


def test_a_book_is_uploaded_as_a_form_and_downloaded_in_ranges(server: RunningServer) -> None:
    pages = {f"{n}.xhtml": page(f"<h1>Part {n}</h1><p>{SENTENCE}</p>") for n in (1, 2)}
    files = {"file": ("../../my book.epub", epub(pages, cover=png()), "application/epub+zip")}
    response = server.clients[0].post(
        "/v1/jobs", files=files, data={"voice": "bm_george", "speed": "2", "lexicon": "{}"}
    )
    assert response.status_code == 201, response.text
    id = response.json()["id"]
    assert wait_for_end(server, id)["author"] == "Ada Example"
    audio = server.get(f"/v1/jobs/{id}/audio")
    assert audio.headers["content-type"] == "audio/mp4"
    with av.open(io.BytesIO(audio.content)) as file:
        assert [mark["metadata"]["title"] for mark in file.chapters()] == ["Part 1", "Part 2"]
    part = server.get(f"/v1/jobs/{id}/audio", headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, audio.content[100:200])
    assert server.get(f"/v1/jobs/{id}/audio", headers={"range": "bytes=99999999-"}).status_code == 416
    assert_error(server.get(f"/v1/jobs/{id}/captions"), 404, "job_not_found", "id")


def test_players_get_the_cover_and_the_chapters_of_a_finished_book(server: RunningServer) -> None:
    pages = {f"{n}.xhtml": page(f"<h1>Part {n}</h1><p>{SENTENCE}</p>") for n in (1, 2)}
    files = {"file": ("b.epub", epub(pages, cover=png(7, 5)))}
    id = server.clients[0].post("/v1/jobs", files=files).json()["id"]
    assert wait_for_end(server, id)["cover"] is True
    cover = server.get(f"/v1/jobs/{id}/cover")
    assert (cover.headers["content-type"], cover.content) == ("image/png", png(7, 5))
    chapters = server.get(f"/v1/jobs/{id}/chapters").json()["chapters"]
    with av.open(io.BytesIO(server.get(f"/v1/jobs/{id}/audio").content)) as file:
        marks = [(mark["metadata"]["title"], float(mark["start"] * mark["time_base"])) for mark in file.chapters()]
    assert [(chapter["title"], chapter["startTime"]) for chapter in chapters] == [
        (title, pytest.approx(start, abs=0.002)) for title, start in marks
    ]
    plain = wait_for_end(server, create_job(server)["id"])
    assert plain["cover"] is False
    assert_error(server.get(f"/v1/jobs/{plain['id']}/cover"), 404, "job_not_found", "id")


def test_finished_books_are_a_podcast(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path, api_keys=("k&y", "other")) as (server, fake_engine):
        mine, other = (server.client(headers={"authorization": f"Bearer {key}"}) for key in ("k&y", "other"))
        fake_engine.permit_all()
        body = {"text": "It fell.", "title": "Snow & \x02Ice", "author": "Ada", "format": "mp3"}
        id = mine.post("/v1/jobs", json=body).json()["id"]
        wait_for_end_at(mine, id)
        assert b"<item>" not in other.get("/v1/jobs/feed").content
        fake_engine._permits = asyncio.Semaphore(0)
        mine.post("/v1/jobs", json=body)  # is not finished
        anyone = server.client()
        assert anyone.get("/v1/jobs/feed").status_code == 401
        feed = anyone.get("/v1/jobs/feed", params={"api_key": "k&y"})
        assert feed.headers["content-type"].startswith("application/rss+xml")
        (item,) = ElementTree.fromstring(feed.content).iter("item")
        assert item.findtext("title") == "Snow & Ice"
        enclosure = item.find("enclosure")
        assert enclosure is not None
        audio = anyone.get(enclosure.attrib["url"])
        assert (audio.status_code, len(audio.content)) == (200, int(enclosure.attrib["length"]))
        assert audio.headers["content-type"] == enclosure.attrib["type"] == "audio/mpeg"
        chapters = item.find("{https://podcastindex.org/namespace/1.0}chapters")
        assert chapters is not None
        assert anyone.get(chapters.attrib["url"]).status_code == 200


def test_a_job_has_a_cast_as_json_or_in_a_form(server: RunningServer) -> None:
    text, cast = "Anna: Deep water.\n\nBen: So.\n", {"Anna": "af_bella", "Ben": {"voice": "am_adam", "rate": 0.5}}
    as_json = create_job(server, text=text, cast=cast)["id"]
    plain = create_job(server, text="Deep water.\n\nSo.\n")["id"]
    form = {"format": "wav", "cast": json.dumps(cast)}
    in_form = server.clients[0].post("/v1/jobs", data=form, files={"file": ("play.md", text.encode())}).json()["id"]
    lengths = [wait_for_end(server, id)["duration_s"] for id in (as_json, in_form, plain)]
    assert lengths[0] == lengths[1]
    assert lengths[0] != lengths[2]  # Ben is slow
    assert_error(server.post("/v1/jobs", {"text": text, "loudness": "loud"}), 400, "invalid_input", "loudness")
    loud = create_job(server, text=text, loudness="acx")["id"]
    assert "and is -19.0" in wait_for_end(server, loud)["notes"][-1]
    wrong = server.post("/v1/jobs", {"text": text, "cast": {"Anna": "af_hart"}})
    assert_error(wrong, 400, "voice_not_found", "cast")


def test_a_job_leaves_out_the_parts_that_it_is_told_to(server: RunningServer) -> None:
    text = "# One\n\nIt fell.\n\n# Copyright\n\nAll of it.\n"
    job = create_job(server, text=text, skip="copyright")
    assert (job["chapters"], job["notes"]) == (1, ["skipped: copyright (23 characters)"])
    assert wait_for_end(server, job["id"])["state"] == "done"
    assert_error(server.post("/v1/jobs", {"text": text, "skip": "copyrigth"}), 400, "invalid_input", "skip")


def correct(server: RunningServer, id: str, **body: Any) -> tuple[dict[str, Any], list[str]]:
    """The corrected job when it has ended, and the texts that were spoken for it."""
    server.engine.requests.clear()
    response = server.post(f"/v1/jobs/{id}/again", body)
    assert (response.status_code, response.json()["state"]) == (200, "queued"), response.text
    return wait_for_end(server, id), [each["text"].strip() for each in server.engine.requests]


def test_a_correction_of_a_finished_job_speaks_only_what_differs(server: RunningServer) -> None:
    id = wait_for_end(server, create_job(server, keep=True)["id"])["id"]
    changed = TEXT.replace("Two again.", "Two once more.")
    done, spoken = correct(server, id, text=changed)
    assert (done["state"], len(spoken)) == ("done", 1)
    assert spoken[0].startswith("Two once more.")
    fresh = wait_for_end(server, create_job(server, text=changed)["id"])["id"]
    assert samples(server.get(f"/v1/jobs/{id}/audio").content) == samples(server.get(f"/v1/jobs/{fresh}/audio").content)
    _, spoken = correct(server, id, lexicon={"more": "less"})
    assert [text[:14] for text in spoken] == ["Two once more."]
    assert server.engine.requests[-1]["lexicon"] == {"more": "less"}
    _, spoken = correct(server, id, lexicon={"three": "free"})
    assert sorted("Three" in text for text in spoken) == [True, True]
    assert server.engine.requests[-1]["lexicon"] == {"more": "less", "three": "free"}


def test_a_correction_changes_tags_and_files_without_speaking(server: RunningServer) -> None:
    id = wait_for_end(server, create_job(server, keep=True, captions="srt")["id"])["id"]
    folder = server.app.state.service.settings.data / "jobs" / id
    done, spoken = correct(server, id, title="Bridges", format="flac", captions="vtt", loudness="acx", voice="am_adam")
    assert (done["state"], done["title"], done["format"], done["voice"], spoken) == (
        "done", "Bridges", "flac", create_job(server)["voice"], [],
    )  # fmt: skip
    assert server.get(f"/v1/jobs/{id}/captions").text.startswith("WEBVTT")
    assert {path.name for path in folder.glob("*.*")} == {"book.md", "audio.flac", "captions.vtt", "chapters.json"}
    answer = server.post(f"/v1/jobs/{id}/again", {"voice": "am_adam"})
    assert answer.headers["x-ignored"] == "voice"
    wait_for_end(server, id)
    epub_file = {"file": ("new.epub", epub({"1.xhtml": page("<h1>New</h1><p>It fell.</p>")}, cover=png()))}
    assert server.clients[0].post(f"/v1/jobs/{id}/again", files=epub_file).status_code == 200
    done = wait_for_end(server, id)
    assert (done["chapters"], done["cover"], done["title"]) == (1, True, "Bridges")
    correct(server, id, text="# One\n\nIt fell.")
    assert_error(server.get(f"/v1/jobs/{id}/cover"), 404, "job_not_found", "id")
    assert {path.name for path in folder.glob("book*")} == {"book.md"}


def test_a_job_that_kept_nothing_is_spoken_again_and_says_so(server: RunningServer) -> None:
    id = wait_for_end(server, create_job(server)["id"])["id"]
    done, spoken = correct(server, id, lexicon={"three": "free"}, keep=True)
    assert len(spoken) == len(expected_passages())
    assert any("had not kept" in note for note in done["notes"])
    done, spoken = correct(server, id)
    assert (spoken, done["keep"]) == ([], True)
    assert not any("had not kept" in note for note in done["notes"])


def test_a_correction_that_is_wrong_leaves_the_job_as_it_was(server: RunningServer) -> None:
    id = wait_for_end(server, create_job(server, keep=True)["id"])["id"]
    before, audio = server.get(f"/v1/jobs/{id}").json(), server.get(f"/v1/jobs/{id}/audio").content
    for body, param in (
        ({"text": ""}, "text"), ({"text": "words [pause:never]"}, "input"), ({"format": "doc"}, "format"),
        ({"lexicon": {"more": ""}}, "lexicon"), ({"loudness": "loud"}, "loudness"), ({"skip": "covr"}, "skip"),
    ):  # fmt: skip
        answer = server.post(f"/v1/jobs/{id}/again", body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    broken = server.clients[0].post(f"/v1/jobs/{id}/again", files={"file": ("b.epub", b"PK nothing")})
    assert_error(broken, 400, "invalid_input", "file")
    assert (server.get(f"/v1/jobs/{id}").json(), server.get(f"/v1/jobs/{id}/audio").content) == (before, audio)
    jobs = server.app.state.service.settings.data / "jobs"
    assert {path.name for path in jobs.iterdir() if path.is_dir()} == {
        job["id"] for job in server.get("/v1/jobs").json()["data"]
    }
    assert_error(server.post("/v1/jobs/nobody/again", {}), 404, "job_not_found", "id")


def test_a_job_that_runs_is_corrected_once_it_is_cancelled(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        id = create_job(server)["id"]
        watching = events(server, id)
        fake_engine.permit(3)
        wait_for_passages(watching, 3)
        assert_error(server.post(f"/v1/jobs/{id}/again", {}), 409, "wrong_state", "id")
        server.post(f"/v1/jobs/{id}/cancel")
        list(watching)
        fake_engine.permit_all()
        done, spoken = correct(server, id, text=TEXT.replace("Three again.", "Three once more."))
        assert (done["state"], len(spoken)) == ("done", len(expected_passages()) - 3)


def test_a_cancelled_job_resumes_where_it_was(voice_folder: Path, tmp_path: Path, whole: bytes) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        id = create_job(server)["id"]
        assert_error(server.get(f"/v1/jobs/{id}/audio"), 409, "wrong_state", "id")
        watching = events(server, id)
        fake_engine.permit(3)
        wait_for_passages(watching, 3)
        assert server.post(f"/v1/jobs/{id}/cancel").json()["state"] == "cancelled"
        assert list(watching)[-1]["type"] == "job.cancelled"
        assert server.get("/v1/jobs").json()["data"][0]["state"] == "cancelled"
        fake_engine.requests.clear()
        fake_engine.permit_all()
        assert server.post(f"/v1/jobs/{id}/resume").json()["state"] in ("queued", "running")
        assert wait_for_end(server, id)["state"] == "done"
        assert len(fake_engine.requests) == len(expected_passages()) - 3
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole
        assert_error(server.post(f"/v1/jobs/{id}/resume"), 409, "wrong_state", "id")
        assert server.clients[0].delete(f"/v1/jobs/{id}").json() == {"id": id, "deleted": True}
        assert_error(server.get(f"/v1/jobs/{id}"), 404, "job_not_found", "id")
        assert not (tmp_path / "jobs" / id).exists()


def wait_for_passages(watching: Iterator[dict[str, Any]], n_passages: int) -> None:
    for event in watching:
        if event["job"]["progress"]["passages"] == n_passages:
            return
    raise AssertionError("the job ended first")


def test_a_job_resumes_after_a_restart(voice_folder: Path, tmp_path: Path, whole: bytes) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        id = create_job(server)["id"]
        fake_engine.permit(2)
        wait_for_passages(events(server, id), 2)
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        assert server.get(f"/v1/jobs/{id}").json()["state"] in ("queued", "running")
        fake_engine.permit_all()
        assert wait_for_end(server, id)["state"] == "done"
        assert len(fake_engine.requests) == len(expected_passages()) - 2
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole


@contextmanager
def process(folder: Path, die_after: int = 0) -> Iterator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """Run a server in its own process; yield it with a client."""
    command = [sys.executable, "-m", "tests.server.serve_jobs", str(folder), "--port", "0", "--data", str(folder)]
    env = {**os.environ, "READ_TONES_DIE_AFTER": str(die_after)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env) as server:
        assert server.stderr is not None
        try:
            lines = iter(server.stderr.readline, "")
            ready = next(match for line in lines if (match := re.search(r"tutti is ready: (http://\S+)", line)))
            with httpx2.Client(base_url=ready[1], timeout=60) as client:
                yield server, client
        finally:
            server.kill()


def test_a_job_resumes_after_a_crash(tmp_path: Path) -> None:
    body = {"text": TEXT, "format": "wav"}
    with process(tmp_path, die_after=3) as (server, client):
        id = client.post("/v1/jobs", json=body).json()["id"]
        assert server.wait(60) == -signal.SIGKILL
    note = tmp_path / "spoken"
    note.unlink()
    with process(tmp_path) as (_, client):
        assert wait_for_end_at(client, id)["state"] == "done"
        assert len(note.read_text().splitlines()) == len(expected_passages()) - 3
        again = client.post("/v1/jobs", json=body).json()["id"]
        assert wait_for_end_at(client, again)["state"] == "done"
        first, second = (samples(client.get(f"/v1/jobs/{each}/audio").content) for each in (id, again))
        assert first == second


def test_a_caller_runs_one_job_at_a_time(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        first, second = create_job(server)["id"], create_job(server)["id"]
        wait_for_step(events(server, first), "reading")
        waiting = server.get(f"/v1/jobs/{second}").json()
        assert (waiting["state"], waiting["progress"]["step"]) == ("queued", "waiting")
        fake_engine.permit_all()
        assert wait_for_end(server, second)["state"] == "done"
        assert server.get(f"/v1/jobs/{first}").json()["state"] == "done"


def wait_for_step(watching: Iterator[dict[str, Any]], step: str) -> None:
    assert any(event["job"]["progress"]["step"] == step for event in watching)


def test_servers_in_one_folder_share_the_jobs_and_run_each_once(voice_folder: Path, tmp_path: Path) -> None:
    with (
        serve_paced(voice_folder, tmp_path) as (first, first_engine),
        serve_paced(voice_folder, tmp_path) as (second, second_engine),
    ):
        assert second.get("/v1/jobs").json()["data"] == []
        id = create_job(first)["id"]
        assert second.get(f"/v1/jobs/{id}").json()["id"] == id  # at once
        wait_for_step(events(second, id), "reading")
        first_engine.permit_all()
        second_engine.permit_all()
        assert wait_for_end(second, id)["state"] == "done"
        spoken = [request["text"] for engine in (first_engine, second_engine) for request in engine.requests]
        assert len(spoken) == len(expected_passages()), "every passage by one of them"
        assert first.get(f"/v1/jobs/{id}/audio").content == second.get(f"/v1/jobs/{id}/audio").content
        assert second.clients[0].delete(f"/v1/jobs/{id}").status_code == 200
        assert_error(first.get(f"/v1/jobs/{id}"), 404, "job_not_found", "id")


def test_any_server_stops_and_deletes_a_job_and_takes_over_that_of_another(
    voice_folder: Path, tmp_path: Path, whole: bytes
) -> None:
    with ExitStack() as first_server, ExitStack() as second_server:
        first, first_engine = first_server.enter_context(serve_paced(voice_folder, tmp_path))
        id, next_id = create_job(first)["id"], create_job(first)["id"]
        first_engine.permit(2)
        wait_for_passages(events(first, id), 2)
        second, second_engine = second_server.enter_context(serve_paced(voice_folder, tmp_path))
        second_engine.permit_all()
        wait_for_passages(events(second, id), 2)
        assert second.get(f"/v1/jobs/{next_id}").json()["state"] == "queued", "of one caller one job runs in all"
        assert second.clients[0].delete(f"/v1/jobs/{next_id}").status_code == 200
        assert second.post(f"/v1/jobs/{id}/cancel").json()["state"] == "cancelled"
        assert [event["type"] for event in events(first, id)][-1] == "job.cancelled"
        assert not second_engine.requests
        first.post(f"/v1/jobs/{id}/resume")
        first_server.close()  # it has no permits, so it cannot end the job
        assert wait_for_end(second, id)["state"] == "done"
        assert len(second_engine.requests) == len(expected_passages()) - 2
        assert samples(second.get(f"/v1/jobs/{id}/audio").content) == whole


def test_a_caller_sees_only_its_own_jobs(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path, api_keys="ada, bob") as (server, fake_engine):
        fake_engine.permit_all()
        ada, bob = ({"authorization": f"Bearer {key}"} for key in ("ada", "bob"))
        id = server.post("/v1/jobs", {"text": "words", "format": "wav"}, headers=ada).json()["id"]
        assert wait_for_end(server, id, headers=ada)["state"] == "done"
        assert [job["id"] for job in server.get("/v1/jobs", headers=ada).json()["data"]] == [id]
        assert server.get("/v1/jobs", headers=bob).json()["data"] == []
        for path in ("", "/events", "/audio", "/captions"):
            assert_error(server.get(f"/v1/jobs/{id}{path}", headers=bob), 404, "job_not_found", "id")
            assert_error(server.get(f"/v1/jobs/{id}{path}"), 401, "invalid_api_key")
        for path in ("/cancel", "/resume", "/again"):
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
def test_an_invalid_job_is_refused_at_once(
    small: RunningServer, body: Any, status: int, code: str, param: str | None
) -> None:
    assert_error(small.post("/v1/jobs", body), status, code, param)
    assert not any((small.app.state.service.settings.data / "jobs").glob("*/book*"))


@pytest.fixture(scope="module")
def small(voice_folder: Path) -> Iterator[RunningServer]:
    with serving(FakeEngine(silent_voices(voice_folder)), max_job_mb=0.1) as running:
        yield running


def test_a_broken_book_is_refused(small: RunningServer) -> None:
    for name, data, reason in (
        ("b.epub", b"PK nothing", "not an EPUB"),
        ("b.doc", b"words", "is not a book file"),
        ("b.txt", b"caf\xe9", "not utf-8"),
    ):
        error = assert_error(small.clients[0].post("/v1/jobs", files={"file": (name, data)}), 400, "invalid_input",
                       "encoding" if name == "b.txt" else "file")  # fmt: skip
        assert reason in error["message"]
    assert_error(small.clients[0].post("/v1/jobs", content=b"words"), 415, "unsupported_media_type")
    assert_error(small.clients[0].post("/v1/jobs", files={"other": ("x", b"y")}), 400, "invalid_input", "file")


def test_the_number_of_jobs_of_a_caller_is_limited(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path, max_jobs=1) as (server, _):
        id = create_job(server)["id"]
        error = assert_error(server.post("/v1/jobs", {"text": "words"}), 429, "too_many_jobs")
        assert "delete some" in error["message"]
        server.clients[0].delete(f"/v1/jobs/{id}")
        create_job(server)


def test_as_many_jobs_are_stored_as_the_limit_says_when_all_are_sent_at_once(
    voice_folder: Path, tmp_path: Path
) -> None:
    with serve_paced(voice_folder, tmp_path, max_jobs=5) as (server, _), ThreadPoolExecutor(60) as senders:
        answers = list(senders.map(lambda _: server.client().post("/v1/jobs", json={"text": "words"}), range(60)))
        created = [answer for answer in answers if answer.status_code == 201]
        assert len(created) == len(server.get("/v1/jobs").json()["data"]) == 5
        assert len(list((tmp_path / "jobs").glob("*/book.md"))) == 5
        for answer in answers:
            assert answer.status_code in (201, 429), answer.text


def test_books_of_one_caller_wait_for_each_other_and_not_for_those_of_others(
    voice_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, importing, import_book = threading.Event(), threading.Semaphore(0), JobRunner._store

    def slow_import(runner: JobRunner, folder: Path, source: Any, name: str, *rest: Any) -> Any:
        if name == "slow.txt":
            importing.release()
            let_go.wait(60)
        return import_book(runner, folder, source, name, *rest)

    monkeypatch.setattr(JobRunner, "_store", slow_import)
    keys = {"api_keys": "ada, bob", "max_jobs": 50}
    with serve_paced(voice_folder, tmp_path, **keys) as (server, fake_engine), ThreadPoolExecutor(40) as senders:
        fake_engine.permit_all()

        def send(key: str, name: str) -> httpx2.Response:
            headers = {"authorization": f"Bearer {key}"}
            return server.client().post("/v1/jobs", files={"file": (name, b"words")}, data={"format": "wav"},
                                        headers=headers)  # fmt: skip

        try:
            slow = [senders.submit(send, "ada", "slow.txt") for _ in range(MAX_WAITING + 4)]
            done, _ = wait(slow, return_when=FIRST_COMPLETED, timeout=60)
            refused = assert_error(next(iter(done)).result(), 429, "queue_full", "file")
            assert "of your books are being read" in refused["message"]
            assert importing.acquire(timeout=60)
            bob = send("bob", "quick.txt")
            assert bob.status_code == 201, bob.text
            of_bob = {"authorization": "Bearer bob"}
            assert wait_for_end(server, bob.json()["id"], headers=of_bob)["state"] == "done"
            assert not importing.acquire(blocking=False), "two books of one caller were read at once"
        finally:
            let_go.set()
        statuses = [each.result().status_code for each in slow]
        assert (statuses.count(201), statuses.count(429)) == (MAX_WAITING + 1, 3)


def test_a_book_counts_towards_the_character_limit(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path, rate_characters=100) as (server, _):
        create_job(server)
        assert_error(server.post("/v1/jobs", {"text": "words"}), 429, "rate_limited")
        assert len(list((tmp_path / "jobs").glob("*/book.md"))) == 1


def test_the_disk_space_of_jobs_is_limited(voice_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_paced(voice_folder, tmp_path, max_jobs_gb=1e-4) as (server, fake_engine):
        fake_engine.permit_all()
        assert_error(server.post("/v1/jobs", {"text": TEXT}), 507, "storage_full")  # estimated
        assert_error(server.post("/v1/jobs", {"text": "One.\n\n[pause:60s] Two."}), 507, "storage_full")
        monkeypatch.setattr("tutti.audiobook.jobs.limits.BYTES_A_CHARACTER", 0)
        paused = wait_for_end(server, create_job(server)["id"])  # while it runs
        assert paused["state"] == "paused"
        assert "TUTTI_MAX_JOBS_GB" in paused["error"]["message"]
        assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1.5e5
    with serve_paced(voice_folder, tmp_path, max_jobs_gb=1e-6) as (server, _):
        assert_error(server.post("/v1/jobs", {"text": "words"}), 429, "too_many_jobs")


def test_a_full_disk_pauses_a_job_without_loss(
    voice_folder: Path, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's limit on the size of a file stands in for a full disk."""
    monkeypatch.setattr("tutti.audiobook.journal._TABLES", _tables(limit=True))
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        fake_engine.permit_all()
        id = create_job(server)["id"]
        paused = wait_for_end(server, id)
        assert paused["state"] == "paused"
        assert paused["error"]["code"] == "storage_full"
        assert "no room left" in paused["error"]["message"]
        n_kept = n_passages(tmp_path / "jobs" / id / "reading")
        assert 0 < n_kept < len(expected_passages())
        fake_engine.requests.clear()
        monkeypatch.setattr("tutti.audiobook.journal._TABLES", _tables(limit=False))
        server.post(f"/v1/jobs/{id}/resume")
        assert wait_for_end(server, id)["state"] == "done"
        assert len(fake_engine.requests) == len(expected_passages()) - n_kept
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole


def n_passages(journal: Path) -> int:
    with sqlite3.connect(journal) as db:
        n = int(db.execute("SELECT count(*) FROM passages").fetchone()[0])
    db.close()
    return n


def _tables(*, limit: bool, tables: list[str] = []) -> str:  # noqa: B006 - remembers the original
    from tutti.audiobook import journal

    tables.append(journal._TABLES)
    return tables[0] + ("PRAGMA max_page_count = 1000;" if limit else "")


def test_a_damaged_journal_costs_what_is_damaged_and_the_job_says_so(
    voice_folder: Path, tmp_path: Path, whole: bytes
) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        id = create_job(server)["id"]
        watching = events(server, id)
        fake_engine.permit(5)
        wait_for_passages(watching, 5)
        server.post(f"/v1/jobs/{id}/cancel")
        journal = tmp_path / "jobs" / id / "reading"
        content = journal.read_bytes()
        middle = len(content) // 4096 // 2 * 4096
        journal.write_bytes(content[:middle] + random.Random(0).randbytes(4096) + content[middle + 4096 :])
        fake_engine.requests.clear()
        fake_engine.permit_all()
        server.post(f"/v1/jobs/{id}/resume")
        done = wait_for_end(server, id)
        assert done["state"] == "done", done
        assert any("spoken again" in note for note in done["notes"])
        assert len(expected_passages()) - 5 < len(fake_engine.requests) < len(expected_passages())
        assert samples(server.get(f"/v1/jobs/{id}/audio").content) == whole


def test_a_job_whose_book_is_lost_says_what_to_do_and_names_no_folder(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, _):
        id = create_job(server)["id"]
        wait_for_step(events(server, id), "reading")
        server.post(f"/v1/jobs/{id}/cancel")
        (tmp_path / "jobs" / id / "book.md").unlink()
        server.post(f"/v1/jobs/{id}/resume")
        failed = wait_for_end(server, id)
        assert failed["state"] == "failed"
        assert "send the book again" in failed["error"]["message"]
        assert str(tmp_path) not in json.dumps(failed)


def test_a_list_of_jobs_that_another_program_locks_is_503_within_a_limit(
    voice_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutti.audiobook.jobs.service.READ_WAIT_S", 0.5)
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        id = create_job(server)["id"]
        with closing(sqlite3.connect(tmp_path / "jobs" / "jobs.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            for path in ("", f"/{id}", f"/{id}/events"):
                locked = server.get(f"/v1/jobs{path}")
                assert_error(locked, 503, "jobs_locked")
                assert int(locked.headers["retry-after"]) >= 1
            assert_error(server.post("/v1/jobs", {"text": "words"}), 503, "jobs_locked")
        fake_engine.permit_all()
        assert wait_for_end(server, id)["state"] == "done"


def test_a_damaged_list_of_jobs_is_500_with_a_remedy(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, _):
        create_job(server)
        path = tmp_path / "jobs" / "jobs.sqlite"
        path.write_bytes(b"not a list of jobs".ljust(path.stat().st_size))
        for _ in range(2):
            error = assert_error(server.get("/v1/jobs"), 500, "internal_error")
            assert "put jobs.sqlite" in error["message"]
            assert str(tmp_path) not in error["message"]


def test_no_other_account_can_read_the_jobs(voice_folder: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with serve_paced(voice_folder, tmp_path / "data") as (server, fake_engine):
            fake_engine.permit_all()
            id = create_job(server, captions="srt")["id"]
            assert wait_for_end(server, id)["state"] == "done"
            speech = server.speak(return_download_link=True)
            assert server.get(speech.headers["x-download-path"]).status_code == 200
    finally:
        os.umask(before)
    folders = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*") if path.is_dir()}
    assert {path.name for path in folders} == {"jobs", id, "downloads"}
    assert set(folders.values()) == {0o700}


def test_a_failed_job_says_where_and_can_be_resumed(voice_folder: Path, tmp_path: Path) -> None:
    with serve_paced(voice_folder, tmp_path) as (server, fake_engine):
        fake_engine.fail_at, fake_engine.error = 0, ModelFailed("the network broke on this row")
        fake_engine.permit_all()
        id = create_job(server)["id"]
        failed = wait_for_end(server, id)
        assert (failed["state"], failed["error"]["code"]) == ("failed", "model_failed")
        assert failed["error"]["message"].startswith("chapter ")
        fake_engine.fail_at = None
        server.post(f"/v1/jobs/{id}/resume")
        assert wait_for_end(server, id)["state"] == "done"
