"""An engine that runs its model in its own threads, as the server wants to see one."""

from collections.abc import AsyncGenerator, Iterable
from typing import Any, cast

from tutti import text as front
from tutti.engine import Engine
from tutti.speech import Speech
from tutti.text.chunk import Chunk
from tutti.voices import Voices

WARM_UP = "Ready."


class Direct:
    """One stream at a time holds the model; nothing is batched across requests."""

    def __init__(self, engine: Engine, voice: str = "af_heart") -> None:
        self._engine = engine
        self._voice = voice
        self.ready = False

    @property
    def voices(self) -> Voices:
        return self._engine._voices

    async def start(self) -> None:
        await self._engine.speak(WARM_UP, voice=self._voice)
        self.ready = True

    async def close(self, grace_s: float = 0) -> None:
        self.ready = False

    def stream(
        self,
        text: str,
        *,
        voice: str,
        style: str | None = None,
        speed: float = 1.0,
        language: str | None = None,
        seed: int | None = None,
        caller: str = "",
        bulk: bool = False,
    ) -> AsyncGenerator[Speech]:
        stream = self._engine.stream(text, voice=voice, style=style, speed=speed, language=language)
        return cast("AsyncGenerator[Speech]", stream)

    def phonemize(self, text: str, language: str) -> Iterable[Chunk]:
        return front.chunks(text, language, self._engine._g2p.pronounce)

    def stats(self) -> dict[str, Any]:
        return {"queue_status": {"current_size": 0, "worker_running": self.ready}, "performance": {}, "config": {}}

    def workers(self) -> dict[str, Any]:
        n_ready = int(self.ready)
        return {"totalWorkers": 1, "readyWorkers": n_ready, "busyWorkers": 0, "queueSize": 0, "batchingEnabled": False}
