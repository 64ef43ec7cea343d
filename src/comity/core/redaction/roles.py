"""What the keys of a JSON object say of the values beside them: `{"name": "phone", "value": …}` is read as `{"phone": …}`."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from comity.core.redaction.hiding import HIDDEN
from comity.core.redaction.shapes import WALL, plain_words

# `{"name": "phone", "value": …}` and `["phone", …]` name a value as `{"phone": …}` does.
_KINDS = frozenset(re.findall(r"\w+", "type kind tipo typ art soort тип rodzaj druh slag laji 类型 種類"))
_NAMING = frozenset(
    re.findall(
        r"\w+",
        "name key label field attribute property question id title param column meaning description desc "
        "system scheme"
        " pregunta frage pergunta domanda vraag pytanie otázka fråga spørgsmål spørsmål вопрос питання nombre"
        " nome nom naam namn navn nazwa campo champ feld etiqueta libellé clave chave chiave titre titolo título"
        " название 名称",
    )
)
_NAMED = frozenset(
    re.findall(
        r"\w+",
        "value val text content answer antwort réponse respuesta resposta risposta antwoord odpowiedź odpověď svar ответ"
        " відповідь data digits old new before after previous current corrected valor valeur "
        "wert valore waarde värde verdi værdi wartość hodnota érték"
        " valoare vrijednost"
        " значение значення 值 値 값",
    )
)
_NUMBERED = frozenset(
    re.findall(r"\w+", "number no nr num nro numero número numéro nummer numer číslo cislo номер 号码 番号 번호")
)  # `{"type": "PESEL", "number": …}`, but `{"account": {"number": …}}`
_DOCUMENTS = (
    "documento?|doc|dokument[u]?|identification|identificaci[oó]n|identificação|identity|identidad|ausweis"
    "|do[ck]lad[u]?|документа?"
)
# `{"tipo_doc": "CUIT", "numero_de_documento": …}`; "type_id" is the number of a type.
_OF_DOCUMENT = re.compile(
    rf"(?:id ?|(?:{_DOCUMENTS}) ?)(?:(?P<kind>{'|'.join(_KINDS)})|(?P<number>{'|'.join(_NUMBERED)}))"
    rf"|(?:(?P<kind_of>{'|'.join(_KINDS)})|(?P<number_of>{'|'.join(_NUMBERED)}))(?: d[eiou])? (?:{_DOCUMENTS})"
)
_KIND_TEXTS = ("text", "display", "name", "label", "coding")  # of a kind that is an object
_MAY_NAME = re.compile(r"[^\W\d][^\d@.:/]{0,31}").fullmatch  # most keys with a digit in them are values
_KIND_DEPTH_MAX = 3
_LAST_PART = re.compile("[/#:]")
_QUESTION = re.compile(r"¿?[ ]?(\S+(?:[ ]\S+){0,2}?)[ ]?\?")  # "¿Su teléfono?"; a longer one asks for more than a value
_REGISTERS = {  # of identity numbers, as systems of health records name them
    "1.2.752.129.2.1.3.1": "personnummer",
    "1.2.752.129.2.1.3.3": "samordningsnummer",
    "1.2.246.21": "henkilötunnus",
    "2.16.578.1.12.4.1.4.1": "fødselsnummer",
    "2.16.578.1.12.4.1.4.2": "d-nummer",
    "1.2.208.176.1.2": "CPR nummer",
    "2.16.840.1.113883.2.1.4.1": "NHS number",
    "2.16.840.1.113883.4.1": "SSN",
    "2.16.840.1.113883.2.4.6.3": "BSN",
    "2.16.840.1.113883.3.4424.1.1.616": "PESEL",
    "2.16.840.1.113883.2.9.4.3.2": "codice fiscale",
    "1.2.40.0.10.1.4.3.1": "Sozialversicherungsnummer",
    "1.2.250.1.213.1.4.8": "numéro de sécurité sociale",
    "2.16.756.5.32": "AHV-Nummer",
}
_NAME_CHARS_MAX = 48


class Role(Enum):
    """What a key says of the values beside it, or of its own."""

    KIND = auto()  # its value says what kind of thing another is: `type`, `documentType`, `tipo_doc`
    NAMING = auto()  # its value names another: `name`, `label`
    NAMED = auto()  # it says nothing of its value: `value`, `text`
    NUMBERED = auto()  # it says no more than that its value is a number: `number`, `numero_documento`
    OTHER = auto()


NAMES_OTHERS = (Role.KIND, Role.NAMING)
_TRAVEL_KEYS = frozenset(
    {"issuer", "issued_by", "issuing_country", "issuingCountry", "issuing_state", "nationality", "expires", "expiry"}
    | {"expiry_date", "expiryDate", "country"}
)


@lru_cache(maxsize=1024)
def roles_of(keys: tuple[Any, ...]) -> tuple[Role, ...]:
    """Return the roles of the keys of an object; records mostly have the keys of records before."""
    return tuple(map(role_of, keys))


def role_of(key: Any) -> Role:
    return _role_of_words(key) if isinstance(key, str) and _MAY_NAME(key) else Role.OTHER


@lru_cache(maxsize=2048)
def _role_of_words(key: str) -> Role:
    words = plain_words(key).lower()
    of_document = _OF_DOCUMENT.fullmatch(words)
    if words in _KINDS or (of_document and (of_document["kind"] or of_document["kind_of"])):
        return Role.KIND
    if words in _NUMBERED or of_document:
        return Role.NUMBERED
    return Role.NAMING if words in _NAMING else Role.NAMED if words in _NAMED else Role.OTHER


def names_in(value: dict[Any, Any], roles: tuple[Role, ...]) -> tuple[str, str]:
    """Return the words of the first item of an object that names another, and of the first that says what kind it is.

    Return nothing if there is no item to be named.
    """
    if Role.NAMED not in roles and Role.NUMBERED not in roles:
        return "", ""
    naming = [
        (role, name)
        for role, item in zip(roles, value.values(), strict=True)
        if role in NAMES_OTHERS and (name := name_of(role, item))
    ]
    kind = next((name for role, name in naming if role is Role.KIND), "")
    if kind == "P" and not _TRAVEL_KEYS.isdisjoint(value):  # as the machine-readable zone of a passport has it
        return "passport", "passport"
    return words_of(naming[0][1] if naming else ""), words_of(kind)


def name_of(role: Role, item: Any) -> str:
    """Return the name that an item is, or that a kind has in it: `{"type": {"text": "MRN"}}`, `{"type": {"coding": [{…}]}}`."""
    for _ in range(_KIND_DEPTH_MAX if role is Role.KIND else 0):
        if isinstance(item, list) and item:
            item = item[0]
        elif isinstance(item, dict):
            item = next((item[key] for key in _KIND_TEXTS if key in item), "")
    return item if isinstance(item, str) and len(item) <= _NAME_CHARS_MAX else ""


def words_of(name: str) -> str:
    """Return the words of a name; of an address, as a system of identifiers has it, those of its last part."""
    if name.startswith("urn:oid:"):
        return _REGISTERS.get(name[8:], "")
    if "://" in name:
        name = _LAST_PART.split(name.rstrip("/"))[-1]
    if question := _QUESTION.fullmatch(name):
        name = question[1]
    return plain_words(HIDDEN.sub(WALL, name))
