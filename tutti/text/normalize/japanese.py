"""Japanese normalisation: figures as katakana together with their counter, which changes the sound of the number.

Sounds after the table 数詞+助数詞の発音とアクセント一覧表 in the appendix of NHK日本語発音アクセント新辞典 (2016);
where it allows two (八回), either.
"""

import re
import unicodedata

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.address_words import ADDRESS, capitals, spell
from tutti.text.normalize.cardinals import words

_DIGITS = ("ゼロ", "イチ", "ニ", "サン", "ヨン", "ゴ", "ロク", "ナナ", "ハチ", "キュー")
_HUNDREDS = {1: "ヒャク", 3: "サンビャク", 6: "ロッピャク", 8: "ハッピャク"}
_THOUSANDS = {1: "セン", 3: "サンゼン", 8: "ハッセン"}
_GROUPS = ("", "マン", "オク", "チョー")
MAX_DIGITS = 16  # longer numbers are spoken digit by digit

# The reading of each counter; of some, the numbers with an irregular reading.
_REGULAR = words(
    "分 フン 本 ホン 匹 ヒキ 杯 ハイ 回 カイ 歩 ホ 泊 ハク 話 ワ 丁目 チョーメ 号 ゴー 番目 バンメ 番地 バンチ "
    "位 イ 世 セー 年代 ネンダイ 号室 ゴーシツ 号線 ゴーセン 着 チャク 校 コー 社 シャ 曲 キョク 巻 カン 件 ケン "
    "組 クミ 倍 バイ 割 ワリ ページ ページ 種類 シュルイ 代 ダイ 行 ギョー 級 キュー ドル ドル 年間 ネンカン "
    "分間 フンカン か国 カコク ヶ国 カコク カ国 カコク か所 カショ ヶ所 カショ カ所 カショ センチ センチ "
    "メートル メートル グラム グラム 個 コ 冊 サツ 点 テン 頭 トー 週間 シューカン か月 カゲツ ヶ月 カゲツ "
    "カ月 カゲツ ヵ月 カゲツ 人前 ニンマエ 秒 ビョー 枚 マイ 台 ダイ 番 バン 度 ド 名 メー 世紀 セーキ キロ キロ "
    "% パーセント ％ パーセント ℃ ド °C ド km キロメートル cm センチメートル mm ミリメートル kg キログラム "
    "g グラム m メートル L リットル ml ミリリットル ° ド GB ギガバイト km² ヘーホーキロメートル "
    "m² ヘーホーメートル ㎡ ヘーホーメートル t トン mg ミリグラム W ワット kW キロワット V ボルト A アンペア "
    "TB テラバイト MB メガバイト KB キロバイト Hz ヘルツ kHz キロヘルツ MHz メガヘルツ GHz ギガヘルツ "
    "kcal キロカロリー ha ヘクタール mL ミリリットル 兆円 チョーエン 万円 マンエン 億円 オクエン 万人 マンニン "
    "億人 オクニン 万 マン 億 オク 兆 チョー "
)
_COUNTERS: dict[str, tuple[str, dict[int, str]]] = {
    **{counter: (reading, {}) for counter, reading in zip(_REGULAR[::2], _REGULAR[1::2], strict=True)},
    "km/h": ("キロメートル マイジ", {}), "年": ("ネン", {4: "ヨネン"}),
    "月": ("ガツ", {4: "シガツ", 7: "シチガツ", 9: "クガツ"}),
    "日": ("ニチ", {1: "ツイタチ", 2: "フツカ", 3: "ミッカ", 4: "ヨッカ", 5: "イツカ", 6: "ムイカ", 7: "ナノカ",
        8: "ヨーカ", 9: "ココノカ", 10: "トーカ", 14: "ジューヨッカ", 20: "ハツカ", 24: "ニジューヨッカ"}),
    "時": ("ジ", {4: "ヨジ", 7: "シチジ", 9: "クジ", 14: "ジューヨジ", 17: "ジューシチジ", 19: "ジュークジ",
        24: "ニジューヨジ"}),
    "時間": ("ジカン", {4: "ヨジカン", 7: "シチジカン", 9: "クジカン"}),
    "人": ("ニン", {1: "ヒトリ", 2: "フタリ", 4: "ヨニン", 7: "シチニン"}),
    "つ": ("ツ", dict(enumerate(words("ヒトツ フタツ ミッツ ヨッツ イツツ ムッツ ナナツ ヤッツ ココノツ"), start=1))),
    "円": ("エン", {4: "ヨエン"}), "歳": ("サイ", {20: "ハタチ"}), "階": ("カイ", {3: "サンガイ"}),
    "軒": ("ケン", {3: "サンゲン"}), "足": ("ソク", {3: "サンゾク"}),
    "羽": ("ワ", {3: "サンバ", 6: "ロッパ", 10: "ジュッパ"}), "才": ("サイ", {20: "ハタチ"}),
    "日間": ("カカン", {2: "フツカカン", 3: "ミッカカン", 4: "ヨッカカン", 5: "イツカカン", 6: "ムイカカン"}),
}  # fmt: skip
_MONEY = {"¥": "エン", "￥": "エン", "$": "ドル", "€": "ユーロ", "£": "ポンド"}
_SYMBOLS = _MONEY | {
    "%": "パーセント", "&": "アンド", "+": "プラス", "=": "イコール", "@": "アットマーク", "#": "シャープ",
    "×": "カケル",
}  # fmt: skip
# Kanji for a number before a counter; what follows some of them makes another word.
_KANJI_NUMBER = re.compile(
    r"(?<![一二三四五六七八九十百千万億])(?P<n>[一二三四五六七八九十百]+)"
    r"(?=月|(?<=[二三四五六七八九十])日(?!月)|人(?![前分三])|[匹冊杯軒羽枚台個歳階]|本(?![木気松])|足(?![先早])|回(?!り)"
    r"|年(?![生中])|時|円|分(?![五])|番|度|か月|ヶ月|週間)"
)
_FIRST_OF_MONTH = re.compile(r"(?<=月)一(?=日)")
_TEN_MINUTES = re.compile(
    r"(?P<n>(?<![一二三四五六七八九])十)(?=分(?:間|後|前|ほど|くらい|ぐらい|以内|以上|遅|歩|待|休|毎|ごと|おき|過ぎ|かか|で[行着終歩]))"
    r"|(?<=時)(?P<m>十)(?=分)"
)
_KANJI_DIGITS = {digit: n for n, digit in enumerate("一二三四五六七八九", start=1)}
_THOUSANDS_SIGN = re.compile(r"(?P<n>(?<![\d.])\d{1,3})千(?=[円人年台本個ドル])")
_SIGNS = {
    ".": "ドット", "/": "スラッシュ", "@": "アットマーク", "-": "ハイフン", "_": "アンダーバー", ":": "コロン",
    "#": "シャープ", "?": "クエスチョン", "=": "イコール", "&": "アンド", "+": "プラス", "%": "パーセント",
    "~": "チルダ", "www": "W W W",
}  # fmt: skip
_WHOLE_DAY = re.compile(r"(?<![\d月])1日(?=[にの]?[\d一二三]|中|目|当|あたり)")  # 1日1回
_ALL_DAY = re.compile("一([日年晩])中(?![央国間])")
_ALL = {"日": "イチニチ", "年": "イチネン", "晩": "ヒトバン"}
_WEEKDAY = re.compile("(?<=日)[(（]([月火水木金土日])[)）]")
_WEEKDAYS = dict(zip("月火水木金土日", words("ゲツ カ スイ モク キン ド ニチ"), strict=True))
_POSTCODE = re.compile(r"〒\s?(\d{3})-?(\d{4})")
_HOUSE = re.compile(r"(?<![\d-])\d{1,4}(?:-\d{1,4}){2}(?![\d-])|(?<=[区市町村目])\d{1,4}-\d{1,4}(?![\d-])")
_WAVE = re.compile(r"(?<=[\d%％年月日時分秒円人度])\s?[~～〜]\s?(?=\d)")
_NUMBER = r"(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_COUNTER = "|".join(map(re.escape, sorted(_COUNTERS, key=len, reverse=True)))
_DATE = re.compile(r"(?<!\d)(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d./-])")
_TIME = re.compile(r"(?<![\d:])([01]?\d|2[0-4])[:：]([0-5]\d)(?![\d:])")
_PHONE = re.compile(r"(?<![\d.])0\d{1,4}-\d{1,4}-\d{3,4}(?!\d)")
_FRACTION = re.compile(r"(?<![\d/])(\d{1,6})/(\d{1,6})(?![\d/])")
_RANGE = re.compile(r"(?<=\d)\s?[-–—~～〜]\s?(?=\d)")
_FIGURE = re.compile(
    rf"(?:(?P<money>[{''.join(_MONEY)}])\s?)?(?P<minus>(?<![0-9A-Za-z)])[-−±])?(?P<number>{_NUMBER})"
    rf"(?:\s?(?P<counter>{_COUNTER})(?![A-Za-z]))?"
)
_REMAINING = re.compile(rf"[\d²³¹⁰-⁹₀-₉½¼¾{re.escape(''.join(_SYMBOLS))}]")
_ANY_FIGURE = re.compile(rf"[.〒一二三四五六七八九十百]|{_REMAINING.pattern}")


def normalize(aligned: AlignedText) -> AlignedText:
    """Write every figure in katakana, each with the source of the figure."""
    if not _ANY_FIGURE.search(aligned.text):
        return aligned
    if "." in aligned.text:
        aligned = aligned.sub(ADDRESS, lambda m: spell(m[0], _SIGNS, capitals, number))
    aligned = aligned.sub(_TEN_MINUTES, lambda m: {"n" if m["n"] else "m": "10"})
    aligned = aligned.sub(_KANJI_NUMBER, lambda m: _value(m)).sub(_FIRST_OF_MONTH, "1")
    aligned = aligned.sub(_ALL_DAY, lambda m: f"{_ALL[m[1]]}ジュー ")
    aligned = aligned.sub(_WEEKDAY, lambda m: f"、{_WEEKDAYS[m[1]]}ヨービ、")
    aligned = aligned.sub(_WHOLE_DAY, "イチニチ")
    aligned = aligned.sub(_THOUSANDS_SIGN, lambda m: f"{m['n']}000")
    aligned = aligned.sub(_POSTCODE, lambda m: f"ユービン バンゴー {_digits(m[1])}ノ{_digits(m[2])} ")
    aligned = aligned.sub(
        _DATE, lambda m: f"{_with_counter('年', m[1])} {_with_counter('月', m[3])} {_with_counter('日', m[4])}"
    )
    aligned = aligned.sub(
        _TIME, lambda m: _with_counter("時", m[1]) + ("" if m[2] == "00" else " " + _with_counter("分", m[2]))
    )
    aligned = aligned.sub(_PHONE, lambda m: "、".join(_digits(group) for group in m[0].split("-")))
    aligned = aligned.sub(_FRACTION, lambda m: f"{number(m[2])}ブンノ{number(m[1])}")
    aligned = aligned.sub(_HOUSE, lambda m: "の".join(map(number, m[0].split("-"))))
    aligned = aligned.sub(_WAVE, "から").sub(_RANGE, "から")
    aligned = aligned.sub(_FIGURE, _expand_figure)
    return aligned.sub(_REMAINING, lambda m: _symbol(m[0]))


def _value(match: re.Match[str]) -> str | None:
    """Return a number in kanji, such as 二十四, in figures; "十分" is enough, unless the words say ten minutes."""
    kanji = match[0]
    if kanji == "十" and match.string[match.end()] == "分":
        return None
    total, digit = 0, 0
    for sign in kanji:
        if sign in _KANJI_DIGITS:
            digit = _KANJI_DIGITS[sign]
        else:
            total += (digit or 1) * (10 if sign == "十" else 100)
            digit = 0
    return str(total + digit)


def number(text: str) -> str:
    """Return a number, with or without decimals, in katakana; digit by digit if it is long or starts with zeros."""
    text = text.replace(",", "")
    whole, _, decimals = text.partition(".")
    kana = _digits(whole) if len(whole) > MAX_DIGITS or (len(whole) > 2 and whole[0] == "0") else _cardinal(int(whole))
    return f"{kana}テン{_digits(decimals)}" if decimals else kana


def _digits(text: str) -> str:
    return "".join(_DIGITS[int(digit)] for digit in text)


def _cardinal(n: int) -> str:
    if n == 0:
        return _DIGITS[0]
    kana = ""
    for power, name in reversed(list(enumerate(_GROUPS))):
        group = n // 10_000**power % 10_000
        if not group:
            continue
        part = _below_ten_thousand(group)
        if name and part.endswith("セン") and group // 1000 == 1 and group % 1000 == 0:
            part = "イッセン"
        kana += _join_counter(part, name) if name == "チョー" else part + name
    return kana


def _below_ten_thousand(n: int) -> str:
    thousands, hundreds, tens, ones = n // 1000, n // 100 % 10, n // 10 % 10, n % 10
    kana = _THOUSANDS.get(thousands, _DIGITS[thousands] + "セン") if thousands else ""
    kana += _HUNDREDS.get(hundreds, _DIGITS[hundreds] + "ヒャク") if hundreds else ""
    kana += ("" if tens == 1 else _DIGITS[tens]) + "ジュー" if tens else ""
    return kana + (_DIGITS[ones] if ones else "")


def _join_counter(kana: str, counter: str) -> str:
    """Join number and counter with their sound changes: イチ + ホン = イッポン, サン + ホン = サンボン."""
    row = next((row for row, heads in _KANA_ROWS.items() if counter[0] in heads), "")
    if not row:
        return kana + counter
    for end, short, rows in (
        ("イチ", "イッ", "kstp"),
        ("ハチ", "ハッ", "kstp"),
        ("ジュー", "ジュッ", "kstp"),
        ("ロク", "ロッ", "kp"),
    ):
        if kana.endswith(end) and row in rows:
            return kana.removesuffix(end) + short + (_to_p(counter) if row == "p" else counter)
    if kana.endswith("ヒャク") and row in "kp":
        return kana.removesuffix("ク") + "ッ" + (_to_p(counter) if row == "p" else counter)
    if row == "p" and kana.endswith(("サン", "セン", "マン")):
        return kana + (_to_p(counter) if counter == "フン" else _to_b(counter))
    if counter == "フン" and kana.endswith("ヨン"):
        return kana + "プン"
    return kana + counter


_KANA_ROWS = {"k": "カキクケコ", "s": "サシスセソ", "t": "タチツテト", "p": "ハヒフヘホ"}


def _to_p(counter: str) -> str:
    return counter[0].translate(str.maketrans("ハヒフヘホ", "パピプペポ")) + counter[1:]


def _to_b(counter: str) -> str:
    return counter[0].translate(str.maketrans("ハヒフヘホ", "バビブベボ")) + counter[1:]


def _with_counter(counter: str, text: str) -> str:
    name, irregular = _COUNTERS[counter]
    plain = text.replace(",", "")
    is_countable = plain.isdecimal() and len(plain) <= MAX_DIGITS
    if is_countable and int(plain) in irregular:
        return irregular[int(plain)]
    if is_countable and counter in ("年", "人", "円") and int(plain) % 10 == 4:
        return (_cardinal(int(plain) - 4) if int(plain) > 4 else "") + irregular[4]
    return number(text) + name if "." in plain else _join_counter(number(text), name)


def _expand_figure(match: re.Match[str]) -> str:
    kana = _with_counter(match["counter"], match["number"]) if match["counter"] else number(match["number"])
    separator = " " if match.string[match.end() : match.end() + 1].isdecimal() else ""  # 1月5日 are two words
    sign = {"±": "プラスマイナス", None: ""}.get(match["minus"], "マイナス")
    return sign + kana + _MONEY.get(match["money"] or "", "") + separator


def _symbol(symbol: str) -> str:
    if symbol in _SYMBOLS:
        return _SYMBOLS[symbol]
    value = unicodedata.numeric(symbol)
    return {0.5: "ニブンノイチ", 0.25: "ヨンブンノイチ", 0.75: "ヨンブンノサン"}.get(value) or _DIGITS[int(value)]
