"""The state that all routes share."""

import time
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import AbstractContextManager, ExitStack, aclosing
from dataclasses import dataclass, replace

from starlette.requests import HTTPConnection

from tutti.admission.refusals import Asking
from tutti.admission.ticket import Ticket
from tutti.engine.checkpoint_folder import CheckpointFolder
from tutti.engine.checkpoints import checkpoint_folders, choose_checkpoints
from tutti.errors import QueueFull, ReplicaFull
from tutti.lexicons import Lexicons, LexiconsOfCaller
from tutti.model.choice import Choice
from tutti.model.light.weights import NANO_PATH as NANO_WEIGHTS
from tutti.model.light.weights import PATH as LIGHT_WEIGHTS
from tutti.model.light.weights import TEXT_PATH as TEXT_WEIGHTS
from tutti.server.aliases import Aliases, voice_aliases
from tutti.server.audio_memory import AudioMemory, HeldAudio
from tutti.server.cache import ResponseCache
from tutti.server.encoders import Encoders
from tutti.server.encoding import FAST_FORMATS, AnswerBudget, WholeAudio
from tutti.server.engine_protocol import EngineProtocol
from tutti.server.errors import TooLarge
from tutti.server.lifecycle import Lifecycle
from tutti.server.middleware.rate_limit import RateLimits
from tutti.server.request import SpeechRequest
from tutti.settings import Settings
from tutti.speech import Speech
from tutti.text.incremental import Delta
from tutti.text.user_lexicon import file_stamp
from tutti.voices import Voices, resolve_aliases
from tutti.weights import MODELS


@dataclass(frozen=True, slots=True)
class Service:
    """The engine, and everything else that the routes need."""

    engine: EngineProtocol
    settings: Settings
    lifecycle: Lifecycle
    limits: RateLimits
    cache: ResponseCache[WholeAudio]
    aliases: Aliases
    memory: AudioMemory
    models: Mapping[str, object]  # what each checkpoint's audio depends on
    lexicons: Lexicons  # that callers have stored
    own_models: Mapping[str, CheckpointFolder]  # checkpoints with voices of their own
    # With threads of its own: encoding must not block the event loop, nor wait behind other work in threads.
    encoders: Encoders

    @classmethod
    def of(cls, engine: EngineProtocol, settings: Settings) -> "Service":
        voices, default_voice = resolve_voice_settings(settings, engine.voices)
        return cls(
            engine,
            settings,
            Lifecycle(engine),
            RateLimits(settings.rate_requests, settings.rate_characters),
            ResponseCache(round(settings.cache_mb * 1e6)),
            Aliases(engine.checkpoints, voices, default_voice, engine.voices, settings.any_model).of_model(None),
            AudioMemory(settings.max_audio_mb * 1e6),
            {name: model_stamp(choice) for name, choice in choose_checkpoints(settings).items()},
            Lexicons(settings.data / "lexicons"),
            checkpoint_folders(settings),
            Encoders(engine.first_audio),
        )

    async def speak(
        self,
        request: SpeechRequest,
        ticket: Ticket,
        live: AsyncIterable[Delta] | None = None,
        pause_s: float | None = None,
    ) -> AsyncGenerator[Speech]:
        """Yield the speech at the requested volume; `live` text replaces that of the request.

        A speech counts as held until the next one is wanted: then it has been sent. Closing closes the engine's stream.
        The encoder records how long the first audio took since the request arrived. Raises MemoryFull, ReplicaFull, and
        QueueFull also if a listener's audio could not be encoded in time.
        """
        self.memory.check()
        held, notices = HeldAudio(self.memory, ticket.caller), request.notices
        until_first = ExitStack()
        try:
            if ticket.delivery == "live" and request.format.name not in FAST_FORMATS:
                until_first.enter_context(self._encoder_place(request.format.name, ticket.max_start_s))
            async with aclosing(self.engine.stream(await request.stream_request(ticket, live, pause_s))) as speeches:
                async for speech in speeches:
                    until_first.close()
                    if notices:
                        speech, notices = replace(speech, notices=(*notices, *speech.notices)), ()
                    speech = request.at_volume(speech)
                    held.set(speech.samples.nbytes)
                    yield speech
                    held.release()
                    del speech  # the next one may take seconds, and thousands of streams may wait for theirs
        except QueueFull as full:
            if self.settings.replica:
                raise self._public(full) from full
            raise
        finally:
            until_first.close()
            held.release()

    def _encoder_place(self, format: str, max_start_s: float | None) -> AbstractContextManager[None]:
        try:
            return self.encoders.place(format, max_start_s or 0.0)
        except QueueFull:
            self.engine.count_refusal()
            raise

    def check_known_refusal(self, caller: str) -> None:
        """Raise if the engine is known to refuse any stream of this caller: that costs less than to read it."""
        asking = Asking(self.engine.checkpoints[0], caller)
        if full := self.engine.refusals.known(asking, time.monotonic()):
            self.engine.count_refusal()
            raise self._public(full)

    def check_start(self, caller: str, max_wait_s: float, *, is_patient: bool) -> None:
        """Raise if a request would wait longer than this for the event loop."""
        try:
            self.engine.loop_budget.check_start(caller, max_wait_s, is_patient=is_patient)
        except QueueFull as full:
            raise self._public(full) from None

    def _public(self, full: QueueFull) -> QueueFull:
        """The error as its caller sees it: another replica may have room."""
        return ReplicaFull(full.message, retry_after_s=full.retry_after_s) if self.settings.replica else full

    def answer_budget(self, caller: str) -> AnswerBudget:
        return AnswerBudget(self.settings.max_whole_mb * 1e6, HeldAudio(self.memory, caller))

    @property
    def n_bypass_chunks(self) -> int:
        """How many chunks of a stream run at once and alone; the other policies batch them all."""
        bypasses = self.engine.batching_enabled and self.settings.policy == "bypass"
        return self.settings.stream_bypass_chunks if bypasses else 0

    @property
    def streaming_mode(self) -> str:
        """How the chunks of a stream reach the model."""
        if not self.engine.batching_enabled:
            return "direct"
        return "bypass-first-chunks" if self.n_bypass_chunks else "batched"

    def aliases_of(self, request: HTTPConnection) -> Aliases:
        """Return the names that the caller of a request may use."""
        return self.aliases_of_caller(request.state.caller)

    def aliases_of_caller(self, caller: str) -> Aliases:
        """Return the names of this server, and those of the private voices and lexicons of a caller."""
        lexicons = LexiconsOfCaller(self.lexicons, caller)
        return replace(self.aliases, known=self.aliases.known.seen_by(caller), lexicons=lexicons)

    def etag(self, request: SpeechRequest, caller: str) -> str:
        """Return the ETag of an answer; it changes with the model, and with every setting that changes the audio."""
        settings = self.settings
        lexicon = file_stamp(settings.lexicon) if settings.lexicon else None
        model = self.models.get(request.params.model or self.aliases.checkpoints[0])
        sound = (model, settings.g2p_url, settings.code_blocks, lexicon, settings.pauses)
        own_voices = self.aliases_of_caller(caller).known.of_model(request.params.model).hashes(request.voices_named())
        return request.etag((*sound, own_voices) if own_voices else sound)

    def check_text(self, n_characters: int, caller: str, param: str = "input") -> None:
        """Raise if a text is too long for one request, or for what is left of the caller's rate."""
        max_text = self.settings.max_text
        if n_characters > max_text:
            raise TooLarge(
                f"the text has {n_characters:,} characters; one request takes {max_text:,} (TUTTI_MAX_TEXT)",
                param=param,
            )
        self.limits.characters.take(caller, n_characters)


def model_stamp(choice: Choice) -> object:
    """Return a value that changes with the weights and the precision of a checkpoint, and with our own networks."""
    weights = (str(choice.path), *file_stamp(choice.path)) if choice.path else MODELS[choice.weights].sha256
    own = (
        (choice.vocoder, {"light": LIGHT_WEIGHTS, "nano": NANO_WEIGHTS}.get(choice.vocoder)),
        (choice.text, TEXT_WEIGHTS if choice.text == "light" else None),
    )
    return (
        (weights, choice.ids) if choice.ids else weights,
        choice.precision,
        [(name, file_stamp(path) if path else None) for name, path in own],
    )


def resolve_voice_settings(settings: Settings, known: Voices) -> tuple[dict[str, str], str]:
    """Return the voice aliases and the default voice, also as `default`; raise if a voice does not exist."""
    aliases = voice_aliases(settings.voice_names, known)
    voice = resolve_aliases(settings.voice, aliases)
    known.parse(voice)
    return {"default": voice, **aliases}, voice
