"""Speak a book paragraph by paragraph, several at a time, and join them in order; errors are reported."""

import os
import sys
from pathlib import Path

from tutti.client import Audio, Client, wav

BOOK = """It was the third winter without snow.

The children had begun to ask what sleds were for, and the old men by the stove told them of roads
that vanished overnight, of doors that opened into white walls.

Then, on a Tuesday, it began to fall."""

PAUSE = bytes(2 * 24_000 * 7 // 10)  # 0.7 s of silence between paragraphs

text = Path(sys.argv[1]).read_text("utf-8") if len(sys.argv) > 1 else BOOK
paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
# Nothing is played yet, so a slow machine may take its time.
url = os.environ.get("TUTTI_URL", "http://127.0.0.1:8880")
with Client(url, retries=9, synthesis_timeout_s=600, streaming_timeout_s=600) as client:
    results = client.speak_many(paragraphs, voice="bm_george", format="pcm", max_concurrency=8)

failed = [(n, result) for n, result in enumerate(results, start=1) if not isinstance(result, Audio)]
for n, error in failed:
    print(f"paragraph {n}: {error}", file=sys.stderr)
if failed:
    sys.exit(1)
book = Audio(wav(PAUSE.join(audio.data for audio in results if isinstance(audio, Audio))), "wav")
print(book.save("book.wav"), f"{len(paragraphs)} paragraphs")
