import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audio.decoding import chunks, cuts, level, noise, tone
from tests.examples import examples
from tutti.audio import resampler
from tutti.audio.formats import ALL_RATES
from tutti.speech import SAMPLE_RATE, Samples

OTHER_RATES = [rate for rate in ALL_RATES if rate != SAMPLE_RATE]


def resample(parts: list[Samples], rate: int) -> Samples:
    stream = resampler(rate)
    return np.concatenate([*(stream.resample(part) for part in parts), stream.flush()])


def decibel(ratio: float) -> float:
    return 20 * np.log10(ratio + 1e-12)


@given(n=st.integers(0, 9_000), sizes=cuts, rate=st.sampled_from(ALL_RATES))
@settings(max_examples=examples(80), deadline=None)
def test_the_output_does_not_depend_on_the_chunks_of_the_input(n, sizes, rate):
    assert np.array_equal(resample(chunks(noise(n), sizes), rate), resample([noise(n)], rate))


@given(n=st.integers(0, 9_000) | st.integers(0, 50).map(lambda k: 160 * k), rate=st.sampled_from(ALL_RATES))
@settings(max_examples=examples(150), deadline=None)
def test_the_length_is_exact(n, rate):
    assert len(resample([noise(n)], rate)) == int(n * rate / SAMPLE_RATE + 0.5)


@pytest.mark.parametrize("rate", OTHER_RATES)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.85])
def test_a_tone_below_the_limit_passes_unchanged_and_in_time(rate, share):
    hz = share * min(rate, SAMPLE_RATE) / 2
    output = resample([tone(24_000, hz)], rate)
    expected = 0.5 * np.sin(2 * np.pi * hz * np.arange(rate) / rate)
    middle = slice(rate // 5, -rate // 5)
    assert decibel(level(output[middle] - expected[middle]) / level(expected[middle])) < -60  # flat within 0.01 dB


@pytest.mark.parametrize("rate", [rate for rate in OTHER_RATES if rate < SAMPLE_RATE])
def test_a_tone_above_the_limit_is_not_aliased(rate):
    for share in (1.02, 1.2, 1.5):
        if (hz := share * rate / 2) < 0.98 * SAMPLE_RATE / 2:
            output = resample([tone(24_000, hz)], rate)[rate // 5 : -rate // 5]
            assert decibel(level(output) / level(tone(24_000, hz))) < -90


@pytest.mark.parametrize("rate", [rate for rate in OTHER_RATES if rate > SAMPLE_RATE])
def test_upsampling_adds_no_image_of_the_tone(rate):
    output = resample([tone(24_000, 9_000)], rate)
    spectrum = np.abs(np.fft.rfft(output * np.blackman(len(output))))
    above = spectrum[np.fft.rfftfreq(len(output), 1 / rate) > SAMPLE_RATE / 2]
    assert decibel(above.max() / spectrum.max()) < -90


@pytest.mark.parametrize("rate", OTHER_RATES)
def test_a_click_stays_at_its_time(rate):
    for at in (0, 2_400, 4_799):
        click = np.zeros(4_800, np.float32)
        click[at] = 1
        assert abs(int(np.argmax(np.abs(resample([click], rate)))) - at * rate / SAMPLE_RATE) <= max(
            1, rate / SAMPLE_RATE
        )
