"""From any text to chunks of phonemes, each tied to its place in the original."""
