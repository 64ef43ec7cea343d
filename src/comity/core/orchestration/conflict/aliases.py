"""Other names of countries, towns, days, languages, states, sizes and states of work, by the field that they stand in."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration.conflict.statuses import BY_FIELD
from comity.core.orchestration.conflict.units import SIGNS

ALIASES: Final = {
    "us": "united states", "usa": "united states", "u.s.": "united states", "u.s.a.": "united states",
    "united states of america": "united states",
    "america": "united states", "uk": "united kingdom", "u.k.": "united kingdom", "great britain": "united kingdom",
    "uae": "united arab emirates",
    "eu": "european union", "nyc": "new york city", "holland": "netherlands", "the netherlands": "netherlands",
    "czech republic": "czechia", "russian federation": "russia", "republic of korea": "south korea", "turkiye": "turkey",
    "burma": "myanmar", "ivory coast": "cote d'ivoire", "prc": "china", "ksa": "saudi arabia", "la": "los angeles",
    "sf": "san francisco", "new york": "new york city", "bombay": "mumbai", "peking": "beijing", "kiev": "kyiv",
    "saigon": "ho chi minh city", "around the clock": "24/7", "round the clock": "24/7", "24 hours a day": "24/7",
    "deutschland": "germany", "de": "germany", "fr": "france", "es": "spain", "nl": "netherlands", "ch": "switzerland",
    "jp": "japan", "cn": "china", "br": "brazil", "gb": "united kingdom", "pl": "poland", "dk": "denmark", "fi": "finland",
    "pt": "portugal", "gr": "greece", "ie": "ireland", "mx": "mexico", "kr": "south korea", "tr": "turkey",
    "mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday", "thurs": "thursday",
    "fri": "friday", "sat": "saturday", "sun": "sunday", "euro": "eur", "euros": "eur", "€": "eur", "pound sterling": "gbp",
    "pounds": "gbp", "£": "gbp", "us dollar": "usd", "us dollars": "usd", "yen": "jpy",
    "swiss franc": "chf", "swiss francs": "chf",
    "munchen": "munich", "koln": "cologne", "wien": "vienna", "roma": "rome", "milano": "milan", "firenze": "florence",
    "venezia": "venice", "napoli": "naples", "torino": "turin", "praha": "prague", "warszawa": "warsaw", "lisboa": "lisbon",
    "kobenhavn": "copenhagen", "bruxelles": "brussels", "brussel": "brussels", "geneve": "geneva", "genf": "geneva",
    "nurnberg": "nuremberg", "sevilla": "seville", "den haag": "the hague", "antwerpen": "antwerp", "athina": "athens",
    "bayern": "bavaria", "sachsen": "saxony", "toscana": "tuscany", "lombardia": "lombardy", "catalunya": "catalonia",
    "bretagne": "brittany", "andalucia": "andalusia", "sicilia": "sicily", "hessen": "hesse", "flandern": "flanders",
    "moskva": "moscow", "bucuresti": "bucharest", "beograd": "belgrade", "luzern": "lucerne", "basel": "basle",
    "goteborg": "gothenburg",
    "deu": "germany", "fra": "france", "gbr": "united kingdom", "esp": "spain", "ita": "italy", "nld": "netherlands",
    "che": "switzerland", "aut": "austria", "bel": "belgium", "pol": "poland", "swe": "sweden", "nor": "norway",
    "jpn": "japan", "chn": "china", "bra": "brazil", "ind": "india", "can": "canada", "aus": "australia", "mex": "mexico",
}  # fmt: skip
_LANGUAGES: Final = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch",
    "pl": "polish", "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "cs": "czech", "ru": "russian",
    "uk": "ukrainian", "tr": "turkish", "el": "greek", "ar": "arabic", "he": "hebrew", "hi": "hindi", "zh": "chinese",
    "ja": "japanese", "ko": "korean", "en gb": "british english", "en us": "american english",
    "us english": "american english", "uk english": "british english",
    "pt br": "brazilian portuguese", "pt pt": "european portuguese",
    "zh cn": "simplified chinese", "zh tw": "traditional chinese",
    "de at": "austrian german", "de ch": "swiss german", "fr ca": "canadian french", "es mx": "mexican spanish",
    "deutsch": "german", "français": "french", "español": "spanish",
}  # fmt: skip
_STATES: Final = {
    "al": "alabama", "ak": "alaska", "az": "arizona", "ar": "arkansas", "ca": "california", "co": "colorado",
    "ct": "connecticut", "de": "delaware", "fl": "florida", "ga": "georgia", "hi": "hawaii", "id": "idaho",
    "il": "illinois", "in": "indiana", "ia": "iowa", "ks": "kansas", "ky": "kentucky", "la": "louisiana", "me": "maine",
    "md": "maryland", "ma": "massachusetts",
    "mi": "michigan", "mn": "minnesota", "ms": "mississippi", "mo": "missouri", "mt": "montana", "ne": "nebraska",
    "nv": "nevada", "nh": "new hampshire", "nj": "new jersey",
    "nm": "new mexico", "ny": "new york", "nc": "north carolina",
    "nd": "north dakota", "oh": "ohio", "ok": "oklahoma", "or": "oregon", "pa": "pennsylvania", "ri": "rhode island",
    "sc": "south carolina", "sd": "south dakota", "tn": "tennessee", "tx": "texas", "ut": "utah", "vt": "vermont",
    "va": "virginia", "wa": "washington", "wv": "west virginia", "wi": "wisconsin", "wy": "wyoming",
}  # fmt: skip
_GRADES: Final = {
    "p1": "critical", "sev1": "critical", "sev 1": "critical", "highest": "critical", "blocker": "critical",
    "moderate": "medium",
    "mid": "medium", "normal": "medium", "average": "medium", "p2": "high", "sev2": "high", "sev 2": "high", "elevated": "high",
    "p3": "medium", "sev3": "medium", "sev 3": "medium", "p4": "low", "sev4": "low", "sev 4": "low", "minor": "low",
    "extremely high": "very high", "extreme": "very high", "extremely low": "very low", "major": "high",
    "severe": "very high",
    "minimal": "very low", "negligible": "very low",
}  # fmt: skip
_SIZES: Final = {
    "xs": "extra small", "s": "small", "m": "medium", "l": "large", "xl": "extra large", "xxl": "extra extra large",
    "big": "large",
}  # fmt: skip
_TRENDS: Final = {
    name: first
    for first, names in (
        ("up", "upward|upwards|rising|increasing|growing|positive|rise|increase|growth|higher|improving"),
        ("down", "downward|downwards|falling|decreasing|declining|negative|decline|decrease|drop|shrinking|lower|worsening"),
        ("flat", "stable|steady|unchanged|sideways|constant|no change"),
    )
    for name in names.split("|")
}  # fmt: skip
_FEELINGS: Final = {
    "favourable": "positive", "favorable": "positive", "good": "positive", "unfavourable": "negative",
    "unfavorable": "negative",
    "bad": "negative", "adverse": "negative", "mixed": "neutral",
}  # fmt: skip
_PEOPLES: Final = {
    "american": "united states", "us citizen": "united states", "british": "united kingdom", "dutch": "netherlands",
    "german": "germany",
    "french": "france", "spanish": "spain", "italian": "italy", "polish": "poland", "swedish": "sweden", "danish": "denmark",
    "norwegian": "norway", "finnish": "finland", "irish": "ireland", "swiss": "switzerland", "austrian": "austria",
    "belgian": "belgium",
    "portuguese": "portugal", "greek": "greece", "turkish": "turkey", "czech": "czechia", "hungarian": "hungary",
    "romanian": "romania",
    "ukrainian": "ukraine", "russian": "russia", "chinese": "china", "japanese": "japan", "indian": "india",
    "canadian": "canada",
    "australian": "australia", "mexican": "mexico", "brazilian": "brazil", "korean": "south korea", "nigerian": "nigeria",
}  # fmt: skip
_BLOOD: Final = {
    f"{group}{joint}{word}": f"{group}{sign}"
    for group in ("a", "b", "ab", "o")
    for sign, words in (("+", "positive|pos|+|+ve"), ("-", "negative|neg|-|−|-ve"))
    for word in words.split("|")
    for joint in ("", " ")
}
_COUNTRIES: Final = ALIASES | {
    "it": "italy", "in": "india", "no": "norway", "be": "belgium", "at": "austria", "se": "sweden", "ca": "canada",
    "au": "australia",
    "nz": "new zealand", "za": "south africa", "ar": "argentina", "cl": "chile", "ro": "romania", "hu": "hungary",
    "cz": "czechia",
    "sg": "singapore", "th": "thailand", "il": "israel", "ae": "united arab emirates", "sa": "saudi arabia", "eg": "egypt",
    "ng": "nigeria", "ke": "kenya", "ua": "ukraine", "ru": "russia", "vn": "vietnam", "id": "indonesia", "ph": "philippines",
    "my": "malaysia", "co": "colombia", "pe": "peru", "is": "iceland", "lu": "luxembourg", "sk": "slovakia", "si": "slovenia",
    "hr": "croatia", "bg": "bulgaria", "rs": "serbia", "ee": "estonia", "lv": "latvia", "lt": "lithuania", "pk": "pakistan",
    "bd": "bangladesh", "ma": "morocco", "tw": "taiwan", "hk": "hong kong", "ir": "iran", "mt": "malta", "cy": "cyprus",
    "italia": "italy", "espana": "spain", "osterreich": "austria", "schweiz": "switzerland", "polska": "poland",
    "nippon": "japan",
    "england": "england", "eire": "ireland", "republic of ireland": "ireland", "swe": "sweden", "prt": "portugal",
    "dnk": "denmark",
    "fin": "finland", "irl": "ireland", "grc": "greece", "cze": "czechia", "hun": "hungary", "rou": "romania", "tur": "turkey",
    "kor": "south korea", "zaf": "south africa", "arg": "argentina", "nzl": "new zealand", "rus": "russia", "ukr": "ukraine",
}  # fmt: skip
FIELD_ALIASES: Final = tuple(
    (re.compile(rf"(?:^|_)(?:{names})$"), aliases)
    for names, aliases in (
        ("lang|language|locale|languages|locales|langs", _LANGUAGES),
        *BY_FIELD,
        ("blood|blood_type|blood_group|rhesus", _BLOOD),
        ("state|province", _STATES),
        (
            "priority|severity|risk|risk_level|level|urgency|impact|likelihood|probability|rating|grade|demand|confidence",
            _GRADES,
        ),
        ("sizes?", _SIZES),
        ("country|countries|nation|nations|country_code|destinations?|market|markets|territory|territories", _COUNTRIES),
        ("nationality|citizenship|origin", ALIASES | _PEOPLES),
        ("currency|currencies", {sign: code.lower().replace("$", "usd") for sign, code in SIGNS.items()}),
        ("trend|direction|outlook|movement", _TRENDS),
        ("sentiment|tone|mood|feedback", _FEELINGS),
    )
)  # the first that fits a field's name
STATUSES: Final = frozenset(fields for fields, aliases in FIELD_ALIASES if any(aliases is one for _, one in BY_FIELD))
NICKNAMES: Final = {
    "bob": "robert", "rob": "robert", "bill": "william", "will": "william", "mike": "michael", "liz": "elizabeth",
    "beth": "elizabeth", "kate": "katherine", "kathy": "katherine", "tom": "thomas", "jim": "james", "dave": "david",
    "steve": "steven", "stephen": "steven", "chris": "christopher", "alex": "alexander", "sam": "samuel", "dan": "daniel",
    "tony": "anthony", "ed": "edward", "joe": "joseph", "nick": "nicholas", "matt": "matthew", "andy": "andrew",
    "greg": "gregory", "ben": "benjamin", "sue": "susan", "jen": "jennifer", "jenny": "jennifer", "maggie": "margaret",
    "peggy": "margaret", "dick": "richard", "rick": "richard", "jack": "john", "becky": "rebecca", "ron": "ronald",
}  # fmt: skip
