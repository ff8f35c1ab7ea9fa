"""The optional packages that some languages need: extras of pyproject.toml."""

from importlib.util import find_spec

_MODULES = {
    "espeak": ("espeakng_loader",),
    "zh": ("jieba", "pypinyin"),
    "ja": ("fugashi", "unidic_lite", "jaconv"),
}
_EXTRAS = {"en-us": None, "en-gb": None, "zh": "zh", "zh-1.1": "zh", "ja": "ja"}


def missing_extra(code: str) -> str | None:
    """Return the extra that must be installed before this language can be pronounced; None if nothing is missing."""
    extra = _EXTRAS.get(code, "espeak")
    return extra if extra and not all(find_spec(module) for module in _MODULES[extra]) else None
