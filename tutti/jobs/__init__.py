"""Long readings that nobody waits for: kept on disk, gone on with after a restart, behind whoever listens."""

from tutti.jobs.job import Job, State
from tutti.jobs.jobs import Jobs, Limits
from tutti.jobs.studio import Wish

__all__ = ["Job", "Jobs", "Limits", "State", "Wish"]
