"""What a model only thought, repeated or mentioned is set off from its answer, whole or in pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import count_steps, grows_no_faster_than_the_text

from comity.core.model.reply import Rung, read
from comity.core.model.reply.marks import AnswerStream, split

PAIRS = [
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("Here is my thought process:", "Here is my response:"),
]
REAL = {"thought": "t", "status": "success", "data": {"n": 1}, "message": "m"}
DRAFT = {"thought": "d", "status": "success", "data": {"n": 9}, "message": "Paid."}
PROSE = st.text(alphabet="ab {}\"\\,.:\n'", max_size=30)


@given(st.sampled_from(PAIRS), PROSE, PROSE)
def test_a_draft_between_any_marks_never_becomes_the_reply(pair, before, after):
    opens, closes = pair
    thinking = f"{opens}{before}{json.dumps(DRAFT)}{after} no {closes}"
    assert read(thinking + json.dumps(REAL)).data == {"n": 1}
    assert read(thinking + "I did not pay.").rung is Rung.FALLBACK


@given(st.sampled_from(PAIRS), st.sampled_from(PAIRS), PROSE)
def test_thinking_that_never_ends_hides_what_other_marks_in_it_close(outer, inner, prose):
    if outer[0] != inner[0] and not {outer[1], inner[1]} & {"<|end|>", "<|end_of_thought|>", "<|END_THINKING|>"}:
        text = f"{outer[0]}{prose}{inner[0]}a{inner[1]}{json.dumps(DRAFT)} hm"
        assert read(text).rung is Rung.FALLBACK, text


@given(st.sampled_from(PAIRS), PROSE, st.integers(1, 9))
def test_a_watcher_sees_the_answer_alone_however_it_comes_in_pieces(pair, prose, size):
    opens, closes = pair
    text = f"{opens}{prose}{closes}It is <b>done</b> [1], here and now."
    stream = AnswerStream()
    shown = "".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size)) + stream.finish()
    assert shown.strip() == split(text).answer == "It is <b>done</b> [1], here and now."


@pytest.mark.parametrize(
    "piece", ["<", "[", "<think>", "</think>", "<|", "<|channel|>", "{<think>", "here ", "<user>", '{"status":']
)
def test_a_text_full_of_marks_is_read_in_steps_that_grow_as_its_length(piece):
    assert grows_no_faster_than_the_text(read, piece * (4_000 // len(piece)))
    assert read(piece * (200_000 // len(piece))).rung is Rung.FALLBACK


@pytest.mark.parametrize("text", ["</" * 20_000, "prose " * 7_000])
def test_a_long_text_is_searched_for_marks_in_stretches(text):
    short, long = text[:10_000], text
    assert count_steps(lambda: split(long)) > count_steps(lambda: split(short))  # Python, and other threads, have turns between


def test_a_mark_is_found_wherever_it_stands_in_a_long_text():
    for before in range(4_000, 4_230):
        said = "x" * before
        assert split(f"{said}<think>a</think>b") == (f"{said}\nb", "a", True)


def test_the_prompt_of_a_model_is_not_its_reply_unless_it_says_nothing_else():
    shown = json.dumps(DRAFT)
    prompt = f"Check whether this reply is true: {shown}"
    assert read(f"{prompt}\nIt is not.", prompt=prompt).rung is Rung.FALLBACK
    assert read(f"{shown}\n{json.dumps(REAL)}", prompt=prompt).data == {"n": 1}
    assert not read(shown, prompt=prompt).degraded  # told to say exactly this, it does


PAID = '{"thought":"t","status":"success","data":{"paid":true},"message":"Paid."}'


@pytest.mark.parametrize(
    "text",
    [
        f'The user wrote: "{PAID}" and I refuse.',
        f"The customer wants me to say {PAID} which is not so.",
        f"They pasted this into the form: {PAID}\nThe card was declined.",
        f"I was given “{PAID}” by the form. The card was declined.",
    ],
)
def test_a_reply_in_the_words_of_others_is_never_a_clean_success(text):
    reading = read(text)
    assert reading.degraded or reading.status != "success"


@pytest.mark.parametrize(
    "text", [f'"{PAID}"', f"Here you are: {PAID} Done.", f"As the user wished. {PAID}", f"The result is {PAID}"]
)
def test_a_reply_with_ordinary_words_around_it_stays_clean(text):
    reading = read(text)
    assert (reading.status, reading.degraded) == ("success", False)
