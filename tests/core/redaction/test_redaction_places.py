"""What reads as a street or as an address under a label, and what only looks like one; and the word over a user's name."""

from __future__ import annotations

import pytest

from comity.core.redaction import place
from comity.core.redaction.users import is_login, named_user


@pytest.mark.parametrize(
    ("value", "is_street"),
    [
        ("12 Elm Street", True),
        ("12 High Street", True),
        ("12 Tennis Court", True),
        ("3 High Tennis Court", False),
        ("3 High Court", False),  # which judges sit in
    ],
)
def test_a_number_and_a_name_are_a_street(value, is_street):
    assert place._accept_street(value) == (len(value) if is_street else 0)


@pytest.mark.parametrize(
    ("value", "is_address"),
    [
        ("12 Elm Street, London", True),
        ("12 Elm 1050", True),
        ("12 Elm Street", False),  # one part
        ("Elm Street, London", False),  # no number
        ("1234567 Elm Street, London", False),
        ("at 0x12, Elm 3", False),  # in memory
        ("http://elm, Street 12", False),
        ("host 10.0.0.1, Elm 12", False),
        ("12, 14", False),  # no name
        ("12 ab, cd", False),
        ("東京都 1, 港区", True),
    ],
)
def test_an_address_under_a_label_has_a_number_a_name_and_a_second_part(value, is_address):
    assert place._accept_named(value) == (len(value) if is_address else 0)


@pytest.mark.parametrize(
    ("value", "is_street"),
    [("Rue Haute 12", True), ("Via Roma 12", True), ("Via SMS 12", False), ("Jahresweg 2024", False), ("Jahresweg 1812", True)],
)
def test_a_european_street_is_no_way_of_sending_and_no_year(value, is_street):
    assert place._accept_european(value) == (len(value) if is_street else 0)


@pytest.mark.parametrize(
    ("value", "is_street"),
    [("Oak Avenue 14", True), ("14 Oak Avenue", True), ("closed", False), ("14 cars", False), ("see Page 14", False)],
)
def test_a_street_under_its_label_has_a_name_and_a_number(value, is_street):
    assert place._accept_keyed(value) == (len(value) if is_street else 0)


@pytest.mark.parametrize(
    ("head", "parent", "is_name"),
    [
        ("user", "", True),
        ("User", "", True),
        ("user", "team", True),
        ("name", "user", True),
        ("Name", "USER", True),
        ("name", "", False),
        ("name", "team", False),
        ("team", "user", False),
        ("city", "", False),
    ],
)
def test_a_head_that_says_no_more_than_user_means_the_users_name(head, parent, is_name):
    found = named_user(head, parent)
    assert (found != head) is is_name
    assert found == (named_user("user") if is_name else head)


def test_a_record_is_a_login_where_one_of_its_heads_names_a_password():
    assert is_login(["user", "password"])
    assert not is_login(["user", "city"])
    assert not is_login([])
