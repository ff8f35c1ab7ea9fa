"""Spanish. Ordinals and acronyms after the Diccionario panhispánico de dudas (RAE), dates and units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_EURO = (("euro", "euros"), ("céntimo", "céntimos"))
_DOLLAR = (("dólar", "dólares"), ("centavo", "centavos"))
_PESO = (("peso", "pesos"), ("centavo", "centavos"))

LOCALE = Locale(
    code="es",
    point="coma",
    dot="punto",
    minus="menos",
    plus="más",
    plus_minus="más menos",
    range_joint="a",
    fraction_joint="sobre",
    fractions=table("1/2=un medio, 1/3=un tercio, 2/3=dos tercios, 1/4=un cuarto, 3/4=tres cuartos, 1/5=un quinto"),
    half=("medio", "media"),
    joint="y",
    ordinals=words("primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo undécimo duodécimo"),
    tens_ordinals=words(
        "décimo vigésimo trigésimo cuadragésimo quincuagésimo sexagésimo septuagésimo octogésimo nonagésimo centésimo"
    ),
    ordinal_marks=r"\.?[ºª](?!\s?[CF]\b)|°(?=\s[a-zà-ÿ]{3})|\.?er\.?|\.?[oa](?=\s|\.\s)",
    feminine_marks=("ª", "a"),
    months=words("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    short_months=words("ene febr? mar abr may jun jul ago sept? oct nov dic"),
    days=table("lun=lunes, mar=martes, mié=miércoles, jue=jueves, vie=viernes, sáb=sábado, dom=domingo"),
    date="{day} de {month} de {year}",
    day_month="{day} de {month}",
    first_of_month="",
    time="{hour} y {minute}",
    full_hour="{hour} en punto",
    hour_marks=r"h\b\.?|hs\b|hrs\b\.?",
    before_time="a las",
    money={"€": _EURO, "EUR": _EURO, "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR, "MXN": _PESO, "ARS": _PESO}
    | {"COP": _PESO, "CLP": _PESO, "£": (("libra", "libras"), ("penique", "peniques"))}
    | {"¥": (("yen", "yenes"), ("sen", "sen")), "CHF": (("franco suizo", "francos suizos"), ("céntimo", "céntimos"))}
    | {"S/": (("sol", "soles"), ("céntimo", "céntimos")), "₡": (("colón", "colones"), ("céntimo", "céntimos"))},
    money_joint="con",
    of_money="de",
    scales=names("M millón millones, MM millón millones, mill. millón millones, mdd millón millones")
    | names("millón millón millones, millones millón millones, billón billón billones, billones billón billones"),
    per="por",
    units=names("km kilómetro kilómetros, m metro metros, dm decímetro decímetros, cm centímetro centímetros")
    | names("mm milímetro milímetros, kg kilo kilos, t tonelada toneladas, ha hectárea hectáreas")
    | names("h hora horas, hs hora horas, min minuto minutos, s segundo segundos, ms milisegundo milisegundos")
    | names("°C grado_Celsius grados_Celsius, ºC grado_Celsius grados_Celsius, °F grado_Fahrenheit grados_Fahrenheit")
    | names("° grado grados, % por_ciento por_ciento, ‰ por_mil por_mil, in pulgada pulgadas, lb libra libras")
    | names("Hz hercio hercios, V voltio voltios, A amperio amperios, CV caballo caballos, bit bit bits")
    | names("g gramo gramos, l litro litros, L litro litros, W vatio vatios, cal caloría calorías, J julio julios")
    | names("dB decibelio decibelios, Pa pascal pascales, bar bar bares, hab. habitante habitantes")
    | prefixed("m mili, c centi, d deci, µ micro, μ micro", "g gramo gramos")
    | prefixed("m mili, c centi, d deci, h hecto", "l litro litros")
    | prefixed("m mili, c centi, d deci, h hecto", "L litro litros")
    | prefixed("m mili, k kilo, M mega, G giga", "W vatio vatios")
    | prefixed("k kilo, M mega, G giga, T tera", "Wh vatio·hora vatios·hora")
    | prefixed("k kilo, M mega, G giga, T tera, P peta", "B byte bytes")
    | prefixed("k kilo, M mega, G giga", "Hz hercio hercios")
    | prefixed("k kilo, M mega, G giga", "bps bit_por_segundo bits_por_segundo")
    | prefixed("k kilo", "cal caloría calorías")
    | prefixed("h hecto, k kilo, M mega", "Pa pascal pascales"),
    squared=("cuadrado", "cuadrados"),
    cubed=("cúbico", "cúbicos"),
    symbols=table(
        "^=elevado a, ~=aproximadamente, &=y, @=arroba, ==igual a, ×=por, ÷=entre, §=sección, №=número, "
        "#=número, <=menor que, >=mayor que, ≤=menor o igual que, ≥=mayor o igual que, ≈=aproximadamente, "
        "≠=distinto de, √=raíz de, ∞=infinito, π=pi, →=a"
    ),
    abbreviations=table(
        "Sr.=señor, Sra.=señora, Sres.=señores, Sras.=señoras, Srta.=señorita, Dr.=doctor, Dra.=doctora, "
        "Dres.=doctores, Ud.=usted, Uds.=ustedes, Vd.=usted, Vds.=ustedes, EE. UU.=Estados Unidos, "
        "RR. HH.=recursos humanos, JJ. OO.=Juegos Olímpicos, CC. AA.=comunidades autónomas, "
        "FF. AA.=fuerzas armadas, etc.=etcétera, p. ej.=por ejemplo, aprox.=aproximadamente, Avda.=avenida, "
        "Av.=avenida, Pza.=plaza, Plza.=plaza, Pl.=plaza, C/=calle, c/=calle, Ctra.=carretera, P.º=paseo, "
        "Pº=paseo, Apdo.=apartado, Apdo=apartado, C. P.=código postal, s/n=sin número, Lic.=licenciado, "
        "Ing.=ingeniero, Arq.=arquitecto, Prof.=profesor, Profa.=profesora, tel.=teléfono, tfno.=teléfono, "
        "teléf.=teléfono, Dña.=doña, D.ª=doña, Excmo.=excelentísimo, Excma.=excelentísima, Ilmo.=ilustrísimo, "
        "Gral.=general, Cnel.=coronel, Cap.=capitán, Sto.=santo, Sta.=santa, Mons.=monseñor, "
        "a. C.=antes de Cristo, d. C.=después de Cristo, a. de C.=antes de Cristo, d. de C.=después de Cristo, "
        "dpto.=departamento, depto.=departamento, admón.=administración, izq.=izquierda, dcha.=derecha, "
        "izda.=izquierda, máx.=máximo, mín.=mínimo, cía.=compañía, Cía.=compañía, S. A.=ese a, S. L.=ese ele, "
        "atte.=atentamente, pág.=página, págs.=páginas, cap.=capítulo, núm.=número, n.º=número, nº=número, "
        "n°=número, N.º=número, Nº=número, ed.=edición, vol.=volumen, ej.=ejemplo, v. gr.=verbigracia"
    ),
    before_number=table(
        "art.=artículo, arts.=artículos, p.=página, pp.=páginas, fig.=figura, t.=tomo, c.=circa, ca.=circa, "
        "ext.=extensión, km=kilómetro, aptdo.=apartado, ap.=apartado, inc.=inciso"
    ),
    before_name=table("D.=don, S.=san, Fr.=fray, Mtro.=maestro, Mtra.=maestra"),
    after_number=table("a. m.=a eme, p. m.=pe eme, am=a eme, pm=pe eme, y ss.=y siguientes, ss.=siguientes"),
    signs=table(
        ".=punto, /=barra, @=arroba, _=guion bajo, -=guion, :=dos puntos, #=almohadilla, ?=interrogación, ==igual, "
        "&=y, +=más, %=por ciento, ~=virgulilla, www=uve doble uve doble uve doble"
    ),
    letters=(
        *words("a be ce de e efe ge hache i jota ka ele eme ene o pe cu erre ese te u uve"),
        *("uve doble", "equis", "ye", "zeta"),
    ),
    hours_are_feminine=True,
    feminine_units=frozenset({"h", "hs", "£", "t", "ha", "lb", "in", "cal", "kcal"}),
    feminine_endings=("a", "as", "ción", "ciones", "sión", "siones", "dad", "dades", "tud", "umbre", "umbres"),
    feminine_nouns=frozenset(
        words("mujeres noches calles veces clases llaves torres partes flores luces imágenes manos")
    ),
    masculine_nouns=frozenset(
        words("días día problemas problema sistemas sistema programas programa temas tema mapas mapa idiomas planetas")
        + words("climas poetas kilogramas puntos")
    ),
    no_nouns=frozenset(words("para hasta cada contra entre por con que según los las")),
    spelled=frozenset(words("ADN ARN UE IA EEUU IBM USB DNI FMI BCE ESO ITV DGT API URL")),
    rulers="Carlos|Felipe|Juan|Pablo|Pedro|Alfonso|Fernando|Enrique|Luis|Jaime|Sancho|Francisco|Isabel|Napoleón|Guillermo",
    queens=frozenset(words("Isabel María Juana Catalina Ana Cristina Margarita Victoria")),
    numbered="siglos?|capítulos?|tomos?|volumen|volúmenes|libros?|actos?|partes?|artículos?|títulos?|anexos?|fases?|tipos?|grados?|nivel",
    last_ordinal=10,
    articles={"la": True, "el": False, "del": False, "al": False, "una": True},
    digit_words=r"C\.P\.|código postal|PIN|código",
    phone_words=r"tel[eé]f\w*|tel\b|m[oó]vil|llam\w+|celular|n[uú]mero|fax|whatsapp|contacto",
)
