"""Codes of letters and digits, and digits that are not quantities: telephone and card numbers, models."""

import re
import unicodedata

from tutti.text.aligned_text import LETTER_A, AlignedText, Replacement
from tutti.text.normalize.letters import letter_name
from tutti.text.normalize.numbers import cardinal, code, digits, year

_FIXED = {
    "24/7": "twenty-four seven", "24/7/365": "twenty-four seven three sixty-five", "9/11": "nine eleven",
    "50/50": "fifty-fifty", "50-50": "fifty-fifty",
    "20-20": "twenty twenty", "80/20": "eighty twenty", "20/20": "twenty twenty",
    "007": "double oh seven", "at&t": "A T and T", "q&a": "Q and A", "c++": "C plus plus", "c#": "C sharp",
    "f#": "F sharp", "g++": "G plus plus", ".net": "dot net", "401k": "four oh one K", "401(k)": "four oh one K",
    "b2b": "B to B", "b2c": "B to C", "p2p": "P to P", "d2c": "D to C", "h2o": "H two O", "x86": "X eighty-six",
    "x64": "X sixty-four", "wwii": "World War Two", "wwi": "World War One", "ww2": "World War Two",
    "ww1": "World War One", "k8s": "kubernetes", "i18n": "internationalization", "a11y": "accessibility",
    "ipv4": "I P V four", "ipv6": "I P V six",
    "w3c": "W three C", "y2k": "Y two K", "1-on-1": "one on one", "k-12": "K through twelve",
    "tl;dr": "T L D R", "tldr": "T L D R", "ieee": "I triple E", "yoy": "year over year", "qoq": "quarter over quarter",
}  # fmt: skip
_FIXED_CODE = re.compile(
    r"(?<![\w./+$£€-])(?:"
    + "|".join(re.escape(name) for name in sorted(_FIXED, key=len, reverse=True))
    + r")(?![\w/+#-]|\.\d|,\d)",
    re.IGNORECASE,
)
_UUID = re.compile(r"(?<![\w-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-])", re.IGNORECASE)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: [A-Z\d]{4}){2,7}(?: [A-Z\d]{1,3})?(?![\w-])")
_ISBN = re.compile(r"\bIS[BS]N(?:-1[03])?:?\s(?P<n>(?:\d[ -]?){7,12}[\dX])(?![\w-])")
_CHEMICAL = re.compile(r"(?<![^\W\d])(?=[A-Za-z]{0,20}[₀-₉])(?:[A-Z][a-z]?[₀-₉]{0,3}){1,12}(?!\w)")  # CO₂
# Elements by the symbols that ions and isotopes are written with (IUPAC).
_ELEMENTS = {
    "H": "hydrogen", "He": "helium", "Li": "lithium", "Be": "beryllium", "B": "boron", "C": "carbon", "N": "nitrogen",
    "O": "oxygen", "F": "fluorine", "Ne": "neon", "Na": "sodium", "Mg": "magnesium", "Al": "aluminum", "Si": "silicon",
    "P": "phosphorus", "S": "sulfur", "Cl": "chlorine", "Ar": "argon", "K": "potassium", "Ca": "calcium",
    "Ti": "titanium", "Cr": "chromium", "Mn": "manganese", "Fe": "iron", "Co": "cobalt", "Ni": "nickel",
    "Cu": "copper", "Zn": "zinc", "As": "arsenic", "Br": "bromine", "Kr": "krypton", "Rb": "rubidium",
    "Sr": "strontium", "Tc": "technetium", "Ag": "silver", "Cd": "cadmium", "Sn": "tin", "I": "iodine",
    "Xe": "xenon", "Cs": "cesium", "Ba": "barium", "Au": "gold", "Hg": "mercury", "Pb": "lead", "Po": "polonium",
    "Rn": "radon", "Ra": "radium", "Th": "thorium", "U": "uranium", "Pu": "plutonium", "Am": "americium",
}  # fmt: skip
_ELEMENT = f"(?:{'|'.join(sorted(_ELEMENTS, key=len, reverse=True))})"
_ISOTOPE = re.compile(rf"(?<!\w)(?P<n>[⁰¹²³⁴-⁹]{{1,3}})(?P<element>{_ELEMENT})(?![a-z])")
# Fe³⁺, SO4 2-, Ca2+; without a figure only common ions: A+ and B- are marks.
_ION = re.compile(
    rf"(?<!\w)(?P<atoms>(?:{_ELEMENT}[\d₀-₉]?){{1,4}})(?P<charge>[¹²³⁴-⁹]?[⁺⁻])(?!\w)"
    rf"|(?<!\w)(?!B\d|C\d|F\d)(?P<atoms2>(?:{_ELEMENT}\d?){{1,4}}?) ?(?P<charge2>[1-4][+-])(?![\w+-])"
    r"|(?<!\w)(?P<atoms3>Na|Li|Ag|Cl|OH|Br|NH4|NO3|HCO3|H3O|K|H)(?P<charge3>[+-])(?![\w+-]| ?\d)"
)
_CHARGE = re.compile(r"[⁰¹²³⁴-⁹⁺⁻]|[A-Za-z\d][+-](?![\w+-])")
_SALTS = re.compile(
    r"(?<!\w)(?:Na(?:Cl|OH|F|Br|H|I)|K(?:Cl|OH|Br|I|F|CN)|Li(?:F|H|OH|Cl)|Ca(?:O|S)|Mg(?:O|S)|Fe(?:O|S)|Zn(?:O|S)|Cu(?:O|S)|Ag(?:Cl|Br)"
    r"|H(?:Cl|Br|CN)|Si(?:C|O)|Ga(?:N|As)|InP|Cd(?:S|Te)|Pb(?:O|S)|HgS|TiN|BaO)(?!\w)"
)
_MONTHLY = re.compile(r"\bMoM\b")
_CARD = re.compile(r"(?<![\w.,-])\d{4}(?:[ -]\d{4}){2,3}(?![\w-]|[.,]\d)")
_PHONE = re.compile(
    r"(?<![\w.,/])(?:"
    r"(?:\+?\d{1,3}[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}"
    r"|\+(?=(?:[ .()-]{0,2}\d){7})\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}|\d{3}-\d{4}"
    r"|\(?0\d{2,4}\)?[ -]\d{3,4}[ -]?\d{3,4}|\d{3}-\d{2}-\d{4}|1[38]00 \d{3} \d{3}|[6-9]\d{4} \d{5}"
    r")(?:\s?(?:x|ext\.?)\s?(?P<ext>\d{1,6}))?(?![\w/-]|[.,]\d)"
)
_PHONE_WORD = re.compile(
    r"(?<![\w.,/+-])(?P<digits>(?:1-)?(?:8\d\d|900)-(?:\d{3}-)?|\d{3}-(?=[A-Z]{4}\b))"
    r"(?P<words>(?=[\d-]{0,4}[A-Z]{2})[A-Z\d]{1,9}(?:-[A-Z\d]{1,9}){0,3})(?![\w-])"
)
_SHORT_CODE = re.compile(r"\b[Tt]ext(?:ing|ed|s)?\s(?:[A-Z]+\s)?to\s(?P<n>\d{5,6})\b")
_EXTENSION = re.compile(r"\bext\.?\s?(?P<n>\d{1,6})\b")
_FILE_NUMBER = re.compile(r"(?<![\w.,-])(?P<a>\d{2,6})(?P<dash>-)(?P<b>0\d{2,5})(?![\w-]|[.,]\d)")  # No. 2024-0117
_AIRCRAFT = re.compile(r"(?<![\w.,-])(?P<a>7[0-8]7)(?P<dash>-)(?P<b>[89]|\d00)(?![\d-])")
_NUMBERED_PLACE = re.compile(
    r"\b(?:Route|Highway|Hwy|Interstate|Flight|Room|Rm|Suite|Apt|Apartment|Boeing|Airbus|Bus|Gate|Channel|Unit|Error|Port|Area"
    r"|[Pp]ort(?: is| was| number)?|[Rr]oom|[Ff]light|[Ee]rror(?: code)?|[Ss]tatus(?: code)?|HTTP)"
    r":?\s(?P<n>\d{3,4})(?![\w]|[.,]\d)"
)
_DIALLED = re.compile(r"\b(?:[Cc]all(?:ed|ing|s)?|[Dd]ial(?:l?ed|l?ing|s)?)\s(?P<n>\d{3})(?![\w]|[.,-]\d)")
_STREET = re.compile(
    r"(?<![\w.,$-])(?P<n>\d{3,5})(?=\s(?:[NSEW]\.?\s)?(?:[A-Z][a-z]+\s){1,3}(?:St|Ave|Blvd|Rd|Dr|Ln|Street|Avenue|Road|Drive|Lane|Boulevard|Way|Court|Ct|Place|Pl)\b)"
)
_FROM_TO = re.compile(r"(?<=\d)-to-(?=\d)|(?<=\d/[2-9])\s?-\s?(?=\d/[2-9]\b)")
_ZIP = re.compile(r"(?<=[A-Z]{2} )(?P<n>\d{5}(?:-\d{4})?)(?![\w-])")
_HEX = re.compile(r"\b0x(?P<n>[0-9a-fA-F]{1,64})\b|#(?P<rgb>[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
_HYPHENATED = re.compile(
    r"(?<![\w.,-])(?P<name>(?![AaPp][Mm]-)[A-Za-z]{1,16})(?P<hyphen>-)(?P<n>\d{1,5})(?![\w]|[.,]\d|-\d)"
)
_TEAM = re.compile(r"(?<![\w.,])(?P<n>\d{2})ers\b")  # 49ers
_METRE = re.compile(
    r"(?<![\w./])(?P<a>[2-9]|12)(?P<bar>/)(?P<b>[248])(?=\s(?:time|meter|metre|beat|waltz)\b)"
)  # 3/4 time
_WICKETS = re.compile(
    r"(?<![\w./,])\d{2,3}(?P<bar>/)(?:10|\d)"
    r"(?=\s(?:at (?:lunch|tea|stumps)|(?:after|in) \d+(?:\.\d)? overs|dec\b|declared))"
)
# Letters and digits without a separator, except ordinals and plurals.
_MIXED = re.compile(
    r"(?<![\w.,'])(?=[A-Za-z_]*\d)(?=\d*[A-Za-z_])(?!\d+(?:st|nd|rd|th|s)\b)[A-Za-z0-9_]{2,64}(?!\w)", re.IGNORECASE
)
_STANDARD = re.compile(r"\b[A-Z]{2,6}\s(?P<n>[1-9]\d{3})(?![\w%]|[.,:/-]\d)")
_LETTER_POINT_NUMBER = re.compile(r"(?<![\w.])(?P<letter>[A-Z])\.(?P<n>\d{1,4})(?![\w.])")
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_UNREADABLE = re.compile(r"\A[^aeiouyAEIOUY]+\Z|[a-z][A-Z]")  # SpO2


def expand_identifiers(aligned: AlignedText) -> AlignedText:
    """Spell out UUIDs and book numbers sign by sign, before their parts are taken for numbers and dates."""
    aligned = aligned.sub(_UUID, lambda match: _signs(match[0])).sub(_IBAN, lambda match: _signs(match[0]))
    aligned = aligned.sub(_ISOTOPE, _isotope).sub(_ION, _ion) if _CHARGE.search(aligned.text) else aligned
    aligned = aligned.sub(_CHEMICAL, _chemical)
    return aligned.sub(_ISBN, lambda match: {"n": _signs(match["n"])})


def expand(aligned: AlignedText, *, phones: bool = True) -> AlignedText:
    """Spell out codes: "F-16" is "F sixteen", "MP3" is "M P three"."""
    aligned = aligned.sub(_FIXED_CODE, lambda match: _FIXED[match[0].lower()]).sub(_MONTHLY, "month over month")
    aligned = aligned.sub(_SALTS, _chemical)
    if not any(char.isdecimal() for char in aligned.text):
        return aligned
    aligned = aligned.sub(_LETTER_POINT_NUMBER, lambda match: f"{match['letter']} {code(match['n'])}")
    aligned = aligned.sub(_CARD, _digit_groups)
    aligned = aligned.sub(_PHONE_WORD, _phone_word).sub(_PHONE, _phone) if phones else aligned
    for rule in (_FILE_NUMBER, _AIRCRAFT) if "-" in aligned.text else ():
        aligned = aligned.sub(rule, lambda match: {"a": code(match["a"]), "dash": " ", "b": code(match["b"])})
    aligned = aligned.sub(_SHORT_CODE, lambda match: {"n": digits(match["n"])})
    aligned = aligned.sub(_EXTENSION, lambda match: f"extension {code(match['n'])}")
    aligned = aligned.sub(_DIALLED, lambda match: {"n": digits(match["n"])})
    aligned = aligned.sub(_NUMBERED_PLACE, _expand_number).sub(_STREET, _expand_number)
    aligned = aligned.sub(_ZIP, lambda match: digits(match["n"])).sub(_HEX, _hex)
    aligned = aligned.sub(_HYPHENATED, _hyphenated)
    aligned = aligned.sub(_TEAM, _team) if "ers" in aligned.text else aligned
    aligned = _slashed_figures(aligned) if "/" in aligned.text else aligned
    return aligned.sub(_FROM_TO, " to ")


def expand_mixed(aligned: AlignedText) -> AlignedText:
    """Spell out letters with digits that are left after measures: "MP3", "x86_64", "4K"."""
    aligned = aligned.sub(_MIXED, lambda match: split_mixed(match[0]))
    return aligned.sub(_STANDARD, lambda match: {"n": year(int(match["n"]))})


def split_mixed(text: str) -> str:
    """Return runs of letters and of digits separately; short runs of letters are spelled out."""
    pieces = _PIECE.findall(text)
    if len(pieces) > 1 and pieces[-1] == "s" and pieces[-2].isdecimal():
        return f"{split_mixed(text[:-1])}{'es' if pieces[-2][-1] == '6' else 's'}"  # MP3s, not MP3S
    return " ".join(_number(piece) if piece.isdecimal() else _letters(piece) for piece in pieces) or "underscore"


def _slashed_figures(aligned: AlignedText) -> AlignedText:
    aligned = aligned.sub(_METRE, lambda match: {name: cardinal(int(match[name])) for name in "ab"} | {"bar": " "})
    return aligned.sub(_WICKETS, lambda _: {"bar": " for "})


def _hyphenated(match: re.Match[str]) -> Replacement:
    name = {"name": LETTER_A} if match["name"] == "A" else {}
    return {"hyphen": " ", "n": code(match["n"])} | name


def _team(match: re.Match[str]) -> str:
    words = cardinal(int(match["n"]))
    return f"{words}{'rs' if words.endswith('e') else 'ers'}"


def _number(piece: str) -> str:
    return code(piece) if piece.isascii() else digits(piece)


def _letters(piece: str) -> str:
    if len(piece) == 1:
        return letter_name(piece)
    if (len(piece) == 2 and piece.isupper()) or (len(piece) <= 3 and _UNREADABLE.search(piece)):
        return " ".join(piece.upper())
    return piece


def _expand_number(match: re.Match[str]) -> Replacement:
    return {"n": code(match["n"])}


def _digit_groups(match: re.Match[str]) -> str:
    return ", ".join(digits(group) for group in re.findall(r"\d+", match[0]))


def _phone_word(match: re.Match[str]) -> Replacement:
    groups = ("eight hundred" if group == "800" else digits(group) for group in re.findall(r"\d+", match["digits"]))
    words = re.findall(r"\d+|[A-Z]+", match["words"])
    return {
        "digits": ", ".join(groups) + ", ",
        "words": " ".join(digits(word) if word.isdecimal() else word.lower() for word in words),
    }


def _phone(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match[0])
    ext = f", extension {code(groups.pop())}" if match["ext"] else ""
    words = ", ".join("eight hundred" if group == "800" else digits(group) for group in groups)
    return f"{'plus ' if match[0].startswith('+') else ''}{words}{ext}"


def _chemical(match: re.Match[str]) -> str:
    """Return the letters of a chemical formula by their names, and its numbers."""
    before = match.string[match.start() - 1 : match.start()]
    return (" " if before.isalnum() else "") + _atoms(match[0])


def _atoms(formula: str) -> str:
    pieces = re.findall(r"[A-Za-z]|[₀-₉\d]+", formula)
    return " ".join(
        letter_name(piece) if piece.isalpha() else code(unicodedata.normalize("NFKC", piece)) for piece in pieces
    )


def _isotope(match: re.Match[str]) -> str:
    return f"{_ELEMENTS[match['element']]} {code(unicodedata.normalize('NFKC', match['n']))}"


def _ion(match: re.Match[str]) -> Replacement:
    number = next(name for name in ("", "2", "3") if match[f"atoms{name}"])
    charge = unicodedata.normalize("NFKC", match[f"charge{number}"])
    sign = "plus" if charge[-1] == "+" else "minus"
    n = f" {cardinal(int(charge[:-1]))}" if charge[:-1] else ""
    return f"{_atoms(match[f'atoms{number}'])}{n} {sign}"


def _signs(text: str) -> str:
    """Return digits and letters one by one, with a short pause between groups."""
    groups = re.findall(r"[0-9A-Za-z]+", text)
    return ", ".join(
        " ".join(digits(sign) if sign.isdecimal() else letter_name(sign) for sign in group) for group in groups
    )


def _hex(match: re.Match[str]) -> str | None:
    text = match["n"] or match["rgb"]
    if match["rgb"] and (text.isdecimal() or text.isalpha()):
        return None
    signs = " ".join(cardinal(int(char)) if char.isdecimal() else letter_name(char) for char in text)
    return f"hex {signs}" if match["n"] else f"hash {signs}"
