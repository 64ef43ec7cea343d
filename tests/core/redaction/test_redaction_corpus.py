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
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_a_text_that_only_looks_personal_is_left_alone(text):
    assert redact_text(text, new_vault()).text == text


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
