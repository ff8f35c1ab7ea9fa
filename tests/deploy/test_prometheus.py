"""The queries of deploy/ find data in a real Prometheus that scrapes a running server.

Needs Debian's package `prometheus` (/usr/bin/prometheus and promtool), and skips without it.
"""

import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONFIG = DEPLOY / "prometheus" / "prometheus.yml"
RULES = [
    rule for group in yaml.safe_load((CONFIG.parent / "rules.yml").read_text())["groups"] for rule in group["rules"]
]
BOARD = json.loads((DEPLOY / "grafana" / "tutti.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
PANEL_QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
RULE_QUERIES = [(rule.get("alert") or rule["record"], rule["expr"]) for rule in RULES]
COMPARISON = re.compile(r"(.*\S)\s*(?:>|==)\s*[\d.]+\Z", re.DOTALL)
TEXTS = ("The old bridge stands still.", "Deep water runs under it tonight, and on, and on.", "Still.")

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="no prometheus and promtool here: apt-get install prometheus",
)


@dataclass
class Observed:
    """A running server, and a Prometheus that scrapes it every second."""

    server: httpx2.Client
    prometheus: httpx2.Client

    def work(self) -> None:
        for n, text in enumerate(TEXTS):
            body = {"input": f"{text} {n}", "stream_format": "sse" if n else "audio"}
            assert (
                self.server.post("/v1/audio/speech", json=body, headers={"cache-control": "no-cache"}).status_code
                == 200
            )
        assert self.server.post("/v1/audio/speech", json={}).status_code == 400
        self.server.post("/tts/batch", json={"requests": [{"text": text} for text in TEXTS]})

    def query(self, expression: str) -> list[float]:
        answer = self.prometheus.get("/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", (expression, answer)
        return [float(series["value"][1]) for series in answer["data"]["result"]]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def promtool_check(*command: str, stdin: str | None = None) -> None:
    done = subprocess.run(["promtool", "check", *command], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of `tutti serve` on the tone model, in its own process."""
    folder = tmp_path_factory.mktemp("voices")
    command = [sys.executable, "-m", "tests.server.serve_tones", str(folder), "--port", "0", "--cache-mb", "0"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as errors, subprocess.Popen(command, stderr=errors, cwd=ROOT) as server:
        try:
            while not (ready := re.search(r"tutti is ready: (http://\S+)", log.read_text())):
                assert server.poll() is None, log.read_text()
                time.sleep(0.05)
            server.send_signal(signal.SIGUSR1)  # never hold a chunk
            yield ready[1]
        finally:
            server.kill()


@pytest.fixture(scope="module")
def observed(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("prometheus")
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(CONFIG.parent / name) for name in config["rule_files"]]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [url.removeprefix("http://")]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with ExitStack() as stack:
        client = next(filter(None, (start_prometheus(stack, folder) for _ in range(5))))  # a port may be lost
        yield Observed(stack.enter_context(httpx2.Client(base_url=url, timeout=60)), client)


def start_prometheus(stack: ExitStack, folder: Path) -> httpx2.Client | None:
    """Start a Prometheus with its own port and data, and wait until it is ready; None if it exited."""
    port = free_port()
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    prometheus = stack.enter_context(subprocess.Popen(command))
    stack.callback(prometheus.kill)
    client = stack.enter_context(httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60))
    while prometheus.poll() is None:
        with suppress(httpx2.TransportError):
            if client.get("/-/ready").status_code == 200:
                return client
        time.sleep(0.05)
    return None


@pytest.mark.process
@needs_prometheus
def test_promtool_finds_nothing_wrong() -> None:
    promtool_check("config", str(CONFIG))
    promtool_check("rules", str(CONFIG.parent / "rules.yml"))


@pytest.mark.process
@needs_prometheus
def test_promtool_finds_nothing_wrong_with_the_metrics_of_a_server_at_work(observed: Observed) -> None:
    observed.work()
    promtool_check("metrics", stdin=observed.server.get("/metrics").text)


@pytest.mark.process
@needs_prometheus
@pytest.mark.parametrize(
    ("name", "expression"), RULE_QUERIES + PANEL_QUERIES, ids=[name for name, _ in RULE_QUERIES + PANEL_QUERIES]
)
def test_every_expression_finds_data(observed: Observed, name: str, expression: str) -> None:
    """Of an alert, the left side of its comparison: on a healthy server no value passes the threshold."""
    comparison = COMPARISON.fullmatch(expression)
    query = (comparison[1] if comparison else expression).replace("$__rate_interval", "1m")
    for _ in range(300):
        values = [value for value in observed.query(query) if not math.isnan(value)]
        if values:
            return
        observed.work()  # rates need an increase between two scrapes
        time.sleep(0.2)
    pytest.fail(f"no data for {query}")


@pytest.mark.process
@needs_prometheus
def test_a_healthy_server_fires_no_alert(observed: Observed) -> None:
    """Every rule is evaluated without an error."""
    while True:
        rules = [
            rule
            for group in observed.prometheus.get("/api/v1/rules").json()["data"]["groups"]
            for rule in group["rules"]
        ]
        if all(rule["health"] != "unknown" for rule in rules):
            break
        time.sleep(0.05)
    assert len(rules) == len(RULES)
    assert {rule["name"]: rule["health"] for rule in rules if rule["health"] != "ok"} == {}
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []


def test_every_metric_has_a_panel_or_an_alert() -> None:
    documented = set(re.findall(r"^\| `(tutti_[a-z_]+)`", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
    queries = " ".join(expression for _, expression in RULE_QUERIES + PANEL_QUERIES)
    used = {re.sub(r"_(bucket|sum|count)\Z", "", name) for name in re.findall(r"\btutti_[a-z_]+", queries)}
    assert used == documented


def test_the_dashboard_is_complete_and_provisioned() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    provisioned = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioned / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source["uid"]}
    (provider,) = yaml.safe_load((provisioned / "dashboards" / "tutti.yml").read_text())["providers"]
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"] if volume.startswith("./"))
    assert all((DEPLOY / name).exists() for name in mounted)
    assert any(target.startswith(provider["options"]["path"]) for target in mounted.values())
    port = source["url"].rpartition(":")[2]
    assert source["url"] == f"http://prometheus:{port}"
    assert services["prometheus"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    (target,) = yaml.safe_load(CONFIG.read_text())["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target.partition(":")[0] in services
