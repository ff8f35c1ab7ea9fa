"""Swedish. Numbers, ordinals and abbreviations after Svenska skrivregler (Språkrådet), dates and units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_KRONA = (("krona", "kronor"), ("öre", "öre"))
_EURO = (("euro", "euro"), ("cent", "cent"))
_DOLLAR = (("dollar", "dollar"), ("cent", "cent"))
_PARTS = dict(enumerate(words("tredjedel fjärdedel femtedel sjättedel sjundedel åttondel niondel tiondel"), 3))
_COUNTS = dict(enumerate(words("en två tre fyra fem sex sju åtta nio"), 1))
_MONTHS = words("januari februari mars april maj juni juli augusti september oktober november december")
_NEUTER = (
    "kök|rum|hus|barn|år|glas|kilo|gram|ton|bord|djur|hem|land|ord|paket|par|äpple|ägg|företag|exemplar|problem|fel|"
    "tåg|namn|mål|program|träd|kapitel|avsnitt|nummer|brev|besök|bolag|dygn|skäl|steg|test|förslag|arbete|möte"
)

LOCALE = Locale(
    code="sv",
    point="komma",
    dot="punkt",
    minus="minus",
    plus="plus",
    plus_minus="plus minus",
    range_joint="till",
    fraction_joint="genom",
    fractions={"1/2": "en halv"}
    | {
        f"{top}/{bottom}": f"{count} {part}{'' if top == 1 else 'ar'}"
        for bottom, part in _PARTS.items()
        for top, count in _COUNTS.items()
    },
    half=("en halv", "en halv"),
    joint="och",
    ordinals=(),
    # A day before its month is an ordinal (Svenska skrivregler).
    ordinal_marks=rf":[ae]\b|(?=\s(?:{'|'.join(_MONTHS)})\b)",
    feminine_marks=("!",),
    ordinal_endings=((r"", ""),),
    days_are_ordinal=True,
    century="hundra",
    century_until=2100,
    decimals_by_digit=True,
    # En or ett: common gender, but for the neuter nouns that are listed.
    count_forms=((rf"^(?:{_NEUTER})", r"$", ""), (r"", r"ett$", "en")),
    glued=r"tal\w*|årig\w*|åring\w*|procentig\w*|faldig\w*|dagars\b|timmars\b",
    rewrites=((r"\d(?P<n>:-)", " kronor"),),
    ruler_article="den ",
    rulers="Gustav|Karl|Erik|Johan|Oscar|Oskar|Fredrik|Magnus|Kristian|Birger|Adolf|Ludvig|Henrik|Harald|Olof|Benedictus",
    last_ordinal=200,
    months=_MONTHS,
    short_months=words("jan febr? mars?|mar apr maj juni?|jun juli?|jul aug sept? okt nov dec"),
    days=table("mån=måndag, tis=tisdag, ons=onsdag, tors=torsdag, fre=fredag, lör=lördag, sön=söndag"),
    date="{day} {month} {year}",
    day_month="{day} {month}",
    first_of_month="",
    time="{hour} och {minute}",
    full_hour="{hour}",
    hour_marks=r"h\b",
    before_time="[Kk]lockan|[Kk]l|mellan|till|från",
    money={"kr": _KRONA, "kr.": _KRONA, "SEK": _KRONA, "€": _EURO, "EUR": _EURO, "$": _DOLLAR, "USD": _DOLLAR}
    | {"£": (("pund", "pund"), ("pence", "pence")), "¥": (("yen", "yen"), ("sen", "sen"))}
    | {"NOK": (("norsk krona", "norska kronor"), ("öre", "öre"))},
    money_joint="och",
    of_money="",
    scales=names(
        "mn miljon miljoner, milj. miljon miljoner, mkr miljon_kronor miljoner_kronor, tkr tusen_kronor tusen_kronor"
    )
    | names("mdr miljard miljarder, mdkr miljard_kronor miljarder_kronor, miljon miljon miljoner")
    | names("miljoner miljon miljoner, miljard miljard miljarder, miljarder miljard miljarder"),
    per="per",
    units=names("km kilometer kilometer, mil mil mil, m meter meter, dm decimeter decimeter, cm centimeter centimeter")
    | names("mm millimeter millimeter, kg kilo kilo, hg hekto hekto, t ton ton, ha hektar hektar, st stycken stycken")
    | names("h timme timmar, tim timme timmar, min minut minuter, s sekund sekunder, sek sekund sekunder")
    | names("°C grad_Celsius grader_Celsius, °F grad_Fahrenheit grader_Fahrenheit, ° grad grader")
    | names("% procent procent, ‰ promille promille, hk hästkraft hästkrafter, bit bit bitar")
    | names("km/h kilometer_per_timmen kilometer_per_timmen, m/s meter_per_sekund meter_per_sekund")
    | names("m² kvadratmeter kvadratmeter, km² kvadratkilometer kvadratkilometer, kvm kvadratmeter kvadratmeter")
    | names("m³ kubikmeter kubikmeter, m2 kvadratmeter kvadratmeter, m3 kubikmeter kubikmeter")
    | names("Hz hertz hertz, V volt volt, A ampere ampere, W watt watt, J joule joule, dB decibel decibel")
    | names("g gram gram, l liter liter, L liter liter, cal kalori kalorier, Pa pascal pascal, bar bar bar")
    | prefixed("m milli, µ mikro, μ mikro", "g gram gram")
    | prefixed("m milli, c centi, d deci", "l liter liter")
    | prefixed("m milli, k kilo, M mega, G giga, T tera", "W watt watt")
    | prefixed("k kilo, M mega, G giga, T tera", "Wh wattimme wattimmar")
    | prefixed("k kilo, M mega, G giga, T tera, P peta", "B byte byte")
    | prefixed("k kilo, M mega, G giga", "Hz hertz hertz")
    | prefixed("k kilo", "cal kalori kalorier")
    | prefixed("h hekto, k kilo, M mega", "Pa pascal pascal"),
    squared=("i kvadrat", "i kvadrat"),
    cubed=("i kubik", "i kubik"),
    symbols=table(
        "^=upphöjt till, ~=ungefär, &=och, @=snabel-a, ==lika med, ×=gånger, ÷=delat med, §=paragraf, №=nummer, "
        "#=nummer, <=mindre än, >=större än, ≤=högst, ≥=minst, ≈=ungefär, ≠=inte lika med, √=roten ur, →=till"
    ),
    abbreviations=table(
        "t. ex.=till exempel, t ex=till exempel, bl. a.=bland annat, m. m.=med mera, m. fl.=med flera, "
        "o. s. v.=och så vidare, osv.=och så vidare, osv=och så vidare, d. v. s.=det vill säga, dvs.=det vill säga, "
        "dvs=det vill säga, s. k.=så kallad, f. n.=för närvarande, p. g. a.=på grund av, pga=på grund av, "
        "fr. o. m.=från och med, fr.o.m.=från och med, t. o. m.=till och med, t.o.m.=till och med, ca=cirka, "
        "ca.=cirka, c:a=cirka, kl.=klockan, kl=klockan, dr.=doktor, dr=doktor, prof.=professor, ev.=eventuellt, "
        "inkl.=inklusive, exkl.=exklusive, resp.=respektive, jfr=jämför, obs.=observera, f. Kr.=före Kristus, "
        "e. Kr.=efter Kristus, tel.=telefon, tfn=telefon, fig.=figur, st.=stycken, max.=maximalt, moms.=moms, "
        "f. d.=före detta, m. a. o.=med andra ord, i. o. m.=i och med, tr.=trappor, avd.=avdelning, "
        "USA=u ess a, EU=e u, TV=teve, FN=eff enn, VD=ve de, AB=a be"
    ),
    before_number=table("s.=sida, sid.=sida, kap.=kapitel, nr=nummer, nr.=nummer, art.=artikel, bd=band"),
    signs=table(
        ".=punkt, /=snedstreck, @=snabel-a, _=understreck, -=bindestreck, :=kolon, #=hashtagg, ?=frågetecken, "
        "==lika med, &=och, +=plus, %=procent, ~=tilde, www=ve ve ve"
    ),
    letters=words("a be se de e eff ge hå i ji kå ell emm enn o pe ku ärr ess te u ve dubbelve äks y säta"),
    spelled=frozenset(words("USA EU ICA IT DNA EKG URL USB IBM BNP SEB VVS SL API AI IQ HIV BMI VM EM OS VAB")),
    feminine_units=frozenset({"h", "tim", "min", "s", "sek", "kr", "kr.", "SEK", "l", "L", "km", "m", "cm"}),
    numbered="kapitel|del|band|akt|artikel|klass|fas|typ|steg",
    digit_words=r"postnummer|kod|PIN",
    phone_words=r"tel\w*|ring\w*|mobil\w*|nummer|fax|växel|nås",
)
