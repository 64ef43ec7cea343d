"""Workflows written in Python: a builder that makes the same document as a file, and the same mistakes visible.

flow = Workflow("find-email", input={"type": "object", "required": ["company"]})
research = flow.call("research", "RESEARCHER", "FIND_CEO", input={"company": flow.input.company})
check = flow.call("check", "VALIDATOR", "CHECK", input={"emails": research.data.guesses}, after=[research])
flow.edge(research, END, when='response.status == "failure"')
flow.output({"email": check.data.valid_email})
definition = flow.definition()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from comity.core.workflow.model import END, START, Definition, Kind
from comity.core.workflow.read import definition_of

__all__ = ["END", "START", "NodeRef", "Ref", "Workflow"]


class Ref:
    """A path to a value of the run, such as `research.data.guesses`; as text it is its template."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Ref:
        if name.startswith("__"):
            raise AttributeError(name)
        return Ref(f"{self._path}.{name}")

    def __getitem__(self, key: str | int) -> Ref:
        return Ref(f'{self._path}["{key}"]' if isinstance(key, str) else f"{self._path}[{key}]")

    def __str__(self) -> str:
        return f"{{{{{self._path}}}}}"

    __repr__ = __str__


class NodeRef(Ref):
    """A node of a workflow under construction."""

    __slots__ = ("node_name",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.node_name = name


Names = Sequence[NodeRef | str]
Join = Literal["all", "any"] | int


class Workflow:
    """A workflow under construction. Each method for a verb adds a node and returns a reference to it."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "",
        description: str = "",
        triggers: Sequence[str] = (),
        input: Mapping[str, Any] | None = None,  # noqa: A002  the word of the file
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        given = {"version": version, "description": description, "triggers": list(triggers), "input": input, "limits": limits}
        self._document: dict[str, Any] = {"workflow": name, **{key: value for key, value in given.items() if value}}
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: list[dict[str, Any]] = []

    @property
    def input(self) -> Ref:
        """The input of the run."""
        return Ref("input")

    @property
    def item(self) -> Ref:
        """The item of a node with `map`."""
        return Ref("item")

    @property
    def error(self) -> Ref:
        """The error that led to a node over an error edge."""
        return Ref("error")

    def call(self, name: str, agent: str, capability: str = "", **fields: Any) -> NodeRef:
        """Add a call; without a capability it is a message to an agent with a model. `fields` are those of the file."""
        called: Any = {"agent": agent, "capability": capability} if capability else {"agent": agent}
        return self._add(name, Kind.CALL, called, fields)

    def run(self, name: str, workflow: str, **fields: Any) -> NodeRef:
        """Add another workflow as a part of this one."""
        return self._add(name, Kind.RUN, workflow, fields)

    def ask(self, name: str, question: str, **fields: Any) -> NodeRef:
        """Add a question to a person; `options`, `answer`, `timeout` and `default` are fields of it."""
        return self._add(name, Kind.ASK, question, fields)

    def wait(self, name: str, what: str | Mapping[str, Any], **fields: Any) -> NodeRef:
        """Add a wait: a duration, or an object with `for`, `until` or `event`."""
        return self._add(name, Kind.WAIT, what, fields)

    def set(self, name: str, data: Any, **fields: Any) -> NodeRef:
        """Add data made by mapping alone."""
        return self._add(name, Kind.SET, data, fields)

    def decide(self, name: str, data: Any = None, **fields: Any) -> NodeRef:
        """Add a decision: the first of its edges whose condition holds is taken."""
        return self._add(name, Kind.DECIDE, data, fields)

    def join(self, name: str, of: Join = "all", **fields: Any) -> NodeRef:
        """Add a join of all taken edges, of the first, or of a number of them."""
        return self._add(name, Kind.JOIN, of, fields)

    def aggregate(
        self, name: str, strategy: str, of: Names = (), options: Mapping[str, Any] | None = None, **fields: Any
    ) -> NodeRef:
        """Add one reply made of several."""
        verb = {"strategy": strategy, **({"of": _names(of)} if of else {}), **(options or {})}
        return self._add(name, Kind.AGGREGATE, verb, fields)

    def end(self, name: str, status: Literal["success", "failure"] = "success", **fields: Any) -> NodeRef:
        """Add an end of the whole run."""
        return self._add(name, Kind.FINISH, status, fields)

    def edge(
        self,
        source: NodeRef | str,
        target: NodeRef | str,
        *,
        when: str | Mapping[str, Any] | None = None,
        on: Literal["success", "error", "retry", "always"] | None = None,
        is_else: bool = False,
        max: int | None = None,  # noqa: A002  the word of the file
        id: str | None = None,  # noqa: A002
    ) -> Self:
        """Add an edge."""
        given = {"id": id, "when": _plain(when), "on": on, "else": is_else or None, "max": max}
        ends = {"from": _name(source), "to": _name(target)}
        self._edges.append({**ends, **{key: value for key, value in given.items() if value is not None}})
        return self

    def output(self, value: Any, schema: Mapping[str, Any] | None = None) -> Self:
        """Say what the result is."""
        self._document["output"] = _plain(value)
        if schema is not None:
            self._document["output_schema"] = dict(schema)
        return self

    def document(self) -> dict[str, Any]:
        """Return the workflow as the document that a file would be."""
        return {**self._document, "nodes": self._nodes, **({"edges": self._edges} if self._edges else {})}

    def definition(self) -> Definition:
        """Return the definition. Raises `DefinitionError` with every mistake."""
        return definition_of(self.document())

    def _add(self, name: str, kind: Kind, verb: Any, fields: dict[str, Any]) -> NodeRef:
        if name in self._nodes:
            raise ValueError(f"there is a node {name} already")
        if "after" in fields:
            fields["after"] = _names(fields["after"])
        self._nodes[name] = {kind.value: _plain(verb), **{key: _plain(value) for key, value in fields.items()}}
        return NodeRef(name)


def _name(given: NodeRef | str) -> str:
    return given.node_name if isinstance(given, NodeRef) else given


def _names(given: Names) -> list[str]:
    return [_name(one) for one in given]


def _plain(value: Any) -> Any:
    """Return a value with references written as templates."""
    match value:
        case Ref():
            return str(value)
        case Mapping():
            return {key: _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value
