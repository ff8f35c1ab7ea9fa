"""What differs between the countries that write English: dates, large numbers, spelling, abbreviations, postcodes."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class Region(NamedTuple):
    """How one country reads figures and abbreviations."""

    british: bool = False  # "one hundred and five", kilometre, the day before the month
    lakh: bool = False  # 12,34,567 is twelve lakh; CLDR, common/rbnf/en_IN.xml
    abbreviations: Mapping[str, str] = {}  # with a point, or at the end of a part of an address
    postcode: re.Pattern[str] | None = None  # its group n is read digit by digit


AMERICAN = Region()
# Abbreviations of counties as Royal Mail lists them.
BRITISH = Region(
    british=True,
    abbreviations={
        "Beds": "Bedfordshire", "Berks": "Berkshire", "Bucks": "Buckinghamshire", "Cambs": "Cambridgeshire",
        "Glos": "Gloucestershire", "Hants": "Hampshire", "Herts": "Hertfordshire", "Lancs": "Lancashire",
        "Leics": "Leicestershire", "Lincs": "Lincolnshire", "Northants": "Northamptonshire",
        "Notts": "Nottinghamshire", "Oxon": "Oxfordshire", "Staffs": "Staffordshire", "Wilts": "Wiltshire",
        "Yorks": "Yorkshire", "Cres": "Crescent",
    },
)  # fmt: skip
_INDIAN = Region(
    british=True,
    lakh=True,
    abbreviations={
        "opp": "opposite", "Opp": "Opposite", "Ngr": "Nagar", "Jn": "Junction",
        "nr": "near", "Nr": "Near", "Dist": "District", "Govt": "Government", "Rd": "Road",
    },
    postcode=re.compile(r"\b[A-Z][a-z]+[ -]+(?P<n>[1-9]\d\d ?\d{3})(?=$|[.,;\n])"),  # India Post: six digits
)  # fmt: skip
# States and streets as in Australia Post's addressing guide.
_AUSTRALIAN = Region(
    british=True,
    abbreviations={
        "Qld": "Queensland", "QLD": "Queensland", "Vic": "Victoria", "VIC": "Victoria", "NSW": "New South Wales",
        "Tas": "Tasmania", "TAS": "Tasmania", "Pde": "Parade", "Cres": "Crescent", "Tce": "Terrace", "Cnr": "Corner",
    },
    postcode=re.compile(r"\b(?:NSW|QLD|VIC|TAS|ACT|SA|WA|NT|Qld|Vic|Tas) (?P<n>\d{4})\b"),
)  # fmt: skip
_IRISH = Region(british=True, abbreviations={"Co": "County", "Gda": "Garda", "Cres": "Crescent"})
_REGIONS = {"en-us": AMERICAN, "en-in": _INDIAN, "en-au": _AUSTRALIAN, "en-ie": _IRISH}


def find_region(code: str) -> Region:
    """Return the region of a code of English; all but the listed ones read as the British do."""
    return _REGIONS.get(code, BRITISH)
