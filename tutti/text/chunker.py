"""Pack pronounced sentences into chunks: a short first one, so that audio starts early, then fuller ones."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from tutti.speech import MAX_PHONEMES
from tutti.text.chunk import DEFAULT_PACE, Chunk, ChunkPace, InlineStyle, PhonemeWord, Pronunciation, mean_rate

TINY_SYMBOLS = 25  # about 2 s of audio: a first chunk below this would be over before the next is ready
ENOUGH_SYMBOLS = 100  # a later chunk that has reached this takes no further sentence
TARGET_SYMBOLS = 250  # upper limit of a chunk; larger sounds smoother, and makes others wait longer for the device
# Symbols of a first chunk that is cut out of a longer sentence, if a clause ends before; fewer start sooner. Where the
# device is so slow that a first chunk has to be short anyway, this has no effect.
EARLY_SYMBOLS = 75
UNMARKED = 0.8  # of the target up to which a clause is cut between two words: nothing is gained by a longer part
SLOW = 0.75  # speed below which chunks get shorter: no row may keep the device for long, however slowly it is spoken
MAX_EMPTY = 2  # sentences without a word after which an empty chunk is made; larger makes other texts wait longer


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Symbols of the chunks of a text, as an operator sets them."""

    enough: int = ENOUGH_SYMBOLS
    target: int = TARGET_SYMBOLS


class Chunker:
    """Pack sentences into chunks as soon as each is full.

    The first chunk is one sentence, or the few that make TINY_SYMBOLS, and no longer than `pace.first_symbols`; a part
    of a longer sentence rather has EARLY_SYMBOLS. From there chunks grow so that a device of this pace has each ready
    before the last one has been played; only a sentence within `first_symbols` is not cut for that. With `whole_text`,
    for callers that need all of the audio, every chunk is filled like a later one.

    A chunk is full at `enough_symbols` or before a pause, and none is longer than `target_symbols`, or than its part of
    them if it is spoken slowly; sentences are joined up to `pace.joined_symbols`. A clause that is longer than
    the target is cut between two words. A chunk has one style.
    Every word and every dropped symbol is in exactly one chunk. A pause after nothing is a chunk without words; so is,
    every MAX_EMPTY sentences, text without any word, so that a caller never waits for all of it.
    """

    def __init__(
        self,
        *,
        whole_text: bool = False,
        pace: ChunkPace = DEFAULT_PACE,
        enough_symbols: int = ENOUGH_SYMBOLS,
        target_symbols: int = TARGET_SYMBOLS,
    ) -> None:
        self._pace = pace
        self._enough_symbols = enough_symbols
        self._most_symbols = min(target_symbols, MAX_PHONEMES)
        self._words: list[PhonemeWord] = []
        self._dropped: list[str] = []
        self._notices: list[str] = []
        self._style = InlineStyle()
        self._rate = 1.0  # of the present sentence
        # Symbols that are ready and not yet played when the next chunk is started.
        self._ahead = self._target_symbols if whole_text else 0

    @property
    def _target_symbols(self) -> int:
        return self._spoken_slowly(self._most_symbols)

    @property
    def _first_symbols(self) -> int:
        return min(self._spoken_slowly(self._pace.first_symbols), self._target_symbols)

    def _spoken_slowly(self, n_symbols: int) -> int:
        """As many symbols as take no longer than `n_symbols` that are not spoken slowly."""
        share = self._pace.speed * self._rate / SLOW
        return n_symbols if share >= 1 else max(int(share * n_symbols), min(n_symbols, TINY_SYMBOLS))

    def chunks(self, sentences: Iterable[tuple[Pronunciation, float]]) -> Iterator[Chunk]:
        """Yield the chunks of sentences, each given with the pause in seconds after it."""
        n_empty = 0
        for sentence, pause_s in sentences:
            if self._words and sentence.words and sentence.inline_style != self._style:
                yield self._close()
            if sentence.words:
                self._style = sentence.inline_style
                self._rate = self._style.rate * mean_rate(sentence.words)
            yield from self._add(sentence.words)
            self._dropped += sentence.dropped
            self._notices += sentence.notices
            n_empty = 0 if sentence.words else n_empty + 1
            if pause_s or self._is_full() or n_empty >= MAX_EMPTY:
                n_empty = 0
                yield self._close(pause_s)
        if self._words or self._dropped or self._notices:
            yield self._close()

    def _add(self, words: Iterable[PhonemeWord]) -> Iterator[Chunk]:
        """Put the words of a sentence into the open chunk; yield the chunks that this fills."""
        rest = [part for word in words for part in _split_word(word, self._target_symbols)]
        while rest:
            if self._is_full():
                yield self._close()
            before = [*self._words[:-1], _separated(self._words[-1])] if self._words else []
            n_before = _n_symbols(before)
            # Only for the first chunk a sentence is cut so that a part of it still fits in.
            limit = max(self._capacity(), self._first_symbols) if self._ahead else self._first_symbols - n_before
            early = limit if self._ahead or limit < ENOUGH_SYMBOLS else EARLY_SYMBOLS
            cut = _cut(rest, limit, early, self._target_symbols, self._pace.joined_symbols)
            if self._words and n_before + _n_symbols(rest[:cut]) > self._joined_capacity():
                yield self._close()
                continue
            self._words = [*before, *rest[:cut]]
            rest = rest[cut:]

    def _close(self, pause_s: float = 0.0) -> Chunk:
        n_symbols = _n_symbols(self._words)
        self._ahead = max(n_symbols, self._ahead + int((1 - self._pace.seconds_per_s) * n_symbols))
        chunk = Chunk(tuple(self._words), pause_s, tuple(self._dropped), self._style, tuple(self._notices))
        self._words, self._dropped, self._notices = [], [], []
        return chunk

    def _capacity(self) -> int:
        if not self._ahead:
            return self._first_symbols
        return min(int(self._ahead / self._pace.seconds_per_s), self._target_symbols)

    def _joined_capacity(self) -> int:
        """Of a chunk of several sentences; a first one may be too short to be heard alone, and is joined anyway."""
        capacity = self._capacity()
        return min(capacity, self._spoken_slowly(self._pace.joined_symbols)) if self._ahead else capacity

    def _is_full(self) -> bool:
        enough = min(self._capacity(), self._enough_symbols if self._ahead else TINY_SYMBOLS)
        return bool(self._words) and _n_symbols(self._words) >= enough


# Phonemes, without stress, of the conjunctions before which a long clause may be cut.
_CONJUNCTIONS = frozenset(str.split("ænd ənd bʌt bət ɔɹ ɔː sO səʊ bəkʌz bəkɔz bɪkɒz bɪkəz wɪʧ wɛn wail wIl wIlst ðO"))
_UNSTRESSED = str.maketrans("", "", "ˈˌ")
_CLAUSE_MARKS = frozenset(";:,—…)”.!?")


def _cut(words: list[PhonemeWord], limit: int, early: int, target_symbols: int, joined_symbols: int) -> int:
    """Return after how many words to cut: all if they fit, else the last good place up to `limit`, else the next.

    An end of a clause up to `early` is better than any later place.

    A clause that is longer than `target_symbols` is cut between any two words, in parts of about the same length, and
    not longer than sentences are joined, or than ENOUGH_SYMBOLS.
    """
    lengths: list[int] = []
    total = 0
    for word in words:
        total += word.n_symbols
        lengths.append(total)
        if total > 2 * target_symbols:
            break
    if lengths[-1] <= limit:
        return len(words)
    for is_good, most in ((_clause_ends_after, early), (_clause_ends_after, limit), (_conjunction_follows, limit)):
        for i in range(len(lengths) - 2, -1, -1):
            if limit // 4 <= lengths[i] <= most and is_good(words, i):
                return i + 1
    for is_good in (_clause_ends_after, _conjunction_follows):
        for i in range(len(lengths) - 1):
            if limit < lengths[i] <= target_symbols and is_good(words, i):
                return i + 1
    if len(lengths) == len(words) and total - len(words[-1].after) + len(words[-1].after.rstrip()) <= target_symbols:
        return len(words)
    longest = min(int(UNMARKED * target_symbols), max(joined_symbols, ENOUGH_SYMBOLS))
    most = min(max(limit, ENOUGH_SYMBOLS), longest, ceil(total / 2))
    return max(sum(length <= most for length in lengths), 1)


def _clause_ends_after(words: list[PhonemeWord], i: int) -> bool:
    return not _CLAUSE_MARKS.isdisjoint(words[i].after)


def _conjunction_follows(words: list[PhonemeWord], i: int) -> bool:
    return words[i].after.endswith(" ") and words[i + 1].phonemes.translate(_UNSTRESSED) in _CONJUNCTIONS


def _split_word(word: PhonemeWord, max_symbols: int) -> Iterator[PhonemeWord]:
    """Yield the word, or parts of it that fit into a chunk."""
    if word.n_symbols <= max_symbols or len(word.symbols.rstrip()) <= max_symbols:
        yield word
        return
    n_before = len(word.before)
    n_spoken = n_before + len(word.phonemes)
    for start in range(0, len(word.symbols), max_symbols):
        end = start + max_symbols
        yield word._replace(
            phonemes=word.phonemes[max(0, start - n_before) : max(0, end - n_before)],
            before=word.before[start:end],
            after=word.after[max(0, start - n_spoken) : max(0, end - n_spoken)],
        )


def _n_symbols(words: Iterable[PhonemeWord]) -> int:
    return sum([word.n_symbols for word in words])


def _separated(word: PhonemeWord) -> PhonemeWord:
    """Return the last word before another sentence, with a comma if nothing ends it: a list item, a line of verse."""
    return word._replace(after=f"{word.after.rstrip() or ','} ")
