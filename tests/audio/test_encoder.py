import gc
import os
import struct
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audio.decoding import chunks, cuts, decode, encode, level, noise, tone
from tutti.audio import FORMATS, PCM_FORMATS, encoder
from tutti.errors import ModelFailed
from tutti.speech import SAMPLE_RATE, to_pcm

EXACT = ["pcm", "wav", "flac"]
LOSSY_FRAME = {"mp3": 576, "aac": 1024}  # samples at 24 kHz
LOSSY_DELAY = {"mp3": 1105, "aac": 1024}  # silence that the codec adds in front; neither format can declare it
ALL_CASES = [(name, rate) for name in FORMATS for rate in (FORMATS[name].default_rate, 8_000, 48_000)]


@pytest.mark.parametrize("name", FORMATS)
@given(n=st.integers(0, 9_000), sizes=cuts)
@settings(max_examples=15, deadline=None)
def test_the_bytes_do_not_depend_on_the_chunks_of_the_input(name, n, sizes):
    samples = noise(n)
    assert encode(name, chunks(samples, sizes)) == encode(name, [samples])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
def test_resampled_bytes_do_not_depend_on_the_chunks_of_the_input(name, rate):
    samples = noise(7_777)
    parts = chunks(samples, [1, 0, 479, 480, 481, 3_000])
    assert encode(name, parts, sample_rate=rate) == encode(name, [samples], sample_rate=rate)


@pytest.mark.parametrize("name", EXACT)
@given(n=st.integers(0, 9_000), known=st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_lossless_format_restores_every_sample(name, n, known):
    samples = noise(n)
    decoded, rate = decode(name, encode(name, [samples], n_samples=n if known else None))
    assert rate == SAMPLE_RATE
    assert np.array_equal(np.rint(decoded * 32768), np.rint(samples * np.float32(32767)))


@given(n=st.integers(0, 5_000))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("rate", FORMATS["opus"].sample_rates)
def test_opus_is_as_long_as_the_speech_to_the_sample(rate, n):
    decoded, _ = decode("opus", encode("opus", [tone(n)], sample_rate=rate))  # always decoded at 48 kHz
    n_out = (2 * n * rate + SAMPLE_RATE) // (2 * SAMPLE_RATE)
    assert len(decoded) == n_out * 48_000 // rate


@pytest.mark.parametrize("name", LOSSY_FRAME)
@given(n=st.integers(1, 9_000))
@settings(max_examples=25, deadline=None)
def test_a_lossy_format_is_as_long_as_the_speech_to_the_frame(name, n):
    decoded, _ = decode(name, encode(name, [tone(n)]))
    padding = len(decoded) - LOSSY_DELAY[name] - n
    assert 0 <= padding <= 1.1 * LOSSY_FRAME[name]  # the rest of the last frame, and the overlap


@pytest.mark.parametrize(("name", "rate"), ALL_CASES)
@pytest.mark.parametrize("n", [24_000, 24_001, 30_123])
def test_the_last_50_ms_are_complete_and_silence_follows(name, rate, n):
    samples = np.concatenate([np.zeros(n - 1_200, np.float32), tone(1_200)])
    decoded, decoded_rate = decode(name, encode(name, [samples], sample_rate=rate), rate)
    start = round((n - 1_200) * decoded_rate / SAMPLE_RATE) + LOSSY_DELAY.get(name, 0)
    tail = decoded[start : start + decoded_rate // 20]
    gain = 0.95 if name == "mp3" else 1.0  # LAME lowers the level this much
    assert level(tail) == pytest.approx(gain * level(tone(1_200)), rel=0.03)
    assert np.sum(np.square(tail)) > 0.98 * np.sum(np.square(decoded))


@pytest.mark.parametrize(("name", "rate"), ALL_CASES)
@pytest.mark.parametrize("n", [0, 1, 240])
def test_the_shortest_speech_is_a_valid_file(name, rate, n):
    data = encode(name, [tone(n)], sample_rate=rate)
    assert data or (n == 0 and FORMATS[name].headerless) or (n * rate < SAMPLE_RATE // 2)
    _, decoded_rate = decode(name, data, rate)
    assert decoded_rate == (48_000 if name == "opus" else rate)


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_samples_already_give_bytes(name):
    stream = encoder(name)
    first = stream.encode(noise(SAMPLE_RATE // 2))
    assert len(first) > 0.3 * len(encode(name, [noise(SAMPLE_RATE // 2)]))


@pytest.mark.parametrize("name", FORMATS)
def test_samples_that_are_not_finite_are_an_error(name):
    for bad in (np.nan, np.inf, -np.inf):
        samples = tone(1_000)
        samples[777] = bad
        with pytest.raises(ModelFailed):
            encoder(name).encode(samples)


def test_samples_above_full_scale_are_clipped_and_counted():
    stream = encoder("pcm")
    data = stream.encode(np.array([0, 1, -1, 1.5, -7, 0.5], np.float32)) + stream.flush()
    assert np.frombuffer(data, "<i2").tolist() == [0, 32767, -32767, 32767, -32767, 16384]
    assert stream.n_clipped == 2


@pytest.mark.parametrize("name", [*PCM_FORMATS, "flac", "mulaw"])
@pytest.mark.parametrize("rate", [SAMPLE_RATE, 8_000])
@given(volume=st.floats(0.1, 3.0))
@settings(max_examples=5, deadline=None)
def test_samples_that_are_integers_already_become_the_same_audio(name, rate, volume):
    samples = noise(5_000)
    expected = encode(name, [samples * np.float32(volume)], sample_rate=rate)
    data = encode(name, [to_pcm(samples, volume)], sample_rate=rate)
    if name in PCM_FORMATS and rate == SAMPLE_RATE:
        assert data == expected
    assert len(data) == len(expected) or name == "flac"


def test_conversion_to_integers_is_symmetric():
    positive = np.frombuffer(encode("pcm", [noise(5_000)]), "<i2")
    negative = np.frombuffer(encode("pcm", [-noise(5_000)]), "<i2")
    assert np.array_equal(positive, -negative)


@pytest.mark.parametrize("name", FORMATS)
def test_a_flushed_stream_accepts_no_more_samples(name):
    stream = encoder(name)
    stream.encode(tone(100))
    stream.flush()
    assert stream.flush() == b""
    with pytest.raises(ValueError, match="flushed"):
        stream.encode(tone(1))


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_another_length_than_announced_is_an_error(name):
    with pytest.raises(ValueError, match="announced"):
        encode(name, [tone(101)], n_samples=100)
    with pytest.raises(ValueError, match="announced"):
        encode(name, [tone(99)], n_samples=100)


@pytest.mark.parametrize("name", FORMATS)
def test_the_callers_array_may_be_reused_after_each_call(name):
    stream, buffer, data = encoder(name), np.empty(700, np.float32), b""
    for part in chunks(noise(7_000), [700] * 9):
        buffer[:] = part
        data += stream.encode(buffer)
        buffer[:] = 0
    assert data + stream.flush() == encode(name, [noise(7_000)])


@pytest.mark.parametrize("name", FORMATS)
def test_parallel_streams_are_independent(name):
    def speak(seed: int) -> bytes:
        return encode(name, chunks(noise(12_000, seed), [500] * 24), sample_rate=8_000)

    alone = [speak(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(speak, range(6))) == alone


@pytest.mark.parametrize("name", FORMATS)
def test_an_abandoned_stream_is_freed(name):
    stream = encoder(name, sample_rate=48_000)
    stream.encode(noise(10_000))
    freed = weakref.ref(stream)
    gc.disable()  # reference counting alone must free it
    try:
        del stream
        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="needs CPU affinity of a thread")
@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_starts_no_threads_and_keeps_the_cpu_affinity(name):
    n_threads, cpus = psutil.Process().num_threads(), os.sched_getaffinity(0)
    streams = [encoder(name) for _ in range(5)]
    for stream in streams:
        stream.encode(noise(5_000))
    assert psutil.Process().num_threads() <= n_threads
    assert os.sched_getaffinity(0) == cpus


def test_a_streamed_wav_declares_an_unknown_length():
    data = encode("wav", [tone(100)])
    assert struct.unpack_from("<I", data, 4) == struct.unpack_from("<I", data, 40) == (0xFFFFFFFF,)
    assert data.count(b"RIFF") == 1


@pytest.mark.parametrize("rate", [8_000, 22_050, 24_000])
def test_a_wav_of_known_length_declares_its_size(rate):
    data = encode("wav", [tone(1_001)], sample_rate=rate, n_samples=1_001)
    assert struct.unpack_from("<I", data, 4) == (len(data) - 8,)
    assert struct.unpack_from("<I", data, 40) == (len(data) - 44,)


def test_a_wav_too_long_for_its_size_field_declares_an_unknown_length():
    fits, too_long = (1 << 31) - 23, 1 << 31
    assert struct.unpack_from("<I", encoder("wav", n_samples=fits).encode(tone(0)), 4) == (2 * fits + 36,)
    assert struct.unpack_from("<I", encoder("wav", n_samples=too_long).encode(tone(0)), 40) == (0xFFFFFFFF,)


@pytest.mark.parametrize(("n_samples", "declared"), [(None, 0), (5_000, 5_000)])
def test_a_flac_header_declares_the_length_only_if_it_is_known(n_samples, declared):
    data = encode("flac", [tone(5_000)], n_samples=n_samples)
    assert int.from_bytes(data[18:26]) & ((1 << 36) - 1) == declared


def test_an_mp3_stream_is_frames_of_one_size_and_no_tags():
    data = encode("mp3", [noise(24_000)])
    n_bytes = 72 * 96_000 // 24_000
    assert len(data) % n_bytes == 0
    assert {data[start : start + 2] for start in range(0, len(data), n_bytes)} == {b"\xff\xf3"}
    assert not any(tag in data for tag in (b"ID3", b"Xing", b"Info", b"TAG"))


def test_concatenated_mp3_streams_play_as_one():
    stream = encode("mp3", [tone(24_000)])
    decoded, _ = decode("mp3", stream + stream)
    assert len(decoded) == 2 * len(decode("mp3", stream)[0])


def test_opus_pages_hold_20_ms_and_only_the_last_one_ends_the_stream():
    data = encode("opus", [tone(24_000)])
    starts = [i for i in range(len(data) - 4) if data[i : i + 4] == b"OggS"]
    flags = [data[start + 5] for start in starts]
    granules = [struct.unpack_from("<q", data, start + 6)[0] for start in starts]
    assert flags == [2] + [0] * (len(starts) - 2) + [4]
    assert granules[:2] == [0, 0]
    assert granules[2:-1] == [960 * (i + 1) for i in range(len(starts) - 3)]
    assert granules[-1] == 48_000 + struct.unpack_from("<H", data, 28 + 10)[0]
    assert [struct.unpack_from("<I", data, start + 18)[0] for start in starts] == list(range(len(starts)))
