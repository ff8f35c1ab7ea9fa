"""`tutti cluster serve`: start Ray or connect to it, deploy, wait for a signal, drain."""

import signal
import sys
import threading
import time
from typing import Any

from tutti.errors import MissingExtra
from tutti_ray import NEEDS
from tutti_ray.environment import prepare
from tutti_ray.options import ClusterOptions

APPLICATION = "tutti"
DRAIN_CHECK_S = 0.2  # between two looks at whether the replicas are gone


def serve(options: ClusterOptions, address: str | None) -> None:
    """Serve until SIGTERM or SIGINT, then let the streams end within the grace time.

    Without an address Ray runs on this machine alone, on the loopback interface, and ends with this process.
    """
    prepare(options.ingress, alone=address is None)
    ray, ray_serve, app = _import_ray()
    settings = options.server_settings
    ray.init(address=address or "local", include_dashboard=None if address else False, logging_level="warning")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # after ray.init, which sets its own
        signal.signal(number, lambda *_: stop.set())
    try:
        ray_serve.start(
            proxy_location="EveryNode" if address else "HeadOnly",
            http_options={"host": settings.host, "port": settings.port},
        )
        ray_serve.run(app.build(options.model_dump()), name=APPLICATION, route_prefix="/")
        print(f"tutti is ready: http://{settings.host}:{settings.port}  (stop: Ctrl-C)", file=sys.stderr, flush=True)
        stop.wait()
        print("tutti: draining", file=sys.stderr, flush=True)
        _drain(ray_serve, settings.grace_s)
    finally:
        ray_serve.shutdown()
        ray.shutdown()


def _drain(ray_serve: Any, grace_s: float) -> None:
    """Wait until the replicas have finished their requests; `shutdown` alone waits for 30 s at most."""
    ray_serve.delete(APPLICATION, _blocking=False)
    until_s = time.monotonic() + grace_s
    while APPLICATION in ray_serve.status().applications and time.monotonic() < until_s:
        time.sleep(DRAIN_CHECK_S)


def _import_ray() -> tuple[Any, Any, Any]:
    try:
        import ray
        from ray import serve as ray_serve
    except ModuleNotFoundError as exc:
        raise MissingExtra(f"tutti cluster {NEEDS}") from exc
    from tutti_ray import app

    return ray, ray_serve, app
