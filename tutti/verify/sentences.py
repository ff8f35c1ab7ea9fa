"""The sentences of a verification, each with only one spelling, and their American phonemes.

The phonemes are fixed, so that the network is measured and not the text front end.
"""

from dataclasses import dataclass
from itertools import cycle, islice

from tutti.speech import Utterance
from tutti.text import vocab
from tutti.voices import Voices

# No common factor with each other or with the sentences: a combination repeats only after 560 rows.
VOICES = ("af_heart", "bm_george", "am_michael", "bf_emma", "af_bella", "am_fenrir", "bf_isabella")
SPEEDS = (1.0, 1.15, 0.9, 1.0, 1.3)
SENTENCES = (
    ("All voices, one pass.", "ˈɔl vˈYsᵻz, wˈʌn pˈæs."),
    ("Good morning!", "ɡˈʊd mˈɔɹnɪŋ!"),
    (
        "The harbor was quiet, and the boats rocked gently in the dark water.",
        "ðə hˈɑɹbəɹ wʌz kwˈIət, ænd ðə bˈOts ɹˈɑkt ʤˈɛntli ɪn ðə dˈɑɹk wˈɔTəɹ.",
    ),
    (
        "She opened the window because the room was far too warm.",
        "ʃˌi ˈOpᵊnd ðə wˈɪndO bəkˈʌz ðə ɹˈum wʌz fˈɑɹ tˈu wˈɔɹm.",
    ),
    (
        "Would you rather walk along the river, or take the early train home?",
        "wˌʊd ju ɹˈæðəɹ wˈɔk əlˈɔŋ ðə ɹˈɪvəɹ, ɔɹ tˈAk ði ˈɜɹli tɹˈAn hˈOm?",
    ),
    ("The children laughed.", "ðə ʧˈɪldɹᵊn lˈæft."),
    (
        "After the long winter, the first green leaves came out almost overnight, and everybody sat outside again.",
        "ˈæftəɹ ðə lˈɔŋ wˈɪntəɹ, ðə fˈɜɹst ɡɹˈin lˈivz kˈAm ˈWt ˈɔlmOst ˌOvəɹnˈIt, ænd ˈɛvɹibədi sˈæt ˌWtsˈId əɡˈɛn.",
    ),
    ("He told me a story about a stubborn old horse.", "hˌi tˈOld mˌi ɐ stˈɔɹi əbˈWt ɐ stˈʌbəɹn ˈOld hˈɔɹs."),
    ("Please leave the key under the stone beside the door.", "plˈiz lˈiv ðə kˈi ˈʌndəɹ ðə stˈOn bəsˈId ðə dˈɔɹ."),
    ("Nobody answered.", "nˈObˌɑdi ˈænsəɹd."),
    (
        "The bakery on the corner smells of butter and sugar every morning.",
        "ðə bˈAkəɹi ˌɔn ðə kˈɔɹnəɹ smˈɛlz ʌv bˈʌTəɹ ænd ʃˈʊɡəɹ ˈɛvəɹi mˈɔɹnɪŋ.",
    ),
    (
        "When the music stopped, the whole hall was silent for a moment; then people began to clap and cheer.",
        "wˌɛn ðə mjˈuzɪk stˈɑpt, ðə hˈOl hˈɔl wʌz sˈIlənt fɔɹ ɐ mˈOmᵊnt; ðˈɛn pˈipᵊl bəɡˈæn tə klˈæp ænd ʧˈɪɹ.",
    ),
    ("It is only a small mistake.", "ˌɪt ɪz ˈOnli ɐ smˈɔl məstˈAk."),
    (
        "My grandmother planted these apple trees when she was a young woman.",
        "mˌI ɡɹˈændmˌʌðəɹ plˈæntᵻd ðiz ˈæpᵊl tɹˈiz wˌɛn ʃi wʌz ɐ jˈʌŋ wˈʊmən.",
    ),
    (
        "Thunder rolled over the hills, but the rain never came.",
        "θˈʌndəɹ ɹˈOld ˈOvəɹ ðə hˈɪlz, bˌʌt ðə ɹˈAn nˈɛvəɹ kˈAm.",
    ),
    (
        "Write your name at the top of the page, fold it twice, and hand it to the person on your left.",
        "ɹˈIt jʊɹ nˈAm æt ðə tˈɑp ʌv ðə pˈAʤ, fˈOld ɪt twˈIs, ænd hˈænd ɪt tə ðə pˈɜɹsᵊn ˌɔn jʊɹ lˈɛft.",
    ),
)


@dataclass(frozen=True, slots=True)
class CheckSentence:
    """A text, and the row that speaks it."""

    text: str
    row: Utterance


def sentences(voices: Voices, n: int) -> list[CheckSentence]:
    """n rows, short and long, with voices and speeds in turn."""
    return [
        CheckSentence(text, Utterance(vocab.encode(phonemes), voices.get(name).style(len(phonemes)), speed))
        for (text, phonemes), name, speed in islice(zip(cycle(SENTENCES), cycle(VOICES), cycle(SPEEDS)), n)
    ]
