"""The split ONNX graphs compute what the official graph computes; broken files are named."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tutti.errors import StorageFull, WeightsCorrupt, WeightsUnavailable
from tutti.model.choice import Choice, load
from tutti.model.onnx import split
from tutti.speech import Utterance
from tutti.text.vocab import encode
from tutti.voices import Voices

SENTENCES = {
    "af_heart": "ɔl vˈYsᵻz, wˈʌn pˈæs.",
    "bm_george": "ðə kwˈɪk fˈɒks, ænd ðˈɛn ɪt slˈiːps.",
    "zf_xiaoxiao": "ni↓xau↓",
}

FP32 = Choice("onnx", "cpu", "fp32")


@pytest.mark.weights
@pytest.mark.parametrize(("precision", "threads"), [("fp32", 2), ("int8", 1)])
def test_splitting_changes_no_sample(home: Path, official: dict[str, Path], precision: str, threads: int) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    whole = ort.InferenceSession(official[precision], options, providers=["CPUExecutionProvider"])
    names = [value.name for value in whole.get_inputs()]
    model = load(official[precision], Choice("onnx", "cpu", precision), threads)  # type: ignore[arg-type]
    for name, phonemes in SENTENCES.items():
        row = Utterance(encode(phonemes), Voices(home / "voices").get(name).style(len(phonemes)), 2.2)
        (ours,) = model.vocoder(model.acoustic([row]))
        inputs = (row.tokens[None], row.style[None], np.array([row.speed], np.float32))
        (theirs,) = whole.run(None, dict(zip(names, inputs, strict=True)))
        assert np.array_equal(ours, theirs.reshape(-1))


def test_the_error_for_a_missing_model_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="tutti pull"):
        load(tmp_path / "model.onnx", FP32, 1)


@pytest.mark.parametrize("content", [b"", b"not a graph at all", b"\x08\x09" * 50])
def test_a_file_that_is_not_kokoro_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(WeightsCorrupt, match=r"model\.onnx"):
        load(tmp_path / "model.onnx", FP32, 1)
    assert not list(tmp_path.glob("*.partial"))


def test_a_broken_part_is_named(tmp_path: Path) -> None:
    official = tmp_path / "model.onnx"
    for name in (official, *(official.with_suffix(f".{part}.onnx") for part in split.Graphs._fields)):
        name.write_bytes(b"rubbish")
    with pytest.raises(WeightsCorrupt, match=r"model\.reading\.onnx"):
        load(official, FP32, 1)


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageFull, match="No space left"):
        split.write_graph(b"graph", tmp_path / "part.onnx")
    assert not list(tmp_path.iterdir())
