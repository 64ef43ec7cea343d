"""Phone numbers in national form: they say nothing by themselves, so the label, its language and the words after them decide.

Which national numbers exist is what `phonenumbers` knows. It is asked for patterns alone, once per country, and only where a
label is as weak as "call" or "mobile": parsing every candidate with it would take longer than everything else together.
"""

from __future__ import annotations

import re
from functools import cache

from comity.core.redaction.detector import Category
from comity.core.redaction.labelled import LabelledDetector, Rule
from comity.core.redaction.labels import PHONE
from comity.core.redaction.shapes import LatePattern, digits_of

_ENGLISH = "US GB AU IN IE NZ ZA SG HK PH NG KE MY"
_REGIONS = (
    f"{_ENGLISH} DE AT CH FR BE ES IT PT NL PL SE NO DK FI CZ HU RO GR TR RU UA CN TW JP KR BR MX AR CL CO"
    f" IL AE SA EG TH VN ID PK"
)
_PHONE = LatePattern(
    r"(?<![A-Za-z0-9_+])(?:\+?[0-9]|\([0-9+])(?:[ \u00a0\u202f./()\-\u2010-\u2015·•_]{0,3}[0-9]){6,14}(?:["
    r" ]?(?:x|ext\.?|extension)[ ]?[0-9]{1,6})?"

                    r"(?![A-Za-z0-9_])(?![-.][0-9])")  # fmt: skip
_DATE_LIKE = re.compile(r"(?:[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-./ ])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))")
_ROUND = re.compile(r"[1-9][0-9]{0,5}0{4,}")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{1,2}(?:[ ][0-9]{3})+")

_STRONG = (
    r"(?:tele|cell(?:ular)?[ -]?|mobile[ -]?|home[ -]?|work[ -]?|office[ -]?|day(?:time)?[ -]?"
    r"|smart)?phones?|(?:direct|office|private) line|land ?line|direct dial|(?:phone|mobile|cell|contact|whatsapp|fax|hotline"
    r"|telephone|emergency|callback|call-back)[ -]?(?:numbers?|no|num|nr|nos)|tel|mob|telephone|fax|telefax|whatsapp|viber|ph"
)
_WEAK = (
    r"gsm|hp|namba(?:ri)?|fon|kom|cel|portable|call(?:ing|ed)?|dial(?:ling|ing|ed)?|ring|sms|mobile|cell|hotline"
    r"|contact|kontakt"
    r"|(?:my|our|his|her|their|meine|ihre|seine|deine|mijn|min|mitt) (?:number|nummer)"
    r"|(?:mi|mon|il mio) n[uú]m[eé]ro|m[oó]j numer|мой номер"
    r"|dzwo[nń](?:i[cć])?|durchwahl|ligue(?: para)?|llame al|anrufen|rufen(?: sie)?|appelez|llama|chiama(?:mi)?|bel"
)
_REACH = (
    r"للتواصل|اتصل|التواصل|संपर्क(?: नंबर)?|liên hệ|hubungi|contatt[io]|contactos?|contatos?|контакт(?:ы)?"
    r"|связь|звонить|звоните|дзвоніть"
    r"|επικοινωνία|καλέστε|iletişim|ara(?:yın)?|联系|聯繫|聯絡|連絡"
    r"|연락|ติดต่อ|kapcsolat|yhteys(?:tiedot)?|kontakta|volejte|volat|sunați|hívja|pozovite"
)
_WHERE = "fixe|fijo|fisso|festnetz|büro|bureau|ufficio|oficina|kantoor|biuro|kontor|toimisto|офис"  # where the phone is
_CALL = r"ll[aá]m[a-z]{1,5}|chiam[a-z]{1,5}|appele[rz]|zadzwo[a-zń]{1,5}|ligue|telefonare|joindre|hívj(?:a|on)"
_CONTENT = "text(?:ing|ed)?|message"  # "text: …" and `{"text": …}` hold any text
_AT = (
    r"(?:(?:call|text|ring|dial|reach|reached|contact|message|phone|erreichbar|available|reachable)(?:ing|ed"
    r"|able)?|ruf|rückruf|rückfragen|(?:an|zurück)?rufen|erreichen|joindre|appele[rz]|ll[aá]m[a-z]{1,5}|chiam[a-z]{1,5}"
    r"|bel(?:len)?|zadzwo[a-zń]{1,5}|soit[a-z]{1,7}|dzwo[nń][a-zć]{0,5}|telefon(?:ować|ieren|are)"
    r"|contact(?:er|ar)|lig(?:ar|ue)|kontaktier(?:en|t)|(?:za)?vol(?:at|ejte?)|hívj(?:a|on)|suna[țt]i|ring[ea]|pozovite"
    r"|(?:по)?звони(?:те|ть)?|(?:за)?телефонуйте|(?:за)?дзвоніть|обаждайте|ara(?:yın|yabilirsiniz)|ulaşabilirsiniz)"
    r"(?:[ ](?:[^\W\d]|[.'’]){1,16}){0,4}?[ ](?:at|on|under|via|unter|auf|au|al|an|op|på|pod|numeroon|til|na|no|ao|по|на|за)"
)
_LABELS_OF_HINT = (
    r"[a-z ]*phones?|fon|kom|gsm|hp|namba(?:ri)?|cel|portable|mobile?|mob|cell|tel|ph|fax|telefax|whatsapp|viber|call"
    r"|calling|called|text"
    r"|texting|texted|dial|ring|sms|hotline|contact|reach|reached|reachable|(?:direct|office|private) line|land ?line"
    r"|message|kontakt|number|nummer|numer|номер|rück[a-z]+|zurückrufen|n[uú]m[eé]ro|ligue|para|al|tlf|puh|anrufen"
    r"|ruf(?:en?)?|erreichen|joindre|appele[rz]"
    r"|ll[aá]m[a-z]+|chiam[a-z]+|bel(?:len)?|soita|dzwo[nń](?:i[cć])?|durchwahl"
    r"|erreichbar|available|handy|emergency|callback|day[a-z]*|call-back|dzwo[nń][a-zć]*|telefonować|telefonieren"
    r"|contacter|contactar|soit[a-z]+"
    r"|ligar|kontaktier[a-z]+|zavol[a-z]+|volejte?|hívj[a-z]+|sunati|ring[ea]|позвони[а-я]*|звони[а-я]*|зателефонуйте"
    r"|телефонуйте"
    r"|зателефонуйте|задзвоніть|обаждайте|arayabilirsiniz|ulaşabilirsiniz"
)
_COUNTED = LatePattern(
    r"[ \u00a0]{0,2}(?:%|€|\$|£|¥|°|/|\*|=|\^|(?:and|to|or|of|bis|à|–|-)[ ][0-9]{1,3}(?:[0-9]{4,})?[ ](?:users|calls|people)"
    r"|(?!(?:or|and|to|for|if|after|before|please|ext|x|is|any|anytime|today|now|between|when|at|on|from"
    r"|about|regarding|until|till|tomorrow|mobile|home|work|office"
    r"|asap|first|as|with|but|so|then|instead|not|thanks|thank|which|who|because|during|by|via|only"
    r"|directly|daily|tonight|this|we|i|he|she|they|you|it|und|oder|et|ou|y|o"
    r"|e|ab|an|von|nach|pour|para|per|och|og|en|day|was|has|my|his|her|their|our|the|no|yes|cell|fax|tel"
    r"|phone|out|again|later|next|same|every|whenever|anruf"
    r"|dopo|le|la|les|il|lo|gli|un|una|des|du|de|del|della|di|da|dal|con|su|ou|mais|si|sauf|avant|après|par|sur|pero|antes"
    r"|después|por|hasta|desde|em|até|depois|ao|of|app|even|na|voor|tot|vanaf|bel|lub|albo|po|do|od|przed|works|valid|nur|bitte"
    r"|ist|erbeten|gerne|bis|zwischen|mit|dringend"
    r"|extension|called|rang|answered|immediately|quickly|soon|morning|while|within)\b|[a-z_]{2,20}[=:])[a-z]{2,})"
)
_BARE = re.compile(r"[0-9]+")
_PLAIN = re.compile(r"[0-9.,]+|[0-9]{1,3}(?:[ \u00a0][0-9]{3})+")


@cache
def _patterns(region: str) -> tuple[str, re.Pattern[str]] | None:
    """Return the trunk prefix and the pattern of the national numbers of a country."""
    from phonenumbers import PhoneMetadata  # noqa: PLC0415  slow to import, and most texts have no phone number

    metadata = PhoneMetadata.metadata_for_region(region, None)
    if metadata is None or metadata.general_desc is None:
        return None
    described = (metadata.fixed_line, metadata.mobile, metadata.toll_free, metadata.voip)
    patterns = [one.national_number_pattern for one in described if one is not None and one.national_number_pattern]
    return metadata.national_prefix or "", re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def is_national(digits: str, regions: str = _REGIONS) -> bool:
    """Return whether digits are a national number of one of the countries, with or without its trunk prefix."""
    for region in regions.split():
        known = _patterns(region)
        if known is None:
            continue
        prefix, pattern = known
        if pattern.fullmatch(digits) or (prefix and digits.startswith(prefix) and pattern.fullmatch(digits[len(prefix) :])):
            return True
    return False


def _number(value: str) -> str:
    """Return the digits of a number without its extension."""
    return digits_of(re.split(r"x|ext", value, maxsplit=1)[0] if "x" in value else value).removeprefix("00")


def _is_plausible(value: str) -> bool:
    """Under a label that means a phone, every number of a phone's length counts that is not a date, an"
    " amount or a round count."""
    digits = _number(value)
    return (
        7 <= len(digits) <= 13
        and not (len(digits) < 10 and _ROUND.fullmatch(digits))
        and (digits == value or not (_DATE_LIKE.fullmatch(value) or _DECIMAL.fullmatch(value)))
    )


def _is_phone(value: str) -> bool:
    """Under a weak label the number must be valid in some country, or be grouped as a phone number is."""
    if not _is_plausible(value):
        return False
    digits = _number(value)
    if not _BARE.fullmatch(value) and re.fullmatch(r"[2-9][0-9]{2}[-. ][0-9]{4}", value):
        return True
    return 9 <= len(digits) <= 12 and (is_national(digits) or re.fullmatch(r"1?[2-9][0-9]{9}", digits) is not None)


def _is_grouped(value: str) -> bool:
    """With other words behind the label the number must be grouped, or begin, as phone numbers do, and be valid somewhere."""
    return (value[0] in "0+" or _PLAIN.fullmatch(value) is None) and _is_plausible(value) and _is_phone(value)


def _is_dialled(value: str) -> bool:
    """Count a number behind the word for an office, which also has years and areas, if it begins as phone numbers do."""
    return value[0] in "0+(" and _is_grouped(value)


def _is_reached(value: str) -> bool:
    return _is_plausible(value) and (len(_number(value)) >= 9 or not _BARE.fullmatch(value))


PHONES = LabelledDetector(
    name="phone_named",
    type="PHONE",
    category=Category.CONTACT,
    priority=42,
    pattern=_PHONE,
    rules=[Rule(_AT, _is_reached), Rule(PHONE, _is_plausible, is_valid_apart=_is_grouped),
           Rule(_STRONG, _is_plausible, is_valid_apart=_is_grouped),
           Rule(_WEAK, _is_phone, LatePattern(r"[ ]of[ ]")), Rule(_CONTENT, _is_phone, with_colon=False),
           Rule(_WHERE, _is_dialled), Rule(_REACH, _is_phone), Rule(_CALL, _is_phone, is_valid_apart=_is_grouped)],
    hint_labels=f"{_LABELS_OF_HINT}|{PHONE}|{_WHERE}|{_REACH}|zadzwo[a-zń]+|telefonare",
    hint_value=r"[0-9](?:[ \u00a0\u202f./()\-\u2010-\u2015·•_]{0,3}[0-9]){6}",
    not_followed=_COUNTED,
    ids=False,
    trailing=LatePattern(
        rf"[ ](?:[(–-][ ]?|ist?[ ](?:my|our|his|her|their|the|meine|unsere|seine|ihre)[ ]"
        rf"(?:new |work |home |office |direct |private )?)"
        rf"(?:{_STRONG}|{PHONE}|cell|mobile)(?![a-z])",
        re.IGNORECASE,
    ),
    keys=LatePattern(
        r"(?:phones?|telephones?|tel|fax|telefax|whatsapp|handynummer|telefon|telefonnummer|telefono|teléfono"
        r"|celular|(?:phone|mobile|cell|contact|fax|telephone)"
        r" ?(?:numbers?|no|num|nr))", re.IGNORECASE),
)  # fmt: skip
