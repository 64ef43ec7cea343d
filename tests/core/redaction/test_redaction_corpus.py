"""The labelled corpus: what is found of each type, and that ordinary texts stay as they are."""

from __future__ import annotations

import msgspec
import pytest
from pii_corpus import PER_TYPE, Score, ordinary, personal, score
from redaction_corpus import new_vault

from comity.core.redaction import may_hold_personal_data, redact_text, redact_value, restore_value
from comity.core.redaction.table import DETECTORS

RECALL_MIN = 0.97
PRECISION_MIN = 0.995


@pytest.fixture(scope="module")
def result() -> Score:
    return score(per_type=40, ordinary_count=900)


def test_the_corpus_has_at_least_three_thousand_texts_half_of_them_ordinary():
    assert len(list(personal())) + len(list(ordinary())) >= 3000
    assert len(list(ordinary())) >= len(list(personal(PER_TYPE)))


def test_the_corpus_has_texts_of_every_declared_type():
    assert {row.type for row in personal(1)} == {detector.type for detector in DETECTORS}


def test_nearly_every_value_of_every_type_is_found(result):
    recall = {kind: result.found[kind] / made for kind, made in result.made.items()}
    assert {kind: (share, result.missed[kind]) for kind, share in recall.items() if share < RECALL_MIN} == {}


def test_ordinary_texts_and_documents_are_left_alone(result):
    assert 1 - len(result.changed) / result.ordinary >= PRECISION_MIN, result.changed


LEFT_ALONE = [
    "Text 12345 to vote",
    "Cell B12 contains 4155551234",
    "Contact rate 12.5% of 2500000 leads",
    "phone sales hit 4155551234 units",
    "Debit account 12000000, credit account 40000000",
    "account 12345678 has 30 followers",
    "Python 3.11.4.1",
    "routing 021000021 packets",
    "Birthday sale 2024-05-01",
    "birthday promo from 01.05.2024 until 31.05.2024",
    "wildcard mask 0.0.0.255",
    "zip code lookup handles 90210 requests",
    "api_key: YOUR_API_KEY",
    "Bearer authentication is used for all requests",
    "def f(password: str) -> None:",
    "password = getpass.getpass()",
    "dGhpcyBpcyBub3QgYW4gZW1haWw=",
    "cost at scale dot product",
    "mobile 4000000000 active users",
    "VAT 123456789 EUR",
    "5 Star Court ruling",
    "project born on 2019-05-04 has shipped",
    "born 2020-01-01 project kickoff",
    "server 2.4.57.1 release notes",
    "id card 12345678 printed",
    "PIN 4711 connector",
    "card deck 52 cards 5500000000000004 shuffles",
    "amqp://username:password@broker:5672/vhost",
    "the worker was born at 2024-11-02 10:00:01 and died at 10:02",
    "212-555-0188 is the part number of the hinge",
    "Kennwort: unbekannt",
    "Password: see the wiki",
    "mot de passe : voir annexe",
    "send it to 0xffffffffffffffffffffffffffffffffffffffff",
    "Grid A B C D E F G H 1 2 3 4 5 6 7 8",
    "1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7",
    "a + b = c + d, x y z",
    "U.S.A. and e.t.c. in 1987",
    "area of 4⁶ m², CO₂ 123",
    "born digital in the first of May 2001 release",
    "swift: pack it in",
    "Parole: amore mio",
    "kata kunci: pemasaran2024",
    "plan ID 48213377",
    "Patient 482133 enrolled",
    "Ваш тариф: 2345678",
]
HIDDEN = [
    ("EMAIL", "YW5uQGV4YW1wbGUuY29t"),
    ("POSTAL_CODE", "postcode EC1V 9AA"),
    ("USERNAME", "| username: | annlee85 |"),
    ("PASSWORD", "PIN 4711"),
    ("EMAIL", "john dot smith at example dot com"),
    ("EMAIL", "ann @ example.com"),
    ("PHONE", "هاتف ٠٥٠١٢٣٤٥٦٧"),
    ("PHONE", "我的手机号是13812345678"),
    ("PHONE", "Meine Nummer: 0171 2345678"),
    ("CARD", "Card no 4111-1111\n1111-1111"),
    ("CARD", "4111111111111111.0"),
    ("TAX_ID", "O CPF do cliente é 529.982.247-25"),
    ("NATIONAL_ID", "HKID A123456(3)"),
    ("NATIONAL_ID", "NRIC S1234567D"),
    ("NATIONAL_ID", "СНИЛС 112-233-445 95"),
    ("ADDRESS", "Unter den Linden 77, 10117 Berlin"),
    ("ADDRESS", "北京市朝阳区建国路88号"),
    ("ADDRESS", "Невский проспект, 28"),
    ("PASSWORD", "PIN: 4821"),
    ("CREDENTIAL", "Server=db;User Id=sa;Password=P4ssw0rd;"),
    ("DOB", "出生日期：1990年7月14日"),
    ("DOB", "DOB (dd/mm/yyyy): 12/03/1985"),
    (
        "PRIVATE_KEY",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA04up8hoqzS1\niWlX9HNavcydATJc1f0Dpz\n-----END RSA PRIVATE KEY-----",
    ),
    ("ACCESS_TOKEN", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ("API_KEY", "x-api-key: 4f3c2b1a0d9e8f7a6b5c"),
    ("TAX_ID", "NIF 123456789"),
    ("NATIONAL_ID", "JMBG 0101006500006"),
    ("NATIONAL_ID", "Sozialversicherungsnummer 15 070649 C 103"),
    ("NATIONAL_ID", "PESEL klienta 02070803628"),
    ("ACCESS_TOKEN", "Authorization: Bearer abcdefghijklmnop.qrstuv"),
    ("PRIVATE_KEY", "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA7bq2x1ZcVb8b"),
    ("PASSWORD", "Das Passwort lautet: Xy7$kk"),
    ("EMAIL", "mail :: a n n a . l i n d @ w e b . d e"),
    ("ADDRESS", "wohnhaft L i n d e n s t r a ß e 8"),
    ("ADDRESS", "wohnt in der Bergstr.7, 80331 München"),
    ("ADDRESS", "she lives at twenty-two Maple Road"),
    ("TAX_ID", "c.p.f. 529.982.247-25"),
    ("DOB", "D O B : 14/02/1991"),
    ("DOB", "born on the third of May nineteen seventy-two"),
    ("DOB", "geboren am einundzwanzigsten Juni 1968"),
    ("DOB", "PID|1||77120^^^KH||DOE^JO||19640229|M"),
    ("PHONE", "tel ⁰³⁰ ¹²³⁴⁵⁶⁷⁸"),
    ("PHONE", "my number is six one seven, 5 five 5, oh one four two"),
    ("PASSWORD", 'Passwort: "lachs birne tango wolke"'),
    ("PASSWORD", "pa55w0rd = Mango!77"),
    ("PASSWORD", "password for the guest wifi: Mango!77"),
    ("PASSWORD", "登录密码：Mango!77"),
    ("ACCESS_TOKEN", "eyJhbGciOiJIUzI1NiJ9 . eyJzdWIiOiIxMjM0NTY3ODkwIn0 . dozjgNryP4J3jVmNHl0w5N"),
    ("SWIFT", "BIC: geba be bb 36a"),
    ("SWIFT", "<BICFI>GEBABEBB36A</BICFI>"),
    ("IP", "client ip: 0xC0A80A21"),
    ("CARD", "bmV1ZSBLYXJ0ZSA0MTExMTExMTExMTExMTEx"),
    ("CARD", "CVV2: 318"),
    ("LICENCE", "차량번호 12가3456"),
    ("LICENCE", "Kontrollschild ZH 482133"),
    ("NATIONAL_ID", "insurance member id XKA482133771"),
    ("NATIONAL_ID", "rappelé au guichet, 2 71 04 75 613 955 44, merci"),
    ("NATIONAL_ID", "notiert auf dem Zettel: 756.3985.4395.60"),
    ("NATIONAL_ID", "hij gaf 86.04.11-713.15 door"),
    ("NATIONAL_ID", "note: 110105198405166738"),
    ("TAX_ID", "ha lasciato BNCLRA84D58H501H in portineria"),
    ("TAX_ID", "anotei 542.546.277-85 no bloco"),
    ("NATIONAL_ID", "PID|1||4471902887^^^HOSP^MR||ROE^ANN||"),
    ("PRIVATE_KEY", "the paper under the lid says KyYnN5bzEowBBx6bYgWUrATicxvhKAdybounBqg7E8mC419NMXDy"),
    ("API_KEY", "апи-ключ 9c1f7d20ab34e5680f1d"),
    ("API_KEY", "clé d'API : 9c1f7d20ab34e5680f1d"),
    ("PASSWORD", "Use the passphrase, with spaces and no capitals: otter candle seventeen maple riddle"),
    ("PRIVATE_KEY", f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQIBADANBgkqhkiG9w0BAQE7' * 40}"),
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_a_text_that_only_looks_personal_is_left_alone(text):
    assert redact_text(text, new_vault()).text == text


@pytest.mark.parametrize(
    "document",
    [
        {"dob": {"meaning": "day of build", "value": "2024-11-02"}},
        {"street": "closed", "number": "14 cars"},
        {"street": "Main", "lanes": 4},
        {"dob": 7},
    ],
    ids=str,
)
def test_a_document_that_only_looks_personal_is_left_alone(document):
    assert redact_value(document, new_vault()).value == document


def test_every_line_of_a_private_key_in_a_document_within_a_document_is_hidden():
    lines = ["MHcCAQEEIFMSqFUDS7uFg74SVNo", "AwEHoUQDQgAEGGxO955W13YUo87", "YlkFH6gQDpVxjq7s0Q=="]
    text = "\\n".join(("-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----"))
    hidden = redact_text(text, new_vault()).text
    assert not any(line in hidden for line in lines)


@pytest.mark.parametrize(("kind", "text"), HIDDEN, ids=str)
def test_a_value_is_found_in_whatever_form_it_is_written(kind, text):
    assert kind in {finding.type for finding in redact_text(text, new_vault()).found}


@pytest.mark.parametrize(
    "document",
    [
        {"card": ["4111", "1111", "1111", "1111"]},
        {"card": [4111, 1111, 1111, 1111]},
        {"card": 4111111111111111.0},
        {"dob": {"day": 3, "month": 5, "year": 1984}},
        {"birthDay": 3, "birthMonth": "May", "birthYear": 1984},
        {"steuerId": "86095742719"},
        {"strasse": "Lindenweg", "hausnummer": "14", "ort": "Ulm"},
        {"streetName": "Quay Row", "house_no": 8},
        {"dob": 291600000},
        {"birthDate": -126230400000},
        {"s_s_n": "219099999"},
        {"documento": {"tipo": "CPF", "numero": "529.982.247-25"}},
        {"home_address": "8 Quay Row\nBristol\nBS1 4RB"},
        {"headers": {"Authorization": "Bearer abcdefghijklmnop.qrstuv"}},
    ],
    ids=str,
)
def test_a_value_that_is_split_over_a_document_is_hidden_and_comes_back(document):
    vault = new_vault()
    redaction = redact_value(document, vault)
    assert redaction.found
    assert may_hold_personal_data(msgspec.json.encode(document))
    assert restore_value(redaction.value, vault) == document
