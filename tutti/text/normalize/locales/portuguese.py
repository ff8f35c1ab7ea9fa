"""Brazilian Portuguese. Numerals after Cunha and Cintra (Nova gramática), dates and units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_REAL = (("real", "reais"), ("centavo", "centavos"))
_EURO = (("euro", "euros"), ("centavo", "centavos"))
_DOLLAR = (("dólar", "dólares"), ("centavo", "centavos"))

LOCALE = Locale(
    code="pt-br",
    point="vírgula",
    dot="ponto",
    minus="menos",
    plus="mais",
    plus_minus="mais ou menos",
    range_joint="a",
    fraction_joint="sobre",
    fractions=table("1/2=um meio, 1/3=um terço, 2/3=dois terços, 1/4=um quarto, 3/4=três quartos, 1/5=um quinto"),
    half=("meio", "meia"),
    joint="e",
    ordinals=words("primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono décimo"),
    tens_ordinals=words(
        "décimo vigésimo trigésimo quadragésimo quinquagésimo sexagésimo septuagésimo octogésimo nonagésimo centésimo"
    ),
    ordinal_marks=r"\.?[ºª](?!\s?[CF]\b)|°(?=\s[a-zà-ÿ]{3})|[oa](?=\s)",
    feminine_marks=("ª", "a"),
    months=words("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
    short_months=words("jan fev mar abr mai jun jul ago set out nov dez"),
    days=table("seg=segunda, ter=terça, qua=quarta, qui=quinta, sex=sexta, sáb=sábado, dom=domingo"),
    date="{day} de {month} de {year}",
    day_month="{day} de {month}",
    first_of_month="primeiro",
    time="{hour} e {minute}",
    full_hour="{hour} horas",
    hour_marks=r"h\b|hs\b|min\b",
    money={"R$": _REAL, "BRL": _REAL, "€": _EURO, "EUR": _EURO, "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR}
    | {"£": (("libra", "libras"), ("centavo", "centavos")), "¥": (("iene", "ienes"), ("sen", "sen"))},
    money_joint="e",
    of_money="de",
    scales=names("mi milhão milhões, mil mil mil, bi bilhão bilhões, tri trilhão trilhões, milhão milhão milhões")
    | names("milhões milhão milhões, bilhão bilhão bilhões, bilhões bilhão bilhões, trilhões trilhão trilhões"),
    per="por",
    units=names("km quilômetro quilômetros, m metro metros, dm decímetro decímetros, cm centímetro centímetros")
    | names("mm milímetro milímetros, kg quilo quilos, t tonelada toneladas, ha hectare hectares")
    | names("h hora horas, hs hora horas, min minuto minutos, s segundo segundos, seg segundo segundos")
    | names("°C grau_Celsius graus_Celsius, ºC grau_Celsius graus_Celsius, °F grau_Fahrenheit graus_Fahrenheit")
    | names("° grau graus, % por_cento por_cento, ‰ por_mil por_mil, cv cavalo cavalos, bit bit bits")
    | names("Hz hertz hertz, V volt volts, A ampère ampères, W watt watts, J joule joules")
    | names("g grama gramas, l litro litros, L litro litros, cal caloria calorias, dB decibel decibéis")
    | names("Pa pascal pascals, bar bar bars, hab. habitante habitantes")
    | prefixed("m mili, c centi, d deci, µ micro, μ micro", "g grama gramas")
    | prefixed("m mili, c centi, d deci, h hecto", "l litro litros")
    | prefixed("m mili, c centi, d deci, h hecto", "L litro litros")
    | prefixed("m mili, k quilo, M mega, G giga", "W watt watts")
    | prefixed("k quilo, M mega, G giga, T tera", "Wh watt·hora watts·hora")
    | prefixed("k quilo, M mega, G giga, T tera, P peta", "B byte bytes")
    | prefixed("k quilo, M mega, G giga", "Hz hertz hertz")
    | prefixed("k quilo", "cal caloria calorias")
    | prefixed("h hecto, k quilo, M mega", "Pa pascal pascals"),
    squared=("quadrado", "quadrados"),
    cubed=("cúbico", "cúbicos"),
    symbols=table(
        "^=elevado a, ~=aproximadamente, &=e, @=arroba, ==igual a, ×=vezes, ÷=dividido por, §=parágrafo, "
        "№=número, #=cerquilha, <=menor que, >=maior que, ≤=menor ou igual a, ≥=maior ou igual a, "
        "≈=aproximadamente, ≠=diferente de, √=raiz de, ∞=infinito, π=pi, →=para"
    ),
    abbreviations=table(
        "Sr.=senhor, Sra.=senhora, Srs.=senhores, Sras.=senhoras, Srta.=senhorita, Dr.=doutor, Dra.=doutora, "
        "Prof.=professor, Profa.=professora, Profª.=professora, Profª=professora, Eng.=engenheiro, Gal.=general, "
        "Cel.=coronel, Cap.=capitão, Sto.=santo, Sta.=santa, etc.=et cetera, p. ex.=por exemplo, ex.=exemplo, "
        "aprox.=aproximadamente, nº=número, n.º=número, n°=número, Nº=número, tel.=telefone, cel.=celular, "
        "Av.=avenida, R.=rua, Pç.=praça, Pça.=praça, Rod.=rodovia, Al.=alameda, Estr.=estrada, Trav.=travessa, "
        "bl.=bloco, apto.=apartamento, apto=apartamento, ap.=apartamento, Cx.=caixa, s/n=sem número, "
        "a. C.=antes de Cristo, d. C.=depois de Cristo, pág.=página, págs.=páginas, pg.=página, cap.=capítulo, "
        "ed.=edição, vol.=volume, Ltda.=limitada, S.A.=esse a, S/A=esse a, cia.=companhia, Cia.=companhia, "
        "máx.=máximo, mín.=mínimo, obs.=observação, depto.=departamento, dpto.=departamento, EUA=Estados Unidos, "
        "Exmo.=excelentíssimo, Exma.=excelentíssima, V. Exa.=vossa excelência, séc.=século"
    ),
    before_number=table(
        "art.=artigo, arts.=artigos, inc.=inciso, p.=página, pp.=páginas, fig.=figura, km=quilômetro, fls.=folhas"
    ),
    before_name=table("D.=dom, S.=são, Pe.=padre"),
    after_number=table("hab.=habitantes, e ss.=e seguintes, ss.=seguintes"),
    signs=table(
        ".=ponto, /=barra, @=arroba, _=sublinhado, -=hífen, :=dois pontos, #=cerquilha, ?=interrogação, ==igual, "
        "&=e, +=mais, %=por cento, ~=til, www=dáblio dáblio dáblio"
    ),
    letters=words("a bê cê dê e efe gê agá i jota cá ele eme ene o pê quê erre esse tê u vê dáblio xis ípsilon zê"),
    hours_are_feminine=True,
    feminine_units=frozenset({"h", "hs", "£", "t", "cal", "kcal"}),
    feminine_endings=("a", "as", "ção", "ções", "dade", "dades", "gem", "gens"),
    feminine_nouns=frozenset(words("mulheres noites vezes partes flores luzes mãos mulher noite")),
    masculine_nouns=frozenset(
        words("dia dias problema problemas sistema sistemas programa programas tema temas mapa mapas idiomas planetas")
        + words("gramas grama quilogramas miligramas para cada")
    ),
    no_nouns=frozenset(words("para cada contra entre por com que dos das")),
    spelled=frozenset(words("DNA RNA UE IA USB IBM API URL INSS UTI")),
    rulers="Pedro|João|Luís|Carlos|Filipe|Henrique|Afonso|Paulo|Napoleão|Francisco|Manuel|Sebastião|Fernando",
    queens=frozenset(words("Maria Isabel Elizabeth Catarina Leopoldina Vitória")),
    numbered="séculos?|capítulos?|tomos?|volumes?|livros?|atos?|partes?|artigos?|títulos?|anexos?|fases?|tipos?|grau|inciso",
    last_ordinal=10,
    articles={"a": True, "o": False, "da": True, "do": False, "na": True, "no": False, "à": True, "ao": False},
    digit_words=r"CEP|CPF|CNPJ|RG|PIN|código",
    phone_words=r"tel\w*|cel\w*|ligu\w+|ligar|n[uú]mero|fax|whatsapp|contato|fixo",
)
