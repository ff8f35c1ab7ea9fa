"""How long a connection rests after its messages were handled, so that the event loop is left to others. Pure."""

REST = 3.0  # times what they took; larger leaves more to others, and slows those who send without a pause
FREE_S = 0.01  # of rest that is not taken: who sends a little now and then never waits; larger lets bursts pass


class ParsingShare:
    """The rest that a connection owes: it grows with what its messages take, and shrinks as time goes by."""

    def __init__(self) -> None:
        self._even_s = 0.0  # when nothing is owed any more

    def rest_s(self, took_s: float, now: float) -> float:
        """Note what messages took; return how long to rest before the next."""
        self._even_s = max(self._even_s, now) + REST * took_s
        owed_s = self._even_s - now
        return owed_s if owed_s > FREE_S else 0.0
