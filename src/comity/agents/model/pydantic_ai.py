"""The `Model` port on top of pydantic-ai's direct interface: our prompt in its words, its answer and its errors in ours.

Its agents, retries and loops are not used: the model agent knows the deadline and counts the tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any, Self, cast
from urllib.parse import SplitResult, urlsplit

import httpx2
from pydantic_ai import direct, exceptions, messages, models
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.envelope.usage import Usage
from comity.core.model.exchange import (
    TRANSIENT,
    Assistant,
    Completion,
    Fault,
    Finish,
    Message,
    Prompt,
    System,
    ToolCall,
    ToolResult,
    User,
    model_error,
)
from comity.core.tracing.gen_ai import ModelFacts, provider_name
from comity.core.units import MS_PER_S
from comity.errors import ComityError

Make = Callable[[httpx2.AsyncClient], models.Model]

MESSAGE_CHARS_MAX = 500
ANSWER_CHARS_MAX = 4 * REPLY_BYTES_MAX  # of text, thoughts and arguments; no reply may be so long, so it is a fault
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


_opened: ContextVar[list[httpx2.Response] | None] = ContextVar("opened", default=None)


class ProviderModel:
    """A model of a provider. `aclose` lets go of its connections, which are kept between requests."""

    def __init__(
        self, name: str, provider: str, make: Make, *, enforces_schema: bool = False, takes_late_system: bool = True
    ) -> None:
        self._name = name
        self._provider = provider
        self._make = make
        self._enforces_schema = enforces_schema
        self._takes_late_system = takes_late_system
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams_open = 0
        self._is_closing = False
        self._connect()  # now and not when it is asked: a wrong name is found early, and no call waits for it

    @classmethod
    def by_name(cls, provider: str, model: str, base_url: str | None, api_key: str | None) -> Self:
        """Return a model by the names pydantic-ai gives to providers."""
        given = {"base_url": base_url, "api_key": api_key}
        keyed = {name: value for name, value in given.items() if value is not None}

        def make(client: httpx2.AsyncClient) -> models.Model:
            if provider == "openai":
                return OpenAIChatModel(model, provider=OpenAIProvider(base_url, api_key, http_client=client), profile=WHOLE)

            def connect(kind: str) -> Provider[Any]:
                make_provider: Callable[..., Provider[Any]] = infer_provider_class(kind)
                try:
                    return make_provider(http_client=client, **keyed)
                except TypeError:  # a few speak through something else
                    return make_provider(**keyed)

            return models.infer_model(f"{provider}:{model}", connect)

        name = f"{provider}:{model}"
        try:
            # Anthropic's enforcement closes every object, so that free data would come back empty.
            return cls(name, provider_name(provider), make, enforces_schema=provider in ("openai", "google"))
        except (exceptions.UserError, ImportError, ValueError) as error:
            raise model_error(Fault.MISCONFIGURED, f"{name}: {error}", name=name) from error

    @classmethod
    def compatible(cls, name: str, base_url: str, model: str, api_key: str | None) -> Self:
        """Return a model behind a server that speaks OpenAI's chat completions."""

        def make(client: httpx2.AsyncClient) -> models.Model:
            provider = OpenAICompatibleProvider("compatible", base_url=base_url, api_key=api_key, http_client=client)
            return OpenAIChatModel(model, provider=provider, profile=WHOLE)

        # The provider names the protocol, not the server's operator: the conventions mean that, and have `server.address` too.
        # Templates of local models often fail on a system message that is not the first.
        return cls(name, "openai", make, takes_late_system=False)

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return self._name

    @property
    def facts(self) -> ModelFacts:
        """What its spans say of it."""
        address = urlsplit(self._inner.base_url or "")
        return ModelFacts(self._provider, self._inner.model_name, address.hostname or "", _port(address))

    async def aclose(self) -> None:
        """Close the connections, as soon as no answer is under way. The model can be asked again, on new ones."""
        if self._loop is asyncio.get_running_loop():
            self._is_closing = True
            await self._close_if_idle()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Ask, yield pieces of the text and last the whole answer."""
        has_begun = False
        opened: list[httpx2.Response] = []
        self._streams_open += 1
        try:
            request = direct.model_request_stream(
                self._connected(),
                messages_of(prompt, takes_late_system=self._takes_late_system),
                model_settings=settings_of(prompt),
                model_request_parameters=self._parameters(prompt),
            )
            async with AsyncExitStack() as stack:
                previous = _opened.set(opened)
                try:
                    response = await stack.enter_async_context(request)
                finally:
                    _opened.reset(previous)
                chars = 0
                async for event in response:
                    has_begun = True
                    chars = self._lengthened(chars, event)
                    if text := text_of(event):
                        yield text
                answer = response.get()
            yield completion_of(answer)
        except ComityError:
            raise
        except Exception as error:  # garbage from a provider comes out of its library as any error at all
            raise self._error(error, has_begun=has_begun) from error
        finally:
            self._streams_open -= 1
            for one in opened:  # Google's library does not let go of a stream that is closed early
                await one.aclose()
            await self._close_if_idle()

    async def _close_if_idle(self) -> None:
        if self._is_closing and not self._streams_open:
            self._is_closing = False
            await self._client.aclose()

    def _lengthened(self, chars: int, event: messages.ModelResponseStreamEvent) -> int:
        chars += chars_of(event)
        if chars > ANSWER_CHARS_MAX:
            raise model_error(Fault.FAILED, f"{self._name}: the answer is longer than {ANSWER_CHARS_MAX} characters")
        return chars

    def _connect(self) -> None:
        self._client = models.create_async_httpx2_client()
        self._client.event_hooks = {**self._client.event_hooks, "response": [_remember]}
        self._inner = self._make(self._client)

    def _connected(self) -> models.Model:
        """Return the inner model on the running loop; connections of another loop cannot be used."""
        loop = asyncio.get_running_loop()
        if self._client.is_closed or self._loop not in (None, loop):
            self._connect()
        self._loop = loop
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
        after_ms = None if after_s is None else max(0, round(after_s * MS_PER_S))
        status = getattr(error, "status_code", None)
        facts = {"model": self._name} | ({"status_code": status} if isinstance(status, int) else {})
        return model_error(fault, f"{self._name}: {said}", retry_after_ms=after_ms, **facts)


def _port(address: SplitResult) -> int:
    """Return the port of an address, whether or not it is written there."""
    return address.port or {"https": 443, "http": 80}.get(address.scheme, 0)


async def _remember(response: httpx2.Response) -> None:
    if (opened := _opened.get()) is not None:
        opened.append(response)


def text_of(event: messages.ModelResponseStreamEvent) -> str:
    """Return the text that an event of a stream adds."""
    match event:
        case messages.PartStartEvent(part=messages.TextPart(content=text)):
            return text
        case messages.PartDeltaEvent(delta=messages.TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def chars_of(event: messages.ModelResponseStreamEvent) -> int:
    """Return by how much an event lengthens the answer, be it text, thought or argument."""
    match event:
        case messages.PartStartEvent(part=messages.TextPart(content=new) | messages.ThinkingPart(content=new)):
            return len(new)
        case messages.PartDeltaEvent(
            delta=messages.TextPartDelta(content_delta=new)
            | messages.ThinkingPartDelta(content_delta=new)
            | messages.ToolCallPartDelta(args_delta=new)
        ):
            return len(new or "")
        case _:
            return 0


def messages_of(prompt: Prompt, *, takes_late_system: bool = True) -> list[messages.ModelMessage]:
    """Return the messages of a prompt; what is said between two answers of the model becomes one request.

    Messages of the user in a row become one: not every model takes two. Where a system message must be the first, the later
    ones are moved up to it.
    """
    said: list[messages.ModelMessage] = []
    given: list[Message] = list(prompt.messages)
    if not takes_late_system:
        given.sort(key=lambda one: not isinstance(one, System))
    for message in given:
        if isinstance(message, Assistant):
            text = [messages.TextPart(message.text)] if message.text else []
            calls = [messages.ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in message.calls]
            said.append(messages.ModelResponse(parts=[*text, *calls]))
            continue
        if not said or isinstance(said[-1], messages.ModelResponse):
            said.append(messages.ModelRequest(parts=[]))
        parts = cast("list[messages.ModelRequestPart]", said[-1].parts)
        part, before = _part(message), parts[-1] if parts else None
        if isinstance(part, messages.UserPromptPart) and isinstance(before, messages.UserPromptPart):
            parts[-1] = messages.UserPromptPart(f"{before.content}\n\n{part.content}")
        else:
            parts.append(part)
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
        id=answer.provider_response_id or "",
    )
