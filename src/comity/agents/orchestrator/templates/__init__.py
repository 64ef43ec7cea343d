"""Workflow templates: definitions as data, with trigger phrases, for any agents that offer their capabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from comity.agents.orchestrator.catalogue import Offer
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.orchestration.intent.stems import stems
from comity.core.orchestration.split.split import TEXT_MAX
from comity.core.workflow.check import Catalog
from comity.core.workflow.model import Definition, Kind
from comity.core.workflow.read import definition_of, load
from comity.errors import CallerError

BEGINNING: Final = """\
workflow: {name}
version: "1.0"
description: What it is for
triggers:
  - phrases with which users ask for it
input:
  type: object
  required: [topic]
  properties:
    topic: {{type: string}}
nodes:
  first:
    call: AGENT/CAPABILITY
    input: {{topic: "{{{{input.topic}}}}"}}
  second:
    call: AGENT/CAPABILITY
    after: [first]
    input: {{topic: "{{{{input.topic}}}}"}}
output: "{{{{second.data}}}}"
"""

_CLAUSES: Final = re.compile(r"[,;:.!?\n]+(?!\d)|\s[–—-]\s|\bbut\b", re.IGNORECASE)
_DENYING: Final = frozenset(
    {"not", "no", "never", "nor", "neither", "without", "instead", "rather", "avoid", "skip", "cannot", "don't", "dont",
     "doesn't", "didn't", "won't", "can't", "shouldn't", "mustn't", "needn't", "how", "why", "whether", "which", "who"}
)  # fmt: skip
_MEANT_ALL_THE_SAME: Final = re.compile(r"\bforget\b|\bhesitat|\bwhy (?:not|don't)\b|\bnot only\b")
_NOT_TO: Final = re.compile(
    r"(?:[,;.!]\s*(?:(?:and|but)\s+)?|\s(?:and|but)\s+)(?:please\s+)?(?:do\s+not|don['’]?t|never)\s+(?!forget\b|hesitate\b|only\b)[^,;.!?]+",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Return the names of the templates."""
    return tuple(sorted(one.name.removesuffix(".yaml") for one in files(__package__).iterdir() if one.name.endswith(".yaml")))


def text(template: str, *, name: str = "") -> str:
    """Return the text of a template, with another name if one is given. Raises `CallerError` for an unknown template."""
    if template not in names():
        raise CallerError(f"there is no template {template[:CITED_CHARS_MAX]!r}; there are {', '.join(names())}")
    found = (files(__package__) / f"{template}.yaml").read_text(encoding="utf-8")
    return re.sub(r"^workflow: .*$", f"workflow: {name}", found, count=1, flags=re.MULTILINE) if name else found


def definition(template: str) -> Definition:
    """Return a template as a definition."""
    return load(text(template))


def triggered(said: str, known: Mapping[str, Definition]) -> str | None:
    """Return the workflow one of whose trigger phrases a part of a request asks for, the longest phrase first; None if none.

    A phrase that is negated, or only spoken of ("how to …", "which …"), in its clause asks for nothing.
    """
    clauses = [stems(clause) for clause in _CLAUSES.split(said[:TEXT_MAX])]
    found = [
        (len(phrase), name)
        for name, one in known.items()
        for phrase in one.triggers
        if any(_is_asked(stems(phrase), clause) for clause in clauses)
    ]
    return max(found)[1] if found else None


def without_negated(said: str, known: Mapping[str, Definition]) -> str:
    """Return a request without clauses that say not to do what a workflow does: "…, do not build a business case".

    Other negated clauses stay: "write a memo, do not mention the price" tells the specialist something.
    """
    phrases = [stems(phrase) for one in known.values() for phrase in one.triggers]

    def kept(found: re.Match[str]) -> str:
        clause = stems(found.group())
        return "" if any(_places(phrase, clause) for phrase in phrases) else found.group()

    return _NOT_TO.sub(kept, said)


def _is_asked(phrase: tuple[str, ...], clause: tuple[str, ...]) -> bool:
    return any(not _denies(clause[:at]) for at in _places(phrase, clause))


def _places(phrase: tuple[str, ...], clause: tuple[str, ...]) -> list[int]:
    size = len(phrase)
    return [at for at in range(len(clause) - size + 1) if clause[at : at + size] == phrase] if phrase else []


def _denies(before: tuple[str, ...]) -> bool:
    """Return whether the words before a phrase negate it or make it a thing that is spoken of."""
    if _MEANT_ALL_THE_SAME.search(" ".join(before)):
        return False
    return not _DENYING.isdisjoint(before)


def may_act(definition: Definition, offers: Mapping[str, Offer]) -> bool:
    """Return whether a run may have effects: then no fact that an agent noted is an input of it."""
    nodes = definition.nodes.values()
    called = [offers.get(f"{call.agent}/{call.capability}") for node in nodes for call in (node.call, node.undo) if call]
    return any(node.kind is Kind.RUN for node in nodes) or any(offer is None or offer.has_effects for offer in called)


def fitted(template: Definition, catalog: Catalog) -> Definition:
    """Return a template for the agents of a node: each capability is called at an agent that offers it, with what it takes.

    Inputs that a capability requires become inputs of the workflow; optional ones that a part before it may make stay open.
    Raises `CallerError` that names the capabilities which no agent offers.
    """
    offering = {code: agent for agent in sorted(catalog, reverse=True) for code in catalog[agent]}
    document: dict[str, Any] = {**template.document, "nodes": {**template.document["nodes"]}}
    schema = dict(document.get("input", {"type": "object"}))
    properties, required = dict(schema.get("properties", {})), list(schema.get("required", ()))
    missing = []
    for node in template.nodes.values():
        if node.kind is not Kind.CALL or node.call is None:
            continue
        code = node.call.capability
        offers = catalog.get(node.call.agent, {})
        agent = node.call.agent if code in offers else offering.get(code)
        if agent is None:
            missing.append(code)
            continue
        takes = catalog[agent][code].inputs or {}
        mapped = document["nodes"][node.name].get("input", {})
        needed = [name for name in takes.get("required", ()) if name in takes.get("properties", {}) and name not in mapped]
        given = {name: f"{{{{input.{name}}}}}" for name in needed}
        properties |= {name: takes["properties"][name] for name in needed if name not in properties}
        required += [name for name in needed if name not in required]
        entry = {**document["nodes"][node.name], "call": f"{agent}/{code}"}
        document["nodes"][node.name] = {**entry, "input": {**given, **entry.get("input", {})}} if given else entry
    if missing:
        raise CallerError(
            f"no agent offers {', '.join(missing)}, which {template.name} needs", code="ROUTING_UNKNOWN_CAPABILITY"
        )
    defs = {
        name: one
        for code in catalog.values()
        for offer in code.values()
        for name, one in (offer.inputs or {}).get("$defs", {}).items()
    }
    document["input"] = {**schema, "properties": properties, "required": required, **({"$defs": defs} if defs else {})}
    return definition_of(document)


def fitting(catalog: Catalog) -> list[Definition]:
    """Return the templates whose capabilities all are offered and that need no input, for the agents of a node."""
    found = []
    for name in names():
        try:
            one = fitted(definition(name), catalog)
        except CallerError:
            continue
        if not (one.input_schema or {}).get("required"):
            found.append(one)
    return found
