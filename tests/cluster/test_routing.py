"""Which replica a request goes to, and how many there should be: laws of the pure parts, without Ray."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tutti_ray.routing import LeastWait, ReplicaReport, request_bytes
from tutti_ray.scaling import wanted_replicas

BYTE_S = 0.001


def report(number: int, wait_s: float, byte_s: float = BYTE_S, **others: Any) -> ReplicaReport:
    return ReplicaReport(number, wait_s=wait_s, byte_s=byte_s, **others)


def test_a_request_goes_where_it_waits_least() -> None:
    reports = {"a": report(1, 0.3), "b": report(1, 0.1), "c": report(1, 0.2)}
    assert LeastWait().choose(reports, 100, 0.0) == ["b", "c", "a"]


def test_an_idle_fast_replica_is_preferred_to_an_idle_slow_one() -> None:
    reports = {"slow": report(1, 0.0, 4 * BYTE_S), "fast": report(1, 0.0, BYTE_S)}
    for _ in range(20):
        assert LeastWait().choose(reports, 100, 0.0)[0] == "fast"


def test_a_replica_without_a_worker_comes_last() -> None:
    reports = {"dead": report(1, 0.0, ready=False), "busy": report(1, 30.0)}
    assert LeastWait().choose(reports, 100, 0.0) == ["busy", "dead"]


def test_a_burst_between_two_reports_is_spread_by_its_predicted_seconds() -> None:
    reports = {"a": report(1, 0.0), "b": report(1, 0.0)}
    router = LeastWait()
    chosen = Counter(router.choose(reports, 2000, 0.0)[0] for _ in range(6))
    assert chosen == {"a": 3, "b": 3}


def test_a_long_request_weighs_more_than_a_short_one() -> None:
    reports = {"a": report(1, 0.0), "b": report(1, 0.0)}
    router = LeastWait()
    busy = router.choose(reports, 10_000, 0.0)[0]
    assert busy not in [router.choose(reports, 100, 0.0)[0] for _ in range(2)]


def test_a_long_text_does_not_send_the_next_request_to_a_slow_replica() -> None:
    """Its later chunks make no first chunk wait."""
    reports = {"slow": report(1, 0.0, 4 * BYTE_S), "fast": report(1, 0.0, BYTE_S)}
    router = LeastWait()
    assert [router.choose(reports, n_bytes, 0.0)[0] for n_bytes in (10_000, 100)] == ["fast", "fast"]


def test_a_faster_replica_gets_more_of_a_burst() -> None:
    reports = {"slow": report(1, 0.0, 4 * BYTE_S), "fast": report(1, 0.0, BYTE_S)}
    router = LeastWait()
    chosen = Counter(router.choose(reports, 100, 0.0)[0] for _ in range(100))
    assert 75 <= chosen["fast"] <= 85


def test_long_streams_spread_although_they_make_nobody_wait() -> None:
    """A replica that seems a little faster does not get all of them, when each comes after the report on the last."""
    router, n_streams = LeastWait(), Counter[Any]()
    for second in range(20):
        a = report(second, 0.0, BYTE_S, n_active=n_streams["a"])
        b = report(second, 0.0, 1.1 * BYTE_S, n_active=n_streams["b"])
        n_streams[router.choose({"a": a, "b": b}, 8000, float(second))[0]] += 1
    assert min(n_streams["a"], n_streams["b"]) >= 8


def test_what_was_sent_counts_until_it_is_done_or_a_report_can_include_it() -> None:
    router = LeastWait()
    assert router.choose({"a": report(1, 0.0), "b": report(1, 0.05)}, 200, 0.0) == ["a", "b"]
    # Too soon after it: this report may be of a moment before the request arrived.
    too_soon = {"a": report(2, 0.0), "b": report(2, 0.05)}
    assert router.choose(too_soon, 0, 0.1)[0] == "b", "0.1 s of its 0.2 s are left"
    assert router.choose(too_soon, 0, 0.16)[0] == "a", "0.04 s are left"
    late = {"a": report(3, 0.0), "b": report(3, 0.05)}
    assert router.choose(late, 100, 10.0)[0] == "a"


def test_a_replica_that_keeps_up_is_not_avoided() -> None:
    """Requests that were sent lately, but are done by now, do not count."""
    router = LeastWait()
    reports = {"slow": report(1, 0.0, 4 * BYTE_S), "fast": report(1, 0.0, BYTE_S)}
    assert {router.choose(reports, 100, 0.11 * n)[0] for n in range(8)} == {"fast"}


def test_without_new_reports_requests_are_still_spread() -> None:
    router, reports = LeastWait(), {"a": report(1, 0.0), "b": report(1, 0.02)}
    chosen = Counter(router.choose(reports, 100, float(second))[0] for second in range(100))
    assert 45 <= chosen["a"] <= 55


def test_replicas_that_say_nothing_yet_are_used() -> None:
    reports: dict[Any, ReplicaReport] = {"a": ReplicaReport.parse(None), "b": ReplicaReport.parse({})}
    assert set(LeastWait().choose(reports, 100, 0.0)) == {"a", "b"}
    assert LeastWait().choose({}, 100, 0.0) == []
    router = LeastWait()
    chosen = Counter(router.choose({**reports, "c": report(1, 0.0)}, 100, 0.0)[0] for _ in range(30))
    assert len(chosen) == 3, "but do not get everything"


@given(waits=st.lists(st.floats(0, 100), min_size=1, max_size=8), n_bytes=st.integers(0, 10**6))
def test_every_replica_is_ranked_once(waits: list[float], n_bytes: int) -> None:
    reports: dict[Any, ReplicaReport] = {n: report(1, wait_s) for n, wait_s in enumerate(waits)}
    assert sorted(LeastWait().choose(reports, n_bytes, 0.0)) == sorted(reports)


def test_only_what_makes_speech_has_a_length() -> None:
    post = {"type": "http", "method": "POST", "headers": [(b"host", b"x"), (b"content-length", b"1234")]}
    assert request_bytes(post) == 1234
    assert request_bytes({**post, "method": "GET"}) < 50
    assert request_bytes({**post, "headers": [(b"content-length", b"many")]}) > 0
    assert request_bytes({"type": "websocket", "headers": []}) > 0


def test_the_wait_adds_replicas_and_at_most_doubles_them() -> None:
    assert wanted_replicas(2, [1.4, 1.4], [1.0, 1.0]) == 3
    assert wanted_replicas(2, [50.0, 50.0], [1.0, 1.0]) == 4
    assert wanted_replicas(1, [9.0], [1.0]) == 2


def test_a_short_wait_alone_removes_no_replica() -> None:
    assert wanted_replicas(3, [0.0, 0.0, 0.0], [0.9, 0.9, 0.9]) == 3


def test_a_replica_is_removed_if_the_others_can_do_its_work() -> None:
    assert wanted_replicas(3, [0.0, 0.0, 0.0], [0.4, 0.4, 0.4]) == 2
    assert wanted_replicas(3, [0.0, 0.0, 0.0], [0.5, 0.5, 0.5]) == 3
    assert wanted_replicas(1, [0.0], [0.0]) == 1


def test_without_figures_of_all_replicas_nothing_is_removed() -> None:
    assert wanted_replicas(3, [], []) == 3
    assert wanted_replicas(3, [0.0, 0.0], [0.0, 0.0]) == 3  # the third is starting, or does not answer


@given(load=st.floats(0.0, 20.0), start=st.integers(1, 20))
def test_under_a_constant_load_the_number_settles(load: float, start: int) -> None:
    """Replicas with room have no wait and share the load; too few are always busy and wait. No number is left twice."""
    seen, n = [start], start
    for _ in range(50):
        busy = min(1.0, load / n)
        n = min(20, max(1, wanted_replicas(n, [0.0 if busy < 0.95 else 2.0] * n, [busy] * n)))
        seen.append(n)
    assert len(set(seen[-10:])) == 1
