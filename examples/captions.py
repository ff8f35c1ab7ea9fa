"""Write captions (SRT) from word times, and the audio they belong to."""

import os
from collections.abc import Sequence
from pathlib import Path

from tutti.client import Client, Word, wav

TEXT = "Every word knows its time. So a caption can appear with the voice, and leave with it."
WORDS_PER_CAPTION = 5


def timestamp(seconds: float) -> str:
    ms = round(1000 * seconds)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"


def srt(words: Sequence[Word]) -> str:
    rows = [words[at : at + WORDS_PER_CAPTION] for at in range(0, len(words), WORDS_PER_CAPTION)]
    return "\n".join(
        f"{n}\n{timestamp(row[0].start_s)} --> {timestamp(row[-1].end_s)}\n{' '.join(word.word for word in row)}\n"
        for n, row in enumerate(rows, start=1)
    )


with Client(os.environ.get("TUTTI_URL", "http://127.0.0.1:8880")) as client:
    pcm, words = bytearray(), list[Word]()
    for piece in client.stream(TEXT):
        pcm += piece.audio
        words += piece.words

Path("captions.wav").write_bytes(wav(bytes(pcm)))
Path("captions.srt").write_text(srt(words), encoding="utf-8")
print(srt(words))
