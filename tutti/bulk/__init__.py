"""Many texts from a table into audio files in tar shards, with an index: fast, resumable, the same bytes every time."""
