"""Checkpoints by name, precision and path, and the device that each worker loads them on."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.fakes import running, silent_voices
from tutti.engine import build, checkpoints
from tutti.engine.checkpoints import (
    Checkpoints,
    choose_checkpoints,
    cuda_index_of_workers,
    file_cache,
    make_file_caches,
    only_checkpoint,
)
from tutti.errors import InvalidInput, MissingExtra, TuttiError, WeightsCorrupt, WeightsUnavailable
from tutti.model import choice as model_choice
from tutti.model.choice import QUANTISED_OP, Choice, load
from tutti.settings import Settings
from tutti.worker.process import ProcessWorker

FP32, INT8 = (Choice("onnx", "cpu", precision, vocoder="light", text="light") for precision in ("fp32", "int8"))
EXACT = replace(FP32, vocoder="exact", text="exact")


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_choice, "has_cuda", lambda: False)


@pytest.fixture
def has_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_choice, "find_spec", lambda _: object())


@pytest.fixture
def has_cuda(monkeypatch: pytest.MonkeyPatch, has_torch: None) -> None:
    monkeypatch.setattr(model_choice, "has_cuda", lambda: True)


def chosen(models: str, **settings: Any) -> dict[str, Choice]:
    return choose_checkpoints(Settings(models=models, **settings))  # type: ignore[arg-type]


def graph(path: Path, operator: bytes = b"Conv") -> Path:
    """A file in which an operator of this name could be."""
    path.write_bytes(b"onnx" + operator + b"more")
    return path


def test_a_list_gives_each_name_its_precision_and_the_first_is_the_default() -> None:
    choices = chosen("kokoro=fp32, kokoro-int8, small=int8")
    assert choices == {"kokoro": FP32, "kokoro-int8": INT8, "small": INT8}
    assert next(iter(choices)) == "kokoro"
    assert next(iter(chosen("small=int8,kokoro=fp32"))) == "small"


def test_without_a_list_the_settings_choose_and_the_older_setting_adds_precisions() -> None:
    settings = Settings(precision="fp32", extra_precisions="int8")  # type: ignore[arg-type]
    assert choose_checkpoints(settings) == {"kokoro": FP32, "kokoro-light": FP32, "kokoro-int8": INT8}
    assert chosen("kokoro,kokoro-light,kokoro-int8", precision="fp32") == choose_checkpoints(settings)


def test_the_vocoder_is_a_setting_a_model_and_an_entry_of_the_list() -> None:
    exact = choose_checkpoints(Settings(vocoder="exact", precision="fp32"))
    assert exact == {"kokoro": EXACT, "kokoro-light": FP32}
    assert chosen("quick=light,kokoro-exact,true=exact,kokoro-nano", precision="fp32") == {
        "quick": FP32, "kokoro-exact": EXACT, "true": EXACT, "kokoro-nano": replace(FP32, vocoder="nano"),
    }  # fmt: skip


def test_auto_is_light_on_a_processor_and_exact_on_a_cuda_device(has_cuda: None) -> None:
    assert choose_checkpoints(Settings(device="cpu"))["kokoro"].vocoder == "light"
    assert choose_checkpoints(Settings(device="cuda"))["kokoro"].vocoder == "exact"


@pytest.mark.parametrize("precision", ["auto", "int8", "fp32"])
def test_the_precision_does_not_depend_on_the_vocoder(precision: Any) -> None:
    light, exact = (choose_checkpoints(Settings(vocoder=v, precision=precision))["kokoro"] for v in ("light", "exact"))
    assert light == replace(exact, vocoder="light", text="light")


def test_models_that_differ_in_their_vocoder_share_the_rest_and_equal_ones_are_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[tuple[Choice, object]] = []

    def load(_path: Path, choice: Choice, _threads: int, sharing: object, **_: object) -> object:
        loaded.append((choice, sharing))
        return f"model {choice.vocoder} {choice.precision}"

    monkeypatch.setattr(checkpoints, "load", load)
    names = {"kokoro": EXACT, "kokoro-light": FP32, "again": FP32, "kokoro-int8": INT8}
    models = Checkpoints(tmp_path, tuple(names.items()), 1)()
    assert loaded == [(EXACT, None), (FP32, "model exact fp32"), (INT8, None)]
    assert models["again"] is models["kokoro-light"]


def test_one_checkpoint_by_name_or_the_default_one() -> None:
    choices = chosen("kokoro=fp32,kokoro-int8")
    settings = Settings(backend="onnx", device="cpu")
    assert only_checkpoint(choices, "", settings) == {"kokoro": FP32}
    assert only_checkpoint(choices, "kokoro-int8", settings) == {"kokoro-int8": INT8}
    assert only_checkpoint(choices, "kokoro-nano", settings)["kokoro-nano"].vocoder == "nano"  # without an entry
    with pytest.raises(InvalidInput, match="kokoro, kokoro-int8"):
        only_checkpoint(choices, "gpt", settings)


def test_beside_a_cuda_device_int8_stays_on_the_processor_and_only_the_others_are_compiled(has_cuda: None) -> None:
    expected = {"kokoro": Choice("torch", "cuda", "fp16", "full"), "kokoro-int8": INT8}
    for device in ("auto", "cuda"):
        assert chosen("kokoro,kokoro-int8", device=device, compile="full") == expected


def test_a_graph_of_ones_own_runs_at_the_precision_it_was_exported_in(tmp_path: Path, has_torch: None) -> None:
    full, small = graph(tmp_path / "full.onnx"), graph(tmp_path / "small.onnx", QUANTISED_OP)
    choices = chosen(f"full={full},small={small}", precision="int8")
    assert list(choices.values()) == [
        Choice("onnx", "cpu", "fp32", vocoder="exact", path=full),
        Choice("onnx", "cpu", "int8", vocoder="exact", path=small),
    ]


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".npz"])
def test_weights_of_ones_own_run_in_pytorch(tmp_path: Path, has_torch: None, suffix: str) -> None:
    path = tmp_path / f"mine{suffix}"
    path.touch()
    assert chosen(f"mine={path}") == {"mine": Choice("torch", "cpu", "fp32", path=path)}
    with pytest.raises(InvalidInput, match="backend=torch"):
        chosen(f"mine={path}", backend="onnx")


def test_light_beside_a_checkpoint_runs_where_pytorch_does(tmp_path: Path, has_torch: None) -> None:
    weights, light = tmp_path / "model.pth", tmp_path / "light.npz"
    weights.touch()
    assert chosen(f"mine={tmp_path}") == {"mine": Choice("torch", "cpu", "fp32", path=weights)}
    light.write_bytes(b"first")
    (choice,) = chosen(f"mine={tmp_path}").values()
    assert choice == Choice("torch", "cpu", "fp32", vocoder="light", path=weights, light=light)
    before = checkpoints.audio_fingerprint(Settings(models=f"mine={tmp_path}"))  # type: ignore[arg-type]
    light.write_bytes(b"the second")  # what is stored of its audio counts no more
    assert checkpoints.audio_fingerprint(Settings(models=f"mine={tmp_path}")) != before  # type: ignore[arg-type]
    graph(tmp_path / "model.onnx")
    assert chosen(f"mine={tmp_path}")["mine"].vocoder == "exact"  # the graph's own


def test_weights_of_ones_own_without_pytorch_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.pth").touch()
    monkeypatch.setattr(model_choice, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"\[torch\]"):
        chosen(f"mine={tmp_path / 'mine.pth'}")


@pytest.mark.parametrize(
    ("entry", "error", "words"),
    [
        ("=fp32", InvalidInput, "is not a name"),
        ("../x=fp32", InvalidInput, "is not a name"),
        ("a=fp32,a=int8", InvalidInput, "is there twice"),
        ("mine", InvalidInput, "say what 'mine' is"),
        ("kokoro-fp64", InvalidInput, "say what"),
        ("mine=/nowhere/model.pth", WeightsUnavailable, "/nowhere/model.pth is neither a file nor one of auto, fp32"),
        ("mine={folder}/notes.txt", InvalidInput, "a model is a .onnx"),
        ("mine={folder}/empty.onnx", WeightsCorrupt, "is empty"),
        ("mine={folder}", WeightsCorrupt, "is empty"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_cure(
    tmp_path: Path, entry: str, error: type[TuttiError], words: str
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(error, match=words):
        chosen(entry.format(folder=tmp_path))


def test_compiling_is_refused_if_no_model_is_on_a_cuda_device() -> None:
    with pytest.raises(InvalidInput, match="no model uses one"):
        chosen("kokoro=int8", compile="full")


def test_what_is_derived_from_a_file_is_made_anew_when_the_file_changes(tmp_path: Path) -> None:
    home, path = tmp_path / "home", graph(tmp_path / "mine.onnx")
    choices = list(chosen(f"mine={path}").values())
    make_file_caches(home, choices)
    (first := file_cache(home, path) / "part").touch()
    make_file_caches(home, choices)
    assert first.exists()
    graph(path, b"ConvTranspose")
    make_file_caches(home, choices)
    assert not first.exists()
    assert file_cache(home, path).is_dir()


def test_each_cuda_device_has_a_worker_and_further_workers_share_them_in_turn() -> None:
    cuda = [Choice("torch", "cuda", "fp16"), INT8]
    assert cuda_index_of_workers(cuda, None, 3, 2) == [0, 1, 2]
    assert cuda_index_of_workers(cuda, 2, 3, 2) == [0, 1]
    assert cuda_index_of_workers(cuda, 4, 3, 2) == [0, 1, 2, 0]
    assert cuda_index_of_workers([FP32], None, 3, 16) == [None]
    assert cuda_index_of_workers([FP32], 2, 0, 16) == [None, None]


@pytest.mark.parametrize(("n_cores", "n_asked", "n_workers"), [(2, 4, 2), (2, 2, 2), (1, 2, 1), (16, 4, 4)])
def test_workers_that_would_only_take_memory_are_left_out_with_a_notice(
    caplog: pytest.LogCaptureFixture, n_cores: int, n_asked: int, n_workers: int
) -> None:
    """On a processor one for each core is the most."""
    assert cuda_index_of_workers([FP32], n_asked, 0, n_cores) == [None] * n_workers
    notice = f"workers={n_workers} instead of {n_asked}"
    assert (notice in caplog.text) == (n_workers < n_asked)


def opened(home: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[int, list[Checkpoints]]:
    """The number of workers of an engine, and what their processes would load; nothing is fetched or started."""
    (home / "voices").mkdir()
    silent_voices(home / "voices")
    loaded: list[Checkpoints] = []

    def worker(make_models: Checkpoints, **options: Any) -> ProcessWorker:
        loaded.append(make_models)
        return ProcessWorker(make_models, **options)

    monkeypatch.setattr(build.Store, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(build, "ProcessWorker", worker)
    engine = build.open_engine(Settings(home=home, **settings), for_server=True)
    return len(engine.batchers), loaded


@pytest.mark.parametrize(("compile", "n_processes"), [("off", 1), ("auto", 2)])
def test_an_engine_on_three_cuda_devices_has_three_workers_each_on_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_cuda: None, compile: str, n_processes: int
) -> None:
    monkeypatch.setattr(build, "n_cuda_devices", lambda: 3)
    n_workers, loaded = opened(tmp_path, monkeypatch, threads=8, compile=compile)
    assert n_workers == 3
    indices = [number for number in range(3) for _ in range(n_processes)]  # the second process compiles
    assert [(factory.cuda_index, factory.threads) for factory in loaded] == [(number, 8) for number in indices]


def test_workers_on_a_processor_share_its_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_workers, loaded = opened(tmp_path, monkeypatch, device="cpu", threads=7, workers=3)
    assert n_workers == 3
    assert [(factory.cuda_index, factory.threads) for factory in loaded] == [(None, 2)] * 3


class FakeTorchModel:
    def __init__(self, *_: object, **__: object) -> None:
        """Loads nothing."""


def test_a_worker_loads_on_its_own_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    torch = SimpleNamespace(cuda=SimpleNamespace(set_device=used.append))
    model = SimpleNamespace(TorchModel=FakeTorchModel)
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tutti.model.torch.model", model)  # type: ignore[arg-type]
    light = SimpleNamespace(LightTorchModel=type("LightTorchModel", (), {}))
    monkeypatch.setitem(sys.modules, "tutti.model.torch.light_model", light)  # type: ignore[arg-type]
    factory = Checkpoints(tmp_path, (("kokoro", Choice("torch", "cuda", "fp16")),), 2, cuda_index=2)
    assert [type(loaded) for loaded in factory().values()] == [FakeTorchModel]
    assert used == [2]


def test_only_the_official_files_that_a_model_needs_are_fetched(tmp_path: Path) -> None:
    both = checkpoints.files_of(chosen("kokoro=fp32,kokoro-int8").values())
    own = checkpoints.files_of(chosen(f"mine={graph(tmp_path / 'mine.onnx')}").values())
    names = [file.name for file in both if file.name.endswith(".onnx")]
    assert len(names) == 2
    assert not [file.name for file in own if file.name.endswith(".onnx")]
    assert {file.path for file in own} < {file.path for file in both}


@pytest.mark.weights
def test_fp32_int8_and_files_of_ones_own_are_served_together(
    tmp_path: Path, home: Path, official: Mapping[str, Path]
) -> None:
    pytest.importorskip("torch")
    from tutti.model.torch.kokoro import weights

    shutil.copyfile(official["int8"], tmp_path / "mine.onnx")
    weights.write_archive(weights.read_state(official["fp32"]), tmp_path / "mine.npz", np.float32)
    names = f"kokoro=fp32, kokoro-int8, graph={tmp_path / 'mine.onnx'}, tensors={tmp_path / 'mine.npz'}"
    settings = Settings(home=home, models=names, device="cpu", vocoder="exact", threads=2)  # type: ignore[arg-type]
    with running(build.open_engine(settings)) as engine:
        audio = {name: engine.speak("All voices.", model=name).samples for name in engine.engine.checkpoints}
    assert np.array_equal(audio["graph"], audio["kokoro-int8"])
    assert not np.array_equal(audio["kokoro"][:24_000], audio["kokoro-int8"][:24_000])
    assert len(audio["tensors"]) == len(audio["kokoro"])
    difference = audio["tensors"] - audio["kokoro"]  # the same weights in two implementations
    assert np.square(difference).mean() < 0.1 * np.square(audio["kokoro"]).mean()
    assert not list(tmp_path.glob("*.predicting.onnx"))  # nothing is written next to a file of one's own
    with pytest.raises(WeightsUnavailable, match="not at"):
        load(tmp_path / "absent.onnx", FP32, 1)
