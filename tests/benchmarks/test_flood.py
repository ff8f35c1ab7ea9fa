"""When a stream counts as heard, and which rows keep the promises."""

from typing import Any

from benchmarks.flood import MAX_START_S, TARGET_S, Response, gates, summary


def test_a_late_stream_is_heard_but_not_in_time() -> None:
    late = [Response(200, TARGET_S + 0.5), Response(200, 0.1), Response(200, 0.1, stalled_s=1.0)]
    row = summary([*late, Response(200, MAX_START_S + 1), Response(429, 0.002, retry_after=True)], 2.0)
    assert (row["served"], row["in_time_%"], row["heard_%"], row["heard_per_s"]) == (4, 25.0, 50.0, 1.0)
    assert (row["refused"], row["refused_p50_ms"], row["other_errors"]) == (1, 2.0, 0)


def test_a_refusal_without_retry_after_and_a_5xx_are_errors() -> None:
    assert summary([Response(429, 0.0), Response(500, 0.0)], 1.0)["other_errors"] == 2


def rows(**changed: dict[str, Any]) -> dict[str, Any]:
    """Rows that keep every promise, but for what is changed."""
    names = (
        "0.8 C", "2 C", "0.5 C, 5 s later", "2 C, retried 3x", "2 C, strict", "0.5 C alone", "0.5 C, 200 at 1 kB/s",
        "0.5 C, 20 at 256 kbit/s", "0.9 C", "0.9 C, scraped",
    )  # fmt: skip
    good = summary([Response(200, 0.2)] * 9 + [Response(429, 0.002, retry_after=True)], 1.0)
    return {name: {**good, "grown_mb": 0.0, "tasks_left": 0, "readers": 200} | changed.get(name, {}) for name in names}


def failed(**changed: dict[str, Any]) -> list[str]:
    return [name for name, (_, _, holds) in gates(rows(**changed)).items() if not holds]


def test_each_promise_has_a_gate() -> None:
    assert failed() == []
    assert len(failed(**{"2 C": {"heard_%": 90.0, "refused_p50_ms": 30.0}})) == 2
    assert len(failed(**{"0.8 C": {"grown_mb": 9.0, "tasks_left": 1, "other_errors": 1}})) == 3
    assert failed(**{"2 C, retried 3x": {"heard_per_s": 7.0}})[0].startswith("26")
    assert failed(**{"2 C, strict": {"in_time_%": 80.0}})[0].startswith("3")
    assert failed(**{"0.5 C, 5 s later": {"in_time_%": 80.0}})[0].startswith("3")
    assert failed(**{"0.9 C, scraped": {"first_p90_ms": 230.0}})[0].startswith("23")
    assert failed(**{"0.5 C, 200 at 1 kB/s": {"first_p90_ms": 230.0}})[0].startswith("12")
    assert failed(**{"0.5 C, 20 at 256 kbit/s": {"readers": 19}})[0].startswith("12")


def test_a_case_alone_has_its_own_gates_only() -> None:
    assert {name.split(":")[0] for name in gates({"2 C, strict": rows()["2 C, strict"]})} == {"2 C, strict", "3"}
