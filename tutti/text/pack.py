"""Sentences become chunks of one breath: a short first one, so that sound comes early, then fuller ones."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tutti.speech import MAX_PHONEMES
from tutti.text.chunk import Chunk, Manner, Reading, Word

PARAGRAPH_PAUSE_S = 0.35
FIRST_SYMBOLS = 100
ENOUGH_SYMBOLS = 100
TARGET_SYMBOLS = 250
MUTE = 2  # readings without a word, after which others may have their turn


def pack(
    readings: Iterable[tuple[Reading, float]],
    *,
    first_symbols: int = FIRST_SYMBOLS,
    target_symbols: int = TARGET_SYMBOLS,
    max_symbols: int = MAX_PHONEMES,
) -> Iterator[Chunk]:
    """Chunks of sentences, each given with the pause in seconds after it, as soon as they are full.

    A chunk is full at ENOUGH_SYMBOLS or before a pause, and takes no sentence that would carry it past
    `target_symbols`; only a clause that cannot be cut may be longer, up to `max_symbols`. A chunk has one manner.
    Every word and every dropped symbol is in exactly one chunk; a pause after nothing is a chunk without words, and so
    is, now and then, a long stretch of nothing: whoever waits for chunks must not wait for all of it.
    """
    first_symbols, target_symbols = min(first_symbols, max_symbols), min(target_symbols, max_symbols)
    words: list[Word] = []
    dropped: list[str] = []
    first = True
    n_mute = 0
    manner = Manner()

    def chunk(pause_s: float = 0.0) -> Chunk:
        nonlocal first
        first = first and not words
        made = Chunk(tuple(words), pause_s, tuple(dropped), manner)
        words.clear()
        dropped.clear()
        return made

    def full() -> bool:
        return bool(words) and (first or _n_symbols(words) >= ENOUGH_SYMBOLS)

    for reading, pause_s in readings:
        if words and reading.words and reading.manner != manner:
            yield chunk()
        if reading.words:
            manner = reading.manner
        limit = first_symbols if first else target_symbols
        for piece in _pieces(reading.words, limit, target_symbols, max_symbols):
            if full():
                yield chunk()
            if words and _n_symbols(words) + 1 + _n_symbols(piece) > target_symbols:
                yield chunk()
            if words:
                words[-1] = _apart(words[-1])
            words += piece
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


def _pieces(
    words: tuple[Word, ...], first_symbols: int, target_symbols: int, max_symbols: int
) -> Iterator[tuple[Word, ...]]:
    """A sentence whole, or cut at clause marks, else between words, else inside a monster of a word."""
    rest = [part for word in words for part in _parts(word, max_symbols)]
    limit = first_symbols
    while rest:
        cut = _cut(rest, limit, target_symbols, max_symbols)
        yield tuple(rest[:cut])
        rest = rest[cut:]
        limit = target_symbols


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
