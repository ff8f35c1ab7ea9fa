"""Our PyTorch Kokoro equals the official graph, and a row of a padded batch equals the row alone."""

import dataclasses
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.model.test_lone_row import run_again  # noqa: E402
from tutti.errors import DeviceFull, InvalidInput, MissingExtra, ModelFailed, WeightsCorrupt, WeightsUnavailable  # noqa: E402
from tutti.model.buckets import PLANS, Ladder, Shapes  # noqa: E402
from tutti.model.inflection import EMPHASES  # noqa: E402
from tutti.model.onnx.model import OnnxModel  # noqa: E402
from tutti.model.protocol import run_acoustic  # noqa: E402
from tutti.model.torch.cuda_graphs import GraphedFunction  # noqa: E402
from tutti.model.torch.kokoro import masks, weights  # noqa: E402
from tutti.model.torch.kokoro.adain import adain, moments_of  # noqa: E402
from tutti.model.torch.kokoro.convs import Upsample  # noqa: E402
from tutti.model.torch.kokoro.linear import split_fp16  # noqa: E402
from tutti.model.torch.kokoro.lstm import BiLSTM, RecurrentWeights  # noqa: E402
from tutti.model.torch.kokoro.masks import RowMask  # noqa: E402
from tutti.model.torch.kokoro.padding import DeviceFrames, StageStream  # noqa: E402
from tutti.model.torch.kokoro.source import OUTPUT_GAIN, STFT, HarmonicSource  # noqa: E402
from tutti.model.torch.lone_row import LoneRowGraphs, guessed_frames  # noqa: E402
from tutti.model.torch.model import TorchModel  # noqa: E402
from tutti.speech import FULL_SCALE, NO_INFLECTION, Frames, Inflection, Utterance  # noqa: E402
from tutti.text.vocab import encode  # noqa: E402
from tutti.verify.mel import distance_db  # noqa: E402
from tutti.voices import Voices  # noqa: E402

MAX_DB = 0.7  # a change of the pitch by 1e-5 already moves the output by half of this
SENTENCES = [
    ("af_heart", "wˈʌn pˈæs.", 1.5),  # fast: short audio costs less
    ("bm_george", "ðə kwˈɪk bɹˈWn fˈɒks, ænd ðˈɛn ɪt slˈiːps.", 2.0),
    ("zf_xiaoxiao", "ni↓", 1.2),
]


@pytest.fixture(scope="module")
def state(official: dict[str, Path]) -> weights.State:
    return weights.read_state(official["fp32"])


@pytest.fixture(scope="module")
def ours(state: weights.State, tmp_path_factory: pytest.TempPathFactory) -> TorchModel:
    path = tmp_path_factory.mktemp("archive") / "kokoro.npz"
    weights.write_archive(state, path, np.float32)
    return TorchModel(path, "cpu")


@pytest.fixture(scope="module")
def theirs(official: dict[str, Path]) -> Iterator[OnnxModel]:
    model = OnnxModel(official["fp32"], "fp32", 2)
    yield model
    model.close()


@pytest.fixture(scope="module")
def rows(home: Path) -> list[Utterance]:
    voices = Voices(home / "voices")
    return [Utterance(encode(text), voices.get(name).style(len(text)), speed) for name, text, speed in SENTENCES]


@pytest.fixture(scope="module")
def frames(theirs: OnnxModel, rows: list[Utterance]) -> list[Frames]:
    return theirs.acoustic(rows)


@pytest.mark.weights
def test_the_acoustic_half_equals_the_official_one(
    ours: TorchModel, rows: list[Utterance], frames: list[Frames]
) -> None:
    for mine, official in zip(ours.acoustic(rows), frames, strict=True):
        assert np.array_equal(mine.durations, official.durations)
        assert np.abs(mine.features - official.features).max() < 1e-3
        assert np.abs(mine.f0 - official.f0).max() < 1e-2
        assert np.abs(mine.energy - official.energy).max() < 1e-3


@pytest.mark.weights
def test_the_vocoder_half_sounds_like_the_official_one(
    ours: TorchModel, theirs: OnnxModel, frames: list[Frames]
) -> None:
    for mine, official in zip(ours.vocoder(frames), theirs.vocoder(frames), strict=True):
        assert distance_db(mine, official) < MAX_DB
        assert np.corrcoef(mine, official)[0, 1] > 0.98
        assert 0.97 < np.std(mine) / np.std(official) < 1.03


@pytest.mark.weights
@pytest.mark.parametrize("inflection", [*EMPHASES.values(), Inflection(0.8, -3.0, volume=0.5), Inflection(pause=12)])
def test_marks_of_words_change_the_same_on_both(
    ours: TorchModel, theirs: OnnxModel, rows: list[Utterance], inflection: Inflection
) -> None:
    tokens = np.tile(np.array(NO_INFLECTION, np.float32), (len(rows[1].tokens), 1))
    tokens[8:14] = inflection
    row = dataclasses.replace(rows[1], inflection=tokens)
    (mine,), (official,) = run_acoustic(ours.acoustic, [row]), run_acoustic(theirs.acoustic, [row])
    assert np.array_equal(mine.durations, official.durations)
    assert np.abs(mine.f0 - official.f0).max() < 0.05
    assert (mine.gain is None) == (official.gain is None)
    assert distance_db(ours.vocoder([mine])[0], theirs.vocoder([official])[0]) < MAX_DB


@pytest.mark.weights
def test_a_lone_row_launched_before_its_length_is_known_sounds_as_one_stage_after_the_other(
    ours: TorchModel, state: weights.State, rows: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graphs of a CUDA device, with a capture that runs the functions again."""
    acoustic, vocoder = weights.build(state)
    graphs = LoneRowGraphs(
        acoustic, lambda *inputs: (vocoder(*inputs), torch.ones(1)), StageStream(ours.device), run_again, PLANS["full"]
    )
    row = dataclasses.replace(rows[2], pcm_volume=0.5)
    n_tokens = len(row.tokens)
    graphs._capture_tokens(PLANS["full"].tokens.ladder.fit(n_tokens))
    graphs._capture_frames(PLANS["full"].frames.ladder.fit(guessed_frames(n_tokens, row.speed)))
    in_turn = ours.speak([row])
    monkeypatch.setattr(ours, "_lone_row", graphs)
    monkeypatch.setattr(ours, "start_acoustic", None)  # it takes no part
    alone = ours.speak([row])
    assert np.array_equal(alone.durations[0], in_turn.durations[0])
    assert alone.samples[0].dtype == np.int16
    assert len(alone.samples[0]) == len(in_turn.samples[0])
    assert distance_db(alone.samples[0] / FULL_SCALE, in_turn.samples[0] / FULL_SCALE) < 0.1


@pytest.mark.weights
def test_rows_stay_independent_in_one_heavily_padded_pass(ours: TorchModel, rows: list[Utterance]) -> None:
    """Against the buckets' plan: the shortest row with the longest, in one shape."""
    plan = ours.plan
    shapes = Shapes((2,), Ladder(128, 256), 0, per_group=10_000)
    ours.plan = dataclasses.replace(plan, frames=shapes)
    try:
        short, long = (ours.acoustic([row])[0] for row in (rows[2], rows[1]))
        assert len(shapes.group([short.n_frames, long.n_frames], 2000)) == 1
        padded, _ = ours.vocoder([short, long])
    finally:
        ours.plan = plan
    (alone,) = ours.vocoder([short])
    assert distance_db(alone, padded) < 0.05


@pytest.mark.weights
def test_changed_pitch_is_audible_and_frames_can_be_pickled(ours: TorchModel, rows: list[Utterance]) -> None:
    (original,) = ours.acoustic(rows[:1])
    assert isinstance(original, DeviceFrames)
    copy = pickle.loads(pickle.dumps(original))
    assert type(copy) is Frames
    assert np.array_equal(copy.features, original.features)
    (plain,) = ours.vocoder([original])
    original.f0[:] *= 1.2
    copied, high = ours.vocoder([copy, original])
    assert distance_db(plain, copied) < 0.01
    assert distance_db(plain, high) > 1


@pytest.mark.weights
def test_upstreams_checkpoint_gives_the_same_weights(state: weights.State, tmp_path: Path) -> None:
    parts: dict[str, dict[str, torch.Tensor]] = {"bert": {"module.pooler.weight": torch.zeros(2, 2)}}
    for name, tensor in state.items():
        part, _, rest = name.partition(".")
        names = parts.setdefault(part, {})
        if tensor.dim() == 3 and name.endswith("weight"):
            names[f"module.{rest}_g"] = tensor.flatten(1).norm(dim=1).view(-1, 1, 1)
            names[f"module.{rest}_v"] = tensor * 3
        else:
            names[f"module.{rest}"] = tensor
    torch.save(parts, tmp_path / "kokoro.pth")
    loaded = weights.read_state(tmp_path / "kokoro.pth")
    assert loaded.keys() == state.keys()
    assert all(torch.allclose(loaded[name], state[name], atol=1e-5, rtol=1e-4) for name in state)


@pytest.mark.weights
def test_a_tensor_too_many_or_too_few_is_named(state: weights.State) -> None:
    name = "decoder.generator.conv_post.bias"
    with pytest.raises(WeightsCorrupt, match="conv_post"):
        weights.build({key: tensor for key, tensor in state.items() if key != name})
    with pytest.raises(WeightsCorrupt, match="stray"):
        weights.build({**state, "stray": torch.zeros(1)})


@pytest.mark.weights
def test_invalid_rows_are_refused(ours: TorchModel, rows: list[Utterance]) -> None:
    assert ours.acoustic([]) == ours.vocoder([]) == []
    wrong = [
        ({"speed": 9}, "speed"),
        ({"style": np.full(256, np.nan, np.float32)}, "finite"),
        ({"tokens": np.zeros(2, np.int64)}, "phonemes, not 0"),
        ({"tokens": np.ones(513, np.int64)}, "phonemes, not 511"),
    ]
    for change, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            ours.acoustic([rows[0], dataclasses.replace(rows[0], **change)])


@pytest.mark.weights
def test_out_of_memory_and_other_device_errors_are_distinguished(
    ours: TorchModel, rows: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("no memory")

    def broken(*_: object) -> None:
        raise RuntimeError("no device")

    monkeypatch.setattr(ours, "_encode_tokens", full)
    with pytest.raises(DeviceFull, match="fewer rows"):
        ours.acoustic(rows)
    monkeypatch.setattr(ours, "_encode_tokens", broken)
    with pytest.raises(ModelFailed, match="no device"):
        ours.acoustic(rows)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_the_error_for_a_missing_device_names_an_alternative() -> None:
    with pytest.raises(MissingExtra, match="device=cpu"):
        TorchModel(Path("model.onnx"), "cuda")


@pytest.mark.parametrize("name", ["model.onnx", "model.npz", "model.pth", "model.txt"])
def test_a_file_that_is_not_kokoro_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(WeightsUnavailable, match=name):
        weights.read_state(tmp_path / name)
    (tmp_path / name).write_bytes(b"not a network at all")
    with pytest.raises(WeightsCorrupt, match=name):
        weights.read_state(tmp_path / name)


def test_each_thread_of_the_lstm_kernel_finds_the_weights_of_its_unit() -> None:
    """A unit has eight threads; together they read, for each gate, its weights for all units before, by fours."""
    weights = RecurrentWeights.of(torch.randn(2, 4 * 256, 256))
    blocks = weights.by_thread.reshape(2, 8, 4, 8, 256, 4)  # direction, block, gate, quad, thread, place
    for direction, gate, unit in ((0, 0, 0), (1, 2, 37), (0, 3, 255)):
        block, threads = unit // 32, slice(unit % 32 * 8, unit % 32 * 8 + 8)
        own = blocks[direction, block, gate, :, threads].flatten()
        assert torch.equal(own, weights.by_gate[direction, gate, :, unit])


def test_the_backward_lstm_starts_at_each_rows_own_end() -> None:
    plain = torch.nn.LSTM(6, 4, batch_first=True, bidirectional=True)
    masked = BiLSTM(6, 8)
    masked.load_state_dict(plain.state_dict())
    x, lengths = torch.randn(3, 9, 6), torch.tensor([9, 1, 5])
    with torch.no_grad():
        output = masked(x, RowMask.of(lengths, 9))
        for row, n, y in zip(x, lengths.tolist(), output, strict=True):
            assert torch.allclose(y[:n], plain(row[None, :n])[0][0], atol=1e-6)


@pytest.mark.parametrize("alpha", [None, torch.tensor([0.5, 1.0, 2.0, 3.0, 7.0])])
def test_padding_does_not_change_a_norm(alpha: torch.Tensor | None) -> None:
    x, style, like = torch.randn(1, 7, 5), torch.randn(1, 10), torch.empty(1, 8, 3)
    padded = torch.cat([x, torch.full((1, 50, 5), 9.0)], dim=1)
    alone, in_padding = (
        adain(value, moments_of(value, mask), style, alpha, mask, like)
        for value, mask in ((x, RowMask.of(torch.tensor([7]), 7)), (padded, RowMask.of(torch.tensor([7]), 57)))
    )
    assert torch.allclose(alone, in_padding[:, :7], atol=1e-5)
    assert not in_padding[:, 7:].any()
    assert not in_padding[:, :, 5:].any()


def test_upsampling_is_a_transposed_convolution() -> None:
    up = Upsample(4, 3, 12, 6)
    torch.nn.init.normal_(up.weight)
    up.pack_weights()
    x = torch.randn(2, 9, 4)
    with torch.no_grad():
        expected = torch.nn.functional.conv_transpose1d(x.transpose(1, 2), up.weight, stride=6, padding=3)
        output = up(x, RowMask.of(torch.tensor([9, 9]), 9), n_prefix=1)
    assert torch.allclose(output[:, 1:], expected.transpose(1, 2), atol=1e-5)


def test_two_fp16_halves_keep_22_bits() -> None:
    x = torch.randn(64, 64) * torch.logspace(-4, 0, 64)
    high, low, scale = split_fp16(x)
    assert high.isfinite().all()
    assert ((high.double() + low.double()) * scale - x).abs().max() < 2**-21 * x.abs().max()


def test_the_inverse_stft_restores_each_row_up_to_its_own_end() -> None:
    stft = STFT()
    wave = torch.randn(2, 600)
    lengths = torch.tensor([600, 300])
    hops = RowMask.of(lengths // 5 + 1, 121)
    magnitude, angle = stft.spectrum(wave, hops, torch.empty(1, 24, 1))[:, :, :22].chunk(2, dim=-1)
    restored = stft.inverse(magnitude, angle, hops) / OUTPUT_GAIN
    for row, restored_row, n in zip(wave, restored, lengths.tolist(), strict=True):
        assert torch.allclose(restored_row[:n], row[:n], atol=1e-4)


def test_the_source_has_its_pitch_and_is_silent_where_unvoiced() -> None:
    source = HarmonicSource()
    with torch.no_grad():
        source.l_linear.weight.zero_()[0, 0] = 1
        source.l_linear.bias.zero_()
        wave = source(torch.tensor([[200.0] * 80, [5.0] * 80]))  # one second
    assert torch.fft.rfft(wave[0]).abs().argmax() == 200
    assert not wave[1].any()


def test_a_captured_shape_is_replayed_and_any_other_runs_without_a_graph() -> None:
    def add(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor]:
        return (x + y,)

    captured = []

    def capture(function, inputs):  # type: ignore[no-untyped-def]
        outputs = function(*inputs)
        captured.append(inputs[0].shape)
        return lambda: outputs[0].copy_(function(*inputs)[0]), outputs

    def ones(n: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        return np.ones(n, np.float32)

    graphed, stream = GraphedFunction(add, capture), StageStream(torch.device("cpu"))
    for n, is_captured in ((4, True), (4, True), (3, False)):
        graphed.prepare(stream, (ones(n),), torch.zeros(n), capture=is_captured)
    assert captured == [(4,)]
    first, second = (graphed(stream, (2 * ones(4),), torch.full((4,), value))[0] for value in (1.0, 5.0))
    assert first.tolist() == [3.0] * 4
    assert second.tolist() == [7.0] * 4
    assert graphed(stream, (ones(3),), torch.ones(3))[0].tolist() == [2.0] * 3
    assert len(graphed) == 1


def test_the_kernels_of_all_shapes_are_compiled_before_the_first_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture that has to compile its kernels waits for each; while `compiling`, many are compiled at once."""
    events: list[str | tuple[str, int, int]] = []

    @contextmanager
    def compiling() -> Iterator[None]:
        events.append("begin")
        yield
        events.append("end")

    class Recorded:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, n_rows: int, length: int, *, capture: bool) -> None:
            events.append(("captured" if capture else self.name, n_rows, length))

    monkeypatch.setitem(sys.modules, "tutti.model.torch.kernels", SimpleNamespace(compiling=compiling))
    monkeypatch.setattr(masks, "device_has_kernels", lambda _: True)
    model = TorchModel.__new__(TorchModel)
    model.plan, model.max_padded_frames, model.device = PLANS["reduced"], 4096, torch.device("cpu")
    model._lone_row = None
    for name in ("tokens", "curves", "frames"):
        monkeypatch.setattr(model, f"_prepare_{name}", Recorded(name))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    model.warm_up()
    first_capture = next(i for i, event in enumerate(events) if event[0] == "captured")
    assert events[0] == "begin"
    assert events[first_capture - 1] == "end"
    compiled = set(events[:first_capture]) - {"begin", "end"}
    expected = {
        (name, *shape)
        for name in ("tokens", "curves", "frames")
        for shape in getattr(model.plan, name).captured_shapes(model.max_padded_frames)
    }
    assert compiled == expected
    assert len(events[first_capture:]) == len(expected)
