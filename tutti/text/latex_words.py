"""What the commands and signs of LaTeX formulas are called in English."""

FORMULA = {
    "en-us": "formula", "en-gb": "formula", "es": "fórmula", "fr": "formule", "it": "formula", "pt-br": "fórmula",
    "hi": "सूत्र", "ja": "数式", "zh": "公式", "zh-1.1": "公式", "de": "Formel",
    "sv": "formel", "pl": "wzór", "ru": "формула", "vi": "công thức", "ar": "صيغة",
}  # fmt: skip

_GREEK = str.split(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega"
)
SYMBOLS = {
    **{f"\\{name}": name for name in _GREEK},
    **{f"\\{name.capitalize()}": name for name in _GREEK},
    **{f"\\var{name}": name for name in ("epsilon", "theta", "phi", "rho", "pi", "sigma")},
    "\\pm": "plus or minus", "\\mp": "minus or plus", "\\times": "times", "\\cdot": "times", "\\ast": "times",
    "\\div": "divided by", "\\le": "less than or equal to", "\\leq": "less than or equal to", "\\lt": "less than",
    "\\leqslant": "less than or equal to", "\\ge": "greater than or equal to", "\\geq": "greater than or equal to",
    "\\geqslant": "greater than or equal to", "\\gt": "greater than", "\\ne": "not equal to", "\\neq": "not equal to",
    "\\approx": "approximately", "\\sim": "similar to", "\\simeq": "approximately", "\\cong": "congruent to",
    "\\equiv": "equivalent to", "\\propto": "proportional to", "\\ll": "much less than", "\\gg": "much greater than",
    "\\in": "in", "\\notin": "not in", "\\ni": "contains", "\\subset": "a subset of", "\\subseteq": "a subset of",
    "\\supset": "a superset of", "\\supseteq": "a superset of", "\\cup": "union", "\\cap": "intersection",
    "\\setminus": "without", "\\emptyset": "the empty set", "\\varnothing": "the empty set", "\\forall": "for all",
    "\\exists": "there exists", "\\nexists": "there is no", "\\to": "to", "\\rightarrow": "to",
    "\\longrightarrow": "to",    "\\leftarrow": "from", "\\mapsto": "maps to", "\\Rightarrow": "implies",
    "\\implies": "implies",
    "\\Leftrightarrow": "if and only if", "\\iff": "if and only if", "\\leftrightarrow": "to and from",
    "\\infty": "infinity", "\\partial": "partial", "\\nabla": "del", "\\angle": "angle", "\\triangle": "triangle",
    "\\perp": "perpendicular to", "\\parallel": "parallel to", "\\circ": "composed with", "\\degree": "degrees",
    "\\prime": "prime", "\\mid": "given", "\\land": "and", "\\wedge": "and", "\\lor": "or", "\\vee": "or",
    "\\neg": "not", "\\lnot": "not", "\\oplus": "x or", "\\otimes": "tensor", "\\therefore": "therefore",
    "\\because": "because", "\\ell": "L", "\\hbar": "H bar", "\\Re": "the real part of",
    "\\Im": "the imaginary part of",    "\\ldots": ", and so on,", "\\dots": ", and so on,",
    "\\cdots": ", and so on,", "\\log": "log",
    "\\ln": "natural log",    "\\lg": "log", "\\exp": "exp", "\\sin": "sine", "\\cos": "cosine", "\\tan": "tangent",
    "\\cot": "cotangent",
    "\\sec": "secant", "\\csc": "cosecant", "\\arcsin": "arc sine", "\\arccos": "arc cosine",
    "\\arctan": "arc tangent", "\\sinh": "hyperbolic sine", "\\cosh": "hyperbolic cosine",
    "\\tanh": "hyperbolic tangent", "\\det": "the determinant of", "\\dim": "the dimension of",
    "\\ker": "the kernel of",    "\\gcd": "GCD", "\\deg": "degree", "\\bmod": "mod", "\\mod": "mod",
    "\\pmod": "mod", "\\arg": "arg",
    "\\%": "percent", "\\$": "dollars", "\\#": "number", "\\&": "and", "\\_": "", "\\{": "", "\\}": "", "\\top": "T",
    "\\dagger": "dagger", "\\star": "star", "\\langle": "", "\\rangle": "", "\\lfloor": "the floor of", "\\rfloor": "",
    "\\lceil": "the ceiling of", "\\rceil": "", "\\vdots": "", "\\ddots": "", "\\blacksquare": "", "\\square": "",
}  # fmt: skip
SIGNS = {
    "+": "plus", "-": "minus", "−": "minus", "=": "equals", "<": "less than", ">": "greater than", "*": "times",
    "/": "over", "!": "factorial", "'": "prime", "|": "given", ",": ",", ";": ",", ".": ".", ":": ",", "~": "",
    "≤": "less than or equal to", "≥": "greater than or equal to", "≠": "not equal to", "≈": "approximately",
    "×": "times", "·": "times", "÷": "divided by", "±": "plus or minus", "∞": "infinity", "→": "to", "%": "percent",
    "∈": "in", "√": "the square root of", "∑": "the sum of", "∫": "the integral of", "∂": "partial",
}  # fmt: skip
BIG_OPERATORS = {
    "\\sum": "the sum", "\\prod": "the product", "\\int": "the integral", "\\iint": "the double integral",
    "\\oint": "the contour integral", "\\lim": "the limit", "\\max": "the maximum", "\\min": "the minimum",
    "\\sup": "the supremum", "\\inf": "the infimum", "\\bigcup": "the union", "\\bigcap": "the intersection",
    "\\argmax": "arg max", "\\argmin": "arg min",
}  # fmt: skip
ACCENTS = {
    "\\hat": "{} hat", "\\widehat": "{} hat", "\\bar": "{} bar", "\\overline": "{} bar", "\\tilde": "{} tilde",
    "\\widetilde": "{} tilde", "\\vec": "vector {}", "\\dot": "{} dot", "\\ddot": "{} double dot", "\\underline": "{}",
    "\\boxed": "{}", "\\mathbf": "{}", "\\mathbb": "{}", "\\mathcal": "{}", "\\mathit": "{}", "\\mathsf": "{}",
    "\\mathtt": "{}", "\\mathfrak": "{}", "\\boldsymbol": "{}", "\\bm": "{}", "\\underbrace": "{}", "\\overbrace": "{}",
    "\\cancel": "{}",
}  # fmt: skip
DROPPED_ARGUMENTS = frozenset(("\\label", "\\tag", "\\color", "\\vspace", "\\hspace", "\\phantom", "\\ref", "\\eqref"))
SILENT = frozenset(
    str.split(
        "\\left \\right \\big \\Big \\bigg \\Bigg \\bigl \\bigr \\Bigl \\Bigr \\biggl \\biggr \\middle \\quad \\qquad "
        "\\, \\; \\: \\! \\> \\displaystyle \\textstyle \\scriptstyle \\limits \\nolimits \\nonumber \\notag \\hline "
        "\\centering \\rm \\bf \\it"
    )
) | {"\\ ", "\\"}
# Names before a bracket that take an argument: "f of x", but "n times (n + 1)".
FUNCTION_LETTERS = frozenset("fghFGHPpOLTEQVJKuvw") | frozenset(
    str.split(
        "\\ell \\sigma \\phi \\varphi \\psi \\Gamma \\Theta \\Omega \\zeta \\Phi \\Psi \\log \\ln \\exp \\sin "
        "\\cos \\tan"
    )
)
