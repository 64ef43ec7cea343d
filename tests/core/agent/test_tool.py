"""A tool is declared with a name, a function and a risk, or not at all; rights only narrow."""

from __future__ import annotations

import pytest

from comity.core.agent.agent import DeclarationError
from comity.core.agent.tool import Risk, Tool


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"function": 1}, "function of tool pay must be callable, not 1 (int)"),
        ({"function": "os:remove"}, "must be callable, not 'os:remove' (str)"),
        ({"name": 5}, "name of a tool must be text that is not empty, not 5 (int)"),
        ({"name": ""}, "must be text that is not empty"),
        ({"risk": "none"}, "risk of tool pay must be one of low, medium, high, not 'none' (str)"),
        ({"risk": ["high"]}, "must be one of low, medium, high"),
    ],
)
def test_what_is_declared_wrongly_is_named_with_what_it_must_be(declared, told):
    with pytest.raises(DeclarationError) as caught:
        Tool(**{"name": "pay", "function": print} | declared)
    assert told in str(caught.value)


def test_a_risk_may_be_given_as_its_word():
    assert Tool(name="pay", function=print, risk="high").risk == Risk.HIGH
