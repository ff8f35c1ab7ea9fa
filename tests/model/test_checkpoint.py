"""Reading a checkpoint: only tensors are accepted; anything else is refused and never executed."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tutti.errors import WeightsCorrupt  # noqa: E402
from tutti.model.torch.kokoro import weights  # noqa: E402


class RunsOnLoad:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("save", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value, 2))])
def test_a_checkpoint_that_would_execute_code_is_refused(tmp_path: Path, save) -> None:  # type: ignore[no-untyped-def]
    save({"bert": {"module.weight": RunsOnLoad(tmp_path / "executed")}}, tmp_path / "kokoro.pth")
    with pytest.raises(WeightsCorrupt, match="tensors alone"):
        weights.read_state(tmp_path / "kokoro.pth")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (torch.nn.Conv1d(3, 5, 3), torch.zeros(1, 3, 9)),
        (torch.nn.ConvTranspose1d(4, 2, 6), torch.zeros(1, 4, 9)),
        (torch.nn.Linear(3, 2), torch.zeros(1, 3)),
    ],
    ids=["convolution", "transposed", "linear"],
)
def test_weight_norm_is_folded_as_upstream_computes_it(layer: torch.nn.Module, x: torch.Tensor) -> None:
    with pytest.warns(FutureWarning, match="weight_norm"):
        normed = torch.nn.utils.weight_norm(layer)
    with torch.no_grad():
        normed.weight_g.mul_(1.7)
        normed(x)  # computes the weight from both factors
    names = {f"module.block.{name}": tensor for name, tensor in normed.state_dict().items()}
    state = weights.from_checkpoint({"decoder": names})
    assert state.keys() == {"decoder.block.weight", "decoder.block.bias"}
    assert torch.allclose(state["decoder.block.weight"], normed.weight, atol=1e-6)


def test_safetensors_hold_the_same_as_a_checkpoint(tmp_path: Path) -> None:
    tensors = {"bert.module.embeddings.weight": torch.randn(3, 4), "decoder.block.bias": torch.randn(5).half()}
    header: dict[str, Any] = {"__metadata__": {"by": "a test"}}
    numbers = b""
    for name, tensor in tensors.items():
        data = tensor.numpy().tobytes()
        dtype = {torch.float32: "F32", torch.float16: "F16"}[tensor.dtype]
        header[name] = {
            "dtype": dtype,
            "shape": list(tensor.shape),
            "data_offsets": [len(numbers), len(numbers) + len(data)],
        }
        numbers += data
    head = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + numbers)
    state = weights.read_state(tmp_path / "model.safetensors")
    assert state.keys() == {"bert.embeddings.weight", "decoder.block.bias"}
    assert torch.equal(state["bert.embeddings.weight"], tensors["bert.module.embeddings.weight"])
    assert torch.equal(state["decoder.block.bias"], tensors["decoder.block.bias"].float())


@pytest.mark.parametrize(
    "data", [b"", b"x" * 7, b"\xff" * 20, (2).to_bytes(8, "little") + b"[]", (9).to_bytes(8, "little") + b'{"a": {}}']
)
def test_damaged_safetensors_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(WeightsCorrupt):
        weights.read_state(tmp_path / "model.safetensors")
