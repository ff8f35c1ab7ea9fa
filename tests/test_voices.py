import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.errors import InvalidInput, UnknownVoice, WeightsUnavailable
from tutti.text.language import LANGUAGES, find_language
from tutti.voices import NAMES, Voices, gender, parse_blend
from tutti.weights import VOICES

ROWS, SIZE = 510, 256


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Voices:
    """Voices whose table holds their own index, plus the row's index in hundredths."""
    folder = tmp_path_factory.mktemp("voices")
    for index, name in enumerate(NAMES):
        table = index + np.arange(ROWS, dtype=np.float32)[:, None] / 100 + np.zeros((1, SIZE), np.float32)
        table.astype("<f4").tofile(folder / f"{name}.bin")
    return Voices(folder)


def index_of(name: str) -> int:
    return NAMES.index(name)


def test_the_table_and_the_manifest_name_the_same_54_voices() -> None:
    assert len(NAMES) == 54
    assert set(VOICES) == set(NAMES)


def test_every_voice_has_a_language_and_a_gender() -> None:
    assert {find_language(name[0]) for name in NAMES} == set(LANGUAGES)
    assert {gender(name) for name in NAMES} == {"female", "male"}


@pytest.mark.parametrize("n_phonemes", [1, 2, 100, 510])
def test_the_style_row_is_that_of_upstream(voices: Voices, n_phonemes: int) -> None:
    expected = np.float32(index_of("am_adam") + (n_phonemes - 1) / 100)
    assert np.allclose(voices.get("am_adam").style(n_phonemes), expected)


@given(weights=st.lists(st.floats(0.01, 100), min_size=2, max_size=8), data=st.data())
def test_a_blend_is_the_weighted_mean(voices: Voices, weights: list[float], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=len(weights), max_size=len(weights)))
    blend = voices.get("+".join(f"{name}({weight})" for name, weight in zip(names, weights, strict=True)))
    mean = np.average([index_of(name) for name in names], weights=weights)
    assert np.allclose(blend.style(1), mean, rtol=1e-4, atol=1e-4)


def test_a_voice_blended_with_itself_is_itself(voices: Voices) -> None:
    assert np.allclose(voices.get("af_sky(3) + af_sky").table, voices.get("af_sky").table)


@given(w=st.floats(0.01, 100), v=st.floats(0.01, 100))
def test_minus_moves_away_from_a_voice_by_less_than_their_distance(voices: Voices, w: float, v: float) -> None:
    a, b = index_of("af_bella"), index_of("am_adam")
    moved = float(voices.get(f"af_bella({w})-am_adam({v})").style(1)[0])
    assert a - (b - a) - 1e-3 <= moved <= a + 1e-3  # am_adam lies above af_bella, so away is down


def test_a_cross_style_has_the_timbre_of_one_and_the_prosody_of_the_other(voices: Voices) -> None:
    crossed = voices.get("af_heart", style="bm_george+bm_lewis").style(7)
    assert np.array_equal(crossed[:128], voices.get("af_heart").style(7)[:128])
    assert np.array_equal(crossed[128:], voices.get("bm_george+bm_lewis").style(7)[128:])


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("af_hart", "af_heart"), ("AF_BELA", "af_bella"), ("af_bella+am_adem(2)", "am_adam"), ("george", "bm_george")],
)
def test_an_unknown_voice_is_an_error_with_the_nearest_names(wrong: str, hint: str) -> None:
    with pytest.raises(UnknownVoice, match=hint) as caught:
        parse_blend(wrong)
    assert caught.value.param == "voice"


@pytest.mark.parametrize(
    "wrong",
    [
        *("", " ", "+", "af_sky+", "+af_sky", "af_sky++af_bella", "af_sky(", "af_sky()", "af_sky af_bella"),
        *("../af_sky", "af_sky\0", "af_sky(0)", "af_sky(-1)", "af_sky(nan)", "af_sky(inf)", "af_sky(x)", "http://x/y.bin"),
        "+".join(["af_sky"] * 9),
    ],
)  # fmt: skip
def test_anything_that_is_not_a_voice_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput):
        parse_blend(wrong)


@given(st.text(max_size=60))
def test_any_text_is_a_blend_of_known_voices_or_invalid_input(text: str) -> None:
    try:
        terms = parse_blend(text)
    except InvalidInput:
        return
    assert {name for name, _ in terms} <= set(NAMES)


def test_a_missing_file_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="tutti pull"):
        Voices(tmp_path).get("af_heart")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("af_hart", "did you mean af_heart"),
        ("emma", "the nearest is bf_emma"),
        ("Gorge", "did you mean bm_george?"),
        ("Richelle", "list them with"),  # spelled like am_michael, but no help to anyone
        ("Rachel", "the nearest is af_"),
        ("en-US-JennyNeural", "unknown voice 'en-US-JennyNeural'; the nearest is af_heart"),
        ("en-US-SomeoneNeural", "voices for its language: af_heart, af_bella, am_michael, am_fenrir"),
        ("de-DE-KatjaNeural", "Kokoro has no voice for de-DE"),
        ("am_nobody", "list them with"),
    ],
)
def test_a_hint_names_voices_that_are_spelled_alike(wrong: str, hint: str) -> None:
    with pytest.raises(UnknownVoice, match=re.escape(hint)):
        parse_blend(wrong)


def test_similar_voices_are_those_with_similar_styles(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name in NAMES:
        rng.normal(size=(510, 256)).astype("<f4").tofile(tmp_path / f"{name}.bin")
    (tmp_path / "own").mkdir()
    near = np.fromfile(tmp_path / "af_sky.bin", "<f4").reshape(510, 256) * 1.1
    np.save(tmp_path / "own" / "kira.npy", near)
    voices = Voices(tmp_path, tmp_path / "own")
    alike = voices.similar("af_sky")
    assert {name for name, _ in alike} == {*NAMES, "kira"} - {"af_sky"}
    assert alike[0][0] == "kira"
    assert alike[0][1] > 0.9 > alike[1][1]
    assert voices.similar("kira")[0][0] == "af_sky"
