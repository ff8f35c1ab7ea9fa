"""What of a text is spoken, what of it is normalised, and how long the pauses in it are."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

from tutti.errors import InvalidInput, did_you_mean

CodeBlocks = Literal["read", "skip", "announce"]
CODE_BLOCKS: tuple[CodeBlocks, ...] = get_args(CodeBlocks)


class Normalization(NamedTuple):
    """Which writings are spelled out, under the names that other servers use. Only English has all of them."""

    normalize: bool = True  # False: nothing is spelled out, digits are read one by one
    unit_normalization: bool = True
    url_normalization: bool = True
    email_normalization: bool = True
    optional_pluralization_normalization: bool = True  # item(s)
    phone_normalization: bool = True
    replace_remaining_symbols: bool = True
    chat_normalization: bool = True  # idk, brb
    emoji_normalization: bool = False  # emoji and emoticons by name


ALL_ON = Normalization()
NORMALIZATIONS = Normalization._fields


class Pauses(NamedTuple):
    """Milliseconds of silence, beside what the voice pauses by itself."""

    comma: int = 0  # after commas, semicolons, colons and dashes, in steps of 25
    sentence: int = 0
    paragraph: int = 350  # in place of that of its last sentence
    chapter: int = 1500  # of a book


DEFAULT_PAUSES = Pauses()
MAX_PAUSES = Pauses(1000, 10_000, 10_000, 10_000)  # a comma's is spoken by the model, a long one takes its time


class TextOptions(NamedTuple):
    """How the text front end reads a text."""

    code_blocks: CodeBlocks = "announce"  # read aloud; skip; or say only that there is one
    detect_language: bool = False  # of each sentence, instead of one for all
    normalization: Normalization = Normalization()
    voice_names: Mapping[str, str] = {}  # names that the caller or the server has given to voices
    voice_rates: Mapping[str, float] = {}  # times the speed, of such a name; "": of the text's voice
    with_words: bool = True  # False: the words of a chunk come as one, which takes a fifth of the time to hand over
    model_language: str = ""  # code, of a checkpoint of others
    voice_languages: Mapping[str, str] = {}  # of voices whose names do not begin with their language
    pauses: Pauses = DEFAULT_PAUSES


DEFAULT_OPTIONS = TextOptions()


def find_code_blocks(name: str) -> CodeBlocks:
    """Return the option with this name."""
    for option in CODE_BLOCKS:
        if option == name:
            return option
    raise InvalidInput(f"code_blocks is one of {', '.join(CODE_BLOCKS)}, not {name!r}", param="code_blocks")


def normalization(switches: Mapping[str, bool]) -> Normalization:
    """Return the normalisation with these switches; all others are on."""
    if unknown := [name for name in switches if name not in NORMALIZATIONS]:
        raise InvalidInput(
            f"unknown normalization option {unknown[0]!r}; known: {', '.join(NORMALIZATIONS)}",
            param="normalization_options",
        )
    return Normalization(**switches)


def find_pauses(changes: Mapping[str, float], pauses: Pauses = DEFAULT_PAUSES) -> Pauses:
    """Return the pauses with these changes."""
    for name, length_ms in changes.items():
        if name not in Pauses._fields:
            hint = f"{did_you_mean(name, Pauses._fields)}; known: {', '.join(Pauses._fields)}"
            raise InvalidInput(f"unknown pause {name[:40]!r}{hint}", param="pauses")
        most_ms = getattr(MAX_PAUSES, name)
        if not 0 <= length_ms <= most_ms:  # also refuses nan
            message = f"pauses: {name} is 0 to {most_ms} milliseconds, not {length_ms:g}"
            raise InvalidInput(message, param=f"pauses.{name}")
    return pauses._replace(**{name: round(length_ms) for name, length_ms in changes.items()})


def parse_pauses(written: Iterable[str]) -> dict[str, float]:
    """Return pauses written as an operator does: sentence=200."""
    pauses = {}
    for part in written:
        name, _, length_ms = (each.strip() for each in part.partition("="))
        try:
            pauses[name] = float(length_ms)
        except ValueError:
            message = f"pauses: write sentence=200,paragraph=500, in milliseconds, not {part[:40]!r}"
            raise InvalidInput(message, param="pauses") from None
    find_pauses(pauses)
    return pauses
