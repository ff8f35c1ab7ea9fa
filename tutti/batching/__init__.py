"""Which rows run together, and when: jobs, what they cost, who goes next."""
