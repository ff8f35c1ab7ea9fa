"""Blocks of code in Markdown: read aloud, skipped, or announced by their language and length."""

import re

from tutti.text.aligned_text import AlignedText, Replacement
from tutti.text.options import CodeBlocks

# A block without an end reaches to the end of the text: a match always succeeds, in linear time. Tildes without a
# language are a line between two scenes.
_BLOCK = re.compile(
    r"(?m)^(?P<open>[ \t]*+(?P<fence>```+|~~~+(?=[ \t]*[A-Za-z]))[ \t]*+(?P<name>[^\s`{]*+)[^`\n]*+)"
    r"(?P<code>(?:\n(?![ \t]*+(?P=fence)[`~]*+[ \t]*+$)[^\n]*+)*+)(?P<close>\n[ \t]*+(?P=fence)[`~]*+[ \t]*+$)?"
)
_NAMES = {
    "py": "Python", "python": "Python", "python3": "Python", "js": "JavaScript", "javascript": "JavaScript",
    "jsx": "JSX", "ts": "TypeScript", "typescript": "TypeScript", "tsx": "TSX", "sh": "shell", "shell": "shell",
    "bash": "bash", "zsh": "shell", "console": "shell", "json": "JSON", "yaml": "YAML", "yml": "YAML", "toml": "TOML",
    "xml": "XML", "html": "HTML", "css": "CSS", "sql": "SQL", "cpp": "C++", "c++": "C++", "cs": "C#", "csharp": "C#",
    "c#": "C#", "c": "C", "rs": "Rust", "rust": "Rust", "go": "Go", "golang": "Go", "rb": "Ruby", "ruby": "Ruby",
    "md": "Markdown", "markdown": "Markdown", "tex": "LaTeX", "latex": "LaTeX", "kt": "Kotlin", "ps1": "PowerShell",
    "dockerfile": "Docker", "php": "PHP", "r": "R",
}  # fmt: skip
_PLAIN = frozenset(("", "text", "txt", "plain", "plaintext", "output"))
SKIP_NOTICE = 'blocks of code were skipped: code_blocks is "skip"'
CONTINUED = "continued"  # the name of a block whose beginning was in an earlier part of the text
# language of the text: without a name, with one; one line, several lines
_WORDS = {
    "en": ("Code block", "Code block in {name}", "line", "lines"),
    "es": ("Bloque de código", "Bloque de código en {name}", "línea", "líneas"),
    "fr": ("Bloc de code", "Bloc de code en {name}", "ligne", "lignes"),
    "it": ("Blocco di codice", "Blocco di codice in {name}", "riga", "righe"),
    "pt": ("Bloco de código", "Bloco de código em {name}", "linha", "linhas"),
    "de": ("Codeblock", "Codeblock in {name}", "Zeile", "Zeilen"),
    "sv": ("Kodblock", "Kodblock i {name}", "rad", "rader"),
    "pl": ("Blok kodu", "Blok kodu w {name}", "wiersz", "wierszy"),
    "ru": ("Блок кода", "Блок кода на {name}", "строка", "строк"),
    "ar": ("كتلة برمجية", "كتلة برمجية بلغة {name}", "سطر", "سطرا"),
    "vi": ("Khối mã", "Khối mã {name}", "dòng", "dòng"),
    "hi": ("कोड ब्लॉक", "{name} कोड ब्लॉक", "पंक्ति", "पंक्तियाँ"),
}
_WORDS_WITHOUT_COUNT = {"ja": ("コードブロック。", "{name}のコードブロック。"), "zh": ("代码块。", "{name}代码块。")}


def replace_code_blocks(aligned: AlignedText, option: CodeBlocks, language: str) -> AlignedText:
    """Keep, remove or announce the blocks. An announcement has the source of the line that opens the block."""
    if "```" not in aligned.text and "~~~" not in aligned.text:
        return aligned

    def replace_block(match: re.Match[str]) -> Replacement:
        close = {} if match["close"] is None else {"close": "\n\n"}
        if option == "read":
            return {"open": "\n"} | close
        is_announced = option == "announce" and match["name"] != CONTINUED and match["code"].strip() != ""
        words = {"open": f"\n\n{_announcement(match, language)}\n\n" if is_announced else "\n\n"}
        return words | close | ({"code": ""} if match["code"] else {})

    return aligned.sub(_BLOCK, replace_block)


def has_block(text: str) -> bool:
    return ("```" in text or "~~~" in text) and _BLOCK.search(text) is not None


def open_block(text: str, end: int | None = None) -> int:
    """Return where a block begins that has no end in text[:end], or -1."""
    if text.rfind("```", 0, end) < 0 and text.rfind("~~~", 0, end) < 0:
        return -1
    for match in _BLOCK.finditer(text, 0, len(text) if end is None else end):
        if match["close"] is None:
            return match.start()
    return -1


def update_code_mark(marks: dict[str, str], text: str) -> None:
    """Put into `marks` what opens a block again that is open at the end of `text`, which begins with the same marks."""
    start = open_block(marks.get("code", "") + text)
    marks.pop("code", None)
    if start >= 0:
        marks["code"] = f"\n```{CONTINUED}\n"


def _announcement(match: re.Match[str], language: str) -> str:
    name = match["name"].lower()
    name = "" if name in _PLAIN else _NAMES.get(name, match["name"])
    code = language.partition("-")[0]
    if code in _WORDS_WITHOUT_COUNT:
        return _WORDS_WITHOUT_COUNT[code][bool(name)].format(name=name)
    plain, with_name, line, lines = _WORDS.get(code, _WORDS["en"])
    if match["close"] is None:  # more of it may follow in the next part of the text
        return f"{(with_name if name else plain).format(name=name)}."
    n_lines = len(match["code"].strip().splitlines())
    return f"{(with_name if name else plain).format(name=name)}, {n_lines} {line if n_lines == 1 else lines}."
