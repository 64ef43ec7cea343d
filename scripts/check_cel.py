"""Run the CEL conformance cases in a folder, `check_cel.py FOLDER`, against `comity.core.expression`; print counts by scope.

Cases in scope `core` must all agree; the others are counted, and what does not agree is listed with --verbose.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from comity.core.expression import EvaluationError, Expression, ExpressionError
from comity.core.expression.values import Duration, Timestamp, Type, Uint, equal, is_list, is_map, make_map


def read(typed: dict[str, Any]) -> Any:
    """Return a value of the suite, which names its type."""
    ((kind, value),) = typed.items()
    match kind:
        case "int":
            return int(value)
        case "uint":
            return Uint(int(value))
        case "double":
            return float(value)
        case "bytes":
            return base64.b64decode(value)
        case "list":
            return [read(one) for one in value]
        case "map":
            return make_map([(read(key), read(one)) for key, one in value])
        case "type":
            return Type(value)
        case "duration":
            return Duration(int(value[0]) * 10**9 + value[1])
        case "timestamp":
            return Timestamp(int(value[0]) * 10**9 + value[1])
        case "string" | "bool" | "null":
            return value
    raise KeyError(kind)


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values are the same, types included."""
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(is_same, left, right))
    if is_map(left) and is_map(right):
        return len(left) == len(right) and all(key in right and is_same(one, right[key]) for key, one in left.items())
    if type(left) is not type(right):
        return False
    if type(left) is float:
        return (math.isnan(left) and math.isnan(right)) or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return equal(left, right)


def agrees(case: dict[str, Any]) -> bool:
    """Return whether a case has the value, or the error, that the suite says."""
    try:
        variables = {name: read(value) for name, value in (case.get("bindings") or {}).items()}
        found = Expression(case["expr"]).value(variables)
    except KeyError:  # a type that JSON does not have
        return False
    except (ExpressionError, EvaluationError):
        return "error" in case
    try:
        return "value" in case and is_same(read(case["value"]), found)
    except KeyError:
        return False


def main() -> int:
    """Run every case and print what agrees."""
    folder = next((Path(one) for one in sys.argv[1:] if not one.startswith("-")), None)
    if folder is None or not (folder / "cases.json").is_file():
        print("Name the folder with CEL's conformance cases: make cel CEL_DIR=…")
        return 2
    cases = json.loads((folder / "cases.json").read_text())
    verdicts = [(case, agrees(case)) for case in cases]
    counts = Counter((case["scope"], is_right) for case, is_right in verdicts)
    for scope in sorted({case["scope"] for case in cases}):
        right, wrong = counts[scope, True], counts[scope, False]
        print(f"{scope:<9} {right} of {right + wrong}")
    if "--verbose" in sys.argv:
        for case, is_right in verdicts:
            if not is_right:
                print(f"  {case['scope']} {case['id']}: {case['expr']}")
    return 1 if counts["core", False] else 0


if __name__ == "__main__":
    sys.exit(main())
