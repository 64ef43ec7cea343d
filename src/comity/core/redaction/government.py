"""Numbers a state gives a person, and the date of birth."""

from __future__ import annotations

import re

from comity.core.redaction.checksums import is_luhn, is_nhs_number
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.shapes import (
    AFTER,
    AFTER_DIGIT,
    BEFORE,
    DASH,
    HINT_AFTER,
    HINT_AFTER_LETTER,
    HINT_BEFORE_DIGIT,
    HINT_BEFORE_LETTER,
    HINT_BEFORE_WORD,
    HINT_GAP,
    NOT_AFTER_DIGIT,
    SPACE,
    digits_of,
    words,
)

_SSN_WORDS = words(
    "ssns?", "ss", r"soc(?:ial)?\s?sec(?:urity)?(?:\s?(?:number|no|num))?", r"social(?:\s(?:is|number|no|num))?[\s:#=]{1,3}$"
)
_ITIN_WORDS = words("itins?", r"(?:individual\s)?tax\s?payer\s?(?:id(?:entification)?)?(?:\s?(?:number|no))?")
_SIN_WORDS = words(
    r"(?-i:SINs?)",
    r"sins?(?:\s?(?:number|no|num|nr|#))?[:=#]",
    r"sin\s?(?:number|no|num|nr)",
    r"(?:my|his|her|their|canadian)\ssin",
    r"social\s?insurance(?:\s?(?:number|no))?",
    "nas",
    r"assurance\s?sociale",
)
_ITIN_GROUP = "(?:5[0-9]|6[0-5]|7[0-9]|8[0-8]|9[0-24-9])"
_EIN_PREFIXES_UNUSED = frozenset(re.findall("..", "0007080917181928294969707879899697"))
_NINO_PREFIXES_UNUSED = frozenset({"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"})

_NINE_DIGITS = f"{HINT_BEFORE_DIGIT}[0-9]{{3}}(?:{DASH}|{SPACE})?[0-9]{{2}}(?:{DASH}|{SPACE})?[0-9]{{4}}{HINT_AFTER}"
_THREE_THREES = f"{HINT_BEFORE_DIGIT}[0-9]{{3}}(?:{DASH}|{SPACE})?[0-9]{{3}}(?:{DASH}|{SPACE})?[0-9]{{3}}{HINT_AFTER}"

_MONTH = (
    "(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|fév(?:rier)?|mar(?:ch|s)?|märz|apr(?:il)?|avr(?:il)?|may|mai|june?|juni|juin"
    "|july?|juli|juillet|aug(?:ust)?|août|sept?(?:ember|embre)?|oct(?:ober|obre)?|okt(?:ober)?|nov(?:ember|embre)?"
    "|dec(?:ember)?|déc(?:embre)?|dez(?:ember)?)"
)
_YEAR = "(?:19|20)[0-9]{2}"
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_DATE = (
    rf"{_YEAR}[-/.](?:0?[1-9]|1[0-2])[-/.]{_DAY}"
    rf"|{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    rf"|{_DAY}[-/. ]{_DAY}[-/. ](?:{_YEAR}|[0-9]{{2}})"
    rf"|{_DAY}(?:st|nd|rd|th|er)?(?: of)?[.]?[ -]{_MONTH}[.,]?[ -](?:{_YEAR}|[0-9]{{2}})"
    rf"|{_MONTH}[.]? {_DAY}(?:st|nd|rd|th)?,? {_YEAR}"
    rf"|{_YEAR}[ ]?[年년][ ]?[0-9]{{1,2}}[ ]?[月월][ ]?[0-9]{{1,2}}[ ]?[日일]"
    rf"|{_DAY}(?: de)? (?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre"
    rf"|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre"
    rf"|ottobre|dicembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    rf"|stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września"
    rf"|października|listopada|grudnia|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября"
    rf"|ноября|декабря)(?: de)? {_YEAR}"
)


def _accept_ein(value: str) -> int:
    return 0 if value[:2] in _EIN_PREFIXES_UNUSED else len(value)


def _accept_sin(value: str) -> int:
    digits = digits_of(value)
    return len(value) if is_luhn(digits) and digits != "000000000" else 0


def _accept_nino(value: str) -> int:
    return 0 if value[:2].upper() in _NINO_PREFIXES_UNUSED else len(value)


def _accept_nhs(value: str) -> int:
    return len(value) if is_nhs_number(digits_of(value)) else 0


def _accept_passport(value: str) -> int:
    return len(value) if len(digits_of(value)) >= 4 else 0


def _accept_licence(value: str) -> int:
    return len(value) if len(digits_of(value)) >= 3 else 0


GOVERNMENT: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="ssn",
        type="SSN",
        category=Category.GOVERNMENT,
        priority=31,
        pattern=re.compile(rf"{BEFORE}(?!000|666|9)[0-9]{{3}}{DASH}(?!00)[0-9]{{2}}{DASH}(?!0000)[0-9]{{4}}{AFTER_DIGIT}"),
        hint=_NINE_DIGITS,
        need=Need.NO_FOREIGN_LABEL,
        context=_SSN_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="ssn_named",
        type="SSN",
        category=Category.GOVERNMENT,
        priority=32,
        pattern=re.compile(rf"{BEFORE}(?!000|666|9)[0-9]{{3}}{SPACE}?(?!00)[0-9]{{2}}{SPACE}?(?!0000)[0-9]{{4}}{AFTER_DIGIT}"),
        hint=_NINE_DIGITS,
        need=Need.CONTEXT,
        context=_SSN_WORDS,
        trailing=True,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="itin",
        type="ITIN",
        category=Category.GOVERNMENT,
        priority=31,
        pattern=re.compile(rf"{BEFORE}9[0-9]{{2}}{DASH}{_ITIN_GROUP}{DASH}[0-9]{{4}}{AFTER_DIGIT}"),
        hint=_NINE_DIGITS,
        need=Need.NO_FOREIGN_LABEL,
        context=_ITIN_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="itin_named",
        type="ITIN",
        category=Category.GOVERNMENT,
        priority=32,
        pattern=re.compile(rf"{BEFORE}9[0-9]{{2}}{SPACE}?{_ITIN_GROUP}{SPACE}?[0-9]{{4}}{AFTER_DIGIT}"),
        hint=_NINE_DIGITS,
        need=Need.CONTEXT,
        context=_ITIN_WORDS,
        trailing=True,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="sin",
        type="SIN",
        category=Category.GOVERNMENT,
        priority=33,
        pattern=re.compile(rf"{BEFORE}[0-9]{{3}}{DASH}[0-9]{{3}}{DASH}[0-9]{{3}}{AFTER_DIGIT}"),
        hint=_THREE_THREES,
        accept=_accept_sin,
        need=Need.NO_FOREIGN_LABEL,
        context=_SIN_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="sin_named",
        type="SIN",
        category=Category.GOVERNMENT,
        priority=33,
        pattern=re.compile(rf"{BEFORE}[0-9]{{3}}{SPACE}?[0-9]{{3}}{SPACE}?[0-9]{{3}}{AFTER_DIGIT}"),
        hint=_THREE_THREES,
        accept=_accept_sin,
        need=Need.CONTEXT,
        context=_SIN_WORDS,
        trailing=True,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="ein",
        type="EIN",
        category=Category.GOVERNMENT,
        priority=34,
        pattern=re.compile(rf"{BEFORE}[0-9]{{2}}{DASH}?[0-9]{{7}}{AFTER_DIGIT}"),
        hint=rf"{HINT_BEFORE_DIGIT}[0-9]{{2}}{DASH}?[0-9]{{7}}{HINT_AFTER}",
        accept=_accept_ein,
        need=Need.CONTEXT,
        context=words(
            "f?eins?",
            r"employer\s?id(?:entification)?(?:\s?(?:number|no))?",
            r"(?:federal\s)?tax\s?id(?:entification)?(?:\s?(?:number|no))?",
            r"federal\s?id",
            r"irs\s?(?:number|no)",
        ),
        trailing=True,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="nino",
        type="NINO",
        category=Category.GOVERNMENT,
        priority=35,
        pattern=re.compile(
            rf"{BEFORE}(?:QQ|[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z])(?:[ \u00a0-]?[0-9]{{2}}){{3}}[ \u00a0-]?[A-D]{AFTER}",
            re.IGNORECASE,
        ),
        hint=rf"{HINT_BEFORE_WORD}[A-Za-z]{{2}}(?:[ \u00a0-]?[0-9]{{2}}){{3}}[ \u00a0-]?[A-Da-d]{HINT_AFTER}",
        accept=_accept_nino,
        need=Need.NO_FOREIGN_LABEL,
        context=words("nino", "ni", r"nat(?:ional)?\s?ins(?:urance)?(?:\s?(?:number|no))?"),
    ),
    PatternDetector(
        name="nhs",
        type="NHS",
        category=Category.GOVERNMENT,
        priority=36,
        pattern=re.compile(rf"{BEFORE}[0-9]{{3}}[ \u00a0-]?[0-9]{{3}}[ \u00a0-]?[0-9]{{4}}{AFTER_DIGIT}"),
        hint=rf"(?i:nhs){HINT_GAP}[0-9]{{3}}",
        accept=_accept_nhs,
        need=Need.CONTEXT,
        is_number=True,
        context=words(r"nhs(?:\s?(?:number|no|num|id))?"),
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="passport",
        type="PASSPORT",
        category=Category.GOVERNMENT,
        priority=37,
        pattern=re.compile(rf"{BEFORE}(?=[A-Z]{{0,3}}[0-9])[A-Z0-9]{{6,11}}{AFTER_DIGIT}", re.IGNORECASE),
        hint=rf"(?i:pass(?:e?port|aporto|nummer|-?nr)|reisepass|pasaporte){HINT_GAP}[0-9]",
        accept=_accept_passport,
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            r"passe?ports?(?:\s?(?:number|no|num|nr|id))?",
            r"(?:reise)?pass-?(?:nummer|nr)",
            "reisepass",
            "pasaporte",
            "passaporto",
        ),
        reach=28,
    ),
    PatternDetector(
        name="licence",
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=re.compile(
            rf"{BEFORE}(?=[A-Z]{{0,8}}[0-9])[A-Z0-9](?:(?:-|[ ](?=[0-9]))?[A-Z0-9]){{4,19}}{AFTER}",
            re.IGNORECASE,
        ),
        hint=rf"(?i:driv[a-z'’]{{2,5}}[^a-z]{{0,3}}licen|permis|f.hrerschein){HINT_GAP}[0-9]"
        rf"|{HINT_BEFORE_LETTER}(?i:dln?){HINT_AFTER_LETTER}{HINT_GAP}[0-9]",
        accept=_accept_licence,
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            r"driv(?:er|ing)(?:['’]?s)?['’]?\s?licen[cs]es?(?:\s?(?:number|no|num|nr|id))?",
            r"dln?(?:\s?(?:number|no|num))?",
            r"permis\s?de\s?conduire",
            r"führerschein(?:nummer)?",
        ),
        reach=28,
    ),
    PatternDetector(
        name="dob",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=re.compile(
            rf"{BEFORE}(?:{_DATE})(?![0-9_])(?![-./][0-9]|\.\.|[ ]?(?:to|until|bis|[–-])[ ]?[0-9])(?!(?!T[0-9])[A-Za-z])",
            re.IGNORECASE,
        ),
        hint=(
            rf"(?i:d\.?o\.?b|b\.|birth|born|naiss|geb|née?[^a-z]|naci|nasc|nat[oa][^a-z]|urodz|ur\.|f[öø]d|syntym|doğum|рожд"
            rf"|родил|д\.?р|出生|生日|生年月日|생년월일){HINT_GAP}[0-9]"
        ),
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            r"d\.?o\.?b\.?",
            r"date\s?of\s?birth",
            r"birth\s?(?:date|day)s?",
            r"birth[:=]\s?$",
            "born",
            "n[ée]e?",
            r"b\.\s?$",
            r"(?:date\sde\s)?naissance",
            "geboren",
            r"geburts(?:datum|tag)",
            r"geb\.?",
            r"(?:fecha\sde\s)?nacimiento",
            "nacid[oa]",
            r"(?:data\sdi\s)?nascita",
            "nat[oa]",
            r"(?:data\sde\s)?nascimento",
            "nascid[oa]",
            r"geboortedatum",
            r"data\surodzenia|urodzon[ya]|ur\.\s?$",
            r"f[öø]dd?(?:elsedato|elsedag)?|födelsedatum",
            r"syntymäaika",
            r"doğum\starihi",
            r"дата\sрождения|родил(?:ся|ась)|д\.?р\.?",
            "出生(?:日期|年月日)?|生日|生年月日|생년월일",
            r"date\snaissance",
        ),
        reach=40,
        not_near=re.compile(
            r"birth\s(?:rate|control|cohort|weight|statistics|data|numbers|count|registrations?)[^;]{0,40}$"
            r"|born\s(?:rate|count|digital)[^;]{0,40}$"
            r"|(?:project|company|start-?up|product|brand|firm|team|programme|program|initiative|idea)\s(?:was\s)?born[^;]{0,20}$",
            re.IGNORECASE,
        ),
        keys=re.compile(
            r"(?:dob|birth ?(?:date|day)|date of birth|geburtsdatum|fecha nacimiento|date naissance)$", re.IGNORECASE
        ),
        not_after=re.compile(r"[0-9][-./]$"),
    ),
)
