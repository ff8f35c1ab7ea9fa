"""Kana in the symbols that Kokoro was trained on."""

_VOWELS = dict(zip("あいうえお", ("a", "i", "ɯ", "e", "o"), strict=True))
_SMALL = dict(zip("ぁぃぅぇぉゃゅょゎ", ("a", "i", "ɯ", "e", "o", "ja", "jɯ", "jo", "βa"), strict=True))


def _row(kana: str, *sounds: str) -> dict[str, str]:
    return dict(zip(kana, sounds, strict=True))


_SINGLE = (
    _VOWELS
    | _SMALL
    | _row("かきくけこ", "ka", "kʲi", "kɯ", "ke", "ko")
    | _row("がぎぐげご", "ɡa", "ɡʲi", "ɡɯ", "ɡe", "ɡo")
    | _row("さしすせそ", "sa", "ɕi", "sɨ", "se", "so")
    | _row("ざじずぜぞ", "ʣa", "ʥi", "zɨ", "ʣe", "ʣo")
    | _row("たちつてと", "ta", "ʨi", "ʦɨ", "te", "to")
    | _row("だぢづでど", "da", "ʥi", "zɨ", "de", "do")
    | _row("なにぬねの", "na", "ɲi", "nɯ", "ne", "no")
    | _row("はひふへほ", "ha", "çi", "ɸɯ", "he", "ho")
    | _row("ばびぶべぼ", "ba", "bʲi", "bɯ", "be", "bo")
    | _row("ぱぴぷぺぽ", "pa", "pʲi", "pɯ", "pe", "po")
    | _row("まみむめも", "ma", "mʲi", "mɯ", "me", "mo")
    | _row("らりるれろ", "ɾa", "ɾʲi", "ɾɯ", "ɾe", "ɾo")
    | _row("やゆよわゐゑを", "ja", "jɯ", "jo", "βa", "i", "e", "o")
    | _row("ゔゕゖ", "vɯ", "ka", "ke")
)
# With a small kana behind it, a kana keeps only its consonant; the vowel is that of the small one.
_CONSONANTS = (
    _row("きぎしじちぢにひびぴみり", "kʲ", "ɡʲ", "ɕ", "ʥ", "ʨ", "ʥ", "ɲ", "ç", "bʲ", "pʲ", "mʲ", "ɾʲ")
    | {"く": "kᵝ", "ぐ": "ɡᵝ", "つ": "ʦ", "ふ": "ɸ", "ゔ": "v", "う": "β", "て": "tʲ", "で": "dʲ"}
    | {"と": "t", "ど": "d"}
)
_PAIRS = (
    {k + "ゃ": _CONSONANTS[k] + "a" for k in "きぎしじちぢにひびぴみり"}
    | {k + "ゅ": _CONSONANTS[k] + "ɨ" for k in "きぎしじちぢにひびぴみりてで"}
    | {k + "ょ": _CONSONANTS[k] + "o" for k in "きぎしじちぢにひびぴみり"}
    | {k + "ぇ": _CONSONANTS[k] + "e" for k in "きしじちにひくぐつふゔう"}
    | {k + "ぁ": _CONSONANTS[k] + "a" for k in "くぐつふゔ"}
    | {k + "ぉ": _CONSONANTS[k] + "o" for k in "くぐつふゔう"}
    | {k + "ぃ": _CONSONANTS[k] + "i" for k in "くぐうてで"}
    | {k + "ぅ": _CONSONANTS[k] + "ɯ" for k in "とど"}
    | {"いぇ": "je", "つぃ": "ʦʲi", "ふぃ": "ɸʲi", "ゔぃ": "vʲi"}
    | {"ふゅ": "ɸʲɨ", "ふょ": "ɸʲo", "ゔゅ": "bʲɨ", "ゔょ": "bʲo"}
)
# The moraic nasal assimilates to the consonant that follows.
_NASAL = dict.fromkeys("mpb", "m") | dict.fromkeys("kɡ", "ŋ") | dict.fromkeys("ɲʨʥ", "ɲ") | dict.fromkeys("ntdɾz", "n")
_VOICED = dict(zip("かきくけこさしすせそたちつてとはひふへほ", "がぎぐげござじずぜぞだぢづでどばびぶべぼ", strict=True))


def to_hiragana(text: str) -> str:
    """Convert katakana, also small phonetic and half-width ones, to hiragana; write out repeat marks."""
    from jaconv import h2z, kata2hira

    wide = h2z(text).translate(_SMALL_KATAKANA)
    out = ""
    for kana in kata2hira(wide):
        if kana in "ゝヽ" and out:
            kana = out[-1]
        elif kana in "ゞヾ" and out:
            kana = _VOICED.get(out[-1], out[-1])
        out += _VA_ROW.get(kana, kana)
    return out


_SMALL_KATAKANA = str.maketrans("ㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿ", "クシストヌハヒフヘホムラリルレロ")
_VA_ROW = {"ヷ": "ゔぁ", "ヸ": "ゔぃ", "ヹ": "ゔぇ", "ヺ": "ゔぉ"}


def symbols(kana: str) -> tuple[str, tuple[str, ...]]:
    """Return hiragana in Kokoro's symbols, and the characters that are not kana."""
    morae: list[str] = []
    dropped: list[str] = []
    i = 0
    while i < len(kana):
        single, pair = kana[i], kana[i : i + 2]
        i += 1
        if pair in _PAIRS:
            morae.append(_PAIRS[pair])
            i += 1
        elif len(pair) == 2 and pair[1] in "ぁぃぅぇぉゃゅょ" and single in _SINGLE and single not in _VOWELS | _SMALL:
            morae.append(_SINGLE[single][:-1] + _SMALL[pair[1]])
            i += 1
        elif single in _SINGLE:
            morae.append(_SINGLE[single])
        elif single in "っんー":
            morae.append({"っ": "ʔ", "ん": "N", "ー": "ː"}[single])
        else:
            dropped.append(single)
    for at, mora in enumerate(morae):
        if mora == "N":
            following = morae[at + 1] if at + 1 < len(morae) else ""
            morae[at] = _NASAL.get(following[:1], "ɴ")
    return "".join(morae), tuple(dropped)
