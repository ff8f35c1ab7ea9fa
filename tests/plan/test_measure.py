"""`tutti plan --measure`: a running server tells its costs, and short requests what it needs beside them."""

from pathlib import Path

import pytest

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import serving
from tutti.batching.job import Key
from tutti.errors import InvalidInput
from tutti.plan.devices import from_report
from tutti.plan.measure import measure

pytestmark = pytest.mark.server


def test_a_running_server_is_measured(tmp_path: Path) -> None:
    engine = tone_engine(silent_voices(tmp_path), capped=True)
    with serving(engine, api_keys=("secret",)) as server:
        device, report = measure(server.url, "secret")
        with pytest.raises(InvalidInput, match="401"):
            measure(server.url, "wrong")
    assert device.overhead_s > 0
    assert (device.cores, device.max_rows) == (2, 4)
    assert from_report(report, server.url) == device  # what --save stores is what was measured
    learned = engine.batchers[0].scheduler.cost(Key("kokoro", "acoustic")).coefficients
    assert len(learned) == len(device.coefficients["acoustic"]) == 4
    with pytest.raises(InvalidInput, match="does not answer"):
        measure(server.url)
