"""The decoder of the light vocoder: Kokoro's own, up to what bases leave out and int8 rounds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from tutti.model.light import weights
from tutti.model.light.weights import CORRECTION, CORRECTION_BIAS, INPUT_LOUDNESS, NARROW_LOUDNESS, Int8Matrix
from tutti.model.onnx import split
from tutti.model.onnx.decoder_graph import OUTPUT, decoder_graph
from tutti.model.onnx.graph import GraphBuilder
from tutti.model.onnx.light import decoder_path
from tutti.model.onnx.official import DECODER, official_weights
from tutti.model.onnx.session import open_session
from tutti.speech import Frames, Utterance
from tutti.text.vocab import encode
from tutti.voices import Voices

PHONEMES = "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs."


def ratio_db(actual: np.ndarray, expected: np.ndarray) -> float:
    """Signal-to-noise ratio."""
    return float(10 * np.log10(expected.var() / ((actual - expected) ** 2).mean()))


# -- parts of a graph ----------------------------------------------------------------------------------------------


def compute(build: Callable[[GraphBuilder, str], str], x: np.ndarray) -> np.ndarray:
    graph = GraphBuilder()
    result = build(graph, "x")
    model = graph.serialise("test", {"x": [1, None, x.shape[2]]}, {result: [1, None, None]})
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]  # type: ignore[no-any-return]


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((1, 7, 4)).astype(np.float32)


def test_steps_move_in_time_and_leave_zeros(x: np.ndarray) -> None:
    later, earlier = (compute(lambda graph, x, n=n: graph.shift(x, n), x) for n in (1, -1))
    assert np.array_equal(later[:, 1:], x[:, :-1])
    assert np.array_equal(earlier[:, :-1], x[:, 1:])
    assert not later[:, 0].any()
    assert not earlier[:, -1].any()


def test_the_mean_is_that_of_each_channel_over_time(x: np.ndarray) -> None:
    assert np.allclose(compute(GraphBuilder.mean, x), x.mean(1, keepdims=True), atol=1e-6)


def test_steps_of_two_values_take_turns(x: np.ndarray) -> None:
    pairs = compute(lambda graph, x: graph.interleave(x, graph.add("Neg", x), 4), x)
    assert np.array_equal(pairs[:, ::2], x)
    assert np.array_equal(pairs[:, 1::2], -x)


# -- the official weights ------------------------------------------------------------------------------------------


def test_weights_of_both_official_files_are_found_under_upstreams_names() -> None:
    root, bias = "/decoder/decoder/", "decoder.decoder.decode.0.conv1.bias"
    nodes = [
        helper.make_node("Conv", ["x", "w", bias], ["a"], f"{root}decode.0/conv1/Conv"),
        helper.make_node("Conv", ["x", "w"], ["b"], f"{root}asr_res/asr_res.0/Conv"),
        helper.make_node("ConvInteger", ["q", "v_quantized", "z", "v_zero"], ["c"], f"{root}encode/conv2/Conv_quant"),
        helper.make_node("MatMulInteger", ["q", "f_quantized", "z", "f_zero"], ["d"], f"{root}encode/norm1/fc/Gemm_"),
        helper.make_node("Conv", ["x", "w"], ["e"], "/encoder/F0.0/conv1/Conv"),
    ]
    weight = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    constants = {
        "w": weight, bias: np.ones(2, np.float32),
        "v_quantized": np.array([[[128, 130]]], np.uint8), "v_zero": np.array(128, np.uint8),
        "v_scale": np.array(0.5, np.float32), "f_quantized": np.array([[1, 2], [3, 4]], np.int8),
        "f_zero": np.zeros(2, np.int8), "f_scale": np.array([1, 10], np.float32),
    }  # fmt: skip
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "a")]
    found = official_weights(
        helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], initializers)), DECODER
    )
    assert found.keys() == {
        "decode.0.conv1.bias", "decode.0.conv1.weight", "asr_res.0.weight", "encode.conv2.weight",
        "encode.norm1.fc.weight",
    }  # fmt: skip
    assert np.array_equal(found["decode.0.conv1.weight"], weight)
    assert found["encode.conv2.weight"].tolist() == [[[0, 1]]]
    assert found["encode.norm1.fc.weight"].tolist() == [[1, 3], [20, 40]]  # outputs first, each with its scale


@pytest.fixture(scope="module")
def spoken(official: dict[str, Path], home: Path) -> Frames:
    from tutti.model.choice import choose, load

    model = load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="light"), 2)
    style = Voices(home / "voices").get("bf_emma").style(len(PHONEMES))
    (frames,) = model.acoustic([Utterance(encode(PHONEMES), style)])
    model.close()
    return frames


def official_output(path: Path, row: Frames) -> np.ndarray:  # [n, 512]
    session = open_session(split.split_graphs(path).decoding, 2)
    decoded: np.ndarray = session.run([split.DECODED], split.decoder_inputs(row))[0][0].T
    return decoded


def own_output(graph: bytes | Path, row: Frames) -> np.ndarray:  # [n, 512]
    decoded: np.ndarray = open_session(graph, 2).run([OUTPUT], split.decoder_inputs(row))[0][0]
    return decoded


@pytest.mark.weights
@pytest.mark.parametrize(("precision", "least_db"), [("fp32", 26), ("int8", 21)])
def test_bases_that_span_all_channels_leave_the_official_decoder(
    spoken: Frames, official: dict[str, Path], precision: str, least_db: float
) -> None:
    part = onnx.load(split.split_graphs(official[precision]).decoding)
    own, found = weights.read(weights.BASES_PATH), official_weights(part, DECODER)
    known = weights.as_float32(own)
    whole: weights.Weights = {name: value for name, value in own.items() if name.endswith(INPUT_LOUDNESS)}
    for name in (name.removesuffix(INPUT_LOUDNESS) for name in list(whole)):
        n_out = len(found[f"{name}.weight"])
        whole[name] = Int8Matrix.of(np.eye(n_out, dtype=np.float32))
        # Channels are sums of what the package's bases span, so their loudness follows from its loudness.
        whole[name + NARROW_LOUDNESS] = np.sqrt(known[name] ** 2 @ known[name + NARROW_LOUDNESS] ** 2)
    whole[CORRECTION], whole[CORRECTION_BIAS] = np.zeros((512, 512), np.float32), np.zeros(512, np.float32)
    decoded = own_output(decoder_graph(part, whole), spoken)
    # The int8 file rounds its own values, for all steps at once; so fp32 is the better judge for both.
    assert ratio_db(decoded, official_output(official["fp32"], spoken)) > least_db


@pytest.mark.weights
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_bases_of_the_package_keep_nearly_all(spoken: Frames, official: dict[str, Path], precision: str) -> None:
    decoded = own_output(decoder_path(split.split_graphs(official[precision]).decoding), spoken)
    assert ratio_db(decoded, official_output(official["fp32"], spoken)) > 15


@pytest.mark.weights
def test_training_and_processor_have_the_same_decoder(spoken: Frames, official: dict[str, Path]) -> None:
    torch = pytest.importorskip("torch")
    from training.low_rank import low_rank_decoder
    from tutti.model.torch.kokoro import weights as kokoro_weights

    _, vocoder = kokoro_weights.build(kokoro_weights.read_state(official["fp32"]))
    bases = {name: torch.from_numpy(v) for name, v in weights.as_float32(weights.read(weights.BASES_PATH)).items()}
    features, f0, energy, style = (
        torch.from_numpy(value)[None] for value in (spoken.features.T, spoken.f0, spoken.energy, spoken.style)
    )
    with torch.inference_mode():
        theirs, _ = low_rank_decoder(vocoder, bases).decoder_output(
            features, f0, energy, torch.tensor([spoken.n_frames]), style
        )
    mine = own_output(decoder_path(split.split_graphs(official["fp32"]).decoding), spoken)
    assert ratio_db(mine, theirs[0, :, :512].numpy()) > 27
