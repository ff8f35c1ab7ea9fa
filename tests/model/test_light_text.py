"""The light text encoder on a processor: it computes what was trained, and speaks with almost Kokoro's durations."""

from pathlib import Path

import numpy as np
import pytest

from tutti.errors import InvalidInput
from tutti.model.choice import choose, load
from tutti.model.light import weights
from tutti.model.onnx.session import open_session
from tutti.model.onnx.text_graph import FEATURES, TOKENS, text_graph
from tutti.speech import Utterance
from tutti.text.vocab import encode
from tutti.voices import Voices

ROWS = [
    "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs.",
    "hˌW mˈɛni pˈipᵊl lˈɪv ðˈɛɹ?",
    "ðə ɡɹˈA kˈæt slˈɛpt ɔn ðə wˈɔɹm ɹˈuf, ænd nˈObˌɑdi nˈOTəst.",
]


MAX_BYTES = 9_000_000  # of the weights in the package


def features_of(graph: bytes, tokens: np.ndarray) -> np.ndarray:  # [n, 512]
    (features,) = open_session(graph, 1).run([FEATURES], {TOKENS: tokens[None].astype(np.int64)})
    return features[0]  # type: ignore[no-any-return]


def test_the_graph_is_the_trained_network() -> None:
    torch = pytest.importorskip("torch")
    from training.text_student import TextStudent
    from tutti.model.torch.kokoro.masks import RowMask

    packed = weights.read(weights.TEXT_PATH)
    student = TextStudent.of({name: torch.from_numpy(value) for name, value in weights.as_float32(packed).items()})
    graph = text_graph(packed)
    for row in ROWS:
        tokens = encode(row)
        with torch.no_grad():
            expected = student(
                torch.from_numpy(tokens)[None].long(), RowMask.of(torch.tensor([len(tokens)]), len(tokens))
            )
        error = features_of(graph, tokens) - expected[0].numpy()
        assert (error**2).mean() < 1e-3 * expected.numpy().var()  # activations are rounded to eight bits


def test_its_weights_are_small() -> None:
    assert weights.TEXT_PATH.stat().st_size <= MAX_BYTES


def test_it_reads_from_one_symbol_to_the_longest_row() -> None:
    graph = text_graph(weights.read(weights.TEXT_PATH))
    for n in (1, 512):
        assert np.isfinite(features_of(graph, np.full(n, 43))).all()


@pytest.mark.parametrize("vocoder", ["light", "exact"])
def test_auto_reads_as_it_speaks_on_onnx_and_exactly_on_pytorch(vocoder: str) -> None:
    assert choose("onnx", vocoder=vocoder).text == vocoder  # type: ignore[arg-type]
    assert choose("torch", "cpu", vocoder=vocoder).text == "exact"  # type: ignore[arg-type]
    assert choose("onnx", vocoder="light", text="exact").text == "exact"
    with pytest.raises(InvalidInput, match="text=light is for backend=onnx"):
        choose("torch", "cpu", text="light")


@pytest.mark.weights
def test_durations_are_almost_kokoros_and_models_that_share_keep_their_own(
    official: dict[str, Path], home: Path
) -> None:
    exact = load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="light", text="exact"), 1)
    light = load(official["fp32"], choose("onnx", "cpu", "fp32", vocoder="light"), 1, sharing=exact)
    voices, lengths, same = Voices(home / "voices"), [], []
    for row in ROWS:
        for voice in ("af_heart", "bm_george"):
            utterance = Utterance(encode(row), voices.get(voice).style(len(row)))
            (mine,), (theirs,) = light.acoustic([utterance]), exact.acoustic([utterance])
            assert np.abs(mine.durations - theirs.durations).max() <= 6  # frames
            same += list(mine.durations == theirs.durations)
            assert not np.array_equal(mine.f0, theirs.f0)
            lengths.append(mine.n_frames / theirs.n_frames)
    assert np.mean(same) > 0.85
    assert abs(np.mean(lengths) - 1) < 0.02
    assert np.abs(np.array(lengths) - 1).max() < 0.08
