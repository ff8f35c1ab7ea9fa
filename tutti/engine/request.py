"""A request that has been checked, how soon its speech should come, and what it is told when none comes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tutti.speech import Delivery, Prosody
from tutti.text.incremental import Text
from tutti.text.user_lexicon import UserLexicon
from tutti.voices import Voice


@dataclass(frozen=True, slots=True)
class Pacing:
    """How soon speech should come, and how far ahead of its listener it may be made."""

    target_s: float = 1.5  # to the first audio
    whole_target_s: float = 20.0  # to the first chunk where the caller waits for the last; clients give up after 30 s
    bulk_target_s: float = 60.0  # to each chunk of work for which nobody waits
    ahead: int = 2  # chunks beyond the one that the caller waits for
    whole_ahead: int = 4  # the same where the caller wants the whole text, not its beginning
    first_chunks: int = 2  # chunks of a stream that count as its beginning
    early: frozenset[str] = frozenset()  # checkpoints whose chunks sound sooner if they sound stretch by stretch

    def target(self, delivery: Delivery) -> float:
        """Seconds until the first audio is due."""
        return {"live": self.target_s, "whole": self.whole_target_s, "bulk": self.bulk_target_s}[delivery]


@dataclass(frozen=True, slots=True)
class Order:
    """A request that has been checked."""

    text: Text
    pause_s: float | None
    voice: Voice
    code: str
    speed: float
    prosody: Prosody
    own: UserLexicon | None
    names: Mapping[str, str]
    seed: int | None
    checkpoint: str
    caller: str
    bulk: bool
    patient: bool  # nobody waits for its first chunk
    early: bool  # a chunk may sound before it is finished
    target_s: float
    ahead: int
    stream: int


def nothing(dropped: Sequence[str]) -> str:
    """Why there is no audio."""
    if not dropped:
        return "the text is empty; give some words to say"
    shown = " ".join(dict.fromkeys(dropped[:20]))
    return f"the text has nothing that can be said, only: {shown}; give some words"
