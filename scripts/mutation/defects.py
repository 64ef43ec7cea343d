"""The defects that can be planted in the files that carry promises, and a sample of them.

Most operators are Cosmic Ray's: a comparison turned around, a condition negated, a constant changed; ours drop a condition, a
guard or a statement, or swap arguments. None is planted where it could be no defect: code that is not Python any more,
assertions, log lines, what only the type checker reads, how a class is kept in memory, and the number of a named limit (tests
import limits, so that another number is another limit).
"""

from __future__ import annotations

import ast
import difflib
import itertools
import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from mutation.operators import OWN
from mutation.reach import SOURCE

OPERATORS = {
    name: get_operator(f"core/{name}")
    for name in (
        *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer"),
        *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ReplaceUnaryOperator_Delete_Not", "ZeroIterationForLoop"),
        *("ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq", "ReplaceComparisonOperator_Is_IsNot"),
        *("ReplaceComparisonOperator_IsNot_Is", "ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt"),
        *("ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt", "ReplaceBinaryOperator_Add_Sub"),
        "ReplaceBinaryOperator_Sub_Add",
    )
} | {operator.__name__: operator for operator in OWN}
# Words that say how values are kept in memory or how code must write them, which the type checker holds, and the assertion that
# what is zipped has one length.
IDLE_WORDS = ("gc=False", "frozen=True", "eq=False", "kw_only=True", "strict=True")


class Place(NamedTuple):
    """Where a defect of which kind can be planted: the first such place of the file, the second, and so on."""

    file: str
    operator: str
    occurrence: int
    text: str  # the line where it begins


class Mutant(NamedTuple):
    """One defect: where, the lines it changes, and the whole file with it."""

    file: str
    line: int
    before: str
    after: str
    code: str


def places(file: str) -> Iterator[Place]:
    """Yield every place of a file where a defect can be planted."""
    code = (SOURCE / file).read_text()
    nodes, lines = list(ast_nodes(get_ast(code))), code.splitlines()
    for name, operator_class in OPERATORS.items():
        operator = operator_class()
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (begin, _) in enumerate(positions):
            yield Place(file, name, occurrence, lines[begin[0] - 1])


def planted(place: Place) -> Mutant:
    """Return the code of a file with a defect."""
    code = (SOURCE / place.file).read_text()
    changed = mutate_code(code, OPERATORS[place.operator](), place.occurrence)
    return Mutant(place.file, *_difference(code, changed), changed)


def sampled(files: list[str], count: int, seed: int, *, operators: str = "", lines: str = "") -> list[Mutant]:
    """Return a sample of the defects of files, the same one for the same seed, of operators and lines that match."""
    wanted, said = re.compile(operators), re.compile(lines)
    found = [one for file in files for one in places(file) if wanted.search(one.operator) and said.search(one.text)]
    print(f"{len(found)} defects in {len(files)} files; {min(count, len(found))} are tried", flush=True)
    random.Random(seed).shuffle(found)  # noqa: S311
    idle = {file: set(idle_lines((SOURCE / file).read_text())) for file in files}
    worthy = (mutant for mutant in map(planted, found) if mutant.line not in idle[mutant.file] and _is_defect(mutant))
    return list(itertools.islice(worthy, count))


def _is_defect(mutant: Mutant) -> bool:
    try:
        compile(mutant.code, mutant.file, "exec")
    except SyntaxError:
        return False
    turned = {word: word.replace("False", "True") if "False" in word else word.replace("True", "False") for word in IDLE_WORDS}
    return not any(
        mutant.before == mutant.after.replace(other, word) for word, other in turned.items() if word in mutant.before
    )


def idle_lines(code: str) -> Iterator[int]:
    """Yield the lines where another value is no defect: decorators, assertions, log lines, type variables, named limits."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Assert() | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node.lineno
            case ast.ClassDef(bases=[ast.Name(id="Protocol"), *_]):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
                yield from range(node.decorator_list[0].lineno, (node.end_lineno or node.lineno) + 1)
            case ast.FunctionDef(name="__repr__"):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (decorator.lineno for decorator in node.decorator_list)
            case ast.Module():
                yield from (one.lineno for one in node.body if _is_limit(one) or _is_type_variable(one))


def _is_limit(statement: ast.stmt) -> bool:
    """Return whether a statement gives names to numbers alone."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    numbers = statement.value.values if isinstance(statement.value, ast.Dict) else [statement.value]
    return all(_is_number(part) for number in numbers for part in ast.walk(number))


def _is_type_variable(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
            return True
    return False


def _is_number(part: ast.AST) -> bool:
    if isinstance(part, ast.Constant):
        return isinstance(part.value, int | float)
    return isinstance(part, ast.BinOp | ast.Tuple | ast.operator | ast.expr_context)


def _difference(code: str, changed: str) -> tuple[int, str, str]:
    lines, others = code.splitlines(), changed.splitlines()
    for tag, begin, end, first, last in difflib.SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if tag != "equal":
            return begin + 1, " ".join(map(str.strip, lines[begin:end])), " ".join(map(str.strip, others[first:last]))
    raise ValueError("the defect changes no line")
