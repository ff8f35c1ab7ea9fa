"""Normalisation of other languages than English: no digit is left, sources are right, it is idempotent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tutti.text.aligned_text import AlignedText
from tutti.text.normalize import NO_VOWELS, guesses, normalize
from tutti.text.normalize.cardinals import LIMIT, cardinal

CODES = ["es", "fr", "it", "pt-br", "hi", "zh", "ja", "de", "sv", "pl", "ru", "vi", "ar"]
FIGURES = "0123456789" * 3 + "٣५½²   .,,:/-–+%€$£¥₹°hkmCg年月日時円º"


def words(text: str, code: str) -> str:
    return normalize(AlignedText.of(text), code).text


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=examples(80), deadline=None)
@given(text=st.text(alphabet=FIGURES, max_size=24) | st.text(max_size=24))
def test_no_digit_is_left_and_a_second_pass_changes_nothing(code: str, text: str) -> None:
    once = normalize(AlignedText.of(text), code)
    assert not any(symbol.isdecimal() for symbol in once.text)
    assert normalize(once, code).text == once.text


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=examples(50), deadline=None)
@given(text=st.text(alphabet=FIGURES + "abc é", max_size=30))
def test_sources_are_in_order_and_inside_the_text(code: str, text: str) -> None:
    aligned = normalize(AlignedText.of(text), code)
    assert list(aligned.starts) == sorted(aligned.starts)
    assert all(0 <= start < end <= len(text) for start, end in zip(aligned.starts, aligned.ends, strict=True))


@pytest.mark.parametrize(
    ("code", "text", "spelled"),
    [
        ("es", "Tengo 21 gatos y 1 casa.", "Tengo veintiún gatos y una casa."),
        ("es", "El 5/1/2024 a las 14:30", "El cinco de enero de dos mil veinticuatro a las catorce y treinta"),
        ("es", "1.234,56 €", "mil doscientos treinta y cuatro euros con cincuenta y seis céntimos"),
        ("es", "−5 °C, 50 km/h", "menos cinco grados Celsius, cincuenta kilómetros por hora"),
        ("es", "de 1999-2001", "de mil novecientos noventa y nueve a dos mil uno"),
        ("es", "Sr. Gil, versión 2.0.1", "señor Gil, versión dos punto cero punto uno"),
        ("es", "555-1234", "cinco cinco cinco, uno dos tres cuatro"),
        ("fr", "Le 1er mai, 71 ans à 14h30", "Le premier mai, soixante et onze ans à quatorze heures trente"),
        ("fr", "1 234 € et 3,5 %", "mille deux cent trente-quatre euros et trois virgule cinq pour cent"),
        ("it", "Il 1º maggio 1998, 108", "Il primo maggio millenovecentonovantotto, centotto"),
        ("pt-br", "R$ 2,50 e 2 casas", "dois reais e cinquenta centavos e duas casas"),
        ("de", "Am 3. Mai um 1:05 Uhr", "Am dritten Mai um ein Uhr fünf"),
        (
            "de",
            "der 21.12.07, ein 2. Satz",
            "der einundzwanzigste Dezember zweitausendsieben, ein zweiter Satz",
        ),
        ("de", "1.234,50 € für 1 Frau", "tausendzweihundertvierunddreißig Euro fünfzig Cent für eine Frau"),
        ("de", "Die 80er, 2,5 m², Hauptstr. 1", "Die achtziger, zwei Komma fünf Quadratmeter, Hauptstraße eins"),
        ("sv", "den 3 maj 1999, kl. 14.05", "den tredje maj nittonhundranittionio, klockan fjorton och fem"),
        ("sv", "1 hund, 1 barn, 21 kr", "en hund, ett barn, tjugoen kronor"),
        ("pl", "1 zł, 22 zł, 25 zł", "jeden złoty, dwadzieścia dwa złote, dwadzieścia pięć złotych"),
        (
            "pl",
            "2,5 km w 1989 r.",
            "dwa przecinek pięć kilometra w tysiąc dziewięćset osiemdziesiątym dziewiątym roku.",
        ),
        ("ru", "1 рубль, 22 ₽, 25 ₽", "один рубль, двадцать два рубля, двадцать пять рублей"),
        (
            "ru",
            "2,5 км, 3 мая 2007 г. в 14:05",
            "две целых пять десятых километра, третьего мая две тысячи седьмого года в четырнадцать ноль пять",
        ),
        ("vi", "21, 15, 105, 1.005", "hai mươi mốt, mười lăm, một trăm linh năm, một nghìn không trăm linh năm"),
        ("vi", "ngày 3/4/2024, 17h30", "ngày ba tháng tư năm hai nghìn không trăm hai mươi bốn, mười bảy giờ ba mươi"),
        ("ar", "٣ كتب و3 سيارات، 12 سنة", "ثلاثة كتب و ثلاث سيارات، اثنتا عشرة سنة"),
        ("ar", "1 كم، 2 كم، 5 كم، 20 كم", "كيلومتر واحد، كيلومتران، خمسة كيلومترات، عشرون كيلومترا"),
        ("ar", "في 15/3/1990", "في الخامس عشر من مارس عام ألف وتسع مئة وتسعين"),
        ("ar", "الساعة 9:15، ١٬٠٠٠٫٥", "الساعة التاسعة وخمس عشرة دقيقة، ألف فاصلة خمسة"),
        ("pt-br", "2 kg a 10%", "dois quilos a dez por cento"),
        ("hi", "₹1,50,000 और १२३।", "एक लाख पचास हज़ार रुपये और एक सौ तेईस."),
        ("hi", "3.5%", "तीन दशमलव पाँच प्रतिशत"),
        ("zh", "2024年10月5日8:05", "二零二四年十月五日八点零五分"),
        ("zh", "5.5%，10005，2个，-3℃，3/4", "百分之五点五，一万零五，两个，零下三摄氏度，四分之三"),
        ("zh", "13812345678", "幺三八幺二三四五六七八"),
    ],
)
def test_figures_are_spelled_out(code: str, text: str, spelled: str) -> None:
    assert words(text, code) == spelled


@pytest.mark.parametrize(
    ("code", "text", "spelled"),
    [
        ("fr", "Louis XIV et Napoléon III", "Louis quatorze et Napoléon trois"),
        ("fr", "le XXIe siècle, le XIXe, François Ier", "le vingt et unième siècle, le dix-neuvième, François premier"),
        ("fr", "env. 30, p. 12, c.-à-d. ici", "environ trente, page douze, c'est-à-dire ici"),
        ("fr", "Le livre de Ve", "Le livre de cinquième"),
        ("es", "EE. UU. y EE.UU.", "Estados Unidos y Estados Unidos."),
        ("es", "n.º 12, C/ Mayor", "número doce, calle Mayor"),
        ("es", "el ADN de Felipe VI y Alfonso XIII", "el a de ene de Felipe sexto y Alfonso trece"),
        ("es", "en 2020 ha ganado 5 ha", "en dos mil veinte ha ganado cinco hectáreas"),
        ("pt-br", "Ligue (11) 91234-5678", "Ligue um um, nove um dois três quatro, cinco seis sete oito"),
        ("pt-br", "CEP 01310-100", "cep zero um três um zero, um zero zero"),
        ("pt-br", "R. das Flores, aprox. 3", "rua das Flores, aproximadamente três"),
        (
            "es",
            "1,234.56 USD y $1,500 MXN",
            "mil doscientos treinta y cuatro dólares con cincuenta y seis centavos y mil quinientos pesos",
        ),
        ("es", "1/2 kg, 3/4 l y 3/8", "medio kilo, tres cuartos de litro y tres octavos"),
        ("es", "3.º piso, 8:00-15:00", "tercer piso, ocho en punto a quince en punto"),
        ("fr", "3/4 h, 24h/24", "trois quarts d'heure, vingt-quatre heures sur vingt-quatre"),
        ("it", "anni '90, 20°, 3° piano", "anni novanta, venti gradi, terzo piano"),
        ("pt-br", "Lei 8.112/1990", "Lei oito mil cento e doze barra mil novecentos e noventa"),
        ("fr", "Cela dure 15 min.", "Cela dure quinze minutes."),
        ("hi", "उसे अंक मिले।", "उसे अंक मिले."),
        ("es", "25℃ y ~5 km", "veinticinco grados Celsius y  aproximadamente cinco kilómetros"),
        ("it", "il dott. Rossi, P.zza Dante, ca. 3", "il dottor Rossi, piazza Dante, circa tre"),
        ("hi", "₹12.5 लाख", "बारह दशमलव पाँच लाख रुपये"),
        ("hi", "+91 98765 43210", "प्लस नौ एक, नौ आठ सात छह पाँच, चार तीन दो एक शून्य"),
    ],
)
def test_numerals_abbreviations_and_telephones_follow_the_language(code: str, text: str, spelled: str) -> None:
    assert words(text, code) == spelled


@pytest.mark.parametrize(
    ("code", "dot", "slash"),
    [
        ("es", "punto", "barra"),
        ("fr", "point", "slash"),
        ("it", "punto", "barra"),
        ("pt-br", "ponto", "barra"),
        ("hi", "डॉट", "स्लैश"),
    ],
)
def test_addresses_are_spelled_in_the_words_of_the_language(code: str, dot: str, slash: str) -> None:
    assert words("https://ejemplo.com/ayuda", code) == f"ejemplo {dot} com {slash} ayuda"
    assert f" {dot} com" in words("a: info@ejemplo.com", code)


@pytest.mark.parametrize("code", ["es", "fr", "it", "pt-br"])
def test_grouped_numbers_of_four_groups_are_no_address(code: str) -> None:
    assert words("1.234.567.890", code) == cardinal(1_234_567_890, code)


@pytest.mark.parametrize("code", CODES)
def test_the_words_of_a_figure_have_its_source(code: str) -> None:
    aligned = normalize(AlignedText.of("a 1234 b", 100), code)
    inner = [source for source in zip(aligned.starts, aligned.ends, strict=True) if source[1] - source[0] > 1]
    assert inner
    assert {start for start, _ in inner} == {102}
    assert all(106 <= end <= 107 for _, end in inner)


@pytest.mark.parametrize("code", ["es", "fr", "it", "pt-br", "hi"])
def test_different_numbers_have_different_words(code: str) -> None:
    numbers = [*range(2000), *(10**k + d for k in range(4, 15) for d in (0, 1, 21, 999))]
    names = [cardinal(n, code) for n in numbers]
    assert len(set(names)) == len(set(numbers))
    assert cardinal(LIMIT - 1, code)


def test_plain_words_and_placeholders_are_unchanged() -> None:
    for code, text in {
        "es": "Hola, ¿qué tal?",
        "hi": "आप कैसे हैं?",
        "zh": "你好。",
        "ja": "今日は。",
        "fr": "l'\ufffc bleu",
    }.items():
        assert normalize(AlignedText.of(text), code) == AlignedText.of(text)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("piece", ["1,", "1 ", "1.", "$", "1/2/", "12:30 ", "1", "1-", "1 000 ", "+1 22 ", "1º", "1本"])
@pytest.mark.timeout(10)
def test_long_rows_of_figures_take_little_time(code: str, piece: str) -> None:
    assert not any(symbol.isdecimal() for symbol in words(piece * (5000 // len(piece)), code))


def test_arabic_without_vowel_signs_is_said_to_be_guessed() -> None:
    assert guesses("السلام عليكم", "ar") == (NO_VOWELS,)
    assert guesses("السَّلَامُ عَلَيْكُمْ", "ar") == guesses("2024", "ar") == ("",)
