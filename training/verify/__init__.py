"""The light vocoder measured against the exact one, with the gates that a trained one has to pass."""
