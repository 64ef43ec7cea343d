"""Yes and no: booleans, words for them, the field's own word or its opposite, "none"."""

from __future__ import annotations

import re
from typing import Any, Final

from comity.core.orchestration.conflict import texts
from comity.core.orchestration.conflict.finding import Finding, Relation, name_of, verdict
from comity.core.orchestration.conflict.quantity import quantities

_STOCK: Final = re.compile(r"(?:^|_)(?:in_stock|available)$")
_TRUTH: Final = re.compile(r"^(?:is|has|have|can|should|does|was|needs?|allow|enable)(?:s|d)?_")
_NEED: Final = re.compile(r"^(?:needs?|requires?)_")


def none_or_no(said: Any, other: Any) -> Finding | None:
    """Return the finding for "none" against yes or no, None for anything else."""
    if not isinstance(said, str) or texts.plain(said) not in {"none", "nil"}:
        return None
    told = other if isinstance(other, bool) else texts.truth(other) if isinstance(other, str) else None
    return None if told is None else Finding(verdict(not told), "yes or no")


def booleans(left: Any, right: Any, path: str) -> Finding | None:
    """Return the finding where a value is yes or no and the other says yes or no too, None for anything else."""
    is_one = any(isinstance(value, bool) or (isinstance(value, str) and texts.is_answer(value)) for value in (left, right))
    is_asked = is_one or any(isinstance(value, str) and texts.truth(value) is not None for value in (left, right))
    truths = [_truth(value, path, is_one) for value in (left, right)]
    if is_asked and None in truths:
        told = [texts.polarity(value, name_of(path)) if isinstance(value, str) else None for value in (left, right)]
        truths = [one if one is not None else other for one, other in zip(truths, told, strict=True)]
    if is_one and None in truths:
        told = [texts.is_so(value) if isinstance(value, str) else None for value in (left, right)]
        truths = [one if one is not None else other for one, other in zip(truths, told, strict=True)]
    if None in truths:
        is_bool = isinstance(left, bool) or isinstance(right, bool)
        return Finding(Relation.UNKNOWN, "yes or no against another kind") if is_bool else None
    return Finding(verdict(truths[0] == truths[1]), "yes or no")


def _is_free(text: str, of: str) -> bool | None:
    """Return whether a text says that a thing is without another: "contains nuts" in `nuts_free`; None if it says neither."""
    said = texts.plain(text)
    if of not in said and of.removesuffix("s") not in said:
        return texts.truth(text)
    return bool(re.search(r"\b(?:no|not|without|free|zero|never)\b|n't\b", said))


def _truth(value: Any, path: str, is_asked: bool) -> bool | None:
    """Return whether a value says yes: a word for it, the field's own word or its opposite, 1 or 0 where it `is_asked`."""
    if isinstance(value, bool):
        return value
    name = name_of(path)
    if isinstance(value, int | float):
        return (
            value > 0 if _STOCK.search(name) else bool(value) if (is_asked or _TRUTH.match(name)) and value in (0, 1) else None
        )
    if not isinstance(value, str):
        return None
    if name.endswith("_free"):
        return _is_free(value, name.removesuffix("_free").replace("_", " "))
    about, said = _TRUTH.sub("", name).replace("_", " "), texts.plain(value).replace("-", "")
    if about and said in {about, f"not {about}", f"non{about}", f"un{about}", f"in{about}"}:
        return said == about
    if (known := texts.truth(value)) is not None:
        return known
    if is_asked and said in {"1", "0", "t", "f", "none"}:
        return said in {"1", "t"}
    if _STOCK.search(name) and (found := quantities(value)):
        return found[0].high > 0
    if said.count(" ") > 2:
        return None  # a sentence, not the field's word or its opposite
    if _NEED.match(name) and said.removeprefix("not ") in {"required", "needed", "necessary", "mandatory"}:
        return not said.startswith("not ")
    known = texts.same_or_opposite(about, said)
    return known if known is not None else texts.same_or_opposite(about.rpartition(" ")[2], said)
