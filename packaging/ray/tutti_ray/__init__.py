"""tutti on Ray: `tutti cluster`, replicas of the server with Ray Serve, and `tutti bulk --ray`; see docs/scale.md."""

NEEDS = "needs Ray; run: pip install tutti-ray, or pip install -e packaging/ray in a clone"
