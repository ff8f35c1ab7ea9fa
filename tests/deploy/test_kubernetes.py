"""The chart and the manifests: valid by Kubernetes' own schemas, and true to the code."""

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.helm_chart import CHART, DEPLOY, MANIFESTS, chart_values, manifest, render_chart
from tests.deploy.test_prometheus import needs_prometheus
from tests.fakes import FakeEngine
from tutti import settings
from tutti.metrics import Metrics
from tutti.server.app import create_app
from tutti.settings import Settings
from tutti.voices import Voices

VERSIONS = ("1.30", kubernetes_validate.latest_version())
CASES = {
    "cpu": chart_values("values.yaml"),
    "gpu": chart_values("values.yaml", "values-gpu.yaml"),
    "hpa": chart_values("values.yaml", autoscaling__kind="hpa"),
    "claims": chart_values("values.yaml", modelsClaim="models", apiKeysSecret="keys", settings={"TUTTI_MAX_QUEUE": 99}),
}


def documents(values: dict[str, Any]) -> dict[str, Any]:
    """The documents by kind; of the services the first."""
    found: dict[str, Any] = {}
    for document in yaml.safe_load_all(render_chart(values)):
        found.setdefault(document["kind"], document)
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_valid_by_the_schemas_of_kubernetes(case: str, version: str) -> None:
    known = [
        item for item in yaml.safe_load_all(render_chart(CASES[case])) if not item["apiVersion"].startswith("keda")
    ]
    assert {item["kind"] for item in known} >= {"Deployment", "Service", "PodDisruptionBudget"}
    for item in known:
        kubernetes_validate.validate(item, version, strict=True)


def test_a_wrong_field_would_be_found() -> None:
    deployment = documents(CASES["cpu"])["Deployment"]
    deployment["spec"]["template"]["spec"]["terminationGracePeriodSecond"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_plain_manifests_are_the_rendered_chart(name: str) -> None:
    assert (DEPLOY / "kubernetes" / name).read_text() == manifest(name), "run python -m tests.deploy.helm_chart"


@pytest.mark.parametrize("case", CASES)
def test_a_pod_has_time_to_drain_and_the_settings_exist(case: str, tmp_path: Path) -> None:
    pod = documents(CASES[case])["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    given = {item["name"]: item.get("value", "1") for item in container["env"]}
    chosen, _ = settings.load({}, given, tmp_path / "none")
    sleep_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > sleep_s + chosen.grace_s
    assert pod["enableServiceLinks"] is False, "a service named tutti would set TUTTI_PORT"
    assert chosen.replica
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": chosen.port, "agent-check": chosen.agent_check_port}
    limits = container["resources"]["limits"]
    assert limits["cpu"] == container["resources"]["requests"]["cpu"]
    assert ("nvidia.com/gpu" in limits) == (given.get("TUTTI_DEVICE") == "cuda")


def test_the_probes_and_ports_are_those_of_the_server(voices: Voices) -> None:
    found = documents(CASES["cpu"])
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    routes = create_app(FakeEngine(voices), Settings()).openapi()["paths"].keys()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in routes
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz", "a pod that drains must not be killed"
    selector = found["Deployment"]["spec"]["selector"]["matchLabels"]
    assert found["Service"]["spec"]["selector"] == found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    assert selector == found["Service"]["spec"]["selector"]


def scaler_queries() -> list[str]:
    return [trigger["metadata"]["query"] for trigger in documents(CASES["gpu"])["ScaledObject"]["spec"]["triggers"]]


def test_both_scalers_grow_by_the_wait_and_hold_by_the_busy_ratio() -> None:
    gauges = [family.name for family in Metrics().registry.collect() if family.type == "gauge"]
    hpa = documents(CASES["hpa"])["HorizontalPodAutoscaler"]["spec"]
    keda = documents(CASES["gpu"])["ScaledObject"]["spec"]
    by_hpa = [metric["pods"]["metric"]["name"] for metric in hpa["metrics"]]
    by_keda = [re.findall(r"tutti_\w+", query)[0] for query in scaler_queries()]
    assert by_hpa == by_keda == ["tutti_predicted_wait_seconds", "tutti_busy_ratio"]
    assert set(by_hpa) <= set(gauges)
    adapter = yaml.safe_load((DEPLOY / "kubernetes/prometheus-adapter.yaml").read_text())["rules"]["custom"]
    assert [rule["name"]["matches"] for rule in adapter] == by_hpa
    for spec in (hpa, keda):
        assert spec["scaleTargetRef"]["name"] == documents(CASES["hpa"])["Deployment"]["metadata"]["name"]
    assert "replicas" not in documents(CASES["hpa"])["Deployment"]["spec"], "an update must not undo the scaler"
    assert documents(CASES["cpu"])["Deployment"]["spec"]["replicas"] == 2
    for behavior in (hpa["behavior"], keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]):
        assert behavior["scaleDown"]["stabilizationWindowSeconds"] > behavior["scaleUp"]["stabilizationWindowSeconds"]


@pytest.mark.process
@needs_prometheus
def test_prometheus_understands_the_queries(tmp_path: Path) -> None:
    adapter = yaml.safe_load((DEPLOY / "kubernetes/prometheus-adapter.yaml").read_text())["rules"]["custom"]
    names = {"<<.GroupBy>>": "pod", "<<.LabelMatchers>>": 'namespace="a"'}
    queries = scaler_queries()
    for rule in adapter:
        query = rule["metricsQuery"].replace("<<.Series>>", rule["name"]["matches"])
        for name, value in names.items():
            query = query.replace(name, value)
        queries += [query, rule["seriesQuery"]]
    rules = [{"record": f"query:{n}", "expr": query} for n, query in enumerate(queries)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "scalers", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_value_is_used_by_a_template() -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").glob("*.yaml"))
    for name, value in chart_values("values.yaml").items():
        keys = [f"{name}.{key}" for key in value] if isinstance(value, dict) and name not in ("resources",) else [name]
        for key in keys or [name]:
            assert f".Values.{key}" in templates, key
