"""Names of other services stand for voices of Kokoro in the same language and, where it has one, of the same gender."""

import pytest

from tutti.cloud_voices import LOCAL_NAMES, PLAIN_NAMES, STAND_INS, stand_in
from tutti.server.aliases import OPENAI_VOICES
from tutti.voices import NAMES, gender


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("en-US-JennyNeural", "af"),
        ("EN-us-jennyneural", "af"),
        ("en-US-AvaMultilingualNeural", "af"),
        ("en-US-Ava:DragonHDLatestNeural", "af"),
        ("Microsoft Server Speech Text to Speech Voice (en-US, GuyNeural)", "am"),
        ("en-GB-RyanNeural", "bm"),
        ("en-AU-NatashaNeural", "bf"),
        ("es-MX-JorgeNeural", "em"),
        ("fr-FR-HenriNeural", "ff"),  # Kokoro has no man who speaks French
        ("pt-BR-AntonioNeural", "pm"),
        ("ja-JP-KeitaNeural", "jm"),
        ("hi-IN-SwaraNeural", "hf"),
        ("it-IT-ElsaNeural", "if"),
        ("zh-CN-YunyangNeural", "zm"),
        ("Joanna", "af"),
        ("Matthew", "am"),
        ("Amy", "bf"),
        ("Brian", "bm"),
        ("Lucia", "ef"),
        ("Léa", "ff"),
        ("Rachel", "af"),
        ("en-US-Wavenet-D", "am"),
        ("en-US-Standard-C", "af"),
        ("en-GB-Neural2-B", "bm"),
        ("cmn-CN-Wavenet-B", "zm"),
        ("en-US-Chirp3-HD-Puck", "am"),
    ],
)
def test_language_and_gender_are_kept(name: str, kind: str) -> None:
    voice = stand_in(name)
    assert voice in NAMES
    assert voice[:2] == kind


@pytest.mark.parametrize(
    ("name", "voice"),
    [
        ("zh-CN-XiaoxiaoNeural", "zf_xiaoxiao"),
        ("Emma", "bf_emma"),
        ("en-US-Chirp3-HD-Kore", "af_kore"),
        ("en-US-Chirp3-HD-Fenrir", "am_fenrir"),
    ],
)
def test_a_voice_of_the_same_name_is_preferred(name: str, voice: str) -> None:
    assert stand_in(name) == voice


@pytest.mark.parametrize(
    "pair", [("en-US-JennyNeural", "en-US-AriaNeural"), ("en-US-GuyNeural", "en-US-DavisNeural"), ("Joanna", "Salli")]
)
def test_two_speakers_of_a_dialogue_stay_two(pair: tuple[str, str]) -> None:
    assert stand_in(pair[0]) != stand_in(pair[1])


@pytest.mark.parametrize(
    "name", ["", "en-US", "de-DE-KatjaNeural", "en-US-SomebodyNeural", "af_heart", "af_bella-am_adam", "a" * 10_000]
)
def test_anything_else_has_no_stand_in(name: str) -> None:
    assert stand_in(name) is None


def test_the_tables_name_voices_of_kokoro_and_never_hide_a_name_of_ours() -> None:
    for letter, by_gender in STAND_INS.items():
        for kind, voices in by_gender.items():
            assert set(voices) <= set(NAMES)
            assert all(voice[0] == letter and gender(voice)[0] == kind for voice in voices)
    plain = [name for by_gender in PLAIN_NAMES.values() for names in by_gender.values() for name in names]
    assert len(plain) == len(set(plain))
    assert not set(plain) & ({*NAMES, *OPENAI_VOICES})
    local = [name for names in LOCAL_NAMES.values() for name in names]
    assert len(local) == len(set(local))
