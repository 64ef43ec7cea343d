"""Payment cards and their security codes."""

from __future__ import annotations

import re
from base64 import b64decode
from functools import lru_cache
from itertools import pairwise

from comity.core.redaction.checksums import (
    is_luhn,
)
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import SECURITY_CODE
from comity.core.redaction.shapes import (
    AFTER_DIGIT,
    AT_BASE64,
    AT_CARD,
    BEFORE,
    COUNTED,
    HINT_AFTER,
    HINT_BEFORE_DIGIT,
    HINT_BEFORE_WORD,
    HINT_GAP,
    LONG_CHARS_MAX,
    NOT_AFTER_DIGIT,
    SEPARATOR,
    VALUE_CHARS_MAX,
    WALL,
    LatePattern,
    digits_of,
    first_letters,
    in_hint,
    words,
)
from comity.core.redaction.spoken import DIGIT_WORDS, DIGIT_WORDS_HINT, NOT_INSIDE, digits_said

# Brand prefixes as inclusive ranges over the first six digits, with the lengths the brand issues.
_BRANDS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (400000, 499999, (13, 16, 19)),  # Visa
    (510000, 559999, (16,)),  # Mastercard
    (222100, 272099, (16,)),  # Mastercard, second series
    (340000, 349999, (15,)),  # American Express
    (370000, 379999, (15,)),
    (300000, 305999, (14, 16, 19)),  # Diners
    (360000, 369999, (14, 16, 19)),
    (380000, 399999, (14, 16, 19)),
    (352800, 358999, (16, 17, 18, 19)),  # JCB
    (601100, 601199, (16, 17, 18, 19)),  # Discover
    (644000, 659999, (16, 17, 18, 19)),
    (620000, 629999, (16, 17, 18, 19)),  # UnionPay
    (220000, 220499, (16, 17, 18, 19)),  # Mir
    (500000, 509999, (16, 17, 18, 19)),  # Maestro, RuPay, Verve
    (560000, 589999, (16, 17, 18, 19)),
    (606000, 609999, (16,)),  # RuPay
    (630400, 630499, (16, 17, 18, 19)),
    (675900, 676399, (16, 17, 18, 19)),
    (676700, 676799, (16, 17, 18, 19)),
)

# Without a word beside it, a bare run of these lengths is more often a snowflake id, an EAN or a timestamp than a card.
_CARD_LENGTHS_AMBIGUOUS = frozenset({13, 14, 17, 18, 19})

_CARD_DIGITS_SAID_MIN, _CARD_DIGITS_MAX = 15, 19

_SAID_PART = re.compile(r"[^\W_]+")

_STEP_MAX = 99  # between the numbers of a list in order

_LISTED = re.compile("[0-9]{4}(?:, ?[0-9]{4})+")

_EVENLY_SPLIT = re.compile(rf"[0-9]{{4}}(?P<joint>{SEPARATOR})[0-9]{{4}}(?:(?P=joint)[0-9]{{4}}){{2}}")  # which is `card`

_DIGITS = re.compile("(?<![0-9])[0-9]{13,19}(?![0-9])")
_SIX = re.compile("[0-9]{6}")  # the second group of an American Express
_FOUR = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")


def _is_card(digits: str) -> bool:
    if not is_luhn(digits):
        return False
    first_six = int(digits[:6])
    return any(low <= first_six <= high and len(digits) in lengths for low, high, lengths in _BRANDS)


def _accept_card(value: str) -> int:
    whole = value.removesuffix(".0")  # a table program has taken it for a float
    if whole != value:
        return len(value) if whole.isdigit() and _is_card(whole) else 0
    digits = digits_of(value)
    if len(digits) == len(value):
        return len(value) if len(value) not in _CARD_LENGTHS_AMBIGUOUS and _is_card(digits) else 0
    if _is_card(digits):
        return 0 if _counts_up(value) else len(value)
    # A fifth group of three may be the security code rather than the end of a 19-digit number.
    if len(digits) == 19 and value[-4].isspace() and _is_card(digits[:16]):
        return len(value) - 4
    return 0


def _counts_up(value: str) -> bool:
    """Return whether the groups of a number are a list of numbers in order: "4411 4412 4413 4414"."""
    groups = [int(group) for group in re.findall("[0-9]+", value)]
    return len(groups) > 3 and all(0 < second - first <= _STEP_MAX for first, second in pairwise(groups))


def _accept_card_split(value: str) -> int:
    """Count groups of four over lines, list items or underscores; the numbers of the items are not the card's.

    Numbers with a comma between them are a list, unless each stands in quotes.
    """
    if _EVENLY_SPLIT.fullmatch(value) or _LISTED.fullmatch(value):
        return 0
    digits = "".join(_FOUR.findall(value)) if _SIX.search(value) is None else digits_of(value)
    return len(value) if _is_card(digits) and not _counts_up(value) else 0


def _accept_card_counted(value: str) -> int:
    """Count groups of four between words that count them."""
    return len(value) if len(_COUNTING.findall(value)) > 1 and _is_card("".join(_FOUR.findall(value))) else 0


@lru_cache(maxsize=1024)
def _accept_card_said(value: str) -> int:
    """Count digits of which some are said in words; what follows the last group of a card is not part of it."""
    parts = list(_SAID_PART.finditer(value))
    spoken = [part.group().lower() for part in parts]
    for count in range(4, len(parts) + 1):
        digits = digits_said(spoken[:count])
        if len(digits) > _CARD_DIGITS_MAX:
            return 0
        if len(digits) >= _CARD_DIGITS_SAID_MIN and _is_card(digits) and not all(map(str.isdigit, spoken[:count])):
            in_words = " ".join(digits_said([one]) for one in spoken[:count] if one.isalpha())
            return 0 if _counts_up(in_words) else parts[count - 1].end()
    return 0


def _accept_card_encoded(value: str) -> int:
    """Count base64 that reads as a text with a card in it."""
    try:
        plain = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return 0
    return len(value) if plain.isprintable() and any(map(_is_card, _DIGITS.findall(plain))) else 0


def _accept_card_named(value: str) -> int:
    return len(value) if _is_card(digits_of(value)) else 0


def _accept_card_in_name(value: str) -> int:
    """Count a card, unless its groups are round amounts."""
    groups = re.findall(r"(?<![0-9])[0-9]{4}(?![0-9])", value.replace("_", " "))
    return 0 if groups and all(group.endswith("00") for group in groups) else _accept_card_named(value)


_CARD_WORDS = words(
    r"(?:credit|debit|payment|bank|charge)?\s?cards?(?:\s?(?:number|no|num|nr|pan|details|digits))?",
    "pan",
    "cc",
    "(?-i:CB|MC)",
    r"cc\s?(?:number|num|no)",
    "visa",
    "mastercard",
    "amex",
    "american express",
    "discover",
    "diners",
    "jcb",
    "unionpay",
    "maestro",
    "kreditkarten?",
    "karten[- ]?(?:nummer|nr)|karte",
    r"(?:karta|karty|kartę|carte|tarjeta|cartão|carta|karte)\s[a-zà-ž]{3,14}",  # of which kind
    "carte(?: bancaire| bleue| de crédit)?",
    "tarjeta(?: de crédito| de débito)?",
    "cart[aã]o(?: de crédito)?|carta di credito|carta",
    "creditcard(?:nummer)?|kaartnummer|betaalpas|kredit ?kort|kort(?:nummer)?|luottokortti|kortti",
    "kart[aęyu]|bankovní karta|kártya|kredi kartı|kart(?: no)?|kartu kredit|thẻ",
    "карт[аыу]|картка|κάρτα|بطاقة|कार्ड|信用卡|银行卡|卡号|カード(?:番号)?|카드(?:번호)?",
)

_CODE_WORDS = (
    r"cv[vc]2?[- ](?:kode?|code|kód|kodu|код)|cvv2?|cvc2?|csc|cvn2?|card (?:security|verification) (?:code|value"
    r"|number)|(?:karten)?prüf(?:nummer|ziffer)"
    r"|cryptogramme(?: visuel)?|codice di verifica della carta|код cv[vc]|kontrolcifre"
    r"|digits on (?:the|its) back|(?:卡)?背面?三[位碼码]|卡片背面三碼|末三碼|บัตรด้านหลัง|รหัส(?:หลังบัตร| ?cvv)|3 ספרות בגב הכרטיס"
    rf"|security code|{SECURITY_CODE}"
)

# Words that mean the code only behind a card, or behind the end of its validity.
_CODE_BESIDE_CARD = (
    rf"{WALL}(?:[ ,;/(]{{1,3}}(?:exp|val|gült|cad)[^{WALL}\n]{{0,16}})?[ ,;/]{{1,3}}(?:cid|crypto|ccv|cvx)[ :.#]{{1,3}}$"
    rf"|{WALL}[ ,;/(]{{1,3}}(?:exp|val|gült|cad)[^{WALL}\n]{{0,16}}[ ,;/]code[ :.#]{{1,3}}$"
)

# What stands between groups of four that were written over lines, list items, cells or with signs of several kinds.
_SPLIT = r"(?:[ \t-]{0,2}\r?\n[ \t]{0,4}(?:[-*•][ ]?|[0-9][.)][ ])?|[\"']?,[ ]?[\"']|[ \u00a0\u2007\u202f_.\-–·•,;/|]{1,4}|\\n)"

# The same with words that count the groups: "first group: 4111, then 1111, …".
_COUNTS = (
    "(?i:first|second|third|fourth|last|final|next|then|finally|dann|puis|luego|poi|group|block|part|gruppe|groupe|grupo"
    "|gruppo)"
)
_COUNTED = (
    rf"(?:[\s,;:.()/|*•–-]|(?:{_COUNTS}|(?i:and|und|et|y|e|the|are|is|four|digits|set|2nd|3rd"
    rf"|4th))(?![a-z])(?:[ ]?[1-4](?=[.):]))?){{1,12}}"
)

_COUNTING = re.compile(_COUNTS)

# What in the name of a file or of a key says that a card follows.
_IN_NAME = (
    "cards?|cc|pan|pay|payment|visa|master(?:card)?|amex|debit|credit|charge|karte|kreditkarte|carte|tarjeta|carta|kaart|kort"
)

_SPLIT_HINT = r"(?:[^0-9A-Za-z]{1,8}|[^0-9A-Za-z]{0,8}\\[nrt][^0-9A-Za-z]{0,6})(?:[0-9][.)] )?"

_CARD_HINT = (
    rf"{HINT_BEFORE_DIGIT}[2-6][0-9]{{3}}(?:[0-9]{{9,15}}{HINT_AFTER}"
    rf"|{SEPARATOR}[0-9]{{4}}{SEPARATOR}[0-9]{{4}}{SEPARATOR}[0-9]{{4}}"
    rf"|{SEPARATOR}[0-9]{{6}}{SEPARATOR}[0-9]{{4}})"
)

CARDS: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="card",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(
            rf"{BEFORE}(?:[2-6][0-9]{{3}}(?P<four>{SEPARATOR})[0-9]{{4}}(?P=four)[0-9]{{4}}(?P=four)[0-9]{{4}}(?:(?P=four)[0-9]{{3}})?"
            rf"|3[0-9]{{3}}(?P<six>{SEPARATOR})[0-9]{{6}}(?P=six)[0-9]{{4,5}})(?:\.0(?![0-9]))?{AFTER_DIGIT}"
        ),
        first=AT_CARD,
        hint=_CARD_HINT,
        accept=_accept_card,
        need=Need.NO_FOREIGN_LABEL,
        siblings=True,
        context=_CARD_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="card_bare",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(rf"{BEFORE}[2-6][0-9]{{12,18}}(?:\.0(?![0-9]))?{AFTER_DIGIT}"),
        first=AT_CARD,
        hint=_CARD_HINT,
        accept=_accept_card,
        need=Need.NO_FOREIGN_LABEL,
        alone=True,
        siblings=True,
        context=_CARD_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="card_named",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(rf"{BEFORE}[2-6](?:[ \t.\-/_:*|·]{{0,2}}[0-9]){{12,18}}{AFTER_DIGIT}"),
        hint=rf"(?i:card|karte|carte|tarjeta|visa|amex|express|master|discover|diners|jcb|unionpay|maestro|pan|cc){HINT_GAP}"
        r"[2-6](?:(?:[ \t.\-/_:*|·]|\\t){0,2}[0-9]){12}",
        accept=_accept_card_named,
        need=Need.CONTEXT,
        is_number=True,
        context=_CARD_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="card_split",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(
            rf"{BEFORE}(?:[2-6][0-9]{{3}}(?:{_SPLIT}[0-9]{{4}}){{3}}"
            rf"|3[0-9]{{3}}[/_|,·•]{{1,2}}[0-9]{{6}}[/_|,·•]{{1,2}}[0-9]{{4,5}})(?![0-9A-Za-z_])"
        ),
        first=AT_CARD,
        hint=rf"{HINT_BEFORE_WORD}(?:[2-6][0-9]{{3}}{_SPLIT_HINT}[0-9]{{4}}{_SPLIT_HINT}[0-9]{{4}}"
        rf"|3[0-9]{{3}}[/_|,·•]{{1,2}}[0-9]{{6}}[/_|,·•])",
        accept=_accept_card_split,
        need=Need.NO_FOREIGN_LABEL,
        context=_CARD_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="card_in_name",  # "pay_5105_1051_0510_5100_v2": of a file, a key or a folder
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(
            rf"(?<![A-Za-z0-9])(?:{_IN_NAME})(?:_?(?:no|nr|num|number"
            rf"|ending))?[_.-](?P<value>[2-6][0-9]{{3}}(?P<joint>[_.-]?)[0-9]{{4}}"
            rf"(?P=joint)[0-9]{{4}}(?P=joint)[0-9]{{4}})(?![A-Za-z0-9])",
            re.IGNORECASE,
        ),
        first=rf"{first_letters(_IN_NAME)}(?<![A-Za-z0-9](?s:.))",
        hint=rf"(?i:{_IN_NAME})(?:_?(?i:no|nr|num|number|ending))?[_.\-][2-6][0-9]{{3}}[_.\-]?[0-9]{{4}}[_.\-]?[0-9]{{4}}[_.\-]?[0-9]{{4}}",
        accept=_accept_card_in_name,
    ),
    PatternDetector(
        name="card_counted",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(rf"{BEFORE}[2-6][0-9]{{3}}(?:{_COUNTED}[0-9]{{4}}){{3}}(?![0-9A-Za-z_])(?!{COUNTED.pattern})"),
        shape_chars_max=VALUE_CHARS_MAX,
        first=AT_CARD,
        hint=rf"[2-6][0-9]{{3}}(?:[^0-9A-Za-z]|\\[nrt]){{1,8}}{_COUNTS}[^0-9]{{1,24}}[0-9]{{4}}[^0-9]{{1,32}}[0-9]{{4}}",
        accept=_accept_card_counted,
    ),
    PatternDetector(
        name="card_said",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(
            rf"(?<![^\W_]){NOT_INSIDE}(?<![0-9][ ,.-])(?:{DIGIT_WORDS}|[2-6][0-9]{{0,7}})(?:[ ,.\-–…]{{1,3}}(?:{DIGIT_WORDS}"
            rf"|[0-9]{{1,8}})){{3,18}}(?![^\W_])"
        ),
        shape_chars_max=VALUE_CHARS_MAX,
        first=r"[2-6tTfFsSvVdDcCqQzZ](?<![^\W_](?s:.))",
        hint=rf"(?i:{DIGIT_WORDS_HINT}[ ,.\-–…]{{1,3}}{DIGIT_WORDS_HINT}[ ,.\-–…]{{1,3}}(?:{DIGIT_WORDS_HINT}["
        rf" ,.\-–…]{{1,3}}){{0,10}}[0-9]{{4}})"
        rf"|(?i:[0-9]{{4}}[ ,.\-–…]{{1,3}}{DIGIT_WORDS_HINT}[ ,.\-–…]{{1,3}}{DIGIT_WORDS_HINT}[ ,.\-–…])"
        rf"|(?i:(?:{DIGIT_WORDS_HINT}[ ,.\-–…]{{1,3}}){{7}})",
        accept=_accept_card_said,
        need=Need.NO_FOREIGN_LABEL,
        context=_CARD_WORDS,
    ),
    PatternDetector(
        name="card_listed",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(rf"{BEFORE}[2-6][0-9]{{3}}(?:,[ ]?[0-9]{{4}}){{3}}{AFTER_DIGIT}"),
        hint=rf"{HINT_BEFORE_WORD}[2-6][0-9]{{3}}(?:,[ ]?[0-9]{{4}}){{3}}",
        accept=_accept_card_named,
        need=Need.CONTEXT,
        context=words(rf"(?:{_CARD_WORDS.alternatives})[^0-9;\n]{{0,24}}$"),
    ),
    PatternDetector(
        name="card_encoded",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(r"(?<![A-Za-z0-9+/])(?<!==)[A-Za-z0-9+/]{16,120}={0,2}(?![A-Za-z0-9+/=])"),
        shape_chars_max=LONG_CHARS_MAX,
        first=AT_BASE64,
        hint="(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){3}",  # nine digits, in base64
        accept=_accept_card_encoded,
    ),
    PatternDetector(
        name="card_code",
        type="CARD",
        category=Category.FINANCIAL,
        priority=21,
        pattern=LatePattern(rf"{BEFORE}[0-9]{{3,4}}{AFTER_DIGIT}"),
        hint=rf"(?i:{in_hint(_CODE_WORDS)}){HINT_GAP}[0-9]{{3}}|{WALL}[^{WALL}]{{0,24}}(?i:cid|crypto|ccv|cvx|code)",
        need=Need.CONTEXT,
        is_number=True,
        context=words(_CODE_WORDS, _CODE_BESIDE_CARD),
        reach=16,
        not_after=NOT_AFTER_DIGIT,
    ),
)
