"""The tree of one call: built from live events or from audit rows, drawn the same way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert, to_builtins

from comity.cli.ui.output import clean
from comity.core.envelope.usage import Cost, cost_words
from comity.core.journal.audit import Row
from comity.core.units import MS_PER_S
from comity.errors import CODES

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from comity.runtime.call.events import Event

OPEN: Final = ("queued", "running", "open")
STYLES: Final = {
    "success": "green",
    "partial": "yellow",
    "needs_input": "yellow",
    "refused": "red",
    "error": "red",
    "timeout": "red",
    "cancelled": "magenta",
    "queued": "dim",
    "running": "cyan",
    "open": "cyan",
}
ABANDONED: Final = "its node is gone"
# What one level of the tree takes of the line.
_GUIDE_CHARS: Final = 4
_NOTE_CHARS_MAX: Final = 80


@dataclass(slots=True)
class Branch:
    """One call of the tree, and those it made."""

    request_id: str
    target: str
    capability: str
    started_at: int
    status: str = "open"
    duration_ms: float | None = None  # from its beginning to its end, what it waited for a person included
    waited_ms: float = 0.0  # for a person
    paused_at: int | None = None  # when it began to, the last time
    code: str | None = None
    tokens: int = 0
    cost: Cost | None = None
    note: str = ""
    noted: str = ""  # about it in the audit
    thought: str = ""
    degraded: bool = False
    is_late: bool = False
    is_abandoned: bool = False
    children: list[Branch] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return the branch as plain data."""
        return {
            "request_id": self.request_id,
            "target": self.target,
            "capability": self.capability,
            "status": self.status,
            "error_code": self.code,
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
            "waited_ms": self.waited_ms,
            "tokens": self.tokens,
            "cost": to_builtins(self.cost),
            "degraded": self.degraded,
            "late": self.is_late,
            "abandoned": self.is_abandoned,
            "note": self.note or None,
            "thought": self.thought or None,
            "children": [child.document() for child in self.children],
        }

    def walk(self, depth: int = 0) -> Iterable[tuple[int, Branch]]:
        """Yield this branch and all below it, with their depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class CallTree:
    """The calls of one root, in the order in which they came."""

    def __init__(self) -> None:
        self.roots: list[Branch] = []
        self._known: dict[str, Branch] = {}

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> CallTree:
        """Build the tree from the audit rows of one root call."""
        tree = cls()
        for row in rows:
            tree._take_row(row)
        return tree

    def find(self, request_id: str) -> Branch | None:
        """Return a call of the tree."""
        return self._known.get(request_id)

    def take(self, event: Event) -> None:
        """Note what has just happened."""
        branch = self._known.get(event.request_id)
        if branch is None:
            branch = self._add(Branch(event.request_id, event.target, event.capability, event.at_ms, "queued"), event.parent_id)
        match event.kind:
            case "started":
                branch.status = "running"
            case "progress":
                branch.note = short(event.data)
            case "refused":
                branch.status, branch.code, branch.note = "refused", event.data["code"], event.data["message"]
            case "settled":
                branch.status, branch.code, branch.duration_ms = event.data["status"], event.data["code"], event.data["ms"]
                branch.note = ""

    def _take_row(self, row: Row) -> None:
        branch = self._known.get(row.request_id)
        if branch is None or row.kind == "refused":  # a refusal under an id that was used before stands beside that call
            branch = self._add(Branch(row.request_id, row.target, row.capability, row.created_at), row.parent_id)
        if row.kind == "late":
            branch.is_late = True
        elif row.kind == "noted":
            branch.note = branch.noted = row.note
        elif row.kind != "admitted":
            branch.status = row.status or branch.status
            branch.code, branch.tokens = row.error_code, row.tokens or 0
            branch.cost = None if row.cost is None else convert(row.cost, Cost)
            branch.duration_ms = None if row.kind == "refused" else row.duration_ms
            if row.kind in {"paused", "settled"}:
                _count_waiting(branch, row)
            if row.note or row.error_code in CODES:
                branch.note = row.note or CODES[str(row.error_code)].advice

    def _add(self, branch: Branch, parent_id: str | None) -> Branch:
        parent = self._known.get(parent_id) if parent_id is not None else None
        (self.roots if parent is None else parent.children).append(branch)
        self._known.setdefault(branch.request_id, branch)
        return branch

    def draw(self, *, now_ms: int | None = None, marked: str | None = None) -> Tree:
        """Return the tree to print; calls under way show how long they have been so at `now_ms`."""
        from rich.tree import Tree

        every = [pair for root in self.roots for pair in root.walk()]
        width = max((_GUIDE_CHARS * depth + len(_name(branch)) for depth, branch in every), default=0)
        begin = min((branch.started_at for _, branch in every), default=0)

        def label(branch: Branch, depth: int) -> Text:
            return _label(branch, width - _GUIDE_CHARS * depth, begin, now_ms, is_marked=branch.request_id == marked)

        def grow(tree: Tree, branch: Branch, depth: int) -> None:
            for child in branch.children:
                grow(tree.add(label(child, depth + 1)), child, depth + 1)

        top = Tree("", hide_root=True, guide_style="dim")
        for root in self.roots:
            grow(top.add(label(root, 0)), root, 0)
        return top


def _count_waiting(branch: Branch, row: Row) -> None:
    """Add what a call waited for a person: its row tells only how long it ran since."""
    if branch.paused_at is not None:
        branch.waited_ms += max(row.created_at - (row.duration_ms or 0) - branch.paused_at, 0)
        branch.duration_ms = row.created_at - branch.started_at
    branch.paused_at = row.created_at if row.kind == "paused" else None


def _label(branch: Branch, width: int, begin: int, now_ms: int | None, *, is_marked: bool) -> Text:
    from rich.text import Text

    is_open = branch.status in OPEN
    duration = branch.duration_ms
    if is_open and now_ms is not None:
        duration = max(now_ms - branch.started_at, 0)
    text = Text()
    text.append(_name(branch).ljust(width), "bold" if is_marked else "")
    text.append(f"  {branch.status:<11}", STYLES.get(branch.status, ""))
    text.append(f"{f'+{max(branch.started_at - begin, 0)}':>7} ms {_milliseconds(duration):>10}", "dim")
    if branch.tokens:
        text.append(f"  {branch.tokens:,} tokens, {cost_words(branch.cost, branch.tokens)}", "dim")
    if branch.waited_ms:
        text.append(f"  waited {_milliseconds(branch.waited_ms)} for a person", "yellow")
    if branch.degraded:
        text.append("  degraded", "yellow")
    if branch.is_abandoned:
        text.append(f"  {ABANDONED}", "yellow")
    note = clean(branch.note)
    if is_open and note:
        text.append(f"  {note}", "italic")
    elif branch.code or note:
        text.append(
            "\n" + ": ".join(part for part in (clean(branch.code or ""), note) if part), "red" if branch.code else "yellow"
        )
    if branch.thought:
        text.append(f"\nthought: {short(clean(branch.thought))}", "dim italic")
    if branch.is_late:
        text.append("\na late result was recorded, and not delivered", "yellow")
    return text


def called(target: str, capability: str) -> str:
    """Return what was called in words; a handoff for any agent has nothing but a capability, which stands for its target."""
    return capability if target == capability else f"{target} {capability}"


def _name(branch: Branch) -> str:
    return clean(called(branch.target, branch.capability))


def _milliseconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.1f} ms" if value < 1_000 else f"{value / MS_PER_S:,.2f} s"


def short(data: Any) -> str:
    """Return what a call told about its progress, on one short line."""
    text = ", ".join(f"{key} {value}" for key, value in data.items()) if isinstance(data, dict) else str(data)
    return text if len(text) <= _NOTE_CHARS_MAX else f"{text[: _NOTE_CHARS_MAX - 1]}…"
