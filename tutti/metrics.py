"""Prometheus metrics of one engine, in a registry of its own.

Labels have fixed sets of values (stage, class, reason, outcome, checkpoint): never text, voices or callers.
"""

from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# Upper bounds of the histograms' buckets.
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
PADDED = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

CLASSES = ("first", "next", "bulk")
OUTCOMES = ("spoken", "failed", "cancelled")
BATCH_OUTCOMES = ("done", "failed", "lost")
ChunkMode = Literal["bypassed", "batched", "direct"]  # how a chunk reached the model
CHUNK_MODES: tuple[ChunkMode, ...] = get_args(ChunkMode)
RETRY_REASONS = ("bisected", "device_full", "worker_lost")


class Metrics:
    """Every metric of one engine."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def histogram(name: str, meaning: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, meaning, labels, buckets=buckets, registry=self.registry)

        def counter(name: str, meaning: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(name, meaning, labels, registry=self.registry)

        def gauge(name: str, meaning: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(name, meaning, labels, registry=self.registry)

        stage, kind = ("stage",), ("class",)
        self.batch_rows = histogram("tutti_batch_rows", "Rows in a batch.", stage, ROWS)
        self.batch_padded = histogram(
            "tutti_batch_padded_frames", "Frames (acoustic: tokens) in a batch, with padding.", stage, PADDED
        )
        self.padding = histogram("tutti_batch_padding_ratio", "Share of a batch that is padding.", stage, RATIOS)
        self.batch_seconds = histogram("tutti_batch_seconds", "Device time of a batch.", stage, SECONDS)
        self.fires = counter("tutti_batch_fire", "Batches, by the reason they were closed.", ("stage", "reason"))
        self.batches = counter("tutti_batches", "Batches that ended, by outcome.", ("stage", "outcome"))
        self.queue_wait = histogram(
            "tutti_queue_wait_seconds", "Time of a job from arrival to the start of its batch.", kind, SECONDS
        )
        self.waiting = gauge("tutti_queue_jobs", "Waiting jobs.", kind)
        self.backlog = gauge("tutti_backlog_seconds", "Predicted device time of all waiting jobs.")
        self.predicted_wait = gauge(
            "tutti_predicted_wait_seconds", "What a new request would wait before its work begins.", kind
        )
        self.busy_ratio = gauge("tutti_busy_ratio", "Share of the last 10 s in which the devices had a batch.")
        self.cost_error = gauge(
            "tutti_cost_model_error_ratio", "Mean relative error of the predicted batch time.", ("checkpoint", "stage")
        )
        self.rows = counter("tutti_rows", "Rows, by outcome.", ("outcome",))
        self.chunks = counter("tutti_chunks", "Chunks spoken, by how they reached the model.", ("mode",))
        self.rejected = counter("tutti_rejected", "Streams refused by admission control.", kind)
        self.retried = counter("tutti_retried", "Rows that ran again after a failed batch or a lost worker.", ("why",))
        self.first_audio = histogram(
            "tutti_first_audio_seconds", "Time from the request to its first audio.", (), SECONDS
        )
        self.first_late = counter("tutti_first_audio_late", "Streams whose first audio came after the target.")
        self.underruns = counter("tutti_underruns", "Chunks that came after the listener's buffer was empty.")
        self.unspoken = counter("tutti_unspoken_symbols", "Symbols of texts that could not be spoken.")
        self.audio = counter("tutti_audio_seconds", "Audio delivered to callers.")
        self.good_audio = counter("tutti_good_audio_seconds", "Audio delivered before the listener needed it.")
        self.worker_bytes = gauge("tutti_worker_bytes", "Memory of a worker.", ("worker", "memory"))
        self.worker_restarts = gauge("tutti_worker_restarts", "Restarts of a worker.", ("worker",))
        # Export zeros from the start: a rate needs a first sample to rise from.
        for name in CLASSES:
            self.rejected.labels(name)
        for name in OUTCOMES:
            self.rows.labels(name)
        for name in CHUNK_MODES:
            self.chunks.labels(name)
        for name in BATCH_OUTCOMES:
            for stage_name in ("acoustic", "vocoder"):
                self.batches.labels(stage_name, name)
        for name in RETRY_REASONS:
            self.retried.labels(name)
