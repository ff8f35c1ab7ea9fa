"""SSML written as marks: it is spoken as the document is."""

import pytest

from tests.fakes import Spelling, word_styles
from tutti.text import chunks
from tutti.text.ssml_marks import ssml_as_marks

VOICE = "af_bella"
DOCUMENTS = [
    '<speak>one <voice name="am_michael">two</voice> <prosody rate="slow">three</prosody></speak>',
    '<speak>one<break time="750ms"/>two <break strength="strong"/> three <break strength="none"/>four</speak>',
    '<speak><prosody rate="slow" pitch="+2st" volume="loud">a <voice name="am_michael">b</voice> c</prosody> d</speak>',
    '<speak><prosody rate="80%">a</prosody><prosody rate="1.2">b</prosody>. <lang xml:lang="fr">oui</lang> c</speak>',
    '<speak><lang xml:lang="fr">un <voice name="af_sky">b</voice> deux</lang></speak>',
    '<speak><emphasis>odd</emphasis> <prosody rate="fast">or <emphasis level="strong">a</emphasis></prosody> b</speak>',
    '<speak>as <prosody rate="slow">given</prosody>, it <prosody pitch="high">ends</prosody>!</speak>',
    '<speak><p>First here.</p><p><prosody rate="fast">Then there.</prosody></p> And here.</speak>',
    '<speak>say <phoneme ph="hˈI">high &amp; low</phoneme> <sub alias="world wide web">WWW</sub></speak>',
    '<speak><say-as interpret-as="characters">abc</say-as> [rate:2]of [pitch:+3]a caller[/rate] d</speak>',
]


def spoken(text: str) -> list[tuple[str, tuple[object, ...]]]:
    """Each word with how it is spoken, and the pauses."""
    said: list[tuple[str, tuple[object, ...]]] = []
    for chunk in chunks(text, "en-us", Spelling().pronounce):
        for word, style in word_styles([chunk]):
            voice, language = style.voice or VOICE, style.language or "en-us"
            numbers = round(style.rate, 3), round(style.pitch, 3), round(style.volume, 3)
            said.append((word, (voice, language, *numbers, style.emphasis)))
        if chunk.pause_s:
            said.append(("", (round(chunk.pause_s, 3),)))
    return said


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_marks_are_spoken_as_the_document(document: str) -> None:
    marked = ssml_as_marks(document, VOICE).text
    assert "<" not in marked
    assert spoken(marked) == spoken(document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_it_is_written_once(document: str) -> None:
    marked = ssml_as_marks(document, VOICE)
    assert ssml_as_marks(marked.text, VOICE).text == marked.text


@pytest.mark.parametrize("document", DOCUMENTS[:-1])
def test_without_a_voice_only_pauses_and_pronunciations_are_written(document: str) -> None:
    marked = ssml_as_marks(document, "").text
    assert [word for word, _ in spoken(marked) if word] == [word for word, _ in spoken(document) if word]
    assert {style for word, style in spoken(marked) if word} == {(VOICE, "en-us", 1.0, 0.0, 1.0, None)}


def test_the_marks_are_few_and_plain() -> None:
    paragraph = "<p><s>One.</s><s>Two.</s></p>"
    sentence = 'It <phoneme ph="hˈI">is</phoneme> <prosody rate="slow">so</prosody>.'
    document = f"<speak>{paragraph}{sentence}</speak>"
    assert ssml_as_marks(document, VOICE).text == "One. Two.\n\nIt [is](/hˈI/) [rate:0.75] so [rate:1.0]."
