"""tutti: all voices, one pass."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.engine.build import open_engine
    from tutti.engine.engine import Engine
    from tutti.engine.request import StreamRequest
    from tutti.settings import Settings
    from tutti.speech import SpeechParams

# Libraries that report to their makers read these when they are imported. Every process imports this module before any
# other of ours. Nothing is to be reported, so it does not matter what was set before.
os.environ |= {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}
if "onnxruntime" in sys.modules:  # too late for the report of its start, which is out of our hands
    sys.modules["onnxruntime"].disable_telemetry_events()

__version__ = "0.9.0"
__all__ = ["Engine", "Settings", "SpeechParams", "StreamRequest", "open_engine"]

_HOME_OF = {
    "Engine": "tutti.engine.engine",
    "open_engine": "tutti.engine.build",
    "Settings": "tutti.settings",
    "SpeechParams": "tutti.speech",
    "StreamRequest": "tutti.engine.request",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import tutti` costs nothing."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tutti' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME_OF[name]), name)
