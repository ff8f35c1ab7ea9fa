"""Equations in plain text: which hyphens are minus signs, "f(x)", and the letter A by its name."""

import re
from bisect import bisect_right

from tutti.text.aligned_text import LETTER_A, AlignedText, Replacement

# A number with at most two letters behind it (4x, 2ab), a single letter, or a function of something short: f(x).
_POWER = r"(?:\^\(?-?\w{1,3}\)?|[⁰¹²³⁴-⁹⁻]{1,4})?"
_OPERAND = (
    r"[(\[]{0,4}(?:[-+]\s?)?√?[(]?"
    rf"(?:\d++(?:[.,]\d++)*+%?[A-Za-z]{{0,2}}|[A-Za-zα-ω](?:_\w|\d)?(?:\([^()\s]{{1,12}}\))?){_POWER}(?!\w)[)\]]{{0,4}}"
)
_SIGN = r"(?:[=<>!:]=|->|[-+*/×·÷=<>≤≥≠≈±])"
# Every character is in at most one operand, and the end of a run is not tested: linear time.
_RUN = re.compile(rf"(?<![\w?&/:.@#%\\])(?<!\w-){_OPERAND}(?:\s?{_SIGN}\s?{_OPERAND})++")
_RELATION = re.compile(r"[=<>≤≥≠≈]")
_IN_RUN = re.compile(
    r"(?P<minus>\s?-(?!>)\s?)"
    r"|(?<![\w.])(?P<function>[A-Za-zα-ω])(?P<open>\()(?P<argument>[^()\s]{1,12})(?P<close>\))"
    r"|(?<!\w)(?P<a>[Aa])(?!\w)"
)
_BIG_O = re.compile(r"(?<!\w)[OΘΩ](?P<open>\()[^()]{1,40}(?P<close>\))")
_DEFINITION = re.compile(r"(?<![\w.])[A-Za-zα-ω](?P<open>\()[^()\s]{1,12}(?P<close>\))(?=\s?[=<>≤≥≈])")  # f(x) =
_POWER_OF_A = re.compile(r"(?<!\w)a(?=[²³⁰¹⁴-⁹]|\^\d)")


def expand(aligned: AlignedText) -> AlignedText:
    """Spell out minus signs and functions inside equations, and nowhere else."""
    aligned = aligned.sub(_POWER_OF_A, LETTER_A).sub(_BIG_O, lambda _: {"open": " of ", "close": ""})
    if not _RELATION.search(aligned.text):
        return aligned
    runs = [match.span() for match in _RUN.finditer(aligned.text) if _RELATION.search(match[0])]
    starts = [start for start, _ in runs]

    def expand_sign(match: re.Match[str]) -> Replacement:
        run = bisect_right(starts, match.start()) - 1
        if run < 0 or match.end() > runs[run][1]:
            return None
        if match["minus"]:
            return " minus "
        if match["a"]:
            return LETTER_A
        argument = {"argument": LETTER_A} if match["argument"] in "aA" else {}
        return {"open": " of ", "close": ""} | argument

    aligned = aligned.sub(_IN_RUN, expand_sign) if runs else aligned
    return aligned.sub(_DEFINITION, lambda _: {"open": " of ", "close": ""})
