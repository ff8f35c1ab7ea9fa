"""The words of a language that its numbers, dates, money, units, abbreviations and addresses are spoken with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Name = tuple[str, ...]  # singular and plural, or one, few, many and of a fraction


@dataclass(frozen=True, slots=True)
class Locale:
    """A table of words; the rules that use it are in european/."""

    code: str
    # numbers
    point: str  # the sign before decimals
    dot: str  # between the parts of a version
    minus: str
    plus: str
    plus_minus: str
    range_joint: str  # between the ends of a range
    fraction_joint: str  # between the halves of a fraction
    fractions: Mapping[str, str]
    half: tuple[str, str]  # before a noun: masculine, feminine
    joint: str  # and
    ordinals: Sequence[str]  # from the first, masculine
    ordinal_marks: str  # what is written behind the figure of an ordinal: a regular expression
    feminine_marks: tuple[str, ...]  # those of them that are feminine
    # dates, by the patterns of CLDR
    months: Sequence[str]
    short_months: Sequence[str]  # regular expressions
    days: Mapping[str, str]  # by their abbreviations
    date: str
    day_month: str
    first_of_month: str  # "" if the language says one
    time: str
    full_hour: str
    hour_marks: str  # what is written behind a time and not spoken: a regular expression
    # amounts
    money: Mapping[str, tuple[Name, Name]]
    money_joint: str  # between money and its hundredths
    of_money: str  # between millions and the money
    scales: Mapping[str, Name]  # million, by its abbreviations and its words
    per: str
    units: Mapping[str, Name]
    squared: Name
    cubed: Name
    # words
    symbols: Mapping[str, str]
    abbreviations: Mapping[str, str]  # wherever they stand
    # signs of addresses
    signs: Mapping[str, str]
    letters: Sequence[str]  # names of A to Z; none if letters are left to the voice
    before_number: Mapping[str, str] = field(default_factory=dict)  # abbreviations that mean this before a number
    before_name: Mapping[str, str] = field(default_factory=dict)  # before a capital letter
    after_number: Mapping[str, str] = field(default_factory=dict)
    tens_ordinals: Sequence[str] = ()  # 10th to 100th, masculine; none if all ordinals follow from the cardinal
    before_time: str = ""  # 9.30 behind one of these words is a time: a regular expression
    hours_are_feminine: bool = False
    feminine_units: frozenset[str] = frozenset()
    feminine_endings: tuple[str, ...] = ()
    feminine_nouns: frozenset[str] = frozenset()
    masculine_nouns: frozenset[str] = frozenset()  # that end like feminine ones
    no_nouns: frozenset[str] = frozenset()  # words behind a number that it does not count
    spelled: frozenset[str] = frozenset()  # acronyms with vowels that are spoken letter by letter
    spoken_acronyms: frozenset[str] = frozenset()  # of two letters or without a vowel, that are not
    rulers: str = ""  # names that a Roman numeral of one letter follows: a regular expression
    queens: frozenset[str] = frozenset()
    numbered: str = ""  # nouns that a Roman numeral follows: a regular expression
    last_ordinal: int = 0  # kings up to this number are ordinals
    articles: Mapping[str, bool] = field(default_factory=dict)  # before a Roman ordinal: whether it is feminine
    numbered_are_ordinal: bool = False
    # Languages with endings. A rule is a regular expression, searched in the words around a figure, which is \0.
    ordinal_endings: Sequence[tuple[str, str]] = ()  # of the first rule that is found; none if ordinals have no endings
    days_are_ordinal: bool = False  # in dates
    day_ending: str = ""  # of such a day; else by the words around it
    year_ending: str = ""  # of years in dates that are ordinals
    hour_endings: Sequence[tuple[str, str]] = ()  # of hours that are ordinals: as ordinal_endings
    minute_ending: str = ""  # of minutes that stand with their noun
    oblique_after: str = ""  # words that ask for the other case of a number behind them: a regular expression
    short_minute: str = ""  # before the minutes 1 to 9
    count_forms: Sequence[tuple[str, str, str]] = ()  # a noun, the end of a number before it, and what that becomes
    decimal_parts: Sequence[Name] = ()  # of wholes, tenths, hundredths, thousandths
    roman_before: str = ""  # nouns that a Roman ordinal stands before
    rewrites: Sequence[tuple[str, str]] = ()  # a regular expression and the words for its group n
    century_until: int = 2000
    century: str = ""  # between the halves of a year from 1100 to 1999 that is read in hundreds
    decimals_by_digit: bool = False
    dotted_days: bool = False  # 24.12. is a day
    one: tuple[str, str] = ("", "")  # the number one alone, as its words end, and before a noun
    glued: str = ""  # what is joined to the words of a figure, with or without a hyphen: a regular expression
    word_endings: Mapping[str, str] = field(default_factory=dict)  # abbreviations inside a word: -str.
    ruler_article: str = ""  # between a king and his number
    ruler_ending: str = ""  # of that number
    postcode: str = r"(?:(?<=,\s)|\A)\d{5}(?=\s[A-ZÀ-Ý][a-zà-ÿ])"  # read digit by digit: a regular expression
    phone_words: str = ""  # a number behind one of them is a telephone: a regular expression
    phone_by_pairs: bool = False
    digit_words: str = ""  # a number behind one of them is a code, read digit by digit: a regular expression


def words(text: str) -> tuple[str, ...]:
    """Split a line into words."""
    return tuple(text.split())


def names(text: str) -> dict[str, Name]:
    """Read "sign singular plural, sign singular plural", or with more forms; _ is a blank in a name."""
    rows = (row.split() for row in text.split(","))
    return {sign: tuple(form.replace("_", " ") for form in forms) for sign, *forms in rows}


def table(text: str) -> dict[str, str]:
    """Read "sign=words, sign=words"; the first character may be the sign =."""
    rows = ((row, row.index("=", 1)) for row in text.split(", "))
    return {row[:at]: row[at + 1 :] for row, at in rows}


def prefixed(prefixes: str, base: str) -> dict[str, Name]:
    """Return the units of "k kilo, m mili" and "g gramo gramos": kg, mg."""
    sign, *forms = base.split()
    rows = (row.split() for row in prefixes.split(","))
    return {f"{prefix}{sign}": tuple(name + form for form in forms) for prefix, name in rows}
