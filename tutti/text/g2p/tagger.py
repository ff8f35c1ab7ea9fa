"""A rule-based part-of-speech tagger for single words, used only where the pronunciation depends on the tag."""

from collections.abc import Sequence


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ARTICLES = _set("a an the")
_DETERMINERS = _ARTICLES | _set(
    "this these those each every some any no another either neither both all many few several most more such "
    "what whose which one two three four five six seven eight nine ten my your his her its our their"
)
_SUBJECTS = _set("i you we they he she it who there")
_PLURAL_SUBJECTS = _set("i you we they people who")
_OBJECTS = _set("me you him her it us them myself yourself himself herself itself ourselves themselves")
_MODALS = _set(
    "can could will would shall should may might must cannot can't couldn't won't wouldn't shouldn't mustn't "
    "do does did don't doesn't didn't let's please 'll gonna wanna let make help"
)
_BE = _set("am is are was were be been being isn't aren't wasn't weren't ain't")
_CONTRACTED_BE = _set("i'm it's he's she's that's there's what's who's here's where's let's")
_HAVE = _set("have has had having haven't hasn't hadn't")
_PREPOSITIONS = _set(
    "of in on at by for with from into onto over under about after before between through during against among "
    "without within upon toward towards across behind beyond near per via than as like despite because"
)
_CONJUNCTIONS = _set("and or but nor yet")
_ADVERBS = _set(
    "not never always often just still even only also really very too so quite rather almost already ever soon "
    "then now usually sometimes again maybe perhaps therefore thus hence instead otherwise"
)
_CLAUSE = _set("that if when while because although though unless until since where whether how why")
_ADJECTIVES = _set(
    "new old good great high low big small large long short own other same different first last next best "
    "worst better worse major minor full main early late recent current strong weak poor rich little own whole "
    "double free fresh cold hot warm open hard soft key daily weekly annual tax world public private local "
    "real true"
)
# "to" after these is a preposition: a noun follows it.
_TO_NOUN = _set("due according addition related access attention thanks prior response relation regard")
_PARTICLE_VERBS = _set(
    "come comes came coming go goes went gone going log logged logs logging sign signed signs give gave gives "
    "move moved moves check checked checks get got gets let lets walk walked walks break broke breaks turn "
    "turned turns hand handed bring brought brings stay stayed plug plugged zoom zoomed cave caved check-in "
    "sink sank sinks sunk barge barged call called calls fill filled fills join joined drop dropped kick "
    "kicked step stepped tune tuned settle settled"
)
_MORE_OFTEN_ADJECTIVES = _set("invalid upset overweight uptown overhead")
_AFTER_DEMONSTRATIVE_THAT = _set("one day time way night year man moment kind sort point case")
_REPORTING_VERBS = _set(
    "say think know believe ensure show see mean find hope suggest argue assume mention indicate state "
    "claim note prove realize understand feel guarantee imply verify check decide agree require specify "
    "tell remember expect admit ask"
)
_LINKING_VERBS = _set("seem seems seemed look looks looked feel feels felt become becomes became remain remains")
_PLURAL_NOUNS = _set("people children men women folks police who")
_SINGULAR_S = ("ss", "us", "is", "ous", "as", "'s", "ways", "haps", "news", "sales", "sports", "does", "physics")
_ADJECTIVE_ENDINGS = ("al", "ive", "ous", "ful", "ic", "less", "able", "ible", "ary", "ish")


def tag(words: Sequence[str], i: int, choices: frozenset[str]) -> str:
    """Return the Penn Treebank tag of words[i] (lower case; "" is a pause); `choices` are the tags that matter."""
    word = words[i]
    if word == "that":
        return _that(words, i)
    left, right = _left(words, i), _at(words, i + 1)
    if "VBD" in choices and "VERB" not in choices:
        return _past(words, i)
    kind = _noun_or_verb(words, i, left, right, verb_first="VERB" not in choices)
    if kind == "NN" and word in _MORE_OFTEN_ADJECTIVES and _noun_like(right):
        return "JJ"
    if kind == "NN" and "ADJ" in choices and word != "minute":  # "a minute later"; homographs.py has the rest
        return "JJ" if _adjective_here(left, right) else "NN"
    return kind


def particle(words: Sequence[str], i: int) -> bool:
    """Tell whether "in" or "by" at i belongs to its verb ("come in") rather than to a noun after it."""
    return _at(words, i - 1) in _PARTICLE_VERBS and not _noun_like(_at(words, i + 1))


def passive(words: Sequence[str], i: int) -> bool:
    """Tell whether "used to" at i is a passive ("is used to cut") and not a habit ("is used to noise")."""
    after = _at(words, i + 2)
    be = any(word in _BE for word in words[max(0, i - 3) : i])
    return be and _noun_like(after) and not after.endswith(("ing", "s"))


def article(words: Sequence[str], i: int) -> bool:
    """Tell whether "a" at i is the article rather than the letter."""
    return bool(_at(words, i + 1)) and _at(words, i + 1) not in _CONJUNCTIONS | _BE | _PREPOSITIONS


def _noun_or_verb(words: Sequence[str], i: int, left: str, right: str, verb_first: bool) -> str:
    """Decide between noun and verb; `verb_first`: the dictionary's default is the verb."""
    word = words[i]
    takes_object = right in _DETERMINERS or right in _OBJECTS
    if left in _DETERMINERS or (left.endswith(("'s", "s'")) and left not in _CONTRACTED_BE):
        return "NN"
    if left == "to":
        return "NN" if _at(words, i - 2) in _TO_NOUN and not takes_object else "VB"
    if left in _MODALS or left.endswith("'ll"):
        return "VB"
    if left in _BE or left.endswith("'re") or left in _CONTRACTED_BE:
        return "VBN" if word.endswith("ed") else "IN" if right in _DETERMINERS else "JJ"
    if left in _HAVE or left.endswith("'ve"):
        return "VBN" if word.endswith("ed") else "NN"
    if left in _SUBJECTS:
        return "VBZ" if word.endswith("s") else "VBP"
    if left in _PREPOSITIONS or left in _ADJECTIVES or left.endswith(_ADJECTIVE_ENDINGS):
        return "NN"
    if right == "of":
        return "NN"
    if left in ("", *_CONJUNCTIONS, *_CLAUSE):
        commands = takes_object or (verb_first and left not in _CLAUSE and _noun_like(right))  # "and use Python"
        return "VB" if commands or (left in _CONJUNCTIONS and _verb_before(words, i)) else "NN"
    if (takes_object or right == "that") and (word.endswith("s") != _is_plural(left) or left.endswith("ly")):
        return "VBZ" if word.endswith("s") else "VBP"
    if (
        _is_plural(left) and not word.endswith("s") and right != "to"
    ):  # "students use Python": plurals rarely modify nouns
        return "VBP"
    return "NN"


def _is_plural(word: str) -> bool:
    return word in _PLURAL_NOUNS or (len(word) > 3 and word.endswith("s") and not word.endswith(_SINGULAR_S))


def _verb_before(words: Sequence[str], i: int) -> bool:
    """Tell whether "... and X" continues a verb after "to" or a modal: "to play and record"."""
    return any(_at(words, j) in _MODALS or _at(words, j) == "to" for j in (i - 3, i - 4, i - 5))


def _adjective_here(left: str, right: str) -> bool:
    return left in _LINKING_VERBS or (left in _DETERMINERS and _noun_like(right))


def _past(words: Sequence[str], i: int) -> str:
    """Decide between past, present and noun: read, wound, used."""
    left, before = _left(words, i), [w for w in words[max(0, i - 5) : i] if w]
    if left in _MODALS or left == "to" or left.endswith("'ll"):
        return "VB"
    if left in _HAVE or left.endswith("'ve"):
        return "VBN"
    if left in _SUBJECTS and any(w in _HAVE for w in before[-3:]):  # have you read
        return "VBN"
    if left in _SUBJECTS and any(w in _MODALS for w in before[-3:]):  # did you read
        return "VB"
    if left in _BE:
        return "VBN"
    if left in _DETERMINERS or left in _ADJECTIVES or left.endswith(_ADJECTIVE_ENDINGS) or left in _PREPOSITIONS:
        return "NN"
    if left in ("he", "she", "it"):
        return "VBD"
    if left in _PLURAL_SUBJECTS:
        return "VBD" if _past_elsewhere(words, i) else "VB"
    if left in ("", *_CONJUNCTIONS, *_CLAUSE):
        return "VBD" if _past_elsewhere(words, i) else "VB"
    return "VBD" if not _is_plural(left) or _past_elsewhere(words, i) else "VB"


def _past_elsewhere(words: Sequence[str], i: int) -> bool:
    """Tell whether the rest of the sentence is in the past tense."""
    signs = ("yesterday", "ago", "last", "was", "were", "had", "did", "once", "earlier", "went", "came", "said", "took")
    return any(w in signs or (w.endswith("ed") and len(w) > 4) for j, w in enumerate(words) if j != i)


def _that(words: Sequence[str], i: int) -> str:
    """Tag "that": DT if demonstrative ("that one", "that is true"), IN or WDT if it joins clauses."""
    left, right = _at(words, i - 1), _at(words, i + 1)
    if i == 0 or not right or left in _PREPOSITIONS or right in _AFTER_DEMONSTRATIVE_THAT:
        return "DT"
    if right in _DETERMINERS or right in _SUBJECTS or (right.endswith("s") and right not in _BE):
        return "IN"
    verbal = right in _BE or right in _MODALS or right in _HAVE
    if not left or left in _CONJUNCTIONS:
        return "WDT" if verbal and right not in _BE else "DT"
    if verbal:
        return "DT" if left in _MODALS or left in _CLAUSE or left in _BE else "WDT"
    if left in _MODALS or left in ("to", "all", "know", "say", "see"):
        return "DT"
    after_verb = _at(words, i - 2) in _MODALS or _at(words, i - 2) == "to"
    return "DT" if after_verb and left not in _REPORTING_VERBS and not _is_plural(left) and _noun_like(right) else "IN"


def _noun_like(word: str) -> bool:
    """Tell whether a word is open-class, so that it may be a noun or an adjective before one."""
    return bool(word) and not (
        word in _DETERMINERS
        or word in _SUBJECTS
        or word in _OBJECTS
        or word in _MODALS
        or word in _BE
        or word in _HAVE
        or word in _PREPOSITIONS
        or word in _CONJUNCTIONS
        or word in _CLAUSE
        or word in _ADVERBS
        or word == "to"
        or word.endswith("ly")
    )


def _left(words: Sequence[str], i: int) -> str:
    """Return the nearest word to the left that is not an adverb."""
    j = i - 1
    while j >= 0 and (words[j] in _ADVERBS or (words[j].endswith("ly") and len(words[j]) > 4)):
        j -= 1
    return words[j] if j >= 0 else ""


def _at(words: Sequence[str], i: int) -> str:
    return words[i] if 0 <= i < len(words) else ""
