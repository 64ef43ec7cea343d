"""Where a person lives: street addresses and the towns beside them."""

from __future__ import annotations

import re
from functools import lru_cache

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import ADDRESS
from comity.core.redaction.postal import STATES
from comity.core.redaction.shapes import (
    AFTER_DIGIT,
    AT_BORDER,
    AT_DIGIT,
    BEFORE,
    HINT_AFTER,
    HINT_BEFORE_LETTER,
    HINT_GAP,
    LETTER,
    LONG_CHARS_MAX,
    NOT_AFTER_DIGIT,
    WALL,
    Context,
    LatePattern,
    in_hint,
    words,
)

_PLAIN_SUFFIX = (
    "Street|St|Avenue|Ave|Av|Road|Rd|Boulevard|Blvd|Lane|Ln|Crescent|Cres|Terrace|Terr|Highway|Hwy|Parkway|Pkwy|Turnpike"
    "|Expressway"
)
# Words that also end "Google Drive", "Supreme Court" or "first Place": they count only where an address would end or go on.
_AMBIGUOUS_SUFFIX = "Drive|Dr|Court|Ct|Place|Pl|Way|Square|Sq|Close|Circle|Cir|Trail|Trl|Row|Gardens|Grove|Walk|Mews|Hill|Quay"
_NOT_A_STREET = frozenset(
    re.findall(
        r"\w+",
        "Google Hard Flash Disk State Supreme District Tape Shared Team Wall Solid USB External Internal One Two Times"
        " Cloud Thumb Backup Network Brigade TB GB MB SSD HDD NVMe SATA",
    )
)
# "18 Brigade Road" is one, as "10 Wall Street" is; "2 Fire Brigade Road closures" and "4 TB Way" are none.
_PLAIN_STREET = re.compile(
    rf"[0-9][A-Za-z]?,? (?:Brigade|Wall|State|Court|Supreme|District|Network|Flash|Tape) (?:{_PLAIN_SUFFIX})(?![A-Za-z])"
)
_NOT_FIRST = frozenset(  # after a number: "24 Hour Drive", "3 Way Street parking"
    re.findall(
        r"\w+",
        "Terabyte Gigabyte Megabyte Bedroom"
        " Hour Hours Day Days Minute Minutes Week Weeks Month Months Year Years Mile Miles Step Steps Star"
        " Level Page Best Top Phase Percent Part Way"
        " Ways Lane Lanes Floor Seat Series Round Stage Product Test Half Speed Car Cars Bus Parking Traffic"
        " Point People Person Second Seconds Night"
        " Bit Byte Million Billion Thousand Dollar Euro Pound Angry Inch Foot Ton Core Axis Nights Story"
        " Storey Door Wheel Track Tracks String Piece Unit Units More New Open Free Extra Hole Holes Par",
    )
)
_SUFFIX = f"(?:{_PLAIN_SUFFIX}|{_AMBIGUOUS_SUFFIX})"
_GOES_ON = (  # a sentence behind a street, or behind its town
    "and|or|in|near|at|on|off|is|was|are|were|has|had|for|to|by|with|from|the|a|an|since|until|till|after|before|behind"
    "|opposite|between|next|which|where|when|who|that|but|so|as|if|because|today|tomorrow|tonight|please|will|would|can|could"
    "|should|may|via|not|now|then|while|during|apt|apartment|unit|flat|floor|suite|room|my|our|your|his|her|their|this|also"
    "|only|again|instead|thanks|and/or|come|call|ring|ask|door|buzz|knock|use|meet|park|just|opposite|around|over|does|did"
    "|looks|lives|last|next|yesterday|early|late|later|earlier|recently|once|already|still|always|never|ever|every|before"
    "|forever|together|without|about|up|down|out|into|than|yes|no|ok|okay|thanks|until|ago|forward|back|home|if|plus"
)
# A noun that follows takes the street for its first part: "48 Park Avenue style flats", "2 Fast Lane passes".
_NO_NOUN = (
    "(?![ ]of[ ])"
    f"(?![ ](?!(?:{_GOES_ON})(?![a-z]))[a-z]{{3}})(?![ ][A-Z][a-z]{{2,14}}[ ](?!(?:{_GOES_ON})(?![a-z]))[a-z]{{3}})"
    # The same in capitals: "7 Easy Street Food Recipes", "8 Scenic Road Trips". A town may follow too, so these are listed.
    "(?![ ](?:Food|Art|Artist|Fashion|Photograph(?:y|er)|View|Fighter|Journal|Market|Party|Fair|Festival|Smart|Wear|Danc(?:e"
    "|er)|Light|Lighting|Sweep(?:er|ing)|Parking|Clean(?:er|ing)|Team|Rac(?:e|er|ing)|Performer|Hockey|Ball|Basketball"
    "|Football|Band|Style|Theat(?:re|er)|Child(?:ren)?|Kid|Lamp|Sign|Signage|Map|Crime|Trad(?:er|ing)|Vendor|Cred|Credit|Talk"
    "|Sense|Outreach|Work(?:er|out)?|Furniture|Tree|Price|Bank|Banker|Fund|Bull|Trip|Bike|Show|Safety|Tax|Test|Rage|Runner"
    "|Closure|Warrior|Block|User|Network|Transport|Haulage|Accident|Change|Assist|Keeping|Departure|Code|Patrol|Maintenance"
    "|Moon|Roll|Wrench|Musician|Music|Snack|Eats|Episode|Studio|Home|Camera|Terminus|Loop|Corridor|Shop|Brand|Chain|Lender"
    "|Sale|Retailer|Analyst|Firm|Brownie"
    "|Candle|Bridge|Galler(?:y|ies)|Book|Soap|Tea|Coffee|Press|Record|Picture|Capital|Partner|Bistro|Grill|Brewer(?:y|ies)|Label"
    "|Edition|Collection|Boutique|Kitchen|Deli|Diner|Garage"
    "|Caravan|Survey|Repair|Widening|Project|Scheme|Works)(?:s|es)?(?![a-z]))(?![ ](?!Yonkers|Danvers|Myers|Rivers"
    "|Waters)[A-Z][a-z]{2,14}(?:ies|ers|ors|tions|ists|ips|ects|ents|ets|acks|ooks|odes|hops)(?![a-z]))"
)
_GERMANIC = (
    "(?:straße|strasse|str\\.|weg|platz|allee|gasse|damm|ufer|straat|laan|gracht|plein|kade|dijk|singel|steeg|gade|vej|vænget"
    "|stræde|torv|plads|veien|vegen|gata|gaten|plassen|vägen|gatan|gränd|torget|katu|kuja|polku|intie|ntie)"
)
_EASTERN = (
    "(?:náměstí|nám\\.|třída|tř\\.|ulice|nábřeží|utca|út|útja|tér|tere|körút|Sokak|Sokağı|Sk\\.|Caddesi|Cad\\.|Bulvarı"
    "|iela|gatvė|trg"
    "|cesta|ulica|námestie)"
)
_CYRILLIC = "ул\\.|улица|пр\\.|проспект|просп\\.|пр-т|пер\\.|вул\\.|вулиця|вуліца|бул\\.|бульвар|наб\\.|ш\\.|мкр\\."
_CYRILLIC_HOUSE = (  # and the building, entrance, floor and flat behind it
    ",?[ ](?:(?:д|б|буд|зд|вл)\\.[ ]?|(?:дом|будинок|будынак)[ ])?(?:№[ ]?)?[1-9][0-9]{0,3}[а-яі]?(?:/[0-9]{1,4}[а-я]?)?"
    "(?:,?[ ](?:(?:корп|к|кв|стр|оф|под|эт|ап|вх|ет)\\.[ ]?"
    "|(?:корпус|квартира|строение|офис|офіс|подъезд|под['’]їзд|этаж|поверх)"
    "[ ])(?:[0-9]{1,4}[а-я]?|[А-Яа-я])(?![а-яё0-9])){0,4}"
    "(?![ ]?(?:полос|этап|метр(?!о)|км|мм|м(?![а-яё])|%|шт|страниц|лет(?![а-яё])|год|смуг|сторін))"
)
_MALAY = "(?:Jalan|Jln\\.?|Jl\\.|Lorong)"
_GREEK = "Λεωφόρος|Λεωφόρου|Λεωφ\\.|[Οο]δός|[Οο]δού|Πλατεία"
_HEBREW = "רחוב|רח['׳]|שדרות|שד['׳]"
_ARABIC = "شارع|خیابان"
_INDIAN = "(?:Sector|Nagar|Colony|Marg|Layout|Enclave|Vihar|[Pp]uram|Chowk|Society|Apartments|Residency)"
_ROAD = "[\u4e00-\u9fff]{1,8}(?:路|街|大道|胡同|巷)(?:[一二三四五六七八九十东西南北東中]{1,2}段?)?(?=[0-9]{1,5}[号號弄巷])"
_INDOORS = "(?:[ ]?[0-9A-Za-z]{1,5}[ ]?(?:号楼|號樓|号|號|楼|樓|栋|棟|幢|座|单元|單元|层|層|室|房|弄|之[0-9]|F)){0,4}"
_VIETNAMESE = "[A-ZĐ\u00c0-\u00dd\u1ea0-\u1ef9][a-zđ\u00e0-\u00fd\u0103-\u01b0\u1ea0-\u1ef9]{0,7}"
_NAME = rf"[A-Z\u00c0-\u00de\u0141\u0154-\u017d][{LETTER}'’-]{{2,24}}"
_DIRECTION = r"(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?[ ])?"
_STREET_WORD = rf"(?:[A-Z\u00c0-\u00de][{LETTER}'’.-]{{0,24}}|[0-9]{{1,3}}(?:st|nd|rd|th))"
_UNIT = r"(?:\.?,?[ ](?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Room|Rm|No|#)\.?[ ]?#?[A-Za-z0-9-]{1,6}(?![A-Za-z0-9_]))?"
_QUARTER = r"(?:[ ](?:NE|NW|SE|SW|N|S|E|W)(?![A-Za-z0-9]))?"
_ROMANCE = "rue|avenue|av\\.|boulevard|bd|place|chemin|allée|quai|impasse|cours|via|viale|piazza|calle|avenida|paseo|rua"
# English words that make another thing of the word before them: "6 Avenue Theatre", "12 Place Settings", "3 Via Ferrata tours".
_NOT_ROMANCE = (
    "(?!(?:Theat(?:re|er)|Cinema|Hotels|Mall|Gallery|Restaurant|Caf[eé]|Club|Setting|Mat|Rail|Ferrata|Name|Holder|Kick|Show"
    "|Performance|Ticket|Bar|Grill|Diner|Bakery|Shopping|Shop|Store|Apartment|Card|Music|Records|Studio|School|Festival|Magazine"
    f"|Boutique|Motel|Lounge|Concert|Musical|Album|Series|Obligatoire|Magistra(?:l|ux)|Fluvial|Critique)s?(?![{LETTER}]))"
)
_ROMANCE_FIRST = (
    "Bd\\.|Boul\\.|Str\\.|Via|Viale|Piazza|Corso|Vicolo|Calle|C/|Avenida|Avda\\.|Av\\.|Paseo|Plaza|Carrera|Rua|Travessa|Praça"
    "|Largo|Alameda|Strada|Bulevardul|Rue|Cadde"
)
# The same in small letters, as sentences have them; "via" also means by way of.
_ROMANCE_SMALL = "(?<=[ ]in[ ])via|viale|piazza|calle|avenida|paseo|rua|travessa|praça"
# A house number in words.
_IN_WORDS = (
    "(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-(?:one|two|three|four|five|six|seven|eight"
    "|nine))?|one|two|three"
    "|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
)
_CITY = (
    r"(?:,?[ \n](?:[A-Z]{1,2}-)?(?:[0-9]{4,6}|[A-Z][0-9]{4}[A-Z]{3}|[0-9]{2}-[0-9]{3}|[0-9]{3}[ ][0-9]{2}"
    r"|[0-9]{5}-[0-9]{3})(?:[ ][A-Z]{2})?"
    rf"[ ](?:São[ ]|Saint[ ]|Bad[ ]|Den[ ])?[A-Z\u00c0-\u00de][{LETTER}-]{{1,24}}(?![{LETTER}]))?"
)
_HOUSE = "[1-9][0-9]{0,3}(?:[-–][1-9][0-9]{0,3}(?![0-9]|[ ]?Uhr))?"
_NO_UNIT = "(?![ ]?(?:[mckdµ]?m|k?g|t|l|ms|min|Std|GB|MB|TB|km/h|Prozent|Meter|Stück|%|€)(?![A-Za-z]))"  # "Bremsweg 40 m"
_DOOR = "(?:/[0-9]{1,3}){0,3}"  # behind the number of a house: its stairs, its floor, its door
_PARTICLE = r"(?:(?:de|du|des|d['’]|la|le|les|l['’]|del|della|di|da|das|do|dos|delle|dei|degli|los|las|den|der|van|von)[ ]?)"

_NOT_GERMANIC = frozenset({"Der", "Die", "Das", "Ein", "Kein", "Mein", "Brigade"})
# Common nouns that end as streets do, most of them compounds: "Sackgasse 1", "Bildschirmarbeitsplatz 12", "Waschstraße 2".
# They are streets only with the town behind them.
_COMMON_NOUN = re.compile(
    r"(?:um|aus|irr|rück|hin|heim|rad|geh|fahr|uit|snel|fiets|vaar)weg|(?:om|ud|gen|side)vej|wasstraat"
    r"|\w*(?:(?<!siedl)(?<!fest)ungs|(?<!stat)(?<!miss)(?<!un)ions|betriebs|lade)(?:platz|weg|stra(?:ß|ss)e|gasse)"
    r"|\w*(?:(?:arbeits|park|stell|sitz|steh|studien|listen|tabellen|spiel|lager|liege|lade|behandlungs|kita|kindergarten"
    r"|krippen|pflege|therapie|ausbildungs|praktikums|praktikanten|camping|mess|prüf|speicher|montage|start|podest|podiums"
    r"|steck|einbau|fenster|gang|schlaf|golf|flug|tennis|fußball|bolz|grill|zelt|handels|schau|tausch|umschlag|rast|übungs"
    r"|anker|dreh|test|büro|bildschirm|labor|heim|betreuungs|job|trainings|kurs|seminar|pack|kommissionier|bereitstellungs"
    r"|abstell|lande|ausweich|sammel|treff|hub|roboter|schweiß|reparatur|tank|schreib|computer|pc|server|medaillen|final"
    r"|spitzen|relegations|abstiegs|nachrücker|einstell|dauer|wohnmobil|boots|ausgabe|annahme|rollstuhl|turnier)platz"
    r"|(?:flucht|rettungs|lösungs|rechts|dienst|instanzen|vertriebs|transport|verkehrs|liefer|übertragungs|kommunikations|lern"
    r"|bildungs|berufs|lebens|arbeits|anfahrts|signal|stoffwechsel|rechen|feder|brems|verfahr|schalt|hub|stell|sonder"
    r"|beschaffungs|absatz|entscheidungs|melde|eskalations|angriffs|zahlungs|förder|zugriffs|ausbreitungs|kontakt|versand"
    r"|bestell|daten|migrations|upgrade|prozess|karriere|entwicklungs|alternativ|wander|pilger|mess|anhalte|überhol|reaktions"
    r"|kriech|strom|ertrags|beschwerde|klage|verwaltungs|genehmigungs|freigabe|vlucht)weg"
    r"|(?:einbahn|fertigungs|montage|produktions|lackier|wasch|bundes|kreis|landes|staats|milch|transfer|pressen|prüf|walz"
    r"|daten|impf|seiden|schnell|durchgangs|misch|verpackungs|abfüll|rohbau|schweiß|härte|test|fern|ausfall|vorfahrts|spiel"
    r"|fahrrad|anlieger|zufahrts|maut|liefer|anliefer|kommissionier|pack|versand|bearbeitungs|sortier|förder|reinigungs"
    r"|galvanik|meeres)stra(?:ß|ss)e"
    r"|(?:sack|rettungs|regal|lager|boxen|bühnen)gasse|(?:stau|erd|schutz|fang)damm|(?:speel|school|parkeer)plein|(?:winkel"
    r"|eenrichtings|productie)straat|(?:arbejds|parkerings|bygge|lege|sidde|stå|lager)plads|(?:motor|cykel|flugt|løsnings"
    r"|tilkørsels)vej|(?:återvänds|gå|affärs)gatan?)",
    re.IGNORECASE,
)
_HOUSE_ON = re.compile("[0-9](?s:.*)")
_TOWN = re.compile(r"[ \n-][0-9]{4,6}[ ]|[ ][0-9]{2}-[0-9]{3}[ ]|[0-9]{3}[ ][0-9]{2}[ ]")
# "Berliner Platz 3" and "Grüner Weg 4", but "Team Blau Platz 3" and "Dritter Platz 2".
_NOT_A_PLACE = re.compile(
    r"(?:\w+[ ])?(?:\w*(?!er[ ])[^\W_]{2}|Erster|Zweiter|Dritter|Vierter|Fünfter|Sechster|Siebter|Achter|Neunter|Zehnter"
    r"|Letzter"
    r"|Bester|Nächster|Anderer|Freier|Fester|Eigener|Sicherer|Richtiger|Falscher|Einziger|Guter|Männer|Sieger|Schüler|Läufer"
    r"|Spieler|Kinder|Reiter|Fahrer)[ ](?:Weg|Platz|Ring|Damm)[ ]"
)
# "the film 'Via Mala 2'", '"Calle Mayor 3" won the prize': the title of a work.
_WORKS = (
    "films?|movies?|songs?|albums?|novels?|books?|plays?|musicals?|episodes?|series|sitcoms?|soaps?|podcasts?|operas?"
    "|paintings?|(?:board|video) games?|poems?|short stor(?:y|ies)|lied|stück|roman|krimi|buch|hörspiel|serie|folge|gemälde"
    "|theaterstück|chanson|livre|pièce|série|tableau|feuilleton|pel[ií]cula|novela|libro|canción|obra|episodio|telenovela"
    "|romanzo|canzone|spettacolo|commedia|puntata|fiction|filme|livro|canção|peça|boek|liedje|toneelstuk|aflevering|powieść"
    "|książka|piosenka|sztuka|serial|spektakl|kniha|píseň|seriál|bok|låt|sång|pjäs|avsnitt|sang|elokuva|kirja|kitap|şarkı|spel(?:et)?|boken|låten|filmen|sången"
    "|pjäsen|bogen|sangen|filmul|cartea|filmie|film[uem]|heißt|namens|called|named|llamad[ao]|chiamat[ao]|nommée?"
    "|dizi|könyv|dal|színdarab|carte|cântec|piesă|фильм|роман|песня|спектакль|сериал|книга|картина|фільм|пісня|вистава"
    "|ταινία|βιβλίο"
)
_TITLED = (
    rf"(?<![^\W_])(?:(?:{_WORKS})(?:[ ](?:called|titled|named|mit dem titel|intitulée?|titulad[ao]))?[ ]?[\"'“„«‘][ ]?"
    rf"|(?:{_WORKS})[ ]tit(?:le|el|re|olo|ulo|lul)?: |(?:film|movie|song|album|novel|episode|series|película|romanzo): )"
)
_OF_WORK = LatePattern(
    "[ ]?[\"'”“»’](?:[ ](?:premieres?|premiered|airs|aired|starring|won|wins|topped|in the (?:cinema|theatre|charts)"
    "|is (?:an?|the) (?:film|song|novel|play|book|series|musical)|läuft|spielt|erscheint|gewann|hat premiere|im kino|dure"
    "|repasse|remporte|au cinéma|dura|gan[aó]|se estrena|en cines|vince|ha vinto|al cinema|estreia|ganhou|nos cinemas|draait"
    "|in de bioscoop|wygrał[ao]?|trwa|w kinach|ma premierę|má premiéru|har premiär|går på bio|ид[её]т|вышел|вышла|вийшов)"
    "(?![^\\W_])|,?[ ]\\([0-9]{4}\\))",
    re.IGNORECASE,
)
_LESSONS = re.compile(  # "Corso Excel 2"
    r"(?:Excel|Word|Python|Java|SQL|PHP|Autocad|Inglese|Tedesco|Francese|Spagnolo|Italiano|Base|Avanzato|Online|HACCP|Sicurezza"
    r"|Primo Soccorso|Antincendio|Yoga|Serale|Patente|Fotografia|Cucina|Livello|Estivo|Intensivo|Annuale|Formazione)\b",
    re.IGNORECASE,
)
_NOT_VIA = re.compile(
    r"(?:Rail|Ferrata|Satellite|Cavo|Radio|SFTP|E-?[Mm]ail|Mail|Slack|Phone|Web|Fax|Teams|Zoom|Chat|App|Post|Port|Bus|Train|Link|Proxy|Git[Hh]ub|Excel|Telegram)\b"
)
_ADDRESS_WORDS = words(
    r"(?:home|street|mailing|postal|shipping|billing|delivery|residential)?\s?address(?:\s?line)?(?:\s?[0-9])?",
    r"lives?\s?(?:at|in|on)",
    r"(?:i['’]?m|(?:s?he|who)['’]s|(?:we|they)['’]re) at",
    r"living\s?(?:at|in|on)",
    r"resid(?:es|ing|ence)(?:\s?at)?",
    r"ship(?:ped)?\s?to",
    r"deliver(?:ed)?\s?to",
    r"moved\s?to",
    "street",
    "addr",
    "adresse",
)


# Nouns of deliveries have numbers of their own, so that only the shape of a street makes them the words before an address.
_DELIVERED_TO = words(
    _ADDRESS_WORDS.alternatives,
    "livraison|expédition|lieferung|spedizione|consegna|envío|envio|entrega|bezorging|levering|wysyłka|dostawa|delivery"
    "|shipment",
)


def _accept_street(value: str) -> int:
    parts = value.split()
    if "High" in parts and "Court" in parts:
        return 0
    is_thing = not _NOT_A_STREET.isdisjoint(parts) and _PLAIN_STREET.search(value) is None
    return 0 if is_thing or (len(parts) > 1 and parts[1].title() in _NOT_FIRST) else len(value)


@lru_cache(maxsize=1024)
def _is_common(words: str) -> bool:
    """Return whether the words before the number of a house are a common noun, or no name of a place; most come again."""
    return bool(_COMMON_NOUN.fullmatch(words.partition(" ")[0]) or _NOT_A_PLACE.match(words))


def _accept_european(value: str) -> int:
    """Reject ways of sending ("via Slack 12"), words that only end like a street, and a year in the place of the number."""
    first, _, rest = value.partition(" ")
    if _is_common(_HOUSE_ON.sub("", value, count=1)) and not _TOWN.search(value):
        return 0
    if first == "Corso" and _LESSONS.match(rest):
        return 0
    if first in _NOT_GERMANIC or (first == "Via" and (_NOT_VIA.match(rest) or rest[:2].isupper())):
        return 0
    return 0 if re.fullmatch(r"\w+ (?:19|20)[0-9]{2}", value) else len(value)


def _accept_named(value: str) -> int:
    """Count what reads as an address under a label: a number, a name, and a second part; not a place in a file or in memory."""
    if not re.search(r"(?<![0-9A-Za-z.])[0-9]{1,6}(?![0-9])", value) or re.search(
        r"0x|://|\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]", value
    ):
        return 0
    if value.isascii() and not re.search("[A-Z][a-z]{2}", value):
        return 0
    if _NOT_AN_ADDRESS.match(value):
        return 0
    return len(value) if re.search(r"[,\u3040-\u9fff\uac00-\ud7af\u0600-\u06ff]|[0-9][ ].*[0-9]", value) else 0


def _accept_keyed(value: str) -> int:
    """Count a name and a house number under the word "street": "Oak Avenue 14", "14 Oak Avenue"."""
    is_street = re.search(rf"{_NAME}[ ]?[0-9]|[0-9]{{1,4}}[a-z]?,?[ ]{_NAME}", value)
    return len(value) if is_street and not _NOT_AN_ADDRESS.match(value) else 0


_NOT_AN_ADDRESS = re.compile(
    r"(?:section|page|table|room|line|port|block|register|offset|see|chapter|item|row|column|node|slot|bank|tbd|unknown)\b",
    re.IGNORECASE,
)


_STREET_KEYS = (
    r"street|straße|strasse|rue|calle|indirizzo|ulica|ulice|улица|straat|gata|gade"
    r"|(?:street|stra(?:ß|ss)e|rue|calle|via|rua|straat|gata|gade|vej|ulica)[ _]?(?:and|und|et|y|e|en|och|og|i)[ _]?"
    r"(?:house ?|haus ?|huis ?|hus ?)?(?:number|nummer|no|nr|num[eé]ro|número|numer)"
)
_KEYED = LatePattern(
    r"(?:\A|(?<=[:=：]))[ \t]{0,2}[\"'“]?(?P<value>(?=[^\n;|<>\"{}@=]{0,60}[0-9])[^\W_][^\n;|<>\"{}@=:\0]{6,100}?)"
    r"(?=[ \t]{0,4}(?:[\n;|<>\"}\0]|\.(?:\s|$)|$))"
)

PLACE: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="street",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=60,
        pattern=LatePattern(
            rf"{BEFORE}(?:[0-9]{{1,4}}[A-Za-z]?/)?[1-9][0-9]{{0,4}}(?:-[0-9]{{1,4}}|/[A-Z])?[A-Za-z]?,?[ ]"
            rf"{_DIRECTION}(?:{_STREET_WORD}[ ]){{1,4}}(?:(?:{_PLAIN_SUFFIX})(?![A-Za-z0-9'’-]){_NO_NOUN}"
            rf"|(?:{_AMBIGUOUS_SUFFIX})(?=\.?(?:,|\n|$|[ ](?:Apt|Suite|Unit|#))))"
            rf"(?:[ ][0-9]{{1,2}}(?=[ ,]{{1,2}}#[0-9]))?{_QUARTER}{_UNIT}"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=rf"{AT_DIGIT}(?=[0-9]{{0,4}}(?:[A-Za-z]?(?:,?[ ][A-Z0-9\u00c0-\u00de]|/)|-))",
        hint=rf"[0-9]/?[A-Za-z]?,?[ ](?:[A-Z0-9\u00c0-\u00de][^ \"]*[ ])+{_SUFFIX}{HINT_AFTER}",
        accept=_accept_street,
        need=Need.NO_FOREIGN_LABEL,
        context=_ADDRESS_WORDS,
        not_after=LatePattern(
            rf"{NOT_AFTER_DIGIT.pattern}|(?i:(?<![a-z])(?:zone|bus|route|tram|exit|phase|ward|district) |{_TITLED})$"
        ),
        not_beside=_OF_WORK,
    ),
    PatternDetector(
        name="address_named",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=59,
        pattern=_KEYED,
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"(?i:{in_hint(ADDRESS)}){HINT_GAP}[0-9]",
        accept=_accept_named,
        need=Need.CONTEXT,
        context=words(rf"(?:{ADDRESS})[ \"']{{0,2}}[:=：][ \t]{{0,2}}$"),
        reach=4,
        not_near=LatePattern(
            r"(?:ip(?:v[46])?|e-?mail|mail|mac|web|memory|url|bus|host|network|base|start|end|return|wallet|hardware|server)"
            r"[ _-]?address"
            r"[^A-Za-z]{0,6}$",
            re.IGNORECASE,
        ),
    ),
    PatternDetector(
        name="address_lines",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=58,
        pattern=LatePattern(
            r"\A(?P<value>[^\W_][^;|<>\"{}@=:\0\n]{2,60}(?:\r?\n[^;|<>\"{}@=:\0\n]{2,60}){1,5})\s?\Z"  # the whole of a value
        ),
        shape_chars_max=480,
        hint=rf"(?i:{in_hint(ADDRESS)}){HINT_GAP}[0-9]",
        accept=_accept_keyed,
        need=Need.CONTEXT,
        context=words(rf"(?:{ADDRESS}): $"),
        reach=4,
    ),
    PatternDetector(
        name="street_keyed",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=60,
        pattern=_KEYED,
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"(?:(?i:{_STREET_KEYS})[ _]?(?:(?i:address|name|line|1))?\\?[\"']?[ ]?[:=：]){HINT_GAP}[0-9]",
        accept=_accept_keyed,
        need=Need.CONTEXT,
        context=words(rf"(?:{_STREET_KEYS})(?: (?:address|name|line|1))?[ \"']{{0,2}}[:=：][ \t]{{0,2}}$"),
        reach=4,
    ),
    PatternDetector(
        name="street_and_city",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=61,
        pattern=LatePattern(
            rf"{BEFORE}(?:(?:{_NAME}[ ]){{1,3}}[1-9][0-9]{{0,3}}[a-z]?(?:/[1-9][0-9]{{0,3}}[a-z]?)?,[ ](?:[A-Z]{{1,2}}-)?"
            rf"(?:(?!(?:19|20)[0-9]{{2}}[ ])[0-9]{{4,5}}|[0-9]{{4}}[ ][A-Z]{{2}}|[0-9]{{2}}-[0-9]{{3}}|[0-9]{{3}}[ ][0-9]{{2}})"
            rf"[ ]{_NAME}|[1-9][0-9]{{0,4}}[ ]{_NAME}(?:[ ]{_NAME}){{0,3}},[ ]{_NAME}(?:[ ]{_NAME}){{0,2}},?[ ](?:{STATES})"
            rf"[ ][0-9]{{5}}){AFTER_DIGIT}(?![{LETTER}])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"[0-9][a-z]?,[ ](?:[A-Z]{{1,2}}-)?[0-9]{{2,5}}[ \-]|,?[ ](?:{STATES})[ ][0-9]{{5}}",
        accept=_accept_street,
        need=Need.NO_FOREIGN_LABEL,
        context=_ADDRESS_WORDS,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="street_named",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=61,
        pattern=LatePattern(
            rf"{BEFORE}(?:[1-9][0-9]{{0,4}}[a-z]?"
            rf"|{_IN_WORDS}(?:[ -]{_IN_WORDS}){{0,4}}),?[ ](?:[{LETTER}0-9'’.-]{{1,14}}[ ]){{1,3}}"
            rf"{_SUFFIX}(?![A-Za-z0-9'’-])(?:(?:(?<=County Road)|(?<=State Road)"
            rf"|(?<=Highway))[ ][0-9]{{1,4}})?{_QUARTER}{_UNIT}",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=rf"[1-9oOtTfFsSeEnN]{AT_BORDER}"
        r"(?=(?:[0-9]{0,4}[A-Za-z]?|(?<=[^0-9])[A-Za-z-]{2,12}),?[ ][^\s,;:]{1,14}[ ])",
        hint=rf"(?i:addr|liv(?:es?|ing) ?(?:at|in|on)|(?:m|s|re) at"
        rf"|resid|(?:ship|shipped|deliver|delivered|moved)[ _]?to|street){HINT_GAP}"
        rf"(?:[0-9][a-z]?|(?i:{_IN_WORDS})),?[ ](?:[^ \"]+[ ])+(?i:{_SUFFIX}){HINT_AFTER}",
        accept=_accept_street,
        need=Need.CONTEXT,
        context=_ADDRESS_WORDS,
        reach=12,
        not_after=NOT_AFTER_DIGIT,
    ),
    PatternDetector(
        name="street_european",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=60,
        pattern=LatePattern(
            rf"{BEFORE}(?:[1-9][0-9]{{0,3}}(?:[ ]?(?:bis|ter))?,?[ ](?i:{_ROMANCE})[ ]{_NOT_ROMANCE}{_PARTICLE}{{0,3}}"
            rf"[A-Z\u00c0-\u00de][{LETTER}'’-]{{1,24}}(?:[ ][A-Z\u00c0-\u00de][{LETTER}'’-]{{1,24}}){{0,2}}{_CITY}"
            rf"|[A-Z\u00c0-\u00de][{LETTER}.-]{{1,30}}{_GERMANIC}(?:[ ]|(?<=str\.)|(?<=straße)"
            rf"|(?<=strasse)){_HOUSE}{_NO_UNIT}(?:(?:[ ]?[a-z]|[A-Z]|[ ][A-H])(?![{LETTER}0-9]))?{_DOOR}(?:-(?:hs"
            rf"|[IVX]{{1,4}}))?(?![0-9{LETTER}]){_CITY}"
            rf"|[a-zäöü-]{{3,30}}(?:straße|strasse|str\.)(?:[ ]|(?<=\.)){_HOUSE}[a-z]?,?[ ][0-9]{{5}}[ ][a-zäöüß-]{{2,24}}"
            rf"|(?:[A-Z\u00c0-\u00de][{LETTER}]{{1,20}}[ ]){{1,2}}(?:Straße|Strasse|Str\.|Weg|Platz|Allee|Ring|Damm"
            rf"|Ufer)[ ]{_HOUSE}{_NO_UNIT}[a-z]?{_DOOR}(?![0-9{LETTER}]){_CITY}"
            rf"|(?:{_ROMANCE_FIRST})[ ]{_PARTICLE}{{0,3}}(?:[A-Z\u00c0-\u00de][{LETTER}'’.-]{{1,24}}["
            rf" ]?){{1,4}}(?:,[ ]?|[ ])?(?:n[r.°º]{{0,2}}[ ]?)?[1-9][0-9]{{0,3}}[a-zA-Z]?(?![0-9A-Za-z]){_CITY}"
            rf"|(?:{_ROMANCE_SMALL})[ ]{_PARTICLE}{{0,3}}(?:[A-Z\u00c0-\u00de][{LETTER}'’.-]{{1,24}}[ ]?){{1,4}}(?:,[ ]?|[ ])?"
            rf"(?:n[r.°º]{{0,2}}[ ]?)?[1-9][0-9]{{0,3}}(?=[,.;)\n]|$)"
            rf"|(?:ul\.|ulica|al\.|os\.|pl\.)[ ](?:[A-Z\u00c0-\u017f][{LETTER}.]{{1,24}}["
            rf" ]){{1,3}}[1-9][0-9]{{0,3}}[a-zA-Z]?(?:/[0-9]{{1,4}})?(?![0-9A-Za-z]){_CITY}"
            rf"|(?:{_CYRILLIC})[ ](?:[0-9]{{1,2}}[ ])?[А-ЯЁІЇЄ][а-яёіїє-]{{1,24}}(?:[ ][А-ЯЁІЇЄ][а-яёіїє-]{{1,24}}){{0,2}}"
            rf"{_CYRILLIC_HOUSE}"
            rf"|(?:Am|An der|An den|Auf der|Auf dem|Im|In der|Unter den|Zum|Zur|Beim|Alter|Alte|Neuer|Neue)[ ]"
            rf"(?!(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|Jahr|Monat|Quartal|Januar|Februar|März|April|Mai"
            rf"|Juni|Juli|August)"
            rf"(?:[A-Z\u00c0-\u00de][{LETTER}]{{1,20}}[ ]){{1,2}}[1-9][0-9]{{0,2}}[a-z]?{_CITY[:-1]}"
            rf"|(?:[A-Z\u00c0-\u017f][{LETTER}.]{{1,24}}[ ]){{1,3}}"
            rf"(?:gate|vei|veg|plass|väg|gata|gade|vej|allé|torg|tie|katu)[ ]"
            rf"[1-9][0-9]{{0,3}}[ ]?[A-Za-z]?(?![0-9A-Za-z]){_CITY[:-1]}"
            rf"|(?:[A-Z\u00c0-\u017f][{LETTER}.]{{1,24}}[ ]){{1,3}}{_EASTERN}[ ](?:No:?[ ]?)?[1-9][0-9]{{0,3}}[a-z]?"
            rf"(?![0-9A-Za-z])"
            rf"|[A-Z][a-z]{{2,20}}[ ]Prospe(?:kt|ct)[ ][1-9][0-9]{{0,3}}"
            rf"|No\.?[ ]?[1-9][0-9]{{0,3}}[A-Z]?,[ ]{_MALAY}(?:[ ](?:{_NAME}|[A-Z][a-z]{{0,8}}\.)){{1,4}}(?:,{_CITY[:-1]})?"
            rf"|{_MALAY}(?:[ ](?:{_NAME}"
            rf"|[A-Z][a-z]{{0,8}}\.)){{1,4}},?[ ](?:No\.?[ ]?)?[1-9][0-9]{{0,3}}[A-Z]?(?:,{_CITY[:-1]})?"
            rf"|[А-ЯЁІЇЄ][а-яёіїє-]{{2,24}}[ ](?:проспект|улица|бульвар|переулок|шоссе|площадь|набережная),?["
            rf" ](?:д\.[ ]?)?[1-9][0-9]{{0,3}}"
            rf"|P\.?[ ]?O\.?[ ]?Box[ ][0-9]{{1,6}}|Postfach[ ][0-9]{{2,6}}){AFTER_DIGIT}"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=(
            rf"[0-9](?:[ ]?(?:bis|ter))?,?[ ](?i:{_ROMANCE})[ ]|(?i:{_GERMANIC})[ ][1-9]|(?i:str\.|stra(?:ß|ss)e)[1-9]"
            rf"|(?:{_ROMANCE_FIRST}|[ ]in via|viale|piazza|calle|avenida|paseo|rua|travessa|praça)["
            rf" ][^0-9]{{1,60}}[1-9]|{HINT_BEFORE_LETTER}(?:ul\.|ulica|al\.|os\.|pl\.)[ ][A-Z\u00c0-\u017f]"
            rf"|(?:{_CYRILLIC})[ ]"
            rf"|{HINT_BEFORE_LETTER}(?:Am|An der|An den|Auf der|Auf dem|Im|In der|Unter den|Zum|Zur|Beim|Alter|Alte|Neuer|Neue)"
            r"[ ][A-Z]"
            rf"|[ ](?:gate|vei|veg|plass|väg|gata|gade|vej|allé|torg|tie|katu)[ ][1-9]"
            rf"|{_EASTERN}[ ](?:No:?[ ]?)?[1-9]|Prospe(?:kt|ct)[ ]"
            r"|проспект|улица|бульвар|переулок|шоссе|площадь|набережная"
            rf"|P\.?[ ]?O\.?[ ]?Box[ ][0-9]|Postfach[ ][0-9]|{_MALAY}[ ]"
        ),
        accept=_accept_european,
        need=Need.NO_FOREIGN_LABEL,
        context=_DELIVERED_TO,
        not_after=LatePattern(rf"(?i:{_TITLED})$"),
        not_beside=_OF_WORK,
    ),
    PatternDetector(
        name="street_abroad",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=60,
        pattern=LatePattern(
            rf"(?<![\w-])(?:(?:{_GREEK})[ ](?:[Α-ΩΆΈ-Ώ][\u0370-\u03ff\u1f00-\u1fff.]{{1,24}}[ ]){{1,3}}{_HOUSE}"
            rf"|[Α-ΩΆΈ-Ώ][\u0370-\u03ff]{{2,24}}[ ]{_HOUSE},[ ][0-9]{{3}}[ ]?[0-9]{{2}}[ ][Α-ΩΆΈ-Ώ][\u0370-\u03ff]{{2,24}}"
            rf"|(?:{_HEBREW})[ ](?:[\u05d0-\u05ea\"״'׳-]{{2,16}}[ ]){{1,3}}{_HOUSE}(?=[,.\n]"
            rf"|$)(?:,[ ][\u05d0-\u05ea -]{{2,24}})?"
            rf"|(?:{_ARABIC})[ ](?:[\u0620-\u06d3]{{2,16}}[ ]){{1,4}}(?:رقم[ ])?{_HOUSE}(?=[،,.\n]"
            rf"|$)(?:[،,][ ][\u0620-\u06d3 ]{{2,24}})?"
            rf"|{_HOUSE}[ ،,]{{1,2}}(?:{_ARABIC})(?:[ ][\u0620-\u06d3]{{2,16}}){{1,4}}"
            rf"|{_HOUSE}[A-Z]?(?:/[0-9]{{1,3}}){{0,2}}[ ](?:[đĐ]ường[ ]|[pP]hố[ ])?(?:{_VIETNAMESE}[ ]?){{1,4}},[ ]"
            rf"(?:Phường|Quận|Huyện|Thành phố|[PQ]\.[ ]?[0-9]|TP\.)[^\n,;]{{0,24}}(?:,[ ](?:TP\.?|Quận)[^\n,;.]{{0,24}})?"
            rf"|[0-9]{{1,4}}(?:/[0-9]{{1,4}})?[ ](?:หมู่[ ]?[0-9]{{1,2}}[ ])?(?:ถ\.|ถนน|ซ\.|ซอย)[ ]?[\u0e00-\u0e7f]{{2,24}}"
            rf"|(?:(?:Flat|House|Plot|Door|Shop|H|D)\.?[ ](?:No\.?[ ]?)?)?[A-Z]?-?[0-9]{{1,5}}(?:[/-][0-9A-Z]{{1,5}})?,"
            rf"(?=[^\n]{{0,80}}{_INDIAN})[ ](?:[A-Za-z0-9.' -]{{2,40}},[ ]){{1,4}}(?:[A-Z][a-z]{{2,20}}[ ]){{1,2}}"
            rf"(?:[-–][ ]?)?[1-9][0-9]{{2}}[ ]?[0-9]{{3}}"
            rf"|(?:Calle|Carrera|Cra\.?|Cl\.?|Kr\.?|Diagonal|Transversal|Avenida|Av\.?)[ ][1-9][0-9]{{0,2}}[A-Z]?"
            rf"(?:[ ](?:Sur|Norte|Este|Bis))?[ ](?:#|[Nn]o\.?)[ ]?[1-9][0-9]{{0,2}}[A-Z]?[ ]?-[ ]?[0-9]{{1,3}})(?![0-9\w])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"{_GREEK}|[Α-ώ][ ][1-9][0-9]{{0,3}},[ ][0-9]{{3}}|{_HEBREW}|{_ARABIC}|ถ\.|ถนน|ซ\.|ซอย"
        rf"|{_INDIAN}[^\n\"]{{0,60}}[1-9][0-9]{{2}}[ ]?[0-9]{{3}}"
        r"|,[ ](?:Phường|Quận|Huyện|Thành phố|[PQ]\.[ ]?[0-9]|TP\.)"
        r"|(?:#|[ ][Nn]o\.?)[ ]?[1-9][0-9]{0,2}[A-Z]?[ ]?-[ ]?[0-9]",
    ),
    PatternDetector(
        name="street_east_asian",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=60,
        pattern=LatePattern(
            rf"(?:(?:[\u4e00-\u9fff]{{1,6}}[省市都道府県縣县州区區]){{1,3}}[\u4e00-\u9fff\u3040-\u30ff]{{1,10}}|{_ROAD})"
            rf"[ ]?[0-9]{{1,5}}[ ]?(?:[号號弄巷]{_INDOORS}|番地?{_INDOORS}"
            rf"|丁目[0-9]{{1,3}}(?:(?:-|番地?)[0-9]{{1,3}}){{0,2}}号?"
            r"|-[0-9]{1,4}(?:-[0-9]{1,4})?)(?![0-9])"
            r"|(?:[\uac00-\ud7af]{2,6}(?:시|도)[ ]?)?(?:[\uac00-\ud7af]{1,5}[시군구][ ]){1,2}"
            r"(?:[\uac00-\ud7af]{1,4}[읍면동][ ])?"
            r"[\uac00-\ud7af0-9]{1,9}(?:로|길|동|리)[ ]?[0-9]{1,4}(?:번길[ ]?[0-9]{1,4})?(?:-[0-9]{1,4})?(?:번지)?(?![0-9])"
        ),
        first="[\u4e00-\u9fff\uac00-\ud7af]",
        hint=r"[省市都道府県縣县州区區](?s:.{1,40})[0-9]|[路街道胡同巷段][0-9]{1,5}[号號弄巷]"
        r"|[시군구][ ](?s:.{1,30})[로길동][ ]?[0-9]",
    ),
    PatternDetector(
        name="city_of_street",
        type="ADDRESS",
        category=Category.ADDRESS,
        priority=61,
        pattern=LatePattern(
            rf"(?<![A-Za-z0-9_-])(?:(?:[A-Z]{{1,2}}-)?(?:[0-9]{{4,5}}(?:-[0-9]{{3,4}})?|[0-9]{{2}}-[0-9]{{3}}"
            rf"|[0-9]{{3}}[ ][0-9]{{2}})"
            rf"(?:[ ](?!Euros?\b|EUR|USD|Units?\b|Items?\b)[A-Z\u00c0-\u017d][{LETTER}-]{{1,24}})"
            rf"|[0-9]{{5}}-[0-9]{{3}}"
            rf"|(?:[A-Z][a-z]{{1,20}}[ ]){{1,2}}(?:(?!(?:19|20)[0-9]{{2}}(?![0-9]))[0-9]{{4,6}}|(?:NSW|VIC|QLD|SA|WA"
            rf"|TAS|ACT|NT)[ ][0-9]{{4}})"
            rf"|(?:[A-Z][a-z]{{1,20}}[ ]){{1,2}}(?:{STATES})[ ][0-9]{{5}}(?:-[0-9]{{4}})?|[0-9]{{4}}["
            rf" ]?[A-Z]{{2}}[ ][A-Z][a-z]{{1,20}})"
            rf"(?![{LETTER}0-9_])"
        ),
        hint=rf"{WALL}[^{WALL}]{{0,60}}[0-9]{{2}}",  # of a gap: no text has a hidden value in it before it is searched
        need=Need.CONTEXT,
        context=Context(rf"{WALL}(?:[ ,\n][^\n;:{WALL}]{{0,26}})?[,\n][ ]{{0,2}}(?:CP[ ])?$|{WALL},?[ ](?:in|à|en|a|te|w)[ ]$"),
        reach=2,
    ),
)
