"""What nodes do while they are active: calls, questions, waits, sub-workflows; retries, clarifications and their ends."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from comity.core.document.schema import errors_of
from comity.core.expression import EvaluationError
from comity.core.workflow import history, response
from comity.core.workflow.graph import GraphEdge, GraphNode, Rendered
from comity.core.workflow.mapping import MappingError, Render
from comity.core.workflow.maps import Maps, is_stopped, unmapped
from comity.core.workflow.model import QUESTIONS_MAX, Kind
from comity.core.workflow.scope import Activity, Role, Scope, Undo, new_scope
from comity.core.workflow.times import time_ms

RECEIVED_MAX: Final = 1_000  # events kept that no node has waited for yet
_PENDING: Final = {"status": "pending"}
_STEP: Final = Role.STEP


class Activities(Maps):
    """The part of the planner that starts nodes and reads what comes of them."""

    @abstractmethod
    def place_of(self, scope: Scope, node: GraphNode) -> str:
        """Return the name of an activation."""

    @abstractmethod
    def go_on(self, scope: Scope, node: GraphNode, edge: GraphEdge, found: dict[str, Any]) -> None:
        """Settle a node that did its work and has one edge."""

    @abstractmethod
    def go_round(self, scope: Scope, node: GraphNode, edge: GraphEdge, found: dict[str, Any]) -> None:
        """Settle a node that did its work and may be run once more by itself."""

    @abstractmethod
    def come_to_end(self, scope: Scope, node: GraphNode, found: dict[str, Any]) -> None:
        """Settle a node that did its work and is the last one of its scope."""

    @abstractmethod
    def begin_scope(self, scope: Scope) -> None:
        """Begin a sub-workflow."""

    # --- start ---

    def start_node(self, scope: Scope, node: GraphNode, instruction: str = "") -> None:
        """Activate a node."""
        spec = node.spec
        variables = scope.variables
        if scope.errors and (error := scope.errors.pop(node.number, None)) is not None:
            variables["error"] = error
        if node.is_single and not instruction:
            self.start_call(scope, node)
            return
        try:
            if node.works:
                activity = Activity(scope, node, self.place_of(scope, node), {}, instruction=instruction)
                scope.active[activity] = None
                if spec.each is not None:
                    self.start_map(activity)
                else:
                    self.start_work(activity)
                return
            match spec.kind:
                case Kind.SET | Kind.DECIDE:
                    value = spec.data if node.value is None else self.bounded(scope, node.number, node.value(variables))
                    self.settle_now(scope, node, self._shaped(node, response.success(value), scope))
                case Kind.JOIN:
                    led = [scope.graph.nodes[scope.graph.edges[one].source] for one in node.incoming if scope.edges[one]]
                    data = {one.spec.name: variables[one.spec.name].get("data") for one in led if one.number}
                    self.settle_now(scope, node, response.success(self.bounded(scope, node.number, data)))
                case Kind.FINISH:
                    self._finish(scope, node)
                case Kind.ASK:
                    self._ask(scope, node)
                case Kind.WAIT:
                    self._wait(scope, node)
                case Kind.AGGREGATE:
                    activity = Activity(scope, node, self.place_of(scope, node), {})
                    scope.active[activity] = None
                    self._aggregate(activity)
        except (MappingError, EvaluationError) as error:
            for activity in [one for one in scope.active if one.node is node]:
                del scope.active[activity]
            self.settle_now(scope, node, unmapped(node, error))

    def start_call(self, scope: Scope, node: GraphNode, place: str = "") -> None:
        """Activate a node that is one call, in one step, as most are; `place` is the name of the activation if it is known."""
        call, steps, calls, limits = node.call, self.steps, self.calls, self.limits
        assert call is not None
        spec, message = call.spec, ""
        try:
            if call.is_fixed:
                agent = spec.agent
                inputs = spec.input if call.input is None else call.input(scope.variables)
            else:
                agent, inputs, message = _rendered(call, scope.variables)
        except (MappingError, EvaluationError) as error:
            self.settle_now(scope, node, unmapped(node, error))
            return
        is_bounded = scope.above is not None or steps >= limits.steps_max or calls >= limits.calls_max
        if is_bounded and not self.may_step(scope):
            return
        self.steps, self.calls = steps + 1, calls + 1
        self._numbers = number = self._numbers + 1
        place = place or (self.place_of(scope, node) if node.loops else scope.path + node.name)
        activity = Activity(scope, node, place, {number: _STEP})
        scope.active[activity] = None
        self.waits[number] = activity
        self.commands.append(
            history.Call(
                number, place, node.name, agent, spec.capability, inputs, message, spec.objective, node.spec.timeout_ms
            )
        )

    def start_work(self, activity: Activity) -> None:
        """Make the call of a node or an item, begin its sub-workflow, or aggregate again with the answer to a question."""
        scope, node = activity.scope, activity.node
        if activity.index >= 0:
            assert activity.item_of is not None and activity.item_of.each is not None  # noqa: PT018
            scope.variables["item"] = activity.item_of.each.items[activity.index]
            scope.variables["index"] = activity.index
        if not node.is_call:
            if node.spec.kind is Kind.AGGREGATE:
                self._aggregate(activity)
            else:
                self._run_below(activity)
            return
        assert node.call is not None
        agent, inputs, message = _rendered(node.call, scope.variables)
        if not self.may_step(scope):
            return
        self.steps += 1
        self.calls += 1
        number = self.number()
        activity.numbers[number] = _STEP
        self.waits[number] = activity
        self.commands.append(
            history.Call(
                number,
                activity.place,
                node.spec.name,
                agent,
                node.call.spec.capability,
                inputs,
                message,
                node.call.spec.objective,
                node.spec.timeout_ms,
                activity.attempt,
                activity.instruction,
                activity.question,
                activity.answer,
            )
        )

    def _run_below(self, activity: Activity) -> None:
        scope, node = activity.scope, activity.node
        data = node.spec.input if node.value is None else self.bounded(scope, node.number, node.value(scope.variables))
        graph = self.program.parts[node.spec.workflow]
        if graph.input_validator is not None and (wrong := _invalid(graph.input_validator, {} if data is None else data)):
            what = f"the input of workflow {node.spec.workflow} is not what it takes: {wrong}"
            self.work_done(activity, response.failure("INPUT_VALIDATION_FAILED", what))
            return
        activity.below = new_scope(graph, f"{activity.place}/", activity, {} if data is None else data, self.run)
        self.begin_scope(activity.below)

    def _finish(self, scope: Scope, node: GraphNode) -> None:
        assert node.spec.finish is not None
        text = str(node.spec.finish.message if node.text is None else node.text(scope.variables))
        if node.spec.finish.status == "failure":
            what = text or f"the workflow ended at {node.spec.name}"
            self.end_scope(scope, "failed", response.failure("WORKFLOW_ENDED", what), undoes=True)
            return
        found = self.result_of(scope, None, None)
        if node.spec.has_output:
            made = node.spec.output if node.output is None else node.output(scope.variables)
            found = {**found, "data": self.bounded(scope, node.number, made)}
        self.end_scope(scope, "completed", {**found, "message": text} if text else found, undoes=False)

    # --- questions, waits, aggregates ---

    def _ask(self, scope: Scope, node: GraphNode) -> None:
        assert node.spec.ask is not None
        text = node.spec.ask.text if node.text is None else node.text(scope.variables)
        options = list(node.spec.ask.options) if node.value is None else node.value(scope.variables)
        activity = Activity(scope, node, self.place_of(scope, node), {})
        scope.active[activity] = None
        self._open_question(activity, str(text), tuple(options), node.spec.ask.answer_schema)

    def _open_question(
        self, activity: Activity, text: str, options: tuple[Any, ...], schema: dict[str, Any] | None, *, asks: bool = False
    ) -> None:
        number = self.number()
        due_at = self._due(activity)
        activity.numbers[number] = Role.QUESTION
        self.waits[number] = activity
        name = activity.node.spec.name
        question = history.Ask(number, activity.place, name, text, options, schema, due_at, asks)
        self.questions[number] = question
        self.commands.append(question)
        if due_at is not None and not asks:
            self._timer(activity, Role.DUE, due_at)

    def _due(self, activity: Activity) -> int | None:
        timeout_ms = None if activity.node.spec.kind is Kind.CALL else activity.node.spec.timeout_ms
        return None if timeout_ms is None else self.now_ms + timeout_ms

    def _timer(self, activity: Activity, role: Role, due_at: int) -> None:
        number = self.number()
        activity.numbers[number] = role
        self.waits[number] = activity
        self.commands.append(history.Timer(number, due_at, activity.place))

    def _wait(self, scope: Scope, node: GraphNode) -> None:
        wait = node.spec.wait
        assert wait is not None
        activity = Activity(scope, node, self.place_of(scope, node), {})
        if wait.event:
            for place, (event, data) in enumerate(self.mailbox):
                if event == wait.event and self._matches(node, scope, data):
                    del self.mailbox[place]
                    self.settle_now(scope, node, self._shaped(node, response.success(data), scope))
                    return
            scope.active[activity] = None
            due_at = self._due(activity)
            number = self.number()
            activity.numbers[number] = Role.EVENT
            self.waits[number] = activity
            listen = history.Listen(number, activity.place, node.spec.name, wait.event, due_at)
            self.listens[number] = listen
            self.commands.append(listen)
            if due_at is not None:
                self._timer(activity, Role.DUE, due_at)
            return
        if wait.delay_ms is not None:
            due_at = self.now_ms + wait.delay_ms
        else:
            said = wait.until if node.text is None else node.text(scope.variables)
            until = time_ms(said)
            if until is None:
                raise MappingError(f"`until` of {node.spec.name} is {said!r}, which is no time; write 2027-01-31T09:00:00Z")
            due_at = until
        scope.active[activity] = None
        self._timer(activity, Role.DELAY, due_at)

    def _matches(self, node: GraphNode, scope: Scope, data: Any) -> bool:
        if node.match is None:
            return True
        return node.match.holds({**scope.variables, "event": data})

    def _aggregate(self, activity: Activity) -> None:
        """Let a strategy make one reply of several; a strategy that asked gets the answer among its options."""
        scope, node = activity.scope, activity.node
        spec, variables = node.spec.aggregate, scope.variables
        assert spec is not None
        options = spec.options if node.value is None else node.value(variables)
        names = spec.of or tuple(
            scope.graph.nodes[scope.graph.edges[one].source].spec.name for one in node.incoming if scope.graph.edges[one].source
        )
        parts = tuple((name, variables.get(name, _PENDING)) for name in names)
        if activity.question:
            options = {**options, "question": activity.question, "answer": activity.answer}
        number = self.number()
        self.calls += 1
        activity.numbers[number] = Role.STEP
        self.waits[number] = activity
        self.commands.append(
            history.Aggregate(number, activity.place, node.spec.name, spec.strategy, parts, options, node.spec.timeout_ms)
        )

    # --- what comes of them ---

    def step_settled(self, event: history.Settled) -> None:
        """Take the end of a step."""
        activity = self.waits.pop(event.step, None)
        if activity is None:
            return
        self.spend(event, activity.scope)
        found, scope, node = event.reply, activity.scope, activity.node
        if self.unwinders and activity in self.unwinders:
            self.undo_settled(activity, found)
            return
        numbers = activity.numbers
        numbers.pop(event.step, None)
        if scope.ending is not None:
            self._late_result(activity, found)
        elif node.is_plain and not numbers and activity.item_of is None and found["status"] in response.OK:
            # As most steps end: what `work_done` would do, of which nothing applies.
            del scope.active[activity]
            if activity.is_abandoned:
                self.settle_now(scope, node, found, is_abandoned=True)
            elif node.onward is not None:
                self.go_on(scope, node, node.onward, found)
            elif node.again is not None:
                self.go_round(scope, node, node.again, found)
            elif node.is_last and not scope.active:
                self.come_to_end(scope, node, found)
            else:
                self.settle_now(scope, node, found)
        else:
            self.work_done(activity, found)

    def _late_result(self, activity: Activity, found: dict[str, Any]) -> None:
        """Take the end of a step that was stopped: what it did all the same is taken back too."""
        if found["status"] in response.OK:
            activity.scope.variables[activity.node.spec.name] = found
            self._push_undo(activity, found)
        self.drop_activity(activity)
        self.drained(activity.scope)

    def work_done(self, activity: Activity, found: dict[str, Any]) -> None:
        """Take what a call or a sub-workflow gave: ask, try again, or settle its node."""
        node = activity.node
        status = found["status"]
        if status == "clarification_needed":
            if activity.asked < QUESTIONS_MAX and not activity.is_abandoned:
                activity.asked += 1
                activity.question = found.get("message") or f"{node.spec.name} needs input"
                data = found.get("data")
                options = data.get("options") if isinstance(data, dict) else None
                self._open_question(
                    activity, activity.question, tuple(options) if isinstance(options, list) else (), None, asks=True
                )
                return
            found = response.failure("CALL_NEEDS_INPUT", f"{node.spec.name} asked more than {QUESTIONS_MAX} questions")
        elif status in response.OK:
            found = self._shaped(node, found, activity.scope)
        if found["status"] not in response.OK and self._tries_again(activity, found):
            return
        if found["status"] in response.OK:
            self._push_undo(activity, found)
        if activity.item_of is not None:
            self.item_done(activity, found)
        else:
            self.node_done(activity, found)

    def node_done(self, activity: Activity, found: dict[str, Any]) -> None:
        self.drop_activity(activity)
        if activity.is_abandoned and found["status"] not in response.OK:
            found = {**found, "status": "cancelled", "outcome": "cancelled"}
        self.settle_now(activity.scope, activity.node, found, is_abandoned=activity.is_abandoned)

    def _tries_again(self, activity: Activity, found: dict[str, Any]) -> bool:
        retry, error = activity.node.spec.retry, found.get("error") or {}
        if activity.is_abandoned or activity.attempt > retry.max or (activity.item_of is not None and is_stopped(activity)):
            return False
        wanted = error.get("code") in retry.on if retry.on else error.get("retryable", False)
        if not wanted:
            return False
        pause_ms = retry.pause_ms(activity.attempt)
        activity.attempt += 1
        if retry.instruct:
            activity.instruction = str(error.get("message", ""))
        self._timer(activity, Role.PAUSE, self.now_ms + pause_ms)
        return True

    def _shaped(self, node: GraphNode, found: dict[str, Any], scope: Scope) -> dict[str, Any]:
        """Return what a node gave as its `output` and `output_schema` say."""
        if node.is_plain:
            return found
        if node.output is not None or node.spec.has_output:
            try:
                made = node.spec.output if node.output is None else node.output({**scope.variables, "response": found})
                data = self.bounded(scope, node.number, made)
            except (MappingError, EvaluationError) as error:
                return unmapped(node, error)
            found = {**found, "data": data}
        if (
            node.validator is not None
            and node.spec.kind is not Kind.ASK
            and (wrong := _invalid(node.validator, found.get("data")))
        ):
            what = f"the data of {node.spec.name} does not fit its output_schema: {wrong}"
            return response.failure("OUTPUT_VALIDATION_FAILED", what)
        return found

    def _push_undo(self, activity: Activity, found: dict[str, Any]) -> None:
        node, scope = activity.node, activity.scope
        if node.undo is None:
            return
        variables = {**scope.variables, node.spec.name: found, "response": found}
        if activity.index >= 0 and activity.item_of is not None and activity.item_of.each is not None:
            variables |= {"item": activity.item_of.each.items[activity.index], "index": activity.index}
        try:
            agent, inputs, message = _rendered(node.undo, variables)
        except (MappingError, EvaluationError) as error:
            scope.undo.append(Undo(activity.place, node.spec.name, "", "", str(error)))
            return
        scope.undo.append(Undo(activity.place, node.spec.name, agent, node.undo.spec.capability, inputs, message))

    def fired(self, number: int) -> None:
        """Take the firing of a timer."""
        if number == self.deadline:
            self.limit_reached(f"the run took longer than {self.limits.runtime_ms} ms")
            return
        activity = self.waits.pop(number, None)
        if activity is None:
            return
        if activity in self.unwinders:
            self.undo_again(activity)
            return
        role = activity.numbers.pop(number)
        scope, node = activity.scope, activity.node
        if role is Role.PAUSE:
            try:
                self.start_work(activity)
            except (MappingError, EvaluationError) as error:
                self.work_done(activity, unmapped(node, error))
        elif role is Role.DELAY:
            self.node_done(activity, self._shaped(node, response.success({"at": self.now_ms}), scope))
        elif role is Role.DUE:
            self._overdue(activity)

    def _overdue(self, activity: Activity) -> None:
        node = activity.node
        self.forget(activity)
        ask = node.spec.ask
        if ask is not None and ask.has_default:
            answer = ask.default if node.default is None else node.default(activity.scope.variables)
            found = response.success({"answer": answer, "defaulted": True})
            self.node_done(activity, self._shaped(node, found, activity.scope))
            return
        what = (
            "no answer came" if ask is not None else f"the event {node.spec.wait.event if node.spec.wait else ''} did not come"
        )
        self.node_done(activity, response.failure("WORKFLOW_WAIT_TIMEOUT", f"{what} in time at {node.spec.name}"))

    def answered(self, number: int, answer: Any, by: str) -> None:
        """Take an answer; the first one stands."""
        question = self.questions.get(number)
        activity = self.waits.get(number)
        if question is None or activity is None:
            return
        self.forget(activity)
        if question.is_clarification:
            activity.answer = answer
            try:
                self.start_work(activity)
            except (MappingError, EvaluationError) as error:
                self.work_done(activity, unmapped(activity.node, error))
            return
        found = response.success({"answer": answer, "by": by} if by else {"answer": answer})
        self.node_done(activity, self._shaped(activity.node, found, activity.scope))

    def received(self, event: str, data: Any) -> None:
        """Give an event to every node that waits for it; keep an event that no node waits for."""
        was_taken = False
        for number, listen in list(self.listens.items()):
            activity = self.waits.get(number)
            if listen.event != event or activity is None:
                continue
            try:
                if not self._matches(activity.node, activity.scope, data):
                    continue
                found = self._shaped(activity.node, response.success(data), activity.scope)
            except EvaluationError as error:
                found = response.failure("WORKFLOW_CONDITION_FAILED", f"`match` of {activity.node.spec.name}: {error}")
            was_taken = True
            self.forget(activity)
            self.node_done(activity, found)
        if not was_taken and len(self.mailbox) < RECEIVED_MAX:
            self.mailbox.append((event, data))

    def has_room_for(self, event: str) -> bool:
        """Return whether a node waits for an event of this name, or the mailbox can keep it until one does."""
        return len(self.mailbox) < RECEIVED_MAX or any(one.event == event for one in self.listens.values())


def _rendered(call: Rendered, variables: dict[str, Any]) -> tuple[str, Any, str]:
    """Return the agent, the inputs and the message of a call."""
    spec = call.spec
    agent = spec.agent if call.agent is None else str(call.agent(variables))
    inputs = spec.input if call.input is None else call.input(variables)
    return agent, inputs, _text(spec.message, call.message, variables) if spec.message != "" else ""


def _text(given: Any, render: Render | None, variables: dict[str, Any]) -> str:
    found = given if render is None else render(variables)
    return found if isinstance(found, str) else str(found)


def _invalid(validator: Any, value: Any) -> str:
    """Return what is wrong with a value, or nothing."""
    errors = errors_of(validator, value)[:3]
    return "; ".join(f"{'.'.join(map(str, error.instance_path)) or 'it'}: {error.message}" for error in errors)
