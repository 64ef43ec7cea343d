"""Personal numbers that need no label: their form, with its signs, and their check digits are those of one country alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from comity.core.redaction.checksums import standard
from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.shapes import AFTER_DIGIT, BEFORE, HINT_AFTER, HINT_BEFORE_WORD, NOT_AFTER_DIGIT, LatePattern

_DAY = "(?:0[1-9]|[12][0-9]|3[01])"
_MONTH = "(?:0[1-9]|1[0-2])"
_S = "[ .]"
# The module of python-stdnum, the type, and the form.
_FORMS: Final = {
    "fr.nir": ("NATIONAL_ID", rf"[12]{_S}[0-9]{{2}}{_S}{_MONTH}{_S}(?:[0-9]{{2}}|2[AB])(?:{_S}[0-9]{{3}}){{2}}{_S}[0-9]{{2}}"),
    "ch.ssn": ("NATIONAL_ID", r"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}"),
    "be.nn": ("NATIONAL_ID", rf"[0-9]{{2}}\.{_MONTH}\.{_DAY}-[0-9]{{3}}\.[0-9]{{2}}"),
    "cn.ric": ("NATIONAL_ID", rf"[1-9][0-9]{{5}}(?:19|20)[0-9]{{2}}{_MONTH}{_DAY}[0-9]{{3}}[0-9X]"),
    "mx.curp": ("NATIONAL_ID", rf"[A-Z]{{4}}[0-9]{{2}}{_MONTH}{_DAY}[HM][A-Z]{{5}}[0-9A-Z][0-9]"),
    "it.codicefiscale": ("TAX_ID", "[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]"),
    "th.pin": ("NATIONAL_ID", "[1-8]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]"),
    "fi.hetu": ("NATIONAL_ID", rf"{_DAY}{_MONTH}[0-9]{{2}}[-+A][0-9]{{3}}[0-9A-FHJ-NPR-Y]"),
    "ar.cuit": ("TAX_ID", "2[0347]-[0-9]{8}-[0-9]"),
    "br.cpf": ("TAX_ID", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}"),
}
# A digit of a longer number, or the word for a thing: part numbers and lists of numbers may have such a form.
_NOT_AFTER: Final = LatePattern(
    rf"{NOT_AFTER_DIGIT.pattern}|(?<![a-z])(?:sets?|charts?|marks?|lists?|no\.|nr\.|gaskets?|hymns?|songs?|bolts?|washers?|bearings?"
    r"|fittings?|adapters?|brackets?|filters?|screws?|nuts?|labels?|stamps?|numbers|songs|lieder|schrauben?|vis|joints?)[ ]$",
    re.IGNORECASE,
    end_chars=16,
)


def _accept(module: str) -> Callable[[str], int]:
    def accept(value: str) -> int:
        return len(value) if standard(module)(value) else 0

    return accept


FORMED: Final = tuple(
    PatternDetector(
        name=f"formed_{re.sub('[^a-z]', '_', module)}",
        type=kind,
        category=Category.GOVERNMENT,
        priority=27,
        pattern=LatePattern(f"{BEFORE}{form}{AFTER_DIGIT}"),
        hint=f"{HINT_BEFORE_WORD}{form}{HINT_AFTER}",
        accept=_accept(module),
        need=Need.NO_FOREIGN_LABEL,
        not_after=_NOT_AFTER,
    )
    for module, (kind, form) in _FORMS.items()
)
