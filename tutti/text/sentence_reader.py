"""Turn a sentence into phonemes in its language, and notice sentences in a language that is not the text's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tutti.errors import MissingExtra
from tutti.text import Pronounce
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import AS_SENTENCE, InlineStyle, PhonemeWord, Pronunciation, WordStyle
from tutti.text.detect import detect, is_written_like, script_runs
from tutti.text.language import AUTO, OTHERS, find_language, language_name, same_language
from tutti.text.marks import StyledText, voice_language
from tutti.text.normalize import guesses, normalize
from tutti.text.options import TextOptions
from tutti.text.split import AlignedSentence
from tutti.text.user_lexicon import UserLexicon


@dataclass(slots=True)
class SentenceReader:
    """Reads the sentences of one text; it gives a notice about each language once."""

    code: str  # the language of the text
    pronounce: Pronounce
    user_lexicon: UserLexicon | None
    options: TextOptions
    _noticed: set[str] = field(default_factory=set)

    def read(self, sentence: AlignedSentence, styled: StyledText) -> Pronunciation:
        """Return a sentence in phonemes."""
        aligned, ipa_overrides = sentence.aligned, styled.ipa_overrides
        style = self._with_named_voice(styled.style)
        language = style.language or self.code
        notices: list[str] = []
        pronunciation: Pronunciation | None = None
        if self.user_lexicon is not None:
            aligned, user_ipa = self.user_lexicon.apply(aligned)
            ipa_overrides = {**ipa_overrides, **user_ipa}
        self._notice_guesses(aligned.text, language, notices)
        if style.language is None and self.options.detect_language:
            pronunciation = self._read_detected(aligned, ipa_overrides, notices)
        if pronunciation is None:
            pronunciation = self._read_as(language, aligned, ipa_overrides)
            if style.language is None and not self.options.detect_language:
                guess = detect(aligned.text) or detect("".join(pronunciation.dropped))
                if guess and not is_written_like(guess, language):
                    self._notice(guess, notices)
        words = pronunciation.words
        if styled.changes or styled.style.emphasis:
            style, words = _with_word_styles(words, styled)
            style = self._with_named_voice(style)
        return replace(pronunciation, words=words, inline_style=style, notices=tuple(notices))

    def _with_named_voice(self, style: InlineStyle) -> InlineStyle:
        """The style with the language and the rate of its voice, where they do not follow from its name."""
        name = (style.voice or "").lower()
        rate, expression = self.options.voice_rates.get(name, 1.0), self.options.voice_names.get(name, name)
        if expression and style.language is None:
            style = style._replace(language=self._language_of(expression))
        return style if rate == 1 else style._replace(rate=style.rate * rate)

    def _language_of(self, expression: str) -> str | None:
        """The language of a voice or blend; None if it is not known."""
        first = expression.strip().partition("(")[0].partition("+")[0].partition("-")[0].strip().lower()
        return self.options.voice_languages.get(first) or voice_language(expression)

    def _read_as(self, language: str, aligned: AlignedText, ipa_overrides: Mapping[int, str]) -> Pronunciation:
        normal = normalize(aligned, language, self.options.normalization)
        return self.pronounce(normal, language, ipa_overrides)

    def _read_detected(
        self, aligned: AlignedText, ipa_overrides: Mapping[int, str], notices: list[str]
    ) -> Pronunciation | None:
        """Return a sentence in its own language, words in another script in theirs; None if that is the text's."""
        guess = detect(aligned.text)
        language = self.code if guess is None or is_written_like(guess, self.code) else guess
        runs = [(code or language, run) for code, run in script_runs(aligned)]
        if same_language(language, self.code) and all(same_language(code, self.code) for code, _ in runs):
            return None
        words: list[PhonemeWord] = []
        dropped: list[str] = []
        for code, run in [(language, aligned)] if language in ("ja", "zh") else runs:
            part = self._try_language(code, run, ipa_overrides, notices)
            words += part.words
            dropped += part.dropped
        return Pronunciation(tuple(words), tuple(dropped))

    def _try_language(
        self, guess: str, aligned: AlignedText, ipa_overrides: Mapping[int, str], notices: list[str]
    ) -> Pronunciation:
        """Pronounce in the detected language, or if that is impossible in the text's."""
        if same_language(guess, self.code):
            return self._read_as(self.code, aligned, ipa_overrides)
        if guess not in OTHERS or guess == self.options.model_language:
            try:
                return self._read_as(find_language(guess).code, aligned, ipa_overrides)
            except MissingExtra as missing:
                self._notice(guess, notices, missing.message)
        else:
            self._notice(guess, notices)
        return self._read_as(self.code, aligned, ipa_overrides)

    def _notice_guesses(self, text: str, language: str, notices: list[str]) -> None:
        """Say once for each kind of figure that it may be meant otherwise."""
        if not self.options.normalization.normalize:
            return
        for kind, guess in enumerate(guesses(text, language)):
            if guess and f"guess {kind}" not in self._noticed:
                self._noticed.add(f"guess {kind}")
                notices.append(guess)

    def _notice(self, guess: str, notices: list[str], missing: str = "") -> None:
        """Say once what a sentence looks like, and which voice or extra would speak it."""
        if guess in self._noticed:
            return
        self._noticed.add(guess)
        name, language = language_name(guess), find_language(self.code).name
        looks = f"some of the text looks like {name} and is read as {language}"
        if guess in OTHERS and guess != self.options.model_language:
            notices.append(f"{looks}: Kokoro does not speak {name}")
        elif missing:
            notices.append(f"{looks}: {missing}")
        else:
            voice = find_language(guess).voice
            notices.append(f'{looks}: use a voice for it, such as {voice}, or the language "{AUTO}"')


def _with_word_styles(words: Sequence[PhonemeWord], styled: StyledText) -> tuple[InlineStyle, tuple[PhonemeWord, ...]]:
    """Return the style of a sentence, and its words, each with what differs from it.

    A rate, pitch or volume that all words have is that of the sentence: what only some have is theirs.
    """
    own = [styled.style_at(word.source[0]) for word in words]
    rate, pitch = _common([style.rate for style in own], 1.0), _common([style.pitch for style in own], 0.0)
    volume = _common([style.volume for style in own], 1.0)
    style = styled.style._replace(rate=rate, pitch=pitch, volume=volume, emphasis=None)
    return style, tuple(word._replace(style=_difference(style, of)) for word, of in zip(words, own, strict=True))


def _common(values: Sequence[float], default: float) -> float:
    return values[0] if len(set(values)) == 1 else default


def _difference(style: InlineStyle, own: InlineStyle) -> WordStyle | None:
    volume = own.volume / style.volume if style.volume else 1.0
    difference = WordStyle(own.rate / style.rate, own.pitch - style.pitch, volume, own.emphasis)
    return None if difference == AS_SENTENCE else difference
