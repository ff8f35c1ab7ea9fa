"""Foreign letters and signs in English text, and their names."""

from tutti.text.aligned_text import LETTER_A

FOLDS = {"ø": "o", "Ø": "O", "ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ð": "th", "Ð": "Th", "þ": "th"}
FOLDS |= {"Þ": "Th", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "ħ": "h", "ŋ": "ng", "ə": "e", "’": "'"}

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau "
    "upsilon phi chi psi omega"
)
_DIGITS = "zero one two three four five six seven eight nine"

LETTER_NAMES: dict[str, str] = {
    **{chr(0x3B1 + i): name for i, name in enumerate(_GREEK.split())},
    **{str(i): name for i, name in enumerate(_DIGITS.split())},
}

SIGN_NAMES = {
    "&": "and", "%": "percent", "+": "plus", "@": "at", "=": "equals", "×": "times", "÷": "divided", "°": "degrees",
    "$": "dollars", "£": "pounds", "€": "euros", "¥": "yen", "§": "section", "©": "copyright", "®": "registered",
    "™": "trademark",
}  # fmt: skip

# Words that the dictionaries lack, or that differ from the same word without accent: (American, British).
ALIASES = {
    LETTER_A: ("ˈA", "ˈA"),
    "résumé": ("ɹˈɛzəmˌA", "ɹˈɛzjuːmˌA"),
    "exposé": ("ˌɛkspOzˈA", "ɛkspˈQzA"),
    "hermès": ("ɛɹmˈɛz", "ɛːmˈɛz"),
    "'n": ("ən", "ən"),
    "st": ("stɹˈit", "stɹˈiːt"),
    "shh": ("ʃː", "ʃː"),
    "brr": ("bɹˈɜɹ", "bɹˈɜː"),
    "psst": ("pst", "pst"),
    "grr": ("ɡˈɜɹ", "ɡˈɜː"),
    "tsk": ("tˈɪsk", "tˈɪsk"),
    "hmph": ("hˈʌmf", "hˈʌmf"),
    "humph": ("hˈʌmf", "hˈʌmf"),
    "zz": ("zː", "zː"),
    "mhm": ("əmhˈʌm", "əmhˈʌm"),
    "mmhm": ("əmhˈʌm", "əmhˈʌm"),
    "mmhmm": ("əmhˈʌm", "əmhˈʌm"),
    "pff": ("pf", "pf"),
    "pfft": ("pft", "pft"),
    "ahem": ("əhˈɛm", "əhˈɛm"),
}
