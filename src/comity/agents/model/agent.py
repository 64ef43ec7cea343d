"""`Agent`, as users write it: what `core.agent.agent.Agent` is, and with a model an agent that thinks.

A model agent is an ordinary agent with one more capability, `message`, whose implementation asks the model. It is called,
refused, bounded, recorded and billed like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from comity.core.agent import agent as core
from comity.core.agent.agent import DeclarationError, Hook, Status
from comity.core.agent.tool import Tool
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply
from comity.core.envelope.reserved import MESSAGE
from comity.runtime.call.context import Context

if TYPE_CHECKING:
    from comity.agents.model.declared import Mind
    from comity.core.model.bounds import Thinking
    from comity.core.model.exchange import Settings
    from comity.core.model.tokens import TokenCounter
    from comity.ports import Model


class Agent(core.Agent):
    """An agent and what it can do. Capabilities are added by decorator:

    analyst = Agent("ANL", description="Financial analysis")

    @analyst.capability("ANL_NPV", timeout_ms=15_000)
    async def npv(ctx: Context, cash_flows: list[float], discount_rate: float) -> dict: ...

    With a model it has the capability `message` as well:

    prime = Agent("prime", model="openai:gpt-4o", instructions="You lead a team.", can_call=["byte"])

    id, aliases: under which it is called. `description`, `tags` and `owner` are for people and models.
    status: active, maintenance or retired; only an active agent takes calls.
    concurrency: calls that run at a time at each address; `pending_max` more may wait.
    can_call: the agents it may call; None or `"*"` for all.
    tools: functions or tools that it brings, or names of the node's, which a model is offered.
    tools_allowed: further tools that it may use.
    limits: narrows those of its calls.
    idle_ms: after so long without a call an address leaves memory.
    takes_handoffs: whether a running node that hosts it takes handoffs addressed to it.
    on_activate, on_deactivate: functions of address and state, when an address comes to memory and leaves it.
    model: `provider:model`, or a `Model`; `instructions` is what the model reads first, `settings` how it is asked.
    output_type: a type or JSON Schema of the data it answers with. `use_standard_protocol`, `response_format`,
        `success_criteria` and `failure_criteria` say how it answers and when it has succeeded.
    thinking: how many rounds and tokens an answer may take.
    can_transfer_to: agents that it may pass the conversation to.
    clear: types of personal data that its model is shown, if the node grants them.
    count_tokens: counts the tokens of a text, in place of an estimate.
    url: an HTTP endpoint, in any language, that does its work; `keys` is the folder of the keys that sign the requests to it.
    """

    __slots__ = ("mind",)
    # Makes an agent with a `url`: set where this class is published, since an agent with a model needs no network.
    over_http: ClassVar[Callable[..., Any] | None] = None

    def __new__(cls, *given: Any, url: str | None = None, **more: Any) -> Self:
        """Return an agent; one with a `url` is of the kind that sends its calls there."""
        if url is None or cls is not Agent:
            return super().__new__(cls)
        if Agent.over_http is None:
            raise DeclarationError("an agent with a url is made by comity.Agent")
        return cast("Self", Agent.over_http(*given, url=url, **more))

    def __init__(
        self,
        id: str,  # noqa: A002  the public word for it
        *,
        description: str = "",
        aliases: Collection[str] = (),
        tags: Collection[str] = (),
        owner: str = "",
        status: Status | str = Status.ACTIVE,
        concurrency: int = 64,
        pending_max: int = 1000,
        can_call: Collection[str] | None = None,
        tools: Collection[Tool | Callable[..., Any] | str] = (),
        tools_allowed: Collection[str] = (),
        limits: Limits | None = None,
        idle_ms: int = 300_000,
        on_activate: Hook | None = None,
        on_deactivate: Hook | None = None,
        takes_handoffs: bool = True,
        model: Model | str | None = None,
        instructions: str = "",
        output_type: Any = None,
        use_standard_protocol: bool | None = None,
        response_format: str | None = None,
        success_criteria: Sequence[str] = (),
        failure_criteria: Sequence[str] = (),
        settings: Settings | None = None,
        thinking: Thinking | None = None,
        can_transfer_to: Collection[str] = (),
        count_tokens: TokenCounter | None = None,
        clear: Collection[str] = (),
        url: str | None = None,  # noqa: ARG002  see `__new__`
        keys: Any = None,  # noqa: ARG002  as above
    ) -> None:
        if model is not None and isinstance(tools, Collection) and not isinstance(tools, str):
            from comity.agents.model.platform import TOOLS  # noqa: PLC0415  most agents have no model

            tools = [TOOLS.get(one, one) if isinstance(one, str) else one for one in tools]
        super().__init__(
            id,
            description=description,
            aliases=aliases,
            tags=tags,
            owner=owner,
            status=status,
            concurrency=concurrency,
            pending_max=pending_max,
            can_call=can_call,
            tools=tools,
            tools_allowed=tools_allowed,
            limits=limits,
            idle_ms=idle_ms,
            on_activate=on_activate,
            on_deactivate=on_deactivate,
            takes_handoffs=takes_handoffs,
        )
        self.mind: Mind | None = None
        thoughts = (instructions, output_type, use_standard_protocol, response_format, settings, thinking, count_tokens)
        if model is None:
            if any(thoughts) or success_criteria or failure_criteria or can_transfer_to or clear:
                raise DeclarationError(f"{id}: instructions, output_type and the like are for a model, and no model is given")
            return
        from comity.agents.model.declared import Mind  # noqa: PLC0415  most agents have no model

        mind = Mind(
            self,
            model=model,
            instructions=instructions,
            output_type=output_type,
            use_standard_protocol=use_standard_protocol,
            response_format=response_format,
            success_criteria=success_criteria,
            failure_criteria=failure_criteria,
            settings=settings,
            thinking=thinking,
            can_transfer_to=can_transfer_to,
            count_tokens=count_tokens,
        )
        self._think_with(mind, clear)

    def _think_with(self, mind: Mind, clear: Collection[str]) -> None:
        """Add the capability `message`, whose implementation asks the model."""
        from comity.core.tracing.gen_ai import AgentFacts  # noqa: PLC0415  as above

        self.mind = mind
        facts = mind.facts
        self.about = AgentFacts(self.about.description if self.about else "", facts.provider, facts.model)
        self.can_transfer_to = mind.can_transfer_to
        self.on_open = mind.open if mind.is_made_later else None
        self.on_close = mind.close
        output_type = mind.output_type

        async def message(ctx: Context, **inputs: Any) -> Reply:
            from comity.agents.model.turn import Turn  # noqa: PLC0415  needed when the first message comes

            return await Turn(mind, ctx, inputs).run()

        is_schema = isinstance(output_type, Mapping)
        if output_type is not None and not is_schema:
            message.__annotations__["return"] = output_type
        self.capability(
            MESSAGE,
            description=self.description or f"Takes a message and answers it, with {mind.model_name}.",
            output_schema=output_type if is_schema else None,
            clear=clear,
        )(message)
