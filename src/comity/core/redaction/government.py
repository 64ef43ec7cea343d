"""Numbers a state gives a person, and the date of birth."""

from __future__ import annotations

import re
from functools import cache

from comity.core.redaction.checksums import is_luhn, is_nhs_number
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import BIRTH, LICENCE, MONTH, PASSPORT, PLATE
from comity.core.redaction.shapes import (
    AFTER,
    AFTER_DIGIT,
    AT_NINE_DIGITS,
    AT_TWO_LETTERS,
    BEFORE,
    DASH,
    HINT_AFTER,
    HINT_AFTER_LETTER,
    HINT_BEFORE_DIGIT,
    HINT_BEFORE_LETTER,
    HINT_BEFORE_WORD,
    HINT_GAP,
    LONG_CHARS_MAX,
    NOT_AFTER_DIGIT,
    SPACE,
    LatePattern,
    at_word,
    digits_of,
    in_hint,
    words,
)
from comity.core.redaction.split import PARTS, YEAR

_SSN_WORDS = words(
    "ssns?",
    "(?-i:SSN/)?(?-i:TIN)",
    "ss",
    r"soc(?:ial|\.)?\s?sec(?:urity|\.)?(?:\s?(?:number|no|num))?",
    r"social(?:\s(?:is|number|no|num))?[\s:#=]{1,3}$",
    r"(?:my|his|her|their|your|the) social[?,:]? (?:it['’]?s|is|number is|would be|that['’]?s) $",
)
_ITIN_WORDS = words("itins?", "(?-i:TIN)", r"(?:individual\s)?tax\s?payer\s?(?:id(?:entification)?)?(?:\s?(?:number|no))?")
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

_NINE_DIGITS = rf"{HINT_BEFORE_DIGIT}[0-9]{{3}}(?:{DASH}|{SPACE}|\.)?[0-9]{{2}}(?:{DASH}|{SPACE}|\.)?[0-9]{{4}}{HINT_AFTER}"
_NINE_APART = f"|{HINT_BEFORE_DIGIT}[0-9](?:{SPACE}[0-9]){{8}}"
_THREE_THREES = f"{HINT_BEFORE_DIGIT}[0-9]{{3}}(?:{DASH}|{SPACE})?[0-9]{{3}}(?:{DASH}|{SPACE})?[0-9]{{3}}{HINT_AFTER}"

_YEAR = "(?:19|20|25|13|14)[0-9]{2}"  # also of the Thai and the Persian calendar
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_JOINT = r"(?:[ ]?[-/.\u2010-\u2013][ ]?|[ ])"
_ROMAN = "(?:X|XI{1,2}|IX|IV|VI{0,3}|I{1,3})"
_WORD = r"[^\s0-9.,/_'’-]{3,12}"  # of a month, which `_accept_date` looks up: a long alternation is slow to fail
_DATE = (
    rf"{_YEAR}{_JOINT}(?:0?[1-9]|1[0-2]){_JOINT}{_DAY}"
    rf"|{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    rf"|{_DAY}{_JOINT}{_DAY}{_JOINT}(?:{_YEAR}|[0-9]{{2}})"
    rf"|{_DAY}[-/. ]{_ROMAN}[-/. ]{_YEAR}"
    rf"|{_DAY}(?:st|nd|rd|th|er)?[.]?(?: of| de)?[ -]{_WORD}[.]?(?: de)?,?[ -](?:{_YEAR}|['’]?[0-9]{{2}})"
    rf"|{_WORD}[.]? {_DAY}(?:st|nd|rd|th)?,? {_YEAR}"
    rf"|{_DAY}\. (?:0?[1-9]|1[0-2])\. {_YEAR}|(?:明治|大正|昭和|平成|令和)[0-9]{{1,2}}年[0-9]{{1,2}}月[0-9]{{1,2}}日"
    rf"|{_YEAR}\.? {_WORD} {_DAY}\.?|{_DAY} tháng (?:0?[1-9]|1[0-2]),? năm {_YEAR}"
    rf"|{_YEAR}[ ]?[年년][ ]?[0-9]{{1,2}}[ ]?[月월][ ]?[0-9]{{1,2}}[ ]?[日일]"
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
    """Count four digits or more; of a German or Dutch one, which mix letters and digits, two."""
    mixed = (
        "[CFGHJK](?=[A-Z]*[0-9][A-Z]*[0-9])[0-9CFGHJKLMNPRTVWXYZ]{8}|[BDN](?=[A-Z]*[0-9][A-Z]*[0-9])[A-NP-Z][A-NP-Z0-9]{6}[0-9]"
    )
    if len(digits_of(value)) >= 4 or re.fullmatch(mixed, value):
        return len(value)
    return 0


_BIRTH_KEYS = "dob|birth ?(?:date|day)|date of birth|geburtsdatum|fecha nacimiento|date naissance"
_EPOCH_END = 1_600_000_000


def _accept_epoch(value: str) -> int:
    """Count seconds or milliseconds since 1970, of a day from 1900 on."""
    number = int(value)
    seconds = number / 1000 if abs(number) > 10**11 else number
    return len(value) if -2_208_988_800 <= seconds <= _EPOCH_END else 0


def _accept_worded(value: str) -> int:
    """Count a date in words of a month of a calendar."""
    return len(value) if any(map(_is_month, _WORDS.findall(value))) else 0


_WORDS = re.compile(_WORD)
_MONTH = LatePattern(rf"{MONTH}|tháng|năm|iii|viii?|xii", re.IGNORECASE)


@cache
def _is_month(word: str) -> bool:
    return _MONTH.compiled.fullmatch(word) is not None


def _accept_date(value: str) -> int:
    """Count a date whose month, where it is a word, is one of a calendar."""
    return len(value) if all(map(_is_month, _WORDS.findall(value))) else 0


def _accept_parts(value: str) -> int:
    """Count a year and another part of a date, each behind its word."""
    named = {PARTS[word] for word in re.findall(r"[^\W\d_]+", value.lower().replace("geburts", "")) if word in PARTS}
    return len(value) if YEAR in named and len(named) > 1 else 0


_ORDINALS = (  # of a day, in words
    "(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|tenth|eleventh|twelfth"
    "|thirteenth|fourteenth"
    "|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
    "|(?:(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und)?(?:zwanzig|dreißig|dreissig)ste[nr]?"
    "|ers?te[nr]?|zweite[nr]?|dritte[nr]?|(?:vier|fünf|sechs|sieb|sieben|ach|neun|zehn|elf|zwölf|dreizehn|vierzehn"
    "|fünfzehn|sechzehn"
    "|siebzehn|achtzehn|neunzehn)te[nr]?|premier|primero|primo"
)
_YEAR_WORDS = (
    "(?:nineteen|twenty)[ -](?:hundred(?:[ ]and)?[ -]?)?(?:oh[- ])?(?:(?:twenty|thirty|forty|fifty|sixty|seventy"
    "|eighty|ninety)(?:[- ])?)?"
    "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    "|eighteen|nineteen)?"
    "|two[ ]thousand(?:[ ]and)?(?:[ ][a-z]{3,9})?"
)


def _accept_licence(value: str) -> int:
    return len(value) if len(digits_of(value)) >= 3 else 0


_PEOPLE = (
    r"\w{1,16}(?:[eo]r|ist|[ae]nt|ee|ian|an|man|men|son|boy|girl|ess|ate|ard|ive|ing|ed|ain|king)s?|bab(?:y|ies)|twins?"
    r"|child(?:ren)?|kids?|boss"
    r"|prince|queen|pope|guest|witness|wife|husband|spouse|nurse|aunt|niece|nephew|friend|male|female|adult|youth|teen"
    r"|infant|newborn"
    r"|host|pilot|clerk|chef|coach|judge|poet|monk|nun|priest|saint|bride|groom|heir|deceased|accused|insured|minor|dad"
    r"|mum|mom|actress"
    r"|triplets?|quads|eldest|youngest|oldest|elder|younger|first|second|third|last|other|one|pupil|victim|suspect|individual"
)


_NOT_OF_A_PERSON = LatePattern(
    r"birth\s(?:rate|control|cohort|weight|statistics|data|numbers|count|registrations?)[^;]{0,40}$"
    r"|dob-[a-z][^;]{0,60}$|geb\.?\s(?-i:[A-ZÄÖÜ])[a-zäöüß]{1,20}\s$"
    r"|(?:usine|entreprise|société|marque|association|empresa|compañía|firma|marca|azienda|società|impresa|unternehmen"
    r"|verein|projekt|proyecto|projet|progetto|start-?up|club)[^;.:]{0,30}$"
    r"|(?:republik|republic|república|république|nation|firma|company|city|stadt)\W{0,3}$"
    r"|born\s(?:rate|count|digital)[^;]{0,40}$"
    r"|(?:project|company|start-?up|product|brand|firm|team|programme|program|initiative|idea|process|thread|job|task"
    r"|pod|container"
    r"|session|server|daemon|worker|node|instance|galaxy|star|legend|tradition|movement|band|city)\s(?:was\s"
    r"|is\s)?born[^;]{0,20}$"
    # "The World Wide Web was born on": what has an article before it and is no person, of whom most words end alike.
    rf"|(?<![a-z])(?:the|our|this|that|its)\s(?:[^\W\d]+[ -]){{0,3}}(?!(?:{_PEOPLE})\s)[^\W\d]{{3,20}}\s(?:was"
    rf"|is)\sborn[^;]{{0,20}}$",
    re.IGNORECASE,
)
# "birth day: 21, birth month: 06, birth year: 1979"; the words are those of `split`.
_PART_WORDS = (
    "day|month|year|tag|monat|jahr|jour|mois|ann[ée]e|d[ií]a|mes|año|giorno|mese|anno|m[êe]s|ano|dag|maand|jaar|dzień|miesiąc|rok"
    "|день|месяц|год|måned|månad|år"
)
_PART = rf"(?:{_PART_WORDS})(?:[ ]?[:=][ ]?|[ ])(?:{_YEAR}|[0-3]?[0-9]|{_WORD})"
_OF_BIRTH = "(?:of birth|birth|geburts|de naissance|de nacimiento|di nascita|de nascimento)"
_PARTED = rf"(?:[ ]?[,;/|\n-][ ]?|[ ])(?:and[ ])?(?:{_OF_BIRTH}[ -]?)?"
_BIRTH_HINT = (
    rf"{HINT_BEFORE_LETTER}(?i:{in_hint(BIRTH)}|b\.|birth|ur\.|[*]){HINT_AFTER_LETTER}{HINT_GAP}[0-9]"
    rf"|[a-z](?:DOB|Dob|Birth){HINT_GAP}[0-9]"
)

GOVERNMENT: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="ssn",
        type="SSN",
        category=Category.GOVERNMENT,
        priority=31,
        pattern=LatePattern(rf"{BEFORE}(?!000|666|9)[0-9]{{3}}{DASH}(?!00)[0-9]{{2}}{DASH}(?!0000)[0-9]{{4}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
        hint=_NINE_DIGITS,
        need=Need.NO_FOREIGN_LABEL,
        alone=True,
        siblings=True,
        context=_SSN_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="ssn_named",
        type="SSN",
        category=Category.GOVERNMENT,
        priority=32,
        pattern=LatePattern(
            rf"{BEFORE}(?!000|666|9)(?:[0-9]{{3}}(?:{SPACE}|\.)?(?!00)[0-9]{{2}}(?:{SPACE}|\.)?(?!0000)[0-9]{{4}}"
            rf"|[0-9](?:{SPACE}[0-9]){{8}}){AFTER_DIGIT}"
        ),
        first=AT_NINE_DIGITS,
        hint=_NINE_DIGITS + _NINE_APART,
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
        pattern=LatePattern(rf"{BEFORE}9[0-9]{{2}}{DASH}{_ITIN_GROUP}{DASH}[0-9]{{4}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
        hint=_NINE_DIGITS,
        need=Need.NO_FOREIGN_LABEL,
        alone=True,
        siblings=True,
        context=_ITIN_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="itin_named",
        type="ITIN",
        category=Category.GOVERNMENT,
        priority=32,
        pattern=LatePattern(rf"{BEFORE}9[0-9]{{2}}{SPACE}?{_ITIN_GROUP}{SPACE}?[0-9]{{4}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
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
        pattern=LatePattern(rf"{BEFORE}[0-9]{{3}}{DASH}[0-9]{{3}}{DASH}[0-9]{{3}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
        hint=_THREE_THREES,
        accept=_accept_sin,
        need=Need.NO_FOREIGN_LABEL,
        alone=True,
        siblings=True,
        context=_SIN_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="sin_named",
        type="SIN",
        category=Category.GOVERNMENT,
        priority=33,
        pattern=LatePattern(rf"{BEFORE}[0-9]{{3}}{SPACE}?[0-9]{{3}}{SPACE}?[0-9]{{3}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
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
        pattern=LatePattern(rf"{BEFORE}[0-9]{{2}}{DASH}?[0-9]{{7}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
        hint=rf"{HINT_BEFORE_DIGIT}[0-9]{{2}}{DASH}?[0-9]{{7}}{HINT_AFTER}",
        accept=_accept_ein,
        need=Need.CONTEXT,
        context=words(
            r"(?-i:F?EINs?)",
            r"f?ein[:=#]",
            r"f?ein\s?(?:number|no|num|nr)",
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
        pattern=LatePattern(
            rf"{BEFORE}(?:[Qq]{{2}}|[A-CEGHJ-PR-TW-Za-ceghj-pr-tw-z][A-CEGHJ-NPR-TW-Za-ceghj-npr-tw-z])"
            rf"(?:[ \u00a0-]?[0-9]{{2}}){{3}}[ \u00a0-]?[A-Da-d]{AFTER}"
        ),
        first=AT_TWO_LETTERS,
        hint=rf"{HINT_BEFORE_WORD}[A-Za-z]{{2}}(?:[ \u00a0-]?[0-9]{{2}}){{3}}[ \u00a0-]?[A-Da-d]{HINT_AFTER}",
        accept=_accept_nino,
        need=Need.NO_FOREIGN_LABEL,
        siblings=True,
        context=words("nino", "ni", r"nat(?:ional)?\s?ins(?:urance)?(?:\s?(?:number|no))?"),
    ),
    PatternDetector(
        name="nhs",
        type="NHS",
        category=Category.GOVERNMENT,
        priority=36,
        pattern=LatePattern(rf"{BEFORE}[0-9]{{3}}[ \u00a0-]?[0-9]{{3}}[ \u00a0-]?[0-9]{{4}}{AFTER_DIGIT}"),
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
        pattern=LatePattern(
            rf"{BEFORE}(?:[0-9]{{2}}[ ]?[0-9]{{2}}[ ](?:номер[ ]|№[ ]?)?[0-9]{{6}}"
            rf"|[0-9]{{2}}[ ](?:№[ ]?)?[0-9]{{7}}"
            rf"|[A-Z]{{2}}[ ][0-9]{{6,7}}|(?=[A-Z]{{0,5}}[0-9])[A-Z0-9]{{6,11}}){AFTER_DIGIT}",
            re.IGNORECASE,
        ),
        hint=rf"(?i:{in_hint(PASSPORT)}){HINT_GAP}[0-9]",
        accept=_accept_passport,
        need=Need.CONTEXT,
        is_number=True,
        context=words(rf"(?:{PASSPORT})(?:\s?(?:number|no|num|nr|id))?"),
        reach=28,
    ),
    PatternDetector(
        name="passport_zone",
        type="PASSPORT",
        category=Category.GOVERNMENT,
        priority=3,
        pattern=LatePattern(
            r"(?<![A-Z0-9<])(?:[PIAC][A-Z<][A-Z<]{3}[A-Z0-9<]{25,39}\s{1,2})?"
            r"[A-Z0-9<]{9}[0-9<][A-Z<]{3}[0-9]{7}[MFX<][0-9]{7}[A-Z0-9<]{8,16}(?![A-Z0-9<])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"[A-Z<]{3}[0-9]{7}[MFX<][0-9]{7}",
    ),
    PatternDetector(
        name="licence",
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=LatePattern(
            rf"{BEFORE}(?:[A-Z]{{2,5}}9{{0,3}}[ ][0-9]{{6}}[ ][A-Z][A-Z9][0-9][ ]?[A-Z]{{2}}"
            rf"|(?=[A-Z]{{0,8}}[0-9])[A-Z0-9](?:(?:[-/]|[ ](?=[0-9]{{2}}))?[A-Z0-9]){{4,19}}){AFTER}",
            re.IGNORECASE,
        ),
        hint=rf"{HINT_BEFORE_LETTER}(?i:{in_hint(LICENCE)}){HINT_AFTER_LETTER}{HINT_GAP}[0-9]|[a-z](?:Driver"
        rf"|Driving){HINT_GAP}[0-9]",
        accept=_accept_licence,
        need=Need.CONTEXT,
        is_number=True,
        context=words(rf"(?:{LICENCE})(?:\s?(?:number|no|num|nr|id))?"),
        reach=28,
    ),
    PatternDetector(
        name="licence_british",
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=37,
        pattern=LatePattern(
            rf"{BEFORE}(?=[A-Z9]{{5}})[A-Z]{{2,5}}9{{0,3}}[0-9](?:[05][1-9]|[16][0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]"
            rf"(?:[A-Z][A-Z9]|99)[A-Z0-9][A-Z]{{2}}(?:[ ][0-9]{{2}})?{AFTER}"
        ),
        hint=rf"{HINT_BEFORE_WORD}[A-Z]{{2,5}}9{{0,3}}[0-9]{{6}}[A-Z9]{{2}}[A-Z0-9][A-Z]{{2}}",
    ),
    PatternDetector(
        name="plate",
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=LatePattern(
            rf"{BEFORE}(?!(?:CE|EN|ISO|DIN)[ -])(?:[A-ZÄÖÜ]{{1,3}}[ -][A-Z]{{1,2}}[ -]?[0-9]{{1,4}}[EH]?"
            rf"|[A-Z]{{2}}[0-9]{{2}}[ ]?[A-Z]{{3}}|[A-Z]{{2}}-?[0-9]{{3}}-?[A-Z]{{2}}"
            rf"|[A-Z]{{2,3}}[ -][0-9]{{3,5}}|[0-9]{{1,4}}[ -]?[A-Z]{{2,3}}(?:[ -]?[0-9]{{2,4}})?|[0-9][A-Z]{{3}}[0-9]{{3}}"
            rf"|[A-Z]{{3}}[0-9][A-Z0-9][0-9]{{2}}|[0-9]{{2}}-[A-Z]{{2,3}}-[0-9]{{1,2}}"
            rf"|[A-Z]{{2}}-[0-9]{{3}}-[A-Z]|[АВЕКМНОРСТУХ][0-9]{{3}}[АВЕКМНОРСТУХ]{{2}}[0-9]{{2,3}}"
            rf"|[A-Z]{{1,2}}[ -][0-9]{{1,5}}[ -]?[A-Z]{{1,3}}|[A-Z]{{2}}[ -]?[0-9]{{1,2}}[ -]?[A-Z]{{1,3}}[ -]?[0-9]{{4}}"
            rf"|[A-Z]{{2}}-[0-9]{{2}}-[A-Z]{{2}}|[0-9]{{2}}-[0-9]{{2}}-[A-Z]{{2}}|[A-Z]-[0-9]{{3}}-[A-Z]{{2}}"
            rf"|[0-9]-[A-Z]{{3}}-[0-9]{{3}}"
            rf"|[A-Z]{{2}}[ ][0-9]{{2}}[ ][0-9]{{3}}|[A-Z]{{2}}[ ][0-9]{{1,6}}|[A-Z]{{2}}[ ][A-Z0-9]{{2}}-[A-Z0-9]{{3}}"
            rf"|[0-9][A-Z][A-Z0-9][ ]?[0-9]{{4}}|[A-Z]{{2}}-?[0-9]{{3}}[A-Z]{{2}}|[0-9]{{2}}[A-Z][0-9]?-[0-9]{{3}}\.?[0-9]{{2}}"
            rf"|[АВЕІКМНОРСТХ]{{2}}[ ]?[0-9]{{4}}[ ]?[АВЕІКМНОРСТХ]{{2}}|[Α-Ω]{{3}}[ -]?[0-9]{{4}}"
            rf"|[a-z]{{2}}[0-9]{{2}}[ ]?[a-z]{{3}}"
            rf"|[\u4e00-\u9fff][A-Z][ ·•]?[A-Z0-9]{{5,6}}"
            rf"|[\u4e00-\u9fff]{{1,4}}[ ]?[0-9]{{2,3}}[ ]?[\u3041-\u3096][ ]?[0-9]{{1,2}}[-・]?[0-9]{{2}}"
            rf"|[0-9]{{2,3}}[가-힣][ ]?[0-9]{{4}}|[0-9]{{2,3}}-[0-9]{{2,3}}-[0-9]{{2,3}}){AFTER}"
        ),
        hint=rf"{HINT_BEFORE_LETTER}(?i:{in_hint(PLATE)}){HINT_AFTER_LETTER}{HINT_GAP}[0-9]|[a-z]Plate",
        need=Need.CONTEXT,
        context=words(PLATE),
        reach=20,
    ),
    PatternDetector(
        name="dob_marked",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        accept=_accept_date,
        pattern=LatePattern(
            rf"(?:(?P<star>(?<![\w*])[*])|{BEFORE})(?P<value>{_DATE})"
            rf"(?(star)(?![0-9*_./-])|(?=[ ](?:geboren|gebürtig|urodzon[ay]|született|doğumlu|г\.[ ]?р)(?![a-z])"
            rf"|[ ]?생(?:[^가-힣]|$)|[ ]?生(?:[^\u4e00-\u9fff]|$)))",
            re.IGNORECASE,
        ),
        hint=r"[*][0-3]?[0-9]\.[01]?[0-9]\.(?:19|20)|[日일][ ]?[生생]"
        r"|[0-9][ ](?i:geboren|gebürtig|urodzon|született|doğumlu|г\.[ ]?р)",
    ),
    PatternDetector(
        name="dob_worded",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(
            rf"(?<![^\W_])(?:(?:{_ORDINALS}|{_DAY}(?:st|nd|rd|th)?)[ ](?:of[ ])?{_WORD}"
            rf"|{_WORD}[ ](?:the[ ])?(?:{_ORDINALS})),?[ ](?:of[ ])?"
            rf"(?:{_YEAR}|{_YEAR_WORDS})(?![^\W_])",
            re.IGNORECASE,
        ),
        hint=rf"(?i:{_ORDINALS})(?:,|[ ](?i:of[ ])?[^\s]{{3,12}},?)?[ ](?i:of[ ])?(?:19|20|(?i:nineteen|twenty"
        rf"|two[ ]thousand))[0-9 \-]"
        rf"|[0-9](?i:st|nd|rd|th)?[ ](?i:of[ ])?[^\s]{{3,12}},?[ ](?i:nineteen|two[ ]thousand)[ \-]",
        accept=_accept_worded,
        need=Need.CONTEXT,
        context=words(BIRTH),
        reach=16,
        not_near=_NOT_OF_A_PERSON,
    ),
    PatternDetector(
        name="dob_parts",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=LatePattern(
            rf"(?<![^\W_])(?=[^\n]{{0,60}}(?:19"
            rf"|20)[0-9]{{2}}(?![0-9]))(?:{_OF_BIRTH}[ -]?)?(?P<value>{_PART}(?:{_PARTED}{_PART}){{1,2}})(?![^\W_])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=at_word(f"{_OF_BIRTH}|{_PART_WORDS}"),
        hint=_BIRTH_HINT,
        accept=_accept_parts,
        need=Need.CONTEXT,
        context=words(BIRTH, rf"{_OF_BIRTH}[:=]?[\s-]?$"),
        reach=16,
        not_near=_NOT_OF_A_PERSON,
    ),
    PatternDetector(
        name="dob_epoch",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(rf"{BEFORE}-?[0-9]{{8,13}}{AFTER_DIGIT}"),
        hint=_BIRTH_HINT,
        accept=_accept_epoch,
        need=Need.CONTEXT,
        is_number=True,
        context=words(rf"(?:{_BIRTH_KEYS}): ?$"),
        reach=3,
        keys=LatePattern(f"(?:{_BIRTH_KEYS})$", re.IGNORECASE),
    ),
    PatternDetector(
        name="dob_in_segment",  # of a message between hospitals
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(r"(?<![A-Z])PID\|(?:[^|\n\r]{0,40}\|){6}(?P<value>(?:19|20)[0-9]{6})(?![0-9])"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"PID\|",
    ),
    PatternDetector(
        name="dob",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        accept=_accept_date,
        pattern=LatePattern(
            rf"{BEFORE}(?:{_DATE})(?![0-9_])(?![-./][0-9]|\.\.|[ ]?(?:to|until|bis|[–-])[ ]?[0-9])(?!(?!T[0-9])[A-Za-z])",
            re.IGNORECASE,
        ),
        hint=_BIRTH_HINT,
        need=Need.CONTEXT,
        is_number=True,
        context=words(BIRTH, r"birth[:=]\s?$", r"b\.\s?$", r"ur\.\s?$", r"[(,] ?[*]\s?$"),
        reach=40,
        not_near=_NOT_OF_A_PERSON,
        keys=LatePattern(f"(?:{_BIRTH_KEYS})$", re.IGNORECASE),
        not_after=LatePattern(r"[0-9][-./]$"),
    ),
)
