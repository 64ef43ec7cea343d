"""Keys and tokens of services, private keys."""

from __future__ import annotations

import re

from comity.core.redaction.checksums import is_base58check
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.passwords import is_reference
from comity.core.redaction.shapes import (
    AT_BASE64,
    AT_BORDER,
    BEFORE,
    HINT_BEFORE_WORD,
    HINT_GAP,
    LONG_CHARS_MAX,
    WALL,
    Context,
    LatePattern,
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
    r"|(?:nfp|ntn|sbp|ph[cx]|pnu|rdme|tfp|sgp|pcsk|rubygems|duffel_(?:live|test)|CLOJARS|sb_secret|jina"
    r"|rnd)_[A-Za-z0-9]{24,128}"
    r"|secret_[A-Za-z0-9]{43}|sk_[0-9a-f]{48}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,32}|rzp_(?:live|test)_[A-Za-z0-9]{14}"
    r"|lsv2_(?:pt|sk)_[0-9a-f_]{40,50}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}|do[or]_v1_[0-9a-f]{64}"
    r"|shp(?:ca|pa|ss)_[0-9a-f]{32}|lin_oauth_[0-9a-f]{64}|dckr_oat_[A-Za-z0-9_-]{20,40}|ops_eyJ[A-Za-z0-9_=]{40,128}"
    r"|(?:HRKU|NRAK|NRJS|NRII|PMAK|CFPAT|pul|tvly|xai|xkeysib|APP_USR|sess)-[A-Za-z0-9_-]{24,128}"
    r"|tskey-[a-z]{3,6}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,48}|access-(?:sandbox|development|production)-[0-9a-f-]{36}"
    r"|dt0[cs][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9.]{40,60}|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"
    r"|[ps]k\.eyJ[A-Za-z0-9_-]{30,120}\.[A-Za-z0-9_-]{20,40}|amzn\.mws\.[0-9a-f-]{36}|sl\.[A-Za-z0-9_-]{60,128}"
    r"|hvr\.[A-Za-z0-9_-]{24,120}"
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
    r"|(?:nfp|ntn|sbp|ph[cx]|pnu|rdme|tfp|sgp|pcsk|rubygems|(?:rzp|duffel)_(?:live|test)|CLOJARS|secret|sb_secret|jina"
    r"|rnd)_[A-Za-z0-9]{14}|[sr][ke]_[A-Za-z0-9]{8}"
    r"|lsv2_|pscale_|do[or]_v1|shp(?:ca|pa|ss)_|lin_oauth_|dckr_oat|ops_eyJ"
    r"|(?:HRKU|NRAK|NRJS|NRII|PMAK|CFPAT|pul|tvly|xai|xkeysib|APP_USR|sess)-[A-Za-z0-9_]|tskey-|access-(?:sand|devel|prod)"
    r"|dt0[cs]|dp\.[a-z]{2}\.|pat[A-Za-z0-9]{14}\.|[ps]k\.eyJ|amzn\.mws|sl\.[A-Za-z0-9_\-]{60}|hvr\.|oy2[a-z0-9]{43}|EZ[AT]K"
    r"|1//0|AAAA[A-Za-z0-9_\-]{7}:APA|[MNO][A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\."
)

_KEY_LABELS = (
    r"api[ _-]?keys?|apikey|api[ _-]?token|secret(?:[ _-]?(?:key|access[ _-]?key|token))?|client["
    r" _-]?secret|access[ _-]?(?:key|token)|auth[ _-]?token"
    r"|refresh[ _-]?token|private[ _-]?token|bearer|session[ _-]?token|(?:encryption|storage|account|master"
    r"|service)[ _-]?key|signing["
    r" _-]?(?:key|secret)|webhook[ _-]?secret"
    r"|(?:recovery|backup)[ _-]?codes?"
    r"|(?:ап[иі]|api)[ _-](?:ключ|кл[юу]ч)|ключ (?:api|апи|доступа)|cl[eé] (?:d['’]|de l['’])?api|c(?:lave"
    r"|have) (?:de |da )?api|chiave api"
    r"|api[ _-]?(?:schlüssel|sleutel|nyckel|nøgle|nøkkel|avain|kulcs|klíč|anahtarı)|klucz api"
    r"|api ?(?:密[钥鑰]|金鑰|キー|키)|مفتاح api"
)

_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_RAW_KEY = rf"(?:0x)?[0-9a-fA-F]{{64}}|[59KLc]{_BASE58}{{50,51}}|[A-Za-z0-9+/]{{43}}=|[xyz]prv{_BASE58}{{100,112}}"


def _accept_wallet_key(value: str) -> int:
    return len(value) if is_base58check(value, length=38 if len(value) == 52 else 37) else 0


_RAW_KEY_LABELS = r"private[ _-]?key|priv[ _-]?key|wif"

_COOKIES = (
    "x-amz-(?:signature|security-token)|session_?id|sessid|phpsessid|jsessionid|asp\\.net_sessionid|connect\\.sid|sid"
    "|csrf_?token|xsrf-token"
    "|auth_?token|remember_token|(?<=ookie: )session"
)

_SAYS = (
    r"[\"'’]?[ \t]{0,2}(?:[:=]|:=|=>|->|(?:(?:was|is|has been) )?(?:changed|updated|rotated|set|reset) to|is|was|s"
    r"|ist|est|es|è|to"
    r"|は|是|为|[?](?:[ \n]{1,2}[A-Z][a-z]{0,11}:)?)[ \t\n]{0,2}[\"'`“]?"
)


def _accept_secret(value: str) -> int:
    value = value.rstrip(".,;")
    if len(value) < 12 or is_reference(value.lower()):
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


_BASE64 = "[A-Za-z0-9+/]"
PRIVATE_KEY_LABEL = rf"PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|{WALL}){{0,56}}$"

SECRETS: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="api_key",
        type="API_KEY",
        category=Category.SECRET,
        priority=6,
        pattern=LatePattern(rf"{BEFORE}(?:{_KEY})(?![A-Za-z0-9_])"),
        shape_chars_max=LONG_CHARS_MAX,
        first=rf"[A-Za-z0-9]{AT_BORDER}(?=[A-Za-z0-9/+]{{0,24}}[_.:/+-]|[A-Za-z0-9/+]{{19}})",
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
        hint=r"(?i:token)(?s:.{0,20})[A-Za-z0-9_/+.\-]{20}",
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
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,120}(?:[ ]?\.[ ]?|[ ]?\n)[A-Za-z0-9_-]{8,128}(?:[A-Za-z0-9_-]{0,24})"
            r"(?:(?:\.|[ ]\.[ ]|\.\n)[A-Za-z0-9_-]{0,90})?"
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
        first=r"[bB](?<![A-Za-z](?s:.))",
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
        first=r"[bBtTaA](?<![A-Za-z](?s:.))",
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
        pattern=LatePattern(
            rf"(?:(?<![A-Za-z0-9+/])(?!(?<=\\)n)"
            rf"|(?<=\\n))(?:{_BASE64}{{8,128}}+{_BASE64}{{0,128}}+{_BASE64}{{0,124}}+={{0,2}}(?![A-Za-z0-9+/=])"
            rf"|{_BASE64}{{128}}{_BASE64}{{128}}{_BASE64}{{124}})"
        ),
        shape_chars_max=384,
        first=AT_BASE64,
        hint=rf"PRIVATE KEY(?: BLOCK)?-----{HINT_GAP}[A-Za-z0-9+/]{{16}}",
        need=Need.CONTEXT,
        context=Context(PRIVATE_KEY_LABEL),
        word="PRIVATE KEY",
        reach=16,
    ),
    PatternDetector(
        name="private_key_named",
        type="PRIVATE_KEY",
        category=Category.SECRET,
        priority=6,
        pattern=LatePattern(rf"(?<![A-Za-z0-9_/+.~-])(?:{_RAW_KEY})(?![A-Za-z0-9_/+=~-])"),
        shape_chars_max=LONG_CHARS_MAX,
        hint=rf"(?i:{_RAW_KEY_LABELS})(?s:.{{0,24}})[A-Za-z0-9+/]{{43}}",
        need=Need.CONTEXT,
        context=Context(rf"(?:{_RAW_KEY_LABELS})(?:[ ]?\([A-Za-z0-9 ,-]{{2,16}}\))?(?:{_SAYS}|[ :]{{1,2}})$"),
        reach=24,
    ),
    PatternDetector(
        name="private_key_wallet",
        type="PRIVATE_KEY",
        category=Category.SECRET,
        priority=6,
        pattern=LatePattern(rf"{BEFORE}[5KLc]{_BASE58}{{50,51}}(?![A-Za-z0-9])"),
        first=rf"[5KLc]{AT_BORDER}(?={_BASE58}{{50}})",
        hint=rf"{HINT_BEFORE_WORD}[5KLc]{_BASE58}{{50}}",
        accept=_accept_wallet_key,
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
        first=r"[sSpPjJaAcCxXrR](?<![A-Za-z](?s:.))",
        hint=rf"(?i:{_COOKIES.replace('(?<=ookie: )', '')})=[A-Za-z0-9%_.~+/:\-]{{16}}",
        accept=_accept_secret,
    ),
)
