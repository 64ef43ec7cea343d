"""Phrases that try to give a model orders, and tokens with which chat formats separate speakers: how they are found.

No list of phrases is complete. It makes the usual attempts harmless and visible; what an agent may do never depends on it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from unicodedata import normalize

# What chat templates use to separate speakers, in the forms of the models that public servers know.
CONTROL: Final = re.compile(
    r"<[|｜][^|｜<>‹›\n]{1,60}[|｜]>"
    r"|</?(?:start_of_turn|end_of_turn|bos|eos|s|system|assistant|developer|human|tool_calls?|tool_use|tool_results?|tool_response"
    r"|function_calls?|function_results?|invoke|im_start|im_end)(?:\s[^<>‹›\n]{0,80})?>"
    r"|</?[a-z]{2,12}:(?:function_calls|function_results|invoke|parameter)[^<>‹›\n]{0,80}>"
    r"|\[/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\]|<</?SYS>>",
    re.IGNORECASE,
)


class _Order(NamedTuple):
    """A kind of order: words without which there is none, which are quick to look for, and the phrase."""

    kind: str
    words: tuple[str, ...]
    phrase: re.Pattern[str]


_REST: Final = r"[^.!?\n]{0,80}"


def _override(words: str, things: str) -> _Order:
    """Return the order to leave instructions aside, in one language."""
    phrase = rf"(?:{words})\w{{0,20}}\b[^.!?\n]{{0,40}}?\b(?:{things})\w{{0,20}}{_REST}"
    return _Order("override", tuple(words.split("|")), re.compile(phrase))


def _overridden(things: str, words: str) -> _Order:
    """Return the same in a language in which the verb comes last, or that puts no space between words."""
    return _Order("override", tuple(words.split("|")), re.compile(rf"(?:{things})[^.!?。！？।\n]{{0,40}}?(?:{words}){_REST}"))


# On text in small letters, each beginning with plain words: that way a phrase is found 20 times faster than regardless of case.
ORDERS: Final = (
    _Order(
        "override",
        ("ignore", "disregard", "forget", "override", "bypass"),
        re.compile(
            r"(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}?\b(?:instructions?|rules?|prompts?|guidelines?"
            rf"|directions?|orders?|restrictions?|polic(?:y|ies)|guardrails?|told|the above)\b{_REST}"
        ),
    ),
    _Order(
        "override",
        ("new instruction", "new order", "new rule", "new system"),
        re.compile(rf"new\s{{1,5}}(?:system\s{{1,5}})?(?:instructions?|orders?|rules?)\s{{0,5}}(?::|are\b|follow\b){_REST}"),
    ),
    _override("ignorier|missacht|vergiss|vergesst|vergessen sie", "anweisung|anordnung|regel|vorgabe|instruktion|befehl"),
    _override(
        "ignore|oublie|ne tenez pas compte|ne tiens pas compte|contourne", "instruction|consigne|règle|regle|ordre|directive"
    ),
    _override("ignor|olvid|haz caso omiso", "instruccion|instrucción|regla|órden|orden|indicacion"),
    _override("ignora|dimentica", "istruzion|regol|ordin|indicazion"),
    _override("ignor|esqueç|desconsider", "instruç|regra|orden|diretriz"),
    _override("negeer|vergeet", "instructie|regel|opdracht"),
    _override("ignoruj|zignoruj|zapomnij|pomiń", "instrukcj|polece|zasad|reguł"),
    _override("игнориру|проигнориру|забудь|не обращай внимания", "инструкци|правил|указани|команд"),
    _override("ігнору|забудь", "інструкці|правил|вказів"),
    _override("تجاهل", "التعليمات|تعليمات|الأوامر|القواعد"),
    _Order(
        "override",
        ("忽略", "无视", "無視"),
        re.compile(r"(?:忽略|无视|無視)[^。！？\n]{0,20}?(?:指令|指示|规则|規則|命令|提示)[^。！？\n]{0,40}"),
    ),
    _overridden("指示|命令|ルール|プロンプト", "無視"),
    _overridden("지시|명령|규칙|지침", "무시"),
    _overridden("निर्देश|आदेश|नियम", "अनदेखा|नज़रअंदाज़"),
    _overridden("talimat|kural|komut", "yok say|görmezden gel|dikkate alma"),
    _Order(
        "role",
        (
            "you are now",
            "now on",
            "pretend",
            "act as",
            "du bist jetzt",
            "tu es maintenant",
            "ahora eres",
            "你现在是",
            "теперь ты",
        ),
        re.compile(
            r"(?:you are now|from now on,? you|pretend (?:to be|you are)|act as (?:if|an?\s+(?:admin|root|system))"
            rf"|du bist jetzt|tu es maintenant|ahora eres|теперь ты|你现在是){_REST}"
        ),
    ),
    _Order("role", ("system:", "assistant:", "developer:"), re.compile(rf"(?:system|assistant|developer):{_REST}")),
    _Order(
        "role",
        ("human:", "###"),
        re.compile(rf"(?:(?<![^\n])human:|###\s{{0,5}}(?:system|instruction|human|assistant|user)\b){_REST}"),
    ),
    _Order(
        "tool",
        ("_",),
        re.compile(
            r"(?:call|use|invoke|run|execute|trigger)\s{1,5}(?:the\s{1,5})?(?:(?:tool|function|command)\s{1,5})?[`'\"]?[a-z0-9]{1,40}(?:_[a-z0-9]{1,40}){1,9}"
            rf"\b{_REST}"
        ),
    ),
    _Order(
        "secret",
        ("prompt", "your instructions", "api key", "password", "credentials", "secret"),
        re.compile(
            r"(?:reveal|print|show|repeat|output|leak|send)\b[^.!?\n]{0,30}"
            r"\b(?:system prompt|your (?:instructions|prompt)|api keys?|passwords?|credentials|secrets?)\b"
        ),
    ),
)


def find_orders(text: str) -> tuple[list[tuple[int, int]], list[str]]:
    """Return where orders stand in a text, and their kinds."""
    small = text.lower() if text.isascii() else _plain(text)
    places: list[tuple[int, int]] = []
    kinds: list[str] = []
    for kind, words, phrase in ORDERS:
        for word in words:  # a plain loop: half of what is asked of a short answer is asked here
            if word in small:
                break
        else:
            continue
        for match in phrase.finditer(small):
            start = match.start()
            if start == 0 or not small[start - 1].isalnum() or not small[start].isascii():  # no end of a word, as in `recall`
                places.append(match.span())
                kinds.append(kind)
    return places, kinds


def _plain(text: str) -> str:
    """Return a text of the same length in small letters, with letters of other widths and styles as plain ones."""
    table: dict[int, str] = {}
    for char in set(text):
        small = normalize("NFKC", char).lower()
        table[ord(char)] = small if len(small) == 1 else char
    return text.translate(table)
