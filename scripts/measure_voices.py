"""Measure how every voice speaks, and write the lines that describe them: `python -m scripts.measure_voices`.

Each voice speaks sentences of its own language. Printed are the median pitch, how far the pitch moves (the middle half,
in semitones), the pace (phonemes a second, without pauses) and the brightness (the centre of its spectrum up to 8 kHz,
in Hz); the description compares them with the other voices of the same gender. Paste the dictionary into
tutti/voice_traits.py.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tutti.model.onnx.model import OnnxModel
from tutti.settings import Settings
from tutti.speech import SAMPLE_RATE, Frames, Utterance
from tutti.text import chunks, vocab
from tutti.text.g2p import G2P
from tutti.text.language import find_language
from tutti.voices import NAMES, Voices, gender

ENGLISH = (
    "The orchestra tunes to a single note. One oboe holds it, alone, and for a moment nobody else makes a sound.",
    "Would you like to come with us tomorrow? We leave at seven, and we are back before dinner.",
)
TEXTS = {
    "en-us": ENGLISH,
    "en-gb": ENGLISH,
    "es": ("La orquesta afina con una sola nota. Un oboe la sostiene, y por un momento nadie más hace ruido.",),
    "fr": ("L'orchestre s'accorde sur une seule note. Un hautbois la tient, et personne d'autre ne fait de bruit.",),
    "hi": ("आज मौसम बहुत अच्छा है। क्या आप कल हमारे साथ चलेंगे? हम सात बजे निकलते हैं।",),
    "it": ("L'orchestra si accorda su una sola nota. Un oboe la tiene, e per un momento nessun altro fa rumore.",),
    "ja": ("オーケストラは一つの音に合わせます。明日、私たちと一緒に来ませんか。七時に出発します。",),
    "pt-br": ("A orquestra afina com uma única nota. Um oboé a sustenta, e por um momento ninguém mais faz barulho.",),
    "zh": ("乐团对着一个音调音。明天你想和我们一起去吗？我们七点出发，晚饭前回来。",),
}
SCALES = (
    ("deep pitch", "low pitch", "medium pitch", "high pitch", "very high pitch"),
    ("level", "calm", "natural", "lively", "very lively"),
    ("slow pace", "unhurried", "", "brisk", "fast pace"),
    ("dark", "warm", "", "clear", "bright"),
)
Measures = tuple[float, float, float, float]
WINDOW = 960  # samples, 40 ms
SOUNDS = {id for symbol, id in vocab.SYMBOLS.items() if symbol.isalpha()}
STEPS = (0.12, 0.35, 0.65, 0.88)  # shares of the voices of one gender, between the words


def main() -> None:
    settings = Settings()
    model = OnnxModel(settings.home / "model.onnx", "fp32", 2, vocoder="light")
    voices, pronounce = Voices(settings.home / "voices"), G2P(settings.home).pronounce
    measured: dict[str, Measures] = {}
    for name in NAMES:
        code = find_language(name[0]).code
        rows = [
            Utterance(tokens, voices.get(name).style(len(tokens) - 2))
            for text in TEXTS[code]
            for chunk in chunks(text, code, pronounce, whole_text=True)
            for tokens in [vocab.encode(chunk.phonemes)]
        ]
        frames = model.acoustic(rows)
        measured[name] = (*measure(frames, rows), brightness(np.concatenate(model.vocoder(frames))))
    print("TRAITS = {")
    for name, values in measured.items():
        peers = [measured[other] for other in NAMES if gender(other) == gender(name) and same_pace(other, name)]
        print(
            f'    "{name}": "{describe(values, peers)}",  # {values[0]:.0f} Hz, {values[1]:.1f} st, {values[2]:.1f}/s, '
            f"{values[3]:.0f} Hz"
        )
    print("}")


def measure(frames: list[Frames], rows: list[Utterance]) -> tuple[float, float, float]:
    """Return the median pitch in Hz, the middle half of it in semitones, and the phonemes a second of speech."""
    f0 = np.concatenate([row.f0 for row in frames])
    voiced = f0[f0 > 10]
    low, high = np.percentile(voiced, (25, 75))
    spoken = [
        n_frames
        for row, spoken_row in zip(rows, frames, strict=True)
        for token, n_frames in zip(row.tokens, spoken_row.durations, strict=True)
        if int(token) in SOUNDS
    ]
    return float(np.median(voiced)), 12 * float(np.log2(high / low)), len(spoken) / (0.025 * sum(spoken))


def brightness(samples: NDArray[np.float32]) -> float:
    """Return the centre of the spectrum of what is voiced, in Hz: the median over windows of 40 ms."""
    windows = sliding_window_view(samples, WINDOW)[:: WINDOW // 2] * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(windows)) ** 2
    hertz = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE)
    low, high = (hertz >= 80) & (hertz < 2000), (hertz >= 80) & (hertz < 8000)
    loud = power.sum(axis=1) > 0.1 * np.quantile(power.sum(axis=1), 0.9)
    voiced = loud & (power[:, low].sum(axis=1) > 0.6 * power[:, high].sum(axis=1))
    level = np.sqrt(power[voiced][:, high])  # amplitudes: the power alone is that of the lowest partials
    return float(np.median(level @ hertz[high] / level.sum(axis=1)))


def same_pace(one: str, other: str) -> bool:
    """Whether the phonemes of two voices can be compared: English with English, others with all others."""
    return (one[0] in "ab") == (other[0] in "ab")


def describe(values: Measures, peers: list[Measures]) -> str:
    words = [
        scale[int(np.searchsorted(np.quantile([peer[n] for peer in peers], STEPS), values[n]))]
        for n, scale in enumerate(SCALES)
    ]
    return ", ".join(filter(None, words))


if __name__ == "__main__":
    main()
