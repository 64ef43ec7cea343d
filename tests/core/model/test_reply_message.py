"""Of a reply that is still being written, the user sees the message and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.model.reply.message import MessageStream

VALUES = st.recursive(
    st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6
)


def shown(text, size=1):
    stream = MessageStream()
    return "".join(stream.feed(text[start : start + size]) for start in range(0, len(text), size))


@given(
    message=st.text(),
    thought=st.text(),
    data=st.dictionaries(st.text() | st.just("message"), VALUES, max_size=3),
    ascii_only=st.booleans(),
    size=st.integers(1, 7),
)
def test_the_pieces_join_to_the_message_however_they_are_cut(message, thought, data, ascii_only, size):
    reply = {"thought": thought, "status": "success", "data": data, "message": message}
    expected = message.replace("\b", "").replace("\f", "")
    assert shown(json.dumps(reply, ensure_ascii=ascii_only), size) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"message": "hi", "thought": "message"} "message": "no"', "hi"),
        ('```json\n{"message": "hi"}\n```', "hi"),
        ('Maybe {"message": "a draft"}', ""),
        ('{"message": "first"} {"message": "second"}', "first"),
        ('{"data": {"message": "inner"}, "message": "outer"}', "outer"),
        ('{"thought": "message", "message": "cut o', "cut o"),
        ('["message", "x"]', ""),
        ('{"message": "\\ud83d\\ude00\\udc00\\uzzzz"}', "😀��"),
        ('{"message": 7}', ""),
    ],
)
def test_what_is_not_the_message_of_the_outermost_object_is_not_shown(text, message):
    assert shown(text) == message


def test_a_message_comes_out_while_it_is_written():
    stream = MessageStream()
    assert [stream.feed(piece) for piece in ('{"thought":"x","mess', 'age": "Hel', "lo", ' there"}')] == [
        "",
        "Hel",
        "lo",
        " there",
    ]


def test_what_opens_no_fence_is_not_kept():
    stream = MessageStream()
    assert stream.feed("```\n" * 100 + json.dumps({"message": "late"})) == ""
    assert len(stream._label) < 100
