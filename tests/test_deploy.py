"""Settings, flags, extras, files and routes that deploy/ names exist; the stop timeout leaves time to drain."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tutti import settings
from tutti.server.app import create_app
from tutti.settings import Settings
from tutti.voices import Voices

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("Dockerfile*"))
FILES = sorted(
    [
        *(path for path in DEPLOY.rglob("*") if path.is_file()),
        ROOT / "docs" / "deploy.md",
        *(ROOT / "docs" / "integrations").glob("*.md"),
    ]
)
UNIT = (DEPLOY / "tutti.service").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVERS = [service for service in COMPOSE["services"].values() if "build" in service]  # ours
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def file_name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", FILES, ids=file_name)
def test_every_setting_flag_and_extra_that_is_named_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert {name.lower() for name in re.findall(r"TUTTI_([A-Z0-9_]*[A-Z0-9])", text)} <= set(Settings.model_fields)
    for command in re.findall(r"tutti serve([^\n`]*)", text):
        flags = re.findall(r"--([a-z0-9-]+)", command)
        assert {flag.replace("-", "_") for flag in flags} <= set(Settings.model_fields), command
    for extras in re.findall(r"(?:tutti-tts|\"\.)\[([a-z,]+)\]", text):
        assert set(extras.split(",")) <= set(EXTRAS)


def test_the_server_accepts_the_values(tmp_path: Path) -> None:
    services = [service["environment"] for service in SERVERS]
    unit = dict(line.split("=", 1) for line in re.findall(r"^Environment=(.*)$", UNIT, re.MULTILINE))
    images = [dict(re.findall(r"\b(TUTTI_\w+)=(\S+)", path.read_text())) for path in DOCKERFILES]
    for environment in (unit, *services, *images):
        ours = {name: value for name, value in environment.items() if name.startswith("TUTTI_") and "$" not in value}
        assert ours
        settings.load({}, ours, tmp_path / "none")
    settings.load({}, {}, DEPLOY / "tutti.env")


def test_the_stop_timeout_is_longer_than_the_grace_time() -> None:
    (stop_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    (grace_s,) = re.findall(r"^Environment=TUTTI_GRACE_S=(\d+)$", UNIT, re.MULTILINE)
    assert int(stop_s) > int(grace_s)
    for service in SERVERS:
        assert int(service["stop_grace_period"].removesuffix("s")) > int(service["environment"]["TUTTI_GRACE_S"])


@pytest.mark.parametrize("path", DOCKERFILES, ids=file_name)
def test_an_image_copies_existing_files_and_runs_without_root(path: Path) -> None:
    text = path.read_text()
    included = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert copied
    assert all((ROOT / name).exists() and name.partition("/")[0] in included for name in copied)
    assert int(re.findall(r"^USER (\d+)$", text, re.MULTILINE)[-1]) > 0
    port, probe = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", text)[0]
    assert f"TUTTI_PORT={port}" in text
    assert f"EXPOSE {port}" in text
    assert probe == "/readyz"


def test_the_probe_is_a_route() -> None:
    class EngineWithoutModel:
        ready = False
        checkpoints = ("kokoro",)
        first_audio = None
        voices = Voices(Path("voices"))

    paths = create_app(EngineWithoutModel(), Settings()).openapi()["paths"]  # type: ignore[arg-type]
    assert "/readyz" in paths


def test_compose_builds_the_existing_dockerfiles() -> None:
    built = {service["build"]["dockerfile"] for service in SERVERS}
    assert built == {str(path.relative_to(ROOT)) for path in DOCKERFILES}


@pytest.mark.process
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze here")
    unit = tmp_path / "tutti.service"
    unit.write_text(UNIT.replace("/opt/tutti/bin/tutti", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")
