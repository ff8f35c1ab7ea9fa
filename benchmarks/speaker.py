"""Speech of the official graph, and a cache of speech and transcripts so that a run can be resumed."""

import hashlib
import json
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tutti.speech import MAX_PHONEMES, SAMPLE_RATE, STYLE_SIZE
from tutti.text import vocab


class Speaker:
    """The unchanged official graph on two threads, the same for every front end."""

    def __init__(self, graph: Path, voices: Path) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        options.log_severity_level = 3
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._tokens_name = self._session.get_inputs()[0].name
        self._voices = voices

    def speak(self, phonemes: str, voice: str) -> NDArray[np.float32]:
        """Samples at 24 kHz. Symbols that Kokoro does not know are left out, as upstream does."""
        symbols, _ = vocab.split_known(phonemes)
        if not 0 < len(symbols) <= MAX_PHONEMES:
            raise ValueError(f"{len(symbols)} phonemes, not between 1 and {MAX_PHONEMES}: {phonemes[:60]!r}")
        table = np.fromfile(self._voices / f"{voice}.bin", np.float32).reshape(-1, 1, STYLE_SIZE)
        feed = {
            self._tokens_name: vocab.encode(symbols)[None],
            "style": table[len(symbols) - 1],
            "speed": np.ones(1, np.float32),
        }
        samples: NDArray[np.float32] = self._session.run(None, feed)[0].reshape(-1)
        return samples


class SpeechCache:
    """Speech as .wav files, and its transcripts by one recogniser."""

    def __init__(self, folder: Path, recogniser: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = folder / f"heard-{recogniser}.jsonl"
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        self._transcripts: dict[str, str] = dict(map(json.loads, lines))

    def transcript(self, key: str) -> str | None:
        return self._transcripts.get(key)

    def add_transcript(self, key: str, transcript: str) -> None:
        self._transcripts[key] = transcript
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, transcript], ensure_ascii=False) + "\n")

    def samples(self, key: str) -> NDArray[np.float32] | None:
        path = self._folder / f"{key}.wav"
        if not path.exists():
            return None
        with wave.open(str(path)) as file:
            return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / np.float32(32767)

    def add_samples(self, key: str, samples: NDArray[np.float32]) -> None:
        new = self._folder / f"{key}.new"
        with wave.open(str(new), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SAMPLE_RATE)
            file.writeframes((np.clip(samples, -1, 1) * 32767).astype(np.int16).tobytes())
        new.rename(self._folder / f"{key}.wav")


def cache_key(text: str, voice: str, speaker: str) -> str:
    """The key of one piece of speech: the same phonemes by the same voice and graph are spoken once."""
    return hashlib.sha256("\0".join((text, voice, speaker)).encode()).hexdigest()[:24]
