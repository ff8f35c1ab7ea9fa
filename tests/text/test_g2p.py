import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tutti.errors import UnknownLanguage, WeightsUnavailable
from tutti.text import vocab
from tutti.text.aligned_text import PLACEHOLDER, AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p import G2P

UPSTREAM_FILE = Path(__file__).parent / "upstream_phonemes.tsv"  # code, sentence, phonemes

texts = st.one_of(
    st.text(max_size=60),
    st.text("abcXYZ éßα1٣½мир好'’-—_.,!?\"“(&%", max_size=60),
    st.lists(
        st.sampled_from(["the", "dog's", "well-known", "US", "read", "café", "live.", "“To", "(a", "an", "2"]),
        max_size=12,
    ).map(" ".join),
)
many_examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def g2p(small_home: Path) -> G2P:
    return G2P(small_home)


def symbols(pronunciation: Pronunciation) -> str:
    return "".join(word.symbols for word in pronunciation.words).rstrip()


@many_examples
@given(texts, st.sampled_from(["en-us", "en-gb"]))
@example("x² ½ ﬁ Ⅷ ー", "en-us")
def test_every_letter_and_digit_is_pronounced_or_reported_as_dropped(g2p: G2P, text: str, code: str) -> None:
    pronunciation = g2p.pronounce(AlignedText.of(text), code)
    covered = {i for word in pronunciation.words for i in range(*word.source)}
    for i, symbol in enumerate(text):
        assert not symbol.isalnum() or i in covered or symbol in pronunciation.dropped


@many_examples
@given(texts, st.integers(0, 1000))
def test_words_are_in_order_and_inside_the_sentence(g2p: G2P, text: str, offset: int) -> None:
    end = offset
    for word in g2p.pronounce(AlignedText.of(text, offset), "en-us").words:
        assert end <= word.source[0] < word.source[1] <= offset + len(text)
        end = word.source[1]


@many_examples
@given(texts)
def test_phonemes_hold_no_punctuation_and_the_symbols_around_them_nothing_else(g2p: G2P, text: str) -> None:
    for word in g2p.pronounce(AlignedText.of(text), "en-us").words:
        assert word.phonemes
        assert vocab.split_known(word.symbols)[1] == ()
        assert vocab.PUNCTUATION.isdisjoint(word.phonemes)
        assert " " not in word.phonemes
        assert set(word.before + word.after) <= vocab.PUNCTUATION | {" "}


def test_given_ipa_is_used_without_symbols_that_kokoro_lacks(g2p: G2P) -> None:
    aligned = AlignedText("a " + PLACEHOLDER + ".", (10, 11, 12, 30), (11, 12, 30, 31))
    pronunciation = g2p.pronounce(aligned, "en-us", {12: "təmˈɑːtoʊ☃"})
    assert [(word.phonemes, word.source) for word in pronunciation.words][1] == ("təmˈɑːtoʊ", (12, 30))
    assert pronunciation.dropped == ("☃",)


def test_four_threads_get_the_same_result(g2p: G2P) -> None:
    lines = [f"The dog number{i} read the US books to zorgify{i}." for i in range(40)]
    expected = [g2p.pronounce(AlignedText.of(line), "en-gb") for line in lines]
    fresh = G2P(g2p.home)
    results: list[list[Pronunciation]] = []

    def read() -> None:
        results.append([fresh.pronounce(AlignedText.of(line), "en-gb") for line in lines])

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_it_can_be_pickled(g2p: G2P) -> None:
    aligned = AlignedText.of("The dog.")
    assert pickle.loads(pickle.dumps(g2p)).pronounce(aligned, "en-us") == g2p.pronounce(aligned, "en-us")


def test_an_unknown_language_and_a_missing_dictionary_are_errors(g2p: G2P, tmp_path: Path) -> None:
    with pytest.raises(UnknownLanguage):
        g2p.pronounce(AlignedText.of("a"), "xx")
    with pytest.raises(WeightsUnavailable, match="tutti pull"):
        G2P(tmp_path).pronounce(AlignedText.of("a"), "en-us")


@pytest.mark.weights
def test_plain_sentences_have_upstreams_phonemes(home: Path) -> None:
    """Sentences for which misaki 0.9.4 and tutti agree, to notice drift."""
    g2p = G2P(home)
    for line in UPSTREAM_FILE.read_text("utf-8").splitlines():
        code, sentence, phonemes = line.split("\t")
        assert symbols(g2p.pronounce(AlignedText.of(sentence), code)) == phonemes


@pytest.mark.weights
@pytest.mark.parametrize(
    ("sentence", "sound"),
    [
        ("Have you read the book?", "ɹˈɛd"),
        ("I have never read such a book.", "ɹˈɛd"),
        ("Did you read the book?", "ɹˈid"),
        ("She read it yesterday.", "ɹˈɛd"),
        ("They removed the lead pipe.", "lˈɛd"),
        ("They took the lead.", "lˈid"),
        ("She plays bass guitar.", "bˈAs"),
        ("He caught a bass in the lake.", "bˈæs"),
        ("He put the bass guitar down and caught a bass.", "bˈæs"),
        ("We heard live music.", "lˈIv"),
        ("I live in Boston.", "lˈɪv"),
        ("My brother lives in Boston.", "lˈɪvz"),
        ("They saved many lives.", "lˈIvz"),
        ("A minute later it rained.", "mˈɪnət"),
        ("There was a minute amount of salt.", "mInˈut"),
        ("The muscles contract at night.", "kəntɹˈækt"),
        ("They signed a contract.", "kˈɑntɹˌækt"),
        ("Close the door.", "klˈOz"),
        ("He is a close friend.", "klˈOs"),
        ("I sent my resume.", "ɹˈɛzəmˌA"),
        ("We resume the game.", "ɹəzˈum"),
        ("An invalid argument.", "ɪnvˈælɪd"),
        ("There is a tear in the fabric.", "tˈɛɹ"),
        ("A tear ran down her face.", "tˈɪɹ"),
        ("The wind is cold.", "wˈɪnd"),
        ("Wind up the clock.", "wˈInd"),
        ("This used to be allowed.", "jˈust"),
        ("It is used to cut bread.", "jˈuzd"),
        ("Students use computers.", "jˈuz"),
        ("It is of no use.", "jˈus"),
        ("They once lived there.", "lˈɪvd"),
        ("The hall shows live concerts.", "lˈIv"),
        ("Now I read it every day.", "ɹˈid"),
        ("There was a tear in the dress.", "tˈɛɹ"),
        ("She had a tear in her eye.", "tˈɪɹ"),
        ("He caught a bass.", "bˈæs"),
        ("There was a minute crack in the glass.", "mInˈut"),
        ("A last minute change.", "mˈɪnət"),
        ("Strong winds hit the coast.", "wˈɪndz"),
        ("Northwest winds ten to fifteen miles per hour.", "wˈɪndz"),
        ("The road winds through the hills.", "wˈIndz"),
        ("She took a bow.", "bˈW"),
        ("The archer drew his bow.", "bˈO"),
        ("The dove flew away.", "dˈʌv"),
        ("He dove into the pool.", "dˈOv"),
        ("The nurse wound the bandage around it.", "wˈWnd"),
        ("The soldier had a deep wound.", "wˈund"),
        ("We sat close together.", "klˈOs"),
        ("Take out the refuse.", "ɹˈɛfjˌus"),
        ("They object to the plan.", "əbʤˈɛkt"),
        ("He bought a present.", "pɹˈɛzᵊnt"),
        ("Do not desert me.", "dəzˈɜɹt"),
        ("I am content with that.", "kəntˈɛnt"),
        ("They conduct the survey.", "kəndˈʌkt"),
        ("The produce is fresh.", "pɹˈOdˌus"),
        ("They permit it.", "pəɹmˈɪt"),
        ("A moderate price.", "mˈɑdəɹət"),
        ("They separate the boys.", "sˈɛpəɹˌAt"),
        ("It is an estimate.", "ˈɛstəmət"),
        ("They house the homeless.", "hˈWz"),
        ("A rebel leader.", "ɹˈɛbᵊl"),
        ("Do not insult him.", "ɪnsˈʌlt"),
        ("Can you elaborate?", "əlˈæbəɹˌAt"),
        ("An attribute of God.", "ˈætɹəbjˌut"),
        ("Cats live long lives.", "lˈIvz"),
        ("He tears the paper.", "tˈɛɹz"),
        ("An increase in sales.", "ˈɪnkɹˌis"),
    ],
)
def test_homographs_depend_on_their_context(home: Path, sentence: str, sound: str) -> None:
    """Common taggers, and upstream, get several of these wrong."""
    assert sound in [word.phonemes for word in G2P(home).pronounce(AlignedText.of(sentence), "en-us").words]


def test_the_regions_of_english_sound_british(small_home: Path) -> None:
    g2p = G2P(small_home)
    words = {code: g2p.pronounce(AlignedText.of("a dog"), code).words for code in ("en-gb", "en-in", "en-au", "en-ie")}
    assert len(set(words.values())) == 1
