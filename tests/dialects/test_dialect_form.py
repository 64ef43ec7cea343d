"""Forms: every problem is named, and a document is written with the defaults it stated."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType, field

from comity.dialects.reading.form import PROBLEMS_MAX, Form, kept, marks_of, read, with_marks, write
from comity.errors import CallerError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(Form, frozen=True):
    written = frozenset({"size"})

    name: str
    size: int = 1
    note: str = ""


class Whole(Form, frozen=True):
    written = frozenset({"colour"})

    id: str
    part: Part
    colour: Colour = Colour.RED
    parts: tuple[Part, ...] = ()
    words: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    maybe: int | None = None
    rate: float | UnsetType = UNSET


parts = st.fixed_dictionaries({"name": st.just("n")}, optional={"size": st.integers(0, 2), "note": st.sampled_from(["", "x"])})
documents = st.fixed_dictionaries(
    {"id": st.just("i"), "part": parts},
    optional={
        "colour": st.sampled_from(["red", "blue"]),
        "parts": st.lists(parts, max_size=2),
        "words": st.lists(st.just("w"), max_size=1),
        "data": st.sampled_from([{}, {"a": {}}]),
        "maybe": st.none() | st.integers(0, 1),
        "rate": st.sampled_from([0.5, 1.0]),
    },
)


@given(documents)
def test_a_document_is_written_with_exactly_the_fields_it_stated(document):
    form = read(document, Whole)
    assert write(form, marks_of(document, form)) == document


def test_without_marks_only_what_is_always_written_or_said_is_written():
    form = read({"id": "i", "part": {"name": "n", "note": ""}, "words": [], "maybe": None}, Whole)
    assert write(form) == {"id": "i", "part": {"name": "n", "size": 1}, "colour": "red"}


def test_a_mark_never_hides_a_value_that_has_changed():
    form = Whole(id="i", part=Part(name="n", size=2), colour=Colour.BLUE)
    assert write(form, ["colour", "part.size"]) == {"id": "i", "part": {"name": "n", "size": 2}, "colour": "blue"}


def test_every_problem_is_named_at_any_depth():
    with pytest.raises(CallerError) as caught:
        read(
            {
                "part": {"size": "x", "weight": 1},
                "parts": [{"name": "n"}, 5, {}],
                "colour": "green",
                "maybe": None,
                "words": ["a", 1],
                "rate": None,
            },
            Whole,
        )
    assert {problem.path: problem.message for problem in caught.value.facts["problems"]} == {
        "id": "is required and missing",
        "part.name": "is required and missing",
        "part.size": "must be `int`, not `str`",
        "part.weight": "is not a field here; the fields are name, size, note",
        "parts[1]": "must be an object, not int",
        "parts[2].name": "is required and missing",
        "colour": "must be one of red, blue",
        "words[1]": "must be `str`, not `int`",
        "rate": "must be `float`, not `null`",
    }


def test_an_unknown_name_is_shown_as_far_as_it_can_be():
    with pytest.raises(CallerError) as caught:
        read({"id": "i", "part": {"name": "n"}, "x" * 1000: 1, "\x1b[2J": 2}, Whole)
    assert {problem.path for problem in caught.value.facts["problems"]} == {"x" * 64, "?"}


def test_a_thousand_problems_are_told_as_a_hundred():
    with pytest.raises(CallerError) as caught:
        read({f"k{number}": 1 for number in range(1000)}, Whole)
    assert len(caught.value.facts["problems"]) == PROBLEMS_MAX


@pytest.mark.parametrize("metadata", [{}, {"form.x": "colour"}, {"form.x": {"a": 1}}, {"form.x": [1, None]}])
def test_marks_that_are_none_are_ignored(metadata):
    assert kept(metadata, "x") == frozenset()


def test_marks_are_kept_apart_by_dialect():
    metadata = with_marks(with_marks({}, "x", ["b", "a"]), "y", [])
    assert metadata == {"form.x": ["a", "b"]}
    assert kept(metadata, "x") == {"a", "b"}
    assert kept(metadata, "y") == frozenset()
