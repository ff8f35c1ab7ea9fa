"""A row whose graphs were launched before its length was known has the frames of its own tokens, and no others."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tutti.errors import InvalidInput, ModelFailed  # noqa: E402
from tutti.model.buckets import PLANS  # noqa: E402
from tutti.model.torch.kokoro.acoustic import PROSODY, TEXT  # noqa: E402
from tutti.model.torch.kokoro.padding import StageStream  # noqa: E402
from tutti.model.torch.lone_row import MAX_FRAMES, LoneRowGraphs, guessed_frames  # noqa: E402
from tutti.speech import SAMPLES_PER_FRAME, Prosody, Utterance, to_pcm  # noqa: E402

STYLE = np.linspace(0, 1, 256, dtype=np.float32)


class Network:
    """Each token lasts as many frames as its number says, divided by the speed; its sound is that number."""

    def encode_tokens(self, tokens: Any, n_tokens: Any, style: Any, speed: Any) -> tuple[Any, Any, Any]:
        valid = torch.arange(tokens.shape[1]) < n_tokens[:, None]
        values = tokens.float()[:, :, None]
        durations = ((tokens / speed[:, None]).round().clamp(min=1) * valid).long()
        return durations, 10 * values.expand(-1, -1, PROSODY), values.expand(-1, -1, TEXT)

    def predict_curves(self, prosody: Any, n_frames: Any, style: Any) -> Any:
        return prosody[:, :, :2]

    def vocode(self, features: Any, curves: Any, n_frames: Any, style: Any) -> tuple[Any, Any]:
        assert torch.equal(curves, 10 * features[:, :, :2])  # pitch and features are of the same token
        frames = features[:, :, 0] / 100 + style[:, -1:]
        frames = frames * (torch.arange(frames.shape[1]) < n_frames[:, None])
        return frames.repeat_interleave(SAMPLES_PER_FRAME, dim=1), torch.isfinite(frames).all(dim=1)


def run_again(function: Callable[..., Any], inputs: Any) -> tuple[Callable[[], None], Any]:
    """A capture without a device."""
    outputs = function(*inputs)

    def replay() -> None:
        for output, value in zip(outputs, function(*inputs), strict=True):
            output.copy_(value)

    return replay, outputs


@pytest.fixture(scope="module")
def graphs() -> LoneRowGraphs:
    network: Any = Network()
    row = LoneRowGraphs(network, network.vocode, StageStream(torch.device("cpu")), run_again, PLANS["full"])
    for capture in row.captures():
        capture()
    return row


def utterance(*durations: int, speed: float = 1.0, volume: float = 1.0) -> Utterance:
    return Utterance(np.array(durations, np.int64), STYLE, speed, pcm_volume=volume)


@pytest.mark.parametrize(
    ("durations", "speed"),
    [((1, 2, 1), 1.0), ((4, 1, 3, 2, 5, 1), 1.0), ((1,) * 120, 1.0), ((2,) * 60, 0.5), ((4, 4, 2), 2.0)],
)
def test_each_frame_is_that_of_its_token(graphs: LoneRowGraphs, durations: tuple[int, ...], speed: float) -> None:
    spoken = graphs.speak(utterance(*durations, speed=speed, volume=0.25))
    assert spoken is not None
    frames = np.round(np.array(durations) / speed).astype(int)
    assert np.array_equal(spoken.durations[0], frames)
    sound = np.repeat(np.array(durations, np.float32) / 100 + STYLE[-1], frames * SAMPLES_PER_FRAME)
    assert np.array_equal(spoken.samples[0], to_pcm(sound, 0.25))


def test_a_row_does_not_hear_the_one_before(graphs: LoneRowGraphs) -> None:
    """They share all memory: a shorter row must find no token, no frame and no volume of a longer one."""
    alone = graphs.speak(utterance(3, 1, 2, volume=0.5))
    graphs.speak(utterance(*[5] * 60))
    again = graphs.speak(utterance(3, 1, 2, volume=0.5))
    assert alone is not None
    assert again is not None
    assert np.array_equal(alone.samples[0], again.samples[0])


def test_a_row_longer_than_guessed_or_captured_is_left_to_others(graphs: LoneRowGraphs) -> None:
    n_tokens = 40
    longest = PLANS["full"].frames.ladder.fit(guessed_frames(n_tokens, 1.0))
    fits = [1] * (n_tokens - 1) + [longest - n_tokens + 1]
    assert graphs.speak(utterance(*fits)) is not None
    assert graphs.speak(utterance(*fits[:-1], fits[-1] + 1)) is None
    assert guessed_frames(200, 0.5) > MAX_FRAMES
    assert graphs.speak(utterance(*[1] * 200, speed=0.5)) is None
    assert graphs.speak(utterance(*[1] * 300)) is None


@pytest.mark.parametrize("change", [{"pcm_volume": None}, {"prosody": Prosody(pitch=2.0)}])
def test_a_row_that_the_graphs_cannot_speak_is_left_to_others(graphs: LoneRowGraphs, change: dict[str, Any]) -> None:
    assert graphs.speak(dataclasses.replace(utterance(3, 1, 2), **change)) is None


def test_what_is_not_speech_is_an_error(graphs: LoneRowGraphs) -> None:
    for change in ({"style": np.full(256, np.inf, np.float32)}, {"speed": 0.0}):
        with pytest.raises(InvalidInput, match=r"finite|speed"):
            graphs.speak(dataclasses.replace(utterance(1, 2, 1), **cast(Any, change)))
    network = Network()
    broken = SimpleNamespace(
        encode_tokens=network.encode_tokens,
        predict_curves=lambda prosody, n_frames, style: prosody[:, :, :2],
    )

    def vocode(features: Any, *_: Any) -> tuple[Any, Any]:
        return torch.full((1, features.shape[1] * SAMPLES_PER_FRAME), torch.nan), torch.zeros(1, dtype=torch.bool)

    row = LoneRowGraphs(cast(Any, broken), vocode, StageStream(torch.device("cpu")), run_again, PLANS["full"])
    for capture in row.captures():
        capture()
    with pytest.raises(ModelFailed, match="not finite"):
        row.speak(utterance(1, 2, 1))
