"""The nano student: rows do not hear each other, windows are the whole, it is small, and it can imitate."""

import pytest
import torch
from torch import Tensor

from tests.training.fakes import example
from training.pool import Pool
from training.step import Step, StepOptions
from tutti.model.light.signal import HOP, REACH
from tutti.model.torch.light import LightNetwork, harmonic_phase
from tutti.model.torch.nano import READ, NanoNetwork, text_and_energy

Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(scope="module")
def network() -> NanoNetwork:
    """Far from its quiet start, so that all inputs matter."""
    torch.manual_seed(0)
    network = NanoNetwork(width=16).eval().requires_grad_(False)
    torch.nn.init.normal_(network.head.weight, std=0.3)
    for block in (*network.frame_blocks, *network.step_blocks):
        torch.nn.init.normal_(block.get_submodule("style").weight, std=0.3)
        torch.nn.init.ones_(block.get_parameter("gain"))
    return network


def inputs(n_frames: int) -> Inputs:
    x = text_and_energy(torch.randn(1, n_frames, 512), torch.randn(1, 2 * n_frames))
    f0 = 100 + 80 * torch.rand(1, 2 * n_frames)
    f0[:, 5:9] = 0
    return x, f0, harmonic_phase(f0), torch.randn(1, 128), torch.randn(1, 2 * n_frames * HOP)


def multiply_adds(part: torch.nn.Module) -> int:
    """At each place: of all matrices and convolutions, but for those of the style, which run once a row."""
    return sum(weight.numel() for name, weight in part.named_parameters() if weight.ndim > 1 and ".style." not in name)


def test_the_network_is_small_enough_for_a_processor() -> None:
    network = NanoNetwork()
    of_frame, of_step = (network.entry, network.frame_blocks, network.split), (network.curves, network.step_blocks)
    per_frame, per_step = (sum(map(multiply_adds, parts)) for parts in (of_frame, (*of_step, network.head)))
    assert 40 * per_frame + 80 * per_step <= 0.5e9  # for a second of speech
    assert sum(parameter.numel() for parameter in network.parameters()) < 12e6


def test_what_it_reads_is_text_by_frame_and_energy_by_step() -> None:
    features, energy = torch.randn(2, 3, 512), torch.randn(2, 6)
    x = text_and_energy(features, energy)
    assert x.shape == (2, 6, READ)
    assert torch.equal(x[:, 4, :512], features[:, 2])
    assert torch.equal(x[:, 5, :512], features[:, 2])
    assert torch.equal(x[..., 512], energy)


def test_a_row_does_not_hear_what_pads_it(network: NanoNetwork) -> None:
    x, f0, phase, timbre, noise = inputs(40)
    valid = (torch.arange(80) < 50)[None, :, None]
    alone = network(x[:, :50], f0[:, :50], phase[:, :50], timbre, noise[:, : 50 * HOP])
    padded = network(x, f0, phase, timbre, noise, valid)
    torch.testing.assert_close(padded[:, : 50 * HOP], alone, **CLOSE)


@pytest.mark.parametrize("first", [60, 64])
def test_a_window_with_context_is_exactly_the_whole(network: NanoNetwork, first: int) -> None:
    x, f0, phase, timbre, noise = inputs(80)
    whole = network(x, f0, phase, timbre, noise)
    around = network.context + REACH
    window = slice(first - around, first + 20 + around)
    samples = slice(HOP * window.start, HOP * window.stop)
    part = network(x[:, window], f0[:, window], phase[:, window], timbre, noise[:, samples])
    torch.testing.assert_close(
        part[:, around * HOP : -around * HOP], whole[:, first * HOP : (first + 20) * HOP], **CLOSE
    )


def test_nothing_beyond_its_context_is_heard_and_its_edge_is(network: NanoNetwork) -> None:
    precise = NanoNetwork.of(network.state_dict()).double().requires_grad_(False)
    x, f0, _, timbre, _ = (each.double() for each in inputs(80))
    middle = 80  # the first step of a frame
    before, after = middle - network.context, middle + 1 + network.context
    far, edge = x.clone(), x.clone()
    far[:, :before], far[:, after:] = 0, 0
    edge[:, before : before + 2] *= -1
    said, without, other = (precise.hidden(each, f0, timbre)[:, middle] for each in (x, far, edge))
    torch.testing.assert_close(without, said, atol=1e-14, rtol=0)
    assert float((other - said).abs().max()) > 1e-12, "quiet, but heard"


@pytest.mark.parametrize("input_", ["text", "energy", "pitch", "timbre"])
def test_every_input_matters(network: NanoNetwork, input_: str) -> None:
    x, f0, _, timbre, _ = inputs(40)
    said = network.hidden(x, f0, timbre)
    match input_:
        case "text":
            x[..., :512] = 0
        case "energy":
            x[..., 512] = 0
        case "pitch":
            f0 = 2 * f0
        case "timbre":
            timbre = -timbre
    assert not torch.allclose(network.hidden(x, f0, timbre), said, atol=1e-2)


def test_the_network_comes_back_from_its_weights(network: NanoNetwork) -> None:
    again = NanoNetwork.of(network.state_dict())
    x, f0, _, timbre, _ = inputs(20)
    assert torch.equal(again.hidden(x, f0, timbre), network.hidden(x, f0, timbre))
    assert again.context == network.context


def test_imitation_brings_its_spectra_nearer_to_those_of_another_network() -> None:
    torch.manual_seed(0)
    pool = Pool(10, torch.device("cpu"), READ, n_hidden=32)
    pool.add([example(100, seed, READ, n_hidden=32) for seed in range(4)])
    light = LightNetwork(width=32, n_blocks=1, expansion=2).requires_grad_(False)
    torch.nn.init.normal_(light.head.weight, std=0.2)
    network = NanoNetwork(width=32, n_frame_blocks=1, expansion=2)
    step = Step(network, pool, StepOptions(rows=4, steps=24, mode="eager"), imitated=light.head)
    losses = []
    step.student.rate.fill_(3e-3)
    for _ in range(8):
        for _ in range(10):
            step.imitation()
        losses.append(step.read_log()["loss"])
    assert losses[-1] < 0.5 * losses[0]
