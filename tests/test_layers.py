"""The layers of docs/architecture.md hold: a file imports only what lies below it, heavy libraries at home."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tutti"
LAYERS = {
    **dict.fromkeys(("errors", "files", "child_process", "percentile", "settings", "speech", "metrics"), 0),
    **dict.fromkeys(("text", "audio", "model", "voices", "weights"), 1),
    **dict.fromkeys(("batching", "captions", "verify"), 2),
    **dict.fromkeys(("worker",), 3),
    **dict.fromkeys(("engine",), 4),
    **dict.fromkeys(("audiobook",), 5),
    **dict.fromkeys(("server", "client"), 6),
    **dict.fromkeys(("cli", "__main__"), 7),
}
ONLY_IN = {
    "torch": ("model",),
    **dict.fromkeys(("onnx", "onnxruntime"), ("model", "verify")),
    **dict.fromkeys(("av", "soxr"), ("audio",)),
    **dict.fromkeys(("espeakng_loader", "jieba", "pypinyin", "fugashi", "jaconv"), ("text",)),
    **dict.fromkeys(("huggingface_hub",), ("weights",)),
    **dict.fromkeys(("fastapi", "starlette"), ("server",)),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "tutti" else {node.module}
            )
    return found


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_what_lies_below_it(path: Path) -> None:
    here = part(path)
    if here == "__init__":
        return  # the front door names the engine lazily
    for name in imports(path):
        top, _, rest = name.partition(".")
        there = rest.split(".")[0]
        if top == "tutti" and there in LAYERS and there != here:
            assert LAYERS[there] < max(LAYERS[here], 1) or here == "__main__", (
                f"{here}, layer {LAYERS[here]}, imports {name}, {LAYERS[there]}"
            )
        if top in ONLY_IN:
            assert here in ONLY_IN[top], f"{top} belongs in {ONLY_IN[top]}/, not in {here}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "client").glob("*.py")), ids=lambda path: path.stem)
def test_the_client_stands_aside(path: Path) -> None:
    ours = {name for name in imports(path) if name.split(".")[0] == "tutti"}
    assert all(name.split(".")[1] in ("client", "errors", "files", "percentile") for name in ours), ours


def test_every_part_has_its_layer() -> None:
    assert {part(path) for path in FILES} <= {*LAYERS, "__init__"}
