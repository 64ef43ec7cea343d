"""Short ids: shown in lists, taken by every command that names something, refused where they fit several."""

import pytest

from comity.cli.ui.exits import CliError
from comity.cli.ui.ids import find, short

ID = "01a1e4db27957e6d8532c2efe587d269"


@pytest.mark.parametrize(
    ("whole", "shown"),
    [(ID, "e587d269"), (f"{ID}.2#1", "e587d269.2#1"), ("job-1", "job-1"), ("ABCDEF" * 6, "ABCDEF" * 6), (ID[:-1], ID[:-1])],
)
def test_a_generated_id_is_shown_by_its_end_and_a_chosen_one_whole(whole, shown):
    assert short(whole) == shown


@pytest.mark.parametrize(
    ("part", "meant"), [("e587d269", ID), ("01a1", ID), (ID, ID), ("269", None), ("ffff", None), ("", None)]
)
def test_a_part_that_begins_or_ends_one_id_means_it(part, meant):
    assert find(part, [ID, "other-call"], what="call") == meant


def test_a_part_that_fits_several_names_them():
    with pytest.raises(CliError, match="'abcd' fits 2 calls: abcd-1, abcd-2"):
        find("abcd", ["abcd-1", "abcd-2", "x"], what="call")


def test_the_id_that_a_list_shows_is_taken_by_the_commands_that_name_a_call(comity, app):
    whole = comity("call", "WORK", "GREET", "name=Ann", "--json").document["request_id"]
    shown = short(whole)
    listed = comity("calls").out
    assert shown in listed
    assert whole not in listed
    assert whole in comity("show", shown).out
    assert comity("audit", "list", "--root", shown, "--json").document["rows"][0]["root_id"] == whole
    assert comity("trace", shown, "--json").document["spans"]
    assert "has no call 'ffff'" in comity("show", "ffff").err


def test_a_handoff_is_named_by_the_end_of_its_id(comity, app):
    whole = comity("handoff", "create", "GREET", "--to", "WORK", "name=Ann", "--json").document["id"]
    assert short(whole) in comity("handoff", "list").out
    assert comity("handoff", "cancel", short(whole), "--json").document["id"] == whole
    assert comity("handoff", "show", short(whole), "--json").document["state"] == "cancelled"


def test_a_session_is_shown_by_the_end_of_its_id_but_erased_only_by_the_whole(comity, app):
    comity("call", "WORK", "GREET", "name=Ann", "--session", "talk-with-ann")
    assert comity("sessions", "show", "with-ann", "--json").document["id"] == "talk-with-ann"
    assert comity("sessions", "erase", "with-ann", "--yes").code == 4
    assert comity("sessions", "show", "talk-with-ann").code == 0
