"""Choose and load a backend of Kokoro: ONNX Runtime or PyTorch, on a processor or a CUDA device."""

import mmap
import platform
import re
from ctypes import CDLL, byref, c_int
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tutti.errors import InvalidInput, MissingExtra, WeightsCorrupt, WeightsUnavailable, install_hint
from tutti.model.protocol import Model
from tutti.model.types import Backend, Compile, Device, Precision
from tutti.model_package import model_package
from tutti.speech import TextName, VocoderName

Auto = Literal["auto"]

PRECISIONS: dict[tuple[Backend, Device], tuple[Precision, ...]] = {
    ("onnx", "cpu"): ("fp32", "int8"),
    ("torch", "cpu"): ("fp32",),
    ("torch", "cuda"): ("fp16", "fp32"),
}
TENSOR_FILES = (".safetensors", ".pth", ".pt", ".npz")  # weights alone: only PyTorch has the network to put them into
QUANTISED_OP = b"DynamicQuantizeLinear"  # the operator that every int8 export of Kokoro has, and no other

# What vocoder=auto stands for. On a processor light is six times as fast, and its quality passed all gates
# (docs/light.md); on a CUDA device exact is as early for one listener, so there speed alone decides nothing.
AUTO_VOCODER: dict[Device, VocoderName] = {"cpu": "light", "cuda": "exact"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The backend, device and precision that run the network, none of them `auto`, and the file with the weights."""

    backend: Backend
    device: Device
    precision: Precision
    compile: Compile = "off"
    vocoder: VocoderName = "exact"
    text: TextName = "exact"
    path: Path | None = None  # a file of the operator's own; none = the official one
    light: Path | None = None  # weights of a light vocoder for that file
    ids: tuple[int, ...] | None = None  # of its symbols, by the ids of Kokoro's; none = the same

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
    compile: Compile | Auto = "off",
    vocoder: VocoderName | Auto = "auto",
    text: TextName | Auto = "auto",
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
        precision = resolve_precision("auto") if backend == "onnx" else supported[0]
    if precision not in supported:
        raise InvalidInput(
            f"backend={backend} on device={device} has no precision {precision}; "
            f"choose {' or '.join(supported)}, or auto",
            param="precision",
        )
    if compile == "auto":  # what it means is up to the server, which can change models while it serves
        compile = "off"
    if compile != "off" and device != "cuda":
        raise InvalidInput(f"compile={compile} is for a CUDA device; on a processor choose off", param="compile")
    if text == "auto":
        text = "exact" if vocoder == "exact" or backend != "onnx" else "light"
    if text == "light" and backend != "onnx":
        raise InvalidInput("text=light is for backend=onnx; choose text=exact, or auto", param="text")
    return Choice(backend, device, precision, compile, vocoder, text)


def choose_for_file(path: Path, backend: Backend | Auto = "auto", device: Device | Auto = "auto") -> Choice:
    """Choose what runs a file of the operator's own: weights alone, or a graph exported like the official one.

    Its vocoder and its text encoder are its own: the light ones have learned from the official weights.
    """
    if path.suffix in TENSOR_FILES:
        if backend == "onnx":
            raise InvalidInput(f"{path} can be read by backend=torch only; choose that or auto", param="backend")
        return replace(choose("torch", device, vocoder="exact"), path=path)
    if path.suffix != ".onnx":
        raise InvalidInput(f"{path}: a model is a .onnx, {', '.join(TENSOR_FILES)} file", param="models")
    precision = _graph_precision(path)
    choice = choose(backend, device, "int8" if precision == "int8" else "auto", vocoder="exact")
    return replace(choice, precision=precision if choice.backend == "onnx" else choice.precision, path=path)


def load(
    path: Path,
    choice: Choice,
    threads: int,
    sharing: Model | None = None,
    *,
    cache: Path | None = None,
    cuda_index: int | None = None,
) -> Model:
    """Load weights into the chosen backend.

    `sharing`: a model over the same weights that differs only in its vocoder and its text encoder; what both need is
    loaded once.
    `cache`: folder for what is derived from the file, default next to it. `cuda_index`: the device for this thread.
    """
    match choice.backend:
        case "onnx":
            from tutti.model.onnx.model import OnnxModel

            base = sharing if isinstance(sharing, OnnxModel) else None
            return OnnxModel(
                path, choice.precision, threads,
                vocoder=choice.vocoder, text=choice.text, sharing=base, cache=cache,
            )  # fmt: skip
        case "torch":
            try:
                import torch

                from tutti.model.torch.light_model import LightTorchModel
                from tutti.model.torch.model import TorchModel
            except ImportError as exc:
                raise _no_torch() from exc
            if choice.device == "cpu":
                torch.set_num_threads(threads)
            elif cuda_index is not None:
                torch.cuda.set_device(cuda_index)
            exact = sharing.base if isinstance(sharing, LightTorchModel) else sharing
            if not isinstance(exact, TorchModel):
                exact = TorchModel(
                    path,
                    choice.device,
                    choice.compile,
                    acoustic_precision="fp16" if choice.precision == "fp16" else "fp32",
                    vocoder_precision="fp16" if choice.precision == "fp16" else "fp32",
                    cache=(cache or path.parent) / "compiled",
                )
            return exact if choice.vocoder == "exact" else LightTorchModel(exact, choice.vocoder, choice.light)


def describe(choice: Choice) -> str:
    """The choice as text for a report, with the library's version and the device's name."""
    library = {"onnx": "onnxruntime", "torch": "torch"}[choice.backend]
    device = platform.machine()
    if choice.device == "cuda":
        import torch

        device = torch.cuda.get_device_name()
    compiled = "" if choice.compile == "off" else f", compile {choice.compile}"
    numbers = f"{choice.precision}{compiled}, {choice.vocoder} vocoder, {choice.text} text"
    return f"{library} {version(library)}, {choice.device} ({device}), {numbers}"


def resolve_precision(precision: Literal["auto", "fp32", "int8"]) -> Literal["fp32", "int8"]:
    """Resolve `auto` for ONNX Runtime: int8 on ARM processors with dot-product instructions, else fp32.

    On x86-64 int8 takes about as long as fp32, so it would only cost quality. The package with the model
    has int8 alone.
    """
    if precision != "auto":
        return precision
    if model_package():
        return "int8"
    return "int8" if platform.machine() in ("aarch64", "arm64") and _has_dot_product() else "fp32"


def has_cuda() -> bool:
    """Whether PyTorch will find a CUDA device."""
    return n_cuda_devices() > 0


@cache
def n_cuda_devices() -> int:
    """How many CUDA devices PyTorch will see; CUDA_VISIBLE_DEVICES selects them.

    Asks the driver, and reads for which CUDA version PyTorch was built: importing it takes seconds, and the process of
    the server does not need it.
    """
    built_for, driver = _torch_cuda_major(), _cuda_driver()
    if built_for is None or driver is None:
        return 0
    version, n_devices = c_int(), c_int()
    if driver.cuInit(0) or driver.cuDriverGetVersion(byref(version)) or driver.cuDeviceGetCount(byref(n_devices)):
        return 0
    return n_devices.value if version.value // 1000 >= built_for else 0


def _cuda_driver() -> CDLL | None:
    try:
        return CDLL("libcuda.so.1")
    except OSError:
        return None


def _torch_cuda_major() -> int | None:
    """The major version of CUDA that PyTorch was built for; none without PyTorch, or if it is for processors only."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        text = Path(spec.origin).with_name("version.py").read_text()
    except OSError:
        return None
    version = re.search(r"(?m)^cuda\b[^=]*=\s*['\"](\d+)", text)
    return int(version[1]) if version else None


def _graph_precision(path: Path) -> Literal["fp32", "int8"]:
    """The precision of an ONNX file: the names of its operators are plain text in it."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return "fp32" if data.find(QUANTISED_OP) < 0 else "int8"
    except OSError as exc:
        raise WeightsUnavailable(f"cannot read {path}: {exc.strerror}") from exc
    except ValueError as exc:
        raise WeightsCorrupt(f"{path} is empty") from exc


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
