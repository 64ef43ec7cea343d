"""How a person is reached: e-mail, phone, user names, and credentials inside a URL."""

from __future__ import annotations

import re
from base64 import b64decode
from itertools import pairwise

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import BEFORE_RING
from comity.core.redaction.shapes import (
    AFTER_DIGIT,
    AT_BASE64,
    AT_BORDER,
    AT_DIGIT,
    BEFORE,
    HINT_BEFORE_DIGIT,
    LETTER,
    LONG_CHARS_MAX,
    NOT_AFTER_DIGIT,
    SEPARATOR,
    LatePattern,
    digits_of,
    words,
)

_EMAIL_CHARS_MAX = 320
_TOP_LEVEL = (
    "com|org|net|edu|gov|info|biz|io|ai|dev|app|me|co|co\\.uk|uk|de|fr|es|it|nl|be|ch|at|pl|pt|br"
    "|com\\.br|mx|ca|au|com\\.au|in|jp|cn|ru|se|no|dk|fi|ie|eu"
    "|cz|hu|ro|gr|tr|ua|za|nz|kr|example|test|invalid|xyz|online|cloud|tech|us"
)
# Countries whose letters also end the names of files: they count behind a dot that is said.
_SPOKEN_COUNTRIES = (
    "ee|lt|lv|si|sk|hr|rs|bg|lu|li|il|ae|eg|ke|ng|gh|sg|th|vn|ph|hk|tw|pk|lk|bd|ir|kz|ge|az|mk|ba|cy|ar|cl|pe|uy|ve|ec|cat"
)
_PLAIN_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,24}")
# What stands before "at example dot com" in a sentence.
_NOT_A_NAME = frozenset(
    re.findall(
        "[a-z]+",
        "us me you them him her it is was are were be been look looking looked found find available visit go"
        " works working work hosted live sign shop"
        " buy online order out up in down read more see site page website store here there this that now or"
        " and the a an stop meet staff people users team"
        " engineers engineer developer manager employees data code model models customers services products"
        " apply register learn support everything free"
        " today start arrive arrived lunch dinner meeting standup call room event party price sold sale"
        " version running runs points pointing redirects",
    )
)
_ATOM = f"[{LETTER}0-9]{{1,64}}"
_LOCAL = (
    rf"(?<![{LETTER}0-9]){_ATOM}+(?:[._%+'-]{{1,2}}+{_ATOM}+){{0,6}}+"  # nothing of it can be given back: a sign must follow
)
# Where it may begin: an @ follows, as itself or escaped, or more than can be looked at from here.
_AT_LOCAL = rf"[{LETTER}0-9\"](?<![{LETTER}0-9](?s:.))(?:(?<=\")|(?=[{LETTER}0-9._+'-]{{0,60}}+[{LETTER}0-9._+'@%-]))"
_LABEL = f"[{LETTER}0-9-]{{1,63}}"
_DOT_WORDS = (
    "punkt|punto|point|ponto|punt|kropka|tečka|точка|pont|nokta|bodka|piste|punktum|prikk|крапка|τελεία|punct|titik"
    "|chấm|ドット|닷|점|点|點"
    "|נקודה|نقطة"
)
_AT_WORDS = (
    "at-?sign|arobase|arobas|małpa|malpa|apenstaartje|chiocciola|arroba|klammeraffe|zavináč|zavinac|snabel-?a|kukac"
    "|собака|собачка|равлик|песик|маймунско а|παπάκι|arond|a[ -]?rond|krøllalfa|ät-?merkki|miukumauku|kuyruklu a"
    "|et işareti|et isareti|a còng"
    "|アットマーク|アット|골뱅이|艾特|小老鼠|שטרודל|כרוכית"
)
_SPOKEN_HYPHEN = (
    "[ ](?i:minus|dash|hyphen|bindestrich|tiret|guion|guión|trattino|myślnik|дефис|streepje|koppelteken|bindestreck|bindestrek"
    "|pomlčka|kötőjel|hífen|tire)[ ]"
)
# Of a domain: "north minus sea". It is no longer than any label.
_SPOKEN_LABEL = (
    rf"(?:[{LETTER}0-9]{{1,16}}(?:{_SPOKEN_HYPHEN}[{LETTER}0-9]{{1,30}}"
    rf"|(?:{_SPOKEN_HYPHEN}[{LETTER}0-9]{{1,10}}){{2}})(?=[ .,])|{_LABEL})"
)
_BEHIND_COMMA = "com|org|net|de|fr|pl|nl|ru|ch|eu"  # typed for a dot
_DOT = (
    rf"(?:\.|,(?=(?:{_BEHIND_COMMA})(?![a-z]))|[ ]?[\[({{<][ ]?(?:dot|{_DOT_WORDS}|\.)[ ]?[\])}}>][ ]?|[ ](?:dot"
    rf"|{_DOT_WORDS})[ ]|[ ]\.[ ]|_dot_)"
)
_AT = rf"(?:[ ]?[\[({{<][ ]?(?:at|ät|@|a|{_AT_WORDS})[ ]?[\])}}>][ ]?|[ ](?:ät|{_AT_WORDS})[ ]|_at_)"
_SPOKEN_DOT = f"(?:dot|DOT|(?i:{_DOT_WORDS}))"
_SPOKEN_SIGN = (
    f"[ ](?:{_SPOKEN_DOT}|(?i:underscore|dash|hyphen|minus|plus|unterstrich|bindestrich|tiret|guion|guión|trattino|myślnik"
    "|podkreślnik|подчеркивание|дефис))[ ]"
)
# What follows the @ of a file or a unit, not of a person: image@2x.png, getty@tty1.service.
_NOT_TOP_LEVEL = frozenset(
    re.findall(
        "[a-z]+",
        "png jpg jpeg gif svg webp ico pdf css js ts json html xml yaml yml py rb go rs java txt md csv zip gz tar service"
        " socket timer target mount slice",
    )
)
_COUNTRIES = frozenset({"md", "py", "rs"})  # Moldova, Paraguay, Serbia
_VERSION = re.compile(r"[vV]?[0-9]")  # chart@2x.md, tool@v3.py

_THOUSANDS = re.compile(r"\+[0-9]{1,3}(?:[ .][0-9]{3})+")
_GAP = r"[ \u00a0\u202f.\-\u2010-\u2015()/]{0,2}"
_EXTENSION = r"(?:[ ]?(?:x|ext\.?|extension)[ ]?[0-9]{1,6})?"


def _accept_credentials(value: str) -> int:
    """Count a user and a password, unless the one says no more than "user" and the other no more than "password"."""
    user, _, password = value.lower().partition(":")
    return 0 if user.strip("<>{}$_") in _ANY_USER and password.strip("<>{}$_") in _ANY_PASSWORD else len(value)


_ANY_USER = frozenset(
    {"user", "username", "usr", "login", "name", "dbuser", "db_user", "your_user", "your-user", "benutzer", "usuario"}
)
_ANY_PASSWORD = frozenset(
    {"password", "pwd", "passwd", "pw", "secret", "dbpass", "db_pass", "db_password", "your_password", "your-password"}
    | {"passwort", "contraseña", "xxx", "xxxx", "xxxxx", "xxxxxx"}
)


def _is_of_file(domain: str) -> bool:
    """Return whether what follows an @ ends as the name of a file or a unit does, and not as a domain of a country."""
    ending = domain.rpartition(".")[2].lower()
    return ending in _NOT_TOP_LEVEL and (ending not in _COUNTRIES or _VERSION.match(domain) is not None)


def _accept_email(value: str) -> int:
    local, _, domain = value.replace("%40", "@").rpartition("@")
    if _is_of_file(domain) or local == "git":
        return 0
    return len(value) if len(value) <= _EMAIL_CHARS_MAX else 0


def _accept_international_email(value: str) -> int:
    """Count an address with letters beyond Latin; the others are `email`."""
    if len(value) > _EMAIL_CHARS_MAX or _is_of_file(value.rpartition("@")[2]):
        return 0
    return 0 if re.fullmatch(rf"[{LETTER}0-9_.@%+-]*", value) else len(value)


def _run_with_at(length: int) -> str:
    """Return a hint for base64 of at least `length` characters that may spell an @, which is written with an A, B or Q.

    The bits of an @ make a whole Q, or an A or B behind another letter, wherever it stands in a group of three bytes. So long
    words, and numbers in hexadecimal, which is written small, are no hint.
    """
    hint = "[ABQ]"
    for behind in range(1, length):
        hint = f"(?:[ABQ][A-Za-z0-9+/]{{{behind}}}|[C-PR-Za-z0-9+/]{hint})"
    return hint


def _accept_encoded(value: str) -> int:
    """Count base64 that reads as an address, alone or with a name and joints around it."""
    if value.isalpha() and (value.islower() or value.isupper()):
        return 0
    try:
        plain = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return 0
    return len(value) if plain.isprintable() and _PLAIN_EMAIL.search(plain) else 0


def _accept_spoken(value: str) -> int:
    """Count words that no sentence has: a name with a sign in it, "dot" spoken, capitals, or an @ with spaces around."""
    local, *_ = re.split(r"[ ]at[ ]|[ ]AT[ ]|[ ]chez[ ]|@", value, maxsplit=1)
    local = local.strip()
    if local.isdigit() or local.lower() in _NOT_A_NAME or len(value) > _EMAIL_CHARS_MAX:
        return 0
    is_spoken = "@" in value or " AT " in value or " dot " in value or " DOT " in value
    return len(value) if is_spoken or re.search(r"[._0-9]", local) or _IN_WORDS.search(local) else 0


_IN_WORDS = re.compile(_SPOKEN_SIGN)


def _accept_spelled(value: str) -> int:
    return len(value) if len(value) <= _EMAIL_CHARS_MAX else 0


def _accept_international(value: str) -> int:
    """North America is cut at eleven digits; elsewhere lengths differ and the whole run is taken."""
    digits = digits_of(value)
    if "\n" in value and (not 10 <= len(digits) <= 13 or _THOUSANDS.fullmatch(value.replace("\n", " "))):
        return 0
    if value.startswith("00"):
        return len(value) if 10 <= len(digits) <= 17 else 0
    if digits[0] == "1":
        if len(digits) < 11 or digits[1] in "01":
            return 0
        return len(value) if len(digits) == 11 or not value[-1].isdigit() else _end_of_digit(value, 11)
    if len(digits) == len(value) - 1:
        return len(value) if 10 <= len(digits) <= 15 else 0
    if len(digits) < 10 and _THOUSANDS.fullmatch(value):
        return 0
    return len(value) if 8 <= len(digits) <= 15 else 0


def _end_of_digit(value: str, wanted: int) -> int:
    """Return where the `wanted`-th digit ends, or 0 when what follows would be torn from it."""
    seen = 0
    for index, char in enumerate(value):
        seen += char.isdigit()
        if seen == wanted:
            return index + 1 if value[index + 1 : index + 2] == " " else 0
    return 0


_GERMAN_MOBILE = re.compile("01[567]")


def _accept_national(value: str) -> int:
    number = re.split(r"x|ext", value, maxsplit=1)[0]
    pairs = re.split(r"[ \u00a0.-]", value)
    if len(pairs) == 5 and pairs[-1] <= "70" and all(first < second for first, second in pairwise(pairs)):
        return 0  # drawn numbers, in order
    digits_max = 12 if _GERMAN_MOBILE.match(number) else 11
    return len(value) if 9 <= len(digits_of(number)) <= digits_max else 0


def _accept_linked(value: str) -> int:
    return len(value) if 8 <= len(digits_of(value)) <= 15 else 0


_PHONE_WORDS = words(
    r"(?:tele|cell|mobile\s?|home\s?|work\s?|smart)?phones?(?:\s?(?:number|no|num|nr))?",
    r"tel(?:efon|éphone)?\.?",
    r"mob(?:ile)?(?:\s?(?:number|no))?",
    r"cell(?:ular)?",
    "handy",
    "fax",
    "call(?:ing|ed)?",
    "text",
    "sms",
    "whatsapp",
    "dial",
    r"contact(?:\s?number)?",
    rf"(?:{BEFORE_RING})\sring|^ring|[^a-z0-9 \-]\s?ring",
    r"caller(?:\s?id)?",
    "msisdn",
    r"reach(?:ed|able)?",
    "hotline",
)

_NATIONAL_HINT = (
    rf"{HINT_BEFORE_DIGIT}(?:(?:1[ .\-])?\(?[2-9][0-9]{{2}}\)?{SEPARATOR}?[0-9]{{3}}{SEPARATOR}[0-9]{{4}}"
    r"|\(0[1-9][0-9]{0,4}\)|0[1-9][0-9]{1,3}[ \u00a0\-][0-9]{3,4}[ \u00a0\-][0-9]{3,4}"
    r"|0[1-9][0-9]{3}[ \u00a0][0-9]{6}|07[1-9][0-9]{2}\.[0-9]{3}\.[0-9]{3}|0[1-9](?:[ \u00a0.\-][0-9]{2}){4}"
    r"|0[1-9][0-9]{1,2}[ \u00a0][0-9]{2}"
    r"|0[1-9]-[0-9]{4}-[0-9]|0[1-9][0-9]{1,4}(?:[ ]?/[ ]?|[ \u00a0\-])(?:[0-9]{6}|[0-9]{2,4}[ ][0-9]{2})"
    r"|\([1-9][0-9]\)[ ]?9?[0-9]{4}[ \-]"
    r"|(?:8[ \-]?)?\([3489][0-9]{2}\)[ ]?[0-9]{3}[ \-][0-9]{2}[ \-]|8[ \-][3489][0-9]{2}[ \-][0-9]{3}-[0-9]{2}-"
    r"|06[ \-][1-9][0-9]{7}|06[ /\-](?:1|20|30|31|50|70)[ /\-][0-9]{3}[ \-][0-9]{3})"
)
# Where a national number may begin: with its trunk prefix, or with three digits and a separator.
_AT_PHONE = (
    rf"{AT_DIGIT}(?:(?<=0)(?=[1-9](?:[ \u00a0./-]{{0,3}}[0-9]){{6}})|(?<=[18])(?=[ .-])"
    rf"|(?<=[2-9])(?=[0-9]{{2}}{SEPARATOR}[0-9]{{3}}))"
)

_TELECOM = r"\^(?:PRN|ORN|WPN|VHN|ASN|EMR|BPN|PRS)\^(?:PH|FX|MD|CP|SAT|TDD|TTY)\^"

CONTACT: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="url_credentials",
        type="CREDENTIAL",
        category=Category.SECRET,
        priority=10,
        pattern=LatePattern(r"://(?P<value>[^\s/@:\"'<>\[\]]{0,64}:[^\s/\"'<>\[\]]{1,128})@"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r":\\?/\\?/[^\s/@\"]*:[^\s/@\"]+@",
        accept=_accept_credentials,
    ),
    PatternDetector(
        name="email",
        type="EMAIL",
        category=Category.CONTACT,
        priority=11,
        pattern=LatePattern(
            rf"(?:{_LOCAL}|(?<![^\s<(:,;])\"[^\"\n@]{{1,64}}\")(?:@|%40)(?:{_LABEL}\.){{1,5}}[A-Za-z]{{2,24}}(?![A-Za-z0-9])"
        ),
        shape_chars_max=832,
        first=_AT_LOCAL,
        hint=rf"[{LETTER}0-9\"](?:@|%40)[{LETTER}0-9\-]",
        accept=_accept_email,
    ),
    PatternDetector(
        name="email_spelled",
        type="EMAIL",
        category=Category.CONTACT,
        priority=11,
        pattern=LatePattern(
            rf"(?<![{LETTER}0-9]){_ATOM}(?:(?:[._%+'-]{{1,2}}|[\[(](?:\.|dot)[\])]"
            rf"|{_SPOKEN_SIGN}){_ATOM}){{0,5}}(?:{_AT}"
            rf"|@){_SPOKEN_LABEL}{_DOT}(?:{_LABEL}{_DOT}){{0,3}}[A-Za-z]{{2,24}}(?![A-Za-z0-9])"
            r"|(?<!\w)\w{1,64}[ ](?:собака|собачка)[ ](?:[\w-]{1,63}(?:\.|[ ]точка[ ])){1,4}\w{2,24}(?!\w)",
            re.IGNORECASE,
        ),
        shape_chars_max=832,
        hint=rf"[\[({{<][ ]?(?i:at|ät|@|a|dot|{_AT_WORDS}|{_DOT_WORDS}|\.)[ ]?[\])}}>]|[ ](?i:ät|{_AT_WORDS})[ ]"
        rf"|(?i:_at_[^ ]{{1,64}}_dot_)|@[A-Za-z0-9\-]{{1,63}},(?:{_BEHIND_COMMA})",
        accept=_accept_spelled,
    ),
    PatternDetector(
        name="email_spoken",
        type="EMAIL",
        category=Category.CONTACT,
        priority=12,
        pattern=LatePattern(
            rf"(?<![{LETTER}0-9.]){_ATOM}(?:(?:[._-]|{_SPOKEN_SIGN}){_ATOM}){{0,3}}(?:[ ](?:at|AT|@|chez)[ ]|[ ]?@[ ]"
            rf"|[ ]@[ ]?|\n@|@\n)"
            rf"{_SPOKEN_LABEL}(?:(?:[ ]?\.[ ]?|[ ]{_SPOKEN_DOT}[ ]){_LABEL}){{0,3}}(?:(?:[ ]?\.[ ]?|[ ]{_SPOKEN_DOT}[ ])"
            rf"(?:{_TOP_LEVEL})|[ ]{_SPOKEN_DOT}[ ](?:{_SPOKEN_COUNTRIES}))(?![A-Za-z0-9-])"
        ),
        shape_chars_max=640,
        hint=rf"[ ](?:at|AT|@|chez)[ ][^ .]{{1,64}}(?:{_SPOKEN_HYPHEN}[^ .]{{1,24}}){{0,2}}"
        rf"(?:\.[A-Za-z]{{2}}|[ ]{_SPOKEN_DOT}[ ]|[ ]\.)"
        r"|[^\s]@(?:[ \n]|\\n)|(?:[ \n]|\\n)@[^\s]",
        accept=_accept_spoken,
    ),
    PatternDetector(
        name="email_named",
        type="EMAIL",
        category=Category.CONTACT,
        priority=13,
        pattern=LatePattern(
            rf"(?<![{LETTER}0-9.]){_ATOM}(?:(?:[._-]|{_SPOKEN_SIGN}){_ATOM}){{0,3}}[ ]at[ ](?:{_LABEL}(?:\.|[ ]dot["
            rf" ])){{1,3}}(?:{_TOP_LEVEL})(?![A-Za-z0-9-])",
            re.IGNORECASE,
        ),
        shape_chars_max=640,
        hint=r"(?i:mail|write to|reach|contact){HINT_GAP}[ ](?i:at)[ ][^ ]{1,64}(?i:\.[a-z]|[ ]dot[ ])".replace(
            "{HINT_GAP}", r"(?s:.*)"
        ),
        accept=_accept_spelled,
        need=Need.CONTEXT,
        context=words(
            r"e-?mails?(?:\s?(?:address|me|id))?(?:\s(?:is|me|at|to))?[\s:=]{1,3}$",
            r"(?:write|mail)\s?to[\s:]{1,2}$",
            r"contact[\s:]{1,2}$",
        ),
    ),
    PatternDetector(
        name="email_international",
        type="EMAIL",
        category=Category.CONTACT,
        priority=12,
        pattern=LatePattern(r"(?<![\w.%+@-])\w{1,64}(?:[._%+-]\w{1,64}){0,6}@(?:[\w-]{1,63}[.。]){1,5}[^\W\d_]{2,24}(?![\w@])"),
        shape_chars_max=832,
        hint=r"[^\s@]@[^\s@\x00-\x7f]|[^\s@\x00-\x7f]@",
        accept=_accept_international_email,
    ),
    PatternDetector(
        name="email_encoded",
        type="EMAIL",
        category=Category.CONTACT,
        priority=14,
        pattern=LatePattern(r"(?<![A-Za-z0-9+/])(?<!==)[A-Za-z0-9+/]{12,120}={0,2}(?![A-Za-z0-9+/=])"),
        shape_chars_max=LONG_CHARS_MAX,
        first=AT_BASE64,
        hint=rf"{_run_with_at(20)}|{_run_with_at(14)}[A-Za-z0-9+/]{{0,106}}=",
        accept=_accept_encoded,
    ),
    PatternDetector(
        name="phone_in_record",  # of HL7: "^PRN^CP^^48^601^234567"
        type="PHONE",
        category=Category.CONTACT,
        priority=40,
        pattern=LatePattern(rf"{_TELECOM}[^|^\r\n]{{0,64}}\^(?P<value>[1-9][0-9]{{0,2}}\^[0-9]{{1,5}}\^[0-9]{{4,9}})(?![0-9])"),
        hint=rf"{_TELECOM}[^|^]{{0,64}}\^[1-9]",
    ),
    PatternDetector(
        name="phone_international",
        type="PHONE",
        category=Category.CONTACT,
        priority=40,
        pattern=LatePattern(
            rf"(?:(?<![A-Za-z0-9_+])\+|{BEFORE}00(?=[1-9][0-9]{{0,2}}[ .-]))[1-9]"
            rf"(?:(?:{_GAP}[0-9]){{6,14}}|(?:{_GAP}[0-9]){{2,9}}[ -]?\n[ ]?[0-9](?:{_GAP}[0-9]){{3,9}})"
            rf"{_EXTENSION}{AFTER_DIGIT}"
        ),
        hint=rf"\+[1-9](?:(?:{_GAP}|[ -]?(?:\n|\\n)[ ]?)[0-9]){{6}}|{HINT_BEFORE_DIGIT}00[1-9][0-9]{{0,2}}[ .\-]",
        accept=_accept_international,
        need=Need.NO_FOREIGN_LABEL,
        context=words(_PHONE_WORDS.alternatives, r"\($"),  # in brackets behind a noun it is how to reach whom the noun names
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="phone_bracketed",
        type="PHONE",
        category=Category.CONTACT,
        priority=41,
        pattern=LatePattern(
            rf"{BEFORE}(?:(?:1[ .-])?\([2-9][0-9]{{2}}\)[ .-]?[0-9]{{3}}[ .\-\u2010-\u2013][0-9]{{4}}{_EXTENSION}"
            rf"|\(0[1-9][0-9]{{0,4}}\)[ ]?[0-9]{{3,4}}[ -]?[0-9]{{3,4}}"
            rf"|\([1-9][0-9]\)[ ]?9?[0-9]{{4}}[ -][0-9]{{4}}"
            rf"|(?:8[ -]?)?\([3489][0-9]{{2}}\)[ ]?[0-9]{{3}}[ -][0-9]{{2}}[ -][0-9]{{2}}){AFTER_DIGIT}"
        ),
        first=rf"[18(]{AT_BORDER}",
        hint=_NATIONAL_HINT,
        accept=_accept_national,
        need=Need.NO_FOREIGN_LABEL,
        siblings=True,
        context=_PHONE_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="phone_national",
        type="PHONE",
        category=Category.CONTACT,
        priority=41,
        pattern=LatePattern(
            rf"{BEFORE}(?:(?:1[ .-])?[2-9][0-9]{{2}}[.\-\u2010-\u2013][0-9]{{3}}"
            rf"[ .\-\u2010-\u2013][0-9]{{4}}{_EXTENSION}"
            rf"|0[1-9][0-9]{{1,3}}[ \u00a0][0-9]{{3,4}}[ \u00a0][0-9]{{3,4}}"
            rf"|0[1-9][0-9]{{3}}[ \u00a0][0-9]{{6}}|07[1-9][0-9]{{2}}\.[0-9]{{3}}\.[0-9]{{3}}"
            rf"|0[1-9](?:[ \u00a0.-][0-9]{{2}}){{4}}(?![ \u00a0.-][0-9]{{2}}(?![0-9]))"
            rf"|0[1-9][0-9]{{1,2}}[ \u00a0][0-9]{{3}}[ \u00a0][0-9]{{2}}[ \u00a0][0-9]{{2}}"
            rf"|0[1-9][0-9]{{2}}(?:[ \u00a0][0-9]{{2}}){{3}}"
            rf"|0[1-9][0-9]{{1,4}}[ ]?/[ ]?[0-9]{{6,8}}|0[1-9]-[0-9]{{4}}-[0-9]{{4}}"
            rf"|0[1-9][0-9]{{1,4}}[ \u00a0-][0-9]{{6,8}}"
            rf"|0[1-9][0-9]{{1,4}}(?:[ ]?/[ ]?|-)[0-9]{{2,4}}(?:[ ][0-9]{{2,5}}){{1,3}}"
            rf"|0[1-9][0-9]{{1,3}}-[0-9]{{3,4}}-[0-9]{{4}}"
            rf"|06[ -][1-9][0-9]{{7}}"
            rf"|06[ /-](?:1|20|30|31|50|70)[ /-][0-9]{{3}}[ -][0-9]{{3,4}}"
            rf"|8[ -][3489][0-9]{{2}}[ -][0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}){AFTER_DIGIT}"
        ),
        first=_AT_PHONE,
        hint=_NATIONAL_HINT,
        accept=_accept_national,
        need=Need.NO_FOREIGN_LABEL,
        alone=True,
        siblings=True,
        context=_PHONE_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="phone_spaced",
        type="PHONE",
        category=Category.CONTACT,
        priority=41,
        pattern=LatePattern(
            rf"{BEFORE}(?:1[ ])?[2-9][0-9]{{2}}[ \u00a0][0-9]{{3}}[ \u00a0-][0-9]{{4}}{_EXTENSION}{AFTER_DIGIT}"
        ),
        first=_AT_PHONE,
        hint=rf"{HINT_BEFORE_DIGIT}(?:1[ ])?[2-9][0-9]{{2}}[ \u00a0][0-9]{{3}}[ \u00a0\-][0-9]{{4}}",
        need=Need.NO_FOREIGN_LABEL,
        alone=True,
        siblings=True,
        context=_PHONE_WORDS,
        not_after=LatePattern(r"[0-9][-. ]$", end_chars=3),  # "100 250 300 4000" is a list of numbers
    ),
    PatternDetector(
        name="phone_linked",
        type="PHONE",
        category=Category.CONTACT,
        priority=40,
        pattern=LatePattern(
            r"(?:wa\.me/|t\.me/(?=\+)|signal\.me/#p/(?=\+)|whatsapp\.com/send/?\?phone=|whatsapp://send\?phone="
            r"|(?<![A-Za-z])(?:tel|sms|callto|facetime):|(?<![A-Za-z])(?:PJ)?SIP/(?=\+))"
            r"(?P<value>\+?[0-9][0-9().-]{6,18}[0-9])(?![A-Za-z0-9_])"
        ),
        first="[wtscfPS]",
        hint=r"(?:wa|t|signal)\.me\\?/|SIP\\?/\+|whatsapp|(?:tel|sms|callto|facetime):\+?[0-9]",
        accept=_accept_linked,
    ),
)
