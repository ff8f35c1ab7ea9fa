"""tutti: all voices, one pass."""

__version__ = "0.1.0"
