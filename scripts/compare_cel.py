"""Evaluate random expressions with `comity.core.expression` and with CEL by its authors; list every difference.

    python scripts/compare_cel.py [COUNT] [SEED]

Values, and whether there is a value, must be the same. Differences that were decided are counted by reason and not listed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from typing import Any

from cel_expr_python import cel  # type: ignore[import-not-found]

from comity.core.expression import CostError, EvaluationError, Expression, ExpressionError

REPLY = {
    "response": {
        "status": "success",
        "data": {
            "score": 0.9,
            "n": 3,
            "neg": -7,
            "name": "Ann",
            "tags": ["a", "b"],
            "on": True,
            "none": None,
            "deep": {"x": [1, 2.5]},
        },
        "confidence": 0.75,
        "message": "done",
    },
    "count": 5,
    "ratio": 0.5,
    "word": "beta",
    "flags": [True, False],
}
PATHS = [
    "response.status", "response.data.score", "response.data.n", "response.data.neg", "response.data.name",
    "response.data.tags",
    "response.data.on", "response.data.none", "response.data.deep.x", "response.data.missing", "response.confidence", "count",
    "ratio", "word", "flags", "response.data.tags[0]", "response.data.deep.x[1]", "response.data.deep",
]  # fmt: skip
LITERALS = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "0.5",
    "1.0",
    "2.5",
    '"a"',
    '"success"',
    '"beta"',
    '""',
    "true",
    "false",
    "null",
    "[1, 2]",
    '["a"]',
    '{"k": 1}',
    "[]",
]
BINARY = ["==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "/", "%", "in"]


def expression(chance: random.Random, depth: int) -> str:
    """Return a random expression of at most some depth."""
    if depth <= 0 or chance.random() < 0.15:
        return chance.choice(PATHS) if chance.random() < 0.55 else chance.choice(LITERALS)
    below = lambda: expression(chance, depth - 1)  # noqa: E731
    match chance.randrange(14):
        case 0:
            return f"!({below()})"
        case 1:
            return f"({below()}) ? ({below()}) : ({below()})"
        case 2:
            return f"size({below()})"
        case 3:
            return f"has({chance.choice(['response.data.n', 'response.data.missing', 'response.nope.x'])})"
        case 4:
            method = chance.choice(["startsWith", "endsWith", "contains"])
            return f"({below()}).{method}({below()})"
        case 5:
            macro = chance.choice(["all", "exists", "exists_one", "filter", "map"])
            inner = chance.choice(["i == 1", 'i == "a"', "i > 1", "i != null", "i", "[i]", f"i == ({below()})"])
            return f"({below()}).{macro}(i, {inner})"
        case 6:
            return f"({below()})[{chance.choice(['0', '1', '5', '-1', chr(34) + 'k' + chr(34)])}]"
        case 7:
            return f"[{below()}, {below()}]"
        case 8:
            return f"{chance.choice(['int', 'double', 'string', 'bool', 'type'])}({below()})"
    return f"({below()}) {chance.choice(BINARY)} ({below()})"


def plain(value: Any) -> Any:
    """Return a value of either side in one form, types included."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return ("double", repr(value))
    if isinstance(value, int):
        return ("int", int(value))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "items"):
        return sorted(((repr(plain(key)), plain(one)) for key, one in value.items()), key=repr)
    name = getattr(value, "name", value)  # of a type
    return str(name() if callable(name) else name).lower().partition("<")[0].removesuffix("_type")


def theirs(environment: Any, text: str) -> tuple[str, Any]:
    """Return what CEL's authors say: a value, an error, or that it does not compile."""
    try:
        compiled = environment.compile(text, disable_check=True)  # values decide, as here
    except Exception as error:  # noqa: BLE001  errors of the binding are texts
        return "refused", str(error)
    try:
        found = compiled.eval(data=REPLY)
    except Exception as error:  # noqa: BLE001
        return "error", str(error)
    if str(found.type()).lower().endswith("error"):
        return "error", str(found)
    return "value", found.plain_value() if hasattr(found, "plain_value") else found.value()


def ours(text: str) -> tuple[str, Any]:
    """Return what this library says."""
    try:
        compiled = Expression(text)
    except ExpressionError as error:
        return "refused", error.message
    if problems := compiled.problems():
        return "refused", problems[0].message
    try:
        return "value", compiled.value(REPLY)
    except CostError as error:
        return "cost", str(error)
    except EvaluationError as error:
        return "error", str(error)


def main() -> int:
    """Compare and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    chance = random.Random(seed)  # noqa: S311  no secret
    environment = cel.NewEnv(variables=dict.fromkeys(REPLY, cel.Type.DYN))
    outcomes: Counter[str] = Counter()
    differences: list[str] = []
    for _ in range(count):
        text = expression(chance, 4)
        (mine, value), (their, other) = ours(text), theirs(environment, text)
        if their == "refused":
            # Their checker refuses types that it knows at compile time; ours fails when it is evaluated, or `||` absorbs it.
            outcomes["they refuse at compile time"] += 1
            continue
        if mine == their and (mine != "value" or plain(value) == plain(other)):
            outcomes[f"the same {mine}"] += 1
            continue
        if "int(" in text and mine == "error" and "bool cannot become int" in str(value):
            outcomes["decided: int(bool) is not in the language's definition, and only theirs has it"] += 1
            continue
        outcomes["different"] += 1
        differences.append(f"{text}\n    ours:   {mine} {value!r}\n    theirs: {their} {other!r}")
    for what, number in outcomes.most_common():
        print(f"{number:8} {what}")
    for one in differences[:40]:
        print(one)
    edge = Expression('response.data.score > 0.8 && response.status == "success"')
    begun = time.process_time()
    for _ in range(300_000):
        edge.holds(REPLY)
    print(f"{300_000 / (time.process_time() - begun) / 1e6:.2f} M evaluations/s of an edge condition, CPU time")
    return 1 if differences else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the binding counts references to None wrongly, and would abort the interpreter that ends in order
