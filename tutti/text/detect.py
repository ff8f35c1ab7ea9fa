"""Guess the language of a sentence: by its script, or in Latin letters by its most common words.

A guess is made only where it is safe; a short or mixed sentence has none. Ten microseconds for a sentence.
"""

import re
from collections.abc import Iterator

from tutti.text.aligned_text import AlignedText
from tutti.text.language import same_language

# Letters of one script; Japanese before Chinese, since it also uses Chinese characters.
_SCRIPTS = {
    "ja": re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ebef]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "ko": re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]"),
    "ru": re.compile("[\u0400-\u052f]"),
    "ar": re.compile("[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
}
_WORDS = {
    "en": "the of and to a in is that it was for on are with as i his they be at one have this from or had by "
    "but not what all were we when your can said there use an each which she do how their if will you he "
    "my has me so no would",
    "es": "el los las una un que es por con para está como pero más muy también cuando hay este esta esto qué "
    "cómo dónde estás hola gracias porque del al se su sus y en lo le nos me te no la de mi tu yo fue ser "
    "son tiene sí día hoy bien todo",
    "fr": "le la de les des une un est que qui pour avec dans sur pas mais vous nous je tu il elle ce cette cet "
    "sont été être avoir comme plus très où bonjour merci comment ça c'est j'ai et aux du au ils mon "
    "votre notre aujourd'hui bien",
    "it": "il lo la di gli una un che è per con sono non come più molto anche quando questo questa ciao grazie "
    "perché della del dei delle nel nella al alla si e ma io tu noi voi loro mio suo stato essere ho hai "
    "oggi bene cosa dove",
    "pt": "o a de os as uma um que é por com para não como mais muito também quando isto este esta olá obrigado "
    "porque do da dos das no na nos ao e eu você nós eles meu seu foi ser são tem está hoje bem onde em "
    "se mas",
    "de": "der die das und ist nicht ein eine einen ich du er sie wir ihr mit auf für von zu den dem des im "
    "auch es wie war sind aber oder bei nach über wenn dass ihnen geht guten tag danke bitte heute sehr "
    "haben hat wird kann noch",
    "nl": "de het een en van is niet ik je hij ze wij jullie met op voor zijn aan dat die er maar ook als naar "
    "bij om dit deze heb heeft wordt kan nog goed dag dank graag waar hoe wat",
    "sv": "och att det som på är för med den till inte om ett han hon jag men var sig från så har de vi du kan när "
    "år under också efter eller ska detta dessa denna här där vad hur alla mycket måste skulle vill sin sitt mot utan "
    "hej tack",
}  # fmt: skip
# Words that English writes as well: "come in", "$5 per person", "non-stop", "pour"; letters in formulas and lists.
_ENGLISH_TOO = frozenset(
    (
        _WORDS["en"] + " no me son come per non ma io si tu do os ser plus pour sur pas comment merci bien bon mon die "
        "war man tag over van met dank om den dove bene all di hay se es et mas hat bin ist er o e y la de "
        "till under hon du"
    ).split()
)
_PART_OF_NAME = re.compile(r"(?<=\S )(?:L[ae]s?|Los|Ele?|D[eiauo]s?|Den|Van)\b")  # Las Vegas, Café de la Paix
# English words of other languages.
_OTHERS_TOO = frozenset(str.split("on a as no me in so he do is an or all at i my was of if"))
_COMMON = {code: frozenset(words.split()) for code, words in _WORDS.items()}
_PROOF = {code: common - (_OTHERS_TOO if code == "en" else _ENGLISH_TOO) for code, common in _COMMON.items()}
_LETTERS = {"es": "ñ¿¡", "fr": "œû", "pt": "ãõ", "de": "ßäö", "sv": "å"}  # that the others do not use, or rarely
_WORD = re.compile(r"\b[^\W\d_]+(?:'[^\W\d_]+)?\b")  # not the letters of a code with digits
_ADDRESS_SIGN = re.compile(r"@|://|\w\.\w")
_ADDRESS = re.compile(r"\S*(?:@|://|\w\.\w)\S*")
_NOT_LATIN = re.compile("[\u0370-\uffff\U00010000-\U0010ffff]")
MIN_HITS = 2  # common words of a language that make a guess; fewer are names or quotations
MIN_SHARE = 0.25  # of all words
MAX_SCANNED = 400  # characters; more would not change a guess


def detect(text: str) -> str | None:
    """Return the language of a sentence as an ISO code, or None if it is not certain."""
    text = text[:MAX_SCANNED]
    n_letters = sum(map(str.isalpha, text))
    if n_letters == 0:
        return None
    if _NOT_LATIN.search(text):
        counts = {code: len(script.findall(text)) for code, script in _SCRIPTS.items()}
        if counts["ja"] and counts["ja"] + counts["zh"] > n_letters / 2:
            return "ja"
        code = max(counts, key=counts.__getitem__)
        if counts[code] > n_letters / 2:
            return code
    words, lower = _countable_words(text), text.lower()
    hits = {code: sum(map(common.__contains__, words)) for code, common in _COMMON.items()}
    for code in _LETTERS:
        hits[code] += 2 * _has_letters(code, lower)
    best, second = sorted(hits, key=hits.__getitem__, reverse=True)[:2]
    if hits[best] < MIN_HITS or hits[best] == hits[second] or hits[best] < MIN_SHARE * len(words):
        return None
    is_proven = any(word in _PROOF[best] for word in words) or _has_letters(best, lower)
    return best if is_proven and (best == "en" or hits[best] >= 2 * hits["en"]) else None


def _has_letters(code: str, lower: str) -> bool:
    return any(letter in lower for letter in _LETTERS.get(code, ""))


def is_written_like(guess: str, code: str) -> bool:
    """Tell whether a guess says no more than that the text is in its own language: Japanese may be kanji alone."""
    return same_language(guess, code) or (guess == "zh" and same_language("ja", code))


def _countable_words(text: str) -> list[str]:
    """Return the words in lower case, without addresses and the small words of names such as Las Vegas."""
    if _ADDRESS_SIGN.search(text):
        text = _ADDRESS.sub(" ", text)
    return _WORD.findall(_PART_OF_NAME.sub("", text).lower())


def script_runs(aligned: AlignedText) -> Iterator[tuple[str | None, AlignedText]]:
    """Yield the parts of a sentence that are in the script of one other language, and None for those between them."""
    start = 0
    for match in _RUN.finditer(aligned.text):
        if match.start() > start:
            yield None, aligned[start : match.start()]
        yield match.lastgroup, aligned[match.start() : match.end()]
        start = match.end()
    if start < len(aligned):
        yield None, aligned[start:]


_JAPANESE = "\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_RUN = re.compile(
    f"(?P<ja>[\u4e00-\u9fff\u3005]*[\u3041-\u30ff][{_JAPANESE}]*)|(?P<zh>[\u3400-\u4dbf\u4e00-\u9fff]+)"
    "|(?P<hi>[\u0900-\u097f]+(?: [\u0900-\u097f]+)*)"
)
