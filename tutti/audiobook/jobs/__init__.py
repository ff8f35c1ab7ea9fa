"""Background jobs that make audiobooks: stored on disk, resumed after a restart, served after all listeners."""

from tutti.audiobook.jobs.job import AudiobookJob, JobState
from tutti.audiobook.jobs.runner import JobSpec
from tutti.audiobook.jobs.service import JobLimits, JobService

__all__ = ["AudiobookJob", "JobLimits", "JobService", "JobSpec", "JobState"]
