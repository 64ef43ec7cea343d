"""How a person is reached: e-mail, phone, user names, and credentials inside a URL."""

from __future__ import annotations

import re

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.shapes import (
    AFTER,
    AFTER_DIGIT,
    BEFORE,
    HINT_AFTER,
    HINT_AFTER_LETTER,
    HINT_BEFORE_DIGIT,
    HINT_BEFORE_LETTER,
    LETTER,
    NOT_AFTER_DIGIT,
    SEPARATOR,
    digits_of,
    either_order,
    words,
)

_EMAIL_CHARS_MAX = 320
_ATOM = f"[{LETTER}0-9]{{1,64}}"
_LOCAL = rf"(?<![{LETTER}0-9]){_ATOM}(?:[._%+'-]{{1,2}}{_ATOM}){{0,6}}"
_LABEL = f"[{LETTER}0-9-]{{1,63}}"
_DOT = r"(?:\.|[ ]?[\[({<][ ]?dot[ ]?[\])}>][ ]?)"
_AT = r"[ ]?[\[({<][ ]?at[ ]?[\])}>][ ]?"
# What follows the @ of a file or a unit, not of a person: image@2x.png, getty@tty1.service.
_NOT_TOP_LEVEL = frozenset(
    re.findall(
        "[a-z]+",
        "png jpg jpeg gif svg webp ico pdf css js ts json html xml yaml yml py rb go rs java txt md csv zip gz tar service"
        " socket timer target mount slice",
    )
)

_DATE_LIKE = re.compile(r"(?:[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-./])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))")
_THOUSANDS = re.compile(r"\+[0-9]{1,3}(?:[ .][0-9]{3})+")
_GAP = r"[ \u00a0\u202f.\-\u2010-\u2013()/]{0,2}"
_EXTENSION = r"(?:[ ]?(?:x|ext\.?|extension)[ ]?[0-9]{1,6})?"
_BARE = (  # national numbers that say nothing by themselves
    r"(?:1[ .-]?)?[2-9][0-9]{6,11}"
    r"|[2-9][0-9]{2}(?:[ .-][0-9]{2,4}){1,4}"
    r"|[2-9][0-9]{4}[ -][0-9]{5}"
    r"|0[1-9][0-9]{7,10}"
    r"|\(?0[1-9][0-9]{0,4}\)?[ /.-]{1,3}[0-9]{4,9}"
    r"|0[1-9](?:[ .-][0-9]{2,4}){2,5}"
)
_BARE_HINT = (
    rf"{HINT_BEFORE_DIGIT}(?:(?:1?[2-9][0-9]{{6,11}}|0[1-9][0-9]{{7,10}}){HINT_AFTER}"
    r"|[2-9][0-9]{2}[ .\-][0-9]{2,4}(?:[0-9]{2}|[ .\-][0-9]{2})|[2-9][0-9]{4}[ \-][0-9]{5}|1[ .\-][2-9][0-9]{6}"
    r"|\(?0[1-9][0-9]{0,4}\)?(?:[ /.\-]|\\/){1,3}[0-9]{2,9})"
)
_SHORT_PHONE_WORDS = "tel|mob|cell|call|calling|called|text|sms|dial|ring|reach|reached"
_PHONE_HINT_WORDS = (  # short words count whole or as a part of a camelCase key; "tell" and "context" are everywhere
    f"(?i:phone|fon|mobile|cellular|handy|fax|whatsapp|contact|hotline|reachable)"
    rf"|{HINT_BEFORE_LETTER}(?i:{_SHORT_PHONE_WORDS}){HINT_AFTER_LETTER}"
    rf"|[a-z](?:{'|'.join(word.title() for word in _SHORT_PHONE_WORDS.split('|'))}|SMS){HINT_AFTER_LETTER}"
)


def _accept_email(value: str) -> int:
    local, _, domain = value.replace("%40", "@").rpartition("@")
    if domain.rpartition(".")[2].lower() in _NOT_TOP_LEVEL or local == "git":
        return 0
    return len(value) if len(value) <= _EMAIL_CHARS_MAX else 0


def _accept_spelled(value: str) -> int:
    return len(value) if len(value) <= _EMAIL_CHARS_MAX else 0


def _accept_international(value: str) -> int:
    """North America is cut at eleven digits; elsewhere lengths differ and the whole run is taken."""
    digits = digits_of(value)
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


def _accept_national(value: str) -> int:
    number = re.split(r"x|ext", value, maxsplit=1)[0]
    return len(value) if 9 <= len(digits_of(number)) <= 11 else 0


def _accept_bare(value: str) -> int:
    return len(value) if 7 <= len(digits_of(value)) <= 12 and not _DATE_LIKE.fullmatch(value) else 0


def _accept_user_name(value: str) -> int:
    return len(value) if any(char.isalpha() for char in value) and any(not char.isalpha() for char in value) else 0


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
    r"ring",
    r"reach(?:ed|able)?",
    "hotline",
)

_USER_NAME_HINT = r"(?i:user|login|screen)[ _\-]?(?i:name)"

CONTACT: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="url_credentials",
        type="CREDENTIAL",
        category=Category.CONTACT,
        priority=10,
        pattern=re.compile(r"://(?P<value>[^\s/@:\"'<>\[\]]{1,64}:[^\s/@\"'<>\[\]]{1,128})@"),
        hint=r":\\?/\\?/[^\s/@\"]+:[^\s/@\"]+@",
    ),
    PatternDetector(
        name="email",
        type="EMAIL",
        category=Category.CONTACT,
        priority=11,
        pattern=re.compile(rf"{_LOCAL}(?:@|%40)(?:{_LABEL}\.){{1,5}}[A-Za-z]{{2,24}}(?![A-Za-z0-9])"),
        hint=rf"[{LETTER}0-9](?:@|%40)[{LETTER}0-9\-]",
        accept=_accept_email,
    ),
    PatternDetector(
        name="email_spelled",
        type="EMAIL",
        category=Category.CONTACT,
        priority=11,
        pattern=re.compile(rf"{_LOCAL}{_AT}(?:{_LABEL}{_DOT}){{1,4}}[A-Za-z]{{2,24}}(?![A-Za-z0-9])", re.IGNORECASE),
        hint=r"[\[({<][ ]?(?i:at)[ ]?[\])}>]",
        accept=_accept_spelled,
    ),
    PatternDetector(
        name="phone_international",
        type="PHONE",
        category=Category.CONTACT,
        priority=40,
        pattern=re.compile(
            rf"(?:(?<![A-Za-z0-9_+])\+|{BEFORE}00(?=[1-9][0-9]{{0,2}}[ .-]))[1-9](?:{_GAP}[0-9]){{6,14}}{_EXTENSION}"
            rf"{AFTER_DIGIT}"
        ),
        hint=rf"\+[1-9](?:{_GAP}[0-9]){{6}}|{HINT_BEFORE_DIGIT}00[1-9][0-9]{{0,2}}[ .\-]",
        accept=_accept_international,
        need=Need.NO_FOREIGN_LABEL,
        context=_PHONE_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="phone_national",
        type="PHONE",
        category=Category.CONTACT,
        priority=41,
        pattern=re.compile(
            rf"{BEFORE}(?:(?:1[ .-])?(?:\([2-9][0-9]{{2}}\)[ .-]?|[2-9][0-9]{{2}}[.\-\u2010-\u2013])[0-9]{{3}}"
            rf"[ .\-\u2010-\u2013][0-9]{{4}}{_EXTENSION}"
            rf"|\(0[1-9][0-9]{{0,4}}\)[ ]?[0-9]{{3,4}}[ -]?[0-9]{{3,4}}"
            rf"|0[1-9][0-9]{{1,3}}[ \u00a0][0-9]{{3,4}}[ \u00a0][0-9]{{3,4}}"
            rf"|0[1-9][0-9]{{3}}[ \u00a0][0-9]{{6}}"
            rf"|0[1-9](?:[ \u00a0.-][0-9]{{2}}){{4}}"
            rf"|0[1-9][0-9]{{1,3}}-[0-9]{{3,4}}-[0-9]{{4}}){AFTER_DIGIT}"
        ),
        hint=rf"{HINT_BEFORE_DIGIT}(?:(?:1[ .\-])?\(?[2-9][0-9]{{2}}\)?{SEPARATOR}?[0-9]{{3}}{SEPARATOR}[0-9]{{4}}"
        r"|\(0[1-9][0-9]{0,4}\)|0[1-9][0-9]{1,3}[ \u00a0\-][0-9]{3,4}[ \u00a0\-][0-9]{3,4}"
        r"|0[1-9][0-9]{3}[ \u00a0][0-9]{6}|0[1-9](?:[ \u00a0.\-][0-9]{2}){4})",
        accept=_accept_national,
        need=Need.NO_FOREIGN_LABEL,
        context=_PHONE_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="phone_spaced",
        type="PHONE",
        category=Category.CONTACT,
        priority=41,
        pattern=re.compile(
            rf"{BEFORE}(?:1[ ])?[2-9][0-9]{{2}}[ \u00a0][0-9]{{3}}[ \u00a0-][0-9]{{4}}{_EXTENSION}{AFTER_DIGIT}"
        ),
        hint=rf"{HINT_BEFORE_DIGIT}(?:1[ ])?[2-9][0-9]{{2}}[ \u00a0][0-9]{{3}}[ \u00a0\-][0-9]{{4}}",
        need=Need.NO_FOREIGN_LABEL,
        context=_PHONE_WORDS,
        not_after=re.compile(r"[0-9][-. ]$"),  # "100 250 300 4000" is a list of numbers
    ),
    PatternDetector(
        name="phone_named",
        type="PHONE",
        category=Category.CONTACT,
        priority=42,
        pattern=re.compile(rf"{BEFORE}(?:{_BARE}){_EXTENSION}{AFTER_DIGIT}"),
        hint=either_order(_PHONE_HINT_WORDS, _BARE_HINT),
        accept=_accept_bare,
        need=Need.CONTEXT,
        context=_PHONE_WORDS,
        trailing=True,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="user_name",
        type="USERNAME",
        category=Category.CONTACT,
        priority=80,
        pattern=re.compile(
            r"(?<![a-z])(?:user|login|screen)[ _-]?name[\"']?[ ]{0,2}[:=][ ]{0,2}[\"'@]{0,2}"
            rf"(?P<value>[A-Za-z0-9][A-Za-z0-9._-]{{1,30}}[A-Za-z0-9]){AFTER}",
            re.IGNORECASE,
        ),
        hint=_USER_NAME_HINT,
        accept=_accept_user_name,
    ),
    PatternDetector(
        name="user_name_keyed",
        type="USERNAME",
        category=Category.CONTACT,
        priority=81,
        pattern=re.compile(r"\A@?(?P<value>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,30}[A-Za-z0-9])?)\Z"),
        hint=_USER_NAME_HINT,
        need=Need.CONTEXT,
        context=words(r"(?:user|login|screen) ?name: ?$"),
    ),
)
