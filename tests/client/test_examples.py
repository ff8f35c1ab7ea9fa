"""Every example runs as it is, and so does the code in docs/client.md."""

import json
import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from tutti.client.options import ClientOptions, ClientSettings
from tutti.client.request import SpeechOptions

pytestmark = [pytest.mark.process, pytest.mark.server]

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [(ROOT / name).read_text(encoding="utf-8") for name in ("docs/client.md", "README.md")]
SNIPPETS = [
    code for page in PAGES for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "tutti.client" in code
]


def run_python(code: list[str], url: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *code],
        cwd=folder,
        env={**os.environ, "TUTTI_URL": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(engine_url: str, tmp_path: Path, path: Path) -> None:
    printed = run_python([str(path)], engine_url, tmp_path)
    match path.stem:
        case "quick_start" | "audiobook" | "captions":
            (wav,) = tmp_path.glob("*.wav")
            with wave.open(str(wav)) as file:
                assert file.getnframes() > 12_000
        case "stream_to_file":
            assert (tmp_path / "lighthouse.mp3").stat().st_size > 1000
        case "llm_to_speech":
            assert "far side of the earth." in printed
        case "async_agent":
            assert "(from the cache)" in printed
        case _:
            pytest.fail("add here what this example must print")
    if path.stem == "captions":
        assert "00:00:00," in (tmp_path / "captions.srt").read_text()


def test_the_examples_pass_mypy_strict() -> None:
    """Check them as a user would: with the client's types and nothing ignored."""
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, EXAMPLES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def test_the_notebook_runs(engine_url: str, tmp_path: Path) -> None:
    """Run cell by cell and display each last value as a notebook does."""
    notebook = json.loads((ROOT / "examples/tour.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    runner = tmp_path / "run.py"
    runner.write_text(NOTEBOOK_RUNNER.format(cells=cells), "utf-8")
    printed = run_python([str(runner)], engine_url, tmp_path)
    assert printed.count("<audio controls src=") == 2
    assert "heard." in printed
    assert "error: the text is empty" in printed


NOTEBOOK_RUNNER = """
import ast
names = {{}}
for cell in {cells!r}:
    *steps, last = ast.parse(cell).body
    exec(compile(ast.Module(steps, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        print(value._repr_html_() if hasattr(value, "_repr_html_") else value)
    else:
        exec(compile(ast.Module([last], []), "cell", "exec"), names)
"""


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_the_code_of_the_page_runs(engine_url: str, tmp_path: Path, number: int) -> None:
    run_python(["-c", SNIPPETS[number].replace("http://127.0.0.1:8880", engine_url)], engine_url, tmp_path)


def test_the_page_names_every_option() -> None:
    assert SNIPPETS
    assert set(ClientOptions.__annotations__) == set(ClientSettings.__dataclass_fields__)
    missing = [
        name for name in (*ClientOptions.__annotations__, *SpeechOptions.__annotations__) if f"`{name}`" not in PAGES[0]
    ]
    assert not missing
