"""Agents from a registry file or a module are the agents that were declared, or every problem is named."""

import difflib
import json
import textwrap

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity import Agent, Limits, Node, Prices, Retry
from comity.core.agent import agent as core
from comity.core.agent.agent import DeclarationError
from comity.core.agent.breaker import Policy
from comity.loading import registry_file as manifest
from comity.loading.registry_file import ManifestError, load_agents, load_node

FULL = """
agents:
  - id: ANL
    aliases: [analyst, figures]
    description: Financial analysis
    tags: [finance]
    owner: team-a
    status: maintenance
    concurrency: 2
    pending_max: 7
    can_call: [DOC]
    tools_allowed: [ledger]
    limits: {depth_max: 2, tokens_max: 900}
    idle_ms: 1_000
    capabilities:
      - code: ANL_SUM
        name: Sum
        description: Adds up
        version: "2.1"
        timeout_ms: 15_000
        active: false
        examples: [{values: [1, 2]}]
        limits: {calls_max: 5}
        clear: [EMAIL]
        doing: Adding up
        touches: [sums/**, $.path]
        breaker: {failures_max: 3, open_ms: 100, probes: 1}
        input_schema: {type: object, properties: {values: {type: array}}, required: [values]}
        output_schema: {type: number}
        implementations:
          - {function: "registry_functions:second", priority: 20}
          - function: registry_functions:Adder.add
            priority: 10
            run_in: process
            retry: {attempts: 4, delay_ms: 10, multiplier: 3, delay_ms_max: 50, jitter: 0}
  - id: DOC
    can_call: []
"""


@pytest.fixture(autouse=True)
def functions(tmp_path, monkeypatch):
    (tmp_path / "registry_functions.py").write_text(
        textwrap.dedent("""
        from comity import Agent

        def second(values: list): return 2
        def hello(name: str) -> str:
            "Greets.\\n\\nPolitely."
            return f"hello {name}"

        class Adder:
            @staticmethod
            def add(values: list): return sum(values)

        number = 3
        one = Agent("ONE")
        several = [one, Agent("TWO")]
        def make(): return several
        def needs(what): return several
        def fails(): raise RuntimeError("no database")
        mixed = [one, "TWO"]
        """),
        encoding="utf-8",
    )
    (tmp_path / "registry_broken.py").write_text("import surely_not_there", encoding="utf-8")
    (tmp_path / "registry_leaves.py").write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def load(tmp_path, text, name="r.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_agents(path)


def problems(tmp_path, text):
    with pytest.raises(ManifestError) as caught:
        load(tmp_path, text)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_every_field_of_the_file_reaches_the_agent(tmp_path):
    analyst, writer = load(tmp_path, FULL)
    assert (analyst.id, analyst.aliases, analyst.description) == ("ANL", ("analyst", "figures"), "Financial analysis")
    assert (analyst.tags, analyst.owner, analyst.status) == (("finance",), "team-a", "maintenance")
    assert (analyst.concurrency, analyst.pending_max, analyst.idle_ms) == (2, 7, 1_000)
    assert (analyst.can_call, analyst.tools_allowed) == ({"DOC"}, {"ledger"})
    assert analyst.limits == Limits(depth_max=2, tokens_max=900)
    assert writer.can_call == frozenset()
    capability = analyst.capabilities["ANL_SUM"]
    assert (capability.name, capability.description, capability.version) == ("Sum", "Adds up", "2.1")
    assert (capability.timeout_ms, capability.active, capability.examples) == (15_000, False, ({"values": [1, 2]},))
    assert (capability.limits, capability.breaker) == (Limits(calls_max=5), Policy(failures_max=3, open_ms=100, probes=1))
    assert (capability.clear, capability.doing) == ({"EMAIL"}, "Adding up")
    assert (capability.touching.fixed, capability.touching.fields) == (("sums/**",), (("path",),))
    first, second = capability.implementations
    assert (first.name, first.priority, first.run_in) == ("Adder.add", 10, "process")
    assert first.retry == Retry(attempts=4, delay_ms=10, multiplier=3, delay_ms_max=50, jitter=0)
    assert (second.name, second.priority, second.run_in, second.retry) == ("second", 20, "thread", Retry())
    assert capability.inputs.json_schema()["required"] == ["values"]
    assert capability.outputs.json_schema() == {"type": "number"}


def test_the_entries_name_exactly_what_an_agent_can_be_given():
    import inspect
    from typing import get_overloads

    def given(function, *but):
        return {name for name in inspect.signature(function).parameters if name not in {"self", *but}}

    agent = set(manifest.AgentEntry.__struct_fields__)
    in_code = ("on_activate", "on_deactivate", "count_tokens", "url", "keys")  # functions, and what an endpoint's keys sign
    assert agent - {"capabilities"} == given(Agent.__init__, *in_code)
    capability = set(manifest.CapabilityEntry.__struct_fields__)
    assert capability - {"breaker", "implementations"} == given(
        get_overloads(Agent.capability)[1], "breaker_policy", "retry", "run_in", "priority", "first_timeout_ms"
    )
    assert set(manifest.ImplementationEntry.__struct_fields__) - {"function"} == given(Agent.implementation, "code")


def test_what_the_file_leaves_out_is_what_the_decorator_leaves_out(tmp_path):
    text = "agents: [{id: A, capabilities: [{code: C, implementations: [{function: 'registry_functions:hello'}]}]}]"
    (loaded,) = load(tmp_path, text)
    declared = Agent("A")

    @declared.capability("C")
    def hello(name: str) -> str:
        """Greets."""
        return name

    def facts(agent):
        capability = agent.capabilities["C"]
        own = {name: getattr(agent, name) for name in core.Agent.__slots__ if name != "capabilities"}
        its = {
            name: getattr(capability, name)
            for name in ("name", "description", "version", "timeout_ms", "active", "limits", "breaker")
        }
        ways = [msgspec.structs.asdict(one) | {"function": None, "name": None} for one in capability.implementations]
        return own, its, ways

    assert facts(loaded) == facts(declared)


def test_an_agent_with_a_model_can_be_declared_in_a_file(tmp_path):
    text = """
    agents:
      - id: prime
        model: openai:gpt-4o
        instructions: You lead.
        tools: ["registry_functions:hello", ledger]
        output_type: {type: object, required: [total]}
        success_criteria: [the total is right]
        settings: {max_tokens: 50}
        thinking: {rounds_max: 2}
    """
    (tmp_path / "models.yaml").write_text(text)
    (agent,) = manifest.load_agents(tmp_path / "models.yaml", Agent)
    assert (agent.mind.model_name, agent.mind.instructions) == ("openai:gpt-4o", "You lead.")
    assert (agent.mind.settings.max_tokens, agent.mind.thinking.rounds_max) == (50, 2)
    assert "the total is right" in agent.mind.system
    assert list(agent.tools) == ["hello", "ledger"]
    with pytest.raises(DeclarationError, match="give load_agents"):
        manifest.load_agents(tmp_path / "models.yaml")


def test_json_and_yaml_say_the_same(tmp_path):
    import yaml

    document = yaml.safe_load(FULL)
    from_json = load(tmp_path, json.dumps(document, indent=1), "r.json")
    from_yaml = load(tmp_path, FULL)
    for one, other in zip(from_json, from_yaml, strict=True):
        assert [getattr(one, name) for name in ("id", "aliases", "status", "can_call", "limits")] == [
            getattr(other, name) for name in ("id", "aliases", "status", "can_call", "limits")
        ]
        assert one.capabilities.keys() == other.capabilities.keys()


def test_without_priorities_the_order_in_the_file_counts(tmp_path):
    ways = "[{function: 'registry_functions:second'}, {function: 'registry_functions:hello'}]"
    (agent,) = load(tmp_path, f"agents: [{{id: A, capabilities: [{{code: C, implementations: {ways}}}]}}]")
    assert [(one.name, one.priority) for one in agent.capabilities["C"].implementations] == [("second", 1), ("hello", 2)]


def test_an_agent_from_a_file_can_be_called(tmp_path):
    import asyncio

    agents = load(
        tmp_path, "agents: [{id: A, capabilities: [{code: C, implementations: [{function: 'registry_functions:hello'}]}]}]"
    )

    async def call():
        async with Node(agents) as node:
            return await node.call("A", "C", {"name": "Ada"}, user_id="u1")

    assert asyncio.run(call()).unwrap() == "hello Ada"


def test_all_problems_are_named_at_once_in_the_order_of_the_file(tmp_path):
    text = textwrap.dedent("""
        agents:
          - id: A
            concurency: 5
            status: activ
            limits: {depth_max: 99, fanout: 3}
            capabilities:
              - code: C
                version: 1.0
                timeout_ms: "5"
                active: yes
                implementations:
                  - {function: "registry_functions:helo", retry: {attempts: 0}}
                  - {function: "registry_functions:number"}
                  - {function: "no_such_module:f", run_in: moon}
                  - {function: 3, priority: true}
              - code: D
                input_schema: {type: objct}
                implementations: []
              - 5
          - id: b c
            tags: [x, 1]
        extra: 1
        """)
    with pytest.raises(ManifestError) as caught:
        load(tmp_path, text)
    lines = str(caught.value).splitlines()
    first = f"{tmp_path}/r.yaml"
    assert lines[0] == f"{first} has {len(lines) - 1} problems"
    assert f"{first}:4: agents[0].concurency: unknown field; did you mean concurrency?" in lines
    assert f"{first}:5: agents[0].status: must be one of active, maintenance, retired, not 'activ'" in lines
    assert [int(line.removeprefix(f"{first}:").partition(":")[0]) for line in lines[1:]] == sorted(
        int(line.removeprefix(f"{first}:").partition(":")[0]) for line in lines[1:]
    )
    found = {problem.path: problem.message for problem in caught.value.problems}
    ways = "agents[0].capabilities[0].implementations"
    assert found.keys() == {
        "agents[0].concurency",
        "agents[0].status",
        "agents[0].limits.fanout",
        "agents[0].limits",
        "agents[0].capabilities[0].version",
        "agents[0].capabilities[0].timeout_ms",
        "agents[0].capabilities[0].active",
        f"{ways}[0].function",
        f"{ways}[0].retry",
        f"{ways}[1].function",
        f"{ways}[2].function",
        f"{ways}[2].run_in",
        f"{ways}[3].function",
        f"{ways}[3].priority",
        "agents[0].capabilities[1].input_schema",
        "agents[0].capabilities[2]",
        "agents[1].tags[1]",
        "extra",
    }
    assert found["agents[0].capabilities[0].version"] == "must be text, not 1.0; put it in quotes"
    assert found[f"{ways}[0].function"] == "registry_functions has no 'helo'; did you mean hello?"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("[]", "(top)", "a registry file is a mapping with a list `agents`"),
        ("agents: {}", "(top)", "a registry file is a mapping with a list `agents`"),
        ("agents: [1]", "agents[0]", "must be a mapping, not 1"),
        ("agents: [{}]", "agents[0].id", "is missing"),
        ("agents: [{id: A, description: }]", "agents[0].description", "must be text, not null"),
        ("agents: [{id: A}, {id: B, aliases: [A]}]", "agents[1]", "'A' is taken by agent A; ids and aliases are unique"),
        ("agents: [{id: A, capabilities: {}}]", "agents[0].capabilities", "must be a list, not a mapping"),
        (
            "agents: [{id: A, capabilities: [{code: C, doing: 'B asks', implementations: [{function: 'json:loads'}]}]}, {id: B}]",
            "agents[0].capabilities[0].doing",
            "users would be told 'B asks', which names B; describe the work instead",
        ),
        (
            "agents: [{id: A, capabilities: [{code: C, implementations: []}]}]",
            "agents[0].capabilities[0]",
            "C needs at least one implementation",
        ),
        (
            "agents: [{id: A, capabilities: [{code: C, implementations: [{function: 'a b'}]}]}]",
            "agents[0].capabilities[0].implementations[0].function",
            "'a b' is not of the form package.module:name",
        ),
        (
            "agents: [{id: A, capabilities: [{code: C, output_schema: 3, implementations: [{function: 'json:loads'}]}]}]",
            "agents[0].capabilities[0].output_schema",
            "must be a JSON Schema, not 3",
        ),
    ],
)
def test_each_kind_of_mistake_has_its_path_and_sentence(tmp_path, text, path, message):
    assert problems(tmp_path, text) == {path: message}


@pytest.mark.parametrize("field", ["concurrency: 0", "pending_max: -1", "idle_ms: 0", "aliases: ['a b']"])
def test_what_an_agent_refuses_in_code_is_refused_in_a_file(tmp_path, field):
    assert list(problems(tmp_path, f"agents: [{{id: A, {field}}}]")) == ["agents[0]"]


def test_a_capability_declared_twice_is_a_problem_of_the_second(tmp_path):
    one = "{code: C, implementations: [{function: 'json:loads'}]}"
    found = problems(tmp_path, f"agents: [{{id: A, capabilities: [{one}, {one}]}}]")
    assert list(found) == ["agents[0].capabilities[1]"]


@given(st.sampled_from(sorted(manifest.AgentEntry.__struct_fields__)), st.data())
def test_a_misspelt_field_is_answered_with_the_right_one(tmp_path_factory, field, data):
    place = data.draw(st.integers(0, len(field) - 1))
    wrong = field[:place] + field[place + 1 :]
    known = manifest.AgentEntry.__struct_fields__
    if wrong in known or not wrong or not difflib.get_close_matches(wrong, [field], cutoff=0.5):
        return
    found = problems(tmp_path_factory.getbasetemp(), f"agents: [{{id: A, {wrong}: 1}}]")
    assert field in found[f"agents[0].{wrong}"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["A", "active", "json:loads", "x y", "loop"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [*manifest.AgentEntry.__struct_fields__, *manifest.CapabilityEntry.__struct_fields__, "function", "retry"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=15,
    )
)
def test_any_document_gives_agents_or_a_declaration_error(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any_registry.json"
    path.write_text(json.dumps({"agents": [value]}), encoding="utf-8")
    try:
        agents = load_agents(path)
    except DeclarationError:
        return
    assert len(agents) == 1


# --- load_node ---


@pytest.mark.parametrize(
    ("reference", "ids"),
    [
        ("registry_functions:one", ["ONE"]),
        ("registry_functions:several", ["ONE", "TWO"]),
        ("registry_functions:make", ["ONE", "TWO"]),
    ],
)
def test_an_agent_a_list_and_a_function_are_all_applications(reference, ids):
    assert [agent.id for agent in load_node(reference).registry] == ids


def test_an_application_may_be_a_registry_file(tmp_path):
    path = tmp_path / "Agents.YAML"
    path.write_text("agents: [{id: A}]", encoding="utf-8")
    assert [agent.id for agent in load_node(str(path)).registry] == ["A"]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("registry_functions", "write package.module:attribute, or the path of a .yaml or .json registry file"),
        ("", "names no agents"),
        ("no_such_module.inner:x", "there is no module 'no_such_module'"),
        ("registry_functions.inner:x", "there is no module 'registry_functions.inner'"),
        ("registry_broken:x", "importing registry_broken failed: No module named 'surely_not_there'"),
        ("registry_leaves:x", "importing registry_leaves raised SystemExit: 3"),
        ("registry_functions:sevral", "registry_functions has no 'sevral'; did you mean several?"),
        ("registry_functions:needs", "must be callable without arguments: missing a required argument: 'what'"),
        ("registry_functions:fails", "registry_functions:fails() raised RuntimeError: no database"),
        ("registry_functions:number", "registry_functions:number is 3"),
        ("registry_functions:mixed", "registry_functions:mixed[1] is 'TWO', not an Agent"),
    ],
)
def test_a_name_that_leads_to_no_agents_says_which_part_is_wrong(reference, told):
    with pytest.raises(DeclarationError) as caught:
        load_node(reference)
    assert told in str(caught.value)


def test_a_registry_file_may_say_what_tokens_cost(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("prices: {currency: EUR, models: {'a:one': [2.5, 10]}}\nagents: []\n")
    assert load_node(str(path))._settings.prices == Prices("EUR", {"a:one": (2.5, 10.0)})


@pytest.mark.parametrize(
    ("prices", "path"),
    [
        ("5", "prices"),
        ("{currency: EUR}", "prices.models"),
        ("{currency: E U, models: {}}", "prices"),
        ("{currency: EUR, models: {m: [-1, 2]}}", "prices"),
        ("{currency: EUR, models: {m: 3}}", "prices.models"),
    ],
)
def test_a_wrong_price_in_a_registry_file_is_named(tmp_path, prices, path):
    assert path in problems(tmp_path, f"prices: {prices}\nagents: []\n")
