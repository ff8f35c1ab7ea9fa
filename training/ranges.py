"""Measure how large the inputs of light's and nano's products are in speech, for fixed scales of their rounding.

The heads have none: rounded so, they make speech 0.2 dB quieter. Light's entry and last block have none, either: its
log-mel distance is near its limit, and they are half of what fixed scales add.

python -m training.ranges --home ~/.cache/tutti

Speaks the sentences of `tutti verify` and writes `tutti/model/light/ranges.npz`. Needs PyTorch and the official files.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tutti.model.light import weights
from tutti.model.onnx.light import LightVocoder
from tutti.model.onnx.model import OnnxModel
from tutti.model.torch.light import TIMBRE, LightNetwork, SpectralNetwork, row_statistics
from tutti.model.torch.nano import NanoNetwork, text_and_energy
from tutti.speech import Frames
from tutti.verify.sentences import sentences
from tutti.voices import Voices

N_SENTENCES = 70
PRODUCTS = ("expand", "contract", "split")  # ends of the names of layers
LIGHT_WITHOUT = ("entry", "blocks.7.")
MARGIN = 1.1  # beyond what was found, before a number is cut

Ranges = dict[str, list[tuple[float, float]]]


@contextmanager
def watched(network: nn.Module, names: Sequence[str], found: Ranges) -> Iterator[None]:
    """While it is entered, the smallest and largest input of each of these layers is noted."""

    def note(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        return lambda _layer, inputs: found[name].append(_range(inputs[0].numpy()))

    hooks = [network.get_submodule(name).register_forward_pre_hook(note(name)) for name in names]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _range(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def measure(
    path: Path,
    network_type: type[SpectralNetwork],
    rows: Sequence[Frames],
    read: Callable[[Frames], Tensor],
    without: tuple[str, ...],
) -> dict[str, tuple[float, float]]:
    """The ranges of this network's matrices over these rows, by the matrix's name in the file; `without` those whose
    names begin so.
    """
    packed = weights.read(path)
    network = network_type.of({name: torch.from_numpy(value) for name, value in weights.as_float32(packed).items()})
    inner = [name for name, _ in network.named_modules() if name.endswith(PRODUCTS)]
    found = defaultdict[str, list[tuple[float, float]]](list)
    with torch.inference_mode(), watched(network.eval(), inner, found):
        for row in rows:
            x, f0 = read(row), torch.from_numpy(row.f0)[None]
            timbre = network.row(
                torch.from_numpy(row.style)[None, :TIMBRE], row_statistics(x, f0, torch.ones(1, len(row.f0), 1) > 0)
            )
            network.hidden(x, f0, timbre)
            found["entry"].append(_range(x[..., :512].numpy()))
    return {
        f"{name}.weight": (MARGIN * min(low for low, _ in each), MARGIN * max(high for _, high in each))
        for name, each in found.items()
        if not name.startswith(without)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="where `tutti pull` put the official files")
    args = parser.parse_args()
    model = OnnxModel(args.home / "model.onnx", "fp32", 2, vocoder="light", text="light")
    vocoder = model._vocoder
    assert isinstance(vocoder, LightVocoder)
    rows = [model.acoustic([each.row])[0] for each in sentences(Voices(args.home / "voices"), N_SENTENCES)]

    def read_text(row: Frames) -> Tensor:
        features = torch.from_numpy(np.ascontiguousarray(row.features.T))[None]
        return text_and_energy(features, torch.from_numpy(row.energy)[None])

    arrays = {}
    for path, network, read, without in (
        (weights.PATH, LightNetwork, lambda row: torch.from_numpy(vocoder.read(row).features), LIGHT_WITHOUT),
        (weights.NANO_PATH, NanoNetwork, read_text, ()),
    ):
        for name, (low, high) in measure(path, network, rows, read, without).items():
            print(f"{path.stem:6} {name:30} {low:8.2f} {high:8.2f}", flush=True)
            arrays[f"{weights.digest(path)}/{name}"] = np.array([low, high], np.float32)
    np.savez(weights.RANGES_PATH, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
