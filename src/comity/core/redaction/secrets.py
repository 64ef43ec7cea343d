"""Secrets: passwords, keys and tokens of services, private keys, credentials inside of connection strings."""

from __future__ import annotations

import re

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.joints import JOINT, SIGNED
from comity.core.redaction.labels import SIGN_IN
from comity.core.redaction.shapes import (
    AT_WORD,
    BEFORE,
    HINT_BEFORE_WORD,
    HINT_GAP,
    LONG_CHARS_MAX,
    WALL,
    Context,
    LatePattern,
    in_hint,
)

# Prefixes that services give their keys; each is followed by many random characters.
_KEY = (
    r"sk-(?:proj-|ant-[a-z0-9]{2,6}-|live-|or-v1-)?[A-Za-z0-9_-]{20,128}|[sprw]k_(?:live"
    r"|test)_[A-Za-z0-9]{16,120}|whsec_[A-Za-z0-9+/=]{20,64}"
    r"|gh[pousr]_[A-Za-z0-9]{30,80}|github_pat_[A-Za-z0-9_]{30,120}|glpat-[A-Za-z0-9_-]{20,40}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,120}|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,128}"
    r"|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}|(?:AC|SK)[0-9a-f]{32}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,128}"
    r"|hf_[A-Za-z0-9]{30,40}|dop_v1_[0-9a-f]{64}|shpat_[0-9a-f]{32}|sq0[a-z]{3}-[A-Za-z0-9_-]{22,64}"
    r"|key-[0-9a-f]{32}|r8_[A-Za-z0-9]{30,40}"
    r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{30,36}|hv[sb]\.[A-Za-z0-9_-]{24,120}|EAA[A-Za-z0-9]{30,128}"
    r"|lin_api_[A-Za-z0-9]{32,48}|gsk_[A-Za-z0-9]{32,64}|GOCSPX-[A-Za-z0-9_-]{20,40}|xapp-[0-9]-[A-Za-z0-9-]{20,120}"
    r"|dckr_pat_[A-Za-z0-9_-]{20,40}|nvapi-[A-Za-z0-9_-]{40,80}|pplx-[A-Za-z0-9]{32,64}|AGE-SECRET-KEY-1[A-Z0-9]{50,60}"
    r"|figd_[A-Za-z0-9_-]{30,60}|sntrys_[A-Za-z0-9_=+/-]{30,120}|dapi[0-9a-f]{32}|ATATT3[A-Za-z0-9_=-]{20,120}"
    r"|LTAI[A-Za-z0-9]{12,26}|A(?:KCp|TBB|TCTT3|BSK)[A-Za-z0-9_=-]{28,120}"
    r"|gl(?:ptt|dt|rt|soat|ft|imt|agent|cbt|oas)-[A-Za-z0-9_-]{20,80}|gl(?:sa|c)_[A-Za-z0-9_+/=]{32,120}"
    r"|(?:nfp|ntn|sbp|ph[cx]|pnu|rdme|tfp|sgp|pcsk|rubygems|duffel_(?:live|test)|CLOJARS|sb_secret|jina|rnd)_[A-Za-z0-9]{24,128}"
    r"|secret_[A-Za-z0-9]{43}|sk_[0-9a-f]{48}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,32}|rzp_(?:live|test)_[A-Za-z0-9]{14}"
    r"|lsv2_(?:pt|sk)_[0-9a-f_]{40,50}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}|do[or]_v1_[0-9a-f]{64}"
    r"|shp(?:ca|pa|ss)_[0-9a-f]{32}|lin_oauth_[0-9a-f]{64}|dckr_oat_[A-Za-z0-9_-]{20,40}|ops_eyJ[A-Za-z0-9_=]{40,128}"
    r"|(?:HRKU|NRAK|NRJS|NRII|PMAK|CFPAT|pul|tvly|xai|xkeysib|APP_USR|sess)-[A-Za-z0-9_-]{24,128}"
    r"|tskey-[a-z]{3,6}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,48}|access-(?:sandbox|development|production)-[0-9a-f-]{36}"
    r"|dt0[cs][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9.]{40,60}|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"
    r"|[ps]k\.eyJ[A-Za-z0-9_-]{30,120}\.[A-Za-z0-9_-]{20,40}|amzn\.mws\.[0-9a-f-]{36}|sl\.[A-Za-z0-9_-]{60,128}|hvr\.[A-Za-z0-9_-]{24,120}"
    r"|oy2[a-z0-9]{43}|EZ[AT]K[A-Za-z0-9]{54}|1//0[A-Za-z0-9_-]{30,128}|AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{60,128}"
    r"|(?:(?<=(?:AKIA|ASIA)[A-Z0-9]{16}[\s,:;|/])|(?<=(?:AKIA|ASIA)[A-Z0-9]{16}[\s,:;|/]{2})"
    r"|(?<=(?:AKIA|ASIA)[A-Z0-9]{16}[\s,:;|/]{3}))[A-Za-z0-9/+]{40}"
    r"|[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}"
)
_KEY_HINT = (
    r"sk-[A-Za-z0-9]|[sprw]k_(?:live|test)_|whsec_|gh[pousr]_[A-Za-z0-9]|github_pat_|glpat-|xox[abeoprs]-"
    r"|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|AIza"
    r"|ya29\.|SG\.[A-Za-z0-9]|(?:AC|SK)[0-9a-f]{32}|npm_|pypi-|hf_|dop_v1_|shpat_|sq0|key-[0-9a-f]{32}|r8_"
    r"|:AA[A-Za-z0-9]|hv[sb]\.|EAA[A-Za-z0-9]{30}"
    r"|lin_api_|gsk_|GOCSPX-|xapp-[0-9]|dckr_pat_|nvapi-|pplx-|AGE-SECRET-KEY-1|figd_|sntrys_|dapi[0-9a-f]{32}|ATATT3"
    r"|LTAI[A-Za-z0-9]{12}|AKCp|ATBB|ATCTT3|ABSK|gl(?:ptt|dt|rt|soat|ft|imt|agent|cbt|oas)-|gl(?:sa|c)_"
    r"|(?:nfp|ntn|sbp|ph[cx]|pnu|rdme|tfp|sgp|pcsk|rubygems|(?:rzp|duffel)_(?:live|test)|CLOJARS|secret|sb_secret|jina|rnd)_[A-Za-z0-9]{14}|[sr][ke]_[A-Za-z0-9]{8}"
    r"|lsv2_|pscale_|do[or]_v1|shp(?:ca|pa|ss)_|lin_oauth_|dckr_oat|ops_eyJ"
    r"|(?:HRKU|NRAK|NRJS|NRII|PMAK|CFPAT|pul|tvly|xai|xkeysib|APP_USR|sess)-[A-Za-z0-9_]|tskey-|access-(?:sand|devel|prod)"
    r"|dt0[cs]|dp\.[a-z]{2}\.|pat[A-Za-z0-9]{14}\.|[ps]k\.eyJ|amzn\.mws|sl\.[A-Za-z0-9_\-]{60}|hvr\.|oy2[a-z0-9]{43}|EZ[AT]K"
    r"|1//0|AAAA[A-Za-z0-9_\-]{7}:APA|[MNO][A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\."
)
_LABELS = in_hint(SIGN_IN)
_BORDER = r"(?:(?<![^\W_])|(?<=[a-z])(?=(?-i:[A-Z][a-z]))|(?<=PG)|(?<=DB))"  # a word's, or a hump's inside of a key
_FIRST = rf"[pkmcswhljagPKMCSWHLJAGплПЛκΚكסपร密パ暗비암şŞ]{AT_WORD}"
_KEY_LABELS = (
    r"api[ _-]?keys?|apikey|api[ _-]?token|secret(?:[ _-]?(?:key|access[ _-]?key|token))?|client["
    r" _-]?secret|access[ _-]?(?:key|token)|auth[ _-]?token"
    r"|refresh[ _-]?token|private[ _-]?token|bearer|session[ _-]?token|encryption[ _-]?key|signing["
    r" _-]?(?:key|secret)|webhook[ _-]?secret"
    r"|(?:recovery|backup)[ _-]?codes?"
)
_CODE_LABELS = (
    r"(?:recovery|backup)[ -]?codes?"
    r"|(?:one[- ]time|verification|confirmation|login|sms|2fa|authentication|auth|einmal)[ -]?(?:code|passcode"
    r"|pin|password|passwort)"
    r"|(?:alarm|door|gate|access|entry|lock|safe|key ?pad|voicemail|unlock)[ -]?code|türcode|zugangscode|digicode"
    r"|code (?:for|to|of) (?:the|my|our) (?:safe|door|gate|alarm|building|garage|locker|lock|house|flat)"
    r"|code (?:d['’](?:accès|entrée)|de la porte)|código de (?:acceso|entrada|acesso)|codice (?:di accesso|porta|allarme)"
    r"|bestätigungscode|einmalcode|code de (?:vérification|confirmation)|código de (?:verificación|verificação|confirmación)"
    r"|codice di verifica|kod weryfikacyjny|verificatiecode|код подтверждения|验证码|驗證碼|認証コード|인증번호"
)
_COOKIES = (
    "x-amz-(?:signature|security-token)|session_?id|sessid|phpsessid|jsessionid|asp\\.net_sessionid|connect\\.sid|sid|csrf_?token|xsrf-token"
    "|auth_?token|remember_token|(?<=ookie: )session"
)
# Whose the secret is, between its label and what says it: "password of my router is …".
_OWNER = (
    r"(?:[ ](?:for|of|at|on|from|to|do|de|du|der|des|meiner|meines|für|pour|para|per|von|van|voor)(?:["
    r" ][^\W\d]{1,14}){1,3}?(?=[ :]))?"
)
_SAYS = r"[\"'’]?[ \t]{0,2}(?:[:=]|:=|=>|->|is|ist|est|es|è|to|は|是|为)[ \t]{0,2}[\"'`“]?"
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
        " mínimo minimo minimum mindestens erforderlich falsch ungültig abgelaufen geändert vergessen nicht muss darf requis"
        " obligatoire oublié invalide expiré doit requerida requerido obligatoria obligatorio incorrecta olvidada debe caducada"
        " obbligatoria errata deve senza obrigatória vereist verplicht wymagane неверный обязателен должен неверен"
        " return pass raise yield await async lambda self this function const let var",
    )
)


# A digit or a sign; words in a chain, none of them as short as in "up-to-date"; or what no language has for a word.
_NO_WORD = LatePattern(
    r"[0-9!@#$%^&*_+=]|\A[A-Za-z]{3,}(?:-[A-Za-z]{3,}){2,}\Z"
    r"|\A(?i:letmein|iloveyou|changeme|opensesame|qwert[yz]?(?:uiop)?|azerty(?:uiop)?|asdfgh(?:jkl)?|zxcvbnm?)\Z"
)
_PATH = re.compile(r"[.~]{0,2}/[\w.-]+(?:/|\Z)")
_LABEL = LatePattern(SIGN_IN, re.IGNORECASE)
_FIRST_PART = re.compile(r"[|,:;/(]")  # "password: required|min:12" is a rule of a form
_SENTENCE = LatePattern("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")  # scripts whose words have no spaces between


def _accept_password(value: str) -> int:
    value = value.rstrip(".,;")
    plain = value.strip("\"'`“”").lower()
    if _FIRST_PART.split(plain, maxsplit=1)[0] in _NOT_A_SECRET or len(plain) < 4 or _is_reference(plain):
        return 0
    return len(value)


def _accept_spoken(value: str) -> int:
    """After "is" only a value that no word is: with a digit or a sign in it."""
    length = _accept_password(value)
    length = min(length, len(_SENTENCE.compiled.split(value, maxsplit=1)[0]))  # a sentence may follow without a space
    return length if length >= 6 and _NO_WORD.compiled.search(value[:length]) else 0


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
    is_mixed = re.search("[A-Za-z]{2}", value) and re.search("[0-9]", value) and re.search("[A-Z!@#$%^&*+=]", value)
    return length if is_mixed and not re.search(r"[/:_]|^[A-Z]{2,5}-?[0-9]+$|^[0-9.]+[A-Za-z]{1,3}$", value) else 0


def _accept_secret(value: str) -> int:
    value = value.rstrip(".,;")
    if len(value) < 12 or _is_reference(value.lower()):
        return 0
    return len(value) if any(char.isdigit() for char in value) and any(char.isalpha() for char in value) else 0


def _accept_bearer(value: str) -> int:
    """Reject a long word with a number after it ("basic functionality2023")."""
    is_mixed = value != value.lower() and value != value.upper()
    return _accept_secret(value) if is_mixed or len(re.findall("[0-9]+", value)) > 1 else 0


def _accept_authorization(value: str) -> int:
    """Reject a plain word after the scheme ("Authorization: Bearer authentication")."""
    value = value.rstrip(".,;:")
    is_word = value.isalpha() and value[1:].islower() and len(value) < 20
    return len(value) if len(value) >= 12 and not is_word else 0


def _is_reference(plain: str) -> bool:
    """Return whether a value says where the secret is kept, in a variable or in a file, or is the word for one."""
    if plain.isalpha() and _LABEL.compiled.fullmatch(plain):
        return True
    if plain[:1] in ".~/" and _PATH.match(plain):
        return True
    if re.fullmatch(r"(?:self|[a-z_]+)(?:\.[a-z_]+)+|pass_?word|passwd|secret|value|input", plain):
        return True
    return plain.startswith(
        ("$", "${", "{{", "<", "****", "os.", "env.", "process.env", "%(", "[[", "getenv", "secrets.", "vault:", "config.")
    ) or plain.endswith(("()", "("))


PRIVATE_KEY_LABEL = rf"PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|{WALL}){{0,12}}$"

SECRETS: tuple[PatternDetector, ...] = (
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
        first="[pPaAsSuU]",
        hint=r"(?i:password|pwd|accountkey|sharedaccesskey|user ?id|uid)=[^\s;]{4,128}(?:;|==)",
        accept=_accept_password,
    ),
    PatternDetector(
        name="command_password",
        type="PASSWORD",
        category=Category.SECRET,
        priority=9,
        pattern=LatePattern(
            r"(?<![^\s])(?:-u|--user|--proxy-user)[ =][\"']?[A-Za-z0-9._@-]{1,64}:(?P<value>[^\s\"'$<]{3,64})(?![^\s\"'])"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"(?:-u|--user|--proxy-user)[ =][\"']?[A-Za-z0-9._@\-]{1,64}:",
        accept=_accept_password,
    ),
    PatternDetector(
        name="api_key",
        type="API_KEY",
        category=Category.SECRET,
        priority=6,
        pattern=LatePattern(rf"{BEFORE}(?:{_KEY})(?![A-Za-z0-9_])"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"{HINT_BEFORE_WORD}(?:{_KEY_HINT})|[0-9]{{8,10}}:AA",
    ),
    PatternDetector(
        name="api_key_named",
        type="API_KEY",
        category=Category.SECRET,
        priority=13,
        pattern=LatePattern(r"(?<![A-Za-z0-9_/+.~-])[A-Za-z0-9_/+.~-]{12,128}={0,2}(?![A-Za-z0-9_/+=~-])"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"(?i:{_KEY_LABELS.replace('bearer', 'secret')})(?s:.{{0,48}})[A-Za-z0-9_/+.\-]{{12}}",
        accept=_accept_secret,
        need=Need.CONTEXT,
        context=Context(rf"(?:{_KEY_LABELS})(?:{_SAYS}|[ :]{{1,2}})$"),
        reach=8,
    ),
    PatternDetector(
        name="token_named",
        type="ACCESS_TOKEN",
        category=Category.SECRET,
        priority=14,
        pattern=LatePattern(r"(?<![A-Za-z0-9_/+.~-])[A-Za-z0-9_/+.~-]{20,128}={0,2}(?![A-Za-z0-9_/+=~-])"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"(?i:token)(?s:.{0,8})[A-Za-z0-9_/+.\-]{20}",
        accept=_accept_bearer,
        need=Need.CONTEXT,
        context=Context(rf"token{_SAYS}$"),
        word="oken",
        reach=8,
        not_near=LatePattern(
            r"(?:page|next|prev|previous|continuation|cursor|sync|resume|cancell?ation|pagination|idempotency"
            r"|design)[ _-]?token\W{0,5}$",
            re.IGNORECASE,
        ),
    ),
    PatternDetector(
        name="jwt",
        type="ACCESS_TOKEN",
        category=Category.SECRET,
        priority=5,
        pattern=LatePattern(
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,120}\.[A-Za-z0-9_-]{8,128}(?:[A-Za-z0-9_-]{0,24})(?:\.[A-Za-z0-9_-]{0,90})?"
        ),
        shape_chars_max=384,
        first="e",
        hint=r"eyJ[A-Za-z0-9_\-]{8}",
    ),
    PatternDetector(
        name="bearer",
        type="ACCESS_TOKEN",
        category=Category.SECRET,
        priority=7,
        pattern=LatePattern(
            r"(?<![A-Za-z])(?:bearer|basic)[ |]{1,3}"
            r"(?P<value>[A-Za-z0-9._~+/-]{12,128}[A-Za-z0-9._~+/-]{0,128}={0,2})(?![A-Za-z0-9_])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[bB]",
        hint=r"(?i:bearer|basic)[ |]{1,3}[A-Za-z0-9._~+/\-]{12}",
        accept=_accept_bearer,
    ),
    PatternDetector(
        name="authorization",
        type="ACCESS_TOKEN",
        category=Category.SECRET,
        priority=8,
        pattern=LatePattern(
            r"(?<![A-Za-z])(?:bearer|basic|token|apikey)[ ]{1,3}"
            r"(?P<value>[A-Za-z0-9._~+/=:-]{12,128}[A-Za-z0-9._~+/=:-]{0,128})"
            r"(?![A-Za-z0-9_])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[bBtTaA]",
        hint=r"(?i:authori[sz]ation)(?s:.{0,8})(?i:bearer|basic|token|apikey)[ ]{1,3}[A-Za-z0-9._~+/=:\-]{12}",
        accept=_accept_authorization,
        need=Need.CONTEXT,
        context=Context(r"authori[sz]ation[\"']?[ ]{0,2}[:=][ ]{0,2}[\"']?(?:bearer|basic|token|apikey)[ ]{1,3}$"),
        reach=12,
    ),
    PatternDetector(
        name="private_key",
        type="PRIVATE_KEY",
        category=Category.SECRET,
        priority=4,
        pattern=LatePattern(r"(?:(?<![A-Za-z0-9+/])|(?<=\\n))[A-Za-z0-9+/]{8,76}={0,2}(?![A-Za-z0-9+/=])"),
        hint=rf"PRIVATE KEY(?: BLOCK)?-----{HINT_GAP}[A-Za-z0-9+/]{{16}}",
        need=Need.CONTEXT,
        context=Context(PRIVATE_KEY_LABEL),
        word="PRIVATE KEY",
        reach=16,
    ),
    PatternDetector(
        name="password",
        type="PASSWORD",
        category=Category.SECRET,
        priority=14,
        pattern=LatePattern(
            rf"{_BORDER}(?:{_LABELS}){SIGNED}"
            rf"(?P<value>[^\s\"'`“”<>\[\]{{}}()\\]{{4,64}})(?![^\s\"'`“”<>{{}})\]\\])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=_FIRST,
        hint=rf"(?i:{_LABELS})(?:\\?[^A-Za-z0-9_\s]|\s{{0,2}}[:=\-：])",
        accept=_accept_password,
    ),
    PatternDetector(
        name="password_spoken",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"{_BORDER}(?:{_LABELS}){_OWNER}(?:{JOINT}|(?:['’]s)?[ ]|[是は][ ]?)"
            rf"(?:(?:is|was|ist|war|lautet:?|est|était|es|era|è|é|to|jest|är|er|on|je|là|adalah|это|είναι|este|this|now)[ ])?"
            rf"[\"'`“(\[「『]?(?P<value>[^\s\"'`“”<>\[\]{{}}()「」『』]{{6,64}})",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=_FIRST,
        hint=rf"(?i:{_LABELS})(?:['’]s[ ]|[^A-Za-z0-9_]|是|は|\\[nt])",
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
        context=Context(r"(?-i:PIN|[Pp]in)(?:[ -]?(?:code|number|nummer))?(?:: | is )$"),
        reach=5,
    ),
    PatternDetector(
        name="pin_bare",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(r"(?<=PIN )[0-9]{4,6}(?=[.,;)]? {0,3}\Z|[.,;)]\s)"),
        hint=r"PIN [0-9]{4}",
    ),
    PatternDetector(
        name="one_time_code",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            r"(?<![A-Za-z0-9_.,])(?:[0-9]{3}[ -][0-9]{3}|[0-9]{4}-[0-9]{4}|[0-9]{4,8})(?![0-9A-Za-z_]|[.,-][0-9])"
        ),
        hint=rf"(?:(?i:{_CODE_LABELS})|OTP|otp|TAN){HINT_GAP}[0-9]{{3}}",
        need=Need.CONTEXT,
        is_number=True,
        context=Context(
            rf"(?:{_CODE_LABELS}|(?-i:OTP|otp|TAN))(?:: | (?:is|was|ist|war|lautet:?|est|es|era|è|é|jest|är|er) | )$"
        ),
        reach=5,
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
            rf"pass[ ]?phrase(?:{JOINT}|[ ](?:is[ ])?)[\"'“]?"
            r"(?P<value>(?:[a-z]{3,10}[ -]){3,7}[a-z]{3,10})(?![a-z ])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[pP]",
        hint=r"(?i:pass[ ]?phrase)",
        accept=_accept_passphrase,
    ),
    PatternDetector(
        name="webhook",
        type="API_KEY",
        category=Category.SECRET,
        priority=6,
        pattern=LatePattern(
            r"(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|outlook\.office\.com/webhook)/"
            r"(?P<value>[A-Za-z0-9_/@-]{20,128})"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[hdo]",
        hint=r"hooks\.slack\.com\\?/|discord(?:app)?\.com\\?/api|outlook\.office\.com\\?/webhook",
    ),
    PatternDetector(
        name="session_cookie",
        type="ACCESS_TOKEN",
        category=Category.SECRET,
        priority=8,
        pattern=LatePattern(
            rf"(?<![A-Za-z])(?:{_COOKIES})=(?P<value>[A-Za-z0-9%_.~+/:-]{{16,128}}={{0,2}})(?![A-Za-z0-9_])", re.IGNORECASE
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[sSpPjJaAcCxXrR]",
        hint=rf"(?i:{_COOKIES.replace('(?<=ookie: )', '')})=[A-Za-z0-9%_.~+/:\-]{{16}}",
        accept=_accept_secret,
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
            r"|ldap(?:search|add|modify)[ ](?:[^\n|;]{0,80}[ ])?-w[ ])[\"']?"
            r"(?P<value>[^\s\"'$<-][^\s\"'<]{3,63})"
        ),
        shape_chars_max=LONG_CHARS_MAX,
        hint=r"(?:mysql|mysqldump|mariadb|mysqladmin)[ ][^\n|;]{0,80}-p|sshpass[ ]-p|login[ ][^\n|;]{0,80}-p[ ]"
        r"|redis-cli[ ][^\n|;]{0,80}-a[ ]|mongo(?:sh|dump|restore)?[ ][^\n|;]{0,80}-p[ ]"
        r"|ldap(?:search|add|modify)[ ][^\n|;]{0,80}-w[ ]",
        accept=_accept_password,
    ),
    PatternDetector(
        name="password_weak",
        type="PASSWORD",
        category=Category.SECRET,
        priority=15,
        pattern=LatePattern(
            rf"{_BORDER}(?-i:pass|Pass|PASS|pw|PW|[cC]lave)(?:{JOINT}|[ ](?:is[ ])?)"
            rf"(?P<value>[^\s\"'`“”<>()\[\]{{}},;\\]{{6,32}})(?![^\s\"'`“”<>)\],;{{}}\\])",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[pPcC]",
        hint=r"(?:pw|pass|PW|PASS|Pass|[cC]lave)[^A-Za-z0-9_]",
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
        context=Context(rf"(?:{_LABELS}): $"),
        reach=8,
    ),
    PatternDetector(
        name="password_keyed_weak",
        type="PASSWORD",
        category=Category.SECRET,
        priority=16,
        pattern=LatePattern(r"\A[^\s\[\]]{6,64}\Z"),
        hint=r"(?i:pass|pw|clave)(?-u:\b)",
        accept=_accept_weak,
        need=Need.CONTEXT,
        context=Context(r"(?:pass|pw|clave): $"),
        reach=8,
    ),
)
