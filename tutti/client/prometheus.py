"""Metrics of the client for Prometheus, if its library is installed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tutti.client.call_stats import Call
from tutti.errors import MissingExtra

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def prometheus_hook(registry: "CollectorRegistry | None" = None) -> Callable[[Call], None]:
    """Return a hook for `Client(on_call=…)`: calls by outcome, retries, connections, latencies."""
    try:
        from prometheus_client import REGISTRY, Counter, Histogram
    except ImportError:
        raise MissingExtra("prometheus_hook needs a library: pip install prometheus-client") from None
    target = registry or REGISTRY
    calls = Counter("tutti_client_calls_total", "Calls by kind and outcome", ["kind", "outcome"], registry=target)
    retries = Counter("tutti_client_retries_total", "Attempts after the first", registry=target)
    connections = Counter("tutti_client_connections_total", "Connections opened", registry=target)
    first = Histogram(
        "tutti_client_first_byte_seconds", "Until first audio", ["kind"], buckets=BUCKETS, registry=target
    )
    total = Histogram("tutti_client_total_seconds", "Until last audio", ["kind"], buckets=BUCKETS, registry=target)

    def hook(call: Call) -> None:
        calls.labels(call.kind, call.error or ("cached" if call.cached else "ok")).inc()
        retries.inc(call.retries)
        connections.inc(call.new_connections)
        if call.is_measured and call.first_byte_s is not None and call.total_s is not None:
            first.labels(call.kind).observe(call.first_byte_s)
            total.labels(call.kind).observe(call.total_s)

    return hook
