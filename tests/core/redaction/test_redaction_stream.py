"""Streams: pieces give the same text as the whole, and little is held back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redaction_corpus import PERSONAL_TEXTS, new_vault, of_detectors, plain, texts

from comity.core.redaction import (
    DETECTORS,
    HELD_CHARS_MAX,
    Category,
    Scanner,
    StreamRedactor,
    StreamRestorer,
    redact_text,
    restore_text,
)

PROSE = "and so the whole paragraph went on about nothing in particular, as prose will do when nobody stops it, "


def cut(text, sizes):
    """Return `text` in pieces whose sizes repeat `sizes`."""
    pieces, position, index = [], 0, 0
    while position < len(text):
        size = sizes[index % len(sizes)]
        pieces.append(text[position : position + size])
        position += size
        index += 1
    return pieces


def redacted(text, sizes, scanner=None):
    stream = StreamRedactor(new_vault(), **({"scanner": scanner} if scanner else {}))
    out = "".join(stream.feed(piece) for piece in cut(text, sizes)) + stream.finish()
    return out, stream.found


SIZES = st.lists(st.integers(1, 70), min_size=1, max_size=5)


@given(texts(12), SIZES)
@example("call " + PROSE + "219-09-9999 " + PROSE + "jane@example.com", [1])
@example("phones: " + ", ".join(f"416555{number:04}" for number in range(90)), [11])
@example("mail " + " ".join("anna.elisabeth.lindgren-and-her-sister@example.com") + " " + PROSE, [5])
@example("1" * 2000 + " 4111 1111 1111 1111", [7])
@example("x" * 700 + "@example.com " + "a." * 400 + "b@example.com", [13])
def test_pieces_give_what_the_whole_gives(text, sizes):
    whole = redact_text(text, new_vault())
    assert redacted(text, sizes) == (whole.text, list(whole.found))


@pytest.mark.parametrize(("name", "rows"), of_detectors(PERSONAL_TEXTS))
def test_a_value_split_at_any_place_is_found(name, rows):
    for row in rows:
        value, after = plain(row), f" {PROSE}"
        expected = redact_text(PROSE + value + after, new_vault()).text
        for size in (1, 7):
            # The prose itself comes in two pieces: split anywhere, it is the subject of the test above.
            stream = StreamRedactor(new_vault())
            assert "".join(map(stream.feed, [PROSE, *cut(value, [size]), after])) + stream.finish() == expected


@given(st.text(alphabet="0123456789-. ab@", max_size=2500), SIZES)
def test_what_is_held_back_is_bounded(text, sizes):
    stream = StreamRedactor(new_vault())
    fed = given_out = 0
    for piece in cut(text, sizes):
        fed += len(piece)
        given_out += len(restore_text(stream.feed(piece), stream._vault))
        assert fed - given_out <= 2 * HELD_CHARS_MAX + len(piece)


def test_prose_flows_at_once_but_for_its_last_words():
    stream = StreamRedactor(new_vault())
    out = "".join(stream.feed(piece) for piece in cut(PROSE * 3, [5]))
    assert len(PROSE * 3) - len(out) < 100


def test_the_last_words_wait_for_what_may_make_them_an_address():
    for count in range(40, 90):
        text = "so " * (count // 3) + "a" * (count % 3 + 1) + " john (at) example.com"
        out, found = redacted(text, [1])
        assert len(found) == 1
        assert "john" not in out


def test_a_value_just_let_go_ends_the_one_it_touches():
    for count in range(0, 28, 3):
        text = "x" * count + " 219-09-9999+41 44 668 18 00" * 40  # longer than what is held back
        assert redacted(text, [1])[0] == redact_text(text, new_vault()).text


def test_context_already_passed_on_still_counts():
    stream = StreamRedactor(new_vault())
    out = stream.feed(PROSE * 2 + "my passport number is ")
    out += stream.feed("AB123456 ") + stream.finish()
    assert out.endswith("[[PASSPORT_1_kqzmtwbf]] ")


class Names:
    """An outside recogniser: finds one name, words and all, and gives no hint."""

    name, type, category, priority, hint = "names", "PERSON", Category.CONTACT, 5, None

    def spans(self, text, start=0):
        place = text.find("jane of the long and winding name that no pattern would ever take for one", start)
        if place >= 0:
            yield place, place + 73

    def fits(self, before, after):
        return True

    def names(self, key):
        return False


@given(SIZES)
def test_an_outside_recogniser_may_find_values_made_of_prose(sizes):
    scanner = Scanner([*DETECTORS, Names()])
    text = PROSE + "jane of the long and winding name that no pattern would ever take for one lives here. " + PROSE
    expected = redact_text(text, new_vault(), scanner=scanner).text
    assert "[[PERSON_1_kqzmtwbf]]" in expected
    assert redacted(text, sizes, scanner)[0] == expected


@given(texts(6), SIZES)
def test_a_restored_stream_equals_the_restored_text(text, sizes):
    vault = new_vault()
    hidden = redact_text(text, vault).text
    stream = StreamRestorer(vault)
    assert "".join(stream.feed(piece) for piece in cut(hidden, sizes)) + stream.finish() == restore_text(hidden, vault)


def test_a_restored_stream_holds_back_no_more_than_a_token():
    stream = StreamRestorer(new_vault())
    assert stream.feed("array[[") == "array"
    assert stream.feed("x" * 200) != ""


def test_exactly_the_last_two_words_of_prose_are_held_back():
    text = "there was nothing in this long sentence that could have been hidden, not by anybody "
    assert text[len(StreamRedactor(new_vault()).feed(text)) :] == "by anybody "


def test_a_long_piece_without_prose_is_let_go_but_for_its_end():
    text = "a1-b2-c3 " * 600
    assert len(text) - len(StreamRedactor(new_vault()).feed(text)) <= HELD_CHARS_MAX


def test_text_without_an_open_token_is_restored_at_once():
    vault = new_vault()
    token = vault.token("EMAIL", "ann@example.com")
    stream = StreamRestorer(vault)
    assert stream.feed("write") == "write"
    assert stream.feed(f" to {token} today") == " to ann@example.com today"
    assert (stream.feed("and ["), stream.feed("1] too")) == ("and ", "[1] too")
