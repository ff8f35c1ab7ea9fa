"""Who had more than its share: between callers, and between the urgent and those who can wait."""

from collections import OrderedDict, deque
from dataclasses import dataclass

WINDOW_S = 10.0
SHARE = 0.05  # of the device in any window, for those who can wait
SLACK = 1.1  # predictions err: aim a little above the share
GAP_S = 1.0  # gone for less than this is not gone


@dataclass(slots=True)
class _Account:
    left_s: float
    refilled_s: float  # what had been handed out to everyone when `left_s` was true
    seen_s: float


class Callers:
    """A deficit counter for each caller: device seconds are handed out evenly, and taken off by who used them.

    What a caller owes makes its deadlines count as later by as much. So the order stays that of the deadlines between
    callers who keep to their share, and one who sends most of the traffic stands behind them, but never for ever.
    """

    def __init__(self, purse_s: float) -> None:
        self._purse_s = purse_s
        self._refilled_s = 0.0
        self._accounts: OrderedDict[str, _Account] = OrderedDict()  # the most silent first

    def seen(self, caller: str, now: float) -> None:
        """This caller is there; those who were silent for a whole window are forgotten, and forgiven."""
        account = self._accounts.get(caller)
        if account is None:
            account = self._accounts[caller] = _Account(self._purse_s, self._refilled_s, now)
        account.seen_s = now
        self._accounts.move_to_end(caller)
        while next(iter(self._accounts.values())).seen_s < now - WINDOW_S:
            self._accounts.popitem(last=False)

    def spent(self, shares: dict[str, float], now: float) -> None:
        """Device seconds used by each of these callers; as much is handed out to all, evenly."""
        for caller, seconds in shares.items():
            self.seen(caller, now)
            account = self._settle(caller)
            account.left_s = max(account.left_s - seconds, -WINDOW_S)
        if self._accounts:
            self._refilled_s += sum(shares.values()) / len(self._accounts)

    def owes_s(self, caller: str) -> float:
        """Device seconds beyond its share; 0 for who keeps to it."""
        return max(0.0, -self._settle(caller).left_s) if caller in self._accounts else 0.0

    def _settle(self, caller: str) -> _Account:
        account = self._accounts[caller]
        account.left_s = min(self._purse_s, account.left_s + self._refilled_s - account.refilled_s)
        account.refilled_s = self._refilled_s
        return account


class Patience:
    """Sees to it that those who can wait get at least their share of the device in any window."""

    def __init__(self) -> None:
        self._runs: deque[tuple[float, float]] = deque()  # end, device seconds
        self._waits_since_s: float | None = None
        self._seen_s = float("-inf")

    def ran(self, seconds: float, now: float) -> None:
        self._runs.append((now, seconds))

    def exhausted(self, now: float, other_s: float) -> bool:
        """They wait, and would have had less than their share if another batch of `other_s` ran first."""
        if self._waits_since_s is None or now - self._seen_s > GAP_S:
            self._waits_since_s = now
        self._seen_s = now
        start = now + other_s - WINDOW_S
        while self._runs and self._runs[0][0] <= now - WINDOW_S:
            self._runs.popleft()
        had = sum(min(seconds, end - start) for end, seconds in self._runs if end > start)
        # The time before they came counts as if they had had their share, so that their turns come evenly.
        had += SHARE * SLACK * max(0.0, min(self._waits_since_s - start, WINDOW_S))
        return had < SHARE * SLACK * WINDOW_S
