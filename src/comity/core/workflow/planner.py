"""The planner: from the events of a run to the commands that follow, one event at a time, at a cost that does not grow.

Every edge settles once per turn of its loops, as taken or not. A node starts when its join holds and is skipped when it cannot;
a skipped node settles its edges as not taken, so that a join behind it never waits in vain (dead-path elimination).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, assert_never

from comity.core.expression import EvaluationError
from comity.core.workflow import history, response
from comity.core.workflow.activities import Activities
from comity.core.workflow.graph import ALWAYS, CONDITION, ERROR, OTHERWISE, SUCCESS, TO_END, GraphEdge, GraphNode, Program
from comity.core.workflow.history import Command, Event
from comity.core.workflow.model import On
from comity.core.workflow.scope import LoopState, Scope, State, new_scope

TURNS_MAX: Final = 100_000  # nodes settled by one event
_ACTIVE, _DONE, _SKIPPED, _IDLE = State.ACTIVE, State.DONE, State.SKIPPED, State.IDLE


class Planner(Activities):
    """The state of one run. Events go in, commands come out; equal histories give equal planners."""

    def __init__(self, program: Program, decided: Callable[..., None] | None = None) -> None:
        super().__init__(program)
        self._decided = decided  # told of every edge; see `why`

    def apply(self, event: Event) -> list[Command]:
        """Take one event and return what is to be done next, in order. An event that nothing waits for changes nothing."""
        self.now_ms = event.at_ms
        self.commands = []
        match event:
            case history.Settled():
                self.step_settled(event)
            case history.Started():
                self._start(event)
            case history.Fired():
                self.fired(event.timer)
            case history.Answered():
                self.answered(event.question, event.answer, event.by)
            case history.Received():
                self.received(event.event, event.data)
            case history.Cancelled():
                if self.root is not None:
                    self.cancel_run(event.reason, event.by)
            case history.Migrated():
                pass  # `fold` has taken the new program
            case _ as never:
                assert_never(never)
        if self.todo:
            self._drain()
        return self.commands

    def _start(self, event: history.Started) -> None:
        if self.root is not None:
            return
        graph = self.program.graph
        definition = graph.definition
        self.run = {"id": event.run_id, "workflow": definition.name, "version": definition.version, "started_at": event.at_ms}
        self.root = new_scope(graph, "", None, event.input, self.run)
        self.deadline_at(event.at_ms + definition.limits.runtime_ms)
        if graph.begins and self._decided is None:
            self._begin_run(self.root)
        else:
            self.begin_scope(self.root)

    def _begin_run(self, scope: Scope) -> None:
        """Make the calls that `start` leads to: what settling `start` does where there is nothing but calls to begin with."""
        scope.states[0] = _DONE
        scope.variables["response"] = response.success(scope.variables["input"])
        for edge in scope.graph.begins:
            target = edge.target
            scope.edges[edge.number] = True
            scope.pending[target], scope.taken[target], scope.states[target] = 0, 1, _ACTIVE
            self.start_call(scope, scope.graph.nodes[target])
            if scope.ending is not None:
                return

    def begin_scope(self, scope: Scope) -> None:
        """Begin the workflow, or a sub-workflow."""
        self.push(self._settle, scope, 0, response.success(scope.variables["input"]))

    def go_on(self, scope: Scope, node: GraphNode, edge: GraphEdge, found: dict[str, Any]) -> None:
        """Settle a node that did its work and has one edge, as `_settle` does but without the queue."""
        if self._decided is not None or found["status"] == "completed" or "error" in found:
            self.settle_now(scope, node, found)
            return
        states, variables = scope.states, scope.variables
        states[node.number] = _DONE
        variables[node.name] = variables["response"] = found
        self._remember(scope, node, found)
        target = edge.target
        scope.edges[edge.number] = True
        follower = scope.graph.nodes[target]
        if follower.is_straight and not scope.errors:
            scope.taken[target], scope.pending[target], states[target] = 1, 0, _ACTIVE
            self.start_call(scope, follower)
            return
        scope.taken[target] += 1
        scope.pending[target] -= 1
        if states[target] is _IDLE:
            self._try(scope, target)
        if not scope.queued and not scope.active:  # the last step led to a join that had fired
            self._complete(scope)

    def go_round(self, scope: Scope, node: GraphNode, edge: GraphEdge, found: dict[str, Any]) -> None:
        """Run a node once more if the edge to itself is taken, as `_settle` and `_turn` do but without the queue."""
        variables, loop, most = scope.variables, scope.loops[node.loops[0]], edge.spec.max
        assert most is not None
        if self._decided is not None or scope.queued or scope.errors or found["status"] == "completed" or "error" in found:
            self.settle_now(scope, node, found)
            return
        variables[node.name] = variables["response"] = found
        try:
            is_taken = edge.condition is None or edge.condition.holds(variables)
        except EvaluationError:
            is_taken = False  # `_route` says why
        counts = loop.counts or {}
        turns = counts.get(edge.number, 0)
        if not is_taken or turns >= most:
            self.settle_now(scope, node, found)
            return
        self._remember(scope, node, found)
        counts[edge.number], loop.counts = turns + 1, counts
        if loop.deferred is None:
            outgoing = [scope.graph.edges[number] for number in node.outgoing]
            loop.deferred = {one.number: False for one in outgoing if one.loop is None}
        loop.turn = turn = loop.turn + 1
        loop.error, loop.instruction = None, ""
        self.start_call(scope, node, f"{scope.path}{node.name}@{turn}")

    def come_to_end(self, scope: Scope, node: GraphNode, found: dict[str, Any]) -> None:
        """Settle a node that did its work, that nothing follows and beside which nothing runs, as `_settle` does."""
        if self._decided is not None or scope.queued or found["status"] == "completed":
            self.settle_now(scope, node, found)
            return
        scope.states[node.number] = _DONE
        scope.variables[node.name] = found
        self._remember(scope, node, found)
        self._complete(scope)

    # --- one node after the other ---

    def _drain(self) -> None:
        for turn, (act, scope, arguments) in enumerate(self.todo, 1):  # which grows meanwhile
            scope.queued -= 1
            if turn == TURNS_MAX:
                self.limit_reached(f"one event led to more than {TURNS_MAX} nodes without a call or a wait")
            if scope.ending is None:
                act(scope, *arguments)
            if not scope.queued and not scope.active:
                self._complete(scope)
        self.todo.clear()

    def _complete(self, scope: Scope) -> None:
        """End a scope in which nothing is left to be done."""
        if scope.ending is None:
            found = self.result_of(scope, None, None)
            is_sound = found["status"] in response.OK
            self.end_scope(scope, "completed" if is_sound else "failed", found, undoes=not is_sound)

    def _settle(self, scope: Scope, number: int, found: dict[str, Any]) -> None:
        """Note what a node gave and settle its edges."""
        node = scope.graph.nodes[number]
        scope.states[number] = _DONE
        if number:
            scope.variables[node.spec.name] = found
            if found["status"] in response.OK:
                self._remember(scope, node, found)
        if found["status"] == "completed":
            self.end_scope(scope, "completed", self.result_of(scope, node, found), undoes=False)
            return
        if (takes := self._route(scope, node, found)) is None:
            return
        error = found.get("error")
        for edge, is_taken in takes:
            if is_taken and error is not None and edge.target != TO_END:
                scope.errors[edge.target] = found["error"]
            self._settle_edge(scope, edge, is_taken)
        if node.loops:
            self._leave_loops(scope, node)

    def _remember(self, scope: Scope, node: GraphNode, found: dict[str, Any]) -> None:
        scope.last = node
        if node.is_silent:
            return
        if "warnings" in found:
            scope.warnings += [f"{node.spec.name}: {one}" for one in found["warnings"]][: 100 - len(scope.warnings)]
        confidence = found.get("confidence")
        if confidence is not None and (scope.confidence is None or confidence < scope.confidence):
            scope.confidence = confidence

    def skip(self, scope: Scope, number: int) -> None:
        """Skip a node: it settles its edges as not taken."""
        node = scope.graph.nodes[number]
        scope.states[number] = _SKIPPED
        scope.variables[node.spec.name] = response.SKIPPED
        for edge in node.outgoing:
            self._settle_edge(scope, scope.graph.edges[edge], is_taken=False)
        if node.loops:
            self._leave_loops(scope, node)

    # --- edges ---

    def _route(self, scope: Scope, node: GraphNode, found: dict[str, Any]) -> list[tuple[GraphEdge, bool]] | None:
        """Return each edge of a node with whether it is taken; None where the scope failed over it."""
        graph, outgoing = scope.graph, node.outgoing
        if not outgoing:
            if found["status"] not in response.OK and node.number not in scope.abandoned:
                self.fail_scope(scope, node, found)
                return None
            return []
        variables = scope.variables
        variables["response"] = found
        if node.is_through and self._decided is None and found["status"] in response.OK:
            return [(graph.edges[outgoing[0]], True)]
        hint = found.get("next_step_hint") if node.hints else None
        takes: list[tuple[GraphEdge, bool]] = []
        any_taken = exhausted = False
        is_first = node.spec.route == "first"
        for number in outgoing:
            edge = graph.edges[number]
            try:
                if hint and hint in node.hints:
                    is_taken = edge.spec.target == hint
                elif is_first and any_taken:
                    is_taken = False
                else:
                    is_taken = self._applies(edge, found, variables, any_taken=any_taken)
            except EvaluationError as error:
                what = f"the condition of edge {edge.spec.id} of {node.spec.name} cannot be decided: {error}"
                self.fail_scope(scope, node, response.failure("WORKFLOW_CONDITION_FAILED", what))
                return None
            if is_taken and edge.loop is not None and not self._may_repeat(scope, edge):
                is_taken, exhausted = False, True
            any_taken = any_taken or is_taken
            takes.append((edge, is_taken))
        if not any_taken:
            takes = self._unrouted(scope, node, found, takes, exhausted=exhausted)  # type: ignore[assignment]
        if self._decided is not None and takes is not None:
            for edge, is_taken in takes:
                self._decided(scope, node, edge, is_taken, found)
        return takes

    def _applies(self, edge: GraphEdge, found: dict[str, Any], variables: dict[str, Any], *, any_taken: bool) -> bool:
        mode = edge.mode
        if mode == CONDITION:
            assert edge.condition is not None
            return edge.condition.holds(variables) is True
        is_ok = found["status"] in response.OK
        if mode == SUCCESS:
            return is_ok
        if mode == OTHERWISE:
            return is_ok and not any_taken
        if mode == ERROR:
            return not is_ok
        return mode == ALWAYS or bool(found["status"] == "retry_with_instruction")

    def _unrouted(
        self, scope: Scope, node: GraphNode, found: dict[str, Any], takes: list[tuple[GraphEdge, bool]], *, exhausted: bool
    ) -> list[tuple[GraphEdge, bool]] | None:
        """Decide what becomes of a node none of whose edges applies."""
        failed = found["status"] not in response.OK
        if exhausted:
            bound = next(edge for edge, _ in takes if edge.loop is not None)
            what = f"edge {bound.spec.id} was taken {bound.spec.max} times, which is its bound, and no other edge applies"
            error = response.failure("WORKFLOW_LOOP_EXHAUSTED", what, edge=bound.spec.id, max=bound.spec.max)
            handled = [(edge, edge.spec.on is On.ERROR and edge.condition is None) for edge, _ in takes]
            if any(is_taken for _, is_taken in handled):
                found["error"] = error["error"]
                return handled
            self.fail_scope(scope, node, error)
            return None
        if failed:
            if node.absorbed or node.number in scope.abandoned:
                if node.number not in scope.abandoned:
                    said = found.get("error") or {}
                    # Without its message: users read warnings, and it may be the text of an exception.
                    scope.warnings.append(f"{node.spec.name} failed: {said.get('code', '')}")
                return takes
            self.fail_scope(scope, node, found)
            return None
        edges = ", ".join(edge.spec.id for edge, _ in takes)
        what = f"no edge of {node.spec.name} applies ({edges}); add one with `else: true`"
        self.fail_scope(scope, node, response.failure("ROUTING_NO_EDGE", what, node=node.spec.name))
        return None

    def _settle_edge(self, scope: Scope, edge: GraphEdge, is_taken: bool) -> None:
        if edge.loop is not None:
            if is_taken:
                self._repeat(scope, edge)
            return
        for number in edge.exits:
            loop = scope.loops[number]
            if loop.is_open:
                if loop.deferred is None:
                    loop.deferred = {}
                loop.deferred[edge.number] = is_taken or loop.deferred.get(edge.number, False)
                return
        assert scope.edges[edge.number] is None, f"edge {edge.spec.id} settled twice"
        scope.edges[edge.number] = is_taken
        if edge.target == TO_END:
            return
        target = edge.target
        scope.pending[target] -= 1
        if is_taken:
            scope.taken[target] += 1
        if scope.states[target] is _IDLE:
            self._try(scope, target)

    def _try(self, scope: Scope, number: int) -> None:
        """Start a node whose join holds; skip or fail one whose join cannot hold any more."""
        pending, taken = scope.pending[number], scope.taken[number]
        node = scope.graph.nodes[number]
        if node.joins_all:
            if pending:
                return
            if taken:
                self._begin(scope, number)
            else:
                scope.states[number] = _SKIPPED
                self.push(self.skip, scope, number)
            return
        join = node.spec.join
        needed = join if isinstance(join, int) else 1
        if taken >= needed:
            self._begin(scope, number)
            if pending:
                self.abandon(scope, node.region)
        elif not taken and not pending:
            scope.states[number] = _SKIPPED
            self.push(self.skip, scope, number)
        elif taken + pending < needed:
            what = f"{node.spec.name} needs {needed} of {len(node.incoming)} branches, and only {taken + pending} are left"
            scope.states[number] = _ACTIVE
            failed = response.failure("WORKFLOW_JOIN_UNREACHABLE", what, needed=needed)
            self.push(self._settle, scope, number, failed)

    def _begin(self, scope: Scope, number: int, instruction: str = "") -> None:
        node = scope.graph.nodes[number]
        scope.states[number] = _ACTIVE
        scope.queued += 1
        self.todo.append((self.start_node if node.when is None else self._start_node, scope, (node, instruction)))

    def _start_node(self, scope: Scope, node: GraphNode, instruction: str) -> None:
        """Start a node with a condition of its own, or skip it."""
        assert node.when is not None
        variables = scope.variables
        led = [scope.graph.edges[one].source for one in node.incoming if scope.edges[one]]
        if len(led) == 1 and led[0]:
            variables["response"] = variables[scope.graph.nodes[led[0]].spec.name]
        try:
            holds = node.when.holds(variables)
        except EvaluationError as error:
            what = f"the condition of {node.spec.name} cannot be decided: {error}"
            self.fail_scope(scope, node, response.failure("WORKFLOW_CONDITION_FAILED", what))
            return
        if holds:
            self.start_node(scope, node, instruction)
        else:
            self.skip(scope, node.number)

    # --- loops ---

    def _may_repeat(self, scope: Scope, edge: GraphEdge) -> bool:
        assert edge.loop is not None and edge.spec.max is not None  # noqa: PT018
        counts = scope.loops[edge.loop].counts
        return (0 if counts is None else counts.get(edge.number, 0)) < edge.spec.max

    def _repeat(self, scope: Scope, edge: GraphEdge) -> None:
        assert edge.loop is not None
        loop = scope.loops[edge.loop]
        if loop.counts is None:
            loop.counts = {}
        loop.counts[edge.number] = loop.counts.get(edge.number, 0) + 1
        loop.repeats = True
        found = scope.variables["response"]
        loop.error = found.get("error")
        loop.instruction = found.get("message", "") if edge.spec.on is On.RETRY else ""

    def _leave_loops(self, scope: Scope, node: GraphNode) -> None:
        for number in node.loops:
            loop = scope.loops[number]
            loop.left -= 1
            if not loop.left:
                self._turn(scope, number, loop)

    def _turn(self, scope: Scope, number: int, loop: LoopState) -> None:
        """End one turn of a loop: begin the next, or let the edges that leave it settle."""
        if scope.ending is not None:
            return
        if not loop.repeats:
            loop.is_open = False
            deferred, loop.deferred = loop.deferred, None
            for edge, is_taken in (deferred or {}).items():
                self._settle_edge(scope, scope.graph.edges[edge], is_taken)
            return
        shape, graph = scope.graph.loops[number], scope.graph
        loop.repeats = False
        loop.turn += 1
        loop.left = len(shape.body)
        for inner in shape.inner:
            scope.loops[inner] = LoopState(len(graph.loops[inner].body))
        for outer in shape.outer:
            scope.loops[outer].left += len(shape.body)
        for edge in shape.edges:
            scope.edges[edge] = None
        if len(shape.body) == 1:  # all edges to it come from outside, and have settled
            scope.states[shape.header] = _IDLE
        for one in shape.body if len(shape.body) > 1 else ():
            node = graph.nodes[one]
            scope.states[one] = _IDLE
            settled = [scope.edges[edge] for edge in node.incoming]
            scope.pending[one] = settled.count(None)
            scope.taken[one] = settled.count(True)
        if loop.error is not None:
            scope.errors[shape.header] = loop.error
        self._begin(scope, shape.header, loop.instruction)

    def place_of(self, scope: Scope, node: GraphNode) -> str:
        """Return the name of an activation: `node`, or `node@2` in the second turn of its loops."""
        name = node.spec.name
        loops = node.loops
        if not loops:
            return scope.path + name
        if len(loops) == 1:
            turn = scope.loops[loops[0]].turn
            return f"{scope.path}{name}@{turn}" if turn > 1 else scope.path + name
        turns = [scope.loops[one].turn for one in reversed(loops)]
        return f"{scope.path}{name}@{'.'.join(map(str, turns))}" if max(turns) > 1 else scope.path + name
