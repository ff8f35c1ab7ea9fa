"""Words of chats in full: "idk" is "I don't know". In capitals they are left to be spelled."""

import re

from tutti.text.aligned_text import AlignedText

_WORDS = {
    "afaik": "as far as I know", "afk": "away from keyboard", "b4": "before",     "bff": "best friend forever",
    "brb": "be right back", "btw": "by the way", "cya": "see you",
    "fwiw": "for what it's worth", "fyi": "F Y I", "g2g": "got to go", "gtg": "got to go", "gr8": "great",
    "hbu": "how about you", "icymi": "in case you missed it", "idc": "I don't care", "idk": "I don't know",
    "iirc": "if I recall correctly", "ikr": "I know, right", "ily": "I love you", "imho": "in my humble opinion",
    "imo": "in my opinion", "irl": "in real life", "istg": "I swear to god", "jk": "just kidding", "l8r": "later",
    "lmao": "L M A O", "lmk": "let me know", "m8": "mate", "msg": "message", "msgs": "messages", "mtg": "meeting",
    "ngl": "not gonna lie", "nvm": "never mind", "np": "no problem", "omg": "oh my god", "omw": "on my way",
    "otw": "on the way", "pls": "please", "plz": "please", "ppl": "people", "rofl": "R O F L", "rn": "right now",
    "smh": "shaking my head", "tbh": "to be honest", "thx": "thanks", "thnx": "thanks", "tks": "thanks",
    "tho": "though",
    "tmrw": "tomorrow", "ttyl": "talk to you later", "tysm": "thank you so much", "ur": "your",
    "w8": "wait", "wbu": "what about you", "wfh": "working from home", "wtf": "W T F", "wyd": "what are you doing",
    "yw": "you're welcome", "2day": "today", "2moro": "tomorrow", "2morrow": "tomorrow", "2nite": "tonight",
    "4eva": "forever", "sry": "sorry", "obv": "obviously", "probs": "probably", }  # fmt: skip
_TOKEN = re.compile(r"[a-z\d]+|[A-Z][a-z\d]+")
_RULE = re.compile(rf"(?<![\w.@#/'-])(?:{'|'.join(_WORDS)})(?![\w@/'-]|\.\w)", re.IGNORECASE)
# "see u", "r u ok", but not a variable or the letter.
_YOU = re.compile(r"(?<=[a-z]{2} )(?<!let )(?<!of )(?<!letter )(?<!where )(?<!vector )(?:u|U)(?= [a-z]{2}|[.!?,]*$)")
_ARE_YOU = re.compile(r"(?<![\w.])(?P<are>[rR]) (?P<you>[uU])(?= [a-z]|[.!?,]*$)")


def expand(aligned: AlignedText) -> AlignedText:
    """Write words of chats in full."""
    if _LISTED.isdisjoint(_TOKEN.findall(aligned.text)):
        return aligned
    aligned = aligned.sub(_RULE, _in_full)
    return aligned.sub(_ARE_YOU, lambda _: {"are": "are", "you": "you"}).sub(_YOU, "you")


_LISTED = frozenset((*_WORDS, *(word.capitalize() for word in _WORDS), "u"))


def _in_full(match: re.Match[str]) -> str | None:
    word = match[0]
    if word.isupper() and not word[0].isdecimal():
        return None
    words = _WORDS[word.lower()]
    return words[0].upper() + words[1:] if word[0].isupper() else words
