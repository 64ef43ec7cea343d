"""A workflow as a picture: Mermaid for documents, lines for a terminal; with the states of a run where there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from comity.core.workflow.model import END, START, Definition, Edge, Kind, Node, On

_SHAPES: Final = {
    Kind.CALL: ('["', '"]'),
    Kind.RUN: ('[["', '"]]'),
    Kind.AGGREGATE: ('[/"', '"\\]'),
    Kind.ASK: ('(["', '"])'),
    Kind.WAIT: ('(("', '"))'),
    Kind.SET: ('>"', '"]'),
    Kind.DECIDE: ('{"', '"}'),
    Kind.JOIN: ('{{"', '"}}'),
    Kind.FINISH: ('((("', '")))'),
}
MARKS: Final = {"done": "✔", "failed": "✘", "running": "▶", "waiting": "…", "skipped": "·", "": "○"}
_COLOURS: Final = {
    "done": "fill:#d7f4dc,stroke:#2b8a3e", "failed": "fill:#ffe3e3,stroke:#c92a2a", "running": "fill:#dbe9ff,stroke:#1864ab",
    "waiting": "fill:#fff3bf,stroke:#e67700", "skipped": "fill:#f1f3f5,stroke:#adb5bd,color:#868e96",
}  # fmt: skip


def mermaid(definition: Definition, states: Mapping[str, str] | None = None) -> str:
    """Return a flowchart in Mermaid; `states` gives the nodes of a run their colours."""
    lines = ["flowchart TD", f'  {START}(("start"))', f'  {END}__(("end"))']
    for node in definition.nodes.values():
        opened, closed = _SHAPES[node.kind]
        lines.append(f"  {node.name}{opened}{_quoted(f'{node.name}: {verb(node)}')}{closed}")
    lines += [f"  {_mermaid_edge(edge)}" for edge in definition.edges]
    for name, state in (states or {}).items():
        if state in _COLOURS and name in definition.nodes:
            lines.append(f"  style {name} {_COLOURS[state]}")
    return "\n".join(lines) + "\n"


def _mermaid_edge(edge: Edge) -> str:
    target = f"{END}__" if edge.target == END else edge.target
    arrow = "-.->" if edge.on is On.ERROR else "-->"
    label = told(edge)
    return f"{edge.source} {arrow}{f'|{chr(34)}{_quoted(label)}{chr(34)}|' if label else ''} {target}"


def told(edge: Edge) -> str:
    """Return when an edge is taken; empty for the plain case, the success of its source."""
    parts = [edge.when, "" if edge.when or edge.on is On.SUCCESS else f"on {edge.on.value}", "else" if edge.is_else else ""]
    parts.append(f"at most {edge.max} times" if edge.max else "")
    return ", ".join(filter(None, parts))


def verb(node: Node) -> str:
    """Return what a node does, in a few words."""
    match node.kind:
        case Kind.CALL:
            return "" if node.call is None else "/".join(filter(None, (node.call.agent, node.call.capability)))
        case Kind.RUN:
            return f"run {node.workflow}"
        case Kind.AGGREGATE:
            return "" if node.aggregate is None else f"aggregate by {node.aggregate.strategy}"
        case Kind.ASK:
            return "" if node.ask is None else f"ask {str(node.ask.text)[:60]}"
        case Kind.JOIN:
            return f"join {node.join}"
        case Kind.FINISH:
            return "" if node.finish is None else f"end with {node.finish.status}"
    return node.kind.value


def _quoted(text: str) -> str:
    """Return a text that Mermaid takes as a label."""
    return re.sub(r"[\r\n]+", " ", text).replace('"', "#quot;").replace("|", "#124;")


def lines(definition: Definition, states: Mapping[str, str] | None = None) -> list[str]:
    """Return the graph as lines: each node after those it waits for, with its edges below it."""
    known = dict(states or {})
    width = max((len(name) for name in definition.nodes), default=0)
    leaving: dict[str, list[Edge]] = {}
    for edge in definition.edges:
        leaving.setdefault(edge.source, []).append(edge)
    found = [f"{definition.name} {definition.version}".rstrip()]
    found += [f"  start ─▶ {edge.target}" for edge in leaving.get(START, ())]
    for name in _ordered(definition):
        node = definition.nodes[name]
        found.append(f"{MARKS.get(known.get(name, ''), '○')} {name:<{width}}  {verb(node)}".rstrip())
        edges = leaving.get(name, [])
        for at, edge in enumerate(edges):
            corner = "└" if at == len(edges) - 1 else "├"
            label = told(edge)
            found.append(f"  {corner}─▶ {edge.target}{f'   ({label})' if label else ''}")
    return found


def _ordered(definition: Definition) -> list[str]:
    """Return the nodes, each after those that lead to it as far as loops allow, else in the order of the file."""
    before: dict[str, set[str]] = {name: set() for name in definition.nodes}
    for edge in definition.edges:
        if edge.target in before and edge.source in before and edge.max is None:
            before[edge.target].add(edge.source)
    found: list[str] = []
    left = list(definition.nodes)
    while left:
        ready = next((name for name in left if before[name] <= set(found)), left[0])
        found.append(ready)
        left.remove(ready)
    return found
