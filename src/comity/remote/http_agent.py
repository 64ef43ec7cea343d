"""An agent in any language: an HTTP endpoint that gets one signed request for each call. `docs/remote.md` has the protocol.

The functions that declare its capabilities give names and types; their bodies are not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from comity.core.agent.agent import Agent
from comity.core.agent.retry import Retry
from comity.core.call.outside import standing_of
from comity.core.document.schema import is_context
from comity.core.envelope.envelope import VERSION, Reply, Request
from comity.engines.keys import Tokens
from comity.engines.keys.ring import encode_bytes
from comity.errors import TargetError, UnavailableError
from comity.remote.agent import NOTHING_USED, caller_of, lent
from comity.remote.link import ANSWER_BYTES_MAX, CANCEL_S, Link, client_errors, now_ms, read_events
from comity.runtime.call.context import Context
from comity.runtime.call.insider import Insider

Function = TypeVar("Function", bound=Callable[..., Any])


class Plain(Struct, frozen=True, forbid_unknown_fields=True):
    """The short form of a reply: that the work is done."""

    data: Any = None
    message: str = ""
    confidence: float = 1.0


_decode: Final = msgspec.json.Decoder(Reply).decode
_decode_any: Final = msgspec.json.Decoder(dict[str, Any]).decode
_decode_plain: Final = msgspec.json.Decoder(Plain).decode


class Endpoint(Struct, frozen=True):
    """Where an agent's requests go."""

    url: str
    link: Link


class HttpAgent(Agent):
    """An agent behind an HTTP endpoint: what `Agent(url=…)` makes.

    prices = Agent("PRICES", url="http://127.0.0.1:9000/prices", keys="work.db.keys")

    @prices.capability("QUOTE", timeout_ms=5_000)
    async def quote(symbol: str) -> dict: ...

    url: the endpoint; https beyond this machine.
    keys: the folder of this node's keys, which sign the requests.
    """

    def __init__(self, id: str, *, url: str, keys: str | Path | Tokens | None = None, **more: Any) -> None:  # noqa: A002
        super().__init__(id, **more)
        self.endpoint = Endpoint(url, Link(url, keys, node=id, now_ms=now_ms()))
        self.on_close = self.endpoint.link.close

    def implementation(
        self,
        code: str,
        *,
        priority: int,
        retry: Retry | None = None,
        run_in: Any = None,  # noqa: ARG002  a request waits in the loop
        timeout_ms: int | None = None,
        equivalent: bool = False,
        warning: str = "",
    ) -> Callable[[Function], Function]:
        """Declare a capability, or a further way to do it, by a function whose body is not run; see `Agent.implementation`."""
        declare = super().implementation(
            code, priority=priority, retry=retry, run_in="loop", timeout_ms=timeout_ms, equivalent=equivalent, warning=warning
        )

        def declared(function: Function) -> Function:
            declare(_forwarder(self.endpoint, code, function))
            return function

        return declared


def _forwarder(endpoint: Endpoint, code: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the inputs and result of another, and a context, that sends its call to the endpoint."""

    @functools.wraps(function)
    async def forward(ctx: Context, **inputs: Any) -> Any:
        return await _call(endpoint, code, Insider.of(ctx), inputs)

    parameters = list(inspect.signature(function).parameters.values())
    hints = dict(getattr(function, "__annotations__", {}))
    if not parameters or not is_context(parameters[0], _known(hints)):
        parameters.insert(0, inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context))
    first = parameters[0].name
    forward.__annotations__ = {first: Context, **{name: kind for name, kind in hints.items() if name != first}}
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return forward


def _known(hints: dict[str, Any]) -> dict[str, Any]:
    """Return annotations, those that name the context by a text as the context itself."""
    return {name: Context if kind in ("Context", "comity.Context") else kind for name, kind in hints.items()}


async def _call(endpoint: Endpoint, code: str, ctx: Insider, inputs: dict[str, Any]) -> Reply:
    request, link = ctx.request, endpoint.link
    loan = ctx.lend()
    reply: Reply | None = NOTHING_USED
    try:
        standing = standing_of(request, lent(ctx.limits, loan), link.issuer, outgoing_id=request.request_id)
        body = _body(code, inputs, request, ctx.token)
        digest = encode_bytes(hashlib.sha256(body).digest())
        token = link.tokens.for_agent(
            caller_of(standing), audience=link.node, user_id=request.user_id, standing=standing, now_ms=now_ms(),
            scope=f"call:{link.node}/{code}", tenant_id=request.tenant_id, session_id=request.session_id, digest=digest,
        )  # fmt: skip
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Idempotency-Key": request.request_id,
            "traceparent": ctx.traceparent,
        }
        reply = None
        reply = await _sent(endpoint, body, headers, ctx)
    finally:
        ctx.repay(loan, reply)
    return reply  # its end says the rest for itself


async def _sent(endpoint: Endpoint, body: bytes, headers: dict[str, str], ctx: Context) -> Reply:
    """Return the endpoint's reply. Raises `UnavailableError` if the endpoint is unreachable, `TargetError` for a bad answer."""
    link, is_begun = endpoint.link, False
    try:
        async with link.session().post(endpoint.url, data=body, headers=headers, allow_redirects=False) as answer:
            is_begun = True
            if answer.status >= 500 or answer.status == 429:
                raise UnavailableError(f"{endpoint.url} answered {answer.status}", code="TARGET_TEMPORARY_FAILURE")
            if answer.status >= 300:
                raise TargetError(f"{endpoint.url} answered {answer.status}", code="TARGET_MISCONFIGURED")
            if answer.content_type == "text/event-stream":
                async for event, data in read_events(answer.content.iter_any()):
                    if event == "progress":
                        ctx.progress(msgspec.json.decode(data))
                    elif event == "reply":
                        return _read(data, endpoint.url)
                raise TargetError(f"{endpoint.url} ended its stream without a reply", code="TARGET_FAILED")
            return _read(await answer.content.read(ANSWER_BYTES_MAX), endpoint.url)
    except asyncio.CancelledError:
        if is_begun:
            endpoint.link.tell(_tell_cancelled(endpoint, headers))
        raise
    except client_errors() as error:
        raise UnavailableError(f"{endpoint.url} cannot be reached: {error}", code="TARGET_TEMPORARY_FAILURE") from None


def _read(data: bytes, url: str) -> Reply:
    """Return a reply: the whole envelope, or plain `data` with, if it likes, `message` and `confidence`."""
    try:
        if "status" in _decode_any(data):
            return _decode(data)
        plain = _decode_plain(data)
        return Reply.success(plain.data, message=plain.message, confidence=plain.confidence)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise TargetError(f"{url} answered with something that is no reply: {error}", code="OUTPUT_VALIDATION_FAILED") from None


async def _tell_cancelled(endpoint: Endpoint, headers: dict[str, str]) -> None:
    """Tell the endpoint that the call is no longer wanted; an endpoint without `DELETE` goes on for nothing."""
    with contextlib.suppress(OSError, TimeoutError, *client_errors()):
        async with asyncio.timeout(CANCEL_S):
            async with endpoint.link.session().delete(endpoint.url, headers=headers, allow_redirects=False):
                pass


def _body(code: str, inputs: dict[str, Any], request: Request, call_token: str) -> bytes:
    return msgspec.json.encode(
        {
            "version": VERSION, "request_id": request.request_id, "target": request.target, "capability": code,
            "inputs": inputs, "objective": request.objective, "message": request.message, "user_id": request.user_id,
            "tenant_id": request.tenant_id, "session_id": request.session_id, "source": request.source,
            "chain": list(request.chain), "deadline_at": request.deadline_at, "call_token": call_token,
        }
    )  # fmt: skip
