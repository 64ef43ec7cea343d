"""Agents: what is declared is what is there, what is declared wrongly is refused, and nothing is built before it is needed."""

from __future__ import annotations

import gc

import pytest

from comity.core.agent.agent import Agent, Capability, DeclarationError, Status
from comity.core.agent.breaker import Policy
from comity.core.agent.retry import Retry
from comity.core.agent.running import RunIn
from comity.core.call.limits import NAME_CHARS_MAX, TIMEOUT_MS_CEILING, Limits
from comity.core.document.schema import JsonSchema, PythonType, SchemaError
from comity.runtime.call.sync_context import SyncContext


class Context:
    """What a first parameter is recognised by."""


def declared(function=lambda: None, **options) -> Capability:
    agent = Agent("ANL")
    agent.capability("NPV", **options)(function)
    return agent.capabilities["NPV"]


# --- agents -------------------------------------------------------------------------------------------------------------


def test_an_agent_has_the_defaults_of_the_design():
    agent = Agent("ANL")
    assert (agent.status, agent.concurrency, agent.pending_max, agent.can_call) == (Status.ACTIVE, 64, 1000, None)
    assert (agent.aliases, agent.tags, agent.tools_allowed, agent.capabilities) == ((), (), frozenset(), {})


def test_an_agent_is_what_was_declared():
    agent = Agent(
        "ANL",
        description="Financial analysis",
        aliases=["analyst"],
        tags=["finance"],
        owner="team-a",
        status="maintenance",
        concurrency=1,
        pending_max=0,
        can_call=["DOC", "DOC"],
        tools_allowed=["search"],
        limits=Limits(depth_max=1),
        idle_ms=5,
    )
    assert (agent.id, agent.description, agent.owner, agent.status) == (
        "ANL",
        "Financial analysis",
        "team-a",
        Status.MAINTENANCE,
    )
    assert (agent.aliases, agent.tags, agent.can_call) == (("analyst",), ("finance",), {"DOC"})
    assert (agent.concurrency, agent.pending_max, agent.idle_ms, agent.limits) == (1, 0, 5, Limits(depth_max=1))
    assert agent.tools_allowed == {"search"}


@pytest.mark.parametrize("name", ["A", "ANL", "byte-doc", "a.b_c-1", "7", "x" * NAME_CHARS_MAX])
def test_names_are_letters_digits_dots_dashes_and_underscores(name):
    assert Agent(name, aliases=[f"{name[:-1]}z" if len(name) > 1 else "z"]).id == name


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a/b", "-a", ".a", "ä", "a\n", "x" * (NAME_CHARS_MAX + 1), None, 7, "a\u200b"]
)
def test_other_names_are_refused(name):
    with pytest.raises(DeclarationError, match="cannot be"):
        Agent(name)
    with pytest.raises(DeclarationError, match="cannot be"):
        Agent("A", aliases=["fine", name])
    with pytest.raises(DeclarationError, match="cannot be"):
        Agent("A").capability(name)(type("Nameless", (), {"__call__": lambda self: 1})())  # which has no name of its own


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("concurrency", 0),
        ("concurrency", 1.5),
        ("concurrency", "4"),
        ("concurrency", True),
        ("pending_max", -1),
        ("pending_max", None),
        ("idle_ms", 0),
        ("status", "asleep"),
        ("aliases", "ANALYST"),
        ("tags", "finance"),
        ("can_call", "DOC"),
        ("tools_allowed", "search"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(field, wrong):
    with pytest.raises(DeclarationError, match=f"ANL: {field} must be"):
        Agent("ANL", **{field: wrong})


# --- capabilities -------------------------------------------------------------------------------------------------------


def test_a_decorated_function_stays_as_it_is():
    agent = Agent("ANL")

    async def npv(cash_flows: list[float]) -> float:
        return sum(cash_flows)

    assert agent.capability("NPV")(npv) is npv
    assert agent.implementation("NPV", priority=5)(npv) is npv


def test_a_capability_has_the_defaults_of_the_design():
    capability = declared()
    assert (capability.name, capability.version, capability.active, capability.timeout_ms) == ("NPV", "1.0", True, None)
    assert (capability.breaker, capability.limits, capability.examples) == (Policy(), None, ())
    (only,) = capability.implementations
    assert (only.priority, only.retry, only.run_in, only.is_async) == (1, Retry(), RunIn.THREAD, False)


def test_a_capability_is_what_was_declared():
    capability = declared(
        name="Net present value",
        description="Discounts.",
        version="2.1",
        timeout_ms=15_000,
        active=False,
        examples=[{"cash_flows": [1]}],
        limits=Limits(calls_max=1),
        breaker_policy=Policy(failures_max=1),
        retry=Retry(attempts=3),
        run_in="process",
    )
    assert (capability.code, capability.name, capability.description) == ("NPV", "Net present value", "Discounts.")
    assert (capability.version, capability.timeout_ms, capability.active) == ("2.1", 15_000, False)
    assert (capability.examples, capability.limits) == (({"cash_flows": [1]},), Limits(calls_max=1))
    assert capability.breaker == Policy(failures_max=1)
    (only,) = capability.implementations
    assert (only.retry, only.run_in) == (Retry(attempts=3), RunIn.PROCESS)


def test_without_a_description_the_first_line_of_the_docstring_is_one():
    def npv():
        """Discount cash flows.

        Second paragraph.
        """

    assert declared(npv).description == "Discount cash flows."
    assert declared(npv, description="Given.").description == "Given."
    assert declared().description == ""


def test_async_functions_are_known_as_such():
    async def npv(): ...

    assert declared(npv).implementations[0].is_async


def test_a_capability_is_declared_once():
    agent = Agent("ANL")
    agent.capability("NPV")(lambda: None)
    with pytest.raises(DeclarationError, match="ANL declares NPV twice"):
        agent.capability("NPV")


@pytest.mark.parametrize("add", ["fallback", "implementation"])
def test_further_implementations_need_the_capability_first(add):
    with pytest.raises(DeclarationError, match="ANL has no capability NPV"):
        getattr(Agent("ANL"), add)("NPV", **({"priority": 1} if add == "implementation" else {}))


@pytest.mark.parametrize("timeout_ms", [0, -1, 1.5, "10", True, TIMEOUT_MS_CEILING + 1])
def test_a_wrong_timeout_is_refused(timeout_ms):
    with pytest.raises(DeclarationError, match="NPV: timeout_ms must be"):
        declared(timeout_ms=timeout_ms)
    assert declared(timeout_ms=TIMEOUT_MS_CEILING).timeout_ms == TIMEOUT_MS_CEILING


@pytest.mark.parametrize("run_in", [None, "loop"])
def test_code_in_the_loop_is_given_no_context_of_a_thread(run_in):
    async def inside(ctx: SyncContext) -> None: ...

    def plain(ctx: SyncContext) -> None: ...

    inside.__annotations__["ctx"] = plain.__annotations__["ctx"] = SyncContext
    with pytest.raises(SchemaError, match="runs in the loop, where ctx is a Context"):
        declared(plain if run_in else inside, run_in=run_in).prepare()
    declared(plain).prepare()


def test_what_is_no_function_or_runs_nowhere_is_refused():
    with pytest.raises(DeclarationError, match="is not a function"):
        declared("npv")
    with pytest.raises(ValueError, match=r"run_in must be one of loop, thread, process, not .moon."):
        declared(run_in="moon")


def test_implementations_stand_by_priority_and_equal_ones_in_order_of_declaration():
    def first(): ...
    def second(): ...
    def third(): ...
    def early(): ...
    def last(): ...

    agent = Agent("ANL")
    agent.capability("NPV")(first)
    agent.fallback("NPV")(third)
    agent.implementation("NPV", priority=1)(second)
    agent.implementation("NPV", priority=-5)(early)
    agent.fallback("NPV")(last)
    order = [implementation.function for implementation in agent.capabilities["NPV"].implementations]
    assert order == [early, first, second, third, last]


# --- schemas ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["input_schema", "output_schema"])
@pytest.mark.parametrize("schema", [{"type": "nope"}, {"$ref": "https://example.invalid/x.json"}, ["type"], "object"])
def test_a_schema_that_cannot_be_used_is_refused_when_it_is_declared(where, schema):
    with pytest.raises(DeclarationError, match=f"NPV: {where}"):
        Agent("ANL").capability("NPV", **{where: schema})


def test_a_declared_schema_comes_before_the_signature():
    def npv(rate: int) -> int: ...

    capability = declared(npv, input_schema={"required": ["rate"]}, output_schema={"type": "string"})
    assert isinstance(capability.inputs, JsonSchema)
    assert capability.inputs.check(b'{"rate":"text"}').value == {"rate": "text"}
    assert [problem.path for problem in capability.inputs.check(b"{}").problems] == ["inputs"]
    assert capability.outputs is not None
    assert [problem.path for problem in capability.outputs.check(b"1").problems] == ["data"]


def test_the_first_implementation_says_what_goes_in_and_what_comes_out():
    def npv(rate: int) -> int: ...
    def backup(rate: str) -> str: ...

    agent = Agent("ANL")
    agent.capability("NPV")(npv)
    agent.fallback("NPV")(backup)
    capability = agent.capabilities["NPV"]
    assert capability.inputs.check(b'{"rate":1}').value == {"rate": 1}
    assert capability.outputs is not None
    assert capability.outputs.check(b"1").value == 1
    assert capability.outputs.check(b'"1"').problems


def test_each_implementation_gets_the_context_if_it_wants_it():
    def npv(ctx: Context, rate: int): ...
    def backup(rate: int): ...

    agent = Agent("ANL")
    agent.capability("NPV")(npv)
    agent.fallback("NPV")(backup)
    capability = agent.capabilities["NPV"]
    capability.prepare()
    assert capability.wants_context == {npv: True, backup: False}


def test_a_function_that_runs_in_a_process_cannot_take_the_context():
    def npv(ctx: Context, rate: int): ...

    with pytest.raises(SchemaError, match="cannot take ctx"):
        declared(npv, run_in="process").prepare()


def test_a_capability_that_nobody_implements_cannot_be_used():
    capability = declared()
    capability.implementations = ()
    with pytest.raises(SchemaError, match="NPV has no implementation"):
        capability.prepare()


def test_a_decorator_that_is_never_applied_declares_nothing():
    agent = Agent("ANL")
    agent.capability("NPV")
    assert agent.capabilities == {}


def test_a_checker_is_built_once():
    capability = declared(lambda: None)
    assert capability.inputs is capability.inputs
    assert capability.outputs is None


def test_a_thousand_agents_have_no_validator_until_they_are_called():
    def checkers() -> int:
        while gc.collect():  # what finalizers let go is found by the next
            pass
        return sum(type(one) in (PythonType, JsonSchema) for one in gc.get_objects())

    gc.freeze()  # what other tests left is no work for the collections below
    before = checkers()
    agents = [Agent(f"A{number}") for number in range(1_000)]
    for agent in agents:

        @agent.capability("TYPED", output_schema={"type": "number"})
        def typed(cash_flows: list[float], rate: float) -> float: ...

    assert checkers() == before
    agents[0].capabilities["TYPED"].prepare()
    assert checkers() == before + 2
