"""Metrics of several processes read as those of one."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from tutti.server.front.pool import counters, summed

Event = tuple[str, float]
EVENTS = st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 2)), max_size=10)


def registry_of(events: list[Event]) -> CollectorRegistry:
    registry = CollectorRegistry()
    answers = Counter("answers", "Answers.", ("route",), registry=registry)
    seconds = Histogram("seconds", "Seconds.", ("route",), registry=registry)
    active = Gauge("active", "Active.", registry=registry)
    for route, value in events:
        answers.labels(route).inc()
        seconds.labels(route).observe(value)
        active.inc(value)
    return registry


class Sum(Collector):
    def __init__(self, *parts: CollectorRegistry) -> None:
        self.collect: Callable[[], object] = lambda: summed(list(part.collect()) for part in parts)  # type: ignore[assignment]


def values(collector: Collector) -> dict[str, float]:
    """Each sample of the page that a scraper would read, but for the times of creation."""
    lines = generate_latest(collector).decode().splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: round(float(value), 6) for name, _, value in pairs if "_created" not in name}


@given(parts=st.lists(EVENTS, min_size=1, max_size=4))
def test_the_sum_of_parts_is_what_one_process_would_have_counted(parts: list[list[Event]]) -> None:
    together = registry_of([event for part in parts for event in part])
    assert values(Sum(*map(registry_of, parts))) == values(together)


@given(events=EVENTS)
def test_what_a_dead_process_has_counted_stays_but_not_what_it_held(events: list[Event]) -> None:
    names = {metric.name for metric in counters(registry_of(events).collect())}
    assert names == {"answers", "seconds"}
