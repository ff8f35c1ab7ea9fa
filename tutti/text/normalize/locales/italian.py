"""Italian. Ordinals after Treccani (La grammatica italiana), dates and units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_EURO = (("euro", "euro"), ("centesimo", "centesimi"))
_DOLLAR = (("dollaro", "dollari"), ("centesimo", "centesimi"))

LOCALE = Locale(
    code="it",
    point="virgola",
    dot="punto",
    minus="meno",
    plus="più",
    plus_minus="più o meno",
    range_joint="a",
    fraction_joint="su",
    fractions=table("1/2=un mezzo, 1/3=un terzo, 2/3=due terzi, 1/4=un quarto, 3/4=tre quarti, 1/5=un quinto"),
    half=("mezzo", "mezza"),
    joint="e",
    ordinals=words("primo secondo terzo quarto quinto sesto settimo ottavo nono decimo"),
    ordinal_marks=r"[ºª](?!\s?[CF]\b)|°(?=\s[a-zà-ÿ]{3})|[oa](?=\s)",
    feminine_marks=("ª", "a"),
    months=words("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
    short_months=words("genn? febb? mar apr magg? giu lugl? ago sett? ott nov dic"),
    days=table("lun=lunedì, mar=martedì, mer=mercoledì, gio=giovedì, ven=venerdì, sab=sabato, dom=domenica"),
    date="{day} {month} {year}",
    day_month="{day} {month}",
    first_of_month="primo",
    time="{hour} e {minute}",
    full_hour="{hour} in punto",
    hour_marks=r"h\b",
    before_time="alle|dalle|ore|delle|le",
    money={"€": _EURO, "EUR": _EURO, "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR}
    | {"£": (("sterlina", "sterline"), ("penny", "pence")), "¥": (("yen", "yen"), ("sen", "sen"))}
    | {"CHF": (("franco svizzero", "franchi svizzeri"), ("centesimo", "centesimi"))},
    money_joint="e",
    of_money="di",
    scales=names("M milione milioni, mln milione milioni, mld miliardo miliardi, milione milione milioni")
    | names("milioni milione milioni, miliardo miliardo miliardi, miliardi miliardo miliardi"),
    per="al",
    units=names("km chilometro chilometri, m metro metri, dm decimetro decimetri, cm centimetro centimetri")
    | names("mm millimetro millimetri, kg chilo chili, hg etto etti, t tonnellata tonnellate, ha ettaro ettari")
    | names("h ora ore, min minuto minuti, s secondo secondi, sec secondo secondi, q quintale quintali")
    | names("°C grado_Celsius gradi_Celsius, ºC grado_Celsius gradi_Celsius, °F grado_Fahrenheit gradi_Fahrenheit")
    | names("° grado gradi, % per_cento per_cento, ‰ per_mille per_mille, CV cavallo cavalli, bit bit bit")
    | names("Hz hertz hertz, V volt volt, A ampere ampere, W watt watt, J joule joule")
    | names("g grammo grammi, l litro litri, L litro litri, cal caloria calorie, dB decibel decibel")
    | names("Pa pascal pascal, bar bar bar, ab. abitante abitanti, km/h chilometro_all'ora chilometri_all'ora")
    | prefixed("m milli, c centi, d deci, µ micro, μ micro", "g grammo grammi")
    | prefixed("m milli, c centi, d deci, h etto", "l litro litri")
    | prefixed("m milli, c centi, d deci, h etto", "L litro litri")
    | prefixed("m milli, k chilo, M mega, G giga", "W watt watt")
    | prefixed("k chilo, M mega, G giga, T tera", "Wh wattora wattora")
    | prefixed("k kilo, M mega, G giga, T tera, P peta", "B byte byte")
    | prefixed("k chilo, M mega, G giga", "Hz hertz hertz")
    | prefixed("k chilo", "cal caloria calorie")
    | prefixed("h etto, k chilo, M mega", "Pa pascal pascal"),
    squared=("quadrato", "quadrati"),
    cubed=("cubo", "cubi"),
    symbols=table(
        "^=alla, ~=circa, &=e, @=chiocciola, ==uguale a, ×=per, ÷=diviso, §=paragrafo, №=numero, "
        "#=cancelletto, <=minore di, >=maggiore di, ≤=minore o uguale a, ≥=maggiore o uguale a, ≈=circa, "
        "≠=diverso da, √=radice di, ∞=infinito, π=pi greco, →=a"
    ),
    abbreviations=table(
        "d.ssa=dottoressa, sig.=signor, sig.ra=signora, sigg.=signori, sig.na=signorina, dott.=dottor, "
        "dott.ssa=dottoressa, dr.=dottor, dr.ssa=dottoressa, prof.=professor, prof.ssa=professoressa, "
        "proff.=professori, avv.=avvocato, ing.=ingegner, arch.=architetto, geom.=geometra, rag.=ragionier, "
        "on.=onorevole, sen.=senatore, gen.=generale, cap.=capitano, ecc.=eccetera, etc.=eccetera, es.=esempio, "
        "ad es.=ad esempio, p. es.=per esempio, p.es.=per esempio, ca.=circa, tel.=telefono, cell.=cellulare, "
        "P.zza=piazza, P.za=piazza, V.le=viale, C.so=corso, L.go=largo, V.lo=vicolo, a. C.=avanti Cristo, "
        "d. C.=dopo Cristo, s.n.c.=esse enne ci, segg.=seguenti, sgg.=seguenti, D.L.=decreto legge, "
        "D.Lgs.=decreto legislativo, D. Lgs.=decreto legislativo, c.c.=codice civile, c.p.=codice penale, "
        "S.p.A.=esse pi a, S.r.l.=esse erre elle, SpA=esse pi a, Srl=esse erre elle, pag.=pagina, pagg.=pagine, "
        "n°=numero, nº=numero, N.=numero, int.=interno, all.=allegato, tab.=tabella, max.=massimo, ed.=edizione, "
        "u.s.=ultimo scorso, c.m.=corrente mese, p.v.=prossimo venturo"
    ),
    before_number=table(
        "n.=numero, nn.=numeri, p.=pagina, pp.=pagine, art.=articolo, artt.=articoli, vol.=volume, fig.=figura, "
        "sec.=secolo, co.=comma, km=chilometro"
    ),
    before_name=table("S.=san, SS.=santissimo, Ss.=santi, F.lli=fratelli, Mons.=monsignor, Card.=cardinale"),
    after_number=table("ab.=abitanti, e segg.=e seguenti, e sgg.=e seguenti"),
    signs=table(
        ".=punto, /=barra, @=chiocciola, _=trattino basso, -=trattino, :=due punti, #=cancelletto, "
        "?=punto interrogativo, ==uguale, &=e, +=più, %=per cento, ~=tilde, www=vu vu vu"
    ),
    letters=(
        *("a", "bi", "ci", "di", "e", "effe", "gi", "acca", "i", "i lunga", "kappa", "elle", "emme", "enne", "o", "pi"),
        *("cu", "erre", "esse", "ti", "u", "vu", "doppia vu", "ics", "ipsilon", "zeta"),
    ),
    hours_are_feminine=True,
    feminine_units=frozenset({"h", "£", "t", "cal", "kcal"}),
    feminine_endings=("a", "zione", "zioni", "sione", "tà"),
    feminine_nouns=frozenset(words("notte parte volte mano chiave")),
    masculine_nouns=frozenset(words("problema sistema programma tema clima poeta pianeta cinema")),
    no_nouns=frozenset(words("alla della sono con per dal del che")),
    spelled=frozenset(words("DNA RNA UE IA USB IBM API URL")),
    rulers="Vittorio|Emanuele|Umberto|Carlo|Luigi|Papa|Pio|Paolo|Enrico|Filippo|Francesco|Ferdinando|Napoleone|Federico|Giovanni",
    queens=frozenset(words("Elisabetta Caterina Maria Cristina Giovanna Vittoria Isabella Margherita")),
    numbered="secol[oi]|capitol[oi]|volum[ei]|tom[oi]|libr[oi]|att[oi]|articol[oi]|titol[oi]|grad[oi]|tip[oi]",
    numbered_are_ordinal=True,
    last_ordinal=100,
    articles={"la": True, "il": False, "della": True, "del": False, "nella": True, "nel": False, "alla": True}
    | {"al": False, "lo": False, "dal": False, "dalla": True, "una": True, "un": False},
    digit_words=r"CAP|PIN|codice",
    phone_words=r"tel\w*|cell\w*|chiam\w+|numero|fax|contatt\w+",
)
