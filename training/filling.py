"""The teacher fills the pool and renews it: at first while everything waits, then in a thread beside the training."""

import sys
import threading
import time
import traceback
from contextlib import nullcontext

import torch

from training.pool import Pool
from training.rows import RowSource
from training.teacher import Teacher

AHEAD_S = 5.0  # of training, by which the teacher may be ahead of its pace
SWITCH_S = 0.0005  # the training thread gets the interpreter back this soon
REST_S = 0.2  # of a teacher that is ahead
CPU_PAUSE_S = 1.0  # between batches on a processor, where the teacher takes the time of the training


class Filling:
    """Adds rows until it is stopped; a full pool loses its oldest. An error ends the filling, not the training.

    Both share the device, so both keep the pace: the training waits for a teacher that is behind, and the teacher
    rests when it is ahead. Without a pace nobody waits.
    """

    def __init__(self, teacher: Teacher, source: RowSource, pool: Pool, batch: int, pace: float = 0.0) -> None:
        """`pace`: seconds of new speech that each second of training should see."""
        self.pool, self._pace = pool, pace
        self.error = ""
        self.lock = threading.Lock()  # while it is held, the device is not used from here
        self._teacher, self._source, self._batch = teacher, source, batch
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started_s, self._seconds_before = 0.0, 0.0

    def fill(self, seconds: float) -> None:
        """Add rows until there is this much speech, or no space."""
        while self.pool.seconds < seconds and not self.pool.is_full:
            self._add_batch()

    def start(self) -> None:
        sys.setswitchinterval(SWITCH_S)
        self._started_s, self._seconds_before = time.perf_counter(), self.pool.seconds
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether the training should leave the device to the teacher for a while: it would learn old rows by heart."""
        return not self.error and self._lead < 0

    @property
    def is_ahead(self) -> bool:
        """Whether the teacher should leave the device to the training for a while."""
        return self._lead > self._pace * AHEAD_S > 0

    @property
    def _lead(self) -> float:
        """Seconds of speech beyond what the pace asks for by now."""
        elapsed_s = time.perf_counter() - self._started_s
        return self.pool.seconds - self._seconds_before - self._pace * elapsed_s

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def _add_batch(self) -> None:
        with self.lock:
            for examples in self._teacher.speak(self._source.take(self._batch)):
                if self._stop.is_set():
                    return
                self.pool.add(examples)

    def _run(self) -> None:
        own_stream = torch.cuda.stream(torch.cuda.Stream()) if self.pool.device.type == "cuda" else nullcontext()
        try:
            with own_stream:
                while not self._stop.wait(0 if self.pool.device.type == "cuda" else CPU_PAUSE_S):
                    if not self.is_ahead:
                        self._add_batch()
                    else:
                        self._stop.wait(REST_S)
        except Exception:  # noqa: BLE001
            self.error = traceback.format_exc()[-1500:]
