"""National and tax numbers of people in some seventy countries, judged by python-stdnum under the label of their country."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from comity.core.redaction.checksums import standard
from comity.core.redaction.detector import Category
from comity.core.redaction.labelled import LabelledDetector, Rule
from comity.core.redaction.registers import PERSONAL, TAX
from comity.core.redaction.shapes import AFTER, BEFORE, LatePattern, digits_of
from comity.core.redaction.spelling import with_plain_letters

_NUMBER = LatePattern(
    rf"{BEFORE}(?=[A-ZΑ-Ω]{{0,6}}[- ]?(?:[A-Z]{{3}}[ ])?[0-9])[A-Z0-9Α-Ω]"
    rf"(?:[ \u00a0./+-]?[A-Z0-9Α-Ω]){{5,22}}(?:\([0-9A]\))?{AFTER}",
    re.IGNORECASE,
)


_INNER_DOT = re.compile(r"\\\.(?=[^|)?])")


def _written(label: str) -> str:
    """Return a label with its joints as they may be written: "SV-Nummer" also as "SV-Nr" and, in a key, "sv_nummer".

    Nordic languages put the article behind the word: "personnumret".
    """
    label = _INNER_DOT.sub("[. ]", with_plain_letters(label))  # "č. OP" is `č_op` in a key
    return label.replace("-?", "[- ]?").replace("nummer", "[- ]?(?:n(?:umme)?r(?:et)?|numret)")


# What follows a count, a ratio or a code, not a person's number.
_COUNTED = LatePattern(
    r"[ \u00a0]?(?:%|€|\$|£|rad\b|deg\b|ms\b|kb\b|mb\b|gb\b|kg\b|km\b|users\b|rows\b|records\b|files\b"
    r"|items\b|calls\b|units\b|printed\b|issued\b|coverage\b)"
)


def _is_standard(module: str, value: str) -> bool:
    return standard(module)(value.upper())


def _is_taiwanese(value: str) -> bool:
    if not re.fullmatch(r"[A-Z][12][0-9]{8}", value):
        return False
    first = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0]) + 10
    digits = [first // 10, first % 10, *map(int, value[1:])]
    return sum(digit * weight for digit, weight in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def _is_hong_kong(value: str) -> bool:
    match = re.fullmatch(r"([A-Z]{1,2})([0-9]{6})\(?([0-9A])\)?", value)
    if not match:
        return False
    letters = match[1].rjust(2)
    values = [36 if char == " " else int(char, 36) for char in letters] + [int(digit) for digit in match[2]]
    total = sum(number * weight for number, weight in zip(values, range(9, 1, -1), strict=True)) + int(match[3], 16)
    return total % 11 == 0


def _is_singaporean(value: str) -> bool:
    if not re.fullmatch(r"[STFGM][0-9]{7}[A-Z]", value):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(value[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(value[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}.get(value[0], "XWUTRQPNMLK")
    return letters[total % 11] == value[8]


def _is_snils(value: str) -> bool:
    if not re.fullmatch("[0-9]{11}", value):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(value[:9], range(9, 0, -1), strict=True))
    return total % 101 % 100 == int(value[9:])


def _is_hungarian(value: str) -> bool:
    if not re.fullmatch("8[0-9]{9}", value):
        return False
    return sum(int(digit) * weight for weight, digit in enumerate(value[:9], 1)) % 11 == int(value[9])


def _is_social(value: str) -> bool:
    """Judge a social insurance number of Austria, or of Germany: its letter counts as two digits."""
    if not (match := re.fullmatch(r"([0-9]{8})([A-Z])([0-9]{2})([0-9])", value)):
        return _is_standard("at.vnr", value)
    digits = f"{match[1]}{ord(match[2]) - 64:02d}{match[3]}"
    products = (int(digit) * weight for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(product // 10 + product % 10 for product in products) % 10 == int(match[4])


def _is_any_social(value: str) -> bool:
    """Judge a number under the English words by the rules of states whose own words are others.

    The American one has a type of its own.
    """
    return _is_social(value) or any(_is_standard(module, value) for module in _ANY_SOCIAL)


_ANY_SOCIAL: Final = ("fr.nir", "ch.ssn", "be.nn")


def _is_one_of(*modules: str) -> Callable[[str], bool]:
    """Return a test for the numbers of several states that have the same name."""
    return lambda value: any(_is_standard(module, value) for module in modules)


def _without(prefixes: str, *modules: str) -> Callable[[str], bool]:
    """Return a test for numbers that may have the letters of their country before them."""
    known, is_valid = re.compile(prefixes), _is_one_of(*modules)
    return lambda value: is_valid(known.sub("", value, count=1))


def _is_ci(value: str) -> bool:
    """Judge what is a "C.I." in Uruguay, Ecuador, Cuba, Venezuela and Italy: continuous integration has numbers too."""
    return (
        _is_uruguayan(value)
        or _is_one_of("ec.ci", "cu.ni")(value)
        or re.fullmatch("[VE][0-9]{7,8}|[A-Z]{2}[0-9]{5}[A-Z]{2}", value) is not None
    )


def _is_vat(value: str) -> bool:
    """Judge the number of whoever pays value-added tax, with the letters of its country, or of Saudi Arabia."""
    is_abroad = (value.startswith("GB") and _is_standard("gb.vat", value)) or re.fullmatch("3[0-9]{13}3", value)
    return bool(is_abroad) or _is_one_of("eu.vat", "ch.uid", "no.mva")(value)


def _is_german_card(value: str) -> bool:
    """Judge an identity card of Germany, which mixes letters and digits, or any other."""
    return _is_any(value) or re.fullmatch("(?=(?:[A-Z]*[0-9]){3})[0-9CFGHJKLMNPRTVWXYZ]{9,10}", value) is not None


def _is_any(value: str) -> bool:
    """Judge a number of which only the label is known: six digits or more, or the form of an Italian card."""
    is_long = 6 <= len(value) <= 20 and len(digits_of(value)) >= 6 and not _MOVEMENT.fullmatch(value)
    return is_long or re.fullmatch("[A-Z]{2}[0-9]{5}[A-Z]{2}", value) is not None


_MOVEMENT = re.compile("[0-9]{2}[A-Z]{2}[A-Z0-9]{14}")  # the movement reference number of a customs office is an "MRN" too


def _is_uruguayan(value: str) -> bool:
    if not re.fullmatch("[1-9][0-9]{6,7}", value):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(value[:-1].rjust(7, "0"), (2, 9, 8, 7, 6, 3, 4), strict=True))
    return -total % 10 == int(value[-1])


def _is_medicare(value: str) -> bool:
    """Judge the number of an Australian Medicare card: eight digits, their check digit, the issue, perhaps the person."""
    if not re.fullmatch("[2-6][0-9]{9,10}", value):
        return bool(
            re.fullmatch("[1-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y][0-9][AC-HJKMNP-RT-Y]{2}[0-9]{4}|[0-9][A-Z0-9]{10}", value)
        )
    return sum(int(digit) * weight for digit, weight in zip(value, (1, 3, 7, 9, 1, 3, 7, 9), strict=False)) % 10 == int(
        value[8]
    )


def _is_any_tax(value: str) -> bool:
    """Judge a number by the rules of many states; nine digits are an American one, which has a type of its own."""
    if re.fullmatch("[0-9]{12}(?:[0-9]{2})?", value):  # in the Philippines, which have no check digit
        return True
    return not re.fullmatch("[0-9]{9}", value) and any(_is_standard(module, value) for module in _ANY_TAX)


_ANY_TAX: Final = re.findall(
    r"\S+",
    "de.idnr br.cpf it.codicefiscale in_.pan ru.inn es.nif be.nn fr.nif pl.pesel ie.pps ar.cuit cl.rut hr.oib ro.cnp"
    " tr.tckimlik za.tin gb.utr mx.rfc",
)
# Numbers that are known by their form alone.
_SHAPES: Final = {
    "lv": "(?:[0-3][0-9][01][0-9]{3}|32[0-9]{4})[0-9]{5}", "insured": "[1-9][0-9]{9}|[0-9]{8}[A-Z][0-9]{3}",
    "steuer": "[1-9][0-9]{10}", "cedula": "[VE]?[0-9]{6,11}", "ihi": "80036[0-9]{11}",
    "au.crn": "[0-9]{9}[A-Z]", "nz.nhi": "[A-HJ-NP-Z]{3}(?:[0-9]{4}|[0-9]{2}[A-HJ-NP-Z]{2})",
    "lk.nic": "[0-9]{9}[VX]|[12][0-9]{11}",
    "mx.ine": "[0-9]{13}|[A-Z]{6}[0-9]{8}[HM][0-9]{3}", "br.pis": "[0-9]{11}",
    "br.titulo": "[0-9]{12}", "es.nuss": "[0-9]{11,12}", "pt.utente": "[0-9]{9}",
    "kz.iin": "[0-9]{12}", "uz.pinfl": "[3-6][0-9]{13}", "by.number": "[1-6][0-9]{6}[A-Z][0-9]{3}[A-Z]{2}[0-9]",
    "ru.policy": "[0-9]{16}", "ua.unzr": "(?:19|20)[0-9]{11}", "eg.number": "[23][0-9]{13}", "gt.dpi": "[1-9][0-9]{12}",
    "sv.dui": "[0-9]{9}", "in_.uan": "1[0-9]{11}", "in_.abha": "[0-9]{14}", "ke.pin": "[AP][0-9]{9}[A-Z]",
    "us.alien": "A?[0-9]{8,9}",
    "ca.phn": "[0-9]{9,10}", "jp.pension": "[0-9]{10}", "jp.residence": "[A-Z]{2}[0-9]{8}[A-Z]{2}",
    "tw.residence": "[A-Z][A-D89][0-9]{8}",
    "member": "[A-Z]{1,4}[0-9]{8,14}(?:[A-Z][0-9]{1,2})?",
    "mz.nuit": "[0-9]{9}", "br.cns": "[1-9][0-9]{14}", "tr.vkn": "[0-9]{10}", "pe.ruc": "[0-9]{8,13}",
    "ve.tax": "[VEJPG][0-9]{9}", "ae": "784[0-9]{12}", "sa": "[12][0-9]{9}|784[0-9]{12}", "qa": "[23][0-9]{10}",
    "kw": "[1-3][0-9]{11}",
    "maghreb": "[A-Z]{1,2}[0-9]{5,7}|[0-9]{8}|[23][0-9]{10}(?:[0-9]{3})?", "ph.pagibig": "[0-9]{12}",
    "np": "[0-9]{9,12}", "ir": "[0-9]{10}",
    "bd": "[0-9]{10}|[0-9]{13}|[0-9]{17}", "ge": "[0-9]{11}", "am": "[0-9]{10}", "md.person": "[0-9]{13}",
    "gr.card": "[A-ZΑ-Ω]{1,2}[0-9]{6}", "ke.id": "[0-9]{7,9}", "pt.niss": "[0-9]{11}", "th.tin": "[0-9]{13}",
    "gulf": "100[0-9]{12}|3[0-9]{13}3", "eg.tax": "100[0-9]{12}|3[0-9]{13}3|[0-9]{9}", "cc": "(?!)", "ph.sss": "(?!)",
    "mx.nss": "[0-9]{11}",
}  # fmt: skip


def _has_shape(form: str) -> Callable[[str], bool]:
    compiled = LatePattern(form)
    return lambda value: compiled.compiled.fullmatch(value) is not None


_OWN: Final[dict[str, Callable[[str], bool]]] = {
    "tr": partial(_is_standard, "tr.tckimlik"), "pix": partial(_is_standard, "br.cpf"), "tw": _is_taiwanese,
    "hk": _is_hong_kong, "sg": _is_singaporean, "ru.snils": _is_snils, "hu": _is_hungarian, "medicare": _is_medicare,
    "medicare_card": _is_medicare, "health": _is_any, "fr.cni": _is_any, "social": _is_social,
    "any_social": _is_any_social, "nif": _is_one_of("es.nif", "pt.nif", "fr.nif"), "any": _is_any, "any_tax": _is_any_tax,
    "ci": _is_ci, "document": _is_any, "hu.card": _is_any, "de.card": _is_german_card,
    "co.nit": _is_one_of("co.nit", "gt.nit", "sv.nit"), "de.stnr": _is_one_of("de.stnr", "at.tin"),
    "eu.vat": _is_vat,
    "vat_number": lambda value: _is_vat(value) or _is_one_of("gb.vat", "nl.btw", "be.vat", "se.vat")(value),
    "uid": _is_one_of("eu.vat", "ch.uid"), "cz.dic": _without("CZ|SK", "cz.dic", "sk.dph"), "dk.cvr": _without("DK",
    "dk.cvr", "se.vat"),
    "no.mva": _without("NO", "no.mva", "no.orgnr"),
    "fi.vat": _without("FI", "fi.alv"), "ro.cui": _without("RO", "ro.cui"), "si.ddv": _without("SI", "si.ddv"),
    "cn.uscc": _is_one_of("cn.uscc", "cn.ric"),
    **{module: _has_shape(form) for module, form in _SHAPES.items()},
}  # fmt: skip


# Numbers without a check digit, and those of firms, count right behind their label alone.
_WITHOUT_CHECKSUM = frozenset(
    re.findall(
        r"\S+",
        "health any fr.cni any_tax any_social medicare medicare_card ci document hu.card de.card id.nik my.nric jp.in_"
        " eu.vat vat_number",
    )
).union(_SHAPES)


# Of these a form of as many characters is enough behind other words too: "NIK KTP pelanggan …".
_LONG = 11
_LONG_FORMS = frozenset({"id.nik", "my.nric", "jp.in_"}).union(_SHAPES) - {"member", "cedula"}

_VAT: Final = (  # with the letters of its country
    "(?:ATU|BE|BG|CY|CZ|DE|DK|EE|EL|ES|FI|FR|GB|XI|HR|HU|IE|IT|LT|LU|LV|MT|NL|PL|PT|RO|SE|SI|SK|CHE|NO)"
    "(?=(?:[A-Z]*[0-9]){7})[0-9A-Z]{8,12}"
)
# Labels that mean one number, and its form: a mistyped check digit makes it no less a person's.
_FORMS: Final = {
    module: re.compile(form)
    for module, form in {
        "fr.cni": "(?=(?:[A-Z]*[0-9]){2})[A-Z0-9]{9}", "ar.cuit": "2[0347][0-9]{9}", "au.tfn": "[0-9]{8,9}",
        "be.nn": "[0-9]{11}", "bg.egn": "[0-9]{10}",
        "br.cpf": "[0-9]{11}",
        "ch.ssn": "756[0-9]{10}", "cn.ric": "[1-9][0-9]{16}[0-9X]", "cz.rc": "[0-9]{9,10}", "dk.cpr": "[0-3][0-9]{9}",
        "ee.ik": "[1-6][0-9]{10}", "es.dni": "[0-9]{8}[A-Z]?|0[0-9]{12}", "es.nie": "[XYZ][0-9]{7}[A-Z]|[0-9]{8}[A-Z]",
        "fi.hetu": "[0-9]{6}[A+]?[0-9]{3}[0-9A-Y]",
        "fr.nir": "[12][0-9]{12}(?:[0-9]{2})?", "fr.nif": "[0-3][0-9]{12}",
        "hk": r"[A-Z]{1,2}[0-9]{6}\(?[0-9A]\)?", "hu": "8[0-9]{9}", "hu.anum": "[0-9]{8}(?:[0-9]{3})?|8[0-9]{9}",
        "gr.amka": "[0-3][0-9]{10}", "hr.oib": "[0-9]{11}", "il.idnr": "[0-9]{9}",
        "in_.aadhaar": "[0-9]{12}", "in_.pan": "[A-Z]{5}[0-9]{4}[A-Z]", "in_.epic": "[A-Z]{3}[0-9]{7}",
        "it.codicefiscale": "[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]",
        "jp.in_": "[0-9]{12}", "kr.rrn": "[0-9]{13}",
        "mx.curp": "[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[A-Z0-9][0-9]", "lt.asmens": "[3-6][0-9]{10}",
        "medicare_card": "[2-6][0-9]{9,10}", "medicare": "[2-6][0-9]{9}", "nif": "[0-9]{8}[A-Z]|[XYZ][0-9]{7}[A-Z]",
        "ie.pps": "[0-9]{7}[A-W][ABHWTX]?", "gb.utr": "[0-9]{10}", "ua.rntrc": "[0-9]{10}", "nl.bsn": "[0-9]{9}",
        "no.fodselsnummer": "[0-9]{11}", "pl.pesel": "[0-9]{11}",
        "pt.cc": "[0-9]{9}[A-Z]{2}[0-9]", "ro.cnp": "[1-9][0-9]{12}", "ru.inn": "[0-9]{12}",
        "ru.snils": "[0-9]{11}", "se.personnummer": "(?:[12][0-9])?[0-9]{2}[01][0-9][0-9]{6}|[0-7][0-9][0-9]{9}",
        "sg": "[STFGM][0-9]{7}[A-Z]",
        "si.emso": "[0-9]{13}", "th.pin": "[1-8][0-9]{12}", "tr.tckimlik": "[1-9][0-9]{10}", "tw": "[A-Z][12][0-9]{8}",
        "it.iva": "(?:IT)?[0-9]{11}", "kr.brn": "[0-9]{10}", "cn.uscc": "[0-9]{15}|[0-9A-HJ-NPQRTUWXY]{18}",
        "cz.dic": "(?:CZ|SK)[0-9]{8,10}", "tw.ubn": "[0-9]{8}", "az.voen": "[0-9]{10}",
        "eu.vat": _VAT, "vat_number": _VAT, "uid": _VAT,
    }.items()
}  # fmt: skip


# Forms with their signs, where the digits alone would be any number.
_WRITTEN: Final = {
    module: re.compile(form)
    for module, form in {
        "cl.rut": r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]",
        "br.cnpj": r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}", "pl.nip": "[0-9]{3}-[0-9]{3}-[0-9]{2}-[0-9]{2}",
        "nz.ird": "[0-9]{2,3}-[0-9]{3}-[0-9]{3}", "co.nit": r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]",
        "ci": r"[0-9]\.[0-9]{3}\.[0-9]{3}-[0-9]", "de.stnr": "[0-9]{2,3}[/-][0-9]{3,4}/[0-9]{4,5}",
        "cc": r"[0-9]{2,3}(?:\.[0-9]{3}){2}|1(?:\.[0-9]{3}){3}", "ph.sss": "[0-9]{2}-[0-9]{7}-[0-9]",
        "np": "[0-9]{2}-[0-9]{2}-[0-9]{2}-[0-9]{5}",
    }.items()
}  # fmt: skip
_OF_A_YEAR = re.compile("[0-9]{1,6}/(?:19|20)[0-9]{2}|[0-2][0-9]/[0-9]{5}")  # the number of a file or a case


def _rule(module: str, label: str) -> Rule:
    own, form, written = _OWN.get(module), _FORMS.get(module), _WRITTEN.get(module)

    @lru_cache(maxsize=1024)
    def has_check_digit(value: str) -> bool:
        compact = _compact(value)
        if len(digits_of(compact)) < 4 or _OF_A_YEAR.fullmatch(value):
            return False
        return own(compact) if own is not None else _is_standard(module, value) or _is_standard(module, compact)

    def is_valid(value: str) -> bool:
        if has_check_digit(value) or (form is not None and form.fullmatch(_compact(value))):
            return True
        return written is not None and written.fullmatch(value) is not None

    def is_long(value: str) -> bool:
        return len(_compact(value)) >= _LONG and has_check_digit(value)

    apart = has_check_digit if module not in _WITHOUT_CHECKSUM else is_long if module in _LONG_FORMS else None
    return Rule(_written(label), is_valid, is_valid_apart=apart)


def _compact(value: str) -> str:
    return re.sub(r"[ \u00a0./-]", "", value).upper()


def _detector(name: str, kind: str, priority: int, numbers: dict[str, str]) -> LabelledDetector:
    return LabelledDetector(
        name=name,
        type=kind,
        category=Category.GOVERNMENT,
        priority=priority,
        pattern=_NUMBER,
        rules=[_rule(module, label) for module, label in numbers.items()],
        hint_labels=_written("|".join(numbers.values())),
        hint_foreign="егн|јмбг|身份|身分|公民|आधार|マイナンバー|個人番号|주민|เลข|บัตร|ประชาชน|снилс|תעודת|זהות|паспорт|年金|在留|統一|قومي"
        "|полис|омс|иин|жсн|пинфл|личный|идентиф|унзр|ембг|αμκα|αφμ|инн|рнокпп|іпн|thuế",
        not_followed=_COUNTED,
        checked_behind=True,
    )


NATIONAL: tuple[LabelledDetector, ...] = (
    _detector("national_id", "NATIONAL_ID", 28, PERSONAL),
    _detector("tax_id", "TAX_ID", 29, TAX),
)
