"""Numbers for Prometheus, where its client library is there."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tutti.client.call_stats import Call
from tutti.errors import MissingExtra

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def prometheus_hook(registry: "CollectorRegistry | None" = None) -> Callable[[Call], None]:
    """For `Client(on_call=prometheus_hook())`: calls by outcome, connections, seconds to first byte and in total."""
    try:
        from prometheus_client import REGISTRY, Counter, Histogram
    except ImportError:
        raise MissingExtra("the hook needs its library: pip install prometheus-client") from None
    where = registry or REGISTRY
    calls = Counter("tutti_client_calls_total", "Calls by kind and outcome", ["kind", "outcome"], registry=where)
    retries = Counter("tutti_client_retries_total", "Attempts after the first", registry=where)
    connections = Counter("tutti_client_connections_total", "Connections opened", registry=where)
    first = Histogram("tutti_client_first_byte_seconds", "Until audio came", ["kind"], buckets=BUCKETS, registry=where)
    total = Histogram("tutti_client_total_seconds", "Until all of it came", ["kind"], buckets=BUCKETS, registry=where)

    def hook(call: Call) -> None:
        calls.labels(call.kind, call.error or ("cached" if call.cached else "ok")).inc()
        retries.inc(max(0, call.attempts - 1))
        connections.inc(call.new_connections)
        if call.first_byte_s is not None and call.total_s is not None and call.error is None:
            first.labels(call.kind).observe(call.first_byte_s)
            total.labels(call.kind).observe(call.total_s)

    return hook
