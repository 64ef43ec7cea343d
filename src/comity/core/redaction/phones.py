"""Phone numbers in national form: they say nothing by themselves, so the label, its language and the words after them decide.

Which national numbers exist is what `phonenumbers` knows. It is asked for patterns alone, once per country, and only where a
label is as weak as "call" or "mobile": parsing every candidate with it would take longer than everything else together.
"""

from __future__ import annotations

import re
from functools import cache

from comity.core.redaction.beside import CALLED
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labelled import LabelledDetector, Rule
from comity.core.redaction.labels import BEFORE_RING, PHONE
from comity.core.redaction.shapes import AT_DIGIT, BEFORE, HINT_AFTER_LETTER, LatePattern, digits_of

_ENGLISH = "US GB AU IN IE NZ ZA SG HK PH NG KE MY"
_REGIONS = (
    f"{_ENGLISH} DE AT CH FR BE ES IT PT NL PL SE NO DK FI CZ HU RO GR TR RU UA CN TW JP KR BR MX AR CL CO"
    f" IL AE SA EG TH VN ID PK SK SI HR RS BG PE"
)
_PHONE = LatePattern(
    r"(?<![A-Za-z0-9_+])(?:\+?[0-9]|\([0-9+])(?:[ \u00a0\u202f./()\-\u2010-\u2015·•_]{0,3}[0-9]){6,14}(?:["
    r" ]?(?:x|ext\.?|extension)[ ]?[0-9]{1,6})?"

                    r"(?![A-Za-z0-9_])(?![-.][0-9]|:[0-5][0-9]|\.(?:pdf|csv|xlsx?|docx?|txt|zip|jpe?g|png|json"
                    r"|xml)(?![a-z]))")  # fmt: skip
_DATE_LIKE = re.compile(r"(?:[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-./ ])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))")
_ROUND = re.compile(r"[1-9][0-9]{0,5}0{4,}")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{1,2}(?:[ ][0-9]{3})+")

_STRONG = (
    r"(?:tele|cell(?:ular)?[ -]?|mobile[ -]?|home[ -]?|work[ -]?|office[ -]?|day(?:time)?[ -]?"
    r"|smart)?phones?|(?:direct|office|private) line|land ?line|direct dial|(?:phone|mobile|cell|contact|whatsapp|fax|hotline"
    r"|telephone|emergency|callback|call-back)[ -]?(?:numbers?|no|num|nr|nos)|tel|mob|telephone|fax|telefax|whatsapp|viber|ph"
)
_WEAK = (
    r"gsm|hp|namba(?:ri)?|fon|kom|cel|portable|call(?:ing|ed)?|dial(?:ling|ing|ed)?|sms|mobile|(?<!\ba )cell|hotline"
    r"|contact|kontakt"
    r"|(?:mera|meri|mere|aapka|apka|uska|uski|iska) (?:number|no|num|nambar)"
    r"|(?:my|our|his|her|their|meine|ihre|seine|deine|mijn|min|mitt) (?:number|nummer)"
    r"|(?:mi|mon|il mio) n[uú]m[eé]ro|(?:mon|ton|son|leur|votre|notre|le) num|m[oó]j numer|мой номер"
    r"|dzwo[nń](?:i[cć])?|durchwahl|ligue(?: para)?|llame al|anrufen|rufen(?: sie)?|appelez|llama|chiama(?:mi)?|bel"
)
_REACH = (
    r"للتواصل|اتصل|التواصل|संपर्क(?: नंबर)?|liên hệ|hubungi|contatt[io]|contactos?|contatos?|контакт(?:ы)?"
    r"|связь|звонить|звоните|дзвоніть"
    r"|επικοινωνία|καλέστε|iletişim|ara(?:yın)?|联系|聯繫|聯絡|連絡"
    r"|연락|ติดต่อ|kapcsolat|yhteys(?:tiedot)?|kontakta|volejte|volat|sunați|hívja|pozovite"
)
# Names of WhatsApp in chats; "zap" and "whats" mean other things too.
_CHAT = (
    r"zap(?:zap)?|whats|wh?pp|wsp|wzp|wapp|(?:wa[ts]+ap+|guasap)(?: al)?|whatsap|wasa|vatsap"
    r"|(?:nomor|nmr|no\.?) wa|wa (?:saya|aku|ku|dia)"
)
_WHERE = "fixe|fijo|fisso|festnetz|büro|bureau|ufficio|oficina|kantoor|biuro|kontor|toimisto|офис"  # where the phone is
# The phone that stays at home; in Spain, Portugal and Czechia its number begins as a mobile's does.
_LANDLINE = (
    r"(?:teléfono )?fijo|l[ií]nea fija|(?:telefone |telem[oó]vel |rede )?fix[oa]|(?:telefon )?stacjonarny"
    r"|pevn(?:á linka|ý telefon)"
    r"|vezetékes(?: szám)?|(?:hem|hjemme|fast)telefon|vaste? (?:lijn|nummer|telefoon)|lankapuhelin|fiksni(?: telefon)?"
    r"|стационар(?:ный|ний|ен)|городской|домашний|міський"
)
# "Number on the display": where the number of a caller is read.
_SHOWN = (
    r"(?:number|nummer|num[eé]ro|número|numer|nummeret|číslo|номер)[ ,](?:[ ]?(?:which|that|der|die|som) )?(?:(?:that )?"
    r"(?:came|showed|popped) up|shown|displayed|showing|affiché|angezeigte?|visualizzato|mostrado|wyświetlony"
    r"|que (?:sale|salió|aparece|apareceu)|(?:(?:affiché|visualizzato|angezeigt|shown|displayed) )?"
    r"(?:on|in|im|op|på|sul|sulla|en|na|à|nel|no|auf|sur|i|di|v|на|у)"
    r"(?: (?:the|my|our|her|his|their|la|el|het|le|su|mi|o|dem|der|l))?[ '’](?:caller |phone |mobile |handy)?"
    r"(?:display|screen|handset|voicemail|answerphone|écran|répondeur|pantalla|contestador|scherm|schermo|visor|displayet|displayen"
    r"|skärmen|skjermen|wyświetlaczu|ekranie|displeji|bildschirm|anrufbeantworter|экране|дисплее|екрані|дисплеї))"
    r"|(?:display|handset|caller id) (?:shows?|showed|says|said|reads?)"
    r"|(?:missed|dropped|lost) calls?(?: again)? from|(?:verpasste[rn]? anrufe?|anrufe? in abwesenheit) von"
    r"|appels? (?:manqués?|en absence) (?:de|du)|(?:llamadas? perdidas?|ligaç(?:ão|ões) perdidas?"
    r"|chamadas? (?:perdidas?|não atendidas?)) d[eo]"
    r"|chiamat[ae] pers[ae] da(?:l)?|gemiste oproep(?:en)? van|nieodebrane (?:połączeni[ea] )?od|zmeškan[ýé] hovory? od"
    r"|missa(?:t|de) samtal från|ubesvarte? (?:anrop|opkald) fra|пропущенн(?:ый|ые) (?:звон(?:ок|ки)|вызовы?) (?:от|с)"
)
# "My new number": a person's own, in whichever order the language has it.
_OWN_NUMBER = (
    r"(?:my|our|his|her|their) (?:new|other|old|own|second|current|temporary) number|(?:meine|ihre|seine) neue nummer"
    r"|m[oó]j numer(?: to)?|(?:m[oó]j|jej|jego|nasz) (?:nowy|stary|drugi) numer(?: to)?|meu número"
    r"|(?:meu|seu) (?:novo número|número novo)|(?:mi|su) (?:nuevo número|número nuevo)|(?:mon|son) nouveau num[eé]ro"
    r"|(?:mio|suo) nuovo numero|mit nye nummer|mitt (?:nye |nya )?nummer|mijn nieuwe nummer"
    r"|moje (?:nové )?číslo|uus numero(?:ni)?"
    r"|(?:új )?számom|nou(?:l )?num[aă]r(?:ul)?(?: meu)?|noul meu num[aă]r|(?:yeni )?numaram|μου (?:νούμερο|αριθμός)"
    r"|(?:мой|мій|моят) (?:нов(?:ый|ий) )?номер|我的新?(?:号码|號碼)|내 (?:새 )?번호|nomor (?:baru)?(?:ku|saya|aku)"
    r"|số (?:mới )?của (?:mình|tôi|em|anh|chị)"
)
# Cases and prepositions that a number stands in where one calls it.
_UNDER = (
    r"unter(?: der(?: (?:ruf|telefon|handy|mobil)?nummer)?)?|numero(?:on|sta|ssa)|(?:sunat[ăa]?|contactat[ăa]?|găsit[ăa]?) la"
    r"|na čísle|na číslo|pod numerem|на номер"
)
# Verbs of calling; the person who is called may stand behind them: "rappelez le plombier au 06 …".
_CALL = (
    r"ll[aá]m[a-z]{1,5}|(?:ri)?chiam[a-z]{1,5}|r?appele[rz]|r?appelle|joindre|joignez|t[eé]l[eé]phone[rz]"
    r"|(?:za|od)?dzwo[nń][a-zć]{0,5}|zadzwo[a-zń]{1,5}|lig(?:ar|ue|uem)|telefon(?:are|ieren|ować)|hívj(?:a|on)|hívd"
    r"|ruf(?:en(?: sie)?)?(?: bitte)?|bel(?:len)?|ring[ae]|soi(?:ta|ttakaa)|(?:za)?vol(?:at|[ae]j(?:te)?)|suna[țt]i|sună"
    r"|(?:na|po)zov(?:i|ite)|pokli[čc]i(?:te)?|(?:по|пере)?звони(?:те|ть)?|(?:за|пере)?дзвон(?:и|іть)"
    r"|подзвон(?:и|іть)|(?:за)?телефонуй(?:те)?|обад(?:и|ете)(?: се)?|обаждайте(?: се)?"
    r"|свя(?:житесь|заться)|зв['’]яжіться|зв['’]язатися|τηλεφών(?:ησε|ησέ)|τηλεφωνήστε|καλέστε|κάλεσε|πάρτε|arayın"
)
# The same, and labels, of languages in which nine digits in three groups are a phone number.
_CALL_IN_THREES = (
    r"(?:llama(?:d|r|lo|la|le)?|ll[aá]me(?:n|lo|la|le)?)(?: al?)?|truc(?:a|ar|ui)(?: al?)?|lig(?:ar|ue|uem)(?: para| ao?)?"
    r"|(?:za|od)?dzwo[nń](?:i[cć]|cie)?|(?:za)?vol(?:at|[ae]j(?:te)?)|avis(?:ar|e|en|ad)(?: al?)?"
    r"|s?kontakt(?:ować|uj(?:cie|emy)?) się|kontaktujte"
)
_IN_THREES = (
    r"tel[eé]fon[oeu]?|teléfono (?:m[oó]vil|fijo)|telefon kom[oó]rkowy|(?:numer|nr\.?) tel(?:efonu)?|telem[oó]vel|m[oó]vil"
    r"|kom[oó]rk[ai]|telef[oó]n(?:ne číslo|ní číslo)?|telefonní číslo"
)
# Whom to call; a name may follow. Norwegian and Danish numbers have eight digits.
_CONTACT = r"kontaktperson(?:en)?"
# A verb, not the noun of "piston ring": at the beginning of a sentence, or behind a word that a verb follows.
_RING_ALONE = "(?:(?<![^\\W\\d_][ -])|" + "|".join(f"(?<=(?<![a-z]){word} )" for word in BEFORE_RING.split("|")) + ")ring"
# In English these are nouns too, so that an article or a pronoun must follow.
_CALL_WHOM = r"(?:call|ring|phone|text)(?: back)? (?:the|my|our|your|his|her|their)"
_DIAL = "набер(?:и|ите|іть)"  # which also is what is done to points
# Norwegian and Danish numbers have eight digits.
_RING_TO = r"ring til [^\W\d_]{3,20}"
_RING = r"ring [^\W\d_]{3,16}(?:en|et)"  # also "ring token", so that groups of two are none
_CONTENT = "text(?:ing|ed)?|message"  # "text: …" and `{"text": …}` hold any text
_AT = (
    r"(?:(?:ser |essere |être |worden |werden )?(?:contactad[oa]s?|llamad[oa]s?|avisad[oa]s?|localizad[oa]s?"
    r"|chamad[oa]s?|(?:ri)?chiamat[oa]"
    r"|contattat[oa]|rintracciabile|r?appelée?s?|jointe?s?|contactée?s?|(?:terug|op)?gebeld|bereiken|bereikt|angerufen"
    r"|zurückgerufen|erreicht|kontaktiert|uppringd|ringas|nås|ringes|kontaktes|kontaktas|dosegljiv[aoi]?|dostup(?:an|na)|zastižen(?:[íay])?"
    r"|elérhető|dihubungi)|(?:call|text|ring|dial|reach|reached|contact|message|phone|erreichbar|available|reachable|joignable|bereikbaar"
    r"|raggiungibile|reperibile|localizable|anträffbar|nåbar)(?:ing|ed"
    r"|able)?|ruf|rückruf|rückfragen|(?:an|zurück)?rufen|erreichen|joindre|appele[rz]|ll[aá]m[a-z]{1,5}|chiam[a-z]{1,5}"
    r"|bel(?:len)?|zadzwo[a-zń]{1,5}|soit[a-z]{1,7}|dzwo[nń][a-zć]{0,5}|telefon(?:ować|ieren|are)"
    r"|contact(?:er|ar|ez|e)|contatt(?:are|ate|i)|lig(?:a|ar|ue)|trov(?:i|a|ate|are)|kontaktier(?:en|t)|(?:za)?vol(?:at|ejte?)"
    r"|hívj(?:a|on)|suna[țt]i"
    r"|ring[ea]|pozovite"
    r"|(?:по)?звони(?:те|ть)?|(?:за)?телефонуйте|(?:за)?дзвоніть|обаждайте|ara(?:yın|yabilirsiniz)|ulaşabilirsiniz)"
    r"(?:[ ](?:[^\W\d]|[.'’]){1,16}){0,4}?[ ](?:at|on|under|via|unter|auf|au|al|an|op|på|pod|numeroon|til|na"
    r"|no|ao|en(?: el)?|di"
    r"|para(?: [oa])?|по|на|за)"
)
# Keys of a number that may also be a count, and words in keys that say that it is one.
_MOBILE = (
    r"mobile|mobil|mobile? ?(?:phone|telefon|tel)|mobil(?:nummer|nr|szám|szam)|handy(?:nr)?|cell|cell ?phone|gsm(?: ?nummer)?"
    r"|cel|telemovel|telemóvel|telefone|m[oó]vil|cellulare|portable|natel|kom[oó]rka|telefoon(?:nummer)?|mobiel"
    r"|(?:matka)?puhelin(?:numero)?|tlf|telefonszám|mobitel|msisdn|ponsel|no hp|numer telefonu|telefon(?:ní|ne) (?:číslo|cislo)"
    r"|rufnummer|rückrufnummer|телефон|мобильный|мобільний|τηλέφωνο|κινητό|手机号?|手機|電話番号|携帯|전화번호|휴대폰"
)
_MEASURED = (
    "traffic|sessions?|visits?|views?|clicks?|sales|revenue|costs?|channels?|devices?|share|split|breakdown"
    "|stats|statistics|metrics|usage|counts?|totals?|calls|minutes|bytes|by|per|number of|impressions|downloads|installs"
    "|spend|budget|population|subscriptions|coverage|network|platforms?"
)
_LABELS_OF_HINT = (
    r"[a-z ]*phones?|num|fon|kom|gsm|hp|namba(?:ri)?|cel|portable|mobile?|mob|cell|tel|ph|fax|telefax|whatsapp|viber|call"
    r"|calling|called|dial|ring|sms|hotline|contact|reach|reached|reachable|(?:direct|office|private) line|land ?line"
    r"|kontakt|number|nummer|numer|номер|rück[a-z]+|zurückrufen|n[uú]m[eé]ro|ligue|para|al|tlf|puh|anrufen"
    r"|ruf(?:en?)?|erreichen|joindre|appele[rz]"
    r"|ll[aá]m[a-z]+|chiam[a-z]+|bel(?:len)?|soita|dzwo[nń](?:i[cć])?|durchwahl"
    r"|erreichbar|joignable|bereikbaar|raggiungibile|reperibile|localizable|anträffbar|nåbar|liga"
    r"|trov(?:i|a|ate|are)|available|handy|emergency|callback|day[a-z]*|call-back|dzwo[nń][a-zć]*|telefonować|telefonieren"
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
    r"|svp|stp|merci|pls|plz|ce|cet|cette|hoy|mañana|ahora|demain|maintenant|heute|morgen|oggi|hoje|agora|dziś|dnes|nu|nå|idag"
    r"|wieczorem|rano|jutro|kvůli|ohledně|żeby|domani|domattina|večer|zítra|terug|zurück|tillbaka|tilbake"
    r"|dopo|le|la|les|il|lo|gli|un|una|des|du|de|del|della|di|da|dal|con|su|ou|mais|si|sauf|avant|après|par|sur|pero|antes"
    r"|después|por|hasta|desde|em|até|depois|ao|of|app|even|na|voor|tot|vanaf|bel|lub|albo|po|do|od|przed|works|valid|nur|bitte"
    r"|ist|erbeten|gerne|bis|zwischen|mit|dringend|wenn|falls|als|quand|lorsque|cuando|quando|caso|se|jak|jeśli|když|ha|hai|ho"
    r"|extension|called|rang|answered|immediately|quickly|soon|morning|while|within)\b|[a-z_]{2,20}[=:])[a-z]{2,})"
)
_AMOUNT = LatePattern(
    r"[ \u00a0]?(?:EUR|USD|PLN|CZK|COP|MXN|PEN|BRL|ARS|CLP|TRY|TL(?![A-Za-z])|Kč|zł|pesos|reais|mil(?![a-z]))"
)
_BARE = re.compile(r"[0-9]+")
# A bare number that is one of several counts: "1845220 calls, mobile 1120400, landline 724820", "电话2345678次".
_FIGURE = re.compile(r"[1-9][0-9]{6,7}")
_SHARE = re.compile(r"[1-9][0-9]{6,7}[ ]?\([0-9]{1,3}(?:[.,][0-9]{1,3})?[ ]?%")
_CHANNEL = (
    r"desktops?|tablets?|e-?mails?|chat|web(?:site)?|apps?|walk-?ins?|in-?person|online|post|letters?|portal|smart tv|tv"
    r"|kiosk|branch"
    r"|ordinateurs?|courriels?|courrier|ordenador|escritorio|correo|computer|filiale|schalter|brief"
)
_KIND_OF_PHONE = (
    r"land ?lines?|mobile|cell|phone|work|home|other|others|office|fax|sms|text|fixed|voip|festnetz|handy|sonstige|fixes?"
    r"|autres?|fijos?"
    r"|otros?|fiss[oi]|altr[oi]|vaste?|overige?|stacjonarn[ey]|inne|fast|övriga?|pevné|ostatní|городские|прочие"
)
_NUMBERED_NOUN = (
    r"calls?|sessions?|visits?|visitors|users|clicks|views|impressions|hits|downloads|installs|contacts|tickets|customers"
    r"|requests|orders|minutes|messages|subscribers|lines|anrufe|besuche|sitzungen|zugriffe|kontakte|appels?|visites"
    r"|sessions|abonnés|llamadas|visitas|sesiones|chiamate|visite|sessioni|chamadas|ligações|sessões|oproepen|bezoeken"
    r"|gesprekken|połącze(?:ń|nia)|wizyty|sesje|samtal|besök|opkald|anrop|hovory|hovorů|hívások?|apeluri|звонки|звонков"
    r"|вызовов|дзвінків|aramalar|çağrı|שיחות|مكالمات|مكالمة|اتصالات|تماس|कॉल|สาย|cuộc gọi|panggilan"
)
_AMONG_COUNTS = re.compile(
    rf"[0-9][0-9.,\u00a0]{{3,12}}[ ](?:[^\W\d_]{{2,10}}[ ])?(?:{_NUMBERED_NOUN})(?![^\W_])[^.!?\n]{{0,40}}$"
    rf"|(?<![^\W_])(?:{_NUMBERED_NOUN})(?:[ ][^\W\d_]{{2,10}}){{0,2}}[ ]?[:=(][ ]?[0-9][0-9.,]{{3,12}}[^.!?\n]{{0,40}}$"
    rf"|COUNT\(|(?<![^\W_])(?:by|per|nach|je|par|por|per|przez|na)[ ](?:device|channel|platform|line|phone)[ _]?(?:type"
    rf"|kind)?[ ]?:[^.!?\n]{{0,40}}$"
    rf"|(?<![^\W_])(?:{_CHANNEL})[ =:]{{1,2}}[1-9][0-9]{{2,7}}(?:[ ]?[,;/|\n][ ]?|[ ])[^\W\d_]{{2,12}}[ =:]{{1,2}}$",
    re.IGNORECASE,
)
_BESIDE_COUNTS = re.compile(
    rf"[ ]?[*+^][ ]?[\w(]|[ ]?[,;/|\n][|\n ]{{0,3}}(?:and[ ]|und[ ]|et[ ]|y[ ]|e[ ])?(?:(?:{_CHANNEL})[ =:"
    rf"|]{{1,3}}[1-9][0-9]{{2,7}}"
    rf"|(?:{_KIND_OF_PHONE})[ =:|]{{1,3}}[1-9][0-9]{{2,5}})(?![\w-])"
    r"|[ ]?(?:次(?![日要生元])|通(?![话話知过過])|台(?![湾灣北])|[个個](?!人)"
    r"|部(?![门門长長])|[户戶]|[条條](?![件款])|支(?![持付])|[只隻]"
    r"|件(?!名)|回(?![线線复復答電电拨撥])|人(?![员員])|[万萬亿億]|건(?!으로)|통(?![화해])|대(?![표리신])|명(?![의함])|개(?!인)|회(?![사신선원]))"
    r"|[ ](?:of (?:them|which|these)|davon|dont|d['’]entre|de ell[oa]s|di cui|daarvan|z nich|z toho|varav|hvoraf|из них"
    r"|з них|מהן|מהם|منها"
    r"|منهم|از آنها|bunların)(?![^\W_])"
    r"|[ ](?:раз(?:а|и|ів)?|разів|штук|adet|kez|defa|เครื่อง|ครั้ง|สาย|cuộc|lần|máy|unit|kali|buah)(?![^\W_])"
    r"|[ ](?:за|per|pro|par|por|al|im)[ ](?:год|рік|year|jahr|an|mois|año|anno|mese|ano|mês|monat|month|rok)(?![^\W_])",
    re.IGNORECASE,
)
_BARE_DIGITS_MIN, _CALLED_DIGITS_MIN = 9, 8
_THREES = re.compile(r"[1-9][0-9]{2}(?:[ \u00a0][0-9]{3}){2}")
_THREES_REGIONS = "ES PL CZ SK PT PE"
_PAIRS = re.compile("[2-9][0-9](?:[ ][0-9]{2}){3}")
_NORWEGIAN = re.compile("[2-9][0-9]{2}[ ][0-9]{2}[ ][0-9]{3}")
_PLAIN = re.compile(r"[0-9.,]+|[0-9]{1,3}(?:[ \u00a0][0-9]{3})+")

# Numbers that states keep for stories and examples, which people take for their own.
_FICTIONAL = {
    "GB": "7700900[0-9]{3}|1[0-9]{2}4960[0-9]{3}|2079460[0-9]{3}|1632960[0-9]{3}|2890180[0-9]{3}|2920180[0-9]{3}"
    "|8081570[0-9]{3}",
    "FR": "63998[0-9]{4}|19900[0-9]{4}|26191[0-9]{4}|35301[0-9]{4}|46571[0-9]{4}|53649[0-9]{4}",
    "IE": "2091[0-9]{5}",
}


@cache
def _patterns(region: str, *, is_mobile: bool = False) -> tuple[str, re.Pattern[str]] | None:
    """Return the trunk prefix and the pattern of the national numbers of a country, or of its mobile ones alone."""
    from phonenumbers import PhoneMetadata  # noqa: PLC0415  slow to import, and most texts have no phone number

    metadata = PhoneMetadata.metadata_for_region(region, None)
    if metadata is None or metadata.general_desc is None:
        return None
    described = (metadata.mobile,) if is_mobile else (metadata.fixed_line, metadata.mobile, metadata.toll_free, metadata.voip)
    patterns = [_FICTIONAL[region]] if region in _FICTIONAL else []
    patterns += [one.national_number_pattern for one in described if one is not None and one.national_number_pattern]
    return metadata.national_prefix or "", re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def is_national(digits: str, regions: str = _REGIONS, *, is_mobile: bool = False) -> bool:
    """Return whether digits are a national number of one of the countries, with or without its trunk prefix."""
    for region in regions.split():
        known = _patterns(region, is_mobile=is_mobile)
        if known is None:
            continue
        prefix, pattern = known
        if pattern.fullmatch(digits) or (prefix and digits.startswith(prefix) and pattern.fullmatch(digits[len(prefix) :])):
            return True
    return False


def is_international(digits: str) -> bool:
    """Return whether digits are the code of a country and one of its national numbers."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE  # noqa: PLC0415  as above

    return any(
        (known := _patterns(region)) is not None and known[1].fullmatch(digits, length)
        for length in (1, 2, 3)
        for region in COUNTRY_CODE_TO_REGION_CODE.get(int(digits[:length]), ())
    )


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
    if 9 <= len(digits) <= 12 and (is_national(digits) or re.fullmatch(r"1?[2-9][0-9]{9}", digits) is not None):
        return True
    return len(digits) == 13 and is_international(digits)


def _is_grouped(value: str) -> bool:
    """With other words behind the label the number must be grouped, or begin, as phone numbers do, and be valid somewhere."""
    return (value[0] in "0+" or _PLAIN.fullmatch(value) is None) and len(_number(value)) > 7 and _is_phone(value)


def _is_in_threes(value: str) -> bool:
    """Count a number in groups of three too, which elsewhere is a count, if countries that write it so have it."""
    return _is_grouped(value) or (_THREES.fullmatch(value) is not None and is_national(digits_of(value), _THREES_REGIONS))


def _is_rung(value: str) -> bool:
    return _is_dialled(value) and is_national(_number(value), _ENGLISH)


def _is_norwegian(value: str) -> bool:
    return _is_grouped(value) or (_NORWEGIAN.fullmatch(value) is not None and is_national(digits_of(value), "NO"))


def _is_nordic(value: str) -> bool:
    return _is_norwegian(value) or (_PAIRS.fullmatch(value) is not None and is_national(digits_of(value), "NO DK"))


def _is_own(value: str) -> bool:
    return _is_phone(value) or _is_nordic(value)


def _is_worldwide(digits: str) -> bool:
    """Count a bare number that begins with the code of its country, or a mobile's national one, of nine digits or more."""
    return len(digits) >= _BARE_DIGITS_MIN and (is_international(digits) or is_national(digits, is_mobile=True))


def _is_dialled(value: str) -> bool:
    """Count a number behind the word for an office, which also has years and areas, if it begins as phone numbers do."""
    return value[0] in "0+(" and _is_grouped(value)


def _is_reached(value: str) -> bool:
    return _is_plausible(value) and (len(_number(value)) >= 9 or not _BARE.fullmatch(value))


def _is_figure(value: str, before: str, after: str) -> bool:
    """Return whether the words around a bare number say that it is a count, or that it stands in a list of counts."""
    if not _FIGURE.fullmatch(value):
        return _SHARE.match(value + after) is not None
    return _BESIDE_COUNTS.match(after) is not None or _AMONG_COUNTS.search(before) is not None


def _accept_called(value: str) -> int:
    digits = digits_of(value)
    return len(value) if len(digits) >= _CALLED_DIGITS_MIN and is_national(digits) else 0


# "601 448 217, dzwonić rano": that one is to call it says that it is a phone number.
PHONE_CALLED = PatternDetector(
    name="phone_called",
    type="PHONE",
    category=Category.CONTACT,
    priority=43,
    pattern=LatePattern(rf"{BEFORE}[0-9]{{2,4}}(?:[ \u00a0.-][0-9]{{2,4}}){{2,4}}(?={CALLED}(?![^\W_]))", re.IGNORECASE),
    first=rf"{AT_DIGIT}(?=[0-9]{{1,3}}[ \u00a0.-])",
    hint=rf"[0-9]{CALLED}{HINT_AFTER_LETTER}",
    accept=_accept_called,
    need=Need.NO_FOREIGN_LABEL,
    not_after=LatePattern("[0-9][-. ]$", end_chars=3),
)
PHONES = LabelledDetector(
    name="phone_named",
    type="PHONE",
    category=Category.CONTACT,
    priority=42,
    pattern=_PHONE,
    rules=[Rule(_CALL_IN_THREES, _is_reached, _AMOUNT, is_valid_apart=_is_grouped, is_valid_described=_is_in_threes),
           Rule(_AT, _is_reached, is_valid_apart=_is_grouped), Rule(_DIAL, _is_dialled, is_valid_apart=_is_dialled),
           Rule(_CALL_WHOM, _is_rung, is_valid_apart=_is_rung), Rule(_RING_TO, _is_nordic), Rule(_RING, _is_norwegian),
           Rule(_IN_THREES, _is_plausible, _AMOUNT, is_valid_apart=_is_grouped, is_valid_described=_is_in_threes),
           Rule(PHONE, _is_plausible, is_valid_apart=_is_grouped),
           Rule(_STRONG, _is_plausible, is_valid_apart=_is_grouped),
           Rule(_CALL, _is_phone, is_valid_apart=_is_grouped),
           Rule(f"{_WEAK}|{_RING_ALONE}", _is_phone, LatePattern(r"[ ]of[ ]")), Rule(_CONTENT, _is_phone, with_colon=False),
           Rule(_CONTACT, _is_nordic, is_valid_apart=_is_nordic),
           Rule(_CHAT, _is_phone, is_valid_apart=_is_grouped),
           Rule(_LANDLINE, _is_in_threes, is_valid_apart=_is_grouped, is_valid_described=_is_in_threes),
           Rule(_SHOWN, _is_in_threes), Rule(_UNDER, _is_dialled), Rule(_OWN_NUMBER, _is_own),
           Rule(_WHERE, _is_dialled), Rule(_REACH, _is_phone)],
    hint_labels=f"{_LABELS_OF_HINT}|{_CHAT}|{_CONTACT}|{_CALL_IN_THREES}|contatt(?:are|ate|i)|contact(?:ez|e)|{PHONE}|{_WHERE}"
    f"|{_LANDLINE}|{_SHOWN}|{_UNDER}|{_OWN_NUMBER}|contactad[oa]s?|llamad[oa]s?|avisad[oa]s?|localizad[oa]s?|chamad[oa]s?|chiamat[oa]|contattat[oa]"
    f"|rintracciabile|joints?|jointe|contacté|gebeld|bereiken|bereikt|angerufen|zurückgerufen|erreicht|kontaktiert|uppringd|ringas|nås"
    f"|ringes|kontaktes|kontaktas|dosegljiv[aoi]?|dostup(?:an|na)|zastižen(?:[íay])?|elérhető|dihubungi|{_REACH}|{_CALL}|{_DIAL}",
    hint_never_keys=_CONTENT,
    hint_value=r"[0-9](?:[ \u00a0\u202f./()\-\u2010-\u2015·•_]{0,3}[0-9]){5}",  # the border of a label takes one: "电话2345678"
    not_followed=_COUNTED,
    is_figure=_is_figure,
    ids=False,
    keys=LatePattern(
        r"(?:phones?|telephones?|tel|fax|telefax|whatsapp|handynummer|telefon|telefonnummer|telefono|teléfono"
        r"|téléphone|telefone|telefoon|telefonu|телефону|celular|(?:phone|mobile|cell|contact|fax|telephone)"
        r" ?(?:numbers?|no|num|nr))", re.IGNORECASE),
    keys_weak=LatePattern(rf"(?!(?:.*[ ])?(?:{_MEASURED})(?: |\Z))(?:.*[ ])?(?:{_MOBILE})", re.IGNORECASE),
    is_valid_bare=_is_worldwide,
    bare_digits_min=8,
)  # fmt: skip
