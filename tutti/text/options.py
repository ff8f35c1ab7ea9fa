"""What of a text is spoken, and what of it is normalised."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from tutti.errors import InvalidInput

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


class TextOptions(NamedTuple):
    """How the text front end reads a text."""

    code_blocks: CodeBlocks = "announce"  # read aloud; skip; or say only that there is one
    detect_language: bool = False  # of each sentence, instead of one for all
    normalization: Normalization = Normalization()
    voice_names: Mapping[str, str] = {}  # names that the caller or the server has given to voices
    voice_rates: Mapping[str, float] = {}  # times the speed, of such a name; "": of the text's voice
    with_words: bool = True  # False: the words of a chunk come as one, which takes a fifth of the time to hand over
    voice_languages: Mapping[str, str] = {}  # of voices whose names do not begin with their language


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
