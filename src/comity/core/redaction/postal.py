"""Postal codes."""

from __future__ import annotations

import re

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.shapes import (
    AFTER,
    AFTER_DIGIT,
    AT_BORDER,
    BEFORE,
    HINT_AFTER,
    HINT_BEFORE_DIGIT,
    HINT_BEFORE_WORD,
    HINT_GAP,
    NOT_AFTER_DIGIT,
    LatePattern,
    in_hint,
    words,
)

_UK_AREAS = frozenset(
    re.findall(
        "[A-Z]+",
        "AB AL B BA BB BD BH BL BN BR BS BT CA CB CF CH CM CO CR CT CV CW DA DD DE DG DH DL DN DT DY E EC EH EN EX FK "
        "FY G GL GU GY HA HD HG HP HR HS HU HX IG IM IP IV JE KA KT KW KY L LA LD LE LL LN LS LU M ME MK ML N NE NG NN "
        "NP NR NW OL OX PA PE PH PL PO PR RG RH RM S SA SE SG SK SL SM SN SO SP SR SS ST SW SY TA TD TF TN TQ TR TS TW "
        "UB W WA WC WD WF WN WR WS WV YO ZE ",
    )
)
_UK_OUTWARD = "[A-Z]{1,2}[0-9][0-9A-HJKMNPR-Y]?"
_UK_INWARD = "[0-9][ABD-HJLNP-UW-Z]{2}"
_IRISH = "[AC-FHKNPRTV-Y][0-9][0-9W][ ]?[0-9AC-FHKNPRTV-Y]{4}"
_UK_UNITS = frozenset({"GB", "TB", "XL"})  # "M1 8GB" is a computer
_CA_FIRST, _CA_OTHER = "[ABCEGHJ-NPRSTVXY]", "[ABCEGHJ-NPRSTV-Z]"

STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|SC|SD"
    "|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC|PR"
)
_STATES_NOT_WORDS = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|IL|IA|KS|KY|MD|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC"
)

_POSTAL_WORDS = (
    r"eircodes?|post(?:al)?\s?codes?|zip\s?codes?|zip[\s:=#\"']{1,3}(?:is\s)?$|postal|plz(?:\s?/\s?ort)?|postleitzahl"
    r"|code\s?postal"
    r"|(?:zip|postcode|cp|cap|cep|psč|kod)\s?/\s?(?:city|town|ville|ciudad|citt[àa]|cidade|ort|město|miasto)"
    r"|c[oó]digo\s?postal|(?-i:CAP|CEP|PSČ|NPA|CP)[:\s]{1,2}$|cap: ?$|cep: ?$|邮编|郵便番号|우편번호|[иі]ндекс|〒"
    r"|postinumero|posta kodu|kode pos|รหัสไปรษณีย์|מיקוד"
    r"|codice\s?(?:di avviamento )?postale|c\.p\."
)
_POSTAL_ABROAD = (
    r"post(?:al)? ?codes?|plz|postleitzahl|code postal|c[oó]digo postal|kod pocztowy|psč|postnum(?:mer|ret|meret)"
    r"|po[sš]t(?:na|anska) [sš]tevilka|postinumero|irányítószám"
    r"|posta kodu(?:m|muz)?|cod poștal|poštanski broj|почтовый индекс|поштовий індекс|индекс"
    r"|邮编|邮政编码|郵遞區號|郵便番号|우편번호|〒"
    r"|kode pos|mã bưu (?:chính|điện)|รหัสไปรษณีย์|postnr|ir\. ?szám|ταχυδρομικός κώδικας|τ\.?κ|індекс|מיקוד"
    r"|codice (?:di avviamento )?postale"
    r"|c\.p|cod po[sșş]tal|poštová|pasta indekss|pašto kodas|sihtnumber|পোস্ট কোড|पिन कोड|पिनकोड|pin ?code"
)
# "daily cap: 50000": a limit.
_LIMIT = (
    r"(?<![^\W_])(?:daily|weekly|monthly|yearly|annual|hourly|frequency|rate|price|market|budget|salary|wage|bonus|soft|hard"
    r"|spend(?:ing)?|usage|data|traffic|bandwidth|request|call|message|sms|e?-?mail|send(?:ing)?|download|upload|user|order|volume"
    r"|cost|loan|fee|interest|share|supply|token|credit|debt|emissions?|carbon|revenue|overall|total|max(?:imum)?|global|storage"
    r"|memory|cpu|tax|benefit|claim|coverage|expense|contribution|large|mid|small|the|a|no|per day)[ ]caps?\W{0,3}$"
)
# "unpacked zip archive 60614 … Zip 60615 is corrupt": a file, of which the words before or behind say so.
_NOT_POSTAL = LatePattern(
    rf"{_LIMIT}|"
    r"(?<![^\W_])(?:un-?zip\w{0,4}|re-?zip\w{0,4}|zipped|(?:un|de)?-?compress\w{0,3}|unpack\w{0,3}|packed|extract\w{0,3}"
    r"|archives?|tarballs?"
    r"|rar|7z|gz|files?|folders?|upload\w{0,3}|download\w{0,3}|attach\w{0,4}|backups?|checksum|crc|bytes)(?![^\W_])"
    r"[^\n]{0,60}(?<![^\W_])zips?\W{0,3}$",
    re.IGNORECASE,
)
_BESIDE_ARCHIVE = LatePattern(
    r"[ ](?:(?:is|was|has been|seems|looks|came|could|cannot|can['’]?t|failed|won['’]?t)(?![^\W_])(?:[ ]\w{2,12}){0,2}?"
    r"|which)[ ](?:corrupt\w{0,3}|broken|damaged|empty|truncated|encrypted|incomplete|uploaded|downloaded|unpacked"
    r"|extracted|zipped"
    r"|opened|un-?zip\w{0,4}|to (?:open|unpack|extract|unzip)|its crc)(?![^\W_])|[ ](?:failed|has [0-9]+ files"
    r"|contains [0-9])(?![^\W_])",
    re.IGNORECASE,
)
# `{"ulica": …, "kod": "50-102", "miasto": …}`: the siblings of such a key say that it is a postal code.
_CODE_HINT = (
    r"\"(?i:kod|c[oó]d(?:e|igo|ice)?|kód|код|pc|cp|cap|cep|npa|irsz|psc|post(?:nr)?)\\?\"\s?:\s?\\?\"?"
    r"[0-9]{2}(?:[0-9]{3}|-[0-9]{3}|[0-9]{2}\\?\"|[0-9][ \-][0-9]{2})"
)


def _accept_uk(value: str) -> int:
    return 0 if value[-2:] in _UK_UNITS else _accept_postal(value)


def _accept_postal(value: str) -> int:
    """A Canadian code ends in a digit; a British one begins with the letters of an area; an Irish one has a form of its own."""
    area = value[:2] if value[1].isalpha() else value[0]
    return len(value) if value[-1].isdigit() or re.fullmatch(_IRISH, value, re.IGNORECASE) or area.upper() in _UK_AREAS else 0


POSTAL: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="postal_ca",
        type="POSTAL_CODE",
        category=Category.ADDRESS,
        priority=62,
        pattern=LatePattern(rf"{BEFORE}{_CA_FIRST}[0-9]{_CA_OTHER}[ \u00a0-][0-9]{_CA_OTHER}[0-9]{AFTER}"),
        first=rf"[A-Z]{AT_BORDER}(?=[0-9])",
        hint=rf"{HINT_BEFORE_WORD}[A-Z][0-9][A-Z][ \u00a0\-][0-9][A-Z][0-9]{HINT_AFTER}",
        need=Need.NO_FOREIGN_LABEL,
        context=words(_POSTAL_WORDS),
    ),
    PatternDetector(
        name="postal_uk",
        type="POSTAL_CODE",
        category=Category.ADDRESS,
        priority=62,
        pattern=LatePattern(rf"{BEFORE}{_UK_OUTWARD}[ \u00a0]{_UK_INWARD}{AFTER}"),
        first=rf"[A-Z]{AT_BORDER}(?=[A-Z]?[0-9])",
        hint=rf"{HINT_BEFORE_WORD}[A-Z]{{1,2}}[0-9][0-9A-Z]?[ \u00a0][0-9][A-Z]{{2}}{HINT_AFTER}",
        accept=_accept_uk,
        need=Need.NO_FOREIGN_LABEL,
        context=words(_POSTAL_WORDS),
    ),
    PatternDetector(
        name="postal_named",
        type="POSTAL_CODE",
        category=Category.ADDRESS,
        priority=63,
        pattern=LatePattern(
            rf"{BEFORE}(?:{_CA_FIRST}[0-9]{_CA_OTHER}[ -]?[0-9]{_CA_OTHER}[0-9]|{_UK_OUTWARD}[ ]?{_UK_INWARD}|{_IRISH}){AFTER}",
            re.IGNORECASE,
        ),
        accept=_accept_postal,
        hint=rf"(?i:post|zip|plz){HINT_GAP}[A-Za-z][0-9][0-9A-Za-z]?[ \-]?[0-9]"
        r"|(?i:eircodes?(?:[^A-Za-z0-9]|[ ]is){1,8})[A-Za-z][0-9]",
        need=Need.CONTEXT,
        is_number=True,
        context=words(_POSTAL_WORDS),
        reach=20,
    ),
    PatternDetector(
        name="postal_abroad",
        type="POSTAL_CODE",
        category=Category.ADDRESS,
        priority=64,
        pattern=LatePattern(
            rf"{BEFORE}(?:[0-9]{{4}}[ ]?[A-Z]{{2}}|[0-9]{{5}}-[0-9]{{3}}|[0-9]{{4}}-[0-9]{{3}}|[0-9]{{3}}-[0-9]{{4}}"
            rf"|[0-9]{{2}}-[0-9]{{3}}"
            rf"|[0-9]{{3}}[ ][0-9]{{2}}|[0-9]{{4,7}}){AFTER_DIGIT}"
            rf"(?![ ](?!and|or|please|is|in|for|to|was|with)[a-z]{{3}})"
        ),
        hint=rf"(?i:{in_hint(_POSTAL_ABROAD)}|zip){HINT_GAP}[0-9]{{2}}|{_CODE_HINT}",
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            _POSTAL_ABROAD,
            r"(?-i:CEP|PSČ|NPA)",
            r"zip(?: ?code)?[ \"']{0,2}[:=：][ ]{0,2}$",
        ),
        reach=24,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="zip",
        type="POSTAL_CODE",
        category=Category.ADDRESS,
        priority=64,
        pattern=LatePattern(
            rf"{BEFORE}[0-9]{{5}}(?:-[0-9]{{4}})?{AFTER_DIGIT}(?![ ](?!and|or|please|is|in|for|to|was|usa|with|last|since"
            rf"|now|next|where|but|because|instead|today"
            rf"|[a-z_]{{1,20}}[=:])[a-z]{{3}})"
        ),
        hint=rf"(?:(?i:zip|plz|post[ _\-]?(?:al|code|leit)|code[ _\-]?postal"
        rf"|cap[^a-z]|cep[^a-z]|c\.p|[иі]ндекс|postinumero|codice|kode[ _\-]?pos|posta[ _\-]?kodu|รหัสไปรษณีย์|מיקוד)"
        rf"|CAP|CEP|PSČ|NPA|CP|邮编|郵便|우편){HINT_GAP}{HINT_BEFORE_DIGIT}?[0-9]{{5}}{HINT_AFTER}"
        rf"|(?:{STATES}),?[ ]{HINT_BEFORE_DIGIT}?[0-9]{{5}}{HINT_AFTER}|{_CODE_HINT}",
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            _POSTAL_WORDS, rf"[a-z]+,[ ]?(?-i:{STATES}),?[ ]$", rf"(?-i:[A-Z][a-z]{{2,}}[ ](?:{_STATES_NOT_WORDS})),?[ ]$"
        ),
        reach=20,
        not_after=NOT_AFTER_DIGIT,
        not_near=_NOT_POSTAL,
        not_beside=_BESIDE_ARCHIVE,
    ),
)
