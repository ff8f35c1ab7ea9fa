"""W3C's lexicons and the alphabets of others: what is written can be read again, what is wrong is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import InvalidInput
from tutti.text.ipa import from_arpabet, from_ipa, to_ipa
from tutti.text.pls import read_pls, write_pls
from tutti.text.user_lexicon import UserLexicon

DOCUMENT = """<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa" xml:lang="en-US">
  <metadata><x>no word</x></metadata>
  <lexeme><grapheme>tomato</grapheme><grapheme>Tomate</grapheme><phoneme>təˈmeɪ.toʊ</phoneme></lexeme>
  <lexeme><grapheme>W3C</grapheme><alias>World Wide
    Web &amp; more</alias></lexeme>
  <lexeme><grapheme>hello</grapheme><phoneme alphabet="x-cmu-arpabet">HH AH0 L OW1</phoneme></lexeme>
</lexicon>"""
# Symbols of Kokoro that others write as they are.
SOUNDS = st.text("AIOQWYʧʤʦʣbdfhijklmnpstuvwzæðŋɑɔəɛɜɡɪɹɾʃʊʌʒˈˌːθ", min_size=1, max_size=12).filter(
    lambda symbols: from_ipa(symbols, english=False) == symbols  # tʃ is one symbol, ʧ
)
TEXT = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="/"), min_size=1, max_size=12)


def test_a_document_is_read_in_kokoros_symbols() -> None:
    entries = read_pls(DOCUMENT.encode()).entries
    assert entries == {
        "tomato": "/təˈmAtO/",
        "Tomate": "/təˈmAtO/",
        "W3C": "World Wide Web & more",
        "hello": "/həlˈO/",
    }
    assert UserLexicon.of(entries)


@given(st.dictionaries(TEXT, SOUNDS.map("/{}/".format) | TEXT, max_size=8))
def test_what_is_written_is_read_again(entries: dict[str, str]) -> None:
    assert read_pls(write_pls(entries).encode()).entries == entries


@given(SOUNDS)
def test_kokoros_symbols_are_written_as_ipa_and_back(symbols: str) -> None:
    assert from_ipa(to_ipa(symbols), english=False) == symbols
    assert not set("AIOQWYT") & set(to_ipa(symbols))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ˈt͡ʃɝt͜ʃ", "ˈʧɜɹʧ"),
        ("kɑr", "kɑɹ"),
        ("faˈsad", "faˈsad"),
        ("vɛ̃", "vɛ̃"),
        ("ɡaɪ̯", "ɡI"),
        ("'da.tə", "ˈdatə"),
    ],
)
def test_signs_that_kokoro_does_not_have_are_left_out_of_ipa(written: str, expected: str) -> None:
    assert from_ipa(written) == expected


def test_a_trill_stays_where_the_language_is_not_english() -> None:
    spanish = DOCUMENT.replace("en-US", "es").replace("təˈmeɪ.toʊ", "ˈpero")
    assert read_pls(spanish.encode()).entries["tomato"] == "/ˈpero/"


def test_the_preferred_pronunciation_counts_and_the_others_are_named() -> None:
    lexeme = "<lexeme><grapheme>a</grapheme><alias>one</alias><alias prefer='true'>two</alias></lexeme>"
    lexicon = read_pls(f"<lexicon>{lexeme}{lexeme}</lexicon>".encode())
    assert lexicon.entries == {"a": "two"}
    assert "3 further pronunciations" in lexicon.notices[0]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("hello", "not well-formed"),
        ("<lexicon><lexeme>", "not well-formed"),
        ("<speak/>", "instead of <lexicon>"),
        ("<lexicon>\n<lexeme><grapheme>a</grapheme></lexeme></lexicon>", "line 2: a lexeme needs"),
        ("<!DOCTYPE l [<!ENTITY a 'b'>]><lexicon>&a;</lexicon>", "entities"),
        ("<lexicon alphabet='sampa'><lexeme><phoneme>t</phoneme></lexeme></lexicon>", "unknown alphabet 'sampa'"),
        ("<lexicon alphabet='cmu-arpabet'><lexeme><phoneme>QQ</phoneme></lexeme></lexicon>", "no sound of cmu"),
    ],
)
def test_a_wrong_document_is_refused_with_the_reason(document: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        read_pls(document.encode())
    assert caught.value.param == "file"


def test_every_sound_of_arpabet_is_one_that_kokoro_knows() -> None:
    from tutti.text import ipa, vocab

    assert all(vocab.split_known(from_arpabet(f"{name}1"))[1] == () for name in ipa._ARPABET)
