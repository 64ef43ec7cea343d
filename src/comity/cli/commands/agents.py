"""`comity agents`: who there is, and what one of them can do."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import Any

from comity.agents.model.agent import Agent as ThinkingAgent
from comity.agents.model.declared import Mind
from comity.cli.ui import app
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.core.agent.agent import Agent, Capability, DeclarationError
from comity.core.agent.registry import Registry
from comity.core.document.schema import Checker, SchemaError
from comity.core.envelope.reserved import MESSAGE

_COUNTABLE = ("number", "whole number", "text", "object", "list")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("agent", metavar="AGENT", nargs="?", help="show this agent's capabilities and their inputs")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """List the agents, or describe one."""
    agents = list(app.load(args).registry)
    if args.agent is not None:
        return _run_one(args, agents, out)
    if out.is_json:
        out.document({"app": args.app, "agents": [_document(agent, with_schemas=False) for agent in agents]})
    elif not agents:
        out.text(f"{args.app} has no agents.")
    else:
        _show_all(agents, out)
        out.hint("\n`comity agents AGENT` shows what one takes and gives.")
    return Exit.OK


def _run_one(args: argparse.Namespace, agents: list[Agent], out: Output) -> Exit:
    registry = Registry(agents)
    address = registry.resolve(args.agent)
    if address is None:
        meant = registry.nearest_agents(args.agent)
        hint = f"Did you mean {' or '.join(meant)}?" if meant else "`comity agents` lists them."
        raise CliError(Exit.NOT_FOUND, f"{args.app} has no agent {args.agent!r}", hint=hint)
    if out.is_json:
        out.document({"app": args.app, "agent": _document(address.agent, with_schemas=True)})
    else:
        _show_one(address.agent, out)
    return Exit.OK


def _document(agent: Agent, *, with_schemas: bool) -> dict[str, Any]:
    return {
        "id": agent.id,
        "aliases": list(agent.aliases),
        "description": agent.description,
        "tags": list(agent.tags),
        "owner": agent.owner,
        "status": str(agent.status),
        "concurrency": agent.concurrency,
        "pending_max": agent.pending_max,
        "can_call": None if agent.can_call is None else sorted(agent.can_call),
        "tools_allowed": sorted(agent.tools_allowed),
        "model": None if (mind := _mind(agent)) is None else mind.model_name,
        "prompt_tokens": None if mind is None else _prompt_tokens(mind),
        "capabilities": [_capability(one, with_schemas=with_schemas) for one in agent.capabilities.values()],
    }


def _mind(agent: Agent) -> Mind | None:
    return agent.mind if isinstance(agent, ThinkingAgent) else None


def _prompt_tokens(mind: Mind) -> int | None:
    """Return what the model is told before every task, in tokens; None if that cannot be made."""
    try:
        return mind.count(mind.system)
    except (SchemaError, DeclarationError):
        return None


def _capability(capability: Capability, *, with_schemas: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "code": capability.code,
        "name": capability.name,
        "description": capability.description,
        "version": capability.version,
        "active": capability.active,
        "timeout_ms": capability.timeout_ms,
        "implementations": [
            {"name": one.name, "priority": one.priority, "run_in": str(one.run_in)} for one in capability.implementations
        ],
    }
    if with_schemas:
        schemas = _schemas(capability)
        document["examples"] = [dict(example) for example in capability.examples]
        document |= {"schema_error": schemas} if isinstance(schemas, str) else schemas
    return document


def _schemas(capability: Capability) -> dict[str, Any] | str:
    """Return both schemas, or why they cannot be made."""

    def schema(checker: Checker | None) -> dict[str, Any] | None:
        return None if checker is None else checker.json_schema()

    try:
        return {"input_schema": schema(capability.inputs), "output_schema": schema(capability.outputs)}
    except SchemaError as error:
        return str(error)


def _show_all(agents: list[Agent], out: Output) -> None:
    minds = [_mind(agent) for agent in agents]
    models = ["model"] if any(minds) else []
    table = Listing("agent", "status", "description", "capabilities", *models, whole={"status"})
    for agent, mind in zip(agents, minds, strict=True):
        names = agent.id if not agent.aliases else f"{agent.id} ({', '.join(agent.aliases)})"
        codes = ", ".join(one.code if one.active else f"{one.code} (off)" for one in agent.capabilities.values())
        model = ["" if mind is None else mind.model_name for _ in models]
        table.add(names, str(agent.status), agent.description, codes or "none", *model)
    table.show(out)


def _show_one(agent: Agent, out: Output) -> None:
    from rich.text import Text

    out.text(Text(agent.id, "bold") + Text(f"  {clean(agent.description)}") + Text(f"  {agent.status}", "dim"))
    if (mind := _mind(agent)) is not None:
        tokens = _prompt_tokens(mind)
        cost = "a prompt that cannot be made" if tokens is None else f"{tokens} tokens of instructions"
        out.text(f"thinks with {clean(mind.model_name)}, {cost}", style="dim")
    if agent.can_call is not None:
        out.text(f"may call {', '.join(sorted(agent.can_call)) or 'nobody'}", style="dim")
    for capability in agent.capabilities.values():
        off = "" if capability.active else "  (switched off)"
        out.text("")
        out.text(Text(capability.code, "bold cyan") + Text(f"  {clean(capability.description)}{off}"))
        schemas = _schemas(capability)
        if isinstance(schemas, str):
            out.text(Text(f"  cannot be called: {clean(schemas)}", "red"))
            continue
        schema = schemas["input_schema"] or {}
        required = schema.get("required", [])
        fields = schema.get("properties", {})
        for name, field in fields.items():
            out.text(f"  {name}: {kind_of(field, schema)}{'' if name in required else ', optional'}")
        given = example_inputs(capability) or {}
        pairs = " ".join(shlex.quote(f"{name}={_text(value)}") for name, value in given.items())
        if mind is not None and capability.code == MESSAGE:
            pairs = f"--message '…' {pairs}"
        out.hint(f"  comity call {agent.id} {capability.code} {pairs}".rstrip(), is_copied=True)


def example_inputs(capability: Capability) -> dict[str, Any] | None:
    """Return inputs that a capability may be tried with: its first example, or a sample of what it requires.

    None where its schema cannot be made.
    """
    schemas = _schemas(capability)
    if isinstance(schemas, str):
        return None
    schema = schemas["input_schema"] or {}
    fields = schema.get("properties", {})
    example = next(iter(capability.examples), None)
    return dict(example) if example else {name: _sample(fields.get(name), schema) for name in schema.get("required", [])}


def kind_of(field: Any, root: dict[str, Any]) -> str:
    """Return what a JSON Schema asks for, in two or three words."""
    if not isinstance(field, dict):
        return "anything"
    if isinstance(reference := field.get("$ref"), str):
        return kind_of(root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {}), {**root, "$defs": {}})
    if "enum" in field:
        return f"one of {', '.join(map(str, field['enum']))}"
    for way in ("anyOf", "oneOf"):
        if way in field:
            return " or ".join(dict.fromkeys(kind_of(one, root) for one in field[way]))
    kind = field.get("type")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array":
        inner = kind_of(field["items"], root) if "items" in field else ""
        return f"list of {inner}{'s' if inner in _COUNTABLE else ''}" if inner else "list"
    return {"integer": "whole number", "string": "text", "boolean": "true or false"}.get(str(kind), str(kind or "anything"))


def _sample(field: Any, root: dict[str, Any]) -> Any:
    """Return a value of the kind a JSON Schema asks for; a schema inside itself is followed once."""
    if not isinstance(field, dict):
        return "…"
    if isinstance(reference := field.get("$ref"), str):
        name, known = reference.removeprefix("#/$defs/"), root.get("$defs", {})
        return _sample(known.get(name, {}), {**root, "$defs": {other: known[other] for other in known if other != name}})
    for way in ("enum", "anyOf", "oneOf"):
        if field.get(way):
            return field[way][0] if way == "enum" else _sample(field[way][0], root)
    match field.get("type"):
        case "array":
            return [_sample(field.get("items"), root)]
        case "object":
            inner = field.get("properties", {})
            return {name: _sample(inner.get(name), root) for name in field.get("required", [])}
        case kind:
            return {"number": 0.5, "integer": 1, "boolean": True}.get(str(kind), "…")


def _text(value: Any) -> str:
    """Return a value as `comity call` reads it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
