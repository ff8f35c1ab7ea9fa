"""Measure the share of the acoustic stage in the model's time, for one row alone.

python -m benchmarks.stages                      1 minute: the official model in fp32 and int8 on this processor
python -m benchmarks.stages --precision fp16     in other precisions, on the device that has them

On a processor one thread runs and its CPU time counts, so that other programs do not change the result.
"""

import argparse
import statistics
import time
from contextlib import closing

from tutti import Settings
from tutti.engine.checkpoints import Checkpoints, choose_checkpoints
from tutti.speech import SAMPLE_RATE, Utterance
from tutti.text import chunks, vocab
from tutti.text.g2p import G2P
from tutti.voices import Voices

TEXTS = {
    "a phrase": "Good morning.",
    "a sentence": "The old bridge still stands, though no one has crossed the river there for years.",
    "a paragraph": "She opened the letter at last, read it twice without a word, and put it back on the table, "
    "where it stayed until the evening, when everybody had gone and the house was quiet again.",
}
REPEATS = 3  # of each text; the median counts


def measure(precision: str) -> dict[str, tuple[float, float, float]]:
    """Seconds of audio, of the acoustic stage and of the vocoder for each text."""
    settings = Settings(precision=precision, threads=1)  # type: ignore[arg-type]
    choices = choose_checkpoints(settings)
    (choice,) = choices.values()
    clock = time.process_time if choice.device == "cpu" else time.perf_counter
    voice, pronounce = Voices(settings.home / "voices").get("af_heart"), G2P(settings.home).pronounce
    (model,) = Checkpoints(settings.home, tuple(choices.items()), settings.threads)().values()
    results = {}
    with closing(model):
        for name, text in TEXTS.items():
            (chunk,) = chunks(text, "en-us", pronounce, whole_text=True)
            tokens = vocab.encode(chunk.phonemes)
            row = Utterance(tokens, voice.style(len(tokens) - 2))
            model.vocoder(model.acoustic([row]))  # warm
            runs = []
            for _ in range(REPEATS):
                started_s = clock()
                frames = model.acoustic([row])
                between_s = clock()
                (samples,) = model.vocoder(frames)
                runs.append((len(samples) / SAMPLE_RATE, between_s - started_s, clock() - between_s))
            audio_s, acoustic_s, vocoder_s = (statistics.median(column) for column in zip(*runs, strict=True))
            results[name] = audio_s, acoustic_s, vocoder_s
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", action="append")
    print("| precision | text | audio | acoustic stage | vocoder | acoustic share |\n|---|---|---|---|---|---|")
    for precision in parser.parse_args().precision or ("fp32", "int8"):
        for name, (audio_s, acoustic_s, vocoder_s) in measure(precision).items():
            share = acoustic_s / (acoustic_s + vocoder_s)
            times = f"{1000 * acoustic_s:.0f} ms | {1000 * vocoder_s:.0f} ms | {share:.0%}"
            print(f"| {precision} | {name} | {audio_s:.1f} s | {times} |", flush=True)


if __name__ == "__main__":
    main()
