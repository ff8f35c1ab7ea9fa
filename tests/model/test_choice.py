"""The choice of a backend: what `auto` means, which combinations are refused, how a missing extra is named."""

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from tutti.errors import InvalidInput, MissingExtra
from tutti.model import choice as model_choice
from tutti.model.choice import PRECISIONS, Choice, choose, file_precision, load
from tutti.model.types import Backend, Compile, Device, Precision

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Sets what this machine has."""

    def set_machine(*, torch: bool, cuda: bool) -> None:
        monkeypatch.setattr(model_choice, "find_spec", lambda _: object() if torch else None)
        monkeypatch.setattr(model_choice, "has_cuda", lambda: torch and cuda)

    return set_machine


def test_auto_is_torch_on_cuda_and_else_the_processor(machine: Machine) -> None:
    machine(torch=True, cuda=True)
    assert choose() == Choice("torch", "cuda", "fp16")
    for torch, cuda in ((False, False), (True, False), (False, True)):
        machine(torch=torch, cuda=cuda)
        assert (choose().backend, choose().device) == ("onnx", "cpu")


def test_auto_gives_way_to_explicit_options(machine: Machine) -> None:
    machine(torch=True, cuda=True)
    assert choose(precision="int8") == Choice("onnx", "cpu", "int8", vocoder="light", text="light")
    assert choose(device="cpu").backend == "onnx"
    assert choose("torch", "cpu", vocoder="exact") == Choice("torch", "cpu", "fp32")
    assert choose(precision="fp32") == Choice("torch", "cuda", "fp32")
    assert choose(compile="full") == Choice("torch", "cuda", "fp16", "full")


def choice_or_error(*options: str) -> Choice | InvalidInput:
    try:
        return choose(*options)  # type: ignore[arg-type]
    except InvalidInput as error:
        return error


@pytest.mark.parametrize("cuda", [True, False])
def test_every_combination_is_honoured_or_refused_with_the_name_of_a_setting(machine: Machine, cuda: bool) -> None:
    machine(torch=True, cuda=cuda)
    honoured = set()
    for backend, device, precision, compile in itertools.product(
        ("auto", *get_args(Backend)), ("auto", *get_args(Device)), ("auto", *get_args(Precision)), get_args(Compile)
    ):
        options = (backend, device, precision, compile)
        choice = choice_or_error(*options)
        if isinstance(choice, InvalidInput):
            assert choice.param in ("device", "precision", "compile")
            assert "choose" in choice.message
            continue
        values = (choice.backend, choice.device, choice.precision, choice.compile)
        assert all(option in ("auto", value) for option, value in zip(options, values, strict=True))
        assert choice.precision in PRECISIONS[choice.backend, choice.device]
        assert choice.weights == file_precision(choice.precision)
        honoured.add(values[:3])
    assert honoured == {(*place, precision) for place, known in PRECISIONS.items() for precision in known}


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"backend": "torch", "precision": "int8"}, "precision"),
        ({"backend": "onnx", "precision": "fp16"}, "precision"),
        ({"backend": "torch", "device": "cpu", "precision": "fp16"}, "precision"),
        ({"backend": "onnx", "device": "cuda"}, "device"),
        ({"device": "cpu", "compile": "full"}, "compile"),
    ],
)
def test_a_combination_that_does_not_exist_is_refused(machine: Machine, options: dict[str, str], param: str) -> None:
    machine(torch=True, cuda=True)
    with pytest.raises(InvalidInput) as caught:
        choose(**options)  # type: ignore[arg-type]
    assert caught.value.param == param


def test_without_torch_the_extra_is_named_before_anything_is_fetched(machine: Machine) -> None:
    machine(torch=False, cuda=False)
    for options in ({"backend": "torch"}, {"device": "cuda"}, {"precision": "fp16"}):
        with pytest.raises(MissingExtra, match=r"pip install.*\[torch\]"):
            choose(**options)  # type: ignore[arg-type]


def test_a_torch_that_does_not_import_is_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tutti.model.torch.model", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install.*\[torch\]"):
        load(Path("model.onnx"), Choice("torch", "cpu", "fp32"), 1)


def test_the_error_for_a_missing_device_names_an_alternative() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(MissingExtra, match="device=cpu"):
        load(Path("model.onnx"), choose("torch", "cuda"), 1)


@pytest.mark.process
def test_choosing_for_a_processor_does_not_import_torch() -> None:
    code = "import sys; from tutti.model.choice import choose; choose(device='cpu'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_choice_is_described_with_library_device_and_precision() -> None:
    text = model_choice.describe(Choice("onnx", "cpu", "int8"))
    assert all(word in text for word in ("onnxruntime", "cpu", "int8"))


class Driver:
    """A CUDA driver of this version with so many devices; `error` is what its calls return."""

    def __init__(self, version: int, n_devices: int, error: int = 0) -> None:
        self._values, self._error = {"version": version, "devices": n_devices}, error

    def cuInit(self, _: int) -> int:
        return self._error

    def cuDriverGetVersion(self, value: object) -> int:
        return self._set(value, "version")

    def cuDeviceGetCount(self, value: object) -> int:
        return self._set(value, "devices")

    def _set(self, value: object, name: str) -> int:
        value._obj.value = self._values[name]  # type: ignore[attr-defined]
        return self._error


@pytest.mark.parametrize(
    ("built_for", "driver", "n_devices"),
    [
        ("'12.8'", Driver(12040, 2), 2),
        ("'12.8'", Driver(13000, 1), 1),
        ("'13.0'", Driver(12080, 1), 0),  # too old for this build
        ("'12.8'", Driver(12080, 0), 0),
        ("'12.8'", Driver(12080, 1, error=100), 0),
        ("'12.8'", None, 0),
        ("None", Driver(12080, 1), 0),  # PyTorch for processors
    ],
)
def test_cuda_devices_are_counted_without_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_for: str, driver: Driver | None, n_devices: int
) -> None:
    (tmp_path / "version.py").write_text(f"hip: Optional[str] = None\ncuda: Optional[str] = {built_for}\n")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(model_choice, "find_spec", lambda _: spec)
    monkeypatch.setattr(model_choice, "_cuda_driver", lambda: driver)
    model_choice.n_cuda_devices.cache_clear()
    assert model_choice.n_cuda_devices() == n_devices
    model_choice.n_cuda_devices.cache_clear()


def test_the_version_of_this_pytorch_is_understood() -> None:
    torch = pytest.importorskip("torch")
    cuda = torch.version.cuda
    assert model_choice._torch_cuda_major() == (int(cuda.partition(".")[0]) if cuda else None)


def test_the_package_with_the_model_decides_the_precision_of_a_processor_and_nothing_else(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_choice, "model_package", lambda: Path("site-packages/tutti_tts_model"))
    machine(torch=False, cuda=False)
    assert choose().precision == "int8"
    assert choose(precision="fp32").precision == "fp32"
    machine(torch=True, cuda=True)
    assert choose() == Choice("torch", "cuda", "fp16")
