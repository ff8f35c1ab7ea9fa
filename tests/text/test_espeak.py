"""espeak-ng as a reader: spans, symbols, nothing lost, one caller at a time."""

import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.errors import MissingExtra, TuttiError, UnknownLanguage
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Chunk, Reading
from tutti.text.g2p import espeak
from tutti.text.g2p.align import align
from tutti.text.vocab import PUNCTUATION, SYMBOLS

CODES = ["es", "fr", "hi", "it", "pt-br"]
LETTERS = {"es": "aeiounñlrstdcáéí", "fr": "aeiouéèçlrstdqu'-", "it": "aeioulrstdcgàè'", "pt-br": "aeiouãçlrstdõ-"}
LETTERS["hi"] = "कखगचजतदनपबमयरलवशसहािीुेोंअआइउए"


def said(text: str, code: str) -> str:
    return Chunk(espeak.read(AlignedText.of(text), code, {}).words).phonemes


def hold_the_laws(reading: Reading, text: str) -> None:
    starts = [word.span[0] for word in reading.words]
    assert starts == sorted(starts)
    for word in reading.words:
        assert 0 <= word.span[0] < word.span[1] <= len(text)
        assert word.phonemes
        assert not set(word.phonemes) & (PUNCTUATION | {" "})
        assert set(word.symbols) <= SYMBOLS.keys()
    heard = {i for word in reading.words for i in range(*word.span)}
    for i, symbol in enumerate(text):
        if unicodedata.category(symbol)[0] in "LNM":
            assert i in heard or symbol in reading.dropped, f"{symbol!r} at {i} was lost"


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_words_keep_order_place_and_symbols_and_nothing_is_lost(code: str, data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet=LETTERS[code] + '   ,.;:!?¿¡«»()"…—-*/', max_size=60))
    hold_the_laws(espeak.read(AlignedText.of(text), code, {}), text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CODES), st.text(max_size=40))
def test_any_text_is_read_or_reported(code: str, text: str) -> None:
    hold_the_laws(espeak.read(AlignedText.of(text), code, {}), text)


def test_words_of_a_phrase_are_said_together() -> None:
    assert said("les amis", "fr").split()[0].endswith("z")
    assert not said("les", "fr").endswith("z")


def test_each_word_points_at_its_own_characters_even_where_espeak_runs_words_together() -> None:
    text = "Est-ce que tu es là ? Parce que c'est à moi."
    spans = [word.span for word in espeak.read(AlignedText.of(text), "fr", {}).words]
    assert all(a[1] <= b[0] or a == b for a, b in pairwise(spans))
    assert {text[a:b] for a, b in spans} >= {"tu", "là", "moi"}


def test_marks_come_in_the_models_symbols() -> None:
    reading = espeak.read(AlignedText.of('¿«Hola», dijo (ella) - y "tú"?'), "es", {})
    assert [word.before for word in reading.words] == ["“", "", "(", "", "“"]
    assert [word.after for word in reading.words] == ["”, ", " ", ") — ", " ", "”? "]
    assert reading.dropped == ()


def test_what_espeak_passes_over_is_reported() -> None:
    reading = espeak.read(AlignedText.of("hola ∞ mundo ∯"), "es", {})
    assert reading.dropped == ("∞", "∯")
    assert [word.span for word in reading.words] == [(0, 4), (7, 12)]


def test_words_that_espeak_swallows_are_said_one_by_one() -> None:
    assert len(espeak.read(AlignedText.of("a " * 30), "fr", {}).words) == 30


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["a ", "est-ce que ", "a", "a.", "qu'", "∞ ", "- "])
def test_long_texts_without_marks_do_not_choke(piece: str) -> None:
    text = piece * (10_000 // len(piece))
    hold_the_laws(espeak.read(AlignedText.of(text), "fr", {}), text)


NASTY = ["a." * 5000, "}-\u0640", "€-ॿ", "क-ऱé" * 60, "Жक" * 60, "a" * 10_000, "aक" * 200]


@pytest.mark.parametrize("code", [*CODES, "en-us"])
def test_what_would_crash_espeak_never_reaches_it(code: str) -> None:
    voice = espeak.VOICES[code]
    for text in NASTY:
        seen = espeak.safe(text, voice)
        assert "." not in seen
        assert not set(seen) & set("\u0640ॿЖ")
        if code == "hi":
            assert not set(seen) & set("-é")
            assert "aक" not in seen
        else:
            assert "क" not in seen
        espeak.engine().ipa([text], voice)


def test_ties_lead_back_to_the_original_text() -> None:
    original = "Son 5 €."
    spoken = AlignedText.of("Son ") + AlignedText("cinco euros", (4,) * 11, (7,) * 11) + AlignedText.of(".", 7)
    reading = espeak.read(spoken, "es", {})
    assert [original[slice(*word.span)] for word in reading.words] == ["Son", "5 €", "5 €"]


def test_a_given_word_is_said_as_given_and_its_unknown_symbols_are_reported() -> None:
    reading = espeak.read(AlignedText.of("hola \ufffc."), "es", {5: "mˈundo 漢"})
    assert (reading.words[-1].phonemes, reading.words[-1].span, reading.words[-1].after) == ("mˈundo", (5, 6), ". ")
    assert reading.dropped == ("漢",)


@pytest.mark.parametrize(
    ("text", "code", "phonemes"),
    [
        ("kubernetes", "en-us", "kˌubəɹnˈɛTiz"),
        ("kubernetes", "en-gb", "kˌuːbənˈɛtiːz"),
        ("wifi", "en-us", "wˈIfI"),
        ("snazzle", "en-us", "snˈæzᵊl"),
        ("gazillionaire", "en-gb", "ɡˌazɪliənˈɛː"),
        ("jowlboy", "en-us", "ʤˈWlbY"),
    ],
)
def test_unknown_english_words_come_in_the_symbols_of_the_lexicons(text: str, code: str, phonemes: str) -> None:
    assert espeak.word(text, code) == phonemes


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=64), st.sampled_from(["en-us", "en-gb"]))
def test_an_english_word_has_only_known_symbols(text: str, code: str) -> None:
    assert set(espeak.word(text, code)) <= SYMBOLS.keys()


def test_four_threads_hear_what_one_hears() -> None:
    texts = {
        "es": "La casa roja y el perro",
        "fr": "les amis de la maison",
        "hi": "मेरा नाम राहुल है",
        "it": "la ragazza mangia",
        "pt-br": "o menino comeu pão",
    }
    alone = {code: said(text, code) for code, text in texts.items()}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda code: (code, said(texts[code], code)), CODES * 60))
    assert all(phonemes == alone[code] for code, phonemes in together)


def test_a_refused_voice_is_an_error_and_does_not_stick() -> None:
    before = said("hola", "es")
    with pytest.raises(TuttiError, match="no/such"):
        espeak.engine().ipa(["hola"], "no/such")
    assert said("hola", "es") == before


def test_an_unread_language_is_named() -> None:
    with pytest.raises(UnknownLanguage, match="'ja'"):
        espeak.read(AlignedText.of("a"), "ja", {})


def test_a_missing_extra_names_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(MissingExtra, match=r'pip install "tutti-tts\[espeak\]"'):
        espeak._load.__wrapped__()


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=8), st.data())
def test_aligned_groups_read_every_word_in_order(alone: list[str], data: st.DataObject) -> None:
    together = data.draw(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=8))
    places = align(alone, together)
    assert len(places) == len(together)
    assert all(0 <= first < last <= len(alone) for first, last in places)
    assert [first for first, _ in places] == sorted(first for first, _ in places)
    assert {i for first, last in places for i in range(first, last)} == set(range(len(alone)))


def test_words_run_together_share_a_place_and_words_drawn_apart_keep_theirs() -> None:
    assert align(["kel", "ke", "moa"], ["kelke", "moa"]) == [(0, 2), (2, 3)]
    assert align(["ila", "tre"], ["i", "la", "tre"])[-1] == (1, 2)
