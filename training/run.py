"""A run's folder and clock, and how far the host may be ahead of the device."""

import json
import time
from pathlib import Path
from typing import Any

import torch


class Run:
    """A run's folder and clock: the log, the curve and the weights are written there."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self._began = time.perf_counter()
        out.mkdir(parents=True, exist_ok=True)
        before = out / "curve.json"  # of a run that was interrupted
        self.curve: list[dict[str, Any]] = json.loads(before.read_text()) if before.exists() else []

    def say(self, text: str) -> None:
        line = f"[{time.perf_counter() - self._began:7.1f}] {text}"
        print(line, flush=True)
        with (self.out / "log.txt").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def note(self, **values: Any) -> None:
        """Add a point to the curve."""
        self.curve.append(values)
        partial = self.out / "curve.json.partial"
        partial.write_text(json.dumps(self.curve, indent=0), encoding="utf-8")
        partial.rename(self.out / "curve.json")
        self.say(
            json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()})
        )


def wait_for_previous(waiting: "torch.cuda.Event | None") -> "torch.cuda.Event | None":
    """Let the host be one step ahead of the device, not more.

    The schedule follows the clock; and a launch that finds the device's queue full waits with the driver's lock in its
    hands, so that no other thread, as the teacher's, can launch anything.
    """
    if not torch.cuda.is_available():
        return None
    event = torch.cuda.Event()
    event.record()
    if waiting is not None:
        waiting.synchronize()
    return event
