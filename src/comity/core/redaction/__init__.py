"""Personal data: finding it, hiding it behind reversible tokens before it leaves a session, and putting it back."""

from comity.core.redaction.detector import Category, Detector, Need, PatternDetector
from comity.core.redaction.hiding import HIDDEN, Finding
from comity.core.redaction.policy import DEFAULT_POLICY, Action, Policy
from comity.core.redaction.redact import (
    JsonRedaction,
    Redaction,
    ValueRedaction,
    blocked_types,
    may_hold_personal_data,
    redact_json,
    redact_text,
    redact_value,
    scrub,
)
from comity.core.redaction.restore import restore_json, restore_text, restore_value
from comity.core.redaction.scan import DEFAULT_SCANNER, Scanner
from comity.core.redaction.stream import HELD_CHARS_MAX, StreamRedactor, StreamRestorer
from comity.core.redaction.table import DETECTORS, TYPES
from comity.core.redaction.vault import TOKEN, VALUES_MAX, Vault, VaultFullError

__all__ = [
    "DEFAULT_POLICY",
    "DEFAULT_SCANNER",
    "DETECTORS",
    "HELD_CHARS_MAX",
    "HIDDEN",
    "TOKEN",
    "TYPES",
    "VALUES_MAX",
    "Action",
    "Category",
    "Detector",
    "Finding",
    "JsonRedaction",
    "Need",
    "PatternDetector",
    "Policy",
    "Redaction",
    "Scanner",
    "StreamRedactor",
    "StreamRestorer",
    "ValueRedaction",
    "Vault",
    "VaultFullError",
    "blocked_types",
    "may_hold_personal_data",
    "redact_json",
    "redact_text",
    "redact_value",
    "restore_json",
    "restore_text",
    "restore_value",
    "scrub",
]
