"""Tools: a call may use those that its agent's profile and every `tools=` grant above it allow.

The intent to use a tool is durable before its effect, under an id that is stable across replays. So an effect with a known
outcome is never repeated, and an effect with an unknown outcome is not risked twice. A high-risk tool waits for a person: the
whole tree is paused, as a crash would stop it, and resumes when the person has answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from comity.core.agent import effects as touch
from comity.core.agent import tool as core
from comity.core.agent.agent import DeclarationError
from comity.core.agent.declaration import shown
from comity.core.agent.registry import nearest
from comity.core.agent.running import LOOP, THREAD, RunIn, place_of
from comity.core.agent.tool import Risk, Tool
from comity.core.call import admission
from comity.core.call.admission import Refused as Refusal
from comity.core.call.limits import CITED_CHARS_MAX, INPUTS_BYTES_MAX, REPLY_BYTES_MAX
from comity.core.call.machine import PAUSED
from comity.core.document.checks import rejected
from comity.core.document.foreign_errors import told
from comity.core.document.payload import PayloadError, Problem, pack, unpack_long
from comity.core.document.schema import Checker
from comity.core.document.slices import Sliced, whole
from comity.core.envelope.envelope import Error, Reply, Request, Status, is_id
from comity.core.envelope.reserved import CODE as RESERVED
from comity.core.envelope.reserved import is_raised_by_platform, is_reserved
from comity.core.journal.records import Accepted, Document, Late, Saved, Settled
from comity.core.redaction import restore_value
from comity.core.tracing.telemetry import TOOL_PREFIX, CallEnd
from comity.errors import CallerError, ComityError, RefusedError, TargetError, UnavailableError
from comity.runtime.agent import forked
from comity.runtime.agent.failure_log import log_raised
from comity.runtime.call.draft import recordable
from comity.runtime.call.environment import Environment
from comity.runtime.call.journaled import step_request
from comity.runtime.call.pace import user_of
from comity.runtime.call.tasks import PASSES, after_a_turn, is_own
from comity.runtime.tracing import standing

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Finding
    from comity.runtime.call.call import Call

log = logging.getLogger("comity")

SHOWN_CHARS_MAX: Final = 500  # inputs in the question that a person reads
REASON_CHARS_MAX: Final = 1_000  # the reason that a person gives
_EXPLAINED: Final = (ComityError, PayloadError, TimeoutError, ConnectionError)  # not logged: the message suffices


class Approval(Struct, frozen=True, kw_only=True):
    """A question to a person: may this tool be used so? `granted` is None until a person answers."""

    id: str
    root_id: str
    tool: str
    target: str
    user_id: str
    tenant_id: str
    session_id: str
    inputs: Any
    asked_at: int
    granted: bool | None = None
    decided_by: str = ""
    decided_at: int | None = None
    proof: str = ""  # digest of the inputs, where policy masks parts of them irreversibly
    reason: str = ""  # in the words of the person who answered

    def is_for(self, tool: str, target: str, use: Request) -> bool:
        """Return whether this question was asked for that tool, by that agent, for the same user in the same session."""
        asked = (self.tool, self.target, self.tenant_id, self.user_id, self.session_id)
        return asked == (tool, target, use.tenant_id, use.user_id, use.session_id)

    @property
    def use(self) -> str:
        """The tool use, written as a function call of at most `SHOWN_CHARS_MAX` characters."""
        inputs = self.inputs if isinstance(self.inputs, dict) else {}
        named = ", ".join(f"{name}={_encode(value).decode()}" for name, value in inputs.items())
        return f"{self.tool}({named if len(named) <= SHOWN_CHARS_MAX else named[: SHOWN_CHARS_MAX - 1] + '…'})"


class Paused(BaseException):
    """Raised to unwind the tree of a call that waits for an approval."""

    def __init__(self, approval: Approval) -> None:
        self.approval = approval


_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(
    order="deterministic"
).encode  # equal bytes for equal inputs; in Python 1, 1.0 and True are equal
_decode = msgspec.json.Decoder(Approval).decode

Refuse = Callable[[Request, Refusal], Reply]  # refuses and records


class Toolbox:
    """The tools of a node."""

    def __init__(self, tools: Iterable[Tool], env: Environment) -> None:
        self._tools: dict[str, Tool] = {}
        self._touching: dict[str, touch.Touching | None] = {}
        self._checkers: dict[str, Checker] = {}
        self._places: dict[str, RunIn] = {}
        self._env = env
        self._journal = env.journal
        self._clock = env.clock
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Add a tool. Raises `DeclarationError` if another tool has its name."""
        if self._tools.setdefault(tool.name, tool) != tool:
            raise DeclarationError(f"two different tools are named {tool.name}")
        self._touching[tool.name] = touch.declare(tool.touches, tool.function)
        self._places[tool.name] = place_of(tool.function, tool.run_in)

    def get(self, name: str) -> Tool | None:
        """Return a tool by its name."""
        return self._tools.get(name)

    def inputs(self, tool: Tool) -> Checker:
        """Return the input checker of a tool."""
        checker = self._checkers.get(tool.name)
        if checker is None:
            checker = self._checkers[tool.name] = tool.inputs()
        return checker

    def use(
        self,
        refuse: Refuse,
        call: Call,
        name: str,
        inputs: dict[str, Any],
        offered: Collection[str] | None = None,
        call_id: str = "",
    ) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that uses a tool for a call and returns its result, or raises the refusal or failure.

        With `offered`, only those tools may be used, whatever the call's rights: the model was offered no others.
        """
        call.tools_used += 1  # before it runs, so parallel uses keep their ids on replay
        return self._told(call, self._use(refuse, call, name, inputs, call.tools_used, offered, call_id))

    async def _told(self, call: Call, use: Coroutine[Any, Any, Any]) -> Any:
        """Await a tool use; note the code of a refusal or failure, so that the agent may pass it on."""
        try:
            return await use
        except ComityError as error:
            call.hear(error.code)
            raise

    async def _use(
        self,
        refuse: Refuse,
        call: Call,
        name: str,
        inputs: dict[str, Any],
        number: int,
        offered: Collection[str] | None,
        call_id: str,
    ) -> Any:
        await asyncio.sleep(0)  # an agent that uses tools in a loop must not block the event loop, or its own deadline
        call.check_running()
        start_ns = self._clock.now_ns()
        request = self._request(call, name, inputs, self._env.recorder.new_span_id(), number)
        refusal = self._refusal(call, name, request, offered)
        findings: tuple[Finding, ...] = ()
        if refusal is None and self._env.guidance is not None and (touching := self._touching[name]) is not None:
            findings = self._env.guidance.findings(touching, inputs)
            refusal = admission.forbidden(findings)
        if refusal is not None:
            if pause_ms := call.request.limits.pause_ms(number):
                await call.wait_in_line(pause_ms)
                call.check_running()
            reply = await after_a_turn(refuse(request, refusal))
            return reply.unwrap()
        tool = self._tools[name]
        known = self._journal.call(request.request_id) if call.is_again else None
        if known is not None and known.settled_at is not None and known.reply is not None:
            return known.reply.unwrap()
        if known is not None and not tool.idempotent:
            message = f"{name} was begun as {request.request_id} before its node stopped; whether it happened is unknown"
            raise RefusedError(message, code="TOOL_OUTCOME_UNKNOWN")
        if tool.risk == Risk.HIGH:
            self._check_approval(call, tool, request)
        if known is not None:
            (call.top.leftovers or {}).pop(request.request_id, None)  # it runs again, and settles by itself
        note = ""
        if findings:
            call.warnings = (*call.warnings, *map(str, findings))
            note = admission.told(findings)
        if call.uses is None:
            call.uses = {}
        call.uses[request.request_id] = request
        await self._env.durable(
            (Accepted(request, self._env.now_ms(), self._journal.node_id, note),), call.terms
        )  # before the effect
        call.check_running()  # the call may have ended during the await: then the effect must not happen
        reply = await standing.inside(self._env.recorder, call, request, self._run(call, tool, request))
        if self._env.recorder.ended is not None:
            self._env.recorder.ended(CallEnd(request, reply, start_ns, self._clock.now_ns(), call.remote, call_id=call_id))
        if call.state is PAUSED:
            pass  # the use is paused with its tree; after resuming, its outcome is unknown
        elif call.uses is None or call.uses.pop(request.request_id, None) is None:
            self._journal.append((Late(request, reply, self._env.now_ms()),), None, call.held)
        elif tool.has_effects:  # the agent's next effect may depend on it, so it must be durable first
            await self._env.durable((Settled(request, reply, self._env.now_ms()),), call.held)
        else:
            self._journal.append((Settled(request, reply, self._env.now_ms()),), None, call.held)
        return reply.unwrap()

    def approval(self, approval_id: str) -> Approval | None:
        """Return an approval by its id, or None. Raises `UnavailableError` if it cannot be decoded."""
        stored = self._journal.load(Document.APPROVAL, approval_id)
        try:
            return _decode(stored[1]) if stored is not None else None
        except msgspec.MsgspecError as error:
            message = f"the question {approval_id!r} cannot be read: {error}"
            raise UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False) from None

    def approvals(self) -> list[Approval]:
        """Return all approvals, answered or not; skip and log those that cannot be decoded."""
        found = []
        for key, data in self._journal.list_documents(Document.APPROVAL):
            try:
                found.append(_decode(data))
            except msgspec.MsgspecError as error:
                log.error("the question %s cannot be read and is left out: %s", key, error)  # noqa: TRY400
        return found

    def check_goes_on(self, approval: Approval) -> None:
        """Raise `CallerError` if this node lacks an agent or tool of the paused tree: resuming it here would end it."""
        root = self._journal.call(approval.root_id)
        if root is None or root.request is None:  # it has ended
            return
        for target in (root.target, approval.target):
            if self._env.registry.resolve(target) is None:
                raise CallerError(
                    f"this node has no agent {target!r}, which the waiting call needs", code="ROUTING_UNKNOWN_AGENT"
                )
        if approval.tool not in self._tools:
            raise CallerError(f"this node has no tool {approval.tool!r}, which the waiting call needs", code="TOOL_UNKNOWN")

    async def decide(self, approval: Approval, *, granted: bool, by: str, reason: str = "") -> str:
        """Record a person's answer. If it was answered before, return a note, or raise `RefusedError` if the answers differ."""
        for field, is_sound, rule in (
            ("granted", type(granted) is bool, "must be True or False"),
            ("by", is_id(by), "must name who answers, in printable text"),
            ("reason", type(reason) is str and len(reason) <= REASON_CHARS_MAX, f"must be a text of up to {REASON_CHARS_MAX}"),
        ):
            if not is_sound:
                raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (Problem(field, rule),)))
        if approval.granted is None:
            mine = replace(approval, granted=granted, decided_by=by, decided_at=self._env.now_ms(), reason=reason)
            await self._env.durable((Saved(Document.APPROVAL, approval.id, 2, _encode(mine)),))
            approval = self.approval(approval.id) or mine  # another person may have been first, here or in another process
            if approval == mine:
                return ""
        from comity.core.insight.insight import time_text  # noqa: PLC0415  most answers are the first

        what = f"{approval.id} was {'granted' if approval.granted else 'denied'} by {approval.decided_by}"
        what = f"{what} at {time_text(approval.decided_at or 0)}; this answer changed nothing"
        if approval.granted is not granted:
            raise RefusedError(what, code="APPROVAL_ANSWERED", approval=approval)
        return what

    def _request(self, call: Call, name: str, inputs: dict[str, Any], span_id: str, number: int) -> Request:
        try:
            body = pack(inputs, path="inputs", bytes_max=INPUTS_BYTES_MAX)
        except PayloadError as error:
            raise rejected(error) from None
        shown = recordable(name)
        return step_request(call.request, number, f"{TOOL_PREFIX}{shown}", shown, Raw(body), self._env.now_ms(), span_id)

    def _refusal(self, call: Call, name: str, request: Request, offered: Collection[str] | None) -> Refusal | None:
        if not isinstance(name, str) or name not in self._tools:
            close = nearest(request.capability, self._tools if offered is None else offered)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            return Refusal("TOOL_UNKNOWN", f"no tool {request.capability[:CITED_CHARS_MAX]!r}{hint}")
        facts = {"agent": request.source, "tool": name}
        if offered is not None and name not in offered:
            return Refusal("TOOL_NOT_PERMITTED", f"{name} is not offered to {request.source}", facts=facts)
        if not core.may_use(call.rights, name):
            return Refusal("TOOL_NOT_PERMITTED", _not_permitted(self._env, call, name), facts=facts)
        if self._tools[name].typed and (problems := self.inputs(self._tools[name]).check(bytes(request.body)).problems):
            told = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
            return Refusal("INPUT_VALIDATION_FAILED", told, problems=problems)
        return None

    def _check_approval(self, call: Call, tool: Tool, request: Request) -> None:
        approval = self.approval(request.request_id)
        # The approval outlives the call, so its inputs are redacted as a reply would be.
        inputs = unpack_long(request.body if self._env.answers is None else self._env.answers.data(call, bytes(request.body)))
        proof = _proof(self._env, call, inputs, bytes(request.body))
        if approval is None:
            approval = Approval(
                id=request.request_id,
                root_id=request.root_id,
                tool=tool.name,
                target=call.request.target,
                user_id=request.user_id,
                tenant_id=request.tenant_id,
                session_id=request.session_id,
                inputs=inputs,
                asked_at=self._env.now_ms(),
                proof=proof,
            )
            live = call.session_head.live
            hidden = () if live is None else self._env.sessions.saved_vault(live)
            self._env.sessions.append((*hidden, Saved(Document.APPROVAL, approval.id, 1, _encode(approval))))
        if not approval.is_for(tool.name, call.request.target, request):  # the id may be another request's
            raise RefusedError(f"{approval.id} was asked for another use of a tool", code="APPROVAL_DENIED")
        if approval.granted is None:
            raise Paused(approval)
        if (_sorted(approval.inputs), approval.proof) != (_sorted(inputs), proof):  # the person approved other inputs
            raise RefusedError(f"{tool.name} was approved with other inputs", code="APPROVAL_DENIED")
        if not approval.granted:
            why = f": {approval.reason}" if approval.reason else ""
            raise RefusedError(f"{tool.name} was denied by {approval.decided_by}{why}", code="APPROVAL_DENIED")

    async def _run(self, call: Call, tool: Tool, request: Request) -> Reply:
        if self._env.observer is not None:
            self._env.observer.using(tool, request)
        inputs, vault, task = unpack_long(request.body), self._env.sessions.vault_of(call), asyncio.current_task()
        if tool.clear and vault is not None:
            inputs = restore_value(inputs, vault, tool.clear)
        try:
            if tool.typed:
                inputs = _typed(self.inputs(tool), inputs)
            if tool.takes_key:
                inputs["idempotency_key"] = request.request_id
            result = await self._result(call, tool, request, inputs)
            return await self._env.slices.run(_done(self._env, call, request, result), user_of(request))
        except BaseException as raised:  # a tool's failure is a value to the agent that used it
            if forked.is_child():
                forked.leave(raised)
            if isinstance(raised, PASSES) and not is_own(raised, task):
                raise
            return _failed(self._env, call, tool, request, raised)

    async def _result(self, call: Call, tool: Tool, request: Request, inputs: dict[str, Any]) -> Any:
        """Run a tool's function where it is declared to run (loop, thread or process) and return its result."""
        place = self._places[tool.name]
        if place is THREAD:
            late = partial(self._ended_late, call, tool, request)
            return await self._env.threads.run(call, tool.function, inputs, late=late)
        if place is not LOOP:
            return await self._env.run_in_process(tool.function, inputs)
        result = tool.function(**inputs)
        return await result if inspect.isawaitable(result) else result

    def _ended_late(self, call: Call, tool: Tool, request: Request, result: Any, raised: BaseException | None) -> None:
        """Record the outcome of a tool whose thread outlived its call."""
        try:
            reply = (
                _failed(self._env, call, tool, request, raised)
                if raised is not None
                else whole(_done(self._env, call, request, result))
            )
        except Exception as unsound:  # noqa: BLE001  a result that cannot be recorded, or hidden any more
            reply = _failed(self._env, call, tool, request, unsound)
        self._journal.append((Late(request, reply, self._env.now_ms()),), None, call.held)


def _not_permitted(env: Environment, call: Call, name: str) -> str:
    """Return why a call may not use a tool, and where to permit it."""
    needed = [call.agent]
    if env.inheritance.is_chained:
        above = (env.registry.resolve(address) for address in call.request.chain)
        needed = [*(address.agent for address in above if address is not None), call.agent]
    if without := [agent.id for agent in needed if not core.may_use(agent.tools_allowed, name)]:
        return f"{call.agent.id} may not use {name}: add {name!r} to tools_allowed of {' and '.join(without)}"
    return f"{call.agent.id} may not use {name} here: a call above was made with tools= that does not name it"


def _proof(env: Environment, call: Call, shown: Any, body: bytes) -> str:
    """Return a keyed digest of a tool's inputs if the approval shows them masked, so that other inputs cannot replace them."""
    vault, inputs = env.sessions.vault_of(call), unpack_long(body)
    if vault is not None:
        shown, inputs = restore_value(shown, vault), restore_value(inputs, vault)
    if shown == inputs:
        return ""
    return hmac.new(env.identity_key, b"comity approval 1\n" + _sorted(inputs), hashlib.sha256).hexdigest()


def _done(env: Environment, call: Call, request: Request, result: Any) -> Sliced[Reply]:
    raw = pack(result, path="data", bytes_max=REPLY_BYTES_MAX)
    data = unpack_long(raw if env.answers is None else (yield from env.answers.data_sliced(call, raw)))
    return Reply.success(data, request_id=request.request_id, source=request.target)


def _failed(env: Environment, call: Call, tool: Tool, request: Request, raised: BaseException) -> Reply:
    if not isinstance(raised, _EXPLAINED):
        hide = None if env.answers is None else partial(env.answers.trace, call)
        log_raised(raised, hide, "the tool %s raised (request %s)", tool.name, request.request_id)
    code = raised.code if isinstance(raised, (CallerError, TargetError)) else "TARGET_FAILED"
    if is_reserved(code) and not is_raised_by_platform(raised):  # type: ignore[arg-type]
        code = RESERVED
    error = Error.of(code, f"{tool.name}: {_said(raised)}")
    error = error if env.answers is None else env.answers.error(call, error)
    return Reply(status=Status.ERROR, error=error, request_id=request.request_id, source=request.target)


def _said(raised: BaseException) -> str:
    """Return the text of a tool's exception, or its type if it has no text."""
    try:
        return str(raised) if isinstance(raised, Exception) else told(raised)
    except Exception:  # noqa: BLE001  also what it says of itself is foreign code
        return told(raised)


def _typed(checker: Checker, inputs: dict[str, Any]) -> Any:
    """Return the inputs converted to the function's types; with hidden values restored they may fail the check."""
    checked = checker.check(pack(inputs, path="inputs", bytes_max=INPUTS_BYTES_MAX))
    if checked.problems:
        raise PayloadError("INPUT_VALIDATION_FAILED", checked.problems)
    return checked.value


def checked_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the tools of a node. Raises `DeclarationError` if an item is no `Tool`."""
    found = tuple(tools) if isinstance(tools, Iterable) else (tools,)
    for tool in found:
        if not isinstance(tool, Tool):
            hint = "make it with Tool(name=…, function=…) or Tool.of(function)"
            raise DeclarationError(f"tools must be a list of tools; {shown(tool)} is none: {hint}")
    return found
