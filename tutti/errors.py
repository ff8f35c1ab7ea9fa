"""The errors of tutti, each with its HTTP status, its code and the field that caused it.

TuttiError
├── InvalidInput            400  the request is wrong; `param` names the field
│   ├── NothingToSpeak      400
│   ├── UnknownVoice        400
│   ├── UnknownLanguage     400
│   ├── UnknownFormat       400
│   ├── UnknownJob          404
│   └── UnknownLexicon      404
├── MissingExtra            501  an optional package is not installed; the message names it
├── WeightsUnavailable      503  no source has the file
├── WeightsCorrupt          503  the file differs from the official one
├── StorageFull             507  the disk is full or cannot be written
├── JobsLocked              503  another program keeps the list of jobs locked
├── WrongState              409  not possible in the job's state
├── NotYourVoice        403  the voice was added by somebody else, or this caller may add none
├── NotYourLexicon      403  the lexicon was stored by somebody else, or none may be stored
├── TooManyVoices       429  the limit of added voices is reached; delete some
├── TooManyLexicons     429  the limit of stored lexicons is reached; delete some
├── TooManyJobs             429  the limit of stored jobs is reached; delete some
├── G2PUnavailable          502  the remote G2P service did not answer
├── QueueFull               429  the request cannot be served in time; retry after `retry_after_s`
│   └── ReplicaFull         503  the same, where another replica may have room (TUTTI_REPLICA)
├── DeadlineExceeded        504  the time limit of the request has passed
├── NotReady                503  the model is not warm yet
├── Draining                503  the server is shutting down and accepts no new requests
├── WorkerLost              503  the model process died or hung
│   └── RowsLost            503  it was replaced, and the rows it held are gone
└── ModelFailed             500  the model failed on this row
    └── DeviceFull          503  the batch does not fit in the device's memory
"""

import json
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit


class TuttiError(Exception):
    """An expected error. The message is one sentence: what happened, and what to do about it."""

    status = 500
    code = "internal_error"
    exit_code = 1

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def __reduce__(self) -> tuple[Any, ...]:
        """Between processes an error keeps its fields, whatever its constructor asks for."""
        return _restore, (type(self), self.args, vars(self))


def _restore(kind: type[TuttiError], args: tuple[object, ...], fields: dict[str, object]) -> TuttiError:
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


class InvalidInput(TuttiError):
    status, code, exit_code = 400, "invalid_input", 2


class NothingToSpeak(InvalidInput):
    code = "nothing_to_speak"

    def __init__(
        self, message: str, *, param: str | None = None, dropped: tuple[str, ...] = (), notices: tuple[str, ...] = ()
    ) -> None:
        """`dropped` and `notices` are what the speech would have named."""
        super().__init__(message, param=param)
        self.dropped = dropped
        self.notices = notices


class UnknownVoice(InvalidInput):
    code = "voice_not_found"


class UnknownLanguage(InvalidInput):
    code = "unknown_language"


class UnknownFormat(InvalidInput):
    code = "unknown_format"


class UnknownJob(InvalidInput):
    status, code = 404, "job_not_found"


class UnknownLexicon(InvalidInput):
    status, code = 404, "lexicon_not_found"


class MissingExtra(TuttiError):
    status, code, exit_code = 501, "missing_extra", 3


class WeightsUnavailable(TuttiError):
    status, code, exit_code = 503, "weights_unavailable", 3


class WeightsCorrupt(TuttiError):
    status, code, exit_code = 503, "weights_corrupt", 3


class StorageFull(TuttiError):
    status, code, exit_code = 507, "storage_full", 4


class JobsLocked(TuttiError):
    status, code = 503, "jobs_locked"


class WrongState(TuttiError):
    status, code = 409, "wrong_state"


class NotYourVoice(TuttiError):
    status, code = 403, "not_your_voice"


class TooManyVoices(TuttiError):
    status, code = 429, "too_many_voices"


class NotYourLexicon(TuttiError):
    status, code = 403, "not_your_lexicon"


class TooManyLexicons(TuttiError):
    status, code = 429, "too_many_lexicons"


class TooManyJobs(TuttiError):
    status, code = 429, "too_many_jobs"


class G2PUnavailable(TuttiError):
    status, code = 502, "g2p_unavailable"


class QueueFull(TuttiError):
    status, code = 429, "queue_full"

    def __init__(self, message: str, *, retry_after_s: float, param: str | None = None) -> None:
        super().__init__(message, param=param)
        self.retry_after_s = retry_after_s


class ReplicaFull(QueueFull):
    status, code = 503, "replica_full"


class TooSlow(QueueFull):
    status, code = 503, "too_slow"


class DeadlineExceeded(TuttiError):
    status, code = 504, "deadline_exceeded"


class NotReady(TuttiError):
    status, code = 503, "not_ready"


class Draining(TuttiError):
    status, code = 503, "draining"


class WorkerLost(TuttiError):
    status, code = 503, "worker_lost"


class RowsLost(WorkerLost):
    pass


class ModelFailed(TuttiError):
    code = "model_failed"


class DeviceFull(ModelFailed):
    status, code = 503, "device_full"


MAX_COMPARED = 500  # characters of a name that is compared with others, which takes quadratic time


def did_you_mean(wrong: str, names: Iterable[str], cutoff: float = 0.5) -> str:
    """A hint such as "; did you mean af_heart or af_sarah?", or "" if none of these names is similar."""
    if len(wrong) > MAX_COMPARED:
        return ""
    similar = get_close_matches(wrong.lower(), list(names), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, for the way in which tutti was installed."""
    from importlib.metadata import PackageNotFoundError, distribution  # here: rarely needed, and slow to import

    for name, project in (("tutti-tts", "."), ("tutti-tts-client", "./packaging/client")):
        try:
            origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
        except PackageNotFoundError:
            continue
        path = PurePosixPath(unquote(urlsplit(origin.get("url", "")).path))
        if "archive_info" in origin:
            return f'pip install "{path.name}[{extra}]" in the folder of that file'
        if "dir_info" not in origin:
            return f'pip install "{name}[{extra}]"'
        prefix = PurePosixPath(sys.prefix)
        pip = prefix.relative_to(path) / "bin/pip" if prefix.is_relative_to(path) else "pip"
        return f'{pip} install -e "{project}[{extra}]" in the folder of the clone'
    return f'pip install -e ".[{extra}]" in the folder of the clone'
