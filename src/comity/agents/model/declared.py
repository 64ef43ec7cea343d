"""What a model agent is declared with, and what is made of it once: its prompt, the checker of its data, its model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from comity.agents.model.colleagues import call_definition
from comity.agents.model.platform import ASK_USER, TOOLS
from comity.core.agent.agent import Agent, DeclarationError
from comity.core.agent.declaration import shown
from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.document.payload import PayloadError, Problem, pack
from comity.core.document.schema import Checker, JsonSchema, PythonType
from comity.core.model.bounds import Thinking
from comity.core.model.exchange import Settings, ToolDefinition
from comity.core.model.quoting import Seal
from comity.core.model.reply.fields import Said
from comity.core.model.reply.quotes import EXAMPLE, replies_in
from comity.core.model.reply.tolerant import Budget
from comity.core.model.sacp_prompt import protocol_prompt, reply_schema, sample, template_problem
from comity.core.model.tokens import TokenCounter, estimate
from comity.core.tracing.gen_ai import ModelFacts, facts_of_name
from comity.errors import ComityError
from comity.ports import Model

JSON_STANDARD = "json_standard"  # SACP's word for replies in its protocol


class Mind:
    """A model agent's declaration. Nothing is resolved or built before the first call."""

    def __init__(
        self,
        agent: Agent,
        *,
        model: Model | str,
        instructions: str,
        output_type: Any,
        use_standard_protocol: bool | None,
        response_format: str | None,
        success_criteria: Sequence[str],
        failure_criteria: Sequence[str],
        settings: Settings | None,
        thinking: Thinking | None,
        can_transfer_to: Collection[str],
        count_tokens: TokenCounter | None,
    ) -> None:
        """Take what an agent is declared with; raise `DeclarationError` for what does not fit together."""
        self.agent_id = agent.id
        if not isinstance(model, str) and not callable(getattr(model, "stream", None)):
            raise self._wrong(f"model must be a name such as openai:gpt-4o, or a Model, not {shown(model)}")
        for what, texts in (("success_criteria", success_criteria), ("failure_criteria", failure_criteria)):
            if isinstance(texts, str):
                raise self._wrong(f"{what} must be a list of sentences, not the text {texts!r}")
        if isinstance(can_transfer_to, str):
            raise self._wrong(f"can_transfer_to must be a list of names, not the text {can_transfer_to!r}")
        if agent.can_call is not None and "*" not in agent.can_call and not frozenset(can_transfer_to) <= agent.can_call:
            beyond = ", ".join(sorted(frozenset(can_transfer_to) - agent.can_call))
            raise self._wrong(f"can_transfer_to names {beyond}, which can_call does not allow")
        self._criteria = (tuple(success_criteria), tuple(failure_criteria))
        try:
            self.has_protocol = uses_protocol(use_standard_protocol, response_format, output_type, *self._criteria)
        except DeclarationError as error:
            raise self._wrong(str(error)) from None
        self.thinking = thinking or Thinking()
        if template := self.thinking.protocol_template:
            problem = template_problem(template, has_schema=output_type is not None, has_criteria=any(self._criteria))
            if problem or not self.has_protocol:
                told = problem or "it is for agents that reply in the standard protocol"
                raise self._wrong(f"protocol_template: {told}")
        self.instructions = instructions
        self.output_type = output_type
        self.settings = settings or Settings()
        self.can_transfer_to = frozenset(can_transfer_to)
        self.tools = tuple(agent.tools)
        self.asks_user = agent.tools.get(ASK_USER) == TOOLS[ASK_USER]
        self.count = count_tokens or estimate
        self.is_made_later = isinstance(model, str)
        self._model = model
        self._call_definition: tuple[Any, tuple[ToolDefinition, tuple[str, ...]]] | None = None

    def _wrong(self, what: str) -> DeclarationError:
        return DeclarationError(f"{self.agent_id}: {what}")

    @property
    def model_name(self) -> str:
        """How the model is called, whether or not it has been used."""
        return self._model if isinstance(self._model, str) else self._model.name

    @cached_property
    def model(self) -> Model:
        """The model itself."""
        if not isinstance(self._model, str):
            return self._model
        from comity.agents.model.providers import resolve  # noqa: PLC0415  only agents of real providers need it

        return resolve(self._model)

    @property
    def facts(self) -> ModelFacts:
        """Which model it is, and where: as the model says, else as its name does."""
        made = self.__dict__.get("model", self._model)
        found = getattr(made, "facts", None)
        return found if isinstance(found, ModelFacts) else facts_of_name(self.model_name)

    def open(self) -> str:
        """Make the model, which may import a library for seconds; return what is wrong with it, which callers are told too."""
        try:
            _ = self.model
        except ComityError as error:
            return f"{self.agent_id} cannot think here: {error.message}"
        return ""

    async def close(self) -> None:
        """Let go of the model's connections, if it has any."""
        if "model" in self.__dict__ and (aclose := getattr(self.model, "aclose", None)) is not None:
            await aclose()

    @cached_property
    def system(self) -> str:
        """What the model reads before its task: the author's words, then the protocol."""
        if not self.has_protocol:
            return self.instructions
        schema = None if self._checker is None else self._checker.json_schema()
        example = None if schema is None else sample(schema)
        if example is not None and self.check(example):
            example = None  # the shape alone does not tell what fits, and a wrong example teaches the wrong thing
        prompt = protocol_prompt(
            data_schema=schema,
            example=example,
            success_criteria=self._criteria[0],
            failure_criteria=self._criteria[1],
            template=self.thinking.protocol_template,
        )
        return f"{self.instructions}\n\n{prompt}" if self.instructions else prompt

    @cached_property
    def examples(self) -> tuple[Said, ...]:
        """The replies that the model is shown; none of them is its own."""
        template = self.thinking.protocol_template
        return (EXAMPLE, *replies_in(self.system.removeprefix(self.instructions), Budget())) if template else (EXAMPLE,)

    @cached_property
    def response_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of a whole reply, where there is one."""
        if not self.has_protocol:
            return None
        return reply_schema(None if self._checker is None else self._checker.json_schema())

    def call_definition(self, reachable: Sequence[Agent], seal: Seal) -> tuple[ToolDefinition, tuple[str, ...]]:
        """Return the tool with which these agents are called; the same ones are reachable most of the time."""
        key = (seal, *((one, len(one.capabilities)) for one in reachable))
        if self._call_definition is None or self._call_definition[0] != key:
            self._call_definition = (key, call_definition(reachable, seal))
        return self._call_definition[1]

    def check(self, data: dict[str, Any]) -> tuple[Problem, ...]:
        """Return what is wrong with the data of a reply, be it against the declared type or for any envelope."""
        try:
            raw = pack(data, path="data", bytes_max=REPLY_BYTES_MAX)
        except PayloadError as error:
            return error.problems
        return () if self._checker is None else self._checker.check(raw).problems

    @cached_property
    def _checker(self) -> Checker | None:
        if self.output_type is None:
            return None
        if isinstance(self.output_type, Mapping):
            return JsonSchema(self.output_type, path="data")
        checker = PythonType(self.output_type, path="data")
        if checker.json_schema().get("type", "object") != "object":
            raise DeclarationError(f"{self.agent_id}: output_type must describe an object, since the data of a reply is one")
        return checker


def uses_protocol(flag: bool | None, response_format: str | None, *needs: Any) -> bool:
    """Return whether an agent replies in the standard protocol: if it says so, or declares what only the protocol can carry."""
    if response_format not in {None, "text", JSON_STANDARD}:
        raise DeclarationError(f"response_format must be text or {JSON_STANDARD}, not {response_format!r}")
    wants = response_format == JSON_STANDARD or any(need is not None and need != () for need in needs)
    if (flag is False or response_format == "text") and wants:
        raise DeclarationError("output_type and criteria need the standard protocol, which is switched off")
    return wants if flag is None else flag
