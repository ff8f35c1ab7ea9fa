"""What the light network knows of the whole row: how each of its inputs is distributed over it.

Kokoro's generator has norms over the whole row, so how loud a sound is depends on all others. The network sees 27 steps
around each; the mean and the deviation of its inputs over the row are known before the first window, and steer it as
the timbre does.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tutti.model.light.signal import pitch_inputs
from tutti.model.light.weights import Weights, as_float32

N_INPUTS = 514  # of a step: 512 channels of the decoder's output, voiced or not, the logarithm of the pitch
N_STATISTICS = 2 * N_INPUTS
LIMIT = 4.0  # deviations from the usual row, beyond which a row is not told from others

Floats = NDArray[np.float32]


def row_statistics(read: Floats, f0: Floats) -> Floats:  # [n, n_features], [n] -> [2 n_features + 4]
    """Mean and standard deviation of each input over the row."""
    inputs = np.concatenate([read, pitch_inputs(f0).T], axis=1)
    return np.concatenate([inputs.mean(0, dtype=np.float64), inputs.std(0, dtype=np.float64)]).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class TimbreSteering:
    """A linear map from the statistics of a row, normalised over rows, to what is added to its timbre."""

    mean: Floats  # [n_statistics] over many rows
    scale: Floats  # [n_statistics] one over their deviation
    weight: Floats  # [128, n_statistics]

    @staticmethod
    def of(weights: Weights) -> "TimbreSteering":
        """From the network's weights."""
        state = as_float32({name: weights[f"row.{name}"] for name in TimbreSteering.__slots__})
        return TimbreSteering(**state)

    def __call__(self, timbre: Floats, statistics: Floats) -> Floats:  # [128], [n_statistics] -> [128]
        normalised = np.clip((statistics - self.mean) * self.scale, -LIMIT, LIMIT) * np.float32(len(self.mean) ** -0.5)
        steered: Floats = timbre + self.weight @ normalised
        return steered
