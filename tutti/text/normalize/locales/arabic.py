"""Arabic. Numbers, cases and plurals after Modern Standard Arabic without its short endings, dates after CLDR."""

from tutti.text.normalize.locales.locale import Locale, Name, table, words

_MONTHS = words("يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر")


def _noun(one: str, few: str, attribute: str = "") -> Name:
    """Return a noun for 1, 3 to 10, 11 to 99, hundreds and fractions, and 2."""
    feminine = one.endswith("ة")
    forms = (one, few, one if feminine else one + "ا", one, (one[:-1] + "ت" if feminine else one) + "ان")
    if not attribute:
        return forms
    agreeing = (attribute, attribute + "ة", attribute if feminine else attribute + "ا", attribute, attribute + "ان")
    return tuple(f"{form} {word}" for form, word in zip(forms, agreeing, strict=True))


_CENT = _noun("سنت", "سنتات")
_EURO = (("يورو",), _CENT)
_DOLLAR = (_noun("دولار", "دولارات"), _CENT)
_RIYAL = (_noun("ريال", "ريالات"), _noun("هللة", "هللات"))
_DIRHAM = (_noun("درهم", "دراهم"), _noun("فلس", "فلوس"))
_POUND = (_noun("جنيه", "جنيهات"), _noun("قرش", "قروش"))
_METRE, _GRAM = ("متر", "أمتار"), ("غرام", "غرامات")
_DEGREE = _noun("درجة", "درجات")
_CELSIUS = tuple(f"{form} {'مئويتان' if form.endswith('ان') else 'مئوية'}" for form in _DEGREE)

LOCALE = Locale(
    code="ar",
    point="فاصلة",
    dot="نقطة",
    minus="ناقص",
    plus="زائد",
    plus_minus="زائد أو ناقص",
    range_joint="إلى",
    fraction_joint="على",
    fractions=table("1/2=نصف, 1/3=ثلث, 2/3=ثلثان, 1/4=ربع, 3/4=ثلاثة أرباع, 1/5=خمس, 1/8=ثمن"),
    half=("نصف", "نصف"),
    joint="و",
    ordinals=(),
    ordinal_marks=rf"(?=\s(?:{'|'.join(_MONTHS)})(?!\w))",
    feminine_marks=("!",),
    ordinal_endings=((r"", "من"),),
    days_are_ordinal=True,
    day_ending="ال",
    year_ending="ين",
    hour_endings=((r"", "ة"),),
    minute_ending="دقيقة",
    oblique_after=r"(?:^|\s)[وف]?(?:في|من|إلى|على|عن|مع|منذ|حتى|خلال|بعد|قبل|عام|سنة|الفترة|بين|نحو|حوالي|دفعت|اشتريت"
    r"|انتظرت|قرأت|رأيت|سافر|سافرت)",
    rewrites=(
        (r"\d(?P<n>٫)(?=\d)", "."),
        (r"\d(?P<n>٬)(?=\d{3})", ","),
    ),
    feminine_endings=("ة", "ات"),
    feminine_nouns=frozenset(words("دقائق ثوان ثواني ليال ليالي مدن غرف دول قصص صور قرى نساء بنات جمل سنين نقاط أيد")),
    masculine_nouns=frozenset(
        words("دولارات ريالات جنيهات كيلومترات سنتيمترات كيلوغرامات غرامات لترات مطارات حيوانات اجتماعات امتحانات")
        + words("قطارات تطبيقات قرارات مشروعات خطابات")
    ),
    months=_MONTHS,
    short_months=(),
    days={},
    date="{day} من {month} عام {year}",
    day_month="{day} من {month}",
    first_of_month="",
    time="{hour} و{minute}",
    full_hour="{hour}",
    hour_marks=r"(?!)",
    money={"$": _DOLLAR, "USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": _POUND, "SAR": _RIYAL, "ر.س": _RIYAL}
    | {"AED": _DIRHAM, "د.إ": _DIRHAM, "EGP": _POUND, "ج.م": _POUND},
    money_joint="و",
    of_money="",
    scales={"ألف": ("ألف",), "مليون": ("مليون",), "مليار": ("مليار",), "آلاف": ("آلاف",), "ملايين": ("ملايين",)},
    per="في",
    units={"كم": _noun("كيلومتر", "كيلومترات"), "km": _noun("كيلومتر", "كيلومترات"), "م": _noun(*_METRE)}
    | {"m": _noun(*_METRE), "سم": _noun("سنتيمتر", "سنتيمترات"), "cm": _noun("سنتيمتر", "سنتيمترات")}
    | {"مم": _noun("مليمتر", "مليمترات"), "mm": _noun("مليمتر", "مليمترات"), "كغ": _noun("كيلوغرام", "كيلوغرامات")}
    | {"كجم": _noun("كيلوغرام", "كيلوغرامات"), "kg": _noun("كيلوغرام", "كيلوغرامات"), "غ": _noun(*_GRAM)}
    | {"جم": _noun(*_GRAM), "g": _noun(*_GRAM), "مغ": _noun("مليغرام", "مليغرامات"), "لتر": _noun("لتر", "لترات")}
    | {"ل": _noun("لتر", "لترات"), "مل": _noun("مليلتر", "مليلترات"), "ml": _noun("مليلتر", "مليلترات")}
    | {"طن": _noun("طن", "أطنان"), "هكتار": _noun("هكتار", "هكتارات"), "م²": _noun(*_METRE, "مربع")}
    | {"م2": _noun(*_METRE, "مربع"), "م³": _noun(*_METRE, "مكعب"), "كم²": _noun("كيلومتر", "كيلومترات", "مربع")}
    | {"كم/س": tuple(f"{form} في الساعة" for form in _noun("كيلومتر", "كيلومترات")), "h": _noun("ساعة", "ساعات")}
    | {"km/h": tuple(f"{form} في الساعة" for form in _noun("كيلومتر", "كيلومترات")), "min": _noun("دقيقة", "دقائق")}
    | {"s": _noun("ثانية", "ثوان"), "°C": _CELSIUS, "°م": _CELSIUS, "°": _DEGREE, "%": ("بالمئة",), "٪": ("بالمئة",)}
    | {"GB": ("غيغابايت",), "MB": ("ميغابايت",), "KB": ("كيلوبايت",), "TB": ("تيرابايت",), "W": ("واط",)}
    | {"kW": ("كيلوواط",), "MW": ("ميغاواط",), "V": ("فولت",), "Hz": ("هرتز",), "MHz": ("ميغاهرتز",)},
    feminine_units=frozenset(("h", "min", "s", "°C", "°م", "°")),
    squared=("مربع",),
    cubed=("مكعب",),
    symbols=table(
        "^=أس, ~=تقريبا, &=و, @=آت, ==يساوي, ×=في, ÷=على, §=المادة, #=رقم, <=أصغر من, >=أكبر من, "
        "≤=أصغر من أو يساوي, ≥=أكبر من أو يساوي, ≈=تقريبا, ≠=لا يساوي, √=جذر, →=إلى"
    ),
    abbreviations=table(
        "أ. د.=الأستاذ الدكتور, أ.د.=الأستاذ الدكتور, د.=الدكتور, م.=المهندس, أ.=الأستاذ, ق.م.=قبل الميلاد, "
        "ق.م=قبل الميلاد, ص. ب.=صندوق بريد, ص.ب.=صندوق بريد, هـ=هجرية, إلخ=إلى آخره"
    ),
    before_number=table("ص.=صفحة, ج.=جزء, ط.=طبعة"),
    signs=table(
        ".=نقطة, /=شرطة مائلة, @=آت, _=شرطة سفلية, -=شرطة, :=نقطتان, #=هاشتاغ, ?=علامة استفهام, ==يساوي, &=و, "
        "+=زائد, %=بالمئة, ~=تلدة, www=دبليو دبليو دبليو"
    ),
    letters=(),
    postcode=r"(?!)",
    digit_words=r"(?:ال)?رمز|(?:ال)?كود|(?:ال)?رقم\sال(?:سري|بريدي)|الرمز\sالبريدي",
    phone_words=r"(?:ال)?هاتف|اتصل|(?:ال)?جوال|تلفون|(?:ال)?فاكس|واتساب|(?:ب|ال|بال)?رقم",
)
