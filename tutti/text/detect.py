"""Guess the language of a sentence: by its script, or in Latin letters by its most common words.

A guess is made only where it is safe; a short or mixed sentence has none. Ten microseconds for a sentence.
"""

import re
from collections.abc import Iterator

from tutti.text.aligned_text import AlignedText

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
}  # fmt: skip
_COMMON = {code: frozenset(words.split()) for code, words in _WORDS.items()}
_LETTERS = {"es": "ñ¿¡", "fr": "çœêû", "pt": "ãõ", "de": "ßäö"}  # that the others do not use, or rarely
_WORD = re.compile(r"\b[^\W\d_]+(?:'[^\W\d_]+)?\b")  # not the letters of a code with digits
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
    lower = text.lower()
    words = _WORD.findall(lower)
    hits = {code: sum(map(common.__contains__, words)) for code, common in _COMMON.items()}
    for code, letters in _LETTERS.items():
        hits[code] += 2 * any(letter in lower for letter in letters)
    best, second = sorted(hits, key=hits.__getitem__, reverse=True)[:2]
    if hits[best] < MIN_HITS or hits[best] == hits[second] or hits[best] < MIN_SHARE * len(words):
        return None
    return None if best != "en" and hits[best] < 2 * hits["en"] else best


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
