"""The networks that `training.distil` can teach, by name, and what each reads of a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from tutti.model.torch.light import LightNetwork, SpectralNetwork
from tutti.model.torch.nano import NanoNetwork, text_and_energy

DecoderInputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # features, pitch, energy, frames, style


@dataclass(frozen=True, slots=True)
class Student:
    """Its name is that of its file of weights."""

    name: str
    network: type[SpectralNetwork]
    read: Callable[[Tensor, DecoderInputs], Tensor]  # from what the decoder says and reads: [B, L, n_features]
    tiny: Mapping[str, int] = field(default_factory=dict)  # the network's size in tests


def _read_decoded(decoded: Tensor, _inputs: DecoderInputs) -> Tensor:
    return decoded


def _read_text(_decoded: Tensor, inputs: DecoderInputs) -> Tensor:
    features, _, energy, _, _ = inputs
    return text_and_energy(features, energy)


LIGHT = Student("light", LightNetwork, _read_decoded, {"width": 32, "n_blocks": 2, "expansion": 2})
NANO = Student("nano", NanoNetwork, _read_text, {"width": 32, "n_frame_blocks": 2, "expansion": 2})
STUDENTS = {student.name: student for student in (LIGHT, NANO)}
