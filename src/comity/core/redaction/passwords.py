"""Passwords, codes that stand for one, and credentials inside of commands and connection strings."""

from __future__ import annotations

import re
from typing import Final

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.joining import GAP, IS, JOINED_TO
from comity.core.redaction.joints import JOINT, SIGNED
from comity.core.redaction.labels import NETWORK, ONE_TIME_CODE, SECURITY_CODE, SIGN_IN, USER, USER_NAME, YOUR_CODE
from comity.core.redaction.shapes import (
    AFTER_DIGIT,
    BEFORE,
    HINT_BEFORE_LETTER,
    HINT_GAP,
    LONG_CHARS_MAX,
    VALUE_CHARS_MAX,
    WORD_BORDER,
    Context,
    LatePattern,
    at_word,
    by_first_letter,
    first_letters,
    in_hint,
)

_LABELS = in_hint(SIGN_IN)

# A word's, or a hump's inside of a key.
_BORDER = rf"(?:{WORD_BORDER}|(?<=[a-z])(?=(?-i:[A-Z][a-z]))|(?<=PG)|(?<=DB))"

# Where the label of a password or of a user's name may begin; they are looked for together.
FIRST_OF_LABEL = at_word(f"{_LABELS}|pw|uid|{in_hint(USER_NAME)}|{USER}|{NETWORK}")

_CODE_LABELS = (
    r"(?:recovery|backup)[ -]?codes?"
    r"|(?:one[- ]time|verification|confirmation|login|sms|2?fa|two-?factor|authentication|einmal)[ -]?(?:code|passcode"
    r"|pin|password|passwort)"
    r"|(?:alarm|door|gate|access|entry|lock|safe|key ?pad|voicemail|unlock)[ -]?code|türcode|zugangscode|digicode"
    r"|code (?:for|to|of) (?:the|my|our) (?:safe|door|gate|alarm|building|garage|locker|lock|house|flat)"
    r"|code (?:d['’](?:accès|entrée)|de la porte)|código de (?:acceso|entrada|acesso)|codice (?:di accesso|porta|allarme)"
    rf"|{ONE_TIME_CODE}|{SECURITY_CODE}"
)

# What a user's name and password are said to be together: "login: ann / …".
_PAIRS = (
    "log[ -]?ins?|user[ ]?/[ ]?(?:pass|pw|password)|creds?|credentials|zugangsdaten|anmeldedaten|identifiants|credenciales"
    "|credenziali|account|user|acceso|accesso|access|accès|zugang|dostęp|вход"
)

_LOGIN_NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{1,47}"

_WEAK_LABELS = (  # words that also mean other things
    "pass|pw|clave|parole|parola chiave|kata kunci|sandi|parool|mk|ww|lösen|šifra|шифра|mot de pas|wi-?fi[ -]kode?"
    "|code d['’]accès|口令"
)

_WEAK_HINT = rf"(?:{HINT_BEFORE_LETTER}(?i:{in_hint(_WEAK_LABELS)})|pw|pass|PW|PASS|Pass)(?:[^A-Za-z0-9_]|$)"

_SINCE = (
    "(?:(?:still|now|currently|again|noch|immer noch|jetzt|aktuell|toujours|encore|ahora|todavía|ancora|teraz|nadal|ещё|сейчас"
    "|теперь)[ ])?"
)
ASKED: Final = r"[?][ \n]{1,2}(?:[A-Z][A-Za-z]{0,11}[ ]?:[ ])?"  # "your password? Customer: …"
# Whose the secret is, between its label and what says it: "password of my router is …". Further words need a sign or a verb.
OWNER: Final = (
    r"(?:[ ]?\([^()\d\n]{1,24}\)(?=[ ]?[:=])|[ ](?:wi-?fi|wlan|router|e-?mail|portal|vpn)(?=[ :=])"
    r"|[ ](?:provisoire|temporaire|initiale?|actuel|nouveau|par défaut|temporal|provisional|inicial|actual|nueva|por defecto"
    r"|temporane[ao]|provvisori[ao]|iniziale|attuale|nuova|provisória|temporária|atual|nova|padrão|tijdelijk|tymczasowe|początkowe"
    r"|nowe|domyślne|dočasné|nové|výchozí|временный|новый|начальный|тимчасовий|новий)(?=[ ]?[:=])"
    r"|[ ](?:(?:d|dell|all|nell|sull)|(?:de|à)[ ]l)['’][^\W\d][\w-]{0,14}(?:[ ](?:[^\W\d][\w'’-]{0,14}|[0-9]{1,4})){0,3}?"
    rf"(?=[ ](?:{IS})[ ]|[ ]?[:=])"
    r"|[ ](?:for|of|at|on|from|to|do|de|du|der|des|del|della"
    r"|meiner|meines|für|fürs|ins|ans|aufs|pour"
    r"|para|per|von|van|voor|zum|zur|til|till|för|på|od|dla|za|k|ke|na|от|від|до|за|для|к|у|για|του|της|của"
    r"|under|behind|inside|near|unter|hinter|neben|sous|derrière|bajo|tras|sotto|dietro|onder|achter|pod|sob|под"
    r"|untuk|milik|in|im|zu|beim|vom|am|dem|den|dello|dei|sul|nel|sur|dans|chez|en|a|al|au|aux|ao|no|w|z|v|u|bij|hos"
    r"|pro|pre|στο|на|с|ng|ya|wa|dari|bagi|hjá|kod|pri)"
    rf"(?:(?:[ ][^\W\d][\w'’-]{{0,14}}){{1,3}}?(?=[ :=])"
    rf"|(?:[ ](?:[^\W\d][\w'’-]{{0,14}}|[0-9]{{1,4}}[a-z]?)){{1,5}}?(?:[ ][0-9]{{1,4}})?(?=[ ](?:{IS})[ ]|[ ]?[:=]"
    rf"|[ ][—–-][ ])))?"
)

# What says that the value before it is a person's own.
_OWN_BEHIND = (
    "[ ](?:is|was|ist|war|est|era|es|è|é|to|jest|är|er|je|это)[ ](?:still |now |noch |toujours )?"
    "(?:my|our|his|her|their|meine?|unser|ihr|sein|mon|son|notre|mi|su|il mio|la mia|il suo|la sua|o meu|a minha|a sua"
    "|mijn|ons|mój|moje|mitt|min|moje|мой)[ ]"
)

# Words that stand after "password is" in plain language, or where a program takes the value from.
_NOT_A_SECRET = frozenset(
    re.findall(
        r"[^\W\d_]+",
        "required optional missing wrong incorrect invalid valid expired expires unknown empty null none nil"
        " true false undefined string str bytes bytea bool boolean int varchar nvarchar secretstr charfield buffer files compat"
        " text hidden masked redacted encrypted hashed stored reset changed correct not too very also the a"
        " an at in on your my our their his her"
        " set sent never always case now only important weak strong secure long short protected needed"
        " disabled enabled used shared one and or"
        " being been must should please forgotten lost same different unchanged default rotated revoked"
        " accepted rejected blank about for from"
        " old new requires rotation updated leaked compromised safe important auto generated policy field manager"
        " siehe leer unbekannt folgt separat keines keine wird wurde liegt see tba tbc tbd ask voir vide inconnu ver"
        " véase vacía vacío"
        " vacio desconocida vedi vuota vuoto sconosciuta vide vazia desconhecida zie leeg onbekend patrz puste brak"
        " viz prázdné neznámé"
        " смотри пусто неизвестен дивись порожньо lásd üres vezi gol bkz boş неизвестна няма στο κενό unten oben beim per via"
        " mínimo minimo minimum mindestens erforderlich falsch ungültig abgelaufen geändert vergessen nicht muss darf requis"
        " skal ska måste pitää moet musi musí musisz kell trebuie mora morate повинен должна mindst minst vähintään"
        " obligatoire oublié invalide expiré doit requerida requerido obligatoria obligatorio incorrecta olvidada debe caducada"
        " campo champ campi feld pflichtfeld pflichtangabe veld fält felt kenttä pole mező câmp camp alan поле πεδίο polje"
        " obligatoires requise erforderliche notwendig necesaria necesario necessaria necessario necessária necessário"
        " obligatorisk obligatoriskt pakollinen påkrævet påkrevd krävs nødvendig wymagany wymagana povinné povinný povinne"
        " kötelező obligatoriu obvezno obvezna obavezno obavezna zorunlu zorunludur gerekli обязательное обязательно"
        " обязательна задължително υποχρεωτικό wajib 必填 必須 必须 필수 إلزامي"
        " obbligatoria obbligatorio obrigatório errata deve senza obrigatória vereist verplicht wymagane неверный"
        " обязателен должен неверен"
        " insert enter your replace placeholder put type"
        " return pass raise yield await async lambda self this function const let var",
    )
)

# A digit or a sign; words in a chain, none of them as short as in "up-to-date"; or what no language has for a word.
CHAIN: Final = "[A-Za-z]{3,20}(?:-[A-Za-z]{3,20}){2}"
_TYPED = "letmein|iloveyou|changeme|opensesame|qwert[yz]?(?:uiop)?|azerty(?:uiop)?|asdfgh(?:jkl)?|zxcvbnm?"
_NO_WORD = LatePattern(rf"[0-9!@#$%^&*_+=]|\A{CHAIN}(?:-[A-Za-z]{{3,}})*\Z|\A(?i:{_TYPED})\Z")
_NO_WORD_NEXT = rf"(?=[^\s0-9!@#$%^&*_+=]{{0,63}}[0-9!@#$%^&*_+=]|{CHAIN}|{_TYPED})"

# A word in brackets stands for what is to come: "password: [hidden]", "пароль: <введите пароль>".
_NO_PLACEHOLDER = r"(?:(?<![\[<({])|(?=[^\s\])>}]{0,63}[0-9!@#$%^&*_+=]))"

_YAML_TAG = re.compile("![a-z]+")
# "your-password-here", "db_password", "changeme-in-production": words alone, one of which says that the value is to come.
_PLACEHOLDER = re.compile(
    r"(?=(?:[a-z]+[-_. ])*(?:your|insert|enter|replace|placeholder|example|changeme|todo|redacted|password|passwd|pwd"
    r"|passwort|here)"
    r"(?![a-z]))[a-z]+(?:[-_. ][a-z]+)*"
)
_DATE_OR_VERSION = re.compile(r"v?[0-9]{1,4}(?:[-./:][0-9]{1,4}){1,4}")
_SNAKE = re.compile("[a-z]+(?:_[a-z]+)+")
_STORE = re.compile(r"(?:projects|kv|secrets?|vault|ssm|parameters?)/[a-z0-9_.-]+(?:/[a-z0-9_.-]+)*")  # where it is kept
_PATH = re.compile(r"[.~]{0,2}/[\w.-]+(?:/|\Z)")

_LABEL = LatePattern(SIGN_IN, re.IGNORECASE)

_FIRST_PART = re.compile(r"[|,:;/(、，：；。（]")  # "password: required|min:12" is a rule of a form

_SENTENCE = LatePattern("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")  # scripts whose words have no spaces between


def _accept_password(value: str) -> int:
    value = value.rstrip(".,;")
    plain = value.strip("\"'`“”").lower()
    if _FIRST_PART.split(plain, maxsplit=1)[0] in _NOT_A_SECRET or len(plain) < 4 or is_reference(plain):
        return 0
    return len(value)


def _accept_spoken(value: str) -> int:
    """After "is" only a value that no word is: with a digit or a sign in it."""
    length = _accept_password(value)
    length = min(length, len(_SENTENCE.compiled.split(value, maxsplit=1)[0]))  # a sentence may follow without a space
    if length < 6 or _DATE_OR_VERSION.fullmatch(value, 0, length):
        return 0
    if _SNAKE.fullmatch(value, 0, length) and value.partition("_")[0] in _NOT_A_SECRET:  # "rotated_daily"
        return 0
    return length if _NO_WORD.compiled.search(value[:length]) else 0


def _accept_passphrase(value: str) -> int:
    """Count words that make no sentence about pass phrases."""
    return 0 if _IN_SENTENCES.intersection(value.lower().split()) else len(value)


_IN_SENTENCES = frozenset(
    re.findall(
        "[a-z]+",
        "the and for from with must have has had more than should your you our their this that not are was were can will may"
        " enter type use used using set least long length characters words word letters key keys file files field required"
        " please protected stored when which where before after each every into but only also its two three four five",
    )
)


def _accept_weak(value: str) -> int:
    """After a word that also means other things only a value that no word, number, ratio or name in code is."""
    length = _accept_spoken(value)
    is_mixed = re.search("[A-Za-z].*[A-Za-z]", value) and re.search("[0-9]", value) and re.search("[A-Z!@#$%^&*+=]", value)
    is_name = not re.fullmatch(r"[A-ZÀ-Þ][a-zß-ÿ]+_[0-9]+\W?", value[:length]) and "_" in value
    return (
        length if is_mixed and not is_name and not re.search(r"[/:]|^[A-Z]{2,5}-?[0-9]+$|^[0-9.]+[A-Za-z]{1,3}$", value) else 0
    )


def is_reference(plain: str) -> bool:
    """Return whether a value says where the secret is kept, in a variable or in a file, or is the word for one."""
    if plain.isalpha() and _LABEL.compiled.fullmatch(plain):
        return True
    if _PLACEHOLDER.fullmatch(plain):
        return True
    if _YAML_TAG.fullmatch(plain) or (
        plain[:1] in "-?+" and plain[1:].isalpha()
    ):  # "${PASSWORD:-changeit}", "${PASSWORD:?unset}"
        return True
    if (plain[:1] in ".~/" and _PATH.match(plain)) or _STORE.fullmatch(plain):
        return True
    if re.fullmatch(r"(?:self|[a-z_]+)(?:\.[a-z_]+)+|pass_?word|passwd|secret|value|input", plain):
        return True
    return plain.startswith(
        ("$", "${", "{{", "<", "****", "os.", "env.", "process.env", "%(", "[[", "getenv", "secrets.", "vault:", "config.")
    ) or plain.endswith(("()", "("))


PASSWORDS: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="connection",
        type="CREDENTIAL",
        category=Category.SECRET,
        priority=9,
        pattern=LatePattern(
            r"(?<![A-Za-z])(?:password|pwd|accountkey|sharedaccesskey|user ?id|uid)=(?P<value>[^\s;\"'<>]{4,128})"
            r"(?:(?=;)|(?<=[A-Za-z0-9/+]{2}==)(?![^\s\"']))",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=r"[pPaAsSuU](?<![A-Za-z](?s:.))",
        hint=r"(?i:password|pwd|accountkey|sharedaccesskey|user ?id|uid)=[^\s;]{4,128}(?:;|==)",
        accept=_accept_password,
    ),
    PatternDetector(
        name="host_credentials",
        type="CREDENTIAL",
        category=Category.SECRET,
        priority=16,
        pattern=LatePattern(
            r"(?<![\w/@:.-])[A-Za-z][\w.-]{1,30}:(?P<value>[^\s:@/\"'<>]{6,64})@(?!sha)[A-Za-z][A-Za-z0-9.-]{1,60}(?![\w@])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=r"[A-Za-z](?<![\w/@:.-](?s:.))(?=[\w.-]{1,30}:)",
        hint=r"[A-Za-z0-9_]:[^\s:@/\"'<>]{6,64}@[A-Za-z]",
        accept=_accept_weak,
    ),
    PatternDetector(
        name="command_password",
        type="PASSWORD",
        category=Category.SECRET,
        priority=9,
        pattern=LatePattern(
            r"(?:(?<![^\s])(?:-u|--user|--proxy-user)[ =][\"']?[A-Za-z0-9._@-]{1,64}:"
            r"|(?<![A-Za-z])auth[ ]?=[ ]?\([\"'][^\s\"']{1,64}[\"'],[ ]?[\"'])(?P<value>[^\s\"'$<]{3,64})(?![^\s\"'])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"(?:-u|--user|--proxy-user)[ =][\"']?[A-Za-z0-9._@\-]{1,64}:|auth[ ]?=[ ]?\(\\?[\"']",
        accept=_accept_password,
    ),
    PatternDetector(
        name="password",
        type="PASSWORD",
        category=Category.SECRET,
        priority=14,
        pattern=LatePattern(
            rf"{_BORDER}(?:{by_first_letter(_LABELS)}){SIGNED}{_NO_PLACEHOLDER}"
            rf"(?P<value>[^\s\"'`“”<>\[\]{{}}()\\]{{4,64}})(?![^\s\"'`“”<>{{}})\]\\])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=FIRST_OF_LABEL,
        hint=rf"(?i:{_LABELS})(?:\\?[^A-Za-z0-9_\s]|\s{{0,2}}[:=\-：])",
        accept=_accept_password,
    ),
    PatternDetector(
        name="password_spoken",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"{_BORDER}(?:{by_first_letter(_LABELS)}|pw(?=['’]s[ ]|[ ]?[:=]|[ ](?:is|ist|lautet|est|es|è|é|to|är|er|je|für"
            rf"|for|of|at|on|in)[ ]))"
            rf"(?:{OWNER}(?:{JOINT}"
            rf"|(?:['’]s|,)?[ ]|{JOINED_TO}|{ASKED})"
            rf"(?:(?:(?:was|is|has[ ]been)[ ])?(?:changed|set|reset|updated)[ ]to[ ])?"
            rf"(?:(?:{IS})[ ]{_SINCE}(?:(?:le|la|el|il|lo|o|a)[ ])?)?|[ ]{GAP})"
            rf"[\"'`“(\[「『]?{_NO_WORD_NEXT}(?P<value>[^\s\"'`“”<>\[\]{{}}()「」『』]{{6,64}}+)(?<![:：])(?![(\[])",
            re.IGNORECASE,
        ),
        shape_chars_max=VALUE_CHARS_MAX,
        first=FIRST_OF_LABEL,
        hint=rf"(?i:{_LABELS})(?:['’]s[ ]|[^A-Za-z0-9_]|是|は|\\[nt])|(?i:pw)(?:['’]s[ ]"
        rf"|[ ]?[:=]|[ ](?i:is|ist|lautet|est|es|è|é|to|är|er|je|für|for|of"
        rf"|at|on|in)[ ])",
        accept=_accept_spoken,
    ),
    PatternDetector(
        name="password_behind",  # "Blue-Door_63 is my password"
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"(?<![^\s\"'`“„«(])(?=[^\s]{{0,40}}[0-9!@#$%^&*_+=])(?P<value>[^\s\"'`“”<>()\[\]{{}},;]{{6,40}})[\"'`”“»]?{_OWN_BEHIND}"
            rf"(?:[^\W\d_]{{2,12}}[ ])?(?:{_LABELS})(?![^\W_])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"(?i:{_OWN_BEHIND}(?:[a-zà-ÿ]{{2,12}}[ ])?(?:{_LABELS}))",
        accept=_accept_spoken,
    ),
    PatternDetector(
        name="pin",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(r"(?<![A-Za-z0-9_.,])[0-9]{4,8}(?![0-9A-Za-z_]|[.,-][0-9])"),
        hint=rf"(?:PIN|[Pp]in(?:[ -]?[Cc]ode)?)(?-u:\b){HINT_GAP}[0-9]{{4}}",
        need=Need.CONTEXT,
        is_number=True,
        context=Context(
            r"(?-i:PIN|[Pp]in)(?:[ -]?(?:code|number|nummer))?"
            r"(?:: |['’]s | (?:is|was)(?: still| now)? | (?:changed|set|reset) to |\? [A-Z][a-z]{0,11}: )$"
        ),
        reach=5,
    ),
    PatternDetector(
        name="pin_bare",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            r"(?<=PIN )[0-9]{4,6}(?=[.,;)]? {0,3}\Z|[.,;)]\s| (?:for|of|to) (?:the|my|our|your|his|her|their)"
            r" (?:card|phone|door|account|sim|app|safe|alarm|house|garage)(?![a-z]))"
        ),
        hint=r"PIN [0-9]{4}",
    ),
    PatternDetector(
        name="one_time_code",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            r"(?<![A-Za-z0-9_.,])(?:[0-9]{3}[ -][0-9]{3}|[0-9]{4}-[0-9]{4}|[0-9]{2}-[0-9]{2}-[0-9]{2}|[0-9]{4,8}"
            r"|[0-9]{4,5}[AB])(?![0-9A-Za-z_]"
            r"|[.,-][0-9])"
        ),
        hint=rf"(?:(?i:{_CODE_LABELS}|{YOUR_CODE})|OTP|otp|TAN){HINT_GAP}[0-9]{{2}}(?:[0-9]|-[0-9]{{2}}-)",
        need=Need.CONTEXT,
        is_number=True,
        context=Context(
            rf"(?:{_CODE_LABELS}|(?-i:OTP|otp|TAN))(?:: | (?:is|was|ist|war|lautet:?|est(?: le)?|es(?: el)?|era|è|é"
            rf"|jest|är|er) | )$"
            rf"|(?:{YOUR_CODE})(?:: | (?:is|ist|lautet:?|est|es|è|é|to|är|er|on|je|este|е|:) )$"
        ),
        reach=5,
    ),
    PatternDetector(
        name="code_sent",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"{BEFORE}(?:[A-Z]-)?(?:[0-9]{{3}}[ -][0-9]{{3}}"
            rf"|[0-9]{{4,8}})(?=[ ]is[ ]your[ ](?:[A-Z][A-Za-z0-9]{{1,15}}[ ]){{0,2}}"
            rf"(?:(?:verification|security|log-?in|sign-in|access|auth\w{{0,10}}|confirmation|activation|one-time"
            rf"|single-use|sms|2fa)[ ])"
            rf"{{0,2}}(?i:code|otp|pin|pass(?:code|word))(?![a-z]))"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"[0-9]{3}[ ]is[ ]your[ ]",
    ),
    PatternDetector(
        name="recovery_key",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(rf"{BEFORE}(?:[0-9]{{6}}-){{7}}[0-9]{{6}}{AFTER_DIGIT}"),  # of an encrypted disk
        hint=r"[0-9]{6}-[0-9]{6}-[0-9]{6}-",
    ),
    PatternDetector(
        name="login_pair",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"(?<![a-z])(?:{_PAIRS})(?:{SIGNED}|[ ](?:is|are|sind|lauten|son|sont)?[ ]?){_LOGIN_NAME}[ ]?[/|:][ ]?"
            rf"(?P<value>[^\s\"'`“”<>()\[\]{{}},;\\]{{6,32}})(?![^\s\"'`“”<>)\],;{{}}\\])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=r"[luczaidвLUCZAIDВ](?<![A-Za-z](?s:.))",
        hint=rf"(?i:{_PAIRS})[^A-Za-z0-9]{{1,8}}(?:(?:is|are|sind|lauten|son|sont)[ :]{{1,2}})?{_LOGIN_NAME}[ ]?[/|:]",
        accept=_accept_weak,
    ),
    PatternDetector(
        name="recovery_phrase",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"(?:(?:recovery|seed|mnemonic|backup|secret)[ ]phrase|seed[ ]words)(?:{JOINT}|[ ](?:is[ ])?)"
            r"(?P<value>(?:[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})(?![a-z])",
            re.IGNORECASE,
        ),
        shape_chars_max=384,
        first="[rRsSmMbB]",
        hint=r"(?i:(?:recovery|seed|mnemonic|backup|secret)[ ]phrase|seed[ ]words)",
    ),
    PatternDetector(
        name="passphrase",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"(?:pass[ ]?phrase(?:{JOINT}|[ ](?:is[ ])?|[ ]?[,(][^:.!?\n]{{0,60}}:[ ])[\"'“]?|(?:{_LABELS})(?:[ ](?:is|ist"
            rf"|est))?[ ]?[:=]?[ ]?[\"“](?=[^\"”\n]{{8,80}}[\"”]))"
            r"(?P<value>(?:[a-z]{3,10}[ -]){3,7}[a-z]{3,10})(?![a-z ])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=FIRST_OF_LABEL,
        hint=rf"(?i:pass[ ]?phrase)|(?i:{_LABELS})(?:[ ](?:is|ist|est))?[ ]?[:=]?[ ]?(?:\\?\"|“)(?i:[a-z]{{3,10}}[ \-]){{3}}",
        accept=_accept_passphrase,
    ),
    PatternDetector(
        name="command_option",
        type="PASSWORD",
        category=Category.SECRET,
        priority=9,
        pattern=LatePattern(
            r"(?<![a-z])(?:(?:mysql|mysqldump|mariadb|mysqladmin)[ ](?:[^\n|;]{0,80}[ ])?-p|sshpass[ ]-p[ ]?"
            r"|(?:docker|podman|oc|az|skopeo|crane|registry)[ ]login[ ](?:[^\n|;]{0,80}[ ])?-p[ ]"
            r"|redis-cli[ ](?:[^\n|;]{0,80}[ ])?-a[ ]"
            r"|mongo(?:sh|dump|restore)?[ ](?:[^\n|;]{0,80}[ ])?-p[ ]"
            r"|ldap(?:search|add|modify)[ ](?:[^\n|;]{0,80}[ ])?-w[ ]"
            r"|(?i:identified)[ ](?:(?i:with)[ ][\w'\"`]{1,40}[ ])?(?i:by|as)[ ](?:(?i:password|values)[ ])?(?=[\"'])"
            r"|IDENTIFIED[ ](?:WITH[ ][\w'\"`]{1,40}[ ])?BY[ ]|(?i:password)\((?=[\"'])|(?i:password)[ ]?=?[ ]N(?='))[\"']?"
            r"(?P<value>[^\s\"'$<-][^\s\"'<]{3,63})"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"(?:mysql|mysqldump|mariadb|mysqladmin)[ ][^\n|;]{0,80}-p|sshpass[ ]-p|login[ ][^\n|;]{0,80}-p[ ]"
        r"|redis-cli[ ][^\n|;]{0,80}-a[ ]|mongo(?:sh|dump|restore)?[ ][^\n|;]{0,80}-p[ ]"
        r"|ldap(?:search|add|modify)[ ][^\n|;]{0,80}-w[ ]|(?i:identified)[ ][^\n;]{0,52}(?i:by|as)[ ](?:\\?[\"']"
        r"|(?i:password|values))"
        r"|IDENTIFIED[ ][^\n;]{0,52}BY[ ]|(?i:password)(?:\(\\?[\"']|[ ]?=?[ ]N')",
        accept=_accept_password,
    ),
    PatternDetector(
        name="password_weak",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"{_BORDER}(?:{_WEAK_LABELS})(?:{OWNER}(?:{JOINT}|[ ](?:(?:{IS})[ ]{_SINCE})?|{JOINED_TO})|[ ]{GAP})"
            rf"{_NO_WORD_NEXT}"
            rf"(?P<value>[^\s\"'`“”<>()\[\]{{}},;\\]{{6,32}})(?![^\s\"'`“”<>)\],;{{}}\\])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=first_letters(_WEAK_LABELS),
        hint=_WEAK_HINT,
        accept=_accept_weak,
    ),
    PatternDetector(
        name="password_keyed",
        type="PASSWORD",
        category=Category.SECRET,
        priority=16,
        pattern=LatePattern(r"\A[^\s\[\]]{4,128}\Z"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"(?i:{_LABELS})",
        accept=_accept_password,
        need=Need.CONTEXT,
        context=Context(rf"(?:{_LABELS})(?: (?:[^\W\d_]{{1,4}} )?(?:wi-?fi|wlan|vpn|router|portal|e-?mail))?: $"),
        reach=8,
    ),
    PatternDetector(
        name="password_keyed_weak",
        type="PASSWORD",
        category=Category.SECRET,
        priority=16,
        pattern=LatePattern(r"\A[^\s\[\]]{6,64}\Z"),
        hint=_WEAK_HINT,
        accept=_accept_weak,
        need=Need.CONTEXT,
        context=Context(rf"(?:{_WEAK_LABELS}): $"),
        reach=8,
    ),
)
