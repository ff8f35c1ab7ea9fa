"""Words in capitals: acronyms, or ordinary words of a text that shouts."""

from collections.abc import Callable, Sequence

_DETERMINERS = frozenset(str.split("the a an our your their my his her this that its corporate"))
# What an acronym that is also a word stands before; behind a determiner it is one anyway, unless listed below.
_NOUNS = frozenset(
    str.split(
        "department team support staff guy guys manager managers specialist specialists consultant industry "
        "sector project projects system systems security infrastructure services budget professional professionals "
        "president government army navy military senate congress dollar dollars troops economy citizens citizen forces "
        "office embassy constitution treasury election elections border state states market markets company companies "
        "card cards number numbers light lights lamp lamps bulb bulbs display displays"
    )
)
_WORDS_BEHIND_DETERMINER = frozenset(("act", "rip", "sat"))
_HOURS = frozenset(("AM", "PM"))
_REACH = 2  # neighbours on each side that show whether a text shouts


def is_shouted(tokens: Sequence[str], k: int, is_ordinary: Callable[[str], bool]) -> bool:
    """Tell whether a token has capitals only because the words around it have: "DO IT NOW", but not "the FBI"."""
    token = tokens[k]
    if not token.isupper():
        return False
    around = [*tokens[max(0, k - _REACH) : k], *tokens[k + 1 : k + 1 + _REACH]]
    return any(len(other) > 1 and other.isupper() and other not in _HOURS and is_ordinary(other) for other in around)


def is_acronym(words: Sequence[str], place: int) -> bool:
    """Tell whether IT, US, WHO or ID in a shouted sentence is the acronym, by the words around it."""
    before = words[place - 1] if place else ""
    after = words[place + 1] if place + 1 < len(words) else ""
    if words[place] in _WORDS_BEHIND_DETERMINER:
        return False
    return before in _DETERMINERS or after in _NOUNS
