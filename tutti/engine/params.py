"""Check how a text shall be spoken before anything is spoken."""

from tutti.model.prosody import check_prosody, find_emotion
from tutti.model.validation import check_speed
from tutti.speech import Prosody, SpeechParams
from tutti.text.language import language
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import parse


def check_params(params: SpeechParams) -> None:
    """Raise InvalidInput for the first field that cannot be met, without an engine."""
    for voice in (params.voice, params.style):
        if voice is not None:
            parse(voice)
    check_speed(params.speed)
    check_prosody(Prosody(params.pitch, params.pitch_range, params.energy))
    if params.emotion is not None:
        find_emotion(params.emotion)
    if params.language is not None:
        language(params.language)
    UserLexicon.of(params.lexicon)
