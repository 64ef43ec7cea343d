"""A registry file means what it seems to mean, or is an error that says where."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from comity.core.agent.agent import DeclarationError
from comity.loading.strict_file import MANIFEST_BYTES_MAX, MANIFEST_NESTING_MAX, Lines, read

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def read_text(tmp_path, text, name="r.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read(path).value


def problem(tmp_path, text, name="r.yaml"):
    with pytest.raises(DeclarationError) as caught:
        read_text(tmp_path, text, name)
    return str(caught.value)


@given(PLAIN)
def test_json_comes_back_as_it_was_written(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    assert read(path).value == value


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_any_text_as_yaml_is_plain_data_or_a_declaration_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        value = read(path).value
    except DeclarationError as error:
        assert str(error).startswith(str(path))
    else:
        assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", "yes"),
        ("a: on", "on"),
        ("a: 2024-01-01", "2024-01-01"),
        ("a: 010", "010"),
        ("a: 1:30", "1:30"),
        ("a: .nan", ".nan"),
        ("a: 30_000", 30_000),
        ("a: -1.5e3", -1500.0),
        ("a: true", True),
        ("a: ~", None),
        ("a:", None),
    ],
)
def test_plain_words_in_yaml_are_text_unless_json_knows_them(tmp_path, text, value):
    found = read_text(tmp_path, text)["a"]
    assert found == value
    assert type(found) is type(value)


def test_an_alias_bomb_is_refused_before_it_is_built(tmp_path):
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
    assert problem(tmp_path, f"l0: &l0 x\n{levels}") == (
        f"{tmp_path}/r.yaml:1: anchors (&) and aliases (*) are not allowed in a registry file"
    )


def test_a_tag_is_refused_whatever_it_would_make(tmp_path):
    text = "agents:\n  - !!python/object/apply:os.system ['true']"
    assert ":2: tags (!) are not allowed" in problem(tmp_path, text)


@pytest.mark.parametrize("name", ["r.json", "r.yaml"])
def test_exactly_the_allowed_nesting_passes_and_one_more_is_refused(tmp_path, name):
    def nested(levels):
        return "[" * levels + "]" * levels

    read_text(tmp_path, nested(MANIFEST_NESTING_MAX), name)
    assert f"deeper than the {MANIFEST_NESTING_MAX} levels" in problem(tmp_path, nested(MANIFEST_NESTING_MAX + 1), name)
    assert "nested deeper" in problem(tmp_path, "[" * 200_000, "r.json")


@pytest.mark.parametrize("name", ["r.json", "r.yaml"])
def test_a_key_that_stands_twice_is_refused(tmp_path, name):
    assert "'a' stands twice" in problem(tmp_path, '{"a": 1, "a": 2}', name)


def test_a_key_that_stands_twice_deep_in_a_json_file_is_named_by_its_path(tmp_path):
    assert "'a[1].b' stands twice" in problem(tmp_path, '{"a": [0, {"b": 1, "b": 2}]}', "r.json")


def test_a_key_that_is_not_text_is_refused(tmp_path):
    assert ":2: not YAML: the key '1' is not text; put it in quotes" in problem(tmp_path, "b: 1\n1: 2")


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("NaN", "r.json", "NaN is not a number"),
        ("1e999", "r.json", "a number that is too large"),
        ("a: 1e999", "r.yaml", "a number that is too large"),
        ("9" * 5000, "r.json", "too many digits"),
        ("a: " + "9" * 5000, "r.yaml", "too many digits"),
        ('{"a":\n 1,}', "r.json", "r.json:2: not JSON"),
        ("a: [1", "r.yaml", "not YAML"),
        ("a: 1\n---\nb: 2", "r.yaml", "not YAML"),
        ("\x00", "r.yaml", "not YAML"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_reason(tmp_path, text, name, told):
    assert told in problem(tmp_path, text, name)


def test_a_file_that_is_too_large_missing_not_text_or_of_another_kind_is_refused(tmp_path):
    large = tmp_path / "large.json"
    large.write_bytes(b'"' + b"x" * MANIFEST_BYTES_MAX + b'"')
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"a: \xff")
    for path, told in (
        (large, f"larger than the {MANIFEST_BYTES_MAX:,} bytes"),
        (broken, "not UTF-8 text: byte 3"),
        (tmp_path / "none.yaml", "cannot be read: No such file"),
        (tmp_path / "agents.toml", "must end in .yaml, .yml, .json"),
    ):
        with pytest.raises(DeclarationError, match=r".*") as caught:
            read(path)
        assert told in str(caught.value)


def test_lines_lead_to_the_place_or_to_the_last_step_there_is():
    lines = Lines("agents:\n  - id: A\n  - id: B\n    tags: [x,\n      y]\n")
    assert lines.of(("agents", 1, "tags", 1)) == 5
    assert lines.of(("agents", 0, "id")) == 2
    assert lines.of(("agents", 1, "missing", "deeper")) == 3
    assert lines.of(()) is None
    assert Lines("\t{").of(("agents",)) is None


CUBE = yaml.safe_dump([[[[n, n] for n in range(3)] for _ in range(3)] for _ in range(3)], default_flow_style=False)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_every_line_named_is_the_line_yaml_itself_reports(path):
    text = CUBE
    node = yaml.compose(text)
    for step in path:
        if not isinstance(node, yaml.SequenceNode) or step >= len(node.value):
            return
        node = node.value[step]
    assert Lines(text).of(tuple(path)) == node.start_mark.line + 1


@pytest.mark.parametrize(("text", "place"), [('{"a": [{"b": "x\\ud800"}]}', "a[0].b"), ('{"a": {"\\ud800": 1}}', "a.?")])
def test_half_of_a_surrogate_pair_is_refused_by_its_place(tmp_path, text, place):
    assert f"{place} holds a surrogate" in problem(tmp_path, text, "r.json")
    assert "not YAML" in problem(tmp_path, text, "r.yaml")
    assert read_text(tmp_path, '{"a": "\\ud83d\\ude00"}', "r.json") == {"a": "😀"}
