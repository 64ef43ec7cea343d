"""`Insider`: the extended `ctx` of built-in agent kinds (model agents and proxies of remote agents)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from comity.core.agent.tool import may_use
from comity.core.call.ledger import Loan
from comity.core.envelope.usage import Usage, priced
from comity.core.model.quoting import Seal
from comity.runtime.call.binding import Result
from comity.runtime.call.context import Context
from comity.runtime.call.pace import user_of

if TYPE_CHECKING:
    from comity.core.agent.agent import Agent
    from comity.core.agent.tool import Tool
    from comity.core.document.schema import Checker
    from comity.core.envelope.envelope import Reply
    from comity.core.model.task_prompt import Known
    from comity.core.tracing.gen_ai import Asked


class Insider(Context, eq=False, gc=False):
    """The context of an agent with a model, or of an agent that is a proxy for a remote one."""

    @classmethod
    def of(cls, ctx: Context) -> Self:
        """Return the `Insider` for a context's call."""
        return cls(ctx._path, ctx._call)  # noqa: SLF001  the same call

    def lend(self) -> Loan:
        """Reserve half of the calls and tokens that are left, for work that another node does for this call.

        The loan is charged at once, so that it cannot be spent twice; `repay` returns the unused part.
        """
        account = self._call.account
        tokens_left = account.tokens_left()
        calls = (max(account.calls_left(), 0) + 1) // 2
        tokens = None if tokens_left is None else (tokens_left + 1) // 2
        account.give_back(-calls, -(tokens or 0))
        return Loan(calls, tokens)

    def repay(self, loan: Loan, reply: Reply[Any] | None) -> None:
        """Return the loan to the budget and charge the usage that the reply of the other node states.

        Without a reply the whole loan counts as used.
        """
        if reply is None:
            return
        call, used = self._call, reply.usage
        call.account.give_back(loan.calls - min(used.calls, loan.calls), loan.tokens or 0)
        call.calls_below += used.calls
        self._path.charge(call, used)

    def hear(self, reply: Reply[Any]) -> Reply[Any]:
        """Return the reply of another node, having noted that this call may pass on its reserved codes and metadata."""
        return self._call.given(reply)

    def mark(self, name: str, value: str) -> None:
        """Put reserved metadata of the platform into the reply of this call."""
        self._call.marks = {**(self._call.marks or {}), name: value}

    @property
    def seal(self) -> Seal:
        """The key for quotation marks in prompts, fixed per conversation, so the marks are equal in each prompt."""
        request = self._call.request
        return Seal(self._path.identity_key, f"{request.tenant_id} {request.session_id}")

    @property
    def captures_content(self) -> bool:
        """Whether spans of this node hold inputs and replies."""
        return self._path.recorder.settings.captures_content

    async def use_offered(self, offered: Collection[str], name: str, inputs: dict[str, Any], call_id: str = "") -> Any:
        """Use a tool that a model asked for. A tool not in `offered` is refused and audited, whatever the agent's rights.

        `call_id` is the model's id of this tool call, for the span.
        """
        return await self._path.toolbox.use(self._path.refuse, self._call, name, inputs, offered, call_id)

    def tools(self, names: Iterable[str]) -> dict[str, tuple[Tool, Checker]]:
        """Return the named tools that this call may use, each with its input checker."""
        box, held = self._path.toolbox, self._call.rights
        found = {name: tool for name in names if may_use(held, name) and (tool := box.get(name)) is not None}
        return {name: (tool, box.inputs(tool)) for name, tool in found.items()}

    def colleagues(self, *, limit: int) -> list[Agent]:
        """Return at most `limit` agents that this call may call; none if its depth or call budget is used up."""
        call, request = self._call, self._call.request
        if request.depth >= request.limits.depth_max or call.account.calls_left() <= 0:
            return []
        return self._path.registry.reachable(call.agent, {call.agent.id, *request.chain}, limit)

    def known(self) -> Known:
        """Return the prompt's background: the session as far as this call may see it, and the memory of the user."""
        from comity.core.model.task_prompt import NOTHING  # noqa: PLC0415
        from comity.core.session.memory import offered  # noqa: PLC0415  only agents with a model need it

        known = NOTHING if self._call.session_head.live is None else self.session.known()
        lines, left = offered(self.memory.memory())
        return replace(known, memory=lines, memory_left=left) if lines or left else known

    async def once(
        self,
        target: str,
        capability: str,
        make: Callable[[], Awaitable[Reply[Result]]],
        *,
        is_last: Callable[[Reply], bool] | None = None,
        asked: Callable[[], Asked] | None = None,
    ) -> Reply[Result]:
        """Run `make` as a durable step, as `Context.once` does.

        If `is_last` returns True, only the reply depends on the outcome; where guardrails may withhold it, it is recorded when
        the call settles. `asked` returns the model request for the span.
        """
        return await self._path.steps.once(self._call, target, capability, make, is_last, asked)

    def chance(self) -> float:
        """Return a random number in [0, 1) from the node's source of randomness."""
        return self._path.ids.chance()

    async def hide(self, raw: bytes) -> bytes:
        """Return JSON without personal data, as it would be in a reply."""
        answers = self._path.answers
        return raw if answers is None else await answers.long_data(self._call, raw)

    def pause(self) -> Awaitable[None]:
        """Return a future that lets other calls run between two steps of long work."""
        return self._path.slices.pause(user_of(self._call.request))

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Return what pure work returns that takes long and has no slices; see `Aside`."""
        return await self._path.slices.aside.run(work)

    def charge(self, usage: Usage) -> None:
        """Charge tokens that the span of a model request already states. Raises as `report_usage` does."""
        self._charge(usage)

    def priced(self, usage: Usage, model: str) -> Usage:
        """Return the usage with its cost by the node's prices for `model`."""
        return priced(usage, model, self._path.prices)
