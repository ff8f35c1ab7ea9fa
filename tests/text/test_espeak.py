"""espeak-ng: sources, symbols, nothing lost, thread safety."""

import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tutti.errors import MissingExtra, TuttiError, UnknownLanguage
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Pronunciation
from tutti.text.g2p import espeak, russian
from tutti.text.g2p.align import align
from tutti.text.vocab import IDS, PUNCTUATION

CODES = ["es", "fr", "hi", "it", "pt-br", "de", "sv", "pl", "ru", "vi", "ar"]
LETTERS = {"es": "aeiounñlrstdcáéí", "fr": "aeiouéèçlrstdqu'-", "it": "aeioulrstdcgàè'", "pt-br": "aeiouãçlrstdõ-"}
LETTERS["de"] = "aeiounrstdlchgmbfwkzäöüß-"
LETTERS |= {"sv": "aeiounrstdlkgmåäöfpvj", "pl": "aeiounrstdlkgmąęółśżźćńwzcy", "ru": "аеиоунрстдлкгмяюёжшщъьыэ"}
LETTERS["vi"] = "aeiouăâđêôơưạảấầẩẫậắằếềểệịỏốồổộớờợụủứừựỳỹchgnrst"
LETTERS["ar"] = "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىأإءآؤئ\u064e\u0650\u064f\u0651"
LETTERS["hi"] = "कखगचजतदनपबमयरलवशसहािीुेोंअआइउए"


def phonemes_of(text: str, code: str) -> str:
    return Chunk(espeak.pronounce(AlignedText.of(text), code, {}).words).phonemes


def check_pronunciation(pronunciation: Pronunciation, text: str) -> None:
    starts = [word.source[0] for word in pronunciation.words]
    assert starts == sorted(starts)
    for word in pronunciation.words:
        assert 0 <= word.source[0] < word.source[1] <= len(text)
        assert word.phonemes
        assert not set(word.phonemes) & (PUNCTUATION | {" "})
        assert set(word.symbols) <= IDS.keys()
    covered = {i for word in pronunciation.words for i in range(*word.source)}
    for i, symbol in enumerate(text):
        if unicodedata.category(symbol)[0] in "LNM":
            assert i in covered or symbol in pronunciation.dropped, f"{symbol!r} at {i} was lost"


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_words_are_in_order_and_nothing_is_lost(code: str, data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet=LETTERS[code] + '   ,.;:!?¿¡«»()"…—-*/', max_size=60))
    check_pronunciation(espeak.pronounce(AlignedText.of(text), code, {}), text)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(CODES), st.text(max_size=40))
def test_every_character_of_any_text_is_pronounced_or_reported(code: str, text: str) -> None:
    check_pronunciation(espeak.pronounce(AlignedText.of(text), code, {}), text)


def test_words_of_a_phrase_are_pronounced_together() -> None:
    assert phonemes_of("les amis", "fr").split()[0].endswith("z")
    assert not phonemes_of("les", "fr").endswith("z")


def test_each_word_has_its_own_source_even_if_espeak_merges_words() -> None:
    text = "Est-ce que tu es là ? Parce que c'est à moi."
    sources = [word.source for word in espeak.pronounce(AlignedText.of(text), "fr", {}).words]
    assert all(a[1] <= b[0] or a == b for a, b in pairwise(sources))
    assert {text[a:b] for a, b in sources} >= {"tu", "là", "moi"}


def test_punctuation_is_in_the_models_symbols() -> None:
    pronunciation = espeak.pronounce(AlignedText.of('¿«Hola», dijo (ella) - y "tú"?'), "es", {})
    assert [word.before for word in pronunciation.words] == ["“", "", "(", "", "“"]
    assert [word.after for word in pronunciation.words] == ["”, ", " ", ") — ", " ", "”? "]
    assert pronunciation.dropped == ()


def test_characters_that_espeak_skips_are_reported() -> None:
    pronunciation = espeak.pronounce(AlignedText.of("hola ∞ mundo ∯"), "es", {})
    assert pronunciation.dropped == ("∞", "∯")
    assert [word.source for word in pronunciation.words] == [(0, 4), (7, 12)]


def test_words_that_espeak_skips_are_pronounced_one_by_one() -> None:
    assert len(espeak.pronounce(AlignedText.of("a " * 30), "fr", {}).words) == 30


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["a ", "est-ce que ", "a", "a.", "qu'", "∞ ", "- "])
def test_long_texts_without_punctuation_take_little_time(piece: str) -> None:
    text = piece * (10_000 // len(piece))
    check_pronunciation(espeak.pronounce(AlignedText.of(text), "fr", {}), text)


NASTY = ["a." * 5000, "}-\u0640", "€-ॿ", "क-ऱé" * 60, "Жक" * 60, "a" * 10_000, "aक" * 200]


@pytest.mark.parametrize("code", CODES)
def test_text_that_would_crash_espeak_never_reaches_it(code: str) -> None:
    voice = espeak.VOICES[code]
    for text in NASTY:
        sanitized = espeak.sanitize(text, voice)
        assert "." not in sanitized
        assert not set(sanitized) & set("\u0640ॿ" + ("" if code == "ru" else "Ж"))
        if code == "hi":
            assert not set(sanitized) & set("-é")
            assert "aक" not in sanitized
        else:
            assert "क" not in sanitized
        espeak.engine().ipa([text], voice)


def test_sources_are_in_the_original_text() -> None:
    original = "Son 5 €."
    aligned = AlignedText.of("Son ") + AlignedText("cinco euros", (4,) * 11, (7,) * 11) + AlignedText.of(".", 7)
    pronunciation = espeak.pronounce(aligned, "es", {})
    assert [original[slice(*word.source)] for word in pronunciation.words] == ["Son", "5 €", "5 €"]


def test_given_ipa_is_used_and_its_unknown_symbols_are_reported() -> None:
    pronunciation = espeak.pronounce(AlignedText.of("hola \ufffc."), "es", {5: "mˈundo 漢"})
    word = pronunciation.words[-1]
    assert (word.phonemes, word.source, word.after) == ("mˈundo", (5, 6), ". ")
    assert pronunciation.dropped == ("漢",)


def test_four_threads_get_the_same_result() -> None:
    texts = {
        "es": "La casa roja y el perro",
        "fr": "les amis de la maison",
        "hi": "मेरा नाम राहुल है",
        "it": "la ragazza mangia",
        "de": "das Haus und der Hund",
        "sv": "huset och hunden",
        "pl": "dom i pies",
        "ru": "дом и собака",
        "ar": "البيت والكلب",
        "vi": "ngôi nhà và con chó",
        "pt-br": "o menino comeu pão",
    }
    by_itself = {code: phonemes_of(text, code) for code, text in texts.items()}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda code: (code, phonemes_of(texts[code], code)), CODES * 60))
    assert all(phonemes == by_itself[code] for code, phonemes in together)


def test_a_refused_voice_is_an_error_and_has_no_effect_on_later_calls() -> None:
    before = phonemes_of("hola", "es")
    with pytest.raises(TuttiError, match="no/such"):
        espeak.engine().ipa(["hola"], "no/such")
    assert phonemes_of("hola", "es") == before


def test_a_language_without_espeak_voice_is_an_error() -> None:
    with pytest.raises(UnknownLanguage, match="'ja'"):
        espeak.pronounce(AlignedText.of("a"), "ja", {})


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    monkeypatch.setattr(espeak, "engine", espeak._load.__wrapped__)
    with pytest.raises(MissingExtra, match=r"Spanish needs .*\[espeak\]"):
        espeak.pronounce(AlignedText.of("hola"), "es", {})


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=8), st.data())
def test_alignment_covers_every_word_in_order(by_itself: list[str], data: st.DataObject) -> None:
    together = data.draw(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=8))
    places = align(by_itself, together)
    assert len(places) == len(together)
    assert all(0 <= first < last <= len(by_itself) for first, last in places)
    assert [first for first, _ in places] == sorted(first for first, _ in places)
    assert {i for first, last in places for i in range(first, last)} == set(range(len(by_itself)))


def test_alignment_of_merged_and_of_split_words() -> None:
    assert align(["kel", "ke", "moa"], ["kelke", "moa"]) == [(0, 2), (2, 3)]
    assert align(["ila", "tre"], ["i", "la", "tre"])[-1] == (1, 2)


def test_vietnamese_has_its_tones_and_the_onsets_of_its_spelling() -> None:
    """As vig2p 0.1.2 writes them, with which the known checkpoint was trained."""
    assert phonemes_of("ma mà má mả mã mạ", "vi") == "mˈaː mˌaː↘ mˈaː↗ mˈaː↓ mˈaːʔ↗ mˈaːʔ↓"
    assert phonemes_of("teo theo, sinh xinh, giải dải, rượu", "vi") == "tˈɛw θˈɛw, ʂˈiɲ sˈiɲ, ʝˈaː↓j zˈaː↓j, ɹˈyəʔ↓w"
    assert phonemes_of("tường trước", "vi") == "tˈyə↘ŋ ʈʂˈyə↗c"


def test_arabic_numbers_are_read_with_their_vowels() -> None:
    assert phonemes_of("خمسة وعشرون", "ar") == phonemes_of("خَمسَة وَعِشرون", "ar") != phonemes_of("خمسه", "ar")


@pytest.mark.parametrize(
    ("word", "phonemes"),
    [
        ("за́мок", "zˈɑmʌk"),
        ("замо́к", "zamˈok"),
        ("мука́", "mukˈɑ"),
        ("молоко́", "mʌɭʌkˈo"),  # which espeak-ng knows without the mark
        ("Уже́", "uʒˈe"),
        ("бе́рег", "bʲˈerʲik"),
        ("соль́", "sˈoɭ"),  # not on a vowel
    ],
)
def test_a_marked_stress_wins_in_russian(word: str, phonemes: str) -> None:
    assert phonemes_of(word, "ru") == phonemes


def test_an_installed_accentor_marks_russian_words_that_have_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []

    def accent(phrase: str) -> str:
        heard.append(phrase)
        return phrase.replace("замок", "зам+ок").replace("все", "всё")

    monkeypatch.setattr(russian, "accentor", lambda: accent)
    assert phonemes_of("Вот замок, все за́мок", "ru") == phonemes_of("Вот замо́к, всё за́мок", "ru")
    assert heard[0] == "Вот замок"
    words = espeak.pronounce(AlignedText.of("Вот замок"), "ru", {}).words
    assert [word.source for word in words] == [(0, 3), (4, 9)]
