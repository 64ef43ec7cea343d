"""People's guidance reaches a model's prompt within its budget, and holds for the tools the model uses."""

from team import prompts, results, talk, thinker

from comity import Tool
from comity.core.guidance.guidance import Constraint, Focus, Guidance, Preference
from comity.core.guidance.prompt import GUIDANCE_TOKENS_MAX
from comity.core.model.exchange import System
from comity.core.model.tokens import estimate
from comity.testing import tool_call
from comity.testing.virtual import EPOCH_NS

NOW_MS = EPOCH_NS // 1_000_000
PREFERENCES = (Preference(id="p", preference="Prefer async patterns"),)


def system(agent):
    return "\n\n".join(one.text for one in prompts(agent)[0].messages if isinstance(one, System))


def test_focus_and_preferences_stand_in_the_prompt_and_an_expired_focus_does_not():
    guidance = Guidance(focus=Focus(areas=("checkout latency",), until=NOW_MS + 60_000), preferences=PREFERENCES)
    agent = thinker("a", "done", instructions="Be brief.")
    talk([agent], node={"guidance": guidance})
    assert system(agent).startswith("Be brief.\n\n")
    assert "Focus: checkout latency" in system(agent)
    assert "Prefer: Prefer async patterns" in system(agent)
    late = thinker("a", "done")
    talk([late], node={"guidance": Guidance(focus=Focus(areas=("checkout latency",), until=NOW_MS), preferences=PREFERENCES)})
    assert "Focus" not in system(late)


def test_guidance_takes_no_more_of_a_prompt_than_its_budget():
    rules = tuple(Constraint(id=f"c{number}", rule="Leave it alone " * 10) for number in range(100))
    agent = thinker("a", "done")
    talk([agent], node={"guidance": Guidance(constraints=rules)})
    assert GUIDANCE_TOKENS_MAX * 0.8 < estimate(system(agent)) <= GUIDANCE_TOKENS_MAX


def test_a_model_is_told_why_its_tool_was_stopped_and_nothing_happened():
    wrote = []

    def write(path: str) -> None:
        wrote.append(path)

    def told(constraints):
        agent = thinker("a", tool_call("write", path="src/api/x.py"), "I could not.", tools=["write"], tools_allowed=["write"])
        tool = Tool(name="write", function=write, touches=["$.path"])
        talk([agent], node={"tools": [tool], "guidance": Guidance(constraints=constraints)})
        return results(agent)[0].text

    assert "constraint api forbids touching src/api/x.py" in told((Constraint(id="api", rule="No", scope="src/api/**"),))
    assert wrote == []
    assert "forbids" not in told(())
    assert wrote == ["src/api/x.py"]
