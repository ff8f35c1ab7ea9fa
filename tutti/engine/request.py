"""A request for speech as the engine takes it, and what of it is checked before anything is done for it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tutti.admission.ticket import NO_CLIENT, Ticket
from tutti.errors import InvalidInput
from tutti.model.prosody import check_prosody, clamp_speed, combine, find_emotion
from tutti.model.validation import check_speed
from tutti.speech import Prosody, SpeechParams
from tutti.text.incremental import Text
from tutti.text.language import request_language
from tutti.text.marks import MAX_VOICE_MARK, MAX_VOICES, voices_named
from tutti.text.options import DEFAULT_OPTIONS, TextOptions, find_code_blocks, find_pauses, normalization
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices, resolve_aliases

MAX_TEXT = 2_000_000  # characters; a long novel has about one million
SEARCHED_AT_ONCE = 100_000  # characters of a text in one turn of the event loop; more holds it for longer
FEW_WORDS = 100  # a lexicon of this size is checked in a millisecond; a larger one must not block the event loop
DEFAULT_LANGUAGE = "en-us"  # of a voice that is not looked up yet


class StreamRequest(NamedTuple):
    """A text, how it is spoken, and the ticket of the request that it belongs to.

    The text may be an iterator of pieces of any size (text that is still being written): each sentence is spoken as
    soon as no later piece can change it; a piece that is None, or `pause_s` without any piece, speaks the text so far.
    """

    text: Text
    params: SpeechParams
    ticket: Ticket = NO_CLIENT
    pause_s: float | None = None


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request with valid parameters, and its language, options and checkpoint."""

    request: StreamRequest
    params: SpeechParams  # its emotion applied
    language: str | None  # code; none: that of its voice
    options: TextOptions
    checkpoint: str


def check_request(
    request: StreamRequest, checkpoints: Sequence[str], voices: Voices, defaults: TextOptions
) -> CheckedRequest:
    """Raise InvalidInput for the first invalid field. `checkpoints`: the first is the default.

    Tables of voices and the lexicon are checked when they are looked up: that takes longer.
    """
    text, params = request.text, request.params
    if isinstance(text, str) and len(text) > MAX_TEXT:
        raise InvalidInput(f"the text has {len(text)} characters; the limit is {MAX_TEXT}", param="input")
    language, options = check_params(params, voices, defaults)
    checkpoint = checkpoints[0] if params.model is None else params.model
    if checkpoint not in checkpoints:
        raise InvalidInput(f"unknown model {checkpoint!r}; available: {', '.join(checkpoints)}", param="model")
    return CheckedRequest(request, apply_emotion(params), language, options, checkpoint)


def check_params(
    params: SpeechParams, voices: Voices, defaults: TextOptions = DEFAULT_OPTIONS
) -> tuple[str | None, TextOptions]:
    """Raise InvalidInput for the first invalid field; return the language, none for the voice's own, and the options.

    `defaults`: how code is read and how long pauses are, unless the parameters say so.
    """
    for voice in (params.voice, params.style):
        if voice is not None:
            voices.parse(voice)
    check_speed(params.speed)
    check_prosody(Prosody(params.pitch, params.pitch_range, params.energy))
    if params.emotion is not None:
        find_emotion(params.emotion)
    language, detect_language = request_language(params.language, DEFAULT_LANGUAGE)
    options = TextOptions(
        find_code_blocks(params.code_blocks) if params.code_blocks else defaults.code_blocks,
        detect_language,
        normalization(params.normalization),
        params.voice_names,
        params.voice_rates,
        params.with_words,
        pauses=find_pauses(params.pauses, defaults.pauses),
    )
    return None if params.language is None or detect_language else language, options


async def check_voices(text: str, aliases: Mapping[str, str], voices: Voices) -> list[str]:
    """Return the voices that the text names; raise if one does not exist. A long text is searched in several turns."""
    names: set[str] = set()
    for start in range(0, len(text), SEARCHED_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        names.update(voices_named(text[start : start + SEARCHED_AT_ONCE + MAX_VOICE_MARK]))
        if len(names) > MAX_VOICES:
            raise InvalidInput(f"the text names more than {MAX_VOICES} voices and blends", param="input")
    resolved = [resolve_aliases(name, aliases) for name in names]
    for name in resolved:
        voices.get(name)
    return resolved


class LexiconChecker:
    """Checks and builds the lexicons of requests: large ones in a thread, one at a time."""

    def __init__(self) -> None:
        self._building = asyncio.Lock()

    async def build(self, pronunciations: Mapping[str, str]) -> UserLexicon:
        """Raise InvalidInput for the first invalid entry."""
        if len(pronunciations) <= FEW_WORDS:
            return UserLexicon.of(pronunciations)
        async with self._building:
            return await asyncio.to_thread(UserLexicon.of, pronunciations)


def apply_emotion(params: SpeechParams) -> SpeechParams:
    """The same parameters with the emotion applied to speed, pitch, pitch range and energy."""
    if params.emotion is None:
        return params
    preset = find_emotion(params.emotion)
    prosody = combine(Prosody(params.pitch, params.pitch_range, params.energy), preset.prosody)
    return replace(
        params,
        speed=clamp_speed(params.speed * preset.speed),
        pitch=prosody.pitch,
        pitch_range=prosody.pitch_range,
        energy=prosody.energy,
        emotion=None,
    )
