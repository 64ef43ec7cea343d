"""Retention: how long, and how many of, a node's records are kept. Kinds without a bound are kept for good.

Independent of age these are kept: open and paused calls with everything in their trees, handoffs that have not ended, and the
sessions of both.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from typing import Final

from msgspec import Struct

from comity.core.agent.declaration import DeclarationError, shown
from comity.core.envelope.envelope import Reply

# The kinds in the order in which they are removed: calls first, so that replies of removed calls need no check.
KINDS: Final = ("calls", "replies", "handoffs", "sessions", "audit", "spans")
# The message of a reply whose content was removed.
CONTENT_REMOVED: Final = "the content of this reply was removed, since it is kept no longer; how the call ended is still known"


class Keep(Struct, frozen=True, kw_only=True):
    """A bound on one kind: nothing older than `age`, and no more than `count` of the newest. None is no bound."""

    age: timedelta | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if self.age is not None and (not isinstance(self.age, timedelta) or self.age < timedelta(0)):
            raise DeclarationError(f"the age to keep is a timedelta that is not negative, not {shown(self.age)}")
        if self.count is not None and (type(self.count) is not int or self.count < 0):
            raise DeclarationError(f"the count to keep is a whole number that is not negative, not {shown(self.count)}")

    @property
    def is_bounded(self) -> bool:
        """Whether anything is ever removed."""
        return self.age is not None or self.count is not None

    def before_ms(self, now_ms: int) -> int | None:
        """Return the time before which records are too old; None without an age."""
        return None if self.age is None else now_ms - int(self.age / timedelta(milliseconds=1))


_WHOLE: Final = Keep()


class Retention(Struct, frozen=True, kw_only=True):
    """What is kept, kind by kind.

    A call goes with everything below it, once all of that has ended; its age counts from its end. With a call goes the memory
    of its `request_id`: the same id again is a new call. `replies` removes what a call answered and keeps how it ended. A
    session is as old as its last use. The audit is cut where it still verifies, and spans include insights.
    """

    calls: Keep = _WHOLE
    replies: Keep = _WHOLE
    sessions: Keep = _WHOLE
    handoffs: Keep = _WHOLE
    spans: Keep = _WHOLE
    audit: Keep = _WHOLE

    def __post_init__(self) -> None:
        for kind in KINDS:
            if not isinstance(getattr(self, kind), Keep):
                raise DeclarationError(f"retention.{kind} is a Keep, not {shown(getattr(self, kind))}")
        age = self.sessions.age
        for kind, keep in (("calls", self.calls), ("handoffs", self.handoffs)):
            if age is not None and (keep.age is None or keep.age > age):
                raise DeclarationError(
                    f"{kind} would outlive their sessions, which can show what is hidden in their replies: "
                    f"give retention.{kind} an age of at most {age}"
                )

    @property
    def is_bounded(self) -> bool:
        """Whether anything is ever removed."""
        return any(getattr(self, kind).is_bounded for kind in KINDS)


def checked_retention(given: Retention | None) -> Retention:
    """Return the retention a node was given, everything for good if it was given none."""
    if given is not None and not isinstance(given, Retention):
        raise DeclarationError(f"the retention of a node is a Retention, not {shown(given)}")
    return given or Retention()


class Pruned(Struct, frozen=True, kw_only=True):
    """What one slice of a sweep removed: the number of records of each kind, and the keys of the sessions among them."""

    calls: int = 0
    replies: int = 0
    sessions: int = 0
    handoffs: int = 0
    spans: int = 0
    audit: int = 0
    session_keys: tuple[str, ...] = ()

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(**{kind: getattr(self, kind) + getattr(other, kind) for kind in KINDS})

    @property
    def total(self) -> int:
        """How many of all kinds."""
        return sum(getattr(self, kind) for kind in KINDS)


Sweep = Generator[Pruned, None, None]


def is_doomed(keep: Keep, at_ms: int | None, is_surplus: bool, now_ms: int) -> bool:
    """Return whether to remove a record that ended or was last used at `at_ms`; False if it has not ended (None)."""
    if at_ms is None:
        return False
    before = keep.before_ms(now_ms)
    return is_surplus or (before is not None and at_ms < before)


def without_content(reply: Reply) -> Reply | None:
    """Return a reply with only the outcome of its call; None if it has no content already."""
    if CONTENT_REMOVED in reply.warnings:
        return None
    return Reply(
        status=reply.status,
        confidence=reply.confidence,
        warnings=(CONTENT_REMOVED,),
        error=reply.error,
        usage=reply.usage,
        request_id=reply.request_id,
        duration_ms=reply.duration_ms,
        degraded=reply.degraded,
        version=reply.version,
        source=reply.source,
        session_id=reply.session_id,
    )
