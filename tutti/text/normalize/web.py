"""Web addresses, file names, versions and handles, spoken sign by sign."""

import re
from collections.abc import Callable

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.normalize import numbers
from tutti.text.normalize.letters import letter_name
from tutti.text.options import ALL_ON, Normalization

_TOP_LEVEL_DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|co|app|dev|tv|fm|gg|ly|uk|de|fr|es|jp|cn|ru|ca|au|nz|ch|nl|se|eu|br|kr"
    "|xyz|online|site|tech|store|blog|cloud"
)
_FILE_EXTENSIONS = (
    "txt|pdf|docx?|xlsx?|pptx?|csv|tsv|json|ya?ml|toml|xml|html?|css|md|rst|ini|cfg|conf|log|py|pyc|ipynb|jsx?|tsx?|java|cpp|hpp"
    "|rs|rb|php|sh|bash|bat|exe|dll|zip|gz|tar|tgz|bz2|iso|dmg|jpe?g|png|gif|svg|webp|bmp|mp3|mp4|wav|flac|ogg|opus|avi"
    "|mov|mkv|onnx|env|lock|sql|db|go|swift|kt|vue"
)
_TAIL = r"""[^\s<>"“”\ufffc]*[^\s<>"“”\ufffc.,;:!?)'\]…—]"""
_PATH = rf"(?:[/?#]{_TAIL}|/)?"

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}\b", re.IGNORECASE)
_ADDRESSES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:https?|ftps?|file|ssh|git|wss?)://{_TAIL}|\bwww\.{_TAIL}",
        rf"\blocalhost(?::\d{{1,5}})?{_PATH}",
        rf"(?<![\w.@-])(?:[a-z0-9][\w-]{{0,62}}\.){{1,8}}(?:{_TOP_LEVEL_DOMAINS})\b(?!\.\w|-\w)(?::\d{{1,5}})?{_PATH}",
        rf"(?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?!\w|\.\d)(?::\d{{1,5}})?(?:/\d{{1,2}}\b)?{_PATH}",
        r"\b[a-z]:\\[\w.\\+@-]*",
        r"(?<![\w/.~)%€$£¥₹])(?:~|\.\.?)?/[a-z_.][\w.+@-]*(?:/[\w.+@-]+)*/?(?<!\.)",
        rf"(?<![\w/.])(?:[\w.-]{{1,64}}/){{0,16}}[\w-]{{1,64}}(?:\.[\w-]{{1,32}}){{0,4}}\.(?:{_FILE_EXTENSIONS})\b(?!\.\w)",
        r"(?<![\w/&])\?[a-z_]\w*=[\w%&=.+-]+",  # a query on its own
    )
]
_ANY_ADDRESS_SIGN = re.compile(r"[/@:?\\]|\.\w")
_PACKAGE_VERSION = re.compile(r"(?<=[A-Za-z])@(?P<n>\d{1,4}(?:\.\d{1,4}){1,3})(?![\w]|\.\d)")  # react@18.2
_MEMBER = re.compile(r"(?<=[A-Za-z0-9_)\]])\.(?=[A-Za-z_]\w{0,40}\()")  # user.save()
_FLAG = re.compile(r"(?<=\w\s)-(?=[A-Za-z](?:\s|$))")  # npm i -D
_HIDDEN_FILE = re.compile(r"(?:(?<=\s)|\A)\.(?=[a-z]{2})")  # .env
_HANDLE = re.compile(r"(?<![\w.@])@(?=[A-Za-z_]\w)")
_HASHTAG = re.compile(r"(?<![\w&#])#(?!(?=[a-fA-F]*\d)[0-9a-fA-F]{6}\b)(?=[A-Za-z]\w|\d{1,6}[A-Za-z])")
_NUMBER_SIGN = re.compile(r"(?<![\w&#])#\s?(?!(?=\d*[a-fA-F])[0-9a-fA-F]{6}\b)(?=\d)|№\s?")
# What follows the numbers of a version: -beta.3, -rc1, rc1, +cu121.
_SUFFIX = r"(?P<suffix>(?:[-+][A-Za-z]|(?:a|b|rc|dev|post)(?=\d))[A-Za-z0-9]{0,15}(?:[.+-][A-Za-z0-9]{1,15}){0,4})?"
_VERSION = re.compile(
    rf"(?<![\w.])v(?:er)?(?:\.\s?)?(?P<n>\d{{1,5}}(?:\.\d{{1,5}}){{0,5}}){_SUFFIX}(?![\w]|\.\d)", re.IGNORECASE
)
_RELEASE = re.compile(
    r"(?<![\w.,])(?!\d{1,2}\.\d{1,2}\.(?:19|20)\d\d\b|\d{3}\.\d{3}\.\d{4}\b)"
    rf"(?P<n>\d{{1,5}}(?:\.\d{{1,5}}){{2,5}}){_SUFFIX}(?![\w]|[.,]\d)"
    r"|(?<![\w.,])(?P<pre>\d{1,5}\.\d{1,5})-?(?P<stage>(?:alpha|beta|rc|dev|preview|pre|snapshot|nightly)(?:[.-]?\d{1,3})?)"
    r"(?![\w])",
    re.IGNORECASE,
)
# A name that ends with its version: Qwen2.5, gpt-3.5-turbo; not an amount of money.
_NAMED_VERSION = re.compile(
    r"(?<![\w.,/-])(?!(?:USD|EUR|GBP|AUD|CAD|JPY|INR|CHF|CNY|RMB|RUB|KRW|BTC|Rs|US|No)\d)[A-Za-z]{2,16}(?P<hyphen>-)?"
    r"(?P<n>\d{1,3}(?:\.\d{1,3}){1,2})(?![\w%]|[.,]\d)"
)
_PRODUCTS = (
    "Python|iOS|iPadOS|macOS|OS X|Android|Ubuntu|Debian|Fedora|Windows|Linux|Node|Java|PHP|Ruby|Rails|Django|Swift"
    "|Kotlin|Go|CUDA|PyTorch|React|Angular|Vue|Chrome|Firefox|Safari|Postgres|PostgreSQL|MySQL|Redis|Kubernetes|Docker"
    "|HTTP|USB|Bluetooth|GPT|Claude|Gemini|Llama|[Vv]ersions?|[Rr]elease"
)
_PRODUCT_VERSION = re.compile(rf"\b(?:{_PRODUCTS})[ -](?P<n>\d{{1,5}}\.\d{{1,5}}(?:\.\d{{1,5}})*)(?![\w]|\.\d)")

_WIRELESS = re.compile(r"(?<![\w.])802\.(?P<n>\d{1,2})(?P<letters>[a-z]{0,3})(?!\w|\.\w)")  # IEEE 802.11ax
_ANY_MINOR = re.compile(r"(?<![\w.])(?P<n>\d{1,3})(?P<dot>\.)(?P<x>x)(?![\w.]\w|\w)")  # Node 20.x
_IPV6 = re.compile(
    r"(?<![\w:])(?=[0-9a-fA-F:]{0,40}::)(?=[0-9a-fA-F:]{0,40}\d)[0-9a-fA-F]{0,4}(?::{1,2}[0-9a-fA-F]{1,4}){0,7}(?:::)?(?:/\d{1,3})?(?![\w:])"
)
_SUBJECT = re.compile(r"\A(?P<re>R[Ee]):(?=\s)")  # of a letter
_VOWEL = re.compile("[aeiouy]", re.IGNORECASE)
_PIECE = re.compile(r"[^\W\d_]+|\d+|\S")
_NAMES = {
    ".": "dot", "/": "slash", "\\": "backslash", ":": "colon", "-": "dash", "_": "underscore", "@": "at",
    "?": "question mark", "=": "equals", "&": "and", "#": "hash", "+": "plus", "%": "percent", "~": "tilde",
    "*": "star", "$": "dollar", "!": "", "(": "", ")": "", ",": "", ";": "", "'": "", "[": "", "]": "", "|": "",
    "^": "",
}  # fmt: skip
_SPELLED_OUT = frozenset(
    str.split(
        "www uk us eu ai io tv fm gg ly de fr es jp cn ru ca au nz ch nl se br kr ui ux api faq id db html htm css js "
        "jsx ts tsx py rs rb php sh cpp txt pdf csv tsv xml yml sql exe dll tgz gz iso dmg jpg png svg bmp mp avi mkv"
    )
)


def expand(aligned: AlignedText, options: Normalization = ALL_ON) -> AlignedText:
    """Spell out addresses, names of files and hosts, and versions."""
    if _ANY_ADDRESS_SIGN.search(aligned.text):
        aligned = expand_addresses(aligned, spell_address, options)
        aligned = aligned.sub(_IPV6, _ipv6) if "::" in aligned.text else aligned
        aligned = aligned.sub(_WIRELESS, _wireless).sub(_SUBJECT, lambda _: {"re": "Ree"})
        aligned = aligned.sub(_ANY_MINOR, lambda match: {"n": numbers.code(match["n"]), "dot": " point ", "x": "X"})
        aligned = aligned.sub(_RELEASE, _release)
        aligned = aligned.sub(_PRODUCT_VERSION, lambda match: {"n": _version_words(match["n"])})
        aligned = aligned.sub(_NAMED_VERSION, _named_version)
    aligned = aligned.sub(_VERSION, lambda match: f"version {_version_words(match['n'])}{_suffix(match['suffix'])}")
    aligned = aligned.sub(_PACKAGE_VERSION, lambda match: f" at {_version_words(match['n'])}").sub(_MEMBER, " dot ")
    aligned = aligned.sub(_FLAG, "dash ").sub(_HIDDEN_FILE, "dot ")
    return aligned.sub(_HANDLE, "at ").sub(_HASHTAG, "hashtag ").sub(_NUMBER_SIGN, "number ")


def expand_addresses(
    aligned: AlignedText, spell: Callable[[str], str | None], options: Normalization = ALL_ON
) -> AlignedText:
    """Replace e-mail addresses, URLs, paths and names of files and hosts by what `spell` makes of them."""
    if not _ANY_ADDRESS_SIGN.search(aligned.text):
        return aligned
    rules = [_EMAIL] if options.email_normalization else []
    for rule in rules + (_ADDRESSES if options.url_normalization else []):
        aligned = aligned.sub(rule, lambda match: spell(match[0]))
    return aligned


def pieces(address: str) -> list[str]:
    """Return the words, numbers and signs of an address without its scheme."""
    _, scheme, rest = address.partition("://")
    return _PIECE.findall(rest if scheme else address)


def spell_address(address: str) -> str:
    """Return an address with every sign by its name, without the scheme."""
    return " ".join(word for word in map(_piece, pieces(address)) if word) or "slash"


def _piece(piece: str) -> str:
    if piece.isdecimal():
        return numbers.code(str(int(piece))) if piece.isascii() and piece == str(int(piece)) else numbers.digits(piece)
    if piece.lower() == "www":
        return "W W W"
    if piece.lower() in _SPELLED_OUT:
        return piece.upper()
    return _NAMES.get(piece, piece.upper() if len(piece) == 1 else piece)


def _ipv6(match: re.Match[str]) -> str | None:
    pieces = re.findall(r"\d+|[a-fA-F]|[:/]", match[0])
    if match[0].count(":") < 2:
        return None
    return " ".join(_NAMES.get(one) or (numbers.code(one) if one.isdecimal() else letter_name(one)) for one in pieces)


def _wireless(match: re.Match[str]) -> str:
    letters = " ".join(letter_name(letter) for letter in match["letters"])
    return f"eight oh two dot {numbers.cardinal(int(match['n']))} {letters}".strip()


def _release(match: re.Match[str]) -> str:
    if match["pre"]:
        return _version_words(match["pre"]) + _suffix(match["stage"])
    return _version_words(match["n"]) + _suffix(match["suffix"])


def _named_version(match: re.Match[str]) -> Replacement:
    words = _version_words(match["n"])
    return {"hyphen": " ", "n": words} if match["hyphen"] else {"n": f" {words}"}


def _suffix(text: str | None) -> str:
    """Return what follows the numbers of a version: "-rc1" is " R C one"."""
    return "".join(f" {_suffix_piece(piece)}" for piece in _PIECE.findall(text or "") if piece.isalnum())


def _suffix_piece(piece: str) -> str:
    if piece.isdecimal():
        return numbers.code(piece)
    spelled = len(piece) <= 3 and not _VOWEL.search(piece)
    return " ".join(piece.upper()) if spelled else piece


def _version_words(version: str) -> str:
    """Return a version in words: 3.11 is "three point eleven", 24.04 is "twenty-four point oh four"."""
    parts = version.split(".")
    return " point ".join(
        f"oh {numbers.cardinal(int(part))}"
        if len(part) == 2 and part[0] == "0" and part != "00"
        else numbers.integer(part)
        for part in parts
    )
