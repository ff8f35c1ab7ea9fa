"""The low-rank decoder: what its bases learn, and the correction of its output."""

from itertools import count
from pathlib import Path

import pytest
import torch
from torch import Tensor

from training import bases
from training.bases import (
    HIDDEN_WEIGHT,
    BasisTraining,
    LowRankConv,
    fit_correction,
    measure_loudness,
    principal_components,
    rounded,
    wide_convolutions,
)
from training.low_rank import low_rank_decoder
from training.run import Run
from training.schedule import Schedule
from training.teacher import DecoderRows
from tutti.model.light.weights import (
    BASIS_LEVELS,
    CORRECTION,
    CORRECTION_BIAS,
    INPUT_LOUDNESS,
    NARROW_LOUDNESS,
    Int8Matrix,
)
from tutti.model.torch.kokoro.convs import Conv
from tutti.model.torch.kokoro.masks import RowMask
from tutti.model.torch.kokoro.vocoder import Vocoder
from tutti.model.torch.light import FEATURES, LightNetwork

pytestmark = pytest.mark.slow
N_FRAMES = 24


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    torch.manual_seed(0)
    vocoder = Vocoder()
    for parameter in vocoder.parameters():
        torch.nn.init.normal_(parameter, std=0.02)
    vocoder.style_projections.fuse(vocoder)
    return vocoder.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def rows(vocoder: Vocoder) -> DecoderRows:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(2, N_FRAMES, FEATURES, generator=generator)
    f0 = 100 + 50 * torch.rand(2, 2 * N_FRAMES, generator=generator)
    energy, style = torch.rand(2, 2 * N_FRAMES, generator=generator), torch.randn(2, 256, generator=generator)
    given = DecoderRows(features, f0, energy, torch.tensor([N_FRAMES, 16]), style, torch.empty(0))
    return DecoderRows(features, f0, energy, given.n_frames, style, bases.decode(vocoder, given))


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).norm() / expected.norm())


def test_a_basis_is_rounded_as_the_package_rounds_it() -> None:
    basis = torch.randn(20, 384)
    expected = Int8Matrix.of(basis.numpy(), levels=BASIS_LEVELS).float32()
    torch.testing.assert_close(rounded(basis), torch.from_numpy(expected))


@pytest.mark.parametrize("kernel", [1, 3])
def test_a_basis_of_all_channels_leaves_the_convolution(kernel: int) -> None:
    official = Conv(6, 128, kernel)
    torch.nn.init.normal_(official.weight)
    torch.nn.init.normal_(official.bias)
    x, mask = torch.randn(1, 9, 6), RowMask.of(torch.tensor([9]), 9)
    with torch.no_grad():
        whole, own = official(x, mask), LowRankConv(official, torch.eye(128))(x, mask)
    torch.testing.assert_close(own, whole, atol=1e-4, rtol=1e-4)


def test_principal_components_span_what_a_convolution_says(
    vocoder: Vocoder, rows: DecoderRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, said = "decode.3.conv2", list[Tensor]()
    conv = wide_convolutions(vocoder)[name]
    monkeypatch.setattr(bases, "wide_convolutions", lambda _vocoder: {name: conv})
    with conv.register_forward_hook(lambda _module, _inputs, y: said.append(y[0])):
        components = principal_components(vocoder, [rows])[name]
    centred = said[0] - said[0].mean(0)
    assert relative_error(components.T @ components, torch.eye(FEATURES)) < 1e-4
    kept = [float((centred @ components[:, :n]).norm() / centred.norm()) for n in (1, 10, 90)]
    assert 2 * FEATURES**-0.5 < kept[0] < kept[1] < kept[2]
    assert kept[2] > 0.999  # rows of 48 and 32 steps, each without its mean, have 78 independent values


def test_bases_learn_what_the_network_needs(
    vocoder: Vocoder, rows: DecoderRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(4)
    start = {
        name: torch.linalg.qr(torch.randn(conv.weight.shape[0], 8)).Q
        for name, conv in wide_convolutions(vocoder).items()
    }
    network = LightNetwork(width=16, n_blocks=1, expansion=2).requires_grad_(False)
    training = BasisTraining(low_rank_decoder(vocoder, {}), network, start)
    before = training._losses(rows).detach()
    monkeypatch.setattr(bases, "REFRESH_S", 1.0)
    monkeypatch.setattr(bases, "STEP_FRAMES", 200)
    n_more = count()
    schedule = Schedule(6.0, critic_part=0.0, rate=3e-3, warm_up_s=0.1)
    training.train(Run(tmp_path), [rows], schedule, lambda: [rows] * (next(n_more) + 1))
    after = training._losses(rows).detach()
    assert after[0] + HIDDEN_WEIGHT * after[1] < before[0] + HIDDEN_WEIGHT * before[1]
    assert training.bases.keys() == start.keys()
    assert next(n_more)  # it asked for more rows


def test_loudness_is_that_of_the_steps_of_each_row(vocoder: Vocoder, rows: DecoderRows) -> None:
    start = {name: torch.eye(conv.weight.shape[0])[:, :8] for name, conv in wide_convolutions(vocoder).items()}
    low_rank = low_rank_decoder(vocoder, {})
    BasisTraining(low_rank, LightNetwork(width=16, n_blocks=1, expansion=2), start)
    name, read = "decode.3.conv2", list[Tensor]()
    conv = low_rank.get_submodule(name)
    assert isinstance(conv, LowRankConv)
    with torch.no_grad(), conv.register_forward_pre_hook(lambda _module, inputs: read.append(inputs[0])):
        found = measure_loudness(low_rank, [rows])
        short = measure_loudness(low_rank, [cut(rows, 1, 16)])
    x, n = read[0], 2 * rows.n_frames
    steps = torch.cat([each[: n[i]] for i, each in enumerate(x)])
    torch.testing.assert_close(found[name + INPUT_LOUDNESS], steps.pow(4).mean(0).pow(0.25), rtol=1e-3, atol=1e-5)
    narrow = conv.narrowed(x[1:, : n[1]]).detach()[0]  # nothing after the end of the shorter row counts
    torch.testing.assert_close(short[name + NARROW_LOUDNESS], narrow.pow(4).mean(0).pow(0.25), rtol=1e-3, atol=1e-5)
    assert len(found) == 2 * len(start)


def cut(rows: DecoderRows, i: int, n_frames: int) -> DecoderRows:
    """One row without its padding."""
    curves = (each[i : i + 1, : 2 * n_frames] for each in (rows.f0, rows.energy))
    decoded = rows.decoded[i : i + 1, : 2 * n_frames]
    return DecoderRows(
        rows.features[i : i + 1, :n_frames], *curves, rows.n_frames[i : i + 1], rows.style[i : i + 1], decoded
    )


def test_the_correction_finds_a_linear_difference(rows: DecoderRows, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(2)
    own = torch.randn(2, 2 * 600, FEATURES, generator=generator)
    weight, bias = (
        0.1 * torch.randn(FEATURES, FEATURES, generator=generator),
        torch.randn(FEATURES, generator=generator),
    )
    lengths = torch.tensor([600, 550])
    target = own + own @ weight.T + bias
    target[1, 1100:] = torch.nan  # after the row's end
    many = DecoderRows(rows.features, torch.zeros(2, 1200), torch.zeros(2, 1200), lengths, rows.style, target)
    monkeypatch.setattr(bases, "decode", lambda _vocoder, _rows: own)
    monkeypatch.setattr(bases, "RIDGE", 1e-3)
    found = fit_correction(None, [many])  # type: ignore[arg-type]
    assert relative_error(found[CORRECTION], weight) < 0.01
    assert relative_error(found[CORRECTION_BIAS], bias) < 0.01


def test_a_corrected_decoder_adds_the_correction_to_its_output(vocoder: Vocoder, rows: DecoderRows) -> None:
    generator = torch.Generator().manual_seed(3)
    weight, bias = (
        0.1 * torch.randn(FEATURES, FEATURES, generator=generator),
        torch.randn(FEATURES, generator=generator),
    )
    corrected = bases.decode(low_rank_decoder(vocoder, {CORRECTION: weight, CORRECTION_BIAS: bias}), rows)
    expected = rows.decoded + rows.decoded @ weight.T + bias
    assert relative_error(corrected[0], expected[0]) < 1e-3
