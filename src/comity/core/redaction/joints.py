"""What stands between a label and its value: in prose, key=value pairs, JSON, YAML, markup, tables and command lines.

Detectors know labels as words with a colon behind them. `as_words` reads every other form as that one, so that a label counts
the same whichever format it stands in. `JOINT` is the same for patterns that hold their label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from comity.core.redaction.labels import PERSONS
from comity.core.redaction.shapes import COUNTED, is_foreign, plain_words

# Between a label and a value in a pattern that holds both: quotes, stars and tags around a sign that says so.
_AROUND = r"[\"'’`*_\\)\]>]{0,4}[ \t]{0,3}(?:</[a-z]{1,10}>[ \t]{0,2}){0,2}(?:<[a-z]{1,10}>){0,2}"
_BEFORE_VALUE = r"[\"'’`*_\\]{0,3}(?:</[a-z]{1,10}>)?[ \t|]{0,4}[\"'`“„«<\[(\\*]{0,3}"
SIGNED: Final = rf"(?:{_AROUND}(?::=|=>|->|→|[:=：](?![=/])){_BEFORE_VALUE}|[\"'][ ]value=[\"'])"
# The same, or a sign that also stands between other words: a dash, dots, a cell's border.
JOINT: Final = (
    rf"(?:{SIGNED}|{_AROUND}(?:[|\t]|\.{{2,24}}:?|[-–—](?=[ ])|(?<=>)|(?<=[ ]{{3}})){_BEFORE_VALUE}|[:：]["
    rf" ]{{0,2}}\n[ ]{{0,4}}(?:-[ ])?)"
)
# Signs that may surround a label or a value without a meaning of their own.
_WRAPPING = " \t\r\n\u00a0\u3000\"'`*~|\\“”„«»‘’([{:=：→<>-–—_"
_SEPARATOR = re.compile(r"[:=：|\t→]|(?<=\s)[-–—]+>?(?=\s)|[-=]>|\.{2}")
_LONE = frozenset("_<>")
_COMPARISON = re.compile(r"[=!<>]=")
_IDENTIFIER = re.compile(r"[^\W\d][\w]*\Z")
_HUMP = re.compile(r"[a-z0-9][A-Z]|_")
# Tags of a page say nothing of what is in them; the name of any other tag is a label.
_PLAIN_TAGS = frozenset(
    re.findall(
        r"\w+",
        "a b br center dd div dl dt em font h h1 h2 h3 h4 i label li ol p small span strong table tbody td th thead tr tt u ul "
        "value val data field item column cell string text",
    )
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[^\W\d][\w.:-]{0,40})(?P<rest>(?:\s[^<>]{0,60})?)>\s*\Z")
_NAMED_TAG = re.compile(
    r"<[A-Za-z][\w.:-]{0,24}(?:\s[^<>]{0,40})?\s(?:name|id|key|label|field|property"
    r"|itemprop)\s?=\s?[\"'](?P<label>[^\"'<>]{2,40})[\"']"
    r"(?:[^<>]{0,30}>\s*|[^<>]{0,30}\s(?:value|content)\s?=\s?[\"'])\Z"
)
_TAGS_MAX = 4
_YAML_TYPE = re.compile(r":[ ]!!(?:str|int|float)[ ][\"']?\Z")
_OPTION = re.compile(r"(?<![^\s])--(?P<name>[a-z][a-z-]{1,40})(?:=|[ ])[\"']?\Z")  # of a command line


# "PIN of my card: ", "phone for the flat is ": whose the value is says nothing of what it is. The last such words are found.
# Without a colon or a verb behind them the last word must be one for a person: "passport of the lead traveller X1234567".
_OF = (
    "of|for|at|from|on|meiner|meines|meinem|von|vom|der|des|den|de|du|del|dello|della|dei|degli|delle|di|do|da|dos|das|para"
    "|pour"
    "|per|für|van|voor|av|till|mojej|mojego|od|untuk|milik|для|у|от|από|του|της|של|på|hos|dla|pro|za"
)
# "passport per day", "email cap per user": a rate, which has no owner.
_RATE = (
    "(?:per|pro|za|par|por|je)[ ](?:second|minute|hour|day|night|week|month|quarter|year|annum|user|customer|client|person|head"
    "|capita|seat|device|account|unit|item|page|row|line|file|batch|run|request|call|session|order|region|site|store|shop|branch"
    "|team|tenant|campaign|channel|country|state|city|visit|household|employee|patient|ip|sekunde|stunde|tag|woche|monat|jahr"
    "|kunde|nutzer|jour|mois|an|semaine|heure|utilisateur|d[ií]a|mes|año|hora|semana|usuario|giorno|mese|anno|ora|settimana"
    "|utente|dia|mês|ano|dag|maand|jaar|uur|dzień|miesiąc|rok|den|měsíc|день|месяц|год)(?![^\\W_])"
)
_WHOSE = re.compile(
    rf"(?s:.*[^\W\d_]\)?)(?P<whose>[ ](?!{_RATE})(?:(?:{_OF})[ ]|dell['’]|d['’])"
    r"[^\W\d_][\w'’-]{0,16}(?:(?<=[ ](?-i:[A-Z]))\.|(?<=[ ][MDHS][a-z])\.)?(?:[ ][^\W\d_][\w'’-]{0,16}){0,3}?"
    r"(?P<said>:[ ]|[ ](?:is|ist|est|es|è|é|to|jest|was|lautet|är|er|je|là|adalah|הוא|היא|هو|هي|—|–|-)[ ]|[ ]))\Z"
)
_DANGLING = re.compile(rf"[ ](?:{_OF})\Z")  # of two in a row, as in "van de huurder"
# "social security number, she says, is ": who says so, between commas.
_ASIDE = re.compile(
    r",[ ](?:(?:he|she|they|i|we)[ ](?:says?|said|thinks?|believes?|claims?|guess|told[ ](?:me|us))|apparently"
    r"|(?:dit|dice|sagt|diz|zegt)[ ]?-?[ ]?(?:il|elle|él|ella|er|sie|ele|ela|hij|zij)|selon[ ](?:lui|elle)|según[ ](?:él|ella))"
    r",?(?P<said>[ ](?:is|was|ist|lautet|est|es|è|é|jest|to)[ ]|:[ ])\Z",
    re.IGNORECASE,
)
# "passport number, that is ", "account number should read ", "Kontonummer müsste ": a label said once more, or put right.
_RESTATED = re.compile(
    r"(?:,[ ](?:è|é|es|är|er|on|je|jest|este|это|це|είναι)(?=[ ])|,?[ ](?:that is|that['’]?s|i\.e\.|namely|it is|it['’]s"
    r"|which is|(?:er|sie|es) (?:ist|lautet)|das ist|das w[aä]re"
    r"|n[aä]mlich|und zwar"
    r"|c['’]est(?:-à-dire)?|à savoir|soit"
    r"|qui est|que es|es decir|o sea|cioè|ossia|ovvero|che è|dat is|namelijk|te weten|que é|ou seja|isto é|czyli"
    r"|to znaczy|to jest"
    r"|tedy|čili|to je|alltså|det är|nämligen|altså|det er|nimittäin|eli|yani|azaz|vagyis|adică|то есть|тобто|а именно"
    r"|а саме|това е)"
    r"|[ ](?:(?:should|ought to|must|has to|needs to|would) (?:read|be|say)|(?:now |actually )?reads?|lautet (?:jetzt"
    r"|nun|neu|richtig)"
    r"|müsste|sollte|soll|muss|devrait être|doit être|est (?:désormais|maintenant)|debe(?:ría)? ser|es ahora|ahora es"
    r"|dovrebbe essere"
    r"|deve essere|è ora|luidt(?: nu)?|moet zijn|zou|deve(?:ria)? ser|agora é|brzmi|powin(?:ien|no|na) być|zní|má být"
    r"|lyder|ska vara"
    r"|skal være|on nyt|(?:est|es|é|è)(?= (?:le|la|el|il|lo|o|a)[ ])|такой|такая|должен быть|має бути|şu|şöyle))"
    r"[:,]?[ ](?:(?:le|la|el|il|lo|o|a|the)[ ])?\Z",
    re.IGNORECASE,
)
# "my bank needs the BIC too, it is ": what is said of the label before its value.
_SAID_MAX = 3
_SAID_WORD = re.compile(r"[ ](?P<word>[^\W\d_]{1,14}): \Z")
# "change the postcode of my account to ", "hat sich geändert auf ": a new value for what the label names.
_CHANGE = (
    r"chang\w{1,3}|updat\w{1,3}|correct(?:ed|ing)?|amend\w{0,3}|set|switch\w{0,3}|edit\w{0,3}|replac\w{1,3}|adjust\w{0,3}"
    r"|(?:ab|um|ver)?änder\w{1,3}|geändert|aktualisier\w{1,3}|korrigier\w{1,3}|setz(?:en|t|e)|umstellen|stell(?:en|t|e)"
    r"|modifi\w{1,5}|chang(?:ez|er|é)|mett(?:ez|re)|corri[gj]\w{1,4}|remplac\w{1,3}|actuali[sz]\w{1,5}|cambi\w{1,6}|mud\w{1,5}"
    r"|troqu\w{1,3}|troc\w{1,3}|alter[aeo]\w{0,4}|atualiz\w{1,3}|aggiorn\w{1,4}|correg\w{1,4}|wijzig\w{0,3}|gewijzigd"
    r"|verander\w{0,3}|aanpassen|zmie[nń]\w{0,5}|popraw\w{0,4}|zaktualizuj\w{0,4}|zm[eě][nň]\w{0,4}|uprav\w{1,4}|oprav\w{1,4}"
    r"|ändr\w{1,3}|byt|uppdatera\w{0,2}|ændr\w{1,3}|endr\w{1,3}|ret|opdater\w{0,2}|oppdater\w{0,2}|muut\w{1,5}|vaihda"
    r"|módosíts\w{0,4}"
    r"|modific\w{1,6}|schimb\w{1,5}|измен\w{1,6}|поменя\w{1,5}|смен\w{1,5}|исправ\w{1,5}|зміни\w{0,5}|виправ\w{1,4}"
    r"|промен\w{1,5}"
    r"|promijeni\w{0,3}|promeni\w{0,3}|spremeni\w{0,3}|αλλάξτε|άλλαξε|ubah|ganti"
)
_TO = frozenset(
    re.findall(r"\w+", "to into para a al en par pour auf in zu naar na til till în на в u σε menjadi ke le la el il o")
)
_CHANGED_TO = re.compile(
    rf"(?<![^\W_])(?:{_CHANGE})(?![^\W_])(?P<what>[^.!?\n]{{2,60}}?)"
    rf"(?P<to>[ ](?:{'|'.join(sorted(_TO))})[ ](?:(?:le|la|el|il|o)[ ])?)\Z",
    re.IGNORECASE,
)
_OF_PERSONS = re.compile(r"(?<![^\W_])(?:date|id|codes?)(?![^\W_])", re.IGNORECASE)  # "date of birth", which things have too
_HAS_CHANGED = re.compile(
    r"(?P<to>[ ](?:(?:has |have |was |is )?(?:now )?changed to|(?:ha )?cambi(?:ó|ado|ato) (?:a|al|in)|mudou para"
    r"|(?:a|est) (?:changé|passée?) (?:pour|au?|en)|(?:hat sich|wurde|bitte) (?:geändert )?(?:auf|in|zu)|is gewijzigd (?:in"
    r"|naar)"
    r"|zmienił[ao]? się na|se změnil[ao]? na|(?:har )?ändra(?:ts|des) till|(?:er )?endret til|(?:er )?ændret til"
    r"|(?:из)?менил(?:ся|ась) на|поменял(?:ся|ась) на|змінився на)[ ])\Z",
    re.IGNORECASE,
)
# "typed her Aadhaar into the subject line: ": where the value was written.
_WRITTEN_IN = re.compile(
    r"[ ](?:in(?:to|side|to the)?|as|on|under|im|ins|unter|dans|en|sur|nel(?:la|l['’])?|no|na|em|w|we|do|v|ve|i|på|в|у|til"
    r"|to)[ ]?"
    r"(?:(?:the|a|our|my|his|her|their|your|this|den|die|das|dem|der|le|la|les|el|los|il|lo|het|de|o|notre|nuestro|l['’])[ ]?)?"
    r"(?:[^\W\d_]{2,12}[ ])?(?:subject|comments?|notes?|title|field|form|chat|message|ticket|reference|description|body|e-?mail"
    r"|remarks?|memo|voicemail|caption|header|footer|post|review|survey|reply|request|(?:subject|memo|reference) line"
    r"|betreff(?:zeile)?|kommentar(?:feld)?|notiz(?:en|feld)?|titel|feld|formular|nachricht|verwendungszweck|bemerkung(?:en"
    r"|sfeld)?"
    r"|objet|commentaires?|titre|champ|formulaire|remarques?|asunto|comentarios?|notas?|título|campo|formulario|mensaje"
    r"|observaciones"
    r"|oggetto|commento|commenti|titolo|modulo|messaggio|causale|assunto|comentário|formulário|mensagem"
    r"|onderwerp(?:regel)?|opmerking(?:en)?|veld|formulier|bericht|temacie|tytule|komentarzu|polu|formularzu|wiadomości|uwagach"
    r"|předmětu|poznámce|komentáři|ämnesraden|kommentaren|emnefeltet|теме|комментарии|сообщении|примечании|темі|коментарі)"
    r"(?P<rest>[ ](?:field|line|box|text|form|title|subject|geschrieben|eingetragen|getippt|eingegeben|gesetzt|column|section)"
    r")?: \Z",
    re.IGNORECASE,
)
_OWNERS_MAX = 3  # "phone of the office of the landlord of the flat: "


# "¿Me confirma su número de ruta?\n- Sí, es ": an answer, perhaps of a speaker with a time, that begins with small words.
_OWN_IS = (
    r"mine(?: is|['’]s)|(?:o meu|a minha) é|(?:el mío|la mía) es|le mien est|la mienne est|meine[rs]? ist|(?:il mio|la mia) è"
    r"|mój to|de mijne is"
)
_ANSWER = re.compile(
    r"[?][ \n]{1,3}(?:\[?[0-9:.]{4,8}\]?[ ])?(?:[-–—•*>][ ])?(?:[^\W\d_]{1,12}[ ]?:[ ])?"
    rf"(?:(?:(?P<own>{_OWN_IS})|yes|yeah|sure|ok|okay|of course|uh|um|erm?|well|yep|yup|it['’]?s|it is|that['’]?s"
    rf"|c(?:['’]?est)? le|c|es el|é o|sí|si|claro|es|sim|é|oui"
    rf"|euh|c['’]est|est|ja|ist|äh|sì|è|tak|to|да|это)[ ,.…]{{1,3}}){{0,4}}\Z",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?<![^\W_])(?:t['’ ]?as|tu as|son|sa|leur|his|her|their|seine?|hast du|habt ihr|tienes|tens|hai|masz|got|you|your|ur"
    r"|what['’]?s|what is|which|su|sus|tu|tus|votre|vos|ton|ta|quel|quelle|cuál|qué|ihre?n?|deine?n?"
    r"|welche|seu|sua|qual|suo|uw|jouw|twój|twoje|pana|pani|ваш|ваша|твой|какой|nedir|numaranız|vaše|tvoje|jaké|ditt|din"
    r"|dit|jaki)(?![^\W_])",
    re.IGNORECASE,
)
_WHETHER = re.compile(
    r"(?<![^\W_])(?:did|does|do|is|are|was|were|has|have) (?:your|the|my|any|our|his|her|their|its)(?![^\W_])", re.IGNORECASE
)
_PURPOSE = re.compile(
    r",? (?:so(?: that)?|because|since|before|in order|please|then|if|when we|pour|para|damit|parce|porque"
    r"|żeby)(?![^\W_])",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"[.!?\n]")
# What goes on behind a label that is asked for; a noun there is another question: "your score on the phone game?".
_BEHIND_ASKED = frozenset(
    re.findall(
        r"\S+",
        "of for on at in from to with by as so and or but if when again please then now there here right did do does is "
        "are was were will would can could should have has had i you we they he she it that this currently still just "
        "also only today sir madam ma'am mate dear number no de du des pour sur à au en chez svp déjà para por del da "
        "di per su con y o e et ou für von vom bei auf im zu bitte noch denn und oder nochmal doch gerade haben hat "
        "avez est ist es è é tiene usted señor señora monsieur madame van voor bij op dla na w z proszę jest для на у в",
    )
)
_ASKED_MAX = 8  # words of a question behind the label


# "Licence (NSW) ", "Phone (home): ": which of several is meant.
_BRACKETED = re.compile(r"[ ]?\((?P<words>[^()\d\0\n]{1,24})\)(?=[ :=#.\t]{0,4}\Z)")


@lru_cache(maxsize=2048)
def as_words(before: str) -> str:
    """Return the text before a value with the label that it ends with as words and a colon."""
    if "--" in before and (option := _OPTION.search(before)):
        return f"{before[: option.start()].rstrip()} {option['name'].replace('-', ' ')}: "
    if "!!" in before:
        before = _YAML_TYPE.sub(": ", before)
    if before[-1:] == " " and before[-2:-1].isalpha():
        return before
    if ">" in before or "<" in before:
        before = _without_tags(before)
    head = before.rstrip(_WRAPPING)
    joint = before[len(head) :]
    if not joint or not head or joint.strip() in _LONE or _COMPARISON.search(joint):
        return before
    if joint[-1] in "-–_" or (joint[0] in "-–_" and joint[1:2] not in " >"):
        return before
    if _SEPARATOR.search(joint):
        joint = ": "
    elif joint.strip(" \n\t\r_-") == joint.strip():
        joint = " " if joint.strip() else joint
    identifier = _IDENTIFIER.search(head)
    if identifier is not None and _HUMP.search(identifier.group()):
        head = head[: identifier.start()] + plain_words(identifier.group())
    return head + joint


def says_count(words: str) -> bool:
    """Return whether words say that the number behind them counts something, or is the number of a thing."""
    return any(is_foreign(word.lower()) or COUNTED.match(f" {word}") for word in words.split())


def without_owners(before: str) -> Iterator[str]:
    """Yield the text before a value without the words that say which or whose it is, one owner less each time.

    Of an answer yield the question, one word less each time.
    """
    if "?" in before and (answer := _ANSWER.search(before)):
        yield from _asked(before[: answer.start()], is_own=answer["own"] is not None)
    if "," in before and (aside := _ASIDE.search(before)):
        before = before[: aside.start()] + aside["said"]
        yield before
    if restated := _RESTATED.search(before):
        before = f"{before[: restated.start()]}: "
        yield before
        if restated.group().startswith(","):
            yield from _without_said(before)
    elif before[:-1].rpartition(" ")[2] in _TO and (cut := _changed_at(before)):
        before = f"{before[:cut]}: "
        yield before
    elif before.endswith(": ") and (written := _WRITTEN_IN.search(before)):
        before = f"{before[: written.start()]}: "
        yield before
    if ")" in before[-5:] and (bracketed := _BRACKETED.search(before)) and not says_count(bracketed["words"]):
        before = before[: bracketed.start()] + before[bracketed.end() :]
        yield before
    for _ in range(_OWNERS_MAX):
        whose = _WHOSE.match(before) if before[-1:] == " " else None
        if whose is None or (whose["said"] == " " and not _is_person(whose["whose"])):
            return
        before = f"{_DANGLING.sub('', before[: whose.start('whose')])}: "
        yield before


@lru_cache(maxsize=16)  # each detector asks for those of the same text
def all_readings(before: str) -> tuple[str, ...]:
    """Return the text before a value and all that `without_owners` yields of it."""
    return before, *without_owners(before)


def _changed_at(before: str) -> int:
    """Return where the words end that say what is changed to the value behind them, or 0."""
    if changed := _HAS_CHANGED.search(before):
        return changed.start("to")
    changed = _CHANGED_TO.search(before)
    return 0 if changed is None or says_count(_OF_PERSONS.sub("", changed["what"])) else changed.start("to")


def _without_said(before: str) -> Iterator[str]:
    """Yield the text before a value without the last words, one less each time, as long as they are of no thing."""
    for _ in range(_SAID_MAX):
        said = _SAID_WORD.search(before)
        if said is None or not (said["word"].islower() or said["word"] == "Sie") or says_count(said["word"]):
            return
        before = f"{before[: said.start()]}: "
        yield before


def _asked(text: str, *, is_own: bool) -> Iterator[str]:
    """Yield what a question asks for: "what's your postcode so I can check coverage" asks for a postcode."""
    question = _SENTENCES.split(text)[-1]
    if not (is_own or _ASKS.search(question)) or _WHETHER.search(question):
        return
    words = _PURPOSE.split(question, maxsplit=1)[0].split(" ")
    for count in range(len(words), max(0, len(words) - _ASKED_MAX), -1):
        if is_own or count == len(words) or words[count].lower().strip(",") in _BEHIND_ASKED:
            yield f"{' '.join(words[:count])}: "


def _is_person(whose: str) -> bool:
    return PERSONS.issuperset(whose.rstrip().lower().split(" ")[-1:])


def _without_tags(before: str) -> str:
    """Return a text with the tags at its end as what they say of the value behind them."""
    if named := _NAMED_TAG.search(before):
        return f"{before[: named.start()]} {named['label']}: "
    text = before
    for _ in range(_TAGS_MAX):
        tag = _TAG.search(text)
        if tag is None:
            break
        if not tag["end"] and tag["name"].rpartition(":")[2].lower() not in _PLAIN_TAGS:
            return f"{text[: tag.start()]} {tag['name'].rpartition(':')[2]}: "
        text = text[: tag.start()]
    return before if text is before else f"{text.rstrip(' :')}: "
