"""What deploy/ has for other programs is as their schemas want it, and names ports, paths and images that are ours."""

import json
import plistlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tutti import __version__
from tutti.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = [DEPLOY / "compose.yaml", *sorted((DEPLOY / "compose").glob("*.yaml")),
           DEPLOY / "templates/casaos.yaml", DEPLOY / "templates/truenas.yaml"]  # fmt: skip
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
TEMPLATES = sorted((DEPLOY / "templates").glob("*"))
PORTS = {"8880", "10200"}


class Loader(yaml.SafeLoader):
    """YAML of Compose: `!reset` takes away what `extends` brought."""


Loader.add_constructor("!reset", lambda loader, node: loader.construct_sequence(node))


def read(path: Path) -> Any:
    return yaml.load(path.read_text("utf-8"), Loader)


def check(document: Any, schema: str) -> None:
    spec = find_spec("check_jsonschema")
    if spec is None or spec.origin is None:
        pytest.skip("no check-jsonschema: make .venv/.dev")
    path = Path(spec.origin).parent / "builtin_schemas" / "vendor" / f"{schema}.json"
    rules = json.loads(path.read_text("utf-8"))
    errors = jsonschema.validators.validator_for(rules)(rules).iter_errors(document)
    assert [f"{error.json_path}: {error.message}"[:200] for error in errors] == []


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.stem)
def test_a_compose_file_has_the_form_of_its_specification(path: Path) -> None:
    document = json.loads(json.dumps(read(path)))
    check(document, "compose-spec")
    for service in document["services"].values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0] if isinstance(volume, str) else volume["source"]
            known = source in document.get("volumes", {}) or "$" in source or (path.parent / source).exists()
            assert known, f"{source} is neither a volume nor a file"
        extended = service.get("extends")
        if extended:
            base = read(path.parent / extended["file"])
            assert extended["service"] in base["services"]
            assert base["volumes"].keys() & document["volumes"].keys() == {"models"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_the_form_of_its_schema(path: Path) -> None:
    document = read(path)
    document["on"] = document.pop(True)  # YAML 1.1 reads `on` as true
    check(json.loads(json.dumps(document)), "github-workflows")


def test_the_workflow_speaks_on_each_system_and_architecture() -> None:
    jobs = read(ROOT / ".github/workflows/check.yaml")["jobs"]
    systems = {system for job in jobs.values() for system in job.get("strategy", {}).get("matrix", {}).get("os", ())}
    assert {re.sub(r"[-\d.]+", " ", system).strip() for system in systems} == {
        *("ubuntu", "ubuntu arm", "macos", "macos intel", "windows", "windows arm")
    }
    for name in ("check", "windows"):
        assert any("speak" in step.get("run", "") for step in jobs[name]["steps"])


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_names_our_ports_and_settings(path: Path) -> None:
    text = path.read_text("utf-8")
    assert set(re.findall(r"\b(?:8880|10200)\b", text)) & PORTS
    assert {name.lower() for name in re.findall(r"TUTTI_([A-Z0-9_]+)", text)} <= set(Settings.model_fields)
    assert "/models" in text, "the volume of the image"


def test_the_template_of_unraid_is_complete() -> None:
    root = ET.parse(DEPLOY / "templates/unraid.xml").getroot()
    assert root.tag == "Container"
    assert root.get("version") == "2"
    assert all(root.findtext(name) for name in ("Name", "Repository", "Network", "Overview", "Category", "WebUI"))
    for config in root.iter("Config"):
        assert {"Name", "Target", "Type"} <= set(config.keys())
        assert config.get("Type") in ("Port", "Path", "Variable", "Device", "Label")


def test_the_template_of_easypanel_is_complete() -> None:
    (service,) = json.loads((DEPLOY / "templates/easypanel.json").read_text())["services"]
    assert service["type"] == "app"
    data = service["data"]
    assert data["source"]["type"] == "image"
    assert {mount["type"] for mount in data["mounts"]} == {"volume"}
    names = [data["projectName"], data["serviceName"], *(mount["name"] for mount in data["mounts"])]
    assert all(re.fullmatch(r"[a-z0-9_-]+", name) for name in names)
    assert all(
        isinstance(domain["port"], int) and not re.search(r"[\s*]", domain["host"]) for domain in data["domains"]
    )
    assert isinstance(data["env"], str)


def test_the_add_on_of_home_assistant_is_this_version_and_asks_living_routes() -> None:
    addon = read(DEPLOY / "home-assistant/tutti/config.yaml")
    assert {"name", "version", "slug", "description", "arch"} <= addon.keys()
    assert addon["version"] == __version__
    assert re.fullmatch(r"[-_.A-Za-z0-9]+", addon["slug"])
    assert addon["discovery"] == ["wyoming"]
    assert {port.partition("/")[0] for port in addon["ports"]} == PORTS
    assert addon["watchdog"].endswith("/healthz")
    assert all(re.match(r"https?://\[HOST\]:\[PORT:\d+\]", addon[name]) for name in ("watchdog", "webui"))
    assert addon["startup"] in ("initialize", "system", "services", "application", "once")
    assert all(isinstance(value, str) for value in addon["environment"].values())
    assert set(read(DEPLOY / "home-assistant/repository.yaml")) == {"name", "url", "maintainer"}


def test_macos_starts_the_server_and_lets_streams_end() -> None:
    job = plistlib.loads((DEPLOY / "launchd/tutti.plist").read_bytes())
    assert job["ProgramArguments"][1:] == ["serve"]
    assert job["KeepAlive"] == {"SuccessfulExit": False}
    assert job["ExitTimeOut"] > Settings().grace_s


def test_the_image_with_the_model_needs_no_network_and_no_rights() -> None:
    text = (DEPLOY / "model/Dockerfile").read_text("utf-8")
    assert int(re.findall(r"^USER (\d+)$", text, re.MULTILINE)[-1]) > 0
    (home,) = re.findall(r"TUTTI_HOME=(\S+) tutti pull --precision int8", text)
    assert f"tutti pull --from {home} && exec tutti" in text
    assert "TUTTI_PRECISION=int8" in text
    assert "TUTTI_OFFLINE=true" in text


@pytest.mark.process
def test_haproxy_understands_the_file_of_its_compose(tmp_path: Path) -> None:
    if not shutil.which("haproxy"):
        pytest.skip("there is no haproxy here")
    file = DEPLOY / "compose/haproxy.cfg"
    done = subprocess.run(["haproxy", "-c", "-f", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
