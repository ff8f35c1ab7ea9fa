"""G2P elsewhere: one POST a sentence, and an error with the service's address when it does not answer well."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import httpx2
from pydantic import ValidationError

from tutti import errors
from tutti.errors import G2PUnavailable, InvalidInput, TuttiError
from tutti.text.aligned_text import AlignedText, Span
from tutti.text.chunk import Reading, Word
from tutti.text.g2p.align import align
from tutti.text.g2p.schema import Answer, SaidWord
from tutti.text.g2p.tokens import OBJECT, Piece, join, pieces
from tutti.text.vocab import PUNCTUATION, SYMBOLS


class RemoteG2P:
    """A G2P service by its URL, over pooled connections; callable from any thread."""

    def __init__(self, url: str, timeout_s: float = 5.0) -> None:
        address = httpx2.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            raise InvalidInput(f"the G2P service needs an http(s) URL, not {url!r}", param="g2p_url")
        self.url = str(address.copy_with(path="/g2p") if address.path in ("", "/") else address)
        self.timeout_s = timeout_s
        self._client = httpx2.Client(timeout=timeout_s)

    def __reduce__(self) -> tuple[type["RemoteG2P"], tuple[str, float]]:
        return RemoteG2P, (self.url, self.timeout_s)  # another process opens its own connections

    def close(self) -> None:
        self._client.close()

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Reading:
        """A sentence of plain words as the service says it, every word tied to the original text."""
        sent = {str(i): given.get(spoken.starts[i], "") for i, symbol in enumerate(spoken.text) if symbol == OBJECT}
        answer = self._ask({"text": spoken.text, "language": code, "given": sent})
        if answer.words is not None:
            words = tuple(self._word(word, spoken) for word in answer.words)
            if any(left.span[0] > right.span[0] for left, right in pairwise(words)):
                raise self._bad("its words are not in the order of the text")
            return Reading(words, tuple(answer.dropped))
        if answer.phonemes is not None:
            return self._by_spaces(answer.phonemes, spoken, answer.dropped)
        raise self._bad("it answered neither words nor phonemes")

    def _ask(self, body: dict[str, object]) -> Answer:
        try:
            response = self._client.post(self.url, json=body)
        except httpx2.TimeoutException:
            raise self._bad(f"no answer in {self.timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as cause:
            raise self._bad(str(cause) or type(cause).__name__) from cause
        if response.status_code != 200:
            message, error = _told(response)
            if error and response.status_code < 500:
                raise error
            raise self._bad(f"status {response.status_code}{': ' + message if message else ''}")
        try:
            return Answer.model_validate_json(response.content)
        except ValidationError as cause:
            first = cause.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._bad(f"malformed answer: {where + ': ' if where else ''}{first['msg']}") from None

    def _word(self, word: SaidWord, spoken: AlignedText) -> Word:
        if not 0 <= word.start < word.end <= len(spoken):
            raise self._bad(f"offsets {word.start}-{word.end} lie outside of the text sent ({len(spoken)} characters)")
        self._check(word.before + word.phonemes + word.after)
        return Word(word.phonemes, spoken.span(word.start, word.end), word.before, word.after)

    def _by_spaces(self, phonemes: str, spoken: AlignedText, dropped: Iterable[str]) -> Reading:
        """Groups between spaces, each tied to the word that stands in its place."""
        self._check(phonemes)
        written = [stretch for kind, stretch in pieces(spoken) if kind in ("word", "given")]
        groups = [group for group in phonemes.split() if any(symbol not in PUNCTUATION for symbol in group)]
        if groups and not written:
            raise self._bad("it answered phonemes for a text without words")
        places = align([stretch.text for stretch in written], groups)
        spans = [(written[first].span()[0], written[last - 1].span()[1]) for first, last in places]
        return join(_pieces(phonemes, iter(spans)), dropped)

    def _check(self, symbols: str) -> None:
        if unknown := sorted(set(symbols) - SYMBOLS.keys()):
            raise self._bad(f"it answered symbols that Kokoro does not know: {' '.join(map(repr, unknown[:8]))}")

    def _bad(self, cause: str) -> G2PUnavailable:
        return G2PUnavailable(f"the G2P service at {self.url} failed: {cause}")


def _pieces(phonemes: str, spans: Iterator[Span]) -> Iterator[Piece]:
    for group in phonemes.split():
        said = group.strip("".join(PUNCTUATION))
        before, _, after = group.partition(said) if said else (group, "", "")
        yield before
        if said:
            plain = "".join(symbol for symbol in said if symbol not in PUNCTUATION)
            yield Word(plain, next(spans))
        yield after + " "


def _told(response: httpx2.Response) -> tuple[str, TuttiError | None]:
    """What an error body says, and the typed error that the service raised, when the body is one of ours."""
    try:
        body = response.json()["error"]
        message, code, param = str(body["message"]), body["code"], body.get("param")
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", None
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, TuttiError) and kind.code == code and kind.status < 500:
            return message, kind(message, param=param if isinstance(param, str) else None)
    return message, None
