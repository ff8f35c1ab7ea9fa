"""From a text to a file: run `tutti serve`, then `python quick_start.py`."""

import os

from tutti.client import Client

with Client(os.environ.get("TUTTI_URL", "http://127.0.0.1:8880")) as client:
    audio = client.speak("All voices, one pass.", voice="af_heart")
    print(audio.save("hello.wav"), f"{audio.duration_s:.2f} s of speech")
    print(f"first byte after {1000 * client.stats().first_byte_s.avg:.0f} ms")
