"""What the routes share, in one value."""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

from tutti.server.aliases import Cast, own_names, voice_expression
from tutti.server.cache import Cache
from tutti.server.encoding import Room, Sound
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.errors import TooLarge
from tutti.server.lifecycle import Lifecycle
from tutti.server.middleware.rate_limit import Limits
from tutti.settings import Settings
from tutti.text.lexicon_file import stamp
from tutti.voices import parse


@dataclass(frozen=True, slots=True)
class Service:
    """The engine with everything that stands between it and the wire."""

    engine: EngineProtocol
    settings: Settings
    lifecycle: Lifecycle
    limits: Limits
    cache: Cache[Sound]
    cast: Cast
    n_ahead: int  # first chunks of a stream
    # Encoding must not hold up the event loop, nor wait behind other people's threads.
    encoder_threads: Executor = field(default_factory=lambda: ThreadPoolExecutor(os.cpu_count(), "encoding"))

    @classmethod
    def of(cls, engine: EngineProtocol, settings: Settings) -> "Service":
        names, voice = chosen_voices(settings)
        return cls(
            engine,
            settings,
            Lifecycle(engine),
            Limits(settings.rate_requests, settings.rate_characters),
            Cache(round(settings.cache_mb * 1e6)),
            Cast(engine.checkpoints, names, voice),
            settings.stream_bypass_chunks,
        )

    def room(self) -> Room:
        """What one answer may take that is held back until it is whole."""
        return Room(self.settings.max_whole_mb * 1e6)

    def streaming_mode(self) -> tuple[str, int]:
        """How a stream's chunks reach the model, and how many of its first ones go ahead of other work."""
        if not self.engine.workers()["batchingEnabled"]:
            return "direct", self.n_ahead
        return ("first-chunks-ahead" if self.n_ahead else "batched"), self.n_ahead

    def lexicon_stamp(self) -> object:
        """What changes with the operator's pronunciations."""
        return stamp(self.settings.lexicon) if self.settings.lexicon else None

    def check_text(self, n_characters: int, caller: str, param: str = "input") -> None:
        """Raises where a text is too long for one request or for what this caller may still ask."""
        max_text = self.settings.max_text
        if n_characters > max_text:
            raise TooLarge(
                f"the text has {n_characters:,} characters; one request takes {max_text:,} (TUTTI_MAX_TEXT)",
                param=param,
            )
        self.limits.characters.take(caller, n_characters)


def chosen_voices(settings: Settings) -> tuple[dict[str, str], str]:
    """Every name for a voice, and the voice when none is asked for; raises where one does not exist."""
    names = own_names(settings.voice_names)
    voice = voice_expression(settings.voice, names)
    parse(voice)
    return names, voice
