"""The nano vocoder on a processor: any piece of a row is bit for bit a part of the whole, and PyTorch says the same."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import without_ranges
from tutti.model.choice import choose, load
from tutti.model.light import weights
from tutti.model.light.row import TimbreSteering
from tutti.model.onnx.nano import NanoInput, needed_places, predict, read_row
from tutti.model.onnx.nano_graph import n_blocks, nano_graph
from tutti.model.onnx.session import open_session
from tutti.model.onnx.windows import generate
from tutti.model.protocol import Model
from tutti.speech import SAMPLES_PER_FRAME, Frames, Samples, Span, Utterance
from tutti.text.vocab import encode
from tutti.verify.mel import distance_db
from tutti.voices import Voices

N_FRAMES = 81
MAX_BYTES = 11_000_000  # of the weights in the package
PHONEMES = "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs."


@pytest.fixture(scope="module")
def network() -> ort.InferenceSession:
    return open_session(nano_graph(weights.read(weights.NANO_PATH)), 1)


@pytest.fixture(scope="module")
def blocks() -> tuple[int, int]:
    return n_blocks(weights.read(weights.NANO_PATH))


@pytest.fixture(scope="module")
def row() -> Frames:
    random = np.random.default_rng(0)
    f0 = np.repeat(random.uniform(80, 300, N_FRAMES), 2).astype(np.float32)
    f0[30:50] = 0
    features, energy = random.uniform(-1, 1, (512, N_FRAMES)), random.uniform(0, 5, 2 * N_FRAMES)
    style = 0.2 * random.standard_normal(256)
    return Frames(np.full(27, 3), *(each.astype(np.float32) for each in (features, f0, energy, style)), 1.0)


@pytest.fixture(scope="module")
def read(row: Frames) -> NanoInput:
    return read_row(row, TimbreSteering.of(weights.read(weights.NANO_PATH, "row.")))


@pytest.fixture(scope="module")
def whole(network: ort.InferenceSession, blocks: tuple[int, int], read: NanoInput, row: Frames) -> Samples:
    return generate(partial(predict, network, blocks, read, row), row, 0, N_FRAMES)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, N_FRAMES - 1), max_size=5, unique=True))
def test_pieces_are_bit_for_bit_the_whole(
    network: ort.InferenceSession,
    blocks: tuple[int, int],
    read: NanoInput,
    row: Frames,
    whole: Samples,
    cuts: list[int],
) -> None:
    ends = [0, *sorted(cuts), N_FRAMES]
    pieces = [generate(partial(predict, network, blocks, read, row), row, *piece) for piece in pairwise(ends)]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_a_piece_in_the_middle_does_not_compute_the_whole_row() -> None:
    frames, steps = needed_places(400, 428, 1000, (6, 1))
    assert frames[0] == (184, 228)  # 14 frames, and 15 on both sides in whole groups
    assert frames[-1] == (196, 216)
    assert steps == [(392, 432), (400, 428)]


@pytest.mark.slow
def test_pytorch_says_the_same(blocks: tuple[int, int], row: Frames, read: NanoInput) -> None:
    torch = pytest.importorskip("torch")
    from tutti.model.light.noise import normal, row_seed
    from tutti.model.torch.light import harmonic_phase
    from tutti.model.torch.nano import NanoNetwork, text_and_energy

    packed = weights.read(weights.NANO_PATH)
    by_steps = open_session(nano_graph(without_ranges(packed)), 1)  # ranges are those of speech
    whole = generate(partial(predict, by_steps, blocks, read, row), row, 0, N_FRAMES)
    state = weights.as_float32(packed)
    network = NanoNetwork.of({name: torch.from_numpy(value) for name, value in state.items()})
    f0, timbre = torch.from_numpy(row.f0)[None], torch.from_numpy(read.timbre)[None]
    x = text_and_energy(torch.from_numpy(read.text), torch.from_numpy(row.energy)[None])
    noise = normal(np.array([row_seed(row.durations, row.style)]), np.arange(len(whole)))
    with torch.inference_mode():
        samples = network(x, f0, harmonic_phase(f0), timbre, torch.from_numpy(noise)[None])[0].numpy()
    error = float(10 * np.log10((samples**2).sum() / ((samples - whole) ** 2).sum()))
    assert error > 25  # activations in int8, on input that no text would make


def test_the_weights_of_the_package_are_small() -> None:
    assert weights.NANO_PATH.stat().st_size <= MAX_BYTES


def test_nano_has_the_light_text_encoder_where_there_is_one() -> None:
    assert choose("onnx", "cpu", vocoder="nano").text == "light"
    assert choose("onnx", "cpu", vocoder="nano", text="exact").text == "exact"
    assert choose("torch", "cpu", vocoder="nano").text == "exact"


# With the official weights:


@pytest.fixture(scope="module")
def exact(official: dict[str, Path]) -> Model:
    return load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="exact"), 2)


@pytest.fixture(scope="module")
def nano(official: dict[str, Path], exact: Model) -> Model:
    return load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="nano", text="exact"), 2, exact)


@pytest.fixture(scope="module")
def spoken(nano: Model, home: Path) -> Frames:
    style = Voices(home / "voices").get("bf_emma").style(len(PHONEMES))
    (frames,) = nano.acoustic([Utterance(encode(PHONEMES), style)])
    return frames


@pytest.mark.weights
def test_it_sounds_like_the_exact_vocoder(nano: Model, exact: Model, spoken: Frames) -> None:
    (mine,), (theirs,) = nano.vocoder([spoken]), exact.vocoder([spoken])
    assert distance_db(mine, theirs) < 2.6
    assert abs(10 * np.log10((mine**2).mean() / (theirs**2).mean())) < 1  # decibels


@pytest.mark.weights
def test_spans_and_batches_are_bit_for_bit_the_whole(nano: Model, spoken: Frames) -> None:
    (whole,) = nano.vocoder([spoken])
    cache: dict[str, object] = {}
    spans = [nano.vocoder([spoken, Span.of(spoken, span, cache)])[1] for span in pairwise([0, 20, 61, spoken.n_frames])]
    assert np.array_equal(np.concatenate(spans), whole)
    (again,) = nano.vocoder([Span.of(spoken, (20, 61), {})])  # by a worker that lost the row's first spans
    assert np.array_equal(again, whole[20 * SAMPLES_PER_FRAME : 61 * SAMPLES_PER_FRAME])


@pytest.mark.weights
def test_pytorch_sounds_the_same_in_any_batch_and_window(
    nano: Model, spoken: Frames, official: dict[str, Path]
) -> None:
    pytest.importorskip("torch")
    model = load(official["fp32"], choose("torch", "cpu", vocoder="nano"), 1)
    (whole,), (theirs,) = model.vocoder([spoken]), nano.vocoder([spoken])
    assert distance_db(whole, theirs) < 0.6  # as light: on a processor matrices and their inputs are in int8
    n = spoken.n_frames // 2
    short = Frames(np.array([n]), spoken.features[:, :n], spoken.f0[: 2 * n], spoken.energy[: 2 * n], spoken.style)
    (alone,), (short_in_batch, in_batch) = model.vocoder([short]), model.vocoder([short, spoken])
    cache: dict[str, object] = {}
    spans = [model.vocoder([Span.of(spoken, span, cache)])[0] for span in pairwise([0, 20, 61, spoken.n_frames])]
    for same in (np.concatenate(spans), in_batch):
        assert np.abs(same - whole).max() < 1e-4
    assert np.abs(short_in_batch - alone).max() < 1e-4
