"""Voice files: every form gives the table that was written, and nothing else is read."""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tutti.errors import InvalidInput
from tutti.torch_file import torch_file
from tutti.voice_file import MAX_FILE, check_name, parse_voice, read_voice

TABLE = np.random.default_rng(7).normal(0, 0.3, (510, 256)).astype(np.float32)
PARENTS = Path(__file__).parents[1:4]
SHARED = next((folder / "shared/voices" for folder in PARENTS if (folder / "shared/voices").is_dir()), None)


def npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def safetensors(array: NDArray[Any], **changes: Any) -> bytes:
    info = {"dtype": f"F{8 * array.itemsize}", "shape": array.shape, "data_offsets": [0, array.nbytes], **changes}
    header = json.dumps({"__metadata__": {"by": "a test"}, "voice": info}).encode()
    return len(header).to_bytes(8, "little") + header + array.tobytes()


def pt(array: NDArray[Any]) -> bytes:
    return torch_file(array.astype(np.float32))


FORMS: dict[str, Callable[[NDArray[Any]], bytes]] = {
    "voice.pt": pt, "voice.npy": npy, "voice.bin": lambda array: array.astype("<f4").tobytes(),
    "VOICE.SAFETENSORS": safetensors,
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("shape", [(510, 256), (510, 1, 256)])
def test_every_form_gives_the_table_that_was_written(name: str, shape: tuple[int, ...]) -> None:
    table = parse_voice(name, FORMS[name](TABLE.reshape(shape)))
    assert table.dtype == np.float32
    assert np.array_equal(table, TABLE)


@pytest.mark.parametrize("name", FORMS)
def test_rows_for_no_phoneme_and_of_padding_are_cut(name: str) -> None:
    """Row 0 of 511 is for no phoneme, as in Kokoro 0.19; the last two of 512 are padding."""
    row = np.full((1, 256), 0.5, np.float32)
    assert np.array_equal(parse_voice(name, FORMS[name](np.vstack((row, TABLE)))), TABLE)
    assert np.array_equal(parse_voice(name, FORMS[name](np.vstack((TABLE, row, row))[:, None])), TABLE)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_of_any_size_and_order_are_read(dtype: str, order: Any) -> None:
    written = np.array(TABLE.astype(dtype), order=order)
    assert np.array_equal(parse_voice("a.npy", npy(written)), written.astype(np.float32))
    if dtype[0] == "<":
        plain = np.ascontiguousarray(written)
        assert np.array_equal(parse_voice("a.safetensors", safetensors(plain)), written.astype(np.float32))


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "view", "transposed", "parameter"])
def test_what_pytorch_saves_is_read(tmp_path: Path, kind: str, legacy: bool) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(TABLE)
    match kind:
        case "view":
            tensor = torch.cat([tensor[:1], tensor])[1:]
        case "transposed":
            tensor = tensor.T.contiguous().T
        case "parameter":
            tensor = torch.nn.Parameter(tensor)
        case _:
            tensor = tensor.to(getattr(torch, kind))
    path = tmp_path / "a.pt"
    torch.save(tensor, path, _use_new_zipfile_serialization=not legacy)
    assert np.array_equal(read_voice(path), tensor.detach().float().numpy())


@pytest.mark.skipif(SHARED is None, reason="the voices of others are not here")
@pytest.mark.parametrize("name", ["af_jadzia", "af_v0irulan", "am_v0gurney"])
def test_voices_as_people_share_them_are_read(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert SHARED is not None
    path = SHARED / f"{name}.pt"
    assert np.array_equal(read_voice(path), torch.load(path, weights_only=True)[:, 0].numpy())


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/tutti-was-here",)


def zipped(pickled: bytes, method: int = zipfile.ZIP_STORED, **others: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name, data in others.items():
            archive.writestr(f"archive/data/{name}", data)
    return file.getvalue()


def with_value(value: float) -> NDArray[np.float32]:
    table = TABLE.copy()
    table[17, 3] = value
    return table


with zipfile.ZipFile(io.BytesIO(pt(TABLE))) as archive:
    PICKLED = archive.read("archive/data.pkl")

BAD = {
    "code": ("a.pt", zipped(pickle.dumps(Evil(), 2)), "would run code"),
    "code in protocol 4": ("a.pt", zipped(pickle.dumps(Evil(), 4)), "would run code"),
    "code without a ZIP": ("a.pt", pickle.dumps(Evil(), 2), "would run code"),
    "a call of what is no function": ("a.pt", zipped(b"\x80\x02ctorch\nFloatStorage\n)R."), "damaged"),
    "a memo that takes memory": ("a.pt", zipped(b"\x80\x02]r\xff\xff\xff\x7f."), "several values"),
    "a ZIP bomb": ("a.pt", zipped(b"0" * 100_000_000, zipfile.ZIP_DEFLATED), "compressed ZIP"),
    "a dictionary": ("a.pt", zipped(pickle.dumps({"a": 1}, 2)), "save one tensor alone"),
    "no pickle": ("a.pt", zipped(b"hello"), "damaged"),
    "a cut file": ("a.pt", pt(TABLE)[:-2000], "damaged"),
    "numbers that are not there": ("a.pt", zipped(PICKLED, **{"0": b"\0" * 8}), "damaged"),
    "nothing": ("a.pt", b"", "damaged"),
    "an object array": ("a.npy", npy(np.array([Evil()], object)), "not an array of floats|save floats"),
    "integers": ("a.npy", npy(np.zeros((510, 256), np.int32)), "save floats"),
    "a header that promises a terabyte": ("a.npy", npy(TABLE).replace(b"(510, 256)", b"(1<<40, 1)"), "damaged"),
    "nested brackets": ("a.npy", npy(TABLE)[:10] + b"(" * 118 + npy(TABLE)[128:], "damaged"),
    "the wrong size": ("a.bin", TABLE.tobytes()[:-4], "522,240"),
    "the wrong shape": ("a.npy", npy(TABLE[:500]), r"\[500, 256\]"),
    "the wrong width": ("a.npy", npy(TABLE[:, :128]), r"\[510, 128\]"),
    "four dimensions": ("a.npy", npy(TABLE[None, None]), "shape"),
    "not a number": ("a.npy", npy(with_value(np.nan)), "not finite"),
    "infinity": ("a.pt", pt(with_value(np.inf)), "not finite"),
    "more than 32 bits hold": ("a.npy", npy(TABLE.astype(np.float64) * 1e300), "not finite"),
    "far too loud": ("a.npy", npy(with_value(1e6)), "not a voice of Kokoro"),
    "nothing but zeros": ("a.bin", bytes(TABLE.nbytes), "not a voice of Kokoro"),
    "other numbers": ("a.safetensors", safetensors(TABLE, dtype="I32"), "F16, F32 or F64"),
    "no place": ("a.safetensors", safetensors(TABLE, data_offsets=[0, 1 << 60], shape=[1 << 40]), "damaged"),
    "a long header": ("a.safetensors", b"\xff" * 5000, "damaged"),
    "no format": ("a.txt", b"hello", "suffix .pt"),
    "no suffix": ("../../etc/passwd", b"root", "suffix .pt"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_anything_else_is_refused_with_its_name_and_the_cure(case: str) -> None:
    name, data, reason = BAD[case]
    with pytest.raises(InvalidInput, match=reason) as caught:
        parse_voice(name, data)
    assert name in caught.value.message
    assert caught.value.param == "file"
    assert not Path("/tmp/tutti-was-here").exists()


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200, deadline=None)
@given(st.sampled_from([*FORMS]), st.integers(0, 400), st.binary(min_size=1, max_size=9))
def test_any_damage_is_invalid_input_or_a_valid_table(name: str, at: int, damage: bytes) -> None:
    data = FORMS[name](TABLE)
    with np.errstate(all="ignore"):
        try:
            table = parse_voice(name, data[:at] + damage + data[at + len(damage) :])
        except InvalidInput:
            return
    assert table.shape == (510, 256)
    assert np.isfinite(table).all()


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    with open(path, "wb") as file:
        file.truncate(1_000_000_000)  # takes no room on the disk
    with pytest.raises(InvalidInput, match="1,000 MB"):
        read_voice(path)
    assert MAX_FILE < 10_000_000


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    for name in ("pipe.pt", ".", "missing.pt"):
        with pytest.raises(InvalidInput, match=r"not a file|cannot read"):
            read_voice(tmp_path / name)


@pytest.mark.parametrize("name", ["", "Jadzia", "1a", "a-b", "a b", "../a", "a/b", "ä", "a\n", "a" * 41, "a.b"])
def test_a_name_is_short_and_no_path(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a name"):
        check_name(name)
    assert check_name("af_jadzia") == "af_jadzia"
