"""The `Model` port on top of pydantic-ai's direct interface: our prompt in its words, its answer and its errors in ours.

Its agents, retries and loops are not used: who asks here knows the deadline and counts the tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Self, cast

from pydantic_ai import direct, exceptions, messages, models
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from comity.core.envelope import Usage
from comity.core.model import (
    TRANSIENT,
    Assistant,
    Completion,
    Fault,
    Finish,
    Prompt,
    System,
    ToolCall,
    ToolResult,
    User,
    model_error,
)
from comity.errors import ComityError

MESSAGE_CHARS_MAX = 500
SERVER_ERRORS_OF_LOAD = (502, 504, 529)
# A stream that ends without saying why was cut; by itself the library takes what came for the whole answer.
WHOLE = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)

# First match wins, so the narrower class stands before the wider one.
FAULTS: tuple[tuple[type[Exception], Fault], ...] = (
    (exceptions.ModelRateLimitError, Fault.RATE_LIMITED),
    (exceptions.ModelUnavailableError, Fault.OVERLOADED),
    (exceptions.ModelTimeoutError, Fault.TIMEOUT),
    (exceptions.ModelRequestTimeout, Fault.TIMEOUT),
    (exceptions.ModelConnectionError, Fault.UNREACHABLE),
    (exceptions.ModelContextWindowExceededError, Fault.CONTEXT_TOO_LONG),
    (exceptions.ModelAuthenticationError, Fault.MISCONFIGURED),
    (exceptions.ModelNotFoundError, Fault.MISCONFIGURED),
    (exceptions.ModelQuotaExceededError, Fault.MISCONFIGURED),
    (exceptions.ContentFilterError, Fault.REFUSED),
    (exceptions.UserError, Fault.MISCONFIGURED),
)
FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "tool_call": Finish.TOOL_CALLS, "content_filter": Finish.REFUSED}


class ProviderModel:
    """A model of a provider. `aclose` lets go of its connections, which are kept between requests."""

    def __init__(self, name: str, make: Callable[[], models.Model], *, enforces_schema: bool = False) -> None:
        self._name = name
        self._make = make
        self._enforces_schema = enforces_schema
        self._inner = make()  # here and not when it is asked: a wrong name is found early, and the loop is not held up
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def by_name(cls, provider: str, model: str, base_url: str | None, api_key: str | None) -> Self:
        """Return a model by the names pydantic-ai gives to providers."""

        def make() -> models.Model:
            if provider == "openai":
                return OpenAIChatModel(model, provider=OpenAIProvider(base_url, api_key), profile=WHOLE)
            more = {} if base_url is None else {"base_url": base_url}
            keyed = more if api_key is None else more | {"api_key": api_key}

            def connect(kind: str) -> Provider[Any]:
                return infer_provider_class(kind)(**keyed)

            return models.infer_model(f"{provider}:{model}", connect if keyed else infer_provider)

        name = f"{provider}:{model}"
        try:
            # Anthropic's enforcement closes every object, so that free data would come back empty.
            return cls(name, make, enforces_schema=provider in ("openai", "google"))
        except (exceptions.UserError, ImportError, ValueError) as error:
            raise model_error(Fault.MISCONFIGURED, f"{name}: {error}", name=name) from error

    @classmethod
    def compatible(cls, name: str, base_url: str, model: str, api_key: str | None) -> Self:
        """Return a model behind a server that speaks OpenAI's chat completions."""

        def make() -> models.Model:
            provider = OpenAICompatibleProvider("compatible", base_url=base_url, api_key=api_key)
            return OpenAIChatModel(model, provider=provider, profile=WHOLE)

        return cls(name, make)

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return self._name

    async def aclose(self) -> None:
        """Close the connections. The model can be asked again, on new ones."""
        if self._loop is asyncio.get_running_loop():
            await self._inner.__aexit__(None, None, None)
            self._loop = None

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Ask, yield pieces of the text and last the whole answer."""
        has_begun = False
        try:
            model = await self._connected()
            request = direct.model_request_stream(
                model,
                messages_of(prompt),
                model_settings=settings_of(prompt),
                model_request_parameters=self._parameters(prompt),
            )
            async with request as response:
                async for event in response:
                    has_begun = True
                    match event:
                        case messages.PartStartEvent(part=messages.TextPart(content=text)) if text:
                            yield text
                        case messages.PartDeltaEvent(delta=messages.TextPartDelta(content_delta=text)) if text:
                            yield text
                answer = response.get()
            yield completion_of(answer)
        except ComityError:
            raise
        except Exception as error:  # garbage from a provider comes out of its library as any error at all
            raise self._error(error, has_begun=has_begun) from error

    async def _connected(self) -> models.Model:
        """Return the inner model on the running loop; connections of another loop cannot be used."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                self._inner = self._make()
            self._loop = loop
            await self._inner.__aenter__()
        return self._inner

    def _parameters(self, prompt: Prompt) -> models.ModelRequestParameters:
        tools = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in prompt.tools
        ]
        # Not together with tools: not every model can have both, and the rounds with tools are not the final answer.
        if prompt.response_schema is None or tools or not self._enforces_schema:
            return models.ModelRequestParameters(function_tools=tools)
        schema = OutputObjectDefinition(name="reply", json_schema=dict(prompt.response_schema))
        return models.ModelRequestParameters(output_mode="native", output_object=schema)

    def _error(self, error: Exception, *, has_begun: bool) -> ComityError:
        fault = next((fault for kind, fault in FAULTS if isinstance(error, kind)), Fault.FAILED)
        if isinstance(error, exceptions.ModelHTTPError) and error.status_code in SERVER_ERRORS_OF_LOAD:
            fault = Fault.OVERLOADED
        if fault in TRANSIENT and has_begun:
            fault = Fault.FAILED  # asking again would say the first part twice
        if isinstance(error, exceptions.ModelAuthenticationError):
            said = "the provider did not accept the key"  # its own words may repeat the key
        else:
            said = " ".join(str(error).split())[:MESSAGE_CHARS_MAX] or type(error).__name__
        after_s = getattr(error, "retry_after", None)
        after_ms = None if after_s is None else max(0, round(after_s * 1000))
        return model_error(fault, f"{self._name}: {said}", retry_after_ms=after_ms, model=self._name)


def messages_of(prompt: Prompt) -> list[messages.ModelMessage]:
    """Return the messages of a prompt; what is said between two answers of the model becomes one request."""
    said: list[messages.ModelMessage] = []
    for message in prompt.messages:
        if isinstance(message, Assistant):
            text = [messages.TextPart(message.text)] if message.text else []
            calls = [messages.ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in message.calls]
            said.append(messages.ModelResponse(parts=[*text, *calls]))
            continue
        if not said or isinstance(said[-1], messages.ModelResponse):
            said.append(messages.ModelRequest(parts=[]))
        cast("list[messages.ModelRequestPart]", said[-1].parts).append(_part(message))
    return said


def _part(message: System | User | ToolResult) -> messages.ModelRequestPart:
    match message:
        case System(text=text):
            return messages.SystemPromptPart(text)
        case User(text=text):
            return messages.UserPromptPart(text)
        case ToolResult(call_id=call_id, name=name, text=text, is_error=is_error):
            return messages.ToolReturnPart(name, text, tool_call_id=call_id, outcome="failed" if is_error else "success")


def settings_of(prompt: Prompt) -> ModelSettings:
    """Return the settings of a prompt; the provider's library retries nothing."""
    settings = prompt.settings
    values: dict[str, Any] = {
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "stop_sequences": list(settings.stop) or None,
    }
    given = {name: value for name, value in values.items() if value is not None}
    return cast("ModelSettings", {**given, **settings.extra, "max_retries": 0})


def completion_of(answer: messages.ModelResponse) -> Completion:
    """Return the answer in our words. Raises if the provider stopped in the middle of it."""
    if answer.finish_reason is None and not (answer.provider_details or {}).get("finish_reason"):
        raise model_error(Fault.FAILED, f"{answer.model_name}: the answer broke off before its end", model=answer.model_name)
    calls = tuple(
        ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_json_str())
        for part in answer.parts
        if isinstance(part, messages.ToolCallPart)
    )
    finish = FINISHES.get(answer.finish_reason or "", Finish.STOP)
    return Completion(
        text="".join(part.content for part in answer.parts if isinstance(part, messages.TextPart)),
        calls=calls,
        usage=Usage(prompt_tokens=answer.usage.input_tokens, completion_tokens=answer.usage.output_tokens),
        finish=Finish.TOOL_CALLS if calls and finish is Finish.STOP else finish,
        model=answer.model_name or "",
    )
