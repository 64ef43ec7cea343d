"""National and tax numbers of people in some fifty countries, judged by python-stdnum under the label of their country."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from comity.core.redaction.checksums import standard
from comity.core.redaction.detector import Category
from comity.core.redaction.labelled import LabelledDetector, Rule
from comity.core.redaction.shapes import AFTER, BEFORE, LatePattern, digits_of
from comity.core.redaction.spelling import with_plain_letters

# The module of python-stdnum, and the words that name its number.
_PERSONAL: Final = {
    "ar.dni": r"dni argentino|documento nacional",
    "insured": r"svnr|sv-?nummer|rvnr|rv-?nummer|sozialversicherungsnummer|rentenversicherungsnummer",
    "social": r"versicherungsnummer",
    "be.nn": r"rijksregister(?:nummer)?|num[eé]ro (?:de registre )?national|registre national|insz|niss",
    "bg.egn": r"егн|egn|ucn",
    "ch.ssn": r"ahv(?:-?n(?:umme)?r)?|avs|oasi",
    "cl.rut": r"rut|run|r\.u\.t",
    "cn.ric": r"身份证(?:号码|号)?|公民身份号码|resident id(?:entity)?(?: card)?|chinese id",
    "cz.rc": r"rodn[eé] [cč][ií]slo|rodn[eé] č|r\.? ?č|číslo pojištěnce",
    "dk.cpr": r"cpr(?:-?n(?:umme)?r)?|personnummer dk",
    "do.cedula": r"c[eé]dula dominicana",
    "cedula": r"c[eé]dula(?: ecuatoriana| de (?:ciudadan[ií]a|identidad))?|c\.c",
    "uy": r"ci|c\.i",
    "ee.ik": r"isikukood|personal (?:identification )?code",
    "es.dni": r"dni|d\.n\.i|documento(?:(?: nacional)? de identidad)?",
    "es.nie": r"nie|n\.i\.e",
    "fi.hetu": r"hetu|sotu|(?:finnish )?personal identity code|henkil[oö]tunnu(?:s|ks(?:en|eni|esi))|henk\.? ?tunnus",
    "fr.nir": r"nir|s[eé]cu|n[°o] ss|s[eé]curit[eé] sociale|num[eé]ro (?:de )?(?:s[eé]cu(?:rit[eé] sociale)?|ss)|insee",
    "gr.amka": r"amka|αμκα",
    "hr.oib": r"oib",
    "id.nik": r"nik|ktp",
    "ie.pps": r"pps[n]?",
    "il.idnr": r"teudat zehut|תעודת זהות|מספר ה?זהות|ת[.\"״]? ?ז|israeli id",
    "in_.aadhaar": r"aadhaar|aadhar|आधार(?: संख्या| नंबर)?|uidai",
    "in_.epic": r"voter id|epic",
    "is_.kennitala": r"kennitala|kt",
    "jp.in_": r"マイナンバー|個人番号|my number",
    "kr.rrn": r"주민등록번호|주민번호|rrn|resident registration",
    "lt.asmens": r"asmens kodas",
    "md.idno": r"idnp",
    "mx.curp": r"curp",
    "my.nric": r"mykad|ic|no\.? (?:kp|ic)|ic (?:no|number)|nric malaysia|kad pengenalan",
    "nl.bsn": r"bsn|burgerservicenummer|sofinummer",
    "no.fodselsnummer": r"f[oø]dselsnummer|fnr|d-nummer",
    "pe.cui": r"cui|dni peruano",
    "pk.cnic": r"cnic|nicop",
    "pl.pesel": r"pesel",
    "pt.cc": r"cart[aã]o (?:de |do )?cidad[aã]o",
    "ro.cnp": r"cnp|cod numeric personal",
    "se.personnummer": r"personnummer|pers\.?nummer|p\.nummer|samordningsnummer|pnr|personal (?:identity )?number",
    "si.emso": r"emšo|emso|jmbg|јмбг|embg|ембг|umcn",
    "sk.rc": r"rodn[eé] [cč][ií]slo sk",
    "th.pin": r"(?:เลข|หมายเลข|รหัส)(?:ที่)?(?:บัตร)?(?:ประจำตัว)?ประชาชน|บัตร(?:ประจำตัว)?ประชาชน|thai id",
    "tr.tckimlik": r"t\.?c\.? kimlik(?: no)?|kimlik no|tckn|tc no",
    "tr": r"tc|t\.c",
    "tw": r"身分證字號|身分證(?:號碼)?|taiwan id",
    "hk": r"hkid|香港身份證(?:號碼)?|hong kong id(?:entity card)?",
    "sg": r"nric(?:/fin)?|fin no|fin",
    "ru.snils": r"снилс|snils",
    "ve.rif": r"c[eé]dula venezolana",
    "za.idnr": r"id (?:number|no|nr)|south african id|sa id|rsa id",
    "lv": r"personas kods",
    "medicare_card": r"medicare (?:card )?(?:number|no)",
    "medicare": r"medicare(?: card| beneficiary(?: id(?:entifier)?| number)?)?|mbi",
    "ihi": r"ihi|individual healthcare identifier",
    "au.crn": r"crn",
    "nz.nhi": r"nhi",
    "lk.nic": r"nic",
    "mx.nss": r"nss|imss",
    "mx.ine": r"ine|clave de elector",
    "br.pis": r"pis|pasep",
    "br.cns": r"cns|cart[aã]o (?:do )?sus|cart[aã]o nacional de sa[uú]de",
    "br.titulo": r"t[ií]tulo de eleitor|t[ií]tulo eleitoral",
    "es.nuss": r"nuss|n[uú]mero de (?:la )?seguridad social|n[º°o]\.? (?:de )?(?:la )?seguridad social",
    "pt.utente": r"n[uú]mero de utente|n[º°o]\.? de utente|utente sns",
    "kz.iin": r"иин|жсн|iin",
    "uz.pinfl": r"пинфл|pinfl|jshshir",
    "by.number": r"личный номер|идентификационный номер",
    "ru.policy": r"полис(?: омс)?|омс",
    "ua.unzr": r"унзр",
    "eg.number": r"الرقم القومي",
    "gt.dpi": r"dpi|cui guatemala",
    "sv.dui": r"dui",
    "in_.uan": r"uan",
    "in_.abha": r"abha(?: id)?",
    "ke.pin": r"kra pin",
    "us.alien": r"a-number|alien (?:registration )?(?:number|no)|uscis (?:number|no)",
    "ca.phn": r"phn|personal health number",
    "jp.pension": r"年金番号|基礎年金番号",
    "jp.residence": r"在留カード(?:番号)?",
    "tw.residence": r"統一證號",
    "any_social": r"social (?:security|insurance)(?: number| no)?",
    "health": (
        r"health (?:card|insurance)(?: (?:policy|member|plan|card|id))?(?: number| no)?"
        r"|krankenversicherten?-?n(?:umme)?r|kvnr|krankenversicherungsnummer"
        r"|versichertennummer"
        r"|ohip|chi(?: number)|mrn|medical record(?: number| no)?|patient (?:id|number|no)|assurance maladie|carte vitale|ramq"
        r"|tessera sanitaria|tarjeta sanitaria|hospital (?:number|no)|insurance member(?: id| number| no)?"
        r"|health plan (?:member )?id"
        r"|patienten?-?n(?:umme)?r|versicherten-?n(?:umme)?r|(?:num[eé]ro (?:de )?)?dossier patient(?: ipp)?"
        r"|num[eé]ro (?:de )?patient|ipp|numero (?:di )?paziente"
        r"|numer pacjenta|nr pacjenta|patiëntnummer|polisnummer zorgverzekering|número de (?:paciente"
        r"|historia clínica)|historia clínica"
        r"|病历号|病歷號|診察券番号|患者番号|환자 ?번호|номер (?:пациента|медкарты|медицинской карты)|رقم المريض"
        r"|מספר מטופל|hasta (?:no|numarası|kayıt no)|n\.? ?h\.? ?c|número de (?:processo clínico|utente|doente)"
        r"|processo clínico"
        r"|número d[eo] (?:utente|doente|prontuário|paciente)|prontuário|(?:numero (?:di|della) )?cartella clinica"
        r"|(?:nr|numer) (?:kartoteki|historii choroby)|pasi?entnummer|patient(?:journal)?nummer|číslo (?:pacienta"
        r"|pojištěn(?:ce|í))"
        r"|číslo poistenca|potilasnumero|beteg(?:szám|azonosító)|număr(?:ul)? (?:de )?pacient|αριθμός ασθενούς"
        r"|(?:номер )?полиса? омс"
        r"|номер пацієнта|病案号|住院号|就诊卡号|رقم الملف الطبي|mã bệnh nhân|nomor rekam medis|no\.? rm"
    ),
    "member": (
        r"(?:member(?:ship)?|subscriber|enrollee|insured|policy ?holder|beneficiary)"
        r" (?:id(?:entification)?(?: number| no)?|number|no)"
        r"|(?:medicaid|medi-?cal)(?: id)?(?: number| no)?"
    ),
    "fr.cni": r"carte (?:nationale )?d['’]identit[eé]|cni",
    "any": (
        r"emirates id|iqama|civil id|rg|carteira de identidade|identidade|c[eé]dula de ciudadan[ií]a|carn[eé]t de identidad"
        r"|személyi(?: igazolvány)?(?: ?szám)?|občanský průkaz|číslo op|op č|osobna iskaznica|lična karta"
        r"|national id(?:entity|entification)?(?: card)?|personal id(?:entification)?|identity card|id card"
        r"|citizen id|ausweis(?:nummer)?"
        r"|personalausweis(?:nummer)?|carta d[’']identit[aà]|identiteitskaart|id-?kaart|dow[oó]du?(?: osobist(?:y"
        r"|ego))?|паспорт"
        r"|جواز|رقم الهوية(?: الوطنية)?|شناسنامه|کد ملی|身份证件|bvn|nin|ghana card|sss (?:no|number)|umid"
        r"|philhealth(?: no)?|philsys|cccd"
        r"|cmnd|căn cước(?: công dân)?|taj(?: szám)?|nid|matricule|e-?id (?:card|no|number)|voter(?:s|'s)? card"
        r"|insured id|insurance id|[cb]\.?i\.?,? seri[ae]"
    ),
}
_TAX: Final = {
    "ar.cuit": r"cui[tl]",
    "at.tin": r"abgabenkontonummer",
    "au.abn": r"abn",
    "au.tfn": r"tfn|tax file",
    "br.cpf": r"cpf|c\.p\.f",
    "pix": r"(?:chave )?pix",
    "br.cnpj": r"cnpj",
    "ch.uid": r"mwst-?nr",
    "co.nit": r"nit",
    "steuer": r"st\.?-?id(?:-?nr)?|steuer[- ]?(?:id(?:entifikationsnummer|nr)?|identnummer)(?:-?nr)?",
    "de.idnr": (
        r"(?:steuerliche )?identifikationsnummer|steuer[- ]?(?:id(?:entifikationsnummer)?|identnummer|idnr)|idnr"
        r"|tin de|tax id germany"
    ),
    "de.stnr": r"steuer-?n(?:umme)?r",
    "nif": r"nif",
    "eu.vat": r"vat(?: id)?|ust-?id(?:-?nr)?|tva|btw(?:-nummer)?",
    "fr.nif": r"spi|(?:num[eé]ro|n[°ºo]\.?) fiscal",
    "gb.utr": r"utr|unique taxpayer reference",
    "gr.vat": r"afm|αφμ",
    "hu.anum": r"ad[oó]sz[aá]m",
    "hu": r"ad[oó]azonos[ií]t[oó](?: jel)?",
    "id.npwp": r"npwp",
    "in_.pan": r"pan(?: card)?",
    "in_.gstin": r"gstin|gst (?:no|number)",
    "it.iva": r"partita iva|p\.? ?iva",
    "any_tax": r"tin|tax ?payer(?: id(?:entification)?)?|tax id(?:entification)?|(?:tax|fiscal) (?:number|code)",
    "it.codicefiscale": r"codice fiscale|c[oó]digo fiscal|c\.? ?f\.?|cod\.? fisc(?:ale|\.)?",
    "mx.rfc": r"rfc",
    "nz.ird": r"ird",
    "pl.nip": r"nip",
    "pt.nif": r"nif pt|contribuinte",
    "ru.inn": r"инн|inn",
    "ua.rntrc": r"рнокпп|іпн|rnokpp",
    "mz.nuit": r"nuit",
    "tr.vkn": r"vergi (?:no|numarası)|vkn",
    "pe.ruc": r"ruc",
    "ve.tax": r"rif",
    "uy.rut": r"rut uruguay",
    "vn.mst": r"mst|m[aã] s[oố] thu[eế]",
    "za.tin": r"sars(?: tax)?",
}
_NUMBER = LatePattern(
    rf"{BEFORE}(?=[A-Z]{{0,6}}[- ]?(?:[A-Z]{{3}}[ ])?[0-9])[A-Z0-9](?:[ \u00a0./+-]?[A-Z0-9]){{5,22}}(?:\([0-9A]\))?{AFTER}",
    re.IGNORECASE,
)


def _written(label: str) -> str:
    """Return a label with its joints as they may be written: "SV-Nummer" also as "SV-Nr" and, in a key, "sv_nummer".

    Nordic languages put the article behind the word: "personnumret".
    """
    return with_plain_letters(label).replace("-?", "[- ]?").replace("nummer", "[- ]?(?:n(?:umme)?r(?:et)?|numret)")


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


def _is_nif(value: str) -> bool:
    return _is_standard("es.nif", value) or _is_standard("pt.nif", value)


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
    "steuer": "[1-9][0-9]{10}", "cedula": "[0-9]{6,11}", "ihi": "80036[0-9]{11}",
    "au.crn": "[0-9]{9}[A-Z]", "nz.nhi": "[A-HJ-NP-Z]{3}(?:[0-9]{4}|[0-9]{2}[A-HJ-NP-Z]{2})",
    "lk.nic": "[0-9]{9}[VX]|[12][0-9]{11}",
    "mx.nss": "[0-9]{11}", "mx.ine": "[0-9]{13}|[A-Z]{6}[0-9]{8}[HM][0-9]{3}", "br.pis": "[0-9]{11}",
    "br.titulo": "[0-9]{12}", "es.nuss": "[0-9]{11,12}", "pt.utente": "[0-9]{9}",
    "kz.iin": "[0-9]{12}", "uz.pinfl": "[3-6][0-9]{13}", "by.number": "[1-6][0-9]{6}[A-Z][0-9]{3}[A-Z]{2}[0-9]",
    "ru.policy": "[0-9]{16}", "ua.unzr": "(?:19|20)[0-9]{11}", "eg.number": "[23][0-9]{13}", "gt.dpi": "[1-9][0-9]{12}",
    "sv.dui": "[0-9]{9}", "in_.uan": "1[0-9]{11}", "in_.abha": "[0-9]{14}", "ke.pin": "[AP][0-9]{9}[A-Z]",
    "us.alien": "A?[0-9]{8,9}",
    "ca.phn": "[0-9]{9,10}", "jp.pension": "[0-9]{10}", "jp.residence": "[A-Z]{2}[0-9]{8}[A-Z]{2}",
    "tw.residence": "[A-Z][A-D89][0-9]{8}",
    "member": "[A-Z]{1,4}[0-9]{8,14}(?:[A-Z][0-9]{1,2})?",
    "mz.nuit": "[0-9]{9}", "br.cns": "[1-9][0-9]{14}", "tr.vkn": "[0-9]{10}", "pe.ruc": "[0-9]{8,13}",
    "ve.tax": "[VEJPG][0-9]{9}",
}  # fmt: skip


def _has_shape(form: str) -> Callable[[str], bool]:
    compiled = LatePattern(form)
    return lambda value: compiled.compiled.fullmatch(value) is not None


_OWN: Final[dict[str, Callable[[str], bool]]] = {
    "tr": partial(_is_standard, "tr.tckimlik"), "pix": partial(_is_standard, "br.cpf"), "tw": _is_taiwanese,
    "hk": _is_hong_kong, "sg": _is_singaporean, "ru.snils": _is_snils, "hu": _is_hungarian, "medicare": _is_medicare,
    "medicare_card": _is_medicare, "health": _is_any, "fr.cni": _is_any, "social": _is_social,
    "any_social": _is_any_social, "nif": _is_nif, "any": _is_any, "any_tax": _is_any_tax, "uy": _is_uruguayan,
    **{module: _has_shape(form) for module, form in _SHAPES.items()},
}  # fmt: skip


# Numbers without a check digit, and those of firms, count right behind their label alone.
_WITHOUT_CHECKSUM = frozenset(
    re.findall(
        r"\S+",
        "health any fr.cni any_tax any_social"
        " medicare medicare_card uy id.nik my.nric pk.cnic in_.pan mx.rfc jp.in_ eu.vat br.cnpj"
        " au.abn it.iva pl.nip ch.uid co.nit",
    )
).union(_SHAPES)


# Of these a form of as many characters is enough behind other words too: "NIK KTP pelanggan …".
_LONG = 11
_LONG_FORMS = frozenset({"id.nik", "my.nric", "pk.cnic", "jp.in_", "br.cnpj"}).union(_SHAPES) - {"member", "cedula"}

# Labels that mean one number, and its form: a mistyped check digit makes it no less a person's.
_FORMS: Final = {
    module: re.compile(form)
    for module, form in {
        "fr.cni": "(?=(?:[A-Z]*[0-9]){2})[A-Z0-9]{9}", "ar.cuit": "2[0347][0-9]{9}", "au.tfn": "[0-9]{8,9}",
        "be.nn": "[0-9]{11}", "bg.egn": "[0-9]{10}",
        "br.cpf": "[0-9]{11}",
        "ch.ssn": "756[0-9]{10}", "cn.ric": "[1-9][0-9]{16}[0-9X]", "cz.rc": "[0-9]{9,10}", "dk.cpr": "[0-3][0-9]{9}",
        "ee.ik": "[1-6][0-9]{10}", "es.dni": "[0-9]{8}[A-Z]?|0[0-9]{12}", "es.nie": "[XYZ][0-9]{7}[A-Z]",
        "fi.hetu": "[0-9]{6}[A+]?[0-9]{3}[0-9A-Y]",
        "fr.nir": "[12][0-9]{12}(?:[0-9]{2})?", "fr.nif": "[0-3][0-9]{12}",
        "hk": r"[A-Z]{1,2}[0-9]{6}\(?[0-9A]\)?", "hu.anum": "8[0-9]{9}",
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
    }.items()
}  # fmt: skip


# Forms with their signs, where the digits alone would be any number.
_WRITTEN: Final = {
    module: re.compile(form)
    for module, form in {
        "cl.rut": r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]",
        "br.cnpj": r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}", "pl.nip": "[0-9]{3}-[0-9]{3}-[0-9]{2}-[0-9]{2}",
        "nz.ird": "[0-9]{2,3}-[0-9]{3}-[0-9]{3}", "co.nit": r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]",
        "uy": r"[0-9]\.[0-9]{3}\.[0-9]{3}-[0-9]", "de.stnr": "[0-9]{2,3}/[0-9]{3,4}/[0-9]{4,5}",
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
    _detector("national_id", "NATIONAL_ID", 28, _PERSONAL),
    _detector("tax_id", "TAX_ID", 29, _TAX),
)
