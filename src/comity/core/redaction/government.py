"""Numbers a state gives a person."""

from __future__ import annotations

import re

from comity.core.redaction.checksums import is_luhn, is_nhs_number
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import LICENCE, PASSPORT, PLATE
from comity.core.redaction.shapes import (
    AFTER,
    AFTER_DIGIT,
    AT_BORDER,
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
    digits_of,
    in_hint,
    words,
)
from comity.core.redaction.spoken import HESITATION

_SSN_WORDS = words(
    "ssns?",
    "(?-i:SSN/)?(?-i:TIN)",
    "ss",
    r"soc(?:ial|\.)?\s?sec(?:urity|\.)?(?:\s?(?:number|no|num))?",
    r"social(?:\s(?:is|number|no|num))?[\s:#=]{1,3}$",
    r"(?:my|his|her|their|your|the) social[?,:]? (?:it['’]?s|is|as|number is|would be|that['’]?s) $",
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
_THREE_THREES = rf"{HINT_BEFORE_DIGIT}[0-9]{{3}}(?:{DASH}|{SPACE}|\.)?[0-9]{{3}}(?:{DASH}|{SPACE}|\.)?[0-9]{{3}}{HINT_AFTER}"


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


# "Führerscheinkontrolle: Klasse BE, Nr. ": the number in a list of what is said of the document.
_LISTED_NUMBER = r"[a-z]{0,12}[^\n;?!]{0,40}[,:(] ?(?:nr|no|number|nummer|n[°º]|num[eé]ro|número)\.?:? ?$"


def _accept_licence(value: str) -> int:
    return len(value) if len(digits_of(value)) >= 3 and not re.fullmatch("[0-9]{1,4}/(?:19|20)[0-9]{2}", value) else 0


_COLOUR = "(?:white|black|blue|red|silver|gr[ae]y|green|yellow|orange|brown|gold|beige)"
_VEHICLE = (
    "(?:car|van|vehicle|lorry|truck|taxi|cab|minibus|motor(?:bike|cycle|home)|moped|scooter|bike|suv|4x4|hatchback|saloon"
    "|pick-?up)"
)
_MAKES = (
    "ford|fiesta|vauxhall|astra|corsa|vivaro|volkswagen|vw|golf|polo|audi|bmw|mercedes|sprinter|toyota|yaris|corolla|honda"
    "|civic"
    "|nissan|qashqai|micra|kia|hyundai|skoda|octavia|peugeot|renault|clio|citro[eë]n|volvo|tesla|fiat|mazda|suzuki|jaguar"
    "|(?:land|range) rover|mini cooper"
)
_VEHICLE_ABROAD = "voiture|véhicule|camion(?:nette)?|coche|vehículo|auto(?:vettura)?|macchina|furgone|pkw|moto|car|van"
_FRENCH_PLATE = "[A-HJ-NP-TV-Z]{2}-[0-9]{3}-[A-HJ-NP-TV-Z]{2}"
# What follows a plate; any other word in small letters is what the code belongs to: "reg AB12 CDE field".
_BEHIND_PLATE = (
    r"(?![ ](?!(?:is|was|has|had|in|on|at|and|by|to|from|with|for|or|left|hit|parked|parks|block(?:s|ed|ing)|outside|near|will"
    r"|owned"
    r"|belongs|that|which|who|came|drove|drives|driven|reported|seen|towed|clamped|stolen|needs|failed|passed|again|please|the"
    r"|an?|my|his"
    r"|her|their|today|now|this|not|still|registered|expired|mot|due|across|behind|opposite|but|when|while|as|it|she|he"
    r"|they)(?![a-z]))"
    rf"(?!{_COLOUR})[a-z])"
)
_BRITISH_AGE = "(?:0[1-9]|[1-2][0-9]|5[1-9]|[67][0-9])"  # the half year in which a plate was issued

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
        name="ssn_said",
        type="SSN",
        category=Category.GOVERNMENT,
        priority=32,
        pattern=LatePattern(
            rf"{BEFORE}(?!000|666"
            rf"|9)[0-9]{{3}}{HESITATION}(?!00)[0-9]{{2}}{HESITATION}(?!0000)[0-9]{{4}}{AFTER_DIGIT}",
            re.IGNORECASE,
        ),
        hint=rf"[0-9]{{3}}(?i:{HESITATION})[0-9]{{2}}[ ,.]",
        need=Need.CONTEXT,
        context=_SSN_WORDS,
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
        pattern=LatePattern(rf"{BEFORE}9[0-9]{{2}}(?:{SPACE}|\.)?{_ITIN_GROUP}(?:{SPACE}|\.)?[0-9]{{4}}{AFTER_DIGIT}"),
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
        pattern=LatePattern(rf"{BEFORE}[0-9]{{3}}(?:{SPACE}|\.)?[0-9]{{3}}(?:{SPACE}|\.)?[0-9]{{3}}{AFTER_DIGIT}"),
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
        pattern=LatePattern(rf"{BEFORE}[0-9]{{2}}(?:{DASH}|{SPACE})?[0-9]{{7}}{AFTER_DIGIT}"),
        first=AT_NINE_DIGITS,
        hint=rf"{HINT_BEFORE_DIGIT}[0-9]{{2}}(?:{DASH}|{SPACE})?[0-9]{{7}}{HINT_AFTER}",
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
            rf"(?:[ \u00a0.-]?[0-9]{{2}}){{3}}[ \u00a0.-]?[A-Da-d]{AFTER}"
        ),
        first=AT_TWO_LETTERS,
        hint=rf"{HINT_BEFORE_WORD}[A-Za-z]{{2}}(?:[ \u00a0.\-]?[0-9]{{2}}){{3}}[ \u00a0.\-]?[A-Da-d]{HINT_AFTER}",
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
        pattern=LatePattern(rf"{BEFORE}[0-9]{{3}}[ \u00a0.-]?[0-9]{{3}}[ \u00a0.-]?[0-9]{{4}}{AFTER_DIGIT}"),
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
        context=words(rf"(?:{PASSPORT}){_LISTED_NUMBER}", rf"(?:{PASSPORT})(?:\s?(?:number|no|num|nr|id))?"),
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
        hint=rf"{HINT_BEFORE_LETTER}(?i:{in_hint(LICENCE)}){HINT_AFTER_LETTER}{HINT_GAP}[0-9]|(?:[a-z](?:Driver"
        rf"|Driving)|(?i:f(?:ü|ue)hrerschein)){HINT_GAP}[0-9]",
        accept=_accept_licence,
        need=Need.CONTEXT,
        is_number=True,
        context=words(rf"(?:{LICENCE}){_LISTED_NUMBER}", rf"(?:{LICENCE})(?:\s?(?:number|no|num|nr|id))?"),
        reach=28,
    ),
    PatternDetector(
        name="licence_british",
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=37,
        pattern=LatePattern(
            rf"{BEFORE}(?=[A-Z9]{{5}})[A-Z]{{2,5}}9{{0,3}}[ ]?[0-9](?:[05][1-9]|[16][0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]"
            rf"[ ]?(?:[A-Z][A-Z9]|99)[A-Z0-9][A-Z]{{2}}(?:[ ][0-9]{{2}})?{AFTER}"
        ),
        hint=rf"{HINT_BEFORE_WORD}[A-Z]{{2,5}}9{{0,3}}[ ]?[0-9]{{6}}[ ]?[A-Z9]{{2}}[A-Z0-9][A-Z]{{2}}",
    ),
    PatternDetector(
        name="licence_italian",  # "patente" is a patent too: the form decides
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=37,
        pattern=LatePattern(rf"{BEFORE}(?:U1[A-Z0-9]{{7}}|[A-Z]{{2}}[0-9]{{7}})[A-Z]{AFTER}"),
        hint=rf"(?i:patente){HINT_GAP}[0-9]",
        need=Need.CONTEXT,
        is_number=True,
        context=words(r"patente(?: b| di guida)?(?:\s?(?:numero|n\.?|nr|num|n°))?"),
        reach=28,
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
        hint=rf"{HINT_BEFORE_LETTER}(?i:{in_hint(PLATE)}){HINT_AFTER_LETTER}{HINT_GAP}[0-9]|[a-z]Plate"
        rf"|(?i:\"registration)\\?\"{HINT_GAP}[0-9]",
        need=Need.CONTEXT,
        context=words(PLATE),
        reach=20,
    ),
    PatternDetector(
        name="plate_british",  # whose form is narrow enough for the words for a car
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=LatePattern(
            rf"{BEFORE}(?:[A-HJ-PR-Y][A-HJ-PR-Y]{_BRITISH_AGE}[ ]?[A-HJ-PR-Z]{{3}}"
            rf"|[a-hj-pr-y][a-hj-pr-y]{_BRITISH_AGE}[ ]?[a-hj-pr-z]{{3}})"
            rf"{AFTER}{_BEHIND_PLATE}"
        ),
        first=AT_TWO_LETTERS,
        hint=rf"{HINT_BEFORE_WORD}[A-Za-z]{{2}}{_BRITISH_AGE}[ ]?[A-Za-z]{{3}}{HINT_AFTER}",
        need=Need.CONTEXT,
        context=words(
            r"reg(?:n|d|istered|istration)?\.?(?:[ ]mark)?",
            rf"(?:my|his|her|their|your|our|hired?|rental|courtesy|{_COLOUR}) {_VEHICLE}",
            rf"(?:{_MAKES})(?: (?-i:[A-Z])[A-Za-z0-9-]{{1,12}})?(?: {_VEHICLE})?",
        ),
        reach=20,
        not_near=LatePattern(
            r"(?<![a-z])(?:course|class|event|exam|conference|company|trade ?mark|patent|module|code|product"
            r"|part)s? reg[a-z]{0,10}\W{0,3}$",
            re.IGNORECASE,
        ),
    ),
    PatternDetector(
        name="plate_french",  # as narrow
        type="LICENCE",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=LatePattern(rf"{BEFORE}{_FRENCH_PLATE}{AFTER}"),
        first=rf"[A-Z]{AT_BORDER}(?=[A-Z]-)",
        hint=rf"{HINT_BEFORE_WORD}{_FRENCH_PLATE}{HINT_AFTER}",
        need=Need.CONTEXT,
        context=words(_VEHICLE_ABROAD),
        reach=20,
    ),
    PatternDetector(
        name="id_in_segment",  # of the same message
        type="NATIONAL_ID",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(
            r"(?<![A-Z])PID\|[^|\n\r]{0,20}\|[^|\n\r]{0,40}\|(?P<value>(?=[A-Z-]{0,6}[0-9])[A-Z0-9-]{6,20})(?=[\^|])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"PID\|",
    ),
)
