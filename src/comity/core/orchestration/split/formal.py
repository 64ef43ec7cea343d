"""Requests in a formal, an impersonal or a talkative manner: what is said before them, and tasks said as statements."""

from __future__ import annotations

import re
from typing import Final

_ADVERBS: Final = (
    r"(?:\ (?:kindly|respectfully|hereby|also|humbly|likewise|further|please|then|really|just|now|merely|quickly))*"
)
_ABLE: Final = r"(?:could|would|can|will|might|were\ to)"
_ANY: Final = r"(?:you|someone|somebody|anyone|anybody|we|your\ team)(?:\ else)?"
_SOMEONE: Final = r"(?:the\ (?:[\w'’-]+\ ){1,4}?|(?-i:[A-Z])[\w'’-]+\ |all\ [a-z]+\ )"
_IS_ASKED: Final = rf"{_SOMEONE}(?:is|are){_ADVERBS}\ (?:asked|invited|directed|instructed|requested|required|expected)\ to\s"
ASKED: Final = re.compile(rf"^{_IS_ASKED}", re.IGNORECASE | re.VERBOSE)  # "the library is asked to extend its hours"
# What stands before a request; what is left begins with its verb, or with the thing that something is to be done to.
FORMAL: Final = re.compile(
    rf"""^(?:
    (?:i|we)(?:'d|\ would|\ should|\ must|\ do|\ hereby|\ am\ writing\ to|\ wish\ to|'d\ like\ to|\ would\ like\ to)?{_ADVERBS}
      \ (?:ask|request|beg|urge|instruct|suggest|propose)(?:\ you{_ADVERBS}\ to
      |\ that\ you(?:\ (?:should|please))?|\ that(?=\ (?:the|an?|our|my)\b))\s
    |(?:i|we)(?:'d|\ would|\ should)\ be\ (?:(?:most|very|so|really|extremely|ever\ so)\ )?
      (?:grateful|glad|happy|obliged|pleased|thankful|delighted)\ if\ {_ANY}\ {_ABLE}{_ADVERBS}\s
    |(?:i|we)(?:'d|\ would)\ (?:really\ )?appreciate\ it\ if\ {_ANY}\ {_ABLE}{_ADVERBS}\s
    |it\ would\ be\ (?:appreciated|great|good|nice|lovely|helpful|wonderful|kind|ideal|useful)
      \ (?:if\ {_ANY}\ {_ABLE}{_ADVERBS}|of\ you\ to|to|(?=if\ (?:the|an?|our|my)\b))\s*
    |if\ (?:you|someone|somebody)\ {_ABLE}{_ADVERBS}\ (?=[a-z]+\ (?:the|an?|me|us|my|our|some|to|for|something)\b)
    |(?:would\ you\ )?be\ so\ (?:kind|good)\ as\ to\s
    |would\ you\ mind\s(?=\w+ing\b)
    |(?:would|could|might)\ it\ be\ possible\ (?:for\ you\ )?to\s
    |you\ are{_ADVERBS}\ (?:requested|instructed|asked|invited|directed|required|expected|reminded){_ADVERBS}\ to\s
    |it\ is{_ADVERBS}\ (?:requested|asked|proposed|suggested|required)\ that\s
    |{_IS_ASKED}
    |{_SOMEONE}(?:asks?|requests?|instructs?|invites?|directs?|wants?)\ (?:you|the\ (?:[\w-]+\ ){{1,2}}?)to\s
    |pray\s|(?:please|kindly)\ to\s
    |(?:i|we)\ (?:need|want|require|ask|expect)\ that\ you\s
    |(?:might|may|could|can)\ (?:i|we)\ (?:also\ |then\ )?(?:ask|request|trouble)(?:\ you(?:\ to)?)?\s(?!for\b)
    |(?:what\ )?(?:i|we)(?:'d)?(?:\ really)?\ (?:need|want|like)\ is\ (?:for\ {_ANY}\ to|to)\s
    |(?:someone|somebody|anyone)(?:\ else)?\ (?:has\ to|needs\ to|should|must|ought\ to|could|will\ have\ to)\s
    |(?:could|can|would|will)\ (?:somebody|anyone|anybody)\ (?:please\ |also\ |kindly\ )*
    |i\ (?:keep\ (?:forgetting|meaning)|(?:have\ |'ve\ )?(?:been\ meaning|forgot|meant|wanted)|also\ wanted|almost\ forgot)
      \ to\ (?:ask|say|mention)[\s,:]+
    |(?:i\ was|i'm|we\ were)\ (?:thinking|wondering|hoping)\ (?:that\ |if\ |whether\ )?(?:you|someone|we)\ {_ABLE}{_ADVERBS}\s
    |(?:let\ me|i'll)\ put\ it\ this\ way[\s,:]+
    |(?:please\ )?be\ (?:advised|informed)\ that\s
    |that\ you\s(?=[a-z]+\ (?:the|an?|this|that|our|my|me|us|it|them|all|how|what|which)\b)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_DONE: Final = (
    r"(?:[a-z]+(?:ed|en|wn|rn|ght)|sent|put|set|made|built|paid|sold|"
    r"held|kept|cut|told|drawn|run|found|read|done|lit|hung|met|led|left)"
)
_NOUNS: Final = (
    r"(?:(?:the|an?|our|my|your|his|her|their|any|all|each|every|this|these|those|both|no)\s+(?:(?!and\b|that\b|which\b|who\b|if\b|but\b)[\w'’&-]+[\s]+){1,10}?"
    r"|(?-i:[A-Z])[\w'’-]+(?:\s+(?-i:[A-Z])[\w'’-]+)?['’]?s?\s+(?:(?!and\b|that\b|which\b|who\b)[\w'’-]+\s+){0,4}?)"
)
# A task named by the thing that something is to be done to: "the archive is to be searched", "the report be translated".
TO_BE_DONE: Final = re.compile(
    rf"^if\s+{_NOUNS}(?:were|was|is|are)\s+{_DONE}\b|^(?:that\s+)?{_NOUNS}(?:(?:(?:is|are|was|were)\s+(?:then\s+|also\s+|now\s+)?to|(?:should|must|shall|ought\s+to|ha(?:s|ve)\s+to|needs?\s+to)(?:\s+(?:also|then|now|please|first))?)"
    rf"\s+be\s+(?:[a-z]+ly\s+)?{_DONE}\b|be\s+{_DONE}\b|(?:should|must)\s+(?:go|come)\b|(?:shall|ought\s+to|ha(?:s|ve)\s+to)\s+(?!be\b|have\b)[a-z]+\b|needs?\s+[a-z]+ing\b)",
    re.IGNORECASE,
)
# Another person's wish: "HR needs the statistics".
WISHED: Final = re.compile(
    r"^(?:(?-i:[A-Z])[\w'’-]+(?:\s+(?-i:[A-Z])[\w'’-]+)?|(?:my|our|the)\s+(?:(?!and\b|that\b|which\b|who\b)[\w'’-]+\s+){0,4}?[\w'’-]+)\s+(?:still\s+|also\s+|really\s+)?"
    r"(?:needs|wants|is\s+after|would\s+like|is\s+looking\s+for|requires)\s+(?:an?|the|my|our|some|two|three)\s+\w+",
    re.IGNORECASE,
)
_ASKING: Final = (
    r"(?:please|kindly|could\s+(?:you|someone|somebody|anyone|we)|can\s+(?:you|someone|somebody|anyone|we)|would\s+you|will\s+you|what\s+i\s+(?:need|want)\s+is"
    r"|you\s+could|i'd\s+like\s+you|i\s+(?:need|want)\s+you|i\s+would\s+like\s+you)"
)
# Words before a request: "I don't have the figures here, but could you …".
_LEAD: Final = re.compile(
    rf"^(?P<lead>.{{3,240}}?(?:[,;:–—]|\s-)\s*(?:(?:but|so|and|yet|anyway|therefore|hence|then)\s*,?\s+)*)(?P<asked>(?:{_ASKING})\b.{{4,}})$",
    re.IGNORECASE | re.DOTALL,
)


_CONCESSION: Final = re.compile(
    r"^(?P<lead>(?:i\s+(?:know|realise|realize|understand|don't|do\s+not|am|hate|keep)|not\s+that|sorry|i'm\s+(?:afraid|sorry|not)|it's\s|this\s+(?:may|might)"
    r"|no\s+(?:rush|hurry))\b[^?]{2,200}?,?\s+but\s+)(?P<asked>.{4,})$",
    re.IGNORECASE | re.DOTALL,
)
_TO: Final = re.compile(r"\bto\W*$", re.IGNORECASE)
_SECOND_TO: Final = re.compile(r"(?P<and>\b(?:and|or|but)\b(?:\s*,[^,;]{3,80},)?|[,;])\s+to\s+(?=[a-z]+\b)", re.IGNORECASE)
_FIRSTLY: Final = re.compile(r"\s*,?\s*\bfirstly\s*,\s*(?=(?:an?|the|our|my|one)\s)", re.IGNORECASE)
_LATER: Final = re.compile(
    r"\s*,?(?:\s+and)?\s*,?\s*\b(?:second|third|fourth|last)ly\s*,\s*(?=(?:an?|the|our|my|one)\s)", re.IGNORECASE
)


def evened(sentence: str, bare: str) -> str:
    """Return a sentence without the "to" of its later verbs, if one stands before the first, and without "firstly".

    bare: the sentence without what is said before its request. "You are asked to sign the form and to return it."
    """
    if _FIRSTLY.search(sentence):
        sentence = _LATER.sub(", ", _FIRSTLY.sub(" ", sentence))
    if not _TO.search(sentence[: max(len(sentence) - len(bare), 0)]):
        return sentence
    return _SECOND_TO.sub(lambda found: f"{found['and']} ", sentence)


def is_statement_like(text: str) -> bool:
    """Return whether a text names a task as a statement does: "the gate should be closed", "HR needs the list"."""
    return bool(TO_BE_DONE.match(text) or WISHED.match(text))


def lead_in(sentence: str) -> tuple[str, str] | None:
    """Return what is told before the request of a sentence, and the request; None if nothing is told before it."""
    found = _LEAD.match(sentence) or _CONCESSION.match(sentence)
    return (found["lead"], found["asked"]) if found else None
