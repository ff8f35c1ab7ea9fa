"""Checkpoints of others as folders: symbols, voices and licence of their own, and the same speech."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import silent_voices, tone_engine
from tutti.engine.build import open_engine
from tutti.engine.checkpoint_folder import N_TOKENS, read_folder, translate
from tutti.engine.checkpoints import Checkpoints, checkpoint_folders, choose_checkpoints, open_voices
from tutti.errors import InvalidInput, UnknownVoice, WeightsUnavailable
from tutti.model.tone import ToneModel
from tutti.model.translated import TranslatedModel
from tutti.settings import Settings
from tutti.speech import Speech, SpeechParams, Utterance
from tutti.text import vocab
from tutti.voices import NAMES, Voices

rng = np.random.default_rng(3)
# Another order of the ids; the pad at both ends stays.
PERMUTED = {id: int(new) for id, new in enumerate([0, *(1 + rng.permutation(N_TOKENS - 1))])}
SYMBOLS = {symbol: PERMUTED[id] for symbol, id in vocab.SYMBOLS.items()}


def make_folder(folder: Path, symbols: Any = SYMBOLS, voices: dict[str, float] | None = None) -> Path:
    (folder / "voices").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"onnxConv")
    (folder / "config.json").write_text(json.dumps({"n_token": N_TOKENS, "vocab": symbols}))
    (folder / "README.md").write_text("---\nlanguage: fr\nlicense: apache-2.0\n---\n# A model\n")
    for name, value in (voices or {"martin": 2.0, "df_eva": 3.0}).items():
        np.save(folder / "voices" / f"{name}.npy", np.full((510, 256), value, np.float32))
    return folder


def test_a_folder_says_all_of_a_checkpoint(tmp_path: Path) -> None:
    folder = read_folder(make_folder(tmp_path / "fr"), "fr")
    assert folder.weights == tmp_path / "fr/model.onnx"
    assert folder.ids is not None
    assert folder.ids[:N_TOKENS] == tuple(PERMUTED[i] if i in vocab.SYMBOLS.values() else i for i in range(N_TOKENS))
    assert (folder.missing, folder.language, folder.licence) == (frozenset(), "fr", "apache-2.0")
    assert folder.voices == tmp_path / "fr/voices"
    (tmp_path / "fr/config.json").unlink()
    (tmp_path / "fr/README.md").unlink()
    bare = read_folder(tmp_path / "fr", "mine")
    assert (bare.ids, bare.language, bare.licence) == (None, None, "")


def test_symbols_beyond_kokoros_have_their_own_ids_or_stand_ins(tmp_path: Path) -> None:
    folder = read_folder(make_folder(tmp_path / "sv", {**vocab.SYMBOLS, "ʉ": 177, "ᵻ": 0}), "sv")
    assert folder.ids is not None
    assert folder.ids[vocab.IDS["ʉ"]] == 177
    assert "ʉ" not in folder.stand_ins
    assert folder.stand_ins["ɵ"] == "ʊ"
    assert read_folder(make_folder(tmp_path / "bare", None), "sv").stand_ins == vocab.STAND_INS


def test_a_checkpoint_with_bopomofo_has_its_own_chinese_and_its_voices_may_lie_beside_the_weights(
    tmp_path: Path,
) -> None:
    folder = read_folder(make_folder(tmp_path / "zh", {**vocab.SYMBOLS, "ㄅ": 30}), "zh")
    assert folder.language == "zh-1.1"
    assert folder.ids is not None
    assert folder.ids[vocab.IDS["ㄅ"]] == 30
    bare = make_folder(tmp_path / "bare")
    shutil.rmtree(bare / "voices")
    (bare / "sv_female.pt").write_bytes(b"voice")
    assert read_folder(bare, "sv").voices == bare


def test_a_table_that_is_kokoros_needs_no_translation() -> None:
    assert translate(vocab.SYMBOLS) is None


def test_a_symbol_that_a_checkpoint_lacks_is_a_pause_and_named(tmp_path: Path) -> None:
    fewer = {symbol: id for symbol, id in vocab.SYMBOLS.items() if symbol != "d"}
    folder = read_folder(make_folder(tmp_path / "m", fewer), "m")
    assert folder.missing == {"d"}
    assert folder.ids is not None
    assert folder.ids[vocab.SYMBOLS["d"]] == vocab.SYMBOLS[" "]


@pytest.mark.parametrize(
    "symbols", [[], {"ab": 1}, {"a": -1}, {"a": N_TOKENS}, {"a": "1"}, {"a": True}, {"a": 1.5}, "abc"]
)
def test_a_bad_table_is_refused(tmp_path: Path, symbols: Any) -> None:
    with pytest.raises(InvalidInput, match=r"config\.json"):
        read_folder(make_folder(tmp_path / "m", symbols), "m")


def test_weights_that_are_missing_or_several_are_named(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "m")
    shutil.move(folder / "model.onnx", folder / "a.pth")
    (folder / "b.pth").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"several \.pth files \(a\.pth, b\.pth\)"):
        read_folder(folder, "m")
    (folder / "a.pth").unlink()
    (folder / "b.pth").unlink()
    with pytest.raises(WeightsUnavailable, match="no weights"):
        read_folder(folder, "m")


def test_rows_run_with_the_ids_of_the_checkpoint() -> None:
    row = Utterance(vocab.encode("dip"), np.zeros(256, np.float32))
    ids = [PERMUTED[id] for id in range(N_TOKENS)]
    own = Utterance(np.array([ids[token] for token in row.tokens]), row.style)
    model = TranslatedModel(ToneModel(), ids)
    for made, expected in ((model.speak([row]), ToneModel().speak([own])),):
        assert np.array_equal(made.samples[0], expected.samples[0])
    assert np.array_equal(model.acoustic([row])[0].f0, ToneModel().acoustic([own])[0].f0)


def settings_of(tmp_path: Path, models: str) -> Settings:
    home = tmp_path / "home"
    if not home.exists():
        (home / "voices").mkdir(parents=True)
        silent_voices(home / "voices")
    return Settings(home=home, models=models, voices=tmp_path / "none")  # type: ignore[arg-type]


def test_each_model_has_its_voices(tmp_path: Path) -> None:
    make_folder(tmp_path / "m")
    settings = settings_of(tmp_path, f"kokoro=fp32,fr={tmp_path / 'm'}")
    assert choose_checkpoints(settings)["fr"].vocoder == "exact"
    assert choose_checkpoints(settings)["fr"].ids == checkpoint_folders(settings)["fr"].ids
    voices = open_voices(settings)
    assert [*voices.of_model("kokoro")] == [*voices.of_model(None)] == [*NAMES]
    own = voices.of_model("fr")
    assert {name: info.language for name, info in own.all().items()} == {"df_eva": "fr", "martin": "fr"}
    assert own.get("martin+df_eva").table[0, 0] == 2.5
    with pytest.raises(UnknownVoice, match="af_heart"):
        own.get("af_heart")
    assert [*open_voices(settings_of(tmp_path, f"fr={tmp_path / 'm'}")).of_model(None)] == ["df_eva", "martin"]


def test_a_model_without_voices_speaks_with_kokoros(tmp_path: Path) -> None:
    shutil.rmtree(make_folder(tmp_path / "m") / "voices")
    voices = open_voices(settings_of(tmp_path, f"kokoro=fp32,fr={tmp_path / 'm'}"))
    assert [*voices.of_model("fr")] == [*NAMES]


def test_the_engine_speaks_each_model_with_its_voices_and_names_what_it_lacks(tmp_path: Path) -> None:
    fewer = {symbol: id for symbol, id in vocab.SYMBOLS.items() if symbol != "d"}
    make_folder(tmp_path / "m", fewer)
    settings = settings_of(tmp_path, f"kokoro=fp32,fr={tmp_path / 'm'}")
    engine = tone_engine(open_voices(settings), others={"fr": ToneModel}, models=settings.models)

    async def speak(text: str, voice: str, model: str | None) -> Speech:
        return await engine.speak(text, SpeechParams(voice, model=model))

    async def run() -> None:
        async with engine:
            assert (await speak("deep", "martin", "fr")).dropped == ("d",)
            assert (await speak("deep", "af_heart", None)).dropped == ()
            for voice, model in (("martin", "kokoro"), ("af_heart", "fr"), ("martin", None)):
                with pytest.raises(UnknownVoice):
                    await speak("deep", voice, model)
            with pytest.raises(UnknownVoice):
                await speak("[voice:af_sky]deep", "martin", "fr")

    asyncio.run(run())


@pytest.mark.weights
def test_a_checkpoint_with_permuted_symbols_and_another_voice_speaks_exactly_as_the_original(
    home: Path, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path / "m")
    permute(home / "model.onnx", folder / "model.onnx")
    shutil.copy(home / "voices/af_sky.bin", folder / "voices/himmel.bin")
    settings = Settings(home=home, models=f"kokoro-exact,m={folder}", precision="fp32")  # type: ignore[arg-type]
    models = Checkpoints(tmp_path, tuple((n, c) for n, c in choose_checkpoints(settings).items() if n == "m"), 2)()
    official = Checkpoints(home, tuple(choose_checkpoints(settings).items())[:1], 2)()["kokoro-exact"]
    tokens = vocab.encode("ðə kwˈɪk bɹˈWn fˈɑks.")
    style = Voices(home / "voices").get("af_sky").style(len(tokens) - 2)
    own = open_voices(settings).of_model("m").get("himmel").style(len(tokens) - 2)
    assert np.array_equal(own, style)
    expected, made = official.speak([Utterance(tokens, style)]), models["m"].speak([Utterance(tokens, own)])
    assert np.array_equal(made.durations[0], expected.durations[0])
    assert np.array_equal(made.samples[0], expected.samples[0])


@pytest.mark.weights
def test_a_german_text_is_spoken_by_a_german_checkpoint_as_its_phonemes_are(home: Path, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "m")
    permute(home / "model.onnx", folder / "model.onnx")
    shutil.copy(home / "voices/af_sky.bin", folder / "voices/himmel.bin")
    settings = Settings(home=home, models=f"kokoro=exact,de={folder}", threads=1)  # type: ignore[arg-type]

    async def speak(text: str, **params: Any) -> Speech:
        return await engine.speak(text, SpeechParams(**params))

    async def run() -> tuple[Speech, Speech]:
        async with engine:
            german = await speak("Am 3. Mai kostet es 2,50 €.", voice="himmel", model="de")
            sounds = "am dɾˈɪtən mˈI kˈɔstət ɛs ʦvˈI ˈɔøroː fˈynfʦɪç sˈɛnt"
            return german, await speak(f"[x](/{sounds}/).", voice="af_sky", model="kokoro")

    engine = open_engine(settings)
    made, expected = asyncio.run(run())
    assert np.array_equal(made.samples, expected.samples)


def permute(original: Path, to: Path) -> None:
    """Write the official graph with the ids of the other table."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(original)
    tables = [value for value in graph.graph.initializer if value.dims and value.dims[0] == N_TOKENS]
    assert len(tables) == 2  # of PL-BERT and of the text encoder
    for table in tables:
        old = numpy_helper.to_array(table)
        new = old.copy()
        for id, place in PERMUTED.items():
            new[place] = old[id]
        table.CopyFrom(numpy_helper.from_array(new, table.name))
    onnx.save(graph, to)
