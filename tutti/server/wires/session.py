"""What the wires of other services have in common: texts whose tokens are timed, cut into small messages."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tutti.errors import InvalidInput
from tutti.server.encoding import FAST_FORMATS, PIECE_SAMPLES
from tutti.server.request import SpeechRequest
from tutti.server.speech_session import SpeechSession
from tutti.server.text_feed import TextFeed
from tutti.server.wires.token_times import TokenTimes
from tutti.speech import SAMPLE_RATE, Speech, Timing
from tutti.text.incremental import Delta

PART_SAMPLES = SAMPLE_RATE  # of one message: some clients take at most a megabyte, which 32-bit audio in base64 reaches
MAX_NAME = 128  # characters of a context's name


class WireText(TextFeed):
    """A text with the times of its tokens."""

    def __init__(self, request: SpeechRequest, pause_s: float | None = None) -> None:
        super().__init__(request, pause_s)
        self.tokens = TokenTimes()
        self.n_cut = 0  # samples of the parts so far

    def add(self, piece: Delta) -> None:
        super().add(piece)
        if piece:
            self.tokens.add(piece)


class WireSession(SpeechSession):
    """A session whose audio is sent in parts of a second, each with the words that begin in it."""

    def parts(self, speech: Speech, text: TextFeed) -> Iterator[Speech]:
        assert isinstance(text, WireText)
        size = PART_SAMPLES if text.request.format.name in FAST_FORMATS else PIECE_SAMPLES
        n_samples, words, timing = len(speech.samples), list(speech.words), speech.timing
        for at in range(0, n_samples, size) or (0,):
            samples = speech.samples[at : at + size]
            text.n_cut += len(samples)
            is_last = at + size >= n_samples
            n_words = len(words) if is_last else sum(word.start_s < text.n_cut / SAMPLE_RATE for word in words)
            part = replace(speech, samples=samples, words=tuple(words[:n_words]), timing=timing)
            yield part if at == 0 else replace(part, dropped=(), notices=())
            del words[:n_words], part
            timing = Timing()


def phrase(text: str) -> str:
    """Return a message that is a complete phrase with the space that some clients leave out behind it."""
    return text if text[-1:].isspace() else f"{text} "


def context_name(message: Mapping[str, Any], *keys: str) -> str | None:
    """Return the name of a message's context; none if it has no name."""
    name = next((message[key] for key in keys if message.get(key) is not None), None)
    if name is not None and (not isinstance(name, str) or len(name) > MAX_NAME):
        raise InvalidInput(f"the name of a context is a text of at most {MAX_NAME} characters", param=keys[0])
    return name


def text_of(message: Mapping[str, Any], key: str) -> str:
    text = message.get(key)
    if text is not None and not isinstance(text, str):
        raise InvalidInput(f"{key} must be a text", param=key)
    return text or ""
