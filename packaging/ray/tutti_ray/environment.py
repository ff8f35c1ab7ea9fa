"""The variables of Ray, which every process of the cluster needs before Ray starts, and the token of the cluster."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from tutti.errors import TuttiError
from tutti_ray.options import Ingress

COMMON = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # Ray starts its processes at 15: streams would starve beside anything else
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",  # 10 s: a crowd would be refused for that long
}
# Requests pass through Ray's proxy and our router. Less switching between threads, and gRPC in place of actor calls:
# halves the time that this adds to the first byte.
PROXY = {
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_USE_GRPC_BY_DEFAULT": "1",
}
# HAProxy sends requests to the replica with the fewest connections.
HAPROXY = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response 503",  # on another replica, before the first byte
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "3600",  # streams older than this after any change of replicas are cut
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "20",  # WebSockets of a replica that stops are cut after this
    "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "1s",
}
# Ray on one machine: without this it listens on all interfaces, whatever address it is given. Named after the systems
# where it is the default.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def variables(ingress: Ingress) -> dict[str, str]:
    return COMMON | (HAPROXY if ingress == "haproxy" else PROXY)


def missing_variables(ingress: Ingress, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the environment does not set; what it sets stays as it is."""
    return {name: value for name, value in variables(ingress).items() if name not in environ}


def token_path(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def ensure_token(environ: Mapping[str, str]) -> None:
    """Make a token if there is none, and let nobody else read it."""
    if environ.get("RAY_AUTH_TOKEN"):
        return
    path = token_path(environ)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.chmod(0o600)
        if not path.read_text().strip():
            path.write_text(secrets.token_hex(32))
    except OSError as exc:
        raise TuttiError(f"cannot write the token of the cluster to {path}: {exc.strerror}") from exc


def prepare(ingress: Ingress, *, alone: bool) -> None:
    """Set the variables of this process and those it starts. Call it before anything of Ray is imported.

    `alone`: no other machine belongs to the cluster.
    """
    os.environ.update(missing_variables(ingress, os.environ) | (ALONE if alone else {}))
    if os.environ["RAY_AUTH_MODE"] == "token":
        ensure_token(os.environ)
