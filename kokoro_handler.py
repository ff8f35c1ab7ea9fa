"""The client under the module name of earlier code: `from kokoro_handler import OptimizedKokoroHandler`."""

from tutti.client.compat import OptimizedKokoroHandler, PerformanceMetrics

__all__ = ["OptimizedKokoroHandler", "PerformanceMetrics"]
