"""Values that are split over the fields of an object.

A date of birth, `{"birth": {"day": 3, "month": 5, "year": 1984}}`; a street beside the number of the house,
`{"strasse": "Lindenweg", "hausnummer": "14"}`; and numbers in groups, `{"card_1": "4111", "card_2": "1111", …}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from msgspec import Struct

from comity.core.redaction.shapes import plain_words

KindOf: TypeAlias = Callable[[str, str], str]  # the type of what words name and a text is from end to end; empty if none

_KEYS_MAX = 128  # of an object that is one record
_KEY_CHARS_MAX = 40

_BIRTH = re.compile(
    r"of birth|birth|born|(?<![a-z])dob(?![a-z])|geburts?|geboren|geboorte|naissance|nacimiento|fecha nac|f nac"
    r"|data nasc|nascita|nascimento|рождения"
    r"|народження|出生|生年|誕生|출생|생년|urodz\w*|narozen\w*|naroden\w*|szület\w*|na[sș]ter\w*|ro[đd]en\w*|fødsels?|födelse"
    r"|syntymä|doğum|dogum"
    r"|lahir|sinh|γέννησης|الميلاد|जन्म",
    re.IGNORECASE,
)
_DAY, _MONTH, YEAR, _DATE = "day", "month", "year", "date"
PARTS: Final = {
    word: part
    for part, words in {
        _DAY: "day d dd dy tag jour dia día giorno dayofmonth dag dzień dzien den nap päivä zi gün gun день 日 일 hari ngày"
        " ημέρα يوم दिन",
        _MONTH: "month m mm mon monat mois mes mês mese maand månad måned miesiąc miesiac měsíc mesiac hónap kuukausi lună luna"
        " ay месяц місяць 月 월 bulan tháng μήνας شهر महीना",
        YEAR: "year y yy yyyy aaaa jjjj rrrr yr"
        " jahr année annee an año ano anio anyo anno jaar år rok év vuosi yıl yil ani год рік 年 년도 년"
        " tahun năm έτος سنة वर्ष",
        _DATE: "date datum fecha data dato monthday",
    }.items()
    for word in words.split()
}
_RANGES = {_DAY: (1, 31), _MONTH: (1, 12), YEAR: (1900, 2099)}
_MONTH_NAME = re.compile(r"[^\W\d_]{3,12}")
_DAY_OF_YEAR = re.compile(r"[0-9]{1,2}[-./ ][0-9]{1,2}\.?|[0-9]{1,2}\.? [^\W\d_]{3,12}|[^\W\d_]{3,12} [0-9]{1,2}")
_WORDS = re.compile(r"[^\W\d_]+")

_STREET = re.compile(
    "street(?: ?name)?|stra(?:ß|ss)e(?:nname)?|rue|voie|calle|via|indirizzo|rua|logradouro|straat(?:naam)?|gat(?:a|e"
    "|unamn)|vej(?:navn)?"
    "|veinavn|katu(?:osoite)?|ulica|ulice|utca|strada|sokak|cadde|улица|вулиця|οδός|通り|街道",
    re.IGNORECASE,
)
_HOUSE = re.compile(
    "(?:house|street|building) ?(?:number|no|nr|num)|haus ?(?:nummer|nr)|num[eé]ro(?: de (?:rue|voie))?|número"
    "|numero(?: civico)?|civico|number|nummer"
    "|huis ?nummer|hus ?(?:nummer|nr)|nr domu|numer domu|nr budynku|číslo (?:domu|popisné)|házszám|kapı no|дом"
    "|номер дома|будинок|номер будинку|αριθμός",
    re.IGNORECASE,
)
_HOUSE_NUMBER = re.compile(  # "14a", "12 bis", "48-II", "45/2/14"
    "[0-9]{1,5} ?[A-Za-z]?(?:(?:[-/]| ?[-/] ?| )(?:[0-9]{1,4}[A-Za-z]?|[IVX]{1,4}|hs|huis|bis|ter|quater|(?:bus|bte"
    "|boîte|lok\\.?|m\\.|kv\\.?|apt\\.?) ?[0-9A-Z]{1,4}"
    "|[A-Za-z][0-9]{0,3})){0,3}"
)
_STREET_NAME = re.compile(r"[^\W\d_][^\d\n\0@/\\{}\[\]<>=]{2,60}")

# What a key says of a group of a number behind the words that name the number.
_GROUP = re.compile(
    "(?P<base>.*?) ?(?:(?:part|group|block|segment|seg|chunk|digits|quad|teil|partie|parte) ?[0-9a-h]?|[0-9]{1,2}|[a-h]"
    "|(?:first|second|third|fourth|fifth|last|middle|start|end|1st|2nd|3rd|4th)(?: ?(?:4|four|six|five|group|part"
    "|block|digits))?"
    "|area(?: ?code)?|exchange|line(?: ?number)?|prefix|suffix|subscriber(?: ?number)?|local(?: ?number)?|national(?: ?number)?"
    "|number|serial|cc|country(?: ?code)?|(?:dial|calling)(?:ing)? ?code|nsn|check(?: ?(?:digits?|sum))?|(?P<bban>bban)"
    "|bank(?: ?code)?|branch(?: ?code)?|account(?: ?number)?|rest|body"
    "|pa[ií]s|pays|paese|land|kraj|control|prüfziffer|cl[ée]|vorwahl|landesvorwahl|durchwahl|rufnummer|nummer|prefijo"
    "|prefixo|numero|número|numéro|indicatif|prefisso|ddd|netnummer"
    "|kierunkowy|numer|předvolba|číslo|код|номер|区号|号码|市外局番|番号)"
)
_NAMES = (
    "card|karten?(?:nummer)?|tarjeta|pan|iban|ssn|sin|nhs|cpf|phone|mobile|cell|tel|telefon|t[eé]l[eé]phone"
    "|tel[eé]fono|handy|account"
    "|konto|cuenta|conta"
)
# In the syntax of Rust's engine: keys of a JSON document behind which a value may stand in parts.
SPLIT_HINT: Final = (
    rf"(?i:(?:{_NAMES})[a-z _\-]{{0,16}}(?:[1-4]|area|prefix|country|check|first|group|serial|line|cc"
    rf"|parts?)[a-z0-9]{{0,6}})\\?\"\s?:"
    rf"|(?i:\"(?:{_NAMES}|cc)[a-z _\-]{{0,12}})\\?\"\s?:\s?(?:\[\s?\\?\"?[0-9A-Z]{{1,6}}\\?\"?,"
    r"|\{\s?\\?\"(?:[1a]|num|first|part|group|block|area|cc|country|prefix|check|vorwahl|prefijo"
    r"|indicatif)[A-Za-z0-9_]{0,10}\\?\")"
    r"|(?i:mail[a-z_ \-]{0,8}(?:local|prefix|user)[a-z_\-]{0,6}\\?\"\s?:|mail\\?\"\s?:\s?\{)"
    r"|(?i:bban|birthyear|geburtsjahr|geboortejaar|födelseår|fødselsår|syntymävuosi|doğum ?yılı)[^a-z]"
    r"|(?i:pesel|dni|cpf|nie|bsn|oib|cnp|nif|aadhaar|tax[ _\-]?id|codice[ _\-]?fiscale|birth|birth[ _\-]?da(?:y|te)|dob"
    r"|mobile|pin)"
    r"s\\?\"\s?:\s?\["
    r"|(?i:urodzenia|narození|narodenia|születési|na[sș]terii|rojstva|ro[đd]enja|fødsels|födelse|geboorte|syntymä"
    r"|do[ğg]um|lahir|fecha[ _]?nac|f[ _]nac|data[ _]?nasc)"
    r"[a-z_ ]{0,12}\\?\"\s?:"
)
# `{"email_local_part": "ann.lee", "email_domain": "example.com"}`
_MAIL = re.compile("(?:e ?)?-?mail.{0,8} (?:local(?: ?part)?|user(?: ?part)?|prefix|(?P<domain>domain|host))", re.IGNORECASE)
_MAILS = re.compile("mail", re.IGNORECASE)
_IN_MAIL = re.compile(r"[A-Za-z0-9][\w.+-]{1,63}")
_LISTED = re.compile(" ?(?:parts?|groups?|blocks?|segments?|pieces?|chunks?|digits?|quads?|teile|parties?|partes?|parti|части)")
_IN_GROUP = re.compile(r"\+?[0-9A-Z]{1,30}")
_GROUP_CHARS = range(7, 37)  # of all of them together


class _Split(Struct, frozen=True):
    """Which fields may hold parts of one value, by their keys alone."""

    births: tuple[tuple[str, str], ...] = ()  # a key, and which part of a date it names
    streets: tuple[str, ...] = ()
    houses: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()  # the parts of an address before and behind its @
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # the words that name a number, and the keys of its groups


_NONE = _Split()


def split_parts(value: Mapping[Any, Any], keys: tuple[str, ...], kind_of: KindOf) -> dict[str, str]:
    """Return the keys under which parts of one value stand, and its type; mostly none."""
    if not 2 <= len(value) <= _KEYS_MAX:
        return {}
    split = _split(tuple(value), keys[-1] if keys else "")
    if split is _NONE:
        return {}
    births = {part: key for key, part in split.births if _is_part(part, value[key])}
    if YEAR in births and len(births) > 1:
        return dict.fromkeys(births.values(), "DOB")
    houses = [key for key in split.houses if _HOUSE_NUMBER.fullmatch(_text(value[key]))]
    streets = [key for key in split.streets if isinstance(value[key], str) and _STREET_NAME.fullmatch(value[key])]
    if streets and houses:
        return dict.fromkeys((*streets, *houses), "ADDRESS")
    found: dict[str, str] = {}
    if split.mails and all(isinstance(value[key], str) and _IN_MAIL.fullmatch(value[key]) for key in split.mails):
        found |= dict.fromkeys(split.mails, "EMAIL")
    for base, fields in split.groups:
        if kind := kind_of_groups((value[key] for key in fields), base, kind_of):
            found |= dict.fromkeys(fields, kind)
    return found


def kind_of_groups(items: Iterable[Any], words: str, kind_of: KindOf) -> str:
    """Return the type of the value that items are together, which words name; empty if they are none."""
    groups = [_text(item) for item in items]
    if sum(map(len, groups)) not in _GROUP_CHARS or not all(map(_IN_GROUP.fullmatch, groups)):
        return ""
    words = _LISTED.sub("", words)
    return kind_of(" ".join(groups), words) if words else ""


@lru_cache(maxsize=1024)
def _split(keys: tuple[Any, ...], parent: str) -> _Split:
    """Return what the keys of an object say; records mostly have the keys of records before."""
    births: list[tuple[str, str]] = []
    streets: list[str] = []
    houses: list[str] = []
    mails: dict[bool, str] = {}  # whether it is the domain, and the key
    groups: dict[str, list[str]] = {}
    is_birth = _BIRTH.search(parent) is not None
    for key in keys:
        if not isinstance(key, str) or len(key) > _KEY_CHARS_MAX:
            continue
        words = plain_words(key)
        if is_birth or _BIRTH.search(words):
            rest = _WORDS.findall(_BIRTH.sub(" ", words).lower())
            births += [(key, PARTS[word]) for word in rest if word in PARTS][:1]
        if _HOUSE.fullmatch(words):
            houses.append(key)
        elif _STREET.fullmatch(words):
            streets.append(key)
        if mail := _MAIL.fullmatch(words if not _MAILS.search(parent) else f"mail {words}"):
            mails[mail["domain"] is not None] = key
        if group := _GROUP.fullmatch(words.lower()):
            groups.setdefault("iban" if group["bban"] else group["base"] or parent, []).append(key)
    named = tuple((base, tuple(fields)) for base, fields in groups.items() if base and len(fields) > 1)
    both = tuple(mails.values()) if len(mails) > 1 else ()
    if not (len(births) > 1 or (streets and houses) or both or named):
        return _NONE
    return _Split(tuple(births), tuple(streets), tuple(houses), both, named)


def _text(item: Any) -> str:
    return str(item) if isinstance(item, str | int) and not isinstance(item, bool) else ""


def _is_part(part: str, item: Any) -> bool:
    text = _text(item)
    if part == _DATE:
        return _DAY_OF_YEAR.fullmatch(text) is not None
    if part == _MONTH and isinstance(item, str) and _MONTH_NAME.fullmatch(item):
        return True
    low, high = _RANGES[part]
    return text.isascii() and text.isdigit() and len(text) <= 4 and low <= int(text) <= high
