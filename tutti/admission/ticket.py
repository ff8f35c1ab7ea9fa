"""What is known of a request before its text is read: who asks, since when, and how long it may take."""

from typing import Literal, NamedTuple

Delivery = Literal["live", "whole", "bulk"]  # played while it is made; needed complete; behind all other requests
DELIVERIES: tuple[Delivery, ...] = ("live", "whole", "bulk")
LOST_SHARE = 0.5  # of a limit that a request may have lost before it is read; more would leave too little to serve it


class Ticket(NamedTuple):
    """Made when a request arrives, and carried to the end of its stream: all its limits count from then."""

    caller: str = ""  # whom its work is charged to: the device is shared fairly between callers
    delivery: Delivery = "live"
    id: str = ""  # of the request, for the log
    arrived_s: float | None = None  # when its first bytes came, by the monotonic clock; none: it has no client
    max_start_s: float | None = None  # how long it may wait for its first audio; none: as long as others

    def clock_start_s(self, limit_s: float, now: float) -> float:
        """When a limit of so many seconds began: when the request arrived, with LOST_SHARE; without a client, now."""
        return now if self.arrived_s is None else max(self.arrived_s, now - LOST_SHARE * limit_s)

    def left_s(self, limit_s: float, now: float) -> float:
        """Seconds that are left of it."""
        return self.clock_start_s(limit_s, now) + limit_s - now


NO_CLIENT = Ticket()
