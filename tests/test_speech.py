"""Real speech and a real recogniser: the right words, in every language, at their times."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import Running, running
from tests.recogniser_helper import recognise, word_error_rate
from tutti import Settings, open_engine
from tutti.speech import SAMPLE_RATE, Samples


@pytest.fixture(scope="module")
def engine(home: Path) -> Iterator[Running]:
    with running(open_engine(Settings(home=home, offline=True, precision="int8"))) as engine:
        yield engine


SAID = {
    "af_heart": ("The old harbour was quiet.", "The old harbour was quiet."),
    "am_michael": ("Dr. Brown paid $5.20 for it.", "Doctor Brown paid five dollars and twenty cents for it."),
    "bf_emma": ("We meet on 3 May at 4:30 pm.", "We meet on the third of May at four thirty p m."),
    "af_bella(2)+af_sky(1)": ("Nobody had ever asked him to count the steps.",) * 2,
}


def errors(said: str, samples: Samples) -> float:
    return word_error_rate(said, recognise(samples, SAMPLE_RATE))


def missed(engine: Running, said: Iterable[tuple[str, tuple[str, str]]]) -> list[float]:
    return [errors(spoken, engine.speak(written, voice=voice).samples) for voice, (written, spoken) in said]


@pytest.mark.weights
def test_the_recogniser_understands_the_text(engine: Running) -> None:
    assert np.mean(missed(engine, SAID.items())) <= 0.06


@pytest.mark.weights
def test_the_recogniser_understands_full_precision(home: Path) -> None:
    with running(open_engine(Settings(home=home, offline=True, precision="fp32"))) as engine:
        assert np.mean(missed(engine, [*SAID.items()][:2])) <= 0.06


@pytest.mark.weights
def test_words_are_spoken_at_their_times(engine: Running) -> None:
    text = "The lighthouse keeper counted the steps every morning, although nobody had asked him to do it."
    speech = engine.speak(text, voice="af_heart")
    cut = next(word for word in speech.words if word.word == "although")
    here = round(cut.start_s * SAMPLE_RATE)
    assert errors(text[: cut.span[0]], speech.samples[:here]) <= 0.15
    assert errors(text[cut.span[0] :], speech.samples[here:]) <= 0.15


@pytest.mark.weights
def test_a_crossed_style_says_the_same_words_in_other_time(engine: Running) -> None:
    text = "The boats rocked gently against the old stone wall."
    plain = engine.speak(text, voice="af_heart")
    crossed = engine.speak(text, voice="af_heart", style="bm_george")
    assert errors(text, crossed.samples) <= 0.15
    assert [word.start_s for word in crossed.words] != [word.start_s for word in plain.words]


@pytest.mark.weights
@pytest.mark.parametrize(
    ("voice", "text"),
    [
        ("ef_dora", "Tengo 25 años y vivo en Madrid."),
        ("ff_siwis", "Il est 14 h 30, nous partons demain."),
        ("hf_alpha", "मेरा नाम आशा है।"),
        ("if_sara", "Ho comprato 3 libri ieri."),
        ("jf_alpha", "私は東京に住んでいます。"),
        ("pf_dora", "Eu tenho 2 gatos em casa."),
        ("zf_xiaoxiao", "我今年25岁，住在北京。"),
        ("bm_george", "I have 2 cats at home."),
    ],
)
def test_every_language_speaks_and_times_its_original_words(engine: Running, voice: str, text: str) -> None:
    speech = engine.speak(text, voice=voice)
    assert speech.dropped == ()
    assert 1.0 < speech.duration_s < 8.0
    assert "".join(text[slice(*word.span)] for word in speech.words).replace(" ", "") == "".join(
        char for char in text if char.isalnum() or char in "िाेैं"
    )
    clock = 0.0
    for word in speech.words:
        assert clock <= word.start_s < word.end_s <= speech.duration_s
        clock = word.start_s
