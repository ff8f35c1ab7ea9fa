"""Formulas in LaTeX: read aloud in English, in other languages replaced by the word for a formula."""

import re
from collections.abc import Iterator

from tutti.text.aligned_text import AlignedText
from tutti.text.latex_words import (
    ACCENTS,
    BIG_OPERATORS,
    DROPPED_ARGUMENTS,
    FORMULA,
    FUNCTION_LETTERS,
    SIGNS,
    SILENT,
    SYMBOLS,
)
from tutti.text.normalize.letters import letter_name
from tutti.text.normalize.numbers import cardinal, number, ordinal_of
from tutti.text.normalize.symbols import fraction

MAX_FORMULA = 1000  # characters; a longer one is not followed by ear, and is replaced by the word for it
MAX_DEPTH = 12  # nested groups; deeper ones are read without their structure
MAX_ARGUMENTS = 24  # scripts, fractions and roots within each other; deeper ones are read one after the other


def read_formulas(aligned: AlignedText, language: str) -> AlignedText:
    """Replace formulas outside of code by words, each with the source of its formula."""
    if "$" not in aligned.text and "\\" not in aligned.text:
        return aligned

    def read(match: re.Match[str]) -> str | None:
        content = next((match[name] for name in _CONTENTS if match[name] is not None), None)
        if content is None or (match["inline"] is not None and not _is_formula(content)):
            return None
        if not language.startswith("en-"):
            return content.strip() if _PLAIN.fullmatch(content) else f" {FORMULA[language]} "
        words = FORMULA["en-us"] if len(content) > MAX_FORMULA else formula_words(content)
        before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
        return (" " if before.isalnum() else "") + (words or " ") + (" " if after.isalnum() else "")

    return aligned.sub(_FORMULA_OR_CODE, read)


def is_open(text: str, end: int) -> bool:
    """Tell whether a formula has begun before `end` and may end behind it."""
    start = max(0, end - 2 * MAX_FORMULA)
    if text.find("$", start, end) < 0 and text.find("\\", start, end) < 0:
        return False
    if text.count("$$", start, end) % 2 or text.rfind("\\[", start, end) > text.rfind("\\]", start, end):
        return True
    if text.rfind("\\(", start, end) > text.rfind("\\)", start, end):
        return True
    begins = len(_BEGIN.findall(text, start, end))
    return begins > len(_END.findall(text, start, end)) or _OPEN_INLINE.search(text, start, end) is not None


def formula_words(formula: str) -> str:
    """Return a formula in words: "x^2 = \\frac{1}{2}" is "X squared equals one half"."""
    words = " ".join(_Formula(formula).sequence())
    return _SPACE_BEFORE_MARK.sub(r"\1", " ".join(words.split()))


# A content stops at the next delimiter of its kind: linear time.
_ENVIRONMENT = r"(?:equation|align|aligned|gather|gathered|multline|eqnarray|split)\*?"
_FORMULA_OR_CODE = re.compile(
    r"(?m)^[ \t]*+(?P<fence>```+|~~~+(?=[ \t]*[A-Za-z]))[^\n]*+\n"
    r"(?s:.*?)(?:^[ \t]*+(?P=fence)|\Z)|``[^`\n]++``|`[^`\n]++`"
    r"|\$\$(?P<display>[^$]{1,4000}+)\$\$"
    r"|(?<!\\)\\\[(?P<bracket>(?:[^\\]|\\[^\[\]]){1,4000}+)\\\]"
    r"|(?<!\\)\\\((?P<paren>(?:[^\\]|\\[^()]){1,4000}+)\\\)"
    rf"|\\begin\{{(?P<name>{_ENVIRONMENT})\}}"
    r"(?P<body>(?:[^\\]|\\(?!(?:begin|end)\{(?P=name)\})){1,4000}+)\\end\{(?P=name)\}"
    r"|(?<![\\$\w])\$(?=[^\s$])(?P<inline>[^$\n]{1,300}+)(?<=[^\s\\])\$(?![\w$])"
)
_CONTENTS = ("display", "bracket", "paren", "body", "inline")
_BEGIN = re.compile(rf"\\begin\{{{_ENVIRONMENT}\}}")
_END = re.compile(rf"\\end\{{{_ENVIRONMENT}\}}")
_OPEN_INLINE = re.compile(r"(?<![\\$\w])\$(?=[A-Za-z\\({|-])[^$\n]{0,300}\Z")
_SENTENCE = re.compile(r"[.!?]\s|[a-z]{4,}\s[a-z]{4,}")
_SIGN_OF_FORMULA = re.compile(r"[\\^_={}<>]")
_SHORT = re.compile(r"-?\d+(?:[.,]\d+)?%?|[A-Za-z]{1,3}'?|[\w+\-*/().,!|\s]{1,24}")
_PLAIN = re.compile(r"[^\\^_{}]{1,40}")
_SPACE_BEFORE_MARK = re.compile(r" +([,.;:!?])")
_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\d+(?:[.,]\d+)*|\s+|.", re.DOTALL)
_RAW = frozenset(
    str.split("\\text \\textbf \\textit \\textrm \\mathrm \\operatorname \\mbox \\ce \\texttt \\operatorname*")
)
_FRACTIONS = frozenset(("\\frac", "\\dfrac", "\\tfrac", "\\cfrac"))


def _is_formula(content: str) -> bool:
    """Tell whether text between two dollar signs is a formula and not the text between two prices."""
    if _SENTENCE.search(content) and "\\" not in content:
        return False
    return bool(_SIGN_OF_FORMULA.search(content) or _SHORT.fullmatch(content))


class _Formula:
    """Reads a formula from left to right; a script belongs to what stands before it."""

    def __init__(self, formula: str) -> None:
        self._tokens = [token for token in _TOKEN.findall(formula) if not token.isspace() or "\\" in token]
        self._source = formula
        self._at = 0
        self._depth = 0
        self._n_arguments = 0  # that are being read, each within the one before
        self._n_matrices = 0  # that are open: in them a & separates entries, elsewhere it only aligns

    def sequence(self, end: str = "") -> Iterator[str]:
        """Yield words up to the token `end`, or to the end of the formula."""
        function = False  # the last thing read was the name of a function
        self._depth += 1
        while self._at < len(self._tokens):
            token = self._next()
            if token == end:
                break
            if token == "(" and function:
                yield "of"
            function = self._is_function(token)
            yield from self._atom(token)
        self._depth -= 1

    def _atom(self, token: str) -> Iterator[str]:
        match token:
            case "^":
                yield self._superscript()
            case "_":
                yield self._group()
            case "{":
                yield " ".join(self.sequence("}")) if self._depth < MAX_DEPTH else ""
            case _ if token in _FRACTIONS:
                yield self._fraction()
            case "\\sqrt":
                yield self._root()
            case "\\binom" | "\\dbinom" | "\\tbinom":
                yield f"{self._group()} choose {self._group()}"
            case _ if token in BIG_OPERATORS:
                yield self._big_operator(token)
            case _ if token in ACCENTS:
                yield ACCENTS[token].format(self._group())
            case _ if token in _RAW:
                yield self._raw()
            case _ if token in DROPPED_ARGUMENTS:
                self._raw()
            case "\\begin":
                yield self._begin(self._raw())
            case "\\end":
                self._n_matrices -= self._raw().rstrip("*").endswith(("matrix", "cases", "array"))
            case "&":
                yield "," if self._n_matrices > 0 else ""
            case "\\\\" | "\\cr" | "\\newline":
                yield ";"
            case _:
                yield _word(token)

    def _begin(self, name: str) -> str:
        name = name.rstrip("*")
        self._n_matrices += name.endswith(("matrix", "cases", "array"))
        if name.endswith("matrix"):
            return "the matrix"
        return {"cases": "either", "array": "the array"}.get(name, "")

    def _next(self) -> str:
        token: str = self._tokens[self._at]
        self._at += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _group(self) -> str:
        """Return the words of {...}, or of the next token."""
        if self._at >= len(self._tokens) or self._peek() == "}":
            return ""
        token = self._next()
        if token.isdecimal() and len(token) > 1:  # x^12 is x^1 2
            self._tokens[self._at - 1 : self._at] = [token[0], token[1:]]
            token = token[0]
        if self._n_arguments >= MAX_ARGUMENTS:
            return _word(token)
        self._n_arguments += 1
        words = " ".join(self._atom(token))
        self._n_arguments -= 1
        return words

    def _raw(self) -> str:
        """Return the text of {...} as it is written."""
        if self._peek() != "{":
            return self._next() if self._at < len(self._tokens) else ""
        self._at += 1
        pieces: list[str] = []
        depth = 1
        while self._at < len(self._tokens):
            token = self._next()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                break
            pieces.append(token)
        return _spaced(pieces)

    def _superscript(self) -> str:
        if self._peek() == "{" and self._tokens[self._at + 1 : self._at + 3] in (["\\circ", "}"], ["\\prime", "}"]):
            self._at += 1
            word = "degrees" if self._next() == "\\circ" else "prime"
            self._at += 1
            return word
        if self._peek() in ("\\circ", "\\prime"):
            return "degrees" if self._next() == "\\circ" else "prime"
        start = self._at
        words = self._group()
        tokens = [token for token in self._tokens[start : self._at] if token not in "{}"]
        match tokens:
            case ["2"]:
                return "squared"
            case ["3"]:
                return "cubed"
            case [power] if power.isdecimal() and len(power) < 4:
                return f"to the {ordinal_of(cardinal(int(power)))}"
            case ["*"]:
                return "star"
        return f"to the {words}"

    def _fraction(self) -> str:
        start = self._at
        top = self._group()
        middle = self._at
        bottom = self._group()
        top_tokens, bottom_tokens = (
            [token for token in tokens if token not in "{}"]
            for tokens in (self._tokens[start:middle], self._tokens[middle : self._at])
        )
        match top_tokens, bottom_tokens:
            case [a], [b] if a.isdecimal() and b.isdecimal() and 0 < int(a) < int(b) <= 20:
                return fraction(int(a), int(b))
        return f"{top} over {bottom}"

    def _root(self) -> str:
        degree = ""
        if self._peek() == "[" and self._depth < MAX_DEPTH:
            self._at += 1
            degree = " ".join(self.sequence("]"))
        name = {"": "square", "two": "square", "three": "cube"}.get(degree, f"{degree}th")
        return f"the {name} root of {self._group()}"

    def _big_operator(self, token: str) -> str:
        """Return a sum, an integral or a limit with its bounds."""
        name, is_limit = BIG_OPERATORS[token], token == "\\lim"
        low = high = ""
        while self._peek() in ("_", "^", "\\limits", "\\nolimits"):
            sign = self._next()
            if sign == "_":
                low = self._group()
            elif sign == "^":
                high = self._group()
        if is_limit:
            return f"{name} as {low.replace(' to ', ' approaches ')} of" if low else f"{name} of"
        if high:
            return f"{name} from {low} to {high} of"
        return f"{name} over {low} of" if low else f"{name} of"

    def _is_function(self, token: str) -> bool:
        if token == "}":
            return False
        if token in ("\\mathcal", "\\mathbb", "\\mathbf"):  # \mathcal{L}(x)
            return self._tokens[self._at + 1 : self._at + 2] != [] and self._tokens[self._at + 1] in FUNCTION_LETTERS
        return token in FUNCTION_LETTERS


def _word(token: str) -> str:
    """Return one token by its name."""
    if token[0].isdecimal():
        return number(token.replace(",", "")) if token.count(".") < 2 else cardinal(int(re.sub(r"\D", "", token)))
    if token in SYMBOLS:
        return SYMBOLS[token]
    if token in SIGNS:
        return SIGNS[token]
    if token in SILENT or token in "[](){}":
        return ""
    if token.isalpha() and token.isascii():
        return letter_name(token)
    return token.lstrip("\\").rstrip("*") if token.startswith("\\") else token


def _spaced(tokens: list[str]) -> str:
    """Return the tokens of a \\text with the blanks that TeX would print."""
    return "".join(" " if token in ("\\", "~", "\\,", "\\ ", "\\;") else token.lstrip("\\") for token in tokens)
