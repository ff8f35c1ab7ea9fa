"""Which rows run together, and when: jobs, their predicted cost, and the order in which they run."""
