"""All parameters in one buffer, updated by Muon (the wide matrices of the blocks) and Adam (the rest).

Muon (momentum whose singular values are all set to one by a Newton-Schulz iteration) needs fewer steps than Adam for
hidden matrices. Everything stays on the device, learning rate included, so a step can be captured as a CUDA graph.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
MUON_MOMENTUM = 0.95
MAX_NORM = 2.0  # of a gradient, relative to the usual one
MUON_DECAY = 0.05  # of the weights, which would grow without end: updates never shrink by themselves
MUON_RMS = 0.2  # of an update at learning rate 1, about that of Adam, so that both take the same learning rate


@dataclass(frozen=True, slots=True)
class AdamBetas:
    first: float = 0.9
    second: float = 0.98


class FlatParameters:
    """A module's parameters and gradients as views of two flat buffers; matrices for Muon come last."""

    def __init__(self, module: nn.Module, is_matrix: Callable[[str], bool] = lambda _: False) -> None:
        named = sorted(module.named_parameters(), key=lambda item: (is_matrix(item[0]), item[1].shape, item[0]))
        self.parameters = [parameter for _, parameter in named]
        self.values = torch.cat([parameter.detach().reshape(-1).float() for parameter in self.parameters])
        self.gradients = torch.zeros_like(self.values)
        self.n_adam = sum(parameter.numel() for name, parameter in named if not is_matrix(name))
        self.stacks: list[tuple[slice, torch.Size]] = []  # equal matrices side by side: [n, rows, columns]
        self.places: dict[str, tuple[slice, torch.Size]] = {}
        start = 0
        for name, parameter in named:
            place = slice(start, start + parameter.numel())
            self.places[name] = place, parameter.shape
            parameter.data = self.values[place].view(parameter.shape)
            if is_matrix(name):
                self._stack(place, parameter.shape)
            start = place.stop

    def _stack(self, place: slice, shape: torch.Size) -> None:
        if self.stacks and self.stacks[-1][1][1:] == shape:
            before, stacked = self.stacks.pop()
            self.stacks.append((slice(before.start, place.stop), torch.Size((stacked[0] + 1, *shape))))
        else:
            self.stacks.append((place, torch.Size((1, *shape))))

    def set_gradients(self, gradients: Sequence[Tensor]) -> None:
        """Copy the gradients of `parameters` into the buffer."""
        views = [self.gradients[place].view(shape) for place, shape in self.places.values()]
        torch._foreach_copy_(views, list(gradients))

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Another flat buffer of the same layout, by parameter name."""
        return {name: flat[place].view(shape) for name, (place, shape) in self.places.items()}


class Optimiser:
    """One step for all parameters of a module. Gradients that are not finite count as zero, large ones are clipped."""

    def __init__(self, flat: FlatParameters, betas: AdamBetas, average: float | None = None) -> None:
        self.flat, self._betas, self._decay = flat, betas, average
        device = flat.values.device
        self.rate = torch.zeros((), device=device)
        self._n_steps = torch.zeros((), device=device)
        self._momentum = torch.zeros_like(flat.values)
        self._variance = torch.zeros(flat.n_adam, device=device)
        self.average = flat.values.clone()  # exponential moving average of the weights
        self.norm = torch.zeros((), device=device)  # of the gradients, a moving average

    def reset(self) -> None:
        """Forget all steps: go on from the averaged weights."""
        self.flat.values.copy_(self.average)
        for state in (self._n_steps, self._momentum, self._variance, self.norm):
            state.zero_()

    @torch.no_grad()
    def step(self) -> None:
        self._n_steps += 1
        self._clip(self.flat.gradients)
        self._adam(self.flat.gradients)
        if self.flat.stacks:
            self._muon(self.flat.gradients)
        if self._decay is not None:
            # A short memory at first, so that the average follows from where it starts.
            decay = (self._n_steps / (self._n_steps + 20)).clamp(max=self._decay)
            self.average.add_((self.flat.values - self.average) * (1 - decay))

    def _clip(self, gradients: Tensor) -> None:
        """Clip at twice the usual norm; a gradient that is not finite becomes zero and is forgotten."""
        norm = torch.linalg.vector_norm(gradients)
        usual = torch.where(self.norm > 0, self.norm, norm)
        gradients.mul_((MAX_NORM * usual / (norm + 1e-12)).clamp(max=1.0)).nan_to_num_(0.0, 0.0, 0.0)
        clipped = torch.minimum(norm, MAX_NORM * usual)
        self.norm.copy_(torch.where(torch.isfinite(norm), usual.lerp(clipped, 0.02), self.norm))

    def _adam(self, gradients: Tensor) -> None:
        n, betas = self.flat.n_adam, self._betas
        gradient, momentum = gradients[:n], self._momentum[:n]
        momentum.lerp_(gradient, 1 - betas.first)
        self._variance.lerp_(gradient.square(), 1 - betas.second)
        # Both averages start at zero: divide by the weights that their memory has so far.
        weights = [1 - torch.exp(self._n_steps * math.log(beta)) for beta in (betas.first, betas.second)]
        corrected, scale = momentum / weights[0], (self._variance / weights[1]).sqrt() + 1e-8
        self.flat.values[:n] -= self.rate * corrected / scale

    def _muon(self, gradients: Tensor) -> None:
        n = self.flat.n_adam
        momentum = self._momentum[n:]
        momentum.mul_(MUON_MOMENTUM).add_(gradients[n:])
        ahead = gradients[n:] + MUON_MOMENTUM * momentum  # Nesterov
        for place, shape in self.flat.stacks:
            matrices = ahead[place.start - n : place.stop - n].view(shape)
            update = orthogonalise(matrices) * (MUON_RMS * max(shape[1:]) ** 0.5)
            values = self.flat.values[place]
            values -= self.rate * (update.flatten() + MUON_DECAY * values)


def orthogonalise(matrices: Tensor, n_iterations: int = 5) -> Tensor:  # [n, rows, columns]
    """The nearest matrices whose singular values are about one (0.7 to 1.2)."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (torch.linalg.matrix_norm(x)[:, None, None] + 1e-12)
    x = x.bfloat16() if x.is_cuda else x
    a, b, c = NEWTON_SCHULZ
    for _ in range(n_iterations):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    x = x.float()
    return x.transpose(1, 2) if tall else x


def is_block_matrix(name: str) -> bool:
    """The wide layers of a student's blocks."""
    return "blocks." in name and name.endswith(("expand.weight", "contract.weight"))
