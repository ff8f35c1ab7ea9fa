"""Measurements of tutti, and of others beside it; README.md says what each is for."""

import tutti  # noqa: F401  # first of all: it turns the reports of libraries off, which they read when they are imported
