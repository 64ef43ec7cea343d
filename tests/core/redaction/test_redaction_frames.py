"""Labels in twelve languages, in the sentences in which people say once more what a value is, or put it right."""

from __future__ import annotations

import pytest
from redaction_corpus import new_vault

from comity.core.redaction import redact_text

VALUES = {"passport": "C4TK82R6L", "account": "4182730618", "birth": "16.09.1977", "patient": "774102938"}
# The labels, in the order of `VALUES`, and the frames.
LANGUAGES = {
    "en": (
        ("passport number", "account number", "date of birth", "patient number"),
        (
            "her {label}, that is {value}, was copied",
            "her {label} should read {value}",
            "the {label} of the tenant reads {value}",
        ),
    ),
    "de": (
        ("Reisepassnummer", "Kontonummer", "Geburtsdatum", "Patientennummer"),
        ("{label}, das ist {value}", "{label} müsste {value} sein", "{label} des Mieters lautet {value}"),
    ),
    "fr": (
        ("numéro de passeport", "numéro de compte", "date de naissance", "numéro de patient"),
        ("son {label}, c'est {value}", "le {label} du locataire est le {value}", "{label} devrait être {value}"),
    ),
    "es": (
        ("número de pasaporte", "número de cuenta", "fecha de nacimiento", "número de historia clínica"),
        ("su {label}, que es {value},", "mi {label} es el {value}", "{label}: debe ser {value}"),
    ),
    "it": (
        ("numero di passaporto", "conto corrente", "data di nascita", "numero di cartella clinica"),
        ("il suo {label}, cioè {value},", "il mio {label} è il {value}", "{label} dovrebbe essere {value}"),
    ),
    "nl": (
        ("paspoortnummer", "rekeningnummer", "geboortedatum", "patiëntnummer"),
        ("haar {label}, dat is {value},", "mijn {label} luidt {value}"),
    ),
    "pt": (
        ("número do passaporte", "conta bancária", "data de nascimento", "número de processo clínico"),
        ("{label} dela, que é {value},",),
    ),
    "pl": (
        ("numer paszportu", "numer konta", "data urodzenia", "numer kartoteki pacjenta"),
        ("jej {label}, czyli {value},", "{label} brzmi {value}"),
    ),
    "sv": (
        ("passnummer", "kontonummer", "födelsedatum", "patientnummer"),
        ("hennes {label}, alltså {value},", "{label} lyder {value}", "{value} är mitt {label}"),
    ),
    "cs": (
        ("číslo pasu", "číslo účtu", "datum narození", "číslo pacienta"),
        ("její {label}, tedy {value},", "{label} zní {value}", "{label} nájemníka je {value}", "{value} je moje {label}"),
    ),
    "tr": (
        ("pasaport numarası", "hesap numarası", "doğum tarihi", "hasta numarası"),
        ("{label}, yani {value},", "{label} şu: {value}"),
    ),
    "ru": (
        ("номер паспорта", "номер счёта", "дата рождения", "номер пациента"),
        ("её {label}, то есть {value},", "{label} такой: {value}"),
    ),
}
SAID = [
    pytest.param(frame.format(label=label, value=value), value, id=f"{language}-{frame}-{kind}")
    for language, (labels, frames) in LANGUAGES.items()
    for frame in frames
    for label, (kind, value) in zip(labels, VALUES.items(), strict=True)
]
ORDINARY = (
    "The password, that is the 12-character one, expires in 90 days.",
    "Your passport number, that is the one on page 2, is required.",
    "The account number should read 10 digits, not 9.",
    "Die Kontonummer müsste 10 Stellen haben.",
    "Il numero di conto deve essere di 12 cifre.",
    "The phone number, that is the hotline, handled 2345678 calls.",
    "The date of birth should be before 2006-01-01 for this tariff.",
    "The account, that is 4711 Office supplies, is closed.",
    "Le numéro de compte est le même que dans la facture 20240117.",
    "La patente europea EP1234567B1 è scaduta.",
    "Our account number format is 3-1-5-1 in Thailand.",
    "La clave del portal es la sencillez (2023)",
    "RG n° 23/01457, chambre sociale",
)


@pytest.mark.parametrize(("text", "value"), SAID)
def test_a_value_is_found_whose_label_is_said_once_more_or_put_right(text: str, value: str) -> None:
    assert value not in redact_text(text, new_vault()).text


@pytest.mark.parametrize("text", ORDINARY)
def test_the_same_frames_without_a_personal_value_stay_as_they_are(text: str) -> None:
    assert redact_text(text, new_vault()).text == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Blue-Door_63 is my password", "Blue-Door_63"),
        ("Tür-blau_63 ist mein Passwort", "Tür-blau_63"),
        ("Porte!bleue_63 est mon mot de passe", "Porte!bleue_63"),
        ("mi clave del portal es Puerta-Azul_63", "Puerta-Azul_63"),
        ("Son mot de passe pour l'espace parents est Gl!cine_93", "Gl!cine_93"),
        ("SWIFT BKKBTHBK, account no. 206-4-91738-5", "206-4-91738-5"),
        ("pošlete to na můj účet 19-6529630616/0800", "19-6529630616/0800"),
    ],
)
def test_passwords_and_accounts_are_found_in_more_of_their_sentences(text: str, value: str) -> None:
    assert value not in redact_text(text, new_vault()).text
