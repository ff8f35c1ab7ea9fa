"""What the server needs of an engine, and nothing more."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Protocol

from tutti.engine.monitor import Podium
from tutti.speech import Speech
from tutti.text.chunk import Chunk
from tutti.text.incremental import Text


class Speaks(Protocol):
    """An engine as the server sees it."""

    @property
    def ready(self) -> bool: ...

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The models it runs; the first is the one when none is asked for."""
        ...

    @property
    def podium(self) -> Podium:
        """From where its batching is seen and led."""
        ...

    async def start(self) -> None: ...

    async def close(self, grace_s: float = ...) -> None: ...

    def stream(
        self,
        text: Text,
        *,
        voice: str,
        style: str | None = None,
        speed: float = 1.0,
        pitch: float = 0.0,
        pitch_range: float = 1.0,
        energy: float = 0.0,
        emotion: str | None = None,
        language: str | None = None,
        lexicon: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
        seed: int | None = None,
        model: str | None = None,
        caller: str = "",
        bulk: bool = False,
        whole: bool = False,
        pause_s: float | None = None,
    ) -> AsyncGenerator[Speech]:
        """Speech chunk by chunk; closing the generator ends all work for it."""
        ...

    def phonemize(self, text: str, language: str, lexicon: Mapping[str, str] | None = None) -> AsyncIterator[Chunk]:
        """The text as the model will read it, chunk by chunk."""
        ...

    def stats(self) -> dict[str, Any]: ...

    def workers(self) -> dict[str, Any]: ...
