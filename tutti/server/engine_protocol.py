"""What the server needs of an engine, and nothing more."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Protocol

from tutti.engine.monitor import Monitor
from tutti.speech import Delivery, Speech, SpeechParams
from tutti.text.chunk import Chunk
from tutti.text.incremental import Text


class EngineProtocol(Protocol):
    """An engine as the server sees it."""

    @property
    def ready(self) -> bool: ...

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The models it runs; the first is the one when none is asked for."""
        ...

    @property
    def monitor(self) -> Monitor:
        """From where its batching is seen and led."""
        ...

    async def start(self) -> None: ...

    async def close(self, grace_s: float = ...) -> None: ...

    def stream(
        self,
        text: Text,
        params: SpeechParams,
        *,
        caller: str = "",
        delivery: Delivery = "live",
        pause_s: float | None = None,
    ) -> AsyncGenerator[Speech]:
        """Speech chunk by chunk; closing the generator ends all work for it."""
        ...

    def phonemize(self, text: str, language: str, lexicon: Mapping[str, str] | None = None) -> AsyncIterator[Chunk]:
        """The text as the model will read it, chunk by chunk."""
        ...

    def stats(self) -> dict[str, Any]: ...

    def workers(self) -> dict[str, Any]: ...
