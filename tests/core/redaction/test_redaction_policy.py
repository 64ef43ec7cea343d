"""Policies: what is done with each type."""

from __future__ import annotations

import dataclasses

import pytest
from redaction_corpus import new_vault

from comity.core.redaction import DEFAULT_POLICY, TYPES, Action, Policy, blocked_types, redact_text, restore_text

TEXT = "card 4111 1111 1111 1111, mail jane@example.com, zip 94105"


def test_by_default_every_type_is_tokenised_and_none_blocked():
    assert {DEFAULT_POLICY.action(kind) for kind in TYPES} == {Action.TOKENISE}


def test_each_type_gets_its_own_action():
    policy = Policy({"CARD": Action.MASK, "EMAIL": Action.ALLOW})
    vault = new_vault()
    redaction = redact_text(TEXT, vault, policy)
    assert redaction.text == "card ****1111, mail jane@example.com, zip [[POSTAL_CODE_1_kqzmtwbf]]"
    assert [(finding.type, finding.action) for finding in redaction.found] == [
        ("CARD", Action.MASK),
        ("EMAIL", Action.ALLOW),
        ("POSTAL_CODE", Action.TOKENISE),
    ]
    assert len(vault) == 1


def test_a_blocked_value_leaves_no_trace_and_is_named_by_its_type():
    vault = new_vault()
    redaction = redact_text(TEXT, vault, Policy({"CARD": Action.BLOCK}))
    assert "1111" not in redaction.text
    assert blocked_types(redaction.found) == {"CARD"}
    assert "4111" not in restore_text(redaction.text, vault)


def test_a_masked_value_cannot_be_restored():
    vault = new_vault()
    redaction = redact_text(TEXT, vault, Policy(default=Action.MASK))
    assert redaction.text == "card ****1111, mail ****@example.com, zip ****"
    assert restore_text(redaction.text, vault) == redaction.text


@pytest.mark.parametrize("default", list(Action))
def test_under_every_action_a_second_redaction_changes_nothing(default):
    vault, policy = new_vault(), Policy(default=default)
    text = (
        TEXT
        + " a/c 4111111111111111 222, acct 12345678-4111111111111111 https://u:p4ss@h, SSN 219-09-9999/219099999, jane (at) example.com"
    )
    once = redact_text(text, vault, policy).text
    assert redact_text(once, vault, policy).text == once


def test_the_password_of_a_url_is_masked_whole():
    redaction = redact_text("https://admin:correcthorse@host/", new_vault(), Policy(default=Action.MASK))
    assert redaction.text == "https://****@host/"


def test_a_grant_opens_a_type_but_never_one_that_is_blocked():
    policy = Policy({"CARD": Action.BLOCK, "PHONE": Action.MASK}).allowing({"CARD", "EMAIL"})
    assert policy.action("EMAIL") is Action.ALLOW
    assert policy.action("CARD") is Action.BLOCK
    assert policy.action("PHONE") is Action.MASK
    assert policy.action("SSN") is Action.TOKENISE


def test_a_policy_cannot_be_changed_after_it_was_made():
    actions = {"CARD": Action.BLOCK}
    policy = Policy(actions)
    actions["CARD"] = Action.ALLOW
    assert policy.action("CARD") is Action.BLOCK
    with pytest.raises(TypeError):
        policy.actions["CARD"] = Action.ALLOW
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.default = Action.ALLOW


@pytest.mark.parametrize("action", Action)
def test_an_action_and_its_word_mean_the_same_for_one_type_and_for_all(action):
    for word in (action, str(action)):
        policy = Policy({"CARD": word}, word)
        assert policy.action("CARD") is policy.action("SSN") is policy.default is action


def test_an_action_that_does_not_exist_is_refused_for_one_type_and_for_all():
    for make in (lambda: Policy({"CARD": "shred"}), lambda: Policy(default="shred"), lambda: Policy(default="")):
        with pytest.raises(ValueError, match="unknown action"):
            make()
