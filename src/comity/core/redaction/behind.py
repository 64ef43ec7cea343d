"""Labels that stand behind their value: "X1234567 is my passport number", "031 24 5678 (SSN)", "… as the routing number".

The words behind a value are read as if they stood before it, so that each detector knows the same labels in both places. A
label behind a value must say what the value is and end there: "is the password policy" names no password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Final

from comity.core.redaction.normal import is_readable
from comity.core.redaction.shapes import LatePattern, compile_test

BEHIND_CHARS: Final = 64  # how far right of a value its label may end
_IS = (
    "is|was|are|ist|war|lautet|est|était|es|era|fue|è|é|jest|to|to jest|är|var|er|je|este|là|adalah|это|це|е|είναι"
    "|that['’]s|it['’]s|this is|that is|that was|which is|which was|c['’]est|das ist|dies ist"
)
# Whose a value is. An article says less: it counts behind a verb or a bracket alone.
_OWN = (
    "my|our|his|her|their|your|meine?|unsere?|seine?|ihre?|deine?|mon|ma|sa|notre|votre|mi|su|tu|nuestro|meu|minha|seu|sua"
    "|o meu|a minha|o seu|a sua|benim|onun|minun|az én|il mio|la mia|il suo|la sua|mój|moja|moje|jego|jej|mijn|zijn"
    "|haar|min|mitt|mit|hans|hennes|hendes|můj|její|moj|мой|моя"
    "|его|её|мій|її"
)
_ARTICLE = "the|an?|its|die|der|das|eine?|son|le|la|el|il|lo|het|de|os?"
_AS = "as|als|comme|como|come|jako|som"
_JOINT = (
    rf"(?:[ ]\(|(?:[ ]?[–—][ ]?|[ ]-{{1,2}}[ ])(?:(?:{_IS})[ ])?|,?[ ](?:{_IS})[ ]|[ ](?:{_AS})[ ]|,[ ](?=(?:{_OWN})[ ]))"
    rf"(?:(?:{_OWN}|{_ARTICLE})[ ])?"
)
_BEHIND = LatePattern(
    rf"[\"'”]?{_JOINT}(?P<label>[^\W\d_](?:[^\d\n.,;:!?()\[\]|\"\0]|\.(?=[^\W\d_])){{1,39}})(?P<end>[\n.,;:!?)|\"]|\Z)?",
    re.IGNORECASE,
)
_JOINTS = LatePattern(rf"[0-9][A-Za-z)]{{0,2}}(?=[\"'”]?{_JOINT}[^\W\d_])", re.IGNORECASE)
# What ends a label: whose or where the value is, or a sentence about it.
_ENDS = re.compile(
    r"[ ](?:of(?![ ]birth)|for|on|at|in|from|under|to|with|by|until|and|or|but|so|if|as|i|he|she|they|we|you|it|that|which|who"
    r"|is|was|will|has|had|please|now|here|there|today|thanks|btw|für|von|vom|bei|auf|aus|und|oder|er|sie|wir|ich"
    r"|bitte|pour|sur"
    r"|et|ou|para|por|y|per|voor|van|op|en|och|og|på|för|til|till|dla|i|na|w|для|на|и|в|[–—-])(?![^\W_])",
    re.IGNORECASE,
)
_OF_THINGS = frozenset({"birth", "zip", "pin", "plate", "card", "pass", "account"})  # "is the birth of a standard"
# How labels begin, and those that are short: one of them must follow a number. In the syntax of Rust's engine.
_STEMS = (
    "pas+[aeo]?port|paspoort|passn|paszport|reisepa|pasnummer|licen[cs]|f(?:ü|ue)hrerschein|permis|patente|rijbewijs"
    "|k[öø]r(?:e)?kort|førerkort|ehliyet|číslo|prawo jazdy|driv|plate"
    "|kennzeichen"
    "|immat|matr[ií]cul|targa|kenteken|birth|geburt|date|data|fecha|f[öø]delse|doğum|datum|naissance|nacimiento|nascita|nascimento|geboorte"
    "|urodz|social"
    "|s[eé]cu|taxpayer|fiscal|national|insurance|passw|passc|kennwort|mot de passe|contrase|senha|wachtwoord|has[lł]o"
    "|account|acct"
    "|konto|compte|cuenta|rekening|rachun|routing|hesap|phone|cell|m[oó](?:b|v)il|telem|telef|telep|handy|numm?er|num[eé]ro|número|identi"
    "|ausweis|aadhaa?r"
    "|medic|patient|member|postal|postc|postl|eircode|user|login|steuer|kimlik|henkil|personal|personn|f[oø]dsel|isikuk|asmens"
    "|personas|rodn|codice|card|partita|mykad|егн|јмбг|ембг|паспорт|телефон|рожд|снилс|инн|парол|номер|身份|身分|주민|전화|電話|电话|護照|护照"
)
_CODES = (
    "dob|ssn|nhs|nino|itin|ein|sin|nric|pin|otp|cvv2?|cvc2?|cvn|security code|sort code|aba|iban|bic|swift|tel|fax"
    "|mob|id|dni|nie"
    "|nif|cpf|pesel|bsn|nir|pan|curp|rfc|oib|mrn|zip|plz|tckn|tc|cnp|jmbg|embg|cui|rut|run|nit|ird|utr|vat|abn|tfn|egn|hetu|cpr"
    "|em[sš]o|taj|amka|αμκα|afm|αφμ|tin|nuss|nik|ktp|npwp|cnic|hkid|fin|rrn|nss|tax id|tax number|conto|conta|handle|pw|pass"
)
BEHIND_HINT: Final = (
    rf"[0-9][A-Za-z!#)]{{0,2}}[\"'”]?(?:[ ]\(|[ ]?[–—]|[ ]-|,?[ ](?i:{_IS}|{_AS})[ ]|,[ ](?i:{_OWN})[ ])"
    rf"(?:[^0-9\n.;!?]{{0,31}}[^0-9\n.;!?A-Za-z])?(?i:{_STEMS}|(?:{_CODES})(?:[^a-z]|$))"
)


@cache
def _test() -> Callable[[str], bool]:
    return compile_test(BEHIND_HINT)


def may_name_behind(text: str) -> bool:
    """Return False only if no label stands behind a number in a text."""
    return not is_readable(text) or _test()(text)


def labels_behind(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield where a value may end that has its label behind it, and the label as it would stand before the value."""
    for joint in _JOINTS.compiled.finditer(text, start, end):
        place = joint.end()
        if label := label_behind(text[place : place + BEHIND_CHARS]):
            yield place, label


@lru_cache(maxsize=2048)
def label_behind(after: str) -> str:
    """Return the label that the words behind a value begin with, as it would stand before the value; empty if there is none."""
    behind = _BEHIND.compiled.match(after[:BEHIND_CHARS])
    if behind is None:
        return ""
    cut = _ENDS.search(behind["label"])
    if cut is None and behind["end"] is None:  # it goes on with a number, or too far right
        return ""
    label = behind["label"][: cut.start() if cut else None].strip()
    if cut is not None and cut.group() == " of" and label.lower() in _OF_THINGS:
        return ""
    return f"{label}: "
