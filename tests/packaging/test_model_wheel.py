"""The wheel tutti-tts-model: with it an empty home speaks without a network."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import model_wheel
from tutti.model_package import NAME
from tutti.weights import required_files

pytestmark = [pytest.mark.process, pytest.mark.weights, pytest.mark.slow]

NOWHERE = "http://127.0.0.1:9"  # nothing listens there


@pytest.fixture(scope="module")
def wheel(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_wheel.build(home, tmp_path_factory.mktemp("dist"))


def test_it_holds_the_official_files_with_their_licence_and_fits_on_the_public_index(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"{NAME}/{file.path}" for file in required_files("int8")} <= set(names)
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "NOTICE"}
    assert wheel.stat().st_size < 1e6 * model_wheel.MAX_MB


def test_an_empty_home_speaks_with_it_and_without_a_network(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI")}
    closed = dict.fromkeys(
        ("HF_ENDPOINT", "PIP_INDEX_URL", "npm_config_registry", "HTTPS_PROXY", "HTTP_PROXY"), NOWHERE
    )
    command = [sys.executable, "-m", "tutti", "speak", "Hello.", "-o", "hello.wav"]
    environment = {**ours, **closed, "TUTTI_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hello.wav").stat().st_size > 20_000
    assert (tmp_path / "home/kokoro-v1.0.int8.onnx").exists()
