"""The command that installs an extra fits the way in which the package was installed."""

import json
import sys
from importlib import metadata

import pytest

from tutti.errors import install_hint

INDEX: dict[str, object] = {}
CLONE = {"url": "file:///home/me/my%20clone", "dir_info": {"editable": True}}
WHEEL = {"url": "file:///tmp/tutti_tts-0.1.0-py3-none-any.whl", "archive_info": {}}


class FakeDistribution:
    def __init__(self, origin: dict[str, object]) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return json.dumps(self.origin) if self.origin else None


@pytest.mark.parametrize(
    ("installed", "prefix", "command"),
    [
        ({"tutti-tts": INDEX}, "/usr", 'pip install "tutti-tts[zh]"'),
        ({"tutti-tts-client": INDEX}, "/usr", 'pip install "tutti-tts-client[zh]"'),
        (
            {"tutti-tts": CLONE},
            "/home/me/my clone/.venv",
            '.venv/bin/pip install -e ".[zh]" in the folder of the clone',
        ),
        ({"tutti-tts": CLONE}, "/home/me/other", 'pip install -e ".[zh]" in the folder of the clone'),
        (
            {"tutti-tts-client": CLONE | {"url": "file:///home/me/clone/packaging/client"}},
            *("/usr", 'pip install -e "./packaging/client[zh]" in the folder of the clone'),
        ),
        ({"tutti-tts": WHEEL}, "/usr", 'pip install "tutti_tts-0.1.0-py3-none-any.whl[zh]" in the folder of that file'),
        ({}, "/usr", 'pip install -e ".[zh]" in the folder of the clone'),
    ],
)
def test_the_hint_fits_the_installation(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, dict[str, object]], prefix: str, command: str
) -> None:
    def distribution(name: str) -> FakeDistribution:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return FakeDistribution(installed[name])

    monkeypatch.setattr(metadata, "distribution", distribution)
    monkeypatch.setattr(sys, "prefix", prefix)
    assert install_hint("zh") == command
