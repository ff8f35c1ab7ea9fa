import gc
import os
import struct
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from decoding import cuts, decode, encode, level, noise, pieces, tone
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.audio import FORMATS, encoder
from tutti.errors import ModelFailed
from tutti.speech import SAMPLE_RATE

EXACT = ["pcm", "wav", "flac"]
LOSSY_FRAME = {"mp3": 576, "aac": 1024}  # samples at 24 kHz
LOSSY_DELAY = {"mp3": 1105, "aac": 1024}  # silence the codec must put first; neither format can tell the player
ALL_CASES = [(name, rate) for name in FORMATS for rate in (FORMATS[name].default_rate, 8_000, 48_000)]


@pytest.mark.parametrize("name", FORMATS)
@given(n=st.integers(0, 9_000), sizes=cuts)
@settings(max_examples=15, deadline=None)
def test_the_cut_of_the_input_never_shows_in_the_bytes(name, n, sizes):
    samples = noise(n)
    assert encode(name, pieces(samples, sizes)) == encode(name, [samples])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
def test_nor_does_it_when_resampled(name, rate):
    samples = noise(7_777)
    cut = pieces(samples, [1, 0, 479, 480, 481, 3_000])
    assert encode(name, cut, sample_rate=rate) == encode(name, [samples], sample_rate=rate)


@pytest.mark.parametrize("name", EXACT)
@given(n=st.integers(0, 9_000), known=st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_lossless_format_gives_back_every_sample(name, n, known):
    samples = noise(n)
    heard, rate = decode(name, encode(name, [samples], n_samples=n if known else None))
    assert rate == SAMPLE_RATE
    assert np.array_equal(np.rint(heard * 32768), np.rint(samples * np.float32(32767)))


@given(n=st.integers(0, 5_000))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("rate", FORMATS["opus"].sample_rates)
def test_opus_is_as_long_as_the_speech_to_the_sample(rate, n):
    heard, _ = decode("opus", encode("opus", [tone(n)], sample_rate=rate))  # always heard at 48 kHz
    n_out = (2 * n * rate + SAMPLE_RATE) // (2 * SAMPLE_RATE)
    assert len(heard) == n_out * 48_000 // rate


@pytest.mark.parametrize("name", LOSSY_FRAME)
@given(n=st.integers(1, 9_000))
@settings(max_examples=25, deadline=None)
def test_a_lossy_format_is_as_long_as_the_speech_to_the_frame(name, n):
    heard, _ = decode(name, encode(name, [tone(n)]))
    padding = len(heard) - LOSSY_DELAY[name] - n
    assert 0 <= padding <= 1.1 * LOSSY_FRAME[name]  # the rest of its last frame, and what the overlap needs


@pytest.mark.parametrize(("name", "rate"), ALL_CASES)
@pytest.mark.parametrize("n", [24_000, 24_001, 30_123])
def test_the_last_50_ms_are_heard_and_nothing_sounds_after_them(name, rate, n):
    samples = np.concatenate([np.zeros(n - 1_200, np.float32), tone(1_200)])
    heard, rate_heard = decode(name, encode(name, [samples], sample_rate=rate), rate)
    start = round((n - 1_200) * rate_heard / SAMPLE_RATE) + LOSSY_DELAY.get(name, 0)
    tail = heard[start : start + rate_heard // 20]
    gain = 0.95 if name == "mp3" else 1.0  # LAME leaves itself this much room
    assert level(tail) == pytest.approx(gain * level(tone(1_200)), rel=0.03)
    assert np.sum(np.square(tail)) > 0.98 * np.sum(np.square(heard))


@pytest.mark.parametrize(("name", "rate"), ALL_CASES)
@pytest.mark.parametrize("n", [0, 1, 240])
def test_the_shortest_speech_is_a_whole_file(name, rate, n):
    data = encode(name, [tone(n)], sample_rate=rate)
    assert data or (n == 0 and FORMATS[name].headerless) or (n * rate < SAMPLE_RATE // 2)
    _, rate_heard = decode(name, data, rate)
    assert rate_heard == (48_000 if name == "opus" else rate)


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_leave_with_the_first_samples(name):
    stream = encoder(name)
    first = stream.encode(noise(SAMPLE_RATE // 2))
    assert len(first) > 0.3 * len(encode(name, [noise(SAMPLE_RATE // 2)]))


@pytest.mark.parametrize("name", FORMATS)
def test_a_number_that_is_none_is_an_error_and_never_noise(name):
    for bad in (np.nan, np.inf, -np.inf):
        samples = tone(1_000)
        samples[777] = bad
        with pytest.raises(ModelFailed):
            encoder(name).encode(samples)


def test_too_loud_is_clipped_and_counted():
    stream = encoder("pcm")
    data = stream.encode(np.array([0, 1, -1, 1.5, -7, 0.5], np.float32)) + stream.flush()
    assert np.frombuffer(data, "<i2").tolist() == [0, 32767, -32767, 32767, -32767, 16384]
    assert stream.n_clipped == 2


def test_a_wave_and_its_mirror_image_stay_mirror_images():
    there = np.frombuffer(encode("pcm", [noise(5_000)]), "<i2")
    back = np.frombuffer(encode("pcm", [-noise(5_000)]), "<i2")
    assert np.array_equal(there, -back)


@pytest.mark.parametrize("name", FORMATS)
def test_a_flushed_stream_is_over(name):
    stream = encoder(name)
    stream.encode(tone(100))
    stream.flush()
    assert stream.flush() == b""
    with pytest.raises(ValueError, match="flushed"):
        stream.encode(tone(1))


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_a_length_that_was_announced_is_kept_or_an_error(name):
    with pytest.raises(ValueError, match="announced"):
        encode(name, [tone(101)], n_samples=100)
    with pytest.raises(ValueError, match="announced"):
        encode(name, [tone(99)], n_samples=100)


@pytest.mark.parametrize("name", FORMATS)
def test_the_callers_array_may_be_reused_at_once(name):
    stream, buffer, data = encoder(name), np.empty(700, np.float32), b""
    for part in pieces(noise(7_000), [700] * 9):
        buffer[:] = part
        data += stream.encode(buffer)
        buffer[:] = 0
    assert data + stream.flush() == encode(name, [noise(7_000)])


@pytest.mark.parametrize("name", FORMATS)
def test_streams_side_by_side_do_not_hear_each_other(name):
    def speak(seed: int) -> bytes:
        return encode(name, pieces(noise(12_000, seed), [500] * 24), sample_rate=8_000)

    alone = [speak(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(speak, range(6))) == alone


@pytest.mark.parametrize("name", FORMATS)
def test_an_abandoned_stream_is_freed(name):
    stream = encoder(name, sample_rate=48_000)
    stream.encode(noise(10_000))
    freed = weakref.ref(stream)
    gc.disable()  # nothing may wait for the collector
    try:
        del stream
        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a thread be told how many CPUs to see")
@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_brings_no_threads_and_leaves_the_cpus_alone(name):
    n_threads, cpus = psutil.Process().num_threads(), os.sched_getaffinity(0)
    streams = [encoder(name) for _ in range(5)]
    for stream in streams:
        stream.encode(noise(5_000))
    assert psutil.Process().num_threads() <= n_threads
    assert os.sched_getaffinity(0) == cpus


def test_a_streamed_wav_says_that_its_length_is_open():
    data = encode("wav", [tone(100)])
    assert struct.unpack_from("<I", data, 4) == struct.unpack_from("<I", data, 40) == (0xFFFFFFFF,)
    assert data.count(b"RIFF") == 1


@pytest.mark.parametrize("rate", [8_000, 22_050, 24_000])
def test_a_wav_of_known_length_says_its_true_size(rate):
    data = encode("wav", [tone(1_001)], sample_rate=rate, n_samples=1_001)
    assert struct.unpack_from("<I", data, 4) == (len(data) - 8,)
    assert struct.unpack_from("<I", data, 40) == (len(data) - 44,)


def test_a_wav_too_long_for_its_size_field_leaves_it_open():
    fits, too_long = (1 << 31) - 23, 1 << 31
    assert struct.unpack_from("<I", encoder("wav", n_samples=fits).encode(tone(0)), 4) == (2 * fits + 36,)
    assert struct.unpack_from("<I", encoder("wav", n_samples=too_long).encode(tone(0)), 40) == (0xFFFFFFFF,)


@pytest.mark.parametrize(("n_samples", "said"), [(None, 0), (5_000, 5_000)])
def test_a_flac_header_tells_the_length_only_if_it_is_known(n_samples, said):
    data = encode("flac", [tone(5_000)], n_samples=n_samples)
    assert int.from_bytes(data[18:26]) & ((1 << 36) - 1) == said


def test_an_mp3_stream_is_frames_of_one_size_and_no_tags():
    data = encode("mp3", [noise(24_000)])
    n_bytes = 72 * 96_000 // 24_000
    assert len(data) % n_bytes == 0
    assert {data[start : start + 2] for start in range(0, len(data), n_bytes)} == {b"\xff\xf3"}
    assert not any(tag in data for tag in (b"ID3", b"Xing", b"Info", b"TAG"))


def test_mp3_streams_joined_end_to_end_play_on():
    one = encode("mp3", [tone(24_000)])
    heard, _ = decode("mp3", one + one)
    assert len(heard) == 2 * len(decode("mp3", one)[0])


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
