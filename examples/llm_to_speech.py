"""Speak the output of a language model while it is being written.

`tokens()` stands for the token stream of your model.
"""

import os
import threading
from collections.abc import Iterator

from tutti.client import Client

ANSWERS = {
    "What is a tide?": "The tide is the sea following the moon. Twice a day it comes in, and twice it goes out again.",
    "And why twice?": "There are two bulges of water: one below the moon, and one on the far side of the earth.",
}


def tokens(question: str) -> Iterator[str]:
    for word in ANSWERS[question].split(" "):
        yield word + " "


with Client(os.environ.get("TUTTI_URL", "http://127.0.0.1:8880")) as client, client.live(voice="bf_emma") as live:
    for question in ANSWERS:
        print("you: ", question)
        # The model writes in one thread while this one receives audio.
        model = threading.Thread(target=live.say, args=(tokens(question),))
        model.start()
        audio_s = 0.0
        print("answer: ", end="")
        for piece in live:  # play piece.audio here
            audio_s += len(piece.audio) / 48_000
            print(*(word.word for word in piece.words), end=" " if piece.words else "")
        print(f"({audio_s:.1f} s)")
        model.join()
