"""Measure the share of the acoustic stage in the model's time, for one row alone.

python -m benchmarks.stages                      1 minute: the official model in fp32 and int8 on this processor
python -m benchmarks.stages --precision fp16     in other precisions, on the device that has them
"""

import argparse
import asyncio
import statistics

from tutti import Settings, SpeechParams, open_engine

TEXTS = {
    "a phrase": "Good morning.",
    "a sentence": "The old bridge still stands, though no one has crossed the river there for years.",
    "a paragraph": "She opened the letter at last, read it twice without a word, and put it back on the table, "
    "where it stayed until the evening, when everybody had gone and the house was quiet again.",
}
REPEATS = 3  # of each text; the median counts


async def shares(precision: str) -> dict[str, tuple[float, float, float]]:
    """Seconds of audio, of the acoustic stage and of the vocoder for each text."""
    results = {}
    async with open_engine(Settings(precision=precision)) as engine:  # type: ignore[arg-type]
        await engine.speak("Warm up.", SpeechParams("af_heart"))
        for name, text in TEXTS.items():
            runs = []
            for _ in range(REPEATS):
                stream = engine.stream(text, SpeechParams("af_heart"), delivery="whole")
                (speech,) = [speech async for speech in stream]
                runs.append((speech.duration_s, speech.timing.acoustic_s, speech.timing.vocoder_s))
            results[name] = tuple(statistics.median(column) for column in zip(*runs, strict=True))
    return results  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", action="append")
    print("| precision | text | audio | acoustic stage | vocoder | acoustic share |\n|---|---|---|---|---|---|")
    for precision in parser.parse_args().precision or ("fp32", "int8"):
        for name, (audio_s, acoustic_s, vocoder_s) in asyncio.run(shares(precision)).items():
            share = acoustic_s / (acoustic_s + vocoder_s)
            times = f"{1000 * acoustic_s:.0f} ms | {1000 * vocoder_s:.0f} ms | {share:.0%}"
            print(f"| {precision} | {name} | {audio_s:.1f} s | {times} |", flush=True)


if __name__ == "__main__":
    main()
