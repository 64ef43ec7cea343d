"""A labelled value is found whichever format its label stands in, and in columns under it: labels x formats x languages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redaction_corpus import new_vault

from comity.core.redaction import StreamRedactor, redact_text, redact_value
from comity.core.redaction.columns import cells_of, open_table
from comity.core.redaction.joints import as_words, without_owners

# Kind: labels of several languages, and values.
KINDS: dict[str, tuple[list[str], list[str]]] = {
    "PHONE": (
        [
            "phone",
            "Phone number",
            "Telefon",
            "Handynummer",
            "téléphone",
            "teléfono",
            "cellulare",
            "телефон",
            "电话",
            "電話番号",
        ],
        ["0172 9876543", "415-555-0132", "2345678"],
    ),
    "DOB": (
        ["dob", "Date of birth", "Geburtsdatum", "date de naissance", "fecha de nacimiento", "дата рождения", "出生日期"],
        ["1984-05-03", "03.05.1984", "3 May 1984"],
    ),
    "SSN": (["SSN", "social security number"], ["219-09-9999", "219099999"]),
    "NATIONAL_ID": (["PESEL"], ["44051401359"]),
    "TAX_ID": (["CPF"], ["529.982.247-25", "52998224725"]),
    "PASSPORT": (["passport", "Reisepass", "passeport", "pasaporte", "паспорт", "护照"], ["C01X00T47", "533380006"]),
    "LICENCE": (["driving licence", "Führerschein", "permis de conduire"], ["D1234567"]),
    "BANK_ACCOUNT": (["account number", "Kontonummer", "numéro de compte"], ["1234567890", "55779911"]),
    "ROUTING": (["routing number"], ["121000358"]),
    "SWIFT": (["BIC", "swift code"], ["DEUTDEFF500"]),
    "CARD": (["card number", "Kreditkarte"], ["4111111111111111", "4111-11111111-1111"]),
    "PASSWORD": (
        ["password", "Passwort", "mot de passe", "contraseña", "senha", "пароль", "密码", "パスワード", "pass", "pwd"],
        ["hunter2!", "Tulpe!77"],
    ),
    "USERNAME": (["username", "Benutzername", "gebruikersnaam", "логин", "用户名"], ["kim84", "anna_k7"]),
    "API_KEY": (["api key", "client secret", "access token"], ["9fK2mQ7xTz4LpR8vWc1y"]),
    "MAC": (["mac address"], ["a45e60c27b01"]),
}
FORMATS = {
    "colon": "{L}: {V}",
    "no space": "{L}:{V}",
    "equals": "{L} = {V}",
    "quotes": '{L}: "{V}"',
    "single quotes": "{L}='{V}'",
    "arrow": "{L} -> {V}",
    "dash": "{L} - {V}",
    "bold": "**{L}:** {V}",
    "list item": "- {L}: {V}",
    "tab": "{L}\t{V}",
    "next line": "{L}:\n{V}",
    "JSON": '{"{K}": "{V}", "x": 1}',
    "escaped JSON": '{\\"{K}\\": \\"{V}\\"}',
    "camel case": '{"{C}": "{V}"}',
    "YAML": "{K}: {V}\nother: 3",
    "environment": 'export {U}="{V}"',
    "log line": "2024-05-17 10:00:01 INFO svc {K}={V} status=200",
    "XML": "<{K}>{V}</{K}>",
    "attribute": '<person {K}="{V}" id="3"/>',
    "named field": '<field name="{K}">{V}</field>',
    "cells of a page": "<td>{L}</td><td>{V}</td>",
    "keyword": "create_user(id=3, {K}='{V}')",
    "CSV": "id,name,{K},note\n1,Ann,{V},ok\n2,Bob,{V},ok",
    "quoted CSV": '"id","{L}","note"\n"1","{V}","ok"\n',
    "semicolons": "id;{L};note\n1;{V};ok\n",
    "TSV": "id\t{L}\tnote\n1\t{V}\tok\n",
    "Markdown table": "| id | {L} | note |\n|---|:--|---|\n| 1 | {V} | ok |\n| 2 | {V} | ok |",
    "aligned columns": "ID   {L}    NOTE\n1    {V}    ok\n",
    "SQL insert": "INSERT INTO users (id, {K}) VALUES (3, '{V}');",
}
DOCUMENTS = ("key", "camel", "name and value", "pair", "rows under heads", "columns and rows", "value under a key", "list")


def camel(label: str) -> str:
    first, *rest = re.split(r"[\W_]+", label.lower())
    return first + "".join(word.title() for word in rest)


def written(form: str, label: str, value: str) -> Any:
    key = re.sub(r"\W+", "_", label.lower())
    match form:
        case "key":
            return {key: value, "x": 1}
        case "camel":
            return {camel(label): value}
        case "name and value":
            return {"id": label, "value": value}
        case "pair":
            return [label, value]
        case "rows under heads":
            return [["no", label], ["x", value], ["y", value]]
        case "columns and rows":
            return {"columns": ["no", label], "rows": [[1, value], [2, value]]}
        case "value under a key":
            return {"user": {key: {"value": value}}}
        case "list":
            return {key: [value, value]}
    text = FORMATS[form].replace("{L}", label).replace("{K}", key).replace("{C}", camel(label))
    return text.replace("{U}", key.upper()).replace("{V}", value)


def left_of(form: str, label: str, value: str) -> bool:
    redacted = redact_value(written(form, label, value), new_vault()).value
    return value in json.dumps(redacted, ensure_ascii=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_found_under_each_of_its_labels_in_every_format(kind):
    labels, values = KINDS[kind]
    shown = [
        (form, label)
        for number, form in enumerate((*FORMATS, *DOCUMENTS))
        for place, label in enumerate(labels)
        if left_of(form, label, values[(number + place) % len(values)])
    ]
    # A camel-cased key has no humps in scripts without capitals, and the names of some tags are no labels.
    assert [one for one in shown if one[0] not in {"camel case", "camel"}] == []


def test_columns_without_a_name_stay_as_they_are():
    for text in (
        "id,count,total\n1,2345678,1984-05-03\n",
        "| date | amount |\n|---|---|\n| 1984-05-03 | 2345678 |\n",
        "Account,Description,Debit\n15000000,Machinery,12400\n",
        "test;pass;fail\nsuite;12;3\n",
        "birth rate,year\n1.35,2024-01-01\n",
        "phone calls,users\n2345678,1234567\n",
    ):
        assert redact_text(text, new_vault()).text == text


def test_a_table_ends_with_the_first_line_of_other_length():
    text = "no,dob\n1,1984-05-03\n\nreleased,on,2024-01-02\n2,2024-05-06\n"
    assert [text[cell.start : cell.end] for cell in cells_of(text, lambda head: head == "dob") if cell] == ["1984-05-03"]


def test_a_quoted_cell_may_hold_the_sign_that_parts_cells():
    text = 'no,"dob",x\n1,"May 3, 1984",2\n'
    assert [text[cell.start : cell.end] for cell in cells_of(text, lambda head: head == "dob") if cell] == ["May 3, 1984"]


@given(st.text(alphabet="ab,;|\t\n\"'1 -", max_size=60))
def test_cells_stand_inside_of_the_text_in_order(text):
    cells = [cell for cell in cells_of(text, lambda head: True) if cell]
    assert all(0 <= cell.start <= cell.end <= len(text) and "\n" not in text[cell.start : cell.end] for cell in cells)
    assert 0 <= open_table(text) <= len(text)


@given(
    st.sampled_from(["dob,x\n1984-05-03,1\n1985-06-04,2\n", "| no | dob |\n|--|--|\n| 1 | 1984-05-03 |\n", "Hello.\ndob;x\n1984-05-03;1\nbye\n"]),
    st.lists(st.integers(1, 9), max_size=30),
)  # fmt: skip
def test_a_stream_reads_tables_as_the_whole_text_does(text, sizes):
    stream, start, out = StreamRedactor(new_vault()), 0, ""
    for size in sizes:
        out += stream.feed(text[start : start + size])
        start += size
    assert out + stream.feed(text[start:]) + stream.finish() == redact_text(text, new_vault()).text


def test_a_long_table_is_read_whole_in_a_stream_too():
    text = "no,dob,note\n" + "".join(f"{n},1984-05-{n % 28 + 1:02d},the parcel was late\n" for n in range(80))
    stream = StreamRedactor(new_vault())
    assert "".join([stream.feed(char) for char in text]) + stream.finish() == redact_text(text, new_vault()).text


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("account_number=", "account number: "),
        ('{"accountNumber": "', '{"account Number: '),
        ("<td>Phone</td><td>", "<td>Phone: "),
        ("<ns:phone>", " phone: "),
        ("**Phone:** ", "**Phone: "),
        ("tool --account-number ", "tool account number: "),
        ("ORD-", "ORD-"),
        ("p <= ", "p <= "),
        ("phone ", "phone "),
    ],
)
def test_a_label_is_read_as_words_and_a_colon(before, words):
    assert as_words(before) == words


def test_whose_a_value_is_may_stand_between_its_label_and_the_value():
    assert list(without_owners("PIN of my card: ")) == ["PIN: "]
    assert list(without_owners("Date of birth of the pupil of 4b: ")) == []
    assert list(without_owners("Date of birth of the pupil: ")) == ["Date of birth: ", "Date: "]
    assert list(without_owners("PIN: ")) == []
    assert redact_text("The door PIN for my flat is 4829.", new_vault()).text.startswith("The door PIN for my flat is [[")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Date of birth of the apprentice: 2004-03-19", "2004-03-19"),
        ("Date de naissance de la locataire : 19/03/1984", "19/03/1984"),
        ("Data di nascita dell'apprendista: 19/03/2004", "19/03/2004"),
        ("Teléfono de la vecina de Luis: 655 120 987", "655 120 987"),
        ("Mobilnummer vom Hausmeister: 0171 3344556", "0171 3344556"),
        ("Паспорт серия и номер 46 12 553071", "46 12 553071"),
        ("Medicare beneficiary ID: 2FH5-TR4-WC18", "2FH5-TR4-WC18"),
    ],
)
def test_a_label_with_words_that_say_whose_it_is_names_the_value(text, value):
    assert value not in redact_text(text, new_vault()).text


def test_words_that_say_whose_a_number_is_make_no_label_of_any_other_word():
    for text in (
        "Date of issue of the licence: 2011-12-30",
        "number of calls of the team: 2345678",
        "Preis der Ware: 612 345 678",
    ):
        assert redact_text(text, new_vault()).text == text


def test_a_number_beside_a_thing_is_left_and_beside_the_next_label_it_is_not():
    for text in ("gear set 202-555-0143 (36 teeth)", "catalog: 555-12-3456 washer"):
        assert redact_text(text, new_vault()).text == text
    assert len(redact_text("219-09-9999 born 1984-03-12", new_vault()).found) == 2
