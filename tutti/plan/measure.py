"""Ask a running server what its batches cost, and measure what a request takes beside them."""

import re
import time
from statistics import median
from typing import Any

import httpx2

from tutti.errors import InvalidInput
from tutti.plan.devices import DeviceCosts, from_report

TEXT = "The harbour lights were burning low."
N_REQUESTS = 5  # short ones, one after the other; the first also opens the connection, and does not count


def measure(url: str, api_key: str | None = None) -> tuple[DeviceCosts, dict[str, Any]]:
    """The device of a server, and its report to be stored as costs.json. Raises InvalidInput if it does not answer."""
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            answer = client.get("/v1/stats/costs")
            if answer.status_code != 200:
                raise InvalidInput(f"{url}/v1/stats/costs: {answer.status_code} {answer.text[:200]}", param="measure")
            report = answer.json()
            overheads_s = [_overhead_s(client) for _ in range(1 + N_REQUESTS)][1:]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as exc:
        raise InvalidInput(f"{url} does not answer as a tutti server: {exc}", param="measure") from exc
    overhead_s = max(0.0, median(overheads_s))
    return from_report(report, url, overhead_s), {**report, "overhead_s": overhead_s}


def _overhead_s(client: Any) -> float:
    """Seconds to the first audio of one request, less those that its batches took."""
    body = {"model": "kokoro", "voice": "af_heart", "input": TEXT, "response_format": "pcm", "stream": True}
    started_s = time.perf_counter()
    with client.stream("POST", "/v1/audio/speech", json=body) as answer:
        if answer.status_code != 200:
            answer.read()
            raise InvalidInput(f"a short request failed: {answer.status_code} {answer.text[:200]}", param="measure")
        next(answer.iter_raw(), b"")
        first_s = time.perf_counter() - started_s
        return first_s - device_s(answer.headers.get("server-timing", ""))


def device_s(server_timing: str) -> float:
    """Seconds of both stages and of the queue before them, from the header Server-Timing."""
    steps = dict(re.findall(r"(\w+);dur=([\d.]+)", server_timing))
    return sum(float(steps.get(step, 0.0)) for step in ("queue", "acoustic", "vocoder")) / 1000
