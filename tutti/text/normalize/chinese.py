"""Chinese normalisation: numbers, dates, times, money and units as characters.

二 and 两 after the note on them in 现代汉语词典 (entry 两), figures as chapter 5 of GB/T 15835-2011 writes them.
"""

import re
import unicodedata

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize.address_words import ADDRESS, capitals, spell
from tutti.text.normalize.romans import parse_roman

_DIGITS = "零一二三四五六七八九"
_PLACES = ("", "十", "百", "千")
_GROUPS = ("", "万", "亿", "万亿")
MAX_DIGITS = 16  # longer numbers are spoken digit by digit

_UNITS = {
    "km/h": "公里每小时", "km²": "平方公里", "m²": "平方米", "km": "公里", "cm": "厘米", "mm": "毫米",
    "m": "米", "kg": "公斤", "mg": "毫克", "g": "克", "ml": "毫升", "mL": "毫升", "L": "升",
    "℃": "摄氏度", "°C": "摄氏度", "°F": "华氏度", "°": "度", "GB": "吉字节", "TB": "太字节",
    "W": "瓦", "kW": "千瓦", "V": "伏", "Hz": "赫兹", "t": "吨", "ha": "公顷", "MB": "兆字节",
    "元": "元",
}  # fmt: skip
_MONEY = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑", "₹": "卢比"}
_SYMBOLS = _MONEY | {
    "%": "百分号", "&": "和", "+": "加", "=": "等于", "@": "艾特", "×": "乘", "÷": "除以", "#": "井号", "℃": "摄氏度",
}  # fmt: skip
_NUMBER = r"(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_MEASURE_WORDS = "小个只本张条位次天斤块杯件辆家种周岁座场句点"

_DATE = re.compile(r"(?<!\d)(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d./-])")
_YEARS = re.compile(r"(?<!\d)(\d{4})\s?[-–—~～]\s?(\d{4})(?=年)")
_YEAR = re.compile(r"(?<!\d)(\d{4}(?=年)|\d{2}(?=年(?!代)))")
_TIMES = re.compile(r"(?<=[:：]\d\d)\s?[-–—~～]\s?(?=\d{1,2}[:：]\d\d)")
_CODE = re.compile(
    r"(?:邮编|密码|尾号|编号|账号|卡号|学号|证号|编码|单号|QQ群?|拨打|致电|呼叫)(?:是|为|[:：])?\s?(?P<n>\d{3,20})(?!\d)"
)
_ROMAN = re.compile(r"(?<![A-Za-z0-9])(?=[IVX]{2})X{0,3}(?:IX|IV|V?I{0,3})(?![A-Za-z0-9])")
_EACH = re.compile(r"(?<=[\u4e00-\u9fff])/(?=[人次天月年日件个只斤吨份位])")  # 50元/人
_SCORE = re.compile(r"(?<![\d:：])(\d{1,3})[:：](\d{1,3})(?![\d:：])")
_ROOM = re.compile(r"(?<!\d)\d{3,4}(?=室|房间?|号房)")
_BORN = re.compile(r"(?<!\d)\d0(?=后)")  # 90后
_SIGNS = {
    ".": "点", "/": "斜杠", "@": "艾特", "-": "杠", "_": "下划线", ":": "冒号", "#": "井号", "?": "问号", "=": "等于",
    "&": "和", "+": "加", "%": "百分号", "~": "波浪号", "www": "W W W",
}  # fmt: skip
_TIME = re.compile(r"(?<![\d:])([01]?\d|2[0-4])[:：]([0-5]\d)(?:[:：]([0-5]\d))?(?![\d:])")
_PHONE = re.compile(
    r"(?<![\d.])(?:\+?86[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4}(?!\d)|(?<!\d)\d{3,4}-\d{7,8}(?!\d)"
    r"|(?<!\d)[48]00-\d{3}-\d{4}(?!\d)"
    r"|(?<!\d)\+\d{1,3}(?:[- ]\d{2,4}){0,3}[- ]\d{4,8}(?!\d)"
)
_FRACTION = re.compile(r"(?<![\d/])(\d{1,6})/(\d{1,6})(?![\d/])")
_RANGE = re.compile(r"(?<=[\d%])\s?[-–—~～]\s?(?=\d)")
_UNIT = "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))
_FIGURE = re.compile(
    rf"(?:(?P<money>[{''.join(_MONEY)}])\s?)?(?P<minus>(?<![0-9A-Za-z)])[-−±])?(?P<number>{_NUMBER})(?P<scale>(?:万亿|[万亿]))?"
    rf"(?:\s?(?P<percent>[%％‰])|\s?(?P<unit>{_UNIT})(?![A-Za-z]))?(?P<measure>(?=[{_MEASURE_WORDS}]))?"
)
_REMAINING = re.compile(rf"[\d²³¹⁰-⁹₀-₉½¼¾{re.escape(''.join(_SYMBOLS))}]")


def normalize(aligned: AlignedText) -> AlignedText:
    """Write every figure in characters, each with the source of the figure."""
    aligned = aligned.sub(_DATE, lambda m: f"{_digits(m[1])}年{number(m[3])}月{number(m[4])}日")
    if "." in aligned.text:
        aligned = aligned.sub(ADDRESS, lambda m: spell(m[0], _SIGNS, capitals, number))
    aligned = aligned.sub(_ROMAN, lambda m: number(str(parse_roman(m[0]))))
    aligned = aligned.sub(_ROOM, lambda m: _digits(m[0]).replace("一", "幺"))
    aligned = aligned.sub(_BORN, lambda m: _digits(m[0]))
    aligned = aligned.sub(_YEARS, lambda m: f"{_digits(m[1])}到{_digits(m[2])}")
    aligned = aligned.sub(_CODE, lambda m: {"n": _digits(m["n"])}).sub(_TIMES, "到")
    aligned = aligned.sub(_YEAR, lambda m: _digits(m[1]))
    aligned = aligned.sub(_TIME, lambda m: _time(m[1], m[2], m[3]))
    aligned = aligned.sub(
        _PHONE, lambda m: "，".join(_digits(group).replace("一", "幺") for group in re.findall(r"\d+", m[0]))
    )
    aligned = aligned.sub(_FRACTION, lambda m: f"{number(m[2])}分之{number(m[1])}")
    aligned = aligned.sub(_SCORE, lambda m: f"{number(m[1])}比{number(m[2])}").sub(_RANGE, "到")
    aligned = aligned.sub(_FIGURE, _expand_figure).sub(_EACH, "每")
    return aligned.sub(_REMAINING, lambda m: _symbol(m[0]))


def number(text: str) -> str:
    """Return a number, with or without decimals; digit by digit if it is long or starts with zeros."""
    text = text.replace(",", "")
    whole, _, decimals = text.partition(".")
    if len(whole) > MAX_DIGITS or (len(whole) > 2 and whole[0] == "0" and not decimals):
        words = _digits(whole)
    else:
        words = _cardinal(int(whole))
    return f"{words}点{_digits(decimals)}" if decimals else words


def _digits(text: str) -> str:
    return "".join(_DIGITS[int(digit)] for digit in text)


def _cardinal(n: int) -> str:
    if n == 0:
        return _DIGITS[0]
    groups: list[int] = []
    while n:
        n, group = divmod(n, 10_000)
        groups.append(group)
    words, zero_pending = "", False
    for power in range(len(groups) - 1, -1, -1):
        group = groups[power]
        if words and group and (zero_pending or group < 1000):
            words += _DIGITS[0]
        zero_pending = group == 0 or (zero_pending and not group)
        if group:
            words += _below_ten_thousand(group) + _GROUPS[power]
    words = "两" + words[1:] if words[:2] in ("二千", "二万", "二亿") else words
    return words[1:] if words.startswith("一十") else words


def _below_ten_thousand(n: int) -> str:
    words, zero_pending = "", False
    for power in (3, 2, 1, 0):
        digit = n // 10**power % 10
        if digit:
            words += (_DIGITS[0] if zero_pending and words else "") + _DIGITS[digit] + _PLACES[power]
        zero_pending = not digit
    return words


def _expand_figure(match: re.Match[str]) -> str:
    text = match["number"]
    words = number(text)
    ordinal = match.string[match.start() - 1 : match.start()] == "第"
    if text == "2" and not ordinal and (match["measure"] is not None or match["unit"] in ("kg", "元")):
        words = "两"
    if match["percent"]:
        words = ("千" if match["percent"] == "‰" else "百") + f"分之{words}"
    words += match["scale"] or ""
    words += _UNITS.get(match["unit"] or "", "") + _MONEY.get(match["money"] or "", "")
    if match["minus"] == "±":
        return f"正负{words}"
    if match["minus"]:
        return ("零下" if match["unit"] in ("℃", "°C", "°") else "负") + words
    return words


def _time(hour: str, minute: str, second: str | None) -> str:
    tail = f"{number(second)}秒" if second else ""
    if minute == "00" and not tail:
        return f"{_hour(hour)}点"
    return f"{_hour(hour)}点{'零' if minute[0] == '0' and minute != '00' else ''}{number(str(int(minute)))}分{tail}"


def _hour(hour: str) -> str:
    return "两" if hour.lstrip("0") == "2" else number(hour)


def _symbol(symbol: str) -> str:
    if symbol in _SYMBOLS:
        return _SYMBOLS[symbol]
    value = unicodedata.numeric(symbol)
    return {0.5: "二分之一", 0.25: "四分之一", 0.75: "四分之三"}.get(value) or _DIGITS[int(value)]
