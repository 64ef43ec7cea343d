"""The rules of the W3C trace-context test suite, on our reader and writer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.tracing.trace_context import STATE_MEMBERS_MAX, TraceContext, read, read_state

TRACE, SPAN = "12345678901234567890123456789012", "1234567890123456"
PARENT = f"00-{TRACE}-{SPAN}-01"

HEX = "0123456789abcdef"
TRACE_IDS = st.text(HEX, min_size=32, max_size=32).filter(lambda one: one.strip("0"))
SPAN_IDS = st.text(HEX, min_size=16, max_size=16).filter(lambda one: one.strip("0"))
KEYS = st.builds(
    str.__add__,
    st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789"),
    st.text("abcdefghijklmnopqrstuvwxyz0123456789_-*/@", max_size=255),
)
_VALUE_CHARS = [chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",="]
VALUES = st.builds(str.__add__, st.text(_VALUE_CHARS, max_size=20), st.sampled_from([c for c in _VALUE_CHARS if c != " "]))


@given(TRACE_IDS, SPAN_IDS, st.integers(0, 3))
def test_what_is_written_is_read_back(trace_id, span_id, flags):
    context = TraceContext(trace_id, span_id, flags)
    assert read(context.traceparent) == context
    assert context.is_sampled == bool(flags & 1)


@given(st.one_of(st.text(max_size=80), st.text("0123456789abcdef-", min_size=50, max_size=60)))
def test_whatever_comes_is_read_or_ignored_and_never_raises(text):
    found = read(text, text)
    assert found is None or (len(found.trace_id), len(found.span_id)) == (32, 16)


@pytest.mark.parametrize(
    "broken",
    [
        f"{PARENT}.",
        f"{PARENT}-what-the-future-will-be-like",
        f"cc-{TRACE}-{SPAN}-01.what-the-future-will-be-like",
        f"ff-{TRACE}-{SPAN}-01",
        f".0-{TRACE}-{SPAN}-01",
        f"0.-{TRACE}-{SPAN}-01",
        f"000-{TRACE}-{SPAN}-01",
        f"0-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-.{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE[:-1]}.-{SPAN}-01",
        f"00-{TRACE}3-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}7-01",
        f"00-{TRACE}-{SPAN[:-1]}-01",
        f"00-{TRACE}-{SPAN}-.0",
        f"00-{TRACE}-{SPAN}-001",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE[:-1]}A-{SPAN}-01",
        f"00-{TRACE[:-1]}\N{ARABIC-INDIC DIGIT TWO}-{SPAN}-01",
        PARENT + "\n",
        "",
        None,
        7,
        [PARENT, PARENT],
        [],
    ],
)
def test_a_broken_parent_is_no_parent(broken):
    assert read(broken, "foo=1") is None


@pytest.mark.parametrize(
    "sound",
    [
        f"cc-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like",
        f" {PARENT}",
        f"\t{PARENT}",
        f"{PARENT} ",
        f"\t {PARENT} \t",
        [PARENT],
    ],
)
def test_a_parent_of_a_later_version_or_with_blanks_around_is_joined_and_answered_in_our_version(sound):
    found = read(sound)
    assert found == TraceContext(TRACE, SPAN)
    assert found.traceparent == PARENT


def test_the_flags_that_are_known_are_passed_on_and_the_others_are_not():
    assert read(f"00-{TRACE}-{SPAN}-02").traceparent.endswith("-02")
    assert read(f"00-{TRACE}-{SPAN}-ff").traceparent.endswith("-03")
    assert not read(f"00-{TRACE}-{SPAN}-fe").is_sampled


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=STATE_MEMBERS_MAX), st.sampled_from([",", " , ", "\t,", ",,"]))
def test_a_sound_state_keeps_its_members_and_their_order(members, comma):
    texts = [f"{key}={value}" for key, value in members.items()]
    stripped = [text.strip(" \t") for text in texts]
    assert read_state(comma.join(texts)) == ",".join(stripped)
    assert read_state(texts) == ",".join(stripped)


@pytest.mark.parametrize(
    "broken",
    ["foo =1", "FOO=1", "foo.bar=1", "@foo=1,bar=2", "foo=bar=baz", "foo=,bar=3", "foo", "=1", "foo=\u00e9", "foo=1;\x00"],
)
def test_one_wrong_member_drops_the_whole_state_but_not_the_parent(broken):
    assert read(PARENT, broken) == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize("key", ["foo@", "foo@@bar", "foo@bar@baz", "z" * 256, "t" * 241 + "@" + "v" * 14])
def test_keys_of_the_grammar_are_kept(key):
    assert read_state(["foo=1", f"{key}=1"]) == f"foo=1,{key}=1"


def test_a_key_or_value_that_is_too_long_drops_the_state():
    assert read_state(["foo=1", "z" * 257 + "=1"]) == ""
    assert read_state("foo=" + "v" * 256) == "foo=" + "v" * 256
    assert read_state("foo=" + "v" * 257) == ""


def test_so_many_members_are_kept_and_one_more_drops_them_all():
    members = [f"bar{number:02}={number:02}" for number in range(STATE_MEMBERS_MAX + 1)]
    assert read_state(members[:-1]) == ",".join(members[:-1])
    assert read_state(members) == ""


def test_of_a_repeated_key_the_first_counts():
    assert read_state(["foo=1,foo=2", "bar=3"]) == "foo=1,bar=3"
