"""Lists are tables where there is room, and ids can be copied whatever the room is."""

import io
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.cli.ui.listing import FOLDED_CHARS_LEAST, Listing
from comity.cli.ui.output import Output

ID = "01a1e31840fd720480ffc75586617003"


def shown(listing, chars):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        patch.delenv("FORCE_COLOR", raising=False)
        if chars is not None:
            patch.setenv("TTY_COMPATIBLE", "1")
            patch.setenv("TTY_INTERACTIVE", "0")
            patch.setenv("COLUMNS", str(chars))
        with redirect_stdout(io.StringIO()) as written:
            listing.show(Output(is_json=False, has_color=False))
    return written.getvalue().replace("\x1b[2m", "").replace("\x1b[0m", "")


def example():
    listing = Listing("when", "request id", "call", whole={"when", "request id"})
    listing.add("06:42:59", ID, "ANL ANL_NPV")
    listing.add("06:43:01", ID[::-1], "")
    return listing


def test_where_a_table_has_no_room_every_row_is_lines_of_its_own():
    first, second = shown(example(), 40).split("\n\n")
    assert first.splitlines() == ["when 06:42:59", f"request id {ID}", "call ANL ANL_NPV"]
    assert second.splitlines() == ["when 06:43:01", f"request id {ID[::-1]}"], "what is empty is left out"


@pytest.mark.parametrize("chars", [80, None], ids=["a terminal", "a file"])
def test_where_there_is_room_it_is_a_table(chars):
    titles, first, _ = shown(example(), chars).splitlines()
    assert titles.split() == ["when", "request", "id", "call"]
    assert first.split() == ["06:42:59", ID, "ANL", "ANL_NPV"]


@given(st.integers(20, 120), st.integers(1, 150), st.text("abc ", min_size=1, max_size=80))
def test_what_is_to_be_copied_is_never_cut_or_folded_and_words_are_not_one_letter_wide(chars, id_chars, words):
    listing = Listing("id", "words", whole={"id"})
    listing.add("x" * id_chars, words)
    lines = shown(listing, chars).splitlines()
    assert any("x" * id_chars in line for line in lines)
    assert len(lines) <= 2 + 2 * len(words) / min(FOLDED_CHARS_LEAST, chars // 2) + words.count(" ")


@pytest.mark.parametrize("chars", [40, 60, 80])
def test_a_code_is_never_broken(chars):
    listing = Listing("when", "id", "call", whole={"when", "id"})
    listing.add("2026-11-16 14:00:00", "e587d269", "ANL ANL_MARKET_SIZE CAPABILITY_UNAVAILABLE")
    assert any("CAPABILITY_UNAVAILABLE" in line for line in shown(listing, chars).splitlines())
