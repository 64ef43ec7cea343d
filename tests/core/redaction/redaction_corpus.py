"""The two data files as Python values, and texts made of their pieces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from corpus import read_corpus
from hypothesis import strategies as st

from comity.core.redaction import Vault

HERE = Path(__file__).parent
_MARKED = re.compile("«(.*?)»")


def new_vault(tag: str = "kqzmtwbf") -> Vault:
    return Vault(tag)


def plain(row: Any) -> Any:
    """Return a row of the data without its marks."""
    match row:
        case str():
            return row.replace("«", "").replace("»", "")
        case dict():
            return {plain(key): plain(value) for key, value in row.items()}
        case list():
            return [plain(item) for item in row]
        case _:
            return row


def marked(row: Any) -> list[str]:
    """Return the values marked in a row."""
    match row:
        case str():
            return _MARKED.findall(row)
        case dict():
            return [value for item in row.values() for value in marked(item)]
        case list():
            return [value for item in row for value in marked(item)]
        case _:
            return []


TRUE_POSITIVES: dict[str, list[Any]] = read_corpus(HERE / "true_positives.yaml")
FALSE_POSITIVES: dict[str, list[Any]] = read_corpus(HERE / "false_positives.yaml")

PERSONAL_ROWS = [(name, row) for name, rows in TRUE_POSITIVES.items() for row in rows]
PERSONAL_TEXTS = [(name, row) for name, row in PERSONAL_ROWS if isinstance(row, str)]
PERSONAL_DOCUMENTS = [(name, row) for name, row in PERSONAL_ROWS if not isinstance(row, str)]
PERSONAL_VALUES = sorted({value for _, row in PERSONAL_ROWS for value in marked(row)})


def of_detectors(rows: list[tuple[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return the rows under the name of the detector they are for."""
    return [(name, [row for other, row in rows if other == name]) for name in dict.fromkeys(name for name, _ in rows)]


BUSINESS_TEXTS = [row for rows in FALSE_POSITIVES.values() for row in rows if isinstance(row, str)]
BUSINESS_DOCUMENTS = [row for rows in FALSE_POSITIVES.values() for row in rows if not isinstance(row, str)]

_WORDS = re.findall(
    r"\w+",
    "the my is of and for ssn phone account passport born order number call zip code street SIN card nhs date routing bic mac"
    " address username sentence with many small words that goes on and on without any figures in it",
)


def _one_of(items: list[str]) -> st.SearchStrategy[str]:
    """Like `sampled_from`, but without all the items in its repr."""
    return st.integers(0, len(items) - 1).map(lambda index: items[index])


_PIECES = st.one_of(
    _one_of(PERSONAL_VALUES),
    _one_of([plain(row) for _, row in PERSONAL_TEXTS]),
    _one_of(BUSINESS_TEXTS),
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=14).map(" ".join),
    st.text(alphabet="0123456789-. ()/:@,;ABCDabcd+[]*_#\n", min_size=1, max_size=14),
    st.sampled_from(["[[EMAIL_1_zzzzzzzz]]", "[[EMAIL_1_kqzmtwbf", "****1234", "****@example.com", "****"]),
    st.text(max_size=8),
)
_JOINTS = st.sampled_from([" ", " ", " ", "", ",", "-", ". ", ", ", "\n", ": ", "/", "=", "\u00a0"])


def texts(pieces_max: int = 7) -> st.SearchStrategy[str]:
    """Texts in which values, business numbers, context words and noise touch in every way."""
    return st.lists(st.tuples(_PIECES, _JOINTS), max_size=pieces_max).map(
        lambda parts: "".join(piece + joint for piece, joint in parts)
    )


def documents() -> st.SearchStrategy[Any]:
    """JSON documents around such texts, their keys naming or not naming what they hold."""
    keys = st.one_of(
        st.sampled_from(
            ["ssn", "homePhone", "account_number", "zip", "dob", "passportNo", "order_id", "note", "username", "x"]
        ),
        texts(1),
    )
    numbers = st.integers(min_value=-(10**19), max_value=10**19)
    leaves = st.one_of(texts(3), numbers, st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
        max_leaves=6,
    )
