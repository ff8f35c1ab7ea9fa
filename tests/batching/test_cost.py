"""Cost models: positive, monotonic in the rows, accurate after a sweep, and robust against outliers."""

import random
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tutti.batching.cost import CostModel, file_name, load, save
from tutti.batching.job import Key
from tutti.batching.layout import Layout, SideBySide, row_sizes
from tutti.plan.simulation import Padded

PRIOR = (0.01, 0.0, 1e-5, 1e-5)
LAYOUTS: list[Layout] = [Padded(), Padded(lambda n: -(-n // 32) * 32, (1, 2, 4, 8, 16)), SideBySide(1), SideBySide(4)]
sizes_st = st.lists(st.integers(1, 2000), min_size=1, max_size=20)
batches_st = st.lists(st.tuples(sizes_st, st.floats(0, 30)), max_size=25)


@settings(deadline=None)
@given(st.sampled_from(LAYOUTS), batches_st, sizes_st, st.data())
def test_more_is_never_cheaper_whatever_was_seen(layout: Layout, seen, sizes, data) -> None:
    cost = CostModel(layout, PRIOR)
    for batch, took_s in seen:
        assert cost.learn(batch, took_s) >= 0
    row = data.draw(st.integers(0, len(sizes) - 1))
    longer = [*sizes[:row], sizes[row] + data.draw(st.integers(1, 500)), *sizes[row + 1 :]]
    assert 0 < cost.predict(sizes) <= cost.predict(longer) + 1e-12
    assert cost.predict(sizes) <= cost.predict([*sizes, data.draw(st.integers(1, 2000))]) + 1e-12


@given(st.sampled_from(LAYOUTS), sizes_st)
def test_only_the_row_sizes_count(layout: Layout, sizes: list[int]) -> None:
    grown = row_sizes(sizes[:1])
    for size in sizes[1:]:
        grown = grown.with_row(size)
    cost = CostModel(layout, PRIOR)
    assert cost.seconds(grown) == cost.predict(sizes) == cost.predict(sizes[::-1])
    assert cost.in_memory(grown) >= sum(sizes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_sweep_and_some_traffic_predictions_are_accurate(layout: Layout) -> None:
    """Even if the device is nothing like the prior, and its times scatter by a tenth."""
    rng = random.Random(1)
    truth = CostModel(layout, (0.003, 0.0005, 8e-4, 2e-3))
    cost = CostModel(layout, PRIOR)
    cost.seed(([size] * rows, truth.predict([size] * rows)) for size in (20, 100, 600) for rows in (1, 2, 4, 8))
    for _ in range(200):
        sizes = [rng.randint(10, 1000) for _ in range(rng.randint(1, 16))]
        cost.learn(sizes, truth.predict(sizes) * rng.uniform(0.9, 1.1))
    for _ in range(50):
        sizes = [rng.randint(10, 1000) for _ in range(rng.randint(1, 16))]
        assert cost.predict(sizes) == pytest.approx(truth.predict(sizes), rel=0.1)
    assert cost.error < 0.15


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hours_of_one_batch_size_do_not_spoil_the_predictions_of_others(layout: Layout) -> None:
    rng = random.Random(2)
    truth = CostModel(layout, (0.010, 0.0005, 2e-4, 6e-4))
    cost = CostModel(layout, PRIOR)
    cost.seed(([size] * rows, truth.predict([size] * rows)) for size in (20, 100, 600) for rows in (1, 2, 4, 8))
    for _ in range(2000):
        cost.learn([200], truth.predict([200]) * rng.uniform(0.95, 1.05))
    for sizes in ([50], [600], [600] * 8, [30, 500, 900]):
        assert cost.predict(sizes) == pytest.approx(truth.predict(sizes), rel=0.25)


def test_outliers_change_predictions_little() -> None:
    truth = CostModel(Padded(), (0.01, 0.0, 2e-5, 0.0))
    cost = CostModel(Padded(), PRIOR)
    cost.seed(([size] * rows, truth.predict([size] * rows)) for size in (20, 100, 600) for rows in (1, 2, 4, 8))
    for i in range(60):
        cost.learn([100] * (1 + i % 8), truth.predict([100] * (1 + i % 8)))
    cost.learn([100] * 4, 20.0)
    cost.learn([100] * 4, 0.0)
    assert cost.predict([100] * 4) == pytest.approx(truth.predict([100] * 4), rel=0.2)


@given(st.integers(1, 8), st.floats(1.5, 20.0), st.integers(1, 3))
@settings(deadline=None, max_examples=examples(30))
def test_batches_that_were_slow_are_tried_again(lanes: int, slower: float, n_bad: int) -> None:
    """A batch that looks expensive is not run and never measured again: outliers must not outweigh the warm-up."""
    truth = CostModel(SideBySide(lanes), (0.01, 0.002, 0.001 + 0.002 / lanes, 0.015))
    cost = CostModel(SideBySide(lanes), truth.coefficients)
    rows = [200] * max(lanes, 2)
    assert (gain := truth.predict(rows) / (len(rows) * truth.predict([200]))) < 1
    for _ in range(n_bad):
        cost.learn(rows, slower * truth.predict(rows))
    for _ in range(100):
        cost.learn([200], truth.predict([200]))
    assert cost.predict(rows) / (len(rows) * cost.predict([200])) < (1 + gain) / 2


@given(st.integers(2, 8), st.floats(0.12, 8.0), st.data())
@settings(deadline=None, max_examples=examples(30))
def test_a_warm_up_at_another_speed_is_corrected_by_the_first_batches(lanes: int, slower: float, data) -> None:
    """It may have been measured on a busy machine: what it knows of other layouts follows the batches that run."""
    truth = CostModel(SideBySide(lanes), (0.01, 0.002, 0.001 + 0.002 / lanes, 0.015))
    c0, c1, c2, c3 = truth.coefficients
    cost = CostModel(SideBySide(lanes), (slower * c0, slower * c1, slower * c2, slower * c3))
    for size in data.draw(st.lists(st.integers(60, 300), min_size=3, max_size=10)):
        cost.learn([size], truth.predict([size]))
    for sizes in ([50], [300], [50] * lanes, [300] * lanes, [100] * 2 * lanes):
        assert cost.predict(sizes) == pytest.approx(truth.predict(sizes), rel=0.15)


def test_a_glitch_of_the_clock_does_not_change_the_speed_of_the_warm_up() -> None:
    truth = CostModel(SideBySide(2), (0.01, 0.002, 0.002, 0.015))
    cost = CostModel(SideBySide(2), truth.coefficients)
    for size in (100, 200, 150, 80) * 10:
        cost.learn([size], truth.predict([size]))
    cost.learn([150], 0.0)
    for sizes in ([50], [300], [200, 200], [100] * 4):
        assert cost.predict(sizes) == pytest.approx(truth.predict(sizes), rel=0.1)


@settings(deadline=None)
@given(st.integers(1, 8), batches_st, st.integers(1, 2000), st.integers(1, 4))
def test_full_lanes_are_never_slower_than_one_row_after_the_other(lanes: int, seen, size: int, times: int) -> None:
    cost = CostModel(SideBySide(lanes), PRIOR)
    for batch, took_s in seen:
        cost.learn(batch, took_s)
    n_rows = lanes * times
    assert cost.predict([size] * n_rows) <= n_rows * cost.predict([size]) * (1 + 1e-9)


def test_predictions_follow_a_device_that_became_slower() -> None:
    cost = CostModel(Padded(), (0.01, 0.0, 2e-5, 0.0))
    for i in range(150):
        sizes = [50 + 13 * i % 400] * (1 + i % 8)
        cost.learn(sizes, 3 * (0.01 + 2e-5 * len(sizes) * sizes[0]))
    assert cost.predict([200] * 4) == pytest.approx(3 * (0.01 + 2e-5 * 800), rel=0.1)


def test_side_by_side_a_lone_row_has_all_lanes_and_equal_rows_share_them() -> None:
    cost = CostModel(SideBySide(4), (0.0, 0.0, 0.0, 1e-3))
    assert cost.predict([400]) == pytest.approx(0.1)
    assert cost.predict([400] * 4) == pytest.approx(0.4)
    assert cost.predict([400, 10]) == pytest.approx(0.4), "a short row takes lanes from the long one"


def test_saved_costs_are_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "below" / file_name("NVIDIA H200 / 1", "ab" * 32)
    costs = {
        Key("kokoro", "acoustic"): CostModel(Padded(), PRIOR),
        Key("kokoro", "vocoder"): CostModel(SideBySide(2), (1.0, 2.0, 3.0, 4.0)),
    }
    save(costs, path)
    assert load(path) == {key: cost.coefficients for key, cost in costs.items()}
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"costs": 3}', '{"costs": [["a", "vocoder", [1, 2]]]}', '{"costs": [["a", "x", "abcd"]]}'],
)
def test_a_broken_file_is_ignored(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    assert load(path) == {}
    path.write_text(text)
    assert load(path) == {}


def test_impossible_coefficients_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(
        '{"version": 2, "costs": [["a", "vocoder", [1, -2, 0, 0]], ["b", "vocoder", [NaN, 0, 0, 0]], '
        '["c", "vocoder", [1, 0, 0, 0]]]}'
    )
    assert set(load(path)) == {Key("c", "vocoder")}


def test_file_names_differ_by_device_and_weights() -> None:
    names = {file_name(device, sha) for device in ("A 1", "A-1", "../../etc") for sha in ("x", "y")}
    assert len(names) == 6
    assert not any("/" in name or ".." in name for name in names)


def test_the_share_of_a_row_follows_every_batch() -> None:
    cost = CostModel(SideBySide(1), (0.01, 0.001, 0.0001, 0.0001))
    for took_s in (0.05, 0.5, 5.0):
        cost.learn((30, 40), took_s)
        fresh = CostModel(cost.layout, cost.coefficients)
        for _ in range(2):
            assert cost.per_row(60, 64, inf, inf) == fresh.per_row(60, 64, inf, inf)
    cost.start_from((1.0, 0.0, 0.0, 0.0))
    assert cost.per_row(60, 64, inf, inf) == 1.0 / 64
