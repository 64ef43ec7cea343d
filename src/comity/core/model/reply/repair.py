"""The words for everything that may be done to a text on its way to a value, and which of them cost content."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Repair(StrEnum):
    """One thing that was done; the words are stable and may be stored."""

    # Syntax, mended by the tolerant reader; nothing is lost.
    TRAILING_COMMA = "trailing_comma"
    EXTRA_COMMA = "extra_comma"
    MISSING_COMMA = "missing_comma"
    COMMENT = "comment"
    ODD_BLANK = "odd_blank"
    SINGLE_QUOTES = "single_quotes"
    SMART_QUOTES = "smart_quotes"
    UNQUOTED_KEY = "unquoted_key"
    PYTHON_LITERAL = "python_literal"
    NUMBER_FORM = "number_form"
    UNESCAPED_NEWLINE = "unescaped_newline"
    CONTROL_CHARACTER = "control_character"
    BAD_ESCAPE = "bad_escape"
    # Syntax where something was lost or had to be guessed.
    TRUNCATED = "truncated"
    DUPLICATE_KEY = "duplicate_key"
    NON_FINITE = "non_finite"
    UNQUOTED_VALUE = "unquoted_value"
    UNESCAPED_QUOTE = "unescaped_quote"
    MISSING_VALUE = "missing_value"
    ELISION = "elision"
    MISMATCHED_BRACKET = "mismatched_bracket"
    LONE_SURROGATE = "lone_surrogate"
    # What stood around the value or was spelled differently, mended by the ladder; nothing is lost.
    BOM = "bom"
    SPLIT_SURROGATES = "split_surrogates"
    THINK_BLOCK = "think_block"
    FENCE = "fence"
    PROSE = "prose"
    ARRAY_WRAPPED = "array_wrapped"
    WRAPPED_IN_KEY = "wrapped_in_key"
    STRING_ENCODED = "string_encoded"
    STATUS_SPELLING = "status_spelling"
    NULL_HINT = "null_hint"
    # Choices of the ladder where something was lost or had to be guessed.
    FILLED_FIELD = "filled_field"
    DROPPED_KEYS = "dropped_keys"
    SEVERAL_REPLIES = "several_replies"
    INSIDE_THINKING = "inside_thinking"
    INSIDE_BROKEN_OBJECT = "inside_broken_object"
    QUOTED = "quoted"


LOSSY: Final = frozenset(
    {
        Repair.TRUNCATED,
        Repair.DUPLICATE_KEY,
        Repair.NON_FINITE,
        Repair.UNQUOTED_VALUE,
        Repair.UNESCAPED_QUOTE,
        Repair.MISSING_VALUE,
        Repair.ELISION,
        Repair.MISMATCHED_BRACKET,
        Repair.LONE_SURROGATE,
        Repair.FILLED_FIELD,
        Repair.DROPPED_KEYS,
        Repair.SEVERAL_REPLIES,
        Repair.INSIDE_THINKING,
        Repair.INSIDE_BROKEN_OBJECT,
        Repair.QUOTED,
    }
)
