"""The light vocoder's network and its noise: rows do not hear each other, and a window is exactly the whole."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tutti.model.light.noise import normal, row_seed
from tutti.model.light.row import row_statistics as statistics_in_numpy
from tutti.model.light.signal import HOP, REACH
from tutti.model.torch.light import (
    InverseRealFFT,
    LightNetwork,
    RealFFT,
    Transform,
    harmonic_phase,
    pulse_train,
    row_statistics,
)
from tutti.speech import SAMPLE_RATE

Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


@pytest.fixture(scope="module")
def network() -> LightNetwork:
    torch.manual_seed(0)
    network = LightNetwork(width=16, expansion=2).eval().requires_grad_(False)
    torch.nn.init.normal_(network.head.weight, std=0.3)  # far from its quiet start, so that all inputs matter
    for block in network.blocks:
        torch.nn.init.normal_(block.get_submodule("style").weight, std=0.3)
    return network


def inputs(n_steps: int) -> Inputs:
    f0 = 100 + 80 * torch.rand(1, n_steps)
    f0[:, 5:9] = 0
    noise = torch.randn(1, HOP * n_steps)
    return torch.randn(1, n_steps, 512), f0, harmonic_phase(f0), torch.randn(1, 128), noise


@pytest.mark.slow
def test_a_row_does_not_hear_what_pads_it(network: LightNetwork) -> None:
    x, f0, phase, timbre, noise = inputs(80)
    valid = (torch.arange(80) < 50)[None, :, None]
    alone = network(x[:, :50], f0[:, :50], phase[:, :50], timbre, noise[:, : 50 * HOP])
    padded = network(x, f0, phase, timbre, noise, valid)
    torch.testing.assert_close(padded[:, : 50 * HOP], alone, atol=1e-5, rtol=1e-4)


def test_statistics_of_a_row_do_not_hear_what_pads_it() -> None:
    x, f0, *_ = inputs(80)
    x, f0 = 3 + x.repeat(2, 1, 1), f0.repeat(2, 1)
    lengths = torch.tensor([50, 80])
    valid = (torch.arange(80) < lengths[:, None])[:, :, None]
    x[0, 50:], f0[0, 50:] = torch.nan, torch.nan
    padded = row_statistics(x, f0, valid)
    for i, n in enumerate(lengths.tolist()):
        alone = statistics_in_numpy(x[i, :n].numpy(), f0[i, :n].numpy())
        torch.testing.assert_close(padded[i], torch.from_numpy(alone), atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(alone[7], x[i, :n, 7].mean(), rtol=1e-4)
        np.testing.assert_allclose(alone[514 + 7], x[i, :n, 7].std(correction=0), rtol=1e-4)


def test_a_window_with_context_is_exactly_the_whole(network: LightNetwork) -> None:
    x, f0, phase, timbre, noise = inputs(120)
    whole = network(x, f0, phase, timbre, noise)
    around = network.context + REACH
    window = slice(50 - around, 70 + around)
    samples = slice(HOP * window.start, HOP * window.stop)
    part = network(x[:, window], f0[:, window], phase[:, window], timbre, noise[:, samples])
    assert network.context == 27
    torch.testing.assert_close(
        part[:, around * HOP : -around * HOP], whole[:, 50 * HOP : 70 * HOP], atol=1e-5, rtol=1e-4
    )


def test_a_silent_pitch_makes_no_pulses_and_a_pitch_makes_its_own_number() -> None:
    f0 = torch.full((1, 80), 200.0)
    wave = pulse_train(harmonic_phase(f0), f0)
    spectrum = torch.fft.rfft(wave[0, HOP:-HOP].double()).abs()
    hz = torch.fft.rfftfreq(wave.shape[1] - 2 * HOP, 1 / SAMPLE_RATE, dtype=torch.float64)
    harmonics = spectrum > spectrum.max() / 2
    assert set((hz[harmonics] / 200).round().int().tolist()) == set(range(1, 56))
    assert not pulse_train(torch.zeros(1, 4), torch.zeros(1, 4)).any()


def test_a_wave_survives_both_transforms() -> None:
    transform, wave = Transform(), torch.randn(2, 20 * HOP)
    back = transform.synthesise(transform.analyse(wave))
    torch.testing.assert_close(back[:, 450:-450], wave[:, 450:-450], atol=1e-5, rtol=1e-4)


def test_gradients_of_the_transforms_are_exact() -> None:
    wave = torch.randn(2, 16, dtype=torch.float64, requires_grad=True)
    spectrum = torch.randn(2, 9, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(RealFFT.apply, wave)
    assert torch.autograd.gradcheck(InverseRealFFT.apply, spectrum)


def test_noise_is_the_same_in_numpy_and_pytorch_and_in_any_window() -> None:
    index = np.arange(5000)
    whole = normal(np.int64(7), index)
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(whole, normal(torch.tensor(7), torch.from_numpy(index)).numpy())
    np.testing.assert_array_equal(whole[1000:1010], normal(np.int64(7), np.arange(1000, 1010)))


def test_noise_is_white_and_differs_between_rows() -> None:
    index = np.arange(200_000)
    one, other = normal(np.int64(7), index), normal(np.int64(8), index)
    assert abs(one.mean()) < 0.01
    assert abs(one.std() - 1) < 0.01
    for lag in (1, 2, 256, 300, 65_536):
        assert abs(np.corrcoef(one[lag:], one[:-lag])[0, 1]) < 0.01
        assert abs(np.corrcoef(one[lag:], other[:-lag])[0, 1]) < 0.01
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.01


def test_the_seed_of_a_row_follows_its_content() -> None:
    durations, style = np.array([3, 4, 5]), np.ones(256, np.float32)
    seed = row_seed(durations, style)
    assert seed == row_seed(durations.copy(), style.copy())
    assert len({seed, row_seed(durations[::-1], style), row_seed(durations, 2 * style)}) == 3
