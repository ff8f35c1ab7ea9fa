from pathlib import Path

import pytest

from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Reading
from tutti.text.g2p.english import English


@pytest.fixture(scope="module")
def english(small_home: Path) -> English:
    return English.load(small_home, "en-us")


def symbols(reading: Reading) -> str:
    return "".join(word.symbols for word in reading.words).rstrip()


def said(english: English, text: str) -> str:
    return symbols(english.read(AlignedText.of(text)))


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("the dog", "ðə dˈɔɡ"),
        ("the apple", "ði ˈæpᵊl"),
        ("to dog, to apple, to", "tə dˈɔɡ, tʊ ˈæpᵊl, tu"),
        ("a dog", "ɐ dˈɔɡ"),
        ("an apple", "ɐn ˈæpᵊl"),
        ("And you", "ˌænd ju"),
        ("you have it", "ju hæv ɪt"),
        ("it is, you have", "ɪt ɪz, ju hˈæv"),
    ],
)
def test_small_words_hear_what_follows(english: English, text: str, phonemes: str) -> None:
    assert said(english, text) == phonemes


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("dogs cats boxes", "dˈɔɡz kˈæts bˈɑksᵻz"),
        ("the dog's box", "ðə dˈɔɡz bˈɑks"),
        ("walked wanted waited", "wˈɔkt wˈɑntᵻd wˈATᵻd"),
        ("walking waiting", "wˈɔkɪŋ wˈATɪŋ"),
        ("stopped stopping", "stˈɑpt stˈɑpɪŋ"),
    ],
)
def test_endings_are_built_from_the_stem_and_t_is_flapped(english: English, text: str, phonemes: str) -> None:
    assert said(english, text) == phonemes


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("have you read it", "hæv ju ɹˈɛd ɪt"),
        ("to read it", "tə ɹˈid ɪt"),
        ("to record", "tə ɹəkˈɔɹd"),
        ("the record", "ðə ɹˈɛkəɹd"),
        ("you live", "ju lˈɪv"),
        ("live music", "lˈIv mjˈuzɪk"),
        ("the lead pipe", "ðə lˈɛd pˈIp"),
        ("you lead me", "ju lˈid mˌi"),
        ("a bass guitar", "ɐ bˈAs ɡətˈɑɹ"),
        ("a bass", "ɐ bˈæs"),
        ("you used to walk", "ju jˈust tə wˈɔk"),
        ("you used it", "ju jˈuzd ɪt"),
    ],
)
def test_company_decides_between_two_sounds(english: English, text: str, phonemes: str) -> None:
    assert said(english, text) == phonemes


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("the US dog", "ðə jˌuˈɛs dˈɔɡ"),
        ("the URL", "ðə jˌuˌɑɹˈɛl"),
        ("PCs", "pˌisˈiz"),
        ("U.S.", "jˌuˈɛs"),
        ("NASA", "nˈæsə"),
        ("it IS", "ɪt ˈɪz"),
        ("ten AM", "tˈɛn ˌAˈɛm"),
        ("I AM", "ˌI ˈæm"),
        ("I am a dog", "ˌI ɐm ɐ dˈɔɡ"),
        ("STOP IT, DOG", "stˈɑp ɪt, dˈɔɡ"),
        ("the brrr", "ðə bɹˈɜɹ"),
    ],
)
def test_capitals_are_letters_a_name_or_a_shout(english: English, text: str, phonemes: str) -> None:
    assert said(english, text) == phonemes


def test_a_compound_has_one_main_stress_and_is_one_word(english: English) -> None:
    reading = english.read(AlignedText.of("well-known dog"))
    assert [word.span for word in reading.words] == [(0, 10), (11, 14)]
    assert reading.words[0].phonemes == "wˌɛlnˈOn"
    assert said(english, "DogPhone") == "dˌɔɡfˈOn"


def test_accents_fold_and_greek_letters_have_names(english: English) -> None:
    assert said(english, "café") == said(english, "cafe\u0301") == "kæfˈA"
    assert said(english, "α") == "ˈælfə"


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ('"dog," you', "“dˈɔɡ,” ju"),
        ("dog - cat", "dˈɔɡ — kˈæt"),
        ("dog -- cat", "dˈɔɡ — kˈæt"),
        ("dog (cat) dog", "dˈɔɡ (kˈæt) dˈɔɡ"),
        ("dog... cat", "dˈɔɡ… kˈæt"),
        ("dog   \n cat", "dˈɔɡ kˈæt"),
        ("dog/cat_dog", "dˈɔɡ kˈæt dˈɔɡ"),
        ("dog () cat :)", "dˈɔɡ kˈæt"),
        ("dog—cat!", "dˈɔɡ—kˈæt!"),
    ],
)
def test_punctuation_becomes_kokoros(english: English, text: str, phonemes: str) -> None:
    assert said(english, text) == phonemes


def test_signs_that_a_reader_says_are_said(english: English) -> None:
    assert said(english, "2%") == "tˈu pəɹsˈɛnt"


def test_what_nobody_could_say_is_counted_in_order(english: English) -> None:
    reading = english.read(AlignedText.of("мир dog 好 #"))
    assert reading.dropped == ("м", "и", "р", "好", "#")
    assert symbols(reading) == "dˈɔɡ"


def test_quotes_open_before_the_word_and_close_after_it(english: English) -> None:
    word = english.read(AlignedText.of('("dog") cat')).words[0]
    assert (word.before, word.after) == ("(“", "”) ")
