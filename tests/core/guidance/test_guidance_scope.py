"""Which paths a scope covers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import count_steps

from comity.core.guidance.scope import ALTERNATIVES_MAX, GlobError, compile_scope, concerns, covers, normalize


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        (
            "src/api/**",
            ["src/api/x.py", "src/api/a/b.py", "src/api", "src/api/"],
            ["src/apix/x.py", "src", "other/src/api/x.py"],
        ),
        ("src/api/*", ["src/api/x.py"], ["src/api/a/b.py", "src/api"]),
        ("src/*.py", ["src/a.py", "src/.py"], ["src/a.pyc", "src/a/b.py"]),
        ("**/*.py", ["x.py", "a/b/x.py"], ["x.txt", "a/x.py/y"]),
        ("**", ["x", "a/b", ""], []),
        ("", ["x", "a/b"], []),
        ("src/**/test_?.py", ["src/test_a.py", "src/a/b/test_x.py"], ["src/test_ab.py", "test_a.py"]),
        ("src/api", ["src/api", "src/api/x.py", "src/api/a/b"], ["src/apix", "src"]),
        ("src/api/", ["src/api", "src/api/x.py"], ["src/apix"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "a/b"]),
        ("src/{api,auth}/**", ["src/api/x", "src/auth/y"], ["src/web/x", "src/{api,auth}/x"]),
        ("{a,b{c,d}}.py", ["a.py", "bc.py", "bd.py"], ["b.py"]),
        ("v[0-9].py", ["v0.py", "v9.py"], ["va.py", "v10.py"]),
        ("v[!0-9].py", ["va.py"], ["v0.py"]),
        ("[]a].py", ["].py", "a.py"], ["b.py"]),
        ("./src//api/**", ["src/api/x"], []),
        ("a**b", ["axxb", "ab"], ["a/b"]),
        ("SRC/**", ["SRC/x"], ["src/x"]),
    ],
)
def test_a_scope_covers_what_its_marks_say(scope, inside, outside):
    assert [path for path in inside if not covers(scope, path)] == []
    assert [path for path in outside if covers(scope, path)] == []


@pytest.mark.parametrize(
    "path",
    [
        "src/api/x.py",
        "./src/api/x.py",
        "src/web/../api/x.py",
        "src//api/./x.py",
        "src\\api\\x.py",
        "/home/me/project/src/api/x.py",
        "~/project/src/api/x.py",
        "../project/src/api/x.py",
        "src/../../project/src/api/x.py",
        "C:\\project\\src\\api\\x.py",
        "file:///home/me/project/src/api/x.py",
    ],
)
def test_no_way_of_writing_a_path_escapes_a_scope(path):
    assert covers("src/api/**", path)


def test_a_path_that_leaves_a_scope_again_is_not_in_it():
    assert not covers("src/api/**", "src/api/../web/x.py")
    assert normalize("../../x") == ("..", "..", "x")


@pytest.mark.parametrize("scope", ["src/{api", "src/api}", "src/[a", "[!]", "{a,b}" * 7])
def test_a_scope_that_cannot_be_read_is_refused(scope):
    with pytest.raises(GlobError):
        compile_scope(scope)


def test_as_many_alternatives_as_the_limit_are_taken():
    assert len(compile_scope("{a,b}" * 6)) == ALTERNATIVES_MAX


NAMES = st.text("ab", min_size=1, max_size=3)
PATTERN_NAMES = st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=4).filter(lambda name: "**" not in name))


@given(st.lists(PATTERN_NAMES, min_size=1, max_size=4), st.lists(NAMES, min_size=1, max_size=5))
def test_a_scope_agrees_with_the_regular_expression_it_means(pattern, names):
    # In the expression every name ends with a slash, so that ** may stand for none.
    expression = "".join(
        "(?:[^/]+/)*" if name == "**" else name.replace("*", "[^/]*").replace("?", "[^/]") + "/" for name in pattern
    )
    scope = "/".join(pattern)
    if any(mark in scope for mark in "*?"):
        assert covers(scope, "/".join(names)) is bool(re.fullmatch(expression, "/".join(names) + "/"))


def test_a_hostile_scope_costs_little():
    scope, path = "/".join(["**", "*a*a*a*a*b"] * 40), "/".join(["a" * 60] * 40)
    assert count_steps(lambda: covers(scope, path)) < 100_000
    assert not covers(scope, path)


# --- what an action concerns ---


@pytest.mark.parametrize(
    ("scope", "touched", "untouched"),
    [
        ("src/api/**", ["src/api/x.py", "src", "src/", ".", "", "src/**", "**/*.py", "src/{api,web}/x", "s*/api", "/repo/src", "/repo/s?c/**", "/"], ["srcx", "src/web/", "/repo/web/x"]),
        ("src/*.py", ["src", "src/[ab].py", "src/?.py"], ["src/a/", "src/*.txt"]),
        ("**/test_?.py", ["tests/", "**/test_[ab].py", "**"], ["README.md", "docs", "**/*.txt"]),
        ("app/*/page", ["app/[id]/page", "app/[id/page"], ["app/[id/x", "app/[id"]),
        ("", ["x", "topic:payments", "**"], []),
        ("**", ["x", "topic:payments"], []),
        ("topic:payments", ["topic:payments", "topic:Payments", "topic: payments"], ["payments", "topic:pay", "src/**"]),
        ("topic:pay*", ["topic:payments"], ["topic:refunds"]),
        ("src/**", ["src/x"], ["topic:src", "topic:src/x"]),
    ],
)  # fmt: skip
def test_an_action_concerns_a_scope_if_it_may_touch_what_lies_in_it(scope, touched, untouched):
    assert [one for one in touched if not concerns(scope, one)] == []
    assert [one for one in untouched if concerns(scope, one)] == []


@given(
    st.lists(PATTERN_NAMES, min_size=1, max_size=3).map("/".join),
    st.lists(PATTERN_NAMES, min_size=1, max_size=3).map("/".join),
    st.lists(NAMES, min_size=1, max_size=4).map("/".join),
)
def test_two_patterns_that_cover_one_path_concern_each_other(scope, touched, path):
    if any(mark in touched for mark in "*?") and covers(scope, path) and covers(touched, path):
        assert concerns(scope, touched)


@given(st.lists(PATTERN_NAMES, min_size=1, max_size=4).map("/".join), st.lists(NAMES, max_size=5).map("/".join))
def test_what_a_scope_covers_concerns_it(scope, path):
    assert concerns(scope, path) or not covers(scope, path)


def test_a_hostile_pattern_costs_little():
    scope, touched = "/".join(["**", "*a*a*a*a*b"] * 10), "/".join(["**", "*a*a*c*a*a"] * 10)
    assert count_steps(lambda: concerns(scope, touched)) < 300_000
