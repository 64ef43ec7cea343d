"""The registry: one agent per name, addresses with keys, and the nearest names to one that is unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.agent.agent import Agent, DeclarationError
from comity.core.agent.registry import Address, Registry, nearest
from comity.core.call.limits import ID_CHARS_MAX

ANALYST = Agent("ANL", aliases=["analyst", "byte-doc"])
WRITER = Agent("DOC")
LARGE = [f"AGENT_{number:05}" for number in range(10_000)]


def both() -> Registry:
    return Registry([ANALYST, WRITER])


def test_agents_are_found_by_id_and_by_alias():
    registry = both()
    assert registry.resolve("ANL") == Address(ANALYST, "ANL")
    assert registry.resolve("analyst") == Address(ANALYST, "ANL")
    assert registry.resolve("byte-doc") == Address(ANALYST, "ANL")
    assert registry.resolve("DOC") == Address(WRITER, "DOC")


def test_agents_are_listed_once_in_the_order_they_came():
    registry = both()
    assert list(registry) == [ANALYST, WRITER]
    assert len(registry) == 2


@pytest.mark.parametrize("taken", ["ANL", "analyst"])
def test_an_id_or_alias_that_is_taken_is_refused(taken):
    registry = both()
    with pytest.raises(DeclarationError, match=f"'{taken}' is taken by agent ANL"):
        registry.add(Agent(taken))
    with pytest.raises(DeclarationError, match=f"'{taken}' is taken by agent ANL"):
        registry.add(Agent("NEW", aliases=["fine", taken]))


def test_a_refused_agent_leaves_no_trace():
    registry = both()
    with pytest.raises(DeclarationError):
        registry.add(Agent("NEW", aliases=["fine", "ANL"]))
    assert registry.resolve("NEW") is None
    assert registry.resolve("fine") is None
    assert len(registry) == 2


def test_each_key_is_an_address_of_its_own_under_the_agents_id():
    registry = both()
    assert registry.resolve("ANL/user-1") == Address(ANALYST, "ANL/user-1")
    assert registry.resolve("analyst/user-1") == Address(ANALYST, "ANL/user-1")
    assert registry.resolve("ANL/a/b c") == Address(ANALYST, "ANL/a/b c")


@pytest.mark.parametrize(
    "address", ["", "ANM", "anl", "ANL/", "/ANL", "/", "ANL/\n", "ANL/\u200b", "ANL/a\x7f", "\ud800", "ANL/\ud800"]
)
def test_what_names_nobody_resolves_to_nobody(address):
    assert both().resolve(address) is None


def test_an_address_is_as_long_as_an_envelope_can_carry_and_no_longer():
    registry = both()
    longest = "ANL/" + "k" * (ID_CHARS_MAX - 4)
    assert registry.resolve(longest) == Address(ANALYST, longest)
    assert registry.resolve(longest + "k") is None
    # The address is what travels: an alias may be shorter than the id it stands for.
    by_alias = Registry([Agent("A" * 100, aliases=["x"])])
    assert by_alias.resolve("x/" + "k" * (ID_CHARS_MAX - 101)) is not None
    assert by_alias.resolve("x/" + "k" * (ID_CHARS_MAX - 100)) is None


# --- who may call whom --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("can_call", "expected"),
    [(None, True), ([], False), (["ANL"], True), (["analyst"], True), (["*"], True), (["DOC"], False), (["AN"], False)],
)
def test_an_agent_may_call_whom_can_call_names_by_id_or_alias(can_call, expected):
    assert both().permits(Agent("SRC", can_call=can_call), ANALYST) is expected


# --- nearest names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("ANLL", "ANL"), ("anl", "ANL"), ("AML", "ANL"), ("analist", "analyst"), ("ANALYST/7", "analyst"), ("DOCS", "DOC")],
)
def test_a_typo_is_answered_with_what_was_meant(typo, meant):
    assert both().nearest_agents(typo)[0] == meant


def test_what_is_like_nothing_is_answered_with_nothing():
    assert both().nearest_agents("zzzzzzzz") == []
    assert both().nearest_agents("") == []
    assert Registry().nearest_agents("ANL") == []


def test_names_come_best_first_and_at_most_three():
    known = ["report", "reports", "reporter", "reported", "repo"]
    found = nearest("report", known)
    assert found[0] == "report"
    assert len(found) == 3


def test_an_unknown_capability_is_answered_with_the_agents_own():
    agent = Agent("ANL")
    for code in ("ANL_NPV", "ANL_IRR", "ANL_PAYBACK"):
        agent.capability(code)(lambda: None)
    assert Registry.nearest_capabilities(agent, "anl_npw")[0] == "ANL_NPV"
    assert Registry.nearest_capabilities(agent, "zzzz") == ["ANL_IRR", "ANL_NPV", "ANL_PAYBACK"]
    assert Registry.nearest_capabilities(Agent("EMPTY"), "x") == []
    assert Registry([agent]).capability(agent, "ANL_NPV") is agent.capabilities["ANL_NPV"]
    assert Registry([agent]).capability(agent, "anl_npv") is None


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("agent_09990", "AGENT_09990"),
        ("AGNET_09412", "AGENT_09412"),
        ("GENT_08765", "AGENT_08765"),
        ("AGENT-07654", "AGENT_07654"),
        ("AGENT_065543", "AGENT_06554"),
        ("XGENT_05432", "AGENT_05432"),
    ],
)
def test_a_typo_among_ten_thousand_names_is_answered_with_what_was_meant(typo, meant):
    assert meant in nearest(typo, LARGE)


def test_a_short_name_is_not_hidden_by_many_long_ones_that_hold_its_letters():
    assert nearest("analist", ["analyst", *(f"analyst-specialist-{number}" for number in range(100))])[0] == "analyst"


class Name(str):
    """A name that counts how often it is read letter by letter."""

    __slots__ = ()
    read = 0

    def casefold(self) -> str:
        return Name(super().casefold())

    def __iter__(self):
        Name.read += 1
        return super().__iter__()


def test_of_ten_thousand_names_few_are_read_letter_by_letter():
    Name.read = 0
    assert nearest("AGNET_09412", [Name(name) for name in LARGE])[0] == "AGENT_09412"
    assert 0 < Name.read <= 100


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=20), max_size=60))
def test_whatever_is_asked_at_most_three_of_the_known_are_answered(name, known):
    found = nearest(name, known)
    assert set(found) <= set(known)
    assert len(found) <= 3


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=60), st.data())
def test_a_name_that_is_known_is_nearest_to_itself_whatever_its_case(known, data):
    name = data.draw(st.sampled_from(known))
    assert nearest(name, known)[0].casefold() == name.casefold()


@pytest.mark.parametrize(
    ("can_call", "found"),
    [
        (None, ["b", "c"]),
        (["*"], ["b", "c"]),
        ([], []),
        (["c", "bee", "b", "nobody", "off", "empty"], ["b", "c"]),
        (["a"], []),
    ],
)
def test_who_can_be_reached_is_permitted_active_able_and_not_waiting(can_call, found):
    agents = [
        Agent("a", can_call=can_call),
        Agent("b", aliases=["bee"]),
        Agent("c"),
        Agent("off", status="maintenance"),
        Agent("w"),
    ]
    for agent in agents:
        agent.capability("GO")(lambda: None)
    registry = Registry([*agents, Agent("empty")])
    assert [one.id for one in registry.reachable(agents[0], {"a", "w"}, 10)] == found
    assert len(registry.reachable(agents[0], {"a", "w"}, 1)) == min(len(found), 1)


@pytest.mark.parametrize("agents", ["x", Agent("X"), {"X": Agent("X")}, 5, None])
def test_what_is_no_list_of_agents_is_named(agents):
    with pytest.raises(DeclarationError, match="agents must be a list of agents, not "):
        Registry(agents)


def test_what_is_no_agent_is_named_and_shown_short():
    with pytest.raises(DeclarationError, match=r"must be an Agent, not 'xxx.*… \(str\)") as caught:
        Registry([Agent("X"), "x" * 1000])
    assert len(str(caught.value)) < 120


def test_of_many_capabilities_none_of_which_is_near_five_are_named():
    agent = Agent("MANY")
    for letter in "gfedcba":
        agent.capability(f"{letter}{letter}")(lambda: None)
    assert Registry.nearest_capabilities(agent, "ZZZZZZ") == ["aa", "bb", "cc", "dd", "ee"]
