"""Plain words for everything that is written otherwise: numbers, dates, money, symbols, abbreviations."""

from tutti.text.spoken import Spoken


def normalize(spoken: Spoken, code: str) -> Spoken:
    """The sentence as it would be written if it were spelled out, in the language with that code."""
    match code:
        case "en-us" | "en-gb":
            from tutti.text.normalize import english

            return english.normalize(spoken, code)
        case _:
            from tutti.text.normalize import other

            return other.normalize(spoken, code)
