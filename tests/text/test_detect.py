"""The language of a sentence: guessed where it is safe, named where a voice cannot say it, spoken with `auto`."""

from collections.abc import Mapping

import pytest

from benchmarks.passages import passages
from tests.fakes import Spelling
from tutti.errors import MissingExtra, UnknownLanguage
from tutti.text import chunks
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Pronunciation
from tutti.text.detect import detect
from tutti.text.language import find_language, language_of_model, request_language
from tutti.text.options import DEFAULT_OPTIONS, TextOptions

AUTO = TextOptions(detect_language=True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("你好世界", "zh"),
        ("こんにちは、世界。", "ja"),
        ("Привет! Как дела?", "ru"),
        ("नमस्ते दुनिया", "hi"),
        ("안녕하세요", "ko"),
        ("¿Cómo estás?", "es"),
        ("Bonjour, comment allez-vous ?", "fr"),
        ("Guten Tag, wie geht es Ihnen?", "de"),
        ("Il gatto è sul tavolo.", "it"),
        ("O gato está na mesa.", "pt"),
        ("Call me when you can.", "en"),
        ("C'est la vie, said the man in the hat.", "en"),
        ("La La Land", None),
        ("The word 你好 means hello.", None),
        ("San Jose, CA", None),
        ("x = 1", None),
        ("550e8400-e29b-41d4-a716-446655440000", None),  # "e" and "a" are words in Portuguese
        ("", None),
    ],
)
def test_a_language_is_guessed_only_where_it_is_safe(text: str, code: str | None) -> None:
    assert detect(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "Non-stop buffet, $20 per person: come to Nice.",
        "Buffet per person, come on.",
        "The mobile buffet in Nice.",
        "Las Vegas, La Jolla, Los Angeles.",
        "Café de la Paix, Les Halles, Le Mans.",
        "Nice: mobile, non-slip, 5 per buffet.",
        "O, e, a: x ≤ y.",
        "Me, no. Bon Jovi and Don De Lillo.",
    ],
)
def test_words_that_english_shares_and_names_make_no_foreign_language(text: str) -> None:
    assert detect(text) in (None, "en")


def test_no_line_of_the_public_sets_is_taken_for_another_language() -> None:
    sets = {"es": "written-es", "fr": "written-fr", "it": "written-it", "pt": "written-pt-br", "hi": "written-hi"}
    for code, name in {"en": "written", **sets}.items():
        wrong = {one.text: detect(one.text) for one in passages(name) if detect(one.text) not in (None, code)}
        assert set(wrong) <= {"C'est la vie."}  # a French phrase among the English lines


def test_kanji_alone_are_no_sign_of_chinese_in_a_japanese_text() -> None:
    g2p = Languages()
    text = "東京都港区。"
    read_as = [chunk.notices for chunk in chunks(text, "ja", g2p.pronounce)]
    assert not any(read_as)
    list(chunks(text, "ja", g2p.pronounce, options=AUTO))
    assert {code for code, _ in g2p.calls} == {"ja"}


class Languages(Spelling):
    """Spells words, and records in which language each text was to be pronounced."""

    def __init__(self, *missing: str) -> None:
        self.calls: list[tuple[str, str]] = []
        self.missing = missing

    def pronounce(self, spoken: AlignedText, code: str, given: Mapping[int, str] = {}) -> Pronunciation:
        if code in self.missing:
            raise MissingExtra(f"{code} needs an extra", param="language")
        self.calls.append((code, spoken.text))
        return super().pronounce(spoken, code, given)


def read(text: str, g2p: Languages, options: TextOptions = DEFAULT_OPTIONS) -> list[Chunk]:
    return list(chunks(text, "en-us", g2p.pronounce, options=options))


def notices(text: str, g2p: Languages, options: TextOptions = DEFAULT_OPTIONS) -> list[str]:
    return [notice for chunk in read(text, g2p, options) for notice in chunk.notices]


def test_a_sentence_in_another_language_is_named_once_with_a_voice_for_it() -> None:
    text = "Hello there, my friend. El perro come en la casa. ¿Cómo estás? And this is it."
    (notice,) = notices(text, Languages())
    assert "Spanish" in notice
    assert "ef_dora" in notice
    assert "auto" in notice


def test_a_language_that_kokoro_lacks_is_named() -> None:
    (notice,) = notices("Das Auto ist rot und der Tag ist gut.", Languages())
    assert "Kokoro does not speak German" in notice


def test_auto_reads_each_sentence_in_its_language() -> None:
    g2p = Languages()
    assert notices("This is it. El perro come en la casa. Je ne sais pas où il est.", g2p, AUTO) == []
    assert [code for code, _ in g2p.calls] == ["en-us", "es", "fr"]


def test_auto_reads_words_in_another_script_in_theirs() -> None:
    g2p = Languages()
    read("The word 你好 means hello.", g2p, AUTO)
    assert [(code, text.strip()) for code, text in g2p.calls] == [
        ("en-us", "The word"),
        ("zh", "你好"),
        ("en-us", "means hello."),
    ]


def test_auto_names_the_extra_that_is_missing_and_reads_on() -> None:
    g2p = Languages("es")
    (notice,) = notices("El perro come en la casa. This is it.", g2p, AUTO)
    assert "es needs an extra" in notice
    assert [code for code, _ in g2p.calls] == ["en-us", "en-us"]


def test_a_mark_decides_over_the_guess() -> None:
    g2p = Languages()
    read("[lang:fr]El perro come en la casa.", g2p, AUTO)
    assert [code for code, _ in g2p.calls] == ["fr"]


@pytest.mark.parametrize("name", ["ko", "korean", "ko-KR", "nl"])
def test_a_language_that_is_not_read_is_no_typing_error(name: str) -> None:
    with pytest.raises(UnknownLanguage) as error:
        find_language(name)
    assert "is not read here" in error.value.message
    assert "es (Spanish)" in error.value.message


def test_auto_keeps_the_language_of_the_voice_for_the_rest() -> None:
    assert request_language("AUTO", "b") == ("en-gb", True)
    assert request_language(None, "j") == ("ja", False)
    assert request_language("es", "a") == ("es", False)


def test_a_checkpoint_has_its_own_form_of_a_language() -> None:
    assert language_of_model("zh", "zh-1.1") == "zh-1.1"
    for code, model_language in (("en-us", "zh-1.1"), ("en-gb", "en-us"), ("de", "de"), ("zh", None)):
        assert language_of_model(code, model_language) == code


def test_swedish_is_named() -> None:
    assert detect("Jag vet inte vad det är, men vi har tid.") == "sv"
