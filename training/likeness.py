"""The map from the embedding of a speaker to a blend of Kokoro's voices, for tutti/likeness.py.

    python -m training.likeness tutti/likeness.npz     ten minutes on one core

Kokoro's voices and random blends of them say three sentences, light text and nano vocoder. A ridge regression goes from
the embedding of what is heard to the shares of the voices, in their principal components.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tutti.cli.voices import SENTENCES
from tutti.likeness import speaker_encoder, unit
from tutti.model.choice import choose, load
from tutti.settings import load as load_settings
from tutti.speech import STYLE_SIZE, Utterance
from tutti.text import vocab
from tutti.voices import NAMES, Voices
from tutti.weights import MODELS, Store

COMPONENTS = (40, 20)  # of the timbre, of the prosody
RIDGE = 0.3
NOISE = 0.4  # deviations of the voices, in each component
HALF = STYLE_SIZE // 2

Floats = NDArray[np.floating]


def components(tables: Floats, size: int) -> Floats:  # [54, 510, 128] -> [54, size]
    """The voices in their first principal components, each with deviation 1."""
    means = tables.mean(axis=1)
    places, _, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    return places[:, :size] * np.sqrt(len(tables))


def random_blend(rng: np.random.Generator, timbre: Floats, prosody: Floats) -> Floats:
    """Coordinates of a blend of four voices or a little beyond; the prosody is that of others in two of five."""

    def blend(voices: Floats, n: int) -> Floats:
        return rng.dirichlet(np.full(n, 0.6)) @ voices[rng.choice(len(voices), n, replace=False)]

    both = rng.uniform(0.8, 1.5) * blend(np.hstack([timbre, prosody]), 4)
    if rng.random() < 0.4:
        both[timbre.shape[1] :] = blend(prosody, 3)
    return both + rng.normal(0, NOISE, both.shape)


def ridge(inputs: Floats, outputs: Floats) -> tuple[Floats, Floats]:
    """Weight and offset."""
    centred, middle = inputs - inputs.mean(axis=0), outputs.mean(axis=0)
    weight = np.linalg.solve(centred.T @ centred + RIDGE * np.eye(centred.shape[1]), centred.T @ (outputs - middle))
    return weight, middle - inputs.mean(axis=0) @ weight


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=600, help="random blends")
    args = parser.parse_args()
    rng, encode, settings = np.random.default_rng(1), speaker_encoder(), load_settings({})[0]
    chosen = choose("onnx", "cpu", vocoder="nano")
    model = load(Store(settings.home).path(MODELS[chosen.weights]), chosen, threads=1)
    voices = Voices(settings.home / "voices")
    tables = np.stack([voices.get(name).table for name in NAMES])
    timbre, prosody = components(tables[:, :, :HALF], COMPONENTS[0]), components(tables[:, :, HALF:], COMPONENTS[1])
    split, scale = COMPONENTS[0], 1 / len(NAMES)

    def shares(places: Floats) -> Floats:  # [.., 60] -> [.., 108]
        return np.concatenate([places[..., :split] @ timbre.T, places[..., split:] @ prosody.T], axis=-1) * scale

    def hear(places: Floats, sentence: int) -> Floats:
        symbols = SENTENCES[sentence]
        one, other = scale + shares(places).reshape(2, -1)
        style = tables[:, len(symbols) - 1]
        row = Utterance(vocab.encode(symbols), np.hstack([one @ style[:, :HALF], other @ style[:, HALF:]], dtype="f4"))
        return encode(model.speak([row]).samples[0])

    places = list(np.repeat(np.hstack([timbre, prosody]), len(SENTENCES), axis=0))
    places += [random_blend(rng, timbre, prosody) for _ in range(args.rows)]
    heard = np.stack([hear(each, n % len(SENTENCES)) for n, each in enumerate(places)])
    stock = unit(heard[: len(NAMES) * len(SENTENCES)].reshape(len(NAMES), len(SENTENCES), -1).mean(axis=1))
    means = [heard[n :: len(SENTENCES)].mean(axis=0) for n in range(len(SENTENCES))]
    for n, mean in enumerate(means):  # what a sentence changes is no speaker's
        heard[n :: len(SENTENCES)] += np.mean(means, axis=0) - mean
    weight, offset = ridge(heard, np.stack(places))
    arrays = {"map": shares(weight).astype("f2"), "offset": shares(offset).astype("f4"), "stock": stock.astype("f2")}
    np.savez(args.out, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
