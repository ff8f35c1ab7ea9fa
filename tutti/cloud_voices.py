"""Voices of cloud services by their names, and the Kokoro voice that is nearest in language and gender."""

import re
from typing import Literal

Gender = Literal["f", "m"]

# Voices of Kokoro to stand for others, the best first, by the letter of the language: female, male.
STAND_INS: dict[str, dict[Gender, tuple[str, ...]]] = {
    "a": {
        "f": ("af_heart", "af_bella", "af_sarah", "af_kore", "af_aoede", "af_nova"),
        "m": ("am_michael", "am_fenrir", "am_puck", "am_echo"),
    },
    "b": {"f": ("bf_emma", "bf_isabella", "bf_alice", "bf_lily"), "m": ("bm_george", "bm_fable", "bm_lewis")},
    "e": {"f": ("ef_dora",), "m": ("em_alex", "em_santa")},
    "f": {"f": ("ff_siwis",), "m": ()},
    "h": {"f": ("hf_alpha", "hf_beta"), "m": ("hm_omega", "hm_psi")},
    "i": {"f": ("if_sara",), "m": ("im_nicola",)},
    "j": {"f": ("jf_alpha", "jf_gongitsune", "jf_tebukuro", "jf_nezumi"), "m": ("jm_kumo",)},
    "p": {"f": ("pf_dora",), "m": ("pm_alex", "pm_santa")},
    "z": {
        "f": ("zf_xiaoxiao", "zf_xiaoyi", "zf_xiaobei", "zf_xiaoni"),
        "m": ("zm_yunxi", "zm_yunjian", "zm_yunyang", "zm_yunxia"),
    },
}
# OpenAI's thirteen voices. The first five exist in Kokoro under the same name.
OPENAI_VOICES = {
    **{"alloy": "af_alloy", "echo": "am_echo", "fable": "bm_fable", "onyx": "am_onyx", "nova": "af_nova"},
    **{"ash": "am_michael", "ballad": "bm_george", "cedar": "am_fenrir", "verse": "am_puck"},
    **{"coral": "af_bella", "marin": "af_heart", "sage": "af_sarah", "shimmer": "af_kore"},
}
LETTERS = {"es": "e", "fr": "f", "hi": "h", "it": "i", "ja": "j", "pt": "p", "zh": "z", "cmn": "z"}
AMERICAN = ("us", "ca")  # all other English is nearer to British

# Names with a locale, en-US-JennyNeural (Azure) and en-US-Chirp3-HD-Kore (Google). Those beside each other in a list
# get different voices, so that a dialogue keeps two.
LOCAL_NAMES: dict[Gender, tuple[str, ...]] = {
    "f": (
        *("jenny", "aria", "ava", "emma", "sara", "jane", "nancy", "michelle", "monica", "amber", "ana", "ashley"),
        *("cora", "elizabeth", "amanda", "phoebe", "serena", "sonia", "libby", "maisie", "abbi", "bella", "hollie"),
        *("olivia", "ada", "natasha", "clara", "emily", "neerja", "leah", "molly", "elvira", "dalia", "ximena"),
        *("abril", "paloma", "elena", "denise", "eloise", "vivienne", "brigitte", "celeste", "sylvie", "swara"),
        *("ananya", "kavya", "elsa", "isabella", "fabiola", "irma", "palmira", "nanami", "aoi", "mayu", "shiori"),
        *("francisca", "thalita", "raquel", "brenda", "fernanda", "xiaoxiao", "xiaoyi", "xiaochen", "xiaohan"),
        *("xiaomeng", "xiaomo", "xiaoqiu", "xiaorou", "xiaorui", "xiaoshuang", "xiaoxuan", "xiaoyan", "xiaoyou"),
        *("xiaozhen", "kore", "aoede", "leda", "zephyr", "callirrhoe", "autonoe", "despina", "erinome", "gacrux"),
        *("laomedeia", "pulcherrima", "sulafat", "vindemiatrix", "achernar"),
    ),
    "m": (
        *("guy", "davis", "andrew", "brian", "tony", "jason", "christopher", "eric", "jacob", "roger", "steffan"),
        *("brandon", "adam", "derek", "dustin", "lewis", "samuel", "ryan", "thomas", "alfie", "elliot", "ethan"),
        *("noah", "oliver", "ollie", "william", "liam", "connor", "mitchell", "luke", "prabhat", "alvaro", "jorge"),
        *("alonso", "tomas", "henri", "alain", "remy", "jerome", "maurice", "yves", "antoine", "jean", "thierry"),
        *("madhur", "aarav", "kunal", "rehaan", "diego", "giuseppe", "gianni", "benigno", "cataldo", "lisandro"),
        *("keita", "daichi", "naoki", "antonio", "duarte", "donato", "fabio", "humberto", "julio", "nicolau"),
        *("yunxi", "yunjian", "yunyang", "yunxia", "yunfeng", "yunhao", "yunye", "yunze", "puck", "fenrir"),
        *("charon", "orus", "achird", "algenib", "algieba", "alnilam", "enceladus", "iapetus", "rasalgethi"),
        *("sadachbia", "sadaltager", "schedar", "umbriel", "zubenelgenubi"),
    ),
}
# Names that stand alone (Polly, ElevenLabs), by letter and gender.
PLAIN_NAMES: dict[str, dict[Gender, tuple[str, ...]]] = {
    "a": {
        "f": (
            *("joanna", "salli", "kendra", "kimberly", "ruth", "danielle", "ivy", "rachel", "domi", "elli"),
            *("matilda", "laura", "freya", "grace", "serena", "aria"),
        ),
        "m": (
            *("matthew", "joey", "stephen", "gregory", "justin", "kevin", "patrick", "josh", "antoni", "arnold"),
            *("sam", "chris", "will", "bill", "roger", "clyde", "ethan", "callum", "charlie"),
        ),
    },
    "b": {"f": ("amy", "emma", "charlotte", "dorothy"), "m": ("brian", "arthur", "dave", "joseph")},
    "e": {
        "f": ("lucia", "conchita", "lupe", "mia", "penelope"),
        "m": ("enrique", "sergio", "miguel", "pedro", "andres"),
    },
    "f": {"f": ("lea", "léa", "celine", "céline", "gabrielle"), "m": ("mathieu", "remi", "rémi")},
    "h": {"f": ("aditi", "kajal"), "m": ()},
    "i": {"f": ("bianca", "carla"), "m": ("giorgio", "adriano")},
    "j": {"f": ("mizuki", "kazuha", "tomoko"), "m": ("takumi",)},
    "p": {"f": ("camila", "vitoria", "vitória", "ines", "inês"), "m": ("ricardo", "thiago", "cristiano")},
    "z": {"f": ("zhiyu",), "m": ()},
}
# Google's voices with a letter: which of them are male.
MALE_LETTERS = {"en-us": "abdijmq", "en-gb": "bdo", "it": "cd", "ja": "cd", "hi": "bc", "cmn": "bc"}

# What `_choose` needs for each of them.
_PLAIN = {
    name: (letter, gender, name, n)
    for letter, by_gender in PLAIN_NAMES.items()
    for gender, names in by_gender.items()
    for n, name in enumerate(names)
}
_LOCAL = re.compile(r"(?P<language>[a-z]{2,3})-(?P<country>[a-z]{2,4})-(?P<rest>[a-z][\w:-]{0,60})", re.ASCII)
_LONG = re.compile(r"microsoft server speech text to speech voice \(([a-z]{2,3}-[a-z]{2}), ?(\w{1,60})\)", re.ASCII)
_SUFFIX = re.compile(r"(multilingual|turbo)*(neural|:.*)?(v\d)?$")
_GOOGLE = re.compile(
    r"(?:standard|wavenet|neural2|studio|news|casual|polyglot|journey|chirp-hd)-([a-z])|chirp3?-hd-(\w+)"
)


def stand_in(name: str) -> str | None:
    """Return the Kokoro voice for a voice of another service; none if the name is unknown or Kokoro lacks its language.

    French has no male voice in Kokoro, and gets the female one.
    """
    key = _plain_form(name)
    local = _LOCAL.fullmatch(key)
    if local is None:
        return _choose(*_PLAIN[key]) if key in _PLAIN else None
    letter = _letter(local)
    if letter is None:
        return None
    google = _GOOGLE.fullmatch(local["rest"])
    if google and google[1]:
        language, locale = local["language"], f"{local['language']}-{local['country']}"
        male = MALE_LETTERS.get(locale) or MALE_LETTERS.get(language, "bd")
        return _choose(letter, "m" if google[1] in male else "f", "", ord(google[1]))
    bare = google[2] if google else _SUFFIX.sub("", local["rest"])
    return next(
        (_choose(letter, gender, bare, names.index(bare)) for gender, names in LOCAL_NAMES.items() if bare in names),
        None,
    )


def hint(name: str) -> str:
    """Return what to use instead of a voice of another service, for an error; "" if the name is not like theirs."""
    if voice := stand_in(name):
        return f"the nearest is {voice}"
    local = _LOCAL.fullmatch(_plain_form(name))
    if local is None:
        return ""
    letter = _letter(local)
    if letter is None:
        return f"Kokoro has no voice for {local['language']}-{local['country'].upper()}"
    return (
        f"voices for its language: {', '.join(voice for voices in STAND_INS[letter].values() for voice in voices[:2])}"
    )


def stand_in_notice(name: str, voice: str) -> str:
    return f"voice {name.strip()[:80]} is not one of Kokoro's; {voice} speaks instead"


def _plain_form(name: str) -> str:
    key = name.strip().lower()
    long = _LONG.fullmatch(key)
    return f"{long[1]}-{long[2]}" if long else key


def _letter(local: re.Match[str]) -> str | None:
    if local["language"] == "en":
        return "a" if local["country"] in AMERICAN else "b"
    return LETTERS.get(local["language"])


def _choose(letter: str, gender: Gender, name: str, number: int) -> str:
    """Return the voice of the same name, else the one that this number falls on."""
    voices = STAND_INS[letter][gender] or STAND_INS[letter]["f"]
    return next((voice for voice in voices if voice[3:] == name), voices[number % len(voices)])
