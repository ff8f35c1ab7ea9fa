"""Single letters by their names."""

from tutti.text.aligned_text import LETTER_A


def letter_name(letter: str) -> str:
    """Return a letter so that it is pronounced by its name; "a" would be an article."""
    return LETTER_A if letter in "aA" else letter.upper()
