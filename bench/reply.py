"""What reading a reply costs: clean and messy ones against a bare typed decode in the same run, and hostile ones in ms.

    python bench/reply.py

Promised: a clean reply of 1 KB within 2x of decode plus schema check, and any hostile megabyte within 100 ms.
"""

from __future__ import annotations

import enum
import json
import sys
import timeit
from typing import Any

import jsonschema_rs
import msgspec

from comity.core.document.payload import Problem
from comity.core.model.reply import Reading, read

RATIO_MAX = 2.0
HOSTILE_MS_MAX = 100.0
MEGABYTE = 1_000_000

SCHEMA = {
    "type": "object",
    "required": ["invoices", "total", "confidence"],
    "properties": {
        "invoices": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "amount", "paid"],
                "properties": {"id": {"type": "string"}, "amount": {"type": "number"}, "paid": {"type": "boolean"}},
            },
        },
        "total": {"type": "integer"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
}
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)

REPLY = {
    "thought": "I compared the invoices of the quarter with the ledger. Two do not match, the rest is in order, and "
    "the difference has one cause: a credit note that was booked twice in March.",
    "status": "success",
    "data": {
        "invoices": [
            {"id": f"INV-{number:04}", "amount": 1234.5 + number, "currency": "EUR", "paid": bool(number % 2)}
            for number in range(7)
        ],
        "total": 45_000,
        "confidence": 0.93,
        "by_month": {"january": [1, 2], "february": [3, 4], "march": [5, 6, 7]},
    },
    "message": "Two of seven invoices do not match the ledger; the difference is 310 EUR, from one credit note.",
}


class Word(enum.StrEnum):
    """The status words, for the bare decode."""

    SUCCESS = "success"
    FAILURE = "failure"
    CLARIFICATION_NEEDED = "clarification_needed"
    COMPLETED = "completed"


class Bare(msgspec.Struct):
    """The least a program needs to decode a clean reply."""

    thought: str
    status: Word
    data: dict[str, Any]
    message: str
    next_step_hint: str = ""


def check(data: dict[str, Any]) -> tuple[Problem, ...]:
    """Report what jsonschema-rs finds."""
    if VALIDATOR.is_valid(data):
        return ()
    return tuple(Problem("data", error.message) for error in VALIDATOR.iter_errors(data))


def messy(clean: str) -> dict[str, str]:
    """Return the usual ways in which a model spoils a clean reply."""
    return {
        "fenced": f"```json\n{clean}\n```",
        "filler and fence": f"Sure! Here is the result:\n\n```json\n{clean}\n```\nLet me know if you need more.",
        "prose with braces": f"Use {{braces}} as {{you}} like. {clean} That is {{all}}.",
        "think block": f'<think>Perhaps {{"status": "failure"}}?</think>\n{clean}',
        "trailing comma": clean[:-1] + ",}",
        "truncated": clean[: len(clean) * 2 // 3],
        "nothing": "I am sorry, but I cannot help with that request. " * 20,
    }


def hostile(clean: str) -> dict[str, str]:
    """Return a megabyte of each thing that a careless reader takes seconds for."""
    units = {
        "open braces": "{",
        "open brackets": "[",
        "nested objects": '{"a":',
        "nested arrays in an object": '{"a":[',
        "quotes": '"',
        "brace and quote": '{"',
        "single quotes": "{'a'",
        "backslashes": "\\",
        "commas in an object": "{,",
        "comments that never close": "{/*",
        "fences": "```\n",
        "think tags": "<think>",
        "closing think tags": "</think>{",
        "escaped objects": '{\\"a\\":',
        "broken objects": '{"a": 1 | 2} ',
        "small objects": '{"a":1} ',
        "replies without end": clean,
        "encoded strings": '["{\\"a\\"",',
        "unquoted words": "{a:b,",
        "spaces between quotes": '{"a"         ',
        "lone surrogates": "{\ud800",
        "control characters": "\x00{",
    }
    texts = {name: (unit * (MEGABYTE // len(unit) + 1))[:MEGABYTE] for name, unit in units.items()}
    # The same, thin enough not to be refused for the number of its brackets alone.
    texts |= {f"{name}, thin": (unit * 45_000)[:MEGABYTE].ljust(MEGABYTE, ".") for name, unit in units.items()}
    items = ",".join(['"x": 1'] * (MEGABYTE // 7))
    texts["blank lines after an item"] = ('{"a":["b"' + "\n" * MEGABYTE)[:MEGABYTE]
    texts["blank lines between quotes"] = ('{"a":["b' + '"\n\n\n\n\n\n\n\nx' * MEGABYTE)[:MEGABYTE]
    texts["one long bare word"] = ("{a:" + "x" * MEGABYTE)[:MEGABYTE]
    texts["one long string, not closed"] = ('{"thought": "' + "x" * MEGABYTE)[:MEGABYTE]
    texts["one long object with a trailing comma"] = ("{" + items)[: MEGABYTE - 2] + ",}"
    texts["string of quotes"] = ('{"thought": "' + '" ' * MEGABYTE)[:MEGABYTE]
    texts["string of escapes"] = ('{"thought": "' + "\\n" * MEGABYTE)[:MEGABYTE]
    texts["flat arrays in data"] = '{"status":"success","message":"","data":{"a":[' + "[]," * (MEGABYTE // 3) + "[]]}}"
    texts["strings in arrays in objects"] = json.dumps([{str(k): ["{"] * 64 for k in range(50)}] * 60)[:MEGABYTE]
    texts["no JSON at all"] = ("lorem ipsum " * MEGABYTE)[:MEGABYTE]
    return texts


def best_us(function: Any, *, number: int, repeat: int = 7) -> float:
    """Return the least time of one call in microseconds."""
    return min(timeit.repeat(function, number=number, repeat=repeat)) / number * 1e6


def main() -> int:
    """Print both tables; fail when a promise is broken."""
    clean = json.dumps(REPLY)
    decode = msgspec.json.Decoder(Bare).decode

    def bare() -> tuple[Problem, ...]:
        return check(decode(clean).data)

    def ours() -> Reading:
        return read(clean, data_schema=check)

    assert ours().repairs == ()
    rounds = [(best_us(bare, number=2000), best_us(ours, number=2000)) for _ in range(5)]
    base, cost = min(rounds)[0], min(cost for _, cost in rounds)
    plain = best_us(lambda: decode(clean), number=5000)
    unchecked = best_us(lambda: read(clean), number=5000)
    print(f"{len(clean)} bytes, clean: decode + check {base:.2f} us, read {cost:.2f} us, ratio {cost / base:.2f}")
    print(f"without a schema: decode {plain:.2f} us, read {unchecked:.2f} us, ratio {unchecked / plain:.2f}")
    for name, text in messy(clean).items():
        reading = read(text, data_schema=check)
        spent = best_us(lambda text=text: read(text, data_schema=check), number=200)
        print(f"  {name:<40} {spent:8.1f} us {spent / base:8.1f}x  {reading.rung}")
    worst = 0.0
    for name, text in hostile(clean).items():
        spent = best_us(lambda text=text: read(text), number=1, repeat=3) / 1000
        worst = max(worst, spent)
        print(f"  {name:<40} {spent:8.1f} ms  {read(text).rung}")
    print(f"worst hostile megabyte {worst:.1f} ms")
    return int(cost / base > RATIO_MAX or worst > HOSTILE_MS_MAX)


if __name__ == "__main__":
    sys.exit(main())
