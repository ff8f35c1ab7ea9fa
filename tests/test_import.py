"""`import tutti` and `tutti --help` stay light."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "onnxruntime", "onnx", "av", "fastapi", "torch", "pydantic")


@pytest.mark.process
@pytest.mark.parametrize(
    ("module", "allowed"),
    [("tutti", ()), ("tutti.errors", ()), ("tutti.cli.main", ("pydantic",)), ("tutti.text", ("numpy",))],
)
def test_an_import_loads_nothing_heavy(module: str, allowed: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) <= set(allowed)


def test_public_names_are_there() -> None:
    import tutti

    assert all(hasattr(tutti, name) for name in tutti.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        tutti.Motor  # noqa: B018
