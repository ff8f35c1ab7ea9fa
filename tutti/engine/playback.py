"""The listener's clock, and the only source of deadlines. Pure: the time is an argument."""

from dataclasses import dataclass


@dataclass(slots=True)
class Playback:
    """A listener that starts to play with the first chunk and pauses when no audio is there."""

    requested_s: float
    target_s: float  # from the request to the first audio
    safety_s: float = 0.0  # a chunk is due this long before it is played
    extra_s: float = 0.0  # by how much the stream may start after its target, because it was accepted late
    started_s: float | None = None  # start of playback plus all gaps since
    sent_s: float = 0.0  # seconds of audio handed over
    pending_s: float = 0.0  # estimated seconds of audio being made

    def reserve(self, duration_s: float) -> float:
        """Append a chunk of about this duration; return its position in the audio."""
        position_s = self.sent_s + self.pending_s
        self.pending_s += duration_s
        return position_s

    def corrected(self, longer_s: float) -> None:
        """A chunk that is being made turned out to be so much longer than was estimated."""
        self.pending_s = max(0.0, self.pending_s + longer_s)

    def deadline_s(self, position_s: float) -> float:
        """When the audio at this position is needed, by the present estimate."""
        if self.started_s is None:
            return self.requested_s + self.target_s + self.extra_s + position_s
        return self.started_s + position_s - self.safety_s

    def start_late(self, deadline_s: float) -> None:
        """Accept that the first audio is there only at this time."""
        self.extra_s = max(0.0, deadline_s - self.requested_s - self.target_s)

    @property
    def starts_late(self) -> bool:
        return self.extra_s > 0.0

    def plays_s(self, position_s: float, now: float) -> float:
        """When the audio from this position on is needed if its first part is handed over now."""
        return now + position_s if self.started_s is None else max(now, self.deadline_s(position_s))

    def text_arrived(self, now: float) -> None:
        """Restart the clock if the listener waited for text that is being written, and not for audio."""
        if self.pending_s > 0:
            return
        if self.started_s is None:
            self.requested_s = now
        else:
            self.started_s = max(self.started_s, now + self.target_s - self.sent_s)

    def sent(self, now: float, duration_s: float, estimated_s: float) -> bool:
        """Record that audio was handed over, with the estimate reserved for it; False if the listener heard a gap."""
        gap_s = 0.0 if self.started_s is None else now - (self.started_s + self.sent_s)
        self.started_s = now if self.started_s is None else self.started_s + max(0.0, gap_s)
        self.sent_s += duration_s
        self.pending_s = max(0.0, self.pending_s - estimated_s)
        return gap_s <= 0.0
