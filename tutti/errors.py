"""Every error tutti raises on purpose: each knows its HTTP status, its code and the field at fault.

TuttiError
├── InvalidInput            400  the caller can mend it; `param` names the field
│   ├── NothingToSpeak      400
│   ├── UnknownVoice        400
│   ├── UnknownLanguage     400
│   ├── UnknownFormat       400
│   └── UnknownJob          404
├── MissingExtra            501  an optional part is not installed; the message says which
├── WeightsUnavailable      503  no source had the file
├── WeightsCorrupt          503  the bytes are not the official ones
├── StorageFull             507
├── WrongState              409  the job is not in a state for that
├── TooManyJobs             429  so many are kept already that some must be deleted first
├── G2PUnavailable          502  the remote G2P service did not answer
├── QueueFull               429  more work waits than can be done in time; `retry_after_s` says when to come again
├── DeadlineExceeded        504  the request's own time limit passed
├── NotReady                503  the model is not warm yet
├── Draining                503  the server is going down and takes no new work
├── WorkerLost              503  the process with the model died or hung
└── ModelFailed             500  the network broke on this row
    └── DeviceFull          503  too many rows at once for the device's memory; fewer will do
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TuttiError(Exception):
    """Something tutti can explain. The message is one sentence for the person who can mend it."""

    status = 500
    code = "internal_error"
    exit_code = 1

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidInput(TuttiError):
    status, code, exit_code = 400, "invalid_input", 2


class NothingToSpeak(InvalidInput):
    code = "nothing_to_speak"


class UnknownVoice(InvalidInput):
    code = "voice_not_found"


class UnknownLanguage(InvalidInput):
    code = "unknown_language"


class UnknownFormat(InvalidInput):
    code = "unknown_format"


class UnknownJob(InvalidInput):
    status, code = 404, "job_not_found"


class MissingExtra(TuttiError):
    status, code, exit_code = 501, "missing_extra", 3


class WeightsUnavailable(TuttiError):
    status, code, exit_code = 503, "weights_unavailable", 3


class WeightsCorrupt(TuttiError):
    status, code, exit_code = 503, "weights_corrupt", 3


class StorageFull(TuttiError):
    status, code, exit_code = 507, "storage_full", 4


class WrongState(TuttiError):
    status, code = 409, "wrong_state"


class TooManyJobs(TuttiError):
    status, code = 429, "too_many_jobs"


class G2PUnavailable(TuttiError):
    status, code = 502, "g2p_unavailable"


class QueueFull(TuttiError):
    status, code = 429, "queue_full"

    def __init__(self, message: str, *, retry_after_s: float, param: str | None = None) -> None:
        super().__init__(message, param=param)
        self.retry_after_s = retry_after_s


class DeadlineExceeded(TuttiError):
    status, code = 504, "deadline_exceeded"


class NotReady(TuttiError):
    status, code = 503, "not_ready"


class Draining(TuttiError):
    status, code = 503, "draining"


class WorkerLost(TuttiError):
    status, code = 503, "worker_lost"


class ModelFailed(TuttiError):
    code = "model_failed"


class DeviceFull(ModelFailed):
    status, code = 503, "device_full"


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A hint such as "; did you mean af_heart or af_sarah?", or nothing when no name is near."""
    near = get_close_matches(wrong.lower(), list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""
