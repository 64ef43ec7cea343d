"""What is wrong with a declaration is told when the node starts, everything at once, with what was probably meant."""

from __future__ import annotations

import asyncio
import sys

import pytest

from comity import Agent, Node, SyncNode, Tool
from comity.agents.model.providers import KEY_VARIABLES
from comity.core.agent.declaration import DeclarationError
from comity.runtime.session.privacy import Privacy


def started(agents=(), **more):
    with SyncNode(agents, **more) as node:
        return node.run(_problems)


async def _problems(node):
    return node.problems


def mailer(**more):
    agent = Agent("mailer", **more)

    @agent.capability("SEND", clear=["EMAIL"])
    async def send(to: str) -> None: ...

    return agent


def test_names_that_nothing_here_has_are_warned_of_all_at_once(caplog):
    agents = [
        mailer(can_call=["clrk", "*", "faraway"], tools_allowed=["serch", "*"]),
        Agent("clerk", aliases=["office"]),
        Agent("thinker", model=_Model(), can_transfer_to=["ofice"]),
    ]
    found = started(
        agents,
        tools=[Tool(name="search", function=len)],
        privacy=Privacy(
            grants={"mailr/SEND": {"EMAIL"}, "SED": {"EMAIL"}, "mailer/SND": {"EMAIL"}, "mailer/SEND": {"EMAIL", "IBAN"}}
        ),
    )
    assert found == (
        "mailer may call clrk, which this node does not have; did you mean clerk?",
        "mailer may call faraway, which this node does not have",
        "mailer may use serch, a tool that this node does not have; did you mean search?",
        "thinker may transfer to ofice, which this node does not have; did you mean office?",
        "personal data is granted to mailr/SEND, and there is no agent mailr here; did you mean mailer?",
        "personal data is granted to SED, which no agent here has; did you mean SEND?",
        "personal data is granted to mailer/SND, which no agent here has; did you mean SEND?",
        "mailer/SEND is granted IBAN and does not ask for it: declare clear=[…] in its capability",
    )  # fmt: skip
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == list(found)


def test_a_sound_declaration_is_not_warned_of():
    agents = [mailer(can_call=["clerk/7"], tools_allowed=["search"]), Agent("clerk")]
    privacy = Privacy(grants={"mailer/SEND": {"EMAIL"}, "SEND": {"EMAIL"}})
    assert started(agents, tools=[Tool(name="search", function=len)], privacy=privacy) == ()


def test_a_capability_that_is_not_granted_what_it_asks_for_is_told_how_to_be():
    (told,) = started([mailer()])
    assert told == "mailer SEND asks for EMAIL in clear and sees tokens; Privacy(grants={'mailer/SEND': {'EMAIL'}}) grants it"
    assert started([mailer()], privacy=None) == ()


def test_types_that_no_detector_finds_keep_the_node_from_starting():
    agent = Agent("A")

    @agent.capability("GO", clear=["EMIAL"])
    async def go() -> None: ...

    tool = Tool(name="pay", function=len, clear=frozenset({"CREDITCARD"}))
    with pytest.raises(DeclarationError) as told:
        started([agent], tools=[tool], privacy=Privacy(grants={"GO": {"EMIAL", "EMAIL"}}))
    lines = str(told.value).splitlines()
    assert lines[0].startswith("A GO names 'EMIAL', a type of personal data that no detector here finds; did you mean EMAIL")
    assert lines[1].startswith("the tool pay names 'CREDITCARD'")
    assert lines[2].startswith("the grant to GO names 'EMIAL'")
    assert len(lines) == 3
    assert started([agent], privacy=None) == ()  # nothing is hidden, so nothing has a type


@pytest.mark.parametrize("grants", [{"GO": "EMAIL"}, {7: {"EMAIL"}}, {"GO": None}, ["GO"]])
def test_grants_that_are_none_are_refused_where_they_are_made(grants):
    with pytest.raises(DeclarationError, match="grants must"):
        Privacy(grants=grants)


def test_a_missing_key_and_a_missing_package_are_told_together_when_the_node_starts(monkeypatch):
    for variables in KEY_VARIABLES.values():
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    agents = [Agent("one", model="openai:gpt-4o"), Agent("two", model="anthropic:claude")]
    first, second = started(agents)
    assert first.startswith("one cannot think here: openai:gpt-4o needs a key: set the environment variable OPENAI_API_KEY")
    assert "needs packages that are not installed (pydantic_ai)" in first
    assert second.startswith("two cannot think here: anthropic:claude needs a key")


def test_where_nodes_share_the_work_agents_may_be_elsewhere():
    from comity.engines.clock import SystemClock
    from comity.engines.memory.cluster import LeaseService, MemoryLeases, MemoryNetwork, SharedJournal
    from comity.engines.memory.engine import JournalEngine
    from comity.engines.memory.journal import MemoryJournal

    clock, network = SystemClock(), MemoryNetwork()

    async def main():
        journal = SharedJournal(MemoryJournal(), "n1")
        node = Node(
            [Agent("A", can_call=["B"])],
            engine=JournalEngine(journal, MemoryLeases(LeaseService(clock), journal), network.transport()),
        )
        async with node:
            return node.problems

    assert asyncio.run(main()) == ()


class _Model:
    name = "model"

    def stream(self, prompt):
        raise AssertionError
