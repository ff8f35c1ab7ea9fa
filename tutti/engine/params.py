"""Check the parameters of a request, and apply the emotion, a preset of other parameters."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from tutti.errors import InvalidInput
from tutti.model.prosody import check_prosody, clamp_speed, combine, find_emotion
from tutti.model.validation import check_speed
from tutti.speech import Prosody, SpeechParams
from tutti.text.language import request_language
from tutti.text.marks import MAX_VOICE_MARK, MAX_VOICES, voices_named
from tutti.text.options import CodeBlocks, TextOptions, find_code_blocks, normalization
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voices, parse_blend, resolve_aliases

SEARCHED_AT_ONCE = 100_000  # characters of a text in one turn of the event loop; more holds it for longer
FEW_WORDS = 100  # a lexicon of so many words is checked in a millisecond; a larger one must not block the event loop
DEFAULT_LANGUAGE = "en-us"  # of a voice that is not looked up yet


def text_options(params: SpeechParams, code_blocks: CodeBlocks) -> TextOptions:
    """How the text of a request is read; `code_blocks` unless it says otherwise."""
    _, detect_language = request_language(params.language, DEFAULT_LANGUAGE)
    return TextOptions(
        find_code_blocks(params.code_blocks) if params.code_blocks else code_blocks,
        detect_language,
        normalization(params.normalization),
        frozenset(params.voice_names),
        params.with_words,
    )


def check_params(params: SpeechParams) -> None:
    """Raise InvalidInput for the first invalid field; the lexicon is checked by LexiconChecker."""
    for voice in (params.voice, params.style):
        if voice is not None:
            parse_blend(voice)
    check_speed(params.speed)
    check_prosody(Prosody(params.pitch, params.pitch_range, params.energy))
    if params.emotion is not None:
        find_emotion(params.emotion)
    request_language(params.language, DEFAULT_LANGUAGE)
    text_options(params, "read")


async def check_voices(text: str, aliases: Mapping[str, str], voices: Voices) -> None:
    """Raise for a voice that the text names and that does not exist. A long text is searched in several turns."""
    names: set[str] = set()
    for start in range(0, len(text), SEARCHED_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        names.update(voices_named(text[start : start + SEARCHED_AT_ONCE + MAX_VOICE_MARK]))
        if len(names) > MAX_VOICES:
            raise InvalidInput(f"the text names more than {MAX_VOICES} voices and blends", param="input")
    for name in names:
        voices.get(resolve_aliases(name, aliases))


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
