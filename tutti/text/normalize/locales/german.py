"""German. Ordinals, numbers and abbreviations after Duden (Die Grammatik; DIN 5008), dates and units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_EURO = (("Euro", "Euro"), ("Cent", "Cent"))
_DOLLAR = (("Dollar", "Dollar"), ("Cent", "Cent"))
_FRANC = (("Schweizer Franken", "Schweizer Franken"), ("Rappen", "Rappen"))
_PARTS = dict(enumerate(words("Drittel Viertel Fünftel Sechstel Siebtel Achtel Neuntel Zehntel"), 3))
_COUNTS = dict(enumerate(words("ein zwei drei vier fünf sechs sieben acht neun"), 1))
_MONTHS = words("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")

LOCALE = Locale(
    code="de",
    point="Komma",
    dot="Punkt",
    minus="minus",
    plus="plus",
    plus_minus="plus minus",
    range_joint="bis",
    fraction_joint="durch",
    fractions={"1/2": "ein halb", "3/2": "drei Halbe"}
    | {f"{top}/{bottom}": f"{count} {part}" for bottom, part in _PARTS.items() for top, count in _COUNTS.items()},
    half=("ein halber", "eine halbe"),
    joint="und",
    ordinals=(),
    ordinal_marks=r"\.(?=,?\s[^\W\d_])",
    feminine_marks=("!",),
    # Duden: weak endings behind an article, -en in the cases that prepositions of time and place ask for.
    ordinal_endings=(
        (r"\b(?i:am|im|vom|zum|zur|beim|dem|den|des|einem|einen|eines|einer|seit|ab|bis)\s\0", "en"),
        (r"\b(?i:in|an|auf|aus|bei|mit|nach|von|vor|zu|unter|über|hinter|neben|zwischen|während|wegen)\sder\s\0", "en"),
        (r"\b(?i:ihre[mnr]|seine[mnr]|meine[mnr]|deine[mnr]|unsere[mnr]|jede[mn]|diese[mnrs])\s\0", "en"),
        (r"\b(?i:der|die|das|diese|dieses|jede|jedes|ihre|seine|meine|deine|unsere|eine)\s\0", "e"),
        (r"\b(?i:ihr|sein|mein|dein|unser|ein|kein)\s\0", "er"),
        (rf"(?<!\w)\0\.\s(?:{'|'.join(_MONTHS)})", "er"),
        (r"", "e"),
    ),
    days_are_ordinal=True,
    dotted_days=True,
    century="hundert",
    decimals_by_digit=True,
    one=("eins", "ein"),
    glued=r"er(?=n?\s[A-ZÄÖÜ]|\b)|jährig\w*|mal\b|fach\w*|tägig\w*|stündig\w*|minütig\w*|köpfig\w*|teilig\w*|stöckig\w*",
    word_endings=table("str.=straße, Str.=Straße, pl.=platz"),
    ruler_article="der ",
    ruler_ending="e",
    rulers="Ludwig|Friedrich|Wilhelm|Heinrich|Karl|Otto|Franz|Joseph|Leopold|Georg|Maximilian|Konrad|Rudolf|Philipp"
    "|Elisabeth|Katharina|Benedikt|Johannes|Paul|Pius|Leo|Gregor|Peter|Alexander|Nikolaus|Innozenz|Napoleon|Gustav",
    last_ordinal=200,
    postcode=r"(?:(?<=,\s)|(?<=D-))\d{5}(?=\s[A-ZÄÖÜ][a-zäöü])",
    months=_MONTHS,
    short_months=words("Jan Febr? März|Mär|Mrz Apr Mai Juni?|Jun Juli?|Jul Aug Sept? Okt Nov Dez"),
    days=table("mo=Montag, di=Dienstag, mi=Mittwoch, do=Donnerstag, fr=Freitag, sa=Samstag, so=Sonntag"),
    date="{day} {month} {year}",
    day_month="{day} {month}",
    first_of_month="",
    time="{hour} Uhr {minute}",
    full_hour="{hour} Uhr",
    hour_marks=r"Uhr\b|h\b",
    before_time="(?i:um|von|bis|ab|gegen|seit|nach|vor)",
    money={"€": _EURO, "EUR": _EURO, "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR, "CHF": _FRANC, "Fr.": _FRANC}
    | {"£": (("Pfund", "Pfund"), ("Penny", "Pence")), "¥": (("Yen", "Yen"), ("Sen", "Sen"))}
    | {"GBP": (("Pfund", "Pfund"), ("Penny", "Pence")), "DM": (("Mark", "Mark"), ("Pfennig", "Pfennig"))},
    money_joint="",
    of_money="",
    scales=names("Mio. Million Millionen, Mio Million Millionen, Mrd. Milliarde Milliarden, Mrd Milliarde Milliarden")
    | names("Bio. Billion Billionen, Tsd. tausend tausend, Million Million Millionen, Millionen Million Millionen")
    | names("Milliarde Milliarde Milliarden, Milliarden Milliarde Milliarden, Billionen Billion Billionen"),
    per="pro",
    units=names("km Kilometer Kilometer, m Meter Meter, dm Dezimeter Dezimeter, cm Zentimeter Zentimeter")
    | names("mm Millimeter Millimeter, kg Kilo Kilo, t Tonne Tonnen, ha Hektar Hektar, Ztr. Zentner Zentner")
    | names("h Stunde Stunden, Std. Stunde Stunden, min Minute Minuten, Min. Minute Minuten, s Sekunde Sekunden")
    | names("Sek. Sekunde Sekunden, ms Millisekunde Millisekunden, PS P_S P_S, bit Bit Bit, Stk. Stück Stück")
    | names("°C Grad_Celsius Grad_Celsius, ºC Grad_Celsius Grad_Celsius, °F Grad_Fahrenheit Grad_Fahrenheit")
    | names("° Grad Grad, % Prozent Prozent, ‰ Promille Promille, Jh Jahrhundert Jahrhunderte")
    | names("Hz Hertz Hertz, V Volt Volt, A Ampere Ampere, W Watt Watt, J Joule Joule, dB Dezibel Dezibel")
    | names("g Gramm Gramm, l Liter Liter, L Liter Liter, cal Kalorie Kalorien, Pa Pascal Pascal, bar Bar Bar")
    | names(
        "m² Quadratmeter Quadratmeter, km² Quadratkilometer Quadratkilometer, cm² Quadratzentimeter Quadratzentimeter"
    )
    | names("m³ Kubikmeter Kubikmeter, cm³ Kubikzentimeter Kubikzentimeter, qm Quadratmeter Quadratmeter")
    | names("m2 Quadratmeter Quadratmeter, m3 Kubikmeter Kubikmeter, km/h Kilometer_pro_Stunde Kilometer_pro_Stunde")
    | names("m/s Meter_pro_Sekunde Meter_pro_Sekunde, Jh. Jahrhundert Jahrhunderte")
    | prefixed("m Milli, c Zenti, µ Mikro, μ Mikro", "g gramm gramm")
    | prefixed("m Milli, c Zenti, d Dezi, h Hekto", "l liter liter")
    | prefixed("m Milli, k Kilo, M Mega, G Giga", "W watt watt")
    | prefixed("k Kilo, M Mega, G Giga, T Tera", "Wh wattstunde wattstunden")
    | prefixed("k Kilo, M Mega, G Giga, T Tera, P Peta", "B byte byte")
    | prefixed("k Kilo, M Mega, G Giga", "Hz hertz hertz")
    | prefixed("k Kilo", "cal kalorie kalorien")
    | prefixed("h Hekto, k Kilo, M Mega", "Pa pascal pascal"),
    squared=("zum Quadrat", "zum Quadrat"),
    cubed=("hoch drei", "hoch drei"),
    symbols=table(
        "^=hoch, ~=ungefähr, &=und, @=ät, ==gleich, ×=mal, ÷=geteilt durch, §=Paragraf, №=Nummer, #=Nummer, "
        "<=kleiner als, >=größer als, ≤=kleiner oder gleich, ≥=größer oder gleich, ≈=ungefähr, ≠=ungleich, "
        "√=Wurzel aus, ∞=unendlich, π=Pi, →=nach"
    ),
    abbreviations=table(
        "Dr.=Doktor, Dres.=Doktoren, Prof.=Professor, Hr.=Herr, Hrn.=Herrn, Dipl.-Ing.=Diplom-Ingenieur, "
        "z. B.=zum Beispiel, d. h.=das heißt, u. a.=unter anderem, u. U.=unter Umständen, i. d. R.=in der Regel, "
        "z. T.=zum Teil, o. ä.=oder ähnliches, o. Ä.=oder Ähnliches, u. s. w.=und so weiter, usw.=und so weiter, "
        "usf.=und so fort, etc.=et cetera, bzw.=beziehungsweise, ca.=circa, ggf.=gegebenenfalls, evtl.=eventuell, "
        "inkl.=inklusive, exkl.=exklusive, zzgl.=zuzüglich, abzgl.=abzüglich, max.=maximal, min.=mindestens, "
        "vgl.=vergleiche, sog.=sogenannte, bspw.=beispielsweise, gem.=gemäß, lt.=laut, geb.=geboren, gest.=gestorben, "
        "v. a.=vor allem, i. A.=im Auftrag, z. Zt.=zur Zeit, zz.=zurzeit, z. Hd.=zu Händen, m. E.=meines Erachtens, "
        "v. Chr.=vor Christus, n. Chr.=nach Christus, Jh.=Jahrhundert, Mio.=Millionen, Mrd.=Milliarden, "
        "Tel.=Telefon, Mobil.=Mobil, MwSt.=Mehrwertsteuer, MwSt=Mehrwertsteuer, USt.=Umsatzsteuer, "
        "St.=Sankt, Str.=Straße, Std.=Stunden, Min.=Minuten, Sek.=Sekunden, Tsd.=tausend, PLZ=Postleitzahl, "
        "OG=Obergeschoss, EG=Erdgeschoss, UG=Untergeschoss, Whg.=Wohnung, Zi.=Zimmer, Hbf.=Hauptbahnhof, "
        "Hbf=Hauptbahnhof, Bhf.=Bahnhof, Abt.=Abteilung, Anm.=Anmerkung, Red.=Redaktion, Hrsg.=Herausgeber, "
        "Co.=Co, e. V.=eingetragener Verein, e.V.=eingetragener Verein, a. D.=außer Dienst, a. M.=am Main"
    ),
    before_number=table(
        "S.=Seite, Nr.=Nummer, Nrn.=Nummern, Art.=Artikel, Abs.=Absatz, Kap.=Kapitel, Bd.=Band, Abb.=Abbildung, "
        "Tab.=Tabelle, Zif.=Ziffer, Ziff.=Ziffer, Z.=Zeile, Aufl.=Auflage, Jg.=Jahrgang, Kl.=Klasse, Fig.=Figur"
    ),
    before_name=table("Fr.=Frau, Hl.=Heilige, Gebr.=Gebrüder"),
    after_number=table("ff.=fortfolgende, f.=folgende, Abs.=Absatz"),
    signs=table(
        ".=Punkt, /=Schrägstrich, @=ät, _=Unterstrich, -=Bindestrich, :=Doppelpunkt, #=Hashtag, ?=Fragezeichen, "
        "==gleich, &=und, +=plus, %=Prozent, ~=Tilde, www=weh weh weh"
    ),
    letters=words("ah beh zeh deh eh eff geh hah ih jott kah ell emm enn oh peh kuh err ess teh uh vau weh")
    + words("ix üpsilon zett"),
    feminine_units=frozenset({"t", "h", "Std.", "min", "Min.", "s", "Sek.", "ms", "cal", "kcal", "DM", "kWh"}),
    feminine_endings=("ung", "heit", "keit", "schaft", "ion", "tät", "enz", "anz", "e"),
    feminine_nouns=frozenset(
        words("frau stadt nacht hand welt zeit zahl wand bank million milliarde mutter tochter schwester feder gabel")
        + words("person ziffer fabrik musik uhr tür schicht fahrt reihe woche minute stunde sekunde mark")
    ),
    # Duden: masculine nouns of the weak declension and neuter ones that end in -e.
    masculine_nouns=frozenset(
        words("junge name kunde kollege löwe hase affe gedanke buchstabe käse auge ende gebäude gemälde erbe franzose")
        + words("deutsche experte zeuge bote pate glaube wille friede see knabe neffe gebirge getreide interesse")
        + words("tage jahre monate euro tee klee schnee")
    ),
    no_nouns=frozenset(words("und oder bis von mit aus auf für bei nach vor als wie ist sind war gegen durch mal")),
    spelled=frozenset(
        words("USA EU EDV ADAC IHK ICE IC AG UKW UV IT EKG EEG URL USB IBM ARD ADHS UN AKW KFZ API KI IQ AOK")
        + words("EZB HIV AfD IP OP OSZE GEZ IG EM UV ABS AOL AGB EC EAN ISBN ABC BKA VIP")
    ),
    spoken_acronyms=frozenset(),
    numbered="Kapitel|Band|Teil|Akt|Artikel|Klasse|Stufe|Abschnitt|Buch|Szene|Typ|Phase",
    digit_words=r"PLZ|Postleitzahl|Code|PIN|IBAN|BLZ",
    phone_words=r"Tel|Telefon|Ruf\w*|ruf\w*|anruf\w*|Handy\w*|Mobil\w*|Nummer|Fax|Hotline|Durchwahl|erreich\w*",
)
