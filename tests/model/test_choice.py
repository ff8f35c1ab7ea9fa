"""One door to every backend: what `auto` means, what does not go together, what is missing and how to get it."""

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from tutti.model import choice as model_choice
from tutti.errors import InvalidInput, MissingExtra
from tutti.model.choice import PRECISIONS, Backend, Choice, Compile, Device, Precision, choose, file_of, load, named

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Says what this machine has."""

    def has(*, torch: bool, cuda: bool) -> None:
        monkeypatch.setattr(model_choice, "find_spec", lambda _: object() if torch else None)
        monkeypatch.setattr(model_choice, "has_cuda", lambda: torch and cuda)

    return has


def test_auto_is_torch_on_cuda_and_else_the_processor(machine: Machine) -> None:
    machine(torch=True, cuda=True)
    assert choose() == Choice("torch", "cuda", "fp16")
    for torch, cuda in ((False, False), (True, False), (False, True)):
        machine(torch=torch, cuda=cuda)
        assert (choose().backend, choose().device) == ("onnx", "cpu")


def test_auto_gives_way_to_what_is_asked_for(machine: Machine) -> None:
    machine(torch=True, cuda=True)
    assert choose(precision="int8") == Choice("onnx", "cpu", "int8")
    assert choose(device="cpu").backend == "onnx"
    assert choose("torch", "cpu") == Choice("torch", "cpu", "fp32")
    assert choose(precision="fp32") == Choice("torch", "cuda", "fp32")
    assert choose(compile="full") == Choice("torch", "cuda", "fp16", "full")


def choice_or_refusal(*wish: str) -> Choice | InvalidInput:
    try:
        return choose(*wish)  # type: ignore[arg-type]
    except InvalidInput as refusal:
        return refusal


@pytest.mark.parametrize("cuda", [True, False])
def test_every_wish_is_met_to_the_letter_or_refused_by_the_name_of_a_setting(machine: Machine, cuda: bool) -> None:
    machine(torch=True, cuda=cuda)
    met = set()
    for backend, device, precision, compile in itertools.product(
        ("auto", *get_args(Backend)), ("auto", *get_args(Device)), ("auto", *get_args(Precision)), get_args(Compile)
    ):
        wanted = (backend, device, precision, compile)
        found = choice_or_refusal(*wanted)
        if isinstance(found, InvalidInput):
            assert found.param in ("device", "precision", "compile")
            assert "choose" in found.message
            continue
        got = (found.backend, found.device, found.precision, found.compile)
        assert all(want in ("auto", have) for want, have in zip(wanted, got, strict=True))
        assert found.precision in PRECISIONS[found.backend, found.device]
        assert found.weights == file_of(found.precision)
        met.add(got[:3])
    assert met == {(*place, precision) for place, known in PRECISIONS.items() for precision in known}


@pytest.mark.parametrize(
    ("wish", "param"),
    [
        ({"backend": "torch", "precision": "int8"}, "precision"),
        ({"backend": "onnx", "precision": "fp16"}, "precision"),
        ({"backend": "torch", "device": "cpu", "precision": "fp16"}, "precision"),
        ({"backend": "onnx", "device": "cuda"}, "device"),
        ({"device": "cpu", "compile": "full"}, "compile"),
    ],
)
def test_what_does_not_go_together_is_refused(machine: Machine, wish: dict[str, str], param: str) -> None:
    machine(torch=True, cuda=True)
    with pytest.raises(InvalidInput) as caught:
        choose(**wish)  # type: ignore[arg-type]
    assert caught.value.param == param


def test_without_torch_the_extra_is_named_before_anything_is_fetched(machine: Machine) -> None:
    machine(torch=False, cuda=False)
    for wish in ({"backend": "torch"}, {"device": "cuda"}, {"precision": "fp16"}):
        with pytest.raises(MissingExtra, match=r'pip install "tutti-tts\[torch\]"'):
            choose(**wish)  # type: ignore[arg-type]


def test_a_torch_that_does_not_import_is_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tutti.model.torch.model", raising=False)
    with pytest.raises(MissingExtra, match=r"tutti-tts\[torch\]"):
        load(Path("model.onnx"), Choice("torch", "cpu", "fp32"), 1)


def test_a_device_that_is_not_there_names_the_cure() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(MissingExtra, match="device=cpu"):
        load(Path("model.onnx"), choose("torch", "cuda"), 1)


def test_choosing_for_a_processor_does_not_import_torch() -> None:
    code = "import sys, tutti.model.choice as m; m.choose(device='cpu'); m.choose('onnx'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_choice_can_be_written_down() -> None:
    written = named(Choice("onnx", "cpu", "int8"))
    assert all(word in written for word in ("onnxruntime", "cpu", "int8"))
