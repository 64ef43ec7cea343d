"""User names: under a label, in logs of a sign-in, and words that only the password beside them makes one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.joining import GAP, IS, JOINED_TO
from comity.core.redaction.joints import JOINT, SIGNED
from comity.core.redaction.labels import NETWORK, SIGN_IN, USER, USER_NAME
from comity.core.redaction.passwords import ASKED, CHAIN, FIRST_OF_LABEL, OWNER
from comity.core.redaction.shapes import (
    AFTER,
    LONG_CHARS_MAX,
    WALL,
    WORD_BORDER,
    LatePattern,
    by_first_letter,
    by_letter,
    in_hint,
    words,
)

_KEY_BORDER = rf"(?:{WORD_BORDER}|(?<=[a-z])(?=(?-i:[A-Z][a-z])))"  # a word's, or a hump's inside of a key
_NOT_A_USER = frozenset(
    re.findall(
        r"[a-z-]+",
        "admin administrator root guest system sysadmin anonymous nobody unknown postgres mysql redis oracle"
        " mongo sa dba service"
        " daemon default test tester demo user users username operator everyone all any none null nil undefined"
        " true false yes no"
        " active inactive new old existing failed failure success successful successfully ok okay error denied"
        " required optional"
        " missing invalid valid empty varchar nvarchar citext string str text char integer int bool boolean bytes uuid optional"
        " object symbol email e-mail mail phone"
        " name password id"
        " premium basic free standard pro enterprise customer client agent staff manager editor viewer owner member readonly"
        " read-only www www-data nginx apache ubuntu debian centos ec-user git jenkins runner ci bot api app web worker backend"
        " frontend server host localhost public private internal external local remote the this that is are was not and or for"
        " with from page form field screen button flow count time data type session token status state role roles group scope"
        " settings config see above below tbd todo example sample placeholder your my our their his her its here"
        " there must should"
        " can will may only also mandatory unique hidden visible masked redacted enabled disabled locked blocked"
        " expired pending"
        " input agent testing manual story action space training request profile guide tenant campaign"
        " accounts groups interface interfaces research interviews sessions logins error errors requests data feedback stories"
        " attempts attempt via sso ldap oauth saml google github microsoft apple facebook",
    )
)
_IN_CODE = re.compile(
    r"(?:request|req|models?|self|this|ctx|context|session|os|env|config|settings|params?|args?|data|current|event"
    r"|props|state|auth"
    r"|user|users|db|get|new|res|response|payload|body|form|row|record|item|obj|account|process|system|app|input|field|fields"
    r"|schema|serializers?|validators?|types?|sa|sqlalchemy|column)[._]"
)

_LABELS = in_hint(USER_NAME)
_WEAK = by_letter(USER.split("|"))
# A password that follows says that a plain word is a user's name: "user: mjones, password: …".
# Words with dashes are no name under a word that says no more than "user" or "Slack": "Slack: new-hires-channel is archived".
_NO_CHAIN = f"(?!@?{CHAIN}(?![0-9_.#]))"
_OWNED = rf"(?:{'|'.join(rf'(?<=(?<![a-z]){word} )' for word in ('my', 'our', 'his', 'her', 'their', 'your'))})"
_PASSWORD_NEXT = (
    rf"(?:[^A-Za-z0-9]{{1,12}}|</[a-z]{{1,16}}>\\?\s{{0,8}}<)(?:(?:and|und|et|y|e|i|en|och)[ ])?(?:pass|pw|{in_hint(SIGN_IN)})"
)
_IN_CAMEL_CASE = "|".join(word.capitalize() for word in f"{USER}|{NETWORK}".split("|"))
# How a user signs in: "accepted publickey for ada", not "accepted payments for March". The first are the words of a daemon.
_DAEMON = "publickey|password|passwd|keyboard-interactive(?:/pam)?|gssapi(?:-with-mic|-keyex)?|hostbased|none"
_METHODS = f"{_DAEMON}|certificate|login|logon|sign-?in|log-?in|auth(?:entication)?|kerberos|ldap|radius|otp|totp|mfa|2fa"
_OF_LOG = r"(?:[.,;:)\]\"']?(?:\s?$|\n)|[ ](?:from|by|via|on|at|port|after|[(\[0-9\0]))"  # what follows the name there
_USER = r"[A-Za-z0-9][A-Za-z0-9._-]{1,30}[A-Za-z0-9]"
_LOGIN = rf"@?{_USER}{_PASSWORD_NEXT}[ :=]{{1,3}}[^\s]{{0,30}}[0-9!@#$%&*]"  # a name and a password that no word is
# What follows a verb, not a name: "login: enter your name".
_SENTENCE = r"[ ](?:your|the|an?|my|our|this|that|these|those|any|each|both|ihren?|deinen?|votre|tu|su|la|le|el|il)[ ]"
# "add me on discord when you are home, I'm still …"
_I_AM = (
    r"[^.!?\n:=@]{0,40}[ ,](?:i['’]?m|i am|it['’]?s|je suis|c['’]est|ich bin|ich hei(?:ß|ss)e|soy|sono|jestem|sou|ik ben)[ ]"
    r"(?:(?:still|now|just|there|noch|toujours|todavía|ancora|nadal|ainda)[ ])?"
)
_LABEL = LatePattern(USER_NAME, re.IGNORECASE)  # also as a translation: `{"username": "Benutzername"}`
_PASSWORD = LatePattern(f"(?:{SIGN_IN}|pass|pw)", re.IGNORECASE)
USERS: Final = frozenset(
    {"user", "usr", "benutzer", "utente", "utilisateur", "gebruiker", "usuário", "account", "пользователь", "用户", "账号"}
    | {"account name", "account_name", "accountName"}
)
_USER_NAME = "user name"


def _accept_user_name(value: str) -> int:
    """Count every name but those of parts, roles and states, and names in code."""
    plain = value.lower()
    if plain in _NOT_A_USER or _LABEL.compiled.fullmatch(plain) or _IN_CODE.match(plain) or not re.search("[a-z]{2}", plain):
        return 0
    return len(value)


def _accept_user_name_weak(value: str) -> int:
    """Count a name that no word is: letters, and a digit or a sign among them."""
    if not (re.search("[0-9_.#]", value) or re.fullmatch(CHAIN, value)) or re.search(
        r"^[vV]?[0-9]+[a-z]{0,2}$|^[vV][0-9]+[._]|\.[a-z]{2,4}$|^[A-Z]{1,5}[-_]?[0-9]+$", value
    ):
        return 0
    return _accept_user_name(value)


def is_login(heads: Iterable[str]) -> bool:
    """Return whether one of the words over values, of keys or of columns, names a password."""
    return any(map(_names_password, heads))


@lru_cache(maxsize=1024)
def _names_password(head: str) -> bool:
    """Return whether the words over a value name a password; records mostly have the keys of records before."""
    return _PASSWORD.compiled.fullmatch(head) is not None


def named_user(head: str, parent: str = "") -> str:
    """Return the word over a value beside a password: what says no more than "user" means the user's name.

    So does "name" under a parent that says no more than "user".
    """
    is_name = head.lower() in USERS or (head.lower() == "name" and parent.lower() in USERS)
    return _USER_NAME if is_name else head


_FAST = by_first_letter(_LABELS)

USER_NAMES: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="user_name",
        type="USERNAME",
        category=Category.CONTACT,
        priority=80,
        pattern=LatePattern(
            rf"{_KEY_BORDER}(?:(?:{_FAST})(?:{SIGNED}|>(?={_USER}</))|(?:user|usr|uid)(?:=|[\"']["
            rf" ]?[:=][ ]?)[\"']?|(?:{_WEAK})(?![a-z])(?:(?:{SIGNED}|>)(?=@?{_USER}{_PASSWORD_NEXT}(?![a-z]))"
            rf"|[ ](?={_LOGIN}))|(?:{_FAST})[ ](?:(?:as|with|als|mit|como|con|comme|avec|jako)[ ])?(?={_LOGIN}))@?"
            rf"(?P<value>{_USER}){AFTER}(?![(\[@:/=]|\.\w|{_SENTENCE})",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=FIRST_OF_LABEL,
        hint=rf"(?i:{_LABELS})[^A-Za-z0-9_]|(?i:user|usr|uid)(?:=|\\?[\"'][ ]?[:=])"
        rf"|(?i:{USER})[^A-Za-z0-9_]{{1,12}}@?[A-Za-z0-9._\-]{{2,32}}\\?(?i:{_PASSWORD_NEXT})",
        accept=_accept_user_name,
    ),
    PatternDetector(
        name="user_name_weak",
        type="USERNAME",
        category=Category.CONTACT,
        priority=80,
        pattern=LatePattern(
            rf"{_KEY_BORDER}(?:(?:{_FAST})(?:{OWNER}(?:{JOINT}|(?:['’]s)?[ ](?:(?:{IS})[ ]|changed[ ]to[ ])?"
            rf"|{JOINED_TO}|{ASKED})|[ ]{GAP})"
            rf"|{_OWNED}(?:{_WEAK})[ ](?:is[ ])?|(?:{_WEAK}){OWNER}(?:{SIGNED}|[ ](?:is[ ])?){_NO_CHAIN}"
            rf"|(?:{by_first_letter(NETWORK)})(?:[ ](?:handle|account|name|id|user)(?:{SIGNED}|[ ](?:is[ ])?)"
            rf"|(?:{SIGNED}|[ ](?:is[ ])?){_NO_CHAIN}|{_I_AM})"
            rf"(?:live:)?(?=@?[a-z]))@?"
            rf"(?P<value>(?=[A-Za-z-]{{0,31}}[0-9_.#]|{CHAIN})"
            rf"[A-Za-z][A-Za-z0-9._-]{{1,30}}[A-Za-z0-9_](?:#[0-9]{{4}})?){AFTER}(?![(\[@:/=]|\.\w)",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first=FIRST_OF_LABEL,
        hint=rf"(?i:{_LABELS}|{USER}|{NETWORK})(?:[^A-Za-z0-9]|</?[a-z]{{1,10}}>|\\[nt]){{1,24}}"
        r"(?:[^\s@0-9]{1,16}[ :]{1,2}){0,12}@?[A-Za-z][A-Za-z0-9\-]{0,30}(?:[0-9_#]|\.[A-Za-z0-9]|-[A-Za-z]{3,20}-)",
        accept=_accept_user_name_weak,
    ),
    PatternDetector(
        name="user_name_linked",
        type="USERNAME",
        category=Category.CONTACT,
        priority=80,
        pattern=LatePattern(
            rf"(?:(?<=linkedin\.com/in/)|(?<=tiktok\.com/@)"
            rf"|(?P<at>(?<![\w@.])@(?=[A-Za-z-]{{0,30}}[0-9_.][A-Za-z0-9])))(?P<value>{_USER})"
            rf"(?(at)(?=[ ](?:on|auf|sur|en|su|no|na)[ ](?i:the[ ])?(?i:{NETWORK})(?![\w-]))|{AFTER})"
        ),
        hint=r"linkedin\.com\\?/in|tiktok\.com\\?/@|@[A-Za-z0-9._\-]{3,32}[ ](?:on|auf|sur|en|su|no|na)[ ]",
        accept=_accept_user_name,
    ),
    PatternDetector(
        name="user_name_logged",
        type="USERNAME",
        category=Category.CONTACT,
        priority=80,
        pattern=LatePattern(
            rf"(?<![a-z])(?:(?:accepted|failed|postponed|partial|rejected) (?:(?P<daemon>{_DAEMON})|{_METHODS})(?: attempts?)?"
            rf" for (?:(?:invalid |illegal |unknown )?user )?(?=(?-i:[a-z0-9]))(?(daemon)|(?=[^ ]{{2,32}}{_OF_LOG}))"
            rf"|session (?:opened|closed) for (?:local )?user "
            rf"|(?:new|started|removed) session [0-9]{{1,9}} (?:of|for) user "
            rf"|(?:invalid|illegal|authenticating) user (?=[^ ]{{2,32}}{_OF_LOG})"
            rf"|(?<= )- (?=[^ ]{{3,32}} \[[0-9]{{2}}/[a-z]{{3}}/[0-9]{{4}}:)"
            rf"|user (?=[^ ]{{3,32}} (?:(?:connected|logged in|signed in|authenticated|disconnected) from "
            rf"|from [^ ]{{3,64}} not allowed because))"
            rf"|disconnected from user (?=[^ ]{{3,32}} [0-9a-f.:{WALL}]{{1,39}} port )"
            rf"|(?:failed|failure|denied|refused|rejected|succeeded|successful) for user (?:[\"']|(?={_USER}(?:[.,;]?(?:\s"
            rf"|$)(?:from |at |$)|\(|@)))"
            rf"|su(?:\[[0-9]{{1,7}}\])?: \(to [a-z0-9_-]{{1,32}}\) (?=[^ ]{{3,32}} on (?:pts|tty|/dev))"
            rf"|sudo(?:\[[0-9]{{1,7}}\])?:[ ]{{1,4}}(?=[^ ]{{3,32}} : (?:TTY=|command not|user not|[0-9] incorrect)))"
            rf"(?P<value>{_USER}){AFTER}",
            re.IGNORECASE,
        ),
        shape_chars_max=LONG_CHARS_MAX,
        first="[aAfFsSiIuUpPrRdDnN-]",
        hint=rf"(?i:(?:accepted|failed|postponed|partial|rejected) (?:{_METHODS})(?: attempts?)? for |(?:for|of|from) user"
        r" |(?:invalid|illegal|authenticating) user )| - [^ ]{3,32} \[[0-9]{2}/[A-Z]"
        r"|(?i:user [^ ]{3,32} (?:(?:connected|logged in|signed in|authenticated|disconnected) from "
        r"|from [^ ]{3,64} not allowed because))"
        r"|su(?:\[[0-9]+\])?: \(to |sudo(?:\[[0-9]+\])?: ",
        accept=_accept_user_name,
    ),
    PatternDetector(
        name="user_name_keyed",
        type="USERNAME",
        category=Category.CONTACT,
        priority=81,
        pattern=LatePattern(rf"\A@?(?P<value>{_USER})\Z"),
        hint=rf"(?i:{_LABELS})",
        accept=_accept_user_name,
        need=Need.CONTEXT,
        context=words(rf"(?:{_LABELS}): ?$"),
        reach=4,
    ),
    PatternDetector(
        name="user_name_mixed",
        type="USERNAME",
        category=Category.CONTACT,
        priority=81,
        pattern=LatePattern(rf"\A@?(?P<value>{_USER}(?:#[0-9]{{4}})?)\Z"),
        hint=rf"(?:(?:^|\\[bfnrt]|[^A-Za-z])(?i:{USER}|{NETWORK})|{_IN_CAMEL_CASE})(?:[^a-z]|$)",
        accept=_accept_user_name_weak,
        need=Need.CONTEXT,
        context=words(rf"(?:{USER}|{NETWORK})(?: handle| account| name)?: ?$"),
        reach=4,
    ),
)
