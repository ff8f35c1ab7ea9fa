"""The languages that Kokoro speaks; the names of its voices begin with the letter of their language."""

from collections.abc import Mapping
from dataclasses import dataclass

from tutti.errors import UnknownLanguage, did_you_mean

AUTO = "auto"  # the language of each sentence is detected


@dataclass(frozen=True, slots=True)
class Language:
    letter: str
    code: str
    name: str
    voice: str  # one that speaks it
    aliases: tuple[str, ...] = ()
    accent: str = ""  # code of the language whose sounds it has, if it has none of its own


LANGUAGES = (
    Language("a", "en-us", "American English", "af_heart", ("en", "english", "american")),
    Language("b", "en-gb", "British English", "bf_emma", ("british",)),
    Language("e", "es", "Spanish", "ef_dora", ("es-es", "es-mx", "es-us", "es-419", "spanish")),
    Language("f", "fr", "French", "ff_siwis", ("fr-fr", "fr-ca", "french")),
    Language("h", "hi", "Hindi", "hf_alpha", ("hi-in", "hindi")),
    Language("i", "it", "Italian", "if_sara", ("it-it", "italian")),
    Language("j", "ja", "Japanese", "jf_alpha", ("ja-jp", "japanese")),
    Language("p", "pt-br", "Brazilian Portuguese", "pf_dora", ("pt", "pt-pt", "portuguese")),
    Language("z", "zh", "Mandarin Chinese", "zf_xiaobei", ("zh-cn", "zh-hans", "cmn", "chinese", "mandarin")),
)
# Languages that Kokoro does not speak, but checkpoints of others: each with its code in the place of a letter.
OF_OTHERS = (
    Language("de", "de", "German", "", ("de-de", "de-at", "de-ch", "german")),
    Language("sv", "sv", "Swedish", "", ("sv-se", "sv-fi", "swedish")),
    Language("pl", "pl", "Polish", "", ("pl-pl", "polish")),
    Language("ru", "ru", "Russian", "", ("ru-ru", "russian")),
    Language("ar", "ar", "Arabic", "", ("ar-sa", "ar-eg", "ar-ae", "arabic")),
    Language("vi", "vi", "Vietnamese", "", ("vi-vn", "vietnamese")),
    Language("zh-1.1", "zh-1.1", "Mandarin Chinese in the symbols of Kokoro 1.1", ""),
)
# English of other countries: dates, numbers and abbreviations are theirs, the sounds are British.
REGIONS = (
    Language("b", "en-in", "Indian English", "bf_emma", (), "en-gb"),
    Language("b", "en-au", "Australian English", "bf_emma", ("en-nz",), "en-gb"),
    Language("b", "en-ie", "Irish English", "bf_emma", (), "en-gb"),
)
# Languages that Kokoro does not speak, so that a request for one is not taken for a typing error.
OTHERS = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "ga": "Irish", "he": "Hebrew",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "ko": "Korean", "la": "Latin",
    "lt": "Lithuanian", "lv": "Latvian", "ms": "Malay", "nb": "Norwegian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "vi": "Vietnamese", "yue": "Cantonese",
}  # fmt: skip

_BY_NAME = {name: lang for lang in LANGUAGES for name in (lang.letter, lang.code, *lang.aliases)}
_BY_NAME |= {name: lang for lang in (*REGIONS, *OF_OTHERS) for name in (lang.code, *lang.aliases)}
_OTHERS_BY_NAME = {
    name: name_in_english for code, name_in_english in OTHERS.items() for name in (code, name_in_english.lower())
}


def find_language(name: str) -> Language:
    """Find a language by code, voice letter or alias, in upper or lower case."""
    key = name.strip().lower().replace("_", "-")
    if key in _BY_NAME:
        return _BY_NAME[key]
    spoken = ", ".join(f"{lang.code} ({lang.name})" for lang in (*LANGUAGES, *REGIONS, *OF_OTHERS))
    if other := _OTHERS_BY_NAME.get(key) or _OTHERS_BY_NAME.get(key.partition("-")[0]):
        raise UnknownLanguage(f"{other} is not read here; known: {spoken}", param="language")
    names = [each for each in _BY_NAME if len(each) > 1]
    raise UnknownLanguage(
        f"unknown language {name!r}{did_you_mean(key, names)}; known: {spoken}, or {AUTO}", param="language"
    )


def check_spoken(code: str, model: str, of_models: Mapping[str, str]) -> None:
    """Raise UnknownLanguage if this model does not speak the language; `of_models`: what those of others speak."""
    language = find_language(code)
    if language not in OF_OTHERS or of_models.get(model) == code:
        return
    speaking = [name for name, other in of_models.items() if other == code]
    cure = f"choose model {' or '.join(speaking)}" if speaking else "add a checkpoint that does with TUTTI_MODELS"
    raise UnknownLanguage(f"the model {model} does not speak {language.name}; {cure}", param="language")


def language_of_model(code: str, model_language: str | None) -> str:
    """Return the language in the form that a checkpoint of others has of it: Kokoro 1.1 has its own Chinese."""
    if model_language and same_language(code, model_language) and find_language(model_language) in OF_OTHERS:
        return model_language
    return code


def request_language(name: str | None, default: str) -> tuple[str, bool]:
    """Return the code for the `language` of a request, and whether each sentence's own is to be detected."""
    detected = name is not None and name.strip().lower() == AUTO
    return find_language(default if name is None or detected else name).code, detected


def language_name(code: str) -> str:
    """Return the name of any language, also of one that Kokoro does not speak."""
    return find_language(code).name if code in _BY_NAME else OTHERS.get(code, code)


def same_language(code: str, other: str) -> bool:
    """Tell whether two codes differ at most by their region."""
    return code.partition("-")[0] == other.partition("-")[0]
