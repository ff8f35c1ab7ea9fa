"""The unchanged official graph with its inner values as outputs: the reference for every backend."""

from pathlib import Path

import numpy as np
import onnxruntime as ort

from tutti.errors import WeightsCorrupt
from tutti.model.onnx import proto, split
from tutti.speech import Frames, Samples, Utterance

INNER = (split.DURATIONS, split.FEATURES, split.F0, split.ENERGY)


class ReferenceModel:
    """Runs the published file, one row at a time."""

    def __init__(self, path: Path, threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            graph = proto.load(path)
            (self._audio,) = [value.name for value in graph.graph.output]
            graph.graph.output.extend(proto.Value(name=name) for name in INNER)
            self._session = ort.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except (proto.DecodeError, ValueError, RuntimeError) as exc:
            raise WeightsCorrupt(f"{path} is not Kokoro's official graph ({exc}); run: tutti pull --verify") from exc
        self._inputs = [value.name for value in self._session.get_inputs()]  # token ids, style, speed

    def __call__(self, row: Utterance) -> tuple[Frames, Samples]:
        values = (row.tokens[None], row.style[None], np.array([row.speed], np.float32))
        inputs = dict(zip(self._inputs, values, strict=True))
        audio, durations, features, f0, energy = self._session.run([self._audio, *INNER], inputs)
        frames = Frames(durations[0].astype(np.int64), features[0], f0[0], energy[0], row.style)
        return frames, audio.reshape(-1)
