"""SSML: supported elements work, everything else is an error with its place."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling, word_styles
from tutti.errors import InvalidInput
from tutti.text import chunks, incremental, ssml
from tutti.text.chunk import Chunk, InlineStyle
from tutti.text.ssml import is_ssml, read_ssml, ssml_to_marks


def read(text: str) -> list[Chunk]:
    return list(chunks(text, "en-us", Spelling().pronounce))


def words(text: str) -> list[str]:
    return [text[slice(*word.source)] for chunk in read(text) for word in chunk.words]


@pytest.mark.parametrize(
    "text", ["a < b", "<3 you", "I say <speak up", "<speaker>x</speaker>", "1 <speak> 2", "<b>x</b>", ""]
)
def test_a_stray_sign_is_not_ssml(text: str) -> None:
    assert not is_ssml(text)
    read(text)


@pytest.mark.parametrize("head", ["", "\ufeff", " \n", '<?xml version="1.0"?>\n', "<!-- a - b -->"])
def test_a_document_may_begin_in_several_ways(head: str) -> None:
    text = f'{head}<speak version="1.1" xml:lang="en-US">deep water</speak>\n'
    assert is_ssml(text)
    assert words(text) == ["deep", "water"]


def test_a_long_document_is_parsed_and_spoken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "<speak>" + "<p>still <prosody rate='1.5'>deep water</prosody></p>" * 300 + "<s>a</s>" * 300 + "</speak>"
    whole = [(word, chunk.inline_style) for chunk in read(text) for word in chunk.words]
    monkeypatch.setattr(ssml, "PARSED_AT_ONCE", 20)
    monkeypatch.setattr(incremental, "WINDOW", 500)
    parts = read(text)
    assert [(word, chunk.inline_style) for chunk in parts for word in chunk.words] == whole
    n_empty = next(n for n, chunk in enumerate(parts) if chunk.words)
    assert n_empty >= 50, "a caller can stop before all of it is parsed"


def test_the_end_of_a_long_document_is_checked_before_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssml, "PARSED_AT_ONCE", 20)
    spoken = chunks("<speak>" + "<s>deep</s>" * 100 + "<s>", "en-us", Spelling().pronounce)
    with pytest.raises(InvalidInput, match="never closed"):
        next(chunk for chunk in spoken if chunk.words)


def test_a_break_is_a_pause() -> None:
    text = (
        '<speak>one<break time="300ms"/>two<break time="1.5s"/>three<break strength="strong"/>four<break/>five</speak>'
    )
    assert [chunk.pause_s for chunk in read(text)] == [0.3, 1.5, 1.0, 0.5, 0.0]


def test_styles_nest_and_end() -> None:
    text = (
        '<speak>a <prosody rate="fast" pitch="+2st">b <prosody rate="80%" pitch="-1st">c</prosody> d</prosody>'
        ' <voice name="bf_emma">e <lang xml:lang="fr">f</lang></voice> g</speak>'
    )
    fast, plain = InlineStyle(rate=1.25, pitch=2.0), InlineStyle()
    assert word_styles(read(text)) == [
        ("a", plain),
        ("b", fast),
        ("c", InlineStyle(rate=1.0, pitch=1.0)),
        ("d", fast),
        ("e", InlineStyle("bf_emma", "en-gb")),
        ("f", InlineStyle("bf_emma", "fr")),
        ("ɡ", plain),
    ]


def test_emphasis_and_prosody_of_words_stay_in_their_sentence() -> None:
    text = (
        "<speak>I <emphasis>really</emphasis> <prosody rate='slow'>do"
        " <emphasis level='strong'>not</emphasis></prosody>.</speak>"
    )
    (chunk,) = read(text)
    assert [(style.rate, style.emphasis) for _, style in word_styles([chunk])] == [
        (1.0, None),
        (1.0, "moderate"),
        (0.75, None),
        (0.75, "strong"),
    ]
    (whisper,) = read('<speak>Say <amazon:effect name="whispered">it</amazon:effect>.</speak>')
    assert [style.emphasis for _, style in word_styles([whisper])] == [None, "whispered"]
    with pytest.raises(InvalidInput, match="strong, moderate, reduced, whispered or none"):
        read("<speak><emphasis level='huge'>x</emphasis></speak>")


def test_sources_are_those_of_the_written_words() -> None:
    text = (
        '<speak>Say <phoneme alphabet="ipa" ph="təmˈɑtO">tomato</phoneme> on the'
        ' <sub alias="world wide web">WWW</sub> <!-- not this --> <![CDATA[a < b]]></speak>'
    )
    assert words(text)[:2] == ["Say", "tomato"]
    assert words(text)[4:7] == ["WWW"] * 3
    assert "təmˈɑtO" in read(text)[0].phonemes
    assert "not" not in words(text)


def test_paragraphs_pause_and_sentences_end() -> None:
    first, second = read("<speak>\n <p>one\n two</p>\n <p><s>three</s><s>four</s></p>\n</speak>")
    assert (first.phonemes, first.pause_s > 0) == ("one two", True)
    assert (second.phonemes, second.pause_s) == ("three, four", 0.0)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("<speak>a", "line 1, column 1"),
        ("<speak>\n<p>a</speak>", "line 2, column 5"),
        ("<speak>a & b</speak>", "line 1, column 10"),
        ("<speak>a < b</speak>", "line 1, column 10"),
        ("<speak>&nbsp;</speak>", "line 1, column 8"),
        ("<speak>&#0;</speak>", "not a character"),
        ("<speak>&#xD800;</speak>", "not a character"),
        ("<speak><speak/></speak>", "inside of another"),
        ("<speak/>more", "outside"),
        ("<speak/><speak/>", "one <speak>"),
        ("<speak><shout>x</shout></speak>", "<shout> is not supported"),
        ("<speak><prosody volume='loudest'>x</prosody></speak>", "volume"),
        ("<speak><prosody volume='+20dB'>x</prosody></speak>", "volume"),
        ("<speak><prosody rate='9'>x</prosody></speak>", "rate"),
        ("<speak><prosody rate='-200%'>x</prosody></speak>", "rate"),
        ("<speak><prosody pitch='+99st'>x</prosody></speak>", "pitch"),
        ("<speak><prosody pitch='very'>x</prosody></speak>", "pitch"),
        ("<speak><break time='2h'/></speak>", "break"),
        ("<speak><break>x</break></speak>", "must be empty"),
        ("<speak><break time='61s'/></speak>", "60s"),
        ("<speak><voice>x</voice></speak>", "needs name"),
        ("<speak><voice name='a]b'>x</voice></speak>", "not a name"),
        ("<speak><phoneme ph='x'/></speak>", "needs the word"),
        ("<speak><phoneme ph='a/b'>x</phoneme></speak>", "IPA"),
        ("<speak><sub alias='a'>x<p/></sub></speak>", "only text"),
        ("<speak a='1' a='2'/>", "twice"),
        ("<speak>" + "<p>" * 40, "deep"),
        ('<speak><!DOCTYPE x [<!ENTITY a "b">]></speak>', "declarations"),
        ("<speak><!-- a", "not a tag"),
    ],
)
def test_an_error_names_line_and_column(text: str, where: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(text)
    assert where in error.value.message
    assert error.value.message.startswith("SSML, line ")
    assert error.value.param == "input"


def test_entities_cannot_be_declared() -> None:
    bomb = '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><speak>&b;</speak>'
    assert not is_ssml(bomb)
    with pytest.raises(InvalidInput):
        ssml_to_marks("<speak>&a;</speak>")


PIECES = (
    "<speak>", "</speak>", "<p>", "</p>", "<s>", "</s>", "<break/>", '<break time="1s"/>', '<voice name="af_sky">',
    "</voice>", '<prosody rate="fast">', "</prosody>", "<sub alias='b c'>", "</sub>", '<phoneme ph="a">', "&",
    "</phoneme>", "word ", "&amp;", "&#65;", "<", ">", "<!--", "-->", "<![CDATA[", "]]>", "é", "[pause:1s]", "'", '"',
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_ssml_is_accepted_or_refused(body: str) -> None:
    with suppress(InvalidInput):
        read(f"<speak>{body}</speak>")


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma"]), min_size=1, max_size=12), st.data())
def test_no_word_is_lost_and_every_source_is_right(expected: list[str], data: st.DataObject) -> None:
    wraps = [("", ""), ("<s>", "</s>"), ("<p>", "</p>"), ('<voice name="am_adam">', "</voice>")]
    wraps += [('<prosody rate="120%" pitch="-2st">', "</prosody>"), ("<!-- x -->", "<break time='100ms'/>")]
    parts = [f"{a}{word}{b} " for word in expected for a, b in [data.draw(st.sampled_from(wraps))]]
    assert words(f"<speak>{''.join(parts)}</speak>") == expected


@pytest.mark.parametrize(
    ("attributes", "content", "spoken"),
    [
        ('interpret-as="characters"', "SSML", "S S M L"),
        ('interpret-as="spell-out"', "a1b", "A 1 B"),
        ('interpret-as="verbatim"', "abc", "A B C"),
        ('interpret-as="digits"', "1234", "1 2 3 4"),
        ('interpret-as="cardinal"', "12345", "twelve thousand three hundred forty-five"),
        ('interpret-as="number" format="ordinal"', "3", "third"),
        ('interpret-as="ordinal"', "21", "twenty-first"),
        ('interpret-as="fraction"', "5+1/2", "five and one half"),
        ('interpret-as="date" format="yyyymmdd" detail="1"', "1960-09-10", "September 10, 1960"),
        ('interpret-as="date" format="dmy"', "10-09-1960", "September 10, 1960"),
        ('interpret-as="date" format="my"', "9/2024", "September 2024"),
        ('interpret-as="date"', "20240314", "March 14, 2024"),
        ('interpret-as="time"', "1'21\"", "1 minute and 21 seconds"),
        ('interpret-as="telephone" format="1"', "(781) 771-7777", "7 8 1, 7 7 1, 7 7 7 7"),
        ('interpret-as="unit"', "10 foot", "10 foot"),
        ('interpret-as="expletive"', "darn", "beep"),
    ],
)
def test_say_as(attributes: str, content: str, spoken: str) -> None:
    document = read_ssml(f"<speak><say-as {attributes}>{content}</say-as></speak>")
    assert document.aligned.text == spoken
    assert document.notices == ()


SAMPLES = [
    # as Google, Amazon, Microsoft and the W3C document them
    (
        '<speak>Here are <say-as interpret-as="characters">SSML</say-as> samples. I can pause <break time="3s"/>.'
        ' I can play a sound <audio src="https://x.org/a.mp3">no sound</audio>.</speak>',
        "audio",
    ),
    ('<speak>Go <mark name="here"/> on.</speak>', "mark"),
    ('<speak><amazon:effect phonation="soft">Quiet.</amazon:effect></speak>', "amazon:effect"),
    (
        '<speak version="1.0" xmlns:mstts="https://www.w3.org/2001/mstts" xml:lang="en-US">'
        '<mstts:express-as style="cheerful">Amazing!</mstts:express-as></speak>',
        "mstts:express-as",
    ),
    ('<speak><mstts:express-as style="chatty">Amazing!</mstts:express-as></speak>', "chatty"),
    ('<speak><prosody contour="(0%,+20Hz)">So.</prosody></speak>', "contour"),
    ('<speak><prosody pitch="+20Hz">So.</prosody></speak>', "hertz"),
    ('<speak><phoneme alphabet="x-sampa" ph="a">So</phoneme></speak>', "x-sampa"),
    ('<speak><say-as interpret-as="vxml:thing">So</say-as></speak>', "vxml:thing"),
    ('<speak><voice gender="female">So</voice></speak>', "voice"),
]


@pytest.mark.parametrize(("text", "named"), SAMPLES)
def test_what_has_no_effect_is_named_and_its_text_is_spoken(text: str, named: str) -> None:
    (notice,) = read_ssml(text).notices
    assert named in notice
    assert [notice for chunk in read(text) for notice in chunk.notices] == [notice]
    assert words(text)


def test_text_that_is_not_speech_is_not_spoken() -> None:
    text = "<speak><metadata>hidden</metadata><audio src='x'><desc>a cat</desc>meow</audio></speak>"
    assert words(text) == ["meow"]


@pytest.mark.parametrize(
    ("value", "volume"),
    [("loud", 1.5), ("silent", 0.0), ("+6dB", 1.9953), ("-6dB", 0.5012), ("50", 0.5), ("+20%", 1.2), ("medium", 1.0)],
)
def test_volume_is_a_factor(value: str, volume: float) -> None:
    (chunk,) = read(f"<speak><prosody volume='{value}'>so</prosody></speak>")
    assert chunk.inline_style.volume == pytest.approx(volume, abs=1e-4)
