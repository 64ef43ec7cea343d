"""From a document to a `Definition`: every field checked against the table, every mistake found, none guessed at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

import jsonschema_rs

from comity.core.expression import Expression, ExpressionError
from comity.core.workflow import fields
from comity.core.workflow.duration import DURATION_PATTERN, duration_ms
from comity.core.workflow.mapping import TemplateError, templates_of
from comity.core.workflow.model import (
    EDGES_MAX,
    END,
    NODES_MAX,
    RESERVED,
    START,
    Aggregate,
    Ask,
    Call,
    Definition,
    Each,
    Edge,
    Finish,
    Kind,
    Node,
    On,
    Retry,
    RunLimits,
    Wait,
)
from comity.core.workflow.rules import expression_of
from comity.core.workflow.source import Mistake, Path, Source, of_document, read_source, shown
from comity.core.workflow.types import says_nothing
from comity.errors import CallerError

MESSAGE: Final = "message"  # the capability of an agent with a model
_NOTHING: Final[dict[str, Any]] = {}


class DefinitionError(CallerError):
    """A definition has mistakes; `mistakes` has all of them."""

    default_code = "WORKFLOW_INVALID"

    def __init__(self, mistakes: Collection[Mistake], name: str = "") -> None:
        self.mistakes = tuple(sorted(mistakes))
        shown_ = "; ".join(map(str, self.mistakes[:10]))
        more = f"; and {len(self.mistakes) - 10} more" if len(self.mistakes) > 10 else ""
        super().__init__(f"{name or 'the definition'} has {_counted(len(self.mistakes))}: {shown_}{more}")


def _counted(count: int) -> str:
    return "1 mistake" if count == 1 else f"{count} mistakes"


def load(text: str) -> Definition:
    """Return the definition in a YAML or JSON text. Raises `DefinitionError` with every mistake."""
    return _sound(read_source(text))


def definition_of(document: Mapping[str, Any]) -> Definition:
    """Return the definition that a document is. Raises `DefinitionError` with every mistake."""
    return _sound(of_document(document))


def _sound(source: Source) -> Definition:
    definition, mistakes = read(source)
    if mistakes or definition is None:
        name = source.document.get("workflow", "") if isinstance(source.document, dict) else ""
        raise DefinitionError(mistakes, name if isinstance(name, str) else "")
    return definition


def read(source: Source) -> tuple[Definition | None, list[Mistake]]:
    """Return the definition, or None if its form has mistakes, and every mistake of its form, in the order of the text."""
    definition, mistakes = read_in_part(source)
    return (None if mistakes else definition), mistakes


def read_in_part(source: Source) -> tuple[Definition | None, list[Mistake]]:
    """Return the definition as far as it can be read, or None, and every mistake of its form, in the order of the text."""
    reader = _Reader(source)
    if source.document is None and source.mistakes:
        return None, list(source.mistakes)
    definition = reader.definition()
    return definition, sorted({*source.mistakes, *reader.mistakes})


@cache
def _validator(field: str, where: str) -> Any:
    table = {"top": fields.TOP, "node": fields.NODE, "edge": fields.EDGE, "limits": fields.LIMITS}.get(where)
    schema = fields.VERBS[Kind(field)][0] if table is None else table[field][0]
    return jsonschema_rs.validator_for(schema)


class _Reader:
    """Reads one document and notes mistakes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.mistakes: list[Mistake] = []

    def wrong(self, path: Path, message: str) -> None:
        """Note a mistake."""
        line, column = self._source.place(path)
        self.mistakes.append(Mistake(line, column if line else 0, shown(path), message))

    # --- the whole ---

    def definition(self) -> Definition | None:
        """Return the definition as far as it could be read."""
        document = self._source.document
        if not isinstance(document, dict):
            self.wrong((), "a definition is an object that begins with `workflow: name`")
            return None
        self._known(document, fields.TOP, ())
        for name in ("workflow", "nodes"):
            if name not in document:
                self.wrong((), f"`{name}` is required")
        plain = {name: self._field(document, name, "top", ()) for name in fields.TOP if name in document}
        for name in ("input", "output_schema"):
            if name in plain:
                self._schema(plain[name], (name,))
        self._templates(plain.get("output"), ("output",))
        nodes, edges = self._nodes(plain.get("nodes") or _NOTHING), self._edges(plain.get("edges") or [])
        edges = self._after(plain.get("nodes") or _NOTHING, nodes) + edges
        self._check_edges(edges)
        if not nodes and isinstance(plain.get("nodes"), dict) and not self.mistakes:
            self.wrong(("nodes",), "has no node")
        return Definition(
            name=str(plain.get("workflow", "")),
            version=str(plain.get("version") or ""),
            document=document,
            nodes=nodes,
            edges=tuple(edge for _, edge in edges),
            description=plain.get("description") or "",
            triggers=tuple(plain.get("triggers") or ()),
            input_schema=plain.get("input"),
            output=plain.get("output"),
            has_output="output" in plain,
            output_schema=plain.get("output_schema"),
            limits=self._limits(plain.get("limits") or _NOTHING),
        )

    def _limits(self, given: Mapping[str, Any]) -> RunLimits:
        if not isinstance(given, dict) or self.mistakes:
            return RunLimits()
        taken = {name: value for name, value in given.items() if name != "runtime_max"}
        runtime = self._duration(given.get("runtime_max"), ("limits", "runtime_max"))
        return RunLimits(**taken) if runtime is None else RunLimits(**taken, runtime_ms=runtime)

    # --- nodes ---

    def _nodes(self, given: Any) -> dict[str, Node]:
        if not isinstance(given, dict):
            return {}
        if len(given) > NODES_MAX:
            self.wrong(("nodes",), f"has {len(given)} nodes; at most {NODES_MAX} are allowed")
        found = {}
        for name, node in given.items():
            path = ("nodes", name)
            if not (isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= 64):
                self.wrong(path, "a node's name has letters, digits and _ and begins with no digit")
            elif name in RESERVED:
                self.wrong(path, f"`{name}` is reserved; give the node another name")
            if not isinstance(node, dict):
                self.wrong(path, "a node is an object with one verb, such as `call: AGENT/CAPABILITY`")
            elif (read_ := self._node(name, node, path)) is not None:
                found[name] = read_
        return found

    def _kind(self, node: Mapping[str, Any], path: Path) -> Kind | None:
        verbs = [kind for kind in Kind if kind.value in node]
        if len(verbs) > 1 and Kind.JOIN in verbs:
            verbs.remove(Kind.JOIN)
        if len(verbs) == 1:
            return verbs[0]
        names = ", ".join(kind.value for kind in Kind)
        said = f"has {' and '.join(verb.value for verb in verbs)}" if verbs else self._nearest(node, names)
        self.wrong(path, f"{said}; a node has exactly one of {names}")
        return None

    def _nearest(self, node: Mapping[str, Any], names: str) -> str:
        for key in node:
            if isinstance(key, str) and (near := get_close_matches(key, names.split(", "), n=1)) and key not in fields.NODE:
                return f"has no verb; did you mean `{near[0]}` instead of `{key}`?"
        return "has no verb"

    def _node(self, name: str, node: dict[str, Any], path: Path) -> Node | None:
        kind = self._kind(node, path)
        if kind is None:
            return None
        allowed = {field: fields.NODE[field] for field in (fields.ALLOWED[kind] | fields.COMMON) - {kind.value}}
        self._known(node, {**allowed, kind.value: fields.VERBS[kind]}, path, fields.NODE)
        verb = self._field(node, kind.value, kind.value, path)
        plain = {field: self._field(node, field, "node", path) for field in allowed if field in node}
        for field in ("input", "message", "output", "options", "default"):
            self._templates(plain.get(field), (*path, field))
        for field in ("output_schema", "answer"):
            if field in plain:
                self._schema(plain[field], (*path, field))
        common: dict[str, Any] = {
            "name": name,
            "kind": kind,
            "join": (verb if kind is Kind.JOIN else plain.get("join")) or "all",
            "when": self._condition(plain.get("when"), (*path, "when")),
            "route": plain.get("route") or ("first" if kind is Kind.DECIDE else "all"),
            "dynamic": bool(plain.get("dynamic")),
            "timeout_ms": self._duration(plain.get("timeout"), (*path, "timeout")),
            "retry": self._retry(plain.get("retry"), (*path, "retry")),
            "undo": self._undo(plain.get("undo"), (*path, "undo")),
            "each": self._each(plain.get("map"), (*path, "map")),
            "output": plain.get("output"),
            "has_output": "output" in plain,
            "output_schema": plain.get("output_schema"),
            "description": plain.get("description") or "",
        }
        return Node(**common, **self._of_kind(kind, verb, plain, path))

    def _of_kind(self, kind: Kind, verb: Any, plain: dict[str, Any], path: Path) -> dict[str, Any]:
        """Return the fields that only nodes of this kind have."""
        match kind:
            case Kind.CALL:
                return {"call": self._called(verb, plain, (*path, "call"))}
            case Kind.RUN:
                return {"workflow": verb or "", "input": plain.get("input")}
            case Kind.ASK:
                self._templates(verb, (*path, "ask"))
                options, has_default = plain.get("options") or (), "default" in plain
                ask = Ask(
                    text=verb,
                    options=tuple(options),
                    answer_schema=plain.get("answer"),
                    default=plain.get("default"),
                    has_default=has_default,
                )
                return {"ask": ask}
            case Kind.WAIT:
                return {"wait": self._wait(verb, (*path, "wait"))}
            case Kind.AGGREGATE:
                given = {"strategy": verb} if isinstance(verb, str) else dict(verb or _NOTHING)
                self._templates(given, (*path, "aggregate"))
                of, strategy = tuple(given.pop("of", ())), str(given.pop("strategy", ""))
                return {"aggregate": Aggregate(strategy=strategy, of=of, options=given)}
            case Kind.SET | Kind.DECIDE:
                self._templates(verb, (*path, kind.value))
                return {"data": verb}
            case Kind.FINISH:
                return {"finish": Finish(status=verb or "success", message=plain.get("message") or "")}
            case Kind.JOIN:
                return {}

    def _called(self, verb: Any, plain: Mapping[str, Any], path: Path) -> Call | None:
        if isinstance(verb, str):
            agent, _, capability = verb.partition("/")
        elif isinstance(verb, dict):
            agent, capability = str(verb.get("agent", "")), str(verb.get("capability") or "")
            self._templates(agent.partition("/")[2], (*path, "agent"))
            if "{{" in agent.partition("/")[0]:
                self.wrong((*path, "agent"), "only the key after `/` may hold a template: which agent is called is fixed")
        else:
            return None
        return Call(
            agent=agent,
            capability=capability or MESSAGE,
            input=plain.get("input"),
            message=plain.get("message") or "",
            objective=plain.get("objective") or "",
        )

    def _undo(self, given: Any, path: Path) -> Call | None:
        if not isinstance(given, dict):
            return None
        self._templates(given.get("input"), (*path, "input"))
        return self._called(given.get("call"), given, (*path, "call"))

    def _each(self, given: Any, path: Path) -> Each | None:
        if not isinstance(given, dict):
            return None
        self._templates(given.get("over"), (*path, "over"))
        over = given.get("over")
        if not isinstance(over, list) and not (isinstance(over, str) and _has_template(over)):
            self.wrong((*path, "over"), "must be a list, or a template that is one, such as {{search.data.hits}}")
            return None
        return Each(**given)

    def _retry(self, given: Any, path: Path) -> Retry:
        if not isinstance(given, dict):
            return Retry()
        taken = {name: given[name] for name in ("max", "factor", "instruct") if name in given}
        for name, field in (("backoff", "backoff_ms"), ("backoff_max", "backoff_ms_max")):
            if (value := self._duration(given.get(name), (*path, name))) is not None:
                taken[field] = value
        return Retry(**taken, on=tuple(given.get("on") or ()))

    def _wait(self, verb: Any, path: Path) -> Wait | None:
        if isinstance(verb, str):
            return Wait(delay_ms=self._duration(verb, path))
        if not isinstance(verb, dict):
            return None
        ways = [name for name in ("for", "until", "event") if name in verb]
        if len(ways) != 1:
            self.wrong(path, "needs exactly one of for, until, event")
            return None
        self._templates(verb.get("until"), (*path, "until"))
        return Wait(
            delay_ms=self._duration(verb.get("for"), (*path, "for")),
            until=verb.get("until"),
            event=str(verb.get("event") or ""),
            match=self._condition(verb.get("match"), (*path, "match")),
        )

    # --- edges ---

    def _after(self, given: Any, nodes: Mapping[str, Node]) -> list[tuple[Path, Edge]]:
        """Return the edges that `after` is the short form of."""
        found: list[tuple[Path, Edge]] = []
        for name in nodes:
            after = given[name].get("after") if isinstance(given, dict) else None
            for place, source in enumerate(after if isinstance(after, list) else ()):
                if isinstance(source, str):
                    path = ("nodes", name, "after", place)
                    found.append((path, Edge(id=f"{source}-{name}", source=source, target=name)))
        return found

    def _edges(self, given: Any) -> list[tuple[Path, Edge]]:
        if not isinstance(given, list):
            return []
        if len(given) > EDGES_MAX:
            self.wrong(("edges",), f"has {len(given)} edges; at most {EDGES_MAX} are allowed")
        found: list[tuple[Path, Edge]] = []
        for place, one in enumerate(given):
            path = ("edges", place)
            if not isinstance(one, dict):
                self.wrong(path, "an edge is an object with `from` and `to`")
                continue
            self._known(one, fields.EDGE, path)
            plain = {name: self._field(one, name, "edge", path) for name in fields.EDGE if name in one}
            for name in ("from", "to"):
                if name not in one:
                    self.wrong(path, f"`{name}` is required")
            ways = [name for name in ("when", "on", "else") if plain.get(name)]
            if len(ways) > 1:
                self.wrong(path, f"has {' and '.join(ways)}; one of them says when an edge is taken")
            if not isinstance(plain.get("from"), str) or not isinstance(plain.get("to"), str):
                continue
            edge = Edge(
                id=plain.get("id") or "",
                source=plain["from"],
                target=plain["to"],
                when=self._condition(plain.get("when"), (*path, "when")),
                on=On(plain["on"]) if plain.get("on") in {str(one) for one in On} else On.SUCCESS,
                is_else=bool(plain.get("else")),
                max=plain.get("max"),
            )
            found.append((path, edge))
        return _named(found)

    def _check_edges(self, edges: list[tuple[Path, Edge]]) -> None:
        """Note edges whose ends are no nodes, and ids that stand twice."""
        ids = Counter(edge.id for _, edge in edges)
        known = self._source.document.get("nodes") if isinstance(self._source.document, dict) else None
        names = list(known) if isinstance(known, dict) else []
        for path, edge in edges:
            is_short = path[0] == "nodes"
            for end, name, special in (("from", edge.source, START), ("to", edge.target, END)):
                if name in names or name == special:
                    continue
                where = path if is_short else (*path, end)
                near = get_close_matches(name, [*names, special], n=1)
                self.wrong(where, f"there is no node `{name}`{f'; did you mean `{near[0]}`?' if near else ''}")
            if ids[edge.id] > 1:
                self.wrong(path if is_short else (*path, "id"), f"the id `{edge.id}` stands twice; give each edge its own")

    # --- fields ---

    def _known(
        self, given: Mapping[str, Any], known: Mapping[str, Any], path: Path, others: Mapping[str, Any] = _NOTHING
    ) -> None:
        for name in given:
            if name in known:
                continue
            if name in others:
                self.wrong((*path, name), f"`{name}` has no meaning here")
                continue
            near = get_close_matches(str(name), known, n=1)
            self.wrong((*path, name), f"unknown key `{name}`{f'; did you mean `{near[0]}`?' if near else ''}")

    def _field(self, given: Mapping[str, Any], name: str, where: str, path: Path) -> Any:
        """Return a field if it is as the table says; else note what is wrong and return None."""
        value = given[name]
        errors = list(_validator(name, where).iter_errors(value))
        for error in errors[:10]:
            message = _plainly(error.message)
            if DURATION_PATTERN in message:
                message = f"{value!r} is no duration; write it as 90s, 15m, 3d or P3D"
            self.wrong((*path, name, *error.instance_path), message)
        return None if errors else value

    def _duration(self, text: Any, path: Path) -> int | None:
        if not isinstance(text, str):
            return None
        found = duration_ms(text)
        if found is None:
            self.wrong(path, f"{text!r} is no duration; write it as 90s, 15m, 3d or P3D")
        return found

    def _condition(self, given: Any, path: Path) -> str:
        if given is None:
            return ""
        try:
            text = expression_of(given)
        except ValueError as error:
            self.wrong(path, str(error))
            return ""
        try:
            problems = [(one.message, one.at) for one in Expression(text).problems()]
        except ExpressionError as error:
            problems = [(error.message, error.at)]
        for message, at in problems:
            self.wrong(path, f"{message}, at character {at + 1} of `{text}`")
        return text

    def _templates(self, value: Any, path: Path) -> None:
        if not _has_template(value):
            return
        strings: list[tuple[Path, str]] = []
        _strings(value, path, strings.append)
        for where, text in strings:
            try:
                list(templates_of(text))
            except TemplateError as error:
                self.wrong(where, f"{error.message}, at character {error.at + 1} of {text!r}")
            except CallerError as error:  # an extra is missing
                self.wrong(where, error.message)

    def _schema(self, schema: Any, path: Path) -> None:
        if not isinstance(schema, dict):
            return
        if says_nothing(schema):
            self.wrong(
                path, "has no keyword of JSON Schema, so that it would take anything; properties are named under `properties`"
            )
        try:
            jsonschema_rs.validator_for(schema, retriever=_no_retrieval)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            self.wrong(path, f"is not a valid JSON Schema: {str(error).splitlines()[0]}")


def _no_retrieval(uri: str) -> Any:
    raise ValueError(f"reference to {uri} is outside the schema")


def _named(found: list[tuple[Path, Edge]]) -> list[tuple[Path, Edge]]:
    """Return the edges, those without an id named after their ends, with a number where the pair stands twice."""
    counts: Counter[tuple[str, str]] = Counter()
    named = []
    for path, edge in found:
        pair = (edge.source, edge.target)
        counts[pair] += 1
        number = f"-{counts[pair]}" if counts[pair] > 1 else ""
        made = edge.id or f"{edge.source}-{edge.target}{number}"
        named.append((path, edge if edge.id else Edge(**{**_as_dict(edge), "id": made})))
    return named


def _as_dict(edge: Edge) -> dict[str, Any]:
    return {name: getattr(edge, name) for name in edge.__struct_fields__}


def _has_template(value: Any) -> bool:
    match value:
        case str():
            return "{{" in value
        case dict():
            return any(map(_has_template, value.values()))
        case list() | tuple():
            return any(map(_has_template, value))
    return False


def _strings(value: Any, path: Path, take: Callable[[tuple[Path, str]], None]) -> None:
    match value:
        case str():
            take((path, value))
        case dict():
            for key, one in value.items():
                _strings(one, (*path, key), take)
        case list() | tuple():
            for place, one in enumerate(value):
                _strings(one, (*path, place), take)


def _plainly(message: str) -> str:
    """Return a validator's sentence without its notation."""
    return message.replace("is not of types", "must be one of").replace("is not of type", "must be of type")
