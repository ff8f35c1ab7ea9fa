"""Choose and load a backend of Kokoro: ONNX Runtime or PyTorch, on a processor or a CUDA device."""

import platform
from ctypes import CDLL
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tutti.errors import InvalidInput, MissingExtra, install_hint
from tutti.speech import Model, VocoderName

Backend = Literal["onnx", "torch"]
Device = Literal["cpu", "cuda"]
Precision = Literal["fp32", "int8", "fp16"]
Compile = Literal["off", "reduced", "full"]
Auto = Literal["auto"]

PRECISIONS: dict[tuple[Backend, Device], tuple[Precision, ...]] = {
    ("onnx", "cpu"): ("fp32", "int8"),
    ("torch", "cpu"): ("fp32",),
    ("torch", "cuda"): ("fp16", "fp32"),
}

# What vocoder=auto stands for. `light` passes when all gates of `tutti verify --vocoder light` hold: docs/light.md.
AUTO_VOCODER: dict[Device, VocoderName] = {"cpu": "exact", "cuda": "exact"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The backend, device and precision that run the network; none of them is `auto`."""

    backend: Backend
    device: Device
    precision: Precision
    compile: Compile = "off"
    vocoder: VocoderName = "exact"

    @property
    def weights(self) -> Literal["fp32", "int8"]:
        """The precision of the official file that is read."""
        return file_precision(self.precision)


def file_precision(precision: Precision) -> Literal["fp32", "int8"]:
    """The precision of the official file to read: fp16 is converted from the fp32 file when it is loaded."""
    return "int8" if precision == "int8" else "fp32"


def choose(
    backend: Backend | Auto = "auto",
    device: Device | Auto = "auto",
    precision: Precision | Auto = "auto",
    compile: Compile = "off",
    vocoder: VocoderName | Auto = "auto",
) -> Choice:
    """Resolve every `auto` to the best that this machine has; raise InvalidInput for combinations that do not exist."""
    if backend == "auto":
        backend = _backend(device, precision)
    if backend == "torch" and find_spec("torch") is None:
        raise _no_torch()
    if device == "auto":
        device = "cuda" if backend == "torch" and has_cuda() else "cpu"
    if (backend, device) not in PRECISIONS:
        raise InvalidInput("backend=onnx runs on the processor; choose backend=torch or device=cpu", param="device")
    supported = PRECISIONS[backend, device]
    if vocoder == "auto":
        vocoder = AUTO_VOCODER[device]
    if precision == "auto":
        # The light vocoder is so fast that the acoustic half may be fp32, with which durations are exact.
        precision = resolve_precision("auto") if backend == "onnx" and vocoder == "exact" else supported[0]
    if precision not in supported:
        raise InvalidInput(
            f"backend={backend} on device={device} has no precision {precision}; "
            f"choose {' or '.join(supported)}, or auto",
            param="precision",
        )
    if compile != "off" and device != "cuda":
        raise InvalidInput(f"compile={compile} is for a CUDA device; on a processor choose off", param="compile")
    return Choice(backend, device, precision, compile, vocoder)


def load(path: Path, choice: Choice, threads: int, sharing: Model | None = None) -> Model:
    """Load the official weights into the chosen backend.

    `sharing`: a model over the same weights that differs only in its vocoder; what both need is loaded once.
    """
    match choice.backend:
        case "onnx":
            from tutti.model.onnx.model import OnnxModel

            base = sharing if isinstance(sharing, OnnxModel) else None
            return OnnxModel(path, choice.precision, threads, vocoder=choice.vocoder, sharing=base)
        case "torch":
            try:
                import torch

                from tutti.model.torch.light_model import LightTorchModel
                from tutti.model.torch.model import TorchModel
            except ImportError as exc:
                raise _no_torch() from exc
            if choice.device == "cpu":
                torch.set_num_threads(threads)
            exact = (
                sharing
                if isinstance(sharing, TorchModel)
                else TorchModel(
                    path,
                    choice.device,
                    choice.compile,
                    acoustic_precision="fp16" if choice.precision == "fp16" else "fp32",
                    vocoder_precision="fp16" if choice.precision == "fp16" else "fp32",
                    cache=path.parent / "compiled",
                )
            )
            return LightTorchModel(exact) if choice.vocoder == "light" else exact


def describe(choice: Choice) -> str:
    """The choice as text for a report, with the library's version and the device's name."""
    library = {"onnx": "onnxruntime", "torch": "torch"}[choice.backend]
    device = platform.machine()
    if choice.device == "cuda":
        import torch

        device = torch.cuda.get_device_name()
    compiled = "" if choice.compile == "off" else f", compile {choice.compile}"
    numbers = f"{choice.precision}{compiled}, {choice.vocoder} vocoder"
    return f"{library} {version(library)}, {choice.device} ({device}), {numbers}"


def resolve_precision(precision: Literal["auto", "fp32", "int8"]) -> Literal["fp32", "int8"]:
    """Resolve `auto` for ONNX Runtime: int8 on ARM processors with dot-product instructions, else fp32.

    On x86-64 int8 takes about as long as fp32, so it would only cost quality.
    """
    if precision != "auto":
        return precision
    return "int8" if platform.machine() in ("aarch64", "arm64") and _has_dot_product() else "fp32"


def has_cuda() -> bool:
    """Whether PyTorch finds a CUDA device. Looks for the driver first, since importing PyTorch takes seconds."""
    try:
        CDLL("libcuda.so.1")
    except OSError:
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def _backend(device: Device | Auto, precision: Precision | Auto) -> Backend:
    """PyTorch if there is a CUDA device or if only PyTorch supports the request, else ONNX Runtime."""
    if device == "cpu" or precision == "int8":
        return "onnx"
    return "torch" if device == "cuda" or precision == "fp16" or has_cuda() else "onnx"


def _no_torch() -> MissingExtra:
    return MissingExtra(f"backend=torch needs PyTorch; choose backend=onnx, or run: {install_hint('torch')}")


def _has_dot_product() -> bool:
    if platform.system() == "Darwin":
        return True
    try:
        return "asimddp" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
