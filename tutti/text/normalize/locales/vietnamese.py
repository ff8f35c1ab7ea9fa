"""Vietnamese. Numbers after the usage of the North (nghìn, linh), dates and units after CLDR."""

from tutti.text.normalize.locales.locale import Locale, names, prefixed, table, words

_DONG = (("đồng",), ("xu",))
_DOLLAR = (("đô la",), ("xu",))
_EURO = (("ơ rô",), ("xu",))

LOCALE = Locale(
    code="vi",
    point="phẩy",
    dot="chấm",
    minus="âm",
    plus="cộng",
    plus_minus="cộng trừ",
    range_joint="đến",
    fraction_joint="phần",
    fractions={},
    half=("một phần hai", "một phần hai"),
    joint="",
    ordinals=(),
    ordinal_marks=r"(?!)",
    feminine_marks=("!",),
    rewrites=(
        (r"\b[Tt]hứ\s(?P<n>1)\b(?![.,]\d)", "nhất"),
        (r"\b(?:[Tt]hứ|[Tt]háng)\s(?P<n>4)\b(?![.,]\d)", "tư"),
        (r"\b(?P<n>[Nn]gày\s)(?=\d{1,2}[/.-]\d{1,2}[/.-]\d)", ""),
        (
            r"\b(?:[Nn]gày|[Mm]ùng|[Hh]ôm|[Vv]ào|[Tt]ừ|[Tt]ới|[Đđ]ến|[Ss]áng|[Tt]rưa|[Cc]hiều|[Tt]ối)"
            r"\s(?:[12]?\d|3[01])(?P<n>/)(?=(?:0?[1-35-9]|1[0-2])\b(?![/.,]\d))",
            " tháng ",
        ),
        (
            r"\b(?:[Nn]gày|[Mm]ùng|[Hh]ôm|[Vv]ào|[Tt]ừ|[Tt]ới|[Đđ]ến|[Ss]áng|[Tt]rưa|[Cc]hiều|[Tt]ối)"
            r"\s(?:[12]?\d|30)(?P<n>/0?4)\b(?![/.,]\d)",
            " tháng tư",
        ),
    ),
    numbered="thế kỷ|chương|phần|khóa|tập|quyển|kỳ|đại hội|lần thứ|điều|mục|cấp|loại|hạng|quý",
    months=(*words("một hai ba tư năm sáu bảy tám chín mười"), "mười một", "mười hai"),
    short_months=(),
    days={},
    date="ngày {day} tháng {month} năm {year}",
    day_month="ngày {day} tháng {month}",
    first_of_month="",
    time="{hour} giờ {minute}",
    full_hour="{hour} giờ",
    hour_marks=r"giờ\b",
    money={"đồng": _DONG, "đ": _DONG, "₫": _DONG, "VND": _DONG, "VNĐ": _DONG, "vnđ": _DONG, "$": _DOLLAR}
    | {"USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": (("bảng Anh",), ("xu",)), "¥": (("yên",), ("xu",))},
    money_joint="",
    of_money="",
    scales=names("nghìn nghìn, ngàn nghìn, triệu triệu, tr triệu, tỷ tỷ, tỉ tỷ, k nghìn"),
    per="một",
    units=names("km ki_lô_mét, m mét, dm đề_xi_mét, cm xăng_ti_mét, mm mi_li_mét, t tấn, ha héc_ta, h giờ, s giây")
    | names("phút phút, giây giây, °C độ_xê, °F độ_ép, ° độ, % phần_trăm, ‰ phần_nghìn, L lít, km² ki_lô_mét_vuông")
    | names("m² mét_vuông, m2 mét_vuông, m³ mét_khối, m3 mét_khối, W oát, V vôn, Hz héc, A am_pe, dB đề_xi_ben")
    | names("km/h ki_lô_mét_một_giờ, m/s mét_một_giây, g gam, l lít")
    | prefixed("k ki_lô_, m mi_li_", "g gam")
    | prefixed("m mi_li_", "l lít")
    | prefixed("k ki_lô_, M mê_ga_, G ghi_ga_", "W oát")
    | prefixed("k ki_lô_, M mê_ga_", "Wh oát_giờ")
    | prefixed("K ki_lô_, k ki_lô_, M mê_ga_, G ghi_ga_, T tê_ra_", "B bai")
    | prefixed("k ki_lô_, M mê_ga_, G ghi_ga_", "Hz héc")
    | prefixed("k ki_lô_", "cal ca_lo"),
    squared=("vuông",),
    cubed=("khối",),
    symbols=table(
        "^=mũ, ~=khoảng, &=và, @=a còng, ==bằng, ×=nhân, ÷=chia, §=mục, №=số, #=số, <=nhỏ hơn, >=lớn hơn, "
        "≤=không quá, ≥=ít nhất, ≈=xấp xỉ, ≠=khác, √=căn bậc hai của, →=đến"
    ),
    abbreviations=table(
        "TP. HCM=thành phố Hồ Chí Minh, TP HCM=thành phố Hồ Chí Minh, TPHCM=thành phố Hồ Chí Minh, TP.=thành phố, "
        "Tp.=thành phố, TX.=thị xã, GS.=giáo sư, PGS.=phó giáo sư, TS.=tiến sĩ, ThS.=thạc sĩ, BS.=bác sĩ, KS.=kỹ sư, "
        "LS.=luật sư, v.v.=vân vân, v.v=vân vân, TCN=trước Công nguyên, UBND=ủy ban nhân dân, HN=Hà Nội, "
        "HĐND=hội đồng nhân dân, ĐH=đại học, THPT=trung học phổ thông, THCS=trung học cơ sở, BHXH=bảo hiểm xã hội, "
        "BHYT=bảo hiểm y tế, CSGT=cảnh sát giao thông, CLB=câu lạc bộ, HLV=huấn luyện viên, VĐV=vận động viên, "
        "TNHH=trách nhiệm hữu hạn, VN=Việt Nam, ĐT=điện thoại, SĐT=số điện thoại, NXB=nhà xuất bản, "
        "ATM=a tê mờ, Đ/c=địa chỉ, đ/c=đồng chí, VD=ví dụ, vd=ví dụ"
    ),
    before_number=table("Q.=quận, P.=phường, tr.=trang, Tr.=trang, QL=quốc lộ, H.=huyện"),
    before_name=table("Q.=quận, P.=phường, H.=huyện, X.=xã, Đ.=đường"),
    signs=table(
        ".=chấm, /=xuyệt, @=a còng, _=gạch dưới, -=gạch ngang, :=hai chấm, #=thăng, ?=hỏi chấm, ==bằng, &=và, "
        "+=cộng, %=phần trăm, ~=ngã, www=vê kép vê kép vê kép"
    ),
    letters=(
        *words("a bê xê đê e ép giê hát i gi ca lờ mờ nờ o pê quy rờ ét tê u vê"),
        *("vê kép", "ích", "i dài", "dét"),
    ),
    spelled=frozenset(words("USB OTP AI IT UAE USA URL API IP ID EU UN EVN AFC AFF ADN VIP")),
    postcode=r"(?!)",
    digit_words=r"mã(?:\s\w+)?(?:\slà)?|OTP|PIN|mật khẩu(?:\slà)?|CCCD|CMND",
    phone_words=r"gọi|điện thoại|đt\b|sđt|số máy|hotline|liên hệ|di động|fax|zalo",
)
