"""French. Numerals after Grevisse (Le Bon Usage), dates and units after CLDR, telephones as France writes them."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_EURO = (("euro", "euros"), ("centime", "centimes"))
_DOLLAR = (("dollar", "dollars"), ("cent", "cents"))

LOCALE = Locale(
    code="fr",
    point="virgule",
    dot="point",
    minus="moins",
    plus="plus",
    plus_minus="plus ou moins",
    range_joint="à",
    fraction_joint="sur",
    fractions=table("1/2=un demi, 1/3=un tiers, 2/3=deux tiers, 1/4=un quart, 3/4=trois quarts, 1/5=un cinquième"),
    half=("un demi", "une demi"),
    joint="et",
    ordinals=words(
        "premier deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième onzième douzième"
    ),
    ordinal_marks=r"ers?|res?|ères?|es?|èmes?|ièmes?|nde?s?|°(?=\))",
    feminine_marks=("re", "res", "ère", "ères", "nde", "ndes"),
    months=words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    short_months=words("janv fé?vr? mars avr mai juin juill? août sept oct nov déc"),
    days=table("lun=lundi, mar=mardi, mer=mercredi, jeu=jeudi, ven=vendredi, sam=samedi, dim=dimanche"),
    date="{day} {month} {year}",
    day_month="{day} {month}",
    first_of_month="premier",
    time="{hour} heures {minute}",
    full_hour="{hour} heures",
    hour_marks=r"h\b",
    money={"€": _EURO, "EUR": _EURO, "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR, "CAD": _DOLLAR, "$ CA": _DOLLAR}
    | {"£": (("livre", "livres"), ("penny", "pence")), "¥": (("yen", "yens"), ("sen", "sens"))}
    | {"CHF": (("franc suisse", "francs suisses"), ("centime", "centimes"))}
    | {"FCFA": (("franc CFA", "francs CFA"), ("centime", "centimes"))},
    money_joint="",
    of_money="d'",
    scales=names("M million millions, Md milliard milliards, Mds milliard milliards, Mrd milliard milliards")
    | names("k mille mille, million million millions, millions million millions, milliard milliard milliards")
    | names("milliards milliard milliards"),
    per="par",
    units=names("km kilomètre kilomètres, m mètre mètres, dm décimètre décimètres, cm centimètre centimètres")
    | names("mm millimètre millimètres, kg kilo kilos, t tonne tonnes, ha hectare hectares, q quintal quintaux")
    | names("h heure heures, min minute minutes, mn minute minutes, s seconde secondes, ms milliseconde millisecondes")
    | names("°C degré_Celsius degrés_Celsius, ºC degré_Celsius degrés_Celsius, °F degré_Fahrenheit degrés_Fahrenheit")
    | names("° degré degrés, % pour_cent pour_cent, ‰ pour_mille pour_mille, ch cheval chevaux, bit bit bits")
    | names("Hz hertz hertz, V volt volts, A ampère ampères, W watt watts, J joule joules")
    | names("g gramme grammes, l litre litres, L litre litres, cal calorie calories, dB décibel décibels")
    | names("Pa pascal pascals, bar bar bars, hab. habitant habitants, km/h kilomètre_à_l'heure kilomètres_à_l'heure")
    | prefixed("m milli, c centi, d déci, µ micro, μ micro", "g gramme grammes")
    | prefixed("m milli, c centi, d déci, h hecto", "l litre litres")
    | prefixed("m milli, c centi, d déci, h hecto", "L litre litres")
    | prefixed("m milli, k kilo, M méga, G giga", "W watt watts")
    | prefixed("k kilo, M méga, G giga, T téra", "Wh wattheure wattheures")
    | prefixed("k kilo, M méga, G giga, T téra, P péta", "o octet octets")
    | prefixed("k kilo, M méga, G giga, T téra", "B octet octets")
    | prefixed("k kilo, M méga, G giga", "Hz hertz hertz")
    | prefixed("k kilo", "cal calorie calories")
    | prefixed("h hecto, k kilo, M méga", "Pa pascal pascals"),
    squared=("carré", "carrés"),
    cubed=("cube", "cubes"),
    symbols=table(
        "^=puissance, ~=environ, &=et, @=arobase, ==égale, ×=fois, ÷=divisé par, §=paragraphe, №=numéro, "
        "#=dièse, <=inférieur à, >=supérieur à, ≤=inférieur ou égal à, ≥=supérieur ou égal à, ≈=environ, "
        "≠=différent de, √=racine de, ∞=l'infini, π=pi, →=vers"
    ),
    abbreviations=table(
        "Mr=monsieur, M. et Mme=monsieur et madame, Mme=madame, Mmes=mesdames, Mlle=mademoiselle, "
        "Mlles=mesdemoiselles, MM.=messieurs, Dr=docteur, Drs=docteurs, Pr=professeur, Me=maître, Mgr=monseigneur, "
        "etc.=et cetera, p. ex.=par exemple, c.-à-d.=c'est-à-dire, env.=environ, tél.=téléphone, "
        "av. J.-C.=avant Jésus-Christ, apr. J.-C.=après Jésus-Christ, ap. J.-C.=après Jésus-Christ, n°=numéro, "
        "nº=numéro, nos=nos, N°=numéro, bd=boulevard, bld=boulevard, boul.=boulevard, pl.=place, bât.=bâtiment, "
        "ét.=étage, appt=appartement, appt.=appartement, apt.=appartement, rte=route, fg=faubourg, St-=Saint-, "
        "Ste-=Sainte-, Cie=compagnie, s.v.p.=s'il vous plaît, svp=s'il vous plaît, R.-V.=rendez-vous, "
        "RDV=rendez-vous, max.=maximum, cf.=confer, éd.=édition, ch.=chapitre, dép.=département, suiv.=suivantes, "
        "ex.=exemple, hab.=habitants, qqch.=quelque chose, qqn=quelqu'un"
    ),
    before_number=table(
        "p.=page, pp.=pages, art.=article, al.=alinéa, vol.=volume, chap.=chapitre, fig.=figure, no=numéro, "
        "t.=tome, v.=vers, km=kilomètre, ann.=annexe"
    ),
    before_name=table("M.=monsieur, av.=avenue, St=Saint, Ste=Sainte"),
    after_number=table("hab.=habitants, et suiv.=et suivantes"),
    signs=table(
        ".=point, /=slash, @=arobase, _=tiret bas, -=tiret, :=deux points, #=dièse, ?=point d'interrogation, "
        "==égale, &=et, +=plus, %=pour cent, ~=tilde, www=double vé double vé double vé"
    ),
    letters=(
        *words("a bé cé dé e effe gé ache i ji ka elle emme enne o pé ku erre esse té u vé"),
        *("double vé", "ixe", "i grec", "zède"),
    ),
    hours_are_feminine=True,
    feminine_units=frozenset({"h", "min", "mn", "s", "£", "t", "cal", "kcal"}),
    feminine_nouns=frozenset(
        words(
            "heure minute seconde année semaine journée nuit fois femme fille voiture maison page personne livre tonne"
        )
        + words(
            "tasse chose question ville rue table pomme partie raison photo place école chambre équipe goutte boîte"
        )
    ),
    no_nouns=frozenset(words("dans pour avec sur par les des")),
    spelled=frozenset(words("RATP UE ADN ARN PDG PME IA EDF URL USB IBM BD SARL API QI UV OGM TVA HLM")),
    rulers="François|Louis|Charles|Henri|Philippe|Jean|Napoléon|Élisabeth|Elisabeth|Charles|Guillaume|Léopold|Albert|Paul",
    numbered="siècles?|chapitres?|tomes?|volumes?|livres?|actes?|parties?|articles?|titres?|annexes?|phases?|types?|niveau",
    last_ordinal=1,
    digit_words=r"code postal|code",
    phone_words=r"t[eé]l\w*|appel\w*|portable|mobile|num[eé]ro|fax|compos\w+|joindre",
    phone_by_pairs=True,
)
