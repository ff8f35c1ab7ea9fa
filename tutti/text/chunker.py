"""Sentences become chunks of one breath: a short first one, so that sound comes early, then fuller ones."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tutti.speech import MAX_PHONEMES
from tutti.text.chunk import Chunk, Manner, Reading, Word

PARAGRAPH_PAUSE_S = 0.35
TINY_SYMBOLS = 25  # two seconds: sooner over than anything can follow
FIRST_SYMBOLS = 100
ENOUGH_SYMBOLS = 100
TARGET_SYMBOLS = 250
MUTE = 2  # readings without a word, after which others may have their turn


def pack(
    readings: Iterable[tuple[Reading, float]],
    *,
    patient: bool = False,
    first_symbols: int = FIRST_SYMBOLS,
    target_symbols: int = TARGET_SYMBOLS,
    max_symbols: int = MAX_PHONEMES,
) -> Iterator[Chunk]:
    """Chunks of sentences, each given with the pause in seconds after it, as soon as they are full.

    The first is one sentence, or the few that make TINY_SYMBOLS, and no longer than `first_symbols`. From there chunks
    grow so that a device twice as fast as speech has each ready before the last one has been heard; only a sentence
    within `first_symbols` is not cut for that. One who is `patient` listens when all is done: chunks are full at once.

    A chunk is full at ENOUGH_SYMBOLS or before a pause, and takes no sentence that would carry it past
    `target_symbols`; only a clause that cannot be cut may be longer, up to `max_symbols`. A chunk has one manner.
    Every word and every dropped symbol is in exactly one chunk; a pause after nothing is a chunk without words, and so
    is, now and then, a long stretch of nothing: whoever waits for chunks must not wait for all of it.
    """
    first_symbols, target_symbols = min(first_symbols, max_symbols), min(target_symbols, max_symbols)
    words: list[Word] = []
    dropped: list[str] = []
    ahead = target_symbols if patient else 0  # symbols made and not yet heard when the next chunk is begun
    n_mute = 0
    manner = Manner()

    def chunk(pause_s: float = 0.0) -> Chunk:
        nonlocal ahead
        n = _n_symbols(words)
        ahead = max(n, ahead + n // 2)
        made = Chunk(tuple(words), pause_s, tuple(dropped), manner)
        words.clear()
        dropped.clear()
        return made

    def room() -> int:
        return min(2 * ahead, target_symbols) if ahead else first_symbols

    def full() -> bool:
        return bool(words) and _n_symbols(words) >= min(room(), ENOUGH_SYMBOLS if ahead else TINY_SYMBOLS)

    for reading, pause_s in readings:
        if words and reading.words and reading.manner != manner:
            yield chunk()
        if reading.words:
            manner = reading.manner
        rest = [part for word in reading.words for part in _parts(word, max_symbols)]
        while rest:
            if full():
                yield chunk()
            before = [*words[:-1], _apart(words[-1])] if words else []
            n_before = _n_symbols(before)
            # Only the first chunk is worth a cut so that it can take a part.
            limit = max(room(), first_symbols) if ahead else first_symbols - n_before
            cut = _cut(rest, limit, target_symbols, max_symbols)
            if words and n_before + _n_symbols(rest[:cut]) > room():
                yield chunk()
                continue
            words[:] = [*before, *rest[:cut]]
            rest = rest[cut:]
        dropped += reading.dropped
        n_mute = 0 if reading.words else n_mute + 1
        if pause_s or full() or n_mute >= MUTE:
            n_mute = 0
            yield chunk(pause_s)
    if words or dropped:
        yield chunk()


# Words before which a long clause may be cut, without their stress.
_CONJUNCTIONS = frozenset(
    (
        "ænd",
        "ənd",
        "bʌt",
        "bət",
        "ɔɹ",
        "ɔː",
        "sO",
        "səʊ",
        "bəkʌz",
        "bəkɔz",
        "bɪkɒz",
        "bɪkəz",
        "wɪʧ",
        "wɛn",
        "wail",
        "wIl",
        "wIlst",
        "ðO",
    )
)
_UNSTRESSED = str.maketrans("", "", "ˈˌ")
_CLAUSE_MARKS = frozenset(";:,—…)”.!?")


def _cut(words: list[Word], limit: int, target_symbols: int, max_symbols: int) -> int:
    """After how many words to cut: all when they fit, else the last good place before `limit`, else the first after."""
    lengths: list[int] = []
    total = 0
    for word in words:
        total += len(word.symbols)
        lengths.append(total)
        if total > max_symbols + len(word.after):
            break
    if lengths[-1] <= limit:
        return len(words)
    for top in dict.fromkeys((limit, target_symbols)):
        for good in (_clause_ends_after, _conjunction_follows):
            for i in range(len(lengths) - 2, -1, -1):
                if top // 4 <= lengths[i] <= top and good(words, i):
                    return i + 1
    fits = [
        i
        for i, length in enumerate(lengths)
        if length - len(words[i].after) + len(words[i].after.rstrip()) <= max_symbols
    ]
    if len(fits) == len(words):
        return len(words)
    for good in (_clause_ends_after, _conjunction_follows):
        for i in fits:
            if lengths[i] > target_symbols and good(words, i):
                return i + 1
    return max(len(fits), 1)


def _clause_ends_after(words: list[Word], i: int) -> bool:
    return not _CLAUSE_MARKS.isdisjoint(words[i].after)


def _conjunction_follows(words: list[Word], i: int) -> bool:
    return words[i].after.endswith(" ") and words[i + 1].phonemes.translate(_UNSTRESSED) in _CONJUNCTIONS


def _parts(word: Word, max_symbols: int) -> Iterator[Word]:
    """The word, or its symbols in parts that fit."""
    n = len(word.symbols.rstrip())
    if n <= max_symbols:
        yield word
        return
    a, b = len(word.before), len(word.before) + len(word.phonemes)
    for start in range(0, len(word.symbols), max_symbols):
        end = start + max_symbols
        yield Word(
            word.phonemes[max(0, start - a) : max(0, end - a)],
            word.span,
            before=word.before[start:end],
            after=word.after[max(0, start - b) : max(0, end - b)],
        )


def _n_symbols(words: Iterable[Word]) -> int:
    return sum(len(word.symbols) for word in words)


def _apart(word: Word) -> Word:
    """The last word of a sentence that another follows: a list item or a line of verse gets the comma it lacks."""
    return replace(word, after=f"{word.after.rstrip() or ','} ")
