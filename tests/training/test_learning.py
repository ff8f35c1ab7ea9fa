"""What a step computes: the measure of `tutti verify`, exact gradients' carriers, and updates that stay finite."""

import json
import math
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.fakes import example
from training import checkpoint
from training.bench import choose_mode
from training.critic import Critic, critic_loss, generator_loss
from training.evaluation import LEVEL_GATE_DB, Evaluation
from training.losses import Losses, LossWeights
from training.optimiser import AdamBetas, FlatParameters, Optimiser, is_block_matrix, orthogonalise
from training.pool import Pool
from training.schedule import Schedule
from training.speaker import SpeakerEncoder, raising_gain, write_encoder
from training.step import Step, StepOptions, render
from training.verify.light import LightGates
from tutti.model.light import weights as packed
from tutti.model.light.row import N_STATISTICS
from tutti.model.light.signal import HOP
from tutti.model.torch.light import LightNetwork, harmonic_phase, row_statistics
from tutti.verify.mel import distance_db

pytestmark = pytest.mark.slow


@pytest.fixture
def network() -> LightNetwork:
    torch.manual_seed(0)
    network = LightNetwork(width=16, n_blocks=2, expansion=2)
    torch.nn.init.normal_(network.head.weight, std=0.2)
    return network


def learned_row(network: LightNetwork, features: torch.Tensor, f0: torch.Tensor) -> torch.Tensor:
    """Statistics of these rows, which now steer the network strongly."""
    statistics = row_statistics(features, f0, torch.ones_like(f0, dtype=torch.bool)[:, :, None])
    network.row.measure((statistics + torch.randn(8, 1, 1)).flatten(0, 1))
    torch.nn.init.normal_(network.row.weight, std=0.3)
    return statistics


def test_the_loss_is_the_distance_of_verify() -> None:
    actual, expected = 0.1 * torch.randn(2, 1, 12_000)
    loss, parts = Losses(LossWeights())(actual, actual, expected)
    assert float(parts["mel_db"]) == pytest.approx(distance_db(actual[0].numpy(), expected[0].numpy()), rel=1e-4)
    assert float(loss) > 0


def test_a_perfect_student_has_no_loss() -> None:
    wave = 0.1 * torch.randn(2, 12_000)
    loss, _ = Losses(LossWeights())(wave, wave, wave)
    assert float(loss) < 1e-3


def test_a_loss_has_finite_gradients_at_silence() -> None:
    wave = torch.zeros(1, 12_000, requires_grad=True)
    loss, _ = Losses(LossWeights())(wave, wave, 0.1 * torch.randn(1, 12_000))
    (gradient,) = torch.autograd.grad(loss, wave)
    assert torch.isfinite(gradient).all()


def test_the_middle_of_a_segment_is_spoken_as_in_its_row(network: LightNetwork) -> None:
    n, around = 20, network.context
    total = n + 2 * around
    f0 = torch.full((2, total), 140.0)
    phase, timbre, features = harmonic_phase(f0), torch.randn(2, 128), torch.randn(2, total, 512)
    noise = torch.randn(2, HOP * total)
    statistics = learned_row(network, features, f0)
    whole = network(features, f0, phase, network.row(timbre, statistics), noise)
    cut = slice(HOP * (around - 4), HOP * (around + n + 4))
    valid = torch.ones(2, total, 1)
    wave, predictable = render(network, features, f0, phase, timbre, valid, noise[:, cut], statistics)
    torch.testing.assert_close(wave, whole[:, HOP * around : HOP * (around + n)], atol=1e-4, rtol=1e-3)
    assert not torch.allclose(wave, predictable)


def test_flat_parameters_do_not_change_the_network(network: LightNetwork) -> None:
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    flat = FlatParameters(network, is_block_matrix)
    assert [tuple(shape) for _, shape in flat.stacks] == [(2, 16, 32), (2, 32, 16)]
    for name, tensor in flat.named(flat.values).items():
        torch.testing.assert_close(tensor, state[name])
        assert network.get_parameter(name).data_ptr() == tensor.data_ptr()


def test_orthogonal_matrices_have_singular_values_near_one() -> None:
    for shape in ((3, 16, 48), (3, 48, 16)):
        values = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
        assert 0.5 < float(values.min()) <= float(values.max()) < 1.4


@pytest.mark.parametrize("muon", [True, False])
def test_an_optimiser_descends_and_survives_what_is_not_finite(network: LightNetwork, muon: bool) -> None:
    flat = FlatParameters(network, is_block_matrix if muon else lambda _: False)
    optimiser = Optimiser(flat, AdamBetas(), average=0.9)
    optimiser.rate.fill_(0.01)
    target = torch.randn_like(flat.values)
    before = (flat.values - target).norm()
    for _ in range(100):
        flat.gradients.copy_(flat.values - target)
        optimiser.step()
    after = (flat.values - target).norm()
    assert after < 0.8 * before
    flat.gradients.fill_(math.nan)
    optimiser.step()
    assert torch.isfinite(flat.values).all()
    assert torch.isfinite(optimiser.average).all()
    flat.gradients.copy_(flat.values - target)
    optimiser.step()
    assert (flat.values - target).norm() < 1.01 * after


def test_pieces_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PIECE_BYTES", 1000)
    tensors = {"blocks.0.gain": torch.randn(40), "head.weight": torch.randn(30, 50)}
    checkpoint.write(tensors, tmp_path / "light.npz")
    assert len(list(tmp_path.iterdir())) > 3
    for name, tensor in checkpoint.read(tmp_path / "light.npz").items():
        torch.testing.assert_close(tensor, tensors[name], rtol=1e-3, atol=1e-3)
    with pytest.raises(FileNotFoundError, match=r"other\.npz"):
        checkpoint.read(tmp_path / "other.npz")


def test_the_weights_of_the_package_are_a_start(tmp_path: Path) -> None:
    weight = torch.randn(600, 512)
    packed.save(packed.pack({"head.weight": weight.numpy()}), tmp_path / "light.npz")
    state = checkpoint.read(tmp_path / "light.npz")
    torch.testing.assert_close(state["head.weight"], weight, atol=0.03, rtol=0)


def test_int8_is_within_half_a_step_of_each_channel() -> None:
    weight = torch.randn(6, 5, 7)
    error = (checkpoint.quantised({"w": weight})["w"] - weight).abs().flatten(1).amax(1)
    assert (error <= weight.flatten(1).abs().amax(1) / 127 / 2 + 1e-6).all()


def test_critics_learn_to_tell_and_their_gradient_pleases_them() -> None:
    torch.manual_seed(0)
    critic = Critic(shrink=8)
    flat = FlatParameters(critic)
    optimiser = Optimiser(flat, AdamBetas(0.8, 0.95))
    optimiser.rate.fill_(1e-2)
    real, fake = 0.1 * torch.randn(1, 3072), 0.1 * torch.sin(torch.arange(3072) / 10)[None]
    losses = []
    for _ in range(15):
        loss = critic_loss(critic(real), critic(fake))
        flat.set_gradients(torch.autograd.grad(loss, flat.parameters))
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    wave = fake.clone().requires_grad_()
    please = generator_loss(critic(real), critic(wave), 1.0)
    (gradient,) = torch.autograd.grad(please, wave)
    moved = wave - 1e-3 * gradient / gradient.norm()
    assert generator_loss(critic(real), critic(moved), 1.0) < please


def test_a_score_is_what_verify_would_say(network: LightNetwork) -> None:
    examples = [example(60, 1), example(90, 2)]
    evaluation = Evaluation(examples)
    network.eval().requires_grad_(False)
    pairs = evaluation.waves(network, 2)
    distances = [distance_db(wave.numpy(), target.numpy()) for target, wave in pairs]
    score = evaluation.score(network)
    assert score.mel_db == pytest.approx(np.mean(distances), rel=1e-3)
    assert score.worst_db == pytest.approx(max(distances), rel=1e-3)


@pytest.mark.parametrize("phase", ["regression", "adversarial"])
def test_a_step_changes_the_weights_only_by_its_rate(network: LightNetwork, phase: str) -> None:
    pool = Pool(10, torch.device("cpu"))
    pool.add([example(100, seed) for seed in range(4)])
    options = StepOptions(rows=2, steps=24, critic_rows=1, critic_steps=24, mode="eager")
    step = Step(network, pool, options, Critic(shrink=8))
    before = step.student.flat.values.clone()
    call = step.prepare(getattr(step, phase))
    torch.testing.assert_close(step.student.flat.values, before)
    step.student.rate.fill_(1e-3)
    call()
    assert not torch.equal(step.student.flat.values, before)
    assert step.read_log()["loss"] > 0


def test_a_schedule_ends_low_and_lets_the_critics_learn_first() -> None:
    schedule = Schedule(100, critic_part=0.4, rate=1e-3, critic_phase_rate=2e-4, critic_alone_s=10)
    rates = [schedule.student_rate(now) for now in range(100)]
    assert max(rates) == pytest.approx(1e-3, rel=0.05)
    assert rates[59] < 0.05 * max(rates)
    assert rates[60:70] == [0.0] * 10
    assert max(rates[70:]) == pytest.approx(2e-4, rel=0.05)
    assert rates[99] < 0.05 * max(rates[70:])
    assert not any(schedule.judge_rate(now) for now in range(60))
    assert all(schedule.judge_rate(now) > 0 for now in range(60, 100))


def test_the_level_of_a_whole_segment_counts_however_its_parts_differ() -> None:
    torch.manual_seed(0)
    target = 0.1 * torch.randn(2, 12_000)
    factor = 10 ** (1 / 20)  # one decibel
    _, off = Losses(LossWeights())(target * factor, target, target)
    assert float(off["row_level_db"]) == pytest.approx(1.0, abs=0.01)
    wave = (target * factor).requires_grad_()
    none = LossWeights(mel=0, other_mels=0, magnitude=0, squared=0, compressed=0, level=0)
    loss, _ = Losses(none)(wave, target, target)
    (gradient,) = torch.autograd.grad(loss, wave)
    assert (gradient * target).sum() > 0, "too loud: quieter is better"


def test_a_level_that_is_far_off_pulls_harder() -> None:
    target = 0.1 * torch.randn(1, 12_000, generator=torch.Generator().manual_seed(0))
    weights = LossWeights(mel=0, other_mels=0, magnitude=0, squared=0, compressed=0, level=0, row_level=1)

    def pull(off_db: float) -> float:
        gain = torch.tensor(10 ** (off_db / 20), requires_grad=True)
        loss, _ = Losses(weights)(gain * target, target, target)
        return float(torch.autograd.grad(loss, gain)[0])

    assert pull(0.5) > 2 * pull(0.1) > 0


def test_the_gate_of_the_level_is_that_of_verify() -> None:
    assert LightGates().level_db == LEVEL_GATE_DB


class TestSpeaker:
    @pytest.fixture
    def encoder(self) -> SpeakerEncoder:
        torch.manual_seed(0)
        encoder = SpeakerEncoder()
        for parameter in encoder.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        return encoder

    def test_equal_waves_have_one_speaker_and_noise_another(self, encoder: SpeakerEncoder) -> None:
        wave, noise = 0.1 * torch.sin(torch.arange(38_400) / 20)[None], 0.1 * torch.randn(1, 38_400)
        assert float(encoder.distances(wave, wave)) == pytest.approx(0, abs=1e-5)
        assert float(encoder.distances(noise, wave)) > 1e-3

    def test_a_step_along_its_gradient_brings_the_speakers_together(self, encoder: SpeakerEncoder) -> None:
        wave, target = (0.1 * torch.sin(torch.arange(38_400) / period)[None] for period in (20, 24))
        wave.requires_grad_()
        distance = encoder.distances(wave, target)
        (gradient,) = torch.autograd.grad(distance.sum(), wave)
        moved = wave.detach() - 0.001 * gradient / gradient.norm()
        assert encoder.distances(moved, target).item() < distance.item()

    def test_a_quiet_row_is_raised(self) -> None:
        quiet, loud = 1e-3 * torch.ones(1, 100), 0.5 * torch.ones(1, 100)
        assert float(20 * torch.log10((quiet * raising_gain(quiet)).mean())) == pytest.approx(-30, abs=0.1)
        assert float(raising_gain(loud)) == 1

    def test_rows_of_any_length_are_compared(self, encoder: SpeakerEncoder) -> None:
        rows = [0.1 * torch.randn(n) for n in (3_000, 38_400, 100_000)]
        others = [0.1 * torch.sin(torch.arange(len(row)) / 20) for row in rows]
        pairs = [*zip(rows, rows, strict=True), *zip(rows, others, strict=True)]
        similarities = encoder.similarities(pairs)
        torch.testing.assert_close(similarities[:3], torch.ones(3))
        assert (similarities[4:] < 0.999).all()

    def test_a_step_that_holds_the_speaker_has_another_gradient(
        self, network: LightNetwork, encoder: SpeakerEncoder
    ) -> None:
        pool = Pool(10, torch.device("cpu"))
        pool.add([example(100, seed) for seed in range(4)])
        options = StepOptions(rows=2, steps=24, speaker_rows=1, mode="eager")
        step = Step(network, pool, options, speaker=encoder)
        gradients = {}
        for function in (step.regression, step.regression_without_speaker):
            torch.manual_seed(1)
            function()
            gradients[function.__name__] = step.student.flat.gradients.clone()
        assert not torch.allclose(gradients["regression"], gradients["regression_without_speaker"])
        assert step.read_log()["speaker"] > 0


def test_the_encoder_agrees_with_resemblyzer(tmp_path: Path) -> None:
    pytest.importorskip("resemblyzer")
    from training.verify.meters import Resemblyzer

    write_encoder(tmp_path / "speaker.npz")
    encoder = SpeakerEncoder.read(tmp_path / "speaker.npz")
    rng = np.random.default_rng(0)
    time_s = np.arange(72_000) / 24_000
    buzz = sum(np.sin(2 * np.pi * 140 * k * time_s) / k for k in range(1, 30)) * (1.2 + np.sin(2 * np.pi * 3 * time_s))
    one = (0.05 * buzz).astype(np.float32)
    other = (0.05 * np.convolve(buzz, [1, 0.7, -0.3], "same") + 0.003 * rng.normal(size=len(buzz))).astype(np.float32)
    ours = float(encoder.similarities([(torch.from_numpy(one), torch.from_numpy(other))])[0])
    assert ours == pytest.approx(Resemblyzer()(one, other), abs=0.02)


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ({"graph": 40, "compiled": 80, "compiled+speaker": 75}, ("compiled", 1)),
        ({"graph": 40, "compiled": 80, "compiled+speaker": 60}, ("compiled", 3)),
        ({"graph": 40, "compiled": 80}, ("compiled", 0)),
        ({}, ("graph", 1)),
    ],
)
def test_a_run_takes_the_fastest_mode_and_the_speaker_as_often_as_it_is_cheap(
    tmp_path: Path, speeds: dict[str, float], expected: tuple[str, int]
) -> None:
    results = {name: {"regression": speed, "adversarial": 20} for name, speed in speeds.items()}
    (tmp_path / "bench.json").write_text(json.dumps(results | {"broken+speaker": {"failed": "no"}}))
    assert choose_mode(Namespace(mode="auto", out=tmp_path), torch.device("cuda")) == expected


def test_what_is_known_of_the_row_is_learned_and_comes_back_from_a_checkpoint(
    network: LightNetwork, tmp_path: Path
) -> None:
    """The teacher of the first row is twice as loud as that of the second; only their statistics differ."""
    pool = Pool(10, torch.device("cpu"))
    quiet = example(100, 3)
    loud = replace(quiet, samples=2 * quiet.samples, statistics=quiet.statistics + 1)
    pool.add([quiet, loud])
    network.row.measure(pool.statistics)
    for block in network.blocks:
        torch.nn.init.normal_(block.get_submodule("style").weight, std=0.1)
    weights = LossWeights(mel=0, other_mels=0, magnitude=0, squared=0, compressed=0, level=0, row_level=1)
    step = Step(network, pool, StepOptions(rows=4, steps=24, mode="eager", muon=False, weights=weights))
    step.student.rate.fill_(3e-3)
    for _ in range(60):
        step.regression()
    evaluation = Evaluation([quiet, loud])

    def level_db(spoken: LightNetwork) -> float:
        """The second row's, over that of the first."""
        (_, first), (_, second) = evaluation.waves(spoken, 2)
        return float(20 * torch.log10(second.norm() / first.norm()))

    network.eval().requires_grad_(False)
    assert level_db(network) > 3
    checkpoint.write(network.state_dict(), tmp_path / "light.npz")
    again = LightNetwork.of(checkpoint.read(tmp_path / "light.npz")).requires_grad_(False)
    assert level_db(again) == pytest.approx(level_db(network), abs=0.1)


def test_weights_from_before_are_a_start_and_speak_as_they_did(network: LightNetwork) -> None:
    state = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("row.")}
    old = LightNetwork.of(state)
    timbre, statistics = torch.randn(2, 128), torch.randn(2, N_STATISTICS)
    assert torch.equal(old.row(timbre, statistics), timbre)
    old.row.measure(torch.randn(9, N_STATISTICS))
    assert torch.equal(old.row(timbre, statistics), timbre), "measured, but nothing is learned yet"
