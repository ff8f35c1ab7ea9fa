"""Words for months, money, units and abbreviations in five languages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tutti.text.normalize.cardinals import words

Name = tuple[str, str]  # singular, plural


@dataclass(frozen=True, slots=True)
class Locale:
    """What european.py needs to know of a language."""

    code: str
    point: str  # between a number and its decimals
    minus: str
    plus: str
    range_joint: str  # between the ends of a range
    fraction_joint: str  # between the halves of a fraction
    money_joint: str  # between money and its hundredths
    date: str
    time: str
    full_hour: str
    months: Sequence[str]
    first_of_month: str
    money: dict[str, tuple[Name, Name]]
    units: dict[str, Name]
    symbols: dict[str, str]
    abbreviations: dict[str, str]
    feminine_units: frozenset[str] = frozenset()
    ordinals: Sequence[str] = ()  # 1 to 10, masculine
    fractions: dict[str, str] = field(default_factory=dict)
    hours_are_feminine: bool = False


_EURO = (("euro", "euros"), ("céntimo", "céntimos"))

SPANISH = Locale(
    code="es",
    point="coma",
    minus="menos",
    plus="más",
    range_joint="a",
    fraction_joint="entre",
    money_joint="con",
    date="{day} de {month} de {year}",
    time="{hour} y {minute}",
    full_hour="{hour} en punto",
    months=words("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    first_of_month="primero",
    money={
        "€": _EURO,
        "EUR": _EURO,
        "$": (("dólar", "dólares"), ("centavo", "centavos")),
        "US$": (("dólar", "dólares"), ("centavo", "centavos")),
        "USD": (("dólar", "dólares"), ("centavo", "centavos")),
        "£": (("libra", "libras"), ("penique", "peniques")),
        "¥": (("yen", "yenes"), ("sen", "sen")),
    },
    units=(
        {"km/h": ("kilómetro por hora", "kilómetros por hora"), "km": ("kilómetro", "kilómetros")}
        | {"m": ("metro", "metros"), "cm": ("centímetro", "centímetros"), "mm": ("milímetro", "milímetros")}
        | {"kg": ("kilo", "kilos"), "g": ("gramo", "gramos"), "l": ("litro", "litros")}
        | {"ml": ("mililitro", "mililitros")}
        | {"km²": ("kilómetro cuadrado", "kilómetros cuadrados"), "m²": ("metro cuadrado", "metros cuadrados")}
        | {"h": ("hora", "horas"), "min": ("minuto", "minutos"), "s": ("segundo", "segundos")}
        | {"°C": ("grado Celsius", "grados Celsius"), "°F": ("grado Fahrenheit", "grados Fahrenheit")}
        | {"°": ("grado", "grados"), "%": ("por ciento", "por ciento"), "GB": ("gigabyte", "gigabytes")}
    ),
    symbols={"&": "y", "@": "arroba", "=": "igual a", "×": "por", "§": "sección", "№": "número", "#": "número"},
    abbreviations=(
        {"Sr.": "señor", "Sra.": "señora", "Srta.": "señorita", "Dr.": "doctor", "Dra.": "doctora"}
        | {"Ud.": "usted"}
        | {"Uds.": "ustedes", "EE. UU.": "Estados Unidos", "EE.UU.": "Estados Unidos", "etc.": "etcétera."}
        | {"p. ej.": "por ejemplo", "núm.": "número", "pág.": "página", "tel.": "teléfono", "Prof.": "profesor"}
    ),
    feminine_units=frozenset({"h", "£"}),
    ordinals=words("primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo"),
    fractions={"1/2": "un medio", "1/3": "un tercio", "2/3": "dos tercios", "1/4": "un cuarto", "3/4": "tres cuartos"},
    hours_are_feminine=True,
)

FRENCH = Locale(
    code="fr",
    point="virgule",
    minus="moins",
    plus="plus",
    range_joint="à",
    fraction_joint="sur",
    money_joint="",
    date="{day} {month} {year}",
    time="{hour} heures {minute}",
    full_hour="{hour} heures",
    months=words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    first_of_month="premier",
    money={
        "€": (("euro", "euros"), ("centime", "centimes")),
        "EUR": (("euro", "euros"), ("centime", "centimes")),
        "$": (("dollar", "dollars"), ("cent", "cents")),
        "USD": (("dollar", "dollars"), ("cent", "cents")),
        "£": (("livre", "livres"), ("penny", "pence")),
        "¥": (("yen", "yens"), ("sen", "sens")),
    },
    units=(
        {"km/h": ("kilomètre à l'heure", "kilomètres à l'heure"), "km": ("kilomètre", "kilomètres")}
        | {"m": ("mètre", "mètres"), "cm": ("centimètre", "centimètres"), "mm": ("millimètre", "millimètres")}
        | {"kg": ("kilo", "kilos"), "g": ("gramme", "grammes"), "l": ("litre", "litres")}
        | {"ml": ("millilitre", "millilitres")}
        | {"km²": ("kilomètre carré", "kilomètres carrés"), "m²": ("mètre carré", "mètres carrés")}
        | {"h": ("heure", "heures"), "min": ("minute", "minutes"), "s": ("seconde", "secondes")}
        | {"°C": ("degré Celsius", "degrés Celsius"), "°F": ("degré Fahrenheit", "degrés Fahrenheit")}
        | {"°": ("degré", "degrés"), "%": ("pour cent", "pour cent"), "Go": ("gigaoctet", "gigaoctets")}
    ),
    symbols={"&": "et", "@": "arobase", "=": "égale", "×": "fois", "§": "paragraphe", "№": "numéro", "#": "dièse"},
    abbreviations=(
        {"M.": "monsieur", "MM.": "messieurs", "Mme": "madame", "Mmes": "mesdames", "Mlle": "mademoiselle"}
        | {"Dr": "docteur", "etc.": "et cetera.", "p. ex.": "par exemple", "n°": "numéro", "tél.": "téléphone"}
    ),
    feminine_units=frozenset({"h", "min", "s", "£"}),
    ordinals=(
        *("premier", "deuxième", "troisième", "quatrième", "cinquième", "sixième", "septième", "huitième", "neuvième"),
        "dixième",
    ),
    fractions={"1/2": "un demi", "1/3": "un tiers", "2/3": "deux tiers", "1/4": "un quart", "3/4": "trois quarts"},
    hours_are_feminine=True,
)

ITALIAN = Locale(
    code="it",
    point="virgola",
    minus="meno",
    plus="più",
    range_joint="a",
    fraction_joint="su",
    money_joint="e",
    date="{day} {month} {year}",
    time="{hour} e {minute}",
    full_hour="{hour} in punto",
    months=words("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
    first_of_month="primo",
    money={
        "€": (("euro", "euro"), ("centesimo", "centesimi")),
        "EUR": (("euro", "euro"), ("centesimo", "centesimi")),
        "$": (("dollaro", "dollari"), ("centesimo", "centesimi")),
        "USD": (("dollaro", "dollari"), ("centesimo", "centesimi")),
        "£": (("sterlina", "sterline"), ("penny", "pence")),
        "¥": (("yen", "yen"), ("sen", "sen")),
    },
    units=(
        {"km/h": ("chilometro all'ora", "chilometri all'ora"), "km": ("chilometro", "chilometri")}
        | {"m": ("metro", "metri"), "cm": ("centimetro", "centimetri"), "mm": ("millimetro", "millimetri")}
        | {"kg": ("chilo", "chili"), "g": ("grammo", "grammi"), "l": ("litro", "litri")}
        | {"ml": ("millilitro", "millilitri")}
        | {"km²": ("chilometro quadrato", "chilometri quadrati"), "m²": ("metro quadrato", "metri quadrati")}
        | {"h": ("ora", "ore"), "min": ("minuto", "minuti"), "s": ("secondo", "secondi")}
        | {"°C": ("grado Celsius", "gradi Celsius"), "°F": ("grado Fahrenheit", "gradi Fahrenheit")}
        | {"°": ("grado", "gradi"), "%": ("per cento", "per cento"), "GB": ("gigabyte", "gigabyte")}
    ),
    symbols={
        "&": "e",
        "@": "chiocciola",
        "=": "uguale a",
        "×": "per",
        "§": "paragrafo",
        "№": "numero",
        "#": "cancelletto",
    },
    abbreviations=(
        {"Sig.": "signor", "Sig.ra": "signora", "Dott.": "dottor", "Dott.ssa": "dottoressa"}
        | {"Prof.": "professor"}
        | {"ecc.": "eccetera.", "n.": "numero", "tel.": "telefono", "pag.": "pagina"}
    ),
    feminine_units=frozenset({"h", "£"}),
    ordinals=words("primo secondo terzo quarto quinto sesto settimo ottavo nono decimo"),
    fractions={"1/2": "un mezzo", "1/3": "un terzo", "2/3": "due terzi", "1/4": "un quarto", "3/4": "tre quarti"},
    hours_are_feminine=True,
)

_REAL = (("real", "reais"), ("centavo", "centavos"))

PORTUGUESE = Locale(
    code="pt-br",
    point="vírgula",
    minus="menos",
    plus="mais",
    range_joint="a",
    fraction_joint="sobre",
    money_joint="e",
    date="{day} de {month} de {year}",
    time="{hour} e {minute}",
    full_hour="{hour} horas",
    months=words("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
    first_of_month="primeiro",
    money={
        "R$": _REAL,
        "BRL": _REAL,
        "€": (("euro", "euros"), ("centavo", "centavos")),
        "EUR": (("euro", "euros"), ("centavo", "centavos")),
        "$": (("dólar", "dólares"), ("centavo", "centavos")),
        "US$": (("dólar", "dólares"), ("centavo", "centavos")),
        "USD": (("dólar", "dólares"), ("centavo", "centavos")),
        "£": (("libra", "libras"), ("centavo", "centavos")),
        "¥": (("iene", "ienes"), ("sen", "sen")),
    },
    units=(
        {"km/h": ("quilômetro por hora", "quilômetros por hora"), "km": ("quilômetro", "quilômetros")}
        | {"m": ("metro", "metros"), "cm": ("centímetro", "centímetros"), "mm": ("milímetro", "milímetros")}
        | {"kg": ("quilo", "quilos"), "g": ("grama", "gramas"), "l": ("litro", "litros")}
        | {"ml": ("mililitro", "mililitros")}
        | {"km²": ("quilômetro quadrado", "quilômetros quadrados")}
        | {"m²": ("metro quadrado", "metros quadrados")}
        | {"h": ("hora", "horas"), "min": ("minuto", "minutos"), "s": ("segundo", "segundos")}
        | {"°C": ("grau Celsius", "graus Celsius"), "°F": ("grau Fahrenheit", "graus Fahrenheit")}
        | {"°": ("grau", "graus"), "%": ("por cento", "por cento"), "GB": ("gigabyte", "gigabytes")}
    ),
    symbols={"&": "e", "@": "arroba", "=": "igual a", "×": "vezes", "§": "parágrafo", "№": "número", "#": "número"},
    abbreviations=(
        {"Sr.": "senhor", "Sra.": "senhora", "Dr.": "doutor", "Dra.": "doutora", "Prof.": "professor"}
        | {"Profa.": "professora", "etc.": "et cetera.", "p. ex.": "por exemplo", "nº": "número"}
        | {"tel.": "telefone"}
    ),
    feminine_units=frozenset({"h", "£"}),
    ordinals=words("primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono décimo"),
    fractions={"1/2": "um meio", "1/3": "um terço", "2/3": "dois terços", "1/4": "um quarto", "3/4": "três quartos"},
    hours_are_feminine=True,
)

_RUPEE = (("रुपया", "रुपये"), ("पैसा", "पैसे"))

HINDI = Locale(
    code="hi",
    point="दशमलव",
    minus="ऋण",
    plus="धन",
    range_joint="से",
    fraction_joint="बटा",
    money_joint="और",
    date="{day} {month} {year}",
    time="{hour} बजकर {minute} मिनट",
    full_hour="{hour}",
    months=words("जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर"),
    first_of_month="एक",
    money={
        "₹": _RUPEE,
        "Rs.": _RUPEE,
        "Rs": _RUPEE,
        "INR": _RUPEE,
        "$": (("डॉलर", "डॉलर"), ("सेंट", "सेंट")),
        "€": (("यूरो", "यूरो"), ("सेंट", "सेंट")),
        "£": (("पाउंड", "पाउंड"), ("पेंस", "पेंस")),
        "¥": (("येन", "येन"), ("सेन", "सेन")),
    },
    units=(
        {"km/h": ("किलोमीटर प्रति घंटा", "किलोमीटर प्रति घंटा"), "km": ("किलोमीटर", "किलोमीटर")}
        | {"किमी": ("किलोमीटर", "किलोमीटर"), "m": ("मीटर", "मीटर"), "cm": ("सेंटीमीटर", "सेंटीमीटर")}
        | {"kg": ("किलो", "किलो"), "किग्रा": ("किलोग्राम", "किलोग्राम"), "g": ("ग्राम", "ग्राम")}
        | {"l": ("लीटर", "लीटर")}
        | {"°C": ("डिग्री सेल्सियस", "डिग्री सेल्सियस"), "°F": ("डिग्री फ़ारेनहाइट", "डिग्री फ़ारेनहाइट")}
        | {"°": ("डिग्री", "डिग्री"), "%": ("प्रतिशत", "प्रतिशत")}
    ),
    symbols={"&": "और", "@": "ऐट", "=": "बराबर", "×": "गुणा", "#": "नंबर"},
    abbreviations={"डॉ.": "डॉक्टर", "श्री.": "श्री", "रु.": "रुपये"},
    ordinals=words("पहला दूसरा तीसरा चौथा पाँचवाँ छठा सातवाँ आठवाँ नौवाँ दसवाँ"),
    fractions={"1/2": "आधा", "1/4": "चौथाई", "3/4": "तीन चौथाई"},
)

LOCALES = {locale.code: locale for locale in (SPANISH, FRENCH, ITALIAN, PORTUGUESE, HINDI)}
