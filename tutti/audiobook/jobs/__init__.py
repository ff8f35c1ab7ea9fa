"""Long readings that nobody waits for: kept on disk, gone on with after a restart, behind whoever listens."""

from tutti.audiobook.jobs.job import Job, State
from tutti.audiobook.jobs.runner import Wish
from tutti.audiobook.jobs.service import Jobs, Limits

__all__ = ["Job", "Jobs", "Limits", "State", "Wish"]
