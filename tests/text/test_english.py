from pathlib import Path

import pytest

from benchmarks.score import broad
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p.english import English


@pytest.fixture(scope="module")
def english(small_home: Path) -> English:
    return English.load(small_home, "en-us")


def symbols(pronunciation: Pronunciation) -> str:
    return "".join(word.symbols for word in pronunciation.words).rstrip()


def phonemes_of(english: English, text: str) -> str:
    return symbols(english.pronounce(AlignedText.of(text)))


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
def test_small_words_depend_on_the_next_sound(english: English, text: str, phonemes: str) -> None:
    assert phonemes_of(english, text) == phonemes


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
def test_endings_are_derived_from_the_stem_and_t_is_flapped(english: English, text: str, phonemes: str) -> None:
    assert phonemes_of(english, text) == phonemes


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
def test_context_decides_between_two_pronunciations(english: English, text: str, phonemes: str) -> None:
    assert phonemes_of(english, text) == phonemes


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
        ("STOP THE USA", "stˈɑp ðə jˌuˌɛsˈA"),
        ("THE PC IS THE MUSIC", "ðə pˌisˈi ɪz ðə mjˈuzɪk"),
        ("STOP US", "stˈɑp ˌʌs"),
        ("STOP THE US DOG", "stˈɑp ðə jˌuˈɛs dˈɔɡ"),
        ("URL PC", "jˌuˌɑɹˈɛl pˌisˈi"),
        ("I WANT IT", "ˌI wˈɑnt ɪt"),
        ("A B C", "ˈA bˈi sˈi"),
        ("\u1d00 dog", "ˈA dˈɔɡ"),
    ],
)
def test_capitals_are_spelled_out_a_name_or_emphasis(english: English, text: str, phonemes: str) -> None:
    assert phonemes_of(english, text) == phonemes


def test_a_compound_has_one_main_stress_and_is_one_word(english: English) -> None:
    pronunciation = english.pronounce(AlignedText.of("well-known dog"))
    assert [word.source for word in pronunciation.words] == [(0, 10), (11, 14)]
    assert pronunciation.words[0].phonemes == "wˌɛlnˈOn"
    assert phonemes_of(english, "DogPhone") == "dˌɔɡfˈOn"


def test_accents_fold_and_greek_letters_have_names(english: English) -> None:
    assert phonemes_of(english, "café") == phonemes_of(english, "cafe\u0301") == "kæfˈA"
    assert phonemes_of(english, "α") == "ˈælfə"


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
def test_punctuation_is_in_kokoros_symbols(english: English, text: str, phonemes: str) -> None:
    assert phonemes_of(english, text) == phonemes


def test_signs_have_names(english: English) -> None:
    assert phonemes_of(english, "2%") == "tˈu pəɹsˈɛnt"


def test_characters_without_pronunciation_are_reported_in_order(english: English) -> None:
    pronunciation = english.pronounce(AlignedText.of("мир dog 好 #"))
    assert pronunciation.dropped == ("м", "и", "р", "好", "#")
    assert symbols(pronunciation) == "dˈɔɡ"


def test_quotes_open_before_the_word_and_close_after_it(english: English) -> None:
    word = english.pronounce(AlignedText.of('("dog") cat')).words[0]
    assert (word.before, word.after) == ("(“", "”) ")


@pytest.mark.weights
@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("fiancé", "fiˌɑnsˈA"),
        ("two clichés", "tˈu kliʃˈAz"),
        ("rose", "ɹˈOz"),
        ("rosé", "ɹOzˈA"),
        ("c'est la vie", "sˌA lɑ vˈi"),
        ("bon appétit", "bˌOn ˌæpətˈi"),
        ("A-level", "ˈAlˌɛvᵊl"),
        ("AM I OK", "ˈæm ˌI ˌOkˈA"),
        ("Grrrr", "ɡˈɜɹ"),
        ("Tsk", "tˈɪsk"),
        ("Hmph", "hˈʌmf"),
    ],
)
def test_french_words_and_sounds_of_novels(text: str, phonemes: str, home: Path) -> None:
    assert spoken(text, home) == phonemes


@pytest.mark.weights
@pytest.mark.parametrize(
    ("shouted", "plain"),
    [
        ("MAN DIES IN FIRE", "man dies in fire"),
        ("FED CUTS RATES", "Fed cuts rates"),
        ("JUDGE BANS ADS", "judge bans ads"),
    ],
)
def test_verbs_and_plurals_of_headlines_are_words(shouted: str, plain: str, home: Path) -> None:
    assert broad(spoken(shouted, home)) == broad(spoken(plain, home))


def spoken(text: str, home: Path) -> str:
    words = English.load(home, "en-us").pronounce(AlignedText.of(text)).words
    return " ".join(word.phonemes for word in words)
