"""Normalisation by shared rules and the words of a locale, a module of locales/."""

import re

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.european import addresses, dates, figures, phones, romans, short_forms
from tutti.text.normalize.locales import find_locale
from tutti.text.normalize.symbols import to_ascii_digits
from tutti.text.options import ALL_ON, Normalization

# Anything but words and plain punctuation, a point inside the sentence, capitals.
_NOT_PLAIN = re.compile(
    r"[^\w\s.,;:!?¿¡'\"“”()…—\ufffc-]|[\d_²³¹⁰-⁹₀-₉½¼¾⅓⅔ºª]|\.(?!\s*$)|[A-ZÀ-Ý]{2}|\b[IVX](?:er|re|e)?\b"
)
_DIGIT = re.compile(r"[\d²³¹⁰-⁹₀-₉½¼¾⅓⅔]")


def normalize(aligned: AlignedText, code: str, options: Normalization = ALL_ON) -> AlignedText:
    """Write figures, abbreviations, addresses and symbols in words, each with the source of what it replaces."""
    locale = find_locale(code)
    if not _NOT_PLAIN.search(aligned.text):
        return short_forms.expand(aligned, locale)
    aligned = addresses.expand(to_ascii_digits(aligned), locale, options)
    aligned = short_forms.expand(aligned, locale)
    if _DIGIT.search(aligned.text):
        aligned = dates.expand(aligned, locale)
    aligned = romans.expand(aligned, locale)
    if _DIGIT.search(aligned.text):
        aligned = phones.expand(aligned, locale) if options.phone_normalization else aligned
        aligned = dates.expand_ranges(figures.expand_fractions(aligned, locale), locale)
        aligned = figures.expand(short_forms.expand_codes(aligned, locale), locale)
    return short_forms.expand_acronyms(figures.expand_symbols(aligned, locale), locale)
