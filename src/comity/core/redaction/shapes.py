"""The pieces detectors are written with: what may stand beside a value, separators inside it, and words that name it.

Two rules hold for all. What a value may not touch is the same on both sides: a value is never torn out of a longer run, and
hiding one never makes its neighbour acceptable, so that a second redaction finds nothing new. And no pattern repeats without
bound, or repeats a group that can match the same text in two ways, so that every search is linear in the text.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Final

import jsonschema_rs
from pydantic_core import SchemaValidator, core_schema

CONTEXT_CHARS: Final = 72  # how far left of a value its context is looked for


class LatePattern:
    """A pattern of a detector, compiled on first use: all of them together take twice as long as the rest of an import.

    `end_chars` is how many characters a match at the end of a text has at most, a line break behind it included.
    """

    def __init__(self, pattern: str, flags: int = 0, *, end_chars: int = CONTEXT_CHARS) -> None:
        self.pattern = pattern
        self.flags = flags
        self.end_chars = end_chars

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self.flags)

    def ends(self, text: str) -> bool:
        """Return whether the pattern, which ends with `$`, matches at the end of a text."""
        return self.compiled.search(text, max(0, len(text) - self.end_chars)) is not None


def compile_all(*patterns: LatePattern | None) -> None:
    """Compile patterns before their first use."""
    for pattern in patterns:
        _ = pattern and pattern.compiled


WALL: Final = "\0"  # stands for a value already found when the words around another are judged
SKELETON_CHARS: Final = 240  # how far left once values are hidden, so that "phones:" reaches a list of eighty
VALUE_CHARS_MAX: Final = 384  # no detector finds a longer value
SHAPE_CHARS_MAX: Final = 96  # most patterns look no further right of where they begin to match
NUMBER_CHARS_MAX: Final = 96  # nor those of numbers under a label
KEY_CHARS_MAX: Final = 256  # of a JSON key as the words before the values under it
LONG_CHARS_MAX: Final = 288  # those of secrets, names and addresses look as far

SPACE: Final = "[ \u00a0\u2007\u202f]"
DASH: Final = "[-\u2010-\u2013]"
SEPARATOR: Final = "[ \u00a0\u2007\u202f.\\-\u2010-\u2013]"
LETTER: Final = "A-Za-z\u00c0-\u024f"  # inside a character class

BEFORE: Final = r"(?<![A-Za-z0-9_])"
WORD_BORDER: Final = "(?<![^\\W_])|(?<=[\u2e80-\u9fff\uac00-\ud7af])"  # these scripts have no spaces between words
# Behind the first character of a match: it begins a word, or a hump inside of a key ("dbPassword", "PGPASSWORD").
AT_WORD: Final = "(?:(?<![^\\W_\u2e80-\u9fff\uac00-\ud7af](?s:.))|(?<=[a-z][A-Z])(?=[a-z])|(?<=PG[A-Z])|(?<=DB[A-Z]))"
AFTER: Final = r"(?![A-Za-z0-9_])"
AT_BORDER: Final = r"(?<![A-Za-z0-9_](?s:.))"  # `BEFORE`, behind the first character of a match
AT_DIGIT: Final = f"[0-9]{AT_BORDER}"
AT_CARD: Final = f"[2-6]{AT_BORDER}(?=[0-9]{{3}})"
AT_BASE64: Final = (  # of at least eight characters; in a JSON string a line break is the letter n
    r"[A-Za-z0-9+/](?<![A-Za-mo-z0-9+/](?s:.))(?:(?<!n(?s:.))|(?<=\\n(?s:.)))(?=[A-Za-z0-9+/]{7})"
)
AT_TWO_LETTERS: Final = rf"[A-Za-z]{AT_BORDER}(?=[A-Za-z][ \u00a0.-]?[0-9])"  # before a digit
AFTER_DIGIT: Final = r"(?![A-Za-z0-9_])(?![-.][0-9]|-[A-Za-z])"  # "219-09-9999-B" is a part
AT_NINE_DIGITS: Final = f"{AT_DIGIT}(?=(?:{SEPARATOR}?[0-9]){{8}}{AFTER_DIGIT})"
NOT_AFTER_DIGIT: Final = LatePattern(r"[0-9][-.]$", end_chars=3)  # the left twin of AFTER_DIGIT

# The same borders for hints, which know no look-around and also run over JSON, where a line break is the letter n.
HINT_BEFORE_DIGIT: Final = r"(?:^|\\[bfnrt]|[^0-9A-Za-z_\-.]|(?:^|[^0-9])[\-.])"
HINT_BEFORE_WORD: Final = r"(?:^|\\[bfnrt]|[^0-9A-Za-z_])"
HINT_BEFORE_LETTER: Final = r"(?:^|\\[bfnrt]|[^A-Za-z])"
HINT_AFTER_LETTER: Final = r"(?:[^a-z]|$)"
HINT_AFTER: Final = r"(?-u:\b)"
HINT_GAP: Final = r"(?s:.*)"  # a JSON key may name a value far to its right

# Nouns for numbers that belong to no person. The word before a value decides, so most nouns of a business document are here.
_FOREIGN_NOUNS = frozenset(
    re.findall(
        r"[^\W\d_]+",
        "order purchase invoice inv po receipt quote quotation estimate ticket case incident issue bug ref reference "
        "sku upc ean gtin asin isbn issn doi imei tracking shipment parcel waybill awb part item product article "
        "model art batch lot serial asset build version ver v release rev revision firmware patch commit hash "
        "checksum sha uuid guid key token txn transaction trace span request correlation event job run task step row "
        "line page section chapter clause figure table room seq sequence document doc contract agreement policy "
        "claim booking reservation confirmation flight gate sensor meter device port pid process error code "
        "timestamp epoch time date year amount price cost fee total subtotal sum budget revenue balance quantity "
        "quantities qty count limit score rate ratio group campaign size population bytes rows records top id ids "
        "drawing dwg catalog catalogue tender draw ndc gauge kit spare material artikel bestellung auftrag"
        " rechnung teil teile commande "
        "facture factura recibo comprobante pedido ordine fattura zamówienie faktura partida lieferschein material position"
        " pos sine cosine"
        " chrome safari firefox mozilla usd eur gbp cad aud chf jpy "
        "seed counter packet nonce offset cursor index barcode tag sheet plan permit docket dossier voucher coupon manifest "
        "consignment container pallet carton crate seal vessel voyage platform plot tank feeder transformer turbine inverter "
        "sample specimen assay trial protocol study edition volume episode patent norm standard module firmware board relay "
        "valve pump motor engine machine tool mould component assembly zeichnung bauteil ersatzteil baugruppe vorgang "
        "aktenzeichen sendung paket maschine anlage gerät modell typ variante dokument formular vertrag angebot projekt "
        "kostenstelle beleg bestell serien inventar zähler chargen buchung katalog palette muster probe kapitel seite"
        " tabelle abbildung blatt pièce référence réf "
        "colis devis contrat catalogue billet compteur chapitre pieza lote referencia albarán presupuesto contrato expediente "
        "plano catálogo boleto pezzo lotto matricola preventivo contratto pratica disegno catalogo peça encomenda fatura "
        "processo onderdeel bestelling factuur tekening część partia umowa sprawa rysunek zlecenie díl zakázka smlouva "
        "beställning ritning ärende заказ договор деталь партия артикул чертёж чертеж дело накладная счёт-фактура модель "
        "заказа договора партии накладной счета-фактуры посылка отправление comandă comanda factură produs articol"
        " bilet billet billete biglietto bilhete lístek jegy билет квиток rajszám kötegszám tételszám sorozatszám"
        " aviz sipariş ürün "
        "parça irsaliye sözleşme takip rendelés rendelésszám számla szerződés cikk cikkszám szállítólevél objednávky"
        " objednávce "
        "smlouvy zásilka zásielka zákazka zmluva zamówienia faktury umowy produktu przesyłka narudžba narudžbenica"
        " ugovor pošiljka "
        "naročilo ordre bestilling bestillingsnr vare varenr ordrenr tilaus tilausnumero lasku tuote erä sopimus"
        " lähetys tellimus "
        "arve pasūtījums līgums užsakymas sutartis παραγγελία τιμολόγιο σύμβαση προϊόν δέμα замовлення договір"
        " накладна поръчка "
        "artikkeli pesanan faktur kontrak produk zending pakbon lieferung spedizione bolla expédition livraison envío envio "
        "stück stk units pieces pcs ",
    )
)
# Words that stand between a noun and its number: "order number", "total is".
_FOREIGN_LINKS = frozenset(
    re.findall(
        r"\S+",
        "id no nr num number ref is was of nummer numero número numéro numărul numarası numer numru číslo szám"
        " száma номер номери"
        " αριθμός nomor",
    )
)
# The same nouns in scripts without spaces between words, or with vowel signs in them, at the end of a text.
_FOREIGN_ABROAD = re.compile(
    r"(?:订单|訂單|型号|型號|零件|批次|编号|編號|貨號|货号|合同|发票|發票|运单|單號|单号|产品|商品|序列|注文|品番|製品|伝票|請求書?|見積|納品|契約|管理|受付|型番|ロット|バッチ|部品|図面|型式|機番|製番|品目|出荷|入荷|追跡|送り状"
    r"|予約|在庫|案件|(?:批|料|件|图|圖|机|機|柜|箱|桩|樁)(?:号|號)(?=\Z|[^碼码])|工单|工單|提单|提單|航班|图纸|圖紙|로트|롯트|배치|일련|도면|예약|재고"
    r"|製造|주문|품번|모델|송장|운송장|계약|제품|부품|청구서?|견적|시리얼)(?:番号|號碼|号码|编号|編號|号|號|번호)?\Z"
    r"|(?:ล็อต|ล๊อต|คำสั่งซื้อ|ใบแจ้งหนี้|ใบสั่งซื้อ|สินค้า|พัสดุ|สัญญา|รุ่น|ऑर्डर|चालान|इनवॉइस|उत्पाद|मॉडल|बिल"
    r"|अनुबंध)(?: ?(?:संख्या|नंबर|เลขที่))?\Z"
    r"|(?:ال)?(?:طلب|طلبية|فاتورة|شحنة|عقد|منتج|موديل|قطعة)(?: رقم)?\Z|(?:הזמנה|חשבונית|משלוח|חוזה|מוצר|דגם|פריט)\Z"
    r"|(?:đơn hàng|hóa đơn|vận đơn|sản phẩm|hợp đồng)(?: số)?\Z",
    re.IGNORECASE,
)
_LABEL_JOINTS = " \t\n.:#=_\"'(/[-?"
_LABEL_JOINTS_MAX = 4


TRAILING_WINDOW: Final = re.compile(r"[^0-9\n.,;\0]{0,24}")
_NO_DIGITS = re.compile("[^0-9]+")
_IN_CLASS_OR_SPACE = re.compile(r"(\[[^\]]*\])| \??")
_WIDER = {"[- ]": r"[ _\-]", "[ -]": r"[ _\-]", "[. ]": r"[. _\-]"}
_ONE_WORD = re.compile(
    "[wW]hatsApp|MyKad|FaceTime|LinkedIn|GitHub|GitLab|TikTok|SnapChat|WeChat|PayPal|PhilHealth|UStId(?:Nr)?|USt|IdNr|StNr|MwSt"
)  # with a hump in it
_LETTERS = re.compile(r"(?<!\S)[A-Za-z](?: [A-Za-z]){2,7}(?!\S)")  # of one word, as in `s_s_n`
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-.\s]+")


@cache
def compile_test(pattern: str) -> Callable[[str], bool]:
    """Return a test for whether a pattern, in the syntax of Rust's regex crate, matches anywhere in a text that is Unicode.

    It is linear in the text for every pattern, and quick. Made on first use: together these patterns take longer to build than
    a command line may take to start. Two packages have the engine: jsonschema-rs answers yes or no; pydantic-core copies the
    pattern into an error for every no, but takes the whole of the syntax.
    """
    if not _RUST_ONLY.search(_ESCAPED.sub("", pattern)) and "\\w" not in pattern.lower():
        schema = {"pattern": _ESCAPED.sub(_unicode_class, pattern)}
        with contextlib.suppress(ValueError):
            return jsonschema_rs.Draft202012Validator(schema, pattern_options=_ROOMY).is_valid
    text = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    return SchemaValidator(text).isinstance_python


# The engine builds its automaton while it reads, and keeps what fits. In its default of 2 MB one pattern for all
# detectors does not fit: after some hundred different texts it would try every branch at every letter, 50 KB in three seconds.
_ROOMY: Final = jsonschema_rs.RegexOptions(dfa_size_limit=64_000_000)

# JSON Schema reads a pattern as JavaScript does, for which most digits of the world are none and sets do not nest.
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_RUST_ONLY = re.compile(r"\[[^\]]*(?:\[|&&|--|~~)")
_UNICODE_CLASSES: Final = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "s": r"\p{White_Space}",
    "S": r"\P{White_Space}",
}


def _unicode_class(escape: re.Match[str]) -> str:
    return _UNICODE_CLASSES.get(escape[1], escape[0])


# Units and things that are counted, after a number that would otherwise count as a person's.
_COUNTED_NOUNS = (
    "rad|radians?|deg|degrees?|ms|us|ns|sec|secs|seconds?|minutes?|hours?|days?|weeks?|months?|years?|kb"
    "|mb|gb|tb|bytes?|bits?|kg|km|cm|mm|lbs?|miles?|meters?|metres?|percent"
    "|users|people|persons|customers|clients|subscribers|visitors|viewers|patients|employees|members"
    "|accounts|contacts|calls|texts|messages|minutes|sms|rings|downloads|installs"
    "|rows|records|files|items|units|entries|lines|pages|words|tokens|requests|queries|hits|views|clicks"
    "|impressions|events|transactions|orders|shares|votes|points?"
    "|euros|dollars|pounds|cells|packages|copies|pieces|pcs|times|steps|samples|images|rpm|hz|khz|mhz|ghz"
    "|watts|kwh|mwh|volts|tons|tonnes|liters|litres|households|homes"
    "|packets|hops|px|pixels?|ways|leads|applications|followers|residents|births|births|deaths|cases|jobs|tickets"
    "|tests|errors|devices"
    "|phones|mobiles|handsets|sims|numbers|ppm|ppb|dpi"
    "|SIM|Anrufe|Geräte|Karten|Kunden|Nutzer|Stück|Stk|Minuten|appels|abonnés|clients|unités|llamadas|clientes|unidades"
    "|chiamate|utenti|pezzi|chamadas|gesprekken|klanten|stuks|połączeń|klientów|sztuk|samtal|звонков|абонентов|штук|шт"
    "|secondi|minuti|giorni|Sekunden|Stunden|Tage|secondes|heures|jours|segundos|horas|días|dias|seconden|dagen|sekund|godzin"
    "|секунд|минут|часов|дней|sessions|visits|sign-?ups|log-?ins|likes|interactions|conversations|subscriptions|connections"
    "|attempts|occurrences"
    "|instances|characters|chars|participants|voters|students|guests|passengers|trips|rides|flights|deliveries|parcels"
    "|shipments|meals|seats|gallons|barrels|addresses|codes|zips|stores|vehicles|cars|projects?|releases?|builds?|versions?"
    "|shuffles|draws"
    "|Abonnenten|abonnements|abonnees|abonamentów|abonentów|suscriptores|abonados|líneas|linhas|assinantes|abbonati|abonnenter"
    "|prenumeranter|liittymää|aboneler|abonați|předplatitelů|абонента|абонентов|абонентів|номеров|номерів|مشترك|مشتركا|مشترک|מנויים"
    "|thuê bao|เลขหมาย|συνδρομητές"
)
COUNTED: Final = re.compile(
    rf"(?:[ \u00a0]?(?:[KMGT]B(?![A-Za-z])|Hz(?![A-Za-z])|[Uu]sers(?![A-Za-z])|%|°|€|£|¥|‰)|["
    rf" \u00a0](?:(?:active|total|unique|new|new|monthly|daily|unread|open|outbound|inbound|mobile)["
    rf" ])?(?:{_COUNTED_NOUNS}|of (?:them|these|those|which))(?![A-Za-z]))",
)


HOW_MANY: Final = re.compile(
    r"(?<![a-z])(?:how many|wie viele|combien d|cuánt[oa]s|quant[ei] |hoeveel|ile |сколько )[^?]{0,48}[?][^?]{0,12}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Context:
    """Words that say what the value after them is, as alternatives of a pattern without look-around."""

    alternatives: str

    def may_be_in(self, text: str) -> bool:
        """Return False only if none of the words is in `text`: without their borders a test is quick, and mostly says no."""
        return not text.isascii() or _could_match(self.alternatives)(text)

    def end_in(self, text: str) -> int:
        """Return where the last of the words ends in `text`, or -1."""
        if not self.may_be_in(text):
            return -1
        end = -1
        for match in _whole_words(self.alternatives).finditer(text):
            end = match.end()
        return end

    def prepare(self) -> None:
        """Build the patterns that are otherwise built on first use."""
        _could_match(self.alternatives)
        _whole_words(self.alternatives)


@cache
def _could_match(alternatives: str) -> Callable[[str], bool]:
    return compile_test(f"(?i:{alternatives})")


_SPACED: Final = "a-z\u00df-\u024f\u0370-\u058f"  # letters of scripts with spaces between words


@cache
def _whole_words(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![{_SPACED}])(?:{alternatives})(?![{_SPACED}])", re.IGNORECASE)


def words(*alternatives: str) -> Context:
    """Return the context of words that are not part of a longer word; a space may be missing."""
    return Context("|".join(alternatives))


def foreign_label_start(before: str) -> int:
    """Return where a label of a number that belongs to no person begins, if the text before a value ends with one; else -1.

    A label is a noun, perhaps with "number" or "is" after it; a currency; or a prefix as in "ORD-416…".
    """
    if before[-1:] in {"-", "_", "#", "/"} and before[-2:-1].isalnum():
        return len(before) - 2
    if before.endswith("=="):
        return len(before) - 2
    if before.rstrip(" ")[-1:] in {"$", "€", "£", "¥"}:
        return len(before.rstrip(" ")) - 1
    text = before.rstrip(_LABEL_JOINTS)
    if len(before) - len(text) > _LABEL_JOINTS_MAX:
        return -1
    if not text.isascii() and (abroad := _FOREIGN_ABROAD.search(text)):
        return abroad.start()
    start, word = _last_word(text)
    if word == "order" and text[start - 3 : start].lower() == "in ":
        return -1
    if word in _FOREIGN_LINKS and text[start - 1 : start] in {" ", "_", "-"}:
        earlier, noun = _last_word(text[: start - 1].rstrip("."))
        if is_foreign(noun):
            return earlier
    return start if is_foreign(word) else -1


def is_foreign(word: str) -> bool:
    """Return whether a word, in small letters, is a noun for numbers that belong to no person."""
    if word in _FOREIGN_NOUNS or (word[-1:] == "s" and word[:-1] in _FOREIGN_NOUNS):
        return True
    is_number = (word.endswith(_NUMBER_OF_THING) and word != "nummer") or (word.endswith("nr") and word != "nr")
    return is_number and not word.startswith(_REACHES)


# A German compound says of what the number is; those of phones say so themselves.
_NUMBER_OF_THING = ("nummer", "teil", "zeichnung", "auftrag", "artikel", "kennung", "schlüssel")
_REACHES = ("telefon", "handy", "mobil", "ruf", "fax", "rück", "festnetz", "not", "haus", "karten", "kunden", "kontakt",
"kredit",
            "konto", "privat", "dienst", "büro", "whatsapp", "sozial", "steuer", "pass", "ausweis", "versicher",
            "person")  # fmt: skip


def _last_word(text: str) -> tuple[int, str]:
    start = len(text)
    while start and text[start - 1].isalpha():
        start -= 1
    return start, text[start:].lower()


def ends_of(key: str) -> str:
    """Return a JSON key, or the beginning and the end of a long one: each value under it is looked at behind its words."""
    return key if len(key) <= KEY_CHARS_MAX else f"{key[: KEY_CHARS_MAX // 2]} {key[1 - KEY_CHARS_MAX // 2 :]}"


def plain_words(key: str) -> str:
    """Return a JSON key as the words it is made of: `homePhone_number` becomes `home Phone number`."""
    return _plain_words(ends_of(key))


@lru_cache(maxsize=2048)
def _plain_words(key: str) -> str:
    words = " ".join(_CAMEL.sub(" ", _ONE_WORD.sub(lambda match: match.group().capitalize(), key)).split())
    return _LETTERS.sub(lambda match: match.group().replace(" ", ""), words)


def digits_of(value: str) -> str:
    """Return the ASCII digits of a value, its separators dropped."""
    return value if value.isascii() and value.isdigit() else _NO_DIGITS.sub("", value)


def in_hint(labels: str) -> str:
    """Return labels as a hint reads them: in a JSON key their words are joined by a sign, or by nothing."""
    return _IN_CLASS_OR_SPACE.sub(lambda match: _WIDER.get(match[1], match[1]) or r"[ _\-]?", labels)


_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)
_FIRST_PART = re.compile(r"\[(?P<set>[^\]]+)\]|\\?(?P<one>.)", re.DOTALL)


def alternatives_of(pattern: str) -> Iterator[str]:
    """Yield the outermost alternatives of a pattern."""
    start = depth = 0
    for token in _TOKENS.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "|" and depth == 0:
            yield pattern[start : token.start()]
            start = token.end()
    yield pattern[start:]


def first_letters(pattern: str) -> str:
    """Return a set of the letters, in both cases, with which words begin; they are alternatives of plain groups and sets."""
    return f"[{re.escape(''.join(sorted({form for one in _firsts(pattern) for form in (one.lower(), one.upper()[0])})))}]"


def by_first_letter(pattern: str) -> str:
    """Return the alternatives of a pattern that ignores case, put so that the first letter decides which of them are tried."""
    groups: dict[str, list[str]] = {}
    for alternative in alternatives_of(pattern):
        letters = {one.lower() for one in _firsts(alternative)}
        only = letters.pop() if len(letters) == 1 else ""
        is_plain = only.isascii() and only.isalpha() and alternative[:1] == only
        groups.setdefault(only if is_plain else "", []).append(alternative[1:] if is_plain else alternative)
    others = groups.pop("", [])
    plain = [f"(?-i:[{first}{first.upper()}])(?:{'|'.join(rest)})" for first, rest in sorted(groups.items())]
    guarded = [f"(?={first_letters(pattern)})(?:{pattern})"] if (pattern := "|".join(others)) else []
    return "|".join((*plain, *guarded))


def at_word(labels: str) -> str:
    """Return a pattern of the first letter of labels, in whichever case they are written."""
    return rf"{first_letters(labels)}{AT_WORD}(?<=(?=(?i:{by_first_letter(labels)}))(?s:.))"


def _firsts(pattern: str) -> set[str]:
    found: set[str] = set()
    for alternative in alternatives_of(pattern):
        rest = alternative
        while rest:
            if rest.startswith("("):
                end = _group_end(rest)
                found |= _firsts(rest[rest.index(":") + 1 : end - 1])
            else:
                part = _FIRST_PART.match(rest)
                assert part is not None
                found.update(part["set"].replace("\\", "") if part["set"] else part["one"])
                end = part.end()
            if rest[end : end + 1] != "?":
                break
            rest = rest[end + 1 :]
    return found


def _group_end(pattern: str) -> int:
    depth = 0
    for token in _TOKENS.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ValueError(f"a group of {pattern!r} has no end")


def by_letter(plain: list[str]) -> str:
    """Return a pattern of words, in which the first letter decides which of them are tried."""
    longest_first = sorted(set(plain), key=len, reverse=True)
    return "|".join(
        f"[{first}{first.upper()}](?i:{'|'.join(word[1:] for word in longest_first if word[0] == first)})"
        for first in sorted({word[0] for word in plain})
    )
