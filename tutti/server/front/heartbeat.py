"""Whether a process answers: it is asked once a second. Counts beats, not time, so that a pause of ours is not its."""

BEAT_S = 1.0  # between two questions; shorter notices sooner, and wakes every process more often
LATE_BEATS = 3  # without an answer, after which the server says that it is not ready
HUNG_BEATS = 10  # after which the process hangs and is killed; fewer would kill one that is slow on a busy machine
START_BEATS = 60  # the same for a process that has not answered yet: it imports its modules


class Heartbeat:
    """The beats of one process after the other in the same place."""

    def __init__(self) -> None:
        self.answers = True  # the first process of a place is not missed while it starts
        self._n_missed = 0
        self._is_starting = True

    @property
    def is_hung(self) -> bool:
        return self._n_missed > (START_BEATS if self._is_starting else HUNG_BEATS)

    def asked(self) -> None:
        """A question is sent."""
        self._n_missed += 1
        if self._n_missed > LATE_BEATS and not self._is_starting:
            self.answers = False

    def answered(self) -> None:
        self._n_missed, self._is_starting, self.answers = 0, False, True

    def lost(self) -> None:
        """The process is gone; another one is started."""
        self._n_missed, self._is_starting, self.answers = 0, True, False
