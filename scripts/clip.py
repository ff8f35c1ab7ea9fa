"""Write docs/clips/listen.mp4, listen.mp3 and the picture of the README that leads there: a forge plays such files.

python -m scripts.clip      needs the model, and Chromium for the pictures of the words
"""

import asyncio
import shutil
from fractions import Fraction
from html import escape
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import sync_playwright

from scripts.pictures import FLAGS
from tutti import Settings, SpeechParams, StreamRequest, open_engine

DOCS = Path(__file__).parent.parent / "docs"
CLIPS, POSTER = DOCS / "clips", DOCS / "images" / "listen.png"
LINES = (
    ("af_heart", "Dr. Smith paid $5.20 for 3 lbs of apples on Jan 5th, at 3:30 pm."),
    ("bm_george", "I read it every day; yesterday I read it twice."),
    ("af_bella", "She closed the book, looked out over the harbour, and began to tell the story from its very end."),
    ("ff_siwis", "Le train de 17 h 45 part du quai numéro 9."),
)
PAUSE_S = 0.6
RATE, WIDTH, HEIGHT, FPS = 24_000, 960, 400, 5
PAGE = """<body style="margin:0;height:100vh;display:grid;place-content:center;gap:18px;padding:0 70px;
background:#111827;color:#f9fafb;font:600 34px/1.35 system-ui,sans-serif">{text}
<small style="font-size:22px;color:#9ca3af">{voice}</small>"""


async def speak() -> list[NDArray[np.int16]]:
    """The samples of each line, with a pause behind it."""
    spoken = []
    async with open_engine(Settings()) as engine:
        for voice, text in LINES:
            pieces = [s.samples async for s in engine.stream(StreamRequest(text, SpeechParams(voice)))]
            samples = np.concatenate([*pieces, np.zeros(int(PAUSE_S * RATE))])
            spoken.append((samples.clip(-1, 1) * 32767).astype(np.int16))
    return spoken


def pictures() -> list[NDArray[np.uint8]]:
    """The words of each line."""
    shown = []
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS).new_page(
            viewport={"width": WIDTH, "height": HEIGHT}
        )
        for voice, text in LINES:
            page.set_content(PAGE.format(text=escape(text), voice=voice))
            file = CLIPS / "line.png"
            page.screenshot(path=file)
            with av.open(str(file)) as picture:
                shown.append(next(picture.decode(video=0)).to_ndarray(format="rgb24"))
            file.unlink()
        page.set_content(PAGE.format(text=f"▶&ensp;{escape(LINES[0][1])}", voice="25 seconds of four voices"))
        page.screenshot(path=POSTER, clip={"x": 0, "y": 90, "width": WIDTH, "height": HEIGHT - 180})
    return shown


def write(path: Path, spoken: list[NDArray[np.int16]], shown: list[NDArray[np.uint8]], codec: str) -> None:
    options = {"movflags": "faststart"} if shown else {}
    with av.open(str(path), "w", options=options) as out:
        sound = out.add_stream(codec, rate=RATE, layout="mono", bit_rate=64_000)
        if shown:
            video = out.add_stream("libx264", rate=FPS, options={"crf": "24", "tune": "stillimage"})
            video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            for picture, samples in zip(shown, spoken, strict=True):
                for _ in range(round(len(samples) / RATE * FPS)):
                    out.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            out.mux(video.encode(None))
        resampler = av.AudioResampler(sound.format, "mono", RATE)
        frame = av.AudioFrame.from_ndarray(np.concatenate(spoken)[None], format="s16", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = RATE, Fraction(1, RATE), 0
        for part in [*resampler.resample(frame), *resampler.resample(None), None]:
            out.mux(sound.encode(part))


def main() -> None:
    spoken = asyncio.run(speak())
    write(CLIPS / "listen.mp4", spoken, pictures(), "aac")
    write(CLIPS / "listen.mp3", spoken, [], "libmp3lame")


if __name__ == "__main__":
    main()
