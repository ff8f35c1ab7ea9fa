"""Cached audio is not requested again; cache files are complete, bounded and shared."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.faults import FaultServer, respond
from tests.server.harness import LONG, SHORT, RunningServer
from tutti.client import Audio, Client, Sound, Word
from tutti.client.cache import FileCache, MemoryCache, deserialise, serialise
from tutti.errors import InvalidInput, StorageFull
from tutti.files import save

PCM = bytes(2000)
MB = 1 << 20


@pytest.mark.server
def test_a_cache_hit_sends_no_request(faults: FaultServer) -> None:
    faults.script = [respond(PCM), respond(PCM[:10])]
    with Client(faults.url, prewarm=False) as client:
        first, again = (client.speak("hello", format="pcm") for _ in range(2))
        other = client.speak("hello", format="pcm", voice="am_adam")
        assert (first.data, again.data, other.data) == (PCM, PCM, PCM[:10])
        assert (first.call and first.call.cached, again.call and again.call.cached) == (False, True)
        assert client.stats().cached == 1
        assert client.stats().total_s.count == 2
    assert len(faults.requests) == 2


@pytest.mark.server
def test_a_stream_is_replayed_from_files_with_its_words(server: RunningServer, tmp_path: Path) -> None:
    results = []
    for _ in range(2):
        with Client(server.url, file_cache_bytes=MB * 8, cache_folder=tmp_path / "c") as client:
            pieces = list(client.stream(LONG))
            results.append((b"".join(p.audio for p in pieces), [word for p in pieces for word in p.words]))
            counted = client.stats()
    assert results[0] == results[1]
    assert results[0][1]
    assert (counted.cached, counted.connections) == (1, 0)


@pytest.mark.server
def test_prefetched_texts_are_cached(server: RunningServer) -> None:
    with Client(server.url, prewarm=False) as client:
        assert client.prefetch([SHORT, LONG]).result(60) == 2
        client.reset_stats()
        assert client.speak(SHORT).data
        assert client.speak(LONG).data
        assert client.stats().cached == 2


@pytest.mark.server
def test_a_partial_stream_is_not_cached(server: RunningServer) -> None:
    with Client(server.url, prewarm=False) as client:
        with client.stream(LONG) as stream:
            next(stream)
        whole = b"".join(piece.audio for piece in client.stream(LONG))
        assert client.stats().cached == 0
        assert len(whole) > 10_000


@pytest.mark.server
def test_audio_larger_than_the_cache_is_fetched_whole_again(server: RunningServer) -> None:
    with Client(server.url, prewarm=False, memory_cache_bytes=5000) as client:
        first, again = (b"".join(piece.audio for piece in client.stream(LONG)) for _ in range(2))
        assert first == again
        assert client.stats().cached == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=40))
def test_memory_cache_stays_within_its_limit(steps: list[tuple[int, int]]) -> None:
    cache = MemoryCache(100)
    latest: dict[str, bytes] = {}
    for key, size in steps:
        data = bytes([key]) * size
        cache.put(str(key), Audio(data, "pcm"))
        latest[str(key)] = data
        cached = {name: audio for name in latest if (audio := cache.get(name))}
        assert sum(len(audio.data) for audio in cached.values()) <= 100
        assert all(audio.data == latest[name] for name, audio in cached.items())
        assert str(key) in cached


@given(st.binary(max_size=300), st.sampled_from(["pcm", "mp3"]), st.lists(st.text(max_size=5), max_size=3))
def test_audio_is_restored_and_a_changed_byte_is_detected(data: bytes, format: str, words: list[str]) -> None:
    sounds = tuple(Sound(word, 0.5, 1.0) for word in words)
    spoken = tuple(Word(word, 0.5, 1.0) for word in words)
    audio = Audio(data, format, 8000, 1.5, spoken, None, sounds, sounds[:1], tuple(dict.fromkeys(words)))
    content = serialise(audio)
    assert deserialise(content) == audio
    if data:
        assert deserialise(content[:-1] + bytes([content[-1] ^ 1])) is None
        assert deserialise(content[:-1]) is None


def test_a_damaged_file_is_a_miss_and_deleted(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, MB)
    cache.put("k", Audio(PCM, "pcm"))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    assert cache.get("k") is None
    assert not list(tmp_path.iterdir())


def test_files_stay_within_their_limit_and_the_recently_used_remain(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, 50_000)
    for n in range(40):
        cache.put(f"k{n}", Audio(bytes(4000), "pcm"))
        assert cache.get(f"k{n}")
        for entry in tmp_path.iterdir():
            if entry.name != "k0.tutti":
                os.utime(entry, (n, n))  # the clock of the disk is too coarse for a test
        assert cache.get("k0")
        assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 50_000


@pytest.mark.server
def test_an_unwritable_folder_disables_only_the_cache(server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Client(server.url, file_cache_bytes=MB, cache_folder=tmp_path / "file" / "x") as client:
        assert client.speak(SHORT).data


WRITER = """
import sys
from pathlib import Path
from tutti.client import Audio
from tutti.client.cache import FileCache
cache = FileCache(Path(sys.argv[1]), 60_000)
for n in range(300):
    key = str(n * int(sys.argv[2]) % 20)
    content = key.encode() * 2000
    cached = cache.get(key)
    assert cached is None or cached.data == content, key
    cache.put(key, Audio(content, "pcm"))
"""


@pytest.mark.process
def test_processes_share_a_cache_folder(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), step], stderr=subprocess.PIPE)
        for step in ("1", "7", "13")
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], errors
    assert not list(tmp_path.glob("*.partial"))
    assert all(deserialise(path.read_bytes()) for path in tmp_path.glob("*.tutti"))


def test_a_saved_file_is_complete_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Audio(PCM, "pcm").save(tmp_path / "x.pcm")
    assert path.read_bytes() == PCM

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match="No space left"):
        save(tmp_path / "x.pcm", b"other")
    assert path.read_bytes() == PCM
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.pcm"]
    with pytest.raises(InvalidInput, match="cannot write"):
        save(tmp_path / "nowhere" / "x.pcm", b"")


def test_a_saved_file_has_the_rights_of_the_umask(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        assert save(tmp_path / "x", b"").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(mask)
