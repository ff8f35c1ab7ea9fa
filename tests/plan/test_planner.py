"""`tutti plan`: the maths, the devices, and a forecast that agrees with what can be said without a simulation."""

import itertools
import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.fakes import silent_voices, tone_engine
from tutti.batching.cost import save
from tutti.batching.job import STAGES, Key
from tutti.cli.main import app
from tutti.engine.build import cost_file
from tutti.engine.checkpoints import choose_checkpoints
from tutti.errors import InvalidInput
from tutti.plan import planner
from tutti.plan.devices import DEVICES, DeviceCosts, find_device, from_report, this_machine
from tutti.plan.measure import device_s
from tutti.plan.planner import CapacityPlan, Forecast, forecast, pace_of, plan, simulate
from tutti.plan.simulation import TOKENS_PER_S
from tutti.plan.workload import CHARACTERS_PER_S, SENTENCE_WORDS, WORD_SYMBOLS, arrivals, chunk_lengths
from tutti.settings import Settings
from tutti.text.chunk import DEFAULT_PACE

WORDS = ("seven", "ships", "came", "home", "across", "silver", "water", "under", "quiet", "stars")

# 10 ms for each pass and 5 for each row, of any length.
SIMPLE = DeviceCosts(
    "simple", dict.fromkeys(STAGES, (0.01, 0.005, 0.0, 0.0)), cores=2, max_rows=4, overhead_s=0.003, target_s=0.5
)


@pytest.fixture(autouse=True)
def few_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "N_STREAMS", 400)
    monkeypatch.setattr(planner, "MAX_STREAMS", 800)


def test_a_lone_request_takes_both_stages_of_its_first_chunk_and_the_overhead() -> None:
    alone = forecast(SIMPLE, 0.01, 3.0, 50)
    assert alone.p50_s == pytest.approx(0.033)
    assert alone.refused == alone.with_gaps == 0


def test_both_stages_of_a_lone_row_run_in_one_call() -> None:
    simulation = simulate(SIMPLE, arrivals(0.01, 1, 2.0, pace_of(SIMPLE)))
    assert [batch.key.stage for _, batch in simulation.batches] == ["acoustic"]
    assert simulation.busy_s == pytest.approx(0.03)


def test_the_work_of_a_light_load_is_its_busy_share() -> None:
    rate = 0.5
    light = forecast(SIMPLE, rate, 3.0, 400)
    assert light.busy == pytest.approx(rate * 0.03, rel=0.15)


@pytest.mark.slow
def test_more_load_means_longer_waits() -> None:
    waits = [forecast(SIMPLE, rate, 8.0, 600).p95_s for rate in (1, 10, 30)]
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]


@pytest.mark.slow
def test_a_load_beyond_all_batches_is_never_kept() -> None:
    # Full batches of four: 30 ms for four rows and stage, so at most 66 rows a second of both stages.
    assert not forecast(SIMPLE, 80, 8.0).keeps(0.5, 0.03)
    assert forecast(SIMPLE, 30, 3.0).keeps(0.5, 0.03)


def test_every_accepted_request_is_spoken_to_its_end() -> None:
    streams = arrivals(30, 500, 8.0, pace_of(SIMPLE))
    simulation = simulate(SIMPLE, streams)
    assert all(stream.rejected or stream.done_s < inf for stream in streams)
    n_chunks = sum(len(stream.chunks) for stream in streams if not stream.rejected)
    n_fused = n_chunks - sum(batch.n_rows for _, batch in simulation.batches if batch.key.stage == "vocoder")
    assert sum(batch.n_rows for _, batch in simulation.batches if batch.key.stage == "acoustic") == n_chunks
    assert n_fused >= 0


@pytest.mark.slow
def test_the_plan_is_the_fewest_devices_that_keep_the_target() -> None:
    steps: list[str] = []
    result = plan(SIMPLE, 100, 8.0, 0.5, steps.append)
    assert result.n_devices == int(result.n_devices) > 1
    device = replace(SIMPLE, target_s=0.5)
    assert result.forecast.keeps(0.5, 0.05)
    assert not forecast(device, 100 / (result.n_devices - 1), 8.0).keeps(0.5, 0.05)
    assert steps[0] == "one request alone"


def test_a_target_below_one_request_alone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one request alone takes"):
        plan(SIMPLE, 1, 8.0, 0.02, lambda _: None)


def test_the_price_is_that_of_all_devices_over_all_characters() -> None:
    result = CapacityPlan("x", 10.0, 8.0, 0.2, 3, Forecast(3.3, 0.1, inf, 0.5, 0.1, 0.0, 0.0))
    characters_per_hour = 10 * 8 * CHARACTERS_PER_S * 3600
    assert result.cost_per_million(2.0) == pytest.approx(1e6 * 3 * 2.0 / characters_per_hour)
    facts = json.loads(json.dumps(result.as_dict(None), allow_nan=False))
    assert facts["forecast"]["p95_s"] is None
    assert facts["cost_per_million_characters"] is None


def test_arrivals_have_their_rate_and_length() -> None:
    streams = arrivals(20, 4000, 8.0, DEFAULT_PACE)
    assert streams[-1].arrived_s == pytest.approx(200, rel=0.06)
    assert sum(sum(stream.chunks) for stream in streams) / 4000 == pytest.approx(8.0, rel=0.05)
    assert streams[:5] != arrivals(20, 5, 8.0, DEFAULT_PACE, seed=2)


def text_like(seconds: float) -> str:
    """An English text of about so many seconds."""
    n_words = round(seconds * TOKENS_PER_S / WORD_SYMBOLS)
    words = list(itertools.islice(itertools.cycle(WORDS), n_words))
    parts = [words[start : start + SENTENCE_WORDS] for start in range(0, n_words, SENTENCE_WORDS)]
    return " ".join(f"{' '.join(part).capitalize()}." for part in parts)


def test_a_text_is_cut_as_its_simulation_says(tmp_path: Path) -> None:
    from tests.fakes import Spelling
    from tutti.text import chunks

    for seconds in (2.0, 8.0, 20.0):
        real = list(chunks(text_like(seconds), "en-us", Spelling().pronounce))
        assert len(real) == len(chunk_lengths(seconds, DEFAULT_PACE))


def test_known_devices_have_costs_of_the_right_size() -> None:
    h200, n1 = DEVICES["h200"], DEVICES["n1x2"]
    assert sum(h200.seconds(stage, [size] * 64) for stage, size in (("acoustic", 75), ("vocoder", 200))) < 0.1
    assert 1 < n1.seconds("vocoder", [160, 160]) < 5
    with pytest.raises(InvalidInput, match="did you mean h200"):
        find_device("h20")


def test_the_costs_that_a_server_stored_are_read(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    save({Key("kokoro", stage): SIMPLE.cost(Key("kokoro", stage)) for stage in STAGES}, path)
    device = find_device(str(path), cores=2)
    assert device.seconds("vocoder", [7, 7]) == pytest.approx(0.02)
    assert device.max_rows == 4
    path.write_text("{}")
    with pytest.raises(InvalidInput, match="no costs"):
        find_device(str(path))


def test_what_an_engine_reports_can_be_planned_with(tmp_path: Path) -> None:
    engine = tone_engine(silent_voices(tmp_path))
    report = {
        "max_batch_size": engine.monitor.settings()["max_batch_size"],
        "models": engine.monitor.costs(),
    }
    device = from_report(json.loads(json.dumps(report)), "server", 0.001)
    assert (device.cores, device.max_rows, device.overhead_s) == (2, 4, 0.001)
    predicted = engine.batchers[0].scheduler.cost(Key("kokoro", "vocoder")).predict([100, 50])
    assert device.seconds("vocoder", [100, 50]) == pytest.approx(predicted)
    with pytest.raises(InvalidInput, match="no costs"):
        from_report({"models": {}}, "server")


def test_the_overhead_excludes_the_time_on_the_device() -> None:
    assert device_s("g2p;dur=9.0, queue;dur=1.0, acoustic;dur=20.5, vocoder;dur=30.0, encode;dur=2.0") == 0.0515
    assert device_s("") == 0


def test_the_command_prints_json(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    save({Key("kokoro", stage): SIMPLE.cost(Key("kokoro", stage)) for stage in STAGES}, path)
    flags = ["--rps", "2", "--ttfa-ms", "500", "--seconds", "3", "--device", str(path), "--cores", "2", "--json"]
    result = CliRunner().invoke(app, ["plan", *flags, "--price-per-hour", "1"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["n_devices"] == 1
    assert facts["cost_per_million_characters"] == pytest.approx(1e6 / (2 * 3 * CHARACTERS_PER_S * 3600))


def test_headroom_is_capacity_that_the_load_itself_does_not_use() -> None:
    tight = plan(SIMPLE, 100, 8.0, 0.5, lambda _: None)
    roomy = plan(SIMPLE, 100, 8.0, 0.5, lambda _: None, headroom=0.5)
    assert roomy.n_devices > tight.n_devices
    assert forecast(replace(SIMPLE, target_s=0.5), 2 * 100 / roomy.n_devices, 8.0).keeps(0.5, 0.05)
    assert roomy.forecast.busy < tight.forecast.busy


def test_without_a_device_this_machine_is_planned_with_what_its_server_has_measured(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, device="cpu", threads=2)
    prior = this_machine(settings)
    assert (prior.cores, "not yet measured" in prior.name) == (2, True)
    costs = {Key("kokoro", stage): SIMPLE.cost(Key("kokoro", stage)) for stage in STAGES}
    save(costs, cost_file(settings, choose_checkpoints(settings)))
    measured = this_machine(settings)
    assert (measured.name, measured.coefficients) == ("this machine", SIMPLE.coefficients)
