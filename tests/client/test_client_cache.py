"""What was said once is not asked for again; files are whole, bounded and shared."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.faults import FaultServer, say
from tests.server.harness import LONG, SHORT, RunningServer
from tutti.client import Audio, Client, Word
from tutti.client.cache import FileCache, MemoryCache, packed, unpacked
from tutti.client.files import save
from tutti.errors import InvalidInput, StorageFull

PCM = bytes(2000)
MB = 1 << 20


def test_a_hit_makes_no_request(faults: FaultServer) -> None:
    faults.script = [say(PCM), say(PCM[:10])]
    with Client(faults.url, prewarm=False) as client:
        first, again = (client.speak("hello", format="pcm") for _ in range(2))
        other = client.speak("hello", format="pcm", voice="am_adam")
        assert (first.data, again.data, other.data) == (PCM, PCM, PCM[:10])
        assert (first.call and first.call.cached, again.call and again.call.cached) == (False, True)
        assert client.stats().cached == 1
        assert client.stats().total_s.count == 2
    assert len(faults.asked) == 2


def test_files_outlive_the_client_and_a_stream_comes_from_them_with_its_words(
    server: RunningServer, tmp_path: Path
) -> None:
    heard = []
    for _ in range(2):
        with Client(server.url, file_cache_bytes=MB * 8, cache_folder=tmp_path / "c") as client:
            pieces = list(client.stream(LONG))
            heard.append((b"".join(p.audio for p in pieces), [word for p in pieces for word in p.words]))
            counted = client.stats()
    assert heard[0] == heard[1]
    assert heard[0][1]
    assert (counted.cached, counted.connections) == (1, 0)


def test_what_was_prefetched_is_there(server: RunningServer) -> None:
    with Client(server.url, prewarm=False) as client:
        assert client.prefetch([SHORT, LONG]).result(60) == 2
        client.reset_stats()
        assert client.speak(SHORT).data
        assert client.speak(LONG).data
        assert client.stats().cached == 2


def test_half_a_stream_is_not_kept(server: RunningServer) -> None:
    with Client(server.url, prewarm=False) as client:
        with client.stream(LONG) as stream:
            next(stream)
        whole = b"".join(piece.audio for piece in client.stream(LONG))
        assert client.stats().cached == 0
        assert len(whole) > 10_000


def test_what_is_too_long_to_keep_is_heard_whole_again(server: RunningServer) -> None:
    with Client(server.url, prewarm=False, memory_cache_bytes=5000) as client:
        first, again = (b"".join(piece.audio for piece in client.stream(LONG)) for _ in range(2))
        assert first == again
        assert client.stats().cached == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=40))
def test_memory_never_holds_more_than_it_may(steps: list[tuple[int, int]]) -> None:
    cache = MemoryCache(100)
    latest: dict[str, bytes] = {}
    for key, size in steps:
        data = bytes([key]) * size
        cache.put(str(key), Audio(data, "pcm"))
        latest[str(key)] = data
        kept = {name: audio for name in latest if (audio := cache.get(name))}
        assert sum(len(audio.data) for audio in kept.values()) <= 100
        assert all(audio.data == latest[name] for name, audio in kept.items())
        assert str(key) in kept


@given(st.binary(max_size=300), st.sampled_from(["pcm", "mp3"]), st.lists(st.text(max_size=5), max_size=3))
def test_what_is_packed_is_unpacked_and_a_changed_byte_is_seen(data: bytes, format: str, words: list[str]) -> None:
    audio = Audio(data, format, 8000, 1.5, tuple(Word(word, 0.5, 1.0) for word in words))
    content = packed(audio)
    assert unpacked(content) == audio
    if data:
        assert unpacked(content[:-1] + bytes([content[-1] ^ 1])) is None
        assert unpacked(content[:-1]) is None


def test_a_damaged_file_is_a_miss_and_goes(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, MB)
    cache.put("k", Audio(PCM, "pcm"))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    assert cache.get("k") is None
    assert not list(tmp_path.iterdir())


def test_files_stay_within_bounds_and_the_latest_used_stay(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, 50_000)
    for n in range(40):
        cache.put(f"k{n}", Audio(bytes(4000), "pcm"))
        assert cache.get(f"k{n}")
        for entry in tmp_path.iterdir():
            if entry.name != "k0.tutti":
                os.utime(entry, (n, n))  # the clock of the disk is too coarse for a test
        assert cache.get("k0")
        assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 50_000


def test_a_folder_that_cannot_be_written_costs_only_the_cache(server: RunningServer, tmp_path: Path) -> None:
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
    found = cache.get(key)
    assert found is None or found.data == content, key
    cache.put(key, Audio(content, "pcm"))
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), step], stderr=subprocess.PIPE)
        for step in ("1", "7", "13")
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], errors
    assert not list(tmp_path.glob("*.partial"))
    assert all(unpacked(path.read_bytes()) for path in tmp_path.glob("*.tutti"))


def test_a_saved_file_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_saved_file_has_the_user_s_rights(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        assert save(tmp_path / "x", b"").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(mask)
