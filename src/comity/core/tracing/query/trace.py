"""One trace while a query looks at it: its root, its extent, and where each span stands in its tree.

Everything is worked out when first asked for, since most queries ask for little. Positions are a nested set: a span's
descendants have numbers between its left and its right. Numbering starts at the roots, so a span whose ancestors never lead
to a root has no position and takes part in no structural relation, as in Tempo.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from comity.core.tracing.span import Event, Link, Span

ROOT_PARENT = -1
NOT_RECEIVED = "<root span not yet received>"


class Position(NamedTuple):
    """A span's place in the nested set; `parent` is the parent's left, or `ROOT_PARENT`."""

    left: int
    right: int
    parent: int


NOWHERE = Position(0, 0, 0)


class Trace:
    """The spans of one trace, in the order given. `event` and `link` narrow what an expression sees to one of them."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self.event: Event | None = None
        self.link: Link | None = None

    @cached_property
    def start_ns(self) -> int:
        return min(span.start_ns for span in self.spans)

    @cached_property
    def end_ns(self) -> int:
        return max(max(span.end_ns, span.start_ns) for span in self.spans)

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @cached_property
    def root(self) -> Span | None:
        """The earliest span without a parent: Tempo takes the span that came last, which depends on how spans were sent."""
        roots = [span for span in self.spans if span.parent_id is None]
        return min(roots, key=lambda span: span.start_ns) if roots else None

    @cached_property
    def root_name(self) -> str:
        return self.root.name if self.root else ""

    @cached_property
    def root_service_name(self) -> str:
        service = self.root.resource.get("service.name") if self.root else None
        return service if isinstance(service, str) else ""

    @cached_property
    def children(self) -> dict[str, list[Span]]:
        """The children of each span id, in the order the spans were given."""
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            if span.parent_id is not None and span.parent_id != span.span_id:
                found.setdefault(span.parent_id, []).append(span)
        return found

    @cached_property
    def positions(self) -> dict[int, Position]:
        """The position of each span that a root leads to, by the identity of the span object."""
        found: dict[int, Position] = {}
        lefts: dict[int, tuple[int, int]] = {}
        number = 0
        roots = [span for span in self.spans if span.parent_id is None]
        todo: list[tuple[Span, int, bool]] = [(root, ROOT_PARENT, True) for root in reversed(roots)]
        while todo:
            span, parent, entering = todo.pop()
            number += 1
            if not entering:
                left, parent = lefts[id(span)]
                found[id(span)] = Position(left, number, parent)
            elif id(span) in lefts:
                number -= 1  # two spans share an id: their children are numbered under the first
            else:
                lefts[id(span)] = number, parent
                todo.append((span, 0, False))
                todo.extend((child, number, True) for child in reversed(self.children.get(span.span_id, ())))
        return found

    def position(self, span: Span) -> Position:
        return self.positions.get(id(span), NOWHERE)

    def events(self, span: Span) -> Sequence[Event]:
        return span.events if self.event is None else (self.event,)

    def links(self, span: Span) -> Sequence[Link]:
        return span.links if self.link is None else (self.link,)
