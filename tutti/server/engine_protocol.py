"""The part of the engine that the server uses."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Protocol

from tutti.admission.loop_budget import LoopBudget
from tutti.admission.refusals import Refusals
from tutti.admission.ticket import Delivery
from tutti.engine.monitor import Monitor
from tutti.engine.request import StreamRequest
from tutti.speech import Speech
from tutti.text.chunk import Chunk
from tutti.voices import Voices


class EngineProtocol(Protocol):
    """An engine as the server sees it."""

    @property
    def ready(self) -> bool: ...

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The loaded models; the first is the default."""
        ...

    @property
    def monitor(self) -> Monitor:
        """The view of the queues, and the switch for the active policy."""
        ...

    @property
    def voices(self) -> Voices:
        """All voices: what is known of them, and their tables."""
        ...

    @property
    def batching_enabled(self) -> bool: ...

    @property
    def frontend_ready(self) -> bool: ...

    @property
    def loop_budget(self) -> LoopBudget:
        """What may begin in a turn of the event loop."""
        ...

    @property
    def refusals(self) -> Refusals:
        """What it has refused a moment ago."""
        ...

    @property
    def n_streams(self) -> int:
        """How many streams run."""
        ...

    @property
    def passages_at_once(self) -> int: ...

    async def start(self) -> None: ...

    async def close(self, grace_s: float = ...) -> None: ...

    async def unload(self, caller: str = ...) -> int:
        """Give the memory of the models back until the next stream; return how many workers did so."""
        ...

    def stream(self, request: StreamRequest) -> AsyncGenerator[Speech]:
        """Yield speech chunk by chunk; closing the generator cancels the rest."""
        ...

    def first_audio(self, waited_s: float, delivery: Delivery) -> None:
        """Record how long a request has waited since it arrived until the first bytes of its audio could be sent."""
        ...

    def count_refusal(self) -> None:
        """Count a stream that was refused before it was asked for here."""
        ...

    def phonemize(self, text: str, language: str, lexicon: Mapping[str, str] | None = None) -> AsyncIterator[Chunk]:
        """Yield the chunks that the model would read."""
        ...

    def stats(self) -> dict[str, Any]: ...

    def workers(self) -> dict[str, Any]: ...
