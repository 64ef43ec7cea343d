"""Words that join a label to its value, in the languages of the labels: "is", "my", "new", "no.", "of".

They are of closed classes, so that the list of a language is complete: a noun or a verb of its own between the two is not one
of them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from comity.core.redaction.labels import PERSONS
from comity.core.redaction.spelling import without_marks

# Verbs that say what something is, in the present, and words that stand in their place.
IS: Final = (
    "is|are|was|used to be|stays|remains|ist|war|heißt|heisst|bleibt|lautet:?|est|c['’]est|était|reste|es|era|és"
    "|sigue siendo|è|é|rimane|to|to jest"
    "|jest|är|er|on|je|là|adalah|ialah|ay|ni|это|це|είναι|este|ir|yra|е|је|هو|هي|הוא|היא|הינו|הינה|है|हैं|হল|হলো|ہے|şu|şöyle"
    "|this|now|reads|that is|das ist|que es|cioè|dat is|que é|czyli|tedy|alltså|det är|yani|то есть|luidt|brzmi|такой|такая"
    "|такий"
    "|zní|znie|lyder"
)
# Whose the value is: pronouns, and the prepositions before whoever it is.
_OWN: Final = (
    "my our your his her its their mein meine meiner meinem unser unsere ihr ihre sein seine mon ma mes ton ta notre votre "
    "son sa leur mi mis su sus nuestro nuestra mío mía tu il mio mia suo sua nostro nostra vostro meu minha seu nosso nossa "
    "dele dela mijn onze uw jouw zijn haar min mitt mina vår vårt din ditt hans hennes mit vores minun hänen meidän mín "
    "mína mój moja moje jego jej nasz nasza twój můj má jeho její náš naše môj az a mea meul lui ei nostru noastră tău mu "
    "moj moju njegov njegova naš naša мой моя моё мое его её ее наш наша ваш ваша мій його її моят моята ми му ѝ мој моја "
    "моје μου του της μας σας minu meie tema mans mana viņa viņas mūsu mano jo jos mūsų benim onun bizim seva el la els les "
    "nostre yangu yake yetu wangu wake letu langu lake saya kami ku aku dia nya beliau ko po ni ng ang namin niya kong ya "
    "wa cha za của tôi mình em anh chị ông bà الخاص الخاصة بي بك به بها بنا بحسابي لي له لها שלי שלו שלה שלנו من ما او مرا "
    "मेरा मेरी मेरे हमारा उनका उसका आपका আমার তার আমাদের میرا میری ان کا کی ons se"
)
# What kind of value it is: a newer one, the right one, one of several.
_WHICH: Final = (
    "new old current actual correct right following valid latest neue neuer neues neuen alte aktuelle richtige korrekte "
    "folgende nouveau nouvelle nouvel ancien ancienne actuel actuelle bon bonne suivant nuevo nueva viejo vieja correcto "
    "correcta siguiente nuovo nuova vecchio vecchia attuale corretto corretta seguente novo nova antigo atual correto "
    "correta nieuwe nieuw oude huidige juiste volgende nya nytt ny gamla gällande rätt nye nyt gamle gældende rigtige uusi "
    "vanha nykyinen oikea nýja nýtt nýr nowy nowa nowe stary stara aktualny aktualna poprawny následující nové nový nová "
    "starý aktuální správné új régi jelenlegi következő nou noua noul nouă vechi corect următorul новият новата нов нова "
    "ново следният novi stari нови uus uued jauns jaunais jaunā naujas nauja naujasis νέο νέος νέα παλιό σωστό yeni eski "
    "güncel geçerli doğru новый новая новое старый правильный следующий новий нове правильний الجديد الجديدة الحالي الحالية "
    "الصحيح التالي כדלקמן החדש החדשה הנוכחי הבא جدید جدیدم فعلی नया नई नए নতুন نیا نئی mới cũ baru lama baharu terbaru "
    "bagong luma mpya nuwe temporary provisional temporal provvisorio provvisoria provisoire provisorisch vorläufige "
    "voorlopige tymczasowe tymczasowy dočasné geçici временный временная временно тимчасовий المؤقت المؤقتة הזמני הזמנית "
    "موقت tạm sementara olarak jetzt nun inzwischen maintenant désormais ahora adesso ora agora nu nyt teraz nyní acum "
    "теперь сейчас зараз тепер şimdi artık sekarang"
)
# Words for a number, mostly short, and what is said of one.
_NUMBER: Final = (
    "number no nr num nbr numero número numéro núm nº n° n nummer numer nro númer č čís číslo cis sz szám száma numărul "
    "număr номер № бр број broj br št številka numurs numeris αρ αριθμός αριθμόν numara numarası رقم رقمه רقمها ذو ذي מס "
    "מספר שמספרו شماره نمبر नं नंबर संख्या क्रमांक নং নম্বর số sô nomor nombor bil blg bilang namba nambari nommer serie "
    "série seria серия серії сер number's called"
)


def _in_either_spelling(*lists: str) -> frozenset[str]:
    found = re.findall(r"[^\s|:?]+", " ".join(lists).lower())
    return frozenset(found) | frozenset(map(without_marks, found))


JOINING: Final = _in_either_spelling(IS, _OWN, _WHICH, _NUMBER)
_SAYING: Final = _in_either_spelling(IS, _OWN) | PERSONS
_SAID: Final = _SAYING | _in_either_spelling(_WHICH)
# The same in scripts without spaces between words: what may stand right behind a label.
_THAI_PEOPLE = (
    "ผู้ป่วย|ลูกค้า|คนขับ|พนักงาน|นักเรียน|ผู้โดยสาร|ผู้เช่า|เจ้าของ|ผู้รับ|ผู้โอน|คนไข้|แม่|พ่อ|ฉัน|ผม"
    "|ผู้เอาประกัน(?:ภัย)?|ผู้กู้|ผู้ซื้อ|ผู้ขาย|ผู้สมัคร|ผู้จอง"
    "|ผู้เข้าพัก|ผู้ปกครอง|ผู้ถือบัตร|ผู้ติดต่อ|ผู้ส่ง|ผู้เสียหาย|ผู้ค้ำประกัน|คู่สมรส|สามี|ภรรยา|ลูก(?:สาว|ชาย)?|แขก"
    "|(?:คุณ|นาย|นาง(?:สาว)?)[\u0e00-\u0e7f]{2,16}"
)
JOINED: Final = (  # it may be empty
    "(?:番号|號碼|号码|号|號|번호)?(?:이?는|은|가|이|是|(?:现在|現在|变|變)?(?:改|更新|更改)?(?:为|為|成|是)|は|が)?"
    rf"(?:ใหม่|ล่าสุด)?(?:(?:ของ)?(?:{_THAI_PEOPLE})|ของ[\u0e00-\u0e7f]{{2,24}}?)?(?:ใหม่)?(?:ด้วย(?:ค่ะ|ครับ|นะคะ)?|คือ"
    rf"|เป็น|เลขที่)?"
)
_JOINED = re.compile(JOINED)
# The same before a value in ASCII, and never empty.
JOINED_TO: Final = rf"(?=[\u0e00-\u0e7f\u2e80-\u9fff\uac00-\ud7af]){JOINED}(?=[ ]?[!-~「『“])[ ]?"
# Words between a label and a value in a pattern, which `is_said` judges.
GAP: Final = r"(?P<gap>(?:[^\s\d:=,.;!?()\[\]\"]{1,20}[ ]){1,4}?)"
# What may stand between a label and its value. Another word ("zip archive 90210") says that the label is not the value's.
_GAP_WORDS = (
    PERSONS
    | JOINING
    | frozenset(
        re.findall(
            r"\S+",
            "numbers nos id ids code codes details as at in for of it here yes sure okay ok well ready the and or und et "
            "aos le dne op på dnia den am mr mrs ms dr user person home work bank file ending read says value field equals "
            "also below again attached provided given recorded registered quoted stated which by via under me us him them "
            "uk ca gb canadian american british german usa date datum data dato дата address card dd mm yyyy tt jjjj aaaa "
            "jj серии numru নাম্বার на dana en conduire conducere du de del della di do da der des van von still currently "
            "actually sono lead main primary principal legal named other second first emergency contact kin next back "
            "changed updated corrected amended set switched geändert aktualisiert modifié cambiado cambiato alterado "
            "zmieniony изменён στις w we v в assigned raw uh um erm eh thuis werk privé privat zuhause hjem hem koti casa "
            "à au aux te em в во у σε στις στην στον w we ve per "
            "banks bank's banke banci mir uns til till bei hos banque banco banca banka banky banku bankasının bankası "
            "bankacı banki banken bankens pankki pankin banki "
            "bănci bancar bancaire bancario bancaria bankowy банка банк банку τράπεζας mine meins mien mijne there over "
            "abroad dort allí ahí ali lì daar там där siellä orada order sí sim oui ja tak "
            "да yeah yep rep pt",
        )
    )
)
_GAP_SIGNS = frozenset("是为為はが号號码碼番는은의번호증證証")  # which stand between a label and its value without a space
_NAME = re.compile(
    r"(?:[A-Z]['’])?[A-Z\u00c0-\u00de\u0100-\u017f][a-zà-ɏ]{1,20}|[А-ЯЁІЇЄҐ][а-яёіїєґ]{1,20}|[Α-ΩΆ-Ώ][ά-ώ]{1,20}"
)
MARKS: Final = (  # of scripts with vowel signs
    "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
)
WORD: Final = re.compile(rf"(?:[^\W_]|[{MARKS}])+(?:['’](?:[^\W_]|[{MARKS}])+)?")


def is_said(gap: str | None) -> bool:
    """Return whether nothing stands between a label and a value but words that say whose, which and that it is."""
    if gap is None:
        return True
    found = WORD.findall(gap.lower())
    return _SAID.issuperset(found) and not _SAYING.isdisjoint(found)


@lru_cache(maxsize=2048)
def is_joint(gap: str) -> bool:
    """Return whether nothing stands between a label and a value but signs, small words, persons and names."""
    return all(_joins(word) for word in WORD.findall(gap))


def _joins(word: str) -> bool:
    bare, sign, rest = word.replace("’", "'").partition("'")
    if sign and (rest == "s" or bare.lower() in _ELIDED):  # "the patient's", "de l'assuré"
        word = bare if rest == "s" else rest
    return (
        word.lower() in _GAP_WORDS
        or _NAME.fullmatch(word) is not None
        or _GAP_SIGNS.issuperset(word)
        or word == "s"
        or _is_joined(word)
    )


def _is_joined(word: str) -> bool:
    return not word.isascii() and _JOINED.fullmatch(word) is not None


_ELIDED = frozenset({"l", "d", "dell", "all", "nell"})
