"""Kokoro in two stages: `acoustic` (tokens to frames) and `vocoder` (frames to samples)."""
