"""What ffprobe, the tool of others, says of an audiobook."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

COMMAND = ["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_chapters"]


def probe(path: Path) -> dict[str, Any]:
    """Its tags by their names in lower case, among them the language of the audio; and its `chapters`."""
    if not shutil.which("ffprobe"):
        pytest.skip("no ffprobe: apt-get install ffmpeg")
    found = json.loads(subprocess.run([*COMMAND, path], capture_output=True, check=True).stdout)
    (audio,) = [stream for stream in found["streams"] if stream["codec_type"] == "audio"]
    tags = {**audio.get("tags", {}), **found["format"].get("tags", {})}
    chapters = [chapter["tags"]["title"] for chapter in found["chapters"]]
    return {**{name.lower(): text for name, text in tags.items()}, "chapters": chapters}
