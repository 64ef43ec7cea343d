"""How a run and its scopes end: what runs is stopped and awaited, what was done is taken back, limits are counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

from comity.core.document.schema import errors_of
from comity.core.envelope.usage import NO_USAGE, Cost, Usage
from comity.core.expression import EvaluationError
from comity.core.workflow import history, response
from comity.core.workflow.graph import GraphNode, Program
from comity.core.workflow.history import Command
from comity.core.workflow.mapping import MappingError, size_of
from comity.core.workflow.scope import Activity, Ending, Mailbox, Role, Scope, State

UNDO_ATTEMPTS_MAX: Final = 3
UNDO_PAUSE_MS: Final = 1_000
VALUE_BYTES_MAX: Final = 8 * 1024 * 1024  # of what a node makes of others: `set`, `decide`, `join`, `output`
SCOPE_BYTES_MAX: Final = 64 * 1024 * 1024  # of all that in one graph under way


class Endings(ABC):
    """The part of the planner that stops, takes back and ends."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.limits = program.graph.definition.limits
        self.root: Scope | None = None
        self.run: dict[str, Any] = {}
        self.now_ms = 0
        self.commands: list[Command] = []
        self.todo: list[tuple[Callable[..., None], Scope, tuple[Any, ...]]] = []  # by this event, in order
        self.waits: dict[int, Activity] = {}  # what each number that was given out stands for
        self.questions: dict[int, history.Ask] = {}  # open
        self.listens: dict[int, history.Listen] = {}
        self.mailbox: Mailbox = []
        self.deadline = 0
        self.finish: history.Finish | None = None
        self.steps = self.calls = 0
        self.used = NO_USAGE  # tokens and what they cost
        self.undone: list[str] = []
        self.unwinders: dict[Activity, Scope] = {}  # stand for calls that take something back
        self._numbers = 0

    @abstractmethod
    def work_done(self, activity: Activity, found: dict[str, Any]) -> None:
        """Take what a sub-workflow gave."""

    @abstractmethod
    def _settle(self, scope: Scope, number: int, found: dict[str, Any]) -> None:
        """Note what a node gave and settle its edges."""

    # --- numbers and turns ---

    def number(self) -> int:
        """Return a new number, the same one in every replay."""
        self._numbers += 1
        return self._numbers

    def push(self, act: Callable[..., None], scope: Scope, *arguments: Any) -> None:
        """Do something for a scope once what is being done is done."""
        scope.queued += 1
        self.todo.append((act, scope, arguments))

    def settle_now(self, scope: Scope, node: GraphNode, found: dict[str, Any], *, is_abandoned: bool = False) -> None:
        """Settle a node that has given its result."""
        if is_abandoned:
            scope.abandoned.add(node.number)
        self.push(self._settle, scope, node.number, found)

    # --- limits ---

    def deadline_at(self, due_at: int) -> None:
        """Set the time at which the run has taken too long."""
        self.deadline = self.number()
        self.commands.append(history.Timer(self.deadline, due_at))

    def may_step(self, scope: Scope) -> bool:
        """Return whether one more call is within the limits of the run, and count it for the sub-workflow that makes it.

        Fails the run, or the outermost sub-workflow, for which it would be one more than its `steps_max` or `calls_max`.
        """
        limits = self.limits
        if self.steps >= limits.steps_max:
            self.limit_reached(f"the run has made the {limits.steps_max} calls that steps_max allows")
            return False
        if self.calls >= limits.calls_max:
            self.limit_reached(f"the run has made the {limits.calls_max} calls that calls_max allows")
            return False
        below = _sub_workflows(scope)
        for one in reversed(below):
            most = one.graph.definition.limits
            if one.steps >= most.steps_max:
                self._part_reached(one, f"has made the {most.steps_max} calls that steps_max allows")
            elif one.calls >= most.calls_max:
                self._part_reached(one, f"has made the {most.calls_max} calls that calls_max allows")
            else:
                continue
            return False
        for one in below:
            one.steps += 1
            one.calls += 1
        return True

    def spend(self, event: history.Settled, scope: Scope) -> None:
        """Count what a step used below itself; the step was counted when it was made."""
        limits = self.limits
        self.calls = calls = self.calls + event.calls
        if event.prompt_tokens or event.completion_tokens:
            self.used += Usage(prompt_tokens=event.prompt_tokens, completion_tokens=event.completion_tokens, cost=event.cost)
        if scope.above is not None:
            self._spend_below(event, scope)
        if event.over:
            most = limits.calls_max if event.over == "calls" else limits.tokens_max
            self.limit_reached(f"the run has used up the {event.over} that {event.over}_max {most} allows")
        elif calls > limits.calls_max:
            self.limit_reached(f"the run has made {calls} calls; calls_max is {limits.calls_max}")
        elif limits.tokens_max is not None and self.used.total_tokens > limits.tokens_max:
            self.limit_reached(f"the run has used {self.used.total_tokens} tokens; tokens_max is {limits.tokens_max}")
        elif limits.cost_max is not None and (cost := self.cost) is not None:
            if cost.amount > limits.cost_max:
                self.limit_reached(f"the run has cost {cost.amount:.4f}; cost_max is {limits.cost_max}")
            elif cost.unpriced_tokens:
                self.limit_reached(
                    f"{cost.unpriced_tokens} tokens have no price, so cost_max {limits.cost_max} cannot be kept; "
                    "give Node(prices=...) the price of their model, or the definition prompt_cost and completion_cost"
                )

    def _spend_below(self, event: history.Settled, scope: Scope) -> None:
        """Count what a step of a sub-workflow used for it and for those it is a part of."""
        for one in reversed(_sub_workflows(scope)):
            most = one.graph.definition.limits
            one.calls += event.calls
            one.tokens += event.prompt_tokens + event.completion_tokens
            if one.calls > most.calls_max:
                self._part_reached(one, f"has made {one.calls} calls; calls_max is {most.calls_max}")
            elif most.tokens_max is not None and one.tokens > most.tokens_max:
                self._part_reached(one, f"has used {one.tokens} tokens; tokens_max is {most.tokens_max}")

    def _part_reached(self, scope: Scope, what: str) -> None:
        """Fail a sub-workflow over one of its limits."""
        told = f"the sub-workflow {scope.graph.definition.name} {what}"
        self.end_scope(scope, "failed", response.failure("WORKFLOW_LIMIT_REACHED", told), undoes=True)

    @property
    def cost(self) -> Cost | None:
        """What the tokens cost: by the prices of the definition if it has any, else by those of the nodes."""
        limits, used = self.limits, self.used
        if not used.total_tokens:
            return None
        if limits.prompt_cost or limits.completion_cost:
            spent = used.prompt_tokens * limits.prompt_cost + used.completion_tokens * limits.completion_cost
            return Cost(amount=spent / 1_000_000, currency="")
        return used.cost or Cost(currency="", unpriced_tokens=used.total_tokens)

    def limit_reached(self, what: str) -> None:
        """Fail the run over one of its limits."""
        if self.root is not None and self.root.ending is None:
            self.end_scope(self.root, "failed", response.failure("WORKFLOW_LIMIT_REACHED", what), undoes=True)

    # --- stopping ---

    def abandon(self, scope: Scope, region: Iterable[int]) -> None:
        """Stop the nodes that a join which has fired does without."""
        region = frozenset(region)
        for activity in [one for one in scope.active if one.node.number in region]:
            activity.is_abandoned = True
            self.stop_activity(activity)

    def stop_activity(self, activity: Activity) -> None:
        """Cancel what an activation runs; forget what it only waits for, and settle it if that was all."""
        if (each := activity.each) is not None:
            each.is_stopped = True  # it begins no more items
            for item in list(activity.items or ()):
                item.is_abandoned = activity.is_abandoned
                self.stop_activity(item)
            if activity.each is None:
                return  # the map ended with its last item
        if activity.below is not None and activity.below.ending is None:
            gone = response.failure("CALL_CANCELLED", f"{activity.node.spec.name} was stopped")
            self.end_scope(activity.below, "cancelled", gone, undoes=activity.scope.ending is None)
        runs = False
        for number, role in list(activity.numbers.items()):
            if role is Role.STEP:
                self.commands.append(history.Cancel(number))
                runs = True
        if not runs and activity.below is None and not activity.items and activity.scope.ending is None:
            self.forget(activity)
            self.work_done(activity, response.failure("CALL_CANCELLED", f"{activity.node.spec.name} was stopped"))

    def forget(self, activity: Activity) -> None:
        """Drop the questions, timers and events that an activation waits for."""
        if not activity.numbers:
            return
        for number, role in list(activity.numbers.items()):
            if role is not Role.STEP:
                del activity.numbers[number]
                self.waits.pop(number, None)
                self.questions.pop(number, None)
                self.listens.pop(number, None)
                self.commands.append(history.Drop(number))

    def drop_activity(self, activity: Activity) -> None:
        """Take an activation out of its scope."""
        self.forget(activity)
        activity.scope.active.pop(activity, None)
        if activity.item_of is not None and activity.item_of.items is not None:
            activity.item_of.items.pop(activity, None)

    # --- ends ---

    def fail_scope(self, scope: Scope, node: GraphNode, found: dict[str, Any]) -> None:
        """Fail a scope over a node whose failure no edge handles."""
        error = dict(found.get("error") or {"code": "TARGET_FAILED", "message": found.get("message", "")})
        failed = {**found, "status": "failure", "outcome": "error", "error": {**error, "node": scope.path + node.spec.name}}
        self.end_scope(scope, "failed", failed, undoes=True)

    def cancel_run(self, reason: str, by: str) -> None:
        """Cancel the run: stop what runs, then take back what was done."""
        assert self.root is not None
        who = f" by {by}" if by else ""
        found = response.failure("CALL_CANCELLED", f"the run was cancelled{who}{f': {reason}' if reason else ''}")
        self.end_scope(self.root, "cancelled", {**found, "outcome": "cancelled"}, undoes=True)

    def end_scope(self, scope: Scope, status: str, found: dict[str, Any], *, undoes: bool) -> None:
        """Stop a scope; it ends once what runs in it has ended."""
        if scope.ending is not None:
            return
        scope.ending = Ending(status, found, undoes)
        for activity in list(scope.active):
            self.stop_activity(activity)
            self._forget_all(activity)
        self.drained(scope)

    def _forget_all(self, activity: Activity) -> None:
        self.forget(activity)
        for item in activity.items or ():
            self.forget(item)

    def drained(self, scope: Scope) -> None:
        """Go on with the end of a scope if nothing runs in it any more."""
        if scope.ending is None or scope.undoing is not None or any(map(_runs, scope.active)):
            return
        scope.active.clear()
        if scope.ending.undoes and scope.undo:
            self._undo_next(scope)
            return
        self._ended(scope)

    def _ended(self, scope: Scope) -> None:
        ending = scope.ending
        assert ending is not None
        if scope.undo_failures:
            error = dict(ending.response.get("error") or {})
            error["not_undone"] = scope.undo_failures
            ending.response = {**ending.response, "error": error}
        above = scope.above
        if above is None:
            self.commands.append(history.Drop(self.deadline))
            self.finish = history.Finish(ending.status, ending.response)
            self.commands.append(self.finish)
            return
        above.below = None
        if not ending.undoes or ending.status == "completed":
            above.scope.undo += scope.undo  # taken back with what runs it, if that fails later
        if above.scope.ending is not None:
            self.drop_activity(above)
            self.drained(above.scope)
        else:
            self.work_done(above, ending.response)

    # --- compensation ---

    def _undo_next(self, scope: Scope) -> None:
        """Call what takes the latest node back; one after the other, in reverse order."""
        undo = scope.undo.pop()
        scope.undoing, scope.undo_attempts = undo, 1
        self._call_undo(scope, undo)

    def _call_undo(self, scope: Scope, undo: Any) -> None:
        if not undo.agent:  # its inputs could not be mapped
            self._undo_failed(scope, undo, str(undo.inputs))
            return
        stand_in = Activity(scope, scope.graph.nodes[0], undo.place, {})
        self.unwinders[stand_in] = scope
        number = self.number()
        stand_in.numbers[number] = Role.UNDO
        self.waits[number] = stand_in
        attempt = scope.undo_attempts
        self.calls += 1  # whatever the limits say: what was done has to be taken back
        call = history.Call(
            number, undo.place, undo.node, undo.agent, undo.capability, undo.inputs, undo.message, attempt=attempt, is_undo=True
        )
        self.commands.append(call)

    def undo_settled(self, stand_in: Activity, found: dict[str, Any]) -> None:
        """Take the end of a call that takes something back."""
        scope = self.unwinders.pop(stand_in)
        undo = scope.undoing
        assert undo is not None
        if found["status"] in response.OK:
            self.undone.append(undo.place)
            self._undo_on(scope)
        elif scope.undo_attempts < UNDO_ATTEMPTS_MAX:
            scope.undo_attempts += 1
            number = self.number()
            self.unwinders[stand_in] = scope
            stand_in.numbers = {number: Role.UNDO_PAUSE}
            self.waits[number] = stand_in
            pause_ms = UNDO_PAUSE_MS * 4 ** (scope.undo_attempts - 2)
            self.commands.append(history.Timer(number, self.now_ms + pause_ms, undo.place))
        else:
            self._undo_failed(scope, undo, str((found.get("error") or {}).get("message", "")))

    def undo_again(self, stand_in: Activity) -> None:
        """Try once more to take something back."""
        scope = self.unwinders.pop(stand_in)
        assert scope.undoing is not None
        self._call_undo(scope, scope.undoing)

    def _undo_failed(self, scope: Scope, undo: Any, why: str) -> None:
        scope.undo_failures = [*(scope.undo_failures or ()), f"{undo.place}: {why}"]
        self._undo_on(scope)

    def _undo_on(self, scope: Scope) -> None:
        scope.undoing = None
        self.drained(scope)

    # --- results ---

    def bounded(self, scope: Scope, number: int, value: Any) -> Any:
        """Return what a node made of other values. Raises `MappingError` if it, or all that its scope holds, is too large."""
        size = size_of(value, VALUE_BYTES_MAX)
        if size > VALUE_BYTES_MAX:
            raise MappingError(f"it has more than {VALUE_BYTES_MAX} bytes")
        if scope.sizes is None:
            scope.sizes = {}
        held = scope.held + size - scope.sizes.get(number, 0)
        if held > SCOPE_BYTES_MAX:
            raise MappingError(f"with it, {scope.graph.definition.name} would hold more than {SCOPE_BYTES_MAX} bytes")
        scope.sizes[number], scope.held = size, held
        return value

    def result_of(self, scope: Scope, node: GraphNode | None, found: dict[str, Any] | None) -> dict[str, Any]:
        """Return the response of a scope that is complete: its `output`, or the data of the nodes that nothing follows.

        `node` is the one whose reply said that the work is completed.
        """
        graph, variables = scope.graph, scope.variables
        definition = graph.definition
        message = ""
        try:
            if definition.has_output:
                data = definition.output if graph.output is None else self.bounded(scope, -1, graph.output(variables))
            elif node is not None and found is not None:
                data = found.get("data")
            else:
                data = _leaves(scope)
        except (MappingError, EvaluationError) as error:
            if node is None:
                return response.failure("WORKFLOW_MAPPING_FAILED", f"the output of {definition.name} has no value: {error}")
            data = found.get("data") if found is not None else None
        last = node or scope.last
        if last is not None and isinstance(variables.get(last.spec.name), dict):
            message = variables[last.spec.name].get("message") or ""
        if graph.output_validator is not None and (errors := errors_of(graph.output_validator, data)):
            wrong = errors[0].message
            return response.failure("OUTPUT_VALIDATION_FAILED", f"the output of {definition.name} does not fit: {wrong}")
        result = response.success(data)
        if message:
            result["message"] = message
        if scope.confidence is not None:
            result["confidence"] = scope.confidence
        if scope.warnings:
            result["status"] = result["outcome"] = "partial"
            result["warnings"] = list(scope.warnings)
        return result


def _runs(activity: Activity) -> bool:
    """Return whether a call or a sub-workflow of an activation has not ended."""
    if any(role is Role.STEP for role in activity.numbers.values()) or activity.below is not None:
        return True
    return any(map(_runs, activity.items or ()))


def _sub_workflows(scope: Scope) -> list[Scope]:
    """Return a scope and those it is a part of, the innermost first, without the run itself."""
    found: list[Scope] = []
    while scope.above is not None:
        found.append(scope)
        scope = scope.above.scope
    return found


def _leaves(scope: Scope) -> Any:
    """Return the data of the nodes that were run and that no taken edge leads on from."""
    graph = scope.graph
    found: dict[str, Any] = {}
    for node in graph.nodes[1:]:
        if scope.states[node.number] is not State.DONE:
            continue
        onward = [graph.edges[one] for one in node.outgoing]
        if any(edge.loop is None and scope.edges[edge.number] and edge.target >= 0 for edge in onward):
            continue
        reply = scope.variables[node.spec.name]
        if reply["status"] in response.OK:
            found[node.spec.name] = reply.get("data")
    return next(iter(found.values())) if len(found) == 1 else found
