"""The workflows that a node knows: their definitions, checked against its agents, and what its agents take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from comity.core.document.payload import Problem
from comity.core.document.schema import errors_of
from comity.core.units import NS_PER_MS
from comity.core.workflow.check import Catalog, Offer, check
from comity.core.workflow.graph import Program
from comity.core.workflow.model import Definition
from comity.core.workflow.read import DefinitionError, load
from comity.core.workflow.source import Mistake
from comity.errors import CallerError
from comity.ports import Journal
from comity.runtime.workflow.aggregation import strategies
from comity.runtime.workflow.host import Binder, Strategy
from comity.runtime.workflow.store import RunStore

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

CHECKED_MAX: Final = 256  # definitions that are not checked again for each run


class Library:
    """The definitions of a node."""

    def __init__(self, path: CallPath, journal: Journal) -> None:
        self.path = path
        self.journal = journal
        self.store = RunStore(journal, path.seal)
        self.strategies: dict[str, Strategy] = strategies()
        self._library: dict[str, Definition] = {}
        self._checked: dict[int, Definition] = {}  # by identity, and kept, so that no other gets the identity of one
        self._takes: dict[tuple[str, str], frozenset[str]] = {}
        self._binders: dict[tuple[str, str], Binder | None] = {}

    def add(self, *definitions: Definition | str) -> tuple[Definition, ...]:
        """Let the node know workflows, by name; a text is read as YAML or JSON. Raises `DefinitionError`."""
        made = tuple(load(one) if isinstance(one, str) else one for one in definitions)
        self._library |= {one.name: one for one in made}
        self._checked.clear()
        self.store.unpin()
        return made

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The workflows the node knows, by name."""
        return dict(self._library)

    def check(self, definition: Definition) -> list[Mistake]:
        """Return every mistake of a definition, judged against the node's agents and workflows."""
        return check(definition, None, self.catalog(), self._library | {definition.name: definition}, self.strategies)

    def catalog(self) -> Catalog:
        """Return what the node's agents offer, as checks need it."""
        found: dict[str, dict[str, Offer]] = {}
        for agent in self.path.registry:
            offers = {
                code: Offer(one.inputs.json_schema(), None if one.outputs is None else one.outputs.json_schema())
                for code, one in agent.capabilities.items()
            }
            found |= dict.fromkeys((agent.id, *agent.aliases), offers)
        return found

    def _check_input(self, definition: Definition, data: Any) -> None:
        """Raise `CallerError` for an input that a workflow does not take."""
        check_input(self.store.pin(definition, self._library), data)

    def _found(self, workflow: str | Definition) -> Definition:
        definition = self._library.get(workflow) if isinstance(workflow, str) else workflow
        if definition is None:
            raise CallerError(f"there is no workflow {workflow}; add it with node.workflows.add", code="WORKFLOW_UNKNOWN")
        if id(definition) not in self._checked:
            if mistakes := self.check(definition):
                raise DefinitionError(mistakes, definition.name)
            self._library.setdefault(definition.name, definition)
            if len(self._checked) >= CHECKED_MAX:
                self._checked.clear()
            self._checked[id(definition)] = definition
        return definition

    def prepared(self, workflow: str | Definition, data: Any) -> tuple[Definition, Program]:
        """Return a workflow that takes these data, kept in the store."""
        definition = self._found(workflow)
        self._check_input(definition, data)
        program = self.store.pin(definition, self._library)
        self.journal.append(self.store.kept(program))
        return definition, program

    def version_of(self, name: str, key: str) -> Definition:
        """Return the workflow that the node knows under a name, else the one under a content hash."""
        return self._library.get(name) or self.store.program(key).graph.definition

    def now_ms(self) -> int:
        """Return the time."""
        return self.path.clock.now_ns() // NS_PER_MS

    def binder(self, target: str, capability: str) -> Binder | None:
        """Return what binds the calls of a capability to the calls that serve them; None for all but few."""
        key = (target, capability)
        if key not in self._binders:
            address = self.path.registry.resolve(target)
            found: Mapping[str, Binder] = {} if address is None else getattr(address.agent, "binders", {})
            self._binders[key] = found.get(capability)
        return self._binders[key]

    def takes(self, target: str, capability: str) -> frozenset[str]:
        """Return the names of a capability's inputs."""
        key = (target.partition("/")[0], capability)
        if key not in self._takes:
            address = self.path.registry.resolve(target)
            found = None if address is None else address.agent.capabilities.get(capability)
            self._takes[key] = frozenset() if found is None else frozenset(found.inputs.json_schema().get("properties", ()))
        return self._takes[key]


def check_input(program: Program, data: Any) -> None:
    """Raise `CallerError` for an input that a compiled workflow does not take."""
    graph_input = program.graph.input_validator
    if graph_input is not None and (errors := errors_of(graph_input, data)):
        problems = tuple(Problem(".".join(map(str, ("input", *one.instance_path))), one.message) for one in errors[:10])
        what = "; ".join(f"{one.path}: {one.message}" for one in problems)
        raise CallerError(f"the input of {program.graph.definition.name} is not what it takes: {what}", problems=problems)
