"""Units and currencies: each unit with its dimension and its size, each currency by its signs."""

from __future__ import annotations

import re
from typing import Final

DAY: Final = 86_400.0
MONTH: Final = 30.44 * DAY
YEAR: Final = 365.24 * DAY

_DIMENSIONS: Final[dict[str, dict[str, float]]] = {
    "length": {
        "mm millimetre millimeter": 0.001, "cm centimetre centimeter": 0.01, "m metre meter": 1, "km kilometre kilometer": 1000,
        "in inch inches": 0.0254, "ft foot feet": 0.3048, "yd yard": 0.9144, "mi mile": 1609.344,
        "nmi nautical_mile": 1852, "fathom": 1.8288, "µm um micron micrometre micrometer": 1e-6,
        "nanometre nanometer": 1e-9, "dm decimetre decimeter": 0.1, "furlong": 201.168, "light-year light_year": 9.4607e15,
    },
    "mass": {
        "µg mcg microgram": 1e-9, "mg milligram": 1e-6, "g gram gramme": 0.001,
        "kg kilo kilogram kilogramme": 1, "t tonne": 1000, "ton": 1000,
        "lb lbs pound": 0.45359237, "oz ounce": 0.028349523,
        "stone": 6.35029318, "metric_ton metric_tonne mt": 1000, "kilotonne kiloton": 1e6, "short_ton": 907.18474,
        "long_ton": 1016.0469, "troy_ounce troy_oz ozt": 0.0311034768, "carat": 0.0002, "quintal": 100, "dag": 0.01,
    },
    "time": {
        "ms msec millisecond": 0.001, "s sec second": 1, "min mins minute": 60, "h hr hrs hour": 3600, "d day": DAY,
        "wk week": 7 * DAY, "mo month": MONTH, "quarter": 3 * MONTH, "y yr yrs year": YEAR, "fortnight": 14 * DAY,
        "working_day business_day workday": 1.4 * DAY, "working_week business_week": 7 * DAY, "decade": 10 * YEAR,
        "century": 100 * YEAR, "centuries": 100 * YEAR,
    },
    "data": {
        "byte bytes": 1, "kb kilobyte": 1e3, "mb megabyte": 1e6, "gb gigabyte": 1e9, "tb terabyte": 1e12, "pb petabyte": 1e15,
        "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4, "pib": 1024**5,
        "eb exabyte": 1e18, "kibibyte": 1024, "mebibyte": 1024**2, "gibibyte": 1024**3, "tebibyte": 1024**4,
        "bit": 0.125, "kbit kilobit": 125, "mbit megabit": 125e3, "gbit gigabit": 125e6, "tbit terabit": 125e9,
    },
    "area": {
        "m2 m² sqm": 1, "km2 km²": 1e6, "ha hectare": 1e4, "acre": 4046.8564, "sqft ft2 ft²": 0.09290304,
        "square_metre square_meter": 1, "square_foot square_feet": 0.09290304, "square_kilometre square_kilometer": 1e6,
        "sq_m": 1, "sq_ft": 0.09290304, "sq_km": 1e6, "square_mile sq_mi": 2589988.11,
        "square_centimetre square_centimeter cm2 cm²": 1e-4,
        "mm2 mm² square_millimetre square_millimeter": 1e-6, "sq_in in2 in²": 0.00064516, "are": 100,
        "square_yard sq_yd yd2 yd²": 0.83612736, "square_inch square_inches": 0.00064516,
    },
    "volume": {"ml millilitre milliliter cc": 0.001, "cl": 0.01, "l litre liter": 1, "gal gallon us_gallon": 3.785411784,
    "imperial_gallon uk_gallon": 4.54609, "pint": 0.568, "hl hectolitre": 100, "m3 m³ cbm": 1000,
    "cubic_metre cubic_meter cu_m": 1000, "cubic_centimetre cubic_centimeter cm3 cm³": 0.001,
    "cubic_foot cubic_feet cu_ft ft3 ft³": 28.316846592, "cubic_inch cubic_inches": 0.016387064, "cubic_yard": 764.554858,
    "centilitre centiliter": 0.01,
    "decilitre deciliter dl": 0.1, "barrel bbl": 158.987,
    "quart qt": 0.946353, "µl ul microlitre microliter": 1e-6, "yd3 yd³": 764.554858, "dm3 dm³ cubic_decimetre": 1,
    "million_barrels mmbbl": 158.987e6, "mm3 mm³": 1e-6, "bushel": 35.2391, "km3 km³": 1e12,
    "cup": 0.24, "tbsp tablespoon": 0.015, "tsp teaspoon": 0.005, "fl_oz fluid_ounce": 0.0295735},
    "pressure": {"pa pascal": 1, "millipascal": 1e-3, "hpa mbar millibar": 100, "kpa kilopascal": 1e3,
    "mpa megapascal": 1e6, "bar": 1e5,
    "psi pounds_per_square_inch": 6894.757, "gpa gigapascal": 1e9, "torr": 133.322, "inhg": 3386.39,
    "atm atmosphere": 101325, "mmhg": 133.322},
    "effort": {"person_day person-day man_day man-day pd": 8, "person_hour person-hour man_hour man-hour": 1,
    "person_month person-month man-month": 160},
    "loudness": {"db decibel": 1},
    "picture": {"px pixel": 1}, "resolution": {"dpi ppi dots_per_inch pixels_per_inch": 1},
    "rotation": {"rpm r/min rev/min revolution_per_minute revolutions_per_minute": 1},
    "torque": {"nm n·m n-m newton_metre newton_meter newton-metre newton-meter": 1,
    "ft-lb ft·lb ft_lb ft-lbf lb-ft lbf-ft lb·ft lb_ft pound-foot pound-feet foot-pound foot_pound": 1.355818,
    "kgm kgf·m": 9.80665},
    "force": {"n newton": 1, "kilonewton": 1000, "meganewton": 1e6, "lbf pound-force pound_force": 4.448222, "kgf": 9.80665},
    "light": {"lm lumen": 1}, "illuminance": {"lx lux": 1}, "resistance": {"ω ohm": 1, "kω kohm kilohm": 1e3, "megohm": 1e6},
    "substance": {"mol mole": 1, "mmol millimole": 1e-3, "µmol umol micromole": 1e-6, "nmol": 1e-9},
    "radiation": {"sv sievert": 1, "msv millisievert": 1e-3, "µsv usv microsievert": 1e-6},
    "voltage": {"v volt": 1, "mv millivolt": 0.001, "kv kilovolt": 1000, "megavolt": 1e6},
    "charge": {"mah milliamp_hour milliampere-hour": 0.001, "ah amp_hour ampere-hour amp-hour": 1},
    "current": {"amp ampere": 1, "megaampere": 1e6, "ma milliamp milliampere": 0.001},
    "data rate": {"bit/s bps": 1, "kbit/s kbps": 1e3, "mbit/s mbps": 1e6, "gbit/s gbps": 1e9, "kb/s": 8e3,
    "mb/s megabytes_per_second": 8e6, "gb/s": 8e9, "tbit/s tbps": 1e12, "megabits_per_second": 1e6, "gigabits_per_second": 1e9},
    "consumption": {"l/100km l/100_km l_per_100_km l_per_100km litre_per_100_km litres_per_100_km liters_per_100_km": 1},
    "speed": {"m/s": 1, "km/h kmh kph": 1 / 3.6, "mph": 0.44704,
    "metre_per_second metres_per_second meter_per_second meters_per_second": 1,
    "kilometre_per_hour kilometres_per_hour kilometer_per_hour kilometers_per_hour km_per_hour": 1 / 3.6,
    "mile_per_hour miles_per_hour": 0.44704,  "kn knot kt": 0.514444},
    "energy": {"j joule": 1, "kj kilojoule": 1e3, "mj megajoule": 1e6, "gj gigajoule": 1e9, "wh watt_hour": 3600,
    "kwh kilowatt_hour kilowatt-hour": 3.6e6,
    "megawatt_hour megawatt-hour": 3.6e9, "gigawatt_hour": 3.6e12, "twh terawatt_hour": 3.6e15,
    "mwh": 3.6e9, "gwh": 3.6e12, "kcal kilocalorie": 4184, "btu": 1055.06, "therm": 105.506e6, "mmbtu": 1055.06e6,
    "tj terajoule": 1e12, "ws watt-second": 1,
    "cal calorie": 4.184},
    "power": {"milliwatt": 0.001, "w watt": 1, "kw kilowatt": 1e3, "mw megawatt": 1e6, "gw gigawatt": 1e9, "tw terawatt": 1e12,
    "hp horsepower bhp": 745.7, "metric_horsepower": 735.5, "kva": 1e3, "mva": 1e6, "btu/h": 0.293071},
    "share": {"% percent pct percentage per_cent": 0.01, "bp bps basis_point": 0.0001,
    "‰ permille per_mille per_mil per_thousand promille": 0.001,
    "ppm part_per_million parts_per_million per_million": 1e-6, "ppb part_per_billion parts_per_billion per_billion": 1e-9,
    "pp percentage_point": 0.01, "star": 0.2},
    "frequency": {"hz hertz": 1, "millihertz": 1e-3, "bpm beat_per_minute beats_per_minute": 1 / 60, "khz kilohertz": 1e3,
    "mhz megahertz": 1e6, "ghz gigahertz": 1e9},
    "temperature": {"°k kelvin": 1, "°c c celsius degree_celsius degrees_celsius degrees_c deg_c": 1,
    "°f f fahrenheit degree_fahrenheit degrees_fahrenheit degrees_f deg_f": 5 / 9},
}  # fmt: skip


def _spelt() -> dict[str, tuple[str, float]]:
    found: dict[str, tuple[str, float]] = {}
    for dimension, sizes in _DIMENSIONS.items():
        for names, size in sizes.items():
            for name in names.split():
                found[name.replace("_", " ")] = (dimension, size)
                if len(name) > 2:
                    found.setdefault(f"{name.replace('_', ' ')}s", (dimension, size))
    return found


UNITS: Final = _spelt()  # spelling in small letters → dimension and size in its base unit
CALENDAR: Final = frozenset({MONTH, 3 * MONTH, YEAR})  # sizes that are means: months are not of one length

SCALES: Final = {
    "hundred": 1e2, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7,
    "dozen": 12.0, "k": 1e3, "thousand": 1e3, "th": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "mm": 1e6,
    "million": 1e6, "millions": 1e6,
    "b": 1e9, "bn": 1e9, "billion": 1e9, "billions": 1e9, "mrd": 1e9, "t": 1e12, "tn": 1e12, "trn": 1e12, "trillion": 1e12,
}  # fmt: skip

_CODES: Final = (
    "USD EUR GBP JPY CHF CAD AUD NZD CNY INR SEK NOK DKK PLN CZK HUF RON BRL MXN ZAR SGD HKD "
    "KRW TRY ILS AED SAR THB IDR PHP MYR CLP COP ARS EGP NGN KES UAH RUB VND TWD LKR PKR BDT NPR KWD QAR BHD OMR JOD LBP IQD "
    "IRR MAD DZD TND LYD GHS TZS UGX RWF ETB ZMW BWP NAD MZN AOA XOF XAF PEN BOB UYU PYG VES CRC GTQ HNL NIO DOP JMD TTD BBD "
    "ISK BGN RSD HRK BAM MKD MDL AMD AZN KZT UZS KGS MNT KHR LAK MMK MVR MUR SCR FJD PGK BND HTG BYN AFN SYP YER SDG XPF"
)
CURRENCIES: Final = frozenset(_CODES.split())
SIGNS: Final = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "us$": "USD", "c$": "CAD", "ca$": "CAD", "a$": "AUD", "au$": "AUD",
    "nz$": "NZD",
    "s$": "SGD", "hk$": "HKD", "rs": "INR", "rs.": "INR", "rupee": "INR", "pound": "GBP", "pounds": "GBP", "quid": "GBP",
    "canadian dollars": "CAD", "australian dollars": "AUD", "yuan": "CNY", "renminbi": "CNY", "rmb": "CNY", "kr.": "SEK",
    "british pounds": "GBP", "swiss franc": "CHF", "franc": "CHF", "zloty": "PLN", "rand": "ZAR", "pesos": "MXN", "fr.": "CHF",
    "zł": "PLN",
    "euro": "EUR", "euros": "EUR", "dollar": "$", "dollars": "$", "us dollars": "USD", "us dollar": "USD",
    "pounds sterling": "GBP",
    "sterling": "GBP", "yen": "JPY", "rupees": "INR", "francs": "CHF", "swiss francs": "CHF", "₩": "KRW", "₽": "RUB",
    "₺": "TRY",
    "kr": "SEK", "r$": "BRL", "$": "$",
    **{f"{people} {coin}": code for code, peoples, coins in (
        ("NOK", "norwegian", "krone|kroner|crowns|crown"), ("SEK", "swedish", "krona|kronor|kroner|crowns|crown"),
        ("DKK", "danish", "krone|kroner|crowns|crown"), ("CZK", "czech", "koruna|korunas|korun|crowns|crown"),
        ("USD", "us|u.s.|american", "dollar|dollars"), ("CAD", "canadian", "dollar|dollars"),
        ("AUD", "australian|aussie", "dollar|dollars"), ("NZD", "new zealand", "dollar|dollars"),
        ("SGD", "singapore", "dollar|dollars"), ("HKD", "hong kong", "dollar|dollars"), ("JPY", "japanese", "yen"),
        ("CNY", "chinese", "yuan|renminbi"), ("INR", "indian", "rupee|rupees"), ("GBP", "british|uk", "pound|pounds"),
        ("PLN", "polish", "zloty|zlotys|złoty"), ("MXN", "mexican", "peso|pesos"), ("BRL", "brazilian", "real|reais|reals"),
        ("ZAR", "south african", "rand"), ("KRW", "korean|south korean", "won"), ("TRY", "turkish", "lira"),
        ("HUF", "hungarian", "forint|forints"), ("RUB", "russian", "rouble|roubles|ruble|rubles"), ("THB", "thai", "baht"),
        ("ILS", "israeli", "shekel|shekels"), ("AED", "uae|emirati", "dirham|dirhams"), ("RON", "romanian", "leu|lei"),
        ("UAH", "ukrainian", "hryvnia"), ("NGN", "nigerian", "naira"), ("KES", "kenyan", "shilling|shillings"),
        ("SAR", "saudi", "riyal|riyals"), ("ARS", "argentine", "peso|pesos"), ("CLP", "chilean", "peso|pesos"),
        ("EGP", "egyptian", "pound|pounds"), ("IDR", "indonesian", "rupiah"), ("PHP", "philippine", "peso|pesos"),
    ) for people in peoples.split("|") for coin in coins.split("|")},
    "kč": "CZK", "₪": "ILS", "₦": "NGN", "₫": "VND", "฿": "THB", "₴": "UAH",
    "won": "KRW", "forint": "HUF", "baht": "THB", "shekels": "ILS", "dirhams": "AED", "naira": "NGN", "rupiah": "IDR",
    "taka": "BDT", "tenge": "KZT", "birr": "ETB", "cedi": "GHS", "cedis": "GHS", "ringgit": "MYR", "soles": "PEN",
    "lev": "BGN", "leva": "BGN",
    "sri lankan rupees": "LKR", "pakistani rupees": "PKR", "nepalese rupees": "NPR", "kuwaiti dinars": "KWD",
    "qatari riyals": "QAR",
    "moroccan dirhams": "MAD", "icelandic krona": "ISK", "icelandic kronur": "ISK", "ugandan shillings": "UGX",
    "tanzanian shillings": "TZS",
    "hryvnia": "UAH", "roubles": "RUB", "rubles": "RUB", "reais": "BRL", "kronor": "SEK", "krona": "SEK", "kroner": "NOK",
    "krone": "NOK", "lei": "RON",
}  # fmt: skip
SHARED_SIGNS: Final = {  # signs and words of several currencies
    **dict.fromkeys(("kr", "kr.", "crowns"), ("SEK", "NOK", "DKK")), **dict.fromkeys(("kroner", "krone"), ("NOK", "DKK")),
    "¥": ("JPY", "CNY"),
}  # fmt: skip
CENTS: Final = {  # hundredths, by the currencies that they can be of
    **dict.fromkeys(("p", "pence", "penny"), ("GBP",)), **dict.fromkeys(("cent", "cents", "¢", "ct", "c"), ("$", "EUR")),
    **dict.fromkeys(("eurocent", "eurocents", "euro cent", "euro cents"), ("EUR",)),
    **dict.fromkeys(("us cent", "us cents", "american cents"), ("$", "USD")), "new pence": ("GBP",),
    **dict.fromkeys(("rappen", "rp", "centime", "centimes"), ("CHF",)), **dict.fromkeys(("öre", "øre", "ore"), ("SEK",
    "NOK", "DKK")),
    **dict.fromkeys(("paisa", "paise"), ("INR",)), **dict.fromkeys(("grosz", "groszy", "gr"), ("PLN",)), "fen": ("CNY",),
    **dict.fromkeys(("kopek", "kopeks", "kopecks"), ("RUB",)), **dict.fromkeys(("centavo", "centavos"), ("MXN", "BRL",
    "ARS", "COP")),
    **dict.fromkeys(("agora", "agorot"), ("ILS",)), **dict.fromkeys(("kurus", "kuruş"), ("TRY",)), "haler": ("CZK",),
    "sen": ("MYR",),
}  # fmt: skip


def to_kelvin(value: float, spelling: str) -> float:
    """Return a temperature in kelvin."""
    scale = re.sub(r"^(?:°|degrees?\s|deg\s)\s*", "", spelling)[:1]
    return value + 273.15 if scale == "c" else (value + 459.67) * 5 / 9 if scale == "f" else value
