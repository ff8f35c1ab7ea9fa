"""What was sent is not held, and what a failed answer held is free at once, even while its error is referenced."""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from contextlib import closing

import numpy as np
import pytest

from tutti.audio import find_format
from tutti.errors import ModelFailed, TuttiError
from tutti.server.audio_memory import AudioMemory, HeldAudio, MemoryFull
from tutti.server.encoders import Encoders
from tutti.server.encoding import AnswerBudget, PieceEncoder, encode_whole, open_stream
from tutti.server.errors import TooLarge
from tutti.server.request import SpeechRequest
from tutti.server.responses import audio_pieces
from tutti.speech import SAMPLE_RATE, Samples, Speech, SpeechParams

REQUEST = SpeechRequest("deep water", SpeechParams("af_heart"), find_format("pcm"))
SECOND = Speech(np.zeros(SAMPLE_RATE, np.float32), (), (0, 4))  # 48 kB of PCM


async def five_seconds_then_an_error() -> AsyncGenerator[Speech]:
    for _ in range(5):
        yield SECOND
    raise ModelFailed("the model failed")


@pytest.mark.parametrize(
    ("max_memory", "max_answer", "error"), [(200e3, 1e9, MemoryFull), (1e9, 100e3, TooLarge), (1e9, 1e9, ModelFailed)]
)
def test_a_part_that_fails_holds_nothing_and_the_other_parts_stay_counted(
    max_memory: float, max_answer: float, error: type[TuttiError]
) -> None:
    memory = AudioMemory(max_memory)
    budget = AnswerBudget(max_answer, HeldAudio(memory, "caller"))
    budget.spend(1000)  # another part

    async def speak() -> None:
        stream = await open_stream(REQUEST, five_seconds_then_an_error(), 60)
        with closing(Encoders(lambda *_: None, 1)) as encoders:
            await encode_whole(stream, encoders, budget)

    with pytest.raises(error) as raised:
        asyncio.run(speak())
    assert raised.value.__traceback__ is not None  # it refers to the frames, and they to the audio
    assert memory.n_bytes == 1000


def test_an_answer_that_fails_is_released() -> None:
    memory = AudioMemory(1e9)
    held = HeldAudio(memory, "caller")
    held.grow(5000)
    with pytest.raises(ModelFailed), held.released_on_error():
        raise ModelFailed("the model failed")
    assert memory.n_bytes == 0


@pytest.mark.parametrize("n_waiting", [0, 1, 2])
def test_a_stream_that_waits_for_its_next_speech_keeps_none_of_those_before(n_waiting: int) -> None:
    made = list["weakref.ref[Samples]"]()

    def second() -> Speech:
        samples = np.zeros(SAMPLE_RATE, np.int16)
        made.append(weakref.ref(samples))
        return Speech(samples, (), (0, 4))

    async def speak() -> None:
        gate = asyncio.Event()

        async def some() -> AsyncGenerator[Speech]:
            for _ in range(n_waiting + 1):
                yield second()
            await gate.wait()

        with closing(Encoders(lambda *_: None, 1)) as encoders:
            stream = await open_stream(REQUEST, some(), 60)
            encoder = PieceEncoder(encoders, REQUEST)
            await encoder.encode_first(stream.first)
            pieces, n_bytes = audio_pieces(stream, encoder), 0
            while n_bytes < (n_waiting + 1) * 2 * SAMPLE_RATE:
                n_bytes += len(await anext(pieces))
            following = asyncio.ensure_future(anext(pieces))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not following.done()
            assert [samples() for samples in made] == [None] * (n_waiting + 1)
            gate.set()
            await following

    asyncio.run(speak())
