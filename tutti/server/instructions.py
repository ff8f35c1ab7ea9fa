"""Instructions in plain words, as OpenAI's API has them, and what of them Kokoro can follow."""

import re
from dataclasses import dataclass

from tutti.text.tags import FEELINGS

MAX_INSTRUCTIONS = 5000  # characters that are read
BEFORE = 3  # words before a word in which a negation counts
NEGATIONS = frozenset(("not", "no", "never", "don't", "dont", "without", "avoid", "less", "isn't", "nor", "neither"))
STRONG = frozenset(("very", "really", "extremely", "much"))
# Factor of the speed, semitones and factor of the pitch range, for each word.
SPEEDS = {
    **dict.fromkeys(("slow", "slower", "slowly", "unhurried", "leisurely"), 0.85),
    **dict.fromkeys(("fast", "faster", "quick", "quicker", "quickly", "rapid", "rapidly", "brisk", "briskly"), 1.2),
}
PITCHES = {"deep": -2.0, "deeper": -2.0, "lower": -2.0, "higher": 2.0}
RANGES = {
    **dict.fromkeys(("monotone", "monotonous", "flat", "deadpan"), 0.4),
    **dict.fromkeys(("expressive", "animated", "lively", "dynamic"), 1.4),
}
VOLUMES = {**dict.fromkeys(("loud", "louder", "loudly"), 1.5), **dict.fromkeys(("quiet", "quieter", "whispering"), 0.6)}
VOLUMES |= dict.fromkeys(("whisper", "whispers", "whispered"), 0.6)
_WORD = re.compile(r"[a-z][a-z'-]*")


@dataclass(frozen=True, slots=True)
class Followed:
    """What instructions change: the preset, factors, semitones; and the words that said so."""

    words: tuple[str, ...]
    emotion: str | None = None
    speed: float = 1.0
    pitch: float = 0.0
    pitch_range: float = 1.0
    volume: float = 1.0

    @property
    def notice(self) -> str:
        """What is followed, for the caller."""
        effects = [f"emotion {self.emotion}"] if self.emotion else []
        for name, neutral in (("speed", 1.0), ("pitch", 0.0), ("pitch_range", 1.0), ("volume", 1.0)):
            value = getattr(self, name)
            if value != neutral:
                effects.append(f"{name} {value:{'+g' if name == 'pitch' else 'g'}}")
        said = ", ".join(self.words)
        return f"of the instructions, {said} became {', '.join(effects)}; the rest has no effect"


def read_instructions(text: str) -> Followed | None:
    """Return what of the instructions can be followed: of each kind the first word; None if nothing can."""
    words = _WORD.findall(text[:MAX_INSTRUCTIONS].lower().replace("\u2019", "'"))
    wanted = [
        (word, n > 0 and words[n - 1] in STRONG)
        for n, word in enumerate(words)
        if NEGATIONS.isdisjoint(words[max(0, n - BEFORE) : n])
    ]
    said: dict[str, None] = {}

    def first(table: dict[str, float], neutral: float) -> float:
        for word, is_strong in wanted:
            if word in table:
                said[f"very {word}" if is_strong else word] = None
                return neutral + 1.5 * (table[word] - neutral) if is_strong else table[word]
        return neutral

    feeling = next((word for word, _ in wanted if word in FEELINGS), None)
    if feeling:
        said[feeling] = None
    speed, pitch, pitch_range, volume = first(SPEEDS, 1.0), first(PITCHES, 0.0), first(RANGES, 1.0), first(VOLUMES, 1.0)
    emotion = FEELINGS[feeling] if feeling else None
    return Followed(tuple(said), emotion, speed, pitch, pitch_range, volume) if said else None
