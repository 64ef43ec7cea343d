"""`RemoteAgent`: an agent of another node, callable here as any other.

The call keeps its user, session, trace and deadline. It gets half of what is left of its tree's calls and tokens, and what it
does not use comes back. Progress that the remote call reports is reported here; cancelling it here cancels it there.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace

from comity.core.access.claims import AT, Left, Standing
from comity.core.agent.agent import Agent
from comity.core.call.ledger import Loan
from comity.core.call.limits import Limits
from comity.core.call.outside import agent_of, standing_of
from comity.core.envelope.envelope import Reply, Request
from comity.core.units import NS_PER_MS
from comity.engines.keys import Tokens
from comity.errors import CallerError, ComityError
from comity.remote.link import Link, Sending, now_ms
from comity.runtime.call.context import Context
from comity.runtime.call.insider import Insider

AGENTS: Final = "/v1/agents"
NOTHING_USED: Final[Reply] = Reply.success()
_DISCOVERY_MS: Final = 60_000


class RemoteAgent(Agent):
    """An agent of another node.

    analyst = RemoteAgent("https://node-b:7654/v1/agents/ANL", keys="work.db.keys")
    async with Node(agents=[boss, analyst]) as node: ...

    url: the agent's address on its node.
    keys: the folder of this node's keys, which sign its tokens; the other node must trust them (`comity keys trust`).
    id: its name here, if another one than there. `aliases`, `tags` and the rest are as of `Agent`.
    node: the other node's name, to which its tokens are bound; asked of the node itself if not given.
    insecure_http: allow plain HTTP beyond this machine.
    """

    def __init__(
        self,
        url: str,
        *,
        keys: str | Path | Tokens,
        id: str | None = None,  # noqa: A002  the public word for it
        node: str = "",
        insecure_http: bool = False,
        link: Link | None = None,
        **more: Any,
    ) -> None:
        there, _, name = url.rpartition(f"{AGENTS}/")
        if not there or not name or "/" in name:
            raise CallerError(f"{url!r} is not the address of an agent, such as https://node-b:7654{AGENTS}/ANL", field="url")
        self.remote_id = unquote(name)
        super().__init__(id or self.remote_id, takes_handoffs=False, **more)
        self.url = url
        self.link = link or Link(there, keys, node=node, insecure_http=insecure_http, now_ms=now_ms())
        self.on_open = self._learn
        self.on_close = self.link.close

    async def refresh(self) -> None:
        """Ask the other node again what the agent can do. Raises `UnavailableError` if it cannot be asked."""
        await asyncio.to_thread(self._read)

    def _learn(self) -> str:
        """Learn what the agent can do; return why that is not known, if it is not."""
        try:
            self._read()
        except ComityError as error:
            return f"{self.id} at {self.url}: {error.message}"
        return ""

    def _read(self) -> None:
        self.link.learn_name()
        view = self.link.get(f"{AGENTS}/{urlsplit(self.url).path.rpartition('/')[2]}", _reading(self.link, self.id))
        self.description = self.description or str(view.get("description", ""))
        for one in view["capabilities"]:
            self.capabilities.pop(one["code"], None)
            self.capability(
                one["code"],
                name=one["name"],
                description=one["description"],
                version=one["version"],
                timeout_ms=one["timeout_ms"],
                active=one["active"],
                input_schema=one["input_schema"],
                output_schema=one["output_schema"],
            )(self._forwarder(one["code"]))

    def _forwarder(self, code: str) -> Callable[..., Any]:
        async def forward(ctx: Context, **inputs: Any) -> Reply:
            return await self._call(ctx, code, inputs)

        return forward

    async def _call(self, given: Context, code: str, inputs: dict[str, Any]) -> Reply:
        ctx, request, link = Insider.of(given), given.request, self.link
        outgoing_id = outgoing(link.issuer, request)
        loan = ctx.lend()
        reply: Reply | None = NOTHING_USED  # until something is sent
        try:
            standing = standing_of(request, lent(ctx.limits, loan), link.issuer, outgoing_id=outgoing_id)
            sending = Sending(
                outgoing_id,
                _body(self.remote_id, code, inputs, outgoing_id, request),
                lambda: self._token(request, standing, code),
                {"traceparent": ctx.traceparent} | ({"tracestate": ctx.tracestate} if ctx.tracestate else {}),
                request.deadline_at,
            )
            reply = None
            reply = await link.call(sending, progress=ctx.progress, now_ms=lambda: ctx.clock.now_ns() // NS_PER_MS)
        finally:
            ctx.repay(loan, reply)
        return ctx.hear(reply)  # its end says the rest for itself

    def _token(self, request: Request, standing: Standing, code: str) -> str:
        return self.link.tokens.for_agent(
            caller_of(standing), audience=self.link.node, user_id=request.user_id, standing=standing, now_ms=now_ms(),
            scope=f"call:{self.remote_id.partition('/')[0]}/{code}", tenant_id=request.tenant_id, session_id=request.session_id,
        )  # fmt: skip


def remote_agents(url: str, *, keys: str | Path | Tokens, node: str = "", insecure_http: bool = False) -> list[RemoteAgent]:
    """Return every agent of another node. Blocks while the node is asked; raises `UnavailableError` if it cannot be."""
    link = Link(url, keys, node=node, insecure_http=insecure_http, now_ms=now_ms())
    link.learn_name()
    found = link.get(AGENTS, _reading(link, "comity"))
    return [RemoteAgent(f"{link.url}{AGENTS}/{one['id']}", keys=link.tokens, link=link) for one in found["items"]]


def outgoing(issuer: str, request: Request) -> str:
    """Return the id under which a call runs on another node: the same for each attempt, another for each call here."""
    digest = hashlib.sha256(f"{issuer}\x1f{request.tenant_id}\x1f{request.request_id}".encode()).hexdigest()
    return f"rc-{digest[:40]}"


def caller_of(standing: Standing) -> str:
    """Return the id of the agent that makes a call, without its key and node."""
    return agent_of(standing.chain[-1]).partition("/")[0]


def lent(left: Limits, loan: Loan) -> Limits:
    """Return what a call on another node may use: what is left here, and of calls and tokens what was lent.

    The call itself was charged here when it was made; the other node counts it too.
    """
    return replace(left, calls_max=loan.calls + 1, tokens_max=loan.tokens)


def _body(target: str, code: str, inputs: dict[str, Any], outgoing_id: str, request: Request) -> bytes:
    said = {"objective": request.objective, "message": request.message, "context": request.context}
    document = {
        "target": target, "capability": code, "request_id": outgoing_id, "inputs": inputs, "priority": request.priority,
        **{name: value for name, value in said.items() if value},
    }  # fmt: skip
    return msgspec.json.encode(document)


def _reading(link: Link, agent: str) -> dict[str, str]:
    """Return the header of a token with which the other node's agents can be read about, and nothing be called."""
    at = now_ms()
    left = Left(deadline=at + _DISCOVERY_MS, calls=0, depth=0, fan_out=0)
    standing = Standing(chain=(f"{agent}{AT}{link.issuer}",), left=left)
    token = link.tokens.for_agent(
        agent, audience=link.node, user_id="discovery", standing=standing, scope="records:read", now_ms=at
    )
    return {"Authorization": f"Bearer {token}"}
