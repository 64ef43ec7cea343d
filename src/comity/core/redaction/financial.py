"""Bank accounts and the numbers that lead to them, crypto addresses."""

from __future__ import annotations

import re

from comity.core.redaction.beside import BESIDE_ALONE
from comity.core.redaction.checksums import (
    IBAN_CHARS,
    is_base58check,
    is_bech32,
    is_iban,
    is_routing_number,
)
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labelled import LabelledDetector, Rule
from comity.core.redaction.labels import ACCOUNT
from comity.core.redaction.shapes import (
    AFTER,
    AFTER_DIGIT,
    AT_BORDER,
    AT_TWO_LETTERS,
    BEFORE,
    DASH,
    HINT_AFTER,
    HINT_BEFORE_LETTER,
    HINT_BEFORE_WORD,
    HINT_GAP,
    LONG_CHARS_MAX,
    NOT_AFTER_DIGIT,
    WALL,
    LatePattern,
    by_first_letter,
    digits_of,
    words,
)

_COUNTRIES = frozenset(
    re.findall(
        "[A-Z]{2}",
        "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ "
        "CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO "
        "FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE "
        "JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO "
        "MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW "
        "PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM "
        "TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW ",
    )
)

# A Canadian routing number is 0, the bank, and the branch; it has no check digit.
_CANADIAN_BANKS = frozenset(
    re.findall(r"[0-9]{4}", "0001 0002 0003 0004 0006 0010 0016 0030 0039 0219 0260 0270 0614 0621 0623 0809 0815 0828 0899")
)

_ACCOUNT_OR_BILL = (  # of a bank, of a ledger, or a bill
    "cuenta(?: de ahorros)?|帳號|сметка(?: №)?|rekening|рахунок|kont[oa]|compte|conto|účtu|tilille|rachunku"
)

_UPI_BANKS = (  # which give a payment address in India
    "ok(?:hdfcbank|icici|sbi|axis)|ybl|ibl|axl|paytm|apl|upi|icici|hdfcbank|sbi|axisbank|kotak|freecharge|pt(?:hdfc"
    "|sbi|axis|yes)"
)


_LEDGER = re.compile(r"\.[0-9]\.")


def _accept_iban(value: str) -> int:
    """Cut at the country's length: spaced IBANs run into whatever capitals follow them."""
    wanted = IBAN_CHARS.get(value[:2].upper(), 0)
    if not wanted or len(value) < wanted:
        return 0
    iban, end = "", 0
    for index, char in enumerate(value):
        if char.isalnum():
            iban, end = iban + char.upper(), index + 1
            if len(iban) == wanted:
                break
    if len(iban) != wanted or value[end : end + 1].isalnum() or not is_iban(iban):
        return 0
    return end


def _accept_swift(value: str) -> int:
    """Count a code of a country; words in capitals have their endings ("PACKAGES")."""
    if (
        value.isalpha()
        and value[4:8] not in {"SESS", "TRIS"}
        and value.endswith(
            (
                "S",
                "ED",
                "ING",
                "ION",
                "ENT",
                "ITY",
                "ATE",
                "BLE",
                "ANCE",
                "ENCE",
                "URE",
                "ERY",
                "LY",
                "IEW",
                "ARD",
                "ORK",
                "ORM",
                "ICE",
                "AGE",
                "IST",
                "IZE",
                "FUL",
                "OGY",
                "IVE",
                "ISM",
                "TEM",
                "GHT",
                "ECT",
                "AIN",
                "OOK",
            )
        )
    ):
        return 0
    return len(value) if value[4:6] in _COUNTRIES else 0


def _accept_routing(value: str) -> int:
    digits = digits_of(value)
    if len(digits) == 9:
        is_valid = is_routing_number(digits) or (len(value) == 9 and digits[:4] in _CANADIAN_BANKS)
        return len(value) if is_valid else 0
    return len(value)


def _accept_account(value: str) -> int:
    return len(value) if 6 <= len(digits_of(value)) <= 17 else 0


def _is_account(value: str) -> bool:
    """Judge an account under the word for one: ledgers have fewer digits, unless the last is a check digit behind a dash."""
    return 7 <= len(digits_of(value)) <= 28 or value[-2:-1] == "-"


def _is_long_account(value: str) -> bool:
    """Judge an account under a word that ledgers and bills have too: an account of a ledger has one digit between dots."""
    return not _LEDGER.search(value) and 10 <= len(digits_of(value)) <= 28


def _accept_btc(value: str) -> int:
    valid = is_bech32(value) if value[:3].lower() == "bc1" else is_base58check(value)
    return len(value) if valid else 0


# Words of bookkeeping make the account one of a ledger, unless the code of a bank stands between, or it is a person's own:
# "please credit my account", "pay my expenses: sort code …, account no …", "to the driver's account".
_OF_LEDGER = LatePattern(
    r"(?:(?<!direct )(?<!please )debit(?! card)|(?<!for )(?<!further )credit(?! (?:card|transfer|union))|ledger"
    r"|(?<![a-z])(?:gl|g/l)(?![a-z])|chart of|(?:cost|profit) cent(?:er|re)|nominal|trial balance|journal entr"
    r"|reclass|accru(?:al|ed?)"
    r"|(?<![a-z])(?:budget(?:ed)?(?! account)|provisions?(?: for)?|depreciat\w{1,4}|amorti[sz]\w{1,6}"
    r"|write-?offs?|capex|opex)(?![a-z])"
    r"|(?<!my )(?<!his )(?<!her )(?<!their )expense(?!s into )|revenue"
    rf"|posting|sachkonto|libro mayor|hauptbuch|grootboek|grand livre|mastrino|libro mastro"
    rf"|księga główna|abschreib|rückstellung|kostenstelle|amortissement|centre de co[uû]ts|provisión|amortización|centro de cos"
    rf"|ammortament|accantonament|centro di costo|amortização|provisão|centro de custo|afschrijving|kostenplaats|amortyzacj"
    rf"|odpis|avskrivning|kostnadsställe|poistot|амортизаци|проводк|księgow|bokför|kontier|contabiliz"
    rf"|comptabilis|könyvel|účtov|центр затрат)"
    rf"(?![^;\n{WALL}]{{0,32}}(?<![a-z])(?:(?:my|his|her|their|your)|[a-z]{{2,16}}['’]s)[ ](?:[a-z]{{4,8}}[ ])?acc(?:oun)?t?)"
    rf"[^;\n{WALL}]{{0,40}}$",
    re.IGNORECASE,
)
_LEDGER_NOUNS = (
    "verrechnung|vorräte|forderungen|verbindlichkeiten|kasse|compte d['’]attente|attente|bancos|caja|clientes|proveedores"
    "|banche"
    "|cassa|clienti|fornitori|cancelleria|caixa|fornecedores|crediteuren|debiteuren|petty cash|cash|travel|payroll|sundry|sales"
    "|bank charges|retained|prepayments?|prepaid|ledger|suspense|clearing|control|nominal|cost|expenses?|revenue|assets?"
    "|receivables?|payables?|accruals?|depreciation"
    "|inventory|equity|liabilit(?:y|ies)|profit cent(?:er|re)s?|budgets?|trial balance|kostenstelle"
    "|profitcenter|centre de co[uû]ts"
    "|centro de (?:costes?|costos?|custos?)|centro di costo|kostenplaats|kostnadsställe|omkostningssted|nákladové středisko"
    "|költséghely|мвз|центр затрат"
)
# Behind an account: "account no. 41200 Inventory", "…, cost centre 12", "… is the clearing account".
_BESIDE_LEDGER = LatePattern(
    rf"(?:[,;)]?[ ](?:[-–—][ ])?[(\"'’‘“”„«]{{0,2}}|(?:[,;)]|[ ](?:is|for|of|in|to|and|with|under|by|from|holds"
    rf"|takes))[ ](?:[^\W\d]\w{{0,16}}[ ,]{{1,2}}){{1,4}}?)"
    rf"(?:{by_first_letter(_LEDGER_NOUNS)})(?![^\W\d_])",
    re.IGNORECASE,
)
_IBAN_GAP = r"(?:[ \u00a0.\-]|[ ]?\n[ ]?)?"

FINANCIAL: tuple[PatternDetector | LabelledDetector, ...] = (
    PatternDetector(
        name="iban",
        type="IBAN",
        category=Category.FINANCIAL,
        priority=20,
        pattern=LatePattern(
            rf"{BEFORE}(?:[A-Z]{{2}}[ ]?[0-9]{{2}}(?:{_IBAN_GAP}[A-Z0-9]){{11,30}}"
            rf"|[a-z]{{2}}[0-9]{{2}}(?:[a-z0-9]{{11,30}}|(?:[ \u00a0-][a-z0-9]{{4}}){{2,7}}(?:[ \u00a0-][a-z0-9]{{1,3}})?))"
            rf"{AFTER}"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=AT_TWO_LETTERS,
        hint=rf"{HINT_BEFORE_WORD}(?:[A-Z]{{2}}[ ]?[0-9]{{2}}(?:(?:{_IBAN_GAP}|\\n)[A-Z0-9]){{11}}"
        rf"|[a-z]{{2}}[0-9]{{2}}(?:[a-z0-9]{{11,30}}{HINT_AFTER}|(?:[ \u00a0-][a-z0-9]{{4}}){{2}}))",
        accept=_accept_iban,
    ),
    PatternDetector(
        name="btc",
        type="BTC",
        category=Category.FINANCIAL,
        priority=22,
        pattern=LatePattern(
            rf"{BEFORE}(?:[13][1-9A-HJ-NP-Za-km-z]{{25,34}}|bc1[02-9ac-hj-np-z]{{11,71}}|BC1[02-9AC-HJ-NP-Z]{{11,71}})"
            rf"{AFTER}"
        ),
        first=rf"[13bB]{AT_BORDER}(?=[A-Za-z0-9]{{13}})",
        hint=rf"{HINT_BEFORE_WORD}(?:[13][1-9A-HJ-NP-Za-km-z]{{25,34}}{HINT_AFTER}|(?:bc|BC)1[0-9A-Za-z]{{11}})",
        accept=_accept_btc,
    ),
    PatternDetector(
        name="eth",
        type="ETH",
        category=Category.FINANCIAL,
        priority=23,
        pattern=LatePattern(rf"{BEFORE}0x[0-9a-fA-F]{{40}}{AFTER}"),
        first=rf"0{AT_BORDER}(?=x)",
        hint=rf"0x[0-9a-fA-F]{{40}}{HINT_AFTER}",
        accept=lambda value: len(value) if len(set(value[2:].lower())) > 3 else 0,  # 0x000… is no wallet
    ),
    PatternDetector(
        name="routing",
        type="ROUTING",
        category=Category.FINANCIAL,
        priority=30,
        pattern=LatePattern(
            rf"{BEFORE}(?:[0-9](?:[ -]?[0-9]){{8}}|[0-9]{{5}}{DASH}[0-9]{{3}}"
            rf"|[0-9]{{2}}{DASH}[0-9]{{2}}{DASH}[0-9]{{2}}|[0-9]{{6}})"
            rf"{AFTER_DIGIT}"
        ),
        hint=rf"(?:(?i:routing|tr[aá]nsit|sort[ _\-]?code|sort[ :]{{1,2}}[0-9]{{2}}-|s\\?/c"
        rf"|de ruta)|⑆|{HINT_BEFORE_LETTER}(?i:aba|rtn)){HINT_GAP}"
        rf"[0-9]{{2}}(?:[0-9]|{DASH})[0-9]",
        accept=_accept_routing,
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            r"routing(?:\s?(?:transit)?\s?(?:number|no|num|code))?",
            "aba",
            "rtn",
            r"aba\s?rtn",
            r"(?:branch\s?)?transit(?:\s?(?:number|no))?",
            r"sort[\s-]?codes?",
            rf"{WALL}[ ,;/]{{1,3}}sort[ :]{{1,2}}$",  # behind its account
            "s/c",
            r"(?:n[uú]mero|c[oó]digo) de (?:ruta|tr[aá]nsito)(?: bancario)?",
            "⑆",  # around it, at the foot of a check
        ),
        keys=LatePattern(r"(?:number|no|num|nr|code|aba|rtn|(?:aba|bank|ach|wire|deposit|check) routing)$", re.IGNORECASE),
        reach=24,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="sort_code",
        type="ROUTING",
        category=Category.FINANCIAL,
        priority=30,
        pattern=LatePattern(
            rf"{BEFORE}[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}(?=[ ,;/|]{{1,3}}(?i:acc(?:oun)?t?|a/c)\.?"
            rf"[ :#]{{0,3}}(?i:(?:no|num|number|nr)\.?[ :#]{{1,3}})?[0-9](?:[ ]?[0-9]){{7}}(?![0-9]))"
        ),
        hint=r"[0-9]{2}-[0-9]{2}-[0-9]{2}[ ,;/|]{1,3}(?i:ac|a\\?/c)",
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="upi",
        type="BANK_ACCOUNT",
        category=Category.FINANCIAL,
        priority=49,
        pattern=LatePattern(rf"(?<![\w.@-])[A-Za-z0-9][A-Za-z0-9._-]{{1,48}}@(?:{_UPI_BANKS})(?![\w@-]|\.\w)"),
        hint=rf"@(?:{_UPI_BANKS})",
    ),
    PatternDetector(
        name="bank_account",
        type="BANK_ACCOUNT",
        category=Category.FINANCIAL,
        priority=50,
        pattern=LatePattern(
            rf"{BEFORE}(?:[0-9]{{6,17}}|[0-9]{{2,8}}(?:[ -][0-9]{{2,12}}){{1,4}}|[0-9]{{1,4}}(?:-[0-9]{{1,6}}){{2,4}})"
            rf"{AFTER_DIGIT}"
        ),
        hint=rf"(?:(?i:acc(?:oun)?t|a\\?/c|acc[^a-z]|konto|compte|checking|chequing|savings|kto[^a-z])|⑆)"
        rf"{HINT_GAP}(?:[0-9]{{2}}(?:[0-9]{{4}}|[0-9]?[ \-][0-9]{{2}})|[0-9]-[0-9]{{3}}-|[0-9]{{3}}-[0-9]-)",
        accept=_accept_account,
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            r"(?:bank\s?)?(?:account|acct|acc)\.?\s?(?:number|no|num|nr|#)",
            r"(?:bank|checking|chequing|savings|current|deposit|giro)\s?(?:account|acct|acc)",
            rf"{WALL}[ ,;]{{1,3}}(?:and )?(?:account|acct?|checking|chequing|savings|konto|kto|compte"
            r"|cuenta|conto|conta|rekening|kontonr|rachunek|účet|hesap|tili|сч[её]т"
            r"|рахунок)\.?",  # behind the number of its bank
            "(?:into|to|from|in)(?: (?:my|our|his|her|their|the))? (?:checking|chequing|savings)",
            r"(?:direct deposit|ach|payroll)[^0-9;\n]{0,32}(?:checking|chequing|savings)",
            "a/c",
            r"kontonummer|konto-?nr\.?",
            r"(?:numéro\s)?de\s?compte",
            rf"{WALL}⑆[ ]{{0,3}}$",  # at the foot of a check
        ),
        reach=24,
        not_after=NOT_AFTER_DIGIT,
        not_near=_OF_LEDGER,
        not_beside=_BESIDE_LEDGER,
        keys=LatePattern(r"(?:number|no|num|nr|nummer)$|(?:bank|checking|savings) ?account$", re.IGNORECASE),
    ),
    PatternDetector(
        name="bank_account_bare",
        type="BANK_ACCOUNT",
        category=Category.FINANCIAL,
        priority=50,
        pattern=LatePattern(
            rf"{BEFORE}[0-9]{{8,17}}{AFTER_DIGIT}(?=[ ]?(?:[.,;:!?)|\n\"']|$|(?:and|or|at|with|for|to|from|in|is|of|by|under"
            r"|(?i:routing|aba|sort|bsb|iban|bic|swift|blz|ifsc|bank)(?!-)|held|bei|der|chez|auprès|presso|en|del|van|na)\b))"
        ),
        hint=rf"(?i:acc(?:oun)?t|acc[^a-z]|konto|compte|cuenta|conto|conta){HINT_GAP}[0-9]{{8}}",
        need=Need.CONTEXT,
        is_number=True,
        context=words(
            r"(?:account|acct?\.?|konto|compte|cuenta|conto|conta)[\s:#=\"']{1,4}$",
            r"(?:my|our|his|her|their|mein|unser|mon|notre|mi|il mio) (?:bank ?)?(?:account|konto|compte|cuenta|conto)"
            r"(?: (?:there|with them|dort|là-bas|allí|lì|daar))?(?: (?:is|ist|est|es|è) |: )$",
        ),
        reach=4,
        not_after=NOT_AFTER_DIGIT,
        not_near=_OF_LEDGER,
        not_beside=_BESIDE_LEDGER,
        keys=LatePattern("(?!)"),
        heads=False,
    ),
    PatternDetector(
        name="swift",
        type="SWIFT",
        category=Category.FINANCIAL,
        priority=51,
        pattern=LatePattern(rf"{BEFORE}[A-Z]{{6}}[A-Z0-9]{{2}}(?:[A-Z0-9]{{3}})?{AFTER}"),
        first=rf"[A-Z]{AT_BORDER}(?=[A-Z]{{5}})",
        hint=rf"(?i:swift|bic){HINT_GAP}{HINT_BEFORE_WORD}[A-Z]{{6}}[A-Z0-9]{{2}}",
        accept=_accept_swift,
        need=Need.CONTEXT,
        context=words(
            r"swift(?:[\s-]?(?:bic[\s-]?)?(?:code|bic|コード|代码|代碼|코드|k[oó]d(?:u|um|umuz)?|код|kod[eu]|kood|kodas|kods|κωδικός))?",
            r"bic(?:[\s-]?(?:code|swift|fi|k[oó]d(?:u|um|umuz)?|код|kod[eu]|kood|コード))?",
            r"swift\s?/\s?bic",
            r"bic\s?/\s?swift",
        ),
        reach=24,
    ),
    PatternDetector(
        name="swift_grouped",
        type="SWIFT",
        category=Category.FINANCIAL,
        priority=51,
        pattern=LatePattern(
            r"(?:(?<=[:=])|(?<=[:=][ \"'])|(?<=[:=][ ][\"'])|\A)[A-Z]{4}[ -]?[A-Z]{2}[ -]?[A-Z0-9]{2}(?:[ -]?[A-Z0-9]{3})?"
            rf"{AFTER}",
            re.IGNORECASE,
        ),
        first=r"[A-Za-z](?<![A-Za-z0-9](?s:.))(?:(?<=[:=].)|(?<=[:=][ \"'].)|(?<=[:=][ ][\"'].)|(?<!(?s:..)))(?=[A-Za-z]{3})",
        hint=r"(?i:swift|bic)[^A-Za-z0-9].{0,16}(?i:[A-Z]{4}[ \-]?[A-Z]{2}[ \-]?[A-Z0-9]{2})",
        accept=lambda value: len(value) if re.sub("[ -]", "", value)[4:6].upper() in _COUNTRIES else 0,
        need=Need.CONTEXT,
        context=words(
            r"(?:bic(?:[ /-](?:code|swift|kod(?:[eu]|umuz)?))?|swift[ /-](?:code|bic|kod(?:[eu]|umuz)?)"
            r"|(?:code|kod) swift(?:/bic)?): ?$"
        ),
        reach=3,
        heads=False,
    ),
    LabelledDetector(
        name="bank_code",
        type="ROUTING",
        category=Category.FINANCIAL,
        priority=30,
        pattern=LatePattern(
            rf"{BEFORE}(?:[A-Z]{{4}}0[A-Z0-9]{{6}}|[0-9]{{3}}[ ]?[0-9]{{3}}[ ]?[0-9]{{2}}"
            rf"|[0-9]{{3}}[ -]?[0-9]{{3}}|[0-9]{{9}}|[0-9]{{4,5}}){AFTER_DIGIT}"
        ),
        rules=[
            Rule("blz|bankleitzahl", lambda value: len(digits_of(value)) in {5, 8}),
            Rule("bsb", lambda value: len(digits_of(value)) == 6),
            Rule("ifsc(?: code)?", lambda value: len(value) == 11 and value[:4].isalpha()),
            Rule("bank ?clearing|clearing(?:nummer|nr)?|codice abi|code banque", lambda value: len(digits_of(value)) in {4, 5}),
            Rule("бик", lambda value: len(digits_of(value)) == 9),
        ],
        hint_labels="blz|bankleitzahl|bsb|ifsc(?: code)?|bank ?clearing|clearing(?:nummer|nr)?|codice abi|code banque|бик",
    ),
    LabelledDetector(
        name="bank_account_foreign",
        type="BANK_ACCOUNT",
        category=Category.FINANCIAL,
        priority=49,
        pattern=LatePattern(
            rf"{BEFORE}(?:[0-9]{{5}}[ ]?[0-9]{{5}}[ ]?[0-9A-Z]{{11}}[ ]?[0-9]{{2}}"
            rf"|[0-9](?:[ ./-]?[0-9]){{6,27}}|[0-9]{{4,6}}-[0-9X]){AFTER_DIGIT}"
        ),
        rules=[
            Rule(ACCOUNT, _is_account, is_valid_apart=_is_long_account),
            Rule(_ACCOUNT_OR_BILL, _is_long_account),
            Rule("сч[её]т(?: №)?", lambda value: len(digits_of(value)) == 20),
            Rule(
                "普通|当座|貯蓄", lambda value: len(value) == len(digits_of(value)) == 7, LatePattern("[ ]?[円人件個本台枚回%]")
            ),
        ],
        hint_labels=f"{ACCOUNT}|{_ACCOUNT_OR_BILL}|сч[её]т",
        hint_foreign="普通|当座|貯蓄",
        hint_value="[0-9]{4}|[0-9](?:[ ./-]?[0-9]){6}",
        not_followed=LatePattern(
            rf"[ ]?(?:%|€|\$|£|(?:EUR|USD|GBP|CHF|PLN|CZK|SEK|NOK|DKK|HUF|RON)\b|(?!(?:{BESIDE_ALONE})\b)[a-z]{{3,}})"
        ),
        keys=LatePattern("(?!)"),
    ),
)
