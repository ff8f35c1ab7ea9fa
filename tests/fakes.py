"""Engines without weights: the tone model behind the real batcher, in a thread of this process."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tutti.engine.build import CHECKPOINT, assemble
from tutti.engine.engine import Engine
from tutti.model.choice import Choice
from tutti.model.tone import ToneModel
from tutti.settings import Settings
from tutti.speech import Delivery, Frames, Model, Samples, Speech, SpeechParams
from tutti.text import Pronounce
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.frontend import G2PThread
from tutti.text.vocab import SYMBOLS
from tutti.voices import NAMES, Voices
from tutti.worker.base import Worker
from tutti.worker.thread import ThreadWorker


class Spelling:
    """G2P that needs no lexicon: a word sounds as it is spelled; what has no letter is dropped."""

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Pronunciation:
        words, at = [], 0
        for written in spoken.text.split():
            start = spoken.text.index(written, at)
            at = start + len(written)
            letters = "".join(char for char in written.lower().replace("g", "ɡ") if char.isalpha() and char in SYMBOLS)
            span = spoken.span(start, at)
            if said := given.get(span[0], letters):
                words.append(PhonemeWord(said, span, after=". " if written.endswith(".") else " "))
        return Pronunciation(tuple(words))


class Holding(ToneModel):
    """Sounds nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        assert self.go.wait(300)
        return super().vocoder(rows)

    @contextmanager
    def held(self) -> Iterator["Holding"]:
        self.go.clear()
        try:
            yield self
        finally:
            self.go.set()


def silent_voices(folder: Path) -> Voices:
    """Every name, no style: enough for a model that does not listen to styles."""
    for name in NAMES:
        np.zeros((510, 256), "<f4").tofile(folder / f"{name}.bin")
    return Voices(folder)


def tone_engine(
    voices: Voices,
    model: Callable[[], Model] = ToneModel,
    pronounce: Pronounce | None = None,
    *,
    worker: Callable[..., Worker] = ThreadWorker,
    n_workers: int = 1,
    capped: bool = False,
    **chosen: Any,
) -> Engine:
    """An engine as `open_engine` would put it together, to be entered by the caller."""
    make = partial(_one, model)
    choices = {CHECKPOINT: Choice("onnx", "cpu", "fp32")}
    settings = Settings(**{"threads": 2, **chosen})
    reader = G2PThread(pronounce or Spelling().pronounce)
    return assemble([worker(make) for _ in range(n_workers)], choices, voices, reader, settings, capped=capped)


def _one(model: Callable[[], Model]) -> dict[str, Model]:
    return {CHECKPOINT: model()}


HEART = SpeechParams("af_heart")


def spoken_with(**params: Any) -> SpeechParams:
    """The usual voice, unless another is given."""
    return replace(HEART, **params)


class Running:
    """An engine in an event loop of its own thread, for tests that are not asynchronous."""

    def __init__(self, engine: Engine, portal: BlockingPortal) -> None:
        self.engine = engine
        self.portal = portal

    def speak(self, text: str, **params: Any) -> Speech:
        return self.portal.call(self.engine.speak, text, spoken_with(**params))

    def stream(self, text: str, *, delivery: Delivery = "live", **params: Any) -> list[Speech]:
        async def all_of_it() -> list[Speech]:
            stream = self.engine.stream(text, spoken_with(**params), delivery=delivery)
            return [speech async for speech in stream]

        return self.portal.call(all_of_it)


@contextmanager
def running(engine: Engine) -> Iterator[Running]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(engine):
        yield Running(engine, portal)
