"""Train light, the fast vocoder, for a checkpoint of others: `make light CHECKPOINT=/path/folder`.

    python -m scripts.train_light /path/folder --work runs/mine

Needs a CUDA device with 80 GB for 25 minutes, `pip install wordfreq` for common words of the language, and, for the
loss of the speaker, Resemblyzer (docs/light.md). The folder is one that TUTTI_MODELS takes: weights, `config.json`,
voices; `light.npz` is written into it. The training begins with the network of the package.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tutti.engine.checkpoint_folder import LIGHT as FILE
from tutti.engine.checkpoint_folder import N_TOKENS, CheckpointFolder, read_folder
from tutti.model.light.weights import PATH as LIGHT_WEIGHTS
from tutti.model.torch.kokoro import weights as kokoro_weights
from tutti.own_voices import OwnVoices
from tutti.settings import load
from tutti.text.g2p import G2P

EMBEDDINGS = ("bert.embeddings.word_embeddings.weight", "text_encoder.embedding.weight")  # rows by the id of a symbol
GROUP = "x"  # the voices and the words of one checkpoint belong together
MEL_DB = 1.3  # mean log-mel distance of held-out rows, the limit of light for Kokoro
NEEDS = "needs a CUDA device with 80 GB, {minutes:.0f} minutes and 5 more; reads {folder}, writes {out}"


def prepare(folder: CheckpointFolder, words: list[str], data: Path) -> None:
    """Write what the training reads: the weights in the order of Kokoro's symbols, the voices and the words."""
    from training import distil
    from training.rows import VoiceTables

    data.mkdir(parents=True, exist_ok=True)
    state = kokoro_weights.read_state(folder.weights)
    if folder.ids is not None:
        state |= {name: state[name][list(folder.ids[:N_TOKENS])] for name in EMBEDDINGS}
    kokoro_weights.write_archive(state, data / distil.KOKORO)
    own = OwnVoices(folder.voices, taken=None)
    tables = {f"{GROUP}_{name}": own.table(voice) for name, voice in own.all().items()}
    VoiceTables(tuple(tables), np.stack(list(tables.values()))).write(data / distil.VOICES)
    if find_spec("resemblyzer"):
        distil.write_encoder(data / distil.SPEAKER)
    (data / distil.WORDS).write_text(json.dumps({GROUP: words}, ensure_ascii=False), encoding="utf-8")


def training_arguments(data: Path, run: Path, seconds: float, start: Path) -> list[str]:
    """Return the arguments of `python -m training.distil`."""
    paths = ("--data", data, "--out", run, "--start", start)
    return ["train", *map(str, paths), "--seconds", str(seconds), "--held-out", "60"]


def check_gate(run: Path) -> None:
    """Print the last score, and whether it is as near to the exact vocoder as light is for Kokoro."""
    score = json.loads((run / "curve.json").read_text("utf-8"))[-1]
    verdict = "holds" if score["mel_db"] <= MEL_DB else "does not hold: train longer, or listen before you use it"
    print(f"log-mel distance {score['mel_db']:.2f} dB on held-out rows; limit {MEL_DB} dB: {verdict}")


def common_words(code: str) -> list[str]:
    """Return the common words of a language in phonemes."""
    from wordfreq import top_n_list

    from training.phonemes import N_WORDS, WORDFREQ_NAMES, pronounce

    words = top_n_list(WORDFREQ_NAMES.get(code, code.partition("-")[0]), N_WORDS)
    return pronounce([word for word in words if not word.isdigit()], code, G2P(load({}, {})[0].home))


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a folder that TUTTI_MODELS takes")],
    work: Annotated[Path, typer.Option(help="for data and the run")] = Path("runs/light"),
    seconds: Annotated[float, typer.Option(help="of training")] = 1200,
    language: Annotated[str | None, typer.Option(help="code; default: that of its card")] = None,
) -> None:
    from training.export import export

    folder, out = read_folder(checkpoint, checkpoint.name, language), checkpoint / FILE
    print(NEEDS.format(minutes=seconds / 60, folder=checkpoint, out=out), flush=True)
    prepare(folder, common_words(folder.language or "en-us"), work / "data")
    arguments = training_arguments(work / "data", work / "run", seconds, LIGHT_WEIGHTS)
    subprocess.run([sys.executable, "-m", "training.distil", *arguments], check=True)
    check_gate(work / "run")
    export(work / "run" / "light.npz", out)


if __name__ == "__main__":
    typer.run(main)
