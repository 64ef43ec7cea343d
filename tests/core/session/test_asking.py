"""Which known things a question asks for."""

from __future__ import annotations

import pytest

from comity.core.envelope.envelope import Reply
from comity.core.session.asking import answers, asked_for, reminder

KNOWN = ("year", "tax_country", "budget")


@pytest.mark.parametrize(("reply", "named"), [
    (Reply.needs_input("Which year do you mean?"), ("year",)),
    (Reply.needs_input("In which tax country, and of which Year?"), ("year", "tax_country")),
    (Reply.needs_input("Which yearbook?"), ()),
    (Reply.needs_input("Which country?"), ()),
    (Reply.needs_input("Tell me more.", data={"missing": ["Tax country", "timeline"]}), ("tax_country",)),
    (Reply.needs_input("Which year?", data={"missing": ["timeline"]}), ()),
    (Reply.needs_input("Which year?", data=["missing"]), ("year",)),
])  # fmt: skip
def test_a_question_asks_for_what_it_lists_as_missing_or_else_names(reply, named):
    assert asked_for(reply, KNOWN) == named


def test_a_reminder_tells_what_is_known():
    assert "- year: 2024" in reminder(answers({"year": 2024}))
