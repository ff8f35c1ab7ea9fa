"""The languages that Kokoro speaks; the names of its voices begin with the letter of their language."""

from dataclasses import dataclass

from tutti.errors import UnknownLanguage, did_you_mean


@dataclass(frozen=True, slots=True)
class Language:
    letter: str
    code: str
    name: str
    aliases: tuple[str, ...] = ()


LANGUAGES = (
    Language("a", "en-us", "American English", ("en", "english", "american")),
    Language("b", "en-gb", "British English", ("british",)),
    Language("e", "es", "Spanish", ("es-es", "es-mx", "es-us", "es-419", "spanish")),
    Language("f", "fr", "French", ("fr-fr", "fr-ca", "french")),
    Language("h", "hi", "Hindi", ("hi-in", "hindi")),
    Language("i", "it", "Italian", ("it-it", "italian")),
    Language("j", "ja", "Japanese", ("ja-jp", "japanese")),
    Language("p", "pt-br", "Brazilian Portuguese", ("pt", "pt-pt", "portuguese")),
    Language("z", "zh", "Mandarin Chinese", ("zh-cn", "zh-hans", "cmn", "chinese", "mandarin")),
)

_BY_NAME = {name: lang for lang in LANGUAGES for name in (lang.letter, lang.code, *lang.aliases)}


def find_language(name: str) -> Language:
    """Find a language by code, voice letter or alias, in upper or lower case."""
    key = name.strip().lower().replace("_", "-")
    if key in _BY_NAME:
        return _BY_NAME[key]
    codes = [lang.code for lang in LANGUAGES]
    raise UnknownLanguage(
        f"unknown language {name!r}{did_you_mean(key, _BY_NAME)}; known: {', '.join(codes)}", param="language"
    )
