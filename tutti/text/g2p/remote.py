"""G2P by a remote service: one POST for each sentence, and errors that name the service."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import httpx2
from pydantic import ValidationError

from tutti import errors
from tutti.errors import G2PUnavailable, InvalidInput, TuttiError
from tutti.text.aligned_text import PLACEHOLDER, AlignedText, SourceRange
from tutti.text.chunk import PhonemeWord, Pronunciation
from tutti.text.g2p.align import align
from tutti.text.g2p.schema import G2PResponse, G2PWord
from tutti.text.g2p.tokens import Piece, join_words, tokenize
from tutti.text.vocab import IDS, PUNCTUATION

MAX_CALLS = 64  # concurrent calls: threads and connections; a text beyond them waits for a call to end


class RemoteG2P:
    """Client of a G2P service, with pooled connections; callable from any thread."""

    def __init__(self, url: str, timeout_s: float = 5.0) -> None:
        address = httpx2.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            raise InvalidInput(f"the G2P service needs an http(s) URL, not {url!r}", param="g2p_url")
        self.url = str(address.copy_with(path="/g2p") if address.path in ("", "/") else address)
        self.timeout_s = timeout_s
        limits = httpx2.Limits(max_connections=MAX_CALLS, max_keepalive_connections=MAX_CALLS)
        self._client = httpx2.Client(timeout=timeout_s, limits=limits)

    def __reduce__(self) -> tuple[type["RemoteG2P"], tuple[str, float]]:
        return RemoteG2P, (self.url, self.timeout_s)  # another process opens its own connections

    def close(self) -> None:
        self._client.close()

    def pronounce(self, aligned: AlignedText, code: str, ipa_overrides: Mapping[int, str] = {}) -> Pronunciation:
        """Return a sentence of plain words as the service pronounces it, every word with its source."""
        ipa_by_offset = {
            str(i): ipa_overrides.get(aligned.starts[i], "")
            for i, symbol in enumerate(aligned.text)
            if symbol == PLACEHOLDER
        }
        response_body = self._post({"text": aligned.text, "language": code, "given": ipa_by_offset})
        if response_body.words is not None:
            words = tuple(self._word(word, aligned) for word in response_body.words)
            if any(left.source[0] > right.source[0] for left, right in pairwise(words)):
                raise self._error("its words are not in the order of the text")
            return Pronunciation(words, tuple(response_body.dropped))
        if response_body.phonemes is not None:
            return self._align_groups(response_body.phonemes, aligned, response_body.dropped)
        raise self._error("it answered neither words nor phonemes")

    def _post(self, body: dict[str, object]) -> G2PResponse:
        try:
            response = self._client.post(self.url, json=body)
        except httpx2.TimeoutException:
            raise self._error(f"no answer in {self.timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as cause:
            raise self._error(str(cause) or type(cause).__name__) from cause
        if response.status_code != 200:
            message, error = _parse_error(response)
            if error and response.status_code < 500:
                raise error
            raise self._error(f"status {response.status_code}{': ' + message if message else ''}")
        try:
            return G2PResponse.model_validate_json(response.content)
        except ValidationError as cause:
            first = cause.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._error(f"malformed answer: {where + ': ' if where else ''}{first['msg']}") from None

    def _word(self, word: G2PWord, aligned: AlignedText) -> PhonemeWord:
        if not 0 <= word.start < word.end <= len(aligned):
            raise self._error(
                f"offsets {word.start}-{word.end} are outside of the text sent ({len(aligned)} characters)"
            )
        self._check(word.before + word.phonemes + word.after)
        return PhonemeWord(word.phonemes, aligned.source(word.start, word.end), word.before, word.after)

    def _align_groups(self, phonemes: str, aligned: AlignedText, dropped: Iterable[str]) -> Pronunciation:
        """Align the groups between spaces with the words of the text."""
        self._check(phonemes)
        tokens = [token for kind, token in tokenize(aligned) if kind in ("word", "placeholder")]
        groups = [group for group in phonemes.split() if any(symbol not in PUNCTUATION for symbol in group)]
        if groups and not tokens:
            raise self._error("it answered phonemes for a text without words")
        places = align([token.text for token in tokens], groups)
        sources = [(tokens[first].source()[0], tokens[last - 1].source()[1]) for first, last in places]
        return join_words(_pieces(phonemes, iter(sources)), dropped)

    def _check(self, symbols: str) -> None:
        if unknown := sorted(set(symbols) - IDS.keys()):
            raise self._error(f"it answered symbols that Kokoro does not know: {' '.join(map(repr, unknown[:8]))}")

    def _error(self, cause: str) -> G2PUnavailable:
        return G2PUnavailable(f"the G2P service at {self.url} failed: {cause}")


def _pieces(phonemes: str, sources: Iterator[SourceRange]) -> Iterator[Piece]:
    for group in phonemes.split():
        word = group.strip("".join(PUNCTUATION))
        before, _, after = group.partition(word) if word else (group, "", "")
        yield before
        if word:
            plain = "".join(symbol for symbol in word if symbol not in PUNCTUATION)
            yield PhonemeWord(plain, next(sources))
        yield after + " "


def _parse_error(response: httpx2.Response) -> tuple[str, TuttiError | None]:
    """Return the message of an error response, and the typed error if the service is a tutti service."""
    try:
        body = response.json()["error"]
        message, code, param = str(body["message"]), body["code"], body.get("param")
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", None
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, TuttiError) and kind.code == code and kind.status < 500:
            return message, kind(message, param=param if isinstance(param, str) else None)
    return message, None
