"""HTTP, the only layer that knows FastAPI."""
