"""The listener's clock: when each chunk of a stream must be there so that no gap is heard. Pure: told the time."""

from dataclasses import dataclass


@dataclass(slots=True)
class Playback:
    """Someone who starts to listen at the first chunk and plays on as long as there is audio."""

    asked_s: float
    target_s: float  # how soon the first chunk should come
    safety_s: float = 0.0  # how much earlier than its turn a chunk should be there
    coming_s: float = 0.0  # audio that is being made, by estimate
    dry_at_s: float | None = None  # when the audio sent so far will have been played

    def due_s(self, likely_s: float) -> float:
        """The deadline of the next chunk, which will last about this long."""
        if self.dry_at_s is None:
            due_s = self.asked_s + self.target_s + self.coming_s
        else:
            due_s = self.dry_at_s + self.coming_s - self.safety_s
        self.coming_s += likely_s
        return due_s

    def text_came(self, now: float) -> None:
        """Where the listener waited for the author, our time begins only now."""
        if self.dry_at_s is None and self.coming_s == 0:
            self.asked_s = now
        elif self.dry_at_s is not None and self.coming_s == 0:
            self.dry_at_s = max(self.dry_at_s, now + self.target_s)

    def early_s(self, now: float) -> float:
        """How much sooner than `due_s` has told so far the rest will be needed, if the listener starts now."""
        return self.asked_s + self.target_s + self.safety_s - now

    def sent(self, now: float, duration_s: float, likely_s: float) -> bool:
        """A chunk has been handed over; False if the listener had to wait for it in mid-speech."""
        in_time = self.dry_at_s is None or now <= self.dry_at_s
        self.coming_s = max(0.0, self.coming_s - likely_s)
        # After a gap the listener is that much later with everything that follows.
        self.dry_at_s = (self.dry_at_s if self.dry_at_s is not None and in_time else now) + duration_s
        return in_time
