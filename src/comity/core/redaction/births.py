"""The date of birth, in digits, in words and in parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import BIRTH, MONTH, PERSONS
from comity.core.redaction.shapes import (
    AFTER_DIGIT,
    BEFORE,
    HINT_AFTER_LETTER,
    HINT_BEFORE_LETTER,
    HINT_GAP,
    LONG_CHARS_MAX,
    LatePattern,
    at_word,
    in_hint,
    plain_words,
    words,
)
from comity.core.redaction.split import PARTS, YEAR
from comity.core.units import MS_PER_S

_YEAR = "(?:19|20|25|13|14)[0-9]{2}"  # also of the Thai and the Persian calendar
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_JOINT = r"(?:[ ]?[-/.\u2010-\u2013][ ]?|[ ])"
_ROMAN = "(?:X|XI{1,2}|IX|IV|VI{0,3}|I{1,3})"
_WORD = r"[^\s0-9.,/_'’-]{3,12}"  # of a month, which `_accept_date` looks up: a long alternation is slow to fail
_ERAS = "明治|大正|昭和|平成|令和|民[国國]"
# "一九九〇年三月七日": the day and the month in the numerals of counting, the year digit by digit or of an era.
_IDEOGRAPHIC = (
    f"(?:[一二][〇零○一二三四五六七八九]{{3}}|(?:{_ERAS})[元一二三四五六七八九十百]{{1,4}})年"
    "(?:十[一二]?|[正元一二三四五六七八九])月(?:[二三]?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|[一二三四五六七八九])[日号號]"
)
_DATE = (
    rf"{_YEAR}{_JOINT}(?:0?[1-9]|1[0-2]){_JOINT}{_DAY}"
    rf"|{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    rf"|{_DAY}{_JOINT}{_DAY}{_JOINT}(?:{_YEAR}|[0-9]{{2}})"
    rf"|{_DAY}[-/. ]{_ROMAN}[-/. ]{_YEAR}"
    rf"|{_DAY}(?:st|nd|rd|th|er)?[.]?(?: of| de)?[ -]{_WORD}[.]?(?: de)?,?[ -](?:{_YEAR}|['’]?[0-9]{{2}})"
    rf"|{_WORD}[.]? {_DAY}(?:st|nd|rd|th)?,? {_YEAR}"
    rf"|{_DAY}\. (?:0?[1-9]|1[0-2])\. {_YEAR}|(?:{_ERAS})[0-9]{{1,3}}年[0-9]{{1,2}}月[0-9]{{1,2}}日"
    rf"|{_YEAR}\.? {_WORD} {_DAY}\.?|{_DAY} tháng (?:0?[1-9]|1[0-2]),? năm {_YEAR}"
    rf"|{_YEAR}[ ]?[年년][ ]?[0-9]{{1,2}}[ ]?[月월][ ]?[0-9]{{1,2}}[ ]?[日일]"
)


_BIRTH_KEYS = (
    "dob|birth ?(?:date|day)|date of birth|geburts(?:datum|tag)|geb ?dat(?:um)?|(?:fecha|fec|f) (?:de )?nac(?:imiento)?"
    "|date (?:de )?naiss(?:ance)?|data (?:d[ei] )?nasc(?:ita|imento)?|geboortedatum|data ur(?:odzenia)?"
    "|f(?:ø|ö|oe|o)dels(?:edato|edag|dag)|do[gğ]um tarihi|datum narozeni|syntymäaika|tanggal lahir|data nasterii"
)
# A day, a month and a year of two digits in any order, or of four at the end: under a label with a colon.
_DAY2, _MONTH2 = "(?:0[1-9]|[12][0-9]|3[01])", "(?:0[1-9]|1[0-2])"
_DIGITS = (
    f"[0-9]{{2}}{_MONTH2}{_DAY2}|{_DAY2}{_MONTH2}(?:19|20)?[0-9]{{2}}|{_MONTH2}{_DAY2}(?:19|20)?[0-9]{{2}}"
    f"|(?:19|20)[0-9]{{2}}{_DAY2}{_MONTH2}"
)
_EPOCH_END = 1_600_000_000


def _accept_epoch(value: str) -> int:
    """Count seconds or milliseconds since 1970, of a day from 1900 on."""
    number = int(value)
    seconds = number / MS_PER_S if abs(number) > 10**11 else number
    return len(value) if -2_208_988_800 <= seconds <= _EPOCH_END else 0


def _accept_worded(value: str) -> int:
    """Count a date in words of a month of a calendar."""
    return len(value) if any(map(_is_month, _WORDS.findall(value))) else 0


_WORDS = re.compile(_WORD)
_MONTH = LatePattern(rf"{MONTH}|tháng|năm|iii|viii?|xii", re.IGNORECASE)


@cache
def _is_month(word: str) -> bool:
    return _MONTH.compiled.fullmatch(word) is not None


def _accept_date(value: str) -> int:
    """Count a date whose month, where it is a word, is one of a calendar."""
    return len(value) if "年" in value or all(map(_is_month, _WORDS.findall(value))) else 0


def _accept_parts(value: str) -> int:
    """Count a year and another part of a date, each behind its word."""
    named = {PARTS[word] for word in re.findall(r"[^\W\d_]+", value.lower().replace("geburts", "")) if word in PARTS}
    return len(value) if YEAR in named and len(named) > 1 else 0


_ORDINALS = (  # of a day, in words
    "(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|tenth|eleventh|twelfth"
    "|thirteenth|fourteenth"
    "|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
    "|(?:(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und)?(?:zwanzig|dreißig|dreissig)ste[nr]?"
    "|ers?te[nr]?|zweite[nr]?|dritte[nr]?|(?:vier|fünf|sechs|sieb|sieben|ach|neun|zehn|elf|zwölf|dreizehn|vierzehn"
    "|fünfzehn|sechzehn"
    "|siebzehn|achtzehn|neunzehn)te[nr]?|premier|primero|primo"
)
_YEAR_WORDS = (
    "(?:nineteen|twenty)[ -](?:hundred(?:[ ]and)?[ -]?)?(?:oh[- ])?(?:(?:twenty|thirty|forty|fifty|sixty|seventy"
    "|eighty|ninety)(?:[- ])?)?"
    "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    "|eighteen|nineteen)?"
    "|two[ ]thousand(?:[ ]and)?(?:[ ][a-z]{3,9})?"
    "|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](?:one|two|three|four|five|six|seven|eight|nine)"
)


_PEOPLE = (
    r"\w{1,16}(?:[eo]r|ist|[ae]nt|ee|ian|an|man|men|son|boy|girl|ess|ate|ard|ive|ing|ed|ain|king)s?|bab(?:y|ies)|twins?"
    r"|child(?:ren)?|kids?|boss"
    r"|prince|queen|pope|guest|witness|wife|husband|spouse|nurse|aunt|niece|nephew|friend|male|female|adult|youth|teen"
    r"|infant|newborn"
    r"|host|pilot|clerk|chef|coach|judge|poet|monk|nun|priest|saint|bride|groom|heir|deceased|accused|insured|minor|dad"
    r"|mum|mom|actress"
    r"|triplets?|quads|eldest|youngest|oldest|elder|younger|first|second|third|last|other|one|pupil|victim|suspect|individual"
)


# Animals are born too; a word that is also a surname, or stands beside a person ("a dog owner"), counts before its tag alone.
_ANIMALS = (
    r"(?:cal(?:f|ves)|heifers?|cattle|piglets?|foals?|pupp(?:y|ies)|kittens?|litters?|herds?|flocks?|goslings?"
    r"|livestock|ear ?tags?"
    r"|kalb|kälber|ferkel|fohlen|welpen?|lämmer|terner[oa]s?|potros?|becerr[oa]s?|bezerr[oa]s?|corderos?|lechones|cachorros?"
    r"|veaux?|génisses?|agneaux?|agnelles?|poulains?|chiots?|chatons?|porcelets?|chevreaux?|vitell[oi]|agnell[oi]|puledr[oi]"
    r"|cuccioli|veulens?|kalf|kalveren|lammeren|biggen|kalvar|valpar|kattungar|cielę|źrebię|jagnię|szczeni(?:ę|ęta)|kocięta"
    r"|telátko|hříbě|štěně|štěňata|koťata|тел[её]нок|жереб[её]нок|ягн[её]нок|щен(?:ок|ки)|котята"
    r"|(?:lamb|bull|cow|steer|colt|ram|ewe|sow|mare|goat|sheep|pig|horse|pup|dog|cat|kid|chick|hen)s? (?:tag|no|nr|id"
    r"|number|#))"
)
# Organisations, works and ideas are born too. The noun must be the subject of the verb: names alone may stand between.
_THINGS = (
    r"[^\W\d]{0,20}(?:tion|sion|ción|zione|ção|ità|dade|dad|schaft|ung|isme|ismo|label|studio|festival|verein|firma|projekt"
    r"|idee|magazin|zeitung|zeitschrift|marke|verlag|orchester|genossenschaft|stiftung|partei|band|schule|museum|tijdschrift"
    r"|krant|bedrijf|merk|vereniging|coöperatie|stichting|idé|tidning|tidskrift|företag|forening|avis|spółdzielnia|gazeta"
    r"|pomysł|marka|kooperatif|dergi|şirket)"
    r"|co-?op(?:erative)?s?|magazine|journal|newspaper|label|imprint|collective|initiative|archive|institute|parliament"
    r"|coop[eé]rativ[ae]|revue|journal|marque|entreprise|société|maison|groupe|idée|concept|parti|syndicat|chaîne|site|musée"
    r"|usine|compagnie|mouvement|atelier|théâtre|orchestre|école|banque|ligue|projet|programme|réseau|collectif|club|rivista"
    r"|revista|peri[oó]dico|diario|marca|empresa|compañía|sociedad|grupo|idea|concepto|partido|sindicato|cadena|museo|banco"
    r"|banca|banda|teatro|orquesta|escuela|liga|equipo|mercado|estado|premio|proyecto|sello|barrio|tienda|taller|azienda"
    r"|società|gruppo|partito|sindacato|catena|museu|squadra|scuola|lega|progetto|marchio|casa editrice|giornale|consorzio"
    r"|jornal|sociedade|ideia|conceito|cadeia|equipa|equipe|escola|projeto|prémio|loja|fábrica|fabbrica|república|république"
    r"|repubblica|[^\W\d]{0,16}roman|buch|lied|quartier[es]?|bairro|klubb?(?:en)?|tidningen|företaget|föreningen|foreningen"
    r"|фестиваль|журнал|компан[иі]я|проект|клуб|идея|ідея|газета|бренд|театр|музей|группа|гурт|завод|фирма|фірма"
)
_BORN_AS = (
    r"(?:(?:wurde|ist|war|est|était|è|era|fue|es|foi|werd|is|was|blev|ble)\s)?(?:née?s?|naquit|naci[oó]|nacque|nat[oa]|nasceu"
    r"|nascid[oa]|nacid[oa]|geboren|born|föddes|fødtes|født|urodzi[lł]a? się|doğdu"
    r"|родил(?:ся|ась|ось)|народи(?:вся|лася|лась|лось))"
)
# Of languages that write nouns small: a noun behind an article, unless it is one for people, of which most end alike.
_PEOPLE_ABROAD = (
    r"[^\W\d]{1,16}(?:eurs?|euses?|trice|iens?|iennes?|iste|ants?|antes?|[eéo]rs?|[oa]ra?s?|ore|ière?s?|iers?|ista|[ai]nte|ente"
    r"|[ei]r[oa]|eir[oa]|iere|iera|aio|aia|[aei]d[oa]|at[oa]|ano|ana|és|esa|ése|ese|ées?|és|elle|eaux?|ino|ina|uelo|uela|ito"
    r"|ita)"
    r"|femmes?|hommes?|dames?|monsieur|fils|filles?|garçon|enfants?|b[eé]b[eé]|jumelles|fille|père|mère|frère|sœur|oncle"
    r"|tante|neveu|nièce|cousine?|amie?|roi|reine|prince|princesse|élève|locataire|titulaire|propriétaire|destinataire"
    r"|peintre|poète|maire|chef|juge|mari|épouse|époux|petite?|bébés"
    r"|mujer|hombre|joven|rey|reina|padre|madre|poeta|titular|alcalde|juez|chef|bebés|gemel[oa]s"
    r"|donna|uomo|moglie|figli[oa]|re|regina|principe|giovane|paziente|cliente|minore|sposa"
    rf"|niñ[oa]s?|nonn[oa]|[^\W\d]{{2,16}}aire|{'|'.join(PERSONS)}"
    r"|mulher|homem|jovem|rei|rainha|pai|mãe|irm[ãa]o?|filh[oa]|criança|bebê|juiz"
)
_THING_BORN = (
    rf"(?:(?<![^\W_])(?:{_THINGS})(?:\s(?-i:[A-ZÀ-Þ])[\w&'’.-]{{1,20}}){{0,3}}"
    rf"|(?<![^\W_])(?:l['’]|(?:le|la|notre|cette?|el|nuestr[oa]|il|lo|o|a|noss[oa])\s)(?!(?:{_PEOPLE_ABROAD})\s)"
    rf"(?-i:[a-zà-ÿ])[^\W\d]{{3,20}})"
)
# "Our brand celebrates its 50th birthday on": a birthday has an owner, as the verb has a subject.
_BIRTHDAY = (
    r"(?:birth\s?days?|geburtstag|verjaardag|cumpleaños|compleanno|aniversário|födelsedag|fødselsdag|bursdag|syntymäpäivä"
    r"|urodziny|narozeniny|születésnap\w{0,4}|doğum\sgünü|день\s(?:рождения|народження))"
)
_ENGLISH_THINGS = (
    r"(?:project|company|start-?up|product|brand|firm|team|programme|program|museum|festival|library|app|website|site|platform"
    r"|service|newspaper|magazine|school|college|university|club|charity|choir|orchestra|band|city|town|village|country|nation"
    r"|republic|station|shop|store|bakery|restaurant|café|cafe|pub|hotel|theatre|theater|church|bank|league|institute|agency"
    r"|network|foundation|channel|show|series|game|software|tool|framework|language|business|society|party|union|zoo|park"
    r"|bridge|tower|railway|airline|airport|hospital|department|community|podcast|blog|label|studio|factory|organi[sz]ation)"
)
_TOWNS = (  # which people are born in
    r"stadt|gemeinde|landkreis|bistum|kirche|feuerwehr|brauerei|klinik|krankenhaus|theater|agentur|uni|universität|hochschule"
    r"|ville|commune|ciudad|universidad|citt[àa]|cidade|stad(?:en)?|gemeente|universiteit"
    r"|byen"
    r"|miasto|město|город|місто"
)
_ORDINAL = r"(?:(?:[^\W_]{1,16}|[0-9]{1,4}\.)\s){0,2}"  # "50th", "50.", "very first"
_THING_HAS_BIRTHDAY = (
    rf"\A(?!.*(?<![a-z])(?:bab(?:y|ies)|child(?:ren)?|kids?|infant|newborn"
    rf"|toddler)(?![a-z])).*(?<![a-z])its\s{_ORDINAL}birth\s?day"
    rf"|(?<![^\W_])(?:{_THINGS}|{_ENGLISH_THINGS})(?:['’]s|s['’])\s{_ORDINAL}birth\s?day"
    rf"|(?<![^\W_])(?:{_THINGS}|{_TOWNS})(?:\s(?-i:[A-ZÀ-Þ])[\w&'’.-]{{1,20}}){{0,3}}(?:\s[^\W\d_]{{2,16}}){{1,2}}"
    rf"\s(?:ihren|seinen|su|il\ssuo|o\sseu|seu|zijn|haar|sin|sitt|swoje|své|svoje|свой|свій)\s{_ORDINAL}{_BIRTHDAY}"
)
ANIMAL: Final = "livestock"  # as a word before a value
ANIMAL_KEYS: Final = frozenset(
    {"species", "breed", "herd", "flock", "litter", "sire", "dam", "ear_tag", "eartag", "earTag", "animal"}
)
_OF_PERSON = PERSONS | {"first", "last", "surname", "email", "mail", "phone", "ssn", "passport", "contact", "address"}


def are_of_animal(keys: Iterable[Any]) -> bool:
    """Return whether an object with one of `ANIMAL_KEYS` has no key that is said of a person."""
    return not any(isinstance(key, str) and _OF_PERSON.intersection(plain_words(key).lower().split()) for key in keys)


_NOT_OF_A_PERSON = LatePattern(
    rf"{_THING_BORN}\s{_BORN_AS}[^;,]{{0,20}}$|(?:{_THING_HAS_BIRTHDAY})[^;]{{0,24}}$|"
    r"(?<![a-z])(?:dog|cat|horse|cow|bull|mare|pony|goat|sheep|lamb|pig|sow|ewe|pup|project|company|product|brand)s?\s"
    r"(?:date\sof\sbirth|birth\s?da(?:te|y)|dob|born)[:=]?\s?$|"
    rf"(?<![a-z]){_ANIMALS}(?![a-z])(?:[^;.\n]|\.(?![ ](?-i:[A-Z]))){{0,32}}$|"
    r"birth\s(?:rate|control|cohort|weight|statistics|data|numbers|count|registrations?)[^;]{0,40}$"
    r"|dob-[a-z][^;]{0,60}$|geb\.?\s(?-i:[A-ZÄÖÜ])[a-zäöüß]{1,20}\s$"
    r"|(?:usine|entreprise|société|marque|association|empresa|compañía|firma|marca|azienda|società|impresa|unternehmen"
    r"|unternehmens"
    r"|vereins?|projekt|projekts|proyecto|projet|progetto|start-?up|club|firmy|spółki|empresa|bedrijf|företaget|yritys"
    r"|компании|фирмы)[^;.:]{0,30}:?\s?$"
    r"|(?:taux|tasa|tasso|taxa|índice|indice|wskaźnik|míra|miera|współczynnik|коэффициент|показатель|рівень|معدل|نرخ|שיעור"
    r"|जन्म ?दर|oranı?|tỷ lệ|อัตราการ|rata|arány|tingkat|angka)[^;.:\d]{0,24}$|出生[率数數][^。，]{0,6}$|출생[률율][^.]{0,6}$"
    rf"|birth\sof\s(?:the|an?|our|this)\s(?:{_THINGS}|{_ENGLISH_THINGS})(?![^\W_])[^;.\d]{{0,12}}$"
    r"|(?:republik|republic|república|république|nation|firma|company|city|stadt)\W{0,3}$"
    r"|born\s(?:rate|count|digital)[^;]{0,40}$"
    r"|(?:project|company|start-?up|product|brand|firm|team|programme|program|initiative|idea|process|thread|job|task"
    r"|pod|container"
    r"|session|server|daemon|worker|node|instance|galaxy|star|legend|tradition|movement|band|city)\s(?:was\s"
    r"|is\s)?born[^;]{0,20}$"
    # "The World Wide Web was born on": what has an article before it and is no person, of whom most words end alike.
    rf"|(?<![a-z])(?:the|our|this|that|its)\s(?:[^\W\d]+[ -]){{0,3}}(?!(?:{_PEOPLE})\s)[^\W\d]{{3,20}}\s(?:was"
    rf"|is)\sborn[^;]{{0,20}}$",
    re.IGNORECASE,
)
# "birth day: 21, birth month: 06, birth year: 1979"; the words are those of `split`.
_PART_WORDS = (
    "day|month|year|tag|monat|jahr|jour|mois|ann[ée]e|d[ií]a|mes|año|giorno|mese|anno|m[êe]s|ano|dag|maand|jaar|dzień"
    "|miesiąc|rok"
    "|день|месяц|год|måned|månad|år"
)
_PART = rf"(?:{_PART_WORDS})(?:[ ]?[:=][ ]?|[ ])(?:{_YEAR}|[0-3]?[0-9]|{_WORD})"
_OF_BIRTH = "(?:of birth|birth|geburts|de naissance|de nacimiento|di nascita|de nascimento)"
_PARTED = rf"(?:[ ]?[,;/|\n-][ ]?|[ ])(?:and[ ])?(?:{_OF_BIRTH}[ -]?)?"
_BIRTH_HINT = (
    rf"{HINT_BEFORE_LETTER}(?i:{in_hint(BIRTH)}|b\.|birth|ur\.|[*]){HINT_AFTER_LETTER}{HINT_GAP}[0-9]"
    rf"|[a-z](?:DOB|Dob|Birth){HINT_GAP}[0-9]"
)


BIRTHS: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="dob_marked",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        accept=_accept_date,
        pattern=LatePattern(
            rf"(?:(?P<star>(?<![\w*])[*])|{BEFORE})(?P<value>{_DATE}|{_IDEOGRAPHIC})"
            rf"(?(star)(?![0-9*_./-])|(?=[ ](?:geb\.(?=[ ]in[ ]|[ ]?(?:$|[,;)]))|geboren|gebürtig|urodzon[ay]|született"
            rf"|doğumlu|г\.[ ]?р)(?![a-z])"
            rf"|[ ]?생(?:[^가-힣]|$)|[ ]?生(?:[^\u4e00-\u9fff]|$)|[ ]?出生(?![人率数數]|统计|統計)))",
            re.IGNORECASE,
        ),
        not_after=LatePattern(
            rf"{_THING_BORN}\s(?:wurde|ist|war|werd|is)\s(?:(?:schon|bereits|erst)\s)?(?:am|op|den)\s$", re.IGNORECASE
        ),
        hint=r"[*][0-3]?[0-9]\.[01]?[0-9]\.(?:19|20)|[日일][ ]?出?[生생]"
        r"|[0-9][ ](?i:geb\.|geboren|gebürtig|urodzon|született|doğumlu|г\.[ ]?р)",
    ),
    PatternDetector(
        name="dob_ideographic",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(rf"(?:[农農旧舊阴陰公][历曆]|西元|公元)?{_IDEOGRAPHIC}"),
        first="[农農旧舊阴陰公西一二明大昭平令民]",
        hint="[〇零○元一二三四五六七八九十百]年[正元一二三四五六七八九十]{1,2}月",
        need=Need.CONTEXT,
        context=words(BIRTH),
        reach=8,
        not_near=_NOT_OF_A_PERSON,
    ),
    PatternDetector(
        name="dob_digits",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(
            rf"{BEFORE}(?:{_DIGITS}){AFTER_DIGIT}"
            r"(?![ ](?!(?:and|or|in|at|is|was|sex|male|female|gender|age|aged|city|country|nationality|name)(?![a-z]))[a-z]{3})"
        ),
        hint=_BIRTH_HINT,
        need=Need.CONTEXT,
        is_number=True,
        context=words(rf"(?:{BIRTH})[ ]?: ?$", r"d\.?o\.?b\.? $"),
        reach=2,
        not_near=_NOT_OF_A_PERSON,
        keys=LatePattern(f"(?:{_BIRTH_KEYS})$", re.IGNORECASE),
        not_after=LatePattern(r"[0-9][-./]$", end_chars=3),
    ),
    PatternDetector(
        name="dob_worded",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(
            rf"(?<![^\W_])(?:(?:{_ORDINALS}|{_DAY}(?:st|nd|rd|th)?)[ ](?:of[ ])?{_WORD}"
            rf"|{_WORD}[ ](?:the[ ])?(?:{_ORDINALS})),?[ ](?:of[ ])?"
            rf"(?:{_YEAR}|{_YEAR_WORDS})(?![^\W_])",
            re.IGNORECASE,
        ),
        hint=rf"(?i:{_ORDINALS})(?:,|[ ](?i:of[ ])?[^\s]{{3,12}},?)?[ ](?i:of[ ])?(?:19|20|(?i:nineteen|twenty"
        rf"|two[ ]thousand|(?:thir|for|fif|six|seven|eigh|nine)ty))[0-9 \-]"
        rf"|[0-9](?i:st|nd|rd|th)?[ ](?i:of[ ])?[^\s]{{3,12}},?[ ](?i:nineteen|two[ ]thousand)[ \-]",
        accept=_accept_worded,
        need=Need.CONTEXT,
        context=words(BIRTH),
        reach=16,
        not_near=_NOT_OF_A_PERSON,
    ),
    PatternDetector(
        name="dob_parts",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=38,
        pattern=LatePattern(
            rf"(?<![^\W_])(?=[^\n]{{0,60}}(?:19"
            rf"|20)[0-9]{{2}}(?![0-9]))(?:{_OF_BIRTH}[ -]?)?(?P<value>{_PART}(?:{_PARTED}{_PART}){{1,2}})(?![^\W_])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=at_word(f"{_OF_BIRTH}|{_PART_WORDS}"),
        hint=_BIRTH_HINT,
        accept=_accept_parts,
        need=Need.CONTEXT,
        context=words(BIRTH, rf"{_OF_BIRTH}[:=]?[\s-]?$"),
        reach=16,
        not_near=_NOT_OF_A_PERSON,
    ),
    PatternDetector(
        name="dob_epoch",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(rf"{BEFORE}-?[0-9]{{8,13}}{AFTER_DIGIT}"),
        hint=_BIRTH_HINT,
        accept=_accept_epoch,
        need=Need.CONTEXT,
        is_number=True,
        context=words(rf"(?:{_BIRTH_KEYS}): ?$"),
        reach=3,
        keys=LatePattern(f"(?:{_BIRTH_KEYS})$", re.IGNORECASE),
    ),
    PatternDetector(
        name="dob_in_segment",  # of a message between hospitals
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        pattern=LatePattern(r"(?<![A-Z])PID\|(?:[^|\n\r]{0,40}\|){6}(?P<value>(?:19|20)[0-9]{6})(?![0-9])"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"PID\|",
    ),
    PatternDetector(
        name="dob",
        type="DOB",
        category=Category.GOVERNMENT,
        priority=39,
        accept=_accept_date,
        pattern=LatePattern(
            rf"{BEFORE}(?:{_DATE})(?![0-9_])(?![-./][0-9]|\.\.|[ ]?(?:to|until|bis|[–-]|à|au|al|até|tot|till|til|do|по|до"
            rf"|تا|إلى|الى|至|到|から|부터|~|～)[ ]?[0-9])(?!(?!T[0-9])[A-Za-z])",
            re.IGNORECASE,
        ),
        hint=_BIRTH_HINT,
        need=Need.CONTEXT,
        is_number=True,
        context=words(BIRTH, r"birth[:=]\s?$", r"b\.\s?$", r"ur\.\s?$", r"[(,] ?[*]\s?$"),
        reach=40,
        not_near=_NOT_OF_A_PERSON,
        keys=LatePattern(f"(?:{_BIRTH_KEYS})$", re.IGNORECASE),
        not_after=LatePattern(r"[0-9][-./]$", end_chars=3),
    ),
)
