"""Background jobs that make audiobooks: stored on disk, resumed after a restart, served after all listeners."""

from tutti.audiobook.jobs.job import AudiobookJob, Correction, JobSpec, JobState
from tutti.audiobook.jobs.limits import JobLimits
from tutti.audiobook.jobs.service import JobService

__all__ = ["AudiobookJob", "Correction", "JobLimits", "JobService", "JobSpec", "JobState"]
