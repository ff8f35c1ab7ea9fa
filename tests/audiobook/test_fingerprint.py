"""The fingerprint changes with everything that changes the sound, and with nothing else."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tutti import __version__
from tutti.audiobook.book import Chapter
from tutti.audiobook.fingerprint import fingerprints, voice_hashes
from tutti.audiobook.passages import passages
from tutti.engine.checkpoints import audio_fingerprint
from tutti.errors import InvalidInput
from tutti.settings import Settings
from tutti.speech import SpeechParams
from tutti.voices import Voices

CHAPTERS = (Chapter("one", "Deep water runs."),)
PARAMS = SpeechParams("af_heart")
CPU = {"device": "cpu", "backend": "onnx", "precision": "fp32", "vocoder": "exact"}


def of(params: SpeechParams = PARAMS, chapters: tuple[Chapter, ...] = CHAPTERS, **chosen: Any) -> str:
    settings = Settings(**{**CPU, **chosen})
    return fingerprints(params, chapters, list(passages(chapters)), audio_fingerprint(settings), {})[0]


def passage_keys(params: SpeechParams, chapters: tuple[Chapter, ...]) -> list[str]:
    return fingerprints(params, chapters, list(passages(chapters)), {}, {})[1]


def test_it_is_the_same_for_the_same_sound(tmp_path: Path) -> None:
    assert of() == of() == of(port=1, threads=2, home=tmp_path, voice="am_adam", lexicon=None)


def test_it_changes_with_the_text_the_params_and_the_settings() -> None:
    others = (
        of(chapters=(Chapter("one", "Deep water ran."),)),
        of(replace(PARAMS, speed=1.1)),
        of(replace(PARAMS, voice_names={"narrator": "am_adam"})),
        of(precision="int8"),
        of(g2p_url="http://localhost:8881"),
        of(vocoder="light"),
        of(code_blocks="skip"),
        of(replace(PARAMS, code_blocks="skip")),
        of(replace(PARAMS, normalization={"normalize": False})),
        of(replace(PARAMS, model="kokoro-light")),
    )
    assert len({of(), *others}) == 1 + len(others)


@pytest.mark.parametrize(
    ("word", "text", "applies"),
    [
        ("Kira", "Kira's bridge.", True), ("kira", "KIRA ran.", True), ("New York", "In New\nYork.", True),
        ("/K.*a/", "Anything.", True), ("東京", "彼は東京にいる。", True), ("co-op", "The co\u00adop, a co-op.", True),
        ("fish", "A ﬁsh.", True), ("Kira", "Tom ran.", False), ("東京", "彼は京都にいる。", False),
    ],
)  # fmt: skip
def test_an_entry_of_a_lexicon_changes_the_passages_that_have_its_word(word: str, text: str, applies: bool) -> None:
    def key(lexicon: dict[str, str]) -> str:
        chapters = (Chapter("one", text),)
        (only,) = passage_keys(replace(PARAMS, lexicon=lexicon), chapters)
        return only

    assert (key({}) != key({word: "other words"})) == applies


def test_no_two_passages_have_one_key() -> None:
    chapters = (Chapter("one", "It fell."), Chapter("two", "It fell."))
    keys = passage_keys(PARAMS, chapters)
    assert len(set(keys)) == 2
    assert keys[0] == passage_keys(PARAMS, chapters[1:])[0]
    assert not set(keys) & set(passage_keys(replace(PARAMS, speed=1.1), chapters))


def test_it_changes_with_the_own_voices_that_speak(tmp_path: Path) -> None:
    def of_voices(kira: float, tom: float) -> str:
        for name, value in (("kira", kira), ("tom", tom)):
            np.save(tmp_path / f"{name}.npy", np.full((510, 256), float(value)))
        voices, plan = Voices(tmp_path, tmp_path), list(passages(chapters))
        return fingerprints(params, chapters, plan, {}, voice_hashes(params, chapters, voices))[0]

    params = SpeechParams("af_sky+tom", voice_names={"narrator": "kira"})
    chapters = (Chapter("one", "Deep [voice:narrator]water runs."),)
    assert of_voices(1, 1) != of_voices(2, 1) != of_voices(2, 2)
    assert of_voices(1, 1) == of_voices(1, 1)
    params, chapters = PARAMS, CHAPTERS
    assert of_voices(1, 1) == of_voices(2, 2)


def test_it_is_that_of_a_version_that_had_fewer_fields() -> None:
    """A book that was begun before a field existed is resumed, as long as the field is at its default."""
    stored = {
        "voice": "af_heart", "style": None, "speed": 1.0, "pitch": 0.0, "pitch_range": 1.0, "energy": 0.0,
        "emotion": None, "language": None, "lexicon": {}, "voice_names": {}, "seed": None, "model": None,
    }  # fmt: skip
    model = {"backend": "onnx", "device": "cpu", "precision": "fp32", "compile": "off"}
    content = json.dumps({**stored, "sound": {"models": model, "g2p": None, "lexicon": None}}, sort_keys=True)
    parts = (__version__, content, *(chapter.text for chapter in CHAPTERS), *map(repr, passages(CHAPTERS)))
    data = b"".join(len(part.encode()).to_bytes(8) + part.encode() for part in parts)
    assert of() == sha256(data).hexdigest()


def test_it_does_not_change_with_checkpoints_that_are_not_used() -> None:
    assert of() == of(extra_precisions="int8")
    named = replace(PARAMS, model="kokoro-int8")
    assert of(named, extra_precisions="int8") != of(extra_precisions="int8")


def test_it_changes_with_the_content_of_the_lexicon_and_not_with_its_place(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_text("tutti\ttˈuti\n")
    second.write_text("tutti\ttˈuti\n")
    before = of(lexicon=first)
    assert of() != before == of(lexicon=second)
    second.write_text("tutti\ttˈʊti\n")
    assert of(lexicon=second) != before
    with pytest.raises(InvalidInput, match="cannot read"):
        of(lexicon=tmp_path / "missing.tsv")


def test_auto_is_resolved_so_that_naming_the_same_model_does_not_start_over() -> None:
    models = audio_fingerprint(Settings(device="cpu"))["models"]
    assert isinstance(models, dict)
    resolved = {name: value for name, value in models["kokoro"].items() if name in Settings.model_fields}
    assert "auto" not in resolved.values()
    assert audio_fingerprint(Settings(**resolved))["models"] == models


def test_it_changes_with_a_model_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    path.write_bytes(b"one")
    before = of(models=f"mine={path}")
    assert before == of(models=f"mine={path}") != of()
    path.write_bytes(b"another")
    assert of(models=f"mine={path}") != before
