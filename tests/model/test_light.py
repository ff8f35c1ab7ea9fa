"""The light vocoder on a processor: any piece of a row is bit for bit a part of the whole; int8 changes little."""

import shutil
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import without_ranges
from training.export import export, louder
from tutti.errors import WeightsCorrupt
from tutti.model.choice import choose, load
from tutti.model.light import weights
from tutti.model.light.row import N_STATISTICS, TimbreSteering
from tutti.model.light.signal import HOP
from tutti.model.light.weights import Int8Matrix
from tutti.model.onnx.light import LightInput, network_path, predict
from tutti.model.onnx.light_graph import light_graph
from tutti.model.onnx.session import open_session
from tutti.model.onnx.windows import MIN_PIECE, generate, split_evenly
from tutti.model.protocol import Model
from tutti.speech import SAMPLES_PER_FRAME, Frames, Samples, Span, Utterance
from tutti.text.vocab import encode
from tutti.verify.mel import distance_db
from tutti.voices import Voices

N_FRAMES = 80
MAX_BYTES = 20_000_000  # of the weights in the package


def ratio_db(actual: np.ndarray, expected: np.ndarray) -> float:
    """Signal-to-noise ratio."""
    return float(10 * np.log10((expected**2).sum() / ((actual - expected) ** 2).sum()))


@pytest.fixture(scope="module")
def network() -> ort.InferenceSession:
    return open_session(light_graph(weights.read()), 1)


@pytest.fixture(scope="module")
def row() -> Frames:
    f0 = np.linspace(80, 300, 2 * N_FRAMES, dtype=np.float32)
    f0[20:40], f0[90] = 0, -1
    style = 0.1 * np.random.default_rng(1).standard_normal(256).astype(np.float32)
    return Frames(np.array([3, N_FRAMES - 3]), np.zeros((512, N_FRAMES), np.float32), f0, np.zeros_like(f0), style)


@pytest.fixture(scope="module")
def decoded(row: Frames) -> LightInput:
    features = np.random.default_rng(0).standard_normal((1, 2 * N_FRAMES, 512)).astype(np.float32)
    return LightInput(features, row.style[:128])


@pytest.fixture(scope="module")
def whole(network: ort.InferenceSession, row: Frames, decoded: LightInput) -> Samples:
    return generate(partial(predict, network, decoded, row), row, 0, N_FRAMES)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, N_FRAMES - 1), max_size=5, unique=True))
def test_pieces_are_bit_for_bit_the_whole(
    network: ort.InferenceSession, row: Frames, decoded: LightInput, whole: Samples, cuts: list[int]
) -> None:
    ends = [0, *sorted(cuts), N_FRAMES]
    pieces = [generate(partial(predict, network, decoded, row), row, start, end) for start, end in pairwise(ends)]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_pytorch_and_onnx_runtime_agree(row: Frames, decoded: LightInput) -> None:
    torch = pytest.importorskip("torch")
    from tutti.model.light.noise import normal, row_seed
    from tutti.model.torch.light import harmonic_phase
    from tutti.model.torch.light_model import STUDENTS

    network = open_session(light_graph(without_ranges(weights.read())), 1)  # which are those of speech
    whole = generate(partial(predict, network, decoded, row), row, 0, N_FRAMES)
    f0 = torch.from_numpy(row.f0)[None]
    noise = normal(np.array([row_seed(row.durations, row.style)]), np.arange(len(whole)))
    with torch.inference_mode():
        samples = STUDENTS["light"].load()(
            torch.from_numpy(decoded.features),
            f0,
            harmonic_phase(f0),
            torch.from_numpy(row.style[None, :128]),
            torch.from_numpy(noise)[None],
        )
    assert ratio_db(whole, samples[0].numpy()) > 25  # activations in int8, on input that no decoder would make


def test_numpy_and_pytorch_steer_the_timbre_alike(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tutti.model.torch.light import RowSteering

    module, statistics = RowSteering().requires_grad_(False), 3 + 2 * torch.randn(40, N_STATISTICS)
    module.measure(statistics)
    torch.nn.init.normal_(module.weight)
    statistics[0] += 100  # far from all others: limited
    state = {f"row.{name}": tensor.numpy() for name, tensor in module.state_dict().items()}
    weights.save(weights.pack(state), tmp_path / "light.npz")
    steering = TimbreSteering.of(weights.read(tmp_path / "light.npz"))
    timbre = torch.randn(40, 128)
    for i, expected in enumerate(module(timbre, statistics)):
        steered = steering(timbre[i].numpy(), statistics[i].numpy())
        assert ratio_db(steered, expected.numpy()) > 40  # its weights are rounded to int8
        assert ratio_db(steered, timbre[i].numpy()) < 10


@given(st.integers(0, 500), st.integers(1, 500), st.floats(0.5, 500))
def test_rows_are_split_evenly_and_nothing_is_lost(start: int, n_frames: int, length: float) -> None:
    pieces = list(split_evenly(start, start + n_frames, length))
    assert pieces[0][0] == start
    assert pieces[-1][1] == start + n_frames
    assert all(a[1] == b[0] for a, b in pairwise(pieces))
    lengths = [end - start for start, end in pieces]
    assert max(lengths) - min(lengths) <= 1
    assert min(lengths) >= min(n_frames, MIN_PIECE)


def test_the_graph_of_the_network_is_written_once_and_again_for_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "light-of-older-weights.onnx").touch()
    path = network_path(tmp_path)
    built = onnx.load_from_string(light_graph(weights.read()))
    assert onnx.load(path) == built
    assert [found.name for found in tmp_path.glob("*.onnx")] == [path.name]
    monkeypatch.setattr(weights, "read", lambda _path: pytest.fail("it was built again"))
    assert network_path(tmp_path) == path
    monkeypatch.undo()
    state = weights.as_float32(weights.read())
    weights.save(weights.pack({**state, "head.bias": state["head.bias"] + 1}), tmp_path / "light.npz")
    monkeypatch.setattr(weights, "PATH", tmp_path / "light.npz")
    assert onnx.load(network_path(tmp_path)) != built


def test_the_weights_of_the_package_are_small_and_complete() -> None:
    assert weights.PATH.stat().st_size + weights.BASES_PATH.stat().st_size <= MAX_BYTES
    n_numbers = sum(value.size for value in weights.as_float32(weights.read()).values())
    assert n_numbers == pytest.approx(17.1e6, rel=0.01)


@given(st.integers(1, 6), st.integers(1, 300), st.sampled_from([0, 3]))
def test_int8_rounds_each_block_to_its_own_scale(n_out: int, n_in: int, taps: int) -> None:
    shape = (n_out, n_in, taps) if taps else (n_out, n_in)
    weight = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    weight[:, :1] *= 100  # an outlier must not spoil the other blocks
    rounded = Int8Matrix.of(weight).float32()
    assert rounded.shape == weight.shape
    error = np.abs(rounded - weight)
    assert error.max() <= np.abs(weight).max() / 250
    if n_in > weights.BLOCK:
        others = slice(weights.BLOCK, None)
        assert error[:, others].max() <= np.abs(weight[:, others]).max() / 250


def test_a_balanced_matrix_is_the_same_matrix() -> None:
    random = np.random.default_rng(0)
    weight, balance = random.standard_normal((6, 300)), np.exp(0.3 * random.standard_normal(300))
    matrix = Int8Matrix.of(weight.astype(np.float32), balance.astype(np.float32))
    assert ratio_db(matrix.float32(), weight) > 35
    assert ratio_db(Int8Matrix(matrix.values, matrix.scales).float32(), weight / balance) > 35  # for a balanced input


@pytest.mark.slow
def test_export_balances_the_loud_channels_of_the_head(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tutti.model.torch.light import LightNetwork

    network = LightNetwork()
    with torch.no_grad():
        network.entry.bias[7] = 30  # louder than all others in every step
    torch.save(network.state_dict(), tmp_path / "c.pt")
    export(tmp_path / "c.pt", tmp_path / "light.npz")
    head = weights.read(tmp_path / "light.npz")["head.weight"]
    assert isinstance(head, Int8Matrix)
    assert head.balance is not None
    assert head.balance.argmin() == 7
    assert ratio_db(head.float32(), network.head.weight.detach().numpy()) > 30


def test_a_gain_of_the_export_makes_the_speech_louder(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tutti.model.torch.light import FEATURES, TIMBRE, LightNetwork

    random = torch.Generator().manual_seed(0)
    x, f0 = torch.randn(1, 20, FEATURES, generator=random), torch.full((1, 20), 150.0)
    inputs = (x, f0, torch.zeros(1, 20), torch.zeros(1, TIMBRE), torch.randn(1, 20 * HOP, generator=random))
    small = {"width": 32, "n_blocks": 2, "expansion": 2}
    network, twice = LightNetwork(**small), LightNetwork(**small)
    state = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    doubled = louder(state, 20 * np.log10(2))
    twice.load_state_dict({name: torch.from_numpy(value) for name, value in doubled.items()})
    with torch.inference_mode():
        assert ratio_db(twice(*inputs).numpy(), 2 * network(*inputs).numpy()) > 80


def test_saved_weights_are_read_back(tmp_path: Path) -> None:
    state = {"entry.weight": np.ones((512, 514, 7), np.float32), "entry.bias": np.full(512, 0.1, np.float32)}
    state["head.weight"] = np.ones((600, 512), np.float32)
    packed = weights.pack(state, {"head.weight": np.linspace(1, 2, 512, dtype=np.float32)})
    weights.save(packed, tmp_path / "light.npz")
    read = weights.as_float32(weights.read(tmp_path / "light.npz"))
    expected = weights.as_float32(packed)
    assert all(np.array_equal(read[name], expected[name]) for name in state)
    assert np.abs(read["entry.bias"] - 0.1).max() < 1e-4


def test_a_broken_weight_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "light.npz").write_bytes(b"rubbish")
    with pytest.raises(WeightsCorrupt, match=r"light\.npz"):
        weights.read(tmp_path / "light.npz")


def test_a_checkpoint_is_exported_under_todays_names(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    names = {"inp.bias": 4, "blocks.0.gamma": 4, "blocks.0.a.bias": 12, "head.weight": 4}
    state = {name: torch.full((n,), 0.5) for name, n in names.items()}
    torch.save(
        {"step": 7, "student": {name: tensor * 0 for name, tensor in state.items()}, "average": state},
        tmp_path / "c.pt",
    )
    export(tmp_path / "c.pt", tmp_path / "light.npz")
    read = weights.as_float32(weights.read(tmp_path / "light.npz"))
    assert set(read) == {"entry.bias", "blocks.0.gain", "blocks.0.expand.bias", "head.weight"}
    assert all((value == 0.5).all() for value in read.values())
    whole = (tmp_path / "light.npz").read_bytes()
    for i, piece in enumerate((whole[:500], whole[500:])):
        (tmp_path / f"run.npz.{i}").write_bytes(piece)
    export(tmp_path / "run.npz", tmp_path / "again.npz")
    assert weights.as_float32(weights.read(tmp_path / "again.npz")).keys() == read.keys()
    torch.save({"step": 7}, tmp_path / "c.pt")
    with pytest.raises(WeightsCorrupt, match="no weights"):
        export(tmp_path / "c.pt", tmp_path / "light.npz")


# With the official weights:

PHONEMES = "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs."


@pytest.fixture(scope="module")
def light(official: dict[str, Path]) -> Model:
    return load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="light"), 2)


@pytest.fixture(scope="module")
def spoken(light: Model, home: Path) -> Frames:
    style = Voices(home / "voices").get("bf_emma").style(len(PHONEMES))
    (frames,) = light.acoustic([Utterance(encode(PHONEMES), style)])
    return frames


@pytest.mark.weights
def test_it_sounds_like_the_exact_vocoder(light: Model, spoken: Frames, official: dict[str, Path]) -> None:
    exact = load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="exact"), 2, sharing=light)
    (mine,), (theirs,) = light.vocoder([spoken]), exact.vocoder([spoken])
    assert distance_db(mine, theirs) < 2.2
    assert abs(10 * np.log10((mine**2).mean() / (theirs**2).mean())) < 1  # decibels
    exact.close()


@pytest.mark.weights
def test_fixed_scales_cost_little_in_speech(light: Model, spoken: Frames) -> None:
    packed, vocoder = weights.read(), light._vocoder  # type: ignore[attr-defined]
    assert all(packed[f"{name}.weight"].range for name in ("blocks.0.expand", "blocks.6.contract"))  # type: ignore[union-attr]
    read = vocoder.read(spoken)
    fixed, by_steps = (
        generate(partial(predict, open_session(light_graph(each), 1), read, spoken), spoken, 0, spoken.n_frames)
        for each in (packed, without_ranges(packed))
    )
    assert distance_db(fixed, by_steps) < 0.5


@pytest.mark.weights
def test_spans_and_batches_are_bit_for_bit_the_whole(light: Model, spoken: Frames) -> None:
    (whole,) = light.vocoder([spoken])
    cache: dict[str, object] = {}
    spans = [
        light.vocoder([spoken, Span.of(spoken, span, cache)])[1] for span in pairwise([0, 20, 61, spoken.n_frames])
    ]
    assert np.array_equal(np.concatenate(spans), whole)
    (again,) = light.vocoder([Span.of(spoken, (20, 61), {})])  # by a worker that lost the row's first spans
    assert np.array_equal(again, whole[20 * SAMPLES_PER_FRAME : 61 * SAMPLES_PER_FRAME])


@pytest.mark.weights
def test_pytorch_sounds_the_same_window_by_window(light: Model, spoken: Frames, official: dict[str, Path]) -> None:
    pytest.importorskip("torch")
    model = load(official["fp32"], choose("torch", "cpu", vocoder="light"), 1)
    (whole,), (theirs,) = model.vocoder([spoken]), light.vocoder([spoken])
    assert distance_db(whole, theirs) < 0.6  # the decoder of the processor has a lower rank
    cache: dict[str, object] = {}
    spans = [model.vocoder([Span.of(spoken, span, cache)])[0] for span in pairwise([0, 20, 61, spoken.n_frames])]
    assert np.abs(np.concatenate(spans) - whole).max() < 1e-4


@pytest.mark.weights
def test_pytorch_takes_the_weights_that_are_named(spoken: Frames, official: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    choice = choose("torch", "cpu", vocoder="light")
    own = tmp_path / "light.npz"
    shutil.copyfile(weights.PATH, own)
    model = load(official["fp32"], choice, 1)
    same = load(official["fp32"], replace(choice, light=own), 1, sharing=model)
    (expected,) = model.vocoder([spoken])
    assert np.array_equal(same.vocoder([spoken])[0], expected)
    with np.load(weights.PATH) as arrays:
        np.savez(own, **{**arrays, "head.bias": arrays["head.bias"] - 1})
    other = load(official["fp32"], replace(choice, light=own), 1, sharing=model)
    assert np.abs(other.vocoder([spoken])[0]).mean() < 0.9 * np.abs(expected).mean()
