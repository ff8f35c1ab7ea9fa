"""Tell whether an amount modifies the noun behind it: twenty kilograms, but a twenty kilogram bag."""

import re

_DETERMINER = re.compile(
    r"(?<!\w)(?:an?|the|this|that|my|your|his|her|its|our|their|another|each|every|one)\s"
    r"(?:(?:new|old|big|small|tiny|huge|large|single|second|first|last|next|full|standard|cheap|whole|entire)\s)?$",
    re.IGNORECASE,
)
_NOUN_BEHIND = re.compile(
    r"\s(?!(?:by|x|tall|wide|long|deep|high|thick|away|apart|ago|left|later|earlier|longer|more|less|each|in|of|and"
    r"|or|nor|but|is|was|are|were|be|been|will|would|can|could|may|might|must|should|has|have|had|do|does|did|from|to"
    r"|on|at|for|with|per|a|an|the|that|this|which|who|than|as|if|when|while|so|because|not|into|onto|over|under|up"
    r"|down|off|out|it|he|she|we|they|i|you|before|after|until|since|between|within|without|only|too|also|just|every"
    r"|then|now|plus|minus|equals|through|across|around|about|above|below|behind|beyond|north|south|east|west|felt|went|took|came|goes|feels|I)\b"
    r"|\w+ly\b)[A-Za-z]{2}"
)


def noun_follows(match: re.Match[str]) -> bool:
    """Tell whether a noun may follow."""
    return _NOUN_BEHIND.match(match.string, match.end()) is not None


def is_attributive(match: re.Match[str]) -> bool:
    """Tell whether the amount stands between a determiner and a noun."""
    return (
        noun_follows(match) and _DETERMINER.search(match.string[max(0, match.start() - 24) : match.start()]) is not None
    )
