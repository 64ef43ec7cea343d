"""What an action touches is read from its declaration and its inputs; what cannot be read touches everything."""

import sys

import pytest

from comity.core.agent.effects import EVERYTHING, TOUCHED_MAX, declare


def act(path="src/default.py", files=None, **more): ...


def touched(touches, **inputs):
    return declare(touches, act).touched(inputs)


@pytest.mark.parametrize(
    ("touches", "inputs", "expected"),
    [
        (["src/api/**", "topic:payments"], {}, ("src/api/**", "topic:payments")),
        (["$.path"], {"path": "a.py"}, ("a.py",)),
        (["$.path"], {}, ("src/default.py",)),
        (["$.files"], {}, ()),
        (["$.files"], {"files": ["a", "b", "a"]}, ("a", "b")),
        (["$.change.files"], {"change": {"files": ["a", ["b"]]}}, ("a", "b")),
        (["$.change.files"], {}, ()),
        (["$.change.files"], {"change": None}, ()),
        (["$.changes.path"], {"changes": [{"path": "a"}, {"path": "b"}, {}]}, ("a", "b")),
        (["$.path", "docs"], {"path": "a"}, ("docs", "a")),
        (["$.path"], {"path": 5}, EVERYTHING),
        (["$.path"], {"path": {"name": "a"}}, EVERYTHING),
        (["$.path.name"], {"path": "a"}, EVERYTHING),
        (["$.files"], {"files": ["x"] * (TOUCHED_MAX + 1)}, EVERYTHING),
        (lambda inputs: [f"src/{inputs['module']}"], {"module": "api"}, ("src/api",)),
        (lambda inputs: inputs["path"], {}, ("src/default.py",)),
        (lambda inputs: [f"src/{inputs['module']}"], {}, EVERYTHING),
        (lambda inputs: {"a": "b"}, {}, EVERYTHING),
        (lambda inputs: sys.exit(0), {}, EVERYTHING),
        (lambda inputs: None, {}, ()),
    ],
)
def test_what_is_touched(touches, inputs, expected):
    assert touched(touches, **inputs) == expected


def raise_(error):
    raise error


def test_what_ends_the_program_is_no_failure_of_the_function_and_everything_else_is():
    with pytest.raises(KeyboardInterrupt):
        touched(lambda _: raise_(KeyboardInterrupt))
    assert touched(lambda _: raise_(GeneratorExit)) == EVERYTHING


def test_nothing_declared_is_nothing_to_judge():
    assert declare((), act) is None


@pytest.mark.parametrize("wrong", ["src/**", [""], [5], ["$."], ["$.a..b"]])
def test_a_declaration_that_says_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="touches"):
        declare(wrong, act)


def test_a_function_without_a_readable_signature_has_no_defaults():
    assert declare(["$.x"], type).touched({"x": "a"}) == ("a",)
