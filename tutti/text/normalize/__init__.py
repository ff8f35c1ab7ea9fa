"""Plain words for everything that is written otherwise: numbers, dates, money, symbols, abbreviations."""

from tutti.text.aligned_text import AlignedText


def normalize(spoken: AlignedText, code: str) -> AlignedText:
    """The sentence as it would be written if it were spelled out, in the language with that code."""
    match code:
        case "en-us" | "en-gb":
            from tutti.text.normalize.english import normalize as normalize_english

            return normalize_english(spoken, code)
        case _:
            from tutti.text.normalize.other import normalize as normalize_other

            return normalize_other(spoken, code)
