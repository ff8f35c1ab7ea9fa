"""A voice like a clip: the encoder computes what PyTorch does, the voice is a blend, and a bad clip names its cure."""

import io
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from tutti.audio.clip import read_clip
from tutti.cli import main as cli
from tutti.cli.voices import CONSENT, SENTENCES
from tutti.errors import InvalidInput, MissingExtra
from tutti.likeness import (
    SpeakerEncoder,
    blend_like,
    fitted_map,
    likeness,
    speaker_encoder,
    spoken,
    stock_similarities,
    unit,
)
from tutti.model.tone import ToneModel
from tutti.speech import SAMPLE_RATE, Samples, Utterance
from tutti.text import vocab
from tutti.torch_file import read_tensors
from tutti.voice_file import Table, read_voice
from tutti.voices import NAMES, Voices

N_VOICES = len(NAMES)


def tones(seconds: float) -> Samples:
    tokens = vocab.encode(SENTENCES[0])
    return np.resize(ToneModel().speak([Utterance(tokens, np.zeros(256, "f4"))]).samples[0], int(seconds * SAMPLE_RATE))


def save_clip(path: Path, seconds: float, level: float = 0.5) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((tones(seconds) * level * 32767).astype("<i2").tobytes())
    return path


def encoder(size: int = 8) -> SpeakerEncoder:
    rng = np.random.default_rng(3)
    shapes = {"weight_ih_l0": (4 * size, 40), "weight_hh_l0": (4 * size, size), "bias_ih_l0": 4 * size}
    state = {f"lstm.{name}": rng.normal(0, 0.3, shape).astype("f4") for name, shape in shapes.items()}
    linear = {"linear.weight": rng.normal(size=(256, size)).astype("f4"), "linear.bias": np.ones(256, "f4")}
    return SpeakerEncoder.of({**state, "lstm.bias_hh_l0": np.zeros(4 * size, "f4"), **linear})


def test_the_encoder_computes_what_pytorch_does() -> None:
    torch = pytest.importorskip("torch")
    lstm, linear = torch.nn.LSTM(40, 16, 3, batch_first=True), torch.nn.Linear(16, 12)
    state = {f"lstm.{key}": value for key, value in lstm.state_dict().items()}
    state |= {f"linear.{key}": value for key, value in linear.state_dict().items()}
    file = io.BytesIO()
    optimiser = torch.optim.Adam(lstm.parameters()).state_dict()
    training_run = {"step": 7, "model_state": state, "optimizer_state": optimiser}
    torch.save(training_run, file, _use_new_zipfile_serialization=False)
    inputs = torch.randn(2, 20, 40)
    with torch.no_grad():
        expected = torch.nn.functional.normalize(torch.relu(linear(lstm(inputs)[0][:, -1]))).numpy()
    ours = SpeakerEncoder.of(read_tensors(file.getvalue(), "model_state")).embed(inputs.numpy())
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_a_file_without_these_tensors_is_refused() -> None:
    with pytest.raises(InvalidInput, match="damaged"):
        read_tensors(b"no file of PyTorch", "model_state")


def test_the_loudness_of_a_clip_and_its_pauses_do_not_count() -> None:
    heard, pause, embed = tones(4), np.zeros(2 * SAMPLE_RATE, "f4"), encoder()
    assert embed(heard) @ embed(0.1 * heard) > 0.9999
    paused = np.concatenate([pause, heard, pause, heard, pause])
    assert len(spoken(paused)) < 2 * len(heard) + SAMPLE_RATE
    assert np.linalg.norm(embed(heard)) == pytest.approx(1, abs=1e-5)


def test_the_voice_is_a_blend_whose_shares_add_up_to_one() -> None:
    embedding = fitted_map()["stock"][0]
    same = np.full((N_VOICES, 510, 256), 0.7, np.float32)
    np.testing.assert_allclose(blend_like(embedding, same), 0.7, atol=1e-3)
    assert not np.allclose(
        blend_like(embedding, same), blend_like(embedding, np.arange(N_VOICES)[:, None, None] * same)
    )


def test_what_a_voice_of_kokoros_says_gives_a_voice_of_mostly_itself() -> None:
    """Its own share is among the largest, of the timbre and for most voices."""
    shares = fitted_map()["stock"] @ fitted_map()["map"] + fitted_map()["offset"]
    ranks = (-shares[:, :N_VOICES]).argsort(axis=1).argsort(axis=1).diagonal()
    assert np.median(ranks) <= 2


def test_likeness_is_0_for_an_average_voice_and_grows_with_the_similarity() -> None:
    stock = stock_similarities(fitted_map()["stock"].mean(axis=0))
    assert likeness(float(stock.mean()), stock) == 0
    assert likeness(0.9, stock) > likeness(0.8, stock)


@pytest.mark.parametrize(
    ("seconds", "level", "cure"),
    [(2.5, 0.5, "at least 3 s"), (31, 0.5, "ffmpeg -i clip.wav -t 15"), (4, 0, "silent")],
)
def test_a_clip_that_does_not_do_names_the_cure(tmp_path: Path, seconds: float, level: float, cure: str) -> None:
    with pytest.raises(InvalidInput, match=cure):
        read_clip(save_clip(tmp_path / "clip.wav", seconds, level))


def test_a_file_that_is_no_audio_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clip.wav").write_text("no audio")
    for name in ("clip.wav", "gone.wav"):
        with pytest.raises(InvalidInput, match="as audio"):
            read_clip(tmp_path / name)


def test_without_the_encoder_its_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resemblyzer", None)
    monkeypatch.setattr("tutti.likeness.find_spec", lambda _name: None)
    speaker_encoder.cache_clear()
    with pytest.raises(MissingExtra, match="pip install --no-deps Resemblyzer"):
        speaker_encoder()


def test_the_command_writes_a_voice_and_names_its_likeness_and_the_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for name in NAMES:
        rng.normal(0, 0.3, (510, 256)).astype("<f4").tofile(tmp_path / f"{name}.bin")

    def speak(table: Table) -> list[Samples]:
        return list(ToneModel().speak([Utterance(vocab.encode(SENTENCES[0]), table[49])]).samples)

    monkeypatch.setattr("tutti.cli.voices.speak_sentences", speak)
    monkeypatch.setattr("tutti.cli.voices.open_voices", lambda: Voices(tmp_path, tmp_path / "own"))
    monkeypatch.setattr("tutti.likeness.speaker_encoder", encoder)
    save_clip(tmp_path / "ann.wav", 4)
    monkeypatch.setattr(sys, "argv", ["tutti", "voices", "like", "ann.wav", "--name", "ann"])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().out
    assert "ann.pt: likeness " in said
    assert "the nearest stock voice" in said
    assert CONSENT in said
    table = read_voice(tmp_path / "ann.pt")
    assert np.array_equal(Voices(tmp_path, tmp_path / "own").get("ann").table, table)
    assert unit(table[0]) @ unit(table[-1]) < 0.99
