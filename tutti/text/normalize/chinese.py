"""Figures in Chinese text as characters: numbers, dates, times, money, units."""

import re
import unicodedata

from tutti.text.aligned_text import AlignedText

_DIGITS = "零一二三四五六七八九"
_PLACES = ("", "十", "百", "千")
_GROUPS = ("", "万", "亿", "万亿")
MAX_DIGITS = 16  # longer ones are read digit by digit

_UNITS = (
    {"km/h": "公里每小时", "km²": "平方公里", "m²": "平方米", "km": "公里", "cm": "厘米", "mm": "毫米"}
    | {"m": "米"}
    | {"kg": "公斤", "mg": "毫克", "g": "克", "ml": "毫升", "mL": "毫升", "L": "升", "℃": "摄氏度"}
    | {"°C": "摄氏度", "°F": "华氏度"}
    | {"°": "度", "GB": "吉字节", "MB": "兆字节", "元": "元"}
)
_MONEY = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑", "₹": "卢比"}
_SYMBOLS = _MONEY | {
    "%": "百分号",
    "&": "和",
    "+": "加",
    "=": "等于",
    "@": "艾特",
    "×": "乘",
    "÷": "除以",
    "#": "井号",
    "℃": "摄氏度",
}
_NUMBER = r"(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_MEASURES = "个只本张条位次天斤块杯件辆家种周岁座场句点"

_DATE = re.compile(r"(?<!\d)(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d./-])")
_YEAR = re.compile(r"(?<!\d)(\d{4}|\d{2})(?=年)")
_TIME = re.compile(r"(?<![\d:])([01]?\d|2[0-4])[:：]([0-5]\d)(?:[:：]([0-5]\d))?(?![\d:])")
_PHONE = re.compile(r"(?<![\d.])(?:\+?86[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4}(?!\d)|(?<!\d)\d{3,4}-\d{7,8}(?!\d)")
_FRACTION = re.compile(r"(?<![\d/])(\d{1,6})/(\d{1,6})(?![\d/])")
_RANGE = re.compile(r"(?<=[\d%])\s?[-–—~～]\s?(?=\d)")
_UNIT = "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))
_FIGURE = re.compile(
    rf"(?:(?P<money>[{''.join(_MONEY)}])\s?)?(?P<minus>(?<![0-9A-Za-z)])[-−])?(?P<number>{_NUMBER})"
    rf"(?:\s?(?P<percent>[%％‰])|\s?(?P<unit>{_UNIT})(?![A-Za-z]))?(?P<measure>(?=[{_MEASURES}]))?"
)
_LEFT_OVER = re.compile(rf"[\d²³¹⁰-⁹₀-₉½¼¾{re.escape(''.join(_SYMBOLS))}]")


def normalize(spoken: AlignedText) -> AlignedText:
    """Every figure in characters; those of one figure all point at it."""
    spoken = spoken.sub(_DATE, lambda m: f"{_each(m[1])}年{number(m[3])}月{number(m[4])}日")
    spoken = spoken.sub(_YEAR, lambda m: _each(m[1]))
    spoken = spoken.sub(_TIME, lambda m: _time(m[1], m[2], m[3]))
    spoken = spoken.sub(
        _PHONE, lambda m: "，".join(_each(group).replace("一", "幺") for group in re.findall(r"\d+", m[0]))
    )
    spoken = spoken.sub(_FRACTION, lambda m: f"{number(m[2])}分之{number(m[1])}")
    spoken = spoken.sub(_RANGE, "到")
    spoken = spoken.sub(_FIGURE, _say)
    return spoken.sub(_LEFT_OVER, lambda m: _symbol(m[0]))


def number(text: str) -> str:
    """A number, with or without decimals, as it is counted; digit by digit when it is no count."""
    text = text.replace(",", "")
    whole, _, decimals = text.partition(".")
    if len(whole) > MAX_DIGITS or (len(whole) > 2 and whole[0] == "0" and not decimals):
        said = _each(whole)
    else:
        said = _count(int(whole))
    return f"{said}点{_each(decimals)}" if decimals else said


def _each(text: str) -> str:
    return "".join(_DIGITS[int(digit)] for digit in text)


def _count(n: int) -> str:
    if n == 0:
        return _DIGITS[0]
    groups: list[int] = []
    while n:
        n, group = divmod(n, 10_000)
        groups.append(group)
    said, gap = "", False
    for power in range(len(groups) - 1, -1, -1):
        group = groups[power]
        if said and group and (gap or group < 1000):
            said += _DIGITS[0]
        gap = group == 0 or (gap and not group)
        if group:
            said += _thousand(group) + _GROUPS[power]
    return said[1:] if said.startswith("一十") else said


def _thousand(n: int) -> str:
    said, gap = "", False
    for power in (3, 2, 1, 0):
        digit = n // 10**power % 10
        if digit:
            said += (_DIGITS[0] if gap and said else "") + _DIGITS[digit] + _PLACES[power]
        gap = not digit
    return said


def _say(match: re.Match[str]) -> str:
    text = match["number"]
    said = number(text)
    if text == "2" and (match["measure"] is not None or match["unit"] in ("kg", "元")):
        said = "两"
    if match["percent"]:
        said = ("千" if match["percent"] == "‰" else "百") + f"分之{said}"
    said += _UNITS.get(match["unit"] or "", "") + _MONEY.get(match["money"] or "", "")
    if match["minus"]:
        return ("零下" if match["unit"] in ("℃", "°C", "°") else "负") + said
    return said


def _time(hour: str, minute: str, second: str | None) -> str:
    tail = f"{number(second)}秒" if second else ""
    if minute == "00" and not tail:
        return f"{number(hour)}点"
    return f"{number(hour)}点{'零' if minute[0] == '0' and minute != '00' else ''}{number(str(int(minute)))}分{tail}"


def _symbol(symbol: str) -> str:
    if symbol in _SYMBOLS:
        return _SYMBOLS[symbol]
    value = unicodedata.numeric(symbol)
    return {0.5: "二分之一", 0.25: "四分之一", 0.75: "四分之三"}.get(value) or _DIGITS[int(value)]
