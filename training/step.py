"""One training step: draw, speak, compare, update. It never waits for the host, so a CUDA graph can hold all of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from training.critic import Critic, critic_loss, generator_loss
from training.losses import Losses, LossWeights
from training.optimiser import AdamBetas, FlatParameters, Optimiser, is_block_matrix
from training.pool import Pool
from training.speaker import SpeakerEncoder
from tutti.model.light.signal import HOP, REACH
from tutti.model.torch.light import SpectralNetwork, pulse_train

Mode = Literal["eager", "graph", "compiled"]  # plain PyTorch; one CUDA graph; the same of compiled functions


@dataclass(frozen=True, slots=True)
class StepOptions:
    rows: int = 64  # of a batch
    steps: int = 128  # of a row, 1.6 s
    context: int = 16  # steps on each side, without a loss
    speaker_rows: int = 32  # of the batch, whose voices are compared
    speaker_every: int = 1  # steps; it counts as much more then
    critic_rows: int = 24
    critic_steps: int = 64
    critic_share: float = 0.5  # norm of the critics' gradient, relative to that of all other losses
    feature_weight: float = 4.0  # of the critics' inner features against their verdict
    average: float = 0.9995
    muon: bool = True
    mode: Mode = "graph"
    weights: LossWeights = field(default_factory=LossWeights)


def render(
    network: SpectralNetwork,
    features: Tensor,
    f0: Tensor,
    phase: Tensor,
    timbre: Tensor,
    valid: Tensor,
    noise: Tensor,
    statistics: Tensor,
) -> tuple[Tensor, Tensor]:
    """The wave and its predictable part, [B, 300 n], of the n innermost steps; n follows from the noise's length.

    noise [B, 300 (n + 8)]: a wave needs the spectra of two steps on each side, and those two steps of their source.
    """
    n_noise = noise.shape[1] // HOP
    outside = (f0.shape[1] - n_noise) // 2
    around = slice(outside, outside + n_noise)
    inner = slice(outside + REACH, outside + n_noise - REACH)
    hidden = hear(network, features, f0, timbre, valid, statistics)
    with torch.no_grad():
        waves = torch.cat([pulse_train(phase[:, around], f0[:, around]), noise])
        sources = network.transform.analyse(waves)[:, REACH:-REACH]
    source, noise_spectrum = sources.chunk(2)
    spectra = network.spectra(hidden[:, inner].float(), source, noise_spectrum)
    mask = valid[:, inner, :, None]
    waves = network.transform.synthesise(torch.cat([spectrum * mask for spectrum in spectra]))
    cut = REACH * HOP
    predictable, noisy = waves[:, cut:-cut].chunk(2)
    return predictable + noisy, predictable


def hear(
    network: SpectralNetwork, features: Tensor, f0: Tensor, timbre: Tensor, valid: Tensor, statistics: Tensor
) -> Tensor:
    """What the network's head reads, [B, L, width]."""
    timbre = network.row(timbre, statistics)
    with torch.autocast(features.device.type, torch.bfloat16, enabled=features.is_cuda):
        return network.hidden(features, f0, timbre, valid)


class Step:
    """The student, the critic and their optimisers; `imitation`, `regression` and `adversarial` are one step each."""

    def __init__(
        self,
        network: SpectralNetwork,
        pool: Pool,
        options: StepOptions,
        critic: Critic | None = None,
        speaker: SpeakerEncoder | None = None,
        imitated: nn.Linear | None = None,
    ) -> None:
        """`imitated`: the head of the network whose hidden values the pool holds."""
        self.options, self.network, self.pool, self.critic = options, network, pool, critic
        self.speaker, self.imitated = speaker, imitated
        device = next(network.parameters()).device
        self.student = Optimiser(
            FlatParameters(network, is_block_matrix if options.muon else lambda _: False), AdamBetas(), options.average
        )
        self.judge = Optimiser(FlatParameters(critic), AdamBetas(0.8, 0.95)) if critic is not None else None
        self.losses = Losses(options.weights).to(device)
        self._log: dict[str, Tensor] = {}
        self._n_logged = torch.zeros((), device=device)
        compiled = options.mode == "compiled"
        self._render = torch.compile(render, dynamic=False) if compiled else render
        self._losses = torch.compile(self.losses, dynamic=False) if compiled else self.losses

    def imitation(self) -> None:
        """Say the spectra of another network, all bins alike: fast, as nothing is transformed."""
        assert self.imitated is not None
        options = self.options
        segments = self.pool.draw(options.rows, options.steps, options.context)
        inner = slice(options.context, options.context + options.steps)
        inputs = segments.features, segments.f0, segments.timbre, segments.valid, segments.statistics
        said = self.network.head(hear(self.network, *inputs)[:, inner].float())
        with torch.no_grad():
            expected, valid = self.imitated(segments.hidden), segments.valid[:, inner]
        loss = ((said - expected) * valid).abs().mean()
        self._update([loss], [torch.ones_like(loss)])
        self._note({"loss": loss.detach()})

    def regression(self) -> None:
        self._regress(self.options.speaker_every * self.options.weights.speaker)

    def regression_without_speaker(self) -> None:
        self._regress(0.0)

    def _regress(self, speaker_weight: float) -> None:
        wave, predictable, target = self._speak()
        gradients, parts = self._compare(wave, predictable, target, speaker_weight)
        self._update([wave, predictable], gradients)
        self._note(parts)

    def adversarial(self) -> None:
        wave, predictable, target = self._speak()
        speaker_weight = self.options.weights.speaker
        (wave_gradient, predictable_gradient), parts = self._compare(wave, predictable, target, speaker_weight)
        part = slice(self.options.critic_rows), slice(self.options.critic_steps * HOP)
        gradient, judged = self._judge(wave[part], target[part])
        share = self.options.critic_share * wave_gradient[part].norm() / (gradient.norm() + 1e-12)
        wave_gradient = wave_gradient.clone()
        wave_gradient[part] += share * gradient
        self._update([wave, predictable], [wave_gradient, predictable_gradient])
        self._note(parts | judged)

    def _speak(self) -> tuple[Tensor, Tensor, Tensor]:
        options = self.options
        segments = self.pool.draw(options.rows, options.steps, options.context)
        noise = torch.randn(options.rows, HOP * (options.steps + 4 * REACH), device=segments.f0.device)
        inputs = segments.features, segments.f0, segments.phase, segments.timbre, segments.valid
        wave, predictable = self._render(self.network, *inputs, noise, segments.statistics)
        return wave, predictable, segments.samples

    def _compare(
        self, wave: Tensor, predictable: Tensor, target: Tensor, speaker_weight: float
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Gradients of the losses with respect to both waves."""
        held = self._hold_speaker(wave, target, speaker_weight) if speaker_weight else None
        leaves = [each.detach().requires_grad_() for each in (wave, predictable)]
        loss, parts = self._losses(*leaves, target)
        wave_gradient, predictable_gradient = torch.autograd.grad(loss, leaves)
        parts |= {"loss": loss.detach()}
        if held is not None:
            wave_gradient = wave_gradient.clone()
            wave_gradient[: self.options.speaker_rows] += held[0]
            parts |= {"speaker": held[1]}
        return [wave_gradient, predictable_gradient], parts

    def _hold_speaker(self, wave: Tensor, target: Tensor, weight: float) -> tuple[Tensor, Tensor] | None:
        """The gradient of the distance between the speakers, and the distance."""
        if self.speaker is None:
            return None
        own = wave[: self.options.speaker_rows].detach().requires_grad_()
        distance = self.speaker.distances(own, target[: self.options.speaker_rows]).mean()
        (gradient,) = torch.autograd.grad(weight * distance, own)
        return gradient, distance.detach()

    def _judge(self, wave: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Update the critics; return the gradient that would please them as they were before."""
        assert self.critic is not None
        assert self.judge is not None
        fake = wave.detach().requires_grad_()
        with torch.autocast(wave.device.type, torch.bfloat16, enabled=wave.is_cuda):
            real_judgements, fake_judgements = self.critic(target), self.critic(fake)
        please = generator_loss(real_judgements, fake_judgements, self.options.feature_weight)
        tell = critic_loss(real_judgements, fake_judgements)
        (gradient,) = torch.autograd.grad(please, fake, retain_graph=True)
        self.judge.flat.set_gradients(torch.autograd.grad(tell, self.judge.flat.parameters))
        self.judge.step()
        return gradient, {"critic": tell.detach(), "please": please.detach()}

    def _update(self, outputs: list[Tensor], gradients: list[Tensor]) -> None:
        flat = self.student.flat
        flat.set_gradients(torch.autograd.grad(outputs, flat.parameters, gradients))
        self.student.step()

    def _note(self, parts: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, part in parts.items():
                if name not in self._log:
                    self._log[name] = torch.zeros_like(part)
                self._log[name] += part
            self._n_logged += 1

    def read_log(self) -> dict[str, float]:
        """Means since the last call; waits for the device."""
        n = max(1.0, float(self._n_logged))
        means = {name: float(total) / n for name, total in self._log.items()}
        for total in (*self._log.values(), self._n_logged):
            total.zero_()
        return {name: mean for name, mean in means.items() if mean}

    def prepare(self, function: Callable[[], None], n_warm: int = 3) -> Callable[[], None]:
        """Return a call that runs one step: the function itself, or the replay of its CUDA graph.

        Steps that are needed to compile and to warm up run at learning rate zero; the optimisers are reset after.
        """
        optimisers = [each for each in (self.student, self.judge) if each is not None]
        for optimiser in optimisers:
            optimiser.rate.zero_()
        call = function
        if self.options.mode == "eager":
            function()
        else:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(n_warm):
                    function()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                function()
            call = graph.replay
            call()
            torch.cuda.synchronize()
        for optimiser in optimisers:
            optimiser.reset()
        self.read_log()
        return call


def module_state(module: nn.Module, state: dict[str, Tensor]) -> None:
    """Load tensors of any precision; each must be there."""
    module.load_state_dict({name: tensor.float() for name, tensor in state.items()}, strict=True)
