"""What users are told names neither agents nor capabilities; ordinary words may stand, whatever the codes are."""

import pytest

from comity.core.agent.agent import Agent
from comity.core.agent.disclosure import Leak, leak, leaks


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("Looking into your case…", ["CASE"], None),
        ("CASE is looking", ["CASE"], "CASE"),
        ("Asking Scout.", ["Scout"], "Scout"),
        ("Scouting ahead", ["Scout"], None),
        ("Putting your orders together", ["orders"], None),
        ("Tag-AI is thinking", ["tag-ai"], "tag-ai"),
        ("anl_npv…", ["ANL_NPV"], "ANL_NPV"),
        ("The plan for 2025", ["PLAN_2025"], None),
    ],
)
def test_a_code_is_a_leak_and_a_word_is_not(text, names, found):
    assert leak(text, names) == found


def test_every_leak_is_told_with_its_agent_its_capability_and_its_words():
    front, desk = Agent("front"), Agent("DESK")
    front.capability("LOOK", doing="Waiting for DESK")(lambda: 1)
    front.capability("ASK", doing="Asking somebody")(lambda: 1)
    desk.capability("FILE", doing="Working: LOOK")(lambda: 1)
    found = list(leaks([front, desk]))
    assert found == [Leak("front", "LOOK", "Waiting for DESK", "DESK"), Leak("DESK", "FILE", "Working: LOOK", "LOOK")]
    assert str(found[0]) == "front LOOK: users would be told 'Waiting for DESK', which names DESK; describe the work instead"
