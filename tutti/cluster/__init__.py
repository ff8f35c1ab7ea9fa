"""Several replicas of the server on one or more machines, with Ray Serve (extra `[ray]`); docs/scale.md."""
