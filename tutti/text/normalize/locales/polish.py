"""Polish. Cases of ordinals after Nagórko (Zarys gramatyki polskiej) and Poradnia językowa PWN, units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_GROSZ = ("grosz", "grosze", "groszy", "grosza")
_ZLOTY = (("złoty", "złote", "złotych", "złotego"), _GROSZ)
_CENT = ("cent", "centy", "centów", "centa")
_EURO = (("euro",), _CENT)
_DOLLAR = (("dolar", "dolary", "dolarów", "dolara"), _CENT)
_MONTHS = words("stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia")
_MONTH = "|".join(_MONTHS)
_OF_YEAR = r"\s(?:roku|r\.)"

LOCALE = Locale(
    code="pl",
    point="przecinek",
    dot="kropka",
    minus="minus",
    plus="plus",
    plus_minus="plus minus",
    range_joint="do",
    fraction_joint="przez",
    fractions=table("1/2=jedna druga, 1/3=jedna trzecia, 2/3=dwie trzecie, 1/4=jedna czwarta, 3/4=trzy czwarte"),
    half=("pół", "pół"),
    joint="i",
    ordinals=(),
    ordinal_marks=rf"\.(?=\s[a-ząćęłńóśźż])|-(?:go|ego|mu|ta|ty|te|szy|sza|gi|ci|ma|my|sty)\b"
    rf"|(?=\s(?:{_MONTH})\b)"
    rf"|(?={_OF_YEAR})|(?=\swiek(?:u|i|ów|iem)?\b)"
    r"|(?<=godzinie \d)|(?<=godzinie \d\d)|(?<=godziny \d)|(?<=godziny \d\d)",
    feminine_marks=("!",),
    ordinal_endings=(
        (rf"\0\s(?:{_MONTH})", "ego"),
        (rf"\b[Ww]e?\s\0{_OF_YEAR}", "ym"),
        (rf"\0{_OF_YEAR}", "ego"),
        (r"\b[Ww]\s\0\swieku", "ym"),
        (r"\0\swieku", "ego"),
        (r"godzin(?:ie|y)\s\0", "ej"),
        (r"\b(?i:w|we|na|o|po|przy)\s\0\S*\s\w+(?:rze|ku|ie|u|ce|dze)\b", "ym"),
        (r"\b(?i:w|we|na|o|po|przy)\s\0\S*\s\w+(?:i|y)\b", "ej"),
        (r"\b(?i:do|od|z|ze|dla|bez|u|koło|obok)\s\0\S*\s\w+(?:u|a)\b", "ego"),
        (r"\blata\s\0|\blat\s\0", "e"),
        (r"(?i)\blata\s\0", "e"),
        (r"\0-?\S*\s\w+a\b", "a"),
        (r"\0-?\S*\s\w+ę\b", "ą"),
        (r"\0-?\S*\s\w+[oe]\b", "e"),
        (r"", "y"),
    ),
    days_are_ordinal=True,
    day_ending="ego",
    year_ending="ego",
    hour_endings=((r"\b(?i:o|od|do|po|przed|około|koło|godzinie|godziny|na)\s\0", "ej"), (r"", "a")),
    count_forms=(
        (r"ę$", r"^jeden$", "jedną"),
        (r"a$", r"^jeden$", "jedna"),
        (r"[oeę]$", r"^jeden$", "jedno"),
        (
            r"^(?:siostry|córki|kobiety|godziny|minuty|sekundy|osoby|książki|szklanki|łyżki|łyżeczki|strony|sztuki|noce"
            r"|części|rzeczy|dziewczyny|godzin|rodziny|szkoły|ulice|butelki|filiżanki|zmiany|grupy|klasy|firmy|partie)",
            r"\bdwa$",
            "dwie",
        ),
    ),
    rewrites=(
        (r"\d\s?(?P<n>r\.)(?=\s\S)", "roku"),
        (r"\d\s?(?P<n>r)\.\s*$", "roku"),
        (r"\b(?:[Pp]rzy|[Nn]a|[Pp]o)\s(?P<n>ul\.)", "ulicy"),
        (r"\b[Oo]\s(?P<n>godz\.)", "godzinie"),
        (r"\b(?:[Oo]d|[Dd]o)\s(?P<n>godz\.)", "godziny"),
    ),
    rulers="Jan|Zygmunt|Kazimierz|Bolesław|Mieszko|Władysław|Stefan|August|Henryk|Ludwik|Fryderyk|Karol|Paweł|Pius|"
    "Benedykt|Stanisław|Aleksander|Mikołaj|Piotr|Filip|Katarzyna|Elżbieta|Wilhelm|Napoleon|Leszek|Przemysł",
    ruler_ending="y",
    queens=frozenset(words("Katarzyna Elżbieta")),
    last_ordinal=200,
    postcode=r"\d\d-\d{3}(?=\s[A-ZĄĆĘŁŃÓŚŹŻ])",
    months=_MONTHS,
    short_months=words("sty lut mar kwi maj cze lip sie wrz paź lis gru"),
    days=table("pon=poniedziałek, wt=wtorek, śr=środa, czw=czwartek, pt=piątek, sob=sobota, niedz=niedziela"),
    date="{day} {month} {year} roku",
    day_month="{day} {month}",
    first_of_month="",
    time="{hour} {minute}",
    full_hour="{hour}",
    hour_marks=r"h\b",
    money={"zł": _ZLOTY, "PLN": _ZLOTY, "€": _EURO, "EUR": _EURO, "$": _DOLLAR, "USD": _DOLLAR, "gr": (_GROSZ, _GROSZ)}
    | {"£": (("funt", "funty", "funtów", "funta"), ("pens", "pensy", "pensów", "pensa"))},
    money_joint="",
    of_money="",
    scales=names("tys. tysiąc tysiące tysięcy tysiąca, mln milion miliony milionów miliona")
    | names("mld miliard miliardy miliardów miliarda, tysięcy tysiąc tysiące tysięcy tysiąca")
    | names("milion milion miliony milionów miliona, milionów milion miliony milionów miliona"),
    per="na",
    units=names(
        "km kilometr kilometry kilometrów kilometra, m metr metry metrów metra, dm decymetr decymetry decymetrów"
    )
    | names("cm centymetr centymetry centymetrów centymetra, mm milimetr milimetry milimetrów milimetra")
    | names("kg kilogram kilogramy kilogramów kilograma, dag deka deka deka, t tona tony ton tony")
    | names(
        "ha hektar hektary hektarów hektara, h godzina godziny godzin godziny, godz. godzina godziny godzin godziny"
    )
    | names("min minuta minuty minut minuty, min. minuta minuty minut minuty, s sekunda sekundy sekund sekundy")
    | names(
        "sek. sekunda sekundy sekund sekundy, °C stopień_Celsjusza stopnie_Celsjusza stopni_Celsjusza stopnia_Celsjusza"
    )
    | names("° stopień stopnie stopni stopnia, % procent procent procent procent, ‰ promil promile promili promila")
    | names("m² metr_kwadratowy metry_kwadratowe metrów_kwadratowych metra_kwadratowego")
    | names("km² kilometr_kwadratowy kilometry_kwadratowe kilometrów_kwadratowych kilometra_kwadratowego")
    | names("m2 metr_kwadratowy metry_kwadratowe metrów_kwadratowych metra_kwadratowego")
    | names("m³ metr_sześcienny metry_sześcienne metrów_sześciennych metra_sześciennego")
    | names("km/h kilometr_na_godzinę kilometry_na_godzinę kilometrów_na_godzinę kilometra_na_godzinę")
    | names("m/s metr_na_sekundę metry_na_sekundę metrów_na_sekundę metra_na_sekundę")
    | names(
        "KM koń_mechaniczny konie_mechaniczne koni_mechanicznych konia_mechanicznego, szt. sztuka sztuki sztuk sztuki"
    )
    | names("g gram gramy gramów grama, l litr litry litrów litra, L litr litry litrów litra")
    | names(
        "W wat waty watów wata, V wolt wolty woltów wolta, A amper ampery amperów ampera, Hz herc herce herców herca"
    )
    | prefixed("m mili, µ mikro, μ mikro", "g gram gramy gramów grama")
    | prefixed("m mili, c centy, d decy, h hekto", "l litr litry litrów litra")
    | prefixed("k kilo, M mega, G giga, T tera", "W wat waty watów wata")
    | prefixed("k kilo, M mega, G giga, T tera", "Wh watogodzina watogodziny watogodzin watogodziny")
    | prefixed("k kilo, M mega, G giga, T tera, P peta", "B bajt bajty bajtów bajta")
    | prefixed("k kilo, M mega, G giga", "Hz herc herce herców herca")
    | prefixed("k kilo", "cal kaloria kalorie kalorii kalorii")
    | prefixed("h hekto, k kilo, M mega", "Pa paskal paskale paskali paskala"),
    squared=("kwadratowy", "kwadratowe", "kwadratowych", "kwadratowego"),
    cubed=("sześcienny", "sześcienne", "sześciennych", "sześciennego"),
    symbols=table(
        "^=do potęgi, ~=około, &=i, @=małpa, ==równa się, ×=razy, ÷=podzielić przez, §=paragraf, №=numer, #=numer, "
        "<=mniejsze niż, >=większe niż, ≤=mniejsze lub równe, ≥=większe lub równe, ≈=około, ≠=różne od, →=do"
    ),
    abbreviations=table(
        "np.=na przykład, itd.=i tak dalej, itp.=i tym podobne, tj.=to jest, tzn.=to znaczy, tzw.=tak zwany, "
        "m. in.=między innymi, m.in.=między innymi, ok.=około, zob.=zobacz, por.=porównaj, dr=doktor, dr.=doktor, "
        "prof.=profesor, mgr=magister, inż.=inżynier, hab.=habilitowany, ul.=ulica, al.=aleja, pl.=plac, "
        "p. n. e.=przed naszą erą, p.n.e.=przed naszą erą, n. e.=naszej ery, n.e.=naszej ery, tel.=telefon, "
        "św.=święty, ks.=ksiądz, gen.=generał, godz.=godzina, wg=według, ds.=do spraw, im.=imienia, "
        "woj.=województwo, pow.=powiat, maks.=maksymalnie, min.=minimum, wyd.=wydanie, red.=redakcja, "
        "ww.=wyżej wymieniony, br.=bieżącego roku, jw.=jak wyżej, cd.=ciąg dalszy, pn.=pod nazwą, "
        "RP=er pe, USA=u es a, UE=u e, PKP=pe ka pe, PKB=pe ka be, TVP=te fau pe"
    ),
    before_number=table(
        "s.=strona, str.=strona, rozdz.=rozdział, nr=numer, art.=artykuł, ust.=ustęp, rys.=rysunek, "
        "t.=tom, m.=mieszkanie, lok.=lokal, poz.=pozycja"
    ),
    signs=table(
        ".=kropka, /=ukośnik, @=małpa, _=podkreślnik, -=myślnik, :=dwukropek, #=hasztag, ?=znak zapytania, "
        "==równa się, &=i, +=plus, %=procent, ~=tylda, www=wu wu wu"
    ),
    letters=words("a be ce de e ef gie ha i jot ka el em en o pe ku er es te u fau wu iks igrek zet"),
    spelled=frozenset(words("USA UE AGD IT DNA URL USB IBM PKB AI API IQ HIV UJ UW")),
    feminine_units=frozenset({"t", "h", "godz.", "min", "min.", "s", "sek.", "szt.", "kcal", "kWh"}),
    roman_before="wiek(?:u|i|ów|iem)?",
    numbered="rozdział|tom|część|akt|artykuł|klasa|faza|typ|liceum",
    digit_words=r"kod pocztowy|kod|PIN|PESEL|NIP",
    phone_words=r"tel\w*|zadzwoń\w*|dzwoń\w*|komórk\w*|numer|faks|infolini\w*",
)
