"""What the shared rules of european/ need to know of each language: only words, in a module for each."""

from functools import cache
from importlib import import_module

from tutti.text.normalize.locales.locale import Locale

_MODULES = {"es": "spanish", "fr": "french", "it": "italian", "pt-br": "portuguese", "hi": "hindi", "de": "german"}
_MODULES |= {"sv": "swedish", "pl": "polish", "ru": "russian", "vi": "vietnamese", "ar": "arabic"}


@cache
def find_locale(code: str) -> Locale:
    """Return the words of a language, imported when they are first needed."""
    locale: Locale = import_module(f"{__name__}.{_MODULES[code]}").LOCALE
    return locale
