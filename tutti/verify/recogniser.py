"""A small English speech recogniser: Moonshine tiny in ONNX Runtime, 28 MB."""

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tutti.speech import Samples

RECOGNISER_RATE = 16_000
NO_RECOGNISER = "Words were not counted: the recogniser is missing; --listen downloads it (73 MB)."
LEAD_S, TAIL_S = 0.1, 0.3  # silence around the speech: recognisers miss words at the edges


def prepare_for_recogniser(samples: Samples, sample_rate: int) -> Samples:
    """Resample to 16 kHz with everything above 8 kHz removed, and add some silence on both sides."""
    padded = np.pad(samples, (int(LEAD_S * sample_rate), int(TAIL_S * sample_rate)))
    n = len(padded) * RECOGNISER_RATE // sample_rate
    spectrum = np.fft.rfft(padded)[: n // 2 + 1]
    return (np.fft.irfft(spectrum, n) * (n / len(padded))).astype(np.float32)


class Moonshine:
    """Runs the encoder once and the decoder token by token, greedily."""

    LAYERS, HEADS, HEAD_SIZE = 6, 8, 36
    START, END = 1, 2
    TOKENS_PER_S = 6.5  # limit; beyond it the decoder only repeats itself

    def __init__(self, encoder: Path, decoder: Path, tokenizer: Path) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        options.log_severity_level = 3
        self._encoder = ort.InferenceSession(encoder, options, providers=["CPUExecutionProvider"])
        self._decoder = ort.InferenceSession(decoder, options, providers=["CPUExecutionProvider"])
        vocabulary = json.loads(tokenizer.read_text("utf-8"))["model"]["vocab"]
        self._pieces = {number: piece for piece, number in vocabulary.items()}

    def transcribe(self, samples: Samples, sample_rate: int = RECOGNISER_RATE) -> str:
        """The words in speech of any sample rate; speech at 16 kHz is used without change."""
        if sample_rate != RECOGNISER_RATE:
            samples = prepare_for_recogniser(samples, sample_rate)
        (states,) = self._encoder.run(None, {"input_values": samples[None]})
        empty = np.zeros((0, self.HEADS, 1, self.HEAD_SIZE), np.float32)
        past = {
            f"past_key_values.{layer}.{part}.{kind}": empty
            for layer in range(self.LAYERS)
            for part in ("decoder", "encoder")
            for kind in ("key", "value")
        }
        token, tokens = self.START, list[int]()
        for step in range(int(len(samples) / RECOGNISER_RATE * self.TOKENS_PER_S) + 1):
            logits, *present = self._decoder.run(
                None,
                {
                    "input_ids": np.array([[token]], np.int64),
                    "encoder_hidden_states": states,
                    "use_cache_branch": np.array([step > 0]),
                    **past,
                },
            )
            token = int(logits[0, -1].argmax())
            if token == self.END:
                break
            tokens.append(token)
            # The encoder's keys and values come with the first step only.
            past = {
                name: new if step == 0 or ".decoder." in name else old
                for (name, old), new in zip(past.items(), present, strict=True)
            }
        return self._text(tokens)

    def _text(self, tokens: list[int]) -> str:
        pieces = (self._pieces.get(token, "") for token in tokens)
        raw = b"".join(
            bytes.fromhex(piece[3:5]) if piece.startswith("<0x") else piece.replace("▁", " ").encode()
            for piece in pieces
        )
        return raw.decode("utf-8", "ignore").strip()
