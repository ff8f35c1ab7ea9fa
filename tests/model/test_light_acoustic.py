"""The light acoustic half: the official predictor's numbers, up to what int8 rounds."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tutti.model.onnx import split
from tutti.model.onnx.acoustic import LightAcoustic, text_path
from tutti.model.onnx.official import ACOUSTIC, BIAS, INPUT, RECURRENCE, official_weights
from tutti.model.onnx.session import open_session
from tutti.speech import Frames, Utterance
from tutti.text.vocab import encode
from tutti.voices import Voices

PHONEMES = (
    "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs.",
    "wˌʌt tˈIm dˈʌz ðə lˈæst tɹˈAn lˈiv?",
    "ʃi sˈɛd ɪt wʌz tˈu lˈAt, ænd klˈOzd ðə dˈɔɹ bəhˈInd hɜɹ wɪðˌWt ɐ wˈɜɹd.",
)
VOICED_HZ = 10.0


def test_the_weights_of_both_kinds_of_lstm_have_the_same_names() -> None:
    rng = np.random.default_rng(0)
    weight, recurrence = (rng.integers(-9, 9, (2, 8, n)).astype(np.int8) for n in (3, 2))
    constants = {
        "w": weight.astype(np.float32), "r": recurrence.astype(np.float32), "b": np.ones((2, 16), np.float32),
        "q_quantized": weight.transpose(0, 2, 1), "q_scale": np.array([0.5, 2], np.float32),
        "s_quantized": recurrence.transpose(0, 2, 1), "s_scale": np.array([1, 4], np.float32),
        "z": np.zeros(2, np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["a"], "/encoder/shared/LSTM"),
        helper.make_node(
            "DynamicQuantizeLSTM",
            ["x", "q_quantized", "s_quantized", "b", "", "", "", "", "q_scale", "z", "s_scale", "z"],
            ["c"],
            "/encoder/predictor/lstm/LSTM_quant",
        ),
    ]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "a")]
    part = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], initializers))
    found = official_weights(part, ACOUSTIC)
    assert found.keys() == {f"{lstm}{kind}" for lstm in ("shared", "lstm") for kind in (INPUT, RECURRENCE, BIAS)}
    by_direction = np.array([0.5, 2])[:, None, None], np.array([1, 4])[:, None, None]
    assert np.array_equal(found["lstm" + INPUT], found["shared" + INPUT] * by_direction[0])
    assert np.array_equal(found["lstm" + RECURRENCE], found["shared" + RECURRENCE] * by_direction[1])


@pytest.fixture(scope="module")
def rows(home: Path) -> list[Utterance]:
    voices = Voices(home / "voices")
    return [
        Utterance(encode(phonemes), voices.get(name).style(len(phonemes)), speed)
        for phonemes in PHONEMES
        for name, speed in (("bf_emma", 1.0), ("am_adam", 1.2), ("zf_xiaoxiao", 0.8))
    ]


def official_frames(graphs: split.Graphs, row: Utterance) -> Frames:
    """What the official predictor says of the light text encoder's features."""
    (read,) = open_session(text_path(graphs), 1).run(None, {"tokens": row.tokens[None]})
    predictor = open_session(graphs.predicting, 1)
    given = (row.tokens[None], row.style[None], np.array([row.speed], np.float32), read)
    names = [each.name for each in predictor.get_inputs()]
    outputs = [split.DURATIONS, split.FEATURES, split.F0, split.ENERGY]
    durations, *others = predictor.run(outputs, dict(zip(names, given, strict=True)))
    return Frames(durations[0].astype(np.int64), *(each[0] for each in others), row.style, 1.0)


@pytest.mark.weights
@pytest.mark.parametrize(("precision", "most_cents"), [("fp32", 60), ("int8", 200)])
def test_it_says_what_the_official_predictor_says(
    official: dict[str, Path], rows: list[Utterance], precision: str, most_cents: float
) -> None:
    graphs = split.split_graphs(official[precision])
    acoustic, same, cents = LightAcoustic(graphs, 1), list[bool](), list[np.ndarray]()
    for row in rows:
        ours, theirs = acoustic(row), official_frames(graphs, row)
        same += (ours.durations == theirs.durations).tolist()
        assert abs(ours.n_frames - theirs.n_frames) <= 0.02 * theirs.n_frames
        if ours.n_frames == theirs.n_frames:
            voiced = (ours.f0 > VOICED_HZ) & (theirs.f0 > VOICED_HZ)
            cents.append(1200 * np.log2(ours.f0[voiced] / theirs.f0[voiced]))
            assert np.mean((ours.f0 > VOICED_HZ) != (theirs.f0 > VOICED_HZ)) <= 0.02
            assert np.abs(ours.energy - theirs.energy).mean() <= 0.1
    assert np.mean(same) >= 0.97
    assert len(cents) >= 3
    assert np.sqrt(np.mean(np.concatenate(cents) ** 2)) <= most_cents
