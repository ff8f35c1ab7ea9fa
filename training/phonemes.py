"""Words of every language in Kokoro's symbols, by tutti's own front end: the vocabulary of the training sentences.

python -m training.phonemes --to words.json

Needs `pip install wordfreq` for lists of common words, and the official lexicons (`tutti pull`) for English.
"""

import argparse
import json
from pathlib import Path

from tutti.settings import load
from tutti.text import chunks, vocab
from tutti.text.g2p import G2P
from tutti.text.language import LANGUAGES

N_WORDS = 3000  # of each language
WORDFREQ_NAMES = {"en-us": "en", "en-gb": "en", "pt-br": "pt"}


def pronounce(words: list[str], code: str, g2p: G2P) -> list[str]:
    """The phonemes of each word that is spoken with Kokoro's symbols alone."""
    spoken = []
    for word in words:
        phonemes = " ".join(chunk.phonemes for chunk in chunks(word, code, g2p.pronounce)).strip(" .")
        if phonemes and all(symbol in vocab.SYMBOLS for symbol in phonemes):
            spoken.append(phonemes)
    return list(dict.fromkeys(spoken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--n-words", type=int, default=N_WORDS)
    args = parser.parse_args()
    from wordfreq import top_n_list

    g2p = G2P(load({}, {})[0].home)
    words = {}
    for language in LANGUAGES:
        common = top_n_list(WORDFREQ_NAMES.get(language.code, language.code), args.n_words)
        words[language.letter] = pronounce([word for word in common if not word.isdigit()], language.code, g2p)
        print(language.code, len(words[language.letter]), words[language.letter][:5], flush=True)
    args.to.write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
