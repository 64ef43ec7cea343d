"""A labelled corpus of personal and ordinary texts, made by templates from a fixed seed; as a program, it prints precision and recall.

Each personal text holds one value of a type, with a valid check digit where the type has one, in a sentence, form, log line or
document of some trade. Ordinary texts hold numbers and words that look like personal data and are not.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple

from comity.core.redaction import Vault, redact_text, redact_value
from comity.core.redaction.checksums import IBAN_CHARS, is_luhn, is_nhs_number, is_routing_number

SEED = 13
PER_TYPE = 80
ORDINARY = 2400


class Personal(NamedTuple):
    """One text, or document, with one value of a type in it."""

    type: str
    text: Any
    value: str


Make = Callable[[random.Random], str]


def digits(rng: random.Random, count: int, first: str = "0123456789") -> str:
    return rng.choice(first) + "".join(rng.choice("0123456789") for _ in range(count - 1))


def grouped(number: str, *sizes: int, by: str = " ") -> str:
    parts, at = [], 0
    for size in sizes:
        parts.append(number[at : at + size])
        at += size
    return by.join(parts)


def until(rng: random.Random, make: Make, is_valid: Callable[[str], bool]) -> str:
    while True:
        value = make(rng)
        if is_valid(value):
            return value


FIRST = [
    "ann",
    "bob",
    "carla",
    "dmitri",
    "eva",
    "farid",
    "grace",
    "hugo",
    "ines",
    "jan",
    "kemal",
    "lucia",
    "marek",
    "nora",
    "omar",
    "petra",
    "quinn",
    "rosa",
    "sven",
    "tara",
]
LAST = [
    "lee",
    "smith",
    "garcia",
    "novak",
    "weber",
    "rossi",
    "kowalski",
    "dubois",
    "tanaka",
    "silva",
    "petrov",
    "ozturk",
    "larsen",
    "murphy",
    "haddad",
]
DOMAIN = [
    "example.com",
    "example.org",
    "mail.example.net",
    "firma-beispiel.de",
    "exemple.fr",
    "ejemplo.es",
    "esempio.it",
    "przyklad.pl",
    "post.example.co.uk",
]


def email(rng: random.Random) -> str:
    first, last, domain = rng.choice(FIRST), rng.choice(LAST), rng.choice(DOMAIN)
    local = rng.choice(
        [f"{first}.{last}", f"{first}{rng.randint(1, 99)}", f"{first}_{last}", f"{first[0]}{last}", f"{first}+{last}"]
    )
    plain = f"{local}@{domain}"
    match rng.randint(0, 13):
        case 0:
            return plain.replace("@", "＠")
        case 1:
            return plain[:2] + rng.choice("\u200b\u200d\u00ad\u2060\ufeff") + plain[2:]
        case 2:
            return plain.replace("@", " (at) ").replace(".", " (dot) ")
        case 3:
            return plain.replace("@", "[at]").replace(".", "[dot]")
        case 4:
            return plain.replace("@", rng.choice(["%40", "\\u0040", "&#64;", "&commat;", "&#x40;", "\\x40"]))
        case 5:
            return rng.choice(
                ["иван.петров@почта.рф", "анна@пример.рф", "用户@例子.中国", "νίκος@παράδειγμα.ελ", "мария.иванова@example.com"]
            )
        case 6:
            return "".join(chr(ord(char) + 0xFEE0) if char.isalnum() else char for char in plain)
        case _:
            return plain.upper() if rng.random() < 0.1 else plain


PHONES: tuple[tuple[str, ...], ...] = (  # labels, then forms
    (
        "phone|Phone:|Tel.|mobile number|call me at|my cell phone is|Phone number -|reach us on",
        "{2}##-###-####|({2}##) ###-####|{2}##.###.####|{2}#########",
    ),
    ("Tel|phone|Mobile no.|ring me on", "020 7946 0###|07700 900###|01632 960 ###|0161 496 0###"),
    (
        "Telefon|Tel.:|Handy|Mobil:|Rufnummer|Festnetz",
        "089 / ### ## ##|0171 #######|030 ########|0151/########|040-#######|(089) ######",
    ),
    ("Tél.|Téléphone :|portable", "01 ## ## ## ##|06 ## ## ## ##|06.##.##.##.##|07########"),
    ("Teléfono|móvil:|Tel.", "6## ### ###|91 ### ## ##|6## ## ## ##"),
    ("telefono|cellulare|Tel.", "06 ########|3## #######|02 ########"),
    ("telefone|celular|Tel.:", "(11) 9####-####|(21) 9####-####|11 9#### ####"),
    ("手机|手机号：|电话|联系电话", "138########|139 #### ####|010-########"),
    ("電話|携帯|電話番号:", "03-####-####|090-####-####|080########"),
    ("тел.|телефон:|моб.", "8 (495) ###-##-##|8 912 ### ## ##|8-916-###-##-##"),
    ("telefon|tel. kom.|komórka:", "6## ### ###|22 ### ## ##|5########"),
    ("전화|휴대폰:|연락처", "010-####-####|02-###-####"),
    ("मोबाइल|mobile no|phone", "98### #####|97########"),
    (
        "hotline for you, at|contact|WhatsApp|fax:|home",
        "+49 151 ########|+1 416 ### ####|+33 6 ## ## ## ##|+44 20 7946 0###|+91 98### #####|+55 11 9####-####",
    ),
)
SCRIPTS = ("٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９", "۰۱۲۳۴۵۶۷۸۹")


def phone(rng: random.Random) -> tuple[str, str]:
    labels, forms = rng.choice(PHONES)
    form = rng.choice(forms.split("|")).replace("{2}", rng.choice("23456789"))
    number = re.sub("#", lambda _: rng.choice("0123456789"), form.replace("{2}", "4"))
    if rng.random() < 0.08:
        number = number.translate(str.maketrans("0123456789", rng.choice(SCRIPTS)))
    return rng.choice(labels.split("|")), number


def card(rng: random.Random) -> str:
    number = until(rng, lambda rng: _filled(rng, rng.choice(["4###", "51##", "55##", "6011"]) + "#" * 12), is_luhn)
    joint = rng.choice(["", " ", "-", "\n", "_", "\n- ", " ", "", ".", "/"])
    return grouped(number, 4, 4, 4, 4, by=joint)


def iban(rng: random.Random) -> str:
    country = rng.choice(["DE", "NL", "ES", "BE", "AT", "PL", "DK", "FI", "PT", "CH"])
    bank = "".join(rng.choice("ABCDEFGH") for _ in range(4)) if country == "NL" else ""
    account = bank + digits(rng, IBAN_CHARS[country] - 4 - len(bank))
    check = 98 - int("".join(str(int(char, 36)) for char in f"{account}{country}00")) % 97
    number = f"{country}{check:02}{account}"
    return rng.choice([number, " ".join(number[at : at + 4] for at in range(0, len(number), 4))])


def standard(module: str, form: str) -> Make:
    def make(rng: random.Random) -> str:
        checker = import_module(f"stdnum.{module}")
        return until(rng, lambda rng: _filled(rng, form), checker.is_valid)

    return make


def _filled(rng: random.Random, form: str) -> str:
    date = f"{rng.randint(50, 99)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}"
    form = form.replace("YYMMDD", date).replace("DDMMYY", date[4:] + date[2:4] + date[:2])
    return re.sub("[#@]", lambda match: rng.choice("0123456789" if match.group() == "#" else "ABCDEFGHJKLMNPQRSTUVWXYZ"), form)


NATIONAL: dict[str, tuple[str, str, str]] = {  # labels, stdnum module, form
    "pl": ("PESEL|pesel:|numer PESEL", "pl.pesel", "YYMMDD#####"),
    "es": ("DNI|DNI:", "es.dni", "########@"),
    "nie": ("NIE|N.I.E.", "es.nie", "X#######@"),
    "nl": ("BSN|burgerservicenummer", "nl.bsn", "1########"),
    "se": ("personnummer|Personnummer:", "se.personnummer", "YYMMDD-####"),
    "fi": ("henkilötunnus|HETU", "fi.hetu", "DDMMYY-###@"),
    "dk": ("CPR|CPR-nr.", "dk.cpr", "DDMMYY-####"),
    "no": ("fødselsnummer|fnr", "no.fodselsnummer", "DDMMYY#####"),
    "ch": ("AHV|AHV-Nr.", "ch.ssn", "756.####.####.##"),
    "be": ("rijksregisternummer|numéro national", "be.nn", "YYMMDD#####"),
    "fr": ("NIR|numéro de sécurité sociale :", "fr.nir", "1850578006###" + "##"),
    "ro": ("CNP|cod numeric personal", "ro.cnp", "1YYMMDD12####"),
    "bg": ("ЕГН|EGN", "bg.egn", "YYMMDD####"),
    "cz": ("rodné číslo|rodné číslo:", "cz.rc", "YYMMDD/####"),
    "hr": ("OIB|OIB:", "hr.oib", "###########"),
    "ee": ("isikukood|isikukood:", "ee.ik", "3YYMMDD####"),
    "lt": ("asmens kodas|asmens kodas:", "lt.asmens", "3YYMMDD####"),
    "gr": ("AMKA|ΑΜΚΑ", "gr.amka", "DDMMYY#####"),
    "ie": ("PPS|PPSN", "ie.pps", "#######@"),
    "tr": ("TC Kimlik No|TCKN", "tr.tckimlik", "1##########"),
    "in": ("Aadhaar|aadhaar number", "in_.aadhaar", "2### #### ####"),
    "cn": ("身份证号|身份证号码：", "cn.ric", "11010519YYMMDD####"),
    "kr": ("주민등록번호|RRN", "kr.rrn", "YYMMDD-1######"),
    "za": ("South African ID|SA ID", "za.idnr", "YYMMDD####08#"),
    "mx": ("CURP|curp:", "mx.curp", "HEGGYYMMDDMVZRRL0#"),
    "cl": ("RUT|RUT:", "cl.rut", "1#.###.###-#"),
    "th": ("เลขประจำตัวประชาชน|Thai ID", "th.pin", "1############"),
    "il": ("Teudat Zehut|Israeli ID", "il.idnr", "#########"),
    "id": ("NIK|KTP", "id.nik", "320101YYMMDD####".replace("YYMMDD", "120590")),
    "is": ("kennitala|kennitala:", "is_.kennitala", "DDMMYY-###9"),
    "pk": ("CNIC|CNIC:", "pk.cnic", "42201-#######-#"),
    "my": ("MyKad|no. KP", "my.nric", "YYMMDD-14-####"),
    "si": ("EMŠO|emšo:", "si.emso", "0101006500###"),
    "ec": ("cédula|cédula:", "ec.ci", "17########"),
    "jp": ("マイナンバー|個人番号:", "jp.in_", "############"),
}
TAX: dict[str, tuple[str, str, str]] = {
    "br": ("CPF|CPF:|cpf nº", "br.cpf", "###.###.###-##"),
    "de": ("Steuer-ID|Steuer-Identifikationsnummer:|IdNr.", "de.idnr", "8##########"),
    "au": ("TFN|tax file number", "au.tfn", "### ### ###"),
    "it": ("codice fiscale|C.F.", "it.codicefiscale", "RSSMRA85T10A56##"[:15] + "@"),
    "ar": ("CUIT|CUIL", "ar.cuit", "20-########-#"),
    "pt": ("contribuinte|contribuinte:", "pt.nif", "2########"),
    "mx": ("RFC|RFC:", "mx.rfc", "GODEYYMMDDGR8"),
    "in": ("PAN|PAN card", "in_.pan", "@@@P@####@"),
    "pl": ("NIP|NIP:", "pl.nip", "###-###-##-##"),
    "ru": ("ИНН|ИНН:", "ru.inn", "50##########"),
    "nz": ("IRD|IRD number", "nz.ird", "49-###-###"),
    "gb": ("UTR|unique taxpayer reference", "gb.utr", "##########"),
    "co": ("NIT|NIT:", "co.nit", "2131234321"),
}


def _state(numbers: dict[str, tuple[str, str, str]], rng: random.Random) -> tuple[str, str]:
    labels, module, form = numbers[rng.choice(sorted(numbers))]
    return rng.choice(labels.split("|")), standard(module, form)(rng)


def labelled(labels: str, make: Make) -> Callable[[random.Random], tuple[str, str]]:
    return lambda rng: (rng.choice(labels.split("|")), make(rng))


def ssn(rng: random.Random) -> str:
    return f"{rng.randint(100, 600)}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}"


def date(rng: random.Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1930, 2012)
    return rng.choice(
        [
            f"{year}-{month:02}-{day:02}",
            f"{day:02}.{month:02}.{year}",
            f"{day:02}/{month:02}/{year}",
            f"{day} May {year}",
            f"March {day}, {year}",
        ]
    )


def street(rng: random.Random) -> str:
    number = rng.randint(1, 299)
    return rng.choice(
        [
            f"{number} Main Street",
            f"{number} Oak Avenue",
            f"{number} Baker Street, Flat 2",
            f"Hauptstraße {number}",
            f"Goethestraße {number}, 10115 Berlin",
            f"Lindenweg {number}",
            f"{number} rue de la Paix",
            f"{number}, avenue Victor Hugo",
            f"Via Roma {number}",
            f"Calle Mayor {number}",
            f"Avenida Paulista {number}",
            f"ul. Marszałkowska {number}",
            f"ул. Ленина, д. {number}",
            f"Kerkstraat {number}",
            f"Storgatan {number}",
            f"Rua Augusta {number}",
            f"P.O. Box {number}",
            f"Bahnhofstr. {number}",
            f"{number} Maple Road",
            f"Piazza Garibaldi {number}",
        ]
    )


def secret(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789") for _ in range(36)) + "a7"


def password(rng: random.Random) -> str:
    return rng.choice(FIRST).title() + rng.choice("!#_-*") + digits(rng, 3)


def bitcoin(rng: random.Random) -> str:
    payload = b"\0" + rng.randbytes(20)
    number = int.from_bytes(payload + sha256(sha256(payload).digest()).digest()[:4])
    text = ""
    while number:
        number, at = divmod(number, 58)
        text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[at] + text
    return f"1{text}"


def private_key(rng: random.Random) -> str:
    kind = rng.choice(["", "RSA ", "EC ", "OPENSSH "])
    body = "\n".join(secret(rng) for _ in range(4))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


KINDS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "EMAIL": labelled("e-mail:|mail|write to|contact|from|E-Mail|correo:|адрес|メール", email),
    "PHONE": phone,
    "CARD": labelled("card|card number:|Visa|Kreditkarte|paid with|pan:|carte", card),
    "IBAN": labelled("IBAN|account:|bank|transfer to|Konto", iban),
    "SSN": labelled("SSN|SSN:|social security number|ssn is", ssn),
    "SIN": labelled(
        "SIN|SIN:|social insurance number",
        lambda rng: until(rng, lambda rng: grouped(digits(rng, 9, "1234567"), 3, 3, 3), lambda v: is_luhn(v.replace(" ", ""))),
    ),
    "NHS": labelled("NHS number|NHS no.|NHS:", lambda rng: until(rng, lambda rng: digits(rng, 10, "4567"), is_nhs_number)),
    "NINO": labelled(
        "NI number|National Insurance no.|NINO:",
        lambda rng: f"{rng.choice(['AB', 'CE', 'JK', 'SR'])} {grouped(digits(rng, 6), 2, 2, 2)} {rng.choice('ABCD')}",
    ),
    "ROUTING": labelled(
        "routing number|ABA|routing no.", lambda rng: until(rng, lambda rng: digits(rng, 9, "01"), is_routing_number)
    ),
    "BANK_ACCOUNT": labelled(
        "account number|bank account no.|Kontonummer|acct|savings account",
        lambda rng: digits(rng, rng.randint(8, 12), "123456789"),
    ),
    "PASSPORT": labelled(
        "passport|passport number:|Reisepass|pasaporte|passport no.", lambda rng: rng.choice("CEFGHX") + digits(rng, 8)
    ),
    "DOB": labelled(
        "born|DOB|date of birth:|geboren am|Geburtsdatum|née le|fecha de nacimiento:|nato il|data urodzenia|дата рождения:|birthday",
        date,
    ),
    "NATIONAL_ID": lambda rng: _state(NATIONAL, rng),
    "TAX_ID": lambda rng: _state(TAX, rng),
    "ADDRESS": labelled("lives at|address:|ship to|Anschrift:|adresse :|dirección:|at", street),
    "IP": labelled(
        "login from|client ip|remote|ip:|host",
        lambda rng: (
            f"{rng.choice([10, 81, 93, 172, 203])}.{rng.randint(16, 240)}.{rng.randint(11, 240)}.{rng.randint(11, 250)}"
        ),
    ),
    "MAC": labelled("mac|device|MAC address", lambda rng: ":".join(f"{rng.randint(0, 255):02x}" for _ in range(5)) + ":a7"),
    "PASSWORD": labelled(
        "password:|Password =|pwd=|my password is|Passwort:|mot de passe :|contraseña:|пароль:|密码：", password
    ),
    "API_KEY": labelled(
        "key|use|export KEY=|token",
        lambda rng: rng.choice(["sk-proj-", "ghp_", "sk_live_", "glpat-", "xoxb-", "hf_"]) + secret(rng),
    ),
    "ACCESS_TOKEN": labelled("Authorization: Bearer|Bearer|authorization: bearer", secret),
    "SWIFT": labelled(
        "SWIFT|SWIFT code:|BIC|BIC:|SWIFT/BIC",
        lambda rng: (
            _filled(rng, "@@@@" + rng.choice(["DE", "FR", "GB", "US", "ES", "NL", "CH"]) + "@@")
            + rng.choice(["", "XXX", "500"])
        ),
    ),
    "EIN": labelled("EIN|EIN:|employer identification number|federal tax ID", lambda rng: _filled(rng, "12-#######")),
    "ITIN": labelled("ITIN|ITIN:|individual taxpayer identification number", lambda rng: _filled(rng, "9##-7#-####")),
    "LICENCE": labelled(
        "driver's license|driving licence no.|DL number|Führerschein|permis de conduire", lambda rng: _filled(rng, "@#######")
    ),
    "POSTAL_CODE": labelled(
        "postcode|post code:|postal code", lambda rng: _filled(rng, rng.choice(["SW#A #AA", "M# #BB", "K#A 0B#", "EC#V #AA"]))
    ),
    "USERNAME": labelled(
        "username:|user name:|username =|login name:", lambda rng: rng.choice(FIRST) + rng.choice(LAST) + digits(rng, 2)
    ),
    "BTC": labelled("wallet|pay to|BTC address:|send it to", bitcoin),
    "ETH": labelled(
        "wallet|pay to|ETH address:|send it to", lambda rng: "0x" + "".join(rng.choice("0123456789abcdef") for _ in range(40))
    ),
    "PRIVATE_KEY": labelled("key:|here it is:|the deploy key", private_key),
    "CREDENTIAL": labelled(
        "connect to|DATABASE_URL=|dsn", lambda rng: f"postgres://{rng.choice(FIRST)}:{password(rng)}@db.example.com/app"
    ),
}
SHAPES = (
    "{0} {1}",
    "{0} {1}.",
    "Please note: {0} {1}, thanks.",
    "The customer wrote: {0} {1}",
    "2024-05-03 INFO {0} {1}",
    "Hi team, {0} {1}\nBest, Ann",
    "| {0} | {1} |",
    "* {0} {1}\n* next",
    "Patient admitted at 10:15. {0} {1}",
    "Ticket 4711: {0} {1}",
    '"{0} {1}"',
    "Invoice of May; {0} {1} (checked)",
)
KEYS = {
    "EMAIL": "email",
    "IBAN": "iban",
    "SSN": "ssn",
    "PASSPORT": "passport_number",
    "PASSWORD": "password",
    "DOB": "date_of_birth",
    "CARD": "cardNumber",
}


def personal(per_type: int = PER_TYPE) -> Iterator[Personal]:
    """Yield the personal texts."""
    for kind, make in KINDS.items():
        rng = random.Random(f"{SEED} {kind}")
        for number in range(per_type):
            label, value = make(rng)
            if kind in KEYS and number % 9 == 0:
                yield Personal(kind, {"id": number, "person": {KEYS[kind]: value}, "tags": ["a", "b"]}, value)
            else:
                yield Personal(kind, rng.choice(SHAPES).format(label, value), value)


def ordinary(count: int = ORDINARY) -> Iterator[Any]:
    """Yield texts and documents that hold nothing personal."""
    rng = random.Random(f"{SEED} ordinary")
    seen = set()
    while len(seen) < count:
        text = rng.choice(FRAMES).format(_business(rng))
        if text not in seen:
            seen.add(text)
            yield json.loads(text) if text.startswith("{") else text


def _business(rng: random.Random) -> str:
    big = rng.choice([digits(rng, rng.randint(6, 9), "123456789"), f"{rng.randint(1, 99)}{rng.randint(100, 999)}000"])
    fields = {
        "big": big,
        "n": str(rng.randint(2, 900)),
        "year": str(rng.randint(2015, 2030)),
        "five": digits(rng, 5, "123456789"),
        "six": digits(rng, 6, "123456789"),
        "things": rng.choice(
            [
                "users",
                "calls",
                "customers",
                "messages",
                "rows",
                "files",
                "visitors",
                "subscribers",
                "downloads",
                "units",
                "requests",
                "orders",
            ]
        ),
        "month": rng.choice(["January", "March", "April", "June", "July", "September", "November"]),
        "v": ".".join(str(rng.randint(0, 12)) for _ in range(4)),
        "w": ".".join(str(rng.randint(0, 12)) for _ in range(4)),
        "noun": rng.choice(["Office supplies", "Travel", "Rent", "Wages", "Büromaterial", "Marketing"]),
    }
    return rng.choice(BUSINESS).format(**fields)


FRAMES = ("{0}", "{0}", "{0}.", "Minutes: {0}", "- {0}\n- done", "Q3 review: {0}; see the appendix.", "> {0}", "{0}\nRegards")
BUSINESS = (
    "Reach {big} {things} by {month}",
    "The hotline handled {big} calls",
    "We called {big} {things} in {year}",
    "call volume {big} in {month}",
    "{big} text messages were sent",
    "mobile {big} {things}, desktop {n}",
    "phone calls fell to {big}",
    "SMS {big} {things}",
    "ring buffer of {big} bytes",
    "contact {big} {things} per year",
    "The campaign will reach {big} {things}",
    "cell {big} of the matrix",
    "account {six} {noun}",
    "ledger account {six} {noun}",
    "GL account {six}: {noun}",
    "konto {six} {noun}",
    "cost center {six}, account {six}",
    "{n} Hour Drive",
    "{n} Way Street parking",
    "{n} Day Drive test",
    "birth rate {year}-01-01 to {year}-12-31: 1.{n}",
    "born in {year}, the company has {n} people",
    "upgrade from {v} to {w}",
    "version {v} released",
    "firmware {v} requires driver {w}",
    "netmask 255.255.255.240",
    "subnet 10.0.{n}.0/24",
    "see section {v}",
    "swift code PACKAGES are cached",
    "SWIFT PROGRAMS for {year}",
    "sin {n} rad is 0.{n}",
    "sin {big} rad",
    "zip archive {five} files",
    "zip {five} photos",
    "postal strike in {year}",
    "order {big} shipped in {month}",
    "invoice {big} of {year}",
    "tracking number {big}",
    "batch {big}, lot {six}",
    "total {big} EUR",
    "revenue of {big} in {year}",
    "password must be changed every {n} days",
    "the password is required",
    "password reset for {n} {things}",
    "token count {big}",
    "API key rotation every {n} days",
    "secret santa {year}",
    "passport control took {n} minutes",
    "driving licence fees rose in {year}",
    "social security spending {big} million",
    "tax id column has {big} rows",
    "IBAN has up to 34 characters",
    "card {n} of {n}",
    "{n} cards and {big} chips",
    "pan {n} degrees left",
    "nit {n}",
    "PIN {n} of the connector",
    "born digital {year}",
    "{big} births in {year}",
    "commit 3f2a9b8c7d6e of {month}",
    "latency {n} ms for {big} {things}",
    "range {big}-{big}",
    "between {big} and {big} {things}",
    "grew {n} % to {big}",
    "epoch 17{big}",
    "population {big} in {year}",
    "temperature {n} °C",
    "meeting at {n} King",
    "look at example.com for {things}",
    "{n} @ 4.50 each",
    "if x > {big}: return {n}",
    "x = {big} * {n}",
    "SELECT * FROM calls LIMIT {n}",
    "git@github.com:org/repo.git",
    "from {big} to {big} calls",
    "calls: {big}",
    "text: {big} words",
    "contacts: {big}",
    "hotline: {big} calls in {month}",
    "reach: {big}",
    "tel aviv sold {big} units",
    "phone models: {n}",
    "Umsatz {year}: {big} €",
    "Le chiffre d'affaires est de {big} euros",
    "La población es de {big} habitantes",
    "Liczba klientów: {big}",
    "население {big} человек",
    "人口 {big} 人",
    "売上 {big} 円",
    "ISBN 978-3-16-148410-0",
    "part no. {six}-{n}",
    "gate {n}, flight LH{n}",
    "dose {n} mg, batch {six}",
    "kWh {big}",
    "GPS 52.5{n}, 13.4{n}",
    "score {n}:{n}",
    "room {n}, floor {n}",
)
DOCUMENTS: tuple[Any, ...] = tuple(
    {key: value}
    for key in re.findall(
        r"\w+",
        "reach phone_calls account ring cell sms mobile_users tel_latency_us born konto contacts hotline text_count call_count"
        " card_count zip_files births passwords tokens swift_modules",
    )
    for value in (2345678, 25000000, 400100, 19900412, 4155551)
)


class Score(NamedTuple):
    """What was found of the personal texts of each type, and what was changed of the ordinary ones."""

    found: Counter[str]
    made: Counter[str]
    missed: dict[str, list[Any]]
    changed: list[Any]
    ordinary: int


def score(per_type: int = PER_TYPE, ordinary_count: int = ORDINARY) -> Score:
    """Redact the corpus and count."""
    found, made, missed = Counter[str](), Counter[str](), defaultdict[str, list[Any]](list)
    for row in personal(per_type):
        made[row.type] += 1
        redacted, kinds = _redacted(row.text)
        core = row.value.partition("://")[2].partition("@")[0] if row.type == "CREDENTIAL" else row.value
        if row.type in kinds and core not in redacted:
            found[row.type] += 1
        else:
            missed[row.type].append(row.text)
    texts = [*ordinary(ordinary_count), *DOCUMENTS]
    changed = [text for text in texts if _redacted(text)[1]]
    return Score(found, made, dict(missed), changed, len(texts))


def _redacted(text: Any) -> tuple[str, set[str]]:
    vault = Vault("kqzmtwbf")
    if isinstance(text, str):
        redaction = redact_text(text, vault)
        return redaction.text, {finding.type for finding in redaction.found}
    document = redact_value(text, vault)
    return json.dumps(document.value, ensure_ascii=False), {finding.type for finding in document.found}


def main() -> None:
    result = score()
    print(f"{sum(result.made.values())} personal texts, {result.ordinary} ordinary ones")
    for kind, made in sorted(result.made.items()):
        print(f"{kind:14} recall {result.found[kind] / made:7.1%}  ({result.found[kind]} of {made})")
    print(
        f"{'ordinary':14} unchanged {1 - len(result.changed) / result.ordinary:.2%}  ({len(result.changed)} of {result.ordinary} changed)"
    )
    if "-v" in sys.argv:
        for kind, texts in result.missed.items():
            for text in texts:
                print("missed", kind, repr(text))
        for text in result.changed:
            print("changed", repr(text), _redacted(text)[0])


if __name__ == "__main__":
    main()
